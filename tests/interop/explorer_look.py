"""What the explorer looks like where there is much text or little room: long addresses, low and narrow windows, empty
states, and colours that must be told from their ground."""
import csv
import io
import xml.etree.ElementTree as ET

from explorer_browser import fail, seconds

HOSTILE = "https://hostile.example/"
LONG = "https://long.example/"
MARKS = ["accent", "bar", "bar2", "hatch", "ink", "ink2", "ink3"]


def long_lines():
    """A page with 60 links of 900 characters, which differ in two places far from their beginning, and one of 3,600."""
    def query(n):
        return (f"{LONG}buglist.cgi?{'status=OPEN&' * 30}version={n // 2}.4&{'severity=normal&' * 20}"
                f"{'priority' if n % 2 else 'email'}=1&{'field=noop&' * 12}")

    deep = LONG + "q?" + "x=1&" * 900
    links = [query(n) for n in range(60)] + [deep]
    return [{"url": LONG, "ts": f"20{year:02}0101000000", "links": links} for year in (4, 6)] + [
        {"url": url, "ts": f"20{year:02}0101000000", "links": [LONG]} for url in (query(0), deep) for year in (5, 7)]


def check_long(browser):
    """Names are cut so that no two are alike; a head has two lines, and the whole address on demand."""
    page = browser.page
    browser.open(url=LONG)
    picture = ET.fromstring(browser.saved(page.get_by_role("button", name="SVG", exact=True).click))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    names = [text for text in texts if text.startswith("/bug")]
    if len(names) < 20 or len(set(names)) < len(names):
        fail(f"{len(names)} names of long URLs, {len(set(names))} of them different: {names[:3]}")
    deep = next(row["url"] for row in browser.shown()["rows"] if "q?x=1" in row["url"])
    for view in ("barcode", "dates", "backlinks", "neighbourhood"):
        browser.open(v=view, url=deep)
        high = page.evaluate("document.querySelector('h1').clientHeight")
        if high > 70:
            fail(f"the head of {view} of a long URL is {high} pixels high")
        page.get_by_role("button", name="whole").click()
        if page.evaluate("document.querySelector('h1').clientHeight") < 100:
            fail(f"the whole address of {view} is not shown")


def check_rooms(make, url):
    """Low windows scroll, narrow ones cut nothing off that cannot be scrolled to."""
    for width, height in ((640, 400), (768, 1024), (390, 844)):
        browser = make(width, height)
        page = browser.page
        for state in ({"url": url}, {"v": "dates", "url": url}, {"v": "backlinks", "url": url},
                      {"v": "neighbourhood", "url": url}, {"v": "store"}):
            browser.open(**state)
            wide, high, picture = page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.scrollHeight, "
                "Math.min(...[...document.querySelectorAll('.picture')].map((own) => own.clientHeight), 1000)]")
            if wide > width or picture < 56 or (height < 600 and high <= height):
                fail(f"{state} at {width} x {height}: {wide} wide, {high} high, a picture of {picture}")
        browser.open(v="dates", url=url)
        over = page.evaluate("(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)"
                             "(document.querySelector('.calendar .picture'))")
        if over > 0:
            fail(f"{over} pixels of the calendar at {width} x {height} are cut off")
        page.get_by_label("URL, host, or a part of one").focus()
        page.wait_for_selector("#suggestions .option")
        box = page.locator("#suggestions").bounding_box()
        names = page.evaluate(
            "Math.min(...[...document.querySelectorAll('#suggestions .name')].map((name) => name.clientWidth))")
        if box["x"] < 0 or box["x"] + box["width"] > width or names < 100:
            fail(f"suggestions at {width}: from {box['x']:.0f}, {box['width']:.0f} wide, names of {names} pixels")
        browser.clean("rooms")
        browser.context.close()


def check_empty(browser):
    """What is not there is said, and leads on."""
    page = browser.page
    browser.open()
    disabled = page.locator("#views a[aria-disabled]")
    if disabled.count() != 4 or disabled.first.get_attribute("href"):
        fail("views that need a URL look as if they could be opened without one")
    if page.locator(".asks li").count() != 3:
        fail("the first page asks no questions")
    page.goto(f"{browser.base}/?url=long+example")
    browser.ready("failed")
    page.wait_for_selector("#like a")
    if LONG.split("//")[1] not in page.locator("#like").inner_text():
        fail(f"two words find {page.locator('#like').inner_text()!r}")
    field = page.get_by_label("URL, host, or a part of one")
    field.fill("blog.example")
    page.wait_for_timeout(600)
    if "blog.example\ndomain, all its hosts" not in page.locator("#suggestions").inner_text():
        fail(f"a domain is not offered: {page.locator('#suggestions').inner_text()[:200]!r}")
    page.keyboard.press("Enter")
    browser.ready("backlinks")
    if "url=blog.example" not in page.url:
        fail(f"Enter after the name of a domain leads to {page.url}")
    page.goto(f"{browser.base}/?url=blog.example")
    browser.ready("failed")
    page.get_by_role("link", name="Who links to all of blog.example").click()
    browser.ready("backlinks")
    rows = browser.open(url="http://elsewhere-1.example/page?number=1")["rows"]
    page.wait_for_timeout(300)
    if not rows or "dir=in" not in page.url:
        fail(f"of a URL that was never captured the page shows {len(rows)} rows at {page.url}")
    browser.problems = [problem for problem in browser.problems if "400" not in problem and "404" not in problem]


def saved_csv(browser):
    content = browser.saved(browser.page.get_by_role("button", name="CSV", exact=True).click)
    return list(csv.DictReader(io.StringIO(content.decode())))


def check_files(browser, api, url):
    """What is saved as CSV is what the API says, also where a picture has a part of it."""
    page, saved = browser.page, 0
    for page_url in (url, HOSTILE):
        for direction in ("out", "in"):
            browser.open(url=page_url, dir=direction)
            lines = saved_csv(browser)
            spans = {(line["url"], seconds(line["first"]), seconds(line["last"])) for line in lines}
            if spans != api.lifespans(page_url, direction) or len(spans) != len(lines):
                fail(f"the CSV of bars {direction} of {page_url[:80]} is not what /v1/lifespans says")
            saved += len(lines)
    shown = browser.open(v="dates", url=url)
    lines = saved_csv(browser)
    for kind in ("lost", "kept", "gained"):
        if [line["url"] for line in lines if line["change"] == kind] != shown[kind]:
            fail(f"the CSV of two dates: {kind}")
    answer = browser.open(v="store")
    if answer["overview"]:
        captures = sum(int(line["captures"]) for line in saved_csv(browser) if not line["host"])
        if captures != answer["counts"]["captures"]:
            fail(f"the CSV of the store has {captures} captures")
    return saved + len(lines)


def luminance(colour):
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def check_colours(make):
    """Every mark has a contrast of 3 to its ground, in both themes."""
    least = 99
    for scheme in ("light", "dark"):
        browser = make(scheme=scheme)
        browser.open()
        theme = browser.colours()
        ground = browser.page.evaluate("getComputedStyle(document.body).backgroundColor")
        if ground != f"rgb{tuple(bytes.fromhex(theme['paper'][1:]))}":
            fail(f"canvases take {theme['paper']} for the paper of {scheme}, which is {ground}")
        browser.page.keyboard.press("t")
        other = browser.page.evaluate("getComputedStyle(document.body).backgroundColor")
        if other == ground or other != f"rgb{tuple(bytes.fromhex(browser.colours()['paper'][1:]))}":
            fail(f"t does not change {scheme} to the other theme: the paper is {other}")
        for mark in MARKS:
            pair = sorted((luminance(theme[mark]), luminance(theme["paper"])), reverse=True)
            contrast = (pair[0] + 0.05) / (pair[1] + 0.05)
            least = min(least, contrast)
            if contrast < 3:
                fail(f"{mark} on paper, {scheme}: a contrast of {contrast:.2f}")
        browser.context.close()
    return least


def check_look(make, api, url):
    """`make` opens a browser, of a size and in a colour scheme."""
    browser = make()
    check_long(browser)
    check_rooms(make, url)
    check_empty(browser)
    saved = check_files(browser, api, url)
    browser.clean("look")
    browser.context.close()
    least = check_colours(make)
    print(f"look: long addresses, three sizes of windows, empty states, {saved} lines of CSV as the API has "
          f"them; marks have a contrast of {least:.2f} or more")

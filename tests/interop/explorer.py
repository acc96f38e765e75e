#!/usr/bin/env python3
"""The explorer in a real browser: each view opened, clicked, typed at, zoomed and resized, and compared with the API.

  explorer.py [--webstrata BINARY] [--chromium BINARY] [--firefox BINARY] [--pages N] [--shots DIR]

Builds a store from made-up captures: pages whose links come and go, failures, captures whose links are unknown, and
1,000 hostile URLs (markup, scripts, bidirectional and control characters, 60 KB). A server of that store serves the
explorer to Chromium, headless, under the content security policy of the product. The script compares each bar of a
barcode with /v1/lifespans, and both sides of two dates with /v1/links. A message in the console of the browser, a call
to any other server, a serious finding of axe-core, or a wrong bar ends the script with exit code 1. The views are
opened again below a path of nginx and of Caddy, where these are installed, and in Firefox over WebDriver BiDi. With
--shots it writes a picture of each view at three widths. Needs playwright, axe-playwright-python, websockets and
warcio; browsers are not installed by them but by the system.
"""
import argparse
import json
import random
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from datetime import datetime, timezone
from pathlib import Path

import axe_playwright_python
from explorer_around import check_backlinks, check_neighbourhood
from explorer_bench import check_bench, check_bench_whole
from explorer_browser import FIRST, Api, Browser, digits, fail, served
from explorer_deaths import check_deaths
from explorer_firefox import Firefox, FirefoxBrowser
from explorer_look import check_look, long_lines
from explorer_paper import check_paper
from explorer_proxy import check_proxies
from explorer_quote import check_quote
from explorer_store import check_store
from explorer_tasks import check_questions, check_tasks
from explorer_truth import check_truth
from explorer_values import check_values
from playwright.sync_api import sync_playwright
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
HOSTILE = 1000
# Values of made-up crawls that are compared; explorer_values.py compares as many as one likes.
VALUES = 2000
# A domain that pages of other hosts link to, and some no more.
DOMAIN = "museum.example"


# Scrolls for two seconds, one turn of the wheel a frame, and counts the frames in which the picture was drawn.
SCROLL = """() => new Promise((done) => {
  const area = document.querySelector("[role=application]");
  const [begin, frames] = [performance.now(), window.webstrata.frames];
  const turn = () => {
    const passed = performance.now() - begin;
    if (passed > 2000) return done(((window.webstrata.frames - frames) * 1000) / passed);
    const deltaY = Math.floor(passed / 500) % 2 ? -9 : 9;
    area.dispatchEvent(new WheelEvent("wheel", { deltaY, bubbles: true, cancelable: true }));
    requestAnimationFrame(turn);
  };
  requestAnimationFrame(turn);
})"""


def captures(chance):
    """Pages of a few hosts; each link is there for a while, some captures fail, and some pages are captured once."""
    hosts = ["news.example", "www.news.example", "museum.example", "archive.example", "a-very-long-name.blog.example"]
    pages = [f"https://{chance.choice(hosts)}/{'topics/' * chance.randrange(3)}{n}.html" for n in range(80)]
    targets = pages + [f"http://elsewhere-{n % 17}.example/page?number={n}" for n in range(300)]
    lines = []
    for number, page in enumerate(pages):
        own = {target: sorted(chance.sample(range(60), 2)) for target in chance.sample(targets, 40)}
        for step in range(1 if number % 9 == 0 else chance.randrange(2, 60)):
            line = {"url": page, "ts": digits(FIRST + step * 4_000_000 + number)}
            if chance.randrange(12) == 0:
                line |= {"status": chance.choice([404, 410, 503]), "links": []}
            else:
                line["links"] = [target for target, (first, last) in own.items() if first <= step <= last]
            lines.append(line)
    return lines


def linked_most(lines):
    """The URL that most pages link to."""
    linking = {}
    for line in lines:
        for target in line.get("links", []):
            if ".example/" in target and len(target) < 80:
                linking.setdefault(target, set()).add(line["url"])
    return max(linking, key=lambda target: (len(linking[target]), target))


def revisits(path, pages):
    """A WARC of revisits whose captures are nowhere: of these captures the links are unknown."""
    with open(path, "wb") as out:
        writer = WARCWriter(out, gzip=True)
        for number, page in enumerate(pages):
            for step in range(4, 60, 11):
                at = datetime.fromtimestamp(FIRST + step * 4_000_000 + 99 + number, timezone.utc)
                headers = {"WARC-Date": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
                record = writer.create_revisit_record(
                    page, f"sha1:{'A' * 31}{number % 10}", page, "2001-01-01T00:00:00Z", warc_headers_dict=headers,
                    http_headers=StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1"))
                writer.write_record(record)


def hostile(chance):
    """URLs that would do harm where they are taken for anything but text."""
    shapes = [
        "https://x.example/<script>window.hit=1</script>{n}", "https://x.example/\"><img src=x onerror=hit()>{n}",
        "https://x.example/?q='-alert(1)-'&n={n}", "https://x.example/\u202emoc.elpmaxe{n}",
        "https://x.example/%00%01%1b[31m{n}",
        "https://x.example/</title></style><svg onload=hit()>{n}", "javascript:window.hit=1//{n}",
        "data:text/html,<script>hit()</script>{n}", "https://xn--e1awd7f.example/{n}",
        "https://x.example/${{hit()}}{n}",
        "https://x.example/{n}?" + "a=b&" * 40, "mailto:a@x.example?subject=<b>{n}",
    ]
    urls = [chance.choice(shapes).format(n=n) for n in range(HOSTILE - 2)]
    return urls + ["https://x.example/" + "long/" * 12_000, "https://x.example/" + "%e2%80%ae" * 7000]


def check_bars(browser, api, urls):
    """Each bar of each page, both directions."""
    bars = 0
    for url in urls:
        for direction in ("out", "in"):
            shown = browser.open(url=url, dir=direction)
            drawn = {(row["url"], first, last) for row in shown["rows"] for first, last, _ in row["runs"]}
            expected = api.lifespans(url, direction)
            if drawn != expected:
                fail(f"bars {direction} of {url}: {sorted(drawn ^ expected)[:3]}")
            bars += len(drawn)
            lives = [sum(last - first + 1 for first, last, _ in row["runs"]) for row in shown["rows"]]
            if lives != sorted(lives, reverse=True):
                fail(f"bars {direction} of {url} are not in order of life")
    browser.clean("bars")
    print(f"barcode: {len(urls)} pages, both directions, {bars} bars: all as /v1/lifespans has them")


def check_orders(browser, url):
    """Orders, groups, the filter, and the state in the address."""
    page = browser.page
    first = {row["url"]: row["runs"] for row in browser.open(url=url)["rows"]}
    for word, key in (("birth", lambda runs: runs[0][0]), ("death", lambda runs: runs[-1][1])):
        page.get_by_role("radio", name=word, exact=True).click()
        page.wait_for_timeout(200)
        values = [key(row["runs"]) for row in browser.shown()["rows"]]
        if values != sorted(values) or f"sort={word}" not in page.url:
            fail(f"sort by {word}: {values[:5]}, {page.url}")
    page.get_by_role("radio", name="host", exact=True).click()
    page.wait_for_timeout(200)
    hosts = [urllib.parse.urlsplit(row["url"]).netloc for row in browser.shown()["rows"]]
    changes = sum(one != other for one, other in zip(hosts, hosts[1:]))
    if changes != len(set(hosts)) - 1 or hosts[0] != urllib.parse.urlsplit(url).netloc:
        fail(f"groups of hosts are torn: {hosts[:10]}")
    part = "elsewhere-1"
    page.get_by_placeholder("Only rows with…").fill(part)
    page.wait_for_timeout(200)
    left = {row["url"] for row in browser.shown()["rows"]}
    if left != {own for own in first if part in own} or not left:
        fail(f"the filter leaves {sorted(left)[:3]}")
    again = browser.page.url
    browser.page.goto(again)
    if {row["url"] for row in browser.ready("barcode")["rows"]} != left:
        fail("the address does not keep the filter")
    browser.clean("orders")
    print(f"order, groups, filter: {len(first)} rows, {len(left)} left; the address keeps them")


def check_dates(browser, api, urls):
    """Both sides of two dates, flags moved by keys, and the history."""
    compared = 0
    for url in urls:
        shown = browser.open(v="dates", url=url)
        for key in ("", "ArrowLeft", "ArrowLeft", "a", "ArrowRight"):
            if key:
                browser.page.keyboard.press(key)
                browser.page.wait_for_timeout(30)
                shown = browser.shown()
            if "a" not in shown:
                break
            before, after = api.links(url, shown["a"]), api.links(url, shown["b"])
            right = {"lost": before - after, "kept": before & after, "gained": after - before}
            for kind, expected in right.items():
                if set(shown[kind]) != expected or len(shown[kind]) != len(expected):
                    fail(f"{kind} of {url}, {shown['a']} to {shown['b']}: {sorted(set(shown[kind]) ^ expected)[:3]}")
            compared += 1
        if "a" in shown:
            compared += check_written_dates(browser, api, url, shown["captures"])
    browser.clean("two dates")
    print(f"two dates: {compared} pairs of {len(urls)} pages: lost, kept and gained as /v1/links has them")


def check_written_dates(browser, api, url, captures):
    """Dates that are typed mean what they mean in a question: the end of a year."""
    page = browser.page

    def write(field, text):
        page.locator(f"#between-{field}").fill(str(text))
        page.keyboard.press("Enter")
        page.wait_for_timeout(50)
        return browser.shown()

    first, last = (time.gmtime(captures[at]["time"]).tm_year for at in (0, -1))
    write("from", first)
    for year in ((first + last) // 2, last):
        shown, changed = write("to", year), api.get("/v1/changed", url=url, from_date=first, to_date=year)
        said = page.locator(".notice").all_inner_texts()
        if changed.get("unknown"):
            if not any("links not known" in text for text in said):
                fail(f"{url} at the ends of {first} and {year}: links are unknown, and the page says {said}")
            continue
        for kind in ("lost", "gained"):
            expected = sorted(row["link"] for row in changed["changes"] if row["change"] == kind)
            if sorted(shown[kind]) != expected:
                fail(f"{kind} of {url} at the ends of {first} and {year}: {shown[kind]}, expected {expected}; {said}")
    if write("to", "no date")["b"] != shown["b"] or "not a time" not in page.locator("#between-wrong").inner_text():
        fail("what is no date moves a flag")
    return 2


def check_search(browser, api, url):
    """Suggestions, chosen with keys; back and forward."""
    page = browser.page
    shown = browser.open()
    if shown["pages"] != [own["url"] for own in api.get("/v1/suggest", limit=8)["pages"]]:
        fail("the first page has other pages than /v1/suggest")
    page.keyboard.press("/")
    part = urllib.parse.urlsplit(url).netloc[:6]
    page.keyboard.type(part)
    page.wait_for_selector("#suggestions .page")
    page.wait_for_timeout(300)
    texts = page.locator("#suggestions .page .name").all_inner_texts()
    expected = [own["url"].split("://")[1] for own in api.get("/v1/suggest", q=part)["pages"]]
    if texts != expected:
        fail(f"suggestions for {part}: {texts}, expected {expected}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    opened = browser.ready("barcode")["url"]
    if opened.split("://")[1] != expected[1]:
        fail(f"Enter opened {opened}, expected {expected[1]}")
    page.go_back()
    browser.ready("search")
    page.go_forward()
    if browser.ready("barcode")["url"] != opened:
        fail("forward does not lead to the page again")
    page.keyboard.press("2")
    browser.ready("dates")
    page.go_back()
    browser.ready("barcode")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(100)
    wanted = browser.shown()["rows"][1]["url"]
    told = page.locator("#live").inner_text()
    if wanted.split("://")[1][:40] not in told:
        fail(f"the row is not read out: {told!r}, expected {wanted}")
    page.locator("[role=application]").focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    if urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)["url"][0] != wanted:
        fail(f"Enter leads to {page.url}, expected {wanted}")
    page.goto(f"{browser.base}/?url=none.example")
    browser.ready("failed")
    said = page.locator("main").inner_text()
    page.goto(f"{browser.base}/?url=both.example/")
    browser.ready("failed")
    page.get_by_role("link", name="https://both.example/").click()
    if browser.ready("barcode")["url"] != "https://both.example/":
        fail("of two schemes, https cannot be chosen")
    if "Not in the store" not in said:
        fail("a URL that is not in the store is not named as such")
    browser.problems = [problem for problem in browser.problems if "404" not in problem and "400" not in problem]
    browser.clean("search")
    print(f"search: {len(texts)} suggestions for {part!r}; keys, back and forward, rows read out, not in the store")


def check_pointer(browser, url):
    """Hover, zoom, drag, resize, the table, and saved pictures."""
    page = browser.page
    browser.open(url=url)
    box = page.locator("[role=application]").bounding_box()
    x, y = box["x"] + box["width"] * 0.6, box["y"] + 36 + 15 * 2 + 7
    page.mouse.move(x, y)
    page.wait_for_timeout(100)
    wanted = browser.shown()["rows"][2]["url"]
    told = page.locator(".read p").inner_text()
    if not told.startswith(wanted):
        fail(f"the readout says {told[:80]!r}, expected {wanted}")
    whole = browser.shown()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_timeout(200)
    near = browser.shown()
    if not near["to"] - near["from"] < 0.5 * (whole["to"] - whole["from"]) or "from=" not in page.url:
        fail(f"zoom: {whole['from']} to {whole['to']}, then {near['from']} to {near['to']}")
    page.keyboard.press("0")
    page.mouse.wheel(0, 300)
    page.wait_for_timeout(200)
    if browser.shown()["scroll"] <= 0 or browser.shown()["from"] != whole["from"]:
        fail("0 and the wheel do not show all times, further down")
    browser.open(url=url, across="captures")
    page.locator("[role=application]").focus()
    for key in ("+", "+", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    near = browser.shown()
    page.goto(page.url)
    again = browser.ready("barcode")
    moved = max(abs(again[name] - near[name]) for name in ("from", "to"))
    if near["from"] == 0 or moved > 1:
        fail(f"captures {near['from']} to {near['to']}, and {again['from']} to {again['to']} when loaded again")
    browser.open(url=url)
    page.set_viewport_size({"width": 500, "height": 700})
    page.wait_for_timeout(300)
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    if wide[0] > wide[1]:
        fail(f"the page is {wide[0]} pixels wide in a window of {wide[1]}")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Table").click()
    rows = page.locator(".rows > table tbody tr").count()
    expected = min(200, len(browser.shown()["rows"]))
    if rows != expected:
        fail(f"the table has {rows} rows, expected {expected}")
    page.get_by_role("button", name="Table").click()
    svg = ET.fromstring(browser.saved(page.get_by_role("button", name="SVG").click))
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    wanted = [url.split("://")[1], page.url, "hatched: captured, not all links known"]
    if len(texts) < 30 or any(not any(part in text for text in texts) for part in wanted):
        fail(f"the SVG has {len(texts)} texts: {texts[:5]}")
    if not browser.saved(page.get_by_role("button", name="PNG").click).startswith(b"\x89PNG"):
        fail("the PNG is none")
    browser.clean("pointer")
    print(f"pointer: hover, zoom, scroll, 500 pixels, table of {rows} rows, SVG of {len(texts)} texts, PNG")


def check_hostile(browser, api, url):
    """URLs that would do harm are shown as text: those of the store, and the same as they were written."""
    page = browser.page
    raw = hostile(random.Random(5))
    answer = api.get("/v1/barcode", url=url, limit=5000)
    kept = len(answer["links"])
    times = []
    for altered in (False, True):
        if altered:
            # A store has URLs with what is dangerous escaped. Here the page gets them as they were.
            answer["links"] = (raw * 2)[:kept]
            page.route("**/v1/barcode**", lambda route: route.fulfill(json=answer))
        for state in ({}, {"rows": "all"}, {"group": "host"}, {"v": "dates"}):
            begin = time.monotonic()
            browser.open(url=url, **state)
            times.append(time.monotonic() - begin)
            page.mouse.move(400, 400)
            page.keyboard.press("ArrowDown")
        shown = browser.open(url=url)
        if altered and not any(row["url"] in raw for row in shown["rows"]):
            fail("the page did not get the hostile URLs")
        page.get_by_role("button", name="Table").click()
        page.wait_for_timeout(100)
        made = "document.querySelector('main script, main img, main svg') !== null"
        if page.evaluate(f"window.hit !== undefined || {made}"):
            fail("a hostile URL became an element")
        if re.search("[\u0000-\u0008\u202a-\u202e\u2066-\u2069]", page.locator("main").inner_text()):
            fail("a control or bidirectional character reached the page")
    page.unroute("**/v1/barcode**")
    around = api.get("/v1/neighbourhood", url=url)
    around["nodes"] = [node if at == around["centre"] else raw[at % len(raw)]
                       for at, node in enumerate(around["nodes"])]
    around["domains"] = [raw[at % len(raw)] for at in range(len(around["domains"]))]
    page.route("**/v1/neighbourhood**", lambda route: route.fulfill(json=around))
    for name in ("Table", "Data"):
        browser.open(v="neighbourhood", url=url)
        page.keyboard.press("ArrowDown")
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_timeout(100)
        if page.evaluate(f"window.hit !== undefined || {made}"):
            fail("a hostile URL became an element of a neighbourhood")
    page.unroute("**/v1/neighbourhood**")
    browser.clean("hostile URLs")
    print(f"hostile URLs: {len(raw)} given, {kept} links kept by the store, shown as text; {min(times) * 1000:.0f} to "
          f"{max(times) * 1000:.0f} ms a view, nothing ran")


def check_token(make, webstrata, store, data, url):
    """A server that wants a token gets it from the page, once."""
    tokens = data.with_suffix(".tokens")
    tokens.write_text("a-token-that-is-long-enough-for-anybody\n")
    with served(webstrata, store, data, "--tokens", tokens) as base:
        browser = make(base)
        browser.page.goto(f"{browser.base}/?{urllib.parse.urlencode({'url': url})}")
        browser.ready("failed")
        browser.page.get_by_label("Token").fill("a-token-that-is-long-enough-for-anybody")
        browser.page.get_by_role("button", name="Use it").click()
        rows = len(browser.ready("barcode")["rows"])
        browser.page.keyboard.press("2")
        browser.ready("dates")
        browser.problems = [problem for problem in browser.problems if "401" not in problem]
        browser.clean("token")
        browser.context.close()
    print(f"token: asked for once, then {rows} rows and two dates")


def check_axe(chromium, base, url):
    """axe-core finds nothing serious in any view, dark and light, wide and narrow."""
    views = [{}, {"url": url}, {"url": url, "rows": "all", "group": "host"}, {"url": url, "dir": "in"},
             {"v": "dates", "url": url}, {"v": "backlinks", "url": url.split("/")[2]},
             {"v": "backlinks", "url": "museum.example", "and": "archive.example", "list": "news.example",
              "from": "20xx"},
             {"v": "neighbourhood", "url": url}, {"v": "store"}, {"v": "deaths"}]
    passed = 0
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            browser = Browser(chromium, base, width, 800, scheme)
            for state in views:
                browser.open(**state)
                browser.page.evaluate(AXE.read_text())
                found = browser.page.evaluate("axe.run()")
                bad = [own for own in found["violations"] if own["impact"] in ("serious", "critical")]
                if bad:
                    where = [node["html"][:120] for node in bad[0]["nodes"][:2]]
                    fail(f"axe-core, {scheme}, {width} pixels, {state}: {bad[0]['id']}: {bad[0]['help']}: {where}")
                passed += len(found["passes"])
            browser.context.close()
    print(f"axe-core: {len(views)} views, two themes, two widths: nothing serious, {passed} checks passed")


def check_firefox(args, base, api, pages, within, most, directory, store, target):
    """What differs most between browsers, in Firefox too: drawing, keys, modules, the cache."""
    if not args.firefox:
        print("left out: Firefox is not here")
        return
    directory.mkdir()
    firefox = Firefox(args.firefox)
    try:
        print(f"Firefox {firefox.version}")
        make = lambda *size, **more: FirefoxBrowser(firefox, base, *size, **more)
        browser = make()
        check_bars(browser, api, pages)
        check_orders(browser, most)
        check_dates(browser, api, pages[:10])
        check_backlinks(browser, api, args.webstrata, store, [DOMAIN])
        check_bench(browser, api, within)
        check_neighbourhood(browser, api, [most, *pages[2:5]])
        check_search(browser, api, most)
        check_pointer(browser, most)
        check_look(make, api, most)
        check_paper(make, most)
        check_tasks(make, api, args.webstrata, store, target, DOMAIN)
        check_store(browser, args.webstrata, store)
        check_hostile(browser, api, "https://hostile.example/")
        at = lambda base: FirefoxBrowser(firefox, base)
        check_truth(at, args.webstrata, directory / "truth")
        check_quote(at, api, base, args.webstrata, store, directory / "quoted", pages[:2])
        check_deaths(at, args.webstrata, directory / "deaths")
        check_token(at, args.webstrata, store, directory / "guarded", most)
    finally:
        firefox.close()


def measure(chromium, base, url):
    """Milliseconds to the first picture with an empty cache, bytes, and frames while it is scrolled."""
    pictures, sizes = [], []
    for _ in range(7):
        browser = Browser(chromium, base)
        received = []
        browser.page.on("response", lambda response: received.append(response))
        browser.open(url=url)
        pictures.append(browser.page.evaluate("window.webstrata.first"))
        sizes.append(sum(response.request.sizes()["responseBodySize"] for response in received))
        if len(pictures) < 7:
            browser.context.close()
    rate = browser.page.evaluate(SCROLL)
    browser.context.close()
    print(f"first picture {sorted(pictures)[3]:.0f} ms (median of 7), {sizes[0] / 1000:.1f} kB over the wire, "
          f"{rate:.0f} frames a second while scrolling")


def shoot(chromium, base, url, directory):
    directory.mkdir(parents=True, exist_ok=True)
    views = {"search": {}, "barcode": {"url": url}, "all": {"url": url, "rows": "all", "sort": "birth"},
             "in": {"url": url, "dir": "in"}, "dates": {"v": "dates", "url": url},
             "backlinks": {"v": "backlinks", "url": url.split("/")[2]},
             "neighbourhood": {"v": "neighbourhood", "url": url}}
    for width, height in ((1280, 800), (768, 1024), (390, 844)):
        for scheme in ("light", "dark"):
            browser = Browser(chromium, base, width, height, scheme)
            for name, state in views.items():
                browser.open(**state)
                browser.page.wait_for_timeout(100)
                browser.page.screenshot(path=directory / f"{name}-{width}-{scheme}.png")
            browser.context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="target/debug/webstrata")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser"))
    parser.add_argument("--firefox", default=shutil.which("firefox-esr") or shutil.which("firefox"))
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--shots", type=Path)
    args = parser.parse_args()
    if not args.chromium:
        fail("chromium is not installed (on Debian: apt-get install chromium), or name it with --chromium")
    chance = random.Random(11)
    lines = captures(chance)
    bad = "https://hostile.example/"
    raw = hostile(random.Random(5))
    lines += [{"url": f"{scheme}://both.example/", "ts": digits(FIRST), "links": [bad]} for scheme in ("http", "https")]
    lines += long_lines()
    # The domain that is linked to most has no link from elsewhere.
    alone = "https://alone.example/"
    lines.append({"url": alone, "ts": digits(FIRST), "links": [f"{alone}{n}" for n in range(3000)]})
    lines += [{"url": bad, "ts": digits(FIRST + step * 9_000_000), "links": raw[step * 50:]} for step in range(3)]
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        crawl, store = directory / "crawl.jsonl", directory / "store"
        crawl.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        known = sorted({line["url"] for line in lines if ".html" in line["url"]})
        revisits(directory / "revisits.warc.gz", known[:20])
        for command in (["build", "--out", store, crawl, directory / "revisits.warc.gz"], ["cells", store]):
            subprocess.run([args.webstrata, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with served(args.webstrata, store, directory / "data") as base:
            api = Api(base)
            counts = {}
            for line in lines:
                counts[line["url"]] = counts.get(line["url"], 0) + 1
            pages = sorted(counts, key=lambda page: (page == bad, page))[:args.pages]
            most = max(pages, key=counts.get)
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
                print(f"Chromium {chromium.version}; {len(lines)} captures of {len(counts)} pages")
                browser = Browser(chromium, base)
                check_bars(browser, api, pages)
                check_orders(browser, most)
                check_dates(browser, api, pages[:20])
                check_backlinks(browser, api, args.webstrata, store, ["museum.example", "elsewhere-3.example"])
                within = next(page for page in known if page.startswith("https://www.news.example/"))
                check_bench_whole(browser, api, within, lambda *size: Browser(chromium, base, *size))
                check_neighbourhood(browser, api, [most, *pages[2:9]])
                check_questions(browser)
                check_store(browser, args.webstrata, store)
                check_questions(browser)
                target = linked_most(lines)
                check_tasks(lambda: Browser(chromium, base), api, args.webstrata, store, target, DOMAIN)
                check_search(browser, api, most)
                check_pointer(browser, most)
                check_hostile(browser, api, bad)
                sized = lambda *size, **more: Browser(chromium, base, *size, **more)
                check_look(sized, api, most)
                check_paper(sized, most)
                browser.context.close()
                make = lambda base: Browser(chromium, base)
                check_truth(make, args.webstrata, directory / "truth")
                if not check_values(chromium, args.webstrata, [], 1, VALUES, pages=2):
                    fail("some values are wrong: explorer_values.py compares more")
                check_quote(make, api, base, args.webstrata, store, directory / "quoted", pages[:8])
                check_deaths(make, args.webstrata, directory / "deaths")
                check_token(make, args.webstrata, store, directory / "guarded", most)
                check_proxies(chromium, base.removeprefix("http://"), most, directory)
                check_axe(chromium, base, most)
                measure(chromium, base, most)
                check_firefox(args, base, api, pages, within, most, directory / "firefox", store, target)
                if args.shots:
                    shoot(chromium, base, most, args.shots)
                chromium.close()


if __name__ == "__main__":
    main()

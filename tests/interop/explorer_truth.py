"""What the explorer says where little is known: failures, unknown links, dates outside of a store, parts of a whole,
and a store that gets another epoch while a page is open. Each is compared with the API, or with the crawl that is made
here."""
import json
import subprocess
import urllib.request

from explorer_browser import Api, fail, served

FRONT = "https://news.example/"
DEAD = "https://dead.example/"
NEVER = "https://never.example/"
LATE = "https://late.example/"
MANY = "https://many.example/"
GOAL = "https://goal.example/"
DOUBT = "https://doubt.example/"
SITE = "https://site.example"
LINKS = 6000


def crawl():
    """A page with an outage in 2012, one that died in 2009, one that never was there, one that began in 2021, one with
    6,000 links, pages that link to the first one and stop, one whose links are unknown in 2004, 2010 and 2014, and a
    site of which another page links to a target at each time."""
    lines = []

    def capture(url, year, links, status=200):
        lines.append({"url": url, "ts": f"{year}0101120000", "links": links, "status": status})

    stories = [f"{FRONT}story-{n}.html" for n in range(23)]
    for year in range(2005, 2016):
        capture(FRONT, year, [] if year == 2012 else stories, 503 if year == 2012 else 200)
    capture(DEAD, 2005, [FRONT, "https://other.example/"])
    capture(DEAD, 2009, [], 404)
    capture(DEAD, 2011, [], 410)
    capture(NEVER, 2005, [], 404)
    capture(NEVER, 2006, [], 404)
    capture(LATE, 2021, [FRONT, DEAD])
    capture(LATE, 2022, [FRONT])
    lines.append({"url": LATE, "ts": "20230101120000"})
    for n in range(40):
        capture(f"https://source-{n % 5}.example/page-{n}", 2004 + n % 8, [FRONT])
        capture(f"https://source-{n % 5}.example/page-{n}", 2013, [FRONT] if n % 3 else [])
    capture(MANY, 2010, [f"https://target-{n % 60}.example/{n}" for n in range(LINKS)])
    capture(MANY, 2011, [f"https://target-{n % 60}.example/{n}" for n in range(0, LINKS, 2)])
    known = {2006: [GOAL, f"{GOAL}old"], 2008: [GOAL], 2012: [GOAL]}
    for year in range(2004, 2015, 2):
        links = known.get(year)
        lines.append({"url": DOUBT, "ts": f"{year}0101120000", **({"links": links} if links else {})})
    for year, one, other in ((2006, [GOAL], ["https://far.example/"]), (2012, [], [GOAL, "https://far.example/"])):
        capture(f"{SITE}/one", year, one)
        capture(f"{SITE}/other", year, other)
    return lines


def said(browser):
    return " ".join(browser.page.locator("main").inner_text().split())


def expect(browser, part, what):
    if part not in said(browser):
        fail(f"{what}: {part!r} is not said in {said(browser)[:600]!r}")


def check_outage(browser):
    """An error of the server says nothing of a page, and a page that was gone has no links."""
    shown = browser.open(v="dates", url=FRONT, a="20100101120000", b="20120101120000")
    if shown["lost"] or shown["gained"] or len(shown["kept"]) != 23 or shown["a"] == shown["b"]:
        fail(f"two dates with an outage: {len(shown['lost'])} lost, {len(shown['kept'])} kept")
    expect(browser, "status 503, which says nothing of the links", "two dates with an outage")
    browser.page.wait_for_timeout(200)
    if "b=20120101" in browser.page.url:
        fail(f"the address has a date that is not shown: {browser.page.url}")
    shown = browser.open(v="dates", url=DEAD, a="2005", b="2011")
    if len(shown["lost"]) != 2 or shown["kept"] or shown["gained"]:
        fail(f"two dates of a page that died: {shown}")
    expect(browser, "status 410, no links", "two dates of a page that died")
    expect(browser, "gone since 1 Jan 2009 (status 404)", "the head of two dates")
    browser.open(url=DEAD)
    expect(browser, "gone since 1 Jan 2009 (status 404)", "the head of a barcode")
    browser.open(v="dates", url=NEVER)
    expect(browser, "Neither capture has a link.", "two dates of a page of failures")
    browser.open(url=NEVER)
    expect(browser, "The page was gone in every capture (status 404), so it has no links.", "a page of failures")
    archive = "https://web.archive.org/web/20110101120000/" + DEAD
    opens = browser.page.get_by_role("link", name="open")
    browser.open(v="dates", url=DEAD, a="2005", b="2011")
    if opens.count() != 2 or opens.nth(1).get_attribute("href") != archive:
        fail(f"the capture of B is not opened in the archive: {opens.nth(1).get_attribute('href')}")
    shown = browser.open(url=FRONT)
    cdx = browser.page.get_by_role("link", name="CDX").get_attribute("href")
    with urllib.request.urlopen(cdx) as answer:
        if len(answer.read().splitlines()) != 11:
            fail(f"the CDX lines of a page: {cdx}")
    if [own["shows"] for own in shown["captures"]] != ["nothing" if n == 7 else "links" for n in range(11)]:
        fail(f"the captures of {FRONT}: {shown['captures']}")


def check_inward(browser):
    """Rows of in-links are of other pages: nothing of the captures of the target is drawn over them."""
    page = browser.page
    shown = browser.open(url=FRONT, dir="in")
    if shown["captures"] or len(shown["rows"]) != 42:
        fail(f"in-links: {len(shown['captures'])} captures, {len(shown['rows'])} rows")
    # Below 36 pixels of axis is the row that is left; beside the names are the first years.
    page.get_by_placeholder("Only rows with…").fill("late.example")
    page.wait_for_timeout(200)
    box = page.locator("[role=application]").bounding_box()
    page.mouse.move(box["x"] + 330, box["y"] + 36 + 7)
    page.wait_for_timeout(100)
    told = page.locator(".read p").inner_text()
    if not told.startswith(LATE) or "not known on" not in told:
        fail(f"before the first capture of a page the readout says {told!r}")


def check_dates(browser):
    """A date that the store does not have is not replaced in silence, and the address has what is shown."""
    shown = browser.open(v="dates", url=LATE, a="2010", b="2015")
    expect(browser, "No capture of 2010. No capture of 2015. A and B are both 1 Jan 2021: choose another.", "two dates")
    browser.page.wait_for_timeout(200)
    if "a=20210101120000&b=20210101120000" not in browser.page.url or shown["a"] != shown["b"]:
        fail(f"the address of two dates that moved: {browser.page.url}")
    browser.open(v="dates", url=LATE, a="2021", b="2023")
    expect(browser, "1 Jan 2023: links not known. B is now 1 Jan 2022, the latest by then that tells the links.",
           "a date whose links are unknown")
    browser.open(v="dates", url=FRONT, a="2015", b="2012")
    expect(browser, "1 Jan 2012: status 503, which says nothing of the links. A is now 1 Jan 2011, the latest by then",
           "an outage, and the later date first")
    browser.open(v="neighbourhood", url=LATE, at="2002")
    notice = "Nothing around it is known before 1 Jan 2021, which is shown in the place of 31 Dec 2002."
    expect(browser, notice, "a neighbourhood")
    browser.page.wait_for_timeout(200)
    if "at=20210101120000" not in browser.page.url:
        fail(f"the address of a neighbourhood that moved: {browser.page.url}")
    browser.page.keyboard.press("ArrowRight")
    if "in the place of" in said(browser):
        fail("the notice stays when the date moves")
    browser.open(url=FRONT, **{"from": "19900101", "to": "19950101"})
    expect(browser, "Nothing is known from 1 Jan 1990 to 1 Jan 1995.", "a barcode of a time without captures")
    browser.page.wait_for_timeout(200)
    if "from=" in browser.page.url:
        fail(f"the address of a barcode that shows all: {browser.page.url}")


def check_parts(browser, api):
    """What is a part of a whole is called one, and a text is looked for in all rows."""
    page = browser.page
    shown = browser.open(url=MANY)
    if len(shown["rows"]) != 5000:
        fail(f"a first barcode has {len(shown['rows'])} rows")
    expect(browser, "with 6,000 links to at least", "the head of a barcode that is a part")
    expect(browser, "These are of the 5,000 rows that lived longest", "the readout of a barcode that is a part")
    page.get_by_placeholder("Only rows with…").fill("target-59.")
    page.wait_for_timeout(1000)
    rows = {row["url"] for row in browser.shown()["rows"]}
    expected = {f"https://target-59.example/{n}" for n in range(59, LINKS, 60)}
    if rows != expected:
        fail(f"the filter finds {len(rows)} of {len(expected)} rows")
    # The address of the filter finds the same, and the first link is that of all rows, not of those that lived longest.
    found = {row["url"] for row in browser.open(url=MANY, text="target-59.")["rows"]}
    births = browser.open(url=MANY, sort="birth")["rows"]
    if found != expected or len(births) != LINKS:
        fail(f"the address of a filter finds {len(found)} rows, that of births {len(births)}")


def check_words(browser, api):
    """A page that was last captured long ago links at its latest capture; the picture and its command mean one time."""
    page = browser.page
    shown = browser.open(v="backlinks", url="news.example")
    standing = shown["months"][-1]["standing"]
    expect(browser, f"{standing} pages link at the latest capture", "the head of backlinks")
    page.get_by_role("radio", name="lost", exact=True).click()
    page.wait_for_timeout(500)
    lost = browser.shown()
    answer = api.get("/v1/backlinks", url="news.example", event="lost", limit=1)
    if len(lost["rows"]) != answer["rows_selected"] or "event=lost" not in page.url:
        fail(f"{len(lost['rows'])} rows that lost their link, {answer['rows_selected']} in the API; {page.url}")
    browser.open(v="backlinks", url="news.example")
    page.get_by_role("button", name="source-1.example", exact=True).click()
    page.wait_for_timeout(700)
    shown = browser.ready("backlinks")
    answer = api.get("/v1/backlinks", url="news.example", source="source-1.example", source_match="host")
    pages = [row["page"] for row in answer["rows"]]
    if [row["url"] for row in shown["rows"]] != pages or len(pages) != 8 or "source=source-1" not in page.url:
        fail(f"a click on a host: {len(shown['rows'])} rows, {len(pages)} in the API; {page.url}")
    expect(browser, "pages of source-1.example link", "the head of backlinks of a host")
    browser.open(v="neighbourhood", url=FRONT, at="20080601")
    page.get_by_role("button", name="Data", exact=True).click()
    command = page.locator("dialog pre").first.inner_text()
    if "--at 2008-06-01T23:59:59" not in command:
        fail(f"the command of a neighbourhood on 1 June 2008: {command}")
    browser.open(v="backlinks", url="https://target-1.example/1", match="host")
    browser.open(v="backlinks", url=MANY)
    expect(browser, "Nothing links to it", "backlinks of a page without any")


def check_unknown(browser):
    """What is around a page at a date has the links that are unknown then, and no page that is around at others only;
    and unknown links do not make backlinks older."""
    browser.open(v="backlinks", url=GOAL, source="doubt.example")
    expect(browser, "of 1 it is unknown; since Jan 2006", "backlinks of a page that was unknown before")
    for at, unit, text in (("2007", "page", "2 at one step, 1 at two."),
                           ("2010", "page", "2 at one step, 1 at two, of 2 it is unknown."),
                           ("2012", "page", "2 at one step, 1 at two."),
                           ("2014", "page", "2 at one step, 2 at two, of 2 it is unknown."),
                           ("2006", "host", "2 at one step, 0 at two.")):
        browser.open(v="neighbourhood", url=GOAL, at=at, unit=unit)
        expect(browser, text, f"what is around a page in {at}, by {unit}")


def check_epochs(browser, webstrata, store, work):
    """A page that is open when the store gets another epoch says so, and never mixes the two."""
    page = browser.page
    before = browser.open(url=LATE)
    more = work / "more.jsonl"
    line = {"url": LATE, "ts": "20240101120000", "links": ["https://new.example/"]}
    more.write_text(json.dumps(line) + "\n")
    subprocess.run([webstrata, "update", "--no-merge", store, more], check=True, capture_output=True)
    for _ in range(60):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.wait_for_timeout(250)
        if page.locator(".notice").count():
            break
    if page.locator(".notice").inner_text() != "Epoch 2 is here. This picture shows epoch 1. Show it":
        fail(f"the notice of an epoch: {page.locator('.notice').all_inner_texts()}")
    page.get_by_role("button", name="Show it").click()
    page.wait_for_timeout(300)
    after = browser.ready("barcode")
    if len(after["captures"]) != len(before["captures"]) + 1 or page.locator(".notice").count():
        fail(f"{len(after['captures'])} captures after the epoch, {len(before['captures'])} before")


def check_truth(browser_of, webstrata, work):
    """All of it, with a store and a server of its own; `browser_of` opens a browser at its address."""
    work.mkdir()
    path, store = work / "crawl.jsonl", work / "store"
    path.write_text("".join(json.dumps(line) + "\n" for line in crawl()))
    subprocess.run([webstrata, "build", "--out", store, path], check=True, capture_output=True)
    with served(webstrata, store, work / "data", "--watch", "0.5") as base:
        browser, api = browser_of(base), Api(base)
        check_outage(browser)
        check_inward(browser)
        check_dates(browser)
        check_parts(browser, api)
        check_words(browser, api)
        check_unknown(browser)
        check_epochs(browser, webstrata, store, work)
        browser.clean("what little is known")
        browser.context.close()
    print("truth: outages, dead pages, in-links, dates that are not there, parts, an epoch that comes")

"""What a researcher does with the explorer, by mouse and keys alone, from the first page on.

Each task is written once, for Chromium and Firefox, with a `Hand`: it clicks, types and reads what a person can, and
counts. What is read is compared with the API, or with the command that the page shows. Places in a canvas are taken
from `webstrata.picture()` only where a person sees the mark.
"""
import csv
import io
import json
import math
import re
import shlex
import struct
import subprocess
import xml.etree.ElementTree as ET
from datetime import datetime, timezone

from explorer_browser import fail, seconds

SVG = "{http://www.w3.org/2000/svg}"
# The most clicks that a task takes, and the size of A4 in millimetres.
CLICKS = 6
A4 = (297, 210)


class Hand:
    """One who sees the page, and has a mouse and keys."""

    def __init__(self, browser):
        self.browser, self.page, self.clicks, self.keys = browser, browser.page, 0, 0

    def start(self):
        """From the first page on; the mouse rests where nothing is."""
        self.clicks = self.keys = 0
        self.page.mouse.move(2, 2)
        self.browser.open()

    def click(self, role, name, exact=True):
        self.page.get_by_role(role, name=name, exact=exact).first.click()
        self.clicks += 1
        self.page.wait_for_timeout(150)

    def click_at(self, selector, x, y):
        """A click on a picture, at so many pixels from its corner."""
        box = self.page.locator(selector).first.bounding_box()
        self.page.mouse.click(box["x"] + x, box["y"] + y)
        self.clicks += 1
        self.page.wait_for_timeout(150)

    def point(self, selector, x, y):
        box = self.page.locator(selector).first.bounding_box()
        self.page.mouse.move(box["x"] + x, box["y"] + y)
        self.page.wait_for_timeout(150)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.keys += len(keys)
        self.page.wait_for_timeout(150)

    def search(self, text, is_host=False):
        """Types into the field above, and takes the page that is suggested first, or the first host."""
        self.press("/")
        self.page.keyboard.type(text)
        self.keys += len(text)
        self.page.wait_for_timeout(700)
        if is_host:
            self.page.locator("#suggestions .host").first.click()
            self.clicks += 1
        else:
            self.press("ArrowDown", "Enter")

    def read(self, selector="main"):
        return " ".join(" ".join(self.page.locator(selector).all_inner_texts()).split())

    def table(self, table=".rows > table"):
        return self.page.evaluate(f"[...document.querySelectorAll('{table} tbody tr')]"
                                  ".map((row) => [...row.cells].map((cell) => cell.innerText))")

    def ask(self, number):
        """One of the questions of the first page."""
        self.page.locator(".asks a").nth(number).click()
        self.clicks += 1

    def lines(self, name):
        """The lines of a file that a button saves, as a spreadsheet reads them."""
        return list(csv.DictReader(io.StringIO(self.save(name).decode("utf-8"), newline="")))

    def save(self, name):
        """The bytes of a file that a button saves."""
        self.clicks += 1
        return self.browser.saved(lambda: self.page.get_by_role("button", name=name, exact=True).first.click())

    def turn_to(self, view, word):
        """Opens a view by its word; backlinks from everywhere, or there may be none. Without a word it is open."""
        if word:
            self.click("link", word)
        self.browser.ready(view)
        if view == "backlinks":
            self.click("radio", "everywhere")
            self.browser.ready(view)

    def command(self):
        """The first command of the data that the page shows, as words."""
        self.click("button", "Data")
        text = self.page.locator("dialog pre").first.inner_text().splitlines()[0]
        self.page.keyboard.press("Escape")
        self.page.wait_for_timeout(100)
        return shlex.split(text)


def day(text):
    return int(datetime.strptime(text, "%d %b %Y").replace(tzinfo=timezone.utc).timestamp()) // 86400


def expect(found, expected, what):
    if found != expected:
        fail(f"{what}: {str(found)[:300]}, expected {str(expected)[:300]}")


def run(webstrata, store, words):
    """A command that the page shows, for this store."""
    words = [webstrata, *(str(store) if word == "STORE" else word for word in words[1:])]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def first_link(hand, api, target):
    """The first link to a URL, and whether it still stands."""
    hand.search(target.split("://")[1])
    hand.browser.ready("barcode")
    hand.click("radio", "In-links")
    hand.browser.ready("barcode")
    hand.click("radio", "birth")
    hand.point("[role=application]", 60, 36 + 7)
    told = hand.read(".read p")
    found = re.match(r"(\S+) (\d+ \w+ \d{4}) – (\d+ \w+ \d{4}), .*?(gone by (\d+ \w+ \d{4})|still there)", told)
    if not found:
        fail(f"the first link to {target} is not told: {told!r}")
    rows = api.get("/v1/backlinks", url=target, match="exact", internal="true", limit=1000)["rows"]
    row = min(rows, key=lambda row: row["stays"][0]["first"])
    own = next(own for own in rows if own["page"] == found[1])
    expect(day(found[2]), seconds(row["stays"][0]["first"]) // 86400, f"the first link to {target}")
    expect(day(found[2]), seconds(own["stays"][0]["first"]) // 86400, f"the first link of {found[1]}")
    gone = own["stays"][-1].get("until")
    expect(found[5] and day(found[5]), gone and seconds(gone) // 86400, f"whether {found[1]} still links to {target}")


def two_years(hand, webstrata, store, elsewhere):
    """What changed on a page between two years."""
    hand.ask(1)
    marks = [mark for mark in hand.browser.ready("dates")["marks"] if mark["shows"] in ("links", "gone")]
    # A click moves the nearer flag: first a capture of the first half, then one of the second.
    for mark in (marks[len(marks) // 4], marks[-len(marks) // 4]):
        hand.click_at(".calendar .picture", mark["x"], mark["y"])
        said = day(hand.read(".pointed").split(",")[0])
        expect(said, mark["time"] // 86400, "the day that is pointed at")
    words = hand.command()
    answer = json.loads(run(webstrata, store, [*words, "--format", "json"]))
    lines = hand.lines("CSV")
    counts = {kind: int(number.replace(",", "")) for number, kind in
              re.findall(r"([\d,]+) (lost|kept|gained)", hand.read(".share"))}
    for kind in ("lost", "gained"):
        links = sorted(change["link"] for change in answer["changes"] if change["change"] == kind)
        expect(sorted(line["url"] for line in lines if line["change"] == kind), links, kind)
        expect(counts.get(kind, 0), len(links), f"the number of links {kind}")
    sent(hand, elsewhere)
    # By keys: a year back and forth with B, which was moved last.
    before = hand.browser.shown()["b"]
    hand.press("b", "PageUp")
    moved = before - hand.browser.shown()["b"]
    if not 0 < moved < 3 * 366 * 86400:
        fail(f"PageUp moves a date by {moved / 86400:.0f} days")


def who_links(hand, api, domain, elsewhere):
    """Who links to a domain, since when, and who stopped."""
    hand.search(domain, is_host=True)
    shown = hand.browser.ready("backlinks")
    asked = {"url": domain, "match": "domain"}
    answer = api.get("/v1/backlinks", limit=200, **asked)
    if f"{shown['months'][-1]['standing']:,} page" not in hand.read(".head"):
        fail(f"how many pages still link is not said: {hand.read('.head')}")
    hand.click("button", "Table")
    rows = [(row["page"], seconds(row["stays"][0]["first"]) // 86400) for row in answer["rows"]]
    expect([(row[0], day(row[1])) for row in hand.table()], rows, f"who links to {domain}")
    hand.click("radio", "lost")
    hand.page.wait_for_timeout(500)
    answer = api.get("/v1/backlinks", limit=200, event="lost", **asked)
    stopped = [(row["page"], last_gone(row)) for row in answer["rows"]]
    expect([(row[0], row[3] and day(row[3])) for row in hand.table()], stopped, "who stopped, and when")
    if not 0 < len(stopped) < len(rows):
        fail(f"of {len(rows)} pages {len(stopped)} stopped: the task would show nothing")
    sent(hand, elsewhere)


def last_gone(row):
    gone = row["stays"][-1].get("until")
    return seconds(gone) // 86400 if gone else ""


def died_in_a_year(hand, webstrata, store, elsewhere):
    """Pages that died in a year, and who still links to one of them."""
    hand.click("link", "Dead pages")
    shown = hand.browser.ready("deaths")
    died = shown["answer"]["died"]
    year = died.index(max(died))
    box = hand.page.locator(".deaths .drawn svg").first.bounding_box()
    step = (box["width"] - 44) / len(died)
    hand.click_at(".deaths .drawn svg", 44 + (year + 0.5) * step, 100)
    hand.page.wait_for_timeout(500)
    if not hand.read(".pointed").startswith(f"{shown['years'][year]}: {died[year]:,} died"):
        fail(f"how many pages died in {shown['years'][year]} is not said: {hand.read('.pointed')}")
    said = run(webstrata, store, [*hand.command(), "--format", "json"])
    lines = [json.loads(line) for line in said.splitlines()]
    sent(hand, elsewhere)
    rows = hand.table("table.dead")
    found = [(day(row[0]), int(row[1]), row[5]) for row in rows]
    expected = [(seconds(line["died"]) // 86400, line["status"], line["page"].split("://")[1]) for line in lines]
    expect(found, expected[:len(found)], f"pages that died in {shown['years'][year]}")
    expect(len(lines), died[year], f"how many died in {shown['years'][year]}")
    # Of the pages that somebody links to, or may, the first of which it is known who.
    linked = [line for line in lines if line["linking"] + line.get("unknown", 0)]
    at = next(at for at, line in enumerate(linked) if line["linkers"])
    hand.page.locator("table.dead tbody tr button").nth(at).click()
    hand.clicks += 1
    hand.page.wait_for_timeout(500)
    linkers = sorted(url.split("://")[1] for url in linked[at]["linkers"])
    told = hand.page.locator("table.dead tr.linkers li").all_inner_texts()
    expect(sorted(told), linkers, f"who still links to {linked[at]['page']}")


def around_at_two_dates(hand, webstrata, store, elsewhere):
    """What is around a page at two dates."""
    hand.ask(0)
    hand.browser.ready("barcode")
    hand.click("link", "Neighbourhood")
    layout = hand.browser.ready("neighbourhood")["layout"]
    for share in (0.3, 0.7):
        hand.click_at("[role=slider]", 6 + share * (layout["time"]["width"] - 12), 20)
        near, far = re.match(r"([\d,]+) at one step, ([\d,]+) at two", hand.read(".read p")).groups()
        words = hand.command()
        at = words[words.index("--at") + 1]
        expect((day(hand.read(".date")), at[10:]), (seconds(at + "Z") // 86400, "T23:59:59"), "the date")
        links = [json.loads(line) for line in run(webstrata, store, [*words, "--format", "json"]).splitlines()]
        edges, centre = [(link["source"], link["target"]) for link in links], words[3]
        ring1 = {node for edge in edges if centre in edge for node in edge} - {centre}
        ring2 = {node for edge in edges for node in edge} - ring1 - {centre}
        found = int(near.replace(",", "")), int(far.replace(",", ""))
        expect(found, (len(ring1), len(ring2)), f"nodes around {centre} at {at}")
    sent(hand, elsewhere)


def view_sent(hand, elsewhere):
    """Exactly this view: ordered, grouped, zoomed and scrolled."""
    hand.ask(0)
    hand.browser.ready("barcode")
    hand.click("radio", "birth")
    hand.click("radio", "host")
    hand.press("+")
    hand.point("[role=application]", 500, 200)
    hand.page.mouse.wheel(0, 120)
    hand.page.wait_for_timeout(200)
    if not hand.browser.shown()["scroll"]:
        fail("the wheel does not scroll the rows")
    sent(hand, elsewhere)


def sent(hand, elsewhere):
    """Opens the address in a browser that knows nothing: texts and pictures are the same."""
    hand.page.mouse.move(2, 2)
    hand.page.wait_for_timeout(700)
    view, address = hand.page.evaluate("[window.webstrata.view, location.href]")
    other = elsewhere()
    try:
        other.page.goto(address)
        other.ready(view)
        other.page.wait_for_timeout(400)
        for what, look in (("text", "document.querySelector('main').innerText"),
                           ("pictures", "[...document.querySelectorAll('main canvas')].map((own) => own.toDataURL())")):
            if other.page.evaluate(look) != hand.page.evaluate(look):
                fail(f"{address} has another {what} in another window")
        other.clean("a view that was sent")
    finally:
        other.context.close()


def spreadsheet(hand, api):
    """Rows of bars and of backlinks as files for a spreadsheet."""
    hand.ask(0)
    url = hand.browser.ready("barcode")["url"]
    lines = hand.lines("CSV")
    spans = {(line["url"], seconds(line["first"]), seconds(line["last"])) for line in lines}
    expect(spans, api.lifespans(url, "out"), f"the CSV of {url}")
    hand.click("link", "Backlinks")
    hand.browser.ready("backlinks")
    hand.click("radio", "everywhere")
    hand.browser.ready("backlinks")
    lines += (more := hand.lines("CSV"))
    answer = api.get("/v1/backlinks", url=url, match="exact", internal="true", limit=10000)
    stays = [(row["page"], stay["first"], stay["last"], stay.get("until") or "", stay["began"])
             for row in answer["rows"] for stay in row["stays"]]
    columns = ("page", "first", "last", "until", "began")
    found = [tuple(line[column] for column in columns) for line in more]
    expect(found, stays, f"the CSV of backlinks of {url}")
    if any(cell[:1] in set("=+-@") for line in lines for cell in line.values() if cell):
        fail("a spreadsheet would take a cell for a formula")


def paper(hand):
    """The picture of each view as SVG and PNG: what it is of, from where, when, and what its marks mean."""
    hand.ask(0)
    for view, word, parts in (
        ("barcode", None, ["shown from", "hatched: captured, not all links known", "thin line: gone"]),
        ("dates", "Two dates", ["A ", "B ", "hatched: unknown"]),
        ("backlinks", "Backlinks", ["since", "thin line: gone", "hatched: links not known"]),
        ("neighbourhood", "Neighbourhood", ["at one step", "hollow: never captured"]),
        ("deaths", "Dead pages", ["death", "Below the line, pages that a failure"]),
        ("store", "The store", ["captures from", "Pale: one that it kept"]),
    ):
        hand.turn_to(view, word)
        title, address = hand.read("h1"), hand.page.evaluate("location.href")
        svg = ET.fromstring(hand.save("SVG"))
        texts = " ".join("".join(text.itertext()) for text in svg.iter(f"{SVG}text"))
        for part in (title, *parts):
            if part not in texts:
                fail(f"the SVG of {view} does not say {part!r}: {texts[:300]!r}")
        if address not in texts.replace(" ", "") and address not in texts:
            fail(f"the SVG of {view} does not say {address}")
        size = sorted((float(svg.get(name).removesuffix("mm")) for name in ("width", "height")), reverse=True)
        if not all(svg.get(name).endswith("mm") for name in ("width", "height")) or size[0] > A4[0] or size[1] > A4[1]:
            fail(f"the SVG of {view} is {svg.get('width')} wide and {svg.get('height')} high, which does not fit on A4")
        png = hand.save("PNG")
        wide, high = struct.unpack(">II", png[16:24])
        expect(png[:8], b"\x89PNG\r\n\x1a\n", "the first bytes of a PNG")
        box = [float(number) for number in svg.get("viewBox").split()[2:]]
        expect((wide, high), tuple(math.ceil(2 * number) for number in box), f"pixels of the PNG of {view}")


def meanings(hand):
    """What hatched, pale, thin, struck through and hollow mean is said on the page, whatever is pointed at."""
    hand.ask(0)
    for view, word, parts in (
        ("barcode", None, ["thin line: gone by the end of the line", "hatched: captured, not all links known",
                           "pale: not captured for 150 days", "captured, not there",
                           "dark tick: a capture that failed"]),
        ("dates", "Two dates", ["hatched: unknown", "hollow: failed, says nothing", "struck through: lost"]),
        ("backlinks", "Backlinks", ["thin line: gone by the end of the line", "hatched: links not known",
                                    "pale accent: found with its page", "accent: new on a known page",
                                    "hatched accent: returned", "lost"]),
        ("neighbourhood", "Neighbourhood", ["hollow: never captured", "came in the last six months"]),
    ):
        hand.turn_to(view, word)
        hand.point("[role=application], .changes", 60, 50)
        said = hand.read(".legend")
        for part in parts:
            if part not in said:
                fail(f"the key of {view} does not say {part!r}: {said!r}")
        marks = hand.page.evaluate(
            "[...document.querySelectorAll('.legend i')].map((own) => [own.offsetWidth, own.offsetHeight])")
        if len(marks) < len(parts) or min(min(size) for size in marks) < 2:
            fail(f"marks of the key of {view} are not to be seen: {marks}")
        hand.page.mouse.move(2, 2)
    hand.click("link", "The store")
    hand.browser.ready("store")
    if "pale, those of the first capture of their page" not in hand.read():
        fail("the store does not say what is pale")


def check_questions(browser):
    """The three questions of the first page lead to views that show something."""
    hand = Hand(browser)
    hand.start()
    questions = hand.page.locator(".asks li").count()
    for number, (view, has) in enumerate((("barcode", "rows"), ("dates", "marks"), ("backlinks", "rows"))):
        hand.start()
        hand.ask(number)
        if not browser.ready(view).get(has):
            fail(f"the question {hand.page.url} of the first page shows nothing")
    expect(questions, 3, "questions of the first page")


def check_tasks(browser_of, api, webstrata, store, target, domain):
    """All tasks in one browser; `browser_of` opens another. Pages link to the target, a URL, and to the domain."""
    browser = browser_of()
    hand = Hand(browser)
    tasks = {
        "first link to a URL": lambda: first_link(hand, api, target),
        "two years of a page": lambda: two_years(hand, webstrata, store, browser_of),
        "who links to a domain, and stopped": lambda: who_links(hand, api, domain, browser_of),
        "pages that died in a year, and their linkers": lambda: died_in_a_year(hand, webstrata, store, browser_of),
        "around a page at two dates": lambda: around_at_two_dates(hand, webstrata, store, browser_of),
        "this view, sent": lambda: view_sent(hand, browser_of),
        "data for a spreadsheet": lambda: spreadsheet(hand, api),
        "pictures for a paper, six views": lambda: paper(hand),
        "what marks mean, five views": lambda: meanings(hand),
    }
    for name, task in tasks.items():
        hand.start()
        task()
        browser.clean(name)
        # A task of many views goes through each of them.
        most = CLICKS * (5 if "views" in name else 1)
        print(f"task: {name}: {hand.clicks} clicks, {hand.keys} keys")
        if hand.clicks > most:
            fail(f"{name} takes {hand.clicks} clicks")
    browser.context.close()

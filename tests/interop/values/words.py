"""How the explorer writes, once more and apart from it, and how what it wrote is read."""
import csv
import io
import json
import time

from brute.model import iso, moment
from explorer_browser import fail

DAY = 86400
YEAR = 365.2425 * DAY

said = lambda time: iso(time) if time else ""


def day(time):
    when = moment(time)
    return f"{when.day} {when:%b} {when.year}"


def month(time):
    return f"{moment(time):%b} {moment(time).year}"


def many(number, noun):
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def length(time):
    """How long something was there."""
    if time < 90:
        return "one capture"
    if time < 2 * DAY:
        return f"{max(1, int(time / 3600 + 0.5))} h"
    if time < 90 * DAY:
        return f"{int(time / DAY + 0.5)} days"
    if time < 2 * YEAR:
        return f"{int(time / (YEAR / 12) + 0.5)} months"
    return f"{time / YEAR:.1f} years"


def telling(status, shows):
    """What a capture without links shows."""
    return {"links": "", "gone": f"status {status}, no links", "unknown": "links not known",
            "nothing": f"status {status}, which says nothing of the links"}[shows]


def bare(url):
    """A URL as it is written: without http and https, and cut where it is very long."""
    name = url.removeprefix("http://").removeprefix("https://")
    return name if len(name) <= 2000 else f"{name[:1200]}…{name[-600:]}"


def host_name(url):
    """The host and the port of a URL, as rows are grouped by it."""
    return url.split("://")[1].split("/")[0].split("?")[0] if "://" in url else "no host"


def in_table(stays):
    """First, last, gone by, there for, and the first six runs of a row."""
    runs = [f"{day(first)} – {day(last)}" for first, last, *_ in stays[:6]]
    runs += [many(len(stays) - 6, "more run")] if len(stays) > 6 else []
    gone = stays[-1][2]
    life = sum(stay[1] - stay[0] + 1 for stay in stays)
    return day(stays[0][0]), day(stays[-1][1]), day(gone) if gone else "", length(life), "; ".join(runs)


def text_of(browser, selector):
    """The text of the first element, with single spaces."""
    return " ".join(browser.page.locator(selector).first.inner_text().split())


def table(browser):
    """The rows of the table that a button opens, with the URL cut; a second click closes it."""
    browser.page.get_by_role("button", name="Table", exact=True).click()
    cells = browser.page.locator(".rows > table tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    return [(url[:60], *rest) for url, *rest in cells]


# Keeps what the page gives to the browser to be saved. Chromium saves ten files a page at once, and no more.
KEEP = """{
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    window.saved = blob;
    return make.call(URL, blob);
  };
}"""


def file_of(browser, kind):
    """The text of the file that a button saves."""
    page = browser.page
    page.evaluate("window.saved = undefined")
    page.get_by_role("button", name=kind, exact=True).click()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        text = page.evaluate("window.saved ? window.saved.text() : null")
        if text is not None:
            return text
        page.wait_for_timeout(10)
    fail(f"{kind} of {page.url[:200]} saves nothing")


def saved(browser, kind):
    """The lines of the file that a button saves."""
    text = file_of(browser, kind)
    return json.loads(text) if kind == "JSON" else list(csv.DictReader(io.StringIO(text, newline="")))


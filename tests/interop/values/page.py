"""What is drawn of one page, both directions of its barcode and two dates of it, with what is written beside it."""
import bisect

from brute.model import moment, second
from values.drawn import check_bars
from values.words import day, host_name, in_table, many, said, saved, table, telling, text_of


def ended(captures):
    """How a page ended, for its head."""
    known = [capture for capture in captures if capture[2] != "nothing"]
    first = None
    while known and known[-1][2] == "gone":
        first = known.pop()
    return f"; gone since {day(first[0])} (status {first[1]})" if first else ""


def check_barcode(browser, tally, reference, url, direction):
    """Bars, captures, the head, the sentence below, the table and the file."""
    shown = browser.open(url=url, dir=direction)
    where = f"{url} {direction}"
    expected, captures = reference.stays(url, direction), reference.captures(url)
    view = f"barcode, {'links' if direction == 'out' else 'in-links'}"
    tally.same(view, where, [(row["url"], *run[:3]) for row in shown["rows"] for run in row["runs"]],
               [(link, *stay[:3]) for link, stays in expected.items() for stay in stays])
    if direction == "out":
        tally.same("captures of a barcode", where,
                   [(capture["time"], capture["status"], capture["shows"]) for capture in shown["captures"]], captures)
    hosts = len({host_name(link) for link in expected})
    span = f"{many(len(captures), 'capture')}, {day(captures[0][0])} – {day(captures[-1][0])}" if captures else ""
    lacks = sum(capture[2] == "unknown" for capture in captures) if direction == "out" else 0
    least = "at least " if lacks else ""
    links = f", with {least}{many(len(expected), 'link')} to {least}{many(hosts, 'host')}"
    if lacks and not expected:
        links = "; it is unknown whether it has links"
    if direction == "in":
        links = f", linked from {many(len(expected), 'page')} of {many(hosts, 'host')}"
    tally.rows("heads", where, [text_of(browser, ".head p")],
               [(span or "never captured") + links + ended(captures)])
    if expected:
        fails = sum(capture[2] in ("gone", "nothing") for capture in captures) if direction == "out" else 0
        sentence = f"{many(sum(map(len, expected.values())), 'bar')}."
        leave = "leaves" if lacks == 1 else "leave"
        sentence += f" Hatched: {many(lacks, 'capture')} that {leave} links unknown." if lacks else ""
        sentence += f" Dark ticks: {many(fails, 'capture')} that failed." if fails else ""
        tally.rows("sentences of a barcode", where, [text_of(browser, ".read p")], [sentence])
    lines = saved(browser, "CSV")
    tally.same(view + ", CSV", where,
               [tuple(line[name] for name in ("url", "first", "last", "until", "began")) for line in lines],
               [(link, *map(said, stay[:3]), stay[3]) for link, stays in expected.items() for stay in stays])
    check_bars(browser, tally, view + ", SVG", where,
               [[stay[:2] for stay in expected.get(row["url"], ())] for row in shown["rows"]])
    rows = table(browser)
    order = [row["url"] for row in shown["rows"]][:200]
    tally.rows(view + ", table", where, rows,
               [(link[:60], *in_table(expected[link])) for link in order if link in expected])
    if direction == "out":
        told = [(day(time), telling(status, shows)) for time, status, shows in captures if shows != "links"]
        cells = browser.page.locator(".rows details tbody tr").evaluate_all(
            "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
        tally.same("captures of a barcode, table", where, map(tuple, cells), told[:200])


def changes_of(reference, url):
    """How many links came or went at each capture since the one before that tells; none at the first one."""
    numbers, before = {}, None
    for time, _, shows in reference.captures(url):
        numbers[time] = 0
        if shows in ("links", "gone"):
            links = reference.links_at(url, time)
            numbers[time] = len(links ^ before) if before is not None else 0
            before = links
    return numbers


def check_dates(browser, tally, reference, url, pairs):
    """Two dates: lists, calendar, heads, sides, and the file."""
    captures = reference.captures(url)
    known = [time for time, _, shows in captures if shows in ("links", "gone")]
    for number, (a, b) in enumerate(pairs):
        shown = browser.open(v="dates", url=url, **({"a": a} if a else {}), **({"b": b} if b else {}))
        where = f"{url} {a} {b}"
        if len(known) < 2:
            tally.rows("two dates, none", where, ["a" in shown, text_of(browser, ".said h1")],
                       [False, "Nothing to compare"])
            continue
        as_of = lambda text: known[max(0, bisect.bisect_right(known, last_second(text)) - 1)]
        to = as_of(b) if b else known[-1]
        since = as_of(a) if a else known[max(0, bisect.bisect_left(known, to) - 1)] if b else known[0]
        tally.rows("two dates", where, [shown["a"], shown["b"]], [since, to])
        if (shown["a"], shown["b"]) != (since, to):
            continue
        before, after = reference.links_at(url, since), reference.links_at(url, to)
        right = {"lost": before - after, "kept": before & after, "gained": after - before}
        lists = [(kind, link) for kind, links in right.items() for link in links]
        tally.same("two dates", where, [(kind, link) for kind in right for link in shown[kind]], lists)
        tally.same("two dates, CSV", where, [(line["change"], line["url"]) for line in saved(browser, "CSV")], lists)
        facts = dict((time, telling(status, shows)) for time, status, shows in captures)
        side = lambda time, links: [day(time), f"{clock(time)} · {facts[time] or many(len(links), 'link')}"]
        tally.rows("heads", where, browser.page.locator(".pair h2, .pair h2 + span").all_inner_texts(),
                   side(since, before) + side(to, after))
        tally.rows("heads", where, browser.page.locator(".share div").all_inner_texts(),
                   [f"{len(links):,} {kind}" for kind, links in right.items() if links])
        if number:
            continue
        changed = changes_of(reference, url)
        tally.same("two dates, calendar", where,
                   [(own["time"], own["status"], own["shows"], own["changed"]) for own in shown["captures"]],
                   [(time, status, shows, changed[time]) for time, status, shows in captures])
        changing = sum(number > 0 for number in changed.values())
        tally.rows("heads", where, [text_of(browser, ".head p")],
                   [f"{many(len(captures), 'capture')}, of which {changing:,} changed the links{ended(captures)}"])


def last_second(text):
    """The last second of 8 to 14 digits."""
    return second(text + "235959"[len(text) - 8:])


def clock(time):
    return f"{moment(time):%H:%M}"


"""Backlinks: rows, periods, heads, hosts, and both files, for a target, a unit, an event and a stretch of time."""
import calendar

from brute.model import FOREVER, domain, host, moment, second
from values.drawn import check_bars
from values.words import day, in_table, many, month, said, saved, table, text_of

KINDS = ("found", "new", "returned", "lost")


def states(row, at):
    """yes, no or unknown at a time."""
    _, _, stays, unknown, _ = row
    if any(first <= at <= (last or FOREVER) for first, last in unknown):
        return "unknown"
    return "yes" if any(first <= at and (not gone or at < gone) for first, _, gone, _ in stays) else "no"


def periods(rows, size):
    """{start: numbers} of periods of so many months, from the first in which something happens to the last one."""
    happens = [time for _, _, stays, unknown, _ in rows for stay in stays for time in (stay[0], stay[2]) if time]
    happens += [time for row in rows for first, last in row[3] for time in (first, last and last + 1) if time]
    if not happens:
        return {}
    start = lambda year, month: second(f"{year:04}{month:02}01000000")
    begin = moment(min(happens))
    # The chart begins with a month, and a longer period has the months that the chart has.
    year, at = begin.year, (begin.month - 1) // size * size + 1
    found = {}
    while start(year, at) <= max(happens):
        after = (year + (at + size > 12), at + size - 12 if at + size > 12 else at + size)
        first, last = start(year, at), start(*after)
        numbers = dict.fromkeys(KINDS, 0)
        for stay in (stay for row in rows for stay in row[2]):
            if first <= stay[0] < last:
                numbers[stay[3]] += 1
            if stay[2] and first <= stay[2] < last:
                numbers["lost"] += 1
        # The last period ends with the last month in which something happens.
        until = last if last <= max(happens) else end_of_month(max(happens))
        now = [states(row, until - 1) for row in rows]
        found[first] = (now.count("yes"), now.count("unknown"), *numbers.values())
        year, at = after
    return found


def end_of_month(time):
    when = moment(time)
    return second(f"{when:%Y%m}{calendar.monthrange(when.year, when.month)[1]:02}235959") + 1


def end_of(row):
    """What is so of a row in the end."""
    if states(row, FOREVER) == "unknown":
        return "unknown"
    gone = row[2][-1][2]
    return day(gone) if gone else "stands"


def numbers_of(marks):
    return {mark[0]: tuple(mark[1:]) for mark in marks}


def check_backlinks(browser, tally, reference, question):
    """One picture of backlinks. `question`: url, match, unit, internal, source, event, order, and span: None, or the
    first and the last second."""
    state = {"v": "backlinks", "url": question["url"], "match": question["match"], "unit": question["unit"],
             "order": question["order"]}
    state |= {"internal": "1"} if question["internal"] else {}
    state |= {name: question[name] for name in ("source", "event") if question[name] not in (None, "any")}
    if question["span"]:
        state |= dict(zip(("from", "to"), map(digits_of, question["span"])))
    shown = browser.open(**state)
    where = " ".join(f"{name}={value}" for name, value in state.items() if name != "v")
    every = reference.rows({**question, "event": "any", "span": None})
    chosen = reference.rows(question)
    tally.same("backlinks, rows", where,
               [(row["url"], row["pages"], row["targets"],
                 tuple((run["first"], run["last"], run["gone"], run["began"]) for run in row["runs"]),
                 tuple((first, last or 0) for first, last in row["unknown"]), row["end"]) for row in shown["rows"]],
               [(name, pages, targets, stays, unknown, end_of(every[name]))
                for name, (pages, targets, stays, unknown, _) in chosen.items()])
    if not every:
        tally.rows("backlinks, empty", where, [text_of(browser, ".said h1")],
                   ["Nothing links to it" + ("" if "internal" in state or "source" in state else " from elsewhere")])
        return
    tally.rows("backlinks, numbers", where, [shown["selected"], shown["total"]], [len(chosen), len(every)])
    names = ("standing", "unknown", *KINDS)
    tally.pairs("backlinks, months", where,
                numbers_of([month["time"], *(month[name] for name in names)] for month in shown["months"]),
                periods(every.values(), 1))
    size = shown["marks"][0]["size"]
    tally.pairs("backlinks, periods", where,
                numbers_of([mark["start"], *(mark[name] for name in names)] for mark in shown["marks"]),
                periods(every.values(), size))
    order_is_kept(tally, where, question["order"], [(row["url"], chosen.get(row["url"])) for row in shown["rows"]])
    check_words(browser, tally, where, question, every)
    check_hosts(browser, tally, where, reference.rows({**question, "event": "any", "span": None, "unit": "page"}))
    expected = [(name, str(pages), str(targets), stay[3], said(stay[0]), said(stay[1]), said(stay[2]),
                 "lost" if stay[2] else end_of(every[name]))
                for name, (pages, targets, stays, _, _) in chosen.items() for stay in stays]
    columns = ("referrer", "pages", "targets", "began", "first", "last", "until", "end")
    for kind in ("CSV", "JSON"):
        tally.same(f"backlinks, {kind}", where,
                   [tuple(str(line[name]) for name in columns) for line in saved(browser, kind)], expected)
    check_bars(browser, tally, "backlinks, SVG", where,
               [[stay[:2] for stay in chosen[row["url"]][2]] for row in shown["rows"] if row["url"] in chosen])
    cells = [tuple(row) for row in table(browser)]
    unknown = lambda row: [f"not known {day(first)} – {day(last) if last else 'now'}" for first, last in row[3]]
    wanted = []
    for name in [row["url"] for row in shown["rows"]][:200]:
        if name in chosen:
            *facts, runs = in_table(chosen[name][2])
            wanted.append((name[:60], *facts, "; ".join([runs, *unknown(chosen[name])])))
    tally.rows("backlinks, table", where, cells, wanted)


def digits_of(time):
    return f"{moment(time):%Y%m%d%H%M%S}"


def order_is_kept(tally, where, order, rows):
    key = {
        "first": lambda name, row: row[2][0][0],
        "last": lambda name, row: -row[2][-1][1],
        "most": lambda name, row: -(row[0] if row[0] > 1 or "://" not in name else row[1]),
    }.get(order)
    keys = [key(name, row) for name, row in rows if row] if key else []
    tally.rows("backlinks, order", where, [keys == sorted(keys)], [True])


def check_words(browser, tally, where, question, every):
    """The head: how many link, how many did, and since when."""
    now = [states(row, FOREVER) for row in every.values()]
    standing, unknown = now.count("yes"), now.count("unknown")
    whose = f" of {question['source']}" if question["source"] else ""
    since = min(row[2][0][0] for row in every.values())
    links = "links" if standing == 1 else "link"
    tally.rows("heads", where, [text_of(browser, ".head p")], [
        f"{many(standing, question['unit'])}{whose} {links} at the "
        f"latest capture, {now.count('no'):,} did before{f', of {unknown:,} it is unknown' if unknown else ''}; since "
        f"{month(since)}"])


def check_hosts(browser, tally, where, pages):
    """The hosts with the most pages that link."""
    hosts = {}
    for page, row in pages.items():
        one = hosts.setdefault(host(page), [0, 0, FOREVER])
        hosts[host(page)] = [one[0] + 1, one[1] + (states(row, FOREVER) == "yes"), min(one[2], row[2][0][0])]
    rows = browser.page.locator(".hosts tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    expected = {name: (f"{count:,}", f"{standing:,}", month(first)) for name, (count, standing, first) in hosts.items()}
    if len(expected) > len(rows):
        expected = {name: expected[name] for name, *_ in rows if name in expected}
    tally.pairs("backlinks, hosts", where, {name: tuple(rest) for name, *rest in rows}, expected)


def check_beside(browser, tally, reference, one, other):
    """Two targets beside each other: who links to which, when, both files, and the months of both."""
    state = {"v": "backlinks", "url": one["url"], "match": one["match"], "unit": one["unit"], "order": one["order"],
             "and": f"{other['match']}!{other['url']}"}
    state |= {"internal": "1"} if one["internal"] else {}
    shown = browser.open(**state)
    where = " ".join(f"{name}={value}" for name, value in state.items() if name != "v")
    common = {"unit": one["unit"], "internal": one["internal"], "source": None, "event": "any", "span": None}
    asked = [{**question, **common} for question in (one, other)]
    parts = [reference.rows(question) for question in asked]
    if not parts[0]:
        return
    who = {name: "both" if name in parts[0] and name in parts[1] else "a" if name in parts[0] else "b"
           for name in {**parts[0], **parts[1]}}
    stays = lambda runs: tuple((run["first"], run["last"], run["gone"], run["began"]) for run in runs)
    halves = lambda row: row["parts"] or {"A": row["runs"]}
    tally.same("two targets, rows", where,
               [(row["url"], row["who"] or "a", side, stays(runs)) for row in shown["rows"]
                for side, runs in halves(row).items()],
               [(name, who[name], side, rows[name][2]) for side, rows in zip("AB", parts) for name in rows])
    columns = ("who", "referrer", "pages", "targets", "began", "first", "last", "until", "end")
    expected = [(who[name], name, str(pages), str(targets), stay[3], *map(said, stay[:3]),
                 "lost" if stay[2] else end_of(rows[name]))
                for rows in parts for name, (pages, targets, own, _, _) in rows.items() for stay in own]
    for kind in ("CSV", "JSON"):
        tally.same(f"two targets, {kind}", where,
                   [tuple(str(line[name]) for name in columns) for line in saved(browser, kind)], expected)
    names = ("standing", "unknown", *KINDS)
    series = [(question["url"], question["match"], f"{moment(start):%Y-%m}", *map(str, numbers))
              for question, rows in zip(asked, parts) for start, numbers in periods(rows.values(), 1).items()]
    tally.same("two targets, months as CSV", where,
               [(line["target"], line["match"], line["month"], *(line[name] for name in names))
                for line in saved(browser, "Series")], series)


def questions(chance, reference, url, times):
    """Some questions about a URL, its host and its domain."""
    pages = reference.pages()
    for match, target in (("exact", url), ("host", host(url)), ("domain", domain(host(url)))):
        span = sorted(chance.sample(times, 2)) if len(times) > 1 and chance.random() < 0.4 else None
        yield {
            "url": target, "match": match, "unit": chance.choice(["page", "page", "host", "domain"]),
            "internal": chance.random() < 0.6,
            "source": host(chance.choice(pages)) if chance.random() < 0.15 else None,
            "event": chance.choice(["any", "any", "standing", "new", "returned", "lost"]), "span": span,
            "order": chance.choice(["first", "last", "most", "key"]),
        }



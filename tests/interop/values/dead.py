"""Dead pages: years, heads, rows with who links, and both files, of the store, of a host and of a domain."""
from brute.model import domain, host, moment
from explorer_browser import seconds
from values.words import bare, day, many, said, saved, text_of


def periods(deaths):
    """(year, died, returned, gone at its end) of each year, from the first in which something happens."""
    times = [time for death in deaths for time in (death[1], death[4]) if time]
    found = []
    for year in range(moment(min(times)).year, moment(max(times)).year + 1) if times else ():
        of = lambda at: sum(moment(death[at]).year == year for death in deaths if death[at])
        until = lambda at: sum(moment(death[at]).year <= year for death in deaths if death[at])
        found.append((year, of(1), of(4), until(1) - until(4)))
    return found


def check_deaths(browser, tally, reference, url, chance):
    """Dead pages of one of these; a death is (page, died, status, seen, returned, linking, unknown, linkers)."""
    match = chance.choice(["store", "host", "domain"])
    name = {"store": None, "host": host(url), "domain": domain(host(url))}[match]
    every = reference.deaths(match, name)
    years = sorted({moment(death[1]).year for death in every})
    state = {"v": "deaths", "match": match, "order": chance.choice(["last", "first", "most", "key"])}
    state |= {"url": name} if name else {}
    state |= {"still": "1"} if chance.random() < 0.3 else {}
    state |= {"status": str(chance.choice(every)[2])} if every and chance.random() < 0.2 else {}
    if years and chance.random() < 0.3:
        state["from"] = state["to"] = f"{chance.choice(years):04}"
    chosen = [death for death in every
              if ("still" not in state or not death[4]) and ("status" not in state or str(death[2]) == state["status"])
              and ("from" not in state or moment(death[1]).year == int(state["from"]))]
    shown = browser.open(**state)
    where = " ".join(f"{name}={value}" for name, value in state.items() if name != "v")
    answer, expected = shown["answer"], periods(every)
    tally.same("dead pages, years", where,
               zip(shown["years"], answer["died"], answer["returned"], answer["gone"], strict=True), expected)
    gone = expected[-1][3] if expected else 0
    died, returned = sum(row[1] for row in expected), sum(row[2] for row in expected)
    still = "page is gone at its latest capture" if gone == 1 else "pages are gone at their latest captures"
    tally.rows("heads", where, [text_of(browser, ".head p")],
               [f"{many(died, 'death')}, {many(returned, 'return')}, {gone:,} {still}"])
    if not every:
        return
    cells = browser.page.locator("table.dead tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    path = lambda page: bare(page).removeprefix(name) if match == "host" and bare(page).startswith(f"{name}/") else (
        bare(page))
    tally.same("dead pages, rows", where, map(tuple, cells), [
        (day(died), str(status), day(seen), day(returned) if returned else "", linked(linking, unknown), path(page))
        for page, died, status, seen, returned, linking, unknown, _ in chosen])
    times = {"last": lambda row: -row[1], "first": lambda row: row[1], "most": lambda row: -row[2]}.get(state["order"])
    order = [(row["page"], seconds(row["died"]), row["linking"]) for row in shown["rows"]]
    tally.rows("dead pages, order", where, order, sorted(order, key=times) if times else order)
    columns = ("page", "died", "status", "seen", "returned", "linking", "unknown")
    values = lambda line: tuple(str(line[name] if line[name] is not None else "") for name in columns)
    facts = lambda row: (row[0], said(row[1]), str(row[2]), said(row[3]), said(row[4]), str(row[5]), str(row[6]))
    tally.same("dead pages, CSV", where, [(*values(line), line["linker"]) for line in saved(browser, "CSV")],
               [(*facts(row), linker) for row in chosen for linker in (row[7] or [""])])
    tally.same("dead pages, JSON", where,
               [(*values(line), *sorted(line["linkers"])) for line in saved(browser, "JSON")],
               [(*facts(row), *sorted(row[7])) for row in chosen])


def linked(linking, unknown):
    """Who links to a page, in words."""
    if not linking + unknown:
        return "none"
    words = [many(linking, "page")] if linking else []
    return ", ".join([*words, f"{unknown:,} unknown"] if unknown else words)


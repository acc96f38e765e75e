"""The neighbourhood of a page at dates: rings, lines of the file, and how many there are."""
import math

from brute.model import digits
from explorer_browser import seconds
from values.reference import own
from values.words import day, length, saved, table, text_of


def rings_of(lines, centre):
    """The ring of each node, by these links."""
    near = {end for source, target, *_ in lines for end in (source, target) if centre in (source, target)} - {centre}
    rings = {node: 1 for node in near}
    for source, target, *_ in lines:
        if source in near and target != centre:
            rings.setdefault(target, 2)
    return rings


def check_neighbourhood(browser, tally, reference, url, unit, at):
    """Nodes by ring, links in the file, and the numbers that are written, at one date."""
    state = {"v": "neighbourhood", "url": url, "unit": unit, **({"at": digits(at)} if at else {})}
    shown = browser.open(**state)
    where = f"{url} {unit} {digits(at) if at else 'now'}"
    view = "neighbourhood, directories" if unit == "directory" else f"neighbourhood, {unit}s"
    centre = own(url, unit)
    lines = reference.around(url, unit, shown["now"])
    rings = rings_of(lines, centre)
    tally.pairs(view, where, {node["name"]: node["ring"] for node in shown["nodes"]}, rings)
    tally.same(view + ", CSV", where,
               [tuple(line[name] for name in ("source", "target", "from", "until", "unknown"))
                for line in saved(browser, "CSV")],
               [(source, target, since, until, unknown) for source, target, since, until, _, unknown in lines])
    sure = rings_of([line for line in lines if line[4] == "yes"], centre)
    unsure = sum(sure.get(node) != ring for node, ring in rings.items())
    ever, end = {}, shown["layout"]["end"]
    for source, target, since, until, *_ in reference.around(url, unit, None):
        node = source if target == centre else target
        until = seconds(until) if until else math.inf
        first, last = ever.get(node, (math.inf, 0))
        ever[node] = (min(first, seconds(since)), max(last, until))
    wanted = []
    for node in (node["name"] for node in shown["nodes"][:200]):
        first, last = ever[node]
        until = min(last, end)
        wanted.append((node[:60], day(first), day(until), day(last) if last < math.inf else "", length(until - first),
                       f"{day(first)} – {day(until)}"))
    tally.rows(view + ", table", where, table(browser), wanted)
    numbers = [sum(ring == step for ring in rings.values()) for step in (1, 2)]
    tally.rows("heads", where, [text_of(browser, ".read p").split(".")[0]],
               [f"{numbers[0]:,} at one step, {numbers[1]:,} at two"
                + (f", of {unsure:,} it is unknown" if unsure else "")])
    domains = browser.page.locator(".domains tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    count = lambda text: 0 if text == "·" else int(text.replace(",", ""))
    tally.rows("neighbourhood, domains", where, [sum(count(row[step]) for row in domains) for step in (1, 2)], numbers)

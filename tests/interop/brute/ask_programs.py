"""Questions of programs: tables of the Python package, and the views of `webstrata sql` in DuckDB."""

import datetime
import importlib.util

from brute import ask_links, ask_pages, ask_tables
from brute.model import FOREVER, iso
from brute.question import NOT_IN_STORE, Kind, a_window, in_order, seconds

IS_INSTALLED = importlib.util.find_spec("webstrata") is not None


def keywords(window):
    """A window as the Python package takes it."""
    names = {"age": "max_age", "from": "start", "to": "end"}
    return {names.get(name, name): text for name, (text, _) in window.items()}


def asked(ask):
    """The answer of the Python package, or that the store has no such URL."""

    def answer(world, question):
        import pyarrow
        import webstrata

        try:
            return ask(world, question, lambda table: pyarrow.table(table).to_pylist())
        except webstrata.NotInStore:
            return NOT_IN_STORE

    return answer


def links(world, question, rows):
    url = question["url"]
    found = rows(world.graph.links(url, direction=question["direction"], **keywords(question["window"])))
    assert all(row["url"] == url and row["uid"] == world.uids[url] for row in found), found
    named = [(row["link"], row["is_unknown"]) for row in found if row["link_uid"] is not None]
    assert all(world.urls[row["link_uid"]] == row["link"] for row in found if row["link_uid"] is not None), found
    known, unknown = ([link for link, is_unknown in named if is_unknown == side] for side in (False, True))
    is_open = any(row["link_uid"] is None for row in found)
    assert question["direction"] == "out" or not is_open, found
    sides = [[url] * is_open, unknown] if question["direction"] == "out" else [unknown, []]
    known = in_order(world, known)
    return {"links": known, "unknown": sorted(sides[0]), "last known": sorted(sides[1])}


def captures(world, question, rows):
    found = rows(world.graph.captures(question["url"]))
    return [(iso(int(row["timestamp"].timestamp())), row["status"], row["is_known"]) for row in found]


def lifespans(world, question, rows):
    found = rows(world.graph.lifespans(question["url"]))
    return sorted((row["link"], *(iso(int(row[end].timestamp())) for end in ("first", "last"))) for row in found)


# Views. In a window of time, a page says of a link that it has it, or that this is unknown, as in `links`.


def make_seen(rng, world):
    question = ask_links.make(rng, world)
    return question and {**question, "window": a_window(rng, world, ("all", "seen"))}


def moment(second):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc)


def view_links(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    window, uid = seconds(question["window"]), world.uids[question["url"]]
    bounds = [moment(window.get(end, default)) for end, default in (("from", -FOREVER // 8), ("to", FOREVER))]
    asked, other = ("src", "dst") if question["direction"] == "out" else ("dst", "src")
    ask = lambda query, *values: [row[0] for row in world.views.execute(query, values).fetchall()]
    seen = f"SELECT DISTINCT {other} FROM link_captures WHERE {asked} = ? AND timestamp BETWEEN ? AND ?"
    found = ask(seen, uid, *bounds)
    unknown = "uid IN (SELECT uid FROM captures WHERE (NOT known OR cut IS NOT NULL) AND timestamp BETWEEN ? AND ?)"
    pages = "SELECT ?" if question["direction"] == "out" else "SELECT src FROM links WHERE dst = ?"
    is_open = ask(f"SELECT uid FROM ({pages}) AS pages (uid) WHERE {unknown}", uid, *bounds)
    if question["direction"] == "in":
        is_open = set(is_open) - set(found)
    named = [sorted(world.urls[uid] for uid in uids) for uids in (found, is_open)]
    return {"links": named[0], "unknown": named[1], "last known": []}


def view_captures(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    query = "SELECT timestamp, status, known, cut FROM captures WHERE uid = ? ORDER BY timestamp"
    found = world.views.execute(query, [world.uids[question["url"]]]).fetchall()
    return [(iso(int(time.timestamp())), status, known, cut) for time, status, known, cut in found]


def expect_captures(world, question, face):
    expected = ask_pages.expect(world, question, face)
    if expected == NOT_IN_STORE:
        return expected
    return [(*row, own.cut) for row, own in zip(expected, world.model.captures(question["url"]))]


def view_lifespans(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    query = "SELECT dst, first_seen, last_seen FROM link_intervals WHERE src = ?"
    found = world.views.execute(query, [world.uids[question["url"]]]).fetchall()
    return sorted((world.urls[dst], *(iso(int(end.timestamp())) for end in ends)) for dst, *ends in found)


def view_edges(world, question):
    names = "s.url, d.url, first_seen, last_seen, l.captures, captures_with_link"
    query = f"SELECT {names} FROM links l JOIN urls s ON s.uid = src JOIN urls d ON d.uid = dst"
    found = world.views.execute(query).fetchall()
    times = lambda row: [iso(int(end.timestamp())) for end in row[2:4]]
    return sorted((*row[:2], *times(row), *map(str, row[4:])) for row in found)


KINDS = {
    "SQL links": Kind(3, make_seen, ask_links.expect, {"sql": view_links}),
    "SQL captures": Kind(1, ask_pages.make, expect_captures, {"sql": view_captures}),
    "SQL lifespans": Kind(1, ask_pages.make_lifespans, ask_pages.expect_lifespans, {"sql": view_lifespans}),
    "SQL edges": Kind(0.4, ask_tables.windowed("all"), ask_tables.expect_edges, {"sql": view_edges}),
}
if IS_INSTALLED:
    KINDS |= {
        "Python links": Kind(4, ask_links.make, ask_links.expect, {"python": asked(links)}),
        "Python captures": Kind(1, ask_pages.make, ask_pages.expect, {"python": asked(captures)}),
        "Python lifespans": Kind(1, ask_pages.make_lifespans, ask_pages.expect_lifespans, {"python": asked(lifespans)}),
    }

"""Whole tables of a store: exports, the graph of hosts, analyses, totals, and what changed between dates and epochs."""

import csv
import io
import json
import os

from brute.ask_backlinks import next_start, start_of
from brute.ask_pages import stamp
from brute.model import FOREVER, domain, host, iso, moment, urlkey
from brute.question import Kind, a_window, options, seconds


def chosen(model, page, window):
    """The captures of a page that a window or a time chooses."""
    captures = model.captures(page)
    if "at" in window:
        latest = model.deciding(captures, window["at"], window.get("failures", "end"), window.get("age"))
        return [latest] if latest else []
    return [c for c in captures if window.get("from", -FOREVER) <= c.ts <= window.get("to", FOREVER)]


def table(world, *arguments):
    code, out, err = world.command(False, *arguments)
    assert code == 0, err
    return list(csv.DictReader(io.StringIO(out)))


def windowed(*kinds):
    return lambda rng, world: {"window": a_window(rng, world, kinds)} if world.model.pages else None


# export


def expect_edges(world, question, face):
    window, found = seconds(question["window"]), []
    for page in world.model.pages:
        captures = chosen(world.model, page, window)
        telling = [c for c in captures if c.links is not None and c.tells(window.get("failures", "end")) is not None]
        for link in {u for c in telling for u in c.links}:
            times = [c.ts for c in telling if link in c.links]
            count = sum(c.has([link]) is not None for c in telling)
            found.append((page, link, iso(min(times)), iso(max(times)), str(count), str(len(times))))
    return sorted(found)


def edges(world, question):
    rows = table(world, "export", "--urls", "--format", "csv", "--out", "-", *options(question["window"]))
    got = [
        tuple(row[n] for n in ("src", "dst", "first_seen", "last_seen", "captures", "captures_with_link"))
        for row in rows
    ]
    order = [(world.uids[row[0]], world.uids[row[1]]) for row in got]
    assert order == sorted(order), "edges are not in the order of page and link"
    return sorted(got)


def expect_aut(world, question, face):
    window = seconds(question["window"])
    return sorted(
        (c.url, u, iso(c.ts))
        for page in world.model.pages
        for c in chosen(world.model, page, window)
        for u in c.links or ()
    )


def aut(world, question):
    rows = table(world, "export", "--names", "aut", "--format", "csv", "--out", "-", *options(question["window"]))
    return sorted((row["src"], row["dest"], iso(stamp(row["crawl_date"]))) for row in rows)


def expect_events(world, question, face):
    window, found = seconds(question["window"]), []
    first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
    for page in world.model.pages:
        for link in {u for c in world.model.captures(page) for u in c.links or ()}:
            for stay in world.model.stays(page, {link}):
                for ts, present in ((stay["first"], "true"), (stay["gone"], "false")):
                    if ts is not None and first <= ts <= last:
                        found.append((page, link, iso(ts), present))
    return sorted(found)


def events(world, question):
    rows = table(
        world, "export", "--what", "events", "--urls", "--format", "csv", "--out", "-", *options(question["window"])
    )
    return sorted((row["src"], row["dst"], row["timestamp"], row["present"]) for row in rows)


def nodes_of(model, window):
    """URLs with a page, and URLs that a page links to. A page that failed is no page."""
    if not window:
        return model.urls()
    found = set()
    for page in model.pages:
        captures = chosen(model, page, window)
        if any(c.status < 400 for c in captures):
            found |= {page} | {u for c in captures for u in c.links or ()}
    return found


def expect_nodes(world, question, face):
    window, found = seconds(question["window"]), []
    for url in nodes_of(world.model, window):
        times = [c.ts for c in chosen(world.model, url, window)]
        found.append(
            (
                str(world.uids[url]),
                url,
                urlkey(url),
                host(url),
                domain(host(url)),
                iso(min(times)) if times else "",
                iso(max(times)) if times else "",
                str(len(times)),
            )
        )
    return sorted(found)


def nodes(world, question):
    rows = table(world, "export", "--what", "nodes", "--format", "csv", "--out", "-", *options(question["window"]))
    names = ("id", "url", "surt", "host", "domain", "first_capture", "last_capture", "captures")
    assert [int(row["id"]) for row in rows] == sorted(
        int(row["id"]) for row in rows
    ), "nodes are not in the order of UIDs"
    return sorted(tuple(row[name] for name in names) for row in rows)


def expect_layers(world, question, face):
    model, found = world.model, []
    for page in sorted(model.pages, key=world.uids.get):
        captures = model.captures(page)
        spans = []
        for link in model.urls():
            for first, last in model.lifespans(page, link):
                has = sum(link in (c.links or ()) for c in captures if first <= c.ts <= last)
                spans.append((world.uids[link], iso(first), iso(last), has))
        found.append(
            (world.uids[page], page, [(iso(c.ts), c.links is not None, c.status) for c in captures], sorted(spans))
        )
    return found


def layers(world, question):
    import pyarrow.parquet

    path = os.path.join(world.folder, "layers.parquet")
    code, _, err = world.command(False, "export", "--what", "layers", "--out", path)
    assert code == 0, err
    found = []
    for row in pyarrow.parquet.read_table(path).to_pylist():
        captures = [
            (f"{at:%Y-%m-%dT%H:%M:%SZ}", *rest)
            for at, *rest in zip(row["timestamps"], row["known"], row["statuses"], strict=True)
        ]
        spans = [
            (s["link"], f"{s['first']:%Y-%m-%dT%H:%M:%SZ}", f"{s['last']:%Y-%m-%dT%H:%M:%SZ}", s["captures"])
            for s in row["lifespans"]
        ]
        found.append((row["uid"], row["url"], captures, sorted(spans)))
    return found


def make_hosts(rng, world):
    question = windowed("all", "seen", "at")(rng, world)
    return question and {
        **question,
        "fold": rng.choice(["host", "domain"]),
        "every": rng.choice(["year", "month", "day"]),
    }


def folded(question, url):
    return host(url) if question["fold"] == "host" else domain(host(url))


def expect_hosts(world, question, face):
    window, pairs = seconds(question["window"]), {}
    for page in world.model.pages:
        for capture in chosen(world.model, page, window):
            for link in capture.links or ():
                one = pairs.setdefault((folded(question, page), folded(question, link)), [])
                one.append((page, link, capture.ts))
    return sorted(
        (
            a,
            b,
            str(len({p for p, *_ in one})),
            str(len({o[:2] for o in one})),
            str(len(one)),
            iso(min(o[2] for o in one)),
            iso(max(o[2] for o in one)),
        )
        for (a, b), one in pairs.items()
    )


def hosts(world, question):
    rows = table(
        world,
        "export",
        "--what",
        "hosts",
        "--unit",
        question["fold"],
        "--format",
        "csv",
        "--out",
        "-",
        *options(question["window"]),
    )
    got = [
        tuple(row[n] for n in ("src", "dst", "pages", "links", "occurrences", "first_seen", "last_seen"))
        for row in rows
    ]
    assert got == sorted(got), "hosts are not ordered by name"
    return got


def expect_fold(world, question, face):
    window, pairs = seconds(question["window"]), {}
    for page in world.model.pages:
        for capture in chosen(world.model, page, window):
            for link in capture.links or ():
                at = iso(start_of(capture.ts, question["every"]))
                pairs.setdefault((at, folded(question, page), folded(question, link)), []).append(
                    (page, link, capture.ts)
                )
    return sorted(
        (
            *key,
            str(len({p for p, *_ in one})),
            str(len({o[:2] for o in one})),
            str(len({(o[0], o[2]) for o in one})),
            str(len(one)),
        )
        for key, one in pairs.items()
    )


def make_fold(rng, world):
    question = make_hosts(rng, world)
    return question and {**question, "window": a_window(rng, world, ("all", "seen"))}


def fold(world, question):
    rows = table(
        world,
        "fold",
        "--unit",
        question["fold"],
        "--period",
        question["every"],
        "--out",
        "-",
        *options(question["window"]),
    )
    names = ("period", "src", "dst", "pages", "links", "captures", "occurrences")
    return sorted(tuple(row[name] for name in names) for row in rows)


# analyze


def graph(model, window):
    """The links of a window or a time, and its nodes."""
    if "from" not in window and "to" not in window:
        window = {"at": FOREVER, **window}
    links = {(page, u) for page in model.pages for c in chosen(model, page, window) for u in c.links or ()}
    return links, nodes_of(model, window)


def expect_degrees(world, question, face):
    links, found = graph(world.model, seconds(question["window"]))
    return sorted((u, str(sum(t == u for _, t in links)), str(sum(s == u for s, _ in links))) for u in found)


def degrees(world, question):
    rows = table(world, "analyze", "degrees", "--out", "-", *options(question["window"]))
    return sorted((row["url"], row["in_degree"], row["out_degree"]) for row in rows)


def rot_of(model, window):
    """For each page with a capture that counts: whether it is gone, missing, back, and its links."""
    at, failures = window.get("at", FOREVER), window.get("failures", "end")
    states = {}
    for page in model.pages:
        counting = [c for c in model.captures(page) if c.ts <= at and c.tells(failures) is not None]
        if counting and ("age" not in window or counting[-1].ts >= at - window["age"]):
            good = [c.status < 400 for c in counting]
            back = any(not a and b and any(good[:i]) for i, (a, b) in enumerate(zip(good, good[1:]), 1)) and good[-1]
            states[page] = {
                "gone": not good[-1],
                "missing": not any(good),
                "back": back,
                "links": counting[-1].links or frozenset(),
            }
    return states


def has_gone(pages):
    """Whether no page of a host is there any more, and one was."""
    return all(gone for gone, _ in pages) and not all(missing for _, missing in pages)


def expect_rot(world, question, face):
    states = rot_of(world.model, seconds(question["window"]))
    dead = {page for page, one in states.items() if one["gone"]}
    links = [(page, link) for page, one in states.items() for link in one["links"]]
    by_host = {}
    for page, one in states.items():
        by_host.setdefault(host(page), []).append((one["gone"], one["missing"]))
    return {
        "pages": len(states),
        "gone": sum(s["gone"] and not s["missing"] for s in states.values()),
        "missing": sum(s["missing"] for s in states.values()),
        "back": sum(s["back"] for s in states.values()),
        "hosts": len(by_host),
        "hosts_gone": sum(map(has_gone, by_host.values())),
        "links": len(links),
        "dead_links": sum(link in dead for _, link in links),
        "unknown_links": sum(link not in states for _, link in links),
        "linking_pages": len({page for page, _ in links}),
        "broken_pages": len({p for p, link in links if link in dead}),
    }


def rot(world, question):
    code, out, err = world.command(False, "analyze", "rot", *options(question["window"]), "--format", "json")
    assert code == 0, err
    return {name: int(value) for name, value in json.loads(out)["dates"][0]["facts"].items()}


def turns(model, page):
    """When a page was lost, and when it returned."""
    states, found = [(c.ts, c.status < 400) for c in model.captures(page) if c.tells() is not None], []
    for i, ((_, was), (ts, now)) in enumerate(zip(states, states[1:])):
        if was and not now:
            found.append((ts, "died"))
        elif now and not was and any(good for _, good in states[:i]):
            found.append((ts, "returned"))
    return found


def expect_growth(world, question, face):
    model, by = world.model, question["every"]
    captures = [c for page in model.pages for c in model.captures(page)]
    if not captures:
        return []
    first_of = {}
    for capture in captures:
        for url in {capture.url} | set(capture.links or ()):
            first_of[url] = min(first_of.get(url, FOREVER), capture.ts)
    link_of = {}
    for capture in captures:
        for link in capture.links or ():
            link_of[capture.url, link] = min(link_of.get((capture.url, link), FOREVER), capture.ts)
    rows, at, end = [], start_of(min(c.ts for c in captures), by), max(c.ts for c in captures)
    while at <= end:
        after = next_start(at, by)
        inside = lambda t: at <= t < after
        died = returned = 0
        for ts, name in (turn for page in model.pages for turn in turns(model, page)):
            died += inside(ts) and name == "died"
            returned += inside(ts) and name == "returned"
        latest = {page: model.deciding(model.captures(page), after - 1) for page in model.pages}
        living = [c for c in latest.values() if c and c.status < 400]
        rows.append(
            {
                "period": iso(at),
                "captures": sum(inside(c.ts) for c in captures),
                "pages": len({c.url for c in captures if inside(c.ts)}),
                "first_seen_pages": sum(inside(min(model.pages[page])) for page in model.pages),
                "first_seen_urls": sum(map(inside, first_of.values())),
                "first_seen_links": sum(map(inside, link_of.values())),
                "pages_died": died,
                "pages_returned": returned,
                "living_pages": len(living),
                "unknown_pages": sum(not c.is_whole for c in living),
                "links": sum(len(c.links or ()) for c in living),
            }
        )
        at = after
    return rows


def growth(world, question):
    rows = table(world, "analyze", "growth", "--period", question["every"], "--out", "-")
    return [{name: value if name == "period" else int(value) for name, value in row.items()} for row in rows]


# info and overview


def expect_info(world, question, face):
    model = world.model
    captures = list(model.all())
    times = [c.ts for c in captures]
    return {
        "urls": len(model.urls()),
        "pages": len(model.pages),
        "captures": len(captures),
        "links": len({(c.url, u) for c in captures for u in c.links or ()}),
        "occurrences": sum(len(c.links or ()) for c in captures),
        "unknown_captures": sum(c.links is None for c in captures),
        "failed_captures": sum(c.status >= 400 for c in captures),
        "cut_captures": sum(bool(c.cut) for c in captures),
        "first_time": iso(min(times)) if times else None,
        "last_time": iso(max(times)) if times else None,
    }


def counts(world, question, command="info"):
    """The exact counts; those of `at most` become the true ones if they are no less."""
    got = json.loads(world.command(False, command, "--format", "json")[1])["counts"]
    wanted, is_exact = expect_info(world, question, None), got.pop("exact")
    got["cut_captures"] = sum(got.get("cut_captures", {}).values())
    if not is_exact:
        kinds = ("unknown_captures", "cut_captures", "failed_captures")
        for name in ("pages", "captures", "links", "occurrences", *kinds):
            got[name] = wanted[name] if got[name] >= wanted[name] else got[name]
        got["first_time"], got["last_time"] = wanted["first_time"], wanted["last_time"]
    return got


YEARLY = (
    "captures",
    "failed_captures",
    "pages",
    "urls",
    "links_found",
    "links_gained",
    "links_lost",
    "pages_died",
    "pages_returned",
)


def expect_overview(world, question, face):
    model = world.model
    captures = list(model.all())
    if not captures:
        return None
    years = [moment(c.ts).year for c in captures]
    first_of, found = {}, {name: [0] * (max(years) - min(years) + 1) for name in YEARLY}
    add = lambda name, ts: found[name].__setitem__(
        moment(ts).year - min(years), found[name][moment(ts).year - min(years)] + 1
    )
    for capture in captures:
        add("captures", capture.ts)
        if capture.status >= 400:
            add("failed_captures", capture.ts)
        for url in {capture.url} | set(capture.links or ()):
            first_of[url] = min(first_of.get(url, FOREVER), capture.ts)
    for page in model.pages:
        for year in {moment(ts).year for ts in model.pages[page]}:
            found["pages"][year - min(years)] += 1
        for link in {u for c in model.captures(page) for u in c.links or ()}:
            stays = model.stays(page, {link})
            add("links_found" if stays[0]["began"] == "found" else "links_gained", stays[0]["first"])
            if model.stays(page, {link})[-1]["gone"] is not None:
                add("links_lost", model.stays(page, {link})[-1]["gone"])
        for ts, name in turns(model, page):
            add("pages_returned" if name == "returned" else "pages_died", ts)
    for ts in first_of.values():
        add("urls", ts)
    domains = {}
    for page, link in {(c.url, u) for c in captures for u in c.links or ()}:
        domains[domain(host(link))] = domains.get(domain(host(link)), 0) + 1
    hosts = len({host(p) for p in model.pages})
    return {"first_year": min(years), "hosts_captured": hosts, "domains": domains, **found}


def overview(world, question):
    code, out, err = world.command(False, "overview", "--format", "json")
    assert code == 0, err
    got = json.loads(out)["overview"]
    if not world.model.pages:
        return None
    return {
        "first_year": got["first_year"],
        "hosts_captured": got["hosts_captured"],
        "domains": {d["domain"]: d["links"] for d in got["domains"]},
        **{name: got["all"][name] for name in YEARLY},
    }


def kind(weight, make, expect, ask):
    return Kind(weight, make, expect, {"command": ask})


KINDS = {
    "edges": kind(0.5, windowed("all", "at", "seen"), expect_edges, edges),
    "aut": kind(0.3, windowed("all", "at", "seen"), expect_aut, aut),
    "events": kind(0.4, windowed("all", "seen"), expect_events, events),
    "nodes": kind(0.4, windowed("all", "at", "seen"), expect_nodes, nodes),
    "layers": kind(0.3, lambda rng, world: {}, expect_layers, layers),
    "hosts": kind(0.4, make_hosts, expect_hosts, hosts),
    "fold": kind(0.4, make_fold, expect_fold, fold),
    "degrees": kind(0.4, windowed("all", "at", "at", "seen"), expect_degrees, degrees),
    "rot": kind(0.5, windowed("all", "at", "at"), expect_rot, rot),
    "growth": kind(0.3, lambda rng, world: {"every": rng.choice(["day", "month", "year"])}, expect_growth, growth),
    "info": kind(0.2, lambda rng, world: {}, expect_info, counts),
    "overview": kind(0.2, lambda rng, world: {}, expect_overview, overview),
}

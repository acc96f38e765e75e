"""What changed between dates and between epochs, and results that follow a store."""

import json

from brute.ask_tables import kind
from brute.model import host, iso, matches
from brute.question import a_time, a_url

# diff


def make_dates(rng, world):
    url = a_url(rng, world)
    dates = sorted([a_time(rng, world, True), a_time(rng, world, True)], key=lambda t: t[1])
    if url is None or dates[0][1] == dates[1][1]:
        return None
    return {
        "dates": dates,
        "of": rng.choice([None, None, "host", "domain", "prefix"]),
        "url": url,
        "failures": rng.choice(["end", "end", "ignore", "all"]),
        "age": rng.choice([None, None, ("30d", 30 * 86400)]),
    }


def expect_dates(world, question, face):
    model, lines = world.model, []
    totals = dict.fromkeys(
        ["links_gained", "links_lost", "pages_changed", "pages_gained", "pages_lost", "pages_unknown"], 0
    )
    for page in model.pages:
        if question["of"] and not matches(page, question["of"], question["url"]):
            continue
        sides = []
        for _, at in question["dates"]:
            latest = model.deciding(
                model.captures(page), at, question["failures"], question["age"] and question["age"][1]
            )
            sides.append(latest if latest and latest.status < 400 else None)
        old, new = sides
        open_sides = [bool(side and not side.is_whole) for side in sides]
        is_unknown = any(open_sides)
        change = "gained" if new and not old else "lost" if old and not new else None
        before, after = [frozenset() if side is None else side.links or frozenset() for side in sides]
        gained = frozenset() if open_sides[0] else after - before
        lost = frozenset() if open_sides[1] else before - after
        if change:
            totals["pages_" + change] += 1
        totals["pages_unknown"] += is_unknown
        if change is None and (gained or lost):
            totals["pages_changed"] += 1
        if change or is_unknown or gained or lost:
            lines.append((page, change or "stayed", is_unknown))
        for name, links in (("gained", gained), ("lost", lost)):
            lines += [(page, name, link) for link in links]
            totals["links_" + name] += len(links)
    return {"lines": sorted(lines, key=str), "totals": totals}


def dates(world, question):
    flags = [
        "--from-date",
        question["dates"][0][0],
        "--to-date",
        question["dates"][1][0],
        "--failures",
        question["failures"],
    ]
    flags += ["--max-age", question["age"][0]] if question["age"] else []
    if question["of"]:
        flags += ["--" + question["of"], question["url"] if question["of"] == "prefix" else host(question["url"])]
    code, out, err = world.command(False, "diff", *flags, "--pages", "--links", "--format", "json")
    assert code == 0, err
    *rows, end = [json.loads(line) for line in out.splitlines()]
    lines = [(r["page"], r["change"], r["link"] if "link" in r else r["unknown"]) for r in rows]
    return {"lines": sorted(lines, key=str), "totals": end["changes"]}


def make_epochs(rng, world):
    return {"from": rng.choice(sorted(world.epochs))} if world.epochs else None


def expect_epochs(world, question, face):
    """Captures that are new, or whose links changed; links that pages gained and lost."""
    old, new, lines = world.epochs.get(question["from"]), world.model, []
    if old is None:
        return None  # of a crawl that was made smaller
    for page in new.pages:
        before = {c.ts: c for c in old.captures(page)}
        for capture in new.captures(page):
            was = before.get(capture.ts)
            if was is None:
                lines.append(("+", page, iso(capture.ts)))
            elif (was.links, was.status, was.cut) != (capture.links, capture.status, capture.cut):
                lines.append(("~", page, iso(capture.ts)))
        had, has = ({u for c in store.captures(page) for u in c.links or ()} for store in (old, new))
        lines += [("+", page, u) for u in has - had] + [("-", page, u) for u in had - has]
    return sorted(lines)


def epochs(world, question):
    if question["from"] not in world.epochs:
        return None
    code, out, err = world.command(False, "diff", "--from", str(question["from"]), "--captures", "--links")
    assert code == 0, err
    return sorted(tuple(line.split(" ")[:3]) for line in out.splitlines() if line[:2] in ("+ ", "- ", "~ "))


# watch


def expect_watch(world, question, face):
    links = set()
    for page in world.model.pages:
        known = world.model.telling(page)
        if known:
            links |= {(page, u) for u in known[-1].links}
    if question["what"] == "degrees":
        return sorted(
            (u, sum(t == u for _, t in links), sum(s == u for s, _ in links))
            for u in {u for pair in links for u in pair}
        )
    pairs = {}
    for page, link in links:
        pairs[host(page), host(link)] = pairs.get((host(page), host(link)), 0) + 1
    return sorted((*pair, count) for pair, count in pairs.items())


def watch(world, question):
    code, out, err = world.command(False, "watch", question["what"], "--once", "--anew")
    assert code == 0, err
    *rows, end = [json.loads(line) for line in out.splitlines()]
    assert end["rows"] == len(rows), end
    if question["what"] == "degrees":
        return sorted((r["url"], r["is"]["in"], r["is"]["out"]) for r in rows)
    return sorted((r["source"], r["target"], r["is"]["links"]) for r in rows)


KINDS = {
    "dates": kind(0.7, make_dates, expect_dates, dates),
    "epochs": kind(0.4, make_epochs, expect_epochs, epochs),
    "watch": kind(0.3, lambda rng, world: {"what": rng.choice(["degrees", "hosts"])}, expect_watch, watch),
}

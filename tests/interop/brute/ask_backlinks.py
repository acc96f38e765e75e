"""Who links to a URL, a host or a domain: rows with their stays, numbers by period, and events; of all pages, or of
those of one source."""

import csv
import io
import json

from brute.ask_pages import stamp
from brute.model import FOREVER, below, domain, host, iso, matches, moment, second
from brute.question import NOT_IN_STORE, Kind, a_time, a_url, forever, json_of, refused, rpc

EVENTS = ["any", "gained", "new", "returned", "lost", "standing"]
UNITS = ["page", "host", "domain"]
MATCHES = ["exact", "prefix", "host", "domain"]
ORDERS = ["first", "last", "most", "key"]


def make(rng, world):
    url = a_url(rng, world)
    if url is None:
        return None
    question = {
        "url": url,
        "match": rng.choice(["exact", "exact", "prefix", "host", "domain", "domain"]),
        "source": None,
        "source_match": rng.choice(MATCHES),
        "internal": rng.random() < 0.5,
        "unit": rng.choice(UNITS),
        "by": rng.choice(["day", "month", "year"]),
        "event": rng.choice(["any", "any", "new", "returned", "lost", "standing", "gained"]),
        "order": rng.choice(ORDERS),
        "limit": rng.choice([None, None, 1, 2]),
    }
    if rng.random() < 0.4:
        # A page that links, or any URL; now and then one that the store does not have.
        pages = list(world.model.pages)
        question["source"] = rng.choice(pages) if pages and rng.random() < 0.6 else a_url(rng, world)
        if rng.random() < 0.1:
            question["source"] = "http://nobody.example/x"
    for end in ("from", "to"):
        question[end] = a_time(rng, world, end == "to") if rng.random() < 0.35 else None
    if question["from"] and question["to"] and question["from"][1] > question["to"][1]:
        question["from"] = None
    return None if is_tied(world, question) else question


def is_tied(world, question):
    """Whether pages of a group linked first in one second, and their first stays began in different ways: the book
    does not say which of them counts."""
    if question["unit"] == "page":
        return False
    began = {}
    for row in rows_of(world, {**question, "unit": "page"})[1]:
        stay = row["stays"][0]
        began.setdefault((group_of(row, question), stay["first"]), set()).add(stay["began"])
    firsts = {}
    for name, first in began:
        firsts[name] = min(first, firsts.get(name, FOREVER))
    return any(len(began[name, first]) > 1 for name, first in firsts.items())


def is_inside(page, question):
    """Whether a page belongs to the target's own domain or host."""
    if question["match"] == "domain":
        return below(host(page), host(question["url"]))
    return host(page) == host(question["url"])


def is_source(page, question):
    """Whether a page counts as one of the source."""
    return question["source"] is None or matches(page, question["source_match"], question["source"])


def state(row, at):
    """yes, no or unknown: whether a page or a group links as of a time."""
    if any(first <= at <= forever(last) for first, last in row["unknown"]):
        return "unknown"
    is_in = any(stay["first"] <= at and (stay["gone"] is None or at < stay["gone"]) for stay in row["stays"])
    return "yes" if is_in else "no"


def rows_of(world, question):
    """Each page, host or domain that ever linked, with its stays and the intervals of which that is unknown."""
    model = world.model
    targets = {u for u in model.urls() if matches(u, question["match"], question["url"])}
    pages = []
    for page in model.pages:
        linked = {u for c in model.captures(page) for u in c.links or ()} & targets
        if linked and is_source(page, question) and (question["internal"] or not is_inside(page, question)):
            pages.append(
                {
                    "page": page,
                    "pages": 1,
                    "targets": len(linked),
                    "stays": model.stays(page, targets),
                    "unknown": model.unknown_intervals(page, targets),
                }
            )
    if question["unit"] == "page":
        return targets, pages, pages
    groups = {}
    for row in pages:
        groups.setdefault(group_of(row, question), []).append(row)
    return targets, pages, [{**group(members), "name": name} for name, members in groups.items()]


def group_of(row, question):
    return host(row["page"]) if question["unit"] == "host" else domain(host(row["page"]))


def group(members):
    """ "A host or a domain links while one of its pages does. If none does and one is unknown, it is unknown.\" """
    edges = {s[k] for m in members for s in m["stays"] for k in ("first", "gone") if s[k] is not None}
    edges |= {
        t for m in members for a, b in m["unknown"] for t in (a, b + 1 if b is not None else None) if t is not None
    }
    stays = []
    for stay in sorted((s for m in members for s in m["stays"]), key=lambda s: s["first"]):
        if stays and (stays[-1]["gone"] is None or stay["first"] <= stays[-1]["gone"]):
            merged = stays[-1]
            merged["last"] = max(merged["last"], stay["last"])
            merged["gone"] = None if None in (merged["gone"], stay["gone"]) else max(merged["gone"], stay["gone"])
        else:
            stays.append({**stay, "began": "returned" if stays else stay["began"]})
    unknown = []
    for at, after in zip(sorted(edges), sorted(edges)[1:] + [None]):
        states = [state(m, at) for m in members]
        if "yes" not in states and "unknown" in states:
            last = None if after is None else after - 1
            if unknown and unknown[-1][1] == at - 1:
                unknown[-1] = (unknown[-1][0], last)
            else:
                unknown.append((at, last))
    first = min(m["stays"][0]["first"] for m in members)
    return {
        "page": sorted(m["page"] for m in members if m["stays"][0]["first"] == first),
        "pages": len(members),
        "targets": max(m["targets"] for m in members),
        "stays": stays,
        "unknown": unknown,
    }


def has_event(row, event, first, last):
    within = lambda t: t is not None and first <= t <= last
    if event == "standing":
        return state(row, last) == "yes"
    for stay in row["stays"]:
        came = within(stay["first"]) and (event in ("any", "gained") or stay["began"] == event)
        if came or (event in ("any", "lost") and within(stay["gone"])):
            return True
    return False


def printed(row, last, is_grouped):
    """A row in the shape that all faces are brought to."""
    return {
        "page": row["page"] if is_grouped else [row["page"]],
        "name": row.get("name"),
        "pages": row["pages"],
        "targets": row["targets"],
        "links": state(row, last),
        "unknown": [(iso(a), None if b is None else iso(b)) for a, b in row["unknown"]],
        "stays": [(iso(s["first"]), iso(s["last"]), s["gone"] and iso(s["gone"]), s["began"]) for s in row["stays"]],
    }


def expect(world, question, face):
    targets, pages, rows = rows_of(world, question)
    if not targets:
        return NOT_IN_STORE
    first = question["from"][1] if question["from"] else -FOREVER
    last = question["to"][1] if question["to"] else FOREVER
    event = question["event"]
    chosen = [row for row in rows if has_event(row, event, first, last)]
    key = lambda row: row["name"] or row["page"][0]
    found = {"rows": sorted((printed(r, last, question["unit"] != "page") for r in chosen), key=key)}
    if face in ("http", "grpc"):
        found |= {"pages": len(pages), "total": len(rows), "selected": len(chosen)}
        found["periods"] = periods(rows, "month" if face == "http" and question["by"] == "day" else question["by"])
        found["hosts"] = referring(pages)
        if face == "http":
            found["targets"] = len(targets)
    return found


def start_of(at, by):
    when = moment(at)
    return second(when.strftime({"day": "%Y%m%d", "month": "%Y%m01", "year": "%Y0101"}[by]) + "000000")


def next_start(at, by):
    return start_of(at + {"day": 1, "month": 31, "year": 366}[by] * 86400, by)


def periods(rows, by):
    """The numbers of each period, from the first in which something happens to the last one."""
    happens = [s[k] for row in rows for s in row["stays"] for k in ("first", "gone") if s[k] is not None]
    happens += [t for row in rows for a, b in row["unknown"] for t in (a, b and b + 1) if t is not None]
    if not happens:
        return []
    found, at = [], start_of(min(happens), by)
    while at <= max(happens):
        after = next_start(at, by)
        states = [state(row, after - 1) for row in rows]
        counts = {name: 0 for name in ("found", "new", "returned", "lost")}
        for stay in (s for row in rows for s in row["stays"]):
            if at <= stay["first"] < after:
                counts[stay["began"]] += 1
            if stay["gone"] is not None and at <= stay["gone"] < after:
                counts["lost"] += 1
        found.append((at, states.count("yes"), states.count("unknown"), *counts.values()))
        at = after
    return found


def referring(pages):
    hosts = {}
    for row in pages:
        one = hosts.setdefault(host(row["page"]), [0, 0, FOREVER])
        one[0] += 1
        one[1] += state(row, FOREVER) == "yes"
        one[2] = min(one[2], row["stays"][0]["first"])
    return sorted((name, *numbers) for name, numbers in hosts.items())


def expect_by(world, question, face):
    targets, _, rows = rows_of(world, question)
    return periods(rows, question["by"]) if targets else NOT_IN_STORE


# Faces.


def flags(question):
    found = ["--match", question["match"], "--unit", question["unit"]] + (
        ["--internal"] if question["internal"] else []
    )
    if question["source"]:
        found += ["--source", question["source"], "--source-match", question["source_match"]]
    for end in ("from", "to"):
        if question[end]:
            found += ["--" + end, question[end][0]]
    return found


def shaped(row, end):
    """A row of an answer, in which `end` names the first capture without the link."""
    page = [row["page"]] if row.get("page") else []
    return {
        "page": page,
        "name": row.get("name"),
        "pages": row.get("pages", 1),
        "targets": row["targets"],
        "links": row["links"],
        "unknown": [tuple(u) for u in row.get("unknown", [])],
        "stays": [(s["first"], s["last"], s[end], s["began"]) for s in row["stays"]],
    }


def sort_rows(world, question, rows):
    """The rows by name. Of several pages of a group that linked first, the answer may name any."""
    for row in rows:
        if question["unit"] != "page":
            wanted = next(
                (
                    r
                    for r in expect(world, {**question, "event": "any", "from": None, "to": None}, "command")["rows"]
                    if r["name"] == row["name"]
                ),
                None,
            )
            if wanted and row["page"] and set(row["page"]) <= set(wanted["page"]):
                row["page"] = wanted["page"]
    return sorted(rows, key=lambda row: row["name"] or row["page"][0])


def command(at_server):
    def ask(world, question):
        event = {"any": [], "gained": []}.get(question["event"], ["--" + question["event"]])
        done = world.command(at_server, "backlinks", question["url"], *flags(question), *event, "--format", "json")
        if refused(done):
            return NOT_IN_STORE
        rows = [shaped(json.loads(line), "until") for line in done[1].splitlines()]
        return {"rows": sort_rows(world, question, rows)}

    return ask


def make_command(rng, world):
    question = make(rng, world)
    return question and {**question, "event": rng.choice(["any", "any", "new", "returned", "lost", "standing"])}


def by_command(at_server):
    def ask(world, question):
        plain = {**question, "from": None, "to": None}
        done = world.command(
            at_server, "backlinks", question["url"], *flags(plain), "--period", question["by"], "--format", "csv"
        )
        if refused(done):
            return NOT_IN_STORE
        names = ("standing", "unknown", "found", "new", "returned", "lost")
        return [
            (second((row["period"].replace("-", "") + "0101")[:8] + "000000"), *(int(row[n]) for n in names))
            for row in csv.DictReader(io.StringIO(done[1]))
        ]

    return ask


def ordered(question, rows):
    """Rows in the order that was asked for: by the first capture with a link, by the last, by most."""
    last = [max(s[1] for s in row["stays"]) for row in rows]
    keys = {
        "first": [row["stays"][0][0] for row in rows],
        "last": [-stamp(t) for t in last],
        "key": [],
        "most": [-(row["targets"] if question["unit"] == "page" else row["pages"]) for row in rows],
    }[question["order"]]
    assert keys == sorted(keys), f"not in order {question['order']}: {rows}"


def over_http(world, question):
    asked = {
        "url": question["url"],
        "match": question["match"],
        "unit": question["unit"],
        "event": question["event"],
        "internal": str(question["internal"]).lower(),
        "order": question["order"],
        "period": "month" if question["by"] == "day" else question["by"],
    }
    asked |= {end: question[end][0] for end in ("from", "to") if question[end]}
    if question["source"]:
        asked |= {"source": question["source"], "source_match": question["source_match"]}
    parts = world.pages("/v1/backlinks", asked, question["limit"])
    if json_of(parts[0]):
        return NOT_IN_STORE
    one = parts[0]
    rows = [shaped(row, "until") for part in parts for row in part["rows"]]
    ordered(question, rows)
    days = [second((day.replace("-", "") + "0101")[:8] + "000000") for day in one["periods"]]
    columns = [one[name] for name in ("standing", "unknown", "found", "new", "returned", "lost")]
    hosts = [(h["host"], h["pages"], h["standing"], stamp(h["first"])) for h in one["hosts"]]
    assert [h[1] for h in hosts] == sorted((h[1] for h in hosts), reverse=True), hosts
    return {
        "rows": sort_rows(world, question, rows),
        "pages": one["pages"],
        "total": one["rows_total"],
        "selected": one["rows_selected"],
        "periods": list(zip(days, *columns, strict=True)),
        "hosts": sorted(hosts),
        "targets": one["targets"],
    }


def over_grpc(world, question):
    pb = world.pb
    Request = pb.GetBacklinksRequest
    rows, offset = [], 0
    while True:
        got = rpc(
            world.grpc.GetBacklinks,
            Request(
                url=question["url"],
                match=MATCHES.index(question["match"]),
                source=question["source"] or "",
                source_match=MATCHES.index(question["source_match"]) if question["source"] else 0,
                internal=question["internal"],
                unit=UNITS.index(question["unit"]),
                event=EVENTS.index(question["event"]),
                period={"month": 0, "year": 1, "day": 3}[question["by"]],
                order=ORDERS.index(question["order"]),
                limit=question["limit"] or 1000,
                offset=offset,
                **{end: question[end][1] for end in ("from", "to") if question[end]},
            ),
        )
        if got == NOT_IN_STORE:
            return got
        rows += got.rows
        offset += len(got.rows)
        if offset >= got.rows_selected or not got.rows:
            break
    last = question["to"][1] if question["to"] else FOREVER
    found = []
    for row in rows:
        assert world.uids[row.page] == row.page_uid, row
        stays = [
            {
                "first": s.first,
                "last": s.last,
                "gone": s.until if s.HasField("until") else None,
                "began": ["found", "new", "returned"][s.began],
            }
            for s in row.stays
        ]
        unknown = [(u.first, u.last if u.HasField("last") else None) for u in row.unknown]
        made = {
            "page": row.page,
            "name": row.name or None,
            "pages": row.pages,
            "targets": row.targets,
            "stays": stays,
            "unknown": unknown,
        }
        found.append({**printed(made, last, True), "page": [row.page]})
    ordered(question, found)
    columns = [getattr(got, name) for name in ("periods", "standing", "unknown", "found", "new", "returned", "lost")]
    return {
        "rows": sort_rows(world, question, found),
        "pages": got.pages,
        "total": got.rows_total,
        "selected": got.rows_selected,
        "periods": list(zip(*columns, strict=True)),
        "hosts": sorted((h.host, h.pages, h.standing, h.first) for h in got.hosts),
    }


KINDS = {
    "backlinks": Kind(5, make, expect, {"http": over_http, "grpc": over_grpc}),
    "backlinks rows": Kind(1, make_command, expect, {"command": command(False), "server": command(True)}),
    "backlinks by": Kind(1, make, expect_by, {"command": by_command(False), "server": by_command(True)}),
}

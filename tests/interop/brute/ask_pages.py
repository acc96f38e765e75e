"""One page over time: captures, lifespans, what changed, who linked first, dead links, and pictures."""

import json

from brute.model import FOREVER, domain, host, iso, matches, second
from brute.question import (
    NOT_IN_STORE,
    Kind,
    a_time,
    a_url,
    a_window,
    fields,
    in_order,
    is_there,
    json_of,
    options,
    refused,
    seconds,
)


def stamp(text):
    """Seconds since 1970 of a time as Webstrata prints it."""
    return second("".join(c for c in text if c.isdigit()))


# captures: times, statuses and what is unknown.


def make(rng, world):
    url = a_url(rng, world, is_page=True)
    return url and {
        "url": url,
        "window": a_window(rng, world, ("all", "seen")),
        "limit": rng.choice([None, 1, 3]),
        "match": rng.choice(["exact", "exact", "surt", "prefix", "host", "domain"]),
    }


def rows(captures, is_named=False):
    return [((c.url,) if is_named else ()) + (iso(c.ts), c.status, c.links is not None) for c in captures]


def expect(world, question, face):
    url, model = question["url"], world.model
    if face == "http":
        window, match = seconds(question["window"]), question["match"]
        urls = [u for u in model.urls() if matches(u, match, url)]
        if not urls and match in ("exact", "surt"):
            return NOT_IN_STORE
        first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
        return sorted(rows([c for u in urls for c in model.captures(u) if first <= c.ts <= last], True))
    if face.startswith("spellings"):
        urls = model.spellings(url)
        return sorted(rows([c for u in urls for c in model.captures(u)], True)) if urls else NOT_IN_STORE
    if not is_there(world, url):
        return NOT_IN_STORE
    if face == "text":
        return [f"{iso(c.ts)} {c.status}{remark(c)}" for c in model.captures(url)]
    return rows(model.captures(url))


def remark(capture):
    """What a line says of a capture that does not tell of all links."""
    return "  links unknown" if capture.links is None else f"  cut ({capture.cut})" if capture.cut else ""


def three(times, statuses, unknown):
    """Rows of an answer in columns; without statuses all are 200."""
    assert len(times) == len(statuses) if statuses else True, (times, statuses)
    assert set(unknown) <= set(times) and times == sorted(times), (times, unknown)
    return [(time, status, time not in unknown) for time, status in zip(times, statuses or [200] * len(times))]


def command(at_server):
    def ask(world, question):
        done = world.command(at_server, "captures", question["url"], "--format", "json")
        if refused(done):
            return NOT_IN_STORE
        got = json.loads(done[1])["captures"]
        assert {own["url"] for own in got} <= {question["url"]}, got
        return [(own["time"], own["status"], own["known"]) for own in got]

    return ask


def text(world, question):
    done = world.command(False, "captures", question["url"])
    return refused(done) or done[1].splitlines()


def spellings(at_server):
    def ask(world, question):
        done = world.command(at_server, "captures", question["url"], "--match", "surt", "--format", "json")
        if refused(done):
            return NOT_IN_STORE
        got = [(c["url"], c["time"], c["status"], c["known"]) for c in json.loads(done[1])["captures"]]
        assert [c[1] for c in got] == sorted(c[1] for c in got), got
        return sorted(got)

    return ask


def query_answer(got):
    if "error" in got:
        assert "not in store" in got["error"], got
        return NOT_IN_STORE
    return three(got["captures"], got.get("statuses"), got.get("unknown", []))


def query(at_server):
    return lambda world, question: query_answer(
        world.query(at_server, {"op": "captures", "url": question["url"], "id": "x"})
    )


def posted(world, question):
    asked = {"op": "captures", "url": question["url"], "id": [1]}
    status, body, _ = world.get("/v1/query", body=json.dumps(asked) + "\n")
    assert status == 200 and json.loads(body)["id"] == [1], body
    return query_answer(json.loads(body))


def spellings_query(world, question):
    got = world.query(True, {"op": "captures", "url": question["url"], "match": "surt"})
    plain = query_answer(got)
    if plain == NOT_IN_STORE:
        return plain
    # Times may stand twice here: what is unknown is told by the time alone.
    return sorted((url, *row[:2]) for url, row in zip(got["urls"], plain))


def over_http(world, question):
    asked = {"url": question["url"], "match": question["match"], **fields(question["window"])}
    parts = world.pages("/v1/captures", asked, question["limit"])
    if json_of(parts[0]):
        return NOT_IN_STORE if question["match"] in ("exact", "surt") else []
    got = [(c["url"], c["time"], c["status"], c["known"]) for part in parts for c in part["captures"]]
    order = [c[1] if question["match"] == "surt" else (world.uids[c[0]], c[1]) for c in got]
    assert order == sorted(order), f"out of order: {got}"
    if question["limit"]:
        assert all(len(part["captures"]) <= question["limit"] for part in parts), parts
    return sorted(got)


def over_grpc(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    uid = world.uids[question["url"]]
    got = world.grpc.GetCaptures(world.pb.GetCapturesRequest(uids=[uid, uid]))
    assert len(got.counts) == 2 and got.counts[0] == got.counts[1] == len(got.times) / 2, got
    half = got.counts[0]
    assert list(got.times[:half]) == list(got.times[half:]), got
    return three(
        [iso(t) for t in got.times[:half]], list(got.statuses[:half]), [iso(got.times[i]) for i in got.unknown]
    )


# lifespans: runs of captures that have a link.


def make_lifespans(rng, world):
    url = a_url(rng, world, is_page=rng.random() < 0.6)
    return url and {
        "url": url,
        "direction": rng.choice(["out", "in"]),
        "limit": rng.choice([None, 1, 3]),
        "window": a_window(rng, world, ("all", "all", "seen")),
    }


def expect_lifespans(world, question, face):
    model, url = world.model, question["url"]
    if not is_there(world, url):
        return NOT_IN_STORE
    window = seconds(question["window"]) if face == "http" else {}
    first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
    is_in = question["direction"] == "in" and face == "http"
    pairs = [(page, url) for page in model.pages] if is_in else [(url, link) for link in model.urls()]
    found = [
        (page if is_in else link, iso(a), iso(b))
        for page, link in pairs
        for a, b in model.lifespans(page, link)
        if a <= last and b >= first
    ]
    return sorted(found)


def lifespans_command(at_server):
    def ask(world, question):
        done = world.command(at_server, "links", question["url"], "--lifespans", "--format", "json")
        return refused(done) or sorted((l["link"], l["first"], l["last"]) for l in json.loads(done[1])["lifespans"])

    return ask


def lifespans_text(world, question):
    done = world.command(False, "links", question["url"], "--lifespans")
    return refused(done) or sorted(tuple(line.split()[i] for i in (2, 0, 1)) for line in done[1].splitlines()[1:])


def lifespans_http(world, question):
    parts = world.pages(
        "/v1/lifespans",
        {"url": question["url"], "direction": question["direction"], **fields(question["window"])},
        question["limit"],
    )
    return json_of(parts[0]) or sorted((l["link"], l["first"], l["last"]) for part in parts for l in part["lifespans"])


def lifespans_grpc(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    got = world.grpc.GetLifespans(world.pb.GetLifespansRequest(uids=[world.uids[question["url"]]]))
    assert list(got.counts) == [len(got.links)], got
    return sorted((world.urls[u], iso(a), iso(b)) for u, a, b in zip(got.links, got.firsts, got.lasts))


# changed: links gained and lost between two dates.


def make_changed(rng, world):
    url = a_url(rng, world, is_page=rng.random() < 0.6)
    dates = sorted([a_time(rng, world, True), a_time(rng, world, True)], key=lambda t: t[1])
    options = {
        "age": rng.choice([None, None, ("30d", 30 * 86400)]),
        "failures": rng.choice(["end", "end", "ignore", "all"]),
    }
    return url and {
        "url": url,
        "direction": rng.choice(["out", "in"]),
        "dates": dates,
        "limit": rng.choice([None, 1]),
        **options,
    }


def expect_changed(world, question, face):
    model, url = world.model, question["url"]
    if not is_there(world, url):
        return NOT_IN_STORE
    plain = face in ("command", "server")
    rules = () if plain else (question["failures"], question["age"] and question["age"][1])
    before, after = (at for _, at in question["dates"])
    gained, lost, unknown = [], [], []
    if question["direction"] == "out":
        (old, is_old_open), (new, is_new_open) = sides(model, url, (before, after), rules)
        unknown = [url] * (is_old_open or is_new_open)
        gained, lost = [] if is_old_open else sorted(new - old), [] if is_new_open else sorted(old - new)
    else:
        for page in model.pages:
            (old, is_old_open), (new, is_new_open) = sides(model, page, (before, after), rules)
            if url in new - old:
                (unknown if is_old_open else gained).append(page)
            elif url in old - new:
                (unknown if is_new_open else lost).append(page)
    return {"gained": sorted(gained), "lost": sorted(lost), "unknown": sorted(unknown)}


def sides(model, page, dates, rules):
    """The links of a page at two dates, and whether there may be more."""
    names = dict(zip(("failures", "age"), rules))
    return [model.links(page, {"at": at, **names}) for at in dates]


def changed_command(at_server):
    def ask(world, question):
        way = ["--in"] if question["direction"] == "in" else []
        done = world.command(
            at_server,
            "links",
            question["url"],
            *way,
            "--changed",
            *(text for text, _ in question["dates"]),
            "--format",
            "json",
        )
        if refused(done):
            return NOT_IN_STORE
        got = json.loads(done[1])
        assert [got["from_date"], got["to_date"]] == [iso(at) for _, at in question["dates"]], got
        return changes_of(world, question, [got])

    return ask


def changes_of(world, question, parts):
    """The changes of an answer in parts, by kind."""
    changes = [c for part in parts for c in part["changes"]]
    in_order(world, [c["link"] for c in changes])
    found = {name: sorted(c["link"] for c in changes if c["change"] == name) for name in ("gained", "lost", "unknown")}
    if question["direction"] == "out":
        found["unknown"] = [question["url"]] if any(part.get("unknown") for part in parts) else []
    return found


def changed_http(world, question):
    asked = {
        "url": question["url"],
        "direction": question["direction"],
        "failures": question["failures"],
        "from_date": question["dates"][0][0],
        "to_date": question["dates"][1][0],
    }
    if question["age"]:
        asked["max_age"] = question["age"][0]
    parts = world.pages("/v1/changed", asked, question["limit"])
    return NOT_IN_STORE if json_of(parts[0]) else changes_of(world, question, parts)


def changed_grpc(world, question):
    pb = world.pb
    if question["url"] not in world.uids:
        return NOT_IN_STORE

    def window(at):
        made = pb.Window(as_of=at, failures=["end", "ignore", "all"].index(question["failures"]))
        if question["age"]:
            made.since = at - question["age"][1]
        return made

    got = world.grpc.GetChangedLinks(
        pb.GetChangedLinksRequest(
            uids=[world.uids[question["url"]]],
            direction=int(question["direction"] == "in"),
            **{"from": window(question["dates"][0][1]), "to": window(question["dates"][1][1])},
        )
    )
    assert (list(got.gained_counts), list(got.lost_counts), sum(got.unknown_counts)) == (
        [len(got.gained)],
        [len(got.lost)],
        len(got.unknown),
    ), got
    return {
        name: in_order(world, [world.urls[u] for u in getattr(got, name)]) for name in ("gained", "lost", "unknown")
    }


# first: who linked first.


def make_first(rng, world):
    url = a_url(rng, world)
    return url and {"url": url, "limit": rng.choice([None, 1, 2]), "unit": rng.choice(["page", "host", "domain"])}


def firsts(world, url):
    found = []
    for page in world.model.pages:
        times = [c.ts for c in world.model.captures(page) if url in (c.links or ())]
        if times:
            found.append((iso(min(times)), world.uids[page], page))
    return [(time, page) for time, _, page in sorted(found)]


def group_of(unit):
    return host if unit == "host" else lambda url: domain(host(url))


def expect_first(world, question, face):
    if not is_there(world, question["url"]):
        return NOT_IN_STORE
    found = firsts(world, question["url"])
    if face in ("command", "server"):
        if question["unit"] != "page":
            seen, group = set(), group_of(question["unit"])
            found = [(t, p) for t, p in found if group(p) not in seen and not seen.add(group(p))]
        return found[: question["limit"]]
    return found[: question["limit"]] if face == "grpc" else found


def first_command(at_server):
    def ask(world, question):
        limit = ["--limit", str(question["limit"])] if question["limit"] else []
        done = world.command(
            at_server, "links", question["url"], "--in", "--first", "--unit", question["unit"], *limit,
            "--format", "json",
        )
        if refused(done):
            return NOT_IN_STORE
        got = json.loads(done[1])["first"]
        unit = question["unit"]
        assert unit == "page" or all(g["name"] == group_of(unit)(g["page"]) for g in got), got
        return [(g["first"], g["page"]) for g in got]

    return ask


def first_http(world, question):
    parts = world.pages("/v1/first", {"url": question["url"]}, question["limit"])
    if json_of(parts[0]):
        return NOT_IN_STORE
    found = [(g["first"], g["page"]) for part in parts for g in part["first"]]
    assert all(part["pages"] == len(found) for part in parts), parts
    return found


def first_grpc(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    got = world.grpc.GetFirstLinks(
        world.pb.GetFirstLinksRequest(uids=[world.uids[question["url"]]], limit=question["limit"] or 0)
    )
    return [(iso(t), world.urls[u]) for t, u in zip(got.firsts, got.pages)]


# dead: links to pages that are gone.


def make_dead(rng, world):
    url = a_url(rng, world, is_page=True)
    return url and {"url": url, "window": a_window(rng, world, ("all", "at"))}


def expect_dead(world, question, face):
    model, url = world.model, question["url"]
    if not is_there(world, url):
        return NOT_IN_STORE
    window = seconds(question["window"])
    failures, at = window.get("failures", "end"), window.get("at", FOREVER)
    links, is_open = model.links(url, {"at": FOREVER, **window})
    dead, not_captured = [], 0
    for link in links:
        counting = [c for c in model.captures(link) if c.ts <= at and c.tells(failures) is not None]
        if not counting:
            not_captured += 1
        elif counting[-1].status >= 400:
            run = []
            for capture in reversed(counting):
                if capture.status < 400:
                    break
                run.append(capture)
            dead.append(
                {
                    "url": link,
                    "status": run[-1].status,
                    "since": iso(run[-1].ts),
                    "last_status": run[0].status,
                    "last": iso(run[0].ts),
                }
            )
    return {
        "dead": sorted(dead, key=lambda d: d["url"]),
        "links": len(links),
        "unknown_links": not_captured,
        "unknown": is_open,
    }


def dead_command(world, question):
    done = world.command(False, "links", question["url"], "--dead", *options(question["window"]), "--format", "json")
    if refused(done):
        return NOT_IN_STORE
    return dead_of(json.loads(done[1]))


def dead_http(world, question):
    got = world.json("/v1/dead_links", {"url": question["url"], **fields(question["window"])})
    return NOT_IN_STORE if json_of(got) else dead_of(got)


def dead_of(got):
    return {
        "dead": sorted(got["dead"], key=lambda d: d["url"]),
        "links": got["links"],
        "unknown_links": got["unknown_links"],
        "unknown": got.get("unknown", False),
    }


# barcode: the same in columns.


def make_barcode(rng, world):
    url = a_url(rng, world, is_page=rng.random() < 0.6)
    return url and {"url": url, "direction": rng.choice(["out", "in"])}


def expect_barcode(world, question, face):
    model, url = world.model, question["url"]
    if not is_there(world, url):
        return NOT_IN_STORE
    captures = model.captures(url)
    statuses = {}
    for place, capture in enumerate(captures):
        if capture.status != 200:
            statuses.setdefault(str(capture.status), []).append(place)
    if question["direction"] == "out":
        places = {c.ts: place for place, c in enumerate(captures)}
        bars = {link: [(places[a], places[b]) for a, b in model.runs(url, link)] for link in model.urls()}
    else:
        bars = {
            page: [(s["first"], s["last"], s["gone"] or 0) for s in model.stays(page, {url})] for page in model.pages
        }
    found = {
        "captures": [c.ts for c in captures],
        "statuses": statuses,
        "rest": None,
        "unknown": [place for place, c in enumerate(captures) if not c.is_whole],
        "bars": {link: runs for link, runs in bars.items() if runs},
    }
    if question["direction"] == "in":
        found["first_known"] = {page: next((c.ts for c in model.telling(page)), 0) for page in found["bars"]}
    return found


def barcode_http(world, question):
    got = world.json("/v1/barcode", dict(question))
    if json_of(got):
        return NOT_IN_STORE
    times, at = [], 0
    for step in got["captures"]:
        at += step
        times.append(at)
    wide = 2 if question["direction"] == "out" else 3
    bars, runs = {}, list(got["runs"])
    for link, count in zip(got["links"], got["counts"], strict=True):
        mine, runs = runs[: wide * count], runs[wide * count :]
        bars[link], place = [], 0
        for i in range(0, len(mine), wide):
            if wide == 3:
                bars[link].append(tuple(mine[i : i + 3]))
            else:
                first = place + mine[i]
                place = first + mine[i + 1] + 1
                bars[link].append((first, place - 1))
    assert not runs, got
    found = {
        "captures": times,
        "statuses": got["statuses"],
        "rest": got.get("rest"),
        "unknown": got["unknown"],
        "bars": bars,
    }
    if question["direction"] == "in":
        found["first_known"] = dict(zip(got["links"], got["first_known"], strict=True))
    return found


KINDS = {
    "captures": Kind(
        5,
        make,
        expect,
        {
            "command": command(False),
            "server": command(True),
            "text": text,
            "query": query(False),
            "query server": query(True),
            "query post": posted,
            "http": over_http,
            "grpc": over_grpc,
        },
    ),
    "lifespans": Kind(
        5,
        make_lifespans,
        expect_lifespans,
        {
            "command": lifespans_command(False),
            "server": lifespans_command(True),
            "text": lifespans_text,
            "http": lifespans_http,
            "grpc": lifespans_grpc,
        },
    ),
    "changed": Kind(
        4,
        make_changed,
        expect_changed,
        {
            "command": changed_command(False),
            "server": changed_command(True),
            "http": changed_http,
            "grpc": changed_grpc,
        },
    ),
    "first": Kind(
        3,
        make_first,
        expect_first,
        {"command": first_command(False), "server": first_command(True), "http": first_http, "grpc": first_grpc},
    ),
    "dead": Kind(1, make_dead, expect_dead, {"command": dead_command, "http": dead_http}),
    "barcode": Kind(3, make_barcode, expect_barcode, {"http": barcode_http}),
}

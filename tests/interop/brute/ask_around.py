"""What is around a page, ways between pages, and which URLs the store has."""

import json

import grpc
from brute.ask_backlinks import UNITS, state
from brute.model import FOREVER, host, iso, matches
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

# neighbourhood: the links around a page.


def make(rng, world):
    url = a_url(rng, world, is_page=rng.random() < 0.7)
    return url and {
        "url": url,
        "hops": rng.choice([1, 2]),
        "at": rng.choice([None, a_time(rng, world, True)]),
        "unit": rng.choice(["page", "page", "host", "domain"]),
    }


def links_of(world, page, at):
    """[(target, stay, state)] of a page: all stays, or those that stand at a time or of which that is unknown."""
    model, found = world.model, []
    for target in {u for c in model.captures(page) for u in c.links or ()} - {page}:
        stays, unknown = model.stays(page, {target}), model.unknown_intervals(page, {target})
        row = {"stays": stays, "unknown": unknown}
        now = state(row, FOREVER if at is None else at)
        since = max((a for a, _ in unknown if a <= (FOREVER if at is None else at)), default=None)
        if at is None:
            for stay in stays:
                is_last = stay is stays[-1]
                found.append((target, stay, now if is_last else "no", since if is_last and now == "unknown" else None))
        elif now == "yes":
            stay = next(s for s in stays if s["first"] <= at and (s["gone"] is None or at < s["gone"]))
            found.append((target, stay, now, None))
        elif now == "unknown":
            # The stay that the time is in, else the latest before it, else the next one.
            stay = next((s for s in stays if s["first"] <= at and (s["gone"] is None or at < s["gone"])), None)
            stay = stay or next((s for s in reversed(stays) if s["first"] <= at), None) or stays[0]
            found.append((target, stay, now, since))
    return found


def expect(world, question, face):
    model, url, at = world.model, question["url"], question["at"] and question["at"][1]
    if not is_there(world, url):
        return NOT_IN_STORE
    around = {page: links_of(world, page, at) for page in model.pages}
    ring = {target for target, *_ in around.get(url, [])} | {
        p for p, links in around.items() if any(t == url for t, *_ in links)
    }
    nodes = {url} | ring
    if question["hops"] == 2:
        nodes |= {target for page in ring for target, *_ in around.get(page, [])}
    lines = {
        (page, target, iso(stay["first"]), stay["gone"] and iso(stay["gone"]), now, since and iso(since))
        for page in {url} | ring
        for target, stay, now, since in around.get(page, [])
        if target in nodes
    }
    return sorted(lines, key=str)


def make_pages(rng, world):
    question = make(rng, world)
    return question and {**question, "unit": "page"}


def arguments(question):
    at = ["--at", question["at"][0]] if question["at"] else []
    return ["--hops", str(question["hops"]), "--unit", question["unit"], *at]


def command(at_server):
    def ask(world, question):
        done = world.command(
            at_server, "neighbourhood", question["url"], *arguments(question), "--format", "json", "--limit", "0"
        )
        if refused(done):
            return NOT_IN_STORE
        rows = map(json.loads, done[1].splitlines())
        return sorted(
            ((r["source"], r["target"], r["from"], r["until"], r["links"], r.get("unknown")) for r in rows), key=str
        )

    return ask


def unknown_pages(world, question):
    """How many pages in the centre and one step away may have more links."""
    model, url, at = world.model, question["url"], question["at"] and question["at"][1]
    around = {page: {target for target, *_ in links_of(world, page, at)} for page in model.pages}
    near = {url} | around.get(url, set()) | {page for page, links in around.items() if url in links}
    return sum(model.links(page, {} if at is None else {"at": at})[1] for page in near)


def in_columns(nodes, sources, targets, starts, ends, unknown, question):
    """Lines of an answer in columns, which does not say whether a link stands."""
    lines = []
    for i, (source, target, start, end) in enumerate(zip(sources, targets, starts, ends, strict=True)):
        since = unknown[i] if unknown else None
        lines.append((nodes[source], nodes[target], iso(start), end and iso(end), since and iso(since)))
    return sorted(lines, key=str)


def without_state(world, question):
    found = expect(world, question, None)
    return found if found == NOT_IN_STORE else sorted({line[:4] + line[5:] for line in found}, key=str)


def over_http(world, question):
    asked = {"url": question["url"], "hops": question["hops"], "unit": question["unit"]}
    got = world.json("/v1/neighbourhood", asked | ({"at": question["at"][0]} if question["at"] else {}))
    if json_of(got):
        return NOT_IN_STORE
    assert got["nodes"][got["centre"]] == question["url"] and not got["left_out"] and not got["unread"], got
    assert got.get("unknown_pages", 0) == unknown_pages(world, question), got
    links = got["links"]
    return in_columns(
        got["nodes"], links["source"], links["target"], links["from"], links["until"], links.get("unknown"), question
    )


def over_grpc(world, question):
    if question["url"] not in world.uids:
        return NOT_IN_STORE
    got = world.grpc.GetNeighbourhood(
        world.pb.GetNeighbourhoodRequest(
            uid=world.uids[question["url"]],
            narrow=question["hops"] == 1,
            unit=UNITS.index(question["unit"]),
            at=question["at"][1] if question["at"] else None,
        )
    )
    assert got.nodes[got.centre] == question["url"] and got.unknown_pages == unknown_pages(world, question), got
    captured = dict(zip(got.nodes, got.captured))
    assert captured == {node: node in world.model.pages for node in got.nodes} and set(got.urls) <= {1}, got
    ends = [start + stood if stood else None for start, stood in zip(getattr(got, "from"), got.stood)]
    since = dict(zip(got.unknown_links, got.unknown, strict=True))
    unknown = [since.get(place) for place in range(len(got.sources))]
    return in_columns(got.nodes, got.sources, got.targets, getattr(got, "from"), ends, unknown, question)


def columns_or_rows(world, question, face):
    return expect(world, question, face) if face in ("command", "server") else without_state(world, question)


# ways: the shortest ways between two pages.


def make_ways(rng, world):
    url = a_url(rng, world, is_page=True)
    if url is None:
        return None
    target = a_url(rng, world)
    if target == url:
        return None
    return {
        "url": url,
        "target": target,
        "hops": rng.choice([None, 1, 2, 3]),
        "limit": rng.choice([None, None, 1]),
        "at": rng.choice([None, a_time(rng, world, True)]),
    }


def expect_ways(world, question, face):
    model, at = world.model, question["at"][1] if question["at"] else FOREVER
    if not is_there(world, question["url"], question["target"]):
        return NOT_IN_STORE
    ways, unknown = [[question["url"]]], set()
    for _ in range(question["hops"] or 6):
        longer = []
        for way in ways:
            links, is_open = model.links(way[-1], {"at": at})
            if is_open:
                unknown.add(way[-1])
            longer += [way + [link] for link in links if link not in way]
        found = [way for way in longer if way[-1] == question["target"]]
        if found:
            return {"ways": len(found[: question["limit"] or 10]), "all": sorted(found), "unknown": []}
        ways = longer
    return {"ways": 0, "all": [], "unknown": sorted(unknown)}


def ways_shown(world, question, ways, unknown):
    """The number of ways, and all ways if each of those shown is one."""
    wanted = expect_ways(world, question, None)
    every = wanted["all"] if isinstance(wanted, dict) else []
    is_part = len(every) > len(ways) and all(way in every for way in ways)
    return {"ways": len(ways), "all": every if is_part else sorted(ways), "unknown": sorted(unknown)}


def ways_command(at_server):
    def ask(world, question):
        flags = [part for name in ("hops", "limit") if question[name] for part in ("--" + name, str(question[name]))]
        flags += ["--at", question["at"][0]] if question["at"] else []
        code, out, err = world.command(
            at_server, "ways", question["url"], question["target"], *flags, "--format", "json"
        )
        if not out:
            return refused((code, out, err))
        got = json.loads(out)
        assert code == (0 if got["ways"] else 1), (code, got)
        return ways_shown(world, question, got["ways"], all_unknown(world, question, got, "unknown_pages"))

    return ask


def all_unknown(world, question, got, count):
    """The pages of which an answer names some and counts all."""
    unknown, wanted = got.get("unknown", []), expect_ways(world, question, None)["unknown"]
    is_part = len(unknown) < got.get(count, 0) == len(wanted) and set(unknown) <= set(wanted)
    return wanted if is_part else unknown


def ways_http(world, question):
    asked = {"url": question["url"], "target": question["target"]}
    asked |= {name: question[name] for name in ("hops",) if question[name]}
    got = world.json(
        "/v1/ways",
        asked
        | ({"limit": question["limit"]} if question["limit"] else {})
        | ({"at": question["at"][0]} if question["at"] else {}),
    )
    if json_of(got):
        return NOT_IN_STORE
    return ways_shown(world, question, got["ways"], all_unknown(world, question, got, "unknown_pages"))


def ways_grpc(world, question):
    if not is_there(world, question["url"], question["target"]):
        return NOT_IN_STORE
    got = world.grpc.GetWays(
        world.pb.GetWaysRequest(
            uid=world.uids[question["url"]],
            target=world.uids[question["target"]],
            at=question["at"][1] if question["at"] else None,
            hops=question["hops"] or 0,
            limit=question["limit"] or 10
        )
    )
    long = got.links + 1 if got.HasField("links") else 1
    pages = [world.urls[uid] for uid in got.pages]
    ways = [pages[i : i + long] for i in range(0, len(pages), long)]
    return ways_shown(world, question, ways, in_order(world, [world.urls[uid] for uid in got.unknown]))


# uids: which URLs the store has.


def make_uids(rng, world):
    url = a_url(rng, world)
    return url and {
        "url": url,
        "match": rng.choice(["all", "exact", "surt", "prefix", "host", "domain"]),
        "window": a_window(rng, world, ("all", "seen", "seen")),
        "limit": rng.choice([None, 1, 4]),
        "captured": rng.random() < 0.5,
    }


def expect_uids(world, question, face):
    model, window = world.model, seconds(question["window"])
    found = {u for u in model.urls() if question["match"] == "all" or matches(u, question["match"], question["url"])}
    if not found and face == "http" and question["match"] == "exact":
        return NOT_IN_STORE
    if window or (face == "command" and question["captured"]):
        first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
        found = {u for u in found if any(first <= c.ts <= last for c in model.captures(u))}
    return sorted(found)


def uids_command(world, question):
    if question["match"] in ("exact", "surt"):
        return expect_uids(world, question, "command")
    flags = options(question["window"])
    if question["match"] != "all":
        flags += ["--" + question["match"], question["url"] if question["match"] == "prefix" else host(question["url"])]
    if not question["captured"] and not question["window"]:
        flags.append("--all")
    code, out, err = world.command(False, "uids", *flags)
    assert code == 0, err
    lines = [line.split(" ") for line in out.splitlines()]
    assert all(world.uids[url] == int(uid) for uid, url in lines), out
    return in_order(world, [url for _, url in lines])


def uids_http(world, question):
    asked = {} if question["match"] == "all" else {"url": question["url"], "match": question["match"]}
    parts = world.pages("/v1/urls", asked | fields(question["window"]), question["limit"])
    if json_of(parts[0]):
        return NOT_IN_STORE if question["match"] == "exact" else []
    urls = [(u["uid"], u["url"]) for part in parts for u in part["urls"]]
    assert all(world.uids[url] == uid for uid, url in urls), urls
    return in_order(world, [url for _, url in urls])


def uids_grpc(world, question):
    pb, window = world.pb, seconds(question["window"])
    asked = (
        {}
        if question["match"] == "all"
        else {"url": question["url"], "match": ["exact", "prefix", "host", "domain", "surt"].index(question["match"])}
    )
    uids = [uid for part in world.grpc.ListUids(pb.ListUidsRequest(**asked, **window)) for uid in part.uids]
    names = list(world.grpc.UidToUrl(pb.UidToUrlRequest(uids=uids)).urls)
    assert list(world.grpc.UrlToUid(pb.UrlToUidRequest(urls=names)).uids_plus_one) == [uid + 1 for uid in uids], names
    return in_order(world, names)


# translate: the UIDs of an earlier epoch.
STRANGE = "a UID that the epoch does not have"


def make_translate(rng, world):
    """UIDs of an epoch, now and then with one that it does not have."""
    if not world.named:
        return None
    epoch = rng.choice(sorted(world.named))
    uids = sorted(world.named[epoch])
    strange = [rng.randrange(1 << 20, 1 << 40)] if not uids or rng.random() < 0.1 else []
    return {"epoch": epoch, "uids": rng.sample(uids, min(len(uids), 4)) + strange}


def expect_translate(world, question, face):
    """A UID whose URL was dropped is gone, also if the URL came back later."""
    named = world.named.get(question["epoch"], {})
    if any(uid not in named for uid in question["uids"]):
        return STRANGE
    later = [urls for epoch, urls in world.named.items() if epoch > question["epoch"]]
    urls = [named.get(uid) for uid in question["uids"]]
    return [world.uids.get(url) if all(url in urls.values() for urls in later) else None for url in urls]


def translate_command(world, question):
    code, out, err = world.command(False, "uids", "--translate", str(question["epoch"]), *map(str, question["uids"]))
    if "unknown UID" in err:
        return STRANGE
    assert code == 0, err
    return [None if line == "-" else int(line) for line in out.splitlines()]


def translate_http(world, question):
    got = world.json("/v1/translate", {"uid": question["uids"], "from": question["epoch"]})
    if got == {"failed": "UNKNOWN_UID"}:
        return STRANGE
    assert [row["uid"] for row in got["uids"]] == question["uids"], got
    return [row["translated"] for row in got["uids"]]


def translate_grpc(world, question):
    asked = world.pb.TranslateUidsRequest(**{"from": question["epoch"]}, uids=question["uids"])
    try:
        got = world.grpc.TranslateUids(asked)
    except grpc.RpcError as error:
        assert "unknown UID" in error.details(), error
        return STRANGE
    return [uid - 1 if uid else None for uid in got.uids_plus_one]


# bare: a URL without a scheme.


def make_bare(rng, world):
    """One that means one URL, by the rules of the book."""
    url = a_url(rng, world)
    if url is None:
        return None
    bare, model = url.split("://")[1], world.model
    both = [u for u in ("http://" + bare, "https://" + bare) if is_there(world, u)]
    captured = [u for u in both if u in model.pages]
    if len(both) == 1 or len(captured) == 1:
        return {"bare": bare, "url": (both if len(both) == 1 else captured)[0]}
    other = bare.removeprefix("www.") if bare.startswith("www.") else "www." + bare
    captured = [u for u in ("http://" + other, "https://" + other) if u in model.pages]
    return {"bare": bare, "url": captured[0]} if not both and len(captured) == 1 else None


def bare_command(at_server):
    def ask(world, question):
        code, out, err = world.command(at_server, "captures", question["bare"], "--format", "json")
        assert code == 0, err
        return json.loads(out)["url"]

    return ask


def bare_http(world, question):
    return world.json("/v1/captures", {"url": question["bare"]})["url"]


# suggest: how often the pages that it offers were captured, and how many pages link to them.


def make_suggest(rng, world):
    url = a_url(rng, world)
    return url and {"q": rng.choice([url, host(url), host(url)[:3], url.split("://")[1][:-1]])}


def suggest_http(world, question):
    model, got = world.model, world.json("/v1/suggest", dict(question))
    for page in got["pages"]:
        times = [c.ts for c in model.captures(page["url"])]
        wanted = {"url": page["url"], "captures": len(times), "inlinks": len(model.sources(page["url"], {})[0])}
        wanted |= {"first": iso(min(times)), "last": iso(max(times))} if times else {}
        assert page == wanted and page["url"] in model.urls(), (page, wanted)
    for one in got["hosts"]:
        assert one["urls"] == sum(host(u) == one["host"] for u in model.urls()), one
    return True


KINDS = {
    "neighbourhood": Kind(
        3,
        make_pages,
        columns_or_rows,
        {"command": command(False), "server": command(True), "http": over_http, "grpc": over_grpc},
    ),
    "ways": Kind(
        3,
        make_ways,
        expect_ways,
        {"command": ways_command(False), "server": ways_command(True), "http": ways_http, "grpc": ways_grpc},
    ),
    "uids": Kind(2, make_uids, expect_uids, {"command": uids_command, "http": uids_http, "grpc": uids_grpc}),
    "translate": Kind(
        1,
        make_translate,
        expect_translate,
        {"command": translate_command, "http": translate_http, "grpc": translate_grpc},
    ),
    "bare": Kind(
        1,
        make_bare,
        lambda world, question, face: question["url"],
        {"command": bare_command(False), "server": bare_command(True), "http": bare_http},
    ),
    "suggest": Kind(1, make_suggest, lambda world, question, face: True, {"http": suggest_http}),
}

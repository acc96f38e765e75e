"""Links of pages and to URLs: in windows, as of a time, counted, sampled, and of several URLs together."""

import collections
import json

from brute.model import matches
from brute.question import (
    NOT_IN_STORE,
    Kind,
    a_url,
    a_window,
    fields,
    in_order,
    is_there,
    json_of,
    once,
    options,
    refused,
    rpc_window,
    seconds,
)

# links: one URL, one window.


def make(rng, world):
    url = a_url(rng, world, is_page=rng.random() < 0.5)
    direction = rng.choice(["out", "in"])
    return url and {
        "url": url,
        "direction": direction,
        "window": a_window(rng, world),
        "limit": rng.choice([None, 1, 2]),
    }


def answer(world, question):
    """(links, those of which it is unknown) of the model."""
    window = seconds(question["window"])
    if question["direction"] == "in":
        yes, unknown = world.model.sources(question["url"], window)
        return sorted(yes), sorted(unknown)
    links, is_unknown = world.model.links(question["url"], window)
    return sorted(links), [question["url"]] if is_unknown else []


def expect(world, question, face):
    if not is_there(world, question["url"]):
        return NOT_IN_STORE
    links, unknown = answer(world, question)
    return {"links": links} if face == "text" else {"links": links, "unknown": unknown, **last_known(world, question)}


def last_known(world, question):
    """The links that a page had when they were last known, if they are unknown as of a time."""
    window = seconds(question["window"])
    if question["direction"] == "in" or "at" not in window:
        return {"last known": []}
    return {"last known": sorted(world.model.last_known(question["url"], window))}


def unknown_of(question, value):
    """The list of what is unknown, from `true` for the links of a page."""
    if question["direction"] == "out":
        assert value in (None, False, True), value
        return [question["url"]] if value else []
    return once(value or [])


def command(at_server):
    def ask(world, question):
        way = ["--in"] if question["direction"] == "in" else []
        done = world.command(
            at_server, "links", question["url"], *way, *options(question["window"]), "--format", "json"
        )
        if refused(done):
            return NOT_IN_STORE
        got = json.loads(done[1])
        return shown_of(question, got)

    return ask


def shown_of(question, got):
    return {
        "links": once(got["links"]),
        "unknown": unknown_of(question, got.get("unknown")),
        "last known": once(got.get("unknown_links", [])),
    }


def text(world, question):
    way = ["--in"] if question["direction"] == "in" else []
    done = world.command(False, "links", question["url"], *way, *options(question["window"]))
    return refused(done) or {"links": once(done[1].splitlines())}


def query_fields(question):
    return {
        "id": 7,
        "op": "links",
        "url": question["url"],
        "direction": question["direction"],
        **fields(question["window"]),
    }


def query_answer(question, got):
    if "error" in got:
        assert "not in store" in got["error"], got
        return NOT_IN_STORE
    return shown_of(question, got)


def query(at_server):
    return lambda world, question: query_answer(question, world.query(at_server, query_fields(question)))


def posted(world, question):
    status, body, _ = world.get("/v1/query", body=json.dumps(query_fields(question)) + "\n")
    assert status == 200, body
    return query_answer(question, json.loads(body))


def over_http(world, question):
    asked = {"url": question["url"], "direction": question["direction"], **fields(question["window"])}
    parts = world.pages("/v1/links", asked, question["limit"])
    if json_of(parts[0]):
        return NOT_IN_STORE
    # An answer in parts has what is unknown in each part, and no part has more than the limit.
    links = [link for part in parts for link in part["links"]]
    unknowns = [unknown_of(question, part.get("unknown")) for part in parts]
    if question["limit"] and question["direction"] == "out":
        assert all(len(part["links"]) <= question["limit"] for part in parts), parts
        assert len(set(map(tuple, unknowns))) == 1, parts
    unknown = sorted({u for part in unknowns for u in part})
    last_known = {link for part in parts for link in part.get("unknown_links", [])}
    return {"links": in_order(world, links), "unknown": unknown, "last known": sorted(last_known)}


def over_grpc(world, question):
    pb = world.pb
    uid = world.grpc.UrlToUid(pb.UrlToUidRequest(urls=[question["url"]])).uids_plus_one[0]
    if not uid:
        return NOT_IN_STORE
    links, unknown, last_known, token, epoch = [], None, [], "", 0
    while True:
        got = world.grpc.GetLinks(
            pb.GetLinksRequest(
                epoch=epoch,
                uids=[uid - 1],
                direction=int(question["direction"] == "in"),
                window=rpc_window(world, question["window"]),
                limit=question["limit"] or 0,
                page_token=token,
            )
        )
        assert sum(got.counts) == len(got.links), got
        links += got.links
        if unknown is None:
            unknown, last_known = list(got.unknown), list(got.last_known)
        token, epoch = got.next_page_token, got.epoch
        if not token:
            break
    assert all(a < b for a, b in zip(links, links[1:])), links
    assert all(a < b for a, b in zip(unknown, unknown[1:])), unknown
    found = {"links": links, "unknown": unknown, "last known": last_known}
    return {name: sorted(world.urls[u] for u in uids) for name, uids in found.items()}


# count: the number of links, and of pages of which it is unknown.


def expect_count(world, question, face):
    if not is_there(world, question["url"]):
        return NOT_IN_STORE
    links, unknown = answer(world, question)
    shown = len(unknown) if face == "grpc" or question["direction"] == "in" else bool(unknown)
    return {"count": len(links), "unknown": shown}


def count_command(world, question):
    way = ["--in"] if question["direction"] == "in" else []
    done = world.command(
        False, "links", question["url"], *way, *options(question["window"]), "--count", "--format", "json"
    )
    if refused(done):
        return NOT_IN_STORE
    got, nothing = json.loads(done[1]), 0 if question["direction"] == "in" else False
    return {"count": got["count"], "unknown": got.get("unknown", nothing)}


def count_http(world, question):
    got = world.json(
        "/v1/links",
        {"url": question["url"], "direction": question["direction"], "count": "true", **fields(question["window"])},
    )
    nothing = 0 if question["direction"] == "in" else False
    return json_of(got) or {"count": got["count"], "unknown": got.get("unknown", nothing)}


def count_grpc(world, question):
    pb = world.pb
    uid = world.uids.get(question["url"])
    if uid is None:
        return NOT_IN_STORE
    got = world.grpc.GetLinkCount(
        pb.GetLinkCountRequest(
            uids=[uid, uid], direction=int(question["direction"] == "in"), window=rpc_window(world, question["window"])
        )
    )
    assert len(set(got.counts)) == 1 and len(got.counts) == 2, got
    return {"count": got.counts[0], "unknown": got.unknown_counts[0] if got.unknown_counts else 0}


# sample: links of the answer, as many as asked for; and in-links at range precision, never too few.


def make_sample(rng, world):
    question = make(rng, world)
    return question and {
        **question,
        "samples": rng.choice([1, 2, 5]),
        "random": rng.random() < 0.5,
        "seed": rng.choice([0, 7]),
    }


def sampled(world, question, draw):
    """True if the two draws are alike, and are as many links of the answer as asked for."""
    if not is_there(world, question["url"]):
        return True
    links = set(answer(world, question)[0])
    first, second = draw(), draw()
    assert first == second, (first, second)
    assert set(first) <= links and len(set(first)) == len(first) == min(question["samples"], len(links)), (first, links)
    return True


def sample_command(world, question):
    way = ["--in"] if question["direction"] == "in" else []
    how = ["--random", "--seed", str(question["seed"])] if question["random"] else []

    def draw():
        done = world.command(
            False,
            "links",
            question["url"],
            *way,
            *options(question["window"]),
            "--sample",
            str(question["samples"]),
            *how,
            "--format",
            "json"
        )
        return json.loads(done[1])["links"]

    return sampled(world, question, draw)


def sample_http(world, question):
    how = {"random": "true", "seed": question["seed"]} if question["random"] else {}
    asked = {
        "url": question["url"],
        "direction": question["direction"],
        **fields(question["window"]),
        "sample": question["samples"],
        **how,
    }
    return sampled(world, question, lambda: world.json("/v1/links", asked)["links"])


def sample_grpc(world, question):
    pb = world.pb

    def draw():
        got = world.grpc.SampleLinks(
            pb.SampleLinksRequest(
                uids=[world.uids[question["url"]]],
                direction=int(question["direction"] == "in"),
                window=rpc_window(world, question["window"]),
                samples=question["samples"],
                random=question["random"],
                seed=question["seed"] if question["random"] else None,
            )
        )
        return [world.urls[uid] for uid in got.links]

    return sampled(world, question, draw)


def make_range(rng, world):
    question = make(rng, world)
    return question and {**question, "direction": "in"}


def within(world, question, got):
    """True if no page is missing, and none is there that never linked. A page with several records of one second may
    have linked before the last of them came."""
    if not is_there(world, question["url"]):
        return got == NOT_IN_STORE
    links = set(answer(world, question)[0])
    seconds = collections.Counter((one.url, one.ts) for batch in world.crawl.batches for one in batch)
    ever = set(world.model.sources(question["url"], {})[0]) | {url for (url, _), count in seconds.items() if count > 1}
    assert links <= set(got) <= ever, {"least": sorted(links), "got": sorted(got), "most": sorted(ever)}
    return True


def range_command(world, question):
    done = world.command(False, "links", question["url"], "--in", "--range-precision", *options(question["window"]))
    return within(world, question, refused(done) or once(done[1].splitlines()))


def range_http(world, question):
    got = world.json(
        "/v1/links", {"url": question["url"], "direction": "in", "precision": "range", **fields(question["window"])}
    )
    return within(world, question, json_of(got) or in_order(world, got["links"]))


def range_grpc(world, question):
    if question["url"] not in world.uids:
        return True
    got = world.grpc.GetLinks(
        world.pb.GetLinksRequest(
            uids=[world.uids[question["url"]]], direction=2, window=rpc_window(world, question["window"])
        )
    )
    return within(world, question, [world.urls[uid] for uid in got.links])


# matching: the links of all URLs of a prefix, a host or a domain, one list each; of all spellings, one list.


def make_matching(rng, world):
    question = make(rng, world)
    return question and {**question, "match": rng.choice(["prefix", "host", "domain"])}


def expect_matching(world, question, face):
    items = {}
    for url in world.model.urls():
        if matches(url, question["match"], question["url"]):
            links, unknown = answer(world, {**question, "url": url})
            if links or unknown:
                items[url] = {"links": links, "unknown": unknown}
    return items


def matching_http(world, question):
    asked = {
        "url": question["url"],
        "direction": question["direction"],
        "match": question["match"],
        **fields(question["window"]),
    }
    items, order = {}, []
    for part in world.pages("/v1/links", asked, question["limit"]):
        if json_of(part):
            return {}
        for item in part["items"]:
            assert world.uids[item["url"]] == item["uid"], item
            if item["url"] not in order:
                order.append(item["url"])
            one = items.setdefault(item["url"], {"links": [], "unknown": set()})
            one["links"] += item["links"]
            one["unknown"] |= set(unknown_of({**question, "url": item["url"]}, item.get("unknown")))
    in_order(world, order)
    return {
        url: {"links": in_order(world, one["links"]), "unknown": sorted(one["unknown"])} for url, one in items.items()
    }


def expect_spellings(world, question, face):
    model, window = world.model, seconds(question["window"])
    spellings = model.spellings(question["url"])
    if not spellings:
        return NOT_IN_STORE
    if question["direction"] == "in":
        found = [model.sources(url, window) for url in spellings]
        yes = {page for links, _ in found for page in links}
        unknown = sorted({page for _, unknown in found for page in unknown} - yes)
        return {"links": sorted(yes), "unknown": unknown, "last known": []}
    if "at" not in window:
        found = [model.links(url, window) for url in spellings]
        is_open = any(is_open for _, is_open in found)
        links = sorted({link for links, _ in found for link in links})
        return {"links": links, "unknown": [question["url"]] if is_open else [], "last known": []}
    captures = [capture for url in spellings for capture in model.captures(url)]
    latest = model.deciding(captures, window["at"], window.get("failures", "end"), window.get("age"))
    if latest is None:
        return {"links": [], "unknown": [], "last known": []}
    is_open = not latest.is_whole
    return {
        "links": sorted(latest.links or ()),
        "unknown": [question["url"]] if is_open else [],
        "last known": sorted(model.last_known(latest.url, window)) if is_open else [],
    }


def make_spellings(rng, world):
    """Of spellings that were captured in one second, the book does not say which one decides."""
    question = make(rng, world)
    if question is None:
        return None
    times = [capture.ts for url in world.model.spellings(question["url"]) for capture in world.model.captures(url)]
    return question if len(set(times)) == len(times) else None


def spellings_command(at_server):
    def ask(world, question):
        way = ["--in"] if question["direction"] == "in" else []
        done = world.command(
            at_server,
            "links",
            question["url"],
            *way,
            *options(question["window"]),
            "--match",
            "surt",
            "--format",
            "json"
        )
        if refused(done):
            return NOT_IN_STORE
        got = json.loads(done[1])
        assert set(got["spellings"]) == world.model.spellings(question["url"]), got["spellings"]
        return shown_of(question, got)

    return ask


def spellings_query(at_server):
    return lambda world, question: query_answer(
        question, world.query(at_server, {**query_fields(question), "match": "surt"})
    )


def spellings_http(world, question):
    asked = {
        "url": question["url"],
        "direction": question["direction"],
        "match": "surt",
        **fields(question["window"]),
    }
    parts = world.pages("/v1/links", asked, question["limit"])
    if json_of(parts[0]):
        return NOT_IN_STORE
    unknown = {u for part in parts for u in unknown_of(question, part.get("unknown"))}
    last_known = {link for part in parts for link in part.get("unknown_links", [])}
    links = in_order(world, [link for part in parts for link in part["links"]])
    return {"links": links, "unknown": sorted(unknown), "last known": sorted(last_known)}


ALWAYS = lambda world, question, face: True
KINDS = {
    "links": Kind(
        10,
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
    "count": Kind(2, make, expect_count, {"command": count_command, "http": count_http, "grpc": count_grpc}),
    "sample": Kind(1, make_sample, ALWAYS, {"command": sample_command, "http": sample_http, "grpc": sample_grpc}),
    "range": Kind(1, make_range, ALWAYS, {"command": range_command, "http": range_http, "grpc": range_grpc}),
    "matching": Kind(3, make_matching, expect_matching, {"http": matching_http}),
    "spellings": Kind(
        3,
        make_spellings,
        expect_spellings,
        {
            "command": spellings_command(False),
            "server": spellings_command(True),
            "query": spellings_query(False),
            "query server": spellings_query(True),
            "http": spellings_http,
        },
    ),
}

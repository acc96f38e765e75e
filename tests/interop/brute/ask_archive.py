"""What tools of web archives ask: TimeMaps, the TimeGate, and captures as a CDX server lists them."""

import json
import re
from email.utils import formatdate

from brute.model import FOREVER, below, digits, host, iso, matches, second, urlkey
from brute.question import NOT_IN_STORE, Kind, a_time, a_url, a_window, fields, options, seconds

REPLAY = "https://web.archive.org/web/"


def memento(capture):
    return f"{REPLAY}{digits(capture.ts)}/{capture.url}"


def of_page(world, url, window):
    """The captures of all spellings of a page, in order of time."""
    first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
    found = [c for u in world.model.spellings(url) for c in world.model.captures(u) if first <= c.ts <= last]
    return sorted(found, key=lambda c: (c.ts, c.url))


# TimeMaps.


def make(rng, world):
    url = a_url(rng, world, is_page=True)
    return url and {
        "url": url,
        "window": a_window(rng, world, ("all", "seen")),
        "format": rng.choice(["link", "json", "text"]),
    }


def expect(world, question, face):
    window = {} if face == "http" else seconds(question["window"])
    found = of_page(world, question["url"], window)
    if not found:
        return NOT_IN_STORE
    return sorted((memento(c), iso(c.ts)) for c in found)


def mementos(text, kind):
    """(URL, time) of the mementos of a TimeMap."""
    if kind == "text":
        return [(line, iso(second(line.removeprefix(REPLAY)[:14]))) for line in text.splitlines()]
    if kind == "json":
        return [(m["uri"], m["datetime"]) for m in json.loads(text)["mementos"]["list"]]
    found = []
    for url, rest in re.findall(r'<([^>]*)>; (rel="[^"]*"(?:; \w+="[^"]*")*)', text):
        rel = re.search(r'rel="([^"]*)"', rest)[1].split()
        if "memento" in rel:
            when = re.search(r'datetime="([^"]*)"', rest)[1]
            at = second(url.removeprefix(REPLAY)[:14])
            assert when == formatdate(at, usegmt=True), (url, when)
            found.append((url, iso(at), rel))
    if found:
        assert (
            "first" in found[0][2] and "last" in found[-1][2] and sum(len(f[2]) for f in found) == len(found) + 2
        ), text
    return [one[:2] for one in found]


def in_time(rows):
    assert [at for _, at in rows] == sorted(at for _, at in rows), rows
    return sorted(rows)


def command(at_server):
    def ask(world, question):
        done = world.command(
            at_server, "timemap", question["url"], "--format", question["format"], *options(question["window"])
        )
        if done[0] == 1 and not done[1]:
            return NOT_IN_STORE
        return in_time(mementos(done[1], question["format"]))

    return ask


def over_http(world, question):
    kind = "json" if question["format"] == "json" else "link"
    status, body, _ = world.get(f"/timemap/{kind}/{question['url']}")
    return NOT_IN_STORE if status == 404 else in_time(mementos(body, kind))


# The TimeGate.


def make_gate(rng, world):
    url = a_url(rng, world, is_page=True)
    return url and {"url": url, "at": rng.choice([None, a_time(rng, world, True)[1]])}


def expect_gate(world, question, face):
    found = of_page(world, question["url"], {})
    if not found:
        return NOT_IN_STORE
    at = FOREVER if question["at"] is None else question["at"]
    least = min(abs(c.ts - at) for c in found)
    return sorted(memento(c) for c in found if abs(c.ts - at) == least)


def gate(world, question):
    """All the nearest captures, if the answer is one of them."""
    headers = {} if question["at"] is None else {"Accept-Datetime": formatdate(question["at"], usegmt=True)}
    status, _, answer = world.get(f"/timegate/{question['url']}", headers=headers)
    if status == 404:
        return NOT_IN_STORE
    assert status in (302, 307) and "accept-datetime" in answer["Vary"].lower(), (status, answer["Vary"])
    nearest = expect_gate(world, question, "http")
    return nearest if answer["Location"] in nearest else [answer["Location"]]


# /cdx


def make_cdx(rng, world):
    url = a_url(rng, world, is_page=True)
    if url is None:
        return None
    question = {
        "url": url,
        "match": rng.choice(["exact", "exact", "prefix", "host", "domain"]),
        "window": {},
        "filter": None,
        "limit": rng.choice([None, None, 1, 3, -1, -2]),
        "offset": rng.choice([None, None, 1]),
        "sort": None,
        "collapse": rng.choice([None, None, "timestamp:4", "timestamp:6", "urlkey"]),
        "output": rng.choice(["text", "json", "cdxj"]),
    }
    if rng.random() < 0.4:
        question["window"] = a_window(rng, world, ("seen",))
    if rng.random() < 0.4:
        question["filter"] = rng.choice(["statuscode:200", "!statuscode:200", "statuscode:4..", "!statuscode:[45].."])
    if rng.random() < 0.3:
        question["sort"], question["collapse"], question["offset"] = "reverse", None, None
        question["limit"] = rng.choice([None, 2])
    if question["output"] == "cdxj":
        question["filter"] = None
    if (question["limit"] or 0) < 0:
        question["offset"] = None
    return question


def is_listed(url, question):
    """Hosts and prefixes are meant with and without www."""
    bare = lambda u: re.sub(r"^(https?://)www\.", r"\1", u)
    if question["match"] == "exact":
        return urlkey(url) == urlkey(question["url"])
    if question["match"] == "domain":
        return below(host(bare(url)), host(bare(question["url"])))
    return matches(bare(url), question["match"], bare(question["url"]))


def lines_of(world, question):
    window = seconds(question["window"])
    first, last = window.get("from", -FOREVER), window.get("to", FOREVER)
    found = [
        c
        for u in world.model.urls()
        if is_listed(u, question)
        for c in world.model.captures(u)
        if first <= c.ts <= last
    ]
    key = (lambda c: c.ts) if question["match"] == "exact" else (lambda c: (world.uids[c.url], c.ts))
    found.sort(key=key, reverse=question["sort"] == "reverse")
    if question["filter"]:
        wants = not question["filter"].startswith("!")
        pattern = question["filter"].split(":", 1)[1]
        found = [c for c in found if bool(re.fullmatch(pattern, str(c.status))) == wants]
    if question["collapse"]:
        by = {
            "urlkey": lambda c: urlkey(c.url),
            "timestamp:4": lambda c: digits(c.ts)[:4],
            "timestamp:6": lambda c: digits(c.ts)[:6],
        }[question["collapse"]]
        found = [c for i, c in enumerate(found) if i == 0 or by(c) != by(found[i - 1])]
    found = found[question["offset"] or 0 :]
    limit = question["limit"]
    return found if limit is None else found[:limit] if limit > 0 else found[limit:]


def expect_cdx(world, question, face):
    lines = lines_of(world, question)
    if question["match"] == "exact":
        # Captures of several spellings in one second have no order among them.
        times = [c.ts for u in world.model.spellings(question["url"]) for c in world.model.captures(u)]
        if len(set(times)) < len(times):
            return len(lines) if not question["collapse"] else None
    return [(urlkey(c.url), digits(c.ts), c.url, str(c.status)) for c in lines]


def cdx(world, question):
    asked = {"url": question["url"], "matchType": question["match"], "output": question["output"]}
    asked |= {
        name: question[name] for name in ("limit", "offset", "sort", "filter", "collapse") if question[name] is not None
    }
    status, body, _ = world.get("/cdx", asked | fields(question["window"]))
    if question["output"] == "cdxj":
        assert status in (200, 404), body
        parts = [line.split(" ", 2) for line in body.splitlines()] if status == 200 else []
        rows = [(key, at, json.loads(rest)["url"], json.loads(rest)["status"]) for key, at, rest in parts]
    else:
        assert status == 200, body
        rows = (
            [line.split(" ") for line in body.splitlines()]
            if question["output"] == "text"
            else json.loads(body or "[]")[1:]
        )
        assert all(len(row) == 7 and row[3] == row[5] == row[6] == "-" for row in rows), rows
        rows = [(row[0], row[1], row[2], row[4]) for row in rows]
    wanted = expect_cdx(world, question, "http")
    return rows if isinstance(wanted, list) else len(rows) if wanted is not None else None


def cdx_pages(world, question):
    """All lines by resume keys, three at a time."""
    asked = {
        "url": question["url"],
        "matchType": question["match"],
        "limit": 3,
        "showResumeKey": "true",
        **fields(question["window"]),
    }
    rows = []
    while True:
        status, body, _ = world.get("/cdx", asked)
        assert status == 200, body
        lines, _, key = body.partition("\n\n") if "\n\n" in body else (body, "", "")
        rows += [tuple(line.split(" ")[i] for i in (0, 1, 2, 4)) for line in lines.splitlines() if line]
        if not key.strip():
            break
        asked["resumeKey"] = key.strip()
    wanted = expect_cdx(world, {**question, "limit": None}, "http")
    return rows if isinstance(wanted, list) else len(rows) if wanted is not None else None


PLAIN = {"filter": None, "collapse": None, "offset": None, "sort": None, "limit": None, "output": "text"}
KINDS = {
    "timemap": Kind(2, make, expect, {"command": command(False), "server": command(True), "http": over_http}),
    "timegate": Kind(1, make_gate, expect_gate, {"http": gate}),
    "cdx": Kind(3, make_cdx, expect_cdx, {"http": cdx}),
    "cdx in parts": Kind(
        1, lambda rng, world: (lambda q: q and {**q, **PLAIN})(make_cdx(rng, world)), expect_cdx, {"http": cdx_pages}
    ),
}

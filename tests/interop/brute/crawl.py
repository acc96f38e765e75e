"""Small made-up crawls, the files that they are written to, and the jobs that make a store of them."""

import base64
import gzip
import hashlib
import json
import os
import random
from dataclasses import dataclass, field

from brute.model import Input, Rule, canonical, digits, iso, second

HOSTS = [
    "a.example",
    "www.a.example",
    "sub.a.example",
    "deep.sub.a.example",
    "b.example",
    "c.co.uk",
    "www.c.co.uk",
    "d.co.uk",
    "e.org",
    "münchen.example",
]
PATHS = [
    "/",
    "/x",
    "/x/",
    "/x/y",
    "/x/yz",
    "/X",
    "/q?b=2&a=1",
    "/q?a=1&b=2",
    "/häuser",
    "/^",
    "/x?",
    "/%7Eu",
    "/z.html",
]


@dataclass
class Crawl:
    seed: int
    redirects: bool
    partition_urls: int | None
    in_range: str
    batches: list = field(default_factory=list)  # lists of Input
    jobs: list = field(default_factory=list)  # (name, arguments) in order

    def without(self, dropped):
        """The same crawl without some captures, by (batch, index)."""
        batches = [[c for i, c in enumerate(batch) if (b, i) not in dropped] for b, batch in enumerate(self.batches)]
        return Crawl(self.seed, self.redirects, self.partition_urls, self.in_range, batches, self.jobs)


def digest(links):
    return "sha1:" + base64.b32encode(hashlib.sha1("\n".join(links).encode()).digest()).decode()


def url_of(rng):
    scheme = rng.choices(["http", "https"], [4, 1])[0]
    port = rng.choices(["", ":8080"], [12, 1])[0]
    path = rng.choice(PATHS) if rng.random() < 0.95 else "/" + "l" * rng.choice([300, 3000])
    return canonical(f"{scheme}://{rng.choice(HOSTS)}{port}{path}")


def make(seed, scale=1):
    """The crawl of a seed; of a larger `scale` it has more URLs and links."""
    rng = random.Random(seed)
    crawl = Crawl(
        seed, rng.random() < 0.4, rng.choice([None, 3, 7, 20]), rng.choice(["month", "month", "year", "day", "10"])
    )
    urls = sorted({url_of(rng) for _ in range(rng.randint(4, 24) * scale)})
    pages = rng.sample(urls, rng.randint(1, max(1, len(urls) * 2 // 3)))
    start, span = second("20060101000000"), rng.choice([40, 86400 * 30, 86400 * 900])
    spelled = lambda page: spell(rng, rng.choice(urls), page)
    captures, good = [], []
    for page in pages:
        menu = [spelled(page) for _ in range(rng.randint(0, 5 * scale))]
        for _ in range(rng.choice([1, 1, 2, 3, 5, 9, 14])):
            ts = start + rng.randrange(span)
            if rng.random() < 0.05:
                ts = rng.choice(captures).ts if captures else ts
            kind = rng.choices(
                ["good", "empty", "unknown", "dead", "failing", "moved", "other", "again", "copy", "early", "cut"],
                [50, 4, 7, 9, 7, 6, 3, 10, 6, 1, 8],
            )[0]
            one = Input(page, ts)
            if kind == "good":
                if rng.random() < 0.4 and menu:
                    menu = [link for link in menu if rng.random() < 0.8]
                if rng.random() < 0.4:
                    menu = menu + [spelled(page)]
                one.links = list(dict.fromkeys(menu))
                one.status = rng.choice([None, 200])
                one.digest = digest(one.links) if rng.random() < 0.6 else None
                good.append(one)
            elif kind == "empty":
                one.links = []
            elif kind == "dead":
                one.status = rng.choice([404, 404, 410, 403])
            elif kind == "failing":
                one.status = rng.choice([500, 503, 429, 503, 600])
            elif kind == "moved":
                one.status = rng.choice([301, 302, 307, 308])
                target = canonical(rng.choice(urls))
                one.redirect, one.links = rng.choice([(target, None), (None, [target]), (None, None)])
            elif kind == "other":
                one.status = rng.choice([204, 201])
            elif kind == "again":
                own = [c for c in good if c.url == page]
                if rng.random() < 0.3:
                    one.status = 304
                elif own and rng.random() < 0.85:
                    before = rng.choice(own)
                    one.refers_to = (rng.choice([None, page]), before.ts)
                    one.digest = rng.choice([None, before.digest])
                    one.status = rng.choice([None, None, 304])
                    one.is_unmodified = one.status == 304 and rng.random() < 0.5
                else:
                    one.refers_to = (None, start + rng.randrange(span))
            elif kind == "copy":
                others = [c for c in good if c.url != page and c.digest]
                if others:
                    before = rng.choice(others)
                    one.refers_to, one.digest = (before.url, before.ts), before.digest
                else:
                    one.refers_to, one.digest = ("http://elsewhere.example/", start), digest(["nowhere"])
            elif kind == "cut":
                one.links = list(dict.fromkeys(link for link in menu if rng.random() < 0.6))
                one.status, one.cut = rng.choice([(None, "truncated"), (200, "truncated"), (206, None)])
                one.digest = digest(one.links) if rng.random() < 0.3 else None
                good.append(one)
            elif kind == "early":
                one.status = rng.choice([199, 100, 1000])
            captures.append(one)
    captures = settled(captures)
    if rng.random() < 0.3:
        captures += rng.sample(captures, min(3, len(captures)))
    rng.shuffle(captures)
    count = rng.choice([1, 2, 2, 3, 4, 5])
    crawl.batches = [captures[i::count] for i in range(count)]
    if rng.random() < 0.3:
        crawl.batches = [sorted(batch, key=lambda c: c.ts) for batch in crawl.batches]
    crawl.jobs.append(("build", 0))
    for i in range(1, count):
        crawl.jobs.append(("update", (i, rng.random() < 0.7)))
        if rng.random() < 0.15:
            crawl.jobs.append(("merge", rng.choice(["2", "all"])))
        if rng.random() < 0.25:
            crawl.jobs.append(("remove", (removal(rng, urls, captures), rng.random() < 0.7)))
    if rng.random() < 0.15:
        crawl.jobs.append(("remove", (removal(rng, urls, captures), rng.random() < 0.7)))
    if rng.random() < 0.2:
        crawl.jobs.append(("merge", "all"))
    if rng.random() < 0.5:
        crawl.jobs.append(("cells", rng.choice(["strata", "strata-speed"])))
    return crawl


def settled(captures):
    """Of several revisits in one second, the book does not say which counts: one is left."""
    seconds = {}
    for one in captures:
        seconds.setdefault((one.url, one.ts), []).append(one)
    for group in seconds.values():
        revisits = [one for one in group if one.refers_to is not None or one.status == 304]
        group[:] = [one for one in group if one not in revisits[1:]]
    return [one for group in seconds.values() for one in group]


def spell(rng, url, page):
    """A link as a page may spell it."""
    kind = rng.random()
    if kind < 0.08:
        return rng.choice(["/x", "/x/y", "z.html", "//b.example/x", "?a=1", "../x"])
    return url + ("#part" if kind > 0.95 else "")


def removal(rng, urls, captures):
    rule = Rule(
        rng.choice(["url", "host", "domain", "prefix"]),
        rng.choice(urls),
        rng.choice(["page", "target", "both", "both"]),
    )
    if rng.random() < 0.3:
        rule.first = rng.choice(captures).ts
    if rng.random() < 0.3:
        rule.last = rng.choice(captures).ts
    if rule.first > rule.last:
        rule.first, rule.last = rule.last, rule.first
    return rule


# Files.


def write(batch, rng, folder, name):
    """Writes a batch as one to three files of formats that can say it. Returns their names."""
    os.makedirs(folder, exist_ok=True)
    parts = {}
    for one in batch:
        possible = ["json", "json", "parquet"] + (["warc"] * 2 if warc_can(one) else [])
        parts.setdefault(rng.choice(possible), []).append(one)
    writers = {"json": write_json, "parquet": write_parquet, "warc": write_warc}
    paths = []
    for kind, part in sorted(parts.items()):
        path = os.path.join(folder, f"{name}.{kind}")
        writers[kind](part, path)
        paths.append(path)
    return paths


def fields(one):
    revisit = None
    if one.refers_to is not None:
        page, at = one.refers_to
        profile = "server-not-modified" if one.is_unmodified else "identical-payload-digest"
        revisit = {
            "profile": f"http://netpreserve.org/warc/1.1/revisit/{profile}",
            "refers_to_target_uri": page,
            "refers_to_date": None if at is None else iso(at),
        }
    return {
        "url": one.url,
        "ts": digits(one.ts),
        "status": one.status,
        "links": one.links,
        "digest": one.digest,
        "revisit": revisit,
        "redirect": one.redirect,
        "cut": one.cut,
    }


def write_json(batch, path):
    with open(path, "w", encoding="utf-8") as file:
        for one in batch:
            file.write(json.dumps({k: v for k, v in fields(one).items() if v is not None}, ensure_ascii=False) + "\n")


def write_parquet(batch, path):
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [
            ("url", pyarrow.string()),
            ("ts", pyarrow.string()),
            ("status", pyarrow.int32()),
            ("links", pyarrow.list_(pyarrow.string())),
            ("digest", pyarrow.string()),
            (
                "revisit",
                pyarrow.struct(
                    [(name, pyarrow.string()) for name in ("profile", "refers_to_target_uri", "refers_to_date")]
                ),
            ),
            ("redirect", pyarrow.string()),
            ("cut", pyarrow.string()),
        ]
    )
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([fields(one) for one in batch], schema), path)


def warc_can(one):
    """A response of a WARC says what the links are; a revisit may say 304."""
    if one.refers_to is not None:
        return one.links is None
    if one.status == 304 or (one.status or 200) >= 400 or one.status in (201, 204):
        return True
    if one.status in (301, 302, 307, 308):
        return one.redirect is not None
    return one.status in (None, 200, 206) and one.links is not None


def write_warc(batch, path):
    opened = gzip.open if hash(len(batch)) % 2 else open
    with opened(path, "wb") as file:
        for i, one in enumerate(batch):
            is_revisit = one.refers_to is not None
            status = one.status or 200
            links = "".join(f'<a href="{link.replace("&", "&amp;")}">x</a>' for link in one.links or [])
            body = b"" if is_revisit or status not in (200, 206) else f"<html><body>{links}</body></html>".encode()
            location = f"Location: {one.redirect}\r\n" if one.redirect else ""
            http = (
                b""
                if is_revisit and one.status is None
                else (
                    f"HTTP/1.1 {status} X\r\nContent-Type: text/html; charset=utf-8\r\n{location}"
                    f"Content-Length: {len(body)}\r\n\r\n"
                ).encode()
                + body
            )
            head = [
                ("WARC-Type", "revisit" if is_revisit else "response"),
                ("WARC-Record-ID", f"<urn:uuid:00000000-0000-0000-0000-{i:012}>"),
                ("WARC-Target-URI", one.url),
                ("WARC-Date", iso(one.ts)),
                ("Content-Type", "application/http; msgtype=response"),
            ]
            if one.digest:
                head.append(("WARC-Payload-Digest", one.digest))
            if one.cut:
                head.append(("WARC-Truncated", "length"))
            if is_revisit:
                of = fields(one)["revisit"]
                head.append(("WARC-Profile", of["profile"]))
                if of["refers_to_target_uri"]:
                    head.append(("WARC-Refers-To-Target-URI", of["refers_to_target_uri"]))
                if of["refers_to_date"]:
                    head.append(("WARC-Refers-To-Date", of["refers_to_date"]))
            head.append(("Content-Length", str(len(http))))
            text = "".join(f"{name}: {value}\r\n" for name, value in head)
            file.write(f"WARC/1.1\r\n{text}\r\n".encode() + http + b"\r\n\r\n")

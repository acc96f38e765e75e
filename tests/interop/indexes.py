#!/usr/bin/env python3
"""Indexes beside crawl files, in any order: an index never hides what a WARC file says.

  indexes.py [--webstrata BINARY] [WARC]...

Indexes WARC files with cdxj-indexer (CDXJ) and with pywb's cdx-indexer (CDX of 9 and of 11 columns). Without WARC, it
makes them with warcio: pages, redirects, failures, images, and revisits of several kinds, some in one second. For each
index:

  - the index alone gives each capture of the WARC files, with the status if a line says it, and no link
  - the WARC files and the index at once, the WARC files first, and the index first, in updates that are merged, give
    the same bytes in all layers
  - captures and links are those of the WARC files alone, for each URL that the WARC files have as a page

Prints one line an index. Exit code 1 at the first difference. Needs cdxj-indexer, pywb and warcio.
"""
import argparse
import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def made(path, seed):
    """Writes a WARC file."""
    rng = Random(seed)
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=True)
        bodies = {}
        for number in range(400):
            page = rng.randrange(40)
            url = f"http://s{page % 7}.example/{page}"
            time = f"2020-01-{rng.randrange(1, 8):02}T00:00:{rng.randrange(3):02}Z"
            kind = rng.choice(["page", "page", "page", "same", "revisit", "bare", "redirect", "gone", "error", "image"])
            status, body, mime, headers = "200 OK", b"", "text/html", []
            if kind in ("page", "same"):
                links = rng.sample(range(60), rng.randrange(5))
                body = "".join(f'<a href="/{link}">x</a>' for link in links).encode() + f"<!--{url}-->".encode()
                body = bodies.setdefault(url, body) if kind == "same" else body
                bodies[url] = body
            elif kind == "redirect":
                status, headers = "302 Found", [("Location", f"/{rng.randrange(60)}")]
            elif kind in ("gone", "error"):
                status = "404 Not Found" if kind == "gone" else "503 Busy"
            elif kind == "image":
                mime, body = "image/png", b"\x89PNG"
            http = StatusAndHeaders(status, [("Content-Type", mime), *headers], protocol="HTTP/1.1")
            date = {"WARC-Date": time}
            if kind in ("revisit", "bare"):
                if url not in bodies:
                    continue
                digest = writer.create_warc_record(
                    url, "response", payload=io.BytesIO(bodies[url]), http_headers=http, warc_headers_dict=date
                )
                writer.ensure_digest(digest, block=False, payload=True)
                digest = digest.rec_headers.get_header("WARC-Payload-Digest")
                record = writer.create_revisit_record(
                    url, digest, url, time, http_headers=http if kind == "revisit" else None, warc_headers_dict=date
                )
            else:
                record = writer.create_warc_record(
                    url, "response", payload=io.BytesIO(body), http_headers=http, warc_headers_dict=date
                )
            writer.write_record(record)


def layers(store):
    """The digests of the layers of a store whose newest row is its only row, by layer and part."""
    row = max((store / "rows").iterdir())
    files = sorted(row.rglob("part-*.parquet"))
    return {str(path.relative_to(row)): hashlib.sha1(path.read_bytes()).hexdigest() for path in files}


def answers(binary, store, urls):
    lines = [json.dumps({"op": op, "url": url}) for url in urls for op in ("captures", "links")]
    found = map(json.loads, run(binary, "query", store, input="\n".join(lines)).splitlines())
    return [{key: value for key, value in answer.items() if key not in ("epoch", "line", "id")} for answer in found]


def captures(binary, store, url):
    done = subprocess.run([binary, "captures", store, url, "--format", "json"], capture_output=True, text=True)
    return json.loads(done.stdout)["captures"] if done.returncode == 0 else []


def check(binary, crawl, index, work):
    """Compares an index with its crawl files. Returns the lines of the index, and the captures of both."""
    stores = {}
    for name, steps in {
        "crawl": [[crawl]],
        "index": [[index]],
        "both": [[crawl, index]],
        "crawl-first": [[crawl], [index]],
        "index-first": [[index], [crawl]],
    }.items():
        store = stores[name] = work / name
        run(binary, "build", "--out", store, *steps[0])
        for inputs in steps[1:]:
            run(binary, "update", "--no-merge", store, *inputs)
            run(binary, "merge", "--rows", "all", store)
    expected = layers(stores["both"])
    for name in ("crawl-first", "index-first"):
        if (got := layers(stores[name])) != expected:
            other = sorted(key for key in {*got, *expected} if got.get(key) != expected.get(key))
            sys.exit(f"{index.name}: {name} and both at once differ in {other}")
    lines = [line for line in index.read_text().splitlines() if not line.startswith((" CDX", "!"))]
    is_json = index.suffix == ".cdxj"
    listed_urls = [json.loads(line.split(" ", 2)[2])["url"] if is_json else line.split(" ")[2] for line in lines]
    of_second = Counter(zip(listed_urls, (line.split(" ")[1] for line in lines)))
    urls = sorted({url for url in listed_urls if url.startswith("http")})
    pages = [url for url in urls if captures(binary, stores["crawl"], url)]
    of_crawl, of_both = (answers(binary, stores[name], pages) for name in ("crawl", "both"))
    for one, other in zip(of_crawl, of_both):
        if one != other:
            sys.exit(f"{index.name}: {one} without the index, {other} with it")
    if links := json.loads(run(binary, "info", stores["index"], "--format", "json"))["counts"]["links"]:
        sys.exit(f"{index.name}: the index alone gives {links} links")
    alone = 0
    for url in urls:
        listed = {capture["time"]: capture for capture in captures(binary, stores["index"], url)}
        alone += len(listed)
        for capture in captures(binary, stores["crawl"], url):
            same = listed.get(capture["time"])
            # An index may not say the status of a revisit, which then does not count beside a failure.
            is_single = of_second[url, re.sub(r"\D", "", capture["time"])] == 1
            if not same or is_single and same["status"] not in (200, capture["status"]):
                sys.exit(f"{index.name}: {url}: {capture} in the crawl, {same} in the index alone")
    return len(urls), alone, sum(len(answer.get("captures", [])) for answer in of_crawl)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", type=Path, default=Path("target/debug/webstrata"))
    parser.add_argument("warc", nargs="*", type=Path)
    args = parser.parse_args()
    binary, tools = args.webstrata.resolve(), Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        crawls = args.warc
        if not crawls:
            crawls = [directory / f"made-{seed}.warc.gz" for seed in (1, 2, 3)]
            for seed, path in enumerate(crawls):
                made(path, seed)
        for crawl in crawls:
            indexes = {
                "cdxj": run(tools / "cdxj-indexer", crawl),
                "9.cdx": run(tools / "cdx-indexer", "--sort", "-9", crawl),
                "11.cdx": run(tools / "cdx-indexer", "--sort", crawl),
            }
            for name, text in indexes.items():
                index = directory / f"index.{name}"
                index.write_text(text)
                with tempfile.TemporaryDirectory() as work:
                    urls, alone, known = check(binary, crawl.resolve(), index, Path(work))
                print(f"{crawl.name}, {name}: {urls} URLs, {alone} captures of the index alone, {known} with the crawl")


if __name__ == "__main__":
    main()

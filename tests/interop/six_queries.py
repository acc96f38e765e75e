#!/usr/bin/env python3
"""The six queries of the S-Node paper on a site: right answers, and what the order of keys is worth.

  six_queries.py CAPTURES.jsonl[.gz]... [--webstrata BINARY] [--example BINARY] [--rounds N]

Builds a store of the captures, and a store of the same captures with hashed URLs, so that neither hosts nor domains
stay together in key order. Makes the cells of both stores. Asks both stores the same six queries in turn, with sets in
files, and prints the median times and their ratio. Plain loops over the captures check the answers of the first store.
Needs publicsuffixlist.
"""
import argparse
import bisect
import gzip
import hashlib
import json
import random
import statistics
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

from publicsuffixlist import PublicSuffixList

SUFFIXES = PublicSuffixList()


def domain(url):
    host = urlsplit(url).hostname or ""
    return SUFFIXES.privatesuffix(host) or host


def hashed(url):
    name = hashlib.blake2b(url.encode(), digest_size=12).hexdigest()
    return f"http://{name[:6]}.{name[6:10]}.example/{name[10:]}"


def read(paths):
    pages = defaultdict(dict)
    for path in paths:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                links = pages[row["url"].split("#")[0]].setdefault(row["ts"], set())
                links.update(link.split("#")[0] for link in row["links"])
    return {url: sorted(captures.items()) for url, captures in pages.items()}


def write(pages, path, name):
    with open(path, "w", encoding="utf-8") as out:
        for url, captures in pages.items():
            for ts, links in captures:
                print(json.dumps({"url": name(url), "ts": ts, "links": sorted(map(name, links))}), file=out)


def greatest(counts):
    return len(counts), sorted(counts.values(), reverse=True)[:10]


def expected(links, sets):
    """Answers by plain loops; of ranked URLs the counts, since equal counts may come in any order."""
    into = defaultdict(set)
    for url, own in links.items():
        for link in own:
            into[link].add(url)
    first, second = sets
    of = lambda url: links.get(url, ())
    own = {domain(url) for url in first}
    both = own | {domain(url) for url in second}
    domains = Counter(domain(link) for url in first for link in of(url))
    popular = Counter({url: sum(domain(source) != domain(url) for source in into[url]) for url in first})
    induced = Counter(link for url in first for link in of(url) if link != url and link in first)
    counts = [Counter(link for url in some for link in of(url)) for some in sets]
    common = {link: sum(count[link] for count in counts) for link in counts[0].keys() & counts[1].keys()}
    return {
        1: greatest({name: count for name, count in domains.items() if name not in own}),
        2: [sum(link in second for url in first for link in of(url))],
        3: len(set(first).union(*(of(url) for url in first), *(into[url] for url in first))),
        4: greatest({url: count for url, count in popular.items() if count}),
        5: greatest(induced),
        6: greatest({link: count for link, count in common.items() if domain(link) not in both}),
    }


def simple(answer):
    if isinstance(answer, dict):
        return answer["all"], [count for _, count in answer["greatest"]]
    return answer


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--webstrata", default="target/release/webstrata")
    parser.add_argument("--example", default="target/release/examples/six_queries")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    pages = read(args.captures)
    times = sorted(ts for captures in pages.values() for ts, _ in captures)
    at = times[len(times) * 3 // 4]
    links = {}
    for url, captures in pages.items():
        index = bisect.bisect_right(captures, at, key=lambda capture: capture[0])
        if index:
            links[url] = captures[index - 1][1]
    # The two largest directories of the site with most pages: sets whose URLs lie together where keys keep them so.
    hosts = Counter(urlsplit(url).netloc for url in links)
    largest = hosts.most_common(1)[0][0]
    directories = Counter("/".join(url.split("/")[:4]) + "/" for url in links
                          if urlsplit(url).netloc == largest and url.count("/") > 3)
    chosen = [name for name, _ in directories.most_common(2)]
    sets = [sorted(url for url in links if url.startswith(name)) for name in chosen]
    with tempfile.TemporaryDirectory() as directory:
        stores = {}
        for kind, name in (("keys", str), ("hashed", hashed)):
            place = Path(directory) / kind
            place.mkdir()
            write(pages, place / "captures.jsonl", name)
            run(args.webstrata, "build", "--out", place / "store", place / "captures.jsonl")
            run(args.webstrata, "cells", place / "store")
            for number, urls in enumerate(sets):
                order = sorted(map(name, urls))
                random.Random(number).shuffle(order)
                (place / f"set{number}").write_text("\n".join(order))
            stores[kind] = place
        seconds = {kind: defaultdict(list) for kind in stores}
        for turn in range(args.rounds):
            for kind, place in stores.items():
                answers = run(args.example, place / "store", at, f"@{place}/set0", f"@{place}/set1")
                for line in answers.splitlines():
                    answer = json.loads(line)
                    seconds[kind][answer["query"]].append(answer["milliseconds"])
                    if kind == "keys" and turn == 0:
                        want = expected(links, [set(urls) for urls in sets])[answer["query"]]
                        got = simple(answer["result"])
                        assert got == want, f"query {answer['query']}: {got}, expected {want}"
        bytes_of = {kind: sum(f.stat().st_size for f in (place / "store").rglob("*") if "cells" in str(f))
                    for kind, place in stores.items()}
    sizes = ", ".join(f"{len(urls)} URLs ({name})" for urls, name in zip(sets, chosen))
    print(f"{len(pages)} pages, as of {at}; sets of {sizes}")
    print(f"cells: {bytes_of['keys']:,} bytes, hashed {bytes_of['hashed']:,}")
    print("query   keys ms   hashed ms   keys/hashed")
    for query in range(1, 7):
        keys, other = (statistics.median(seconds[kind][query]) for kind in ("keys", "hashed"))
        print(f"{query:5} {keys:9.2f} {other:11.2f} {keys / other:13.2f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The domain graph of the Archives Unleashed example against what its toolkit expects.

  aut_domains.py VECTORS [--webstrata BINARY]

VECTORS has `warc/aut-example.warc.gz`, `aut_example_warc_links.tsv` (every link of the WARC: date, page, target, with
repetitions) and `aut_expectations.json`. Builds a store, folds the store by domain and day, and compares
1. the pairs of domains that the toolkit expects, with their counts. The table of links must give the same counts;
2. the occurrences of each pair of domains with the table. A link that a page has twice counts once, as in a store. The
   toolkit knows links of `a` only. Python's parser adds links of `area`, `frame` and `iframe`.
Needs pyarrow, publicsuffixlist, warcio.
"""
import argparse
import csv
import json
import subprocess
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pyarrow.parquet as pq
from publicsuffixlist import PublicSuffixList
from warcio.archiveiterator import ArchiveIterator

SUFFIXES = PublicSuffixList()


def domain(url):
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    return SUFFIXES.privatesuffix(host) or host


def canonical(url):
    """As WHATWG has it, for what stands in this table: no fragment, a lower-case host, a path."""
    parts = urlsplit(url.split("#")[0].strip())
    return parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower(), path=parts.path or "/").geturl()


class Others(HTMLParser):
    """Links of what is no `a`."""

    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attributes):
        name = {"area": "href", "frame": "src", "iframe": "src"}.get(tag)
        self.links += [value for key, value in attributes if key == name and value]


def others(warc):
    """Links of `area`, `frame` and `iframe`: date, page, target."""
    with open(warc, "rb") as stream:
        for record in ArchiveIterator(stream):
            headers = record.http_headers
            html = headers and (headers.get_header("Content-Type") or "").startswith("text/html")
            if record.rec_type == "response" and html and headers.get_statuscode() == "200":
                page = record.rec_headers.get_header("WARC-Target-URI")
                date = "".join(filter(str.isdigit, record.rec_headers.get_header("WARC-Date")))[:14]
                parser = Others()
                parser.feed(record.content_stream().read().decode("latin-1"))
                yield from ((date, page, urljoin(page, link)) for link in parser.links)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--webstrata", default="target/debug/webstrata")
    args = parser.parse_args()
    expected = json.loads((args.vectors / "aut_expectations.json").read_text())["domain_graph"]["reproduced_here"]
    with open(args.vectors / "aut_example_warc_links.tsv", encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)][1:]
    doubles = Counter((date[:8], domain(src), domain(dest)) for date, src, dest in rows)
    warc = args.vectors / "warc/aut-example.warc.gz"
    links = {(date, canonical(src), canonical(dest)) for date, src, dest in [*rows, *others(warc)]}
    once = Counter((date[:8], domain(src), domain(dest)) for date, src, dest in links
                   if urlsplit(dest).scheme.lower() in ("http", "https"))
    with tempfile.TemporaryDirectory() as place:
        store, table = Path(place) / "store", Path(place) / "domains.parquet"
        fold = ["fold", store, "--unit", "domain", "--period", "day", "--out", table]
        for command in (["build", "--out", store, warc], fold):
            subprocess.run([args.webstrata, *map(str, command)], check=True, stdout=subprocess.DEVNULL)
        folded = pq.read_table(table).to_pylist()
    got = {(row["period"].strftime("%Y%m%d"), row["src"], row["dst"]): row["occurrences"] for row in folded}
    print(f"{'from':16} {'to':20} {'expected':>9} {'with doubles':>13} {'once a page':>12} {'webstrata':>10}")
    for day, src, dest, count in expected:
        pair = day, src, dest
        print(f"{src:16} {dest:20} {count:9} {doubles[pair]:13} {once[pair]:12} {got.get(pair, 0):10}")
        assert doubles[pair] == count, f"{pair}: the table of links has {doubles[pair]}, not {count}"
        assert pair in got, f"{pair} is missing"
    counts = {pair: (got.get(pair, 0), once[pair]) for pair in got.keys() | once.keys()}
    differ = {pair: both for pair, both in counts.items() if both[0] != both[1]}
    assert not differ, f"{len(differ)} pairs differ (webstrata, table): {dict(list(differ.items())[:5])}"
    frequent = {pair for pair, count in doubles.items() if count > 5 and all(pair)}
    more = frequent - {tuple(row[:3]) for row in expected}
    assert not more, f"other pairs are frequent in the table of links: {more}"
    print(f"{len(got)} pairs, {sum(got.values())} occurrences: as in the table; "
          f"the {len(frequent)} frequent ones as expected")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Made-up crawls beside sets of captures that they should be like, in the figures that matter for a store.

  generator.py [--webstrata BINARY] [--seed N] [--pair PROFILE[:months=N] CAPTURES.parquet]...
  generator.py --webstrata webstrata --pair uk MU.parquet --pair irregular:months=60 SI.parquet

For each pair a crawl of the profile with as many link occurrences as CAPTURES (columns url, ts, links) is generated as
Parquet, both are counted with DuckDB and built into stores, and a table in Markdown tells the figures side by side.
A figure that is more than 15 % off is marked. Links that occur twice in a capture count once,
and fragments as they stand.
Needs the packages of requirements.txt. Memory: DuckDB's, some 2 GB for 10 million occurrences.
"""
import argparse
import json
import os
import subprocess
import tempfile

import duckdb

TABLES = [
    "create table c as select url, split_part(url, '/', 3) h, ts, list_distinct(links) links, row_number() over "
    "(partition by url order by ts) n from (select url, ts, first(links) links from '{0}' group by all)",
    "create table link as select url, h, u, split_part(u, '/', 3) = h inside, count(*) k from "
    "(select url, h, unnest(links) u from c) group by all",
    "create table page as select url, h, count(*) captures from c group by all",
    "create table pair as select len(a.links) before, len(b.links) after, "
    "len(list_intersect(a.links, b.links)) common, b.ts - a.ts gap "
    "from c a join c b on a.url = b.url and b.n = a.n + 1",
    "create table neighbours as select len(b.links) links, len(list_intersect(a.links, b.links)) common from "
    "(select *, row_number() over (order by url) k from c where n = 1) a join "
    "(select *, row_number() over (order by url) k from c where n = 1) b on b.k = a.k + 1",
]
# What a figure is called, and the query that tells it; without a query it comes from the store.
FIGURES = [
    ("captures", "select count(*) from c"),
    ("pages", "select count(*) from page"),
    ("URLs", "select count(*) from (select url from page union select u from link)"),
    ("hosts with captures", "select count(distinct h) from page"),
    ("link occurrences", "select sum(k) from link"),
    ("occurrences of a link", "select sum(k) / count(*) from link"),
    ("links of a capture, mean", "select avg(len(links)) from c"),
    ("links of a capture, p50", "select quantile_cont(len(links), .5) from c"),
    ("links of a capture, p99", "select quantile_cont(len(links), .99) from c"),
    ("bytes of a URL", "select avg(strlen(u)) from (select distinct u from link)"),
    ("% of URLs with a query", "select 100 * avg((u like '%?%')::int) from (select distinct u from link)"),
    ("% of links inside the host", "select 100 * sum(k) filter (inside) / sum(k) from link"),
    ("% of URLs crawled",
     "select 100 * count(*) / (select count(*) from (select url from page union select u from link)) from page"),
    ("captures of a page, mean", "select avg(captures) from page"),
    ("captures of a page, p50", "select quantile_cont(captures, .5) from page"),
    ("captures of a page, p99", "select quantile_cont(captures, .99) from page"),
    ("% of captures with the links of the one before",
     "select 100 * avg((common = before and common = after)::int) from pair"),
    ("% of links in the next capture", "select 100 * sum(common) / sum(before) from pair"),
    ("% of links in the next capture, 3 to 5 weeks later",
     "select 100 * sum(common) / sum(before) from pair where gap between 21 * 86400 and 35 * 86400"),
    ("% of first links that the page before has", "select 100 * sum(common) / sum(links) from neighbours"),
    ("ol, bits an occurrence", None),
    ("bv, bits an occurrence", None),
    ("ts, bits an occurrence", None),
]


def bits(binary, captures, directory):
    """The size of the out-link layers of a store."""
    store = os.path.join(directory, "store")
    subprocess.run([binary, "build", "--out", store, captures], check=True, stdout=subprocess.DEVNULL)
    info = subprocess.run([binary, "info", store, "--format", "json"], check=True, capture_output=True)
    info = json.loads(info.stdout)
    layers, occurrences = info["layers"], info["counts"]["occurrences"]
    return {f"{name}, bits an occurrence": layers[name]["bytes"] * 8 / occurrences for name in ("ol", "bv", "ts")}


def figures(binary, captures):
    """All figures of a file of captures, by name."""
    con = duckdb.connect()
    con.execute("set threads = 2; set enable_progress_bar = false")
    for table in TABLES:
        con.execute(table.format(captures))
    found = {name: float(con.execute(query).fetchone()[0] or 0) for name, query in FIGURES if query}
    with tempfile.TemporaryDirectory() as directory:
        found.update(bits(binary, captures, directory))
    return found


def shown(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--pair", nargs=2, action="append", metavar=("PROFILE", "CAPTURES"), required=True)
    args = parser.parse_args()
    heads, columns = [], []
    for profile, captures in args.pair:
        occurrences = int(duckdb.execute(f"select sum(len(links)) from '{captures}'").fetchone()[0])
        name, _, months = profile.partition(":")
        crawl = f"{name}:occurrences={occurrences},seed={args.seed}" + (f",{months}" if months else "")
        heads += [os.path.basename(captures).split(".")[0], name]
        with tempfile.TemporaryDirectory() as directory:
            made = os.path.join(directory, "made.parquet")
            subprocess.run([args.webstrata, "generate", crawl, "--as", "parquet", "--out", made], check=True)
            columns += [figures(args.webstrata, captures), figures(args.webstrata, made)]
    print("| |", " | ".join(heads), "|")
    print("|---|" + "---|" * len(heads))
    for name, _ in FIGURES:
        cells = []
        for given, made in zip(columns[::2], columns[1::2]):
            off = abs(made[name] / given[name] - 1) > 0.15 if given[name] else made[name] != 0
            cells += [shown(given[name]), shown(made[name]) + (" (!)" if off else "")]
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Backlinks of domains by month, against DuckDB on the views of `webstrata sql`.

  backlinks.py [--webstrata BINARY] [--store STORE] [--domains N] [CRAWL ...]

Builds a store of the crawls (default: a generated one with captures that fail), in updates if there are several, and
takes the domains that most pages link to. DuckDB counts by its own query, from the captures and from the links in
captures, how many pages of other hosts stand at the end of each month, of how many that is unknown, and how many were
found, new, returned and lost in it. `webstrata backlinks` says the same from the layers, from cells and from a server,
and so do /v1/backlinks and the rows of each: every page with its first and its last capture. Also prints how long a
server takes. Exit code 1 at the first difference. Needs the packages of requirements.txt.
"""
import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import duckdb

# Every capture of a page that links to the target: whether it counts, whether it links, and what it changes.
STATES = """
CREATE OR REPLACE TEMP TABLE target AS
  SELECT uid FROM urls WHERE host = $domain OR ends_with(host, '.' || $domain);
CREATE OR REPLACE TEMP TABLE linking AS
  SELECT DISTINCT src AS uid, timestamp FROM link_captures WHERE dst IN (SELECT uid FROM target)
    AND src NOT IN (SELECT uid FROM target);
CREATE OR REPLACE TEMP TABLE states AS
  SELECT c.uid, epoch(c.timestamp)::BIGINT AS second, strftime(c.timestamp, '%Y-%m') AS month, c.known,
         c.status < 400 AND l.uid IS NOT NULL AS links
  FROM captures c LEFT JOIN linking l ON l.uid = c.uid AND l.timestamp = c.timestamp
  WHERE c.uid IN (SELECT uid FROM linking) AND c.status BETWEEN 1 AND 499 AND c.status <> 429;
CREATE OR REPLACE TEMP TABLE turns AS
  SELECT *, lag(links) OVER before AS was, coalesce(bool_or(links) OVER earlier, false) AS ever
  FROM states WHERE known
  WINDOW before AS (PARTITION BY uid ORDER BY second),
         earlier AS (PARTITION BY uid ORDER BY second ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);
"""
SERIES = """
WITH ends AS (
  SELECT strftime(month, '%Y-%m') AS month, epoch(month + INTERVAL 1 MONTH)::BIGINT - 1 AS last
  FROM (SELECT unnest(generate_series((SELECT min(strptime(month, '%Y-%m')) FROM states WHERE links OR NOT known),
                                      (SELECT max(strptime(month, '%Y-%m')) FROM states), INTERVAL 1 MONTH)) AS month)
), latest AS (
  SELECT e.month, s.uid, arg_max(s.known, s.second) AS known, arg_max(s.links, s.second) FILTER (s.known) AS links
  FROM ends e JOIN states s ON s.second <= e.last GROUP BY ALL
), stands AS (
  SELECT month, count(*) FILTER (known AND links) AS standing, count(*) FILTER (NOT known) AS unknown
  FROM latest GROUP BY month
), flows AS (
  SELECT month, count(*) FILTER (links AND was IS NULL) AS found,
         count(*) FILTER (links AND NOT was AND NOT ever) AS new,
         count(*) FILTER (links AND NOT was AND ever) AS returned, count(*) FILTER (NOT links AND was) AS lost
  FROM turns GROUP BY month
)
SELECT e.month, coalesce(standing, 0), coalesce(unknown, 0), coalesce(found, 0), coalesce(new, 0),
       coalesce(returned, 0), coalesce(lost, 0)
FROM ends e LEFT JOIN stands USING (month) LEFT JOIN flows USING (month) ORDER BY 1
"""
ROWS = """
SELECT url, strftime(to_timestamp(min(second)) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ'),
       strftime(to_timestamp(max(second)) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ')
FROM turns JOIN urls USING (uid) WHERE links GROUP BY url
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode}\n{done.stderr}")
    return done.stdout


def table(text):
    return [tuple(row) for row in csv.reader(io.StringIO(text))][1:]



def series_of(rows):
    """Months with their numbers; without those at the end in which nothing happens."""
    rows = [(month, *map(int, numbers)) for month, *numbers in rows]
    before = None
    for at, row in enumerate(rows):
        if any(row[3:]) or (before and row[1:3] != before[1:3]):
            last = at
        before = row
    return rows[: last + 1] if rows else rows


def same(what, got, expected):
    if got != expected:
        pairs = [pair for pair in zip(got, expected) if pair[0] != pair[1]]
        sys.exit(f"{what} differs: {len(got)} and {len(expected)} rows, first {pairs[:1]}")


def get(base, path):
    with urllib.request.urlopen(base + path, timeout=60) as response:
        return json.load(response)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crawls", nargs="*", metavar="CRAWL")
    parser.add_argument("--webstrata", default="target/release/webstrata")
    parser.add_argument("--store", help="ask this store, which has cells and one row")
    parser.add_argument("--domains", type=int, default=5)
    parser.add_argument("--name", action="append", default=[], help="a domain to ask for, besides")
    args = parser.parse_args()
    binary = args.webstrata
    with tempfile.TemporaryDirectory() as directory:
        store = args.store or os.path.join(directory, "store")
        if not args.store:
            if args.crawls:
                run(binary, "build", "--out", store, args.crawls[0])
            else:
                run(binary, "build", "--out", store, "--generate", "uk:occurrences=300000,months=36,deaths=200")
            for crawl in args.crawls[1:]:
                run(binary, "update", store, crawl)
            layers_only = True
        else:
            layers_only = False
        con = duckdb.connect()
        con.execute("SET TimeZone = 'UTC'")
        con.execute(run(binary, "sql", store))
        domains = args.name + [
            row[0]
            for row in con.execute(
                "SELECT regexp_extract(u.host, '[^.]+[.][^.]+([.]uk)?$') AS domain FROM links l "
                "JOIN urls u ON u.uid = l.dst JOIN urls s ON s.uid = l.src WHERE u.host IS NOT NULL "
                "AND NOT ends_with(s.host, domain) GROUP BY domain ORDER BY count(DISTINCT l.src) DESC, domain "
                f"LIMIT {args.domains}"
            ).fetchall()
        ]
        expected = {}
        for domain in domains:
            for statement in STATES.strip().split(";\n"):
                con.execute(statement, {"domain": domain} if "$domain" in statement else None)
            series = series_of(con.execute(SERIES).fetchall())
            rows = sorted(con.execute(ROWS).fetchall())
            expected[domain] = (series, rows)

        def compare(way, ask):
            for domain, (series, rows) in expected.items():
                got = series_of(table(ask(domain, "--period", "month", "--format", "csv")))
                same(f"{way}: months of {domain}", got, series)
                stays = {}
                for referrer, _, _, _, _, first, last, *_ in table(ask(domain, "--format", "csv")):
                    known = stays.get(referrer, (first, last))
                    stays[referrer] = (min(known[0], first), max(known[1], last))
                same(f"{way}: rows of {domain}", sorted((url, *ends) for url, ends in stays.items()), rows)

        if layers_only:
            compare("layers", lambda domain, *more: run(binary, "backlinks", store, domain, *more))
            run(binary, "cells", store)
        compare("cells", lambda domain, *more: run(binary, "backlinks", store, domain, *more))
        server = subprocess.Popen(
            [binary, "serve", store, "--listen", "127.0.0.1:0", "--data", os.path.join(directory, "data")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = server.stdout.readline().split()[-1]
            server.stdout.readline()
            compare("server", lambda domain, *more: run(binary, "backlinks", "--server", address, domain, *more))
            base = f"http://{address}"
            for domain, (series, rows) in expected.items():
                path = f"/v1/backlinks?url={domain}&match=domain"
                begun = time.perf_counter()
                answer = get(base, path)
                first = time.perf_counter() - begun
                names = ["standing", "unknown", "found", "new", "returned", "lost"]
                months = [month[:7] for month in answer["periods"]]
                same(f"HTTP: {domain}", series_of(zip(months, *(answer[name] for name in names))), series)
                if answer["pages"] != len(rows):
                    sys.exit(f"HTTP: {answer['pages']} pages of {domain}, expected {len(rows)}")
                times = []
                for order in ["first", "last", "most", "key"] * 5:
                    begun = time.perf_counter()
                    get(base, f"{path}&order={order}")
                    times.append(time.perf_counter() - begun)
                got, more = {}, f"{path}&limit=10000&order=key"
                key = ""
                while True:
                    answer = get(base, more + key)
                    for row in answer["rows"]:
                        got[row["page"]] = (row["stays"][0]["first"], row["stays"][-1]["last"])
                    if "resume_key" not in answer:
                        break
                    key = f"&resume_key={answer['resume_key']}"
                same(f"HTTP: rows of {domain}", sorted((url, *ends) for url, ends in got.items()), rows)
                print(
                    f"{domain}: {len(rows):,} pages in {len(series)} months; asked first {first * 1000:.0f} ms, "
                    f"then p50 {statistics.median(times) * 1000:.0f} ms"
                )
        finally:
            server.terminate()
            server.wait()
        total = sum(len(rows) for _, rows in expected.values())
        print(f"{len(expected)} domains, {total:,} pages: months and rows equal, from all ways")


main()

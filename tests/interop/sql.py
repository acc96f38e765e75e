#!/usr/bin/env python3
"""The views of `webstrata sql` and the queries of the book, in real DuckDB.

  sql.py [--webstrata BINARY]

Makes a store of one row from a generated crawl, and a store of several rows. The updates of the second store have
captures of the same pages, some in the same second with different links. In both stores, the views must agree with
exports (exports.py compares exports with captures), and every query of the book must run unchanged and return rows.
Some queries are also compared with captures read as plain sets. A third store, from WARC records, has revisits and
unknown captures. The first two are made once more with captures that failed. Exit code 1 at the first difference.
Needs the packages of requirements.txt.
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from random import Random

import duckdb

BOOK = pathlib.Path(__file__).resolve().parents[2] / "docs/book"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode}\n{done.stderr}")
    return done.stdout


def same(what, got, expected):
    if got != expected:
        sys.exit(f"{what} differs: too many {sorted(got - expected)[:3]}, missing {sorted(expected - got)[:3]}")


def queries():
    """Each query of any page with the title above it; the first sets the variables of the others."""
    title, found = "", []
    for page in sorted(BOOK.rglob("*.md")):
        for part in re.split(r"^```", page.read_text(encoding="utf-8"), flags=re.M):
            if part.startswith("sql\n"):
                found.append((title, part[4:]))
            else:
                title = ([title] + re.findall(r"^## (.*)$", part, flags=re.M))[-1]
    if len(found) < 12:
        sys.exit(f"{BOOK}: {len(found)} queries")
    return found


def check_views(con, binary, store, directory):
    """Views against exports."""
    exported = {}
    for what in ["nodes", "layers", "edges"]:
        exported[what] = os.path.join(directory, f"{what}.parquet")
        run(binary, "export", store, "--what", what, "--out", exported[what])
        exported[what] = exported[what].replace("'", "''")
    for name, view, table in [
        ("urls", "select uid, url, surt, host from urls", f"select id, url, surt, host from '{exported['nodes']}'"),
        ("captures", "select uid, timestamp, status, known from captures",
         f"select uid, unnest(timestamps), unnest(statuses), unnest(known) from '{exported['layers']}'"),
        ("pages", "select uid, url, captures, known_captures, first_capture, last_capture from pages",
         f"select uid, url, len(timestamps), len(list_filter(known, lambda k: k)), timestamps[1], timestamps[-1] "
         f"from '{exported['layers']}'"),
        ("link_intervals", "from link_intervals",
         f"with spans as (select uid, unnest(lifespans, recursive := true) from '{exported['layers']}') from spans"),
        ("links", "from links", f"from '{exported['edges']}'"),
    ]:
        [got], [expected] = (con.execute(f"select count(*) from ({query})").fetchone() for query in (view, table))
        [differing] = con.execute(f"select count(*) from (({view}) except ({table}))").fetchone()
        if got != expected or differing or not got:
            sys.exit(f"{store}: view {name} has {got} rows, {differing} of them wrong; expected {expected}")


def plain(con, captures):
    """Answers from captures as sets: of the query as of a day, and of the one of changes."""
    pages = defaultdict(lambda: defaultdict(set))
    for path in captures:                       # captures of one second are one, with the links of all
        for row in map(json.loads, open(path, encoding="utf-8")):
            pages[row["url"]][row["ts"]].update(row["links"])
    digits = lambda name: con.execute(f"select strftime(getvariable('{name}'), '%Y%m%d%H%M%S')").fetchone()[0]
    latest = lambda page, name: max((time for time in pages[page] if time <= digits(name)), default=None)
    changes = set()
    for page in pages:
        old, new = latest(page, "before"), latest(page, "after")
        if old and old != new:
            links = [pages[page][time] for time in (old, new)]
            changes |= {(page, link, "appeared") for link in links[1] - links[0]}
            changes |= {(page, link, "gone") for link in links[0] - links[1]}
    return pages, changes, lambda page: {(link, "yes") for link in pages[page][latest(page, "after")]}


def check_queries(con, captures):
    asked = queries()
    con.execute(asked[0][1])
    pages, changes, as_of = plain(con, captures)
    [url] = con.execute("select any_value(url order by url) from pages where first_capture <= getvariable('after') and "
                        "uid in (select dst from links where first_seen < getvariable('after'))").fetchone()
    con.execute("set variable url = ?", [url])
    for title, query in asked[1:]:
        rows = con.execute(query).fetchall()
        if not rows:
            sys.exit(f"no answer: {title}\n{query}")
        if "as of a day" in title:
            same(title, set(rows), as_of(url))
        elif "appeared or gone" in title:
            same(title, set(rows), changes)
        elif "Who linked" in title:
            sources = {page for page, own in pages.items() for links in own.values() if url in links}
            same(title, {row[0] for row in rows}, sources)
    return len(asked)


def check_revisits(con):
    revisits, unknown, captures = con.execute(
        "select count(*) filter (revisit), count(*) filter (not known), count(*) from captures").fetchone()
    if not (0 < revisits < captures and 0 < unknown <= revisits):
        sys.exit(f"{captures} captures, {revisits} revisits, {unknown} unknown")


def record(kind, url, time, digest, links):
    """A WARC record of a page with links, or of a revisit."""
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {time}\r\n" \
           f"WARC-Payload-Digest: sha1:{digest}\r\nContent-Type: application/http; msgtype=response\r\n"
    if kind == "revisit":
        head += "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
    body = "".join(f'<a href="{link}">a</a> ' for link in links)
    block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    return f"{head}Content-Length: {len(block)}\r\n\r\n{block}\r\n\r\n"


def warc(path):
    """Captures of two pages; the second of each is a revisit, of the other page's an original that is not there."""
    links = ["/b", "http://other.example/"]
    with gzip.open(path, "wt", newline="") as out:
        pages = [("http://a.example/", "A", "A"), ("http://a.example/b", "B", "C")]
        for number, (url, first, second) in enumerate(pages):
            out.write(record("response", url, f"2006-05-0{number + 1}T00:00:00Z", first * 32, links))
            out.write(record("revisit", url, f"2006-06-0{number + 1}T00:00:00Z", second * 32, []))


def stores(binary, directory):
    """Stores with the files of captures that they are made of: of one row, of several, and one with revisits."""
    crawl = directory / "crawl.jsonl"
    run(binary, "generate", "irregular:occurrences=20000,seed=5,months=24", "--out", crawl)
    lines = crawl.read_text().splitlines(keepends=True)
    batches = [[line for at, line in enumerate(lines) if at % 3 == number] for number in range(3)]
    # Some captures come again, in a later row, with other links.
    for line in batches[0][::4]:
        row = json.loads(line)
        row["links"] = row["links"][1:] + ["http://again.example/"]
        batches[2].append(json.dumps(row) + "\n")
    one, many, revisits = directory / "one", directory / "many", directory / "revisits"
    run(binary, "build", "--out", one, crawl)
    for number, batch in enumerate(batches):
        (directory / f"batch-{number}.jsonl").write_text("".join(batch))
        command = ["update", many, "--no-merge"] if number else ["build", "--out", many]
        run(binary, *command, directory / f"batch-{number}.jsonl")
    warc(directory / "revisits.warc.gz")
    run(binary, "build", "--out", revisits, directory / "revisits.warc.gz")
    return [(one, [crawl]), (many, sorted(directory.glob("batch-*"))), (revisits, None)]


def failing(line, random):
    """A capture that failed, now and then."""
    row = json.loads(line)
    status = random.choice([200, 200, 200, 200, 301, 404, 410, 429, 503])
    if status != 200:
        row.update(status=status, links=row["links"][:1] if status == 301 else [])
    return json.dumps(row) + "\n"


def failing_stores(binary, directory):
    """The same stores, but that some captures failed."""
    random = Random(5)
    one, many = directory / "failing-one", directory / "failing-many"
    for number, batch in enumerate(sorted(directory.glob("batch-*"))):
        path = directory / f"failing-{number}.jsonl"
        path.write_text("".join(failing(line, random) for line in batch.read_text().splitlines()))
        run(binary, *(["update", many, "--no-merge"] if number else ["build", "--out", many]), path)
    run(binary, "build", "--out", one, *directory.glob("failing-*.jsonl"))
    return [one, many]


def check_failures(con):
    failed, ended = con.execute(
        "select count(*) filter (status >= 400), count(*) filter (status = 404) from captures").fetchone()
    if not 0 < ended < failed:
        sys.exit(f"{failed} captures failed, {ended} of them with 404")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="webstrata")
    binary = parser.parse_args().webstrata
    with tempfile.TemporaryDirectory(prefix="it's ") as directory:
        directory = pathlib.Path(directory)
        for store, captures in stores(binary, directory):
            con = duckdb.connect()
            con.execute(run(binary, "sql", store))
            check_views(con, binary, store, directory)
            answers = check_queries(con, captures) if captures else 0
            if not captures:
                check_revisits(con)
            print(f"DuckDB {duckdb.__version__}, {store.name}: views are what exports say, {answers} queries run")
        for store in failing_stores(binary, directory):
            con = duckdb.connect()
            con.execute(run(binary, "sql", store))
            check_views(con, binary, store, directory)
            check_failures(con)
            print(f"DuckDB {duckdb.__version__}, {store.name}: views are what exports say")


if __name__ == "__main__":
    main()

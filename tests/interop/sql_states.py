#!/usr/bin/env python3
"""The views of `webstrata sql` in DuckDB: yes, no and unknown, and what large pages cost.

  sql_states.py [--webstrata BINARY] [--stores N] [--seed N] [--captures N] [--sources N]

Makes random small stores of one to three rows, whose captures are whole, cut, unknown, redirects or failures. The
views must give the answers of a brute force over the captures. Captures are cut in the layer `ts` of the finished
store, which no view compares with its digest. Then a page of many captures whose 100 links come and go, in one row and
in two rows whose captures alternate, and a URL that many pages link to: every view in a process of its own, which must
stay below 512 MiB. Prints seconds and MiB; exit code 1 at the first difference. Needs the packages of
requirements.txt.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet

from sql import run

REASONS = ["truncated", "short", "damaged", "encoding", "segments", "partial"]
MIB_MAX = 512
UTC = datetime.timezone.utc
# A process that counts the rows of views, and says how long that took and how large it became.
COUNT = """
import resource, sys, time, duckdb
con = duckdb.connect()
con.execute("SET threads = 2; SET enable_progress_bar = false")
con.execute(open(sys.argv[1], encoding="utf-8").read())
for query in sys.argv[2:]:
    start = time.monotonic()
    [count] = con.execute(query).fetchone()
    print(count, round(time.monotonic() - start, 2), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def day(number):
    return datetime.datetime.fromtimestamp(86_400 * (12_000 + number), UTC)


def capture(random, pool):
    """A code as in the column `statuses`, whether links are unknown, and the links that were found."""
    links = {link for link in pool if random.random() < 0.6}
    chance = random.random()
    if chance < 0.25:
        return 1000 * random.randrange(1, 7) + 200, False, links
    if chance < 0.35:
        return random.choice([404, 410, 429, 503]), False, set()
    if chance < 0.45:
        return 200, True, set()
    if chance < 0.5:
        return 301, False, set()
    return 200, False, links


def crawl(random):
    """Captures of pages by day, each in one of several batches."""
    pages, batches = {}, [[] for _ in range(random.choice([1, 1, 2, 3]))]
    for page in range(10):
        url, pool = f"http://a.example/{page}", [f"http://b.example/{link}" for link in random.sample(range(12), 6)]
        plain = random.random() < 0.2
        for number in sorted(random.sample(range(40), random.randint(1, 30))):
            code, unknown, links = (200, False, set(random.sample(pool, 3))) if plain else capture(random, pool)
            pages.setdefault(url, {})[day(number)] = (code, unknown, links)
            row = {"url": url, "ts": day(number).strftime("%Y%m%d%H%M%S"), "status": code % 1000}
            random.choice(batches).append(row if unknown else {**row, "links": sorted(links)})
    return pages, [batch for batch in batches if batch]


def cut(store, pages):
    """Writes the codes of cut captures into the layer `ts`."""
    urls = {row["uid"]: row["url"] for path in store.glob("rows/*/url/*.parquet")
            for row in parquet.read_table(path).to_pylist()}
    for path in store.glob("rows/*/ts/*.parquet"):
        table = parquet.read_table(path)
        rows = table.to_pylist()
        for row in rows:
            codes = [pages[urls[row["uid"]]][when][0] for when in row["timestamps"]]
            changes = [at for at, code in enumerate(codes) if code != ([200] + codes)[at]]
            row["status_captures"] = changes or None
            row["statuses"] = [codes[at] for at in changes] or None
        parquet.write_table(pa.Table.from_pylist(rows, table.schema), path, use_dictionary=False)


def answer(code, unknown, links, link):
    """Yes, no or None: whether a capture has a link."""
    if 400 <= code < 1000:
        return False if code < 500 and code != 429 else None
    if unknown:
        return None
    return link in links or (None if code >= 1000 else False)


def expected(pages):
    captures, spans, totals, each = set(), set(), set(), set()
    for page, own in pages.items():
        for when, (code, unknown, _) in own.items():
            reason = REASONS[code // 1000 - 1] if code >= 1000 else None
            captures.add((page, when, code % 1000, reason, not unknown))
        for link in set().union(*(links for _, _, links in own.values())):
            answers = [(when, answer(*own[when], link)) for when in sorted(own)]
            has = [when for when, value in answers if value]
            runs = [[]]
            for when, value in answers:
                if value:
                    runs[-1].append(when)
                elif value is False and runs[-1]:
                    runs.append([])
            spans |= {(page, link, run[0], run[-1], len(run)) for run in runs if run}
            totals.add((page, link, has[0], has[-1], sum(value is not None for _, value in answers), len(has)))
            each |= {(page, link, when) for when in has}
    return {"captures": captures, "link_intervals": spans, "links": totals, "link_captures": each}


def check(views, pages, name):
    con = duckdb.connect()
    con.execute(views)
    names = dict(con.execute("select uid, url from urls").fetchall())
    for view, rows in expected(pages).items():
        columns = "uid, timestamp, status, cut, known" if view == "captures" else "*"
        count = 1 if view == "captures" else 2
        got = [tuple(value.astimezone(UTC) if isinstance(value, datetime.datetime) else value for value in row)
               for row in con.execute(f"select {columns} from {view}").fetchall()]
        got = [tuple(names[uid] for uid in row[:count]) + row[count:] for row in got]
        if set(got) != rows or len(got) != len(rows):
            many, few = (sorted(map(str, side))[:3] for side in (set(got) - rows, rows - set(got)))
            sys.exit(f"{name}: {view} has {len(got)} rows of {len(rows)}; too many {many}, missing {few}")


def built(binary, directory, name, batches):
    store = directory / name
    for number, batch in enumerate(batches):
        path = directory / f"{name}-{number}.jsonl"
        with open(path, "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in batch)
        run(binary, *(["update", store, "--no-merge"] if number else ["build", "--out", store]), path)
        path.unlink()
    return store


def changing(captures, batches):
    """A page whose 100 links come and go: at each capture five of them change."""
    random, links = Random(1), set()
    for number in range(captures):
        links ^= {f"http://b.example/{link}" for link in random.sample(range(100), 5)}
        when = datetime.datetime.fromtimestamp(1_000_000_000 + 3600 * number, UTC).strftime("%Y%m%d%H%M%S")
        batches[number % len(batches)].append({"url": "http://a.example/", "ts": when, "links": sorted(links)})
    return batches


def hub(sources):
    """A URL that many pages link to, each in two of its three captures."""
    for page in range(sources):
        for number in range(3):
            links = [f"http://b.example/{page % 100}"] + ["http://hub.example/"] * (number != page % 3)
            yield {"url": f"http://p{page % 1000}.example/{page}", "ts": f"200{number}0101000000", "links": links}


def measure(binary, store, directory, queries):
    views = directory / "views.sql"
    views.write_text(run(binary, "sql", store), encoding="utf-8")
    for query in queries:
        done = subprocess.run([sys.executable, "-c", COUNT, views, query], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{store.name}, {query}: {done.stderr[-1000:]}")
        count, seconds, mib = done.stdout.split()
        print(f"{store.name}: {query}: {count} in {seconds} s, {mib} MiB", flush=True)
        if int(mib) > MIB_MAX or not int(count):
            sys.exit(f"{store.name}, {query}: {count} rows, {mib} MiB of {MIB_MAX}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("--stores", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--captures", type=int, default=10_000)
    parser.add_argument("--sources", type=int, default=100_000)
    options = parser.parse_args()
    binary = options.webstrata
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for seed in range(options.seed, options.seed + options.stores):
            pages, batches = crawl(Random(seed))
            store = built(binary, directory, f"small-{seed}", batches)
            cut(store, pages)
            check(run(binary, "sql", store), pages, f"seed {seed}")
        print(f"{options.stores} stores: views are what a brute force says")
        counts = [f"SELECT count(*) FROM {view}" for view in ["captures", "links", "link_intervals", "link_captures"]]
        for name, batches in [("one row", [[]]), ("two rows", [[], []])]:
            measure(binary, built(binary, directory, name, changing(options.captures, batches)), directory, counts)
        into = "SELECT count(*) FROM {} JOIN urls ON dst = uid WHERE url = 'http://hub.example/'"
        store = built(binary, directory, "hub", [hub(options.sources)])
        measure(binary, store, directory, [into.format(view) for view in ["links", "link_intervals", "link_captures"]])


if __name__ == "__main__":
    main()

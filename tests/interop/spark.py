#!/usr/bin/env python3
"""The views of `webstrata sql --dialect spark` in real Spark, beside those for DuckDB.

  spark.py [--webstrata BINARY]
  spark.py [--webstrata BINARY] --time STORE [--rounds N]

Makes stores of one row and of several rows, with captures of one second in several rows, revisits, captures with
unknown links between changes, gaps of one, two and three bytes, and several files of a layer; then those of
sql_states.py, with cut captures, a page of 10,000 captures, and a URL that 100,000 pages link to. Every view must have
the same rows, columns and types in both engines. Spark runs in ANSI mode, and for one store also without. The script
first compares the views for DuckDB with exports, as sql.py does, or with the brute force of sql_states.py. spark-sql
must accept the file unchanged, also for a store whose path is full of special characters. Exit code 1 at the first
difference. With --time, writes `link_intervals` and `links` of a store as Parquet from each engine with two threads,
and prints median seconds.

Needs Java 17, pyspark 4 (400 MB, so .ci/run leaves this check out) and duckdb.
"""
import argparse
import gzip
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
import pyspark
from pyspark.sql import SparkSession

import sql
import sql_states

VIEWS = ["urls", "pages", "captures", "links", "link_intervals", "link_captures"]
TYPES = {"USMALLINT": "int", "UBIGINT": "bigint", "BIGINT": "bigint", "VARCHAR": "string", "BOOLEAN": "boolean",
         "TIMESTAMP WITH TIME ZONE": "timestamp"}


def session():
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "4",
                "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def warcs(directory):
    """Batches with repeated captures of pages whose links appear and disappear. The captures are responses, and
    revisits of payloads inside and outside the store; some pages have captures of one second in two batches. One page
    has very many links, and few of these links change."""
    rng = random.Random(7)
    paths = [directory / f"again-{number}.warc.gz" for number in range(3)]
    outs = [gzip.open(path, "wt", newline="", compresslevel=1) for path in paths]
    for page in range(40):
        url, count = f"http://p{page % 7}.example/{page}", 12_000 if page == 0 else rng.randrange(60)
        links = [f"http://t{link % 11}.example/{link}" for link in range(count)]
        digests = [f"{page:016}{'A' * 16}"]
        for second in sorted(rng.sample(range(60), 6 if page == 0 else rng.randrange(1, 50))):
            when = f"2006-05-{page % 28 + 1:02}T00:00:{second:02}Z"
            for out in rng.sample(outs, rng.choice([1, 1, 1, 2])):
                chance = rng.random()
                if chance < 0.15:
                    digest = digests[-1] if chance < 0.05 else f"{page:014}{second:02}{'Z' * 16}"
                    out.write(sql.record("revisit", url, when, digest, []))
                    continue
                own = [link for at, link in enumerate(links) if at % 5_000 and rng.random() < (1 if page == 0 else 0.9)]
                own += links[:: 5_000] if rng.random() < 0.5 else []
                digests.append(f"{page:014}{second:02}{outs.index(out)}{'A' * 15}".replace("0", "B").replace("1", "C"))
                out.write(sql.record("response", url, when, digests[-1], own))
    for out in outs:
        out.close()
    return paths


def again(binary, directory):
    """Stores of those batches: of one row with many files, and of several rows."""
    whole, parts, paths = directory / "again", directory / "again in rows", warcs(directory)
    sql.run(binary, "build", "--out", whole, "--partition-urls", 500, *paths)
    for number, path in enumerate(paths):
        sql.run(binary, *(["update", parts, "--no-merge"] if number else ["build", "--out", parts]), path)
    for store in whole, parts:
        con = duckdb.connect()
        con.execute(sql.run(binary, "sql", store))
        sql.check_revisits(con)
    place = f"{whole}/rows/000001/bv/*.parquet".replace("'", "''")
    changes = [row[0] for row in duckdb.execute(f"select changes from '{place}' where changes is not null").fetchall()]
    longest = max(len(run) for own in changes for run in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", own))
    files = len(list((whole / "rows/000001/ol").iterdir()))
    if longest < 3 or files < 2:
        sys.exit(f"{whole}: gaps of {longest} bytes in {files} files; there should be some of three, and several files")
    return [whole, parts]


def states(binary, directory):
    """Stores whose captures are also cut, and stores of one large page and of a URL with very many sources."""
    for seed in range(1, 4):
        pages, batches = sql_states.crawl(random.Random(seed))
        store = sql_states.built(binary, directory, f"states-{seed}", batches)
        sql_states.cut(store, pages)
        sql_states.check(sql.run(binary, "sql", store), pages, store.name)
        yield store
    for name, batches in [("one row", [[]]), ("two rows", [[], []])]:
        yield sql_states.built(binary, directory, name, sql_states.changing(10_000, batches))
    yield sql_states.built(binary, directory, "hub", [sql_states.hub(100_000)])


def check(spark, con, store, directory, ansi):
    """Each view of Spark beside that of DuckDB: columns, types, and rows, as often as they are there."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    counts = []
    for view in VIEWS:
        frame = spark.table(view)
        expected = [(name, TYPES[kind]) for name, kind, *_ in con.execute(f"describe {view}").fetchall()]
        if frame.dtypes != expected:
            sys.exit(f"{store}: {view} has {frame.dtypes} in Spark, should have {expected}")
        frame.write.mode("overwrite").parquet(str(directory / "spark" / view))
        table = "read_parquet('{}/*.parquet')".format(str(directory / "spark" / view).replace("'", "''"))
        many, few, count = (con.execute(f"select count(*) from ({query})").fetchone()[0] for query in [
            f"from {table} except all from {view}", f"from {view} except all from {table}", f"from {view}"])
        if many or few or not count:
            sys.exit(f"{store}: {view} of {count} rows has {many} too many in Spark, {few} are missing, ansi {ansi}")
        counts.append(f"{view} {count}")
    return counts


def check_shell(binary, store, directory):
    """spark-sql with the file, of a store in a place with many signs."""
    odd = directory / "od'd [c] {d,e} *? $x \\ %20;"
    shutil.copytree(store, odd)
    views = directory / "views.sql"
    sql.run(binary, "sql", odd, "--dialect", "spark", "--out", views)
    shell = pathlib.Path(pyspark.__file__).parent / "bin/spark-sql"
    query = "SELECT count(*), sum(captures) FROM link_intervals"
    done = subprocess.run(
        [shell, "--master", "local[2]", "--conf", "spark.sql.catalogImplementation=in-memory", "--conf",
         "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1", "-i", views, "-e", query],
        capture_output=True, text=True, cwd=directory)
    con = duckdb.connect()
    con.execute(sql.run(binary, "sql", store))
    expected = "\t".join(map(str, con.execute(query).fetchone()))
    if done.returncode or expected not in done.stdout.splitlines():
        sys.exit(f"spark-sql: {done.returncode}, {done.stdout}, should be {expected}\n{done.stderr[-4000:]}")


def take(spark, binary, store):
    """The views of a store, in Spark and in DuckDB."""
    for statement in re.split(r";$", sql.run(binary, "sql", store, "--dialect", "spark"), flags=re.M):
        if statement.strip():
            spark.sql(statement)
    con = duckdb.connect()
    con.execute(sql.run(binary, "sql", store))
    return con


def measure(spark, con, directory, rounds):
    """Seconds to write views as Parquet, each engine in turn."""
    con.execute("set threads = 2")
    for view in ["link_intervals", "links"]:
        seconds = {"DuckDB": [], "Spark": []}
        for _ in range(rounds):
            start = time.perf_counter()
            con.execute(f"copy (from {view}) to '{str(directory)}/duckdb.parquet'")
            between = time.perf_counter()
            spark.table(view).write.mode("overwrite").parquet(f"{directory}/spark")
            seconds["DuckDB"].append(between - start)
            seconds["Spark"].append(time.perf_counter() - between)
        [count] = con.execute(f"select count(*) from '{directory}/spark/*.parquet'").fetchone()
        print(f"{view}, {count:,} rows:", ", ".join(
            f"{engine} {statistics.median(own):.1f} s ({min(own):.1f} to {max(own):.1f})"
            for engine, own in seconds.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("--time", metavar="STORE", help="measure on this store in place of the check")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    binary, spark = os.path.abspath(args.webstrata), session()
    engines = f"Spark {pyspark.__version__}, DuckDB {duckdb.__version__}"
    if args.time:
        with tempfile.TemporaryDirectory() as directory:
            print(engines)
            measure(spark, take(spark, binary, args.time), directory, args.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="it's {a,b} ") as directory:
        directory = pathlib.Path(directory)
        made = again(binary, directory)
        for store in [store for store, _ in sql.stores(binary, directory)] + made:
            con = take(spark, binary, store)
            sql.check_views(con, binary, store, directory)
            # The views of all stores are alike, so one is enough without ANSI mode.
            for ansi in ["false", "true"] if store == made[-1] else ["true"]:
                counts = check(spark, con, store, directory, ansi)
            print(f"{engines}, {store.name}: the same {', '.join(counts)}", flush=True)
        for store in states(binary, directory):
            start = time.perf_counter()
            counts = check(spark, take(spark, binary, store), store, directory, "true")
            seconds = time.perf_counter() - start
            print(f"{engines}, {store.name}: the same {', '.join(counts)}; {seconds:.0f} s", flush=True)
        check_shell(binary, made[1], directory)
        print("spark-sql takes the file")


if __name__ == "__main__":
    main()

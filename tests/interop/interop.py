#!/usr/bin/env python3
"""Other tools read a store: DuckDB, pyarrow with pandas, and Polars open every layer and count what is in it.

  interop.py [--webstrata BINARY] [--store STORE | CAPTURES...]

Reads STORE, or one built from CAPTURES, or one built from a made-up crawl. Each tool computes URLs, pages, captures,
captures that failed or have unknown links, distinct links and link occurrences, the last by decoding the `changes`
column (gaps in LEB128, see layers/src/format.md); all must equal `webstrata info --format json`, and the in-link side
must tell the same links as the out-link side. Prints one line a tool; exit code 1 where anything differs.
Needs the packages of requirements.txt, best in an environment of its own; .ci/run makes one.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timezone

LAYERS = ["url", "ol", "ts", "bv", "rv", "il", "tr", "ibv"]
COLUMNS = {
    "url": ["uid", "url", "surt"], "ol": ["uid", "links"],
    "ts": ["uid", "timestamps", "blank", "status_captures", "statuses"],
    "bv": ["uid", "changes"],
    "rv": ["uid", "digests", "revisits", "not_modified", "without_status", "referring", "referred", "with_links",
           "links", "elsewhere", "forms"],
    "il": ["uid", "links"], "tr": ["uid", "ranges"], "ibv": ["uid", "changes"],
}


def decoded(changes, links, captures):
    """The (link, capture) pairs that a `changes` value codes, as layers/src/format.md says."""
    half = captures - 1
    place, gap, shift, last = -1, 0, 0, None
    for byte in changes or b"":
        gap |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            place += gap + 1
            gap, shift = 0, 0
            link, within = divmod(place, 2 * half)
            if link >= links:
                raise ValueError("a change outside the matrix")
            if within >= half and link != last:
                yield link, 0
            yield link, within % half + 1
            last = link
    if shift:
        raise ValueError("changes end inside a number")


def failures(captures, status_captures, statuses):
    """The captures with a status of 400 or above: each of `status_captures` begins a run of the status beside it."""
    if status_captures is None:
        return set()
    changes = [int(index) for index in status_captures] + [captures]
    spans = zip(changes, changes[1:], statuses)
    return {index for first, end, status in spans if status >= 400 for index in range(first, end)}


def occurrences(links, captures, blank, changes):
    """How many (link, capture) pairs there are in one page's matrix, without the captures that it says nothing of."""
    known_before = [0]
    for index in range(captures):
        known_before.append(known_before[-1] + (index not in blank))
    total = links * known_before[captures]        # a link without changes is in every capture
    absent_from = {}                              # link -> capture since which it is absent
    for link, capture in decoded(changes, links, captures):
        if link in absent_from:
            total -= known_before[capture] - known_before[absent_from.pop(link)]
        else:
            absent_from[link] = capture
    for capture in absent_from.values():
        total -= known_before[captures] - known_before[capture]
    return total


def count(urls, pages, in_links, where):
    """Counts from rows of pages (uid, links, captures, blank, status_captures, statuses, changes), and of in-links
    (uid, links)."""
    counts = dict.fromkeys(("pages", "captures", "failed_captures", "unknown_captures", "links", "occurrences"), 0)
    counts["urls"] = urls
    before = -1
    for uid, links, captures, blank, status_captures, statuses, changes in pages:
        if uid <= before:
            sys.exit(f"{where}: UID {uid} after {before}")
        before = uid
        counts["pages"] += 1
        counts["captures"] += captures
        failed = failures(captures, status_captures, statuses)
        blank = set() if blank is None else {int(index) for index in blank}
        if not failed <= blank:
            sys.exit(f"{where}: a failure of UID {uid} is not blank")
        counts["failed_captures"] += len(failed)
        counts["unknown_captures"] += len(blank - failed)
        counts["links"] += len(links)
        counts["occurrences"] += occurrences(len(links), captures, blank, changes)
    counts["links seen from their targets"] = sum(len(sources) for _, sources in in_links)
    return counts


def files_of(store, info):
    """The files of each layer in the current epoch: other epochs may have rows in the same directory."""
    files = {layer: [] for layer in LAYERS}
    for row in info["rows"]:
        for partition in row["partitions"]:
            for file in partition["files"]:
                files[file["layer"]].append(os.path.join(store, file["path"]))
    for layer, paths in files.items():
        if not paths:
            sys.exit(f"{store}: no files of layer {layer}")
    return files


def with_duckdb(files):
    import duckdb
    con = duckdb.connect()
    for layer in LAYERS:
        con.execute(f"create view {layer}_ as select * from read_parquet({files[layer]!r})")
        require_columns("DuckDB", layer, [row[0] for row in con.execute(f"describe {layer}_").fetchall()])
    urls = con.execute("select count(distinct url) from url_").fetchone()[0]
    pages = con.execute("select uid, ol_.links, len(timestamps), blank, status_captures, statuses, changes "
                        "from ol_ join ts_ using (uid) join bv_ using (uid) join rv_ using (uid) "
                        "order by uid").fetchall()
    first, last = con.execute("select epoch_ms(min(t)) // 1000, epoch_ms(max(t)) // 1000 "
                              "from (select unnest(timestamps) t from ts_)").fetchone()
    in_links = con.execute("select uid, links from il_ join tr_ using (uid) join ibv_ using (uid)").fetchall()
    span = {"first_time": iso(first), "last_time": iso(last)}
    return duckdb.__version__, count(urls, pages, in_links, "DuckDB") | span


def with_pandas(files):
    import pandas
    import pyarrow
    import pyarrow.parquet as parquet
    tables = {}
    for layer in LAYERS:
        tables[layer] = pyarrow.concat_tables(parquet.ParquetFile(path).read() for path in files[layer])
        require_columns("pyarrow", layer, tables[layer].column_names)
    frames = {layer: table.to_pandas() for layer, table in tables.items()}
    pages = frames["ol"].merge(frames["ts"], on="uid").merge(frames["bv"], on="uid")
    pages = pages.merge(frames["rv"][["uid"]], on="uid").sort_values("uid")
    rows = [(row.uid, row.links, len(row.timestamps), row.blank, row.status_captures, row.statuses, row.changes)
            for row in pages.itertuples()]
    targets = frames["il"].merge(frames["tr"], on="uid").merge(frames["ibv"], on="uid")
    times = pandas.to_datetime(frames["ts"]["timestamps"].explode(), utc=True)
    span = {"first_time": iso(times.min().timestamp()), "last_time": iso(times.max().timestamp())}
    in_links = zip(targets["uid"], targets["links"])
    counts = count(int(frames["url"]["url"].nunique()), rows, in_links, "pandas")
    return f"{pyarrow.__version__}, pandas {pandas.__version__}", counts | span


def with_polars(files):
    import polars
    frames = {}
    for layer in LAYERS:
        frames[layer] = polars.concat([polars.read_parquet(path) for path in files[layer]])
        require_columns("Polars", layer, frames[layer].columns)
    pages = frames["ol"].join(frames["ts"], on="uid").join(frames["bv"], on="uid")
    pages = pages.join(frames["rv"].select("uid"), on="uid").sort("uid")
    captures = polars.col("timestamps").list.len()
    chosen = pages.select("uid", "links", captures, "blank", "status_captures", "statuses", "changes")
    targets = frames["il"].join(frames["tr"], on="uid").join(frames["ibv"], on="uid")
    times = frames["ts"]["timestamps"].explode().dt.epoch("s")
    span = {"first_time": iso(times.min()), "last_time": iso(times.max())}
    in_links = targets.select("uid", "links").iter_rows()
    return polars.__version__, count(frames["url"]["url"].n_unique(), chosen.iter_rows(), in_links, "Polars") | span


def iso(seconds):
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def require_columns(tool, layer, names):
    if list(names) != COLUMNS[layer]:
        sys.exit(f"{tool}: layer {layer} has columns {list(names)}, expected {COLUMNS[layer]}")


def self_test():
    """The matrix of three captures, the second unknown: link 0 always, link 1 gone at last, link 2 only at last."""
    assert list(decoded(bytes([5, 5]), 3, 3)) == [(1, 2), (2, 0), (2, 2)]
    assert list(decoded(bytes([0x80, 0x01]), 1, 1000)) == [(0, 129)]
    assert occurrences(3, 3, {1}, bytes([5, 5])) == 2 + 1 + 1
    assert occurrences(2, 4, set(), None) == 8
    assert failures(6, [1, 3, 4], [404, 200, 503]) == {1, 2, 4, 5}


def fail_some(path):
    """Makes every ninth capture of a file of JSON lines a failure of one kind or another."""
    with open(path, encoding="utf-8") as file:
        captures = [json.loads(line) for line in file]
    for number, capture in enumerate(captures):
        if number % 9 == 0:
            capture["status"] = (404, 410, 503, 429)[number // 9 % 4]
            capture["links"] = []
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(capture) + "\n" for capture in captures)


def build(binary, captures, directory):
    store = os.path.join(directory, "store")
    if not captures:
        captures = [os.path.join(directory, "crawl.jsonl")]
        subprocess.run([binary, "generate", "irregular:occurrences=200000,seed=5,months=60",
                        "--out", captures[0]], check=True)
        fail_some(captures[0])
    subprocess.run([binary, "build", "--out", store, *captures], check=True, stdout=subprocess.DEVNULL)
    return store


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*")
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("--store")
    args = parser.parse_args()
    self_test()
    with tempfile.TemporaryDirectory() as directory:
        store = args.store or build(args.webstrata, args.captures, directory)
        info = subprocess.run([args.webstrata, "info", store, "--format", "json"], check=True, capture_output=True)
        info = json.loads(info.stdout)
        files, expected = files_of(store, info), info["counts"]
        if not expected.pop("exact"):
            sys.exit(f"{store}: the counts of one row are exact")
        expected["links seen from their targets"] = expected["links"]
        print("webstrata:", json.dumps(expected))
        wrong = 0
        for name, read in [("DuckDB", with_duckdb), ("pyarrow", with_pandas), ("Polars", with_polars)]:
            version, got = read(files)
            differences = {key: (got.get(key), want) for key, want in expected.items() if got.get(key) != want}
            wrong += len(differences)
            print(f"{name} {version}: {'the same' if not differences else f'differs (got, expected): {differences}'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Other tools read a store: DuckDB, pyarrow with pandas, and Polars open every layer and count what is in it.

  interop.py [--webstrata BINARY] [--store STORE | CAPTURES...]

Reads STORE, or one built from CAPTURES, or one built from a made-up crawl. Each tool computes URLs, pages, captures,
captures with unknown links, distinct links and link occurrences, the last by decoding the `changes` column (gaps in
LEB128, see layers/src/format.md); all must equal `webstrata info --format json`, and the in-link side must tell the
same links as the out-link side. Prints one line a tool; exit code 1 where anything differs.
Needs the packages of requirements.txt, best in an environment of its own; .ci/run makes one.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

LAYERS = ["url", "ol", "ts", "bv", "rv", "il", "tr", "ibv"]
COLUMNS = {
    "url": ["uid", "url", "surt"], "ol": ["uid", "links"], "ts": ["uid", "timestamps", "unknown"],
    "bv": ["uid", "changes"],
    "rv": ["uid", "digests", "revisits", "not_modified", "referring", "referred", "with_links", "links"],
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


def occurrences(links, captures, unknown, changes):
    """How many (link, known capture) pairs there are in one page's matrix."""
    unknown = set() if unknown is None else {int(index) for index in unknown}
    known_before = [0]
    for index in range(captures):
        known_before.append(known_before[-1] + (index not in unknown))
    total = links * known_before[captures]        # a link without changes is in every known capture
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
    """Counts from rows (uid, links, captures, unknown, changes) of pages and (uid, links) of in-links."""
    counts = {"urls": urls, "pages": 0, "captures": 0, "unknown_captures": 0, "links": 0, "occurrences": 0}
    before = -1
    for uid, links, captures, unknown, changes in pages:
        if uid <= before:
            sys.exit(f"{where}: UID {uid} after {before}")
        before = uid
        counts["pages"] += 1
        counts["captures"] += captures
        counts["unknown_captures"] += 0 if unknown is None else len(unknown)
        counts["links"] += len(links)
        counts["occurrences"] += occurrences(len(links), captures, unknown, changes)
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
    pages = con.execute("select uid, ol_.links, len(timestamps), unknown, changes from ol_ join ts_ using (uid) "
                        "join bv_ using (uid) join rv_ using (uid) order by uid").fetchall()
    first, last = con.execute("select epoch_ms(min(t)) // 1000, epoch_ms(max(t)) // 1000 "
                              "from (select unnest(timestamps) t from ts_)").fetchone()
    in_links = con.execute("select uid, links from il_ join tr_ using (uid) join ibv_ using (uid)").fetchall()
    return duckdb.__version__, count(urls, pages, in_links, "DuckDB") | {"first_time": first, "last_time": last}


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
    rows = [(row.uid, row.links, len(row.timestamps), row.unknown, row.changes) for row in pages.itertuples()]
    targets = frames["il"].merge(frames["tr"], on="uid").merge(frames["ibv"], on="uid")
    times = pandas.to_datetime(frames["ts"]["timestamps"].explode(), utc=True)
    span = {"first_time": int(times.min().timestamp()), "last_time": int(times.max().timestamp())}
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
    chosen = pages.select("uid", "links", polars.col("timestamps").list.len(), "unknown", "changes")
    targets = frames["il"].join(frames["tr"], on="uid").join(frames["ibv"], on="uid")
    times = frames["ts"]["timestamps"].explode().dt.epoch("s")
    span = {"first_time": times.min(), "last_time": times.max()}
    in_links = targets.select("uid", "links").iter_rows()
    return polars.__version__, count(frames["url"]["url"].n_unique(), chosen.iter_rows(), in_links, "Polars") | span


def require_columns(tool, layer, names):
    if list(names) != COLUMNS[layer]:
        sys.exit(f"{tool}: layer {layer} has columns {list(names)}, expected {COLUMNS[layer]}")


def self_test():
    """The matrix of three captures, the second unknown: link 0 always, link 1 gone at last, link 2 only at last."""
    assert list(decoded(bytes([5, 5]), 3, 3)) == [(1, 2), (2, 0), (2, 2)]
    assert list(decoded(bytes([0x80, 0x01]), 1, 1000)) == [(0, 129)]
    assert occurrences(3, 3, [1], bytes([5, 5])) == 2 + 1 + 1
    assert occurrences(2, 4, None, None) == 8


def build(binary, captures, directory):
    store = os.path.join(directory, "store")
    if not captures:
        captures = [os.path.join(directory, "crawl.jsonl")]
        subprocess.run([binary, "generate", "irregular:occurrences=200000,seed=5,months=60",
                        "--out", captures[0]], check=True)
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

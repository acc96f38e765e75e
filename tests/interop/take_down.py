#!/usr/bin/env python3
"""What `webstrata remove` takes out is in no answer and in no file, and all else is as in a build without it.

  take_down.py [--webstrata BINARY] [--crawl CRAWL] [--urls N] [--hosts N] [--seed S]

Generates a crawl, builds a store of its first half, updates it with the second, and takes out N random URLs (pages and
targets alike), N hosts, and all captures of one domain in a period. Asks for them by every way: links, in-links,
captures, questions in lines, UIDs, a server over HTTP, exports, SQL views in DuckDB. Adds the first half again, merges,
removes old epochs, writes cells. Then looks for the URLs in every file: every text of every Parquet file (read by
pyarrow, so decompressed), every byte of all others, and by `check --removed`. The rows must have the bytes of a store
that was built from the captures without what was taken out, which this script leaves out by itself.

Prints the figures; exit code 1 at the first difference. Needs pyarrow and duckdb.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

PERIOD = ("20060801000000", "20061130235959")


def host_of(url):
    return url.split("://")[1].split("/")[0].split(":")[0]


def fail(text):
    sys.exit(f"take_down.py: {text}")


class Removed:
    """What is taken out, by texts."""

    def __init__(self, urls, hosts, domain):
        self.urls, self.hosts, self.domain = set(urls), set(hosts), domain

    def always(self, url):
        return url in self.urls or host_of(url) in self.hosts

    def at(self, url, moment):
        host = host_of(url)
        inside = PERIOD[0] <= moment <= PERIOD[1] and (host == self.domain or host.endswith("." + self.domain))
        return inside or self.always(url)


def without(lines, removed):
    """The captures that stay, with the links that stay."""
    for line in lines:
        capture = json.loads(line)
        if not removed.at(capture["url"], capture["ts"]):
            links = capture.get("links", [])
            capture["links"] = [link for link in links if not removed.at(link, capture["ts"])]
            yield json.dumps(capture) + "\n"


def rows_of(store):
    """The bytes of the layers of the only row of the current epoch."""
    newest = max((store / "epochs").iterdir())
    [row] = json.loads(newest.read_text())["rows"]
    files = sorted(file["path"] for partition in row["partitions"] for file in partition["files"])
    return {path.split("/", 2)[2]: (store / path).read_bytes() for path in files}


def texts_of(array):
    """All texts in a column, whatever it is nested in."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return set(array.unique().to_pylist())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return {value.decode("utf-8", "replace") for value in array.unique().to_pylist() if value is not None}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return set().union(*(texts_of(chunk.values) for chunk in array.chunks)) if array.num_chunks else set()
    return set()


def find_in_files(store, gone):
    """Files that hold one of the URLs that are gone, and how many files were read."""
    found, files = [], 0
    needles = [url.encode() for url in gone]
    for path in sorted(store.rglob("*")):
        if not path.is_file():
            continue
        files += 1
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            for name in table.column_names:
                texts = texts_of(table[name])
                found += [(path.name, url) for url in gone & texts]
        elif "epochs" in path.parts:
            manifest = json.loads(path.read_text())
            text = json.dumps(manifest).encode()
            found += [(path.name, needle.decode()) for needle in needles if needle in text]
        else:
            content = path.read_bytes()
            found += [(path.name, needle.decode()) for needle in needles if needle in content]
    return found, files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", type=pathlib.Path, default="target/release/webstrata")
    parser.add_argument("--crawl", default="uk:occurrences=300000,months=12,deaths=50")
    parser.add_argument("--urls", type=int, default=1000)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    binary = args.webstrata.resolve()

    def call(*command, **more):
        done = subprocess.run([binary, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def run(*command, **more):
        code, out, err = call(*command, **more)
        if code != 0:
            fail(f"{command}: exit {code}: {err}")
        return out

    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        crawl, store, once = directory / "crawl.jsonl", directory / "store", directory / "once"
        run("generate", args.crawl, "--out", crawl)
        lines = crawl.read_text().splitlines()
        captures = [json.loads(line) for line in lines]
        urls = sorted({url for capture in captures for url in [capture["url"], *capture.get("links", [])]})
        hosts = sorted({host_of(url) for url in urls})
        draw = random.Random(args.seed)
        domain = ".".join(host_of(captures[0]["url"]).split(".")[-3:])
        others = [host for host in hosts if not host.endswith(domain)]
        chosen_hosts = draw.sample(others, min(args.hosts, len(hosts) // 3))
        removed = Removed(draw.sample(urls, min(args.urls, len(urls) // 3)), chosen_hosts, domain)
        gone = {url for url in urls if removed.always(url)}
        listed = directory / "list.txt"
        listed.write_text("".join(url + "\n" for url in sorted(removed.urls)))
        half = len(lines) // 2
        (directory / "first.jsonl").write_text("\n".join(lines[:half]) + "\n")
        (directory / "second.jsonl").write_text("\n".join(lines[half:]) + "\n")
        run("build", "--out", store, directory / "first.jsonl")
        run("update", store, "--no-merge", directory / "second.jsonl")
        begun = time.monotonic()
        options = [option for host in chosen_hosts for option in ("--host", host)]
        run("remove", store, "--no-merge", "--urls", listed, *options, "--reason", "a test")
        period = ["--from", PERIOD[0], "--to", PERIOD[1]]
        run("remove", store, "--no-merge", "--domain", domain, *period)
        seconds = time.monotonic() - begun

        left = [json.loads(line) for line in without(lines, removed)]
        right = {"page": {}, "target": {}}
        for capture in left:
            right["page"].setdefault(capture["url"], set()).add(capture["ts"])
            for link in capture["links"]:
                right["target"].setdefault(link, set()).add(capture["url"])
        asked = sorted(draw.sample(sorted(gone), min(200, len(gone))))
        asked += draw.sample([url for url in urls if host_of(url).endswith(domain)], 50)
        asked += draw.sample([url for url in urls if url not in gone], 50)

        def linked(url):
            return right["target"].get(url, set())

        def links(url):
            return {link for capture in left if capture["url"] == url for link in capture["links"]}

        out_of = {url: links(url) for url in asked}
        known = {url for url in urls if url in right["page"] or url in right["target"]}

        def ask_all(name, merged):
            # A URL that is gone with the merge is unknown then; before, it has no captures and no links.
            names = [url for url in asked if url in known] if merged else asked
            for direction, expected in (("in", linked), ("out", out_of.get)):
                fields = ({"id": n, "op": "links", "url": url, "direction": direction} for n, url in enumerate(names))
                text = "".join(json.dumps(question) + "\n" for question in fields)
                answers = [json.loads(line) for line in run("query", store, input=text.encode()).splitlines()]
                for answer, url in zip(answers, names, strict=True):
                    if set(answer.get("links", [])) != expected(url):
                        fail(f"{name}: {direction} of {url}: {answer}")
            for url in names[:60]:
                code, out, err = call("captures", store, url)
                times = {line.split()[0].translate(str.maketrans("", "", "-:TZ")) for line in out.splitlines()}
                if code == 0 and times != right["page"].get(url, set()) and "never" not in out:
                    fail(f"{name}: captures of {url}: {out[:200]}")
            if merged:
                for url in [url for url in asked if url not in known][:60]:
                    for command in ("links", "captures"):
                        code, out, err = call(command, store, url)
                        if code == 0 or url in out:
                            fail(f"{name}: {command} {url}: {out[:200]}")
                held = set(run("uids", store).split())
                if held & gone:
                    fail(f"{name}: uids lists {sorted(held & gone)[:3]}")
            for export in ("edges", "events", "hosts") + (("nodes",) if merged else ()):
                path = directory / f"{export}.parquet"
                run("export", store, "--what", export, "--out", path)
                table = pq.read_table(path)
                texts = set().union(*(texts_of(table[column]) for column in table.column_names))
                if texts & gone:
                    fail(f"{name}: export {export} has {sorted(texts & gone)[:3]}")
            views = directory / "views.sql"
            run("sql", store, "--out", views)
            with duckdb.connect() as database:
                database.execute(views.read_text())
                pairs = set(database.execute(
                    "SELECT a.url, b.url FROM links JOIN urls a ON a.uid = src JOIN urls b ON b.uid = dst").fetchall())
                expected = {(capture["url"], link) for capture in left for link in capture["links"]}
                if pairs != expected:
                    fail(f"{name}: SQL links: {sorted(pairs ^ expected)[:3]}")
                pages = set(row[0] for row in database.execute("SELECT url FROM pages").fetchall())
                if pages != set(right["page"]):
                    fail(f"{name}: SQL pages: {sorted(pages ^ set(right['page']))[:3]}")
            server = subprocess.Popen(
                [binary, "serve", store, "--listen", "127.0.0.1:0", "--data", directory / "data"],
                stdout=subprocess.PIPE, text=True)
            try:
                base = "http://" + server.stdout.readline().split()[-1]
                if not server.stdout.readline().startswith("ready"):
                    fail("the server ended before it was ready")
                for url in names[:60]:
                    for direction, expected in (("in", linked), ("out", out_of.get)):
                        query = urllib.parse.urlencode({"url": url, "direction": direction, "limit": 10000})
                        with urllib.request.urlopen(f"{base}/v1/links?{query}") as response:
                            got = set(json.load(response)["links"])
                        if got != expected(url):
                            fail(f"{name}: HTTP {direction} of {url}: {sorted(got ^ expected(url))[:3]}")
            finally:
                server.terminate()
                server.wait()

        run("cells", store)
        if not find_in_files(store, gone)[0]:
            fail("the search finds nothing where everything still is")
        ask_all("taken out", merged=False)
        run("update", store, "--no-merge", directory / "first.jsonl")
        run("merge", store, "--rows", "all")
        run("cells", store)
        ask_all("merged", merged=True)
        run("remove", store, "--finish")
        for which in ([], [listed]):
            code, out, _ = call("check", store, "--removed", *which)
            if code != 0:
                fail(f"check --removed {which}: {out[:400]}")
        really = {url for url in gone if url not in known}
        found, files = find_in_files(store, really)
        if found:
            fail(f"files: {found[:3]}")
        (directory / "left.jsonl").write_text("".join(json.dumps(capture) + "\n" for capture in left))
        run("build", "--out", once, directory / "left.jsonl")
        got, expected = rows_of(store), rows_of(once)
        if got.keys() != expected.keys() or any(got[name] != expected[name] for name in expected):
            fail(f"rows differ: {[name for name in expected if got.get(name) != expected[name]]}")
        print(f"take_down.py: {len(removed.urls)} URLs, {len(chosen_hosts)} hosts and {domain} in a period: "
              f"{len(lines) - len(left)} of {len(lines)} captures, {len(gone)} of {len(urls)} URLs; two removals in "
              f"{seconds:.2f} s; {files} files: none has any; {len(expected)} files of the row: as in a build without")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Crawl files on other machines give the stores that they give on this one, byte for byte, whatever the servers do.

  remote.py --webstrata BINARY [--occurrences N] [--seed N] [--measure]

BINARY was built with `--features remote`. Starts moto's server on a free port, puts crawl files of many kinds into a
bucket (WARC, WACZ, JSON lines, Parquet, CDX, plain and compressed, an empty one), and then:

  1. builds from the directory, from s3:// (each object, a prefix, a pattern), over HTTP, from lists of names, and from
     a server without ranges: the same bytes in all layers, and the same findings
  2. the same with a proxy between that spoils answers in ten ways, each at least once: the same bytes
  3. reads a WACZ of which most is no crawl file, and a web graph: few bytes more than needed come over the network
  4. kills builds at random places, and gives the same commands again: the same bytes, and nothing left over
  5. asks for files, buckets and servers that are not there, with wrong credentials, and for a file that changes while
     it is read: each is said in one line, with the address and without secrets
  6. reads WACZ and Parquet from standard input, plain and compressed: the same bytes
  7. with --measure: CPU seconds and peak memory of a large build, from local files and from nginx

Prints one line a step; exit code 1 at the first surprise. Needs the packages of s3-requirements.txt.
"""
import argparse
import gzip
import hashlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

from faulty import FAULTS, Proxy
from s3 import BUCKET, Server, require, wait_for

SECRET = "X-Amz-Signature=5ec2e7"
WACZ_OTHER_BYTES = 20 << 20  # bytes of a WACZ that nobody needs


def sum_of(store):
    """A digest of all layer files of a store."""
    names = []
    for folder, _, files in os.walk(os.path.join(store, "rows")):
        names += [os.path.join(folder, name) for name in files]
    require(names, f"{store} has no rows")
    total = hashlib.sha256()
    for name in sorted(names):
        total.update(os.path.relpath(name, store).encode())
        with open(name, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


class Bench:
    """Crawl files in a directory and in the bucket, and builds of them."""

    def __init__(self, binary, server, work):
        self.binary, self.server, self.work, self.count = binary, server, work, 0
        self.crawl = os.path.join(work, "crawl")
        os.makedirs(self.crawl)
        self.keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}

    def environment(self, url=None, **more):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return clean | self.keys | {"AWS_ENDPOINT_URL": url or self.server.url, "AWS_ALLOW_HTTP": "true"} | more

    def start(self, words, url=None, **more):
        words = [self.binary, *map(str, words)]
        return subprocess.Popen(words, env=self.environment(url, **more), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, code=0, url=None, stdin=b"", **more):
        process = self.start(words, url, **more)
        out, err = process.communicate(stdin)
        out, err = out.decode(), err.decode()
        require(process.returncode == code, f"{' '.join(map(str, words))}: exit code {process.returncode}\n{out}{err}")
        return out if code == 0 else err

    def store(self):
        self.count += 1
        return os.path.join(self.work, f"store{self.count}")

    def build(self, *words, url=None, stdin=b"", workers=2):
        """The digest of a store of these inputs, and its findings."""
        store = self.store()
        out = self.run("build", "--out", store, "-w", workers, "--spill", self.spill(), "--partition-urls", 2000,
                       *words, url=url, stdin=stdin)
        findings = [line.split(": ", 1)[0] if ".wacz!" in line else line for line in out.splitlines()
                    if line.startswith(("damaged", "left out", "skipped", "files not read"))]
        return sum_of(store), findings

    def spill(self):
        spill = os.path.join(self.work, "spill")
        os.makedirs(spill, exist_ok=True)
        return spill

    def make_crawl(self, occurrences):
        for name, seed in [("a.warc.gz", 1), ("b.warc", 2), ("c.jsonl", 3), ("d.parquet", 4), ("e.jsonl.gz", 5)]:
            out = os.path.join(self.crawl, name)
            self.run("generate", f"uk:occurrences={occurrences},seed={seed},deaths=30", "--out", out)
        os.makedirs(os.path.join(self.crawl, "below"))
        for name, inner in [("f.wacz", "a.warc.gz"), ("below/g.wacz", "b.warc")]:
            with zipfile.ZipFile(os.path.join(self.crawl, name), "w") as archive:
                archive.writestr("logs/crawl.log", random.Random(7).randbytes(WACZ_OTHER_BYTES), zipfile.ZIP_STORED)
                with open(os.path.join(self.crawl, inner), "rb") as warc:
                    pressed = zipfile.ZIP_STORED if inner.endswith(".gz") else zipfile.ZIP_DEFLATED
                    archive.writestr(f"archive/{os.path.basename(inner)}", warc.read(), pressed)
        with open(os.path.join(self.crawl, "h i+j%20.cdx"), "w", encoding="ascii") as cdx:
            cdx.write(" CDX N b a m s k r M S V g\n")
            for number in range(2000):
                cdx.write(f"org,example)/{number} 2006010100{number % 3600 // 60:02}{number % 60:02} "
                          f"http://example.org/{number} text/html 200 - - - - - x.warc.gz\n")
        # A name may have the letters of a pattern.
        with open(os.path.join(self.crawl, "k[l].jsonl"), "w", encoding="ascii") as lines:
            lines.write('{"url":"http://k.example/","ts":"2006","links":[]}\n')
        open(os.path.join(self.crawl, "empty.warc.gz"), "wb").close()
        with open(os.path.join(self.crawl, "cut.warc.gz"), "wb") as cut:
            with open(os.path.join(self.crawl, "a.warc.gz"), "rb") as whole:
                cut.write(whole.read()[:100_000])
        self.names = []
        for folder, _, files in os.walk(self.crawl):
            self.names += [os.path.relpath(os.path.join(folder, name), self.crawl) for name in files]
        self.names.sort()
        for name in self.names:
            self.server.s3.upload_file(os.path.join(self.crawl, name), BUCKET, f"crawls/{name}")

    def addresses(self, scheme, url=None):
        if scheme == "s3":
            return [f"s3://{BUCKET}/crawls/{name}" for name in self.names]
        quoted = [name.replace("%", "%25").replace(" ", "%20") for name in self.names]
        return [f"{url or self.server.url}/{BUCKET}/crawls/{name}?{SECRET}" for name in quoted]


def places(bench):
    expected = bench.build(bench.crawl)
    ways = {
        "s3, each object": bench.addresses("s3"),
        "s3, a prefix": [f"s3://{BUCKET}/crawls/"],
        "s3, patterns": [f"s3://{BUCKET}/crawls/*", f"s3://{BUCKET}/cr*/[b]*/*.wacz"],
        "HTTP": bench.addresses("http"),
    }
    names = os.path.join(bench.work, "names.gz")
    with gzip.open(names, "wt") as file:
        file.write("\r\n\n".join(bench.names) + "\n")
    ways["a list, compressed, with a prefix"] = ["--files-from", names, "--prefix", f"s3://{BUCKET}/crawls"]
    bench.server.s3.put_object(Bucket=BUCKET, Key="lists/all", Body="\n".join(bench.addresses("s3")).encode())
    ways["a list on the server"] = ["--files-from", f"s3://{BUCKET}/lists/all"]
    for way, words in ways.items():
        got = bench.build(*words)
        require(got[0] == expected[0], f"{way}: other bytes than from the directory")
        require(len(got[1]) == len(expected[1]), f"{way}: {got[1]}, from the directory {expected[1]}")
    # A list is an input, too.
    store = bench.store()
    bench.run("build", "--out", store, "--files-from", names, "--prefix", f"s3://{BUCKET}/crawls")
    inputs = [json.loads(line) for line in bench.run("log", store, "--inputs", "--format", "json").splitlines()]
    lists = [entry for entry in inputs if entry["name"] == names]
    require([(entry["bytes"], entry["captures"]) for entry in lists] == [(os.path.getsize(names), 0)],
            f"the list {names} is not among the inputs: {inputs}")
    require(all(entry["digest"] for entry in lists), f"no digest of the list: {lists}")
    listed = "\n".join(bench.addresses("s3")).encode()
    require(bench.build("--files-from", "-", stdin=listed)[0] == expected[0], "a list on standard input")
    # Python's own server knows no ranges.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", bench.crawl]
    plain = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("the plain server", lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        urls = [address.replace(f"{bench.server.url}/{BUCKET}/crawls", f"http://127.0.0.1:{port}")
                for address in bench.addresses("http")]
        require(bench.build(*urls)[0] == expected[0], "a server without ranges: other bytes")
    finally:
        plain.terminate()
        plain.wait()
    print(f"1. {len(bench.names)} files, {len(ways) + 3} ways: the same bytes", flush=True)
    return expected[0]


def faults(bench, expected, seed):
    upstream = bench.server.url.removeprefix("http://").split(":")
    spoiled = 0
    with Proxy((upstream[0], int(upstream[1]))) as proxy:
        for scheme in ("s3", "http"):
            for fault in FAULTS:
                # One of these requests is spoiled again when it is repeated.
                chance = random.Random(f"{seed} {scheme} {fault}")
                proxy.clear()
                proxy.spoil = lambda request: fault if chance.random() < 0.2 or request.number in (0, 7, 8) else None
                words = bench.addresses(scheme, proxy.url)
                # The list of the bucket is spoiled, too.
                words += [f"s3://{BUCKET}/crawls/"] if scheme == "s3" else []
                got = bench.build(*words, url=proxy.url)[0]
                require(got == expected, f"{scheme}, {fault} ({FAULTS[fault]}): other bytes")
        # A store in a bucket is read as patiently as crawl files.
        store, local = f"s3://{BUCKET}/store", bench.store()
        for out in (store, local):
            bench.run("build", "--out", out, "--partition-urls", 2000, bench.crawl)
        expected = bench.run("export", local, "--what", "nodes", "--format", "csv", "--out", "-")
        for fault in FAULTS:
            chance = random.Random(f"{seed} store {fault}")
            proxy.clear()
            proxy.spoil = lambda request: fault if request.method == "GET" and (
                chance.random() < 0.2 or request.number in (5, 6)) else None
            got = bench.run("export", store, "--what", "nodes", "--format", "csv", "--out", "-", url=proxy.url)
            require(got == expected, f"a store, {fault} ({FAULTS[fault]}): other nodes")
        for fault in FAULTS:
            require(proxy.spoiled[fault] >= 4, f"{fault}: only {proxy.spoiled[fault]} answers were spoiled")
        spoiled = sum(proxy.spoiled.values())
    print(f"2. {len(FAULTS)} faults, {spoiled} spoiled answers: the same bytes", flush=True)


def ranges(bench):
    upstream = bench.server.url.removeprefix("http://").split(":")
    with Proxy((upstream[0], int(upstream[1]))) as proxy:
        bench.build(f"s3://{BUCKET}/crawls/f.wacz", url=proxy.url)
        whole = os.path.getsize(os.path.join(bench.crawl, "f.wacz"))
        needed = os.path.getsize(os.path.join(bench.crawl, "a.warc.gz"))
        require(needed < proxy.bytes < needed + (1 << 20), f"{proxy.bytes} bytes for a member of {needed}")
        print(f"3. a WACZ of {whole:,} bytes with a crawl file of {needed:,}: {proxy.bytes:,} bytes in "
              f"{len(proxy.requests)} requests", flush=True)
        # Each file of a web graph is looked into before it is read.
        graphs = os.path.join(bench.work, "graphs")
        bench.run("generate", "uk:occurrences=2000000,months=1", "--as", "cc-graph", "--out", graphs)
        release = os.path.join(graphs, "2006-05")
        for name in os.listdir(release):
            bench.server.s3.upload_file(os.path.join(release, name), BUCKET, f"release/{name}")
        needed = sum(os.path.getsize(os.path.join(release, name)) for name in os.listdir(release))
        options = ["--format", "cc-graph", "--time", "2006-05"]
        expected = bench.build(*options, release)[0]
        proxy.clear()
        got = bench.build(*options, f"s3://{BUCKET}/release/", url=proxy.url)[0]
        require(got == expected, "a web graph: other bytes")
        require(needed < proxy.bytes < needed + (1 << 19), f"{proxy.bytes} bytes for a web graph of {needed}")
        print(f"   a web graph of {needed:,} bytes: the same bytes, {proxy.bytes:,} over the network", flush=True)


def kills(bench, expected, seed):
    chance = random.Random(seed)
    killed = 0
    for scheme in ("s3", "http"):
        begun = time.monotonic()
        bench.build(*bench.addresses(scheme))
        seconds = time.monotonic() - begun
        for _ in range(4):
            store = bench.store()
            words = ["build", "--out", store, "-w", 2, "--spill", bench.spill(), "--partition-urls", 2000,
                     *bench.addresses(scheme)]
            for _ in range(3):
                process = bench.start(words)
                time.sleep(chance.uniform(0.1, 0.9) * seconds)
                killed += process.poll() is None
                process.send_signal(signal.SIGKILL)
                process.communicate()
                if os.path.exists(os.path.join(store, "CURRENT")):
                    break
            if not os.path.exists(os.path.join(store, "CURRENT")):
                bench.run(*words)
            require(sum_of(store) == expected, f"{scheme}: other bytes after a kill")
            require(not os.listdir(bench.spill()), f"left in the spill directory: {os.listdir(bench.spill())}")
    require(killed >= 8, f"only {killed} builds were killed")
    print(f"4. {killed} builds killed and given again: the same bytes", flush=True)


def refusals(bench):
    url = bench.server.url
    nobody = "http://127.0.0.1:9"
    for words, texts, more in [
        ([f"s3://{BUCKET}/crawls/none.warc.gz"], ["none.warc.gz", "no such file"], {}),
        ([f"s3://{BUCKET}/none/*.gz"], ["none/*.gz", "no such file"], {}),
        (["s3://no-such-bucket/a.warc.gz"], ["s3://no-such-bucket/a.warc.gz"], {}),
        (["s3:///a.warc.gz"], ["names no bucket"], {}),
        ([f"s3://{BUCKET}/a//b"], ["empty names"], {}),
        ([f"{url}/{BUCKET}/none.warc.gz?{SECRET}"], [f"{url}/{BUCKET}/none.warc.gz: no such file"], {}),
        ([f"{nobody}/a.warc.gz?{SECRET}"], [f"{nobody}/a.warc.gz", "refused"], {}),
        ([f"https://user:{SECRET}@127.0.0.1:9/a"], ["https://127.0.0.1:9/a"], {}),
        (["https://"], ["https://"], {}),
        (["gs://bucket/a"], ["unknown scheme"], {}),
        (["--files-from", f"{url}/{BUCKET}/none.txt?{SECRET}"], ["none.txt: no such file"], {}),
        (["--files-from", os.path.join(bench.crawl, "cut.warc.gz")], ["cut.warc.gz"], {}),
    ]:
        error = bench.run("build", "--out", bench.store(), *words, code=1, **more)
        # Lines of progress come where a machine is slow.
        lines = [line for line in error.strip().splitlines() if not line.startswith("start: ")]
        require(len(lines) <= 2, f"{words}: {error}")
        for text in texts:
            require(text in error, f"{words}: {text!r} is not in {error!r}")
        require("5ec2e7" not in error, f"a secret is in {error!r}")
    # No store knows the secrets of its inputs.
    store = bench.store()
    bench.run("build", "--out", store, *bench.addresses("http"))
    for folder, _, files in os.walk(store):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                require(b"5ec2e7" not in file.read(), f"{name} has a secret")
    require(f"{url}/{BUCKET}/crawls/a.warc.gz" in bench.run("log", store, "--inputs"), "the address is no provenance")
    # A file that changes while it is read.
    key, other = "changing.jsonl", random.Random(8)
    line = '{"url":"http://example.org/%d","ts":"20200101","links":["http://example.org/%d"]}\n'
    body = "".join(line % (other.randrange(10**9), number) for number in range(300_000)).encode()
    bench.server.s3.put_object(Bucket=BUCKET, Key=key, Body=body)
    upstream = url.removeprefix("http://").split(":")
    with Proxy((upstream[0], int(upstream[1]))) as proxy:
        def change(request):
            if request.number == 2:
                bench.server.s3.put_object(Bucket=BUCKET, Key=key, Body=body[::-1])

        proxy.spoil = change
        error = bench.run("build", "--out", bench.store(), f"s3://{BUCKET}/{key}", code=1, url=proxy.url)
    require("changed while it was read" in error, error)
    print("5. refusals name what failed, and no secrets", flush=True)


def pipes(bench):
    for name in ("f.wacz", "below/g.wacz", "d.parquet"):
        path = os.path.join(bench.crawl, name)
        expected = bench.build(path)[0]
        with open(path, "rb") as file:
            content = file.read()
        for stdin in (content, gzip.compress(content, 1)):
            require(bench.build("-", stdin=stdin)[0] == expected, f"{name} from standard input: other bytes")
    require(not os.listdir(bench.spill()), f"left in the spill directory: {os.listdir(bench.spill())}")
    print("6. WACZ and Parquet from standard input: the same bytes", flush=True)


def measure(bench):
    # moto copies a whole object for each range, so a large build waits for it. nginx is a server as archives have it.
    place = os.path.join(bench.work, "nginx")
    os.makedirs(place)
    names = [f"{seed}.warc.gz" for seed in range(1, 6)]
    for name in names:
        bench.run("generate", f"uk:occurrences=4000000,seed={name.split('.')[0]}", "--out", os.path.join(place, name))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = os.path.join(bench.work, "nginx.conf")
    with open(settings, "w", encoding="ascii") as file:
        # Its workers could not read the temporary directory of root as another user.
        file.write("user root;\n" if os.getuid() == 0 else "")
        file.write(f"pid {place}/pid; error_log {place}/errors; daemon off; events {{}}\n"
                   f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {place}; }} }}\n")
    nginx = subprocess.Popen(["nginx", "-c", settings])
    try:
        wait_for("nginx", lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        ways = {"local": [os.path.join(place, name) for name in names],
                "HTTP": [f"http://127.0.0.1:{port}/{name}" for name in names]}
        figures = {way: [] for way in ways}
        for _ in range(5):
            for way, inputs in ways.items():
                words = [bench.binary, "build", "--out", bench.store(), "-w", "2", "--memory", "512M", *inputs]
                process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                _, status, used = os.wait4(process.pid, 0)
                require(status == 0, f"{way}: status {status}")
                figures[way].append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    finally:
        nginx.terminate()
        nginx.wait()
    for way, runs in figures.items():
        cpu, memory = (statistics.median(run[at] for run in runs) for at in (0, 1))
        ratio = statistics.median(run[0] / local[0] for run, local in zip(runs, figures["local"]))
        print(f"7. {way}: {cpu:.2f} s of CPU, {ratio:.3f} of local, {memory:.0f} MiB with --memory 512M", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--webstrata", required=True, help="the binary, built with --features remote")
    parser.add_argument("--occurrences", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, Server() as server:
        bench = Bench(os.path.abspath(options.webstrata), server, work)
        bench.make_crawl(options.occurrences)
        expected = places(bench)
        faults(bench, expected, options.seed)
        ranges(bench)
        kills(bench, expected, options.seed)
        refusals(bench)
        pipes(bench)
        if options.measure:
            measure(bench)


if __name__ == "__main__":
    main()

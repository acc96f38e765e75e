#!/usr/bin/env python3
"""A store in S3 is that in a directory, byte for byte, and survives what a directory survives.

  s3.py --webstrata BINARY [--occurrences N]

BINARY was built with `--features remote`. Starts moto's server on a free port, makes a bucket, and then, each step on a
directory and on s3://:

  1. builds a made-up crawl twice (two epochs) and compares all objects with all files; asks info, check, captures,
     links and query, and compares the answers; the same bytes for a build with a file that goes up in parts
  2. kills a build (SIGKILL) after its first upload: readers still see the epoch before, another build is told of the
     lock, and the same command takes the lock over, goes on, makes the same bytes and leaves nothing over
  3. starts a second build while one runs: it gets the lock error and the first is not disturbed
  4. builds with two processes that write to one place: the same bytes
  5. damages an object: `check` names it and a question fails; asks a bucket and a store that are not there
  6. removes old epochs while a process reads one: it stays until that ends, or until its lease, if it was killed, is
     gone; then both places are the same again
  7. updates and merges, one of each killed and given again: the same bytes and answers
  8. serves the store from two servers: the servers answer as the directory does, also after an update while they run
  9. watches the store through updates and a merge, one watch killed and given again: the same tables; a watch that is
     started twice goes on in the second process, and the first one ends with an error

Prints one line a step; exit code 1 at the first surprise. Needs the packages of s3-requirements.txt.
"""
import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import boto3
import botocore.exceptions

BUCKET = "archive"
WAIT_SECONDS = 120
PART_BYTES = 8 << 20  # above this, an object is uploaded in parts


def require(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


def wait_for(what, ready):
    """Asks until the answer is something."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        answer = ready()
        if answer:
            return answer
        time.sleep(0.01)
    sys.exit(f"failed: waited {WAIT_SECONDS} s for {what}")


class Server:
    """moto's server on a free port, gone when the block ends."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the server", self.answers)
        self.s3 = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="test",
                               aws_secret_access_key="test")
        self.s3.create_bucket(Bucket=BUCKET)
        return self

    def answers(self):
        require(self.process.poll() is None, "the server ended; is moto[server] installed?")
        try:
            return urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5).status == 200
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Places:
    """A store in a directory and its twin in the bucket."""

    def __init__(self, binary, server, work, name):
        self.binary, self.work, self.s3 = binary, work, server.s3
        self.directory = os.path.join(work, name)
        self.prefix = f"stores/{name}"
        self.objects_at = f"s3://{BUCKET}/{self.prefix}"
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.environment = clean | keys | {"AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true"}

    def start(self, *arguments):
        words = [self.binary, *map(str, arguments)]
        return subprocess.Popen(words, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *arguments, code=0, stdin=""):
        """Standard output, or standard error where a failure is expected."""
        process = self.start(*arguments)
        out, err = process.communicate(stdin)
        require(process.returncode == code, f"{' '.join(map(str, arguments))}: exit code {process.returncode}\n{err}")
        return out if code == 0 else err

    def start_build(self, *inputs):
        return self.start("build", "--replace", "--out", self.objects_at, "-w", 2, "--spill", self.spill(), *inputs)

    def spill(self):
        spill = os.path.join(self.work, "spill")
        os.makedirs(spill, exist_ok=True)
        return spill

    def build(self, place, *inputs, workers=2, urls=500):
        """A new epoch with only these inputs, also where there is a store."""
        self.run("build", "--replace", "--out", place, "-w", workers, "--spill", self.spill(), "--partition-urls", urls,
                 *inputs)

    def keys(self, under=""):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{self.prefix}/{under}")
        return [item["Key"][len(self.prefix) + 1:] for page in pages for item in page.get("Contents", [])]

    def put(self, name, content):
        self.s3.put_object(Bucket=BUCKET, Key=f"{self.prefix}/{name}", Body=content)

    def object(self, name):
        return self.s3.get_object(Bucket=BUCKET, Key=f"{self.prefix}/{name}")["Body"].read()

    def objects(self):
        return {name: self.object(name) for name in self.keys()}

    def files(self):
        """By name; without the lock, which is empty while nobody writes."""
        files = {}
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, self.directory).replace(os.sep, "/")] = file.read()
        require(files.pop("LOCK") == b"", "the lock of a directory keeps its text")
        return files

    def require_same(self):
        """All bytes; gives how many files there are, and how large."""
        files, objects = self.files(), self.objects()
        require(objects.pop("LOCK", None) == b"", "the lock of a bucket keeps its text")
        require(sorted(files) == sorted(objects),
                f"names differ: {sorted(files.keys() ^ objects.keys())}")
        for name, content in files.items():
            require(objects[name] == content, f"{name} differs")
        require(not os.listdir(self.spill()), "staged files are left")
        return len(files), sum(map(len, files.values())), max(map(len, files.values()))


def conditional_writes(places):
    """Without them no lock holds: say so before anything else fails. s3_writers.py tries what depends on them."""
    key = f"{places.prefix}-probe"
    places.s3.put_object(Bucket=BUCKET, Key=key, Body=b"1", IfNoneMatch="*")
    try:
        places.s3.put_object(Bucket=BUCKET, Key=key, Body=b"2", IfNoneMatch="*")
        sys.exit("failed: this server does not know conditional writes (If-None-Match)")
    except botocore.exceptions.ClientError as error:
        require(error.response["ResponseMetadata"]["HTTPStatusCode"] == 412, f"conditional write: {error}")
    places.s3.delete_object(Bucket=BUCKET, Key=key)


def pages_of(crawl):
    with open(crawl, encoding="utf-8") as lines:
        return sorted({json.loads(line)["url"] for line in lines})


def same_bytes_same_answers(places, crawls):
    for number, crawl in enumerate(crawls, 1):
        places.build(places.directory, crawl, workers=1)
        places.build(places.objects_at, crawl)
        require(places.object("CURRENT").split()[0] == str(number).encode(), "CURRENT is not the last epoch")
    count, size, largest = places.require_same()

    info = json.loads(places.run("info", places.objects_at, "--format", "json"))
    require(info["epoch"] == len(crawls) and info["counts"]["captures"] > 0, "info is empty")
    pages = pages_of(crawls[-1])[::97][:20]
    questions = "".join(json.dumps({"id": page, "op": op, "url": page, **more}) + "\n" for page in pages
                        for op, more in [("captures", {}), ("links", {}), ("links", {"direction": "in"})])
    asked = [("info",), ("check",), ("captures", pages[0]), ("links", pages[0]), ("links", pages[0], "--lifespans"),
             ("links", pages[-1], "--in"), ("query", "--memory", "1K"), ("query",)]
    for command, *rest in asked:
        stdin = questions if command == "query" else ""
        answers = [places.run(command, place, *rest, stdin=stdin).replace(place, "STORE")
                   for place in (places.directory, places.objects_at)]
        require(answers[0] == answers[1] and answers[0], f"{command} answers differ:\n{answers[0]}{answers[1]}")
    print(f"bytes: {count} objects, {size:,} bytes, the largest {largest:,}, equal; {len(asked)} commands answer alike")


def large_objects(places):
    """URLs of random digits, so that their layer does not get small."""
    crawl, digits = os.path.join(places.work, "large.jsonl"), random.Random(1)
    with open(crawl, "w", encoding="utf-8") as lines:
        for page in range(50):
            links = [f"http://a.example/{digits.randbytes(40).hex()}" for _ in range(3000)]
            print(json.dumps({"url": f"http://a.example/{page}", "ts": "2006", "links": links}), file=lines)
    for place in (places.directory, places.objects_at):
        places.build(place, crawl, urls=1_000_000)
    _, size, largest = places.require_same()
    require(largest > PART_BYTES, f"the largest file has only {largest:,} bytes")
    places.run("check", places.objects_at)
    print(f"parts: {size:,} bytes, the largest {largest:,}, equal")


def killed(places, crawl):
    before = places.objects()
    row = max(name.split("/")[1] for name in before if name.startswith("rows/"))
    new = f"rows/{int(row) + 1:06}/"
    build = places.start_build(crawl)
    uploaded = wait_for("the first upload", lambda: places.keys(new) or build.poll() is not None and ["(it ended)"])
    build.send_signal(signal.SIGKILL)
    build.communicate()
    require(build.returncode == -signal.SIGKILL, f"the build ended before it was killed: {uploaded}")
    left = places.keys(new)
    require(left and places.object("CURRENT") == before["CURRENT"], "the kill came too late")
    places.run("check", places.objects_at)
    owner = places.object("LOCK").decode().splitlines()[0]
    error = places.run("build", "--replace", "--out", places.objects_at, "-w", 1, crawl, code=1)
    told = owner in error and f"remove {places.objects_at}/LOCK first" in error and "15 minutes" in error
    require(told, f"the lock error does not say what to do: {error}")
    build = places.start_build("--log", "info", crawl)
    _, said = build.communicate()
    require(build.returncode == 0 and "going on with an unfinished job" in said, f"the same command: {said}")
    places.run("build", "--replace", "--out", places.directory, crawl)
    places.require_same()
    places.run("check", places.objects_at)
    print(f"kill: the same command goes on from {len(left)} objects, equal; another was told {error.strip()!r}")


def two_processes(places, crawl):
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    hosts = os.path.join(places.work, "hosts")
    with open(hosts, "w", encoding="utf-8") as file:
        file.writelines(f"127.0.0.1:{port}\n" for port in ports)
    options = ["--partition-urls", 500, "--spill", places.spill(), crawl]
    command = ["build", "--replace", "--out", places.objects_at, "--hosts", hosts]
    processes = [places.start(*command, "--process", number, "-w", 1, *options) for number in range(2)]
    for process in processes:
        _, said = process.communicate()
        require(process.returncode == 0, f"a process of two: {said}")
    places.build(places.directory, crawl)
    places.require_same()
    print("two processes: equal")


def two_writers(places, crawl):
    build = places.start_build(crawl)
    wait_for("the lock", lambda: places.object("LOCK"))
    build.send_signal(signal.SIGSTOP)  # or it might end before the other begins
    try:
        error = places.run("build", "--replace", "--out", places.objects_at, "-w", 1, crawl, code=1)
        owner = places.object("LOCK").decode().splitlines()[0]
        require(owner in error, f"the lock does not name its writer: {error}")
    finally:
        build.send_signal(signal.SIGCONT)
    _, err = build.communicate()
    require(build.returncode == 0, f"the first writer failed: {err}")
    require(places.object("LOCK") == b"", "the lock is left")
    places.run("build", "--replace", "--out", places.directory, crawl)  # a manifest names all epochs before it
    places.require_same()
    places.run("check", places.objects_at)
    print("two writers: the second is told of the lock, the first ends well")


def damage(places, crawl):
    current = json.loads(places.run("info", places.objects_at, "--format", "json"))
    file = next(file for file in current["rows"][0]["partitions"][0]["files"] if file["layer"] == "url")
    good = places.object(file["path"])
    places.put(file["path"], good[:-9] + b"x" + good[-8:])
    check = places.start("check", places.objects_at)
    out, _ = check.communicate()
    named = f"{places.objects_at}/{file['path']}: expected checksum" in out
    require(check.returncode == 1 and named, f"check says {out}")
    questions = "".join(json.dumps({"op": "captures", "url": page}) + "\n" for page in pages_of(crawl))
    error = places.run("query", places.objects_at, code=1, stdin=questions)
    require("expected checksum" in error, f"a question says {error}")
    places.put(file["path"], good)
    places.run("check", places.objects_at)
    for nowhere in (f"s3://{BUCKET}/nothing", "s3://no-such-bucket/x"):
        error = places.run("info", nowhere, code=1)
        require(error.startswith("error: ") and nowhere in error and error.count("\n") == 1, f"info says {error}")
    print("damage: named by check and by a question; places without a store are told")


def collected(places, crawl):
    page = pages_of(crawl)[0]

    def gc(place, *options):
        return json.loads(places.run("gc", place, "--keep", 1, "--format", "json", *options))

    def reading():
        reader = places.start("query", places.objects_at)
        reader.stdin.write(json.dumps({"op": "captures", "url": page}) + "\n")
        reader.stdin.flush()
        require("captures" in reader.stdout.readline(), "the reader has no answer")
        require(len(places.keys("leases/")) == 1, f"leases: {places.keys('leases/')}")
        return reader

    for kill in (False, True):
        reader = reading()
        epoch = int(places.object("CURRENT").split()[0])
        places.build(places.objects_at, crawl)
        for options in ([], ["--dry-run"], []):
            told = gc(places.objects_at, *options)
            require(told["kept_for_readers"] == [epoch] and told["kept"] == [epoch + 1], f"gc says {told}")
        places.run("check", places.objects_at)
        if kill:
            reader.kill()
            reader.communicate()
            require(gc(places.objects_at)["kept_for_readers"] == [epoch], "the lease of a killed reader is too short")
            for lease in places.keys("leases/"):  # as if its time were over
                places.s3.delete_object(Bucket=BUCKET, Key=f"{places.prefix}/{lease}")
        else:
            _, said = reader.communicate()
            require(reader.returncode == 0, f"the reader: {said}")
        told = gc(places.objects_at)
        require(told["removed"]["epochs"] == [epoch] and not told["kept_for_readers"], f"gc says {told}")
    for _ in range(2):  # as above
        places.build(places.directory, crawl)
    gc(places.directory)
    count, _, _ = places.require_same()
    places.run("check", places.objects_at)
    print(f"gc: epochs stay for readers; {count} objects are left, equal")


def updated(places, crawls):
    options = ["-w", 2, "--spill", places.spill(), "--partition-urls", 500]
    changes = [["update", crawls[1], "--no-merge"], ["update", crawls[2], "--no-merge"], ["merge", "--rows", "all"]]
    for place in (places.directory, places.objects_at):
        places.build(place, crawls[0])
    for kind, *arguments in changes:
        places.run(kind, places.directory, *arguments, *options)
        if kind == "merge" or arguments[0] == crawls[2]:
            before = len(places.keys("rows/"))
            process = places.start(kind, places.objects_at, *arguments, *options)
            wait_for("its first upload", lambda: len(places.keys("rows/")) > before or process.poll() is not None)
            require(process.poll() is None, f"the {kind} ended before it could be killed")
            process.kill()
            process.communicate()
            places.run("check", places.objects_at)
            for lease in places.keys("leases/"):  # as if its time were over
                places.s3.delete_object(Bucket=BUCKET, Key=f"{places.prefix}/{lease}")
        places.run(kind, places.objects_at, *arguments, *options)
        places.run("check", places.objects_at)
        count, _, _ = places.require_same()
    log = json.loads(places.run("log", places.objects_at, "--format", "json").splitlines()[0])
    print(f"updates and merge: killed and given again, equal in {count} objects; {log}")


def served(places, crawls):
    places.build(places.directory, crawls[0])
    places.build(places.objects_at, crawls[0])
    page, newer = (pages_of(crawl)[7] for crawl in crawls[:2])
    addresses, servers = [], []
    try:
        for number in range(2):
            join = ["--join", addresses[0]] if addresses else []
            data = os.path.join(places.work, f"data-{number}")
            servers.append(places.start("serve", places.objects_at, "--listen", "127.0.0.1:0", "--data", data,
                                        "--settle", "0.5", "--gossip", "0.1", "--watch", "0.3", *join))
            addresses.append(servers[-1].stdout.readline().split()[-1])
            require(servers[-1].stdout.readline().startswith("ready: epoch 1,"), "the server is not ready")

        def alike(page):
            asked = [("links", page), ("captures", page), ("links", page, "--in")]
            right = [places.run(command, places.directory, *rest) for command, *rest in asked]
            return all(right == [places.run(command, "--server", address, *rest) for command, *rest in asked]
                       for address in addresses)

        def is_there(page):
            return all(places.start("captures", "--server", address, page).wait() == 0 for address in addresses)

        require(alike(page), "servers answer otherwise than the directory")
        require(not is_there(newer), "the update brings nothing")
        for place in (places.directory, places.objects_at):
            places.run("update", place, "--spill", places.spill(), crawls[1])
        wait_for("the servers to answer the new epoch", lambda: is_there(newer))
        require(alike(page) and alike(newer), "servers answer otherwise than the directory after an update")
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.communicate()
    require(all(server.returncode == 0 for server in servers), "a server did not end well")
    print(f"servers: {len(servers)} of a store in S3 answer as the directory does, before and after an update")


def first_value(text):
    """The first of the JSON values of a file: a digest follows it."""
    text = text.decode() if isinstance(text, bytes) else text
    return json.JSONDecoder().raw_decode(text)[0]


def watched(places, crawls):
    options = ["-w", 2, "--spill", places.spill()]

    def tables(place):
        return os.path.join(places.work, "tables", "directory" if place == places.directory else "objects")

    def watch(place, *more):
        return places.start("watch", place, "top", "--k", 20, "--out", tables(place), "--interval", "0.05", *more)

    def written():
        last = places.keys("watches/top.json") and first_value(places.object("watches/top.json"))["epoch"]
        return last and last["epoch"]

    for place in (places.directory, places.objects_at):
        places.build(place, crawls[0])
    first = watch(places.objects_at)
    wait_for("the first table", lambda: written() == 1)
    first.kill()
    first.communicate()
    require("watches/top.lock" in places.keys("watches/"), "the killed watch has removed its lock")
    second = watch(places.objects_at)
    require(watch(places.directory, "--once").wait() == 0, "the watch of the directory failed")
    places.run("update", places.objects_at, crawls[1], "--no-merge", *options)
    wait_for("the table after the update", lambda: written() == 2)
    # The one that was started last goes on; the other is told when it writes.
    third = watch(places.objects_at)
    wait_for("the third watch", lambda: f"process {third.pid}," in places.object("watches/top.lock").decode())
    places.run("update", places.objects_at, crawls[2], "--no-merge", *options)
    wait_for("the table after another update", lambda: written() == 3)
    _, said = second.communicate()
    require(second.returncode == 1 and "is no longer held by this process" in said, f"the second watch: {said}")
    places.run("merge", places.objects_at, "--rows", "all", *options)
    wait_for("the table after the merge", lambda: written() == 4)
    third.terminate()
    require(third.wait() == 0, "the third watch did not end well")
    require(places.keys("watches/") == ["watches/top.json"], f"left: {places.keys('watches/')}")
    for kind, *arguments in (["update", crawls[1], "--no-merge"], ["update", crawls[2], "--no-merge"],
                             ["merge", "--rows", "all"]):
        places.run(kind, places.directory, *arguments, *options)
        require(watch(places.directory, "--once").wait() == 0, "the watch of the directory failed")
    names = sorted(os.listdir(tables(places.directory)))
    require(names == sorted(os.listdir(tables(places.objects_at))) and len(names) == 4, f"tables: {names}")
    for name in names:
        contents = [open(os.path.join(tables(place), name), "rb").read()
                    for place in (places.directory, places.objects_at)]
        require(contents[0] == contents[1], f"{name} differs")
    places.run("watch", places.objects_at, "top", "--forget")
    require(not places.keys("watches/"), "something is left of a forgotten watch")
    print(f"watch: killed, given again and taken over, {len(names)} tables equal those of the directory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", required=True, help="the binary, built with --features remote")
    parser.add_argument("--occurrences", type=int, default=200_000, help="size of the made-up crawls")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="webstrata-s3-") as work, Server() as server:
        binary = os.path.abspath(arguments.webstrata)
        places = Places(binary, server, work, "crawl")
        crawls = []
        for seed in (1, 2, 3):
            crawls.append(os.path.join(work, f"crawl-{seed}.jsonl"))
            places.run("generate", f"uk:occurrences={arguments.occurrences},seed={seed}", "--out", crawls[-1])
        conditional_writes(places)
        same_bytes_same_answers(places, crawls[:2])
        large_objects(Places(binary, server, work, "large"))
        killed(places, crawls[2])
        two_writers(places, crawls[2])
        two_processes(Places(binary, server, work, "cluster"), crawls[0])
        damage(places, crawls[2])
        collected(places, crawls[2])
        updated(Places(binary, server, work, "updates"), crawls)
        served(Places(binary, server, work, "served"), crawls)
        watched(Places(binary, server, work, "watched"), crawls)


if __name__ == "__main__":
    main()

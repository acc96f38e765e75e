#!/usr/bin/env python3
"""Two writers of a store in S3, one of them stalled: no epoch is lost, put back or damaged.

  s3_writers.py --webstrata BINARY [--runs N] [--seed N]

BINARY was built with `--features remote`. Starts moto's server, and a proxy for each writer. Every writer is process 1
of its own container (`unshare --pid`), with the boot id of this machine. In each run, a first writer updates a small
store. The proxy stops it (SIGSTOP) at a random step: at a put of the lock, of the manifest, of CURRENT or of a layer
file, or at a removal, either before the request reaches the server, or when the server has answered. Meanwhile

  - another writer (another update, or the same command in another container) is told of the lock, and ends;
  - then the lock is 15 minutes old (the proxy says so), or somebody removes it, and the other writer commits;
  - or the first writer is killed, and the same command finds its own lock and goes on;
  - or a second writer is stopped, too, while it has the lock of the first, and a third one commits.

At last all that were stopped go on. A command with the exit code 0 has its captures in the store, one with the exit
code 1 says that the lock is lost and has none, the number of the epoch is the number of updates that succeeded, and
`check` finds nothing. Before the runs, servers that ignore a condition are refused. Exit code 1 at the first surprise.
Needs the packages of s3-requirements.txt, and the right to make name spaces of processes.
"""
import argparse
import email.utils
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from urllib.parse import urlsplit

from s3 import BUCKET, Server, require

WAIT_SECONDS = 300
# What a writer may be about to do, as the method and the name in the store.
STEPS = {"lock": r"PUT LOCK", "manifest": r"PUT epochs/\d+\.json", "current": r"PUT CURRENT", "layer": r"PUT rows/.*",
         "list": r"PUT inputs/.*", "look": r"(GET|HEAD) (LOCK|CURRENT|epochs/.*)", "removal": r"(DELETE .*|POST .*)"}
CONDITIONS = ["If-Match", "If-None-Match"]


class Proxy:
    """Passes requests of one writer to the server. Holds one of them, and ages the lock, when it is told to."""

    def __init__(self, server, prefix):
        self.prefix, self.step, self.before, self.after = prefix, None, 0, False
        self.is_old, self.ignored = False, None
        self.held, self.go_on = threading.Event(), threading.Event()
        proxy, upstream = self, urlsplit(server.url).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: value for name, value in self.headers.items() if name.title() != proxy.ignored}
                holds = proxy.holds(self.command, self.path)
                if holds and not proxy.after:
                    proxy.hold()
                connection = http.client.HTTPConnection(upstream, timeout=WAIT_SECONDS)
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                if holds and proxy.after:
                    proxy.hold()
                try:
                    self.send_response(answer.status)
                    for name, value in answer.getheaders():
                        if name == "Last-Modified" and proxy.is_old and self.path.split("?")[0].endswith("/LOCK"):
                            value = email.utils.formatdate(time.time() - 901, usegmt=True)
                        if name not in ("Content-Length", "Connection", "Server", "Date", "Transfer-Encoding"):
                            self.send_header(name, value)
                    length = answer.getheader("Content-Length") if self.command == "HEAD" else len(content)
                    self.send_header("Content-Length", str(length or 0))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True  # the writer was killed

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = pass_on

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def stop_at(self, step, before, after):
        """Holds a request of this step, after so many others of it; or its answer."""
        self.step, self.before, self.after = re.compile(STEPS[step]), before, after

    def holds(self, method, path):
        name = path.split("?")[0].partition(f"{self.prefix}/")[2]
        if self.step is None or self.held.is_set() or not self.step.fullmatch(f"{method} {name}"):
            return False
        self.before -= 1
        return self.before < 0

    def hold(self):
        self.held.set()
        self.go_on.wait(WAIT_SECONDS)

    def close(self):
        self.go_on.set()
        self.http.shutdown()
        self.http.server_close()


def environment(proxy):
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return clean | keys | {"AWS_ENDPOINT_URL": proxy.url, "AWS_ALLOW_HTTP": "true"}


class Writer:
    """A command in a container of its own, which writes through a proxy of its own."""

    def __init__(self, binary, server, store, command, spill, stop=None, is_old=False):
        self.proxy = Proxy(server, store)
        self.proxy.is_old = is_old
        if stop:
            self.proxy.stop_at(*stop)
        os.makedirs(spill, exist_ok=True)
        words = [binary, command[0], f"s3://{BUCKET}/{store}", *command[1:], "-w", "1", "--spill", spill]
        words = ["unshare", "--pid", "--fork", "--kill-child", *map(str, words)]
        self.process = subprocess.Popen(words, env=environment(self.proxy), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def child(self):
        """The number by which this container knows process 1 of the other."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return int(children.read().split()[0])

    def stopped(self):
        """Waits for the step, and stops the process there; whether the process came so far."""
        end = time.monotonic() + WAIT_SECONDS
        while not self.proxy.held.wait(0.02):
            if self.process.poll() is not None:
                return False
            require(time.monotonic() < end, "a writer neither came to the step nor ended")
        os.kill(self.child(), signal.SIGSTOP)
        return True

    def goes_on(self):
        os.kill(self.child(), signal.SIGCONT)
        self.proxy.go_on.set()

    def killed(self):
        self.process.kill()  # and with it the process in the container
        self.process.communicate()
        self.proxy.close()

    def ended(self):
        """The exit code and the message."""
        _, said = self.process.communicate(timeout=WAIT_SECONDS)
        self.proxy.close()
        return self.process.returncode, said


class Run:
    """One store, and what its writers were told."""

    def __init__(self, binary, server, work, base, number):
        self.binary, self.server, self.work, self.store = binary, server, work, f"runs/{number}"
        self.present, self.absent = ["base"], []
        for path in base.rglob("*"):
            if path.is_file() and path.name != "LOCK":
                key = f"{self.store}/{path.relative_to(base)}"
                server.s3.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())

    def writer(self, name, spill, **more):
        return Writer(self.binary, self.server, self.store, ["update", crawl(self.work, name), "--no-merge"],
                      self.work / "spill" / f"{self.store}-{spill}", **more)

    def done(self, name, writer, code=None):
        got, said = writer.ended()
        require(code is None or got == code, f"{name} ends with {got}, not {code}: {said}")
        if got == 0:
            self.present.append(name)
        else:
            lost = "is no longer held" in said or "is locked by another writer" in said or "has committed" in said
            require(got == 1 and lost, f"{name} ends with {got}: {said}")
            self.absent.append(name)
        return got, said

    def ask(self, *words):
        process = Proxy(self.server, self.store)
        done = subprocess.run([self.binary, *words], env=environment(process), capture_output=True, text=True)
        process.close()
        return done

    def check(self):
        place = f"s3://{BUCKET}/{self.store}"
        sound = self.ask("check", place)
        require(sound.returncode == 0, f"check: {sound.stdout}{sound.stderr}")
        done = self.ask("info", place, "--format", "json")
        require(done.returncode == 0, f"info: {done.stderr}")
        names = set(self.present)
        # The same captures a second time make no epoch.
        require(json.loads(done.stdout)["epoch"] == len(names), f"{done.stdout[:200]}: {self.present}")
        for name in names | set(self.absent):
            there = self.ask("captures", place, f"http://{name}.example/").returncode == 0
            require(there == (name in names), f"the captures of {name} are {'there' if there else 'missing'}")


def crawl(work, name):
    path = work / f"{name}.jsonl"
    if not path.exists():
        rows = [{"url": f"http://{name}.example/", "ts": "2006", "links": ["http://base.example/"]},
                {"url": "http://shared.example/", "ts": f"2007{len(name):02}", "links": [f"http://{name}.example/"]}]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def one(run, random):
    step, after = random.choice(list(STEPS)), random.random() < 0.5
    before = random.randrange(4 if step in ("lock", "look") else 2)
    first = run.writer("first", "a", stop=(step, before, after))
    if not first.stopped():
        run.done("first", first, 0)
        return "not stopped"
    has_lock = b"update" in lock_of(run)
    kind = random.choice(["other", "same", "removed", "killed", "two"])
    if kind == "killed":
        first.killed()
        again = run.writer("first", "a")
        run.done("first", again)
        return f"{kind} at {step}"
    name = "first" if kind == "same" else "second"
    if has_lock and random.random() < 0.5:
        code, said = run.writer(name, "b").ended()
        require(code == 1 and "is locked by another writer: update" in said, f"the lock is not seen: {code} {said}")
    if kind == "removed":
        run.server.s3.delete_object(Bucket=BUCKET, Key=f"{run.store}/LOCK")
    others = []
    if kind == "two":
        more = random.choice(list(STEPS)), random.randrange(2), random.random() < 0.5
        second = run.writer("second", "b", stop=more, is_old=True)
        if second.stopped():
            others.append(("second", second))
        else:
            run.done("second", second)
        name = "third"
    last = run.writer(name, "c", is_old=True)
    run.done(name, last)
    first.goes_on()
    run.done("first", first)
    for name, writer in others:
        writer.goes_on()
        run.done(name, writer)
    require(run.present[1:], "nobody could commit")
    return f"{kind} at {step}"


def lock_of(run):
    try:
        return run.server.s3.get_object(Bucket=BUCKET, Key=f"{run.store}/LOCK")["Body"].read()
    except run.server.s3.exceptions.NoSuchKey:
        return b""


def refused(run):
    """A server that ignores a condition."""
    for condition in CONDITIONS:
        writer = run.writer("first", "a")
        writer.proxy.ignored = condition
        code, said = writer.ended()
        require(code == 1 and f"ignores {condition}" in said, f"without {condition}: {code} {said}")
        require(lock_of(run) == b"", "the lock stays")
    print("servers that ignore If-Match or If-None-Match are refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", required=True, help="the binary, built with --features remote")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = os.path.abspath(options.webstrata)
    if subprocess.run(["unshare", "--pid", "--fork", "true"]).returncode:
        print("left out: name spaces of processes cannot be made here")
        return
    with tempfile.TemporaryDirectory(prefix="webstrata-writers-") as work, Server() as server:
        work, counts = pathlib.Path(work), Counter()
        base = work / "base"
        subprocess.run([binary, "build", "--out", base, crawl(work, "base")], check=True, capture_output=True)
        refused(Run(binary, server, work, base, "refused"))
        for seed in range(options.seed, options.seed + options.runs):
            run = Run(binary, server, work, base, seed)
            try:
                counts[one(run, Random(seed))] += 1
                run.check()
            except SystemExit as failure:
                sys.exit(f"seed {seed}: {failure}")
            shutil.rmtree(work / "spill" / "runs", ignore_errors=True)
        print(f"{options.runs} runs: {', '.join(f'{many} {what}' for what, many in sorted(counts.items()))}")


if __name__ == "__main__":
    main()

"""A store made by the commands of the book, and the faces that answer from it: commands, `query`, HTTP, gRPC, the
Python package, and SQL views."""

import copy
import functools
import http.client
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
from urllib.parse import urlencode

import duckdb
import grpc

from brute.crawl import write
from brute.model import FOREVER, Store, iso


def stubs(proto, folder):
    """The modules of the gRPC service, made from its description."""
    from grpc_tools import protoc

    if protoc.main(
        ["protoc", f"-I{os.path.dirname(proto)}", f"--python_out={folder}", f"--grpc_python_out={folder}", proto]
    ):
        sys.exit(f"protoc cannot read {proto}")
    sys.path.insert(0, folder)
    name = os.path.basename(proto).removesuffix(".proto")
    return importlib.import_module(f"{name}_pb2"), importlib.import_module(f"{name}_pb2_grpc")


class Failed(Exception):
    """A command of the crawl itself failed."""


class Lines:
    """`webstrata query`, open as a pair of pipes."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, question):
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or b"null")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class World:
    """One crawl: its store, the model of it, a server, and everything that can be asked."""

    def __init__(self, binary, modules, crawl, folder):
        self.binary, self.modules, self.crawl, self.folder = binary, modules, crawl, folder
        self.store = os.path.join(folder, "store")
        self.log = []
        self.model = Store(crawl.redirects)
        self.named = {}  # epoch -> UID -> URL, of all earlier epochs
        self.epochs = {}  # what earlier epochs held, of those that are there
        self.lines = {}
        self.make()
        self.serve()
        self.urls = self.numbers()[1]
        self.uids = {url: uid for uid, url in self.urls.items()}
        # URLs that a removal leaves go in some later merge.
        self.model.leftover &= set(self.uids)

    # The store.

    def run(self, *arguments, expect=(0,)):
        self.log.append(" ".join(["webstrata", *arguments]))
        done = subprocess.run([self.binary, *arguments], capture_output=True, text=True)
        if done.returncode not in expect:
            raise Failed(f"{self.log[-1]}\nexit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def numbers(self):
        """The current epoch, and the URL of each UID."""
        rows = [json.loads(line) for line in self.run("uids", self.store, "--all", "--format", "json").splitlines()]
        info = json.loads(self.run("info", self.store, "--format", "json"))
        return info["epoch"], {row["uid"]: row["url"] for row in rows}

    def make(self):
        rng, crawl = random.Random(self.crawl.seed + 1), self.crawl
        options = ["-w", "1", "--memory", "256M"]
        shape = ["--in-range", crawl.in_range] + (["--links", "redirects"] if crawl.redirects else [])
        if crawl.partition_urls:
            shape += ["--partition-urls", str(crawl.partition_urls)]
        is_built = False
        # A merge that takes out of files what a removal took out of answers retires earlier epochs, as a removal does.
        is_removed = False
        for name, what in crawl.jobs:
            if is_built:
                epoch, urls = self.numbers()
                self.named[epoch] = urls
            if name in ("build", "update"):
                batch, merges = (what, True) if name == "build" else what
                paths = write(crawl.batches[batch], rng, self.folder, f"batch{batch}")
                known = any(200 <= (c.status or 200) < 1000 for c in crawl.batches[batch])
                if not known:
                    continue
                if is_built:
                    self.epochs[epoch] = copy.deepcopy(self.model)
                    self.run("update", self.store, *([] if merges else ["--no-merge"]), *options, *paths, expect=(0, 1))
                else:
                    self.run("build", "--out", self.store, *shape, *options, *paths)
                self.epochs = {} if is_removed and merges else self.epochs
                is_built = True
                self.model.add(crawl.batches[batch])
            elif is_built and name == "merge":
                self.run("merge", self.store, "--rows", what, *options, expect=(0, 1, 2))
                self.epochs = {} if is_removed else self.epochs
                if what == "all":
                    self.model.merged()
            elif is_built and name == "cells":
                self.run("cells", self.store, "--codec", what)
            elif is_built and name == "remove":
                rule, merges = what
                arguments = {"url": rule.what, "prefix": rule.what}.get(rule.how) or rule.what.split("/")[2].split(":")[
                    0
                ]
                window = [] if rule.first == -FOREVER else ["--from", iso(rule.first)]
                window += [] if rule.last == FOREVER else ["--to", iso(rule.last)]
                self.run(
                    "remove",
                    self.store,
                    f"--{rule.how}",
                    arguments,
                    "--as",
                    rule.of,
                    *window,
                    *([] if merges else ["--no-merge"]),
                    *options,
                )
                self.model.remove(rule, merges)
                self.epochs, is_removed = {}, True  # and cannot be asked any more
        if not is_built:
            raise Failed("nothing to build")

    # The faces.

    def serve(self):
        self.process = subprocess.Popen(
            [self.binary, "serve", self.store, "--listen", "127.0.0.1:0", "--data", os.path.join(self.folder, "data")],
            stdout=subprocess.PIPE,
            stderr=open(os.path.join(self.folder, "server.log"), "w"),
            text=True,
        )
        self.address = None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise Failed("the server ended: " + open(os.path.join(self.folder, "server.log")).read())
            if line.startswith("listening on "):
                self.address = line.split()[-1]
            if line.startswith("ready"):
                break
        self.http = http.client.HTTPConnection(self.address, timeout=60)
        self.channel = grpc.insecure_channel(self.address)
        self.pb = self.modules[0]
        self.grpc = self.modules[1].LinksStub(self.channel)

    def command(self, at_server, name, *arguments):
        """(exit code, standard output, standard error) of a command about the store, or about the server."""
        place = ["--server", self.address] if at_server else [self.store]
        done = subprocess.run([self.binary, name, *place, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def query(self, at_server, question):
        if at_server not in self.lines:
            place = ["--server", self.address] if at_server else [self.store]
            self.lines[at_server] = Lines([self.binary, "query", *place])
        return self.lines[at_server].ask(question)

    def get(self, path, fields=None, headers=None, body=None):
        """(status, body, headers) of an HTTP call."""
        target = path + ("?" + urlencode(fields, doseq=True) if fields else "")
        for is_last in (False, True):
            try:
                self.http.request("GET" if body is None else "POST", target, body=body, headers=headers or {})
                answer = self.http.getresponse()
                return answer.status, answer.read().decode(), answer.headers
            except (http.client.HTTPException, OSError) as error:
                # A connection that was idle for long is closed, as while a crawl was made smaller.
                self.http.close()
                if is_last:
                    raise ValueError(f"{len(target)} bytes asked: {error!r}") from error

    def json(self, path, fields):
        status, body, _ = self.get(path, fields)
        answer = json.loads(body)
        return answer if status == 200 else {"failed": answer["error"]["reason"]}

    def pages(self, path, fields, limit):
        """All answers of a question that goes on by resume_key."""
        fields, answers = dict(fields, **({"limit": limit} if limit else {})), []
        while True:
            answer = self.json(path, fields)
            answers.append(answer)
            if "resume_key" not in answer or len(answers) > 5000:
                return answers
            fields["resume_key"] = answer["resume_key"]

    @functools.cached_property
    def graph(self):
        """The store in the Python package."""
        import webstrata

        return webstrata.open(self.store, memory=64 << 20)

    @functools.cached_property
    def views(self):
        """A connection of DuckDB with the views of `webstrata sql`."""
        views = duckdb.connect(config={"threads": 1})
        views.execute(self.command(False, "sql")[1])
        return views

    def close(self):
        if "views" in vars(self):
            self.views.close()
        for lines in self.lines.values():
            lines.close()
        if hasattr(self, "channel"):
            self.channel.close()
            self.http.close()
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

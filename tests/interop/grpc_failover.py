#!/usr/bin/env python3
"""A plain client of gRPC, with the service config of the book, asks a cluster of which servers are killed and stopped.

  grpc_failover.py [--webstrata target/debug/webstrata] [--questions 2000] [--seed 7] [--hang 20] [--bare]

Three servers of one store. Callers ask for links of 50 pages as of a date in three calls: UrlToUid, GetLinks, UidToUrl.
Others list all UIDs as a stream, and continue a broken stream behind its last UID. Meanwhile one server is killed
(SIGKILL) and started again, three times, and another one is terminated (SIGTERM). With --hang a server also hangs for
so many seconds. The service config is read from docs/book/programs/grpc.md, and the truth comes from `webstrata query`.
gRPC retries no call whose answer has begun: such a call is asked again here, as the book tells. With --bare the service
config has no retries, which shows what they are for.

Prints questions, failed and wrong ones, calls that were asked again, and the longest times. Exit code 1 at a failed
call, a wrong answer or a wrong list. Needs the packages grpcio and grpcio-tools.
"""
import argparse
import datetime
import importlib
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import grpc
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS, KILLS, CALLERS = 3, 3, 4
# Batches of the callers, and pages of a batch.
BATCHES, BATCH = 40, 50
# The book's number of attempts for an answer that breaks off.
ATTEMPTS = 5
# Several addresses make an authority that servers of HTTP/2 refuse as malformed, unless it is given.
AUTHORITY = ("grpc.default_authority", "localhost")


def options_of_the_book(is_bare):
    """The options of a channel: the service config, and the numbers of the Python block that follows it."""
    page = (ROOT / "docs/book/programs/grpc.md").read_text()
    ((config, rest),) = re.findall(r"^```json\n(.*?)^```$(.*)", page, re.DOTALL | re.MULTILINE)
    config = json.loads(config)
    if is_bare:
        del config["methodConfig"]
    numbers = [(name, int(number)) for name, number in re.findall(r'\("(grpc\.[a-z0-9_.]+)", ([0-9_]+)\)', rest)]
    assert len(numbers) == 3, numbers
    return [AUTHORITY, ("grpc.service_config", json.dumps(config)), *numbers]


def stubs(work):
    """The messages and the services of the protocol, made from its description."""
    done = protoc.main(["", f"-I{ROOT / 'serve/proto'}", f"--python_out={work}", f"--grpc_python_out={work}",
                        "webstrata.proto"])
    assert done == 0, "protoc"
    sys.path.insert(0, str(work))
    return importlib.import_module("webstrata_pb2"), importlib.import_module("webstrata_pb2_grpc")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """Servers of one store, ended when the block ends."""

    def __init__(self, binary, work):
        self.binary, self.work = binary, work
        self.ports = [free_port() for _ in range(SERVERS)]
        self.processes = [None] * SERVERS

    def __enter__(self):
        try:
            for at in range(SERVERS):
                self.start(at)
            self.settled(SERVERS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in filter(None, self.processes):
            process.kill()
            process.wait()

    def start(self, at):
        command = [self.binary, "serve", self.work / "store", "--listen", f"127.0.0.1:{self.ports[at]}", "--data",
                   self.work / f"data-{at}", "--settle", "0.5", "--gossip", "0.1", "--drain", "5", "--log", "warn"]
        for port in self.ports:
            command += ["--join", f"127.0.0.1:{port}"] if port != self.ports[at] else []
        with open(self.work / f"server-{at}.log", "a") as log:
            process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes[at] = process
        if not process.stdout.readline().startswith("listening on"):
            sys.exit((self.work / f"server-{at}.log").read_text())

    def end(self, at, by):
        self.processes[at].send_signal(by)
        self.processes[at].wait()
        self.processes[at] = None

    def figures(self, at):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[at]}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line and line[0] != "#")

    def settled(self, alive):
        """Waits until the servers that run know each other, and have their cells."""
        wanted, end = {"servers_alive": str(alive), "cells_wanted": "0", "cells_unsettled": "0"}, time.monotonic() + 30
        while True:
            try:
                figures = [self.figures(at) for at in range(SERVERS) if self.processes[at]]
                if all(figure[f"webstrata_{name}"] == wanted[name] for figure in figures for name in wanted):
                    return
            except (OSError, KeyError):
                figures = "no answer"
            if time.monotonic() > end:
                sys.exit(f"the cluster does not settle: {figures}")
            time.sleep(0.1)


class Callers:
    """Threads that ask one channel until they are told to stop."""

    def __init__(self, channel, messages, services, truth, count, is_bare):
        self.links, self.messages = services.LinksStub(channel), messages
        self.truth, self.count, self.is_bare = truth, count, is_bare
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.asked = self.calls = self.lists = self.broken = 0
        self.failed, self.wrong, self.again, self.times = [], [], [], []

    def call(self, method, **fields):
        """Asks again where an answer breaks off that had begun: gRPC retries only calls whose answer has not begun."""
        request, begin = getattr(self.messages, f"{method}Request")(**fields), time.monotonic()
        for attempt in range(ATTEMPTS):
            try:
                answer = getattr(self.links, method)(request)
                break
            except grpc.RpcError as error:
                with self.lock:
                    self.again.append(f"{method}: {error.code().name}: {error.details()}")
                # Servers send headers first: where there are none, gRPC should have retried the call itself.
                has_begun = bool(error.initial_metadata()) or self.is_bare
                if error.code() != grpc.StatusCode.UNAVAILABLE or not has_begun or attempt + 1 == ATTEMPTS:
                    raise
        with self.lock:
            self.calls += 1
            self.times.append(time.monotonic() - begin)
        return answer

    def batch(self, urls, seconds, direction):
        """The links of each of the URLs, or the pages that link to each."""
        uids = self.call("UrlToUid", urls=urls)
        window = self.messages.Window(as_of=seconds)
        direction = self.messages.DIRECTION_IN if direction == "in" else self.messages.DIRECTION_OUT
        found = self.call("GetLinks", epoch=uids.epoch, uids=[uid - 1 for uid in uids.uids_plus_one], window=window,
                          direction=direction)
        names = iter(self.call("UidToUrl", epoch=uids.epoch, uids=found.links).urls)
        return [sorted(next(names) for _ in range(count)) for count in found.counts]

    def ask(self, seed):
        choose = random.Random(seed)
        while not self.stop.is_set():
            batch, truth = choose.choice(self.truth)
            try:
                answers = self.batch(*batch)
            except grpc.RpcError as error:
                self.failed.append(f"{error.code().name}: {error.details()}")
                continue
            with self.lock:
                self.asked += len(truth)
                self.wrong += [batch for one, other in zip(answers, truth, strict=True) if one != other]

    def list(self):
        """Lists all UIDs. A stream that breaks is continued behind the last UID."""
        while not self.stop.is_set():
            found, epoch = [], 0
            while len(found) < self.count:
                first = found[-1] + 1 if found else 0
                try:
                    for part in self.links.ListUids(self.messages.ListUidsRequest(epoch=epoch, first_uid=first)):
                        found += part.uids
                        epoch = part.epoch
                    break
                except grpc.RpcError as error:
                    self.broken += 1
                    if error.code() != grpc.StatusCode.UNAVAILABLE:
                        self.failed.append(f"a list: {error.code().name}: {error.details()}")
                        return
            self.lists += 1
            if found != list(range(self.count)):
                self.wrong.append(f"a list of {len(found)} UIDs")


def prepare(args, work):
    """Builds the store. Returns questions with the answers of the command line, and the number of URLs."""
    def run(*command, **options):
        command = [str(part) for part in (args.webstrata, *command)]
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout
    run("build", "--generate", f"uk:occurrences=100000,seed={args.seed}", "--partition-urls", "200", "--out",
        work / "store")
    nodes = run("uids", work / "store", "--all", "--format", "json").splitlines()
    urls = [json.loads(line)["url"] for line in nodes]
    choose, batches, questions = random.Random(args.seed), [], []
    for _ in range(BATCHES):
        moment = datetime.datetime(2006, 5, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(choose.randrange(365))
        direction, asked = choose.choice(["out", "in"]), choose.sample(urls, BATCH)
        batches.append((asked, int(moment.timestamp()), direction))
        questions += ({"op": "links", "url": url, "at": moment.strftime("%Y%m%d%H%M%S"), "direction": direction}
                      for url in asked)
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    answers = [sorted(json.loads(line)["links"]) for line in run("query", work / "store", input=lines).splitlines()]
    assert len(answers) == len(questions) and sum(map(len, answers)) > 1000
    return [(batch, answers[at * BATCH:][:BATCH]) for at, batch in enumerate(batches)], len(urls)


def trouble(cluster, callers, args):
    """Kills, starts and terminates servers while callers ask. Returns how many were asked with each event."""
    events = []

    def after(what, seconds):
        time.sleep(seconds)
        events.append((what, callers.asked, len(callers.failed)))
    after("three servers", 1)
    for _ in range(KILLS):
        cluster.end(1, signal.SIGKILL)
        after("killed", 1)
        cluster.start(1)
        cluster.settled(SERVERS)
        after("started again", 1)
    if args.hang:
        cluster.processes[1].send_signal(signal.SIGSTOP)
        after("hangs", args.hang)
        cluster.processes[1].send_signal(signal.SIGCONT)
        cluster.settled(SERVERS)
        after("goes on", 1)
    cluster.end(2, signal.SIGTERM)
    after("terminated", 2)
    end = time.monotonic() + 60
    while callers.asked < args.questions and time.monotonic() < end:
        time.sleep(0.1)
    after("in the end", 0)
    return events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="target/debug/webstrata")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--hang", type=float, default=0, help="seconds for which a server is stopped (SIGSTOP)")
    parser.add_argument("--bare", action="store_true", help="the service config without its methods")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        messages, services = stubs(work)
        truth, count = prepare(args, work)
        with Cluster(args.webstrata, work) as cluster:
            target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in cluster.ports)
            with grpc.insecure_channel(target, options=options_of_the_book(args.bare)) as channel:
                callers = Callers(channel, messages, services, truth, count, args.bare)
                threads = [threading.Thread(target=callers.ask, args=(seed,)) for seed in range(CALLERS)]
                threads.append(threading.Thread(target=callers.list))
                for thread in threads:
                    thread.start()
                try:
                    events = trouble(cluster, callers, args)
                finally:
                    callers.stop.set()
                    for thread in threads:
                        thread.join()
    for what, asked, failed in events:
        print(f"{what}: {asked:,} questions so far, {failed} failed")
    times = sorted(callers.times)
    print(f"{callers.asked:,} questions in {callers.calls:,} calls: {len(callers.failed)} failed, "
          f"{len(callers.wrong)} wrong; p99 {times[len(times) * 99 // 100] * 1e3:.0f} ms, "
          f"longest {times[-1] * 1e3:.0f} ms")
    print(f"{len(callers.again)} answers broke off and were asked again; {callers.lists:,} lists of {count} UIDs, "
          f"{callers.broken} streams broke off and were continued")
    for line in [*callers.failed, *callers.wrong, *callers.again][:5]:
        print(line)
    sys.exit(1 if callers.failed or callers.wrong or callers.asked < args.questions else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A cluster with certificates of 30 s, under load: cuts, stops, kills, updates, another CA, another number of replicas.

  chaos.py [--webstrata target/debug/webstrata] [--seconds 300] [--seed 7] [--servers 4] [--callers 6] [--p99 500]

Real processes speak TLS in both directions. Their certificates last for 30 s and are renewed about every 10 s, half of
them with SIGHUP and half without. Now and then a server is cut off from all others, stopped (SIGSTOP) or killed
(SIGKILL), or one is cut off while another is stopped; meanwhile the store is updated. In the middle, the CA is replaced
and all servers get three replicas in place of two, both as the book describes. Callers ask servers that are neither
killed nor stopped, also those that are cut off, and restarted ones from when they are ready. They ask who links to a
page and what a page links to as of a time. The truth of each epoch is computed here from the generated captures.

Prints calls, failed and wrong answers, times, and how late this process wakes from sleeps of 20 ms, which tells how
busy the machine is. Exit code 1 at a wrong or failed answer, at a p99 above --p99 milliseconds, and if the servers do
not agree in the end. Needs Linux and the package cryptography.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from authority import Authority, write
from cuts import Cuts

LIFE, RENEW = 30, 10
PAGES, HOSTS = 120, 8
FIRST = 1_200_000_000
DAY = 86_400


def url_of(page):
    return f"http://host-{page % HOSTS}.example/page/{page}"


def stamp(seconds):
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(seconds))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Story:
    """A crawl in batches, and what each epoch answers."""

    def __init__(self, seed, work):
        self.random, self.work, self.batches = random.Random(seed), work, [{}]
        # The batches of each epoch: an update may merge rows, which is an epoch too.
        self.epochs = [0]

    def batch(self):
        """Writes the next batch to a file."""
        number = len(self.batches)
        captures = {page: list(known) for page, known in self.batches[-1].items()}
        path = self.work / f"batch-{number}.jsonl"
        with open(path, "w") as file:
            for page in range(PAGES):
                if number > 1 and self.random.random() < 0.5:
                    continue
                links = sorted({self.random.randrange(PAGES + 40) for _ in range(self.random.randrange(1, 12))})
                seconds = FIRST + number * DAY + page
                captures.setdefault(page, []).append((seconds, links))
                line = {"url": url_of(page), "ts": stamp(seconds), "links": [url_of(link) for link in links]}
                file.write(json.dumps(line) + "\n")
        self.batches.append(captures)
        return path

    def written(self):
        """The last batch is in the store, up to its current epoch."""
        current = int((self.work / "store" / "CURRENT").read_text().split()[0])
        self.epochs += [len(self.batches) - 1] * (current + 1 - len(self.epochs))

    def answer(self, epoch, page, direction, at):
        captures = self.batches[self.epochs[epoch]]

        def links(page):
            return next((links for seconds, links in reversed(captures.get(page, [])) if seconds <= at), [])
        if direction == "out":
            return {url_of(link) for link in links(page)}
        return {url_of(source) for source in captures if page in links(source)}


class Cluster:
    def __init__(self, args, work):
        self.args, self.work, self.random = args, work, random.Random(args.seed + 1)
        self.authority, self.old = Authority("first"), []
        self.servers = [None] * args.servers
        self.addresses = [None] * args.servers
        self.admins = [None] * args.servers
        # Servers that are not asked, and how often each became so.
        self.events = []
        self.down, self.turns = set(range(args.servers)), [0] * args.servers
        self.lock = threading.RLock()
        self.cuts = Cuts(args.servers)
        for at in range(args.servers):
            self.place(at).mkdir()
        self.trust()
        (work / "caller").mkdir()
        self.authority.issue(work / "caller", 100_000)
        for at in range(args.servers):
            self.authority.issue(self.place(at), LIFE)

    def place(self, at):
        return self.work / f"server-{at}"

    def trust(self):
        """Writes the CAs for all servers and callers."""
        for at in range(self.args.servers):
            write(self.place(at) / "ca.pem", b"".join(one.pem() for one in [self.authority, *self.old]))
        write(self.work / "ca.pem", b"".join(one.pem() for one in [self.authority, *self.old]))

    def start(self, at, replicas):
        place = self.place(at)
        self.authority.issue(place, LIFE)
        port = free_port()
        command = [self.args.webstrata, "serve", self.work / "store", "--listen", f"127.0.0.1:{port}", "--admin",
                   "127.0.0.1:0", "--advertise", f"127.0.0.1:{self.cuts.ports[at]}", "--name", f"server-{at}",
                   "--data", place / "data", "--replicas", replicas, "--settle", "1", "--watch", "0.5",
                   "--drain", "20", "--grace", "10",
                   "--tls-cert", place / "cert.pem", "--tls-key", place / "key.pem", "--tls-ca",
                   place / "ca.pem", "--tls-client-ca", place / "ca.pem", "--log", "info"]
        for other in range(self.args.servers):
            if other != at and self.servers[other]:
                command += ["--join", f"127.0.0.1:{self.cuts.ports[other]}"]
        log = open(self.work / f"server-{at}.log", "a")
        command = [str(part) for part in command]
        server = self.servers[at] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.cuts.server(at, server.pid, port)
        listening, admin = server.stdout.readline(), server.stdout.readline()
        if not listening.startswith("listening on") or not admin.startswith("admin on"):
            sys.exit(f"server {at} did not start: {listening} {admin}; {self.tail(at)}")
        threading.Thread(target=server.stdout.read, daemon=True).start()
        self.addresses[at], self.admins[at] = listening.split()[-1], admin.split()[-1]

    def tail(self, at):
        return "".join(open(self.work / f"server-{at}.log").readlines()[-12:])

    def until_ready(self, at):
        """Asks a server again when it says that it is ready, as load balancers do."""
        end = time.monotonic() + 60
        while self.ready(at) is None:
            if time.monotonic() > end:
                sys.exit(f"server {at} does not become ready: {self.tail(at)}")
            time.sleep(0.1)
        self.asked(at, True)

    def asked(self, at, answers):
        """Whether a server is asked from now on."""
        with self.lock:
            if answers:
                self.down.discard(at)
            else:
                self.down.add(at)
                self.turns[at] += 1

    def figures(self, at):
        with urllib.request.urlopen(f"http://{self.admins[at]}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line and line[0] != "#")

    def ready(self, at):
        try:
            with urllib.request.urlopen(f"http://{self.admins[at]}/readyz", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def whole(self, within=60):
        """Waits until all servers are ready and agree."""
        end = time.monotonic() + within
        while True:
            notes = [self.ready(at) for at in range(self.args.servers)]
            if all(note == "ready\n" for note in notes):
                figures = [self.figures(at) for at in range(self.args.servers)]
                names = ["servers_alive", "epoch_current", "replicas", "cells_unsettled", "cells_wanted"]
                seen = {tuple(figure[f"webstrata_{name}"] for name in names) for figure in figures}
                first = next(iter(seen))
                if len(seen) == 1 and first[0] == str(self.args.servers) and first[3:] == ("0", "0"):
                    return first
            if time.monotonic() > end:
                logs = "\n".join(f"server {at}:\n{self.tail(at)}" for at in range(self.args.servers))
                sys.exit(f"the cluster is not whole after {within} s: {notes}\n{logs}")
            time.sleep(0.1)

    def renew(self, stop):
        """Renews certificates, each server at a time of its own."""
        due = [time.monotonic() + RENEW * self.random.random() for _ in self.servers]
        while not stop.wait(0.2):
            for at, server in enumerate(self.servers):
                if time.monotonic() >= due[at]:
                    due[at] += RENEW
                    self.authority.issue(self.place(at), LIFE)
                    if self.random.random() < 0.5 and server:
                        server.send_signal(signal.SIGHUP)

    def replace_authority(self):
        """A new CA: trusted first, then used, then alone."""
        self.old = [self.authority]
        self.authority = Authority("second")
        # Until all servers trust the new one, the renewals use the old one.
        self.authority, new = self.old[0], self.authority
        self.old = [new]
        self.trust()
        time.sleep(5)
        self.authority, self.old = new, [self.authority]
        time.sleep(RENEW + 5)
        self.old = []
        self.authority.issue(self.work / "caller", 100_000)
        self.trust()

    def change_replicas(self, replicas):
        """One server after the other is drained and started again."""
        for at, server in enumerate(self.servers):
            self.asked(at, False)
            server.terminate()
            server.wait(60)
            self.start(at, replicas)
            self.until_ready(at)
            # Views settle before the next one goes.
            self.settled()

    def settled(self):
        """Waits until the current epoch has all its replicas. Cells of the next epoch may be on their way."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            figures = [self.figures(at) for at in range(self.args.servers)]
            if all(figure["webstrata_cells_unsettled"] == "0" and
                   figure["webstrata_servers_alive"] == str(self.args.servers) for figure in figures):
                return
            time.sleep(0.1)
        names = ["servers_alive", "epoch_current", "replicas", "cells_unsettled", "views_differing"]
        sys.exit(f"the servers do not settle: {[[one[f'webstrata_{name}'] for name in names] for one in figures]}")

    def disturb(self, counts, replicas):
        """One thing happens, and heals."""
        servers = self.args.servers
        at, other = self.random.sample(range(servers), 2)
        what = self.random.choice(["cut", "stop", "kill", "cut and stop"])
        counts[what] = counts.get(what, 0) + 1
        self.events.append((time.monotonic(), f"{what} {at} {other if 'stop' in what else ''}"))
        if what.startswith("cut"):
            self.cuts.cut(at, [one for one in range(servers) if one != at])
        if what == "kill":
            self.asked(at, False)
            self.servers[at].kill()
            self.servers[at].wait()
            time.sleep(2 * self.random.random())
            self.start(at, replicas)
            self.until_ready(at)
        if what.endswith("stop"):
            self.asked(other, False)
            self.servers[other].send_signal(signal.SIGSTOP)
        if what != "kill":
            time.sleep(1 + 5 * self.random.random())
        if what.endswith("stop"):
            self.servers[other].send_signal(signal.SIGCONT)
            self.asked(other, True)
        self.cuts.heal()
        self.events.append((time.monotonic(), "healed"))


def sleeper(stop, late):
    """How late a thread wakes."""
    while not stop.is_set():
        begun = time.monotonic()
        time.sleep(0.02)
        late.append(time.monotonic() - begun - 0.02)


def shares(times):
    """p50, p99 and the longest, in milliseconds."""
    times = sorted(times) or [0]
    return *(1000 * times[len(times) * share // 100] for share in (50, 99)), 1000 * times[-1]


class Caller(threading.Thread):
    """Asks one question after the other, and compares the answers with the truth."""

    def __init__(self, cluster, story, seed, stop):
        super().__init__(daemon=True)
        self.cluster, self.story, self.random, self.stop = cluster, story, random.Random(seed), stop
        self.times, self.failed, self.answers, self.interrupted = [], [], [], 0
        self.connections = {}

    def context(self):
        caller = self.cluster.work / "caller"
        context = ssl.create_default_context(cafile=str(self.cluster.work / "ca.pem"))
        context.load_cert_chain(str(caller / "cert.pem"), str(caller / "key.pem"))
        return context

    def ask(self, address, path):
        connection = self.connections.get(address)
        if connection is None:
            host, port = address.rsplit(":", 1)
            connection = http.client.HTTPSConnection(host, int(port), timeout=15, context=self.context())
            self.connections[address] = connection
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.connections.pop(address).close()
            raise

    def run(self):
        while not self.stop.is_set():
            with self.cluster.lock:
                up = [at for at in range(len(self.cluster.servers)) if at not in self.cluster.down]
                at = self.random.choice(up)
                turn, address = self.cluster.turns[at], self.cluster.addresses[at]
            page, direction = self.random.randrange(PAGES), self.random.choice(["out", "in"])
            seconds = FIRST + self.random.randrange(DAY, (len(self.story.batches) + 1) * DAY)
            query = urllib.parse.urlencode({"url": url_of(page), "direction": direction, "at": stamp(seconds),
                                            "limit": 1000})
            begun = time.monotonic()
            try:
                status, body = self.ask(address, f"/v1/links?{query}")
                took = time.monotonic() - begun
                if status != 200:
                    raise OSError(f"{status}: {body[:300]}")
                answer = json.loads(body)
                # The epoch may be known here only later.
                self.answers.append((at, answer["epoch"], page, direction, seconds, answer["links"]))
                with self.cluster.lock:
                    # The time of a call to a server that was stopped meanwhile says nothing.
                    if self.cluster.turns[at] != turn:
                        self.interrupted += 1
                        continue
                self.times.append((took, at, begun))
            except (OSError, http.client.HTTPException, ssl.SSLError) as error:
                with self.cluster.lock:
                    # Whoever asks a server that is killed or stopped meanwhile asks another one.
                    if self.cluster.turns[at] != turn:
                        self.interrupted += 1
                        continue
                self.failed.append((at, query, time.monotonic() - begun, repr(error)))
            self.stop.wait(0.02)

    def wrong(self):
        def is_wrong(at, epoch, page, direction, seconds, links):
            return set(links) != self.story.answer(epoch, page, direction, seconds) or len(set(links)) != len(links)
        return [answer for answer in self.answers if is_wrong(*answer)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default=os.environ.get("WEBSTRATA", "target/debug/webstrata"))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--callers", type=int, default=6)
    parser.add_argument("--p99", type=float, default=500, help="the most milliseconds of 99 of 100 calls")
    parser.add_argument("--slow", action="store_true", help="print events, and calls above --p99, in order")
    parser.add_argument("--keep", action="store_true", help="keep the logs of the servers")
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="webstrata-chaos-"))
    story, stop = Story(args.seed, work), threading.Event()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def job(*words):
        subprocess.run(["nice", args.webstrata, *map(str, words), "-w", "1", "--partition-urls", "40"],
                       check=True, **quiet)

    job("build", story.batch(), "--out", work / "store")
    story.written()
    cluster, counts, late = Cluster(args, work), {}, []
    ended = False
    try:
        for at in range(args.servers):
            cluster.start(at, 2)
        cluster.whole()
        for at in range(args.servers):
            cluster.asked(at, True)
        callers = [Caller(cluster, story, args.seed + 100 + at, stop) for at in range(args.callers)]
        threads = [*callers, threading.Thread(target=cluster.renew, args=(stop,), daemon=True),
                   threading.Thread(target=sleeper, args=(stop, late), daemon=True)]

        def write_batches():
            while not stop.wait(10):
                path = story.batch()
                job("update", work / "store", path)
                story.written()
                counts["updates"] = counts.get("updates", 0) + 1
        threads.append(threading.Thread(target=write_batches, daemon=True))
        for thread in threads:
            thread.start()
        begun = time.monotonic()

        def disturb_until(share, replicas):
            while time.monotonic() < begun + share * args.seconds:
                cluster.disturb(counts, replicas)
                time.sleep(0.5)
                cluster.settled()
        disturb_until(0.4, 2)
        cluster.replace_authority()
        changing = [time.monotonic()]
        cluster.change_replicas(3)
        changing.append(time.monotonic())
        disturb_until(1, 3)
        time.sleep(1)
        stop.set()
        for thread in threads:
            thread.join(60)
        agreed = cluster.whole()
        seconds, ended = time.monotonic() - begun, True
    finally:
        for server in filter(None, cluster.servers):
            server.kill()
            server.wait()
        cluster.cuts.end()
        if ended and not args.keep:
            subprocess.run(["rm", "-rf", work], check=True)
        else:
            print(f"the logs are in {work}")
    failed = [one for caller in callers for one in caller.failed]
    wrong = [one for caller in callers for one in caller.wrong()]
    for one in [*failed[:20], *wrong[:20]]:
        print(one)
    if args.slow:
        slow = [(when, f"server {server}: {1000 * took:.0f} ms") for caller in callers
                for took, server, when in caller.times if 1000 * took > args.p99]
        for when, what in sorted([*cluster.events, *slow]):
            print(f"{when - begun:8.2f} {what}")
    calls = [call for caller in callers for call in caller.times]
    spans = [*zip(cluster.events[::2], cluster.events[1::2])]

    def is_disturbed(when):
        return any(first <= when <= last for (first, _), (last, _) in spans)
    p99 = 0
    for what, times in [("cuts, stops, kills", [took for took, _, when in calls if is_disturbed(when)]),
                        ("restarts with another number of replicas", [took for took, _, when in calls
                                                                      if changing[0] <= when <= changing[1]]),
                        ("all calls", [took for took, *_ in calls])]:
        p50, p99, longest = shares(times)
        print(f"{what}: {len(times)} calls, p50 {p50:.1f} ms, p99 {p99:.0f} ms, longest {longest:.0f} ms")
    p50, late_p99, longest = shares(late)
    print(f"this machine: sleeps of 20 ms are late by p50 {p50:.1f} ms, p99 {late_p99:.0f} ms, "
          f"longest {longest:.0f} ms")
    print(f"{seconds:.0f} s, seed {args.seed}; {counts}; at the end servers, epoch, replicas: {agreed[:3]}")
    print(f"{len(calls)} calls, {len(failed)} failed, {len(wrong)} wrong, "
          f"{sum(caller.interrupted for caller in callers)} to servers that were killed or stopped meanwhile; "
          f"p99 {p99:.0f} ms")
    sys.exit(1 if failed or wrong or p99 > args.p99 or agreed[2] != "3" else 0)


if __name__ == "__main__":
    main()

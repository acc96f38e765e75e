#!/usr/bin/env python3
"""Servers against the independent oracle: questions through the clerk and HTTP, to one server and to a cluster.

  serving.py CAPTURES... [--servers 5] [--replicas 2] [--questions 20000] [--seed 7] [--partition-urls 2000]

Builds a store, starts one server and then a cluster of real processes on loopback, and asks with `webstrata query
--server` and `/v1/query` of a server. The server forwards questions about cells that the server does not hold. Exit
code 1 at a wrong or missing answer. WEBSTRATA names the binary, WEBSTRATA_SHARED the directory with tools/oracle.py.
Needs no packages.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

from digits import digits


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


class Servers:
    """Processes of one cluster, ended when the block ends."""

    def __init__(self, binary, store, work, count, replicas):
        self.command = [binary, "serve", store, "--listen", "127.0.0.1:0", "--settle", "0.5", "--gossip", "0.1",
                        "--replicas", str(replicas), "--log", "warn"]
        self.work, self.count = work, count
        self.processes, self.addresses = [], []

    def __enter__(self):
        for number in range(self.count):
            join = ["--join", self.addresses[0]] if self.addresses else []
            data = self.work / f"data-{self.count}-{number}"
            process = subprocess.Popen([*map(str, self.command), "--data", str(data), *join],
                                       stdout=subprocess.PIPE, text=True)
            self.processes.append(process)
            self.addresses.append(process.stdout.readline().split()[-1])
        for process in self.processes:
            if not process.stdout.readline().startswith("ready"):
                sys.exit("a server ended before it was ready")
        # All are members by now; their cells are where they belong when nobody misses any.
        for address in self.addresses:
            self.settled(address)
        return self

    def settled(self, address):
        for _ in range(600):
            with urllib.request.urlopen(f"http://{address}/metrics") as answer:
                figures = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
            if figures["webstrata_servers_alive"] == str(self.count) and figures["webstrata_cells_wanted"] == "0":
                return
            time.sleep(0.1)
        sys.exit(f"{address} does not settle")

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--servers", type=int, default=5)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--questions", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--partition-urls", type=int, default=2000)
    args = parser.parse_args()
    binary = os.environ.get("WEBSTRATA", "webstrata")
    oracle = pathlib.Path(os.environ.get("WEBSTRATA_SHARED", "../shared")) / "tools/oracle.py"
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        store, questions = work / "store", work / "q.queries.jsonl"
        run(binary, "build", "--partition-urls", args.partition_urls, "--out", store, *args.captures,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run(sys.executable, oracle, "make", *args.captures, "--queries", args.questions, "--seed", args.seed,
            "--out", work / "q", stdout=subprocess.DEVNULL)
        wrong = 0
        for count in sorted({1, args.servers}):
            with Servers(binary, store, work, count, args.replicas) as servers:
                for way, address in [("clerk", servers.addresses[0]), ("http", servers.addresses[-1])]:
                    answers = work / "answers.jsonl"
                    begin = time.monotonic()
                    if way == "clerk":
                        with open(questions) as asked, open(answers, "w") as out:
                            run(binary, "query", "--server", address, stdin=asked, stdout=out)
                    else:
                        request = urllib.request.Request(f"http://{address}/v1/query", questions.read_bytes())
                        with urllib.request.urlopen(request) as answer, open(answers, "wb") as out:
                            out.write(answer.read())
                    seconds = time.monotonic() - begin
                    answers.write_text("".join(digits(answers.read_text().splitlines())))
                    done = subprocess.run([sys.executable, str(oracle), "compare", str(work / "q.expected.jsonl"),
                                           str(answers)], capture_output=True, text=True)
                    wrong += done.returncode
                    print(f"{count} servers, {way}: {done.stdout.strip()} ({seconds:.1f} s)", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

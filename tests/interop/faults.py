#!/usr/bin/env python3
"""Injected faults: what a command does when the system refuses to write, sync, rename, remove, read or open.

  faults.py [--webstrata BINARY] [--faults N] [--seconds S] [--seed S] [--jobs N] [--only COMMAND]

Compiles faults.c, which makes the n-th call of a kind fail below the directory of a small store, and runs every command
that reads or writes a store under random faults: on one call, or on that call and all later ones, as on a disk that
stays full. For each fault:

1. The command ends with exit code 1 and one error that names what failed, says what the system said and what to do; or
   with 0, and then everything is as without the fault. It neither panics nor is killed.
2. Without the fault, `webstrata check --all` finds the store sound, and the store is as before the command, or as after
   one of its epochs: by its manifest with all checksums, and by its answers about every URL.
3. The same command, run again, succeeds, and `gc` leaves the same files as without any fault.

Prints a line for each command and kind of fault; exit code 1 if anything was wrong. Needs a C compiler, and Linux with
glibc; no packages.
"""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from faults_stores import GONE, Workplace

SHORT = 0
ALL = "open,create,read,write,sync,truncate,rename,unlink,mkdir,list,stat"
# Kinds of calls, how they fail, and whether later calls fail too: no, yes, or by chance (None).
FAULTS = [
    ("open", errno.EIO, None), ("open", errno.EMFILE, False), ("open,create,list", errno.EMFILE, True),
    ("create", errno.EIO, None), ("create", errno.ENOSPC, None), ("read", errno.EIO, None), ("read", SHORT, None),
    ("write", errno.EIO, None), ("write", errno.ENOSPC, None), ("write", SHORT, None),
    ("write,create,mkdir", errno.ENOSPC, True), ("sync", errno.EIO, None), ("sync", errno.ENOSPC, None),
    ("truncate", errno.EIO, None), ("rename", errno.EIO, None), ("rename", errno.ENOSPC, None),
    ("unlink", errno.EIO, None), ("mkdir", errno.EIO, None), ("mkdir", errno.ENOSPC, None), ("list", errno.EIO, None),
    ("stat", errno.EIO, None), ("map", errno.ENOMEM, None), ("lock", errno.ENOLCK, True), (ALL, errno.EIO, True),
]
# What a message may advise.
ADVICE = ("run the same command again", "--spill", "gc")

# A command: its name, the place that it begins with, its words, and the words whose results it passes through.
Command = collections.namedtuple("Command", "name place words steps")
WORKS = "-w 1 --memory 300M"
COMMANDS = [
    Command("build", "empty", f"build --out STORE {WORKS} --partition-urls 8 CRAWLS/1.jsonl CRAWLS/2.jsonl", []),
    Command("formats", "empty", f"build --out STORE {WORKS} --partition-urls 8 CRAWLS/more CRAWLS/3*l", []),
    Command("replace", "full", f"build --replace --out STORE {WORKS} CRAWLS/1.jsonl CRAWLS/4.jsonl", []),
    Command("update", "full", f"update STORE {WORKS} CRAWLS/4.jsonl", ["update STORE --no-merge CRAWLS/4.jsonl"]),
    Command("no-merge", "full", f"update STORE {WORKS} --no-merge CRAWLS/4.jsonl", []),
    Command("merge", "full", f"merge STORE {WORKS} --rows all", []),
    Command("remove", "full", f"remove STORE {WORKS} --host b.example", ["remove STORE --no-merge --host b.example"]),
    Command("finish", "full", f"remove STORE {WORKS} --finish", []),
    Command("cells", "full", "cells STORE -w 1", []),
    Command("recode", "full", "cells STORE -w 1 --codec strata", []),
    Command("gc", "full", "gc STORE --keep 1", []),
    Command("overview", "full", f"overview STORE {WORKS}", []),
    Command("watch", "full", "watch STORE degrees --once -w 1", []),
    Command("new watch", "full", "watch STORE hosts --once -w 1 --out TABLES", []),
    Command("forget", "full", "watch STORE top --forget", []),
    Command("export", "full", f"export STORE {WORKS} --urls --out OUT/edges.csv.gz", []),
    Command("parts", "full", f"export STORE {WORKS} --what events --parts --format parquet --out OUT/events", []),
    Command("graph", "full", f"export STORE {WORKS} --out OUT/edges.gexf", []),
    Command("analyze", "full", f"analyze STORE pagerank {WORKS} --out OUT/ranks.parquet", []),
    Command("fold", "full", f"fold STORE {WORKS} --unit host --period month --out OUT/hosts.csv", []),
    Command("sql", "full", "sql STORE --out OUT/views.sql", []),
    Command("generate", "full", "generate uk:occurrences=3000 --out OUT/crawl.jsonl", []),
    Command("query", "full", "query STORE", []),
    Command("check", "full", "check STORE --all", []),
]


class Clean:
    """A command without faults: how many calls of each kind it makes, what it prints and what it leaves."""

    def __init__(self, place, shim, command):
        self.command = command
        place.restore(command.place)
        self.states = [place.state()]
        for words in command.steps:
            place.succeeds(words)
            self.states.append(place.state())
            place.restore(command.place)
        done, said = shim.run(place, command, "", 0, 0, False)
        if done.returncode:
            raise RuntimeError(f"{command.name} without a fault: {done.stderr}")
        self.calls = {line.split()[1]: int(line.split()[2]) for line in said if line.startswith("calls ")}
        self.printed = done.stdout
        place.succeeds("gc STORE --keep 100")
        self.states.append(place.state())
        self.tree = place.tree()

    def draw(self, draw):
        """A fault of this command: kinds, error, number of the call, and whether later ones fail."""
        while True:
            kinds, error, sticky = draw.choice(FAULTS)
            calls = sum(self.calls[kind] for kind in kinds.split(","))
            if calls:
                sticky = draw.random() < .3 if sticky is None else sticky
                return kinds, error, draw.randrange(calls) + 1, sticky


class Shim:
    """faults.c, compiled."""

    def __init__(self, directory):
        self.library, self.log = directory / "faults.so", directory / "faults.log"
        source = pathlib.Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", self.library, source, "-ldl"], check=True)

    def run(self, place, command, kinds, error, number, sticky):
        """Runs a command under a fault; how it ended, and the lines of the log."""
        self.log.write_text("")
        environment = {
            "LD_PRELOAD": str(self.library), "FAULTS_UNDER": str(place.root), "FAULTS_KINDS": kinds,
            "FAULTS_NTH": str(number), "FAULTS_ERRNO": str(error), "FAULTS_STICKY": str(int(sticky)),
            "FAULTS_LOG": str(self.log),
        }
        done = place.ask(command.words, environment)
        return done, self.log.read_text().splitlines()


def wrong_message(place, command, done, error):
    """What is wrong with what a command said that failed."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    if command.name == "check" and not errors:
        # It says what is wrong with each file.
        errors, advised = done.stdout.splitlines()[:1], True
    else:
        advised = any(advice in done.stderr for advice in ADVICE)
    if len(errors) != 1:
        return f"{len(errors)} errors"
    if os.strerror(error) not in errors[0]:
        return "does not say what the system said"
    if str(place.root) not in errors[0]:
        return "names no path"
    return None if advised else "says not what to do"


def judge(place, clean, done, error):
    """What came of a fault: `harmless` or `refused`, and what was wrong, by kind."""
    command, wrong = clean.command, {}
    if done.returncode not in (0, 1) or "panicked" in done.stderr:
        wrong["crash"] = f"exit code {done.returncode}: {done.stderr[-400:]}"
    elif done.returncode == 1 and (why := wrong_message(place, command, done, error)):
        wrong["message"] = f"{why}: {(done.stdout[-400:] + done.stderr[-400:]).strip()}"
    now = place.state()
    if isinstance(now, str):
        wrong["mixture"] = now
    elif all(differs := [difference(now, state) for state in clean.states]):
        wrong["mixture"] = f"differs from all epochs: {differs}"
    if done.returncode == 0:
        if command.name in ("query", "check") and done.stdout != clean.printed:
            wrong["incomplete"] = "prints something else"
    else:
        again = place.ask(command.words)
        if again.returncode:
            wrong["rerun"] = f"exit code {again.returncode}: {again.stderr[-400:]}"
    if "rerun" not in wrong:
        place.succeeds("gc STORE --keep 100")
        last, tree = place.state(), place.tree()
        names = sorted(name for name in tree.keys() | clean.tree.keys() if tree.get(name) != clean.tree.get(name))
        if command.name == "overview" and "the overview is not kept" in done.stderr and done.stdout == clean.printed:
            # It is an answer, which is also kept where that is possible.
            names = [name for name in names if not name.startswith("store/overviews/")]
        failed = "rerun" if done.returncode else "incomplete"
        if isinstance(last, str):
            wrong[failed] = last
        elif differs := difference(last, clean.states[-1]):
            wrong[failed] = f"another {differs}"
        elif names:
            wrong[failed] = f"other files: {[(name, name in tree) for name in names[:6]]}"
    return "refused" if done.returncode else "harmless", wrong


def difference(one, other):
    """What is not the same in two states of a store, which may not be there."""
    return one.differs(other) if one and other else None if one is other else "whether it is a store"


class Results:
    """What came of all faults."""

    COLUMNS = ["harmless", "refused", "not met", "mixture", "incomplete", "rerun", "crash", "message"]

    def __init__(self):
        self.counts, self.wrongs = collections.Counter(), 0

    def add(self, command, fault, at, came, wrong):
        kinds, error, number, sticky = fault
        how = f"{kinds if kinds != ALL else 'all'} {errno.errorcode.get(error, 'short')}"
        self.counts[command.name, how, came if at else "not met"] += 1
        for what, text in wrong.items():
            self.counts[command.name, how, what] += 1
            self.wrongs += 1
            at = at or "not met"
            print(f"{what}: {command.name}, {how}, call {number}{' on' if sticky else ''}, {at}: {text}", flush=True)

    def print(self):
        print(f"{'command':<10} {'fault':<26}" + "".join(f"{column:>11}" for column in self.COLUMNS))
        rows = sorted({key[:2] for key in self.counts})
        for name, how in rows:
            print(f"{name:<10} {how:<26}" + "".join(f"{self.counts[name, how, column]:>11}" for column in self.COLUMNS))
        print(f"{'all':<37}" + "".join(f"{self.total(column):>11}" for column in self.COLUMNS))

    def total(self, column):
        return sum(count for key, count in self.counts.items() if key[2] == column)

    def faults(self):
        return sum(self.total(column) for column in self.COLUMNS[:3])


def run(binary, commands, faults, until, seed, results):
    """So many faults of each of these commands, in turn, in a place of their own."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory).resolve()
        place, shim = Workplace(binary, directory), Shim(directory)
        place.prepare()
        cleans = [Clean(place, shim, command) for command in commands]
        draws = {command.name: random.Random(f"{seed} {command.name}") for command in commands}
        for _ in range(faults):
            for clean in cleans:
                if time.monotonic() > until:
                    return
                command, fault = clean.command, clean.draw(draws[clean.command.name])
                place.restore(command.place)
                done, said = shim.run(place, command, *fault)
                at = next((line for line in said if line.startswith("fault ")), None)
                results.add(command, fault, at, *judge(place, clean, done, fault[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", type=pathlib.Path, default="target/release/webstrata")
    parser.add_argument("--faults", type=int, default=15, help="of each command")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no fault after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many commands run at the same time")
    parser.add_argument("--only", help="this command alone")
    args = parser.parse_args()
    started, results = time.monotonic(), Results()
    commands = [command for command in COMMANDS if args.only in (None, command.name)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        shares = [commands[job::args.jobs] for job in range(args.jobs)]
        done = [pool.submit(run, args.webstrata.resolve(), share, args.faults, started + args.seconds, args.seed,
                            results) for share in shares if share]
        for future in done:
            future.result()
    results.print()
    print(f"faults.py: {results.faults()} faults in {time.monotonic() - started:.0f} s, {results.wrongs} wrong")
    sys.exit(1 if results.wrongs else 0)


if __name__ == "__main__":
    main()

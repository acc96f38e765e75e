#!/usr/bin/env python3
"""Analyses at a date equal those of a store that has no later captures.

  dates.py CAPTURES... [--webstrata BINARY] [--dates N]

CAPTURES: *.jsonl or *.jsonl.gz, one capture a line, one site a file. Of each file a store is built from all captures,
and one for each of N dates (years apart alike) from the captures up to it. Every analysis, fold, and the exports of
nodes and edges at the date are computed on both and joined by URL; components are compared as sets of URLs. Prints the
largest difference of each: counts and sets must be equal, ranks within 1e-9. Exit code 1 otherwise. Needs pyarrow.
"""
import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

import pyarrow.parquet as pq

DATED = ["degrees", "pagerank", "hits", "salsa", "scc", "wcc", "harmonic", "triangles", "locality", "rot"]
RANKS = {"pagerank", "authority", "hub", "harmonic", "reached_by", "clustering", "similarity"}
RANKS_MAX = 1e-9


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def lines_of(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        yield from file


class Store:
    def __init__(self, binary, path, captures):
        self.binary, self.path, self.out = binary, path, path.with_suffix(".parquet")
        run(binary, "build", "--out", path, captures)

    def table(self, command, *options):
        run(self.binary, command, self.path, *options, "--out", self.out)
        return pq.read_table(self.out).to_pydict()

    def values(self, name, *options):
        """By URL its values; a component as the set of its URLs."""
        table = self.table("analyze", name, *options)
        if "component" in table:
            members = {}
            for url, component in zip(table["url"], table["component"]):
                members.setdefault(component, set()).add(url)
            table["component"] = [frozenset(members[component]) for component in table["component"]]
        names = [name for name in table if name not in ("uid", "url")]
        return {url: {name: table[name][at] for name in names} for at, url in enumerate(table["url"])}

    def rows(self, command, *options, without=("uid",)):
        """Rows of a table as a set."""
        table = self.table(command, *options)
        names = [name for name in table if name not in without]
        return {tuple(str(table[name][at]) for name in names) for at in range(len(table[names[0]]))}


def difference(what, got, want):
    """The largest difference of values by URL."""
    if got.keys() != want.keys():
        sys.exit(f"{what}: {len(got)} nodes, expected {len(want)}; {sorted(got.keys() ^ want.keys())[:3]}")
    largest = 0.0
    for url, values in got.items():
        for name, value in values.items():
            other = want[url][name]
            if name in RANKS:
                largest = max(largest, abs(value - other))
            elif value != other:
                sys.exit(f"{what}: {name} of {url} is {value}, expected {other}")
    return largest


def check(what, got, want):
    if got != want:
        sys.exit(f"{what}: {sorted(got ^ want)[:3]} differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", type=pathlib.Path)
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("--dates", type=int, default=5)
    args = parser.parse_args()
    for captures in args.captures:
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            full = Store(args.webstrata, directory / "full", captures)
            lines = [(json.loads(line)["ts"], line) for line in lines_of(captures)]
            times = sorted({ts for ts, _ in lines})
            for number in range(1, args.dates + 1):
                date = times[len(times) * number // (args.dates + 1)]
                trimmed = directory / f"{date}.jsonl"
                trimmed.write_text("".join(line for ts, line in lines if ts <= date), encoding="utf-8")
                until = Store(args.webstrata, directory / date, trimmed)
                what, largest = f"{captures.name} at {date}", {}
                for name in DATED:
                    pair = [store.values(name, "--at", date) for store in (full, until)]
                    largest[name] = difference(f"{what}: {name}", *pair)
                for name in ["mortality", "churn"]:
                    pair = [store.values(name, "--to", date) for store in (full, until)]
                    largest[name] = difference(f"{what}: {name}", *pair)
                rot = ("analyze", "rot", "--unit", "domain", "--at", date)
                for options in [("analyze", "menus", "--at", date), rot]:
                    check(f"{what}: {options}", *[store.rows(*options) for store in (full, until)])
                edges = ("export", "--what", "edges", "--urls", "--at", date)
                for options in [("fold", "--unit", "host", "--to", date), edges]:
                    check(f"{what}: {options}", *[store.rows(*options) for store in (full, until)])
                nodes = ("export", "--what", "nodes", "--at", date)
                nodes = [store.rows(*nodes, without=("id",)) for store in (full, until)]
                check(f"{what}: nodes", *nodes)
                worst = max(largest.values())
                ranks = ", ".join(f"{name} {value:.1e}" for name, value in largest.items() if value)
                print(f"{what}: {len(nodes[0])} nodes of {len(full.values('degrees', '--nodes', 'all'))}; "
                      f"counts and sets: 0; ranks: {ranks or 0}", flush=True)
                if worst > RANKS_MAX:
                    sys.exit(f"{what}: ranks differ by {worst}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The same questions from Python to webstrata, LMDB, Raphtory and SQLite: time, size, and that the answers are equal.

  python_peers.py [--crawl uk:occurrences=1000000,seed=9] [--rounds 3]

Needs the package from a release wheel and the packages of requirements-speed.txt. A question is a page and a date: what
the page links to, or which pages link to it, as of the date. It is asked one page a call, and 1,000 pages a call.
Pages and dates are random, from a seed; every third date is the second of a capture. URLs are numbers, the same in
every system. Each system runs in a process of its own, and the systems are asked in turn, round by round.

webstrata reads the crawl. The others read a table of intervals (page, link, first, gone), which is computed here from
the crawl: the link is there from the capture `first` until before the capture `gone`.
  LMDB      a value for each page and direction: rows of three 32-bit numbers (link, first, gone), as NumPy reads them
  SQLite    a table for each direction, whose primary key is (page, link, first), without row numbers
  Raphtory  a PersistentGraph in memory, with edges that are added and deleted; it has no call for many pages
An answer is an array (LMDB), a list (SQLite, Raphtory) or an Arrow table (webstrata; "as NumPy" also converts it).

Prints medians of the rounds. Stops where an answer differs.
"""
import argparse
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PAGES, BATCHES = 1000, 9
NEVER = 2**32 - 1


def seconds_of(stamp):
    moment = datetime.datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc)
    return int(moment.timestamp())


def at_text(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def intervals(crawl):
    """The URLs, the rows (page, link, first, gone), the times of captures, and the number of links in captures."""
    numbers, standing, latest, rows, times, occurrences = {}, {}, {}, [], set(), 0
    for line in crawl:
        capture = json.loads(line)
        page = numbers.setdefault(capture["url"], len(numbers))
        now = seconds_of(capture["ts"])
        assert latest.get(page, -1) < now, "the captures of a page are in the order of time"
        latest[page] = now
        times.add(now)
        links = {numbers.setdefault(link, len(numbers)) for link in capture["links"]}
        occurrences += len(links)
        open_links = standing.setdefault(page, {})
        rows += ((page, link, open_links.pop(link), now) for link in open_links.keys() - links)
        open_links.update((link, now) for link in links - open_links.keys())
    for page, open_links in standing.items():
        rows += ((page, link, first, NEVER) for link, first in open_links.items())
    return list(numbers), np.array(rows, np.uint32), sorted(times), occurrences, sorted(standing)


def split(owners, links, pages):
    """The links of each of the pages, sorted: the form in which answers are compared."""
    order = np.lexsort((links, owners))
    counts = np.bincount(owners, minlength=pages)
    return np.split(np.asarray(links)[order].astype(np.int64), np.cumsum(counts)[:-1])


def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Webstrata:
    """Links of a store with cells. `is_numpy` says whether the Arrow table is converted."""

    def __init__(self, work, is_numpy=False):
        import pyarrow
        import webstrata
        self.work, self.is_numpy = work, is_numpy
        self.webstrata, self.table = webstrata, pyarrow.table

    def build(self):
        self.webstrata.build(str(self.work / "crawl.jsonl"), str(self.work / "store"))
        self.webstrata.run("cells", str(self.work / "store"))
        return self.work / "store"

    def open(self):
        self.graph = self.webstrata.open(str(self.work / "store"))

    def one(self, page, at, direction):
        found = self.graph.links(np.array([page], np.uint64), at=at_text(at), direction=direction, names=False)
        return self.table(found)["link_uid"].to_numpy() if self.is_numpy else found

    def many(self, pages, at, direction, exact=True):
        found = self.graph.links(np.array(pages, np.uint64), at=at_text(at), direction=direction, names=False,
                                 exact=exact)
        if not self.is_numpy:
            return found
        found = self.table(found)
        return found["uid"].to_numpy(), found["link_uid"].to_numpy()

    def plain_one(self, answer):
        return np.sort(answer if self.is_numpy else self.table(answer)["link_uid"].to_numpy()).astype(np.int64)

    def plain_many(self, answer, pages):
        if not self.is_numpy:
            answer = self.table(answer)
            assert not any(answer["is_unknown"].to_pylist())
            answer = answer["uid"].to_numpy(), answer["link_uid"].to_numpy()
        places = np.argsort(pages)
        owners = places[np.searchsorted(np.array(pages)[places], answer[0])]
        return split(owners, answer[1], len(pages))


class WebstrataNumpy(Webstrata):
    def __init__(self, work):
        super().__init__(work, is_numpy=True)


class Peer:
    """A system that reads the table of intervals."""

    def __init__(self, work):
        self.work = work

    def rows(self, direction):
        """The rows of a direction, by page: (page, link, first, gone)."""
        rows = np.load(self.work / "intervals.npy")
        rows = rows if direction == "out" else rows[:, [1, 0, 2, 3]]
        return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]

    def plain_one(self, answer):
        return np.sort(np.array(answer, np.int64))

    def plain_many(self, answer, pages):
        return [self.plain_one(links) for links in answer]


class Lmdb(Peer):
    def __init__(self, work):
        import lmdb
        super().__init__(work)
        self.lmdb = lmdb

    def environment(self, **options):
        return self.lmdb.open(str(self.work / "links.lmdb"), map_size=1 << 36, max_dbs=2, **options)

    def build(self):
        with self.environment() as environment:
            for direction in ("out", "in"):
                rows = self.rows(direction)
                pages, starts = np.unique(rows[:, 0], return_index=True)
                values = np.split(np.ascontiguousarray(rows[:, 1:]), starts[1:])
                database = environment.open_db(direction.encode())
                with environment.begin(write=True, db=database) as write:
                    for page, value in zip(pages, values):
                        write.put(int(page).to_bytes(4, "big"), value.tobytes(), append=True)
        return self.work / "links.lmdb"

    def open(self):
        environment = self.environment(readonly=True, lock=False)
        self.databases = {name: environment.open_db(name.encode(), create=False) for name in ("out", "in")}
        self.read = environment.begin(buffers=True)

    def one(self, page, at, direction):
        value = self.read.get(page.to_bytes(4, "big"), b"", db=self.databases[direction])
        rows = np.frombuffer(value, np.uint32).reshape(-1, 3)
        return rows[(rows[:, 1] <= at) & (at < rows[:, 2]), 0]

    def many(self, pages, at, direction):
        database, get = self.databases[direction], self.read.get
        values = [get(page.to_bytes(4, "big"), b"", db=database) for page in pages]
        rows = np.frombuffer(b"".join(values), np.uint32).reshape(-1, 3)
        stands = (rows[:, 1] <= at) & (at < rows[:, 2])
        owners = np.repeat(np.arange(len(pages)), [len(value) // 12 for value in values])
        return owners[stands], rows[stands, 0]

    def plain_many(self, answer, pages):
        return split(*answer, len(pages))


class Sqlite(Peer):
    def build(self):
        with sqlite3.connect(self.work / "links.sqlite") as database:
            for direction in ("out", "in"):
                database.execute(f"create table links_{direction} (page integer, link integer, first integer, "
                                 "gone integer, primary key (page, link, first)) without rowid")
                rows = self.rows(direction).tolist()
                database.executemany(f"insert into links_{direction} values (?, ?, ?, ?)", rows)
        database.close()
        return self.work / "links.sqlite"

    def open(self):
        self.database = sqlite3.connect(self.work / "links.sqlite")
        condition = "first <= ? and ? < gone"
        self.ask_one = {direction: f"select link from links_{direction} where page = ? and {condition}"
                        for direction in ("out", "in")}
        self.ask_many = {direction: f"select asked.key, link from json_each(?) asked cross join links_{direction} "
                                    f"on page = asked.value where {condition}" for direction in ("out", "in")}

    def one(self, page, at, direction):
        return self.database.execute(self.ask_one[direction], (page, at, at)).fetchall()

    def many(self, pages, at, direction):
        return self.database.execute(self.ask_many[direction], (json.dumps(pages), at, at)).fetchall()

    def plain_one(self, answer):
        return np.sort(np.array(answer, np.int64).ravel())

    def plain_many(self, answer, pages):
        answer = np.array(answer, np.int64).reshape(-1, 2)
        return split(answer[:, 0], answer[:, 1], len(pages))


class Raphtory(Peer):
    def __init__(self, work):
        import raphtory
        super().__init__(work)
        self.raphtory = raphtory

    def build(self):
        """Writes what is loaded; the graph is in memory."""
        import pyarrow
        import pyarrow.parquet
        rows = self.rows("out")
        gone = rows[rows[:, 3] != NEVER]
        for name, kept, column in (("added", rows, 2), ("deleted", gone, 3)):
            columns = {"src": kept[:, 0].astype(np.uint64), "dst": kept[:, 1].astype(np.uint64),
                       "time": kept[:, column].astype(np.int64)}
            pyarrow.parquet.write_table(pyarrow.table(columns), self.work / f"{name}.parquet")

    def open(self):
        self.graph = self.raphtory.PersistentGraph()
        self.graph.load_edges(str(self.work / "added.parquet"), "time", "src", "dst")
        self.graph.load_edge_deletions(str(self.work / "deleted.parquet"), "time", "src", "dst")

    def one(self, page, at, direction):
        node = self.graph.at(at).node(page)
        if node is None:
            return []
        return (node.out_neighbours if direction == "out" else node.in_neighbours).id.collect()

    def many(self, pages, at, direction):
        view = self.graph.at(at)
        nodes = [view.node(page) for page in pages]
        if direction == "out":
            return [node.out_neighbours.id.collect() if node else [] for node in nodes]
        return [node.in_neighbours.id.collect() if node else [] for node in nodes]


SYSTEMS = {"webstrata": Webstrata, "webstrata, as NumPy": WebstrataNumpy, "LMDB": Lmdb, "SQLite": Sqlite,
           "Raphtory": Raphtory}


def ask(system, batches, direction, is_single):
    """The median time of a question in microseconds, and the answers in the form in which they are compared."""
    times, answers = [], []
    for number, (pages, at) in enumerate(batches):
        if not is_single:
            begin = time.perf_counter()
            answer = system.many(pages, at, direction)
            times.append((time.perf_counter() - begin) / len(pages))
            answers.append(system.plain_many(answer, pages))
            continue
        answers.append([])
        for page in pages[number::BATCHES]:
            begin = time.perf_counter()
            answer = system.one(page, at, direction)
            times.append(time.perf_counter() - begin)
            answers[-1].append(system.plain_one(answer))
    return statistics.median(times) * 1e6, answers


def by_range(system, batches):
    """The median time of in-links at the precision of the store's time ranges, and the share of links too many."""
    times, exact, found = [], 0, 0
    for pages, at in batches:
        begin = time.perf_counter()
        answer = system.many(pages, at, "in", exact=False)
        times.append((time.perf_counter() - begin) / len(pages))
        exact, found = exact + len(system.many(pages, at, "in")), found + len(answer)
    return statistics.median(times) * 1e6, found / exact - 1


def disk(path):
    """Bytes that the file or directory occupies."""
    paths = [path, *path.rglob("*")] if path.is_dir() else [path]
    return sum(one.stat().st_blocks * 512 for one in paths if one.is_file())


def worker(name, work, pipe):
    """Answers the parent until it asks for nothing more."""
    system = SYSTEMS[name](work)
    before = held()
    while command := pipe.recv():
        if command[0] == "build":
            begin, used = time.perf_counter(), time.process_time()
            path = system.build()
            pipe.send((time.perf_counter() - begin, time.process_time() - used, path and disk(path)))
        elif command[0] == "open":
            begin = time.perf_counter()
            system.open()
            pipe.send(time.perf_counter() - begin)
        elif command[0] == "ask":
            pipe.send(ask(system, *command[1:]))
        elif command[0] == "range":
            pipe.send(by_range(system, *command[1:]))
        elif command[0] == "memory":
            for pages, at in command[1]:
                system.many(pages, at, "out"), system.many(pages, at, "in")
            pipe.send(held() - before)


class Process:
    """A system in a process of its own."""

    def __init__(self, name, work):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=worker, args=(name, work, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def __call__(self, *command):
        self.pipe.send(command)
        return self.pipe.recv()

    def end(self):
        self.pipe.send(None)
        self.process.join()


def questions(seed, pages, times):
    """Batches of pages with a date; pages differ within a batch."""
    choose = random.Random(seed)
    batches = []
    for number in range(BATCHES):
        at = choose.choice(times) if number % 3 == 0 else choose.randrange(times[0], times[-1] + 86_400 * 30)
        batches.append((choose.sample(pages, min(PAGES, len(pages))), at))
    return batches


def prepare(args, work):
    """Writes the crawl and the table of intervals, builds every system, and returns what the table says of each."""
    import webstrata
    webstrata.run("generate", args.crawl, out=str(work / "crawl.jsonl"))
    with open(work / "crawl.jsonl") as crawl:
        urls, rows, times, occurrences, pages = intervals(crawl)
    figures = {}
    for name in SYSTEMS:
        if name == "webstrata, as NumPy":
            continue
        process = Process(name, work)
        figures[name] = process("build")
        process.end()
        if name == "webstrata":
            # The others number URLs as the store does, so that answers are comparable.
            uids = webstrata.open(str(work / "store")).uids(urls).astype(np.uint32)
            rows[:, 0], rows[:, 1] = uids[rows[:, 0]], uids[rows[:, 1]]
            pages = uids[pages].tolist()
            np.save(work / "intervals.npy", rows)
    figures["webstrata, as NumPy"] = figures["webstrata"]
    print(f"{len(urls):,} URLs, {len(pages):,} pages, {occurrences:,} links in captures, {len(rows):,} intervals")
    return figures, questions(args.seed, pages, times), occurrences


def differences(answers, truth):
    """How many answers differ, and how many there are."""
    pairs = [(one, other) for mine, theirs in zip(answers, truth, strict=True)
             for one, other in zip(mine, theirs, strict=True)]
    return sum(not np.array_equal(one, other) for one, other in pairs), len(pairs)


def measure(args, processes, batches):
    """The times of all rounds, by system and kind of question; every answer is compared with that of LMDB."""
    times, compared, different, links = {}, 0, 0, {}
    for _ in range(args.rounds):
        for is_single in (True, False):
            for direction in ("out", "in"):
                truth = None
                for name in ["LMDB", *(name for name in SYSTEMS if name != "LMDB")]:
                    taken, answers = processes[name]("ask", batches, direction, is_single)
                    times.setdefault(name, {}).setdefault((is_single, direction), []).append(taken)
                    if truth is None:
                        truth = answers
                        found = [len(one) for batch in truth for one in batch]
                        links[is_single, direction] = sum(found) / len(found)
                        continue
                    wrong, asked = differences(answers, truth)
                    compared, different = compared + asked, different + wrong
                    if wrong:
                        sys.exit(f"{name}, {direction}: {wrong} of {asked} answers differ from those of LMDB")
    print(f"{compared:,} answers compared, {different} different; links an answer: "
          f"{links[False, 'out']:.1f} out, {links[False, 'in']:.1f} in")
    return times


def show(figures, opened, memory, times, occurrences):
    print("\n| | one page: out, in | 1,000 pages a call: out, in | build, s | CPU s | open, s | disk, MB | "
          "memory, MB | bytes an occurrence |\n|---|---|---|---|---|---|---|---|---|")
    for name in SYSTEMS:
        one, many = ([statistics.median(times[name][is_single, direction]) for direction in ("out", "in")]
                     for is_single in (True, False))
        wall, cpu, size = figures[name]
        place = memory[name] if size is None else size
        stored = "none" if size is None else f"{size / 1e6:.1f}"
        print(f"| {name} | {one[0]:.1f}, {one[1]:.1f} | {many[0]:.2f}, {many[1]:.2f} | {wall:.2f} | {cpu:.2f} | "
              f"{opened[name]:.3f} | {stored} | {memory[name] / 1e6:.1f} | {place / occurrences:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crawl", default="uk:occurrences=1000000,seed=9", help="see `webstrata generate --help`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=9)
    args = parser.parse_args()
    packages = ("webstrata", "lmdb", "raphtory", "numpy")
    print(*(f"{name} {importlib.metadata.version(name)}" for name in packages), f"SQLite {sqlite3.sqlite_version}",
          sep=", ")
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        figures, batches, occurrences = prepare(args, work)
        processes = {name: Process(name, work) for name in SYSTEMS}
        opened = {name: process("open") for name, process in processes.items()}
        memory = {name: process("memory", batches) for name, process in processes.items()}
        times = measure(args, processes, batches)
        ranges = [processes["webstrata"]("range", batches) for _ in range(args.rounds)]
        for process in processes.values():
            process.end()
        show(figures, opened, memory, times, occurrences)
        print(f"\nin-links of webstrata with exact=False, 1,000 pages a call: "
              f"{statistics.median(taken for taken, _ in ranges):.2f} us, with {ranges[0][1]:.1%} of links too many")


if __name__ == "__main__":
    main()

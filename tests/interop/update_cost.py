#!/usr/bin/env python3
"""What updates and merges cost, beside a build of everything.

  tests/interop/update_cost.py months|share|schedule|rows [--occurrences N] [--months N] [--memory SIZE] [--workers N]

months    a year of a made-up crawl: 8 months and then 4, and 4 times 3, by updates and one merge (Avcular & Suel 2011)
share     one capture in a hundred of that year as an update; and all captures of one page in a hundred
schedule  N updates of a month each, merged on schedule: what is written, against what is new
rows      the same crawl in 1, 2, 4 and 8 rows: bytes, and the time of questions

CPU seconds are user and system time of the processes. Bytes are the bytes of layer files. WEBSTRATA names the binary if
webstrata is not on the PATH. Needs pyarrow.
"""
import argparse, json, os, pathlib, random, resource, subprocess, sys, tempfile, time

import pyarrow
import pyarrow.parquet as pq

webstrata = os.environ.get("WEBSTRATA", "webstrata")


def run(*command, **options):
    """Runs a command; its output, CPU seconds and wall seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    wall = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def manifest(store, epoch=None):
    epoch = epoch or int((store / "CURRENT").read_text().split()[0])
    return json.loads((store / f"epochs/{epoch:06}.json").read_text())


def row_bytes(row):
    return sum(file["bytes"] for part in row["partitions"] for file in part["files"])


def crawl(args, work, first, last):
    """The captures of some months, in a file."""
    path = work / f"uk-{first}-{last}.parquet"
    if not path.exists():
        options = f"uk:occurrences={args.occurrences},seed=9,months={args.months},from={first},to={last}"
        run(webstrata, "generate", options, "--as", "parquet", "--out", path)
    return path


class Costs:
    """The commands on a store, with what they cost."""

    def __init__(self, args, store):
        self.store, self.with_ = store, ["--workers", args.workers, "--memory", args.memory]
        self.cpu = self.wall = 0

    def do(self, *command):
        _, cpu, wall = run(webstrata, *command, *self.with_)
        self.cpu += cpu
        self.wall += wall
        return cpu, wall

    def build(self, *inputs):
        return self.do("build", "--out", self.store, *inputs)

    def update(self, *inputs):
        return self.do("update", "--no-merge", self.store, *inputs)

    def merge(self):
        return self.do("merge", self.store, "--rows", "all")

    def spilled(self, *command):
        with tempfile.NamedTemporaryFile() as report:
            cost = self.do(*command, "--report", report.name)
            return (*cost, json.load(open(report.name))["spilled_bytes"])


def months(args, work):
    quarters = [(1, 3), (4, 6), (7, 8), (9, 9), (10, 12)]
    parts = [crawl(args, work, *part) for part in quarters]
    scratch = Costs(args, work / "scratch")
    cpu, wall = scratch.build(*parts)
    print(f"scratch: {cpu:.1f} CPU s, {wall:.1f} s")
    files = lambda store: [file["checksum"] for row in manifest(store)["rows"]
                           for part in row["partitions"] for file in part["files"]]
    for name, groups in (("8 + 4", [parts[:3], parts[3:]]), ("4 x 3", [parts[:1], parts[1:2], parts[2:4], parts[4:]])):
        store = Costs(args, work / name.replace(" ", ""))
        steps = [("build", *store.build(*groups[0]))]
        steps += [("update", *store.update(*group)) for group in groups[1:]]
        steps += [("merge", *store.merge())]
        same = files(store.store) == files(scratch.store)
        print(f"{name}: " + ", ".join(f"{what} {c:.1f} CPU s, {w:.1f} s" for what, c, w in steps))
        new = sum(c for _, c, _ in steps[1:])
        new_wall = sum(w for *_, w in steps[1:])
        print(f"  updates and merge: {new:.1f} CPU s = {new / cpu:.2f} of scratch, "
              f"{new_wall:.1f} s = {new_wall / wall:.2f}")
        print(f"  merge alone: {steps[-1][1] / cpu:.2f} of scratch, wall {steps[-1][2] / wall:.2f}; same bytes: {same}")


def share(args, work):
    chance = random.Random(7)
    by_page = {}
    of_page = lambda url: by_page.setdefault(url, chance.randrange(100))
    of_capture = lambda _: chance.randrange(100)
    for name, draw in (("captures", of_capture), ("pages", of_page)):
        parts = [work / f"{name}-{part}.parquet" for part in ("rest", "one")]
        file = pq.ParquetFile(crawl(args, work, 1, args.months))
        writers = [pq.ParquetWriter(part, file.schema_arrow, compression="zstd") for part in parts]
        for batch in file.iter_batches(20_000):
            drawn = [draw(url) == 0 for url in batch.column("url").to_pylist()]
            for writer, wanted in zip(writers, (False, True)):
                writer.write_batch(batch.filter(pyarrow.array([one == wanted for one in drawn])))
        for writer in writers:
            writer.close()
        store = Costs(args, work / name)
        cpu, wall, spilled = store.spilled("build", "--out", store.store, parts[0])
        own, own_wall, own_spilled = store.spilled("update", "--no-merge", store.store, parts[1])
        base, new = [row_bytes(row) for row in manifest(store.store)["rows"]]
        print(f"1 % of the {name}: {own:.2f} of {cpu:.1f} CPU s = {100 * own / cpu:.1f} %, "
              f"{own_wall:.1f} of {wall:.1f} s")
        print(f"  layers {new / 1e6:.1f} of {base / 1e6:.1f} MB = {100 * new / base:.1f} %, with temporary files "
              f"{(new + own_spilled) / 1e6:.0f} of {(base + spilled) / 1e6:.0f} MB = "
              f"{100 * (new + own_spilled) / (base + spilled):.1f} %")


def schedule(args, work):
    store, seen = work / "store", set()
    written = new = links = new_links = 0
    print("| updates | rows | bytes written / new | links written / new | log2 |\n|---|---|---|---|---|")
    for number in range(1, args.months + 1):
        part = crawl(args, work, number, number)
        command = ["build", "--out"] if number == 1 else ["update"]
        run(webstrata, *command, store, part)
        part.unlink()
        for path in sorted((store / "epochs").glob("*.json")):
            for row in json.loads(path.read_text())["rows"]:
                if row["row"] not in seen:
                    seen.add(row["row"])
                    written += row_bytes(row)
                    links += row["counts"]["links"]
                    if row["updates"] == 1:
                        new += row_bytes(row)
                        new_links += row["counts"]["links"]
        run(webstrata, "gc", store, "--keep", "1")
        if number & (number - 1) == 0:
            rows = len(manifest(store)["rows"])
            print(f"| {number} | {rows} | {written / new:.2f} | {links / new_links:.2f} | {number.bit_length() - 1} |",
                  flush=True)


def rows(args, work):
    print("| rows | MB of layers | of one row | us a question, layers | MB of cells | us a question, cells |\n"
          "|---|---|---|---|---|---|")
    chance = random.Random(3)
    one = None
    for count in (1, 2, 4, 8):
        store = work / f"rows-{count}"
        step = args.months // count
        for first in range(1, args.months + 1, step):
            last = args.months if first + 2 * step > args.months + 1 else first + step - 1
            part = crawl(args, work, first, last)
            command = ["build", "--out", store] if first == 1 else ["update", "--no-merge", store]
            run(webstrata, *command, part)
            part.unlink()
            if last == args.months:
                break
        assert len(manifest(store)["rows"]) == count
        layers = sum(row_bytes(row) for row in manifest(store)["rows"])
        one = one or layers
        urls = run(webstrata, "uids", store, "--format", "json")[0].splitlines()
        if count == 1:
            asked = [json.loads(line)["url"] for line in chance.sample(urls, min(20000, len(urls)))]
            times = [("20060601", "20061231"), ("20060901", "20060930"), ("2006", "2008")]
            questions = "".join(
                json.dumps({"id": at, "op": "links", "url": url, "direction": ["out", "in"][at % 2],
                            "from": times[at % 3][0], "to": times[at % 3][1]}) + "\n"
                for at, url in enumerate(asked))
        answers, cpu, _ = run(webstrata, "query", store, input=questions)
        run(webstrata, "cells", store)
        size = sum(path.stat().st_size for path in (store / "cells").rglob("*.cell"))
        again, cell_cpu, _ = run(webstrata, "query", store, input=questions)
        # UIDs, and so the order of links, and epochs are others.
        unordered = lambda text: [(one["id"], sorted(one["links"])) for one in map(json.loads, text.splitlines())]
        assert unordered(answers) == unordered(again)
        first_answers = unordered(answers) if count == 1 else first_answers
        assert unordered(answers) == first_answers
        micro = lambda seconds: 1e6 * seconds / len(asked)
        print(f"| {count} | {layers / 1e6:.1f} | {layers / one:.2f} | {micro(cpu):.1f} | {size / 1e6:.1f} | "
              f"{micro(cell_cpu):.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["months", "share", "schedule", "rows"])
    parser.add_argument("--occurrences", type=int, default=100_000_000)
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        {"months": months, "share": share, "schedule": schedule, "rows": rows}[args.what](args, pathlib.Path(work))


main()

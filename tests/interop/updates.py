#!/usr/bin/env python3
"""Random batches of real captures, and after each the questions of the independent oracle on what is in so far.

  tests/interop/updates.py CAPTURES... [--batches N] [--questions N] [--seed K] [--cells]

CAPTURES: *.jsonl or *.jsonl.gz, one capture a line. Every capture goes into one of N batches at random, so the captures
of a page are spread over several batches, in any order of time. The script builds the first batch and adds the others
as updates, merged on their schedule. Sometimes one batch is added again, and rows are merged by number. At the end all
rows are merged, and the files must equal a build of all captures. Exit code 1 at the first wrong answer or byte. The
oracle is tools/oracle.py in the directory of shared test data: WEBSTRATA_SHARED, or `shared` beside this workspace.
WEBSTRATA names the binary if webstrata is not on the PATH.
"""
import argparse, gzip, json, os, pathlib, random, subprocess, sys, tempfile

from digits import digits

here = pathlib.Path(__file__).resolve().parent
shared = pathlib.Path(os.environ.get("WEBSTRATA_SHARED", here / "../../../shared"))
webstrata = os.environ.get("WEBSTRATA", "webstrata")


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as lines:
        return lines.read().splitlines(keepends=True)


def manifest(store):
    epoch = int((store / "CURRENT").read_text().split()[0])
    return json.loads((store / f"epochs/{epoch:06}.json").read_text())


def files(store):
    """Checksums of the files of the only row, and what the manifest says of its partitions."""
    [row] = manifest(store)["rows"]
    bounds = [[part[key] for key in ("first_uid", "urls", "first_record", "first_key")] for part in row["partitions"]]
    names = [(f["layer"], f["partition"], f["checksum"]) for part in row["partitions"] for f in part["files"]]
    return bounds, names, row["counts"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", action="store_true", help="ask cells too")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    batches = [[] for _ in range(args.batches)]
    for path in args.captures:
        for line in lines_of(path):
            chance.choice(batches).append(line)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        store, inside = work / "store", []

        def ask(what, directory):
            questions = (work / "q.queries.jsonl").read_text()
            answers = run(webstrata, "query", directory, input=questions).splitlines()
            (work / "answers.jsonl").write_text("".join(digits(answers)))
            compare = [shared / "tools/oracle.py", "compare", work / "q.expected.jsonl", work / "answers.jsonl"]
            done = run(sys.executable, *compare)
            print(f"  {what}: {len(manifest(directory)['rows'])} rows: {done.strip().splitlines()[-1]}", flush=True)

        for number, batch in enumerate(batches):
            path = work / f"batch-{number}.jsonl"
            chance.shuffle(batch)
            path.write_bytes(b"".join(batch))
            if number == 0:
                run(webstrata, "build", "--out", store, path)
            else:
                run(webstrata, "update", store, path, *(["--no-merge"] if chance.random() < 0.3 else []))
            inside.append(path)
            print(f"batch {number}: {len(batch)} captures", flush=True)
            run(sys.executable, shared / "tools/oracle.py", "make", *inside, "--queries", args.questions,
                "--seed", args.seed + number, "--out", work / "q")
            ask("layers", store)
            if args.cells:
                run(webstrata, "cells", store)
                ask("cells", store)
            if chance.random() < 0.2:
                output = run(webstrata, "update", store, chance.choice(inside), "--format", "json")
                again = json.loads(output.splitlines()[0])
                assert again["counts"]["captures"] == 0 and again["captures_stored"] > 0, again
                print("  again: nothing new")
            if chance.random() < 0.2:
                run(webstrata, "merge", store, "--rows", chance.choice([2, 3]))
                ask("merged", store)
            run(webstrata, "check", store)
        run(webstrata, "merge", store, "--rows", "all")
        ask("all merged", store)
        run(webstrata, "build", "--out", work / "scratch", *inside)
        if files(store) != files(work / "scratch"):
            sys.exit("the merged store is not that of a build of everything")
        print("the merged store has the bytes of a build of everything")


main()

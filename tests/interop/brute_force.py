#!/usr/bin/env python3
"""Everything that Webstrata answers about made-up crawls, against a slow model written from the book.

  brute_force.py [--webstrata BINARY] [--seed N] [--crawls N] [--answers N] [--kinds KIND,...] [--keep]

Each crawl has captures of every status, revisits, unknown links, several spellings of a page and several captures in
one second. It becomes a store by a build, updates, merges and removals. Questions are asked of the command line, of
`webstrata query`, over HTTP and over gRPC, of the Python package if it is installed, and of the views of `webstrata
sql` in DuckDB, and whole answers are compared with plain dictionaries. A difference is printed with the question, and
with the smallest crawl that still shows it. The same seed asks the same. Exit code 1 if anything differs. Needs the
packages of requirements.txt.
"""

import argparse
import collections
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback

import grpc


from brute.ask_programs import IS_INSTALLED
from brute.crawl import fields, make
from brute.faces import Failed, World, stubs
from brute.kinds import KINDS

AN_ANSWER = "an answer"
HERE = os.path.dirname(os.path.abspath(__file__))


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        proto = os.path.join(HERE, "../../serve/proto/webstrata.proto")
        made = os.path.join(folder, "stubs")
        os.makedirs(made)
        self.modules = stubs(proto, made)
        self.asked = collections.Counter()
        self.wrong = collections.Counter()
        self.shown = collections.Counter()

    def world(self, crawl):
        return World(self.options.webstrata, self.modules, crawl, tempfile.mkdtemp(dir=self.folder))

    def crawl(self, seed, answers):
        crawl = make(seed)
        try:
            world = self.world(crawl)
        except Failed as failed:
            print(f"seed {seed}: {failed}")
            self.wrong["jobs", "command"] += 1
            return
        names = [name for name in KINDS if not self.options.kinds or name in self.options.kinds.split(",")]
        try:
            rng, asked = random.Random(seed + 2), 0
            while asked < answers:
                name = rng.choices(names, [KINDS[name].weight for name in names])[0]
                kind = KINDS[name]
                question = kind.make(rng, world)
                if question is None:
                    asked += 1 if not world.uids else 0
                    continue
                for face in kind.choose(rng):
                    asked += 1
                    self.asked[name, face] += 1
                    difference = compare(world, kind, face, question)
                    if difference:
                        self.wrong[name, face] += 1
                        self.show(seed, crawl, world, name, face, question, difference)
        finally:
            world.close()

    def show(self, seed, crawl, world, name, face, question, difference):
        self.shown[name, face] += 1
        if self.shown[name, face] > self.options.show:
            return
        print(f"\nseed {seed}: {name} by {face}: {short(question)}")
        jobs = (
            line.replace(world.folder + "/", "").replace(" -w 1 --memory 256M", "")
            for line in world.log
            if line.split()[1] not in ("info", "uids")
        )
        print("  jobs:\n    " + "\n    ".join(jobs))
        small = self.shrink(crawl, name, face, question) if self.options.shrink else None
        if small:
            crawl, difference = small
            print("  the smallest crawl:")
            for b, batch in enumerate(crawl.batches):
                for one in batch:
                    shown = {k: v for k, v in fields(one).items() if v is not None}
                    print(f"    batch {b}: {short(shown)}")
        expected, got = difference
        print(f"  expected {short(expected)}\n  got      {short(got)}", flush=True)

    def shrink(self, crawl, name, face, question):
        """The crawl with as few pages, then as few captures, as still show a difference."""
        dropped, best, deadline = set(), None, time.monotonic() + self.options.shrink
        captures = {(b, i): one for b, batch in enumerate(crawl.batches) for i, one in enumerate(batch)}
        pages = {}
        for place, one in captures.items():
            pages.setdefault(one.url, []).append(place)
        for left in (list(pages.values()), None):
            left = left or [[place] for place in captures if place not in dropped]
            size = max(1, len(left) // 2)
            while size and time.monotonic() < deadline:
                at = 0
                while at < len(left) and time.monotonic() < deadline:
                    part = {place for places in left[at : at + size] for place in places}
                    difference = self.differs(crawl.without(dropped | part), name, face, question)
                    # A smaller crawl may also be one that the question makes no sense for.
                    if difference and difference[0] != AN_ANSWER:
                        dropped |= part
                        left = left[:at] + left[at + size :]
                        best = difference
                    else:
                        at += size
                size //= 2
        return (crawl.without(dropped), best) if best else None

    def differs(self, crawl, name, face, question):
        world = None
        try:
            world = self.world(crawl)
            return compare(world, KINDS[name], face, question)
        except Failed:
            return None
        finally:
            if world:
                world.close()


def compare(world, kind, face, question):
    """(expected, got) if they differ, else None."""
    try:
        expected = kind.expect(world, question, face)
        got = kind.faces[face](world, question)
    except (AssertionError, KeyError, ValueError, TypeError, IndexError, grpc.RpcError) as error:
        return AN_ANSWER, "".join(traceback.format_exception(error)[-4:])
    return None if expected == got else trimmed(expected, got)


def short(value):
    """As text, in which the long URLs are short."""
    return re.sub(r"l{100,}", lambda match: f"l{{{len(match[0])}}}", value if isinstance(value, str) else repr(value))


def trimmed(expected, got):
    """Of two long lists or dictionaries what differs."""
    if isinstance(expected, dict) and isinstance(got, dict):
        keys = [k for k in {**expected, **got} if expected.get(k) != got.get(k)]
        pairs = {k: trimmed(expected.get(k), got.get(k)) for k in keys}
        return {k: e for k, (e, _) in pairs.items()}, {k: g for k, (_, g) in pairs.items()}
    if isinstance(expected, list) and isinstance(got, list) and len(expected) + len(got) > 12:
        less = [e for e in expected if e not in got], [g for g in got if g not in expected]
        return less if any(less) else (expected, got)
    return expected, got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="target/debug/webstrata")
    parser.add_argument("--seed", type=int, default=1, help="of the first crawl; the next one has the next seed")
    parser.add_argument("--crawls", type=int, default=10)
    parser.add_argument("--answers", type=int, default=3000, help="in all; each crawl gets its share")
    parser.add_argument("--kinds", help="only these kinds of questions, with commas between them")
    parser.add_argument("--show", type=int, default=2, help="differences of each kind and face that are printed")
    parser.add_argument("--shrink", type=float, default=30, help="seconds to make a crawl smaller; 0: do not")
    options = parser.parse_args()
    options.webstrata = os.path.abspath(options.webstrata)
    if not IS_INSTALLED:
        print("left out: the Python package webstrata is not installed")
    folder = tempfile.mkdtemp(prefix="brute-force-")
    started = time.monotonic()
    try:
        run = Run(options, folder)
        for i in range(options.crawls):
            run.crawl(options.seed + i, -(-options.answers // options.crawls))
            if sys.stderr.isatty() or i % 20 == 19:
                print(
                    f"{i + 1} crawls, {sum(run.asked.values()):,} answers, {sum(run.wrong.values())} wrong, "
                    f"{time.monotonic() - started:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    faces = sorted({face for _, face in run.asked})
    print(f"\n{'':16}" + "".join(f"{face:>14}" for face in faces))
    for name in KINDS:
        if any(run.asked[name, face] for face in faces):
            print(f"{name:16}" + "".join(f"{run.asked[name, face] or '':>14}" for face in faces))
    print(f"{'all':16}" + "".join(f"{sum(n for (_, f), n in run.asked.items() if f == face):>14,}" for face in faces))
    for (name, face), count in sorted(run.wrong.items()):
        print(f"wrong: {name} by {face}: {count}")
    print(
        f"{options.crawls} crawls, {sum(run.asked.values()):,} answers, {sum(run.wrong.values())} wrong, "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

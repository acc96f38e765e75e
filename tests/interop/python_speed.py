#!/usr/bin/env python3
"""How fast the Python package is, and how much memory it takes.

  python_speed.py --store STORE [--example BINARY]

Needs the package with SciPy and pyarrow, and `cargo build --release -p webstrata-serve --example batch`. For one
server of STORE: the links of 1,000 URLs in one call, beside the clerk in Rust, the least of 50 rounds each. For the
store: a question by itself, and the whole graph as a matrix of SciPy, with the memory that it takes, which is compared
with the size of its arrays.
"""
import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import webstrata

QUESTIONS, ROUNDS = 1000, 50


def least(call):
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def held():
    """Megabytes of memory now, and at most so far."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True)
    parser.add_argument("--example", default="target/release/examples/batch")
    args = parser.parse_args()
    program = Path(sys.executable).parent / "webstrata"
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "serve", args.store, "--listen", "127.0.0.1:7411", "--data", directory]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    graph = webstrata.connect("127.0.0.1:7411")
                    break
                except webstrata.Error:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.2)
            uids = np.arange(QUESTIONS, dtype=np.uint64) * len(graph) // QUESTIONS
            for turn in range(3):
                rust, links = subprocess.run([args.example, "127.0.0.1:7411"], check=True, capture_output=True,
                                             text=True).stdout.split()
                found = len(graph.links(uids, names=False))
                assert found == int(links), (found, links)
                python = least(lambda: graph.links(uids, names=False))
                print(f"{QUESTIONS} questions, {links} links: {python:.0f} us in Python, {rust} in Rust: "
                      f"{python / float(rust):.2f}")
        finally:
            server.terminate()
            server.wait()
    graph = webstrata.open(args.store)
    one = uids[QUESTIONS // 2:QUESTIONS // 2 + 1]
    print(f"a question by itself: {least(lambda: graph.links(one, names=False)):.1f} us; {QUESTIONS} in one call: "
          f"{least(lambda: graph.links(uids, names=False)) / QUESTIONS:.2f} us each")
    before = held()
    begin = time.perf_counter()
    matrix = graph.csr()
    seconds, after = time.perf_counter() - begin, held()
    arrays = (matrix.indices.nbytes + matrix.indptr.nbytes + matrix.data.nbytes) / 1e6
    print(f"matrix of {matrix.nnz:,} links in {seconds:.2f} s: arrays {arrays:.0f} MB, memory "
          f"{after[0] - before[0]:.0f} MB more than before, {after[1] - before[0]:.0f} at most")
    starts, links = graph._graph.csr()
    import scipy.sparse
    made = scipy.sparse.csr_array((np.ones(len(links), np.int8), links, starts), shape=matrix.shape, copy=False)
    assert made.indices.ctypes.data == links.ctypes.data and made.indptr.ctypes.data == starts.ctypes.data
    table = pyarrow.table(graph.links(np.arange(min(len(graph), 100_000), dtype=np.uint64), names=False))
    print(f"SciPy has the arrays of Rust; {table.num_rows:,} rows for Arrow")


if __name__ == "__main__":
    main()

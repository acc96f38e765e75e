#!/usr/bin/env python3
"""PageRank (20 iterations), strongly and weakly connected components beside webgraph-algo and igraph, in one run.

  analysis_speed.py STORE [--webstrata BINARY] [--peer BINARY] [--on-cells BINARY] [--rounds N] [--workers N]

The graph has the links of the latest captures. The script exports the graph as BV files for webgraph-algo
(pipeline/peers), and as pairs of numbers for igraph. Each tool reads its format, then computes; Webstrata reads the
layers of the store each time. The example components_of_cells also finds strongly connected components in the cells of
the store, which must exist. The numbers of components must agree. Prints medians of wall seconds, separately for
reading and computing, and nanoseconds a link. Needs igraph, numpy, pyarrow.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

PEER_IGRAPH = """
import json, sys, time
import igraph, numpy as np
def timed(name, run):
    began = time.perf_counter()
    done = run()
    print(json.dumps({"algorithm": name, "seconds": time.perf_counter() - began}))
    return done
count, path = int(sys.argv[1]), sys.argv[2]
graph = timed("read", lambda: igraph.Graph(n=count, edges=np.load(path), directed=True))
timed("scc", lambda: graph.connected_components(mode="strong"))
timed("wcc", lambda: graph.connected_components(mode="weak"))
timed("pagerank", lambda: graph.pagerank(implementation="prpack"))
"""


def lines(command, **more):
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, **more)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--webstrata", default="target/release/webstrata")
    parser.add_argument("--peer", default="target/release/webstrata-analysis-peers")
    parser.add_argument("--on-cells", default="target/release/examples/components_of_cells")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    import numpy as np
    import pyarrow.parquet as pq

    seconds = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        at = "9999"
        export = [args.webstrata, "export", args.store, "--what", "edges", "--at", at]
        for form, name in (("webgraph", "graph"), ("parquet", "edges.parquet")):
            command = [*export, "--format", form, "--out", place / name]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        edges = pq.read_table(place / "edges.parquet", columns=["src", "dst"])
        pairs = np.column_stack([edges.column(name).to_numpy() for name in ("src", "dst")]).astype(np.int64)
        np.save(place / "edges.npy", pairs)
        links = len(pairs)
        urls = lines([args.webstrata, "analyze", args.store, "degrees", "--format", "json"])[0]["urls"]
        del edges, pairs
        facts = lines([args.webstrata, "analyze", args.store, "scc", "--format", "json"])[0]["dates"][0]["facts"]
        components = facts["components"]
        for _ in range(args.rounds):
            for name, options in (("scc", []), ("wcc", []), ("pagerank", ["--iterations", 20, "--tolerance", 0])):
                for workers in {1, args.workers}:
                    report = place / "report.json"
                    command = [args.webstrata, "analyze", args.store, name, "-w", workers, "--memory", "8G",
                               "--report", report, *options]
                    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
                    stages = {stage["stage"]: stage for stage in json.loads(report.read_text())["stages"]}
                    key = (f"webstrata -w {workers}", name)
                    seconds[*key, "read"].append(stages["read"]["seconds"])
                    seconds[*key, "compute"].append(stages[name]["seconds"])
            [found] = lines([args.on_cells, args.store])
            seconds["webstrata on cells", "scc", "read"].append(0)
            seconds["webstrata on cells", "scc", "compute"].append(found["seconds"])
            if (found["links"], found["components"]) != (links, components):
                sys.exit(f"on cells {found}, on layers {links} links, {components} components")
            for threads in {1, args.workers}:
                found = lines([args.peer, place / "graph"], env={**os.environ, "RAYON_NUM_THREADS": str(threads)})
                extra = {line["algorithm"]: line for line in found}
                for name in ("scc", "wcc", "pagerank"):
                    key = (f"webgraph-algo, {threads} threads", name)
                    read = extra["load"]["seconds"] + (extra["symmetrize"]["seconds"] if name == "wcc" else 0)
                    seconds[*key, "read"].append(read)
                    seconds[*key, "compute"].append(extra[name]["seconds"])
            found = lines([sys.executable, "-c", PEER_IGRAPH, urls, place / "edges.npy"])
            extra = {line["algorithm"]: line for line in found}
            for name in ("scc", "wcc", "pagerank"):
                seconds["igraph", name, "read"].append(extra["read"]["seconds"])
                seconds["igraph", name, "compute"].append(extra[name]["seconds"])
    print(f"{urls:,} URLs, {links:,} links; medians of {args.rounds}")
    print(f"{'':28} {'read s':>8} {'compute s':>9} {'ns a link':>9} {'of both':>8} {'ratio':>6}")
    for name in ("scc", "wcc", "pagerank"):
        tools = sorted(
            {tool for tool, other, _ in seconds if other == name},
            key=lambda tool: (not tool.startswith("webstrata -"), not tool.startswith("webstrata"), tool),
        )
        own = None
        for tool in tools:
            read, compute = (statistics.median(seconds[tool, name, part]) for part in ("read", "compute"))
            own = own if own is not None else compute
            print(f"{name:9}{tool:19} {read:8.3f} {compute:9.3f} {compute / links * 1e9:9.1f} "
                  f"{(read + compute) / links * 1e9:8.1f} {compute / own:6.2f}")


if __name__ == "__main__":
    main()

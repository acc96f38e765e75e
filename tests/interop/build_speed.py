#!/usr/bin/env python3
"""`webstrata build` beside another program that makes the same layers, in one run.

  build_speed.py --webstrata BINARY --peer "COMMAND {input} {out}" [--rounds 5] [--options "-w 2"] CAPTURES.parquet

Runs both programs in turn, each into an empty directory that is removed afterwards. Prints CPU seconds, wall seconds
and peak memory of each round, medians, and the ratios of the rounds (median, lowest, highest). The system measures
whole processes. The stages of the last build follow.
"""
import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time


def run(words, work):
    """CPU seconds, wall seconds, MiB of one run."""
    start = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    if status != 0:
        raise SystemExit(f"{shlex.join(words)}: {said}")
    shutil.rmtree(work, ignore_errors=True)
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures")
    parser.add_argument("--webstrata", required=True)
    parser.add_argument("--peer", required=True, help="a command line with {input} and {out}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--options", default="-w 2", help="options of webstrata build")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="webstrata-speed-") as work:
        store, out, report = (os.path.join(work, name) for name in ("store", "out", "report.json"))
        ours = [arguments.webstrata, "build", "--out", store, "--spill", work, "--report", report,
                *shlex.split(arguments.options), arguments.captures]
        peer = [word.format(input=arguments.captures, out=out) for word in shlex.split(arguments.peer)]
        rounds = []
        for number in range(arguments.rounds):
            rounds.append((run(ours, store), run(peer, out)))
            both = ["  ".join(f"{figure:9.2f}" for figure in figures) for figures in rounds[-1]]
            print(f"round {number + 1}: CPU s, wall s, MiB: webstrata {both[0]} | peer {both[1]}", flush=True)
        for place, name in enumerate(("CPU s", "wall s", "MiB")):
            mine, theirs = ([figures[who][place] for figures in rounds] for who in (0, 1))
            ratios = sorted(a / b for a, b in zip(mine, theirs))
            print(f"{name:7} {statistics.median(mine):9.2f} {statistics.median(theirs):9.2f}  ratio "
                  f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f})")
        with open(report, encoding="utf-8") as file:
            for stage in json.load(file)["stages"]:
                print(f"{stage['stage']:9} CPU {stage['cpu_seconds']:7.2f} s  wall {stage['seconds']:7.2f} s  "
                      f"peak {stage['peak_memory_bytes'] >> 20:6} MiB  spilled {stage['spilled_bytes'] >> 20:6} MiB")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What a build from WARC.gz costs beside libdeflate, which inflates the same members and does nothing else.

  inflate_speed.py [--webstrata BINARY] [--rounds N] WARC.GZ...

Prints CPU seconds of one thread for each file, the least of N rounds (5): libdeflate on whole members that are in
memory, with their checksums; and `webstrata build -w 1`, with start-up, all stages and the files of the store. Needs
the packages of requirements-speed.txt.
"""
import argparse
import os
import resource
import subprocess
import tempfile
import time
import zlib

import deflate

PIECE = 1 << 14


def members(data):
    """The gzip members of a file, each with its inflated length."""
    start = 0
    while start < len(data):
        inflater, at, length = zlib.decompressobj(wbits=31), start, 0
        while not inflater.eof:
            # What is not used is copied, so a member is read in pieces.
            length += len(inflater.decompress(data[at : at + PIECE]))
            at += PIECE
        end = min(at, len(data)) - len(inflater.unused_data)
        yield data[start:end], length
        start = end


def inflate(parts):
    start = time.process_time()
    for part, length in parts:
        deflate.gzip_decompress(part, length)
    return time.process_time() - start


def build(webstrata, path):
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    with tempfile.TemporaryDirectory() as work:
        before = used()
        command = [webstrata, "build", "--out", os.path.join(work, "store"), "-w", "1", path]
        subprocess.run(command, check=True, capture_output=True)
        return used() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    print("| file | libdeflate, CPU s | build, CPU s | ratio |\n|---|---:|---:|---:|")
    for path in args.files:
        with open(path, "rb") as file:
            parts = list(members(file.read()))
        rounds = [(inflate(parts), build(args.webstrata, path)) for _ in range(args.rounds)]
        inflated, built = (min(column) for column in zip(*rounds))
        print(f"| {os.path.basename(path)} | {inflated:.3f} | {built:.3f} | {built / inflated:.1f} |")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""URLs of stores in marisa-trie, beside those in cells: bytes a URL, and microseconds a look-up.

  tests/interop/marisa_urls.py --webstrata BINARY STORE...

marisa-trie numbers texts in an order of its own. Here it has 8 tries, its smallest form. Cells number URLs in the order
of their keys. Each STORE gets cells. Times of marisa-trie are of calls from Python, each look-up once in random order;
an empty call is subtracted. `webstrata bench cells` prints those of cells. Needs pyarrow and marisa-trie.
"""
import argparse
import pathlib
import random
import subprocess
import time

import marisa_trie
import pyarrow.parquet


def urls_of(store):
    files = sorted(pathlib.Path(store).glob("rows/*/url/*.parquet"))
    return [url for file in files for url in pyarrow.parquet.read_table(file, columns=["url"])["url"].to_pylist()]


def microseconds(call, arguments):
    start = time.process_time()
    for argument in arguments:
        call(argument)
    return 1e6 * (time.process_time() - start) / len(arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webstrata", default="webstrata")
    parser.add_argument("stores", nargs="+", metavar="STORE")
    args = parser.parse_args()
    chance = random.Random(1)
    print("| store | URLs | marisa-trie, B | to number, us | to URL, us | cells, B |\n|---|---|---|---|---|---|")
    for store in args.stores:
        urls = urls_of(store)
        trie = marisa_trie.Trie(urls, num_tries=8)
        numbers = [trie[url] for url in urls]
        assert sorted(numbers) == list(range(len(urls))) and all(map(str.__eq__, map(trie.restore_key, numbers), urls))
        chance.shuffle(numbers)
        chance.shuffle(urls)
        empty = microseconds(id, urls)
        to_number = microseconds(trie.__getitem__, urls) - empty
        to_url = microseconds(trie.restore_key, numbers) - empty
        printed = subprocess.run([args.webstrata, "cells", store], capture_output=True, text=True, check=True).stdout
        _, size, *_ = next(line for line in printed.splitlines() if line.split()[:1] == ["urls"]).split()
        cells = int(size) / len(urls)
        print(f"| {pathlib.Path(store).name} | {len(urls):,} | {len(trie.tobytes()) / len(urls):.2f} | {to_number:.2f} "
              f"| {to_url:.2f} | {cells:.2f} |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Forward cells beside zstd -19 of the plain layers, bits a link occurrence, a line for each input.

  plain_layers.py --webstrata BINARY FILE...

The script builds a store with cells from each FILE. The plain layers are arrays, each compressed as one piece: lengths
of lists of links, and links; lengths of lists of captures, and captures in seconds; and the presence bits, one for each
link and capture. Links and captures are stored directly or as differences, and the bits of a page by link or by
capture, whichever compresses better. The forward part of a cell holds the same data, with the structures for random
access.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy
import pyarrow
import pyarrow.parquet


def changes_of(column, captures):
    """The places of changes of one page: (link, capture)."""
    place, value, shift = -1, 0, 0
    span = captures - 1
    for byte in column or b"":
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            place += value + 1
            value, shift = 0, 0
            link, rest = divmod(place, 2 * span)
            half, capture = divmod(rest, span)
            yield link, half, capture + 1


def bits_of(links, captures, column):
    """Presence as bits: link by link, a bit a capture; and capture by capture."""
    toggles = numpy.zeros((links, captures), dtype=numpy.uint8)
    for link, half, capture in changes_of(column, captures):
        toggles[link, capture] ^= 1
        toggles[link, 0] = half
    bits = (1 ^ numpy.cumsum(toggles, axis=1) & 1).astype(numpy.uint8)
    return bits.ravel(), bits.T.ravel()


def plain(store):
    """Compressed bytes of the plain layers of a store."""
    row = os.path.join(store, "rows", "000001")

    def column(layer, name):
        folder = os.path.join(row, layer)
        parts = [os.path.join(folder, part) for part in sorted(os.listdir(folder))]
        tables = [pyarrow.parquet.read_table(part, columns=[name]) for part in parts]
        return pyarrow.concat_tables(tables)[name].combine_chunks()

    links, times, changes = column("ol", "links"), column("ts", "timestamps"), column("bv", "changes")
    seconds = times.flatten().cast(pyarrow.int64()).to_numpy() // 1000
    counts = [numpy.diff(lists.offsets.to_numpy()) for lists in (links, times)]
    bits = zip(*(bits_of(*page) for page in zip(counts[0].tolist(), counts[1].tolist(), changes.to_pylist())))
    codec = pyarrow.Codec("zstd", compression_level=19)

    def least(*forms):
        return min(len(codec.compress(form.tobytes())) for form in forms)

    def numbers(values):
        differences = numpy.diff(values, prepend=values[:1])
        return least(values.astype(numpy.uint32), differences.astype(numpy.int32))

    lists = [numbers(values) for values in (links.flatten().to_numpy().astype(numpy.int64), seconds)]
    lengths = [least(count.astype(numpy.uint32)) for count in counts]
    return sum(lists + lengths) + least(*(numpy.packbits(numpy.concatenate(form)) for form in bits))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--webstrata", required=True)
    options = parser.parse_args()
    print("| input | occurrences | zstd -19 of plain layers | forward cell | ratio |\n|---|---|---|---|---|")
    above = []
    for file in options.files:
        with tempfile.TemporaryDirectory() as work:
            store = os.path.join(work, "store")
            subprocess.run([options.webstrata, "build", "--out", store, file], check=True, capture_output=True)
            said = subprocess.run(
                [options.webstrata, "cells", store, "--format", "json"], check=True, capture_output=True, text=True
            )
            cells = json.loads(said.stdout)["forward"]
            zstd, cell = [8 * size / cells["occurrences"] for size in (plain(store), cells["bytes"])]
        print(f"| {os.path.basename(file)} | {cells['occurrences']} | {zstd:.3f} | {cell:.3f} | {cell / zstd:.2f} |")
        above += [file] if cell >= zstd else []
    if above:
        raise SystemExit(f"the cell is not smaller: {', '.join(above)}")


if __name__ == "__main__":
    main()

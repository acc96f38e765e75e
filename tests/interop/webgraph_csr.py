#!/usr/bin/env python3
"""The lists of a WebGraph file as plain arrays.

  webgraph_csr.py BASENAME OUT.csr

Reads BASENAME.graph and BASENAME.properties (BVGraph with the default codes). Writes nodes u64, links u64, offsets
u64[nodes + 1], and targets u32[links], little-endian. Needs NumPy.
"""
import sys

import numpy as np


class Bits:
    """Codes of a bit stream, the highest bit of a byte first."""

    def __init__(self, data):
        self.bits = "".join(f"{byte:08b}" for byte in data)
        self.at = 0

    def unary(self):
        one = self.bits.index("1", self.at)
        zeros = one - self.at
        self.at = one + 1
        return zeros

    def plain(self, width):
        value = int(self.bits[self.at : self.at + width] or "0", 2)
        self.at += width
        return value

    def gamma(self):
        width = self.unary()
        return (1 << width) - 1 + self.plain(width)

    def zeta(self, shrink):
        step = self.unary() * shrink
        value = self.plain(step + shrink - 1)
        if value < 1 << step:
            return value + (1 << step) - 1
        return 2 * value + self.plain(1) - 1


def signed(natural):
    return natural >> 1 if natural % 2 == 0 else -((natural + 1) >> 1)


def copied(bits, reference):
    """The links of the reference that the page has too: blocks of links, every other one copied."""
    links, at, is_copied = [], 0, True
    for block in range(bits.gamma()):
        length = bits.gamma() + (block > 0)
        if is_copied:
            links += reference[at : at + length]
        at, is_copied = at + length, not is_copied
    return links + reference[at:] if is_copied else links


def links_of(bits, node, before, properties):
    degree = bits.gamma()
    if degree == 0:
        return []
    distance = bits.unary() if properties["windowsize"] else 0
    links = copied(bits, before[node - distance]) if distance else []
    shortest = properties["minintervallength"]
    if len(links) < degree and shortest:
        end = None
        for _ in range(bits.gamma()):
            start = node + signed(bits.gamma()) if end is None else end + 1 + bits.gamma()
            end = start + bits.gamma() + shortest
            links += range(start, end)
    last = None
    while len(links) < degree:
        code = bits.zeta(properties["zetak"])
        last = node + signed(code) if last is None else last + 1 + code
        links.append(last)
    return sorted(links)


def main(basename, out):
    with open(basename + ".properties") as file:
        lines = dict(line.strip().split("=", 1) for line in file if "=" in line)
    properties = {name: int(value) for name, value in lines.items() if value.isdecimal()}
    with open(basename + ".graph", "rb") as file:
        bits = Bits(file.read())
    lists = []
    for node in range(properties["nodes"]):
        lists.append(links_of(bits, node, lists, properties))
    offsets = np.cumsum([0] + [len(links) for links in lists], dtype="<u8")
    assert offsets[-1] == properties["arcs"], "the links of the properties"
    with open(out, "wb") as file:
        np.array([len(lists), offsets[-1]], dtype="<u8").tofile(file)
        offsets.tofile(file)
        np.concatenate([np.array(links, dtype="<u4") for links in lists]).tofile(file)


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""Speed of reading WARC files: Webstrata beside warcio and FastWARC with HTML parsers, doing the same extraction.

  warc_speed.py [--rounds N] [--times N] [--bench BINARY] WARC...

Every tool takes the records of a file (plain or gzip), keeps 200 responses of an HTML type, and takes `href` of a and
area, `src` of frame and iframe, and `href` of the first base; revisit records count as captures without links. Two
amounts of work:

  found      links as the page spells them
  resolved   Python: urljoin with the base, fragment cut off, http and https kept.
             Webstrata: WHATWG URL parsing and serialisation, fragment cut off, http and https kept, xxh3-128.
             Both keep what they resolved before: Webstrata by reference and directory, Python only inside a page.

Python's parsers get the bytes of the body and take them for UTF-8; Webstrata finds the character encoding first.

Each figure is CPU time of one thread, without start-up: `process_time` around the loop, or what the benchmark `reading`
says of itself (BINARY, else `cargo bench -p webstrata-datasets --bench reading`), which reads each file N times over
because it is quick. MB are 10^6 bytes of HTML bodies as warcio hands them out, the same number for every tool. N rounds
(5), in each every tool once; medians, and ratios round by round. Needs the packages of requirements-speed.txt.
"""
import argparse
import json
import os
import statistics
import subprocess
import time
from urllib.parse import urldefrag, urljoin

import fastwarc.warc
from resiliparse.parse.html import ELEMENT, HTMLTree
from selectolax.lexbor import LexborHTMLParser
from warcio.archiveiterator import ArchiveIterator

HTML = ("text/html", "application/xhtml+xml")
LINKS = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}


def is_html(content_type):
    return (content_type or "").split(";")[0].strip().lower() in HTML


def by_warcio(stream):
    """(URL, body) of each page; the body of a revisit is None."""
    for record in ArchiveIterator(stream):
        http = record.http_headers
        if record.rec_type == "revisit":
            yield record.rec_headers.get_header("WARC-Target-URI"), None
        elif record.rec_type == "response" and http is not None and http.get_statuscode() == "200":
            if is_html(http.get_header("Content-Type")):
                yield record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


def by_fastwarc(stream):
    kinds = fastwarc.warc.WarcRecordType.response | fastwarc.warc.WarcRecordType.revisit
    for record in fastwarc.warc.ArchiveIterator(stream, record_types=kinds, parse_http=True):
        if record.record_type == fastwarc.warc.WarcRecordType.revisit:
            yield record.headers["WARC-Target-URI"], None
        elif record.http_headers is not None and record.http_headers.status_code == 200:
            if is_html(record.http_headers.get("Content-Type")):
                yield record.headers["WARC-Target-URI"], record.reader.read()


def lexbor(body):
    """The base and the links of a page."""
    tree = LexborHTMLParser(body)
    found = []
    for node in tree.css("a[href], area[href], frame[src], iframe[src]"):
        attributes = node.attributes
        found.append((attributes["href"] if "href" in attributes else attributes["src"]) or "")
    base = tree.css_first("base[href]")
    return base and base.attributes["href"], found


def resiliparse(body):
    # By a walk over the tree: its collections go through the elements before for each one, a hundred times as long.
    base, found = None, []
    for node in HTMLTree.parse_from_bytes(body, "utf-8").document:
        if node.type != ELEMENT:
            continue
        name = LINKS.get(node.tag)
        if name and node.hasattr(name):
            found.append(node.getattr(name))
        elif base is None and node.tag == "base" and node.hasattr("href"):
            base = node.getattr("href")
    return base, found


def resolved(url, base, found):
    base = urljoin(url, base.strip()) if base else url
    links = {}
    for link in found:
        if link in links:
            continue
        try:
            absolute = urldefrag(urljoin(base, link.strip())).url
        except ValueError:
            absolute = ""
        links[link] = absolute if absolute.startswith(("http://", "https://")) else None
    return [links[link] for link in found if links[link]]


def python(records, parse, path, resolve):
    """CPU seconds, and the number of captures and links."""
    captures = links = 0
    start = time.process_time()
    with open(path, "rb") as stream:
        for url, body in records(stream):
            captures += 1
            if body is None:
                continue
            base, found = parse(body)
            links += len(resolved(url, base, found) if resolve else found)
    return time.process_time() - start, captures, links


TOOLS = {
    "warcio + selectolax": (by_warcio, lexbor),
    "FastWARC + selectolax": (by_fastwarc, lexbor),
    "FastWARC + Resiliparse": (by_fastwarc, resiliparse),
}
STAGES = {"captures": "found", "fingerprints": "resolved"}


def webstrata(command, path, times):
    output = subprocess.run([*command, "--times", str(times), path], check=True, capture_output=True, text=True).stdout
    figures = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {
        STAGES[figure["stage"]]: (figure["cpu_seconds"], figure["captures"], figure["links"])
        for figure in figures if figure["stage"] in STAGES
    }


def measure(path, rounds, times, command, tools):
    with open(path, "rb") as stream:
        html_bytes = sum(len(body) for _, body in by_warcio(stream) if body is not None)
    print(f"\n{os.path.basename(path)}: {html_bytes / 1e6:.1f} MB of HTML")
    print("| work | tool | captures | links | CPU s | MB a CPU s | Webstrata is quicker by (lowest, highest) |")
    print("|---|---|---|---|---|---|---|")
    runs = {}
    for _ in range(rounds):
        for work, figures in webstrata(command, path, times).items():
            runs.setdefault((work, "Webstrata"), []).append(figures)
        for name, (records, parse) in tools.items():
            for work in STAGES.values():
                runs.setdefault((work, name), []).append(python(records, parse, path, work == "resolved"))
    for work in STAGES.values():
        ours = [seconds for seconds, _, _ in runs[work, "Webstrata"]]
        for name in ["Webstrata", *tools]:
            theirs = [seconds for seconds, _, _ in runs[work, name]]
            seconds, (_, captures, links) = statistics.median(theirs), runs[work, name][0]
            ratios = sorted(their / our for their, our in zip(theirs, ours))
            ratio = f"{statistics.median(ratios):.1f} ({ratios[0]:.1f}, {ratios[-1]:.1f})" if name in tools else ""
            speed = html_bytes / 1e6 / seconds
            print(f"| {work} | {name} | {captures:,} | {links:,} | {seconds:.3f} | {speed:.0f} | {ratio} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--times", type=int, default=5, help="passes of Webstrata over a file in a round")
    parser.add_argument("--bench", help="binary of the benchmark")
    parser.add_argument("--without", action="append", default=[], choices=TOOLS, help="leave a tool out")
    parser.add_argument("files", nargs="+", metavar="WARC")
    options = parser.parse_args()
    cargo = ["cargo", "bench", "--quiet", "-p", "webstrata-datasets", "--bench", "reading", "--"]
    command = [options.bench] if options.bench else cargo
    tools = {name: tool for name, tool in TOOLS.items() if name not in options.without}
    for path in options.files:
        measure(os.path.abspath(path), options.rounds, options.times, command, tools)


if __name__ == "__main__":
    main()

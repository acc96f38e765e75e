#!/usr/bin/env python3
"""Every analysis of a store against independent implementations: networkx, scipy, igraph, and plain loops.

  analyses.py [--webstrata BINARY] [--on-cells BINARY] [--dates N] CAPTURES.jsonl[.gz]...
              [--graph BASENAME] [--captures-of-graph BINARY]

Each file of captures is a separate site, with {"url", "ts", "links"} in each line and WHATWG-serialised URLs. Plain
loops make the graph of the site as of several dates. The script compares the values of each algorithm, with one worker
and with two. The example `captures_of_graph` first writes a graph in WebGraph's format as captures. The example
`components_of_cells` also finds components by a walk in cells. Needs numpy, scipy, networkx, igraph, pyarrow,
publicsuffixlist, xxhash.
"""
import argparse
import bisect
import gzip
import json
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit

import igraph
import networkx
import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp
import xxhash
from publicsuffixlist import PublicSuffixList
from scipy.sparse.csgraph import connected_components

TOLERANCE = 1e-6
SUFFIXES = PublicSuffixList()


def bare(url):
    return url.split("#", 1)[0]


class Site:
    """Captures of pages by plain loops; `at` gives the links of each page's latest capture not after a time."""

    def __init__(self, path):
        pages = defaultdict(dict)
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                pages[bare(row["url"])].setdefault(row["ts"], set()).update(map(bare, row["links"]))
        self.pages = {url: sorted(captures.items()) for url, captures in pages.items()}
        self.times = sorted({ts for captures in self.pages.values() for ts, _ in captures})

    def at(self, ts):
        for url, captures in self.pages.items():
            index = bisect.bisect_right(captures, ts, key=lambda capture: capture[0])
            if index:
                yield url, captures[index - 1][1]


class Store:
    """A store built by Webstrata, and the values of its analyses."""

    def __init__(self, webstrata, captures, directory):
        self.webstrata, self.path, self.table = webstrata, directory / "store", directory / "values.parquet"
        run(webstrata, "build", "--out", self.path, captures)
        run(webstrata, "cells", self.path)

    def on_cells(self, example, options):
        """Components by a walk in cells; `options` are those of a date."""
        return json.loads(run(example, self.path, *options[1:]))

    def analyze(self, name, *options, workers=1):
        out = run(self.webstrata, "analyze", self.path, name, "--out", self.table, "-w", workers, "--memory", "8G",
                  "--format", "json", "--nodes", "all", *options)
        return pq.read_table(self.table), json.loads(out)


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout


def seconds(ts):
    return int(datetime.strptime(ts, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc).timestamp())


class Check:
    """Counts comparisons; the first difference ends the run."""

    def __init__(self, on_cells):
        self.on_cells, self.done, self.worst = on_cells, 0, 0.0

    def close(self, what, got, want, relative=False):
        got, want = np.asarray(got, dtype=float), np.asarray(want, dtype=float)
        assert got.shape == want.shape, f"{what}: {got.shape} values, expected {want.shape}"
        scale = np.maximum(np.abs(want), 1e-300) if relative else max(np.abs(want).max(initial=0), 1e-300)
        error = np.abs(got - want) / scale
        error = np.where(got == want, 0, error)
        at = int(error.argmax()) if error.size else 0
        worst = float(error.max(initial=0))
        assert worst <= TOLERANCE, f"{what}: value {at} is {got[at]}, expected {want[at]}"
        self.done, self.worst = self.done + 1, max(self.worst, worst)

    def same(self, what, got, want):
        if isinstance(got, np.ndarray):
            wrong = np.flatnonzero(got != want)
            assert not wrong.size, f"{what}: value {wrong[0]} is {got[wrong[0]]}, expected {want[wrong[0]]}"
        assert isinstance(got, np.ndarray) or got == want, f"{what}: {got}, expected {want}"
        self.done += 1


def least(labels):
    """Names components by their least member."""
    first = np.full(labels.max() + 1, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    return first[labels]


def column(table, name):
    return table.column(name).to_numpy()


# ---- the graph at a date ----

def pagerank(links, damping=0.85):
    """Power iteration with scipy; dangling nodes go everywhere."""
    count = links.shape[0]
    degrees = np.asarray(links.sum(axis=1)).ravel()
    step = sp.diags(np.divide(1, degrees, where=degrees > 0, out=np.zeros(count))) @ links
    step, ranks = step.T.tocsr(), np.full(count, 1 / count)
    for _ in range(2000):
        new = damping * (step @ ranks + ranks[degrees == 0].sum() / count) + (1 - damping) / count
        done, ranks = np.abs(new - ranks).sum() < 1e-13, new
        if done:
            break
    return ranks


def hits(links):
    """The dominant singular vectors, from a dense or a sparse solver."""
    if links.nnz == 0:
        return np.zeros(links.shape[0]), np.zeros(links.shape[0])
    hubs = np.ones(links.shape[0])
    for _ in range(100_000):
        new = links @ (links.T @ hubs)
        new /= new.sum()
        done, hubs = np.abs(new - hubs).sum() < 1e-14, new
        if done:
            break
    authorities = links.T @ hubs
    return authorities / authorities.sum(), hubs


def check_salsa(check, what, links, table):
    """Each side is stationary under the walk there and back, with the mass that its component has of nodes."""
    count = links.shape[0]
    out, into = (np.asarray(links.sum(axis=axis)).ravel() for axis in (1, 0))
    by_row = sp.diags(np.divide(1, out, where=out > 0, out=np.zeros(count))) @ links
    by_column = links @ sp.diags(np.divide(1, into, where=into > 0, out=np.zeros(count)))
    _, labels = connected_components(sp.bmat([[None, links], [links.T, None]]), directed=False)
    for name, walk, degree, labels in (
        ("authority", lambda v: by_row.T @ (by_column @ v), into, labels[count:]),
        ("hub", lambda v: by_column @ (by_row.T @ v), out, labels[:count]),
    ):
        values = column(table, name)
        check.close(f"{what} salsa {name} is stationary", walk(values), values)
        nodes = np.bincount(labels, weights=degree > 0)
        mass = np.bincount(labels, weights=values)
        check.close(f"{what} salsa {name} by component", mass, nodes / max((degree > 0).sum(), 1))
        check.same(f"{what} salsa {name} of what has no links", float(values[degree == 0].sum()), 0.0)


def estimates(registers):
    """HyperLogLog (Flajolet et al. 2007) of rows of registers, with linear counting where it is small."""
    m = registers.shape[1]
    alpha = {16: 0.673, 32: 0.697, 64: 0.709}.get(m, 0.7213 / (1 + 1.079 / m))
    raw = alpha * m * m / np.exp2(-registers.astype(float)).sum(axis=1)
    empty = (registers == 0).sum(axis=1)
    small = (raw <= 2.5 * m) & (empty > 0)
    return np.where(small, m * np.log(m / np.maximum(empty, 1)), raw)


def hyperball(sources, targets, urls, bits):
    """Sums of 1 / distance, and the greatest distance; a URL is hashed as its text."""
    count, hashes = len(urls), np.array([xxhash.xxh3_64_intdigest(url.encode()) for url in urls], dtype=np.uint64)
    registers = np.zeros((count, 1 << bits), dtype=np.uint8)
    rest = hashes << np.uint64(bits)
    zeros = np.array([64 - int(r).bit_length() for r in rest])
    registers[np.arange(count), (hashes >> np.uint64(64 - bits)).astype(int)] = np.minimum(zeros, 64 - bits) + 1
    sums, before, distance = np.zeros(count), estimates(registers), 0
    order = np.argsort(targets, kind="stable")
    sources, targets = sources[order], targets[order]
    starts = np.flatnonzero(np.diff(targets, prepend=-1))
    while True:
        distance += 1
        new = registers.copy()
        for first in range(0, len(starts), 4096):  # pieces, so that the gathered counters stay small
            cut = starts[first:first + 4097]
            end = cut[4096] if len(cut) > 4096 else len(targets)
            own = cut[:4096]
            best = np.maximum.reduceat(registers[sources[own[0]:end]], own - own[0], axis=0)
            where = targets[own]
            new[where] = np.maximum(new[where], best)
        if (new == registers).all():
            return sums, distance - 1
        now = estimates(new)
        sums += np.where((new != registers).any(axis=1), (now - before) / distance, 0)
        registers, before = new, now


def check_graph(check, what, store, options, uids, edges, heavy):
    """All analyses of one graph; `edges` are arrays of sources and targets by UID."""
    count, (sources, targets) = len(uids), edges
    links = sp.csr_matrix((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    graph = igraph.Graph(n=count, edges=np.column_stack(edges), directed=True)
    for workers in (1, 2):
        def table(name, *more):
            values, report = store.analyze(name, *options, *more, workers=workers)
            check.same(f"{what} {name} rows", values.num_rows, count)
            check.same(f"{what} {name} UIDs", column(values, "uid"), np.arange(count))
            return values, report

        values, _ = table("degrees")
        check.same(f"{what} degrees", column(values, "in_degree"), np.array(graph.indegree()))
        check.same(f"{what} degrees", column(values, "out_degree"), np.array(graph.outdegree()))
        values, _ = table("pagerank")
        check.close(f"{what} pagerank beside igraph", column(values, "pagerank"), graph.pagerank())
        check.close(f"{what} pagerank by scipy", column(values, "pagerank"), pagerank(links))
        values, _ = table("hits", "--tolerance", "1e-13", "--iterations", "100000")
        authorities, hubs = hits(links)
        check.close(f"{what} authorities", column(values, "authority"), authorities)
        check.close(f"{what} hubs", column(values, "hub"), hubs)
        values, _ = table("salsa")
        check_salsa(check, what, links, values)
        for name, kind in (("scc", "strong"), ("wcc", "weak")):
            values, report = table(name)
            found, labels = connected_components(links, connection=kind)
            check.same(f"{what} {name}", column(values, "component"), least(labels))
            check.same(f"{what} {name} sizes", column(values, "size"), np.bincount(labels)[labels])
            check.same(f"{what} {name} beside igraph", len(graph.connected_components(mode=kind)), found)
            check.same(f"{what} {name} count", report["dates"][0]["facts"]["components"], float(found))
            if workers == 1:
                print(f"  {what} {name}: {found} components", flush=True)
            if workers == 1 and name == "scc":
                walked = store.on_cells(check.on_cells, options)
                check.same(f"{what} scc on cells", (walked["components"], walked["links"]), (found, len(sources)))
        simple = graph.as_undirected().simplify()
        values, _ = table("triangles")
        clustering = np.array(simple.transitivity_local_undirected(mode="zero"))
        degree = np.array(simple.degree())
        check.close(f"{what} clustering", column(values, "clustering"), clustering)
        check.close(f"{what} triangles", column(values, "triangles"), np.rint(clustering * degree * (degree - 1) / 2))
        bits = 5 if heavy else 8
        values, _ = table("harmonic", "--log2m", bits)
        if workers == 1:
            want, _ = hyperball(sources, targets, values.column("url").to_pylist(), bits)
        check.close(f"{what} harmonic counters", column(values, "harmonic"), want, relative=True)
        if not heavy:
            check_networkx(check, what, store, options, edges, count, values, workers)


def check_networkx(check, what, store, options, edges, count, harmonic, workers):
    """What networkx does in reasonable time."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(zip(*(side.tolist() for side in edges)))
    ranks = networkx.pagerank(graph, tol=1e-17, max_iter=5000)  # of each node
    values, _ = store.analyze("pagerank", *options, workers=workers)
    check.close(f"{what} pagerank beside networkx", column(values, "pagerank"), [ranks[uid] for uid in range(count)])
    values, _ = store.analyze("scc", *options, workers=workers)
    want = {min(component): len(component) for component in networkx.strongly_connected_components(graph)}
    check.same(f"{what} scc beside networkx", dict(Counter(column(values, "component").tolist())), want)
    undirected = graph.to_undirected()
    undirected.remove_edges_from(list(networkx.selfloop_edges(undirected)))
    values, _ = store.analyze("triangles", *options, workers=workers)
    triangles = networkx.triangles(undirected)
    check.same(f"{what} triangles beside networkx", column(values, "triangles"),
               np.array([triangles[uid] for uid in range(count)]))
    # Exact centralities of the URLs that counters rank first: within their error.
    top = np.argsort(-column(harmonic, "harmonic"))[:20]
    exact = networkx.harmonic_centrality(graph, nbunch=top.tolist())
    for uid in top.tolist():
        got, want = column(harmonic, "harmonic")[uid], exact[uid]
        assert abs(got - want) <= 4 * 1.04 / 16 * max(want, 1), f"{what} harmonic of {uid}: {got}, exactly {want}"
    check.done += 1


# ---- how a site changes ----

def check_changes(check, site, store):
    month = 30 * 86_400
    gained, lost, all_links = Counter(), Counter(), Counter()
    ages, changed, in_pairs_gained, in_pairs_lost, similar = [], Counter(), Counter(), Counter(), {}
    for url, captures in site.pages.items():
        times = [seconds(ts) for ts, _ in captures]
        since = {}
        shares = []
        for index, (_, links) in enumerate(captures):
            before = captures[index - 1][1] if index else set()
            if index:
                came, went = links - before, before - links
                changed[url] += bool(came or went)
                in_pairs_gained[url] += len(came)
                in_pairs_lost[url] += len(went)
                shares.append(len(links & before) / len(links | before) if links | before else 1)
            for link in before - links:
                lost[url] += 1
                born = since.pop(link)
                if born:
                    ages.append(((times[index] - times[born]) // month, True))
            for link in links - before:
                since[link] = index
                gained[url] += index > 0
        ages.extend(((times[-1] - times[born]) // month, False) for born in since.values() if born)
        all_links[url] = len(set().union(*(links for _, links in captures)))
        similar[url] = sum(shares) / len(shares) if shares else 1
    for workers in (1, 2):
        table, report = store.analyze("mortality", workers=workers)
        urls = table.column("url").to_pylist()
        for name, want in (("links", all_links), ("links_gained", gained), ("links_lost", lost)):
            check.same(f"mortality {name}", column(table, name), np.array([want[url] for url in urls]))
        sheet, share = report["dates"][0]["sheet"]["columns"], 1.0
        for age in range(max((age for age, _ in ages), default=-1) + 1):
            risk = sum(other >= age for other, _ in ages)
            died = sum(other == age and dead for other, dead in ages)
            share *= 1 - died / risk if risk else 1
            check.same("links of an age", (sheet["at_risk"][age], sheet["lost"][age]), (risk, died))
            check.close("links that survive", [sheet["surviving"][age]], [share])
        table, _ = store.analyze("churn", workers=workers)
        urls = table.column("url").to_pylist()
        for name, want in (("changed", changed), ("links_gained", in_pairs_gained), ("links_lost", in_pairs_lost)):
            check.same(f"churn {name}", column(table, name), np.array([want[url] for url in urls]))
        check.close("churn similarity", column(table, "similarity"), [similar.get(url, 1) for url in urls])
        check_growth(check, site, store, workers)


def check_growth(check, site, store, workers):
    rows = defaultdict(Counter)
    first_url, pairs = {}, {}
    for url, captures in site.pages.items():
        months = [ts[:6] for ts, _ in captures]
        rows[months[0]]["first_seen_pages"] += 1
        for month in months:
            rows[month]["captures"] += 1
        for month in set(months):
            rows[month]["pages"] += 1
        for ts, links in captures:
            for other in (url, *links):
                first_url[other] = min(first_url.get(other, ts), ts)
            for link in links:
                pairs.setdefault((url, link), ts)
    for ts in first_url.values():
        rows[ts[:6]]["first_seen_urls"] += 1
    for ts in pairs.values():
        rows[ts[:6]]["first_seen_links"] += 1
    table, _ = store.analyze("growth", workers=workers)
    months = [period.strftime("%Y%m") for period in table.column("period").to_pylist()]
    assert months == sorted(set(months)) and set(rows) <= set(months), "growth: periods"
    for name in ("captures", "pages", "first_seen_pages", "first_seen_urls", "first_seen_links"):
        check.same(f"growth {name}", column(table, name), np.array([rows[month][name] for month in months]))
    for month in months[:: max(len(months) // 5, 1)]:
        want = sum(len(links) for _, links in site.at(month + "31235959"))
        check.same("growth links", int(column(table, "links")[months.index(month)]), want)


def domain(host):
    return SUFFIXES.privatesuffix(host) or host


def check_places(check, what, store, options, pages):
    """Locality and menus at a date; `pages` are (url, links)."""
    hosts = [lambda url: urlsplit(url).hostname, lambda url: domain(urlsplit(url).hostname or url)]
    inside = [{url: sum(by(link) == by(url) for link in links) for url, links in pages} for by in hosts]
    directories = defaultdict(list)
    for url, links in pages:
        if links:
            directories[url.split("?")[0].rsplit("/", 1)[0] + "/"].append((url, links))
    want = set()
    for name, own in directories.items():
        if len(own) >= 5:
            groups = defaultdict(list)
            for link in set().union(*(links for _, links in own)):
                on = frozenset(url for url, links in own if link in links)
                if len(on) >= 0.8 * len(own):
                    groups[on].append(link)
            want |= {(name, len(own), len(on), tuple(sorted(links))) for on, links in groups.items() if len(links) > 1}
    for workers in (1, 2):
        table, _ = store.analyze("locality", *options, workers=workers)
        urls = table.column("url").to_pylist()
        for name, counts in zip(("in_host", "in_domain"), inside):
            check.same(f"{what} {name}", column(table, name), np.array([counts.get(url, 0) for url in urls]))
        table, _ = store.analyze("menus", *options, workers=workers)
        menus = defaultdict(list)
        for row in table.to_pylist():
            menus[row["directory"], row["menu"], row["pages"], row["pages_with"]].append(row["url"])
        got = {(name, pages, on, tuple(sorted(links))) for (name, _, pages, on), links in menus.items()}
        check.same(f"{what} menus", got, want)


def check_every(check, what, store):
    """Many dates at once give what each gives alone."""
    for name, value in (("degrees", "in_degree"), ("pagerank", "pagerank"), ("wcc", "component")):
        table, _ = store.analyze(name, "--period", "year", workers=2)
        at = table.column("at").to_pylist()
        for date in sorted(set(at))[:: max(len(set(at)) // 4, 1)]:
            alone, _ = store.analyze(name, "--at", date.strftime("%Y%m%d%H%M%S"))
            rows = np.flatnonzero([other == date for other in at])
            check.close(f"{what} {name} every year", column(table, value)[rows], column(alone, value))


def check_site(check, webstrata, path, dates, directory):
    site = Site(path)
    store = Store(webstrata, path, directory)
    table, _ = store.analyze("degrees")
    uids = {url: uid for uid, url in enumerate(table.column("url").to_pylist())}
    known = set(site.pages).union(*(links for captures in site.pages.values() for _, links in captures))
    assert set(uids) == known, "the URLs of the store are not those of the captures"
    for part in range(dates):
        ts = site.times[(part + 1) * (len(site.times) - 1) // dates]
        pages = list(site.at(ts))
        pairs = [(uids[url], uids[link]) for url, links in pages for link in links]
        edges = tuple(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
        what = f"{path.name.split('.')[0]} at {ts}"
        started = time.time()
        check_graph(check, what, store, ("--at", ts), uids, edges, heavy=False)
        check_places(check, what, store, ("--at", ts), pages)
        print(f"  {what}: {len(uids)} URLs, {len(pairs)} links, {time.time() - started:.0f} s", flush=True)
    check_changes(check, site, store)
    check_every(check, path.name, store)


def check_bv(check, webstrata, basename, captures_of_graph, directory):
    captures = directory / "captures.jsonl"
    with open(captures, "w") as out:
        subprocess.run([captures_of_graph, basename], check=True, stdout=out)
    pairs, count = [], 0
    with open(captures) as lines:
        for line in lines:
            row = json.loads(line)
            page = int(row["url"][-9:])
            pairs.append(np.column_stack((np.full(len(row["links"]), page), [int(link[-9:]) for link in row["links"]]))
                         if row["links"] else np.empty((0, 2)))
            count += 1
    edges = tuple(np.concatenate(pairs).astype(np.int64).T)
    store = Store(webstrata, captures, directory)
    print(f"  {Path(basename).name}: {count} URLs, {len(edges[0])} links", flush=True)
    check_graph(check, Path(basename).name, store, (), range(count), edges, heavy=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("captures", nargs="*", type=Path)
    parser.add_argument("--webstrata", default="target/debug/webstrata")
    parser.add_argument("--graph", action="append", default=[])
    parser.add_argument("--captures-of-graph", default="target/debug/examples/captures_of_graph")
    parser.add_argument("--on-cells", default="target/debug/examples/components_of_cells")
    parser.add_argument("--dates", type=int, default=3)
    args = parser.parse_args()
    check = Check(args.on_cells)
    for path in args.captures:
        with tempfile.TemporaryDirectory() as directory:
            check_site(check, args.webstrata, path, args.dates, Path(directory))
    for basename in args.graph:
        with tempfile.TemporaryDirectory() as directory:
            check_bv(check, args.webstrata, basename, args.captures_of_graph, Path(directory))
    print(f"{check.done} comparisons, the largest error {check.worst:.1e}")


if __name__ == "__main__":
    main()

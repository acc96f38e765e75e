#!/usr/bin/env python3
"""Other tools read what `webstrata export` writes, and find in it what a plain reading of the captures finds.

  exports.py [--webstrata BINARY] [CAPTURES...]

CAPTURES are JSON lines, plain or gzip, with WHATWG-serialised URLs; the default is a generated crawl. The script
exports all time, an interval, and the graph as of a time. Pandas, Polars, DuckDB and pyarrow read tables; NetworkX and
igraph read GraphML; NetworkX reads GEXF, which is also checked against gexf-1.3.xsd, a schema of this project after the
specification; SciPy reads the matrix; NetworKit reads the edge list; plain readers read the files of Common Crawl
(NetworkX computes its ranks) and of Neo4j; LadybugDB mounts its tables. Webstrata builds a store again from the columns
of AUT. The script compares every edge, event, node and pair of hosts, and prints one line for each tool. Exit code 1 at
the first difference. Graphs of more than 60,000 edges are not exported as XML. Needs the packages of requirements.txt.
tests/tests/exports.rs tests the content of BV files, with the library for BV files.
"""
import argparse
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import datetime, timezone
from urllib.parse import urlsplit

import duckdb
import igraph
import ladybug
import networkit
import networkx
import pandas
import polars
import pyarrow.feather
import scipy.io
import xmlschema

HERE = os.path.dirname(os.path.abspath(__file__))
DRAWN_MAX = 60_000


def seconds(digits):
    if isinstance(digits, int):
        return digits
    return int(datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc).timestamp())


def from_iso(text):
    return int(datetime.fromisoformat(text).timestamp())


class Oracle:
    """Captures as sets, and what every export must hold."""

    def __init__(self, paths):
        self.pages = defaultdict(dict)
        bare = lambda url: url.split("#", 1)[0]
        for path in paths:
            with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
                for row in map(json.loads, lines):
                    links = self.pages[bare(row["url"])].setdefault(seconds(row["ts"]), set())
                    links.update(map(bare, row["links"]))
        self.urls = set(self.pages).union(*(links for own in self.pages.values() for links in own.values()))

    def captures(self, page, window):
        times = sorted(self.pages.get(page, ()))
        if "at" in window:
            times = [time for time in times if time <= window["at"]][-1:]
        elif window:
            times = [time for time in times if window["from"] <= time <= window["to"]]
        return [(time, self.pages[page][time]) for time in times]

    def edges(self, window):
        """(page, link): first, last, captures, captures with the link, spans."""
        edges = {}
        for page in self.pages:
            captures = self.captures(page, window)
            for link in set().union(*(links for _, links in captures)):
                spans, with_link, before = [], 0, False
                for time, links in captures:
                    if link in links:
                        with_link += 1
                        spans = spans[:-1] + [(spans[-1][0], time)] if before else spans + [(time, time)]
                    before = link in links
                edges[page, link] = (spans[0][0], spans[-1][1], len(captures), with_link, tuple(spans))
        return edges

    def events(self, window):
        events = set()
        for page in self.pages:
            before = set()
            for time, links in self.captures(page, {}):
                if not window or window["from"] <= time <= window["to"]:
                    events |= {(page, link, time, True) for link in links - before}
                    events |= {(page, link, time, False) for link in before - links}
                before = links
        return events

    def nodes(self, window):
        nodes = {}
        for url in self.urls:
            times = [time for time, _ in self.captures(url, window)]
            nodes[url] = (len(times), times[0] if times else None, times[-1] if times else None)
        return nodes

    def hosts(self, edges):
        hosts = {}
        for (page, link), (first, last, _, captures, _) in edges.items():
            pair = (urlsplit(page).hostname, urlsplit(link).hostname)
            own = hosts.setdefault(pair, [set(), 0, 0, first, last])
            own[0].add(page)
            own[1:] = own[1] + 1, own[2] + captures, min(own[3], first), max(own[4], last)
        return {pair: (len(own[0]), *own[1:]) for pair, own in hosts.items()}


class Exports:
    """Runs exports of one store in one window of time."""

    def __init__(self, binary, store, directory, window):
        self.binary, self.store, self.directory = binary, store, directory
        stamp = lambda time: datetime.fromtimestamp(time, timezone.utc).strftime("%Y%m%d%H%M%S")
        self.window = [part for name, time in window.items() for part in (f"--{name}", stamp(time))]

    def file(self, name, *options):
        path = os.path.join(self.directory, name)
        command = [self.binary, "export", self.store, "--out", path, *options, *self.window]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return path

    def text(self, *options):
        command = [self.binary, "export", self.store, "--out", "-", *options, *self.window]
        return io.BytesIO(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def same(what, got, expected):
    if got == expected:
        return
    if hasattr(got, "items"):
        got, expected = set(got.items()), set(expected.items())
    if isinstance(got, set):
        got, expected = sorted(got - expected, key=str)[:3], sorted(expected - got, key=str)[:3]
    sys.exit(f"{what} differs: got {got}, expected {expected}")


def epoch(series):
    return [None if pandas.isna(time) else int(time.timestamp()) for time in pandas.to_datetime(series, utc=True)]


def check_nodes(exports, oracle, window):
    """pandas: the URL of each UID."""
    nodes = pandas.read_parquet(exports.file("nodes.parquet", "--what", "nodes", "--nodes", "all"))
    same("ids", list(nodes["id"]), list(range(len(nodes))))
    got = zip(nodes["captures"], epoch(nodes["first_capture"]), epoch(nodes["last_capture"]))
    same("nodes", dict(zip(nodes["url"], got)), oracle.nodes(window))
    hosts = [host if isinstance(host, str) else None for host in nodes["host"]]
    same("hosts of nodes", hosts, [urlsplit(url).hostname for url in nodes["url"]])
    text = pandas.read_csv(exports.text("--what", "nodes", "--nodes", "all", "--names", "gephi"))
    same("columns for Gephi", list(text.columns), ["Id", "Label", "Host", "Domain", "Captures", "Time Interval"])
    return list(nodes["url"])


def check_edges(exports, urls, edges):
    plain = {pair: own[:4] for pair, own in edges.items()}
    frame = pandas.read_csv(exports.text("--urls"))
    times = zip(epoch(frame["first_seen"]), epoch(frame["last_seen"]), frame["captures"], frame["captures_with_link"])
    same("pandas: edges of csv", dict(zip(zip(frame["src"], frame["dst"]), times)), plain)
    table = polars.read_parquet(exports.file("edges.parquet", "--names", "cugraph"))
    same("columns for cuGraph", table.columns[:2], ["source", "destination"])
    table = table.with_columns(polars.col("first_seen", "last_seen").dt.epoch("s"))
    same("Polars: edges", {(urls[row[0]], urls[row[1]]): row[2:] for row in table.iter_rows()}, plain)
    table = pyarrow.feather.read_table(exports.file("edges.arrow", "--names", "graphframes"))
    same("pyarrow: edges", (table.num_rows, table.column_names[:2]), (len(edges), ["src", "dst"]))
    same("pyarrow: times", str(table.schema.field("first_seen").type), "timestamp[ms, tz=UTC]")
    graph = networkx.from_pandas_edgelist(
        pandas.read_parquet(exports.file("edges.parquet", "--names", "networkx")),
        edge_attr="captures_with_link", create_using=networkx.DiGraph)
    got = {(urls[page], urls[link]): count for page, link, count in graph.edges(data="captures_with_link")}
    same("NetworkX: edges", got, {pair: own[3] for pair, own in edges.items()})
    frame = pandas.read_csv(exports.text("--names", "gephi"))
    same("columns for Gephi", list(frame.columns), ["Source", "Target", "Type", "Weight", "Time Interval"])
    spans = lambda text: tuple(tuple(map(from_iso, span.strip("[]").split(", "))) for span in text[1:-1].split("; "))
    got = {(urls[row[0]], urls[row[1]]): spans(row[4]) for row in frame.itertuples(index=False, name=None)}
    same("spans for Gephi", got, {pair: own[4] for pair, own in edges.items()})
    return f"pandas {pandas.__version__}, Polars {polars.__version__}, pyarrow {pyarrow.__version__}, Gephi's columns"


def check_duckdb(exports, oracle, urls, edges, window):
    nodes = exports.file("nodes.parquet", "--what", "nodes", "--nodes", "all")
    layers = exports.file("layers.parquet", "--what", "layers")
    hosts = exports.file("hosts.parquet", "--what", "hosts")
    con = duckdb.connect()
    if "at" not in window:
        events = exports.file("events.parquet", "--what", "events")
        rows = con.execute(f"select src, dst, epoch_ms(timestamp) // 1000, present from '{events}'").fetchall()
        same("DuckDB: events", {(urls[page], urls[link], *own) for page, link, *own in rows}, oracle.events(window))
        same("DuckDB: number of events", len(rows), len(oracle.events(window)))
    rows = con.execute(f"""
        with spans as (select url as page, unnest(lifespans, recursive := true) from '{layers}')
        select page, url, epoch_ms("first") // 1000, epoch_ms("last") // 1000 from spans join '{nodes}' on link = id
        """).fetchall()
    same("DuckDB: lifespans", set(rows), {(*pair, *span) for pair, own in edges.items() for span in own[4]})
    in_seconds = "list_transform(timestamps, lambda t: epoch_ms(t) // 1000)"
    rows = con.execute(f"select url, {in_seconds} from '{layers}'").fetchall()
    captures = {page: [time for time, _ in oracle.captures(page, window)] for page in oracle.pages}
    same("DuckDB: captures", {page: tuple(times) for page, times in rows},
         {page: tuple(times) for page, times in captures.items() if times})
    rows = con.execute(f"select src, dst, pages, links, occurrences, epoch_ms(first_seen) // 1000, "
                       f"epoch_ms(last_seen) // 1000 from '{hosts}'").fetchall()
    same("DuckDB: hosts", {(src, dst): tuple(own) for src, dst, *own in rows}, oracle.hosts(edges))
    return f"DuckDB {duckdb.__version__}"


def check_parts(exports):
    """Directories of parts are read by their names, and are the table in one file."""
    for what in ["edges", "nodes", "layers"]:
        whole = pyarrow.parquet.read_table(exports.file(f"{what}.parquet", "--what", what))
        parts = os.path.join(exports.directory, f"{what}-in-parts")
        shutil.rmtree(parts, ignore_errors=True)
        exports.file(f"{what}-in-parts", "--what", what, "--parts", "-w", "3")
        same(f"pyarrow: {what} in parts", pyarrow.parquet.read_table(parts).equals(whole), True)
        same(f"Polars: {what} in parts", polars.read_parquet(parts).equals(polars.from_arrow(whole)), True)
        [rows] = duckdb.execute(f"select count(*) from '{parts}/*.parquet'").fetchone()
        same(f"DuckDB: {what} in parts", rows, whole.num_rows)
    return "parts"


def check_numbers(exports, urls, edges):
    dated = list(pandas.read_parquet(exports.file("dated.parquet", "--what", "nodes"))["url"])
    for nodes, rule in [(urls, "all"), (dated, "dated")]:
        matrix = scipy.io.mmread(exports.file("links.mtx", "--nodes", rule)).tocoo()
        same("SciPy: shape", matrix.shape, (len(nodes), len(nodes)))
        same("SciPy: links", {(nodes[page], nodes[link]) for page, link in zip(matrix.row, matrix.col)}, set(edges))
    if not edges:
        return f"SciPy {scipy.__version__}"
    path = exports.file("links.tsv", "--format", "networkit", "--nodes", "all")
    # The reader behind Format.EdgeListTabOne, which by itself reads links without direction.
    graph = networkit.graphio.EdgeListReader("\t", 1, directed=True).read(path)
    same("NetworKit: links", {(urls[page], urls[link]) for page, link in graph.iterEdges()}, set(edges))
    return f"SciPy {scipy.__version__}, NetworKit {networkit.__version__}"


def check_drawings(exports, urls, edges, hosts, schema):
    plain = {pair: own[3] for pair, own in edges.items()}
    for what in ["edges", "hosts"]:
        path = exports.file("graph.graphml", "--what", what)
        graph = networkx.read_graphml(path)
        drawn = igraph.Graph.Read_GraphML(path)
        same(f"igraph: {what}", (drawn.vcount(), drawn.ecount()), (len(graph), graph.number_of_edges()))
        if what == "edges":
            same("NetworkX: nodes of GraphML", all(urls[int(id)] == url for id, url in graph.nodes(data="url")), True)
            got = {(urls[int(a)], urls[int(b)]): weight for a, b, weight in graph.edges(data="weight")}
            same("NetworkX: edges of GraphML", got, plain)
        path = exports.file("graph.gexf", "--what", what)
        schema.validate(path)
        drawn = networkx.read_gexf(path)
        same(f"NetworkX: GEXF of {what}", (len(drawn), drawn.number_of_edges()), (len(graph), graph.number_of_edges()))
        ends = lambda graph: {(a, b): weight for a, b, weight in graph.edges(data="weight")}
        same(f"NetworkX: edges of GEXF and of GraphML, {what}", ends(drawn), ends(graph))
        spans = lambda own: tuple((from_iso(first), from_iso(last)) for first, last in own["spells"])
        same(f"NetworkX: nodes of GEXF, {what}", dict(drawn.nodes(data="label")),
             dict(graph.nodes(data="url" if what == "edges" else "host")))
        lives = {id: (own["start"], own["end"]) for id, own in drawn.nodes(data=True)}
        for a, b, own in drawn.edges(data=True):
            inside = all(lives[end][0] <= first and last <= lives[end][1]
                         for end in (a, b) for first, last in own["spells"])
            same(f"NetworkX: spells inside the lives of their nodes, {what}", inside, True)
        if what == "hosts":
            named = lambda end: drawn.nodes[end]["label"]
            got = {(named(a), named(b)): spans(own) for a, b, own in drawn.edges(data=True)}
            expected = {pair: ((own[3], own[4]),) for pair, own in hosts.items()}
            same("NetworkX: spells of GEXF of hosts", got, expected)
        else:
            got = {(urls[int(a)], urls[int(b)]): spans(own) for a, b, own in drawn.edges(data=True)}
            same("NetworkX: spells of GEXF", got, {pair: own[4] for pair, own in edges.items()})
    return f"NetworkX {networkx.__version__}, igraph {igraph.__version__}, schema of GEXF"


def turned(host):
    """A name with its labels in the other order. An address has none, and stays."""
    return host if re.fullmatch(r"[0-9.]+", host) or ":" in host else ".".join(reversed(host.split(".")))


def check_graphs(exports, nodes, edges, hosts):
    """The files of Common Crawl's graphs, and those for the import of Neo4j, read as plain text."""
    def files(name, *options):
        shutil.rmtree(os.path.join(exports.directory, name), ignore_errors=True)
        return exports.file(name, *options)

    def rows(path):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [line.rstrip("\n").split("\t") for line in lines]

    graph = files("host-graph", "--format", "cc-graph")
    vertices = rows(os.path.join(graph, "vertices.txt.gz"))
    names = [name for _, name in vertices]
    same("ids of vertices", [int(id) for id, _ in vertices], list(range(len(vertices))))
    same("order of vertices", names, sorted(names))
    there = {turned(urlsplit(url).hostname) for url in nodes}
    same("vertices", set(names), there)
    pairs = [(int(a), int(b)) for a, b in rows(os.path.join(graph, "edges.txt.gz"))]
    same("order of edges", pairs, sorted(set(pairs)))
    host = lambda id: turned(names[id])
    same("edges between hosts", {(host(a), host(b)) for a, b in pairs}, {(a, b) for a, b in hosts if a != b})
    header, *ranks = rows(os.path.join(graph, "ranks.txt.gz"))
    same("columns of ranks", header, ["#harmonicc_pos", "#harmonicc_val", "#pr_pos", "#pr_val", "#host_rev"])
    same("hosts with ranks", sorted(rank[4] for rank in ranks), names)
    same("positions", [int(rank[0]) for rank in ranks], list(range(1, len(ranks) + 1)))
    same("positions by PageRank", sorted(int(rank[2]) for rank in ranks), list(range(1, len(ranks) + 1)))
    whole, at = networkx.DiGraph(pairs), {name: id for id, name in enumerate(names)}
    whole.add_nodes_from(range(len(names)))
    values = networkx.pagerank(whole, tol=1e-12, max_iter=1000)
    wrong = [rank for rank in ranks if abs(float(rank[3]) - values[at[rank[4]]]) > 1e-8]
    same("PageRank of networkx", wrong, [])
    values = networkx.harmonic_centrality(whole)
    # Counters of 256 registers are wrong by 6.5 % in one of three cases, and two hosts may have one register.
    wrong = [rank for rank in ranks if abs(float(rank[1]) - (exact := values[at[rank[4]]])) > 0.3 * exact + 1]
    same("harmonic centrality of networkx", wrong, [])
    domains = rows(os.path.join(files("domain-graph", "--format", "cc-graph", "--by", "domain"), "vertices.txt.gz"))
    same("hosts of domains", sum(int(count) for _, _, count in domains), len(names))
    graph = files("neo4j", "--format", "neo4j")
    urls, links = [list(csv.DictReader(open(os.path.join(graph, name), encoding="utf-8", newline="")))
                   for name in ("nodes.csv", "links.csv")]
    same("nodes for Neo4j", {row["url"] for row in urls}, set(nodes))
    named = {row["uid:ID(Url)"]: row["url"] for row in urls}
    got = {(named[row[":START_ID(Url)"]], named[row[":END_ID(Url)"]]):
           (from_iso(row["first_seen:datetime"]), from_iso(row["last_seen:datetime"]), int(row["captures:long"]),
            int(row["captures_with_link:long"])) for row in links}
    same("links for Neo4j", got, {pair: own[:4] for pair, own in edges.items()})
    graph = files("icebug", "--format", "icebug")
    database = ladybug.Connection(ladybug.Database())
    for statement in open(os.path.join(graph, "schema.cypher"), encoding="utf-8").read().split(";\n"):
        if statement:
            database.execute(statement)

    def ask(query):
        answer, found = database.execute(query), []
        while answer.has_next():
            found.append(answer.get_next())
        return found

    same("nodes in LadybugDB", {uid: url for uid, url in ask("MATCH (a:url) RETURN a.uid, a.url")},
         {int(uid): url for uid, url in named.items()})
    got = {(a, b): (first, last, captures, with_link) for a, b, first, last, captures, with_link in ask(
        "MATCH (a:url)-[l:links]->(b:url) "
        "RETURN a.url, b.url, l.first_seen, l.last_seen, l.captures, l.captures_with_link")}
    same("ends of links in LadybugDB", set(got), set(edges))
    utc = lambda time: int(time.replace(tzinfo=timezone.utc).timestamp())
    same("links in LadybugDB", {ends: (utc(own[0]), utc(own[1]), *own[2:]) for ends, own in got.items()},
         {ends: (from_iso(row["first_seen:datetime"]), from_iso(row["last_seen:datetime"]), int(row["captures:long"]),
                 int(row["captures_with_link:long"]))
          for row in links for ends in [(named[row[":START_ID(Url)"]], named[row[":END_ID(Url)"]])]})
    following = defaultdict(list)
    for a, b in edges:
        following[a].append(b)
    page = max(following, key=lambda page: (len(following[page]), page), default="")
    two = {(b, c) for b in following[page] for c in following.get(b, [])}
    same("two steps in LadybugDB", {tuple(row) for row in ask(
        f"MATCH (a:url)-[:links]->(b:url)-[:links]->(c:url) WHERE a.url = '{page}' RETURN b.url, c.url")}, two)
    return "files of Common Crawl's graphs, of Neo4j and of LadybugDB"


def check_again(exports, oracle, directory):
    """What is written in the columns of AUT is read as such, and makes the same edges."""
    table = exports.file("aut.parquet", "--names", "aut")
    again = os.path.join(directory, "again")
    build = [exports.binary, "build", "--out", again, table, "--spill", directory]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    edges = lambda store: Exports(exports.binary, store, directory, {}).text("--urls").getvalue().splitlines()
    wanted = {line for line in edges(exports.store)}
    # Captures without links are not in such a table, and so neither counted.
    if not any(not links for own in oracle.pages.values() for links in own.values()):
        same("edges by way of AUT", set(edges(again)), wanted)
    else:
        ends = lambda lines: {tuple(line.split(b",")[:-2]) for line in lines}
        same("edges by way of AUT", ends(edges(again)), ends(wanted))
    return "Webstrata by way of AUT's columns"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*")
    parser.add_argument("--webstrata", default="webstrata")
    args = parser.parse_args()
    schema = xmlschema.XMLSchema(os.path.join(HERE, "gexf-1.3.xsd"))
    with tempfile.TemporaryDirectory() as directory:
        captures = args.captures
        if not captures:
            captures = [os.path.join(directory, "crawl.jsonl")]
            made = "irregular:occurrences=20000,seed=5,months=24"
            subprocess.run([args.webstrata, "generate", made, "--out", captures[0]], check=True)
        store = os.path.join(directory, "store")
        subprocess.run([args.webstrata, "build", "--out", store, *captures], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        oracle = Oracle(captures)
        times = sorted(time for own in oracle.pages.values() for time in own)
        span = {"from": times[len(times) // 3], "to": times[len(times) // 2]}
        for window in [{}, span, {"at": times[len(times) // 2]}, {"from": times[-1] + 1, "to": times[-1] + 2}]:
            exports = Exports(args.webstrata, store, directory, window)
            edges = oracle.edges(window)
            urls = check_nodes(exports, oracle, window)
            done = [check_edges(exports, urls, edges), check_duckdb(exports, oracle, urls, edges, window),
                    check_numbers(exports, urls, edges)]
            captured = {url for url in oracle.urls if oracle.captures(url, window)}
            done.append(check_graphs(exports, captured.union(*edges), edges, oracle.hosts(edges)))
            if len(edges) <= DRAWN_MAX:
                done.append(check_drawings(exports, urls, edges, oracle.hosts(edges), schema))
            if not window:
                done += [check_again(exports, oracle, directory), check_parts(exports)]
            print(f"{window or 'all time'}: {len(urls)} URLs, {len(edges)} edges: {'; '.join(done)}: the same",
                  flush=True)


if __name__ == "__main__":
    main()

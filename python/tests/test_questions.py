"""What a graph answers, compared with the oracle and read by pyarrow, pandas, Polars, DuckDB and SciPy."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import webstrata
from conftest import Crawl, Servers, crawl, digits, write

FOREVER = 2**40


def pairs(table: webstrata.Table) -> set[tuple[str, str | None, bool]]:
    rows = pyarrow.table(table).to_pylist()
    assert len(rows) == len(table)
    return {(row["url"], row["link"], row["is_unknown"]) for row in rows}


def times(made: Crawl, chance: random.Random, count: int) -> list[int]:
    every = sorted(time for page in made.captures.values() for time in page)
    return [chance.choice(every) + chance.choice((-1, 0, 1)) for _ in range(count)]


def test_links_as_of_a_time(graph: webstrata.Graph, made: Crawl) -> None:
    urls = made.urls()
    for time in times(made, random.Random(1), 12):
        expected, inward = set(), set()
        for page in made.captures:
            links = made.at(page, time)
            # A page whose links are unknown is named, with the links that were known last.
            for link in {None} | made.last_known(page, time) if links is None else links:
                expected.add((page, link, links is None))
            ever = made.seen(page, 0, FOREVER)
            inward |= {(link, page, links is None) for link in (ever if links is None else links)}
        assert pairs(graph.links(urls, at=digits(time))) == expected
        assert pairs(graph.links(urls, at=digits(time), direction="in")) == inward


def test_links_seen_between_two_times(graph: webstrata.Graph, made: Crawl) -> None:
    urls, chance = made.urls(), random.Random(2)
    for _ in range(8):
        start, end = sorted(times(made, chance, 2))
        found = {(page, link, False) for page in made.captures for link in made.seen(page, start, end)}
        unknown = {page for page in made.captures if made.is_unknown(page, start, end)}
        outward = graph.links(urls, start=digits(start), end=digits(end))
        assert pairs(outward) == found | {(page, None, True) for page in unknown}
        inward = graph.links(urls, start=digits(start), end=digits(end), direction="in")
        linking = {(link, page, False) for page, link, _ in found}
        for page in unknown:
            linking |= {(link, page, True) for link in made.seen(page, 0, FOREVER) - made.seen(page, start, end)}
        assert pairs(inward) == linking
        wide = graph.links(urls, start=digits(start), end=digits(end), direction="in", exact=False)
        assert pairs(wide) >= pairs(inward)


def test_captures_and_lifespans(graph: webstrata.Graph, made: Crawl) -> None:
    urls = made.urls()
    captures = pyarrow.table(graph.captures(urls)).to_pylist()
    found = {(row["url"], int(row["timestamp"].timestamp()), row["is_known"]) for row in captures}
    own = made.captures.items()
    assert found == {(page, time, links is not None) for page, times in own for time, links in times.items()}
    runs = pyarrow.table(graph.lifespans(urls)).to_pylist()
    found = {(row["url"], row["link"], int(row["first"].timestamp()), int(row["last"].timestamp())) for row in runs}
    assert found == {(page, *run) for page in made.captures for run in made.runs(page)}


def test_uids_and_urls(graph: webstrata.Graph, made: Crawl) -> None:
    urls = made.urls()
    uids = graph.uids(urls)
    assert uids.dtype == np.uint64 and sorted(uids.tolist()) == list(range(len(graph)))
    assert graph.urls(uids) == urls and graph.urls([]) == []
    shuffled = random.Random(3).sample(urls, len(urls)) * 2
    assert graph.urls(graph.uids(shuffled)) == shuffled
    assert graph.uids("a.example/0").tolist() == graph.uids(["http://a.example/0"]).tolist()
    mixed = [urls[0], "http://nowhere.example/", "no url", urls[1]]
    assert graph.uids(mixed, missing="skip").tolist() == graph.uids(urls[:2]).tolist()
    with pytest.raises(webstrata.NotInStore, match="nowhere.example/ is not in the store, and 1 more are not"):
        graph.uids(mixed)
    by_uid = graph.links(uids[:5], names=False)
    assert by_uid.columns == ["uid", "link_uid", "is_unknown"]
    assert len(graph.links([])) == 0 and graph.links([]).columns[-1] == "link"


def test_rows_of_commands(graph: webstrata.Graph, made: Crawl) -> None:
    linking = {page for page in made.captures if any("b.example" in url for url in made.seen(page, 0, FOREVER))}
    found = {row["page"] for row in graph.backlinks("b.example", internal=True)}
    assert found == linking
    by_year = graph.backlinks("b.example", internal=True, period="year")
    assert sum(row["found"] + row["new"] for row in by_year) == len(linking)
    page = "http://a.example/0"
    first, second = sorted(made.captures[page])[0], 1_100_000_000 + 3000 * 86_400
    changed = graph.changed(page, digits(first), digits(second))
    before, after = made.at(page, first), made.at(page, second)
    if before is not None and after is not None:
        assert {(change["change"], change["link"]) for change in changed["changes"]} == (
            {("gained", link) for link in after - before} | {("lost", link) for link in before - after})
    assert {row["source"] for row in graph.neighbourhood(page, hops=1)} >= {page}
    page, link = next((page, min(links)) for page in made.captures for links in [made.at(page, FOREVER)] if links)
    assert graph.ways(page, link)["ways"] == [[page, link]]
    assert graph.deaths() == []
    svg = graph.show(page)._repr_svg_()
    assert svg.startswith("<svg") and svg.count("<text") > 5 and "a.example/0" in svg


def test_other_libraries_read_tables(graph: webstrata.Graph, made: Crawl) -> None:
    links = graph.links(made.urls())
    rows = len(links)
    assert polars.DataFrame(links).height == rows
    assert len(pandas.DataFrame.from_arrow(links)) == rows
    assert duckdb.sql("select count(*) from links").fetchall() == [(rows,)]
    unknown = sum(made.is_unknown(page, 0, FOREVER) for page in made.captures)
    assert duckdb.sql("select count(*) from links where not is_unknown").fetchall() == [(rows - unknown,)]
    read = pyarrow.table(links)
    again = pyarrow.table(links)
    address = lambda own: [chunk.buffers()[1].address for chunk in own["link_uid"].chunks]
    assert address(read) == address(again), "a table is copied"
    del links
    assert read.num_rows == rows and read["link"].null_count == unknown


def test_the_whole_graph(store: Path, made: Crawl) -> None:
    graph = webstrata.open(store)
    time = 1_100_000_000 + 1000 * 86_400
    expected = {(page, link) for page in made.captures for link in made.at(page, time) or ()}
    matrix = graph.csr(at=digits(time))
    urls = graph.urls(np.arange(len(graph)))
    found = [row["url"] for row in graph.search(host="a.example")]
    assert found == [url for url in urls if url.startswith("http://a.example/")]
    rows, columns = matrix.nonzero()
    assert {(urls[row], urls[column]) for row, column in zip(rows, columns)} == expected
    drawn = graph.networkx(at=digits(time))
    assert set(drawn.edges) == expected and networkx.number_of_nodes(drawn) == len({*sum(expected, ())})
    other = graph.igraph(at=digits(time))
    assert {(other.vs[edge.source]["name"], other.vs[edge.target]["name"]) for edge in other.es} == expected
    part = graph.networkx(at=digits(time), host="a.example")
    assert set(part.edges) == {(page, link) for page, link in expected if page.startswith("http://a.example/")}
    edges = pyarrow.table(graph.edges(at=digits(time))).to_pylist()
    assert {(urls[row["src"]], urls[row["dst"]]) for row in edges} == expected
    assert {row["url"] for row in pyarrow.table(graph.nodes(nodes="all")).to_pylist()} == set(urls)
    ranks = graph.analyze("pagerank", at=digits(time))
    assert ranks.report["analysis"] == "pagerank" and ranks.values is not None
    own = {row["url"]: row["pagerank"] for row in pyarrow.table(ranks.values).to_pylist()}
    drawn.add_nodes_from(own)
    theirs = networkx.pagerank(drawn, tol=1e-12, max_iter=1000)
    assert own.keys() == theirs.keys() and all(abs(own[url] - theirs[url]) < 1e-6 for url in own)
    later = time + 300 * 86_400
    changes = graph.diff(digits(time), digits(later))
    known = [page for page in made.captures if made.at(page, time) is not None and made.at(page, later) is not None]
    gained = {(page, link) for page in known for link in made.at(page, later) - made.at(page, time)}
    assert {(row["page"], row["link"]) for row in changes if row["change"] == "gained"} == gained


def test_update_and_merge(tmp_path: Path) -> None:
    one, two = crawl(11), crawl(12)
    webstrata.build(write(one, tmp_path / "one.jsonl"), tmp_path / "store", links=["redirects"], memory="256M")
    before = webstrata.open(tmp_path / "store")
    report = webstrata.update(tmp_path / "store", [write(two, tmp_path / "two.jsonl")])
    assert report["epoch"] > before.epoch
    webstrata.merge(tmp_path / "store")
    both = Crawl({page: {**one.captures.get(page, {}), **two.captures.get(page, {})}
                  for page in one.captures.keys() | two.captures.keys()})
    graph = webstrata.open(tmp_path / "store")
    for time in times(both, random.Random(4), 5):
        links = pyarrow.table(graph.links(list(both.captures), at=digits(time))).to_pylist()
        found = {(row["url"], row["link"]) for row in links if not row["is_unknown"]}
        expected = {page: both.at(page, time) for page in both.captures}
        shared = [page for page in both.captures if page not in one.captures or page not in two.captures or not (
            one.captures[page].keys() & two.captures[page].keys())]
        assert {pair for pair in found if pair[0] in shared} == {
            (page, link) for page in shared for link in expected[page] or ()}


def test_errors_say_what_to_do(graph: webstrata.Graph, tmp_path: Path) -> None:
    page = "http://a.example/0"
    for ask, kind, words in (
        (lambda: graph.links("http://nowhere.example/"), webstrata.NotInStore, "neither as a page nor as the target"),
        (lambda: graph.links(page, at="20xx"), webstrata.UsageError, 'at: not a time: "20xx"'),
        (lambda: graph.links(page, start="2009", end="2008"), webstrata.UsageError, "start is later than end"),
        (lambda: graph.links(page, at="2009", end="2008"), webstrata.UsageError, "at goes with neither"),
        (lambda: graph.links(page, max_age="1y"), webstrata.UsageError, "need at"),
        (lambda: graph.links(page, at="2009", failures="some"), webstrata.UsageError, "failures"),
        (lambda: graph.links(page, direction="up"), webstrata.UsageError, "neither 'out' nor 'in'"),
        (lambda: graph.backlinks("b.example", bye="year"), webstrata.UsageError, "unexpected argument '--bye'"),
        (lambda: graph.urls([2**40]), webstrata.Error, "1099511627776"),
        (lambda: webstrata.open(tmp_path), webstrata.Error, "is not a store"),
        (lambda: webstrata.build(tmp_path / "none.warc", tmp_path / "out"), webstrata.Error, "none.warc"),
        (lambda: webstrata.connect("127.0.0.1:1"), webstrata.Error, "127.0.0.1:1"),
        (lambda: webstrata.run("nonsense"), webstrata.UsageError, "nonsense"),
    ):
        with pytest.raises(kind) as raised:
            ask()
        assert words in str(raised.value) and "\n" not in str(raised.value), raised.value
        assert isinstance(raised.value, webstrata.Error)


def test_servers_do_not_answer_for_the_whole_graph(servers: Servers) -> None:
    graph = webstrata.connect(servers.addresses[0])
    with pytest.raises(webstrata.UsageError, match="open the store itself"):
        graph.edges()

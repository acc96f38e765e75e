"""A store, or servers that have one, asked from Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _command, _webstrata
from ._command import Option, Path, Progress
from ._errors import NotInStore, UsageError
from ._webstrata import Table

if TYPE_CHECKING:
    import igraph
    import networkx
    import scipy.sparse

Urls: TypeAlias = "str | Iterable[str] | NDArray[np.integer[Any]]"
Row: TypeAlias = "dict[str, Any]"

_NONE = np.uint64(2**64 - 1)


class Barcode:
    """The barcode of a page, which notebooks draw; `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path) -> None:
        """Writes the SVG to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


class Graph:
    """A graph of links over time, as of one epoch of a store. Made by `open` and `connect`.

    Times are written as on the command line: 2008, 2008-06, 2008-06-01, 20080601123005, "June 2008", "30d ago". A year,
    month or day is a whole period: `start` means its first second, `at` and `end` mean its last.

    URLs are one text, which may lack its scheme; or many, with their schemes; or a NumPy array of UIDs. A UID is the
    number of a URL in this epoch.

    Tables are read without a copy by `pyarrow.table(t)`, `polars.DataFrame(t)` and `duckdb.sql("from t")`, and by
    `pandas.DataFrame.from_arrow(t)`.
    """

    def __init__(self, graph: _webstrata.Graph, source: list[str], store: str | None) -> None:
        self._graph, self._source, self._store = graph, source, store

    def __repr__(self) -> str:
        return f"<webstrata.Graph of {' '.join(self._source)}: epoch {self.epoch}, {len(self):,} URLs>"

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        return self._graph.epoch

    def __len__(self) -> int:
        """The number of URLs: all UIDs are below it."""
        return len(self._graph)

    # ---- many URLs at a time ----

    def uids(self, urls: Urls, *, missing: Literal["raise", "skip"] = "raise") -> NDArray[np.uint64]:
        """The UIDs of URLs, in their order. A URL that is not in the store is an error, or is skipped."""
        if isinstance(urls, str):
            return np.array([self._graph.find(urls)[0]], dtype=np.uint64)
        if isinstance(urls, np.ndarray) and urls.dtype.kind in "iu":
            return np.ascontiguousarray(urls, dtype=np.uint64)
        texts = [str(url) for url in urls]
        found = self._graph.uids(texts)
        lost = np.flatnonzero(found == _NONE)
        if lost.size and missing == "raise":
            more = f", and {lost.size - 1:,} more are not" if lost.size > 1 else ""
            raise NotInStore(f"{texts[lost[0]]} is not in the store{more}; missing='skip' leaves them out")
        return found[found != _NONE] if lost.size else found

    def urls(self, uids: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
        """The URLs of UIDs, in their order."""
        return self._graph.urls(np.ascontiguousarray(uids, dtype=np.uint64))

    def links(
        self,
        urls: Urls,
        *,
        at: str | None = None,
        start: str | None = None,
        end: str | None = None,
        direction: Literal["out", "in"] = "out",
        exact: bool = True,
        names: bool = True,
        missing: Literal["raise", "skip"] = "raise",
        max_age: str | None = None,
        failures: Literal["end", "ignore", "all"] | None = None,
    ) -> Table:
        """The links of pages, or with `direction="in"` the pages that link to URLs.

        Links of the latest capture at or before `at`, or of any capture from `start` to `end`, or of any capture.

        Columns: `uid` (uint64), `link_uid` (uint64), `is_unknown` (bool), and with `names` `url` and `link` (string):
        a row for each URL that is asked and each link, in the order of the URLs, then of the links' UIDs. A row with
        `is_unknown` says that it is unknown whether the page links: a capture leaves its links unknown, or its body was
        cut. Of a page that is asked itself, one such row has no `link_uid`. As of `at`, others have the links that the
        page had when they were last known. In-links with `exact=False` come faster, and may be too many.
        """
        if direction not in ("out", "in"):
            raise UsageError(f"direction: {direction!r} is neither 'out' nor 'in'")
        return self._graph.links(
            self.uids(urls, missing=missing),
            direction == "in",
            exact,
            names,
            at=at,
            start=start,
            end=end,
            max_age=max_age,
            failures=failures,
        )

    def captures(self, urls: Urls, *, names: bool = True, missing: Literal["raise", "skip"] = "raise") -> Table:
        """The captures of URLs, by time.

        Columns: `uid` (uint64), `timestamp` (seconds, UTC), `status` (uint16, 200 also where the crawl did not say),
        `is_known` (bool: whether its links are), `cut` (string: why the body was not read whole, or null), and with
        `names` `url` (string).
        """
        return self._graph.captures(self.uids(urls, missing=missing), names)

    def lifespans(self, urls: Urls, *, names: bool = True, missing: Literal["raise", "skip"] = "raise") -> Table:
        """When pages had their links: a row for each run of captures with the link.

        Columns: `uid`, `link_uid` (uint64), `first`, `last` (seconds, UTC: first and last capture of the run), and with
        `names` `url`, `link` (string).
        """
        return self._graph.lifespans(self.uids(urls, missing=missing), names)

    # ---- one question ----

    def backlinks(self, target: str, **options: Option) -> list[Row]:
        """Who links to a URL, a host or a domain, and since when; with `period="month"` how many, period by period.

        Options are those of `webstrata backlinks`, with _ for -.
        """
        return self._rows("backlinks", target, **_unlimited(options, "period"))

    def deaths(self, **options: Option) -> list[Row]:
        """Pages that died, and who still links to them; with `period="year"` how many. Options: `webstrata deaths`."""
        return self._rows("deaths", **_unlimited(options, "period"))

    def neighbourhood(self, url: str, **options: Option) -> list[Row]:
        """The links around a page. Options: `webstrata neighbourhood`."""
        return self._rows("neighbourhood", url, **_unlimited(options))

    def ways(self, url: str, target: str, **options: Option) -> Row:
        """The shortest ways along links from one page to another. Options: `webstrata ways`."""
        return _command.answer(["ways", *self._source, url, target], options)

    def changed(self, url: str, first: str, second: str, **options: Option) -> Row:
        """The links that a page gained and lost between two times. Options: `webstrata links`."""
        return _command.answer(["links", *self._source, url], {**options, "changed": (first, second)})

    def show(self, url: str, *, limit: int = 40, width: int = 960) -> Barcode:
        """Draws when the links of a page were there: the `limit` links that were there longest."""
        return Barcode(self._graph.barcode(url, limit, width))

    # ---- the whole graph ----

    def search(self, **options: Option) -> list[Row]:
        """URLs of a `host`, a `domain` or a `prefix`, with their UIDs. Options: `webstrata uids`."""
        return _command.rows(["uids", self._stored()], options)

    def diff(self, first: str, second: str, **options: Option) -> list[Row]:
        """The links that the graph gained and lost between two dates; with `pages=True` the pages. Options: `webstrata
        diff`."""
        asked = {"links": not options.get("pages"), **options, "from_date": first, "to_date": second}
        # The last line counts those before it.
        return _command.rows(["diff", self._stored()], asked)[:-1]

    def analyze(self, name: str, *, progress: Progress | None = None, **options: Option) -> Analysis:
        """Runs an analysis: pagerank, hits, scc, rot ... Options: `webstrata analyze`."""
        with tempfile.TemporaryDirectory(prefix="webstrata-") as directory:
            out = os.path.join(directory, "values.arrow")
            options = {**options, "out": out} if options.get("out") is None else options
            report = _command.answer(["analyze", self._stored(), name], options, progress)
            return Analysis(report, Table.of_file(out) if os.path.exists(out) else None)

    def edges(self, *, progress: Progress | None = None, **options: Option) -> Table:
        """All links as UIDs, or with `urls=True` as URLs, with the captures that had them. Options: `webstrata
        export`."""
        return self._exported("edges", progress, options)

    def nodes(self, *, progress: Progress | None = None, **options: Option) -> Table:
        """All URLs, with what is known of them. Options: `webstrata export`."""
        return self._exported("nodes", progress, options)

    def csr(self, at: str | None = None, **options: Any) -> scipy.sparse.csr_array:
        """The graph as a matrix: row and column of a URL are its UID, and 1 stands for a link.

        `indices` and `indptr` are the memory that Rust filled. Options: `start`, `end`, `max_age`, `failures`.
        """
        import scipy.sparse

        starts, links = self._graph.csr(at, **options)
        ones = np.ones(len(links), dtype=np.int8)
        return scipy.sparse.csr_array((ones, links, starts), shape=(len(self), len(self)), copy=False)

    def networkx(self, at: str | None = None, **part: str) -> networkx.DiGraph:
        """The links for NetworkX, whose nodes are URLs: all, or those of pages of a `host`, a `domain` or a `prefix`.

        Needs pyarrow."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_edges_from(self._pairs(at, part))
        return graph

    def igraph(self, at: str | None = None, **part: str) -> igraph.Graph:
        """The links for igraph, with URLs as `name`: all, or those of pages of a `host`, a `domain` or a `prefix`.

        Needs pyarrow."""
        import igraph

        return igraph.Graph.TupleList(self._pairs(at, part), directed=True)

    def _pairs(self, at: str | None, part: dict[str, str]) -> Iterable[tuple[str, str]]:
        """The links of pages as texts, without those that are unknown."""
        import pyarrow
        import pyarrow.compute

        found = [row["uid"] for row in self.search(**part)] if part else range(len(self))
        links = pyarrow.table(self.links(np.array(found, dtype=np.uint64), at=at))
        known = links.filter(pyarrow.compute.invert(links["is_unknown"]))
        return zip(known["url"].to_pylist(), known["link"].to_pylist())

    # ---- commands ----

    def _rows(self, command: str, *arguments: str, **options: Option) -> list[Row]:
        return _command.rows([command, *self._source, *arguments], options)

    def _stored(self) -> str:
        if self._store is None:
            raise UsageError("servers do not answer this: open the store itself")
        return self._store

    def _exported(self, what: str, progress: Progress | None, options: dict[str, Option]) -> Table:
        with tempfile.TemporaryDirectory(prefix="webstrata-") as directory:
            out = os.path.join(directory, "records.arrow")
            _command.run(["export", self._stored()], {**options, "what": what, "out": out, "format": "arrow"}, progress)
            return Table.of_file(out)


class Analysis:
    """The result of an analysis: `report`, as `webstrata analyze --format json` prints it, and `values`, a table with a
    row for each node, or None where the analysis has no values of nodes."""

    def __init__(self, report: Row, values: Table | None) -> None:
        self.report, self.values = report, values

    def __repr__(self) -> str:
        values = "no values" if self.values is None else f"{len(self.values):,} values"
        return f"<webstrata.Analysis {self.report['analysis']}: {values}>"


def _unlimited(options: dict[str, Option], counted: str = "") -> dict[str, Option]:
    """All rows, unless a limit is given: what a person does not want to read, a program does."""
    return options if counted and options.get(counted) else {"limit": 0, **options}

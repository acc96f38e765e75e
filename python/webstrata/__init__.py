"""Time-aware link graphs of web archives.

>>> import webstrata
>>> webstrata.build(["crawl.warc.gz"], out="store")
>>> graph = webstrata.open("store")
>>> graph.links("http://example.org/", at="2008")
>>> graph.backlinks("example.org", period="year")
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _command, _webstrata
from ._command import Option, Path, Progress
from ._errors import Error, NotInStore, UsageError
from ._graph import Analysis, Barcode, Graph
from ._webstrata import Table

__all__ = [
    "Analysis", "Barcode", "Error", "Graph", "NotInStore", "Table", "UsageError",
    "bar", "build", "connect", "merge", "open", "run", "update",
]  # fmt: skip

bar = _command.bar


def open(store: Path, *, memory: int = 256 << 20) -> Graph:
    """Opens a store: a directory, or s3://bucket/prefix. Its cells answer, if it has cells; else its layers, with so
    many bytes of `memory` for what is read."""
    name = os.fspath(store)
    return Graph(_webstrata.Graph.open(name, memory), [name], name)


def connect(
    servers: str | Iterable[str],
    *,
    tokens: Path | None = None,
    tls_ca: Path | None = None,
    tls_name: str | None = None,
) -> Graph:
    """Connects to servers, each as HOST:PORT. If a server is gone, another one is asked.

    `tokens`: a file of bearer tokens, of which the first is sent. `tls_ca`: the CA that signs the certificates of the
    servers, in PEM. `tls_name`: the host name in these certificates [default: localhost].
    """
    named = [servers] if isinstance(servers, str) else list(servers)
    options: dict[str, Option] = {"server": named, "tokens": tokens, "tls_ca": tls_ca, "tls_name": tls_name}
    tokens_file, ca_file = (None if path is None else os.fspath(path) for path in (tokens, tls_ca))
    graph = _webstrata.Graph.connect(named, tokens_file, ca_file, tls_name)
    return Graph(graph, _command.words(options), None)


def build(
    inputs: Path | Iterable[Path], out: Path, *, progress: Progress | None = None, **options: Option
) -> dict[str, Any]:
    """Builds a store from crawl files, and returns the report of the build.

    `memory`: as "1G". `links`: kinds of links besides anchors, as ["redirects", "embeds"]. All options are those of
    `webstrata build`, with _ for -. `progress` is called with the stage, the part that is done and the captures read;
    `webstrata.bar()` makes a bar. Ctrl-C stops the build, and leaves the store as it was.
    """
    return _command.answer(["build", *_paths(inputs)], {**options, "out": out}, progress)


def update(
    store: Path, inputs: Path | Iterable[Path], *, progress: Progress | None = None, **options: Option
) -> dict[str, Any]:
    """Adds the captures of another crawl to a store. Options: `webstrata update`; see `build`.

    If rows are merged after it, the report has the report of the merge as `merge`."""
    report, *merged = _command.rows(["update", store, *_paths(inputs)], options, progress)
    return {**report, "merge": merged[0] if merged else None}


def merge(store: Path, *, progress: Progress | None = None, **options: Option) -> dict[str, Any]:
    """Merges rows of a store into one. Options: `webstrata merge`; see `build`."""
    return _command.answer(["merge", store], options, progress)


def run(*words: Path, progress: Progress | None = None, **options: Option) -> str:
    """Runs any command of the command line, and returns what it prints: `run("cells", "store")`."""
    return _command.run(words, options, progress)


def _paths(inputs: Path | Iterable[Path]) -> list[Path]:
    return [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)

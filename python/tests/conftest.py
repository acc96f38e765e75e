"""Crawls with their slow oracle, and servers of them."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import pytest
import webstrata

PROGRAM = str(Path(sys.executable).parent / "webstrata")


@dataclass
class Crawl:
    """Captures by page and time: the links, or None where they are unknown."""

    captures: dict[str, dict[int, set[str] | None]] = field(default_factory=dict)

    def urls(self) -> list[str]:
        links = (links or () for page in self.captures.values() for links in page.values())
        return sorted({*self.captures, *(url for found in links for url in found)})

    def at(self, page: str, time: int) -> set[str] | None:
        """The links as of a time; None where they are unknown."""
        times = [own for own in self.captures.get(page, {}) if own <= time]
        return self.captures[page][max(times)] if times else set()

    def last_known(self, page: str, time: int) -> set[str]:
        """The links of the latest capture up to a time whose links are known."""
        known = [own for own, links in self.captures[page].items() if own <= time and links is not None]
        return self.captures[page][max(known)] or set() if known else set()

    def is_unknown(self, page: str, start: int, end: int) -> bool:
        """Whether the links of a capture are unknown."""
        return any(links is None for time, links in self.captures[page].items() if start <= time <= end)

    def seen(self, page: str, start: int, end: int) -> set[str]:
        captures = self.captures.get(page, {}).items()
        return {url for time, links in captures if start <= time <= end for url in links or ()}

    def runs(self, page: str) -> set[tuple[str, int, int]]:
        """Links with the first and last of consecutive known captures that have them."""
        known = sorted((time, links) for time, links in self.captures.get(page, {}).items() if links is not None)
        found, open_runs = set(), {}
        for before, (time, links) in zip([None, *known], known):
            gone = set(open_runs) - links
            found |= {(url, open_runs.pop(url), before[0]) for url in gone}
            for url in links:
                open_runs.setdefault(url, time)
        return found | {(url, first, known[-1][0]) for url, first in open_runs.items()}


def digits(time: int) -> str:
    return datetime.fromtimestamp(time, timezone.utc).strftime("%Y%m%d%H%M%S")


def crawl(seed: int, pages: int = 40, unknown: float = 0.1) -> Crawl:
    chance = random.Random(seed)
    names = [f"http://{host}.example/{page}" for host in ("a", "b", "www.c") for page in range(pages // 3)]
    others = [f"http://elsewhere-{number}.example/" for number in range(20)]
    made = Crawl()
    for page in names:
        links: set[str] = set(chance.sample(names + others, 6))
        for step in sorted(chance.sample(range(2000), chance.randint(1, 12))):
            for _ in range(chance.randint(0, 2)):
                links ^= {chance.choice(names + others)}
            known = chance.random() >= unknown
            made.captures.setdefault(page, {})[1_100_000_000 + step * 86_400] = set(links) if known else None
    return made


def write(made: Crawl, path: Path) -> Path:
    with path.open("w") as file:
        for page, captures in made.captures.items():
            for when, links in captures.items():
                line = {"url": page, "ts": digits(when), **({} if links is None else {"links": sorted(links)})}
                file.write(json.dumps(line) + "\n")
    return path


@pytest.fixture(scope="session")
def made() -> Crawl:
    return crawl(7)


@pytest.fixture(scope="session")
def store(made: Crawl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("crawl")
    report = webstrata.build(write(made, directory / "crawl.jsonl"), directory / "store", workers=1)
    assert report["counts"]["urls"] == len(made.urls())
    return directory / "store"


class Servers:
    """Servers of a store, in processes of their own."""

    def __init__(self, store: Path, directory: Path, count: int) -> None:
        self.addresses, self.processes = [], []
        for number in range(count):
            join = [f"--join={self.addresses[0]}"] if self.addresses else []
            port = free_port()
            command = [PROGRAM, "serve", str(store), f"--listen=127.0.0.1:{port}", *join]
            command += [f"--data={directory / str(number)}", "--memory=64M"]
            self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.addresses.append(f"127.0.0.1:{port}")
        until = time.monotonic() + 30
        while not all(map(self.is_ready, self.addresses)):
            assert time.monotonic() < until, "servers are not ready"
            time.sleep(0.1)

    @staticmethod
    def is_ready(address: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}/readyz", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.fixture(scope="session")
def servers(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    webstrata.run("cells", store)
    running = Servers(store, tmp_path_factory.mktemp("servers"), 1)
    yield running
    running.close()


@pytest.fixture(params=["layers", "cells", "servers"])
def graph(request: pytest.FixtureRequest, store: Path, tmp_path: Path) -> webstrata.Graph:
    """The same graph in each form."""
    if request.param == "servers":
        return webstrata.connect(request.getfixturevalue("servers").addresses)
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    shutil.rmtree(copy / "cells", ignore_errors=True)
    if request.param == "cells":
        webstrata.run("cells", copy)
    return webstrata.open(copy)

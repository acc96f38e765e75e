"""How calls run: threads, Ctrl-C, progress, servers that die, the program that comes with the package."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pyarrow
import pytest
import webstrata
from conftest import PROGRAM, Crawl, Servers

LARGE = "uk:occurrences=20000000,seed=5"


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, float | None, int]] = []
    webstrata.build([], tmp_path / "store", generate="uk:occurrences=6000000,seed=5",
                    progress=lambda stage, part, captures: told.append((stage, part, captures)))
    stages = [stage for stage, _, _ in told]
    assert len(set(stages)) > 1, stages
    assert all(part is None or 0 <= part <= 1 for _, part, _ in told)
    assert max(captures for _, _, captures in told) > 0


def test_an_exception_of_progress_stops_the_job(tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        webstrata.build([], tmp_path / "store", generate=LARGE, progress=stop)
    with pytest.raises(webstrata.Error, match="not a store"):
        webstrata.open(tmp_path / "store")


def test_ctrl_c_stops_a_build(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import webstrata
        print("begin", flush=True)
        try:
            webstrata.build([], {str(tmp_path / "store")!r}, generate={LARGE!r})
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begin\n"
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "stopped\n" and process.wait() == 0
    assert time.monotonic() - began < 10
    with pytest.raises(webstrata.Error, match="not a store"):
        webstrata.open(tmp_path / "store")


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    webstrata.build([], tmp_path / "store", generate="uk:occurrences=6000000,seed=5")
    graph = webstrata.open(tmp_path / "store")
    before, began = counted, time.monotonic()
    matrix = graph.csr()
    seconds = time.monotonic() - began
    stop.set()
    thread.join()
    assert matrix.nnz > 0 and before > 20
    assert counted - before > 100 * seconds, f"{counted - before} in {seconds} s"


def test_answers_go_on_when_a_server_dies(store: Path, made: Crawl, tmp_path: Path) -> None:
    webstrata.run("cells", store)
    running = Servers(store, tmp_path, 3)
    try:
        graph = webstrata.connect(running.addresses)
        before = pyarrow.table(graph.links(made.urls()))
        running.kill(1)
        for _ in range(20):
            assert pyarrow.table(graph.links(made.urls())).equals(before)
    finally:
        running.close()


def test_what_a_failed_command_printed_is_kept(store: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "store"
    shutil.copytree(store, damaged)
    layer = next((damaged / "rows").rglob("ol/part-*.parquet"))
    content = bytearray(layer.read_bytes())
    content[len(content) // 2] ^= 1
    layer.write_bytes(content)
    with pytest.raises(webstrata.Error) as raised:
        webstrata.run("check", damaged)
    assert layer.name in raised.value.printed


def test_the_program_comes_with_the_package(store: Path) -> None:
    assert shutil.which(PROGRAM)
    asked = lambda *words: subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    version = asked("--version")
    assert version.stdout.startswith("webstrata ") and version.returncode == 0
    assert asked("links", store, "http://nowhere.example/").returncode == 1
    assert asked("nonsense").returncode == 2
    assert asked("links", store, "http://a.example/0").stdout.splitlines()

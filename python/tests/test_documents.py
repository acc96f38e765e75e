"""The examples of the book print what the book says."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in sorted((DOCS / "book").rglob("*.md")) if ">>> " in page.read_text(encoding="utf-8")]


def test_pages_have_examples() -> None:
    assert DOCS / "book/programs/python.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_python_prints(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DOCS / "example", tmp_path / "docs/example")
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(
        str(page), module_relative=False, encoding="utf-8", optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert not failed and tried >= 5

"""The examples of the documents print what the documents say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_about_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(
        str(DOCS / "python.md"), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert not failed and tried > 15

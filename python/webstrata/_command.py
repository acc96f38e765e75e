"""Commands of the command line, inside Python."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from . import _webstrata

Path: TypeAlias = "str | os.PathLike[str]"
Option: TypeAlias = "str | int | float | bool | os.PathLike[str] | list[Any] | tuple[Any, ...] | None"
Progress: TypeAlias = "Callable[[str, float | None, int], object]"

# `from` is a word of Python.
_NAMES = {"start": "from", "end": "to"}


def words(options: dict[str, Option]) -> list[str]:
    """Options as words: True is the option alone, a list the option again and again, a tuple its several values."""
    found = []
    for name, value in options.items():
        option = f"--{_NAMES.get(name, name).replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            found.append(option)
        elif isinstance(value, tuple):
            found += [option, *map(_text, value)]
        else:
            for each in value if isinstance(value, list) else [value]:
                # One word, so that a value may begin with a hyphen.
                found.append(f"{option}={_text(each)}")
    return found


def _text(value: Any) -> str:
    return str(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else str(value)


def run(command: Iterable[Path], options: dict[str, Option], progress: Progress | None = None) -> str:
    """What a command prints."""
    return _webstrata.run([*map(_text, command), *words(options)], progress).decode()


def rows(
    command: Iterable[Path], options: dict[str, Option], progress: Progress | None = None
) -> list[dict[str, Any]]:
    """What a command prints as lines of JSON."""
    return [json.loads(line) for line in run(command, {**options, "format": "json"}, progress).splitlines()]


def answer(command: Iterable[Path], options: dict[str, Option], progress: Progress | None = None) -> dict[str, Any]:
    """What a command prints as one JSON object."""
    found: dict[str, Any] = json.loads(run(command, {**options, "format": "json"}, progress))
    return found


def main() -> None:
    """The program `webstrata`."""
    sys.exit(_webstrata.main(["webstrata", *sys.argv[1:]]))


def bar() -> Progress | None:
    """A bar in terminals and notebooks, if tqdm is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    shown = tqdm(total=100, unit="%", leave=False, bar_format="{desc} {bar} {n:.0f} %")

    def tell(stage: str, part: float | None, captures: int) -> None:
        shown.set_description_str(f"{stage}: {captures:,} captures")
        shown.n = round(100 * (part or 0))
        shown.refresh()

    return tell

"""The lessons of ``i learn``: a file each, in the order of their names.

A file begins with its title and its text. Sections follow: ``Task``; ``Arrays``, a line of named arrays for each run
that is compared; ``Needs``, a stage of the program that has to be that of the solution; ``File``, the name of a file
that is there, and its text; ``Hint``, any number of these; ``Solution``, lines as they are typed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

SECTION = re.compile(r"^## (\w+)\n", re.MULTILINE)
ARRAY = re.compile(r"(\w+) = (.*?)(?=\s{3,}\w+ = |$)")


class Lesson(NamedTuple):
    """One lesson, as its file says it; ``key`` is the name of the file."""

    key: str
    title: str
    text: str
    task: str
    arrays: tuple[dict[str, str], ...]
    needs: str
    file: tuple[str, str] | None
    hints: tuple[str, ...]
    solution: tuple[str, ...]


def lessons() -> list[Lesson]:
    """Every lesson, in order."""
    return [_lesson(path) for path in sorted(Path(__file__).parent.glob("*.md"))]


def _lesson(path: Path) -> Lesson:
    first, *rest = SECTION.split(path.read_text("utf-8"))
    parts: dict[str, list[str]] = {}
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        parts.setdefault(name, []).append(text.strip("\n"))
    title, _, text = first.partition("\n")
    runs = parts.get("Arrays", [""])[0].splitlines()
    name, _, body = parts.get("File", [""])[0].partition("\n")
    return Lesson(
        path.stem,
        title.removeprefix("# "),
        text.strip("\n"),
        parts["Task"][0],
        tuple(dict(ARRAY.findall(line)) for line in runs),
        parts.get("Needs", [""])[0],
        (name, f"{body}\n") if name else None,
        tuple(parts.get("Hint", ())),
        tuple(parts["Solution"][0].splitlines()),
    )

"""Golden programs: one Markdown file a program, one section a landing, or its diagnostic.

A file is an optional title and remarks, `# source` with the program in a fence, and then what
`compile_landings` returns, in its order. Start one with the source alone and run `pytest --update`.
"""

import importlib
import re
from pathlib import Path

import pytest

from tests.rewritten import settle

FOLDER = Path(__file__).parent
SOURCE = re.compile(r"^# source\n+```\w*\n(?P<program>.*?)^```$\n?", re.DOTALL | re.MULTILINE)
LANGUAGES = {"c": "c", "cuda": "cuda"}


def compile_landings(source: str) -> dict[str, str]:
    """Return the sections of a program in order: its landings and its C, or `error` alone."""
    landings: dict[str, str] = importlib.import_module("ilang.core.pipeline").landings(source)
    return landings


def render(sections: dict[str, str]) -> str:
    """Write sections as Markdown, each under a heading and in a fence."""
    return "".join(
        f"\n# {name}\n```{LANGUAGES.get(name, '')}\n{text.rstrip()}\n```\n"
        for name, text in sections.items()
    )


@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.md")), ids=lambda path: path.stem)
def test_golden(path: Path, update: bool) -> None:
    written = path.read_text("utf-8")
    source = SOURCE.search(written)
    assert source, "a golden file needs a `# source` section with a fenced program"
    settle(path, written[: source.end()] + render(compile_landings(source["program"])), update)

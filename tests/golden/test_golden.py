"""Golden programs: one Markdown file a program, one section a landing, or its diagnostic.

A file is an optional title and remarks, `# source` with the program in a fence, and then what
`compile_landings` returns, in its order. Start one with the source alone and run `pytest --update`.
"""

import re
from pathlib import Path

import pytest

from ilang import Error
from ilang.codegen.targets.c import emit
from ilang.core.pipeline import graph_of, infer, landings, lower, text_component
from tests.rewritten import settle

FOLDER = Path(__file__).parent
SOURCE = re.compile(r"^# source\n+```\w*\n(?P<program>.*?)^```$\n?", re.DOTALL | re.MULTILINE)
LANGUAGES = {"c": "c", "cuda": "cuda"}
KERNEL = re.compile(
    r"^/\*(?: iterations [^\n]*|\n(?: \*(?!/)[^\n]*\n)+ )\*/\nstatic void program_k\d+(?:_loop\d+)?\(.*?^\}\n",
    re.DOTALL | re.MULTILINE,
)


def compile_landings(source: str) -> dict[str, str]:
    """Return the sections of a program in order: its landings and its C, or `error` alone."""
    try:
        return {**landings(source), "c": kernels(source)}
    except Error as error:
        return {"error": str(error)}


def kernels(source: str) -> str:
    """The C of a program's loops; checks, workspace and entry are the same for every program and left out."""
    text = emit(lower(infer(graph_of(text_component(source), "program"))))
    return "\n".join(KERNEL.findall(text))


def render(sections: dict[str, str]) -> str:
    """Write sections as Markdown, each under a heading and in a fence."""
    return "".join(
        f"\n# {name}\n```{LANGUAGES.get(name, '')}\n{text.rstrip()}\n```\n"
        for name, text in sections.items()
    )


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("**/*.md")), ids=lambda path: str(path.relative_to(FOLDER))
)
def test_golden(path: Path, update: bool) -> None:
    written = path.read_text("utf-8")
    source = SOURCE.search(written)
    assert source, "a golden file needs a `# source` section with a fenced program"
    sections = compile_landings(source["program"].rstrip("\n"))
    assert ("error" in sections) == (path.parent.name == "errors")
    settle(path, written[: source.end()] + render(sections), update)

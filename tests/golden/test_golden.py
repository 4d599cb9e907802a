"""Golden programs: one Markdown file a program, one section a stage, or its diagnostic.

A file is an optional title and remarks, `# source` with the program in a fence, an optional `# structure` with facts
about its kernels that its speed depends on (`structure.py`), and then what `compile_stages` returns, in its order.
Those in ``cuda/`` are for a GPU, all others for a CPU.
Start one with the source alone and run `pytest --update`; facts are written by hand and stay as they are.
"""

import re
from pathlib import Path

import pytest

from ilang import Error
from ilang.codegen.targets import c, cuda
from ilang.core.machine import MACHINES
from ilang.core.pipeline import infer, lower, program_graph, stage_texts, text_program
from tests.golden.structure import broken
from tests.rewritten import settle

FOLDER = Path(__file__).parent
SOURCE = re.compile(
    r"^# source\n+```\w*\n(?P<program>.*?)^```$\n?"
    r"(?:\n*^# structure\n+```\w*\n(?P<facts>.*?)^```$\n?)?",
    re.DOTALL | re.MULTILINE,
)
LANGUAGES = {"c": "c", "cuda": "cuda"}
KERNEL = re.compile(
    r"^(?:/\*(?: iterations [^\n]*|\n(?: \*(?!/)[^\n]*\n)+ )\*/\n)?"
    r"static [^\n]*void (?:__launch_bounds__\(\d+, 1\)\n)?\w+_k\d+\w*\(.*?^\}\n",
    re.DOTALL | re.MULTILINE,
)


def compile_stages(source: str, target: str) -> dict[str, str]:
    """Return the sections of a program in order: its stages and its text, or `error` alone."""
    try:
        return {**stage_texts(source, MACHINES[target]), target: kernels(source, target)}
    except Error as error:
        return {"error": str(error)}


def kernels(source: str, target: str) -> str:
    """The text of a program's loops; checks, workspace and entry are the same for every program and left out."""
    program = lower(infer(program_graph(text_program(source))), MACHINES[target])
    text = cuda.emit(program) if target == "cuda" else c.emit(program)
    return "\n".join(KERNEL.findall(text))


def render(sections: dict[str, str]) -> str:
    """Write sections as Markdown, each under a heading and in a fence; one that changed nothing says so."""
    lines, before = [], ("", "")
    for name, text in sections.items():
        if text == before[1]:
            lines.append(f"\n# {name}\nThe same as {before[0]}.\n")
        else:
            lines.append(f"\n# {name}\n```{LANGUAGES.get(name, '')}\n{text.rstrip()}\n```\n")
            before = (name, text)
    return "".join(lines)


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("**/*.md")), ids=lambda path: str(path.relative_to(FOLDER))
)
def test_golden(path: Path, update: bool) -> None:
    written = path.read_text("utf-8")
    source = SOURCE.search(written)
    assert source, "a golden file needs a `# source` section with a fenced program"
    program = source["program"].rstrip("\n")
    target = "cuda" if path.parent.name == "cuda" else "c"
    sections = compile_stages(program, target)
    assert ("error" in sections) == (path.parent.name == "errors")
    settle(path, written[: source.end()] + render(sections), update)
    if source["facts"]:
        shaped = infer(program_graph(text_program(program)))
        assert not broken(source["facts"].splitlines(), shaped, lower(shaped, MACHINES[target]))

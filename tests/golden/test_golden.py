"""Golden programs: one Markdown file a program, one section a stage, or its diagnostic.

A file is an optional title and remarks, `# source` with the program in a fence, an optional `# structure` with facts
about its kernels that its speed depends on (`structure.py`), and then what `compile_stages` returns, in its order.
Those in ``cuda/`` are for a GPU, all others for a CPU. What no text can say is a ``python`` fence that makes ``graph``
with ``tests/mixing.py``.
Start one with the source alone and run `pytest --update`; facts are written by hand and stay as they are.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from ilang import Error
from ilang.codegen.targets import c, cuda
from ilang.core.ir.graph import Graph
from ilang.core.machine import MACHINES, Machine
from ilang.core.pipeline import graph_texts, infer, lower, program_graph, stage_texts, text_program
from tests.golden.structure import broken
from tests.mixing import Mixing
from tests.rewritten import settle

FOLDER = Path(__file__).parent
SOURCE = re.compile(
    r"^# source\n+```(?P<language>\w*)\n(?P<program>.*?)^```$\n?"
    r"(?:\n*^# structure\n+```\w*\n(?P<facts>.*?)^```$\n?)?",
    re.DOTALL | re.MULTILINE,
)
LANGUAGES = {"c": "c", "cuda": "cuda"}
KERNEL = re.compile(
    r"^(?:/\*(?: iterations [^\n]*|\n(?: \*(?!/)[^\n]*\n)+ )\*/\n)?"
    r"static [^\n]*void (?:__launch_bounds__\([^\n]+\)\n)?\w+_k\d+\w*\(.*?^\}\n",
    re.DOTALL | re.MULTILINE,
)


def compile_stages(source: str | Graph, target: str) -> dict[str, str]:
    """Return the sections of a program in order: its stages and its text, or `error` alone."""
    machine = MACHINES[target]
    try:
        return {**_stages(source, machine), target: kernels(graph_of(source), target)}
    except Error as error:
        return {"error": str(error)}


def _stages(source: str | Graph, machine: Machine) -> dict[str, str]:
    """The stages of a program."""
    if isinstance(source, Graph):
        return graph_texts(source, machine)
    return stage_texts(source, machine)


def graph_of(source: str | Graph) -> Graph:
    """The graph of a program, which a file may make itself."""
    return source if isinstance(source, Graph) else program_graph(text_program(source))


def graph_in(path: Path) -> Graph:
    """The graph of the program in a golden file."""
    source = SOURCE.search(path.read_text("utf-8"))
    assert source
    text = source["program"].rstrip("\n")
    return graph_of(made(text) if source["language"] == "python" else text)


def texts(*folders: Path) -> list[Path]:
    """The golden files of some folders whose programs are texts, so that what is printed can be written back."""
    paths = sorted(path for folder in folders for path in folder.glob("*.md"))
    return [path for path in paths if "# source\n```python" not in path.read_text("utf-8")]


def made(code: str) -> Graph:
    """The graph that Python makes."""
    names: dict[str, Any] = {"Mixing": Mixing}
    exec(code, names)
    graph = names["graph"]
    assert isinstance(graph, Graph)
    return graph


def kernels(graph: Graph, target: str) -> str:
    """The text of a program's loops; checks, workspace and entry are the same for every program and left out."""
    program = lower(infer(graph), MACHINES[target])
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
    text = source["program"].rstrip("\n")
    program = made(text) if source["language"] == "python" else text
    target = "cuda" if path.parent.name == "cuda" else "c"
    sections = compile_stages(program, target)
    assert ("error" in sections) == (path.parent.name == "errors")
    settle(path, written[: source.end()] + render(sections), update)
    if source["facts"]:
        shaped = infer(graph_of(program))
        assert not broken(source["facts"].splitlines(), shaped, lower(shaped, MACHINES[target]))

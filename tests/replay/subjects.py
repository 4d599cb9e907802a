"""The programs that are replayed, each a line: what it is, its inputs, and its text.

A line begins with one of the words of ``KINDS``. The inputs of a component are ``f32[.,.];i64[2,3]``, where ``.`` is an
extent that comes at run time, and ``-`` leaves all of them to the program; those of a definition are ``x=64|2;t=64|1``,
and ``lr:0.1`` is a value of its configuration. The text is ``FILE.i:NAME``, a golden file, or the program itself, in
which ``⏎`` stands for the end of a line; before that of a definition stands its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ilang.codegen.session.function import Function
from ilang.codegen.session.model import Model
from ilang.core import pipeline
from ilang.core.ir.graph import Graph
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import Module
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source
from ilang.core.transform.forward import directional
from ilang.core.transform.reverse import gradient
from tests.golden.test_golden import graph_in

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("program", "gradient", "tangent", "definition", "project")
NEWLINE = "⏎"
NAMED = re.compile(r"(\w+): (.*)", re.DOTALL)


@dataclass(frozen=True)
class Inputs:
    """The types and ranks of the inputs of a component, and extents where all are fixed; None leaves them open."""

    dtypes: list[str | None] | None = None
    ranks: list[int | None] | None = None
    shapes: list[tuple[int, ...]] | None = None

    @staticmethod
    def read(text: str) -> Inputs:
        """Those of a line."""
        if text == "-":
            return Inputs()
        words = [word.rstrip("]").partition("[") for word in text.split(";")] if text else []
        dims = [tuple(inner.split(",")) if inner else () for _, _, inner in words]
        numbers = [tuple(map(int, each)) for each in dims if "." not in each]
        shapes = numbers if len(numbers) == len(dims) else None
        return Inputs([dtype for dtype, _, _ in words], [len(each) for each in dims], shapes)


@dataclass(frozen=True)
class Subject:
    """A program of a line."""

    kind: str
    given: str
    text: str

    @staticmethod
    def read(line: str) -> Subject:
        """That of a line."""
        kind, given, text = line.split(" ", 2)
        assert kind in KINDS, line
        return Subject(kind, given, text.replace(NEWLINE, "\n"))

    def line(self) -> str:
        """The line."""
        return " ".join((self.kind, self.given, self.text.replace("\n", NEWLINE)))

    @property
    def inputs(self) -> Inputs:
        """The inputs of a component."""
        return Inputs.read(self.given)

    @cached_property
    def graph(self) -> Graph:
        """The graph of a component."""
        if self.text.endswith(".md"):
            return graph_in(ROOT / self.text)
        path, _, name = self.text.partition(":")
        if path.endswith(".i"):
            return pipeline.module_graph(module_of(path), name)
        return pipeline.program_graph(pipeline.text_program(self.text))

    def file(self) -> Path | None:
        """The file that it is in."""
        path = self.text.partition(":")[0]
        return ROOT / path if path.endswith((".i", ".md")) else None

    def function(self) -> Function:
        """The definition of a file, or of a text that has its name before it."""
        named = NAMED.fullmatch(self.text)
        if named is not None:
            return Function(Model(parse_module(Source("program.i", named[2]))), named[1])
        path, _, name = self.text.partition(":")
        return Function(Model(module_of(path)), name)

    def shapes(self) -> dict[str, str]:
        """The shapes of the inputs of definitions, by name."""
        return dict(word.split("=") for word in self.given.split(";") if "=" in word)

    def configuration(self) -> dict[str, float]:
        """The values of their configuration, by name."""
        pairs = (word.split(":") for word in self.given.split(";") if ":" in word)
        return {name: float(value) if "." in value else int(value) for name, value in pairs}

    def shaped(self) -> Shaped:
        """The inferred program: that of a component or its derivative, or of a run of a definition."""
        if self.kind == "definition":
            return self.function().shaped(self.shapes(), self.configuration())
        given = self.inputs
        shaped = pipeline.infer(self.graph, given.dtypes, given.ranks, given.shapes)
        if self.kind == "program":
            return shaped
        wrt = [
            number
            for number, value in enumerate(shaped.inputs)
            if shaped.tensors[value].dtype in ("f32", "f64")
        ]
        return gradient(shaped, wrt) if self.kind == "gradient" else directional(shaped, wrt)


def module_of(path: str) -> Module:
    """The definitions of a file."""
    return parse_module(Source(Path(path).name, (ROOT / path).read_text("utf-8")))


def subjects(*groups: str) -> list[Subject]:
    """The programs of some groups, or of all that are replayed in every run."""
    chosen = groups or [name for name in group_names() if not name.startswith(DEEP)]
    return [Subject.read(line) for name in chosen for line in lines_of(name)]


PROGRAMS = Path(__file__).with_name("programs")
DEEP = "deep"
"""Groups whose names begin with it are replayed with ``--deep`` alone."""


def group_names() -> list[str]:
    """The groups of programs: files of ``programs``."""
    return sorted(path.stem for path in PROGRAMS.glob("*.txt"))


def lines_of(group: str) -> list[str]:
    """The lines of a group."""
    return (PROGRAMS / f"{group}.txt").read_text("utf-8").splitlines()

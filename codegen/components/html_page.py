"""An explanation as one page of HTML, for a browser: formulas, data flow, loops and code beside each other.

Every line knows the tensors and extents that it is of (``core/explain/marks.py``), as attributes: what it
``data-gives``, what it ``data-reads``, and the extents ``data-along`` which it goes. ``html_page.js`` highlights what
has the same; nothing compares texts. Below stand the stages of the compiler, each with what it changed. The page needs
no network.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from ilang.core import pipeline
from ilang.core.explain.dataflow import FlowGraph, flow_of_schedule
from ilang.core.explain.dataflow_svg import picture
from ilang.core.explain.first_page import edges_text
from ilang.core.explain.marks import LineMark
from ilang.core.explain.page import cost_text, signature
from ilang.core.machine import MACHINES
from ilang.core.markup import escaped

if TYPE_CHECKING:
    import os

    from ilang.core.explain.explanation import Explanation
    from ilang.core.explain.formulas import Formula
    from ilang.core.explain.meaning import LoopLine
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

Line = tuple[str, LineMark]
ALIKE = 0.2
"""The share of lines that a stage has in common with the one before, from which on it is shown as a difference."""
CODE = {"c": "C", "cuda": "CUDA"}
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="ilang">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1><code>{title}</code></h1>"""
_START = _HEAD.partition('<meta name="viewport"')[0].encode()
"""The beginning of every page; a file with another beginning is not replaced."""


def html_page(graph: Graph, shaped: Shaped, target: str = "c", given: bool = False) -> str:
    """The page on a program for a target, whose code stands beside the C.

    Args:
        graph: the program before inference.
        shaped: what was inferred of it.
        target: "c" or "cuda".
        given: whether shapes of the inputs were given.
    """
    machine = MACHINES[target]
    page = pipeline.explain_shaped(graph, shaped, given=given, machine=machine)
    flow = flow_of_schedule(pipeline.schedule(shaped, machine))
    head = _HEAD.format(title=escaped(signature(shaped)), style=_file("css"))
    body = _Body(shaped, page, flow)
    panes = f'<main class="panes">{body.panes(target)}</main>'
    script = f"<script>{_file('js')}</script>"
    parts = (head, *_facts(page), body.chips(), "</header>", panes)
    return "\n".join((*parts, _stages(graph, shaped, target), script, "</body>", "</html>", ""))


def write_html_page(
    path: str | os.PathLike[str],
    graph: Graph,
    shaped: Shaped,
    target: str = "c",
    given: bool = False,
) -> None:
    """Write the page on a program to a file.

    Raises:
        DataError: E0725 (``path`` is none), E0731, E0732, E0768 (the file cannot be written, or is of another kind).
    """
    from ilang.codegen.system.files import path_text
    from ilang.codegen.system.outputs import FileKind, begins_with, write_output

    text = html_page(graph, shaped, target, given).encode()
    kind = FileKind("a page of `i explain`", begins_with(_START))
    write_output(path_text(path), kind, lambda out: out.write(text))


def _file(ending: str) -> str:
    return (Path(__file__).parent / f"html_page.{ending}").read_text("utf-8")


class _Body:
    """The parts of the page that are linked with each other.

    A link is to a tensor of the data flow, or to an extent of the formulas and the plain loops: what is of no other
    part of the page, such as the number of chunks of a sum, has none.
    """

    def __init__(self, shaped: Shaped, page: Explanation, flow: FlowGraph) -> None:
        self.shaped = shaped
        self.page = page
        self.flow = flow
        along = [each.along for each in page.meaning.formulas]
        along += [each.along for each in page.meaning.loops]
        self.extents = dict.fromkeys(name for names in along for name in names)
        self.tensors = {node.tensor: node.name for node in flow.nodes}

    def panes(self, target: str) -> str:
        """The parts that stand side by side: formulas and loops, the data flow, code."""
        meaning = self.page.meaning
        columns = (
            (
                _pane("formula", "Formula", self._lines(map(_formula_line, meaning.formulas))),
                _pane("loops", "Plain loops", self._lines(map(_looped, meaning.loops))),
                _pane(
                    "runs", "How it runs", self._lines(map(_looped, self.page.execution.running))
                ),
            ),
            (_pane("flow", "Data flow", f'<div class="scroll">{picture(self.flow)}</div>'),),
            [_pane(each, CODE[each], self._code(each)) for each in dict.fromkeys((target, "c"))],
        )
        return "".join(f"<div>{''.join(each)}</div>" for each in columns)

    def chips(self) -> str:
        """A button for each input, each tensor with a formula, and each extent: it highlights what is of it."""
        given = [row.name for row in self.page.inputs]
        given += [name for each in self.page.meaning.formulas for name in each.gives]
        chips = [
            self._chip("chip", self.tensors[name], LineMark(gives=(name,)))
            for name in dict.fromkeys(given)
            if name in self.tensors
        ]
        for size in self.shaped.sizes:
            if size.name in self.extents:
                text = size.name if size.fixed is None else f"{size.name} = {size.fixed}"
                chips.append(self._chip("chip extent", text, LineMark(along=(size.name,))))
        theme = '<button id="theme" type="button">light or dark</button>'
        return f'<nav aria-label="tensors and extents">{"".join(chips)}{theme}</nav>'

    def _chip(self, kind: str, text: str, mark: LineMark) -> str:
        head = f'<button class="{kind}" type="button" aria-pressed="false"'
        return f"{head}{self._attributes(mark)}>{escaped(text)}</button>"

    def _attributes(self, mark: LineMark) -> str:
        known: tuple[Container[str], ...] = (self.tensors, self.tensors, self.extents)
        links = [[n for n in names if n in k] for names, k in zip(mark, known, strict=True)]
        words = zip(("gives", "reads", "along"), links, strict=True)
        return "".join(
            f' data-{word}="{escaped(" ".join(names))}"' for word, names in words if names
        )

    def _lines(self, lines: Iterable[Line]) -> str:
        """Lines as preformatted text, those of something with its attributes."""
        shown = list[str]()
        for text, mark in lines:
            attributes = self._attributes(mark)
            line = f'<span class="line"{attributes}>{escaped(text)}</span>'
            shown.append(line if attributes else escaped(text))
        return "<pre>{}</pre>".format("\n".join(shown))

    def _code(self, target: str) -> str:
        """The code for a target: library functions folded, then the lines from the first of a function that runs on."""
        from ilang.codegen.targets import c, cuda

        program = pipeline.lower(self.shaped, MACHINES[target])
        lines = c.emit_marked(program) if target == "c" else cuda.emit_marked(program)
        first = next((n for n, (_, mark) in enumerate(lines) if any(mark)), 0)
        while 0 < first and lines[first - 1][0]:
            first -= 1
        summary = f"<summary>{first} lines before it: declarations and helper functions</summary>"
        before = f"<details>{summary}{self._lines(lines[:first])}</details>"
        return before + self._lines(lines[first:])


def _pane(name: str, title: str, content: str) -> str:
    head = f'<section id="{name}" tabindex="0" aria-label="{title}"><h2>{title}</h2>'
    return f"{head}{content}</section>"


def _formula_line(formula: Formula) -> Line:
    definition = f"{formula.definition}:  " if formula.definition else ""
    return f"{definition}{formula.text}", LineMark(formula.gives, formula.reads, formula.along)


def _looped(line: LoopLine) -> Line:
    remark = f"    {line.definition}" if line.definition else ""
    return "  " * line.depth + line.text + remark, LineMark(line.gives, line.reads, line.along)


def _facts(page: Explanation) -> Iterator[str]:
    """The lines on work, memory, and how the program runs."""
    notes = [("edges", edges_text(page)), *(("note", note) for note in page.notes)]
    for name, text in (("work", cost_text(page.execution.cost)), ("runs as", page.runs), *notes):
        if text:
            yield f"<p><b>{name}</b> {escaped(text)}</p>"


def _stages(graph: Graph, shaped: Shaped, target: str) -> str:
    """The stages of the compiler, each with what it changed."""
    before: list[str] = []
    folds = list[str]()
    for name, says, text in pipeline.described_stages(graph, shaped, MACHINES[target]):
        lines = text.rstrip("\n").split("\n")
        folds.append(_stage(name, says, before, lines))
        before = lines
    return f'<section id="stages"><h2>The way down</h2>{"".join(folds)}</section>'


def _stage(name: str, says: str, before: Sequence[str], lines: Sequence[str]) -> str:
    """One stage: its text, or its lines beside those of the one before where they have many in common."""
    head = f"<b>{escaped(name)}</b> {escaped(says)}"
    if lines == before:
        return f'<p class="same">{head} <small>no change</small></p>'
    matcher = SequenceMatcher(None, before, lines, autojunk=False)
    if matcher.ratio() < ALIKE:
        return (
            f"<details><summary>{head}</summary><pre>{escaped(chr(10).join(lines))}</pre></details>"
        )
    shown, added, removed = list[str](), 0, 0
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            shown += map(escaped, lines[c:d])
            continue
        shown += [f"<del>{escaped(line)}</del>" for line in before[a:b]]
        shown += [f"<ins>{escaped(line)}</ins>" for line in lines[c:d]]
        removed, added = removed + b - a, added + d - c
    count = f" <small>+{added} −{removed}</small>"
    text = "\n".join(shown)
    return f"<details><summary>{head}{count}</summary><pre>{text}</pre></details>"

"""An explanation drawn for a person: tables, and one color per axis through every section.

The only user of rich; nothing imports this module unless the output is a terminal.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.style import Style
from rich.text import Text

from ilang.core.explain.explanation import Explanation
from ilang.core.explain.occupancy import occupancy_table
from ilang.core.explain.page import (
    GAP,
    cost_text,
    operation_tables,
    port_cells,
    projection_tables,
    step_cells,
    story_rows,
    view_cells,
)
from ilang.icli.fold import cells
from ilang.icli.paint import axis_color

QUIET, STRONG, NAME = "dim", "bold", "bold"
LOOP_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_']*|[^A-Za-z_]+")
MARGIN = "  "
"""The margin on the left of every line."""

RULE = "─"

KEYWORDS = frozenset(("for", "in", "if", "and"))


def explanation_text(explanation: Explanation, width: int | None = None) -> str:
    """The whole page with the codes that draw it; lines are as long as they are, but rules end at ``width``."""
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        color_system="standard",
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    sections = _Sheet(explanation, width).sections()
    for number, lines in enumerate(sections):
        if number:
            console.print()
        for line in lines:
            console.print(Text.assemble(MARGIN, line) if line else line, soft_wrap=True)
    return re.sub(r"[ \t]+\n", "\n", out.getvalue())


FOLDED = r"[ΣΠ]_|\b(?:sum|prod|max|min|all|any|odd|argmax|argmin)_"
PAINTED = re.compile(
    r"^(?P<aside>(?:work|keeps|runs as|note|edges|more) .*(?:\n {9}.*)*)"
    r"|(?<=\S)(?P<definition>    [^\s\[=][^\[=\n]*)$|\b(?P<word>for|in(?= .*\d\.\.))\b|(?P<text>\S+~\S*)"
    rf"|(?:{FOLDED})(?P<folded>[a-z,]+)|(?<![\w'])(?P<letter>[a-z])(?![\w\[(])",
    re.MULTILINE,
)
"""Parts of a first page: facts, definitions on the right and words of loops are quiet; letters are axes."""
LETTERS = re.compile(r"\bfor (?:the first )?([a-z])\b|\[([^\]]*)\]")
"""The places of axes on a page: after ``for``, and in brackets."""


def painted(page: str) -> str:
    """A first page with codes: a color for each axis, a quiet one for what is beside the program."""
    texts = (loop + inside for loop, inside in LETTERS.findall(page))
    axes = {word for text in texts for word in re.findall(r"(?<!\w)[a-z](?!\w)", text)}

    def paint(match: re.Match[str]) -> str:
        if match.lastgroup in ("aside", "definition", "word"):
            return Style.parse(QUIET).render(match[0])
        start = match.start(match.lastgroup or 0) - match.start()
        letters = (
            Style.parse(axis_color(c)).render(c) if c in axes else c for c in match[0][start:]
        )
        return match[0][:start] + "".join(letters)

    return PAINTED.sub(paint, page)


class _Sheet:
    """One page."""

    def __init__(self, explanation: Explanation, width: int | None) -> None:
        self.page = explanation
        self.width = width
        self.tensors = {row.name for row in (*explanation.inputs, *explanation.outputs)}

    def sections(self) -> Iterable[Sequence[Text]]:
        """The sections from top to bottom, as lines."""
        page = self.page
        ports = [port_cells(port) for port in (*page.inputs, *page.outputs)]
        if ports:
            yield self._table(("tensor", "shape", "axes", "type"), [self._port(p) for p in ports])
        for title, *stages in operation_tables(page):
            yield self._table(title, [[Text(stage, QUIET), Text(says)] for stage, says in stages])
        views = [[Text(view.name, NAME), *map(Text, view_cells(view)[1:])] for view in page.views]
        if views:
            yield self._table(("view", "of"), views)
        steps = [step_cells(step) for step in page.steps]
        if steps:
            yield self._table(("step", "expression", "says", ""), [self._step(s) for s in steps])
        for head, *rows in projection_tables(page):
            yield self._table(
                head, [self._projection(row) for row in rows], [_color(axis) for axis in head[1:]]
            )
        story = story_rows(page)
        if story:
            inferred = [[Text(subject, NAME), Text(says)] for subject, says in story]
            yield self._table(("inferred", "from"), inferred)
        if page.execution.loops:
            yield list(self._loops().split("\n"))
        if page.execution.occupancy:
            names, *kernels = occupancy_table(page.execution.occupancy)
            cells = [[Text(kernel, NAME), *map(Text, rest)] for kernel, *rest in kernels]
            yield self._table(names, cells)
        yield [Text(line, QUIET) for line in (cost_text(page.execution.cost), *page.notes)]

    def _table(
        self, heads: Sequence[str], rows: Sequence[Sequence[Text]], colors: Sequence[str] = ()
    ) -> list[Text]:
        """Aligned lines: the heads, a rule, the rows."""
        shades = [QUIET, *(color or QUIET for color in colors)]
        shades += [QUIET] * (len(heads) - len(shades))
        titles = [Text(head, shade) for head, shade in zip(heads, shades, strict=False)]
        widths = [max(cells(c.plain) for c in column) for column in zip(titles, *rows, strict=True)]
        whole = sum(widths) + len(GAP) * (len(widths) - 1)
        if self.width is not None:
            whole = min(whole, self.width - len(MARGIN))
        rule = Text(RULE * whole, QUIET)
        return [_aligned(titles, widths), rule, *(_aligned(row, widths) for row in rows)]

    def _port(self, cells: Sequence[str]) -> list[Text]:
        name, shape, letters, dtype = cells
        return [Text(name, NAME), Text(shape), _letters(letters), Text(dtype, QUIET)]

    def _step(self, cells: Sequence[str]) -> list[Text]:
        number, text, words, remark = cells
        return [Text(number, QUIET), _letters(text, NAME), _words(words), Text(remark, QUIET)]

    def _projection(self, cells: Sequence[str]) -> list[Text]:
        name, *marks, remark = (cell.strip() for cell in cells)
        shown = [Text(mark, QUIET if mark == "·" else STRONG) for mark in marks]
        return [Text(name, NAME), *shown, Text(remark, QUIET)]

    def _loops(self) -> Text:
        shown = Text()
        variables = frozenset(re.findall(r"\bfor (\S+) in", self.page.execution.loops))
        for match in LOOP_WORD.finditer(self.page.execution.loops.rstrip("\n")):
            word = match.group()
            if word in KEYWORDS:
                shown.append(word, QUIET)
            elif word in self.tensors and word not in variables:
                shown.append(word, NAME)
            else:
                shown.append(word, _color(word[0]) if word in variables else "")
        return shown


def _aligned(row: Sequence[Text], widths: Sequence[int]) -> Text:
    """Cells side by side, each as wide as its column."""
    line = Text()
    for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
        line.append(GAP if number else "")
        line.append_text(cell)
        line.append(" " * (width - cells(cell.plain)))
    line.rstrip()
    return line


def _letters(text: str, style: str = "") -> Text:
    """A text in which every axis letter has its color, wherever it stands."""
    shown = Text(style=style)
    for c in text:
        shown.append(c, _color(c))
    return shown


def _words(text: str) -> Text:
    """A sentence in which the axes it names have their colors."""
    shown = Text()
    for word in re.split(r"([ ,])", text):
        shown.append(word, _color(word))
    return shown


def _color(word: str) -> str:
    """The color of an axis letter; none for any other word."""
    return axis_color(word) if len(word) == 1 and "a" <= word <= "z" else ""

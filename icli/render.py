"""An explanation drawn for a person: tables, and one color per axis through every section.

The only user of rich; nothing imports this module unless the output is a terminal.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ilang.core.explanation import Explanation
from ilang.icli.palette import axis_color
from ilang.icli.plain import cost_text, port_cells, projection_tables, step_cells, story_rows

QUIET, STRONG, NAME = "dim", "bold", "bold"
LOOP_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_']*|[^A-Za-z_]+")
BELOW = (0, 0, 1, 2)
"""Padding of a section: a blank line below it, two blanks on its left."""

KEYWORDS = frozenset(("for", "in", "if", "and"))


def explanation_text(explanation: Explanation, width: int | None = None) -> str:
    """The whole page with the codes that draw it, for a terminal of this width."""
    sheet = _Sheet(explanation)
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        color_system="standard",
        width=width or max(40, shutil.get_terminal_size((100, 24)).columns),
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in sheet.parts():
        console.print(part)
    return re.sub(r"[ \t]+\n", "\n", out.getvalue())


class _Sheet:
    """One page."""

    def __init__(self, explanation: Explanation) -> None:
        self.page = explanation
        self.tensors = {row.name for row in (*explanation.inputs, *explanation.outputs)}

    def parts(self) -> Iterable[RenderableType]:
        page = self.page
        ports = [port_cells(port) for port in (*page.inputs, *page.outputs)]
        if ports:
            yield self._table(("tensor", "shape", "axes", "type"), [self._port(p) for p in ports])
        steps = [step_cells(step) for step in page.steps]
        if steps:
            yield self._table(("step", "expression", "says", ""), [self._step(s) for s in steps])
        for head, *rows in projection_tables(page):
            yield self._table(
                head,
                [self._projection(row) for row in rows],
                [_color(axis) for axis in head[1:]],
            )
        story = story_rows(page)
        if story:
            told = [[Text(subject, NAME), Text(says)] for subject, says in story]
            yield self._table(("inferred", "from"), told)
        yield Padding(self._loops(), BELOW)
        yield Padding(Text("\n".join((cost_text(page.cost), *page.notes)), QUIET), (0, 0, 0, 2))

    def _table(
        self, heads: Sequence[str], rows: Sequence[Sequence[Text]], colors: Sequence[str] = ()
    ) -> RenderableType:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, border_style=QUIET)
        for number, head in enumerate(heads):
            color = colors[number - 1] if 0 < number <= len(colors) else ""
            table.add_column(Text(head, color or QUIET), overflow="fold")
        for row in rows:
            table.add_row(*row)
        return Padding(table, BELOW)

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
        shown = Text(no_wrap=True, overflow="ignore")
        variables = frozenset(re.findall(r"\bfor (\S+) in", self.page.loops))
        for match in LOOP_WORD.finditer(self.page.loops.rstrip("\n")):
            word = match.group()
            if word in KEYWORDS:
                shown.append(word, QUIET)
            elif word in self.tensors and word not in variables:
                shown.append(word, NAME)
            else:
                shown.append(word, _color(word[0]) if word in variables else "")
        return shown


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

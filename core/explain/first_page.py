"""The first page on a program, as plain text: formulas with its own names, plain loops, work, and how it runs.

Everything here is data of an ``Explanation``; this module lays it out in lines of a width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ilang.core.explain.expression import head_text, parameter, stored_text, typed
from ilang.core.explain.formulas import ASCII, Formula
from ilang.core.explain.meaning import LoopLine
from ilang.core.explain.page import counted, occupancy_text, table
from ilang.core.ir.graph import UNNAMED

if TYPE_CHECKING:
    from ilang.core.explain.explanation import Cost, Explanation

WIDTH = 80
MOST_FORMULAS, MOST_LOOPS = 24, 48
"""Lines of formulas and of loops that a first page has; the rest is counted."""
BALANCE = 10
"""Operations for each byte from which on arithmetic takes longer than memory does, on processors of today."""
EDGES = "i' is a position within a step of i; the last step may be shorter"
EXACT = "the same with exact bounds and edges"
BREAKS = re.compile(r" (?=(?:[+−/*-]|if|else|and|or) )|(?<=,) |(?<=[ +]=) ")
LONGEST = 48
"""Characters of a formula of bytes that a page has."""


def first_page(
    page: Explanation, width: int = WIDTH, ascii_only: bool = False, more: str | None = None
) -> str:
    """The page, in lines of at most ``width`` columns where formulas can be broken; ``more`` names further pages."""
    named = page.name != UNNAMED
    formulas = page.meaning.formulas
    alone = len(formulas) == 1 and not named
    sections = [
        _title(page) if named else "",
        _formulas(formulas, width) if alone else "",
        _ports(page, width) if not named else "",
        "" if alone else _formulas(formulas, width, indented=True),
        "" if named else _steps(page.meaning.steps, page, width),
        "\n".join(_loops(page.meaning.loops, width)),
        occupancy_text(page),
        "\n".join(_facts(page, width, more)),
        "\n".join(page.notes),
    ]
    text = "\n\n".join(section for section in sections if section) + "\n"
    return text.translate(ASCII) if ascii_only else text


def formulas_text(page: Explanation) -> str:
    """The formulas of a page: those of its values, and of the expressions of its text."""
    named = page.name != UNNAMED
    steps = "" if named else _steps(page.meaning.steps, page, WIDTH)
    return "\n\n".join(text for text in (_formulas(page.meaning.formulas, WIDTH), steps) if text)


def plain_loops(page: Explanation) -> str:
    """The plain loops of a page."""
    return "\n".join(_loops(page.meaning.loops, WIDTH))


def _title(page: Explanation) -> str:
    """The component in one line: ``softmax(x[m,n]) -> [m,n]``."""
    takes = [parameter(row.name, row.dtype, row.extents) for row in page.inputs]
    return head_text(page.name, takes, [typed(row.dtype, row.extents) for row in page.outputs])


def _ports(page: Explanation, width: int) -> str:
    """The inputs and outputs, several on a line where there is room."""
    words = []
    for row in (*page.inputs, *page.outputs):
        letters = " ".join(row.letters)
        same = " ".join(row.extents) == letters or not letters
        letters += f", stored by {stored_text(row.order)}" if row.order else ""
        same = same and not row.order
        words.append(
            f"{row.name}  {row.dtype}[{','.join(row.extents)}]{'' if same else f'  {letters}'}"
        )
    words += [page.meaning.reduced] if page.meaning.reduced else []
    lines = [""]
    for word in words:
        joined = f"{lines[-1]}      {word}" if lines[-1] else word
        if len(joined) + 2 <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return "\n".join(f"  {line}" for line in lines if line)


def _formulas(formulas: Sequence[Formula], width: int, indented: bool = False) -> str:
    """The first formulas, after the definitions that they are of, and how many there are more."""
    lines = _formula_lines(formulas[:MOST_FORMULAS], width, 2 * indented)
    if MOST_FORMULAS < len(formulas):
        rest = len(formulas) - MOST_FORMULAS
        lines.append(f"{' ' * _margin(formulas)}… and {rest} more: --emit shapes lists every step")
    return "\n".join(lines)


def ascii_formulas(formulas: Sequence[Formula], width: int) -> list[str]:
    """Formulas after the definitions that they are of, in lines of a width, in ASCII."""
    lines = _formula_lines(formulas, width - 2, 0)
    return [line.removeprefix("  ").translate(ASCII) for line in lines]


def _margin(formulas: Sequence[Formula]) -> int:
    """The columns before a formula; 0 where there are no definitions."""
    first = max((len(each.definition) for each in formulas), default=0)
    return first + 4 if first else 0


def _formula_lines(formulas: Sequence[Formula], width: int, indent: int) -> list[str]:
    """Formulas after the definitions that they are of; ``indent`` is for those without definitions."""
    margin = _margin(formulas)
    lines: list[str] = []
    for number, each in enumerate(formulas):
        again = number and formulas[number - 1].definition == each.definition
        definition = "" if again else each.definition
        label = f"  {definition.ljust(margin - 4)}  " if margin else " " * indent
        lines += _broken(label + each.text, width, margin or indent)
    return lines


def _broken(line: str, width: int, margin: int) -> Iterator[str]:
    """A line in pieces that fit, broken before operators, else before factors; the further ones are indented."""
    while width < len(line):
        places = [m.start() for m in BREAKS.finditer(line) if margin + 8 < m.start() <= width]
        places = places or [line.rfind("·", margin + 8, width)]
        if places[-1] < 0:
            break
        yield line[: places[-1]]
        line = " " * (margin + 4) + line[places[-1] :].removeprefix(" ")
    yield line


def _steps(steps: Sequence[Formula], page: Explanation, width: int) -> str:
    """The expressions of a text, each with its formula and what becomes of its value."""
    remarks = {row.number: row.remark for row in page.steps}
    rows = [
        (f"  {number}", each.definition, each.text, _plainly(remarks.get(number, "")))
        for number, each in enumerate(steps, 1)
    ]
    lines = table(rows)
    if any(width < len(line) for line in lines.splitlines()):
        lines = table([row[:3] for row in rows])
    return lines


def _plainly(remark: str) -> str:
    """A remark on a value, without words of the compiler."""
    fused = re.fullmatch(r"fused into (\d+), never stored", remark)
    if fused:
        return f"used in step {fused[1]}, not stored"
    kept = re.fullmatch(r"computed in (\d+) at loop (\S+), kept in .*", remark)
    return f"computed when step {kept[1]} needs it" if kept else remark


def _loops(
    loops: Sequence[LoopLine],
    width: int,
    more: str = "--loops shows what runs",
    below: bool = False,
) -> list[str]:
    """The loops, indented, with the definitions that lines belong to on the right where there is room.

    ``below`` puts those without room on lines of their own.
    """
    lines = ["  " * (each.depth + 1) + each.text for each in loops]
    pairs = list(zip(lines, loops, strict=True))
    column = max((len(line) for line, each in pairs if each.definition), default=0)
    column = min(column, width - max((len(each.definition) for _, each in pairs), default=0) - 4)
    shown: list[str] = []
    for line, each in pairs:
        fits = each.definition and len(line) <= column
        whole = f"{line.ljust(column)}    {each.definition}" if fits else line
        shown += _broken(whole, width, 2 * (each.depth + 1))
        if below and each.definition and not fits:
            shown.append(f"{'':{column}}    {each.definition}")
    if MOST_LOOPS < len(shown):
        rest = len(shown) - MOST_LOOPS
        shown = [*shown[:MOST_LOOPS], f"  … and {rest} more lines: {more}"]
    return shown


def _facts(page: Explanation, width: int, more: str | None) -> list[str]:
    """The lines on the cost of the program, on how it runs, and on what to ask for next."""
    rows = [
        ("work", _work(page.execution.cost)),
        ("keeps", _keeps(page.execution.cost.storage)),
        ("runs as", page.runs),
    ]
    rows += [("note", note) for note in page.meaning.notes]
    emit = "--emit cuda  its CUDA" if page.execution.occupancy else "--emit c  its C"
    rows.append(("more", more or f"--loops  how it runs    --schedule    {emit}"))
    lines: list[str] = []
    for name, text in rows:
        if text:
            lines += _folded(f"{name:<9}{_squares(text)}", width, 9)
    return lines


def _folded(line: str, width: int, margin: int) -> Iterator[str]:
    """A line in pieces that fit, broken at blanks."""
    while width < len(line):
        place = line.rfind(" ", margin + 8, width + 1)
        if place < 0:
            break
        yield line[:place]
        line = " " * margin + line[place + 1 :].lstrip()
    yield line


def _keeps(storage: str) -> str:
    """The storage between kernels, without a long formula of scratch."""
    kept, comma, scratch = storage.partition("; scratch ")
    return (
        f"{kept}; scratch that grows with the sizes"
        if comma and LONGEST < len(scratch)
        else storage
    )


def _squares(text: str) -> str:
    """A formula of extents with squares in place of ``n·n``."""
    return re.sub(r"\b(\w+)·\1\b", r"\1²", text)


def _work(cost: Cost) -> str:
    """The operations and the least traffic; and which of them is the limit, where both are known."""
    words = f"{counted(cost.flops, 'flop')} on at least {counted(cost.bytes, 'byte')}"
    if not (isinstance(cost.flops, int) and isinstance(cost.bytes, int) and cost.bytes):
        return words
    ratio = cost.flops / cost.bytes
    limit = "arithmetic" if BALANCE <= ratio else "memory"
    shown = f"{ratio:.0f}" if BALANCE <= ratio else f"{ratio:.1f}"
    return f"{words}, {shown} flops a byte: {limit} is the limit here"


def edges_text(page: Explanation) -> str:
    """The meaning of names with a prime in the loops that run; "" where there are none."""
    text = " ".join(line.text for line in page.execution.running)
    return EDGES if "'" in text and " by " in text else ""


def loops_page(page: Explanation, width: int = WIDTH, ascii_only: bool = False) -> str:
    """The loops that run, simplified, in lines of at most ``width`` columns where they can be broken."""
    device = f" on {page.execution.occupancy[0].device}" if page.execution.occupancy else ""
    edges = edges_text(page)
    lines = [
        *_folded(
            f"how it runs{device}, chosen by the compiler unless a schedule is written", width, 2
        ),
        *_loops(page.execution.running, width, "--emit loops lists them", below=True),
        "",
        *(_folded(f"edges    {edges}", width, 9) if edges else ()),
        *_folded(f"more     --schedule    --emit loops  {EXACT}", width, 9),
    ]
    text = "\n".join(lines) + "\n"
    return text.translate(ASCII) if ascii_only else text

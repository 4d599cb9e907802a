"""Lines of C and CUDA that know which statement they are of, for pages that show a program beside its loops.

A printer marks the lines of each statement that it prints where it is asked to (``marked``); the innermost statement
counts. ``with_marks`` gives the lines of a finished text with the marks of the lines that it was made of: library
functions stand before them, and names have got prefixes since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ilang.core.explain.marks import LineMark, StatementMarks
    from ilang.core.ir.kernel import Kernel, Program, Statement


class MarkedLine(str):
    """A line, or several, of one statement."""

    __slots__ = ("mark",)
    mark: LineMark

    @classmethod
    def of(cls, text: str, mark: LineMark) -> MarkedLine:
        """A text with a mark."""
        line = cls(text)
        line.mark = mark
        return line


def marked(lines: Iterable[str], mark: LineMark) -> Iterator[str]:
    """Lines of which those that have no mark get one."""
    for line in lines:
        yield line if isinstance(line, MarkedLine) else MarkedLine.of(line, mark)


class Marker:
    """The marks of the lines of one kernel, where a page asks for them."""

    def __init__(self, program: Program, kernel: Kernel, marking: bool) -> None:
        """For a kernel; without ``marking`` lines stay as they are."""
        self._marks: StatementMarks | None = None
        if marking:
            from ilang.core.explain.marks import StatementMarks

            self._marks = StatementMarks(program, kernel)

    def marked(self, lines: Iterator[str], s: Statement, whole: bool = False) -> Iterator[str]:
        """Lines of a statement, or of it and the statements in it as a ``whole``, with marks where lines have some."""
        if self._marks is None:
            return lines
        return marked(lines, self._marks.of_all((s,)) if whole else self._marks.of(s))


def with_marks(text: str, body: Sequence[str]) -> list[tuple[str, LineMark]]:
    """The lines of a text that ends with the lines of a body, each with its mark."""
    from ilang.core.explain.marks import LineMark

    marks = [
        line.mark if isinstance(line, MarkedLine) else LineMark()
        for line in body
        for _ in range(line.count("\n") + 1)
    ]
    lines = text.removesuffix("\n").split("\n")
    before = len(lines) - len(marks)
    return list(zip(lines, [LineMark()] * before + marks, strict=True))

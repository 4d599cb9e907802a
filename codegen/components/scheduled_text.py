"""The text of a program with the schedules that stand in it: cut out, and replaced by others.

Example, ``ij~ij | i:8 | i j i' >> +ij~i``:
    in:   schedules for both expressions
    out:  each in the place of the one that stood there, or after the expression; every other character stays
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.ir.shaped import Assignment
from ilang.core.source import Source, Span

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component

Words = Sequence[tuple[Span, str]]
"""The schedules to write after expressions, each with its expression."""
BLANKS = " \t"


class ScheduledText:
    """A text, and the expressions that have schedules in it, each with the span of its schedule, in their order.

    ``bare`` is the text without its schedules, and without the lines on which nothing else stands.
    """

    def __init__(self, source: Source, schedules: Sequence[tuple[Span, Span]]) -> None:
        self.source, self.schedules = source, schedules
        self._cuts = [_with_blanks(source.text, schedule) for _, schedule in schedules]
        cuts = [(start, end, "") for start, end in self._cuts]
        self.bare = Source(source.name, _edited(source.text, cuts))

    def with_schedules(self, words: Words) -> str | None:
        """The text with other schedules, of expressions of ``bare``, and with none after those that ``words`` lacks.

        None where an expression stands in another file.
        """
        if any(span.source.name != self.source.name for span, _ in words):
            return None
        schedules = {span.start: (span.end, text) for span, text in words}
        edits: list[tuple[int, int, str]] = []
        for (expression, schedule), (start, end) in zip(self.schedules, self._cuts, strict=True):
            _, text = schedules.pop(self._in_bare(expression.start), (0, ""))
            edits.append((schedule.start, schedule.end, text) if text else (start, end, ""))
        for end, text in schedules.values():
            place = self._in_source(end)
            edits.append((place, place, f" {text}"))
        return _edited(self.source.text, edits)

    def _in_bare(self, place: int) -> int:
        return place - sum(end - start for start, end in self._cuts if end <= place)

    def _in_source(self, place: int) -> int:
        for start, end in self._cuts:
            place += end - start if start < place else 0
        return place


def scheduled_text(
    source: Source, program: Component, shapes: Sequence[tuple[int, ...]]
) -> ScheduledText:
    """The text of a program, read from a source; schedules of expressions in other files stand nowhere in it."""
    schedules = {
        schedule.span.start: (node.span, schedule.span)
        for node in program.shaped(shapes).nodes
        if isinstance(node, Assignment) and (schedule := node.schedule) is not None
        if schedule.span.source.name == source.name
    }
    return ScheduledText(source, tuple(schedules[start] for start in sorted(schedules)))


def _with_blanks(text: str, schedule: Span) -> tuple[int, int]:
    """A schedule with the blanks before it; with its line, where the line has nothing else."""
    start, end = len(text[: schedule.start].rstrip(BLANKS)), schedule.end
    is_first = start == 0 or text[start - 1] == "\n"
    rest = text[end:].lstrip(BLANKS)
    if is_first and rest[:1] in ("", "\n"):
        return max(start - 1, 0), len(text) - len(rest)
    return (schedule.start if is_first else start), end


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, words in sorted(edits, reverse=True):
        text = f"{text[:start]}{words}{text[end:]}"
    return text

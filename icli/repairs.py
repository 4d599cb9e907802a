"""Replacements that the help of an error names, for editors that offer to write them.

In:  ``help: did you mean `scores`?`` at ``scoers``
Out: ``scores`` in its place
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ilang.core.diagnostic import Error, ScheduleError

INSTEAD = re.compile(
    r"did you mean `(?P<meant>[^`]+)`(?:, of `(?P<library>\w+)`)?\?"
    r"|the ASCII spelling is `(?P<ascii>[^`]+)`|write `(?P<sign>[-+*/]\.)`"
)
"""Help that names what belongs in the place of what is refused, and the library that has it."""
USE = re.compile(r"`use (\w+)` has `\w+`")


class Repair(NamedTuple):
    """A title, and the text in the place of a range of the file; ``uses`` is a library that the file has to use."""

    title: str
    start: int
    end: int
    text: str
    uses: str = ""


def repairs(error: Error) -> Iterator[Repair]:
    """The repairs that the help of an error names."""
    span = error.span
    if isinstance(error, ScheduleError) and error.fix is not None:
        fix = error.fix
        yield Repair(f"Write `{fix.text}`", fix.span.start, fix.span.end, fix.text)
    if span is None:
        return
    instead, use = INSTEAD.match(error.help), USE.match(error.help)
    if instead is not None:
        text = instead["meant"] or instead["ascii"] or instead["sign"]
        yield Repair(f"Write `{text}`", span.start, span.end, text, instead["library"] or "")
    elif use is not None:
        yield Repair(f"Use the library `{use[1]}`", span.start, span.start, "", use[1])

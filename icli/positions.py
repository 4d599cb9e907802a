r"""Places in a text as editors count them: a line, and code units of UTF-16, UTF-8 or UTF-32 in it.

In:  offset 7 of ``x = 1\né = 2``
Out: line 1, unit 1 of UTF-16
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

LINE_END = re.compile(r"\r\n|\n|\r")
"""The ends of lines of the protocol, of which there are fewer than ``str.splitlines`` knows."""
UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
"""Bytes of a code unit."""


class EditorPlace(NamedTuple):
    """A line and a unit in it, both from 0."""

    line: int
    unit: int


class EditorPositions:
    """The lines of one text, for editors that count in units of an encoding."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.encoding = encoding
        ends = [match.span() for match in LINE_END.finditer(text)]
        self.starts = [0, *(end for _, end in ends)]
        self.stops = [*(start for start, _ in ends), len(text)]

    def place(self, offset: int) -> EditorPlace:
        """The place of a code point."""
        line = bisect_right(self.starts, offset) - 1
        start = self.starts[line]
        return EditorPlace(line, self._units(self.text[start : min(offset, self.stops[line])]))

    def offset(self, line: int, unit: int) -> int:
        """The code point at a place; a place behind the end of a line is its end, as the protocol says."""
        if not 0 <= line < len(self.starts):
            return 0 if line < 0 else len(self.text)
        start, stop = self.starts[line], self.stops[line]
        words = self.text[start:stop]
        if words.isascii():
            return start + max(0, min(unit, len(words)))
        count = 0
        for at, c in enumerate(words):
            if unit <= count:
                return start + at
            count += self._units(c)
        return stop

    def _units(self, text: str) -> int:
        if text.isascii():
            return len(text)
        encoding = self.encoding if self.encoding == "utf-8" else f"{self.encoding}-le"
        return len(text.encode(encoding, "surrogatepass")) // UNIT[self.encoding]

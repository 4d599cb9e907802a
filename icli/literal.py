"""Array literals: ``[[1, 2], [3, 4]]``, ``0.5``, ``[true, false]``, ``f64:[1, 2]``.

Text to a flat list of numbers with a shape, without NumPy. The reader is strict: numbers, true and false, commas and
square brackets, every list of a level of one length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Set

from ilang.core.diagnostic import DataError, shorten
from ilang.core.dtype import DTYPES
from ilang.core.ir.scalar import minus
from ilang.core.record import record
from ilang.core.source import Source, Span
from ilang.icli.files import ARRAY_FILES, member_of
from ilang.icli.filled import filled_shape, is_filled, range_of
from ilang.icli.shapes import parse_shape

Number = bool | int | float

DEEPEST = 26
"""Levels of brackets at most: an index pattern has no more letters."""

TOKEN = re.compile(r"[\[\],]|[^\s\[\],]+")
INTEGER = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|nan")
WORDS: dict[str, bool] = {"true": True, "false": False, "True": True, "False": False}
FORMULA = re.compile(r"\d\s*[-+*/^]\s*\d")
BETWEEN = re.compile(r"(?<=[\w.\]])\s+(?=[-+\w.\[])")
WHOLE = re.compile(r"[-+]?(?:0[xX][\da-fA-F]+|0[bB][01]+|[1-9]\d*(?:_\d+)+)")
"""A whole number as other languages write it."""
SPELLING = "a number is written like 3, -0.5, 1e3, inf, nan or true"
LONGEST_RESPELLED = 200
OPENS = re.compile(r"[-+]?(\[|[0-9]|\.[0-9]|inf\b|nan\b)|(true|false|True|False)\b")


@record
class ArrayLiteral:
    """The numbers of an array in row-major order; ``kind`` is bool, int or float."""

    shape: tuple[int, ...]
    numbers: tuple[Number, ...]
    kind: str


def split_dtype(text: str) -> tuple[str | None, str]:
    """``f64:[1, 2]`` in two: the element type (None if not written) and the rest."""
    head, colon, rest = text.partition(":")
    if colon and head.strip() in DTYPES:
        return head.strip(), rest.strip()
    return None, text.strip()


def looks_literal(text: str) -> bool:
    """Whether a text without its element type can only be meant as an array literal."""
    return OPENS.match(text) is not None


def is_array(text: str) -> bool:
    """Whether a text is spelled like an array, so that a wrong one is an error about arrays."""
    rest = split_dtype(text)[1]
    return (
        rest.startswith("rand:")
        or member_of(rest)[0].endswith(ARRAY_FILES)
        or looks_literal(rest)
        or is_filled(rest)
    )


def spelled_shape(text: str) -> tuple[int, ...] | None:
    """The shape of an array that a text spells; None for one in a file.

    Raises: CommandError E0810, DataError E0720 to E0722 (it is spelled wrong).
    """
    rest = split_dtype(text)[1]
    if rest.startswith("rand:"):
        return parse_shape(rest[len("rand:") :])
    if is_filled(rest):
        return filled_shape(rest)
    return parse_literal(rest).shape if looks_literal(rest) else None


def parse_literal(text: str, name: str = "<array>") -> ArrayLiteral:
    """Read a literal.

    Raises: DataError E0721 where it is no literal, E0722 where its lists differ in length or depth.
    """
    try:
        return _ArrayReader(Source(name, text)).read()
    except DataError as error:
        spelling = respelled(text) if error.code == "E0721" else None
        hint = range_of(text) if spelling is None else f"`{spelling}`"
        if hint is None:
            raise
        raise DataError(error.code, error.message, error.span, f"write {hint}") from None


def respelled(text: str) -> str | None:
    """A literal as other systems write it, in the spelling of this one; None where that is none either."""
    if len(text) > LONGEST_RESPELLED:
        return None
    if WHOLE.fullmatch(text.strip()):
        return str(int(text.strip(), 0))
    spelling = text.strip().translate(str.maketrans("(){};", "[][],"))
    spaced = BETWEEN.sub(", ", spelling)
    plain = BETWEEN.sub(", ", text.strip().strip("[]"))
    rows = "], [".join(part.strip(" ,") for part in plain.split(";"))
    rows = rows if ";" in plain and "[" not in plain else ""
    closed = spelling + "]" * (spelling.count("[") - spelling.count("]"))
    for candidate in (f"[[{rows}]]", spelling, f"[{spelling}]", spaced, f"[{spaced}]", closed):
        if candidate == "[[]]":
            continue
        try:
            _ArrayReader(Source("<help>", candidate)).read()
        except DataError:
            continue
        return candidate
    return None


def number_of(mark: str, span: Span | None = None) -> tuple[Number, str] | None:
    """The number that a mark is, and its kind: bool, int or float; None where it is none.

    Raises: DataError E0723 (a decimal number that overflows).
    """
    if mark in WORDS:
        return WORDS[mark], "bool"
    if INTEGER.fullmatch(mark) and len(mark) < 400:
        whole = abs(int(mark))
        return (minus(whole) if mark[0] == "-" else whole), "int"
    if not DECIMAL.fullmatch(mark):
        return None
    number = float(mark)
    if math.isinf(number) and not mark.endswith("inf"):
        raise DataError(
            "E0723", f"{shorten(mark, 40)} is beyond every float", span, "`inf` is infinity"
        )
    return number, "float"


def kind_of(kinds: Set[str]) -> str:
    """The kind of an array with numbers of some kinds. Raises: DataError E0721 (truth values among others)."""
    if "bool" in kinds and len(kinds) > 1:
        message = "the array mixes truth values and numbers"
        raise DataError("E0721", message, help="write 1 for true, 0 for false")
    return next(iter(kinds)) if len(kinds) == 1 else "float"


class _ArrayReader:
    """One traversal of the tokens; ``open`` counts the items of every list that is still open."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.open: list[int] = []
        self.lengths: dict[int, int] = {}
        self.leaf_depth: int | None = None
        self.numbers: list[Number] = []
        self.kinds: set[str] = set()

    def read(self) -> ArrayLiteral:
        tokens = list(TOKEN.finditer(self.source.text))
        wants_item, after_bracket = True, False
        for token in tokens:
            mark, span = token.group(), Span(self.source, *token.span())
            if mark == "," and not wants_item and self.open:
                wants_item, after_bracket = True, False
            elif mark == "]" and self.open and (not wants_item or after_bracket):
                self._close(span)
                wants_item, after_bracket = False, False
            elif not wants_item or mark in ",]":
                raise self._unexpected(mark, span)
            elif mark == "[":
                self._open(span)
                after_bracket = True
            else:
                self._item(mark, span)
                wants_item, after_bracket = False, False
        if self.open or wants_item:
            end = len(self.source.text)
            missing = "`]`" if self.open else "a number or `[`"
            raise DataError(
                "E0721",
                f"the array ends where {missing} belongs",
                Span(self.source, end, end),
                "an array is written like [[1, 2], [3, 4]]",
            )
        shape = tuple(self.lengths[level] for level in range(1, (self.leaf_depth or 0) + 1))
        return ArrayLiteral(shape, tuple(self.numbers), kind_of(self.kinds))

    def _open(self, span: Span) -> None:
        if len(self.open) == DEEPEST:
            raise DataError(
                "E0721", f"an array has at most {DEEPEST} dimensions", span, "use fewer brackets"
            )
        if self.leaf_depth is not None and len(self.open) >= self.leaf_depth:
            raise self._ragged("a list stands where a number is expected", span)
        self.open.append(0)

    def _close(self, span: Span) -> None:
        depth, count = len(self.open), self.open.pop()
        known = self.lengths.setdefault(depth, count)
        if known != count:
            raise self._ragged(f"this list holds {count} and an earlier one {known}", span)
        if count == 0:
            self._settle_depth(depth, span)
        if self.open:
            self.open[-1] += 1

    def _item(self, mark: str, span: Span) -> None:
        self._settle_depth(len(self.open), span)
        number = number_of(mark, span)
        if number is None:
            raise self._unexpected(mark, span)
        self.numbers.append(number[0])
        self.kinds.add(number[1])
        if self.open:
            self.open[-1] += 1

    def _settle_depth(self, depth: int, span: Span) -> None:
        """Numbers stand at one depth: the first one fixes it."""
        if self.leaf_depth is None:
            self.leaf_depth = depth
        if self.leaf_depth != depth:
            raise self._ragged("a number stands where a list is expected", span)

    def _unexpected(self, mark: str, span: Span) -> DataError:
        hint = {"(": "lists are written with [ ]", "{": "lists are written with [ ]"}.get(mark[0])
        if mark in ",]" or hint is not None:
            spare = "leave out the comma before it" if mark == "]" and self.open else None
            hint = (
                hint or spare or "numbers and lists are divided by single commas: [[1, 2], [3, 4]]"
            )
            return DataError("E0721", f"unexpected `{mark}` in an array", span, hint)
        hint = SPELLING
        if FORMULA.search(mark):
            hint = "an array is numbers alone: compute in a program"
        return DataError("E0721", f"`{mark}` is not a number", span, hint)

    def _ragged(self, fault: str, span: Span) -> DataError:
        help_line = "an array is full: [[1, 2], [3, 4]]"
        return DataError(
            "E0722", f"{fault}: the lists of one level must have one length", span, help_line
        )

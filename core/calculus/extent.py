"""Whole numbers that follow from extents of a program: what loops count, what kernels keep, what a host computes.

One record for all of them: an operation and what it is of. ``value`` is what each means, in one place; targets and
pages have a table of how each is spelled (``Extent.text``). An expression is printed as it was built.

Example: ``parts(size(0), 4)`` is the number of parts of 4 in size 0: 3 where that is 9, and ``ceil(n / 4)`` as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from math import prod
from typing import NamedTuple

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.record import record, replace


@record
class Extent:
    """An ``operation`` of ``operands``: a key of ``MEANING``, a ``number``, or the extent of a ``size`` by its number.

    An operation that is named ``after`` a size says what along which dimension it is. In bounds of loops, an ``index``
    over variables of the loops around stands for its value, divided by the ``number`` and rounded up.
    """

    operation: str
    operands: tuple[Extent, ...] = ()
    number: int = 0
    after: int | None = None
    index: Affine | None = None

    def constant(self) -> int | None:
        """The number that it is; None of anything else."""
        return self.number if self.operation == "number" else None

    def sizes(self) -> Iterator[int]:
        """The sizes that it follows from, as they are printed."""
        if self.operation == "size":
            yield self.number
        for operand in self.operands:
            yield from operand.sizes()

    def indices(self) -> Iterator[Affine]:
        """The expressions over variables in it."""
        if self.index is not None:
            yield self.index
        for operand in self.operands:
            yield from operand.indices()

    def limits(self) -> Iterator[tuple[Affine, int]]:
        """The indices among which it is the least or the greatest, each divided by a number and rounded up."""
        if self.operation in ("min", "max"):
            for operand in self.operands:
                yield from operand.limits()
        elif self.index is not None:
            yield self.index, self.number

    def among(self, operation: str, limits: Iterable[tuple[Affine, int]]) -> Extent:
        """The least or the greatest (``min``, ``max``) of this and of such indices."""
        others = tuple(Extent("index", (), step, None, index) for index, step in limits)
        if not others:
            return self
        return Extent(
            operation, (*(self.operands if self.operation == operation else (self,)), *others)
        )

    def unlimited(self) -> Extent:
        """The same bound without these indices."""
        if self.operation not in ("min", "max", "+"):
            return self
        kept = [each.unlimited() for each in self.operands if each.index is None]
        return replace(self, operands=tuple(kept)) if len(kept) > 1 else kept[0]

    def steps(self) -> tuple[tuple[int, int], ...]:
        """The coefficients of a linear sum, each with its size."""
        scaled = (each.operands for each in self.operands if each.operation == "scaled")
        return tuple((factor.number, extent.number) for factor, extent in scaled)

    def offset(self) -> int:
        """The number at the end of a linear sum."""
        return self.operands[-1].constant() or 0

    def mapped(self, change: Callable[[Extent], Extent]) -> Extent:
        """The same operation, its operands changed."""
        return replace(self, operands=tuple(map(change, self.operands)))

    def substituted(self, place: Mapping[int, Extent]) -> Extent:
        """The expression in which others stand for some sizes."""
        if self.operation == "size":
            return place.get(self.number, self)
        return self.mapped(lambda operand: operand.substituted(place)) if self.operands else self

    def value(self, extents: Mapping[int, int] | Sequence[int]) -> int:
        """The number that it is where sizes have these extents."""
        if self.operation == "number":
            return self.number
        if self.operation == "size":
            return extents[self.number]
        return MEANING[self.operation](*[operand.value(extents) for operand in self.operands])

    def text(self, size: Callable[[int], str], spelled: Mapping[str, Operator]) -> str:
        """The expression, by how sizes and operations are spelled; no more parentheses than needed."""
        return _written(self, size, spelled)[0]


CHOICE, SUM, QUOTIENT, PRODUCT, ATOM = range(5)
"""Precedences of texts: one that is lower than its place allows is put in parentheses."""


class Operator(NamedTuple):
    """The text of an operation: ``words`` makes it from those of its operands.

    A ``precedence`` of None is that of the first operand. ``takes`` is the least precedence of each operand, the last
    number that of all that follow.
    """

    words: Callable[..., str]
    precedence: int | None = ATOM
    takes: tuple[int, ...] = (CHOICE,)


def _written(
    extent: Extent, size: Callable[[int], str], spelled: Mapping[str, Operator]
) -> tuple[str, int]:
    """The text of an expression and its precedence."""
    if extent.operation == "number":
        return str(extent.number), ATOM
    if extent.operation == "size":
        return size(extent.number), ATOM
    operator = spelled[extent.operation]
    words = [_written(operand, size, spelled) for operand in extent.operands]
    precedence = words[0][1] if operator.precedence is None else operator.precedence
    return operator.words(
        *map(_inside, words, chain(operator.takes, repeat(operator.takes[-1])))
    ), precedence


def _inside(word: tuple[str, int], least: int) -> str:
    """The text of an operand, in parentheses where its precedence is lower than its place allows."""
    text, precedence = word
    return f"({text})" if precedence < least else text


def _chunks(
    terms: int, elements: int, most: int, work: int, each_terms: int, all_elements: int
) -> int:
    """The blocks of so many terms, with accumulators for so many elements each where that is not 0."""
    if elements:
        work, most = max(work, each_terms * elements), min(most, all_elements // elements)
    return max(1, min(terms // work + 1, most))


def _shares(whole: int, least: int, most: int, *tiles: int) -> int:
    """The parts of ``least`` iterations or more that give tiles ``most`` blocks."""
    for count in tiles:
        most //= max(1, count)
    return max(1, min(most, whole // least))


MEANING: dict[str, Callable[..., int]] = {
    "+": lambda *terms: sum(terms),
    "*": lambda *factors: prod(factors),
    "scaled": lambda factor, extent: factor * extent,
    "terms": lambda *factors: prod(factors),
    "//": lambda whole, divisor: whole // divisor,
    "ceil": lambda whole, step: -(-whole // step),
    "when": lambda then, *counts: then if all(0 < count for count in counts) else 0,
    "chunks": _chunks,
    "shares": _shares,
}
"""The value of each operation, from those of its operands.

``terms`` are a product that may be more than an integer of a target holds. ``when`` is 0 unless something is in each of
some extents.
"""


def number(value: int) -> Extent:
    """A number."""
    return Extent("number", (), value)


ZERO = number(0)
"""No iterations."""


def size(number: int) -> Extent:
    """The extent of a size."""
    return Extent("size", (), number)


def bounds(whole: int, block: tuple[int, int, int] | None) -> tuple[Extent, Extent]:
    """The beginning and the end of a loop over all of a size, or over one block of it.

    A block is given by the size that says how many there are, of what number of iterations each starts at a multiple,
    and the variable that is its number; all but the last ones are equally long.
    """
    if block is None:
        return ZERO, size(whole)
    count, multiple, variable = block
    numbers = (Extent("index", (), 1, None, axis_index(variable) + more) for more in (0, 1))
    first, after = (
        Extent("start", (size(whole), size(count), number(multiple), each)) for each in numbers
    )
    return first, after


def product(sizes: Sequence[int]) -> Extent:
    """The product of the extents of sizes; 1 of none."""
    if len(sizes) < 2:
        return size(sizes[0]) if sizes else number(1)
    return Extent("*", tuple(map(size, sizes)))


def large_product(sizes: Sequence[int]) -> Extent:
    """The product of the extents of sizes, however large."""
    return Extent("terms", tuple(map(size, sizes)))


def parts(whole: Extent, step: int) -> Extent:
    """The number of parts of ``step`` in an extent, the last of which may be shorter."""
    return Extent("ceil", (whole, number(step)))


def part_of(extent: Extent) -> tuple[int, int] | None:
    """The size of which an extent counts the parts, and the length of one; None of any other extent."""
    if extent.operation != "ceil":
        return None
    whole, step = extent.operands
    return (whole.number, step.number) if whole.operation == "size" else None


def most_chunks(extent: Extent) -> int | None:
    """The largest number of chunks of a reduction; None of any other extent."""
    return extent.operands[2].number if extent.operation == "chunks" else None


def reach(steps: Sequence[tuple[int, Extent]], after: int) -> Extent:
    """The reach of loops along a dimension: one more than the sum of step times last iteration; 0 if one has none."""
    known = [(c, count) for c, e in steps if (count := e.constant()) is not None]
    if any(count < 1 for _, count in known):
        return number(0)
    last = 1 + sum(c * count for c, count in known) - sum(c for c, _ in steps)
    others = [(c, e) for c, e in steps if e.constant() is None]
    if last == 0 and [c for c, _ in others] == [1]:
        return others[0][1]
    whole = linear(others, last)
    return Extent("when", (whole, *(e for _, e in others)), after=after) if others else whole


def scaled(factor: int, extent: Extent) -> Extent:
    """A number times an extent."""
    return Extent("scaled", (number(factor), extent))


def linear(terms: Sequence[tuple[int, Extent]], offset: int) -> Extent:
    """A sum of coefficients times extents, and a number; a number where there are no terms."""
    words = [scaled(c, each) for c, each in terms] + ([number(offset)] if offset else [])
    return Extent("+", tuple(words)) if terms else number(offset)


def quotient(whole: Extent, divisor: Extent) -> Extent:
    """The floor of an extent divided by another one."""
    return whole if divisor.constant() == 1 else Extent("//", (whole, divisor))


def _plain_sum(*words: str) -> str:
    """A sum without blanks, its numbers as one at the end."""
    fixed = sum(int(word) for word in words if word.lstrip("-").isdigit())
    named = [word for word in words if not word.lstrip("-").isdigit()]
    text = "+".join([*named, *([str(fixed)] if fixed or not named else [])])
    return text.replace("+-", "-")


def _plain_scaled(factor: str, extent: str) -> str:
    """A coefficient before a word, which it leaves out where it is 1."""
    if extent.isdigit():
        return str(int(factor) * int(extent))
    return f"{factor.removesuffix('1') if factor in ('1', '-1') else factor}{extent}"


PLAIN: dict[str, Operator] = {
    "+": Operator(_plain_sum, SUM, (SUM,)),
    "*": Operator(lambda *words: " * ".join(words), PRODUCT, (PRODUCT,)),
    "scaled": Operator(_plain_scaled, PRODUCT, (PRODUCT,)),
    "//": Operator(lambda whole, divisor: f"{whole} / {divisor}", QUOTIENT, (QUOTIENT, ATOM)),
    "ceil": Operator(lambda whole, step: f"ceil({whole}/{step})", ATOM, (QUOTIENT, ATOM)),
    "when": Operator(lambda then, *_: then, None),
}
"""The spellings of operations in pages."""


def joined(*words: str) -> str:
    """The words of a sum as text: ``n - 1``."""
    first, *others = words
    signed = (f" - {w[1:]}" if w.startswith("-") else f" + {w}" for w in others)
    return first + "".join(signed)

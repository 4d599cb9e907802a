"""Random graphs that mix index expressions, specifications and operations between tensors, and what they mean.

Extents are drawn before anything is made of them, one per run, so that a program is run at several sizes, 0, 1 and
ragged ones among them; one program in three is compiled for the extents of one run. Values are drawn forward, each
with its arrays, in NumPy; elements are small whole numbers, which every element type here holds exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Slice, Stack
from tests.mixing import Mixing

Array = npt.NDArray[Any]
Sizes = tuple[int, ...]
"""An extent in each run."""

RUNS = ((1, 2, 3, 5, 8, 17, 33), (1, 2, 3, 4, 7, 20), (0, 1, 1, 2, 3))
DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64}
MOST_ELEMENTS = 4000
MOST_POINTS = 40000
LARGEST = 2**20
"""Elements stay below: sums of them are exact in f32."""
LETTERS = "ijklmnopqrstuv"


@dataclass
class Value:
    """A value: its number while it is drawn, how many axes its batch and input rows have, its elements in each run.

    ``flat`` values are arrays: a specification divides their dimensions into rows as it likes.
    """

    number: int
    batch: int
    inner: int
    arrays: list[Array]
    flat: bool

    @property
    def sizes(self) -> list[Sizes]:
        """The extents of its dimensions, in memory order."""
        return list(zip(*(array.shape for array in self.arrays), strict=True))

    @property
    def output(self) -> list[Sizes]:
        """The extents of its output row."""
        return self.sizes[self.batch : len(self.sizes) - self.inner]

    def rows(self) -> tuple[list[Sizes], list[Sizes], list[Sizes]]:
        """The extents of its batch, input and output rows."""
        last = len(self.sizes) - self.inner
        return self.sizes[: self.batch], self.sizes[last:], self.output


@dataclass
class Drawn:
    """A graph, its inputs in each run, and its outputs in each run; ``fixed`` is the run whose extents it is for."""

    seed: int
    dtype: str
    graph: Graph
    runs: list[list[Array]]
    results: list[list[Array]]
    fixed: int | None
    says: list[str] = field(default_factory=list)


Step = Callable[[Mixing, dict[int, int]], int]
"""How a value is added to a graph, from the numbers that those before it have there."""


class _Draw:
    """A program under construction: leaves, then steps."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice(sorted(DTYPES))
        count = len(RUNS)
        fixed = [tuple([n] * count) for n in (1, 2, 3, self.rng.choice((4, 5, 17)))]
        open_sizes = [tuple(self.rng.choice(run) for run in RUNS) for _ in range(3)]
        self.fixed_sizes = fixed
        self.pool = [*open_sizes, *self.rng.sample(fixed, 2)]
        self.values: list[Value] = []
        self.leaves: list[tuple[int, Step]] = []
        self.inputs: list[tuple[int, Step]] = []
        self.steps: list[tuple[int, Step]] = []
        self.says: list[str] = []

    # -- leaves ------------------------------------------------------------------------------------------------------

    def elements(self, sizes: Sequence[Sizes]) -> list[Array]:
        """Small whole numbers of these extents, for each run."""
        chosen = np.random.default_rng(self.rng.randrange(2**32))
        shapes = [[size[run] for size in sizes] for run in range(len(RUNS))]
        return [chosen.integers(-3, 4, shape).astype(DTYPES[self.dtype]) for shape in shapes]

    def input(self, sizes: Sequence[Sizes]) -> Value:
        """An array."""
        value = self.value(0, 0, self.elements(sizes), True)
        self.inputs.append((value.number, lambda m, _: m.array()))
        return value

    def leaf(self, batch: int, inner: int, sizes: Sequence[Sizes]) -> Value:
        """Data whose rows have extents in the program."""
        value = self.value(batch, inner, self.elements(sizes), False)
        known = [tuple(size[0] for size in row) for row in value.rows()]
        self.leaves.append((value.number, lambda m, _: m.leaf(known[0], known[1], known[2])))
        return value

    def value(self, batch: int, inner: int, arrays: list[Array], flat: bool) -> Value:
        """A further value."""
        value = Value(len(self.values), batch, inner, arrays, flat)
        self.values.append(value)
        return value

    def some(self, least: int = 0, most: int = 4) -> Value:
        """A value of some rank: a recent one, or a new array."""
        fit = [v for v in self.values if least <= len(v.sizes) <= most]
        if fit and self.rng.random() < 0.85:
            return self.rng.choice(fit[-4:] if self.rng.random() < 0.7 else fit)
        if self.rng.random() < 0.3:
            sizes = [
                self.rng.choice(self.fixed_sizes)
                for _ in range(self.rng.randint(least, min(most, 3)))
            ]
            batch = self.rng.randint(0, len(sizes))
            return self.leaf(batch, self.rng.randint(0, len(sizes) - batch), sizes)
        return self.input(
            [self.rng.choice(self.pool) for _ in range(self.rng.randint(least, min(most, 3)))]
        )

    def made(self, batch: int, inner: int, arrays: Sequence[Array], flat: bool, step: Step) -> bool:
        """Add a value that a step makes, unless it is too large."""
        dtype = DTYPES[self.dtype]
        for array in arrays:
            if array.size > MOST_ELEMENTS or (array.size and np.abs(array).max() >= LARGEST):
                return False
        number = self.value(batch, inner, [np.asarray(a, dtype) for a in arrays], flat).number
        self.steps.append((number, step))
        return True

    # -- index expressions -------------------------------------------------------------------------------------------

    def index(self, text: str, values: Sequence[Value], arrays: Sequence[Array]) -> bool:
        """An index expression of some values."""
        numbers = [value.number for value in values]
        return self.made(0, 0, arrays, True, lambda m, n: m.index(text, *(n[v] for v in numbers)))

    def letters(self, value: Value, known: dict[Sizes, list[str]], fresh: list[str]) -> str:
        """A letter for each dimension, a known one of its extent now and then."""
        text = ""
        for size in value.sizes:
            same = known.setdefault(size, [])
            if not same or self.rng.random() < 0.4:
                same.append(fresh.pop(0))
            text += self.rng.choice(same)
        return text

    def unary(self) -> bool:
        """Axes exchanged, repeated indices, reductions: ``+iji~j``."""
        value = self.some(1)
        read = self.letters(value, {}, list(LETTERS))
        kept = self.rng.sample(sorted(set(read)), self.rng.randint(0, len(set(read))))
        out = "".join(kept)
        reduces = len(kept) < len(set(read))
        op = self.rng.choice("+") if reduces else self.rng.choice(("", "-"))
        sign = -1 if op == "-" else 1
        arrays = [sign * np.einsum(f"{read}->{out}", array) for array in value.arrays]
        return self.index(f"{op}{read}~{out or '.'}", [value], arrays)

    def triangle(self) -> bool:
        """A sum over a triangle: ``+ij[j<=i]~i``."""
        value = self.some(2, 2)
        arrays = [np.tril(array).sum(1) for array in value.arrays]
        return self.index("+ij[j<=i]~i", [value], arrays)

    def binary(self) -> bool:
        """Two values element by element, over the axes of both; then a sum, now and then."""
        known: dict[Sizes, list[str]] = {}
        fresh = list(LETTERS)
        one, other = self.some(0, 3), self.some(0, 3)
        left, right = self.letters(one, known, fresh), self.letters(other, known, fresh)
        axes = sorted({*left, *right})
        extents = dict(zip(left + right, [*one.sizes, *other.sizes], strict=True))
        if any(np.prod([extents[a][run] for a in axes]) > MOST_POINTS for run in range(len(RUNS))):
            return False
        op = self.rng.choice("+*")
        out = "".join(self.rng.sample(axes, len(axes)))
        text, keep = f"{left or '.'}{op}{right or '.'}~{out or '.'}", out
        if axes and self.rng.random() < 0.5:
            keep = "".join(axis for axis in out if self.rng.random() < 0.5)
            text += f" >> +{out}~{keep or '.'}" if len(keep) < len(out) else ""
        arrays = []
        for a, b, run in zip(one.arrays, other.arrays, range(len(RUNS)), strict=True):
            ones = [np.ones(extents[axis][run]) for axis in out]
            spread = [f"{left},{','.join(out)}->{out}", f"{right},{','.join(out)}->{out}"]
            if not out:
                spread = [f"{left}->", f"{right}->"]
            both = [
                np.einsum(s, x.astype(float), *ones) for s, x in zip(spread, (a, b), strict=True)
            ]
            whole = both[0] + both[1] if op == "+" else both[0] * both[1]
            arrays.append(np.einsum(f"{out}->{keep}", whole))
        return self.index(text, [one, other], arrays)

    def convolved(self) -> bool:
        """A window of an index expression, which may be padded."""
        one, other = self.some(1, 1), self.some(1, 1)
        pad = self.rng.choice((0, 1))
        pairs = zip(one.sizes[0], other.sizes[0], strict=True)
        if any(k < 1 or n + 2 * pad - k + 1 < 1 or n < 1 for n, k in pairs):
            return False
        arrays = [
            np.convolve(np.pad(a, pad), b[::-1], "valid")
            if b.size <= a.size + 2 * pad
            else np.zeros(0)
            for a, b in zip(one.arrays, other.arrays, strict=True)
        ]
        shift = "-1" if pad else ""
        return self.index(f"(i+u{shift})*u~iu >> +iu~i", [one, other], arrays)

    # -- views -------------------------------------------------------------------------------------------------------

    def viewed(self, most: int) -> Value:
        """What a view is of: the last value now and then."""
        last = self.values[-1] if self.values else None
        if last is not None and 1 <= len(last.sizes) <= most and self.rng.random() < 0.5:
            return last
        return self.some(1, most)

    def joining(self) -> bool:
        """Neighbouring dimensions as one: ``a b c -> a (b c)``."""
        value = self.viewed(4)
        names = list(LETTERS[: len(value.sizes)])
        first = self.rng.randrange(len(names))
        last = self.rng.randint(first, len(names))
        groups = [*names[:first], f"({' '.join(names[first:last])})", *names[last:]]
        arrays = [
            a.reshape(*a.shape[:first], prod(a.shape[first:last]), *a.shape[last:])
            for a in value.arrays
        ]
        return self.view(f"{' '.join(names)} -> {' '.join(groups)}", value, {}, arrays)

    def splitting(self) -> bool:
        """A dimension as two, of which one has an extent that is written: ``(a b) c -> a b c``, or ``a (b c)``."""
        value = self.viewed(3)
        dim = self.rng.randrange(len(value.sizes))
        parts = [n for n in (1, 2, 3, 4, 5) if not any(size % n for size in value.sizes[dim])]
        names, factor = list(LETTERS[: len(value.sizes) + 1]), self.rng.choice(parts)
        written = self.rng.choice((dim, dim + 1))
        pair = f"({names[dim]} {names[dim + 1]})"
        target = names if dim + 2 == len(names) or self.rng.random() < 0.5 else None
        if target is None:  # the second part goes to the dimension that follows
            rest = f"({names[dim + 1]} {names[dim + 2]})"
            target = [*names[: dim + 1], rest, *names[dim + 3 :]]
        arrays = []
        for a in value.arrays:
            pieces = (factor, a.shape[dim] // factor)
            pieces = pieces if written == dim else pieces[::-1]
            shape = [*a.shape[:dim], *pieces, *a.shape[dim + 1 :]]
            if len(target) < len(names):
                shape[dim + 1 : dim + 3] = [shape[dim + 1] * shape[dim + 2]]
            arrays.append(a.reshape(shape))
        source = [*names[:dim], pair, *names[dim + 2 :]]
        text = f"{' '.join(source)} -> {' '.join(target)}"
        return self.view(text, value, {names[written]: factor}, arrays)

    def across(self) -> bool:
        """The last value, which may be a view, element by element with an array over some of its dimensions."""
        value = self.values[-1] if self.values else self.some(1)
        if not value.sizes or not value.flat:
            return False
        axes = LETTERS[: len(value.sizes)]
        kept = [n for n in range(len(axes)) if self.rng.random() < 0.5]
        other = self.input([value.sizes[n] for n in kept])
        op = self.rng.choice("+*")
        arrays = []
        for a, b in zip(value.arrays, other.arrays, strict=True):
            spread = b.reshape([a.shape[n] if n in kept else 1 for n in range(a.ndim)])
            arrays.append(a + spread if op == "+" else a * spread)
        text = f"{axes}{op}{''.join(axes[n] for n in kept) or '.'}~{axes}"
        return self.index(text, [value, other], arrays)

    def view(
        self, text: str, value: Value, extents: dict[str, int], arrays: Sequence[Array]
    ) -> bool:
        """A view of a value."""
        number = value.number
        return self.made(0, 0, arrays, True, lambda m, n: m.view(text, n[number], **extents))

    # -- specifications ----------------------------------------------------------------------------------------------

    def einsum(
        self, text: str, values: Sequence[Value], arrays: Sequence[Array], rows: Sizes
    ) -> bool:
        """A specification of some values; ``rows`` are how many batch and input axes its result has."""
        numbers = [value.number for value in values]
        flat = all(value.flat for value in values)
        step: Step = lambda m, n: m.einsum(text, *(n[v] for v in numbers))  # noqa: E731
        return self.made(rows[0], rows[1], arrays, flat, step)

    def divided(self, letters: str, batch: int, inner: int) -> str:
        """Letters in memory order as a shape of a specification."""
        last = len(letters) - inner
        text = letters[batch:last]
        text = f"{letters[last:]}->{text}" if inner else text
        return f"{letters[:batch]}|{text}" if batch else text

    def contraction(self) -> bool:
        """Products of one or two values summed over the labels that the result lacks."""
        known: dict[Sizes, list[str]] = {}
        fresh = list(LETTERS)
        values = [self.some(0, 3) for _ in range(self.rng.choice((1, 2, 2)))]
        shapes, words = [], []
        for value in values:
            batch, inner = value.batch, value.inner
            if value.flat:
                batch = self.rng.randint(0, len(value.sizes))
                inner = self.rng.randint(0, len(value.sizes) - batch)
            letters = self.letters(value, known, fresh)
            words.append(letters)
            shapes.append(self.divided(letters, batch, inner))
        axes = sorted(set("".join(words)))
        every = [size for value in values for size in value.sizes]
        extents = dict(zip("".join(words), every, strict=True))
        if any(np.prod([extents[a][run] for a in axes]) > MOST_POINTS for run in range(len(RUNS))):
            return False
        out = "".join(self.rng.sample(axes, self.rng.randint(0, len(axes))))
        batch = self.rng.choice((0, 0, self.rng.randint(0, len(out))))
        inner = self.rng.choice((0, 0, self.rng.randint(0, len(out) - batch)))
        text = f"{'; '.join(shapes)} => {self.divided(out, batch, inner)}"
        arrays = [
            np.einsum(f"{','.join(words)}->{out}", *(a.astype(float) for a in run))
            for run in zip(*(value.arrays for value in values), strict=True)
        ]
        return self.einsum(text, values, arrays, (batch, inner))

    def window(self) -> bool:
        """A window of a specification."""
        one, other = self.some(1, 1), self.some(1, 1)
        pairs = zip(one.sizes[0], other.sizes[0], strict=True)
        if any(k < 1 or n < k for n, k in pairs) or self.in_rows(one, other):
            return False
        arrays = [
            np.convolve(a, b[::-1], "valid") for a, b in zip(one.arrays, other.arrays, strict=True)
        ]
        return self.einsum("o<+k; k => o", [one, other], arrays, (0, 0))

    def joined(self) -> bool:
        """A concatenation along the first axis."""
        one = self.some(1, 2)
        others = [
            v
            for v in self.values
            if len(v.sizes) == len(one.sizes) and v.sizes[1:] == one.sizes[1:]
        ]
        other = self.rng.choice(others)
        if self.in_rows(one, other):
            return False
        text = "a,; b, => a^b," if len(one.sizes) == 1 else "a,r; b,r => a^b,r"
        pairs = zip(one.arrays, other.arrays, strict=True)
        return self.einsum(text, [one, other], [np.concatenate(pair) for pair in pairs], (0, 0))

    @staticmethod
    def in_rows(*values: Value) -> bool:
        """Whether one of some values has batch or input axes that a specification would have to name."""
        return any(not v.flat and (v.batch or v.inner) for v in values)

    # -- operations between tensors ----------------------------------------------------------------------------------

    def operation(
        self,
        logic: Any,
        values: Sequence[Value],
        arrays: Sequence[Array],
        rows: Sizes,
        name: str = "add",
    ) -> bool:
        """An operation on some values."""
        numbers = [value.number for value in values]

        def step(m: Mixing, n: dict[int, int]) -> int:
            return m.operation(logic, *(n[v] for v in numbers), primitive=name)

        return self.made(rows[0], rows[1], arrays, False, step)

    def alike(self, value: Value) -> Value:
        """A value of the same rows."""
        same = [v for v in self.values if v.rows() == value.rows()]
        return self.rng.choice(same)

    def pointwise(self) -> bool:
        """Element by element: two values of the same rows, or an array that lacks the outer axes of the other."""
        one = self.some()
        other = self.alike(one)
        if self.rng.random() < 0.4:
            tails = [
                v
                for v in self.values
                if v.flat
                and not v.batch
                and not v.inner
                and len(v.sizes) <= len(one.output)
                and v.sizes == one.output[len(one.output) - len(v.sizes) :]
            ]
            is_array = {number for number, _ in self.inputs}
            other = self.rng.choice([v for v in tails if v.number in is_array] or [other])
        name, function = self.rng.choice(
            (("add", np.add), ("mul", np.multiply), ("sub", np.subtract))
        )
        arrays = []
        for a, b in zip(one.arrays, other.arrays, strict=True):
            pad = () if other.rows() == one.rows() else (1,) * one.inner
            arrays.append(function(a, b.reshape(b.shape + pad)))
        return self.operation("pointwise", [one, other], arrays, (one.batch, one.inner), name)

    def scaled(self) -> bool:
        """A value and a number, which stretches."""
        one, factor = self.some(), self.rng.choice((-1, 2, 3))
        number = one.number

        def step(m: Mixing, n: dict[int, int]) -> int:
            return m.operation("pointwise", n[number], m.number(factor), primitive="mul")

        if not len(one.output):
            return False
        arrays = [factor * array for array in one.arrays]
        return self.made(one.batch, one.inner, arrays, False, step)

    def composed(self) -> bool:
        """A parameter, or a value with an input row, against the output row of another."""
        value = self.some(1, 3)
        rows = len(value.output)
        if not rows:
            return False
        mates = [v for v in self.values if v.inner and v.rows()[1] == value.output and not v.batch]
        if mates and self.rng.random() < 0.6:
            left = self.rng.choice(mates)
        else:
            out = [self.rng.choice(self.fixed_sizes) for _ in range(self.rng.randint(0, 1))]
            left = self.value(0, rows, self.elements([*out, *value.output]), False)
            known = tuple(size[0] for size in out)
            self.leaves.append(
                (left.number, lambda m, _: m.leaf((), None, known, kind="parameter"))
            )
        arrays = []
        outer = len(left.sizes) - rows
        for a, b in zip(left.arrays, value.arrays, strict=True):
            pairs = (list(range(outer, outer + rows)), list(range(value.batch, value.batch + rows)))
            both = np.tensordot(a.astype(float), b.astype(float), pairs)
            arrays.append(np.moveaxis(both, range(outer), range(value.batch, value.batch + outer)))
        return self.operation("compose", [left, value], arrays, (value.batch, value.inner), "mul")

    def exchanged(self) -> bool:
        """Input and output rows exchanged."""
        one = self.some(1)
        first, last = one.batch, len(one.sizes) - one.inner
        order = [*range(first), *range(last, len(one.sizes)), *range(first, last)]
        arrays = [array.transpose(order) for array in one.arrays]
        return self.operation("transpose", [one], arrays, (one.batch, last - first))

    def sliced(self) -> bool:
        """One position of the first batch axis."""
        fit = [v for v in self.values if v.batch and min(v.sizes[0])]
        if not fit:
            return False
        one = self.rng.choice(fit)
        position = self.rng.randrange(min(one.sizes[0]))
        arrays = [array[position] for array in one.arrays]
        return self.operation(Slice(position, None), [one], arrays, (one.batch - 1, one.inner))

    def stacked(self) -> bool:
        """Two values along a new first axis of a row."""
        one = self.some(0, 3)
        other, kind = self.alike(one), self.rng.randrange(3)
        place = (0, len(one.sizes) - one.inner, one.batch)[kind]
        pairs = zip(one.arrays, other.arrays, strict=True)
        arrays = [np.stack(pair, place) for pair in pairs]
        rows = (one.batch + (kind == 0), one.inner + (kind == 1))
        return self.operation(Stack(kind), [one, other], arrays, rows)

    def woven(self) -> bool:
        """Two values at even and odd places of the last output axis."""
        one = self.some(1, 3)
        other = self.alike(one)
        if not one.output:
            return False
        axis = len(one.sizes) - one.inner - 1
        arrays = []
        for pair in zip(one.arrays, other.arrays, strict=True):
            both = np.stack(pair, axis + 1)
            shape = list(pair[0].shape)
            shape[axis] *= 2
            arrays.append(both.reshape(shape))
        return self.operation("interleave", [one, other], arrays, (one.batch, one.inner))

    # -- the whole ---------------------------------------------------------------------------------------------------

    def run(self, seed: int) -> Drawn:
        """Draw values, and make a graph of them."""
        kinds: list[Callable[[], bool]] = [
            *(self.unary, self.binary, self.triangle, self.convolved),
            *(self.contraction, self.contraction, self.window, self.joined),
            *(self.pointwise, self.scaled, self.composed, self.exchanged),
            *(self.sliced, self.stacked, self.woven, self.joining, self.splitting, self.splitting),
            *(self.across, self.across),
        ]
        goal = self.rng.randint(2, 7)
        for _ in range(60):
            if len(self.steps) == goal:
                break
            kind = self.rng.choice(kinds)
            if kind():
                self.says.append(kind.__name__)
        m, number = Mixing(), dict[int, int]()
        for own, step in (*self.inputs, *self.leaves, *self.steps):
            number[own] = step(m, number)
        last = self.steps[-1][0] if self.steps else self.some().number
        rest = [own for own, _ in self.steps[:-1] if self.rng.random() < 0.2]
        outputs = [last, *rest]
        taken = [own for own, _ in (*self.inputs, *self.leaves)]
        count = range(len(RUNS))
        return Drawn(
            seed,
            self.dtype,
            m.graph(*(number[own] for own in outputs)),
            [[self.values[own].arrays[run] for own in taken] for run in count],
            [[self.values[own].arrays[run] for own in outputs] for run in count],
            self.rng.choice(count) if self.rng.random() < 0.33 else None,
            self.says,
        )


def generate(seed: int) -> Drawn:
    """The graph of a seed."""
    return _Draw(seed).run(seed)

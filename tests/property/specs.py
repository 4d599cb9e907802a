"""Random einsum specifications in programs, and what they mean in NumPy: nothing of the product is imported.

Extents are drawn before axes are written: every label has one extent per run, and an axis is written only if it holds
for all of them, so one program is run on several sizes, 0 and 1 among them. A label that only a window or a
concatenation mentions gets an operand of its own, since nothing else would say its size.

The meaning is by counting: every choice of parts, every point of the iteration space, ``numpy.add.at``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Sizes = tuple[int, ...]
"""An extent in each run."""

RUNS = ((1, 2, 3, 4, 5, 7), (1, 2, 3, 5, 8), (0, 1, 1, 2))
MOST_POINTS = 6000
MOST_OPERANDS = 3
DTYPES = ("f32", "f64", "f64", "i64", "i32")
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


@dataclass(frozen=True)
class Label:
    """A label, also one of those that a row variable stands for."""

    name: str


@dataclass(frozen=True)
class Blank:
    """``_``."""


@dataclass(frozen=True)
class Fixed:
    """A position."""

    position: int


@dataclass(frozen=True)
class Window:
    """``stride*over<+dilation*kernel+offset``, or padded."""

    stride: int
    over: str
    dilation: int
    kernel: str | None
    padded: bool
    offset: int


@dataclass(frozen=True)
class Joined:
    """``a^b``."""

    parts: tuple[str, ...]


Axis = Label | Blank | Fixed | Window | Joined


@dataclass(frozen=True)
class Shape:
    """Axes in memory order, where the batch row ends and the input row begins, and a row variable's place."""

    axes: tuple[Axis, ...]
    batch: int
    output: int
    variable: tuple[int, int] | None


@dataclass(frozen=True)
class Spec:
    """Operands and result, the extents of labels, and how it is written."""

    operands: tuple[Shape, ...]
    result: Shape
    labels: dict[str, Sizes]
    text: str


@dataclass(frozen=True)
class Pointwise:
    """An index expression on the value so far (and a second array of the same shape, where ``second``)."""

    text: str
    name: str
    second: bool


@dataclass(frozen=True)
class Program:
    """Stages in a chain, the text, the element type, and the arrays of each run."""

    stages: tuple[Spec | Pointwise, ...]
    text: str
    dtype: str
    runs: tuple[tuple[Array, ...], ...]


# -- generation ------------------------------------------------------------------------------------------------------


@dataclass
class _Draw:
    """One specification under construction."""

    rng: random.Random
    labels: dict[str, Sizes] = field(default_factory=dict)
    anchors: list[str] = field(default_factory=list)
    simple: bool = False

    def fresh(self, sizes: Sizes) -> str:
        pool = "abcdefghijklmnopqrstuvwxyz" if self.simple or self.rng.random() < 0.7 else ()
        free = [c for c in pool if c not in self.labels]
        name = self.rng.choice(free) if free else f"ax{len(self.labels)}"
        self.labels[name] = sizes
        return name

    def sizes(self, least: int = 0) -> Sizes:
        return tuple(max(least, self.rng.choice(pool)) for pool in RUNS)

    def known(self, least: int) -> list[str]:
        return [name for name, sizes in self.labels.items() if min(sizes) >= least]

    def some(self, least: int = 0) -> str:
        """A label, old or new."""
        known = self.known(least)
        if known and self.rng.random() < 0.45:
            return self.rng.choice(known)
        return self.fresh(self.sizes(least))

    def axis(self) -> tuple[Axis, Sizes]:
        """An axis of a new array, and its extents."""
        kind = self.rng.random()
        if kind < 0.6 or self.simple:
            name = self.some()
            if kind < 0.52:
                return Label(name), self.labels[name]
            if kind < 0.56:
                return Blank(), self.sizes()
            position = self.rng.choice((0, 0, 1, 2))
            return Fixed(position), self.sizes(position + 1)
        if kind < 0.85:
            return self.window()
        parts = tuple(dict.fromkeys(self.some() for _ in range(self.rng.choice((2, 2, 3)))))
        if len(parts) < 2:
            return Label(parts[0]), self.labels[parts[0]]
        self.anchors += parts[:-1]
        total = tuple(map(sum, zip(*(self.labels[name] for name in parts), strict=True)))
        return Joined(parts), total

    def window(self) -> tuple[Axis, Sizes]:
        rng = self.rng
        stride = rng.choice((1, 1, 2, 3))
        if rng.random() < 0.25:
            over = self.some()
            offset = rng.randrange(stride)
            shape = Window(stride, over, 1, None, False, offset)
            return shape, tuple(stride * n for n in self.labels[over])
        over = self.some(1)
        kernel = self.some(1)
        if over == kernel:
            kernel = self.fresh(self.sizes(1))
        dilation, padded = rng.choice((1, 1, 2)), rng.random() < 0.4
        offset = rng.choice((0, 0, 0, 1)) if rng.random() < 0.4 else 0
        self.anchors.append(kernel)
        pairs = zip(self.labels[over], self.labels[kernel], strict=True)
        sizes = tuple(
            stride * o if padded else stride * (o - 1) + 1 + dilation * (k - 1) for o, k in pairs
        )
        return Window(stride, over, dilation, kernel, padded, offset), sizes

    def given(self, sizes: Sizes) -> Axis:
        """An axis for a dimension of these extents."""
        rng, kind = self.rng, self.rng.random()
        if not self.simple and kind < 0.15 and min(sizes) > 0:
            kernels = tuple(rng.randint(1, n) for n in sizes)
            over = self.fresh(tuple(n - k + 1 for n, k in zip(sizes, kernels, strict=True)))
            kernel = self.fresh(kernels)
            self.anchors.append(kernel)
            return Window(1, over, 1, kernel, False, 0)
        if not self.simple and kind < 0.22 and all(n % 2 == 0 for n in sizes):
            return Window(2, self.fresh(tuple(n // 2 for n in sizes)), 1, None, False, 1)
        if not self.simple and kind < 0.32:
            first = self.fresh(tuple(rng.randint(0, n) for n in sizes))
            pairs = zip(sizes, self.labels[first], strict=True)
            rest = self.fresh(tuple(n - a for n, a in pairs))
            self.anchors.append(first)
            return Joined((first, rest))
        if kind < 0.38:
            return Blank()
        if kind < 0.44 and min(sizes) > 1:
            return Fixed(rng.randrange(2))
        same = [name for name, other in self.labels.items() if other == sizes]
        if same and rng.random() < 0.4:
            return Label(rng.choice(same))
        return Label(self.fresh(sizes))

    def result(self, operands: Sequence[Sequence[Axis]], last: bool) -> list[tuple[Axis, Sizes]]:
        """The axes of the result; one whose extent nothing gives only in the last stage."""
        rng = self.rng
        together = [set().union(*map(_names, axes)) for axes in operands]
        used = sorted(set().union(*together))
        kept = [name for name in used if rng.random() < 0.6]
        rng.shuffle(kept)
        found: list[tuple[Axis, Sizes]] = []
        while kept:
            name, kind = kept.pop(), rng.random()
            sizes = self.labels[name]
            if kind < 0.06:
                found += [(Label(name), sizes)] * 2
            elif kind < 0.14 and not self.simple:
                stride = rng.choice((1, 2, 3))
                strided = Window(stride, name, 1, None, False, rng.randrange(stride))
                found.append((strided, tuple(stride * n for n in sizes)))
            elif (
                kind < 0.24 and not self.simple and kept and min(sizes + self.labels[kept[-1]]) > 0
            ):
                other, stride, step = kept.pop(), rng.choice((1, 2)), rng.choice((1, 2))
                pairs = zip(sizes, self.labels[other], strict=True)
                total = tuple(stride * (o - 1) + 1 + step * (k - 1) for o, k in pairs)
                found.append((Window(stride, name, step, other, False, 0), total))
            elif kind < 0.5 and not self.simple and kept:
                other = kept[-1]
                if any({name, other} <= names for names in together) or not any(
                    name in names for names in together
                ):
                    found.append((Label(name), sizes))
                    continue
                kept.pop()
                total = tuple(a + b for a, b in zip(sizes, self.labels[other], strict=True))
                found.append((Joined((name, other)), total))
            else:
                found.append((Label(name), sizes))
        if last and rng.random() < 0.15:
            position = rng.choice((0, 0, 1, 2))
            at = rng.randint(0, len(found))
            found.insert(at, (Fixed(position), (position + 1,) * len(RUNS)))
        if last and rng.random() < 0.08:
            axis: Axis = Blank() if rng.random() < 0.5 else Label(self.fresh((1,) * len(RUNS)))
            found.insert(rng.randint(0, len(found)), (axis, (1,) * len(RUNS)))
        return found


def _names(axis: Axis) -> set[str]:
    match axis:
        case Label():
            return {axis.name}
        case Window():
            return {axis.over} if axis.kernel is None else {axis.over, axis.kernel}
        case Joined():
            return set(axis.parts)
        case _:
            return set()


def _spec(
    rng: random.Random, first: Sequence[Sizes] | None, last: bool
) -> tuple[Spec, list[list[Sizes]], list[Sizes]] | None:
    """A specification whose first operand has these extents; those of the others, and of the result."""
    draw = _Draw(rng, simple=rng.random() < 0.3)
    operands: list[list[Axis]] = []
    extents: list[list[Sizes]] = []
    for number in range(rng.choice((1, 2, 2, 3))):
        if number == 0 and first is not None:
            operands.append([draw.given(sizes) for sizes in first])
            extents.append(list(first))
        else:
            made = [draw.axis() for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
            operands.append([axis for axis, _ in made])
            extents.append([sizes for _, sizes in made])
    plain = {axis.name for axes in operands for axis in axes if isinstance(axis, Label)}
    missing = [name for name in dict.fromkeys(draw.anchors) if name not in plain]
    if missing:
        if len(operands) == MOST_OPERANDS or (
            rng.random() < 0.3 and (len(operands) > 1 or first is None)
        ):
            operands[-1] += [Label(name) for name in missing]
            extents[-1] += [draw.labels[name] for name in missing]
            if len(operands) == 1 and first is not None:
                return None
        else:
            operands.append([Label(name) for name in missing])
            extents.append([draw.labels[name] for name in missing])
    result = draw.result(operands, last)
    shapes = [
        [*zip(axes, sizes, strict=True)] for axes, sizes in zip(operands, extents, strict=True)
    ]
    written = _written(rng, draw, [*shapes, result])
    if any(_points(written, draw.labels, run) > MOST_POINTS for run in range(len(RUNS))):
        return None
    return written, extents, [sizes for _, sizes in result]


def _points(spec: Spec, labels: dict[str, Sizes], run: int) -> int:
    total = 1
    names = {n for s in (*spec.operands, spec.result) for axis in s.axes for n in _names(axis)}
    for name in names:
        total *= max(1, labels[name][run])
    blanks = sum(isinstance(a, Blank) for s in spec.operands for a in s.axes)
    return int(total * 8**blanks)


def _written(
    rng: random.Random, draw: _Draw, shapes: Sequence[Sequence[tuple[Axis, Sizes]]]
) -> Spec:
    """The specification as text, its rows divided anywhere; perhaps with a row variable."""
    axes = [tuple(axis for axis, _ in shape) for shape in shapes]
    run = _row_variable(rng, axes)
    made, words = [], []
    dots = [_cut(rng, each, run) for each in axes]
    kinds = {kind for _, kind in dots if kind is not None}
    name = "..." if len(kinds) == 1 and rng.random() < 0.6 else "..vv.."
    named = rng.random() < 0.2 or any(
        isinstance(a, Window | Joined) or (isinstance(a, Label) and len(a.name) > 1)
        for each in axes
        for a in each
        if not (run and isinstance(a, Label) and a.name in run)
    )
    for each, (shape, _) in zip(axes, dots, strict=True):
        made.append(shape)
        words.append(_text(rng, each, shape, name, named))
    blank = rng.choice(("", " "))
    text = f"{blank};{blank}".join(words[:-1]) + f"{blank}=>{blank}{words[-1]}"
    return Spec(tuple(made[:-1]), made[-1], dict(draw.labels), text)


def _row_variable(rng: random.Random, axes: Sequence[tuple[Axis, ...]]) -> tuple[str, ...]:
    """Labels that a row variable may stand for: next to each other, in this order, in every shape that has one."""
    if rng.random() < 0.5:
        return ()
    shape = rng.choice(list(axes[:-1]))
    starts = [n for n, axis in enumerate(shape) if isinstance(axis, Label)]
    if not starts:
        return ()
    start = rng.choice(starts)
    run = []
    for axis in shape[start : start + rng.choice((1, 1, 2))]:
        if not isinstance(axis, Label) or axis.name in run:
            break
        run.append(axis.name)
    for each in axes:
        names = [n for axis in each for n in _names(axis)]
        plain = [axis.name if isinstance(axis, Label) else "" for axis in each]
        hits = [n for n in names if n in run]
        if hits and (hits != run or run[0] not in plain):
            return ()
        at = plain.index(run[0]) if hits else 0
        if hits and plain[at : at + len(run)] != run:
            return ()
    return tuple(run)


def _cut(
    rng: random.Random, axes: tuple[Axis, ...], run: tuple[str, ...]
) -> tuple[Shape, int | None]:
    """Where the rows of a shape begin, and the row of its row variable (0 batch, 1 output, 2 input)."""
    plain = [axis.name if isinstance(axis, Label) else "" for axis in axes]
    variable = None
    if run and run[0] in plain:
        at = plain.index(run[0])
        variable = (at, at + len(run))
    free = [
        n for n in range(len(axes) + 1) if variable is None or not variable[0] < n < variable[1]
    ]
    few = rng.random() < 0.5
    batch = 0 if few else rng.choice(free)
    output = len(axes) if few else rng.choice([n for n in free if n >= batch])
    kind = None
    if variable is not None:
        kind = 0 if variable[1] <= batch else (2 if variable[0] >= output else 1)
    return Shape(axes, batch, output, variable), kind


def _text(rng: random.Random, axes: tuple[Axis, ...], shape: Shape, name: str, named: bool) -> str:
    words: list[str] = []
    for n, axis in enumerate(axes):
        if shape.variable is not None and shape.variable[0] <= n < shape.variable[1]:
            words.append(name if n == shape.variable[0] else "")
        else:
            words.append(_axis_text(axis))
    rows = [words[: shape.batch], words[shape.batch : shape.output], words[shape.output :]]
    batch, output, inner = (_row_text(row, named) for row in rows)
    text = output
    if inner or (rng.random() < 0.05 and not shape.variable):
        text = f"{inner}->{text}"
    if batch or (rng.random() < 0.05 and not shape.variable):
        text = f"{batch}|{text}"
    return text


def _row_text(words: Sequence[str], named: bool) -> str:
    kept = [word for word in words if word]
    if not named:
        return "".join(kept)
    return ",".join(kept) + ("," if len(kept) == 1 and kept[0][:1] != "." else "")


def _axis_text(axis: Axis) -> str:
    match axis:
        case Label():
            return axis.name
        case Blank():
            return "_"
        case Fixed():
            return str(axis.position)
        case Joined():
            return "^".join(axis.parts)
        case Window():
            text = axis.over if axis.stride == 1 and axis.kernel else f"{axis.stride}*{axis.over}"
            if axis.kernel is not None:
                times = "" if axis.dilation == 1 else f"{axis.dilation}*"
                text += f"{'=' if axis.padded else '<'}+{times}{axis.kernel}"
            if axis.offset:
                text += f"{axis.offset:+d}"
            return text


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    while True:
        made = _chain(rng)
        if made is not None:
            return made


def _chain(rng: random.Random) -> Program | None:
    stages: list[Spec | Pointwise] = []
    inputs: list[list[Sizes]] = []
    stage: Spec | Pointwise
    value: list[Sizes] | None = None
    text = ""
    count = rng.choice((1, 1, 2, 3))
    for number in range(count):
        if value is not None and rng.random() < 0.35 and len(value) < 6:
            stage, others, value = _pointwise(rng, value)
            word = stage.text
        else:
            found = _spec(rng, value, number == count - 1)
            if found is None:
                return None
            stage, extents, result = found
            others = extents[number > 0 :]
            value = result
            quote = rng.choice('""\'')
            word = f"einsum({quote}{stage.text}{quote})"
        stages.append(stage)
        inputs += others
        text = word if not text else _joined(rng, text, word)
    dtype = rng.choice(DTYPES) if count == 1 else rng.choice(("f64", "i64"))
    numbers = np.random.default_rng(rng.getrandbits(32))
    runs = []
    for run in range(len(RUNS)):
        shapes = [tuple(sizes[run] for sizes in each) for each in inputs]
        if any(int(np.prod(shape)) > MOST_POINTS for shape in shapes):
            return None
        runs.append(tuple(numbers.integers(-3, 4, shape).astype(NUMPY[dtype]) for shape in shapes))
    return Program(tuple(stages), text, dtype, tuple(runs))


def _joined(rng: random.Random, text: str, word: str) -> str:
    kind = rng.random()
    if kind < 0.15:
        return f"({text}) >> {word}"
    if kind < 0.3:
        return f"{word} << ({text})"
    return f"{text} >> {word}"


def _pointwise(
    rng: random.Random, value: list[Sizes]
) -> tuple[Pointwise, list[list[Sizes]], list[Sizes]]:
    letters = "".join(rng.sample("abcdefghij", len(value)))
    name = rng.choice(("relu", "neg", "add", "sum", "turn"))
    if name == "add":
        both = letters or "."
        return Pointwise(f"{both}+{both}~{both}", name, True), [value], value
    if name == "sum" and value:
        return Pointwise(f"+{letters}~{letters[1:] or '.'}", name, False), [], value[1:]
    if name == "turn":
        return Pointwise(f"{letters or '.'}~{letters[::-1] or '.'}", name, False), [], value[::-1]
    sign = "-" if name == "neg" else ">"
    name = "neg" if name == "neg" else "relu"
    return Pointwise(f"{sign}{letters or '.'}~{letters or '.'}", name, False), [], value


# -- meaning ---------------------------------------------------------------------------------------------------------


def evaluate(program: Program, run: int) -> Array:
    """The result of a run."""
    arrays = list(program.runs[run])
    value: Array | None = None
    for stage in program.stages:
        if isinstance(stage, Spec):
            count = len(stage.operands) - (value is not None)
            operands = ([] if value is None else [value]) + arrays[:count]
            value = _einsum(stage, operands, run)
            del arrays[:count]
            continue
        assert value is not None
        if stage.name == "add":
            value = value + arrays.pop(0)
        elif stage.name == "sum":
            value = value.sum(axis=0, dtype=value.dtype)
        elif stage.name == "turn":
            value = value.transpose()
        else:
            value = -value if stage.name == "neg" else np.maximum(value, 0)
    assert value is not None
    return value


def _einsum(spec: Spec, operands: Sequence[Array], run: int) -> Array:
    sizes = {name: many[run] for name, many in spec.labels.items()}
    wide = np.float64 if operands[0].dtype.kind == "f" else np.int64
    out = np.zeros([_extent(axis, sizes) for axis in spec.result.axes], wide)
    joined = [
        axis for s in (*spec.operands, spec.result) for axis in s.axes if isinstance(axis, Joined)
    ]
    everything = {name for axis in joined for name in axis.parts}
    for choice in dict.fromkeys(product(*(axis.parts for axis in joined))):
        chosen = set(choice)
        pairs = zip(joined, choice, strict=True)
        if any(chosen & (set(axis.parts) - {part}) for axis, part in pairs):
            continue
        idle = everything - chosen
        if not _mentions(spec.result, idle):
            _add(spec, operands, sizes, chosen, idle, out)
    return out.astype(operands[0].dtype)


def _mentions(shape: Shape, idle: set[str]) -> bool:
    return any(
        set(axis.parts) <= idle if isinstance(axis, Joined) else bool(_names(axis) & idle)
        for axis in shape.axes
    )


def _extent(axis: Axis, sizes: dict[str, int]) -> int:
    match axis:
        case Label():
            return sizes[axis.name]
        case Blank():
            return 1
        case Fixed():
            return axis.position + 1
        case Joined():
            return sum(sizes[name] for name in axis.parts)
        case Window():
            if axis.kernel is None or axis.padded:
                return axis.stride * sizes[axis.over]
            return (
                axis.stride * (sizes[axis.over] - 1) + 1 + axis.dilation * (sizes[axis.kernel] - 1)
            )


def _add(
    spec: Spec,
    operands: Sequence[Array],
    sizes: dict[str, int],
    chosen: set[str],
    idle: set[str],
    out: Array,
) -> None:
    """Add what one choice of parts contributes."""
    read = [n for n, shape in enumerate(spec.operands) if not _mentions(shape, idle)]
    if not read:
        return
    loops: dict[str, int] = {}
    shapes = [(spec.operands[n], operands[n].shape) for n in read] + [(spec.result, out.shape)]
    for place, (shape, dims) in enumerate(shapes):
        for dim, axis in enumerate(shape.axes):
            for name in _names(axis) - (set() if not isinstance(axis, Joined) else idle):
                loops[name] = sizes[name]
            if isinstance(axis, Blank):
                loops[f"_{place} {dim}"] = dims[dim]
    grid = dict(zip(loops, np.indices(tuple(loops.values())), strict=True)) if loops else {}
    domain = tuple(loops.values())
    total = np.ones(domain, out.dtype)
    for place, (shape, dims) in enumerate(shapes[:-1]):
        inside, index = np.ones(domain, bool), []
        for dim, axis in enumerate(shape.axes):
            at = np.broadcast_to(_at(axis, grid, sizes, chosen, f"_{place} {dim}"), domain)
            inside &= (0 <= at) & (at < dims[dim])
            index.append(np.clip(at, 0, max(dims[dim] - 1, 0)))
        if total.size and operands[read[place]].size:
            total = np.asarray(total * np.where(inside, operands[read[place]][tuple(index)], 0))
        elif total.size:
            total = np.zeros_like(total)
    last = len(shapes) - 1
    target = tuple(
        np.broadcast_to(_at(axis, grid, sizes, chosen, f"_{last} {dim}"), domain)
        for dim, axis in enumerate(spec.result.axes)
    )
    if total.size:
        np.add.at(out if target else out[None], target or (np.zeros(domain, int),), total)


def _at(
    axis: Axis, grid: dict[str, Array], sizes: dict[str, int], chosen: set[str], blank: str
) -> Any:
    match axis:
        case Label():
            return grid[axis.name]
        case Blank():
            return grid[blank]
        case Fixed():
            return np.asarray(axis.position)
        case Joined():
            before = 0
            for name in axis.parts:
                if name in chosen:
                    return grid[name] + before
                before += sizes[name]
            raise AssertionError("no part is chosen")
        case Window():
            at = axis.stride * grid[axis.over] + axis.offset
            if axis.kernel is not None:
                at = at + axis.dilation * grid[axis.kernel]
                if axis.padded:
                    at = at - (axis.dilation * (sizes[axis.kernel] - 1) + 1) // 2
            return at

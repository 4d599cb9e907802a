"""Random operations in einx notation, and what they mean: loops over named axes, element by element."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilang.core.record import record

Array = NDArray[Any]
Item = str | tuple["Item", ...]
"""An axis, a number, or a composition of some."""
Place = Mapping[str, int]
"""Where an iteration is along each axis."""


@record
class Program:
    """An operation, what it is called with, and its results."""

    op: str
    text: str
    arrays: tuple[Array, ...]
    sizes: dict[str, int]
    results: tuple[Array, ...]


class Writer:
    """One operation under construction: its axes, their sizes, and random numbers."""

    def __init__(self, seed: int) -> None:
        """Up to four axes of few elements, sometimes none; now and then one that fills vectors."""
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.names = self.random.sample("abcdefgh", self.random.randint(1, 4))
        few = [1, 2, 3, 0] if self.random.random() < 0.1 else [1, 2, 3]
        self.size = {name: self.random.choice(few) for name in self.names}
        if self.random.random() < 0.15:
            self.size[self.names[0]] = self.random.choice([17, 35])

    def some(self, names: Sequence[str], least: int = 0) -> list[str]:
        """Some of the names, in any order."""
        return self.random.sample(names, self.random.randint(least, len(names)))

    def composed(self, names: Sequence[str], whole: bool = True) -> tuple[Item, ...]:
        """Names as dimensions, in their order."""
        found: list[Item] = []
        at = 0
        while at < len(names):
            part = names[at : at + self.random.choice([1, 1, 2, 3])]
            at += len(part)
            if len(part) == 1 and self.random.random() < 0.85:
                found.append(part[0])
            else:
                deep = len(part) > 1 and self.random.random() < 0.2
                found.append(self.composed(part, False) if deep else tuple(part))
        if whole and self.random.random() < 0.15:
            found.insert(self.random.randint(0, len(found)), "1")
        return tuple(found)

    def shuffled(self, names: Sequence[str]) -> tuple[Item, ...]:
        """The dimensions of a tensor that has these axes."""
        return self.composed(self.random.sample(names, len(names)))

    def around(self, whole: tuple[Item, ...], names: Sequence[str]) -> tuple[Item, ...]:
        """Dimensions of a composition and of other axes, one of which may be in one dimension with it."""
        items: list[Item] = self.random.sample([*names, whole], 1 + len(names))
        at = items.index(whole)
        if at and self.random.random() < 0.5:
            rest = (whole,) if self.random.random() < 0.5 else whole
            items[at - 1 : at + 1] = [(items[at - 1], *rest)]
        return tuple(items)

    def extent(self, item: Item) -> int:
        """How many elements a dimension has."""
        if isinstance(item, tuple):
            return math.prod(map(self.extent, item))
        return 1 if item == "1" else self.size[item]

    def shape(self, items: Sequence[Item]) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(map(self.extent, items))

    def noise(self, items: Sequence[Item]) -> Array:
        """A tensor of random numbers."""
        return self.numbers.standard_normal(self.shape(items))

    def index(self, items: Sequence[Item], at: Place) -> tuple[int, ...]:
        """Where the element of an iteration is."""
        return tuple(self._position(item, at) for item in items)

    def _position(self, item: Item, at: Place) -> int:
        if not isinstance(item, tuple):
            return 0 if item == "1" else at[item]
        position = 0
        for each in item:
            position = position * self.extent(each) + self._position(each, at)
        return position

    def loops(self, *names: str) -> Iterator[dict[str, int]]:
        """Every iteration over some axes."""
        for values in itertools.product(*(range(self.size[name]) for name in names)):
            yield dict(zip(names, values, strict=True))

    def filled(
        self, items: Sequence[Item], names: Sequence[str], element: Callable[[dict[str, int]], Any]
    ) -> Array:
        """A tensor whose elements are computed one by one."""
        result = np.zeros(self.shape(items))
        for at in self.loops(*names):
            result[self.index(items, at)] = element(at)
        return result

    def given(self, *names: str) -> dict[str, int]:
        """The sizes of some axes."""
        return {name: self.size[name] for name in names}

    def at_least_one(self, names: Sequence[str]) -> None:
        """Leave no axis of these without an element."""
        for name in names:
            self.size[name] = self.size[name] or 2


def text_of(items: Sequence[Item], marked: Sequence[str] = ()) -> str:
    """Dimensions as they are written."""

    def one(item: Item) -> str:
        if isinstance(item, tuple):
            return f"({text_of(item, marked)})"
        return f"[{item}]" if item in marked else item

    return " ".join(map(one, items))


def flat(items: Sequence[Item]) -> list[str]:
    """The axes of dimensions, left to right."""
    return [name for item in items for name in (flat(item) if isinstance(item, tuple) else [item])]


def moved(w: Writer) -> Program:
    """einx.id of one tensor, with an axis of its own sometimes."""
    w.size["z"] = 2
    new = ["z"] if w.random.random() < 0.2 else []
    x_dims, dims = w.shuffled(w.names), w.shuffled([*w.names, *new])
    x = w.noise(x_dims)
    names = [*w.names, *new]
    result = w.filled(dims, names, lambda at: x[w.index(x_dims, at)])
    return Program("id", f"{text_of(x_dims)} -> {text_of(dims)}", (x,), w.given(*names), (result,))


def kept_whole(w: Writer) -> Program:
    """A composition with a number, which stands alike in inputs and in the output, alone or inside of another."""
    number = w.random.choice("23")
    w.size[number] = int(number)
    inner = w.random.sample([number, *w.some(w.names, 1)[:2]], 2)
    whole: tuple[Item, ...] = tuple(dict.fromkeys([*inner, number]))
    names = [name for name in w.names if name not in whole]
    x_dims, dims = (w.around(whole, names) for _ in range(2))
    x, y = w.noise(x_dims), w.noise((whole,))
    every = [*names, *flat((whole,))]
    result = w.filled(dims, every, lambda at: x[w.index(x_dims, at)] + y[w.index((whole,), at)])
    text = f"{text_of(x_dims)}, {text_of((whole,))} -> {text_of(dims)}"
    return Program("add", text, (x, y), w.given(*w.names), (result,))


REDUCTIONS: dict[str, Callable[[Array], Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "mean": np.mean,
    "std": np.std,
    "logsumexp": lambda x: np.log(np.sum(np.exp(x))),
}


def reduced(w: Writer) -> Program:
    """A reduction over some axes."""
    op = w.random.choice(list(REDUCTIONS))
    marked = w.some(w.names, 1)
    if op not in ("sum", "prod"):
        w.at_least_one(marked)
    kept = [name for name in w.names if name not in marked]
    x_dims, dims = w.shuffled(w.names), w.shuffled(kept)
    x = w.noise(x_dims)

    def element(at: Place) -> Any:
        inner = [x[w.index(x_dims, {**at, **more})] for more in w.loops(*marked)]
        return REDUCTIONS[op](np.array(inner))

    text = f"{text_of(x_dims, marked)} -> {text_of(dims)}"
    return Program(op, text, (x,), w.given(*w.names), (w.filled(dims, kept, element),))


def pointwise(w: Writer) -> Program:
    """Operands that lack axes, element by element."""
    op, count = w.random.choice([("add", 1), ("add", 3), ("multiply", 2), ("where", 3)])
    operands = [w.shuffled(w.some(w.names)) for _ in range(count)]
    arrays = [w.noise(dims) for dims in operands]
    if op == "where":
        arrays[0] = arrays[0] > 0
    dims = w.shuffled(w.names)

    def element(at: Place) -> Any:
        values = [x[w.index(own, at)] for x, own in zip(arrays, operands, strict=True)]
        if op == "where":
            return values[1] if values[0] else values[2]
        return sum(values) if op == "add" else values[0] * values[1]

    text = f"{', '.join(map(text_of, operands))} -> {text_of(dims)}"
    result = w.filled(dims, w.names, element)
    return Program(op, text, tuple(arrays), w.given(*w.names), (result,))


def contracted(w: Writer) -> Program:
    """A product of two tensors or three, summed over some axes."""
    have = [set(w.some(w.names)) for _ in range(w.random.choice([2, 2, 3]))]
    marked = w.some(w.names)
    for name in marked:
        for axes in w.random.sample(have, 2):
            axes.add(name)
    names = sorted(set().union(*have))
    kept = [name for name in names if name not in marked]
    operands = [w.shuffled(sorted(axes)) for axes in have]
    arrays = [w.noise(own) for own in operands]
    dims = w.shuffled(kept)
    result = np.zeros(w.shape(dims))
    for at in w.loops(*names):
        factors = [x[w.index(own, at)] for x, own in zip(arrays, operands, strict=True)]
        result[w.index(dims, at)] += math.prod(factors)
    text = f"{', '.join(text_of(own, marked) for own in operands)} -> {text_of(dims)}"
    return Program("dot", text, tuple(arrays), w.given(*names), (result,))


def preserved(w: Writer) -> Program:
    """An operation that gives the axes that it sees."""
    op = w.random.choice(["softmax", "flip", "argsort", "sort"])
    marked = w.some(w.names, 1)[: 1 if op in ("argsort", "sort") else None]
    if op == "softmax":
        w.at_least_one(marked)
    x_dims, dims = w.shuffled(w.names), w.shuffled(w.names)
    x = np.round(w.noise(x_dims))

    def element(at: dict[str, int]) -> Any:
        values = {
            tuple(more.values()): x[w.index(x_dims, {**at, **more})] for more in w.loops(*marked)
        }
        place = tuple(at[name] for name in marked)
        if op == "flip":
            return values[tuple(w.size[n] - 1 - p for n, p in zip(marked, place, strict=True))]
        if op == "sort":
            return sorted(values.values())[place[0]]
        if op == "argsort":
            return sorted(values, key=lambda p: (values[p], p))[place[0]][0]
        return np.exp(values[place]) / sum(map(np.exp, values.values()))

    text = f"{text_of(x_dims, marked)} -> {text_of(dims, marked)}"
    result = w.filled(dims, w.names, element)
    return Program(op, text, (x,), w.given(*w.names), (result,))


def extreme(w: Writer) -> Program:
    """The coordinates of a maximum."""
    chosen = w.some(w.names, 1)
    w.at_least_one(chosen)
    kept = [name for name in w.names if name not in chosen]
    x_dims = w.shuffled(w.names)
    marked = [name for name in flat(x_dims) if name in chosen]
    x = np.round(w.noise(x_dims))
    w.size["n"] = len(marked)
    dims = w.shuffled([*kept, "n"])

    def element(at: dict[str, int]) -> Any:
        places = [{**at, **more} for more in w.loops(*marked)]
        best = max(places, key=lambda place: x[w.index(x_dims, place)])
        return best[marked[at["n"]]]

    text = f"{text_of(x_dims, marked)} -> {text_of(dims, ['n'])}"
    result = w.filled(dims, [*kept, "n"], element)
    return Program("argmax", text, (x,), w.given(*w.names), (result,))


def looked_up(w: Writer) -> Program:
    """Elements at coordinates, or added to those."""
    w.at_least_one(w.names)
    chosen = w.some(w.names, 1)
    kept = [name for name in w.names if name not in chosen]
    x_dims = w.shuffled(w.names)
    marked = [name for name in flat(x_dims) if name in chosen]
    x = w.noise(x_dims)
    w.size |= {"p": 3, "n": len(marked)}
    shared = w.some(kept)
    along = ["n"] if w.random.random() < 0.6 else []
    operands = [w.shuffled(["p", *along, *shared]) for _ in (marked[:1] if along else marked)]
    arrays = []
    for number, own in enumerate(operands):
        place = np.zeros(w.shape(own), np.int64)
        for at in w.loops("p", *along, *shared):
            axis = marked[at["n"] if along else number]
            place[w.index(own, at)] = w.random.randrange(w.size[axis])
        arrays.append(place)

    def element_at(at: dict[str, int]) -> tuple[int, ...]:
        found = [
            arrays[0 if along else n][w.index(operands[0 if along else n], {**at, "n": n})]
            for n in range(len(marked))
        ]
        return w.index(x_dims, {**at, **dict(zip(marked, map(int, found), strict=True))})

    coordinates = ", ".join(text_of(own, along) for own in operands)
    sizes = w.given(*w.names, "p", *along)
    head = f"{text_of(x_dims, marked)}, {coordinates}"
    if w.random.random() < 0.5:
        dims = w.shuffled([*kept, "p"])
        result = w.filled(dims, [*kept, "p"], lambda at: x[element_at(at)])
        return Program("get_at", f"{head} -> {text_of(dims)}", (x, *arrays), sizes, (result,))
    own = w.shuffled(["p", *w.some(kept)])
    updates, result = w.noise(own), x.copy()
    for at in w.loops(*kept, "p"):
        result[element_at(at)] += updates[w.index(own, at)]
    text = f"{head}, {text_of(own)}"
    return Program("add_at", text, (x, *arrays, updates), sizes, (result,))


def joined(w: Writer) -> Program:
    """Tensors one after the other."""
    parts = [w.some(w.names) for _ in range(w.random.randint(2, 3))]
    base = [name for name in w.names if all(name in part for part in parts)]
    rest = [[name for name in part if name not in base] for part in parts]
    operands = [w.shuffled(part) for part in parts]
    arrays = [w.noise(own) for own in operands]
    at_place = w.random.randint(0, len(base))
    words = [part[0] if len(part) == 1 else f"({' '.join(part)})" if part else "1" for part in rest]
    dims = [*base[:at_place], "J", *base[at_place:]]
    lengths = [math.prod(w.size[name] for name in part) for part in rest]
    w.size["J"] = sum(lengths)
    result = np.zeros(w.shape(dims))
    for n, (part, own, x) in enumerate(zip(rest, operands, arrays, strict=True)):
        for at in w.loops(*base, *part):
            here = sum(lengths[:n]) + w.index((tuple(part),), at)[0]
            result[w.index(dims, {**at, "J": here})] = x[w.index(own, at)]
    whole = " ".join([*base[:at_place], f"({' + '.join(words)})", *base[at_place:]])
    names = sorted({name for part in parts for name in part})
    text = f"{', '.join(map(text_of, operands))} -> {whole}"
    return Program("id", text, tuple(arrays), w.given(*names), (result,))


def split(w: Writer) -> Program:
    """The parts of a tensor, of which one size is open."""
    if len(w.names) < 2:
        return moved(w)
    count = w.random.randint(2, len(w.names))
    parts, base = w.names[:count], w.names[count:]
    w.size["J"] = sum(w.size[name] for name in parts)
    x_dims = [*base, "J"]
    x = w.noise(x_dims)
    outputs = [w.shuffled([*base, part]) for part in parts]
    results = []
    for n, (part, dims) in enumerate(zip(parts, outputs, strict=True)):
        before = sum(w.size[name] for name in parts[:n])

        def element(at: dict[str, int], part: str = part, before: int = before) -> Any:
            return x[w.index(x_dims, {**at, "J": before + at[part]})]

        results.append(w.filled(dims, [*base, part], element))
    whole = " ".join([*base, f"({' + '.join(parts)})"])
    left = w.random.choice(parts)
    given = w.given(*(name for name in parts if name != left))
    text = f"{whole} -> {', '.join(map(text_of, outputs))}"
    return Program("id", text, (x,), given, tuple(results))


KINDS = (
    moved,
    kept_whole,
    reduced,
    pointwise,
    contracted,
    preserved,
    extreme,
    looked_up,
    joined,
    split,
)


def program(seed: int) -> Program:
    """The operation of a seed."""
    return KINDS[seed % len(KINDS)](Writer(seed))

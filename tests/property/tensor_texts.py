"""Random expressions of tensor functions that type, as text and as what they mean (``tensor_meaning.py``)."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from tests.property.tensor_meaning import Array, Frame, Meaning, Shape, meets, stretched

NUMBERS = ("0.5", "2", "1.5", "0.25", "3", "1e-1")
ONE = Shape((), (1,))
TIGHT = 9

UNARY: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "tanh": ("tanh({})", np.tanh),
    "sin": ("sin({})", np.sin),
    "cos": ("cos({})", np.cos),
    "sigmoid": ("sigmoid({})", lambda a: 1 / (1 + np.exp(-a))),
    "relu": ("relu({})", lambda a: np.maximum(a, 0)),
    "sat01": ("sat01({})", lambda a: np.clip(a, 0, 1)),
    "neg": ("neg({})", lambda a: -a),
    "abs": ("abs({})", np.abs),
    "exp": ("exp(tanh({}))", lambda a: np.exp(np.tanh(a))),
    "exp2": ("exp2(sin({}))", lambda a: 2 ** np.sin(a)),
    "log": ("log(abs({}) + 1)", lambda a: np.log(np.abs(a) + 1)),
    "log2": ("log2(2 + abs({}))", lambda a: np.log2(2 + np.abs(a))),
    "sqrt": ("sqrt(abs({}) + 0.5)", lambda a: np.sqrt(np.abs(a) + 0.5)),
    "recip": ("recip(abs({}) + 1)", lambda a: 1 / (np.abs(a) + 1)),
    "recip_sqrt": ("recip_sqrt(abs({}) +. 2)", lambda a: 1 / np.sqrt(np.abs(a) + 2)),
}
"""Functions of one operand, each kept away from where it has a pole or overflows."""

INFIX: dict[str, tuple[int, Callable[[Array, Array], Array]]] = {
    "*.": (5, np.multiply),
    "+": (4, np.add),
    "+.": (4, np.add),
    "-": (4, np.subtract),
    "-.": (4, np.subtract),
    "-?/": (4, lambda a, b: np.where(a > 0, b, 0.0)),
}
COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True)
class Node:
    """An expression: its text, how tightly that binds, its shape, what it is in a run."""

    text: str
    level: int
    shape: Shape
    meaning: Meaning

    def within(self, level: int) -> str:
        """The text where something binds as tightly as this."""
        return self.text if level <= self.level else f"({self.text})"


@dataclass(frozen=True)
class Callee:
    """A tensor function: its text, the shapes it takes and gives, what it means, whether calls share parameters."""

    name: str
    text: str
    takes: tuple[Shape, ...]
    gives: Shape
    meaning: Callable[[Frame, Sequence[Array]], Array]
    shares: bool
    settings: str = ""


@dataclass
class Scope:
    """What may be read where an expression stands, and what was not read yet."""

    named: dict[str, Node] = field(default_factory=dict)
    config: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    declares: bool = True

    def add(self, name: str, shape: Shape) -> Node:
        """A tensor of a name."""
        self.named[name] = Node(name, TIGHT, shape, lambda frame: frame.read(name))
        self.unread.append(name)
        return self.named[name]

    def leaf(self, name: str) -> Node:
        """The tensor of a name, read by now."""
        if name in self.unread:
            self.unread.remove(name)
        return self.named[name]


def product(one: Node, text: str, level: int, function: Callable[[Array], Array]) -> Node:
    """A function of one operand that keeps its shape."""
    return Node(text, level, one.shape, lambda frame: function(one.meaning(frame)))


class Expressions:
    """A source of random expressions; ``callees`` are the functions that they may call."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.callees: list[Callee] = []
        self.counter = 0

    def fresh(self, prefix: str) -> str:
        """A name that nothing has."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def size(self) -> int:
        return self.random.randint(2, 4)

    # -- leaves ------------------------------------------------------------------------------------------------------

    def number(self) -> Node:
        text = self.random.choice(NUMBERS)
        return Node(text, TIGHT, ONE, lambda _: np.full(1, float(text)))

    def leaf(self, scope: Scope) -> Node:
        """A name, rarely a number; what was not read yet comes first."""
        random = self.random
        if random.random() < 0.12:
            return self.scalar(scope)
        if scope.unread and random.random() < 0.7:
            return scope.leaf(random.choice(scope.unread))
        return scope.leaf(random.choice(list(scope.named)))

    def scalar(self, scope: Scope) -> Node:
        """A number, a configuration value."""
        random = self.random
        if scope.config and random.random() < 0.5:
            key = random.choice(scope.config)
            return Node(key, TIGHT, ONE, lambda frame: np.full(1, float(frame.run.config[key])))
        return self.number()

    # -- expressions -------------------------------------------------------------------------------------------------

    def term(self, scope: Scope, size: int) -> Node:
        """An expression of at most so many levels."""
        if size <= 0:
            return self.leaf(scope)
        makers = [self.unary, self.unary, self.binary, self.binary, self.binary, self.chosen]
        makers += [self.folded, self.folded, self.contracted, self.powered, self.called]
        makers += [self.linear, self.sliced, self.repeated, self.still, self.divided]
        return self.random.choice(makers)(scope, size)

    def unary(self, scope: Scope, size: int) -> Node:
        one = self.term(scope, size - 1)
        match self.random.randrange(5):
            case 0:
                return product(one, f"?/{one.within(TIGHT)}", 8, lambda a: np.maximum(a, 0))
            case 1:
                text = one.within(7)
                apart = (
                    f"({text})" if text.startswith("?/") else text
                )  # or it is the operator `-?/`
                return product(one, f"-{apart}", 6, np.negative)
            case _:
                text, function = UNARY[self.random.choice(list(UNARY))]
                return product(
                    one, text.format(one.within(4 if " + " not in text else 9)), TIGHT, function
                )

    def pair(self, scope: Scope, size: int) -> tuple[Node, Node, Shape]:
        """Two expressions that go element by element."""
        one, other = self.term(scope, size - 1), self.term(scope, size - 1)
        if self.random.random() < 0.15:
            other = self.scalar(scope)
        if self.random.random() < 0.2 and scope.declares:
            other = self.declared(one.shape.output) or other
        shape = meets(one.shape, other.shape)
        if shape is None:
            other = self.total(other)
            shape = meets(one.shape, other.shape)
        assert shape is not None
        return one, other, shape

    def declared(self, row: tuple[int, ...]) -> Node | None:
        """A parameter of one output row: its last axis, or all of them as they follow from use."""
        if not row or 1 in row:
            return None
        name, extent = self.fresh("s"), row[-1]
        if self.random.random() < 0.5:
            last = Shape((), (extent,))
            return Node(
                f'"{name}" {extent}', 8, last, lambda frame: frame.parameter(name, (extent,))
            )
        start = self.random.choice(("0.5", "1.25", "(-0.5)", "1e-1"))
        text = pinned(f'"{name}" {start}', len(row))
        return Node(text, 4, Shape((), row), lambda frame: frame.parameter(name, row))

    def joined(
        self, one: Node, other: Node, shape: Shape, operator: str, level: int, function: Any
    ) -> Node:
        """Two operands element by element."""

        def meaning(frame: Frame) -> Array:
            left = stretched(one.meaning(frame), one.shape, shape)
            result: Array = function(left, stretched(other.meaning(frame), other.shape, shape))
            return np.asarray(result, np.float64)

        text = f"{one.within(level)} {operator} {other.within(level + 1)}"
        return Node(text, level, shape, meaning)

    def binary(self, scope: Scope, size: int) -> Node:
        one, other, shape = self.pair(scope, size)
        if self.random.random() < 0.2:
            name, extreme = self.random.choice((("max", np.maximum), ("min", np.minimum)))
            node = self.joined(one, other, shape, ",", 0, extreme)
            return Node(f"{name}({one.text}, {other.text})", TIGHT, shape, node.meaning)
        operator = self.random.choice(list(INFIX))
        level, function = INFIX[operator]
        return self.joined(one, other, shape, operator, level, function)

    def divided(self, scope: Scope, size: int) -> Node:
        one, other, shape = self.pair(scope, size)
        bounded = product(other, f"(abs({other.text}) + 1)", TIGHT, lambda a: np.abs(a) + 1)
        return self.joined(one, bounded, shape, "/.", 5, np.divide)

    def compared(self, scope: Scope, size: int) -> Node:
        """A truth value, element by element."""
        one, other, shape = self.pair(scope, size)
        operator = self.random.choice(list(COMPARED))
        left, right = one.within(4), other.within(4)
        node = self.joined(one, other, shape, operator, 3, COMPARED[operator])
        node = Node(f"{left} {operator} {right}", 3, shape, node.meaning)
        if self.random.random() < 0.3:
            return product(node, f"not ({node.text})", 8, lambda a: 1 - a)
        if self.random.random() < 0.3 and 1 < size:
            more = self.compared(scope, size - 1)
            both = meets(shape, more.shape)
            if both is not None:
                word, level, function = self.random.choice(
                    (("&&", 2, np.minimum), ("||", 1, np.maximum))
                )
                return self.joined(node, more, both, word, level, function)
        return node

    def chosen(self, scope: Scope, size: int) -> Node:
        """``where``, or arithmetic on truth values."""
        test = self.compared(scope, size - 1)
        if self.random.random() < 0.3:
            return self.joined(test, self.number(), test.shape, "*.", 5, np.multiply)
        one, other, shape = self.pair(scope, size)
        whole = meets(test.shape, shape)
        if whole is None:
            summed = self.total(test)
            test = product(summed, f"{summed.within(4)} > 1", 3, lambda a: a > 1)
            whole = meets(test.shape, shape)
        assert whole is not None
        nodes = (test, one, other)

        def meaning(frame: Frame) -> Array:
            arrays = [stretched(each.meaning(frame), each.shape, whole) for each in nodes]
            return np.where(arrays[0] != 0, arrays[1], arrays[2])

        return Node(f"where({test.text}, {one.text}, {other.text})", TIGHT, whole, meaning)

    def powered(self, scope: Scope, size: int) -> Node:
        one = self.unary(scope, size)
        exponent = self.random.choice((2, 2, 3))
        return product(one, f"{one.within(8)} **. {exponent}", 7, lambda a: a**exponent)

    def still(self, scope: Scope, size: int) -> Node:
        """What nothing flows back through."""
        one = self.term(scope, size - 1)
        return Node(
            f"stop_gradient({one.text})",
            TIGHT,
            one.shape,
            lambda frame: frame.run.hold(one.meaning(frame)),
        )

    def sliced(self, scope: Scope, size: int) -> Node:
        one = self.term(scope, size - 1)
        if not one.shape.batch:
            return one
        place = self.random.randrange(one.shape.batch[0])
        shape = Shape(one.shape.batch[1:], one.shape.output)
        text = f"{one.within(8)} @| {place}"
        return Node(text, 8, shape, lambda frame: one.meaning(frame)[place])

    # -- folds -------------------------------------------------------------------------------------------------------

    def total(self, one: Node) -> Node:
        """The sum of all elements."""
        text = f'{one.within(4)} ++ "...|... => 0"'
        return Node(text, 4, ONE, lambda frame: one.meaning(frame).sum().reshape(1))

    def letters(self, shape: Shape, taken: dict[str, int]) -> tuple[str, str]:
        """A letter for each axis of a batch row and of an output row; some recur where extents are equal."""
        rows = []
        for row in (shape.batch, shape.output):
            text = ""
            for extent in row:
                alike = [each for each, known in taken.items() if known == extent]
                unused = next(each for each in string.ascii_lowercase if each not in taken)
                letter = (
                    self.random.choice(alike) if alike and self.random.random() < 0.4 else unused
                )
                taken[letter] = extent
                text += letter
            rows.append(text)
        return rows[0], rows[1]

    def result(self, taken: dict[str, int]) -> tuple[str, str]:
        """Rows of a result: some of the letters, in any order."""
        kept = self.random.sample(sorted(taken), self.random.randint(0, min(3, len(taken))))
        cut = self.random.randint(0, max(0, len(kept) - 1))
        return "".join(kept[:cut]), "".join(kept[cut:])

    def spec(self, shapes: Sequence[Shape]) -> tuple[str, str, Shape]:
        """A specification, the same for NumPy, the shape of its result."""
        taken: dict[str, int] = {}
        rows = [self.letters(shape, taken) for shape in shapes]
        batch, output = self.result(taken)
        shape = Shape(tuple(taken[n] for n in batch), tuple(taken[n] for n in output))
        if not output:
            shape = Shape(shape.batch, (1,))
        operands = "; ".join(_row(*each) for each in rows)
        numpy = ",".join(b + o for b, o in rows) + "->" + batch + output
        return f"{operands} => {_row(batch, output or '0')}", numpy, shape

    def folded(self, scope: Scope, size: int) -> Node:
        one = self.term(scope, size - 1)
        if 1 in one.shape.dims():
            return self.total(one)
        if self.random.random() < 0.25:
            return self.greatest(one)
        text, numpy, shape = self.spec([one.shape])
        return Node(
            f'{one.within(4)} ++ "{text}"',
            4,
            shape,
            lambda frame: np.einsum(numpy, one.meaning(frame)).reshape(shape.dims()),
        )

    def greatest(self, one: Node) -> Node:
        """The greatest element along axes."""
        batch, output = "abc"[: len(one.shape.batch)], "xyz"[: len(one.shape.output)]
        kept = [n for n in batch if self.random.random() < 0.5]
        keeps = tuple(n for n, letter in enumerate(batch) if letter in kept)
        shape = Shape(tuple(one.shape.batch[n] for n in keeps), (1,))
        axes = tuple(n for n in range(len(one.shape.dims())) if n not in keeps)
        text = f'einmax("{_row(batch, output)} => {_row("".join(kept), "0")}", {one.text})'
        return Node(
            text,
            TIGHT,
            shape,
            lambda frame: one.meaning(frame).max(axis=axes).reshape(shape.dims()),
        )

    def contracted(self, scope: Scope, size: int) -> Node:
        one, other = self.term(scope, size - 1), self.leaf(scope)
        if 1 in (*one.shape.dims(), *other.shape.dims()):
            other = self.total(other)
            return self.joined(one, other, meets(one.shape, ONE) or ONE, "-", 4, np.subtract)
        text, numpy, shape = self.spec([one.shape, other.shape])

        def meaning(frame: Frame) -> Array:
            joined: Array = np.einsum(numpy, one.meaning(frame), other.meaning(frame))
            return joined.reshape(shape.dims())

        return Node(f'{one.within(5)} *+ "{text}" {other.within(6)}', 5, shape, meaning)

    def linear(self, scope: Scope, size: int) -> Node:
        """A parameter times an expression, plus another."""
        one = self.term(scope, size - 1)
        if not scope.declares or not one.shape.output or 1 in one.shape.output:
            return product(one, f"0.5 *. {one.within(6)}", 5, lambda a: 0.5 * a)
        return self.affine(one)

    def affine(self, one: Node) -> Node:
        """A parameter times an expression, plus another, whose extents are those of the result."""
        rows = tuple(self.size() for _ in range(self.random.choice((1, 1, 1, 2))))
        weight, bias = self.fresh("w"), self.fresh("b")
        extents = str(rows[0]) if len(rows) == 1 else f"({rows[0]}, {rows[1]})"
        text = pinned(f'"{weight}" * {one.within(6)} + "{bias}" {extents}', len(rows))
        return Node(text, 4, Shape(one.shape.batch, rows), _affine(one, weight, bias, rows))

    # -- calls -------------------------------------------------------------------------------------------------------

    def called(self, scope: Scope, size: int) -> Node:
        """The call of a function of the file, where the scope has what it takes."""
        fitting = [each for each in self.callees if scope.declares or not each.settings]
        for callee in self.random.sample(fitting, len(fitting)):
            given = [self._fitting(scope, shape) for shape in callee.takes]
            if all(given):
                return self.call(callee, [scope.leaf(n) for n in given if n])
        return self.unary(scope, size)

    def _fitting(self, scope: Scope, shape: Shape) -> str | None:
        """A name of a shape."""
        names = [name for name, node in scope.named.items() if node.shape == shape]
        return self.random.choice(names) if names else None

    def call(self, callee: Callee, given: Sequence[Node]) -> Node:
        """The call of a function, by a label where it has parameters anew."""
        place = self.fresh("")
        settings, name = callee.settings, callee.name
        if settings and self.random.random() < 0.3:
            name = f"L{place}"
            settings += f', label = "{name}"'
        separator = "; " if settings else ""
        text = f"{callee.name}({', '.join(each.text for each in given)}{separator}{settings})"

        def meaning(frame: Frame) -> Array:
            arrays = [each.meaning(frame) for each in given]
            owner = frame.owner
            if callee.shares:
                while owner.parent is not None:
                    owner = owner.parent
                return callee.meaning(
                    Frame(frame.run, owner.child(("shared", name), name), {}), arrays
                )
            inner = owner.child((place, *frame.turns), name)
            return callee.meaning(Frame(frame.run, inner, {}), arrays)

        return Node(text, TIGHT, callee.gives, meaning)

    def repeated(self, scope: Scope, size: int) -> Node:
        """Some turns of a body that keeps its shape."""
        names = [name for name, node in scope.named.items() if node.text == name]
        one = scope.leaf(self.random.choice(names))
        count = self.random.randint(1, 3)
        carried = Node(one.text, TIGHT, one.shape, lambda frame: frame.read(one.text))
        step = self.turn(carried, scope.declares)
        text = f"repeat({one.text}; n in {count}) {{ {step.text} }}"

        def meaning(frame: Frame) -> Array:
            value = one.meaning(frame)
            for number in range(count):
                value = step.meaning(frame.turn(one.text, value, number))
            return value

        return Node(text, TIGHT, one.shape, meaning)

    def turn(self, carried: Node, declares: bool) -> Node:
        """A body of a ``repeat``."""
        row = carried.shape.output
        if declares and len(row) == 1 and 1 < row[0] and self.random.random() < 0.5:
            weight, bias = self.fresh("w"), self.fresh("b")
            inner = _affine(carried, weight, bias, row)
            sum_text = f'"{weight}" * {carried.text} + "{bias}" {row[0]}'
            text = f"tanh({pinned(sum_text, 1)})"
            return Node(text, TIGHT, carried.shape, lambda frame: np.tanh(inner(frame)))
        return product(
            carried, f"sin({carried.text} *. 2) + {carried.text}", 4, lambda a: np.sin(a * 2) + a
        )


def pinned(text: str, axes: int) -> str:
    """A sum or a parameter whose output row has so many axes, whatever it meets."""
    row = "abc"[:axes]
    return f'{text} ++ "...|{row} => ...|{row}"'


def _affine(one: Node, weight: str, bias: str, rows: tuple[int, ...]) -> Meaning:
    """What ``"w" * one + "b" rows`` is."""

    def meaning(frame: Frame) -> Array:
        value = one.meaning(frame)
        axes = len(one.shape.output)
        kernel = frame.parameter(weight, (*rows, *one.shape.output))
        last = tuple(range(value.ndim - axes, value.ndim))
        inner = tuple(range(len(rows), len(rows) + axes))
        summed: Array = np.tensordot(value, kernel, (last, inner)) + frame.parameter(bias, rows)
        return summed

    return meaning


def _row(batch: str, output: str) -> str:
    return f"{batch}|{output}"

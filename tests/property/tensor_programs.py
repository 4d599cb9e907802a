"""Random tensor functions and routines that type: their text, and runs of what they mean.

A routine keeps tensors, goes back from a loss, and steps its parameters; a tensor function is run for its value alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.property.tensor_meaning import (
    Array,
    Frame,
    Meaning,
    Owner,
    Run,
    Shape,
    Statement,
    meets,
    stretched,
)
from tests.property.tensor_texts import Callee, Expressions, Node, Scope, pinned, product

WORD = re.compile(r"[A-Za-z_]\w*")
TEXT = re.compile(r'"[^"]*"')
RATE = "lr"


class WentBack(Exception):
    """A run that is repeated for its loss has come to ``backprop``."""


@dataclass(frozen=True)
class Program:
    """A file, the definition of it that is run, the shapes of its inputs, what it means."""

    seed: int
    text: str
    name: str
    dtype: str
    shapes: dict[str, Shape]
    config: dict[str, float]
    meaning: Statement
    owner: Owner

    def run(self, run: Run) -> None:
        """Follow it once."""
        self.meaning(Frame(run, self.owner, run.inputs))

    def loss(self, run: Run) -> float:
        """The sum of what a run goes back from."""
        with suppress(WentBack):
            self.run(run)
        assert run.backward is not None
        return float(run.backward.sum())


ACCUMULATED: dict[str, tuple[Callable[[Array, Array], Array], Callable[[Array], Array]]] = {
    "+": (np.add, lambda a: a),
    "-": (np.subtract, np.negative),
    "@^": (np.maximum, lambda a: a),
    "@-": (np.minimum, lambda a: a),
    "?/": (lambda a, b: np.where(a > 0, b, 0.0), lambda a: a),
}
"""Accumulators: what they make of what is there and what comes, and of what comes alone."""
FOLDS: dict[str, Callable[..., Array]] = {"+": np.sum, "@^": np.max, "@-": np.min, "*": np.prod}

PRIMS: dict[str, tuple[str, int, Callable[[Frame, Sequence[Array]], Array]]] = {
    "swish": (
        'op swish(x) = prim ~logic:"." { v =: v1 * sigmoid(v1) } grad { s = sigmoid(v1); g1 =+ g * (s + v - v *. s) }',
        1,
        lambda _, given: given[0] / (1 + np.exp(-given[0])),
    ),
    "through": (
        'op through(x) = prim ~logic:"." { v =: relu(v1) } grad { g1 =+ g }',
        1,
        lambda frame, given: given[0] + frame.run.hold(np.maximum(given[0], 0) - given[0]),
    ),
    "mixed": (
        'op mixed(x, y) = prim ~logic:"." { v =: v1 * v2 } grad { g1 =+ g * v2; g2 =+ g * v1 }',
        2,
        lambda _, given: given[0] * given[1],
    ),
    "cut": (
        'op cut(x) = prim ~logic:"." { v =: v1; v =@^ 0; v =@- 1 } grad { g1 =+ (v1 > 0 && v1 < 1) *. g }',
        1,
        lambda _, given: np.clip(given[0], 0, 1),
    ),
}

SGD = """cd sgd(p; rate, momentum = 0.0, decay = 0.0) {
  "delta" =: p.grad + decay *. p
  if momentum > 0 { "velocity" =: momentum *. velocity + delta; delta =: velocity }
  p =- rate *. delta
}"""


class Writer:
    """Writes one file."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.source = Expressions(self.random)
        self.texts: list[str] = []
        self.cells: dict[str, Node] = {}
        self.scope = Scope()
        self.fixed: set[str] = set()

    # -- definitions -------------------------------------------------------------------------------------------------

    def inputs(self) -> dict[str, Shape]:
        """The shapes of x and y; a part of the axes of x is enough for y."""
        source, random = self.source, self.random
        batch = tuple(source.size() for _ in range(random.randint(0, 2)))
        output = tuple(source.size() for _ in range(random.choice((1, 1, 1, 2))))
        x = Shape(batch, output)
        return {"x": x, "y": random.choice((x, Shape(batch[1:], output), Shape((), output[-1:])))}

    def functions(self, shapes: dict[str, Shape]) -> None:
        """What an expression may call."""
        random = self.random
        for name in random.sample(list(PRIMS), random.randint(0, 2)):
            text, count, meaning = PRIMS[name]
            self.texts.append(text)
            takes = (shapes["x"],) * count
            self.source.callees.append(Callee(name, text, takes, shapes["x"], meaning, True))
        for _ in range(random.randint(0, 2)):
            self.layer(shapes[random.choice("xy")])
        for _ in range(random.randint(0, 2)):
            self.function([shapes[n] for n in random.choice(("x", "y", "xy"))])

    def layer(self, takes: Shape) -> None:
        """A function with parameters anew for each call, one extent of which is configuration."""
        name, size = self.source.fresh("layer"), self.source.size()
        tail, scale = self.random.choice((("", 1.0), (" *. k", 0.5), (" *. k + 1", 0.5)))
        head = "n, k = 0.5" if tail else "n"
        given = self.random.choice((str(size), f"n = {size}"))
        inner = pinned('"w" * x + "b" n', 1)
        text = f"op {name}(x; {head}) = tanh({inner}){tail}"
        one = Node("x", 9, takes, lambda frame: frame.read("x"))
        axes = len(takes.output)

        def meaning(frame: Frame, arrays: Sequence[Array]) -> Array:
            kernel = frame.parameter("w", (size, *takes.output))
            value = arrays[0]
            last = tuple(range(value.ndim - axes, value.ndim))
            summed = np.tensordot(value, kernel, (last, tuple(range(1, 1 + axes))))
            result: Array = np.tanh(summed + frame.parameter("b", (size,))) * scale
            return result + 1 if tail.endswith("1") else result

        self.texts.append(text)
        gives = Shape(one.shape.batch, (size,))
        self.source.callees.append(Callee(name, text, (takes,), gives, meaning, False, given))

    def function(self, takes: Sequence[Shape]) -> None:
        """A function whose calls share parameters: an expression or a block."""
        random, scope = self.random, Scope()
        names = ["a", "b"][: len(takes)]
        for name, shape in zip(names, takes, strict=True):
            scope.add(name, shape)
        bindings, result = self.body(scope, random.choice((0, 0, 1, 2)))
        result = self.complete(scope, [text for _, text, _ in bindings], result, names)
        name = self.source.fresh("f")
        if bindings:
            lines = "".join(f"  {n} = {text}\n" for n, text, _ in bindings)
            text = f"op {name}({', '.join(names)}) {{\n{lines}  {result.text}\n}}"
        else:
            text = f"op {name}({', '.join(names)}) = {result.text}"

        def meaning(frame: Frame, arrays: Sequence[Array]) -> Array:
            frame.values.update(zip(names, arrays, strict=True))
            for bound, _, inner in bindings:
                frame.bind(bound, inner)
            return result.meaning(frame)

        self.texts.append(text)
        callee = Callee(name, text, tuple(takes), result.shape, meaning, True)
        self.source.callees.append(callee)

    def body(self, scope: Scope, count: int) -> tuple[list[tuple[str, str, Meaning]], Node]:
        """So many bindings, and an expression."""
        bindings = []
        for _ in range(count):
            node = self.source.term(scope, 2)
            name = self.source.fresh("h")
            bindings.append((name, node.text, node.meaning))
            scope.add(name, node.shape)
        return bindings, self.source.term(scope, self.random.randint(2, 4))

    def complete(
        self, scope: Scope, before: Sequence[str], result: Node, names: Sequence[str]
    ) -> Node:
        """An expression to which the sums of what nothing has read are added."""
        read = set(_words((*before, result.text)))
        for name in (*names, *(n for n in scope.named if n not in names)):
            if name in read:
                continue
            shape = meets(result.shape, Shape((), (1,)))
            assert shape is not None
            total = self.source.total(scope.leaf(name))
            result = self.source.joined(result, total, shape, "+", 4, np.add)
        return result

    # -- statements --------------------------------------------------------------------------------------------------

    def bound(self) -> tuple[str, Statement]:
        node = self.source.term(self.scope, 2)
        name = self.source.fresh("h")
        self.scope.add(name, node.shape)
        return f"{name} = {node.text}", lambda frame: frame.bind(name, node.meaning)

    def kept(self) -> tuple[str, Statement]:
        """A tensor that the routine declares, and its first assignment."""
        random = self.random
        self.scope.declares = False
        node = self.source.term(self.scope, random.randint(0, 2))
        if 1 in node.shape.dims() or not node.shape.output:
            node = self.scope.leaf("x")
        self.scope.declares = True
        name, logic, fold = self.source.fresh("c"), "", ""
        come, shape = node.meaning, node.shape
        accumulator = random.choice(("", "", ":", ":+", "+", "-", "@^", ":@-", ":-"))
        if accumulator in (":+", "+", "@^", ":@-") and WORD.fullmatch(node.text):
            inner = node.meaning
            fold = accumulator.lstrip(":")
            folded, logic, shape = self.dropped(node.shape)
            come = lambda frame: FOLDS[fold](inner(frame), axis=folded)  # noqa: E731
        accumulator = accumulator or ":"
        cell = Node(name, 9, shape, lambda frame: frame.read(name))
        statement = self.assignment(name, shape, accumulator, Node("", 9, shape, come))
        self.cells[name] = cell
        text = f'"{name}" ={accumulator} {node.text}{logic}'

        axes = f"{'abc'[: len(shape.batch)]}|{'xyz'[: len(shape.output)]}"
        read = f'({name} ++ "{axes} => {axes}")'  # uses would give it more axes, as they give parameters
        self.scope.named[name] = Node(
            read, 9, shape, lambda frame: frame.run.cell(name, shape.dims())
        )
        self.scope.unread.append(name)
        return text, statement

    def dropped(self, shape: Shape) -> tuple[tuple[int, ...], str, Shape]:
        """Axes that a logic folds: their places, the logic, the shape of the result."""
        letters = "abcdef"[: len(shape.dims())]
        batch = letters[: len(shape.batch)]
        keep = [n for n in letters if self.random.random() < 0.5] or [letters[-1]]
        axes = tuple(n for n, letter in enumerate(letters) if letter not in keep)
        rows = [n for n in keep if n in batch], [n for n in keep if n not in batch]
        dims = dict(zip(letters, shape.dims(), strict=True))
        if not rows[1]:
            rows = [], rows[0]
        text = f"{batch}|{letters[len(batch) :]} => {''.join(rows[0])}|{''.join(rows[1])}"
        gives = Shape(tuple(dims[n] for n in rows[0]), tuple(dims[n] for n in rows[1]))
        return axes, f' ~logic:"{text}"', gives

    def assignment(self, name: str, shape: Shape, accumulator: str, come: Node) -> Statement:
        """What an assignment does."""
        fresh, kind = accumulator.startswith(":"), accumulator.lstrip(":")

        def statement(frame: Frame) -> None:
            run = frame.run
            value = np.asarray(stretched(come.meaning(frame), come.shape, shape), np.float64)
            if kind and fresh:
                value = ACCUMULATED[kind][1](value)
            elif kind:
                value = ACCUMULATED[kind][0](run.cell(name, shape.dims()), value)
            run.write(name, value)

        return statement

    def again(self) -> tuple[str, Statement]:
        """Another assignment of a tensor that the routine has."""
        if not self.cells:
            return self.kept()
        random = self.random
        name = random.choice(list(self.cells))
        shape = self.cells[name].shape
        if random.random() < 0.3:
            word, factor = random.choice((("* 0.5", 0.5), ("/ 2", 0.5), ("* 1.5", 1.5)))
            return f"{name} ={word}", self.scaled(name, shape, factor)
        accumulator = random.choice((":", "+", "-", "@^", "@-", "?/", ":+"))
        self.scope.declares = False
        node = self.source.term(self.scope, random.randint(0, 1))
        self.scope.declares = True
        exact = accumulator.startswith(":") and node.shape != shape
        if exact or meets(node.shape, shape) != shape:
            node = self.source.number()
        return f"{name} ={accumulator} {node.text}", self.assignment(name, shape, accumulator, node)

    def scaled(self, name: str, shape: Shape, factor: float) -> Statement:
        return lambda frame: frame.run.write(name, frame.run.cell(name, shape.dims()) * factor)

    def condition(self) -> tuple[str, Statement]:
        """A branch that configuration decides."""
        if not self.cells:
            return self.kept()
        name = self.random.choice(list(self.cells))
        flag, shape = self.random.randint(0, 1), self.cells[name].shape
        one, other = self.scaled(name, shape, 0.5), self.scaled(name, shape, 1.5)
        self.fixed.add(f"on{flag}")
        text = f"if on{flag} > 0 {{ {name} =* 0.5 }} else {{ {name} =* 1.5 }}"
        return text, one if flag else other

    def remark(self) -> tuple[str, Statement]:
        text, statement = self.again()
        return f'~~("from" x "on"; {text})', statement

    def steps(self) -> tuple[str, Statement]:
        """What is done to each parameter."""
        kind = self.random.randrange(5)
        text = (
            f"p =- {RATE} *. p.grad",
            f"sgd(p; {RATE}, momentum = 0.5)",
            f'"v" =: 0.5 *. v + p.grad; p =- {RATE} *. v',
            f"p.grad =* 0.5; p =- {RATE} *. p.grad",
            f"sgd(p; rate = {RATE} *. 2, decay = 0.1)",
        )[kind]
        if "sgd" in text:
            self.texts.append(SGD)

        def statement(frame: Frame) -> None:
            run = frame.run
            rate = run.config[RATE]
            for path, gradient in run.gradients.items():
                value = run.parameters[path]
                dims = value.shape
                match kind:
                    case 0:
                        move = rate * gradient
                    case 1 | 2:
                        state = f"{path}.{'velocity' if kind == 1 else 'v'}"
                        speed = 0.5 * run.cell(state, dims) + gradient
                        run.write(state, speed)
                        move = rate * speed
                    case 3:
                        move = rate * 0.5 * gradient
                    case _:
                        move = 2 * rate * (gradient + 0.1 * value)
                run.parameters[path] = value - move

        return f"for p in params(loss) {{ {text} }}", statement

    def routine(self, seed: int) -> Program:
        random, shapes = self.random, self.inputs()
        self.functions(shapes)
        for name, shape in shapes.items():
            self.scope.add(name, shape)
        self.scope.config.append(RATE)
        makers = [self.bound, self.bound, self.bound, self.kept, self.again]
        makers += [self.condition, self.remark]
        done = [random.choice(makers)() for _ in range(random.randint(1, 5))]
        linear = self.source.affine(self.scope.leaf("x"))
        rest = self.source.term(self.scope, 2)
        together = meets(linear.shape, rest.shape)
        if together is None:
            rest = self.source.total(rest)
        shape = together or linear.shape
        loss = self.source.joined(linear, rest, shape, "+", 4, np.add)
        if random.random() < 0.6:
            loss = self.source.total(product(loss, f"({loss.text}) **. 2", 7, lambda a: a**2))
        done.append((f"loss = {loss.text}", lambda frame: frame.bind("loss", loss.meaning)))
        done.append(("backprop(loss)", _went_back))
        if random.random() < 0.8:
            done.append(self.steps())
        self.scope.add("loss", loss.shape)
        done += [self.again() for _ in range(random.choice((0, 0, 1)))]
        unread = [
            n for n in self.scope.named if n == "loss" or not _is_read(n, done, n in self.cells)
        ]
        nodes = [self.scope.named[n] for n in unread]
        done.append((f"return {', '.join(unread)}", _returned(nodes)))
        config: dict[str, float] = {RATE: random.choice((0.1, 0.05))}
        config.update({name: float(name[-1]) for name in sorted(self.fixed)})
        head = ", ".join(
            f"{n} = {v}" if n == RATE else f"{n} = {int(v)}" for n, v in config.items()
        )
        body = "".join(f"  {text}\n" for text, _ in done)
        dtype = "f64"
        self.texts.append(f"cd step(x: {dtype}, y: {dtype}; {head}) {{\n{body}}}")
        return self.finished(seed, "step", dtype, shapes, config, _following([s for _, s in done]))

    def forward(self, seed: int) -> Program:
        """A tensor function that is run."""
        random, shapes = self.random, self.inputs()
        self.functions(shapes)
        for name, shape in shapes.items():
            self.scope.add(name, shape)
        bindings, result = self.body(self.scope, random.choice((0, 1, 2, 3)))
        result = self.complete(self.scope, [t for _, t, _ in bindings], result, list(shapes))
        lines = "".join(f"  {n} = {text}\n" for n, text, _ in bindings)
        dtype = "f64"
        self.texts.append(f"op whole(x: {dtype}, y: {dtype}) {{\n{lines}  {result.text}\n}}")

        def meaning(frame: Frame) -> None:
            for name, _, inner in bindings:
                frame.bind(name, inner)
            frame.run.returned = [result.meaning(frame)]

        return self.finished(seed, "whole", dtype, shapes, {}, meaning)

    def finished(
        self,
        seed: int,
        name: str,
        dtype: str,
        shapes: dict[str, Shape],
        config: dict[str, float],
        meaning: Statement,
    ) -> Program:
        text = "\n".join(dict.fromkeys(self.texts)) + "\n"
        return Program(seed, text, name, dtype, shapes, config, meaning, Owner())


def _words(texts: Sequence[str]) -> list[str]:
    """The names that are written in texts, those inside of strings aside."""
    return WORD.findall(TEXT.sub("", " ".join(texts)))


def _is_read(name: str, done: Sequence[tuple[str, Statement]], is_cell: bool) -> bool:
    """Whether a statement reads a name; what a routine keeps counts as read once it is assigned."""
    if is_cell:
        return True
    uses = _words([text for text, _ in done]).count(name)
    return uses > (name not in ("x", "y"))


def _went_back(frame: Frame) -> None:
    frame.run.backward = frame.read("loss")
    if frame.run.replayed is not None:
        raise WentBack


def _returned(nodes: Sequence[Node]) -> Statement:
    def statement(frame: Frame) -> None:
        frame.run.returned = [each.meaning(frame) for each in nodes]

    return statement


def _following(statements: Sequence[Statement]) -> Statement:
    def meaning(frame: Frame) -> None:
        for each in statements:
            each(frame)

    return meaning


def generate(seed: int) -> Program:
    """The program of a seed."""
    writer = Writer(seed)
    return writer.forward(seed) if writer.random.random() < 0.25 else writer.routine(seed)

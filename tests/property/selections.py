"""Random functions that choose, at inputs where some derivative is infinite, in every notation; and their gradients.

A function is a list of operations, each of earlier values: choices, maxima, minima, guards, and functions that are
infinite somewhere. Dual numbers give its derivatives, and so does a way back that selects before it multiplies. Where
that is finite, so must the gradient and the directional derivative of the program be, in each notation, and the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilang import elementwise
from ilang.codegen.components.library import library
from ilang.core.notation.files.module import parse_module
from ilang.core.record import record, replace
from ilang.core.source import Source

Array = NDArray[Any]
INPUTS, LENGTH = 3, 4
VALUES = (0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, -1.0, 800.0, np.inf, -np.inf)
NUMBERS = (0.0, 0.5, 2.0)
LONGEST = 400
"""Characters of a text: an elementwise kernel has no names, and writes shared values again."""
NOTATIONS = ("elementwise", "index", "einx", "op", "routine")
NAMED = ("index", "einx")
TESTS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}

SLOPES: dict[str, Any] = {
    "exp": lambda _, z: z,
    "ln": lambda x, _: 1 / x,
    "sqrt": lambda _, z: 1 / (2 * z),
    "recip": lambda _, z: -z * z,
    "neg": lambda x, _: -np.ones_like(x),
    "square": lambda x, _: 2 * x,
    "tanh": lambda _, z: 1 - z * z,
    "erf": lambda x, _: 2 / np.sqrt(np.pi) * np.exp(-x * x),
}
MEANING: dict[str, Any] = {
    "exp": np.exp,
    "ln": np.log,
    "sqrt": np.sqrt,
    "recip": np.reciprocal,
    "neg": np.negative,
    "square": np.square,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "lt": np.less,
    "lte": np.less_equal,
    "gt": np.greater,
    "gte": np.greater_equal,
}
SINGULAR = ("exp", "ln", "sqrt", "recip", "tanh")
BINARY = ("add", "sub", "mul", "mul", "max", "min")


@record
class Step:
    """An operation of values by their numbers: ``INPUTS`` inputs, numbers, then steps; ``test`` is of a choice.

    Of a guard ``test`` says how many elements it lets through.
    """

    name: str
    of: tuple[int, ...]
    test: str = ""


@record
class Function:
    """Steps, of which the last is the result."""

    steps: tuple[Step, ...]

    def is_guarded(self) -> bool:
        """Whether a notation without guards cannot write it."""
        return any(step.name == "guard" for step in self.steps)


FIRST = INPUTS + len(NUMBERS)


def drawn(seed: int) -> tuple[Function, list[Array]]:
    """A function, and its inputs."""
    chance = random.Random(seed)
    steps: list[Step] = []
    for _ in range(chance.randint(3, 7)):
        known = [*range(INPUTS), *range(FIRST, FIRST + len(steps))]
        late = known[-3:]
        kind = chance.random()
        if kind < 0.35:
            steps.append(Step(chance.choice(sorted(SLOPES)), (chance.choice(late),)))
        elif kind < 0.65:
            other = chance.choice([*known, FIRST - 1])
            steps.append(Step(chance.choice(BINARY), (chance.choice(late), other)))
        elif kind < 0.72:
            steps.append(Step("guard", (chance.choice(late),), str(chance.randint(1, LENGTH - 1))))
        else:
            number = INPUTS + chance.randrange(len(NUMBERS))
            sides = [chance.choice(late), chance.choice([*known, number])]
            chance.shuffle(sides)
            condition = (chance.choice(known), number)
            steps.append(Step("where", (*condition, *sides), chance.choice(sorted(TESTS))))
    arrays = [np.array(chance.choices(VALUES, k=LENGTH)) for _ in range(INPUTS)]
    return _read_whole(steps), arrays


def _read_whole(steps: Sequence[Step]) -> Function:
    """The steps that the last one needs, and inputs that these do not read added to it: all notations ask for that."""
    needed = {FIRST + len(steps) - 1}
    for n, step in reversed(list(enumerate(steps, FIRST))):
        needed |= set(step.of) if n in needed else set()
    place = {n: n for n in range(FIRST)}
    kept = list[Step]()
    for n, step in enumerate(steps, FIRST):
        if n in needed:
            place[n] = FIRST + len(kept)
            kept.append(replace(step, of=tuple(place[m] for m in step.of)))
    for n in sorted(set(range(INPUTS)) - needed):
        kept.append(Step("add", (FIRST + len(kept) - 1, n)))
    return Function(tuple(kept))


# -- what it means -----------------------------------------------------------------------------------------------------


def values_of(function: Function, arrays: Sequence[Array]) -> list[Array]:
    """Every value: inputs, numbers, steps."""
    values = [*arrays, *(np.full(LENGTH, number) for number in NUMBERS)]
    for step in function.steps:
        of = [values[n] for n in step.of]
        match step.name:
            case "guard":
                values.append(np.where(_through(step), of[0], 0.0))
            case "where":
                values.append(np.where(MEANING[step.test](of[0], of[1]), of[2], of[3]))
            case _:
                values.append(MEANING[step.name](*of))
    return values


def _through(step: Step) -> Array:
    return np.arange(LENGTH) < int(step.test)


def _parts(step: Step, of: Sequence[Array], value: Array) -> list[tuple[int, Array | bool, Any]]:
    """The operands of a step that something flows to: where, and the derivative there."""
    match step.name:
        case "guard":
            return [(step.of[0], _through(step), 1.0)]
        case "where":
            holds = MEANING[step.test](of[0], of[1])
            return [(step.of[2], holds, 1.0), (step.of[3], ~holds, 1.0)]
        case "max" | "min":
            won = MEANING["gte" if step.name == "max" else "lte"]
            share = np.where(of[0] == of[1], 0.5, 1.0)
            return [(step.of[0], won(of[0], of[1]), share), (step.of[1], won(of[1], of[0]), share)]
        case "add" | "sub":
            return [
                (step.of[0], True, 1.0),
                (step.of[1], True, 1.0 if step.name == "add" else -1.0),
            ]
        case "mul":
            return [(step.of[0], True, of[1]), (step.of[1], True, of[0])]
        case _:
            return [(step.of[0], True, SLOPES[step.name](of[0], value))]


def forwards(function: Function, values: Sequence[Array]) -> list[Array]:
    """The derivative by each input, by dual numbers."""
    found = []
    for wrt in range(INPUTS):
        moved = [np.full(LENGTH, float(n == wrt)) for n in range(FIRST)]
        live = [n == wrt for n in range(FIRST)]
        for n, step in enumerate(function.steps, FIRST):
            total, lives = np.zeros(LENGTH), False
            for number, where, slope in _parts(step, [values[m] for m in step.of], values[n]):
                if live[number]:
                    total, lives = total + np.where(where, moved[number] * slope, 0.0), True
            moved.append(total)
            live.append(lives)
        found.append(moved[-1])
    return found


def backwards(function: Function, values: Sequence[Array]) -> list[Array]:
    """The same along each way back from the result.

    What a choice leaves out is 0 whatever derivatives follow, and behind a choice what is 0 stays 0, whatever the
    derivative of a function is.
    """
    found = [np.zeros(LENGTH) for _ in range(INPUTS)]
    todo = [(len(values) - 1, np.ones(LENGTH), np.ones(LENGTH, bool), False)]
    while todo:
        number, back, taken, behind = todo.pop()
        if number < INPUTS:
            found[number] = found[number] + np.where(taken, back, 0.0)
        if number < FIRST:
            continue
        step = function.steps[number - FIRST]
        for operand, where, slope in _parts(step, [values[n] for n in step.of], values[number]):
            stays = behind and step.name in SINGULAR
            part = np.where(stays & (back == 0), 0.0, back * slope)
            todo.append((operand, part, taken & where, behind or where is not True))
    return found


# -- how it is written -------------------------------------------------------------------------------------------------


def _names(function: Function) -> list[str]:
    numbers = [str(number) for number in NUMBERS]
    return [*"abc", *numbers, *(f"t{n}" for n in range(len(function.steps)))]


def kernel_text(function: Function) -> str:
    """One expression."""
    texts = _names(function)[:FIRST]
    for step in function.steps:
        of = [texts[n] for n in step.of]
        if step.name == "where":
            of = [f"{step.test}({of[0]}, {of[1]})", *of[2:]]
        texts.append(f"{step.name}({', '.join(of)})")
    return texts[-1]


def tensor_text(function: Function) -> str:
    """Lines of a tensor function, or of a routine."""
    names, lines = _names(function), list[str]()
    signs = {"add": "({} + {})", "sub": "({} - {})", "mul": "({} *. {})", "neg": "-({})"}
    signs |= {"square": "({0} *. {0})", "ln": "log({})"}
    for n, step in enumerate(function.steps):
        of = [names[m] for m in step.of]
        if step.name == "where":
            text = f"where({of[0]} {TESTS[step.test]} {of[1]}, {of[2]}, {of[3]})"
        elif step.name == "guard":
            text = f"guard({of[0]}, {step.test})"
        else:
            text = signs.get(step.name, f"{step.name}({', '.join('{}' for _ in of)})").format(*of)
        lines.append(f"t{n} = {text}")
    return "\n  ".join(lines)


INDEX = {
    "exp": "(^i~i)({})",
    "ln": "($i~i)({})",
    "sqrt": "((I | 0.5) >> i^.~i)({})",
    "recip": "(/i~i)({})",
    "neg": "(-i~i)({})",
    "square": "(i*i~i)({0}, {0})",
    "tanh": '(elementwise("f: x[i] -> tanh(x)"))({})',
    "erf": '(elementwise("f: x[i] -> erf(x)"))({})',
    "add": "(i+i~i)({}, {})",
    "sub": "(i-i~i)({}, {})",
    "mul": "(i*i~i)({}, {})",
    "max": "(i>i~i)({}, {})",
    "min": "(i<i~i)({}, {})",
}
EINX = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "max": "maximum",
    "min": "minimum",
    "lt": "less",
    "lte": "less_equal",
    "gt": "greater",
    "gte": "greater_equal",
    "where": "where",
}


def named_text(function: Function, prefers_einx: bool) -> str:
    """A definition over names, of index expressions, and of einx where there is no other or it likes that."""
    names, lines = _names(function), list[str]()

    def einx(name: str, of: Sequence[str]) -> str:
        axes = ", ".join("" if text in names[INPUTS:FIRST] else "n" for text in of)
        return f'(einx.{EINX[name]}("{axes}"))({", ".join(of)})'

    for n, step in enumerate(function.steps):
        of = [names[m] for m in step.of]
        if step.name == "where":
            lines.append(f"c{n} = {einx(step.test, of[:2])}")
            text = einx("where", [f"c{n}", *of[2:]])
        elif step.name == "guard":
            text = f"(i[i<{step.test}]~i)({of[0]})"
        elif prefers_einx and step.name in EINX:
            text = einx(step.name, of)
        else:
            text = INDEX[step.name].format(*of)
            if any(INPUTS <= m < FIRST for m in step.of):  # a number has no axis
                text = f"({text[1]}{text[2]}.~i){text[7:]}"
        lines.append(f"t{n} = {text}")
    return f"f(a[n], b[n], c[n]) = {{ {'; '.join(lines)}; {names[-1]} }}"


def derivatives(
    function: Function, notation: str, arrays: Sequence[Array], target: str
) -> tuple[list[Array], Array | None]:
    """The gradient of the sum of all elements, and the derivative along ones where a notation has one."""
    if notation in ("elementwise", "index", "einx"):
        if notation == "elementwise":
            made = elementwise("f", [kernel_text(function)], inputs=["a", "b", "c"]).ranked(1, 1, 1)
        else:
            text = named_text(function, notation == "einx")
            made = library(parse_module(Source("f.i", text)))["f"]
        moved = made.jvp()(*arrays, *(np.ones(LENGTH) for _ in arrays), target=target)
        return list(made.grad()(*arrays, target=target)), moved[1]
    body = tensor_text(function)
    heads = "a: f64[b|n], b: f64[b|n], c: f64[b|n]"
    last = _names(function)[-1]
    text = f"op g({heads}) {{\n  {body}\n  {last}\n}}\n"
    inner = "z = g(a, b, c)" if notation == "op" else f"{body}\n  z = {last}"
    reached = _reached(function)
    gradients = ", ".join(f"{name}.grad" for n, name in enumerate("abc") if n in reached)
    text += (
        f"cd f({heads.replace('a:', 'x:').replace('b:', 'y:', 1).replace('c:', 'w:')}) {{\n"
        f"  a = track(x)\n  b = track(y)\n  c = track(w)\n  {inner}\n"
        '  loss = z ++ "...|... => 0"\n  backprop(loss)\n  return '
        f"{gradients}\n}}\n"
    )
    module = library(parse_module(Source("f.i", text)))
    given: Any = module["f"](*(array[None] for array in arrays), target=target)
    rows = iter(given if isinstance(given, tuple) else (given,))
    return [next(rows)[0] if n in reached else np.zeros(LENGTH) for n in range(INPUTS)], None


def _reached(function: Function) -> set[int]:
    """The inputs that something flows back to: not those of conditions alone."""
    reached = {FIRST + len(function.steps) - 1}
    for n, step in reversed(list(enumerate(function.steps, FIRST))):
        if n in reached:
            reached |= set(step.of[2:] if step.name == "where" else step.of)
    return reached


def checked(seed: int, target: str) -> int:
    """Check the function of a seed in a notation; how many derivatives were compared.

    Raises: AssertionError: one of them differs.
    """
    function, arrays = drawn(seed)
    notations = [each for each in NOTATIONS if not function.is_guarded() or each in NAMED]
    if LONGEST < len(kernel_text(function)) and "elementwise" in notations:
        notations.remove("elementwise")
    notation = notations[seed % len(notations)]
    with np.errstate(all="ignore"):
        values = values_of(function, arrays)
        there, back = forwards(function, values), backwards(function, values)
        told = [np.isfinite(way) for way in back]
        same = [np.isclose(one, other) for one, other in zip(there, back, strict=True)]
        assert all(
            np.all(agree | ~np.isfinite(one)) for agree, one in zip(same, there, strict=True)
        ), "oracles"
        found, moved = derivatives(function, notation, arrays, target)
        along = sum(back)
    says = f"{notation}: {tensor_text(function)}\nof {arrays}"
    for name, want, got, tells in zip("abc", back, found, told, strict=True):
        _same(want, got, tells, f"{name} in {says}")
    if moved is not None:
        _same(along, moved, np.isfinite(along), f"forwards in {says}")
    return int(np.sum(told))


def _same(want: Any, got: Any, tells: Array, says: str) -> None:
    np.testing.assert_allclose(got[tells], want[tells], 1e-6, 1e-9, err_msg=says)

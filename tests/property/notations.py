"""Random programs of the notations that are called: einx, elementwise kernels, NumPy's einsum, named values, told.

Each is a component, the arrays it is called with, and the results, which something else computed: loops over named
axes, NumPy. What one notation gives is often handed on to an index expression, by wires or by names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ilang
from ilang.codegen.components.component import Component
from ilang.codegen.components.contract import component_of
from ilang.codegen.components.library import library
from ilang.core.record import record, replace
from tests.property import bodies, einx_programs, kernels, subscripts
from tests.property.body_checking import module_of
from tests.property.body_values import values_of

Array = NDArray[Any]
LETTERS = "ijklmnpq"
MOST = 4_000
"""Elements of an array of a kernel."""


@record
class Drawn:
    """A program, what it is called with, and its results, each with how far it may be off beside rounding."""

    notation: str
    component: Component
    text: str
    arrays: tuple[Array, ...]
    results: tuple[Array, ...]
    errors: tuple[Array, ...] = ()


def einx(seed: int) -> Drawn:
    """An operation in einx notation."""
    case = einx_programs.program(seed)
    component = getattr(ilang.einx, case.op)(case.text, **case.sizes)
    return Drawn("einx", component, component.program.text(), case.arrays, case.results)


def kernel(seed: int) -> Drawn:
    """An elementwise kernel, whose text says the ranks of its inputs, or leaves them to the arrays."""
    chance = random.Random(seed)
    trial = kernels.random_trial(chance)
    while any(np.prod(shape) > MOST for shape in trial.shapes):
        trial = kernels.random_trial(chance)
    arrays = [np.ascontiguousarray(array) for array in kernels.arrays_of(trial, seed)]
    arrays = [array.reshape(shape) for array, shape in zip(arrays, trial.shapes, strict=True)]
    ranks = [array.ndim for array in arrays]
    component = ilang.elementwise(trial.order, trial.written(), len(arrays)).ranked(*ranks)
    text = component.program.text()
    written = ranks if chance.random() < 0.5 else []
    for n, rank in reversed(list(enumerate(written))):
        first = max(ranks) - rank if trial.order == "f" else 0
        axes = ",".join(LETTERS[first : first + rank])
        text = text.replace(f"x{n}", f"x{n}[{axes}]", 1)
    return Drawn(
        "elementwise", component, text, tuple(arrays), tuple(kernels.meaning(trial, arrays))
    )


def einsum(seed: int) -> Drawn:
    """A specification as NumPy writes it, with the order of contraction that a call gives it."""
    trial = subscripts.random_trial(random.Random(seed))
    component = component_of(trial.text, trial.arrays, trial.optimize)
    plain = "..." not in trial.text and len(trial.arrays) < 3
    repeats = any(1 in array.shape for array in trial.arrays)
    text = f'einsum("{trial.text}")' if plain and not repeats else ""
    return Drawn("einsum", component, text, trial.arrays, (trial.result,))


def named(seed: int) -> Drawn:
    """A definition over names."""
    chance = random.Random(seed)
    program, (text, _, _) = bodies.drawn(chance)
    numbers = np.random.default_rng(seed)
    shape = chance.choice(((2, 3), (3, 1), (4, 4), (0, 2)))
    names = [name for name in program.names if name.startswith("x")]
    arrays = {name: numbers.integers(-3, 4, shape).astype(np.float32) for name in names}
    found = values_of(program, {name: array.astype(float) for name, array in arrays.items()})
    results = tuple(each.value for each in found)
    errors = tuple(each.error for each in found)
    component = library(module_of(text))["f"]
    return Drawn("named", component, "", tuple(arrays.values()), results, errors)


def told(seed: int) -> Drawn:
    """A program of another notation, told to ``einx.vmap``, along an axis that some of its arrays have more.

    Of the two parts along that axis the first is what the program is drawn with, and the second is that backwards,
    whose results are those of the program alone, as the reference evaluates it; coordinates stay what they are.
    """
    chance = random.Random(seed)
    base = chance.choice((einx, kernel, einsum))(seed)
    while not base.text or base.errors:
        seed += 1_000_003
        base = chance.choice((einx, kernel, einsum))(seed)
    more = [chance.random() < 0.6 for _ in base.arrays]
    more[chance.randrange(len(more))] = True
    pairs = list(zip(base.arrays, more, strict=True))
    last: Any = ilang.i(base.text)(*(_other(a) if m else a for a, m in pairs), target="numpy")
    others = last if isinstance(last, tuple) else (last,)
    at = [chance.randint(0, a.ndim) if m else None for a, m in pairs]
    arrays = [
        a if n is None else np.stack([a, _other(a)], n) for (a, _), n in zip(pairs, at, strict=True)
    ]
    given = ", ".join(
        _along(f"x{k}_", a.ndim, n) for k, ((a, _), n) in enumerate(zip(pairs, at, strict=True))
    )
    places = [chance.randint(0, result.ndim) for result in base.results]
    gives = ", ".join(
        _along(f"y{k}_", r.ndim, n)
        for k, (r, n) in enumerate(zip(base.results, places, strict=True))
    )
    results = [
        np.stack([one, other], n)
        for one, other, n in zip(base.results, others, places, strict=True)
    ]
    text = f'einx.vmap("{given} -> {gives}", op=({base.text}))'
    return Drawn("told", ilang.i(text), text, tuple(arrays), tuple(results))


def _other(array: Array) -> Array:
    return np.flip(array) if array.dtype.kind == "f" else array


def _along(name: str, rank: int, place: int | None) -> str:
    """The axes of an expression: those of a program in brackets, and among them one more at a place."""
    axes = [f"[{name}{n}]" for n in range(rank)]
    return " ".join(axes if place is None else [*axes[:place], "more", *axes[place:]])


NOTATIONS: dict[str, Callable[[int], Drawn]] = {
    "einx": einx,
    "elementwise": kernel,
    "einsum": einsum,
    "named": named,
    "told": told,
}
"""The notations, each with what draws a program of a seed."""


def handed_on(drawn: Drawn, chance: random.Random) -> Drawn:
    """The same with each result handed to an index expression: by wires, or by names."""
    if not drawn.text or any(result.dtype != float for result in drawn.results):
        return drawn
    tails, results = [], []
    for result in drawn.results:
        tail, value = _tail(result, chance)
        tails.append(tail)
        results.append(value)
    if chance.random() < 0.5:
        text = f"({drawn.text}) >> ({' | '.join(f'({tail})' for tail in tails)})"
    else:
        text = _by_names(drawn, tails)
    component = ilang.i(text)
    return replace(drawn, component=component, text=text, results=tuple(results))


def _tail(result: Array, chance: random.Random) -> tuple[str, Array]:
    """An index expression of a value, and what it gives."""
    letters = LETTERS[: result.ndim]
    order = chance.sample(range(result.ndim), result.ndim)
    target = "".join(letters[n] for n in order)
    match chance.randrange(3):
        case 0:
            return f"{letters or '.'}~{target or '.'}", result.transpose(order)
        case 1:
            return f"-{letters or '.'}~{target or '.'}", -result.transpose(order)
        case _:
            kept = chance.randint(0, result.ndim)
            value = result.transpose(order).sum(tuple(range(kept, result.ndim)))
            sign = "+" if kept < result.ndim else ""
            return f"{sign}{letters or '.'}~{target[:kept] or '.'}", np.asarray(value)


def _by_names(drawn: Drawn, tails: Sequence[str]) -> str:
    """A definition that binds the results, and hands each on."""
    inputs = ", ".join(f"in{n}" for n in range(len(drawn.arrays)))
    values = [f"out{n}" for n in range(len(tails))]
    ends = ", ".join(f"({tail})({value})" for tail, value in zip(tails, values, strict=True))
    return f"f({inputs}) = {{ {', '.join(values)} = ({drawn.text})({inputs}); {ends} }}"


def generate(notation: str, seed: int) -> Drawn:
    """A program of a notation; every second one is handed on where it can be."""
    drawn = NOTATIONS[notation](seed)
    return handed_on(drawn, random.Random(seed)) if seed % 2 else drawn

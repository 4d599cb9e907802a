"""Random elementwise kernels, and what they mean: an evaluation of its own in NumPy."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core.record import record

Array = npt.NDArray[Any]

FOLDS: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
STARTS = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
BINARY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
UNARY: dict[str, Any] = {
    "neg": np.negative,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "square": np.square,
}
NUMBERS = (2.0, 0.5, 0.3, -1.7)

Part = str | float | tuple[Any, ...]


@record
class Trial:
    """A kernel, and the shapes of its inputs."""

    order: str
    outputs: tuple[tuple[Part, str | tuple[Any, ...]], ...]
    shapes: tuple[tuple[int, ...], ...]

    def written(self) -> list[dict[str, Any]]:
        """The outputs as ``elementwise`` takes them."""
        return [{"expr": expr, "mode": mode} for expr, mode in self.outputs]


def random_trial(chance: random.Random) -> Trial:
    """A kernel of up to four inputs and four outputs, extents 0 to 5 and now and then larger, ranks 0 to 4."""
    order = chance.choice("fc")
    full = tuple(chance.choice((0, 1, 2, 3, 5, 17)) for _ in range(chance.randint(0, 4)))
    ranks = [len(full), *(chance.randint(0, len(full)) for _ in range(chance.randint(0, 3)))]
    chance.shuffle(ranks)
    shapes = tuple(full[len(full) - rank :] if order == "f" else full[:rank] for rank in ranks)
    outputs = tuple(
        (_expression(chance, len(ranks), 3), _mode(chance, len(full)))
        for _ in range(chance.randint(1, 4))
    )
    return Trial(order, outputs, shapes)


def _mode(chance: random.Random, full: int) -> str | tuple[Any, ...]:
    choice = chance.randrange(3)
    if choice == 0:
        return "broadcast"
    fold = chance.choice(sorted(FOLDS))
    return ("accumulate", fold) if choice == 1 else ("accumulate", fold, chance.randint(0, full))


def _expression(chance: random.Random, inputs: int, depth: int) -> Part:
    """An expression; numbers stand anywhere, in parts without an input too, and have the type of the inputs."""
    choice = chance.randrange(8)
    if depth == 0 or choice == 0:
        return f"x{chance.randrange(inputs)}"
    if choice == 6:
        name = chance.choice(sorted(BINARY))
        return name, _number(chance, 3), _expression(chance, inputs, depth - 1)
    if choice == 7:
        test = ("gt", f"x{chance.randrange(inputs)}", _number(chance, 2))
        other = chance.choice((_number(chance, 4), _expression(chance, inputs, depth - 1)))
        return "where", test, _number(chance, 4), other
    if choice == 1:
        return (chance.choice(sorted(UNARY)), _expression(chance, inputs, depth - 1))
    name = chance.choice(sorted(BINARY))
    return name, *(_expression(chance, inputs, depth - 1) for _ in range(2))


def _number(chance: random.Random, depth: int) -> Part:
    """An expression of numbers alone."""
    if chance.randrange(4) < 1 or depth == 0:
        return chance.choice(NUMBERS)
    if chance.randrange(4) < 1:
        return chance.choice(sorted(UNARY)), _number(chance, depth - 1)
    return chance.choice(sorted(BINARY)), *(_number(chance, depth - 1) for _ in range(2))


def arrays_of(trial: Trial, seed: int) -> list[Array]:
    """Inputs in several layouts: plain, transposed in memory, every second element, backwards, axes in any order."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    arrays = []
    for shape in trial.shapes:
        array = np.asarray(rng.uniform(-1, 1, shape))
        match chance.randrange(5):
            case 1 if shape:
                array = np.asfortranarray(array)
            case 2 if shape:
                wide = np.zeros((*shape[:-1], 2 * shape[-1]))
                wide[..., ::2] = array
                array = wide[..., ::2]
            case 3 if shape:
                array = np.ascontiguousarray(array[tuple(slice(None, None, -1) for _ in shape)])
                array = array[tuple(slice(None, None, -1) for _ in shape)]
            case 4 if shape:
                order = chance.sample(range(len(shape)), len(shape))
                array = np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
            case _:
                pass
        arrays.append(array)
    return arrays


def meaning(trial: Trial, arrays: list[Array]) -> list[Array]:
    """The outputs: inputs folded one after the other, then repeated, then the expression."""
    with np.errstate(all="ignore"):
        return [_output(trial, arrays, expr, mode) for expr, mode in trial.outputs]


def _output(trial: Trial, arrays: list[Array], expr: Part, mode: Any) -> Array:
    ranks = [array.ndim for array in arrays]
    rank = max(ranks)
    if mode != "broadcast":
        rank = mode[2] if len(mode) == 3 else min(ranks)
        arrays = [_folded(trial.order, array, rank, mode[1]) for array in arrays]
    full = max(arrays, key=lambda array: array.ndim).shape
    assert len(full) == rank
    lifted = [
        array.reshape(
            (1,) * (rank - array.ndim) + array.shape
            if trial.order == "f"
            else array.shape + (1,) * (rank - array.ndim)
        )
        for array in arrays
    ]
    return np.asarray(np.broadcast_to(_value(expr, lifted), full))


def _folded(order: str, array: Array, rank: int, fold: str) -> Array:
    surplus = max(0, array.ndim - rank)
    axes = tuple(range(surplus)) if order == "f" else tuple(range(array.ndim - surplus, array.ndim))
    result: Array = np.asarray(
        FOLDS[fold].reduce(array, axis=axes, initial=STARTS[fold]) if axes else array
    )
    return result


def _value(expr: Part, arrays: list[Array]) -> Any:
    match expr:
        case str():
            return arrays[int(expr[1:])]
        case float():
            return np.float64(expr)
        case ("where", ("gt", one, other), chosen, otherwise):
            test = _value(one, arrays) > _value(other, arrays)
            return np.where(test, _value(chosen, arrays), _value(otherwise, arrays))
        case (name, operand):
            return UNARY[name](_value(operand, arrays))
        case (name, one, other):
            return BINARY[name](_value(one, arrays), _value(other, arrays))
        case _:
            raise AssertionError(expr)

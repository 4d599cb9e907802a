"""Grids instead of chance: every operator on every pair of special values, every kind of loop at every awkward size."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tests.property import programs, trial
from tests.property.checking import check
from tests.property.meaning import TYPES
from tests.property.programs import Expression, Input, Number, Program
from tests.property.test_fuzz import needs_compiler
from tests.property.trial import Array, Trial
from tests.property.writer import write
from tests.shares import share

SIZES = (
    *(0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33),
    *(63, 64, 65, 127, 128, 129, 1000, 1023, 1025),
)
OTHERS = 3
"""The extent of every axis but the one that takes all sizes."""

SPECIAL: dict[str, tuple[str, ...]] = {
    "f32": (*trial.SPECIAL, "3.4028235e38", "1e-45", "2147483648", "-2147483648", "9.2233720e18"),
    "f64": (*trial.SPECIAL, "1.7976931348623157e308", "5e-324", "2147483648", "9007199254740993"),
    "i32": ("0", "1", "-1", "2", "46341", "2147483647", "-2147483648"),
    "i64": ("0", "1", "-1", "2", "3037000500", "9223372036854775807", "-9223372036854775808"),
    "bool": ("0", "1"),
}


def special(dtype: str) -> Array:
    """All special values of a type."""
    kind = int if dtype in programs.INTEGERS else float
    with np.errstate(over="ignore"):
        return np.asarray([kind(word) for word in SPECIAL[dtype]]).astype(TYPES[dtype])


def of(nodes: Sequence[programs.Node], *runs: tuple[Array, ...], number: int = 0) -> Trial:
    """A trial of a program whose last node is the output."""
    inputs = tuple(n for n, node in enumerate(nodes) if isinstance(node, Input))
    program = Program(tuple(nodes), inputs, (len(nodes) - 1,))
    written = write(program, random.Random(number), plain=True)
    order = [inputs.index(n) for n in written.program.inputs]
    return Trial(number, written, False, tuple(tuple(run[n] for n in order) for run in runs))


def of_operators(dtype: str) -> Iterator[Trial]:
    """Every form of every operator that a type allows, on all pairs of special values."""
    one = special(dtype)
    rows = np.stack(np.broadcast_arrays(one[:, None], one[None, :]), axis=-1)
    ops = {*programs.ARITHMETIC, *programs.COMPARISONS, *programs.LOGIC, "!!", ""}
    if dtype not in programs.INTEGERS:
        ops |= set(programs.NEED_FLOATS)
    for op in sorted(ops):
        unary = Expression(op, ("i",), "i", (0,))
        yield of([Input(dtype, 1), unary], (one,))
        if op not in ("!!", ""):
            binary = Expression(op, ("i", "j"), "ij", (0, 1))
            yield of([Input(dtype, 1), Input(dtype, 1), binary], (one, one.copy()))
        if op in programs.REDUCIBLE:
            reduction = Expression(op, ("ijk",), "ij", (0,))
            yield of([Input(dtype, 3), reduction], (rows, rows[:, :, :0].copy(), rows[:0]))
    for target in programs.DTYPES:
        yield of([Input(dtype, 1), programs.Conversion(target, 0)], (one,))
    if dtype in programs.FLOATS:
        for power in programs.POWERS:
            raised = Expression("^", ("i", ""), "i", (0, 1))
            yield of([Input(dtype, 1), Number(power), raised], (one,))


@needs_compiler
@pytest.mark.parametrize("dtype", programs.DTYPES)
@pytest.mark.parametrize("mode", ["sanitized", "fast"])
def test_special_values(dtype: str, mode: str) -> None:
    """Of all operators sanitized, of a share optimised."""
    drawn = [*of_operators(dtype)]
    if mode == "fast":
        drawn = [*share(drawn, programs.DTYPES.index(dtype))]
    trials = [Trial(n, t.written, t.fixed, t.runs) for n, t in enumerate(drawn)]
    tally = check(trials, mode)
    assert not tally.failures, tally.told()
    assert tally.counts["runs"] >= len(trials)


def expression(op: str, *patterns: str, reads: tuple[int, ...]) -> Expression:
    """``op`` over the patterns, the last of which is the output's."""
    return Expression(op, patterns[:-1], patterns[-1], reads)


def input_of(*ranks: int) -> list[programs.Node]:
    return [Input("f32", rank) for rank in ranks]


FAMILIES: dict[str, list[programs.Node]] = {
    "add": [*input_of(1, 1), expression("+", "i", "i", "i", reads=(0, 1))],
    "outer": [*input_of(1, 1), expression("*", "i", "j", "ij", reads=(0, 1))],
    "transpose": [*input_of(2), expression("", "ij", "ji", reads=(0,))],
    "diagonal": [*input_of(2), expression("-", "ii", "i", reads=(0,))],
    "rows": [*input_of(2), expression("+", "ij", "i", reads=(0,))],
    "columns": [*input_of(2), expression(">", "ij", "j", reads=(0,))],
    "everything": [*input_of(2), expression("+", "ij", "", reads=(0,))],
    "middle": [*input_of(3), expression("+", "ijk", "ki", reads=(0,))],
    "matmul": [
        *input_of(2, 2),
        expression("*", "ik", "kj", "ijk", reads=(0, 1)),
        expression("+", "ijk", "ij", reads=(2,)),
    ],
    "matvec": [
        *input_of(2, 1),
        expression("*", "ij", "j", "ij", reads=(0, 1)),
        expression("+", "ij", "i", reads=(2,)),
    ],
    "softmax": [
        *input_of(2),
        expression(">", "ij", "i", reads=(0,)),
        expression("-", "ij", "i", "ij", reads=(0, 1)),
        expression("^", "ij", "ij", reads=(2,)),
        expression("+", "ij", "i", reads=(3,)),
        expression("/", "ij", "i", "ij", reads=(3, 4)),
    ],
    "centred": [
        *input_of(2),
        expression("+", "ij", "j", reads=(0,)),
        expression("-", "ij", "j", "ij", reads=(0, 1)),
        expression("*", "ij", "ij", "ij", reads=(2, 2)),
        expression("+", "ij", "", reads=(3,)),
    ],
}


def at_every_size(nodes: Sequence[programs.Node], number: int) -> Trial:
    """A family at every size of every axis, one axis at a time; all axes together while that is small."""
    inputs = tuple(n for n, node in enumerate(nodes) if isinstance(node, Input))
    program = Program(tuple(nodes), inputs, (len(nodes) - 1,))
    classes = sorted({c for dims in program.classes() for c in dims})
    choices = [{**dict.fromkeys(classes, OTHERS), c: size} for c in classes for size in SIZES]
    choices += [dict.fromkeys(classes, size) for size in SIZES if size <= 17]
    numbers = np.random.default_rng(number)
    runs = []
    for extents in choices:
        shapes = programs.shapes(program, extents)
        runs.append(
            tuple(np.asarray(numbers.integers(-4, 5, shapes[n]), np.float32) for n in inputs)
        )
    return of(nodes, *runs, number=number)


@needs_compiler
@pytest.mark.parametrize(("number", "mode"), [(0, "sanitized"), (1, "fast"), (2, "threads")])
def test_awkward_sizes(number: int, mode: str) -> None:
    """Of all families sanitized, of a share otherwise."""
    families = [*FAMILIES.values()]
    chosen = families if mode == "sanitized" else share(families, number)
    trials = [at_every_size(nodes, n) for n, nodes in enumerate(chosen)]
    tally = check(trials, mode)
    assert not tally.failures, tally.told()
    assert tally.counts["runs"] == sum(len(t.runs) for t in trials)

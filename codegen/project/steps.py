"""Self-tests of sessions: first values, a few runs, and a file that is written and read, beside what is stored.

First values have to be the same bit by bit. The results of runs come from the reference evaluator, and floats may be
off as in other self-tests, by roundings and by what these move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ilang.codegen.project.cases import (
    Array,
    Output,
    inputs_of,
    limits_of,
    relative_of,
    result_of,
    scales_of,
    starts_of,
)
from ilang.codegen.project.extents import LARGEST_DOMAIN, Function
from ilang.codegen.runtime.arguments import NUMPY_TYPES
from ilang.codegen.runtime.philox import uniform
from ilang.codegen.targets.c_session import Kept, Session, Uniform
from ilang.core.diagnostic import DataError
from ilang.core.ir.shaped import Assignment
from ilang.core.record import record
from ilang.core.reference import evaluate

RUNS = 3
"""Runs whose results are stored."""
SEED = 7
LASTING = ("parameter", "state", "gradient")
"""The roles of what is looked at after runs."""
MOST_NOISE = 16
"""How much more than in the evaluator roundings may move a result that is nothing else."""
MOST_STORED = 200
"""Elements of one array that are stored."""


@record
class TestedSession:
    """A session, its program, and the inputs of its runs: where they begin in their tables, and the ends of indices."""

    session: Session
    function: Function


@record
class Steps:
    """What is stored: of each kept array that has elements at first, what runs give, and what is kept at last.

    ``runs`` has nothing where the arrays are too large for the evaluator, or their elements no indices.
    """

    starts: tuple[int, ...]
    below: tuple[int | None, ...]
    first: tuple[Output, ...]
    runs: tuple[tuple[Output, ...], ...]
    last: tuple[Output, ...]


def steps_of(tested: TestedSession) -> Steps:
    """What the self-test of a session stores."""
    session, shaped = tested.session, tested.function.shaped
    extents = tuple(size.fixed or 0 for size in shaped.sizes)
    starts, below = starts_of(shaped, 0), limits_of(shaped, extents)
    lasting = {each.name: first_values(each, SEED) for each in session.kept}
    tested_kept = [each for each in session.kept if each.role in LASTING]
    first = tuple(_sampled(lasting[each.name], 0.0, 0.0) for each in tested_kept)
    if any(LARGEST_DOMAIN < _iterations(node, extents) for node in shaped.nodes):
        return Steps(starts, below, first, (), ())
    given = inputs_of(shaped, extents, starts, below)
    arrays = [
        lasting.get(name, array) for name, array in zip(session.arguments, given, strict=False)
    ]

    def several(values: Sequence[Array], exact: bool = False) -> list[Array]:
        return _several(tested, values, extents, exact)

    try:
        plain, exact = several(arrays), several(arrays, exact=True)
    except DataError:
        return Steps(starts, below, first, (), ())
    relative = relative_of(shaped, extents) * RUNS
    scales = scales_of(several, arrays, exact)
    stored = [
        _settled(a, b, relative, scale) for a, b, scale in zip(plain, exact, scales, strict=True)
    ]
    count = len(session.outputs)
    runs = [tuple(stored[n * count : (n + 1) * count]) for n in range(RUNS)]
    return Steps(starts, below, first, tuple(runs), tuple(stored[RUNS * count :]))


def _iterations(node: object, extents: Sequence[int]) -> int:
    if not isinstance(node, Assignment):
        return 0
    return math.prod(extents[size] for size in node.sizes)


def first_values(each: Kept, seed: int) -> Array:
    """What a kept array begins with."""
    dtype, count = NUMPY_TYPES[each.dtype], each.count()
    if isinstance(each.fill, Uniform):
        return uniform(seed, each.path, count, each.fill.bound).astype(dtype).reshape(each.dims)
    numbers = np.array(each.fill.numbers, dtype)
    return np.broadcast_to(numbers, count).reshape(each.dims)


def _settled(plain: Array, exact: Array, relative: float, scale: float) -> Output:
    """What is stored of a result, and how far a float may be from it.

    Where sums cancel, whatever the inputs are, nothing moves a result but the roundings of what is summed: how far they
    move it is taken from the evaluator, as long as that is little.
    """
    result, unlike = result_of(plain, exact, relative, scale)
    if unlike and plain.dtype.kind == "f":
        noise = float(np.nan_to_num(np.abs(exact - plain), posinf=0.0).max())
        if 0 < noise <= relative:
            scale = max(scale, 2.0 ** math.ceil(math.log2(MOST_NOISE * noise / relative)))
            result, _ = result_of(plain, exact, relative, scale)
    return _sampled(result, relative, scale)


def _sampled(values: Array, relative: float, scale: float) -> Output:
    """Elements of an array at equal distances."""
    step = 1 if values.size <= MOST_STORED else -(-values.size // MOST_STORED) | 1
    bounds = (relative, scale) if values.dtype.kind == "f" else (0.0, 0.0)
    return Output(values.reshape(-1)[::step], step, *bounds)


def _several(
    tested: TestedSession, arrays: Sequence[Array], extents: Sequence[int], exact: bool
) -> list[Array]:
    """The outputs of some runs, one after the other, and what is kept after them."""
    session = tested.session
    places = {name: n for n, name in enumerate(session.arguments[: len(arrays)])}
    names = session.arguments[len(arrays) :]
    now, returned, written = list(arrays), [], {}
    for _ in range(RUNS):
        results = dict(
            zip(names, evaluate(tested.function.shaped, now, extents, exact), strict=True)
        )
        returned += [results[name] for name in session.outputs]
        for each in session.kept:
            if each.next or each.role == "gradient":
                written[each.name] = results[each.next or each.name]
            if each.next and each.name in places:
                now[places[each.name]] = results[each.next]
    kept = [each for each in session.kept if each.role in LASTING]
    unread = [first_values(each, SEED) for each in kept]
    last = [
        written.get(each.name, now[places[each.name]] if each.name in places else array)
        for each, array in zip(kept, unread, strict=True)
    ]
    return [*returned, *last]

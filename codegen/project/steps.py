"""Self-tests of sessions: first values, a few runs, and a file that is written and read, beside what is stored.

First values have to be the same bit by bit. The results of runs come from the reference evaluator, and floats may be
off as in other self-tests, by roundings and by what these move.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.project import cases
from ilang.codegen.project.extents import LARGEST_DOMAIN, extents_of, settled_extents
from ilang.codegen.session.philox import uniform
from ilang.codegen.targets.session import EmittedSession, ExportedFunction
from ilang.core.diagnostic import DataError
from ilang.core.ir.session import KeptTensor, Uniform
from ilang.core.ir.shaped import Assignment
from ilang.core.record import record
from ilang.core.reference import evaluate

RUNS = 3
"""Runs whose results are stored."""
SEED = 7
LASTING = ("parameter", "state", "gradient")
"""The roles of what is looked at after runs."""
MOST_STORED = 200
"""Elements of one array that are stored."""


def tested_extents(session: EmittedSession) -> list[tuple[int, ...]]:
    """The extents of each program in tests; those that come at run time are small, and those of one name are equal."""
    known: dict[str, int] = {}
    every = []
    for stage in session.stages:
        function = stage.function
        extents = _extents(function, known)
        known |= function.arguments(extents)
        every.append(extents)
    return every


def tested_sizes(session: EmittedSession) -> dict[str, int]:
    """The extents that come with a run in tests."""
    every = zip(session.functions(), tested_extents(session), strict=True)
    return {name: extent for f, extents in every for name, extent in f.arguments(extents).items()}


def tested_dims(session: EmittedSession) -> dict[str, tuple[int, ...]]:
    """The extents of inputs and outputs of a run in tests."""
    by_name = {
        name: tuple(1 if each is None else each for each in dims)
        for name, (_, dims) in session.tensors.items()
    }
    for stage, extents in zip(session.stages, tested_extents(session), strict=True):
        for name, dims in stage.dims():
            by_name[name] = tuple(extents[size] for size in dims)
    return by_name


def _reads(session: EmittedSession) -> Iterator[tuple[str, int, int]]:
    """The names of what each program reads, with the numbers of the program and of its input."""
    for number, stage in enumerate(session.stages):
        for position in range(len(stage.function.shaped.inputs)):
            yield stage.run.arguments[position], number, position


@record
class Steps:
    """Values that are stored: of each kept array that has elements at first, what runs give, and what is kept at last.

    ``starts`` says where each input of a run that is read begins in its table, ``below`` what its elements are less
    than that are indices. ``runs`` has nothing where the arrays are too large for the evaluator, or their elements no
    indices.
    """

    starts: dict[str, int]
    below: dict[str, int | None]
    first: tuple[cases.StoredOutput, ...]
    runs: tuple[tuple[cases.StoredOutput, ...], ...]
    last: tuple[cases.StoredOutput, ...]


def _extents(function: ExportedFunction, known: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of a program; of those that come at run time small ones, where none are known by name."""
    sizes = function.shaped.sizes
    if not function.free():
        return tuple(size.fixed or 0 for size in sizes)
    small = next(iter(extents_of(function)[0]), (1,) * len(sizes))
    extents = tuple(
        known.get(size.name, extent) if size.fixed is None else size.fixed
        for size, extent in zip(sizes, small, strict=True)
    )
    return settled_extents(function, extents) or extents


def steps_of(session: EmittedSession) -> Steps:
    """The values that the self-test of a session stores."""
    extents = tested_extents(session)
    shapeds = [function.shaped for function in session.functions()]
    starts, below = _starts(session), _limits(session)
    lasting = {each.name: first_values(each, SEED) for each in session.kept}
    tested_kept = [each for each in session.kept if each.role in LASTING]
    first = tuple(cases.sampled(lasting[each.name], MOST_STORED, 0.0, 0.0) for each in tested_kept)
    sized = list(zip(shapeds, extents, strict=True))
    if any(LARGEST_DOMAIN < _iterations(node, e) for s, e in sized for node in s.nodes):
        return Steps(starts, below, first, (), ())
    given = _inputs(session, starts, below)
    names = [*given, *(name for name in lasting if name not in given)]

    def several(values: Sequence[cases.Array], exact: bool = False) -> list[cases.Array]:
        return _several(session, dict(zip(names, values, strict=True)), exact)

    arrays = [given[name] if name in given else lasting[name] for name in names]
    try:
        plain, exact = several(arrays), several(arrays, exact=True)
    except DataError:
        return Steps(starts, below, first, (), ())
    relative = sum(cases.relative_of(s, e) for s, e in sized) * RUNS
    scales = cases.scales_of(several, arrays, exact)
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


def first_values(each: KeptTensor, seed: int) -> cases.Array:
    """The values that a kept array begins with."""
    dtype, count = NUMPY_TYPES[each.dtype], each.count()
    if isinstance(each.fill, Uniform):
        return (
            uniform(seed, each.fill.path, count, each.fill.bound).astype(dtype).reshape(each.dims)
        )
    numbers = np.array(each.fill, dtype)
    return np.broadcast_to(numbers, count).reshape(each.dims)


def _settled(
    plain: cases.Array, exact: cases.Array, relative: float, scale: float
) -> cases.StoredOutput:
    """The values that are stored of a result, and how far a float may be from them.

    Where sums cancel, whatever the inputs are, nothing moves a result but the roundings of what is summed: how far they
    move it is taken from the evaluator. An optimiser that divides a gradient by its size, as Adam does, makes steps of
    such roundings: the bias of keys of attention has the gradient 0, and walks at random by as much as it learns.
    """
    result, unlike = cases.result_of(plain, exact, relative, scale)
    if unlike and plain.dtype.kind == "f":
        noise = float(np.nan_to_num(np.abs(exact - plain), posinf=0.0).max())
        if noise:
            scale = max(scale, cases.power_above(cases.MOST_NOISE * noise / relative))
            result, _ = cases.result_of(plain, exact, relative, scale)
    return cases.sampled(result, MOST_STORED, relative, scale)


def is_positive_session(session: EmittedSession) -> bool:
    """Whether the inputs of a run are positive."""
    return any(cases.is_positive(function.shaped) for function in session.functions())


def _starts(session: EmittedSession) -> dict[str, int]:
    """The beginning in its table of each input of a run that is read."""
    programs = [cases.starts_of(function.shaped, 0) for function in session.functions()]
    starts: dict[str, int] = {}
    for name, number, position in _reads(session):
        if name in session.inputs:
            starts.setdefault(name, programs[number][position])
    return starts


def _limits(session: EmittedSession) -> dict[str, int | None]:
    """The limits that elements of these are below if they are indices."""
    programs = [
        cases.limits_of(function.shaped, extents)
        for function, extents in zip(session.functions(), tested_extents(session), strict=True)
    ]
    limits: dict[str, int | None] = {}
    for name, number, position in _reads(session):
        known, limit = limits.get(name), programs[number][position]
        limits[name] = min(filter(None, (known, limit)), default=None)
    return limits


def _inputs(
    session: EmittedSession, steps: dict[str, int], below: dict[str, int | None]
) -> dict[str, cases.Array]:
    positive, dims = is_positive_session(session), tested_dims(session)
    return {
        name: cases.input_of(session.tensors[name][0], dims[name], start, below[name], positive)
        for name, start in steps.items()
    }


def _several(
    session: EmittedSession, arrays: dict[str, cases.Array], exact: bool
) -> list[cases.Array]:
    """The outputs of some runs of one rank, one after the other, and what is kept after them."""
    now, returned = dict(arrays), []
    for _ in range(RUNS):
        after = _one(session, now, exact)
        returned += [after[name] for name in session.outputs]
        now |= {each.name: after[each.next] for each in session.kept if each.next}
        now |= {each.name: after[each.name] for each in session.kept if each.role == "gradient"}
    return [*returned, *(now[each.name] for each in session.kept if each.role in LASTING)]


def _one(
    session: EmittedSession, given: dict[str, cases.Array], exact: bool
) -> dict[str, cases.Array]:
    """All arrays after a run of one rank, by name."""
    now = dict(given)
    for stage, extents in zip(session.stages, tested_extents(session), strict=True):
        run, shaped = stage.run, stage.function.shaped
        count = len(shaped.inputs)
        read = [now[name] for name in run.arguments[:count]]
        results = evaluate(shaped, read, extents, exact)
        now |= zip(run.arguments[count:], results, strict=True)
        now |= {target: now[source] for target, source in run.copies}
        for each in run.sums:
            now |= {
                to: np.zeros_like(now[of]) for to, of in zip(each.others, each.parts, strict=False)
            }
    return now

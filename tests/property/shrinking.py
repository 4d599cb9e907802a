"""Make a failing trial small: fewer runs, nodes, outputs and schedules, plainer text, smaller extents, simpler data."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.property import meaning, programs
from tests.property.programs import Conversion, Expression, Input, Lookup, Node, Program
from tests.property.trial import Trial, sizes_of
from tests.property.writer import Written, write

Array = npt.NDArray[Any]
SECONDS = 60.0


def shrink(trial: Trial, fails: Callable[[Trial], bool], seconds: float = SECONDS) -> Trial:
    """The smallest trial found that still fails; every candidate is tried once, in order of promise."""
    end = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(trial):
            if end < time.monotonic():
                return trial
            if _size(candidate) < _size(trial) and _fits(candidate) and fails(candidate):
                trial, changed = candidate, True
                break
    return trial


def _fits(trial: Trial) -> bool:
    """Whether the arrays of every run have extents that fit, and indices that are inside what they look up."""
    program = trial.program
    for run in trial.runs:
        extents = programs.completed(program, sizes_of(program, run))
        if extents is None:
            return False
        arrays = dict(zip(program.inputs, run, strict=True))
        shapes = programs.shapes(program, extents)
        if any(array.shape != shapes[value] for value, array in arrays.items()):
            return False
        for value, limit in programs.limits(program, extents).items():
            indices = arrays.get(value)
            if indices is not None and not np.all((indices >= 0) & (indices < limit)):
                return False
    return True


def _size(trial: Trial) -> tuple[int, ...]:
    """What shrinking makes smaller, the most important first."""
    program = trial.program
    nodes = len(program.nodes) + len(program.outputs)
    ranks = sum(program.ranks())
    schedules = sum(len(n.schedule) for n in program.nodes if isinstance(n, Expression | Lookup))
    elements = sum(array.size for run in trial.runs for array in run)
    variety = sum(len(np.unique(array)) for run in trial.runs for array in run)
    plainness = trial.written.module + trial.fixed
    return (
        len(trial.runs),
        nodes,
        ranks,
        schedules,
        plainness,
        elements,
        len(trial.written.text),
        variety,
    )


def _candidates(trial: Trial) -> Iterator[Trial]:
    """Trials that are smaller in one way."""
    if len(trial.runs) > 1:
        for run in trial.runs:
            yield replace(trial, runs=(run,))
    for program, values in _smaller_programs(trial.program):
        if programs.valid(program):
            yield _rewritten(trial, program, values)
    yield _rewritten(trial, trial.program, {})
    if trial.fixed and len(trial.runs) == 1:
        yield replace(trial, fixed=False)
    if len(trial.runs) == 1:
        for arrays in _smaller_arrays(trial.program, trial.runs[0]):
            yield replace(trial, runs=(arrays,))


def _rewritten(trial: Trial, program: Program, cut: dict[int, int]) -> Trial:
    """A trial of a changed program in plain text; ``cut`` names nodes that became inputs.

    Numbers of nodes are those of the old program; nodes that are not needed are dropped here.
    """
    old = trial.program
    runs = []
    for arrays in trial.runs:
        values = dict(zip(old.inputs, arrays, strict=True))
        for number in cut:
            known = meaning.evaluate(replace(old, outputs=(number,)), arrays)
            values[number] = known[0].value
        runs.append(values)
    inputs = tuple(n for n, node in enumerate(program.nodes) if isinstance(node, Input))
    needed = sorted(_needed(program))
    written = write(programs.pruned(replace(program, inputs=inputs)), random.Random(0), plain=True)
    ordered = [tuple(values[needed[n]] for n in written.program.inputs) for values in runs]
    return replace(trial, written=written, runs=tuple(ordered))


def _needed(program: Program) -> set[int]:
    needed = set(program.outputs)
    for number in range(len(program.nodes) - 1, -1, -1):
        if number in needed:
            needed.update(programs.reads_of(program.nodes[number]))
    return needed


def _smaller_programs(program: Program) -> Iterator[tuple[Program, dict[int, int]]]:
    """Programs with less in them, and the nodes that became inputs."""
    outputs = program.outputs
    if len(outputs) > 1:
        yield from ((replace(program, outputs=(n,)), {}) for n in dict.fromkeys(outputs))
        for at in range(len(outputs)):
            yield replace(program, outputs=outputs[:at] + outputs[at + 1 :]), {}
    computed = [n for n, node in enumerate(program.nodes) if programs.reads_of(node)]
    yield from ((replace(program, outputs=(n,)), {}) for n in computed)
    dtypes, ranks = program.dtypes(), program.ranks()
    for number, node in enumerate(program.nodes):
        if isinstance(node, Input):
            continue
        dtype = dtypes[number]
        if dtype is not None and not isinstance(node, programs.Number):
            yield _with(program, number, Input(dtype, ranks[number])), {number: number}
        for read in programs.reads_of(node):
            if ranks[read] == ranks[number]:
                yield _bypassed(program, number, read), {}
    bare = [
        replace(n, schedule="") if isinstance(n, Expression | Lookup) else n for n in program.nodes
    ]
    yield replace(program, nodes=tuple(bare)), {}
    for number, node in enumerate(program.nodes):
        if isinstance(node, Expression):
            yield from ((_with(program, number, simple), {}) for simple in _simpler(node))


def _simpler(node: Expression) -> Iterator[Node]:
    """Expressions that say less: no schedule, letters in alphabetical order."""
    if node.schedule:
        yield replace(node, schedule="")
    if node.guards:
        yield replace(node, guards=())
    names = {letter: "ijklmnopqr"[at] for at, letter in enumerate(node.letters())}
    patterns = tuple("".join(names[c] for c in pattern) for pattern in node.patterns)
    left = tuple("".join(names.get(c, c) for c in text) for text in node.left)
    output = "".join(names[c] for c in node.output)
    guards = tuple("".join(names.get(c, c) for c in text) for text in node.guards)
    at = "".join(names.get(c, c) for c in node.at)
    renamed = replace(node, patterns=patterns, output=output, left=left, guards=guards, at=at)
    if renamed != node and not node.schedule:
        yield renamed


def _with(program: Program, number: int, node: Node) -> Program:
    nodes = list(program.nodes)
    nodes[number] = node
    return replace(program, nodes=tuple(nodes))


def _bypassed(program: Program, number: int, by: int) -> Program:
    """Whatever reads a node reads another instead."""
    nodes: list[Node] = []
    for node in program.nodes:
        match node:
            case Expression() | Lookup():
                reads = tuple(by if read == number else read for read in node.reads)
                nodes.append(replace(node, reads=reads))
            case Conversion():
                nodes.append(replace(node, read=by if node.read == number else node.read))
            case _:
                nodes.append(node)
    outputs = tuple(by if n == number else n for n in program.outputs)
    return Program(tuple(nodes), program.inputs, outputs)


def _smaller_arrays(program: Program, arrays: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    """The same data on smaller extents; then plainer data."""
    extents = sizes_of(program, arrays)
    classes = [program.classes()[n] for n in program.inputs]
    for number, extent in extents.items():
        for less in dict.fromkeys((0, 1, 2, 3, extent // 2, extent - 1)):
            if 0 <= less < extent:
                yield tuple(
                    array[tuple(slice(less if c == number else None) for c in dims)]
                    for array, dims in zip(arrays, classes, strict=True)
                )
    for at, array in enumerate(arrays):
        for plain in (np.zeros_like(array), np.ones_like(array), _rounded(array)):
            yield (*arrays[:at], plain, *arrays[at + 1 :])


def _rounded(array: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.round(array)) if array.dtype.kind == "f" else array


__all__ = ["Written", "shrink"]

"""Random einsum programs through everything: text, inference, oracle, C in some mode, and the solver of rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ilang import ShapeError, tensor
from ilang.core import pipeline
from ilang.core.ir.kernel import Program as Kernels
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import same
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.notation.components.printer import print_tree
from ilang.core.record import replace
from ilang.core.reference import evaluate
from tests.property import emulated, native, specs
from tests.property.failing import Failure, noted
from tests.property.spec_schedules import scheduled
from tests.property.specs import Array, Program, Spec
from tests.property.tally import Counts

CLOSE = 1e-5
"""Rounding that a float32 sum may differ by, beside the sum of the sizes of its terms."""


@dataclass
class Tally(Counts):
    """What was done, and every failure: the seed, the step, words."""

    programs: int = 0
    runs: int = 0
    elements: int = 0
    by_rows: int = 0
    misfits: int = 0
    schedules: int = 0
    refused: int = 0
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class _Lowered:
    """A program on its way; ``fixed`` is the run whose extents it is compiled for, or None."""

    seed: int
    program: Program
    shaped: Shaped
    kernels: Kernels
    runs: tuple[int, ...]


def check(seeds: Sequence[int], mode: str) -> Tally:
    """Check the programs of some seeds in one C program, or in one of CUDA."""
    tally = Tally()
    lowered: list[_Lowered] = []
    for seed in seeds:
        tally.programs += 1
        program = specs.generate(seed)
        says = [program.text]
        with noted(tally.failures, seed, says):
            if seed % 2:
                program, given, refused = scheduled(program, random.Random(seed))
                says[:] = [program.text]
                tally.schedules, tally.refused = tally.schedules + given, tally.refused + refused
            machine = GPU if mode in emulated.MODES else CPU
            one = kernels_of(seed, program, f"p{len(lowered)}", machine)
            _by_oracle(one, tally)
            lowered.append(one)
    _by_c(lowered, mode, tally)
    return tally


def kernels_of(seed: int, program: Program, name: str, machine: Machine) -> _Lowered:
    tree = pipeline.text_component(program.text)
    assert same(pipeline.text_component(print_tree(tree)), tree), f"printed: {print_tree(tree)}"
    runs = (seed % len(program.runs),) if seed % 4 == 0 else tuple(range(len(program.runs)))
    arrays = program.runs[runs[0]]
    shapes = [array.shape for array in arrays] if len(runs) == 1 else None
    ranks = [array.ndim for array in arrays]
    shaped = pipeline.infer(
        pipeline.graph_of(tree, name), [program.dtype] * len(arrays), ranks, shapes
    )
    shaped = replace(shaped, name=name)
    return _Lowered(seed, program, shaped, pipeline.lower(shaped, machine), runs)


def _by_oracle(one: _Lowered, tally: Tally) -> None:
    """The evaluator agrees, and so do rows with known extents where there is one specification."""
    for run in one.runs:
        arrays = one.program.runs[run]
        extents = pipeline.fit(one.shaped, [array.shape for array in arrays])
        want = specs.evaluate(one.program, run)
        got = evaluate(one.shaped, arrays, extents)[0]
        assert _alike(got, want), f"run {run}: {got}\nin place of {want}"
        if len(one.program.stages) == 1 and isinstance(one.program.stages[0], Spec):
            tally.by_rows += 1
            found = by_rows(one.program.stages[0], arrays)
            assert _alike(found, want), f"run {run}, rows: {found}\nin place of {want}"
            _misfit(one, arrays, tally)


def _misfit(one: _Lowered, arrays: Sequence[Array], tally: Tally) -> None:
    """With one dimension of another extent, both ways refuse, or both give the same."""
    if len(one.runs) == 1:
        return
    rng = random.Random(one.seed)
    number = rng.randrange(len(arrays))
    if not arrays[number].ndim:
        return
    dim, more = rng.randrange(arrays[number].ndim), rng.choice((-1, 1))
    shape = [max(0, n + more * (d == dim)) for d, n in enumerate(arrays[number].shape)]
    changed = [np.resize(a, shape) if n == number else a for n, a in enumerate(arrays)]
    spec = one.program.stages[0]
    assert isinstance(spec, Spec)
    try:
        wanted: Array | str = by_rows(spec, changed)
    except ShapeError as error:
        wanted = error.code
    try:
        extents = pipeline.fit(one.shaped, [array.shape for array in changed])
        got: Array | str = evaluate(one.shaped, changed, extents)[0]
    except ShapeError as error:
        got = error.code
    tally.misfits += isinstance(got, str)
    said = f"{[a.shape for a in changed]}: {got}\nin place of {wanted}"
    if isinstance(got, str) or isinstance(wanted, str):
        assert isinstance(got, str) == isinstance(wanted, str), said
    else:
        assert _alike(got, wanted), said


def by_rows(spec: Spec, arrays: Sequence[Array]) -> Array:
    """The same specification by ``ilang.tensor``: rows solved with known extents."""
    leaves = [
        tensor.data(array, batch=shape.batch, input=len(shape.axes) - shape.output)
        for array, shape in zip(arrays, spec.operands, strict=True)
    ]
    return tensor.einsum(spec.text, *leaves).value(target="numpy")


def _alike(got: Array, want: Array) -> bool:
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype == np.float32:
        return bool(np.allclose(got, want, CLOSE, CLOSE))
    return bool(np.array_equal(got, want))


def _by_c(lowered: Sequence[_Lowered], mode: str, tally: Tally) -> None:
    calls, wanted = [], []
    for number, one in enumerate(lowered):
        for run in one.runs:
            arrays = one.program.runs[run]
            extents = pipeline.fit(one.shaped, [array.shape for array in arrays])
            want = specs.evaluate(one.program, run)
            sizes = zip(one.shaped.sizes, extents, strict=True)
            free = tuple(extent for size, extent in sizes if size.is_argument())
            calls.append(native.Call(number, free, tuple(arrays), (want.shape,)))
            wanted.append((one, run, want))
    if not calls:
        return
    try:
        run_batch = emulated.run if mode in emulated.MODES else native.run
        answers = run_batch([one.kernels for one in lowered], calls, mode)
    except native.CompileError as error:
        tally.failures.append((lowered[0].seed, "compiler", str(error)))
        return
    for (one, run, want), answer in zip(wanted, answers, strict=True):
        tally.runs += 1
        text = one.program.text
        if not answer.outputs or answer.trouble:
            tally.failures.append((one.seed, "died", f"{text}\nrun {run}: {answer.trouble}"))
            continue
        tally.elements += want.size
        if not _alike(answer.outputs[0], want):
            message = f"{text}\nrun {run}: {answer.outputs[0]}\nin place of {want}"
            tally.failures.append((one.seed, "answer", message))

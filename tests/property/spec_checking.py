"""Random einsum programs through everything: text, inference, oracle, C in some mode, and the solver of rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from ilang import ShapeError, tensor
from ilang.core import pipeline
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import same
from ilang.core.notation.components.printer import print_tree
from ilang.core.record import replace
from ilang.core.reference import evaluate
from tests.property import specs
from tests.property.batch import Comparison, Subject, compiled, machine_of
from tests.property.spec_schedules import scheduled
from tests.property.specs import Array, Program, Spec
from tests.property.tally import Tally

CLOSE = 1e-5
"""Rounding that a float32 sum may differ by, beside the sum of the sizes of its terms."""


def check(seeds: Sequence[int], mode: str) -> Tally:
    """Check the programs of some seeds in one C program, or in one of CUDA."""
    tally = Tally()
    subjects: list[Subject] = []
    for seed in seeds:
        program = specs.generate(seed)
        tally.count(programs=1)
        says = [program.text]
        with tally.noting(seed, says):
            if seed % 2:
                program, given, refused = scheduled(program, random.Random(seed))
                says[:] = [program.text]
                tally.count(schedules=given, refused=refused)
            shaped, numbers = shaped_of(seed, program, f"p{len(subjects)}")
            kernels = pipeline.lower(shaped, machine_of(mode))
            runs = [_by_oracle(shaped, program, run, tally) for run in numbers]
            spec = program.stages[0]
            if len(numbers) > 1 and len(program.stages) == 1 and isinstance(spec, Spec):
                for run in runs:
                    _misfit(seed, shaped, spec, run.arrays, tally)
            subjects.append(Subject(seed, program.text, shaped, kernels, runs))
    compiled(subjects, mode, tally)
    return tally


def shaped_of(seed: int, program: Program, name: str) -> tuple[Shaped, Sequence[int]]:
    """A program inferred, and the numbers of its runs: one, whose extents it is compiled for, or all."""
    tree = pipeline.text_component(program.text)
    assert same(pipeline.text_component(print_tree(tree)), tree), f"printed: {print_tree(tree)}"
    runs = (seed % len(program.runs),) if seed % 4 == 0 else tuple(range(len(program.runs)))
    arrays = program.runs[runs[0]]
    shapes = [array.shape for array in arrays] if len(runs) == 1 else None
    ranks = [array.ndim for array in arrays]
    graph = replace(pipeline.graph_of(tree, name), name=name)
    return pipeline.infer(graph, [program.dtype] * len(arrays), ranks, shapes), runs


def _by_oracle(shaped: Shaped, program: Program, run: int, tally: Tally) -> Comparison:
    """A run on which the evaluator agrees, and so do rows with known extents where there is one specification."""
    arrays, want = program.runs[run], specs.evaluate(program, run)

    def compare(outputs: Sequence[Array]) -> None:
        assert _alike(outputs[0], want), f"run {run}: {outputs[0]}\nin place of {want}"

    compare(evaluate(shaped, arrays, pipeline.fit(shaped, [array.shape for array in arrays])))
    if len(program.stages) == 1 and isinstance(program.stages[0], Spec):
        tally.count(by_rows=1)
        compare([by_rows(program.stages[0], arrays)])
    return Comparison(arrays, compare)


def _misfit(seed: int, shaped: Shaped, spec: Spec, arrays: Sequence[Array], tally: Tally) -> None:
    """With one dimension of another extent, both ways refuse, or both give the same."""
    rng = random.Random(seed)
    number = rng.randrange(len(arrays))
    if not arrays[number].ndim:
        return
    dim, more = rng.randrange(arrays[number].ndim), rng.choice((-1, 1))
    shape = [max(0, n + more * (d == dim)) for d, n in enumerate(arrays[number].shape)]
    changed = [np.resize(a, shape) if n == number else a for n, a in enumerate(arrays)]
    try:
        wanted: Array | str = by_rows(spec, changed)
    except ShapeError as error:
        wanted = error.code
    try:
        extents = pipeline.fit(shaped, [array.shape for array in changed])
        got: Array | str = evaluate(shaped, changed, extents)[0]
    except ShapeError as error:
        got = error.code
    tally.count(misfits=isinstance(got, str))
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

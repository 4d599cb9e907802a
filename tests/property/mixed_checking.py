"""Random mixed graphs through everything: inference, oracle, and C in some mode, at run-time and at fixed extents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ilang.core import pipeline
from ilang.core.ir.known_extents import extents_of
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.transform.views import moved_views
from tests.property import mixed
from tests.property.batch import Comparison, Subject, compiled, machine_of
from tests.property.mixed import Array, Drawn
from tests.property.tally import Tally


def check(seeds: Sequence[int], mode: str) -> Tally:
    """Check the graphs of some seeds in one C program, or in one of CUDA."""
    tally = Tally()
    subjects: list[Subject] = []
    for seed in seeds:
        drawn = mixed.generate(seed)
        tally.count(programs=1, fixed=drawn.fixed is not None)
        says = [" ".join(drawn.says), pipeline.graph_text(drawn.graph)]
        with tally.noting(seed, says):
            shaped = shaped_of(drawn, f"p{len(subjects)}")
            kernels = pipeline.lower(shaped, machine_of(mode))
            runs = range(len(drawn.runs)) if drawn.fixed is None else (drawn.fixed,)
            for run in runs:
                _by_oracle(shaped, drawn, run)
                _by_oracle(moved_views(shaped, extents_of(shaped, CPU)), drawn, run)
            subjects.append(
                Subject(seed, "\n".join(says), shaped, kernels, [_run(drawn, n) for n in runs])
            )
    compiled(subjects, mode, tally)
    return tally


def shaped_of(drawn: Drawn, name: str) -> Shaped:
    """A graph inferred, for the extents of one run where these are fixed."""
    arrays = drawn.runs[drawn.fixed or 0]
    shapes = None if drawn.fixed is None else [array.shape for array in arrays]
    ranks = [array.ndim for array in arrays]
    graph = replace(drawn.graph, name=name)
    return pipeline.infer(graph, [drawn.dtype] * len(arrays), ranks, shapes)


def _by_oracle(shaped: Shaped, drawn: Drawn, run: int) -> None:
    """The evaluator gives what the values mean, before views move and after."""
    extents = pipeline.fit(shaped, [array.shape for array in drawn.runs[run]])
    _compare(drawn, run, evaluate(shaped, drawn.runs[run], extents))


def _run(drawn: Drawn, run: int) -> Comparison:
    return Comparison(drawn.runs[run], lambda outputs: _compare(drawn, run, outputs))


def _compare(drawn: Drawn, run: int, outputs: Sequence[Array]) -> None:
    for number, (got, want) in enumerate(zip(outputs, drawn.results[run], strict=True)):
        alike = got.shape == want.shape and got.dtype == want.dtype and np.array_equal(got, want)
        assert alike, f"run {run}, output {number}: {got}\nin place of {want}"

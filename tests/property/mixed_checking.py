"""Random mixed graphs through everything: inference, oracle, and C in some mode, at run-time and at fixed extents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ilang.core import pipeline
from ilang.core.ir.kernel import Program as Kernels
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.size_class import extents_of
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.transform.views import moved_views
from tests.property import emulated, mixed, native
from tests.property.failing import Failure, noted
from tests.property.mixed import Array, Drawn
from tests.property.tally import Counts


@dataclass
class Tally(Counts):
    """What was done, and every failure: the seed, the step, words."""

    programs: int = 0
    runs: int = 0
    elements: int = 0
    fixed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class _Lowered:
    """A graph on its way, and the runs that it is for."""

    drawn: Drawn
    shaped: Shaped
    kernels: Kernels
    runs: tuple[int, ...]

    def extents(self, run: int) -> tuple[int, ...]:
        return pipeline.fit(self.shaped, [array.shape for array in self.drawn.runs[run]])


def check(seeds: Sequence[int], mode: str) -> Tally:
    """Check the graphs of some seeds in one C program, or in one of CUDA."""
    tally = Tally()
    lowered: list[_Lowered] = []
    for seed in seeds:
        tally.programs += 1
        drawn = mixed.generate(seed)
        tally.kinds.update(drawn.says)
        tally.fixed += drawn.fixed is not None
        says = [" ".join(drawn.says), pipeline.graph_text(drawn.graph)]
        with noted(tally.failures, seed, says):
            one = kernels_of(drawn, f"p{len(lowered)}", GPU if mode in emulated.MODES else CPU)
            _by_oracle(one.shaped, one)
            _by_oracle(moved_views(one.shaped, extents_of(one.shaped, (), CPU)), one)
            lowered.append(one)
    _by_c(lowered, mode, tally)
    return tally


def kernels_of(drawn: Drawn, name: str, machine: Machine) -> _Lowered:
    runs = tuple(range(len(drawn.runs))) if drawn.fixed is None else (drawn.fixed,)
    arrays = drawn.runs[runs[0]]
    shapes = None if drawn.fixed is None else [array.shape for array in arrays]
    ranks = [array.ndim for array in arrays]
    graph = replace(drawn.graph, name=name)
    shaped = pipeline.infer(graph, [drawn.dtype] * len(arrays), ranks, shapes)
    return _Lowered(drawn, shaped, pipeline.lower(shaped, machine), runs)


def _by_oracle(shaped: Shaped, one: _Lowered) -> None:
    """The evaluator gives what the values mean, before views move and after."""
    for run in one.runs:
        answers = evaluate(shaped, one.drawn.runs[run], one.extents(run))
        for number, (got, want) in enumerate(zip(answers, one.drawn.results[run], strict=True)):
            assert _same(got, want), f"run {run}, output {number}: {got}\nin place of {want}"


def _same(got: Array, want: Array) -> bool:
    return got.shape == want.shape and got.dtype == want.dtype and bool(np.array_equal(got, want))


def _by_c(lowered: Sequence[_Lowered], mode: str, tally: Tally) -> None:
    calls, asked = [], []
    for number, one in enumerate(lowered):
        for run in one.runs:
            sizes = zip(one.shaped.sizes, one.extents(run), strict=True)
            free = tuple(extent for size, extent in sizes if size.is_argument())
            shapes = tuple(array.shape for array in one.drawn.results[run])
            calls.append(native.Call(number, free, tuple(one.drawn.runs[run]), shapes))
            asked.append((one.drawn, run))
    if not calls:
        return
    run_batch = emulated.run if mode in emulated.MODES else native.run
    try:
        answers = run_batch([one.kernels for one in lowered], calls, mode)
    except native.CompileError as error:
        tally.failures.append((lowered[0].drawn.seed, "compiler", str(error)))
        return
    for (drawn, run), answer in zip(asked, answers, strict=True):
        tally.runs += 1
        says = f"{pipeline.graph_text(drawn.graph)}\nrun {run}"
        if not answer.outputs or answer.trouble:
            tally.failures.append((drawn.seed, "died", f"{says}: {answer.trouble}"))
            continue
        for number, (got, want) in enumerate(zip(answer.outputs, drawn.results[run], strict=True)):
            tally.elements += want.size
            if not _same(got, want):
                message = f"{says}, output {number}: {got}\nin place of {want}"
                tally.failures.append((drawn.seed, "answer", message))

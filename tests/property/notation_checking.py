"""Random programs of every notation: what they mean, the oracle, printed text, and C or CUDA, which all agree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import ilang
from ilang.codegen.call.arguments import SUPPORTED
from ilang.core import pipeline
from ilang.core.ir.kernel import Program as Kernels
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.size_class import extents_of
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.transform.views import moved_views
from tests.property import emulated, native, notations
from tests.property.failing import Failure, noted
from tests.property.notations import NOTATIONS, Array, Drawn
from tests.property.tally import Counts

__all__ = ["NOTATIONS", "Tally", "check"]


@dataclass
class Tally(Counts):
    """What was done, and every failure: the seed, the step, words."""

    programs: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    elements: int = 0
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class _Lowered:
    seed: int
    drawn: Drawn
    shaped: Shaped
    kernels: Kernels
    extents: tuple[int, ...]

    def says(self) -> str:
        shapes = " ".join(str(array.shape) for array in self.drawn.arrays)
        return f"{self.drawn.notation}: {self.drawn.component!r} {shapes}"


def check(notation: str, seeds: Sequence[int], mode: str) -> Tally:
    """Check the programs of some seeds in one C program, or in one of CUDA."""
    tally = Tally()
    lowered: list[_Lowered] = []
    machine = GPU if mode in emulated.MODES else CPU
    for seed in seeds:
        tally.programs[notation] += 1
        says = [notation]
        with noted(tally.failures, seed, says):
            drawn = notations.generate(notation, seed)
            says.append(repr(drawn.component))
            one = kernels_of(seed, drawn, f"p{len(lowered)}", machine)
            _read_again(drawn)
            for shaped in (one.shaped, moved_views(one.shaped, extents_of(one.shaped, (), CPU))):
                _compare(evaluate(shaped, drawn.arrays, one.extents), drawn)
            lowered.append(one)
    _by_compiler(lowered, mode, tally)
    return tally


def kernels_of(seed: int, drawn: Drawn, name: str, machine: Machine) -> _Lowered:
    """A program inferred and lowered; of some the extents are known when it is compiled."""
    dtypes = [SUPPORTED[array.dtype] for array in drawn.arrays]
    shapes = [array.shape for array in drawn.arrays]
    fixed = random.Random(seed).random() < 0.25
    graph = replace(drawn.component.graph(), name=name)
    shaped = pipeline.infer(graph, dtypes, list(map(len, shapes)), shapes if fixed else None)
    extents = pipeline.fit(shaped, shapes)
    return _Lowered(seed, drawn, shaped, pipeline.lower(shaped, machine), extents)


def _read_again(drawn: Drawn) -> None:
    """The text of a program is read as the same program, for the ranks of its arrays."""
    if drawn.text:
        ranks = [array.ndim for array in drawn.arrays]
        both = (ilang.i(drawn.text), drawn.component)
        graphs = [pipeline.einx_to_graph(each.graph(), ranks) for each in both]
        one, other = (pipeline.graph_text(graph) for graph in graphs)
        assert one == other, f"the text {drawn.text} is\n{one}\nin place of\n{other}"


def _compare(results: Sequence[Array], drawn: Drawn) -> None:
    """Results are those that something else computed."""
    assert len(results) == len(drawn.results)
    for number, (got, want) in enumerate(zip(results, drawn.results, strict=True)):
        assert got.shape == want.shape, f"output {number} has shape {got.shape}, not {want.shape}"
        if drawn.errors:
            with np.errstate(invalid="ignore"):  # where values overflow nothing is compared
                off = np.abs(got - want)
            fine = (off <= drawn.errors[number] * 2) | ~np.isfinite(drawn.errors[number])
        else:
            fine = np.isclose(got, want, 1e-9, 1e-9, equal_nan=True)
        assert np.all(fine), f"output {number}: {got}\nin place of {want}"


def _by_compiler(lowered: Sequence[_Lowered], mode: str, tally: Tally) -> None:
    calls = []
    for number, one in enumerate(lowered):
        sizes = zip(one.shaped.sizes, one.extents, strict=True)
        free = tuple(extent for size, extent in sizes if size.is_argument())
        shapes = tuple(result.shape for result in one.drawn.results)
        calls.append(native.Call(number, free, one.drawn.arrays, shapes))
    if not calls:
        return
    run = emulated.run if mode in emulated.MODES else native.run
    try:
        answers = run([one.kernels for one in lowered], calls, mode)
    except native.CompileError as error:
        tally.failures.append((lowered[0].seed, "compiler", str(error)))
        return
    for one, answer in zip(lowered, answers, strict=True):
        tally.runs += 1
        if not answer.outputs or answer.trouble:
            tally.failures.append((one.seed, "died", f"{one.says()}: {answer.trouble}"))
            continue
        tally.elements += sum(result.size for result in one.drawn.results)
        try:
            _compare(answer.outputs, one.drawn)
        except AssertionError as error:
            tally.failures.append((one.seed, "answer", f"{one.says()}\n{error}"))

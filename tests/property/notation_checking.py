"""Random programs of every notation: what they mean, the oracle, printed text, and C or CUDA, which all agree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import numpy as np

import ilang
from ilang.codegen.call.arguments import SUPPORTED
from ilang.core import pipeline
from ilang.core.ir.known_extents import extents_of
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.transform.views import moved_views
from tests.property import notations
from tests.property.batch import Comparison, Subject, compiled, machine_of
from tests.property.notations import NOTATIONS, Array, Drawn
from tests.property.tally import Tally

__all__ = ["NOTATIONS", "check"]


def check(notation: str, seeds: Sequence[int], mode: str) -> Tally:
    """Check the programs of some seeds in one C program, or in one of CUDA."""
    tally = Tally()
    subjects: list[Subject] = []
    for seed in seeds:
        tally.count(programs=1)
        says = [notation]
        with tally.noting(seed, says):
            drawn = notations.generate(notation, seed)
            says.append(repr(drawn.component))
            shaped = shaped_of(seed, drawn, f"p{len(subjects)}")
            kernels = pipeline.lower(shaped, machine_of(mode))
            _read_again(drawn)
            extents = pipeline.fit(shaped, [array.shape for array in drawn.arrays])
            for each in (shaped, moved_views(shaped, extents_of(shaped, CPU))):
                _compare(drawn, evaluate(each, drawn.arrays, extents))
            run = Comparison(drawn.arrays, partial(_compare, drawn))
            subjects.append(Subject(seed, " ".join(says), shaped, kernels, [run]))
    compiled(subjects, mode, tally)
    return tally


def shaped_of(seed: int, drawn: Drawn, name: str) -> Shaped:
    """A program inferred; of some the extents are known when it is compiled."""
    dtypes = [SUPPORTED[array.dtype] for array in drawn.arrays]
    shapes = [array.shape for array in drawn.arrays]
    fixed = random.Random(seed).random() < 0.25
    graph = replace(drawn.component.graph(), name=name)
    return pipeline.infer(graph, dtypes, list(map(len, shapes)), shapes if fixed else None)


def _read_again(drawn: Drawn) -> None:
    """The text of a program is read as the same program, for the ranks of its arrays."""
    if drawn.text:
        ranks = [array.ndim for array in drawn.arrays]
        both = (ilang.i(drawn.text), drawn.component)
        graphs = [pipeline.einx_to_graph(each.graph(), ranks) for each in both]
        one, other = (pipeline.graph_text(graph) for graph in graphs)
        assert one == other, f"the text {drawn.text} is\n{one}\nin place of\n{other}"


def _compare(drawn: Drawn, results: Sequence[Array]) -> None:
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

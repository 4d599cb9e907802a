"""Programs that are compiled together, with calls and what these must give: as C, or as CUDA on the emulator."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.codegen.call.native import Native
from ilang.codegen.emulator.runtime import Traffic, emulator
from ilang.core import pipeline
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.record import replace
from ilang.core.reference import evaluate
from tests.property import emulated, native
from tests.property.meaning import TYPES
from tests.property.native import Answer, Call
from tests.property.tally import Tally

Array = npt.NDArray[Any]


def machine_of(mode: str) -> Machine:
    """What programs of a mode are lowered for."""
    return GPU if mode in emulated.MODES else CPU


def call_of(number: int, shaped: Shaped, arrays: Sequence[Array]) -> Call:
    """A call of a program of a batch: its run-time extents and the shapes of its results are those of its arrays."""
    extents = pipeline.fit(shaped, [array.shape for array in arrays])
    sizes = zip(shaped.sizes, extents, strict=True)
    free = tuple(extent for size, extent in sizes if size.is_argument())
    dims = (shaped.tensors[value].dims for value in shaped.outputs)
    shapes = tuple(tuple(extents[size] for size in each) for each in dims)
    return Call(number, free, tuple(arrays), shapes)


def traffic_of(
    loaded: Native, name: str, shaped: Shaped, arrays: Sequence[Array]
) -> tuple[list[Array], Sequence[Traffic]]:
    """What a program on the emulator gives, and what each of its lines reads and writes; every access is right."""
    call = call_of(0, shaped, arrays)
    kinds = [TYPES[shaped.tensors[value].dtype] for value in shaped.outputs]
    outputs = [np.zeros(*each) for each in zip(call.outputs, kinds, strict=True)]
    with emulator().settings(profile=1):
        emulator().take_profile()
        sizes = np.array([*call.extents, 0], np.int64)
        assert loaded.call(f"{name}_host", sizes, *arrays, *outputs) == 0
        traffic = emulator().take_profile()
    assert not emulator().take_findings()
    return outputs, traffic


class Batch:
    """Programs, calls of them, and the results of each call."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.programs: list[Program] = []
        self.calls: list[Call] = []
        self.wanted: list[Sequence[Any]] = []

    def add(self, shaped: Shaped, machine: Machine | None = None) -> Program:
        """Lower a program, for another machine than that of the mode where one is given."""
        named = replace(shaped, name=f"p{len(self.programs)}")
        self.programs.append(pipeline.lower(named, machine or machine_of(self.mode)))
        return self.programs[-1]

    def call(
        self,
        shaped: Shaped,
        arrays: Sequence[Array],
        wanted: Sequence[Any] | None = None,
        *,
        exact: bool = True,
    ) -> None:
        """Call the last program; it must give what is wanted, or what the evaluator gives, in f64 or rounded."""
        self.calls.append(call_of(len(self.programs) - 1, shaped, arrays))
        if wanted is None:
            extents = pipeline.fit(shaped, [array.shape for array in arrays])
            with np.errstate(all="ignore"):
                wanted = evaluate(shaped, arrays, extents, exact)
        self.wanted.append(wanted)

    def answers(self, *, in_all_modes: bool = False) -> Iterator[tuple[str, Answer, Sequence[Any]]]:
        """For each call: its program and shapes in words, the answer, and what is wanted."""
        if self.mode in emulated.MODES:
            given = emulated.run(self.programs, self.calls, self.mode, in_all_modes=in_all_modes)
        else:
            given = native.run(self.programs, self.calls, self.mode)
        for call, answer, wanted in zip(self.calls, given, self.wanted, strict=True):
            shapes = [array.shape for array in call.inputs]
            yield f"{self.programs[call.program].name} {shapes}", answer, wanted

    def agree(self, tolerance: float, absolute: float | None = None) -> None:
        """Fail where a call has trouble, or gives other outputs than are wanted; in CUDA, the batch has all modes."""
        least = tolerance if absolute is None else absolute
        for says, answer, outputs in self.answers(in_all_modes=True):
            assert not answer.trouble, f"{says}: {answer.trouble}"
            for got, want in zip(answer.outputs, outputs, strict=True):
                np.testing.assert_allclose(got, want, tolerance, least, err_msg=says)


@dataclass(frozen=True)
class Comparison:
    """Arrays that a random program is called with, and what raises an assertion where its outputs are wrong."""

    arrays: Sequence[Array]
    compare: Callable[[Sequence[Array]], None]


@dataclass(frozen=True)
class Subject:
    """A random program: its seed, how it reads, what it was inferred and lowered to, and its runs."""

    seed: int
    says: str
    shaped: Shaped
    kernels: Program
    runs: Sequence[Comparison]


def compiled(subjects: Sequence[Subject], mode: str, tally: Tally) -> None:
    """Compare what all runs give in one compiled text; where it is refused, each program is compiled by itself."""
    pairs = [(n, each, run) for n, each in enumerate(subjects) for run in each.runs]
    calls = [call_of(n, each.shaped, run.arrays) for n, each, run in pairs]
    if not calls:
        return
    runner = emulated.run if mode in emulated.MODES else native.run
    try:
        answers = runner([each.kernels for each in subjects], calls, mode)
    except Exception:
        if len(subjects) == 1:
            says = f"{subjects[0].says}\n{traceback.format_exc(limit=-4)}"
            tally.failures.append((subjects[0].seed, "compiler", says))
            return
        for each in subjects:
            compiled([each], mode, tally)
        return
    for (_, each, run), call, answer in zip(pairs, calls, answers, strict=True):
        tally.count(runs=1)
        says = f"{each.says}\nof shapes {[array.shape for array in run.arrays]}"
        if answer.trouble or len(answer.outputs) != len(call.outputs):
            tally.failures.append((each.seed, "died", f"{says}\n{answer.trouble}"))
            continue
        tally.count(elements=sum(output.size for output in answer.outputs))
        with tally.noting(each.seed, [says], "answer"):
            run.compare(answer.outputs)

"""Schedules under which reductions are read while they are partial: refused, or as right as without a schedule."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import pytest

from ilang.core import pipeline
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.reference import evaluate
from tests.property import attention, emulated, native
from tests.property.test_fuzz import needs_compiler

DRAWINGS = 200
MOST = 20
"""How many times as often it is drawn at most until every name has a program."""
FEW = 30
"""Drawings for a GPU, which take longer."""
START = 1_000
ADVISED = 8
"""Of so many programs that are refused, a legal schedule is looked for to one, which takes longer than all else."""
REFUSED = {"E0320", "E0321", "E0322", "E0323", "E0328"}
EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13)
SMALL = (0, 0, 1, 2, 5)


def shaped_of(text: str, name: str = "program") -> Shaped:
    return pipeline.infer(pipeline.graph_of(pipeline.text_component(text), name))


def is_online(program: Program) -> bool:
    """Whether something in a program runs."""
    names = [buffer.name for buffer in program.buffers]
    names += [local.name for kernel in program.kernels for local in kernel.locals]
    return any("_run" in name for name in names)


def difference(got: attention.Array, want: attention.Array) -> str:
    """What is wrong with a result: more than 1e-5 of the largest magnitudes, or another infinity or NaN."""
    finite = np.where(np.isfinite(want), want, 0)
    near = 1e-5 * (np.abs(finite) + np.max(np.abs(finite), initial=1.0))
    with np.errstate(invalid="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        right = np.where(np.isfinite(want), np.abs(got - want) <= near, same)
    if right.all():
        return ""
    at = tuple(np.argwhere(~right)[0])
    return f"{got[at]} in place of {want[at]} at {at}"


Case = tuple[attention.Drawing, list[int], attention.Array]
"""What is called, the extents, and what it means."""


class Drawn:
    """Programs that run, of those that a number of drawings give, their calls, and the codes of refusals."""

    def __init__(
        self,
        rng: random.Random,
        count: int,
        machine: Machine,
        advised: int,
        names: Collection[str] = (),
    ) -> None:
        """A legal schedule is looked for to one of ``advised`` that are refused.

        After so many drawings those of names that have no program are drawn until each has one, within reason.
        """
        self.codes: Counter[str] = Counter()
        self.programs: list[Program] = []
        self.calls: list[native.Call] = []
        self.cases: list[Case] = []
        for number in range(MOST * count):
            drawing = attention.draw(rng)
            if count <= number:
                lacking = {*names} - {each.name for each, _, _ in self.cases}
                if not lacking:
                    break
                if drawing.name not in lacking:
                    continue
            shaped = shaped_of(drawing.text, f"p{len(self.programs)}")
            try:
                exact = number % advised
                program = (
                    pipeline._lowered(shaped, machine) if exact else pipeline.lower(shaped, machine)
                )
            except ScheduleError as error:
                self.codes[error.code] += 1
                continue
            if is_online(program):
                assert drawing.name in attention.LEGAL, drawing.text
                self.programs.append(program)
                self._call(drawing, shaped, rng)

    def _call(self, drawing: attention.Drawing, shaped: Shaped, rng: random.Random) -> None:
        """Call the last program at several extents."""
        for extents in (SMALL, EXTENTS, EXTENTS, EXTENTS):
            sizes = [rng.choice(extents) for _ in shaped.sizes]
            shapes = [tuple(sizes[n] for n in shaped.tensors[v].dims) for v in shaped.inputs]
            arrays = attention.draw_arrays(drawing, shapes, rng)
            with np.errstate(all="ignore"):
                want = evaluate(shaped, arrays, sizes)[0]
            free = [n for n, size in zip(sizes, shaped.sizes, strict=True) if size.is_argument()]
            number = len(self.programs) - 1
            self.calls.append(native.Call(number, tuple(free), tuple(arrays), (want.shape,)))
            self.cases.append((drawing, sizes, want))

    def wrong(self, answers: Sequence[native.Answer]) -> list[str]:
        """What is wrong with answers that are not what is meant."""
        wrong = []
        for (drawing, sizes, want), answer in zip(self.cases, answers, strict=True):
            said = answer.trouble or difference(answer.outputs[0], want)
            if said:
                wrong.append(f"{drawing.name} {sizes}: {said}\n  {drawing.text}")
        return wrong

    def check(self, answers: Sequence[native.Answer]) -> None:
        """Fail where an answer is not what is meant."""
        if wrong := self.wrong(answers):
            pytest.fail("\n".join(wrong[:5]), pytrace=False)


@needs_compiler
@pytest.mark.batches(1)
def test_random_schedules(batch: int) -> None:
    drawn = Drawn(random.Random(batch), DRAWINGS, CPU, ADVISED, attention.LEGAL)
    assert {drawing.name for drawing, _, _ in drawn.cases} == set(attention.LEGAL)
    assert set(drawn.codes) <= REFUSED
    assert len(drawn.programs) > DRAWINGS // 12
    assert drawn.codes["E0323"] > DRAWINGS // 12
    drawn.check(native.run(drawn.programs, drawn.calls, "sanitized"))


@needs_compiler
@pytest.mark.batches(1)
def test_random_schedules_on_a_gpu(batch: int) -> None:
    """Emulated in several orders of threads, with every load and store checked."""
    drawn = Drawn(random.Random(START + batch), FEW, GPU, FEW + 1)
    assert len(drawn.programs) > FEW // 12
    drawn.check(emulated.run(drawn.programs, drawn.calls, "cuda-checked"))

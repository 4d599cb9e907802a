"""Schedules under which reductions are read while they are partial: refused, or as right as without a schedule."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ilang.core import pipeline
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.reference import evaluate
from tests.property import attention, native
from tests.property.test_fuzz import needs_compiler

DRAWINGS = 400
ADVISED = 4
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


@needs_compiler
@pytest.mark.batches(1)
def test_random_schedules(batch: int) -> None:
    rng = random.Random(batch)
    codes: Counter[str] = Counter()
    programs: list[Program] = []
    calls, wanted = [], []
    for number in range(DRAWINGS):
        drawing = attention.draw(rng)
        shaped = shaped_of(drawing.text, f"p{len(programs)}")
        try:
            program = pipeline._lowered(shaped) if number % ADVISED else pipeline.lower(shaped)
        except ScheduleError as error:
            codes[error.code] += 1
            continue
        if not is_online(program):
            continue
        assert drawing.name in attention.LEGAL, drawing.text
        programs.append(program)
        for extents in (SMALL, EXTENTS, EXTENTS, EXTENTS):
            sizes = [rng.choice(extents) for _ in shaped.sizes]
            shapes = [tuple(sizes[n] for n in shaped.tensors[v].dims) for v in shaped.inputs]
            arrays = attention.draw_arrays(drawing, shapes, rng)
            with np.errstate(all="ignore"):
                want = evaluate(shaped, arrays, sizes)[0]
            free = [n for n, size in zip(sizes, shaped.sizes, strict=True) if size.is_argument()]
            call = native.Call(len(programs) - 1, tuple(free), tuple(arrays), (want.shape,))
            calls.append(call)
            wanted.append((drawing, sizes, want))
    assert {drawing.name for drawing, _, _ in wanted} == set(attention.LEGAL)
    assert set(codes) <= REFUSED
    assert len(programs) > DRAWINGS // 12
    assert codes["E0323"] > DRAWINGS // 12
    wrong = []
    for (drawing, sizes, want), answer in zip(
        wanted, native.run(programs, calls, "sanitized"), strict=True
    ):
        said = answer.trouble or difference(answer.outputs[0], want)
        if said:
            wrong.append(f"{drawing.name} {sizes}: {said}\n  {drawing.text}")
    if wrong:
        pytest.fail("\n".join(wrong[:5]), pytrace=False)

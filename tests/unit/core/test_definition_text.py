"""Gradients as texts: the definition that is printed is the gradient, and what has no text is listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.explain.assignments import assignments_text
from ilang.core.explain.definition_text import definition_text
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.transform.reverse import gradient
from tests.property import schedules


def gradient_of(text: str) -> Shaped:
    shaped = pipeline.infer(pipeline.program_graph(pipeline.text_program(text)))
    return gradient(shaped, range(len(shaped.inputs)))


@pytest.mark.parametrize(
    "text",
    [
        "ik*kj~ijk >> +ijk~ij",
        "^ij~ij >> +ij~i >> $i~i",
        "(I & I) >> i*i~i >> -i~i",
        "i/i~i",
        "f(x: f64[n,m], y: f64[m]) = { z = (ij*j~ij)(x, y); w = (^ij~ij)(z); w }",
        "i/i~i >> (I & $i~i)",
    ],
)
def test_definitions_are_gradients(text: str) -> None:
    """Read again, the text computes what the gradient does."""
    component = i(text)
    written = definition_text(gradient_of(text))
    assert written is not None
    rng = np.random.default_rng(0)
    graph = component.graph()
    shaped = pipeline.infer(graph)
    sizes = {n: 3 + n for n in range(len(shaped.sizes))}
    types = {"f32": np.float32, "f64": np.float64}
    values = (*shaped.inputs, *shaped.outputs)
    arrays = [
        rng.uniform(0.5, 1.5, [sizes[s] for s in shaped.tensors[v].dims]).astype(
            types[shaped.tensors[v].dtype]
        )
        for v in values
    ]
    wanted, given = component.grad()(*arrays, target="numpy"), i(written)(*arrays, target="numpy")
    for one, other in zip(_tuple(wanted), _tuple(given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    "text", [">ij~i", "+(i+k:3)~i", ">i~i", "ii~i", "i^i~i", "ij~ji", "ij*j~ij >> +ij~."]
)
def test_what_has_no_words(text: str) -> None:
    shaped = gradient_of(text)
    assert definition_text(shaped) is None
    assert len(assignments_text(shaped).splitlines()) >= len(shaped.outputs)


ATTENTION = "ik*jk~ijk >> +ijk~ij >> (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
HEADS = (
    "ihk*jhk~hijk >> +hijk~hij >> (I & >hij~hi) >> hij-hi~hij >> ^hij~hij >> (I & +hij~hi)"
    " >> hij/hi~hij >> hij*jhd~hijd >> +hijd~ihd"
)


@pytest.mark.deep
@pytest.mark.parametrize("machine", [CPU, GPU], ids=lambda machine: machine.kind)
@pytest.mark.parametrize(
    "text",
    [
        f"{ATTENTION} >> ij*jd~ijd >> +ijd~id",
        f"{ATTENTION} >> ij*jd~ijd >> +ijd~id >> ^id~id",
        HEADS,
        f"ik*jk~ijk >> +ijk~ij >> ij+j~ij {ATTENTION.partition('+ijk~ij')[2]} >> ij*jd~ijd >> +ijd~id",
    ],
)
def test_a_definition_has_the_schedules_of_matrices_that_are_computed_again(
    text: str, machine: Machine
) -> None:
    """The way back of attention, written out: its kernels compute scores again, and all of it is a text."""
    written = definition_text(gradient_of(text))
    assert written is not None
    shaped = schedules.defined(written, "f")
    scheduled = shaped_to_schedule(shaped, machine)
    assert scheduled.is_apart
    definition = definition_text(scheduled.shaped, scheduled.nests)
    assert definition is not None
    assert len(definition.splitlines()) > len(written.splitlines())
    again = schedules.defined(definition, "f")
    assert not shaped_to_schedule(again, machine).is_apart
    assert schedules.same_code(shaped, again, machine)


@pytest.mark.deep
@pytest.mark.parametrize("machine", [CPU, GPU], ids=lambda machine: machine.kind)
def test_random_programs_as_definitions_with_their_schedules(machine: Machine) -> None:
    """Guards, windows, positions, constants and conversions of types: read again, they give the same code."""
    written = 0
    for seed in range(60):
        trial = schedules.draw(seed)
        if (
            trial.fixed
        ):  # extents that follow from known ones are computed where a definition says them
            continue
        shaped = schedules.unwritten(schedules.shaped_of(trial))
        scheduled = shaped_to_schedule(shaped, machine)
        text = definition_text(scheduled.shaped, scheduled.nests)
        if text is not None:
            again = schedules.defined(text, shaped.name)
            assert schedules.same_code(shaped, again, machine), trial.written.text
            written += 1
    assert written >= 30


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ij[j<=i,i<j+3]~ij", "ij[j<=i,i<=j+2]~ij"),
        (">ij[i==j]~i", ">ij[i==j]~i"),
        ("i*@i~i", "i*@i~i"),
        ("i*@(2i+1)~i", "i*@(2i+1)~i"),
        ("ij/:j~ij", "ij/:j~ij"),
        ("+(2i+k:3-1)~i", "+(2i+k:3-1)~i"),
        (">i~i", ">i~i"),
        ("2>>.~.", "2>>.~."),
        ("(2)j~j", "(2)j~j"),
        ("+ii~.", "+ii~."),
        ("b@vd~bd", None),
        ("i@i~(v:10)", None),
        ("einx.id('(a b) -> a b', b=2)", None),
    ],
)
def test_words_for_patterns(text: str, words: str | None) -> None:
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))
    written = definition_text(shaped, shaped_to_schedule(shaped).nests)
    assert (written is None) is (words is None)
    if written is not None:
        line = written.splitlines()[1]
        assert line.startswith(f"  out = ({words} |"), line


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)

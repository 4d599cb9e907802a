"""The work of a program grows with its size, and no faster: counted in lines that run, which no clock moves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.diagnostic import Error
from ilang.core.ir.known_extents import extents_of
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.matrices.apart import computed_apart
from tests.property.large import (
    FAMILIES,
    READ,
    attending_step,
    doubled,
    everything,
    graph_of,
    steps,
    training_step,
)

LARGE, SHARE = 10_000, 0.1
"""In a program of so many steps each may cost, as measured on small ones, at most this part more than in a small one.

A list of all nodes of a program that is made again for every node costs more."""
SIZES = {
    "named": (20, 40, 60),
    "doubled": (12, 24, 48),
    "layers": (2, 4, 6),
    "terms": (32, 64, 96),
    "inputs": (32, 64, 96),
    "contractions": (15, 30, 45),
    **dict.fromkeys(("tiles", "einsums"), (8, 16, 24)),
}
"""Where a step is much work, sizes have names of as many digits. Where formulas put several values in each other, which
makes work go up and down by some hundred lines, they are larger: (18, 36, 54) statements of ``named`` fall short of a
line by as much as (12, 24, 36) are above it. From 15 ``contractions`` on the work of each is the same, line by line."""
NOISE = 200
"""Lines that names of other lengths may cost."""


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_work_grows_with_the_size(family: Callable[[int], str]) -> None:
    sizes = SIZES.get(family.__name__, (12, 24, 36))
    everything(family(sizes[-1]))  # what is made at the first use is made
    one, two, three = (steps(partial(everything, family(size))) for size in sizes)
    each = (two - one) / (sizes[1] - sizes[0])
    further = max(0, three - two - NOISE)
    more = (further / (sizes[2] - sizes[1]) - each) / (sizes[2] - sizes[0])
    assert more * LARGE < SHARE * each, f"{one}, {two}, {three} lines for {sizes} steps"


def test_uses_of_a_definition_have_its_scalar_typed_once() -> None:
    """Positions in it or none."""
    counts: dict[str, int] = {}
    for text in ("-i~i", "i+@i~i"):
        graphs = [graph_of(doubled(size, text)) for size in (8, 128)]
        pipeline.infer(graphs[0])
        few, many = (steps(partial(pipeline.infer, graph)) for graph in graphs)
        counts[text] = many - few
    assert counts["i+@i~i"] < 1.1 * counts["-i~i"], counts


def trained(count: int) -> None:
    """All that becomes of the training step of so many layers, as far as its C."""
    c.emit(pipeline.lower(training_step(count)))


def test_work_of_a_training_step_grows_with_its_layers() -> None:
    trained(2)
    one, two, three = (steps(partial(trained, layers)) for layers in (2, 3, 4))
    assert three - two < 1.1 * (two - one), f"{one}, {two}, {three} lines for 2, 3 and 4 layers"


def test_a_value_that_every_turn_reads_has_a_gradient() -> None:
    assert c.emit(pipeline.lower(training_step(1000, READ)))


@pytest.mark.parametrize("machine", [CPU, GPU], ids=["cpu", "gpu"])
def test_looking_for_matrices_is_one_walk(machine: Machine) -> None:
    """Of however many blocks of a transformer, each with matrices of its own."""
    counts: list[int] = []
    for blocks in (1, 2, 3):
        shaped = attending_step(blocks)
        extents = extents_of(shaped, machine)
        assert computed_apart(shaped, extents, machine) is not None
        counts.append(steps(partial(computed_apart, shaped, extents, machine)))
    one, two, three = counts
    assert three - two < 1.02 * (two - one), f"{counts} lines for 1, 2 and 3 blocks"


def test_definitions_are_counted_before_any_is_written_out() -> None:
    text = (
        "a0 = -i~i\n" + "".join(f"a{n + 1} = a{n} >> a{n}\n" for n in range(200)) + "main = a200\n"
    )

    def refused() -> None:
        with pytest.raises(Error) as caught:
            graph_of(text)
        assert caught.value.code == "E0250"
        assert "more than 10^60 expressions" in caught.value.message

    assert steps(refused) < 150_000


def test_digits_that_double_the_work_at_every_step_are_refused() -> None:
    text = "-i~i" + " >> (I & I) >> (2i)+(2i+1)~i || i 0 1" * 40
    shaped = pipeline.infer(graph_of(f"main = {text}\n"))

    def refused() -> None:
        with pytest.raises(Error) as caught:
            pipeline.lower(shaped)
        assert caught.value.code == "E0251"
        assert "-i~i alone" in caught.value.message

    refused()
    assert steps(refused) < 3_000_000

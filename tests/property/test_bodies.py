"""A body over names means exactly its wiring: the same graph, so the same loops and C, and the same results."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from ilang.codegen.components.library import library
from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.record import replace
from tests.property.bodies import twins
from tests.property.body_checking import check, graphs, module_of

BATCH = 50


@pytest.mark.batches(2)
def test_names_mean_their_wiring(batch: int) -> None:
    tally = check(range(batch * BATCH, (batch + 1) * BATCH))
    assert not tally.failures, tally.told()


@pytest.mark.parametrize("seed", range(0, 150, 15))
def test_the_c_is_that_of_the_wiring(seed: int) -> None:
    named, *both = graphs(seed)
    plain = (replace(graph, called=()) for graph in both)
    one, other = (c.emit(pipeline.lower(pipeline.infer(graph))) for graph in plain)
    assert one == other, named


@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_the_wiring(seed: int) -> None:
    named, wired, outputs = twins(Random(1_000 + seed))
    one, other = (library(module_of(text))["f"] for text in (named, wired))
    arrays = np.random.default_rng(seed).random((one.takes(), 3, 4), np.float32)
    results: Any = one(*arrays)
    wanted: Any = other(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(results, wanted[:outputs], strict=True):
        np.testing.assert_array_equal(got, want)

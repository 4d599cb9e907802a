"""Gradients of functions that choose, at 0 and at infinities, in every notation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.property import selections
from tests.property.selections import FIRST, Function, Step, checked, derivatives, drawn

BATCH = 60
PRODUCT = Function(
    (
        Step("sqrt", (1,)),
        Step("mul", (FIRST, 0)),
        Step("where", (0, FIRST - 1, 2, FIRST + 1), "gt"),
    )
)
"""``where(a > 2, c, sqrt(b) * a)``."""


@pytest.mark.batches(2)
def test_gradients_are_those_of_dual_numbers(batch: int) -> None:
    assert 0 < sum(checked(seed, "numpy") for seed in range(batch * BATCH, (batch + 1) * BATCH))


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(
    ("seed", "target"), [*((n, "c") for n in range(600, 606)), (700, "cuda-emulated")]
)
def test_gradients_compiled(seed: int, target: str) -> None:
    checked(seed, target)


@pytest.mark.parametrize("notation", selections.NOTATIONS)
def test_a_product_that_is_0_stays_0_behind_a_choice(notation: str) -> None:
    arrays = [np.array(each) for each in ([0.0, 3, 1, 2], [0.0, 0, 4, 0], [1.0, 1, 1, 1])]
    found, _ = derivatives(PRODUCT, notation, arrays, "numpy")
    np.testing.assert_array_equal(found, [[0, 0, 2, 0], [0, 0, 0.25, np.inf], [0, 1, 0, 0]])


def test_every_notation_and_operation_is_drawn() -> None:
    names = {step.name for seed in range(100) for step in drawn(seed)[0].steps}
    assert names == {*selections.SLOPES, *selections.BINARY, "where", "guard"}

"""Nothing flows back to what a guard, a choice or an index leaves out, whatever is infinite there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.property.left_out import checked

BATCH = 100


@pytest.mark.batches(2)
def test_nothing_flows_back_to_what_is_left_out(batch: int) -> None:
    with np.errstate(all="ignore"):
        for seed in range(batch * BATCH, (batch + 1) * BATCH):
            checked(seed, "numpy")


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(
    ("seed", "target"), [*((n, "c") for n in range(200, 212)), (300, "cuda-emulated")]
)
def test_nothing_flows_back_compiled(seed: int, target: str) -> None:
    checked(seed, target)

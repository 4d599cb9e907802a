"""Random operations in einx notation mean what loops over named axes compute, on every target; more with `--fuzz`."""

from collections.abc import Iterable

import numpy as np
import pytest

from ilang import einx, i
from tests.property.einx_programs import KINDS, Program, program

BATCH = 12
"""Programs of each kind in a batch that the reference evaluator computes."""
COMPILED = 10_000
EMULATED = 20_000
"""Where the seeds of other targets begin."""


def check(cases: Iterable[Program], target: str) -> None:
    """Operations give the results of their loops."""
    for case in cases:
        got = getattr(einx, case.op)(case.text, *case.arrays, target=target, **case.sizes)
        results = got if isinstance(got, tuple) else (got,)
        assert len(results) == len(case.results), case.text
        for one, other in zip(results, case.results, strict=True):
            assert one.shape == other.shape, case.text
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=case.text)


@pytest.mark.batches(2)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_reference(kind: int, batch: int) -> None:
    seeds = range(batch * BATCH, (batch + 1) * BATCH)
    check((program(len(KINDS) * seed + kind) for seed in seeds), "numpy")


@pytest.mark.batches(2)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_c(kind: int, batch: int) -> None:
    check([program(len(KINDS) * (COMPILED + batch) + kind)], "c")


@pytest.mark.batches(1)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_cuda(kind: int, batch: int) -> None:
    check([program(len(KINDS) * (EMULATED + batch) + kind)], "cuda-emulated")


def test_printed() -> None:
    for seed in range(len(KINDS) * BATCH):
        case = program(seed)
        component = getattr(einx, case.op)(case.text, **case.sizes)
        text = repr(component).removeprefix("<Component ").rpartition(": ")[0]
        assert repr(i(text)) == repr(component)

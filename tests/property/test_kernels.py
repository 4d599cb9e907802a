"""Elementwise kernels: random ones against an evaluation of its own, and what holds between the two orders."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, elementwise
from tests.property.kernels import Trial, arrays_of, meaning, random_trial

Array = npt.NDArray[Any]
MANY = 300
COMPILED = 12

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for


def run(trial: Trial, arrays: list[Array], target: str) -> list[Array]:
    result: Any = elementwise(trial.order, trial.written(), len(arrays))(*arrays, target=target)
    return list(result) if isinstance(result, tuple) else [result]


def check(trial: Trial, seed: int, target: str) -> None:
    """A kernel gives what it means; one whose output has more axes than any input is refused."""
    arrays = arrays_of(trial, seed)
    expected = meaning(trial, arrays)
    for wanted, given in zip(expected, run(trial, arrays, target), strict=True):
        assert wanted.shape == given.shape, trial
        np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-12, err_msg=repr(trial))


@pytest.mark.parametrize("start", range(0, MANY, 50))
def test_random_kernels(start: int) -> None:
    for seed in range(start, start + 50):
        check(random_trial(random.Random(seed)), seed, "numpy")


@pytest.mark.parametrize("seed", range(1000, 1000 + COMPILED))
def test_random_kernels_compiled(seed: int) -> None:
    check(random_trial(random.Random(seed)), seed, "c")


@pytest.mark.parametrize("seed", range(2000, 2002))
def test_random_kernels_on_a_gpu(seed: int) -> None:
    check(random_trial(random.Random(seed)), seed, "cuda-emulated")


def test_the_orders_are_transposes_of_each_other() -> None:
    """``kernel(c, xs) == [o.T for o in kernel(f, [x.T for x in xs])]`` (the source document of kernels)."""
    for seed in range(60):
        trial = random_trial(random.Random(seed))
        other = Trial("c" if trial.order == "f" else "f", trial.outputs, trial.shapes)
        arrays = arrays_of(trial, seed)
        mirrored = run(other, [array.T for array in arrays], "numpy")
        for one, two in zip(run(trial, arrays, "numpy"), mirrored, strict=True):
            np.testing.assert_allclose(one, two.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_numbers_are_as_exact_as_the_inputs(target: str) -> None:
    """Numbers among themselves, too: a third of f64 is no third of f32."""
    twenty = " + ".join(["1 / 3"] * 20)  # too many for one step
    outputs = ["x0 * (1 / 3)", "1 / 3", "exp(2) + x0", "where(gt(2, 1), x0, sqrt(2))"]
    outputs += ["sqrt(where(gt(x0, 0.5), 3.0, 3.0))", f"where(gt(x0, 7), {twenty}, 3 / 7)", twenty]
    kinds: tuple[Any, ...] = (np.float64, np.float32)
    for dtype in kinds:
        x = np.linspace(1, 2, 5).astype(dtype)
        third = dtype(1) / dtype(3)
        alone = (third, np.sqrt(dtype(3)), dtype(3) / dtype(7), third * dtype(20))
        thirds, roots, sevenths, many = (np.full(5, each) for each in alone)
        wanted = (x * third, thirds, np.exp(dtype(2)) + x, x, roots, sevenths, many)
        for one, other in zip(elementwise("f", outputs)(x, target=target), wanted, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, other, rtol=float(4 * np.finfo(dtype).eps))


def test_square_shapes_tell_the_orders_apart() -> None:
    x, y = np.arange(9.0).reshape(3, 3), np.array([10.0, 20.0, 30.0])
    for target in ("numpy", "c"):
        np.testing.assert_array_equal(elementwise("f", ["x0 + x1"])(x, y, target=target), x + y)
        c = elementwise("c", ["x0 + x1"])(x, y, target=target)
        np.testing.assert_array_equal(c, x + y[:, None])


def test_shapes_that_do_not_line_up() -> None:
    """Every input has to, read or not, and extents of 1 are ordinary."""
    for order, shapes in (
        ("f", [(3, 5), (3,)]),
        ("c", [(3, 5), (5,)]),
        ("f", [(3, 5), (1, 5)]),
        ("f", [(3, 5), (5,), (4,)]),
        ("f", [(3, 1), (1, 3)]),
        ("c", [(7, 8, 9), (7, 9)]),
    ):
        for output in ("x0 + x1", "sum: x0", "prod 0: x1", "max 1: x1"):
            with pytest.raises(Error) as caught:
                elementwise(order, [output], len(shapes))(*map(np.ones, shapes), target="numpy")
            assert caught.value.code == "E0505", (order, shapes, output)

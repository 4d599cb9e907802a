"""Gradients of functions that choose, at 0 and at infinities, in every notation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ilang import elementwise, i
from tests.property import selections
from tests.property.selections import FIRST, INPUTS, Function, Step, checked, derivatives, drawn

BATCH = 60
PRODUCT = Function(
    (Step("sqrt", (1,)), Step("mul", (FIRST, 0)), Step("where", (0, FIRST - 1, 2, FIRST + 1), "gt"))
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
    found, moved = derivatives(PRODUCT, notation, arrays, "numpy")
    np.testing.assert_array_equal(found, [[0, 0, 2, 0], [0, 0, 0.25, np.inf], [0, 1, 0, 0]])
    if moved is not None:
        np.testing.assert_array_equal(moved, [0, 1, 2.25, np.inf])


@pytest.mark.parametrize("notation", selections.NOTATIONS)
def test_nothing_flows_to_what_is_not_a_number_behind_a_choice(notation: str) -> None:
    """``where(a > 0, tanh(ln(a)), b) + c``: of -1 tanh(ln(a)) is not a number."""
    steps = (
        Step("ln", (0,)),
        Step("tanh", (FIRST,)),
        Step("where", (0, INPUTS, FIRST + 1, 1), "gt"),
    )
    function = Function((*steps, Step("add", (FIRST + 2, 2))))
    arrays = [np.array([-1.0, 0, 1, -np.inf]), np.arange(4.0), np.zeros(4)]
    found, moved = derivatives(function, notation, arrays, "numpy")
    np.testing.assert_array_equal(found, [[0, 0, 1, 0], [1, 1, 0, 1], [1, 1, 1, 1]])
    if moved is not None:
        np.testing.assert_array_equal(moved, [2, 2, 2, 2])


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
@pytest.mark.parametrize(
    ("text", "at", "second"),
    [
        ("square(max(tanh(x), ln(x)))", [0.0, 0.5], [2.0, 0.56520929]),
        ("square(max(exp(x) - 1, ln(x)))", [0.0, 0.5], [2.0, 7.57568477]),
        ("min(ln(x) * exp(x), x)", [1.0, 0.5], [np.e, -1.14280650]),
        ("square(where(gt(x, 2), 1, sqrt(x) - 1))", [1.0, 0.25], [0.5, 4.0]),
    ],
)
def test_second_derivatives_where_the_first_is_0(
    text: str, at: list[float], second: list[float], target: str
) -> None:
    """What is 0 behind a choice is multiplied with a finite derivative, so that it has one of its own."""
    kernel = elementwise("f", [text], inputs=["x"]).ranked(1)
    one = np.ones(len(at))
    twice = kernel.grad().grad(wrt="in0")
    for derivative in (twice, pickle.loads(pickle.dumps(twice))):
        found = derivative(np.array(at), one, one, target=target)
        np.testing.assert_allclose(found, second, rtol=1e-6)
    moved = kernel.grad().jvp(wrt="in0")(np.array(at), one, one, target=target)
    np.testing.assert_allclose(moved[1], second, rtol=1e-6)
    moved = kernel.jvp().grad(wrt="in0")(np.array(at), one, 0 * one, one, target=target)
    np.testing.assert_allclose(moved, second, rtol=1e-6)


SQUARED = Function((Step("sqrt", (0,)), Step("max", (FIRST, 1)), Step("square", (FIRST + 1,))))
"""``square(max(sqrt(a), b))``: 0 follows the choice, and in front of it is infinity."""


@pytest.mark.parametrize("notation", ["elementwise", *selections.NAMED])
def test_a_tangent_that_a_choice_passed_is_not_multiplied_with_0(notation: str) -> None:
    function = Function((*SQUARED.steps, Step("add", (FIRST + 2, 2))))
    arrays = [np.array([0.0, 4, 0, 1]), np.array([-1.0, 0, 1, 3]), np.zeros(4)]
    found, moved = derivatives(function, notation, arrays, "numpy")
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [0, 0, 2, 6], [1, 1, 1, 1]])
    assert moved is not None
    np.testing.assert_array_equal(moved, [1, 2, 3, 7])


@pytest.mark.parametrize("text", ["(I | 0.5) >> i^.~i >> >i~.", ">i~. >> (I | 0.5) >> .^.~."])
def test_what_is_no_maximum_takes_no_part_in_derivatives_that_are_infinite(text: str) -> None:
    program = i(text)
    x = np.array([0.0, 4] if text.startswith("(") else [0.0, -4])
    slope = program.grad()(x, target="numpy")
    assert slope[1 - np.argmax(x)] == 0
    _, moved = program.jvp()(x, np.ones(2), target="numpy")
    assert moved == slope.sum()
    assert np.isnan(i(text).grad()(np.array([np.nan, 1]), target="numpy")).all()


def test_every_notation_and_operation_is_drawn() -> None:
    names = {step.name for seed in range(100) for step in drawn(seed)[0].steps}
    assert names == {*selections.SLOPES, *selections.BINARY, "where", "guard"}

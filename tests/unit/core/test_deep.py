"""Long expressions: what recurses over scalars, and C compilers with their limit of brackets in brackets, meet none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ilang import Component, I, einx, elementwise, i
from ilang.core.diagnostic import MeaningError
from ilang.core.notation.files.module import parse_module
from ilang.core.passes.syntax_to_graph import Definitions
from ilang.core.source import Source
from tests.shares import one_in

X = np.array([1, 2, 3], np.float32)
CLANG = 256
"""Brackets in brackets that clang takes."""


def deepest(text: str) -> int:
    """The most brackets in brackets of a text in C."""
    deep = most = 0
    for bracket in re.findall(r"[(\[{)\]}]", text):
        deep += 1 if bracket in "([{" else -1
        most = max(most, deep)
    return most


@pytest.mark.parametrize("count", [17, 200, 2_000, pytest.param(20_000, marks=pytest.mark.deep)])
def test_a_kernel_of_many_terms(count: int) -> None:
    kernel = elementwise("f", [" + ".join(["x0"] * count)])
    assert np.array_equal(kernel(X, target="numpy"), count * X)


@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["x0"] * 300),
        " * ".join(["x0"] * 50),
        "x0 - (" * 99 + "x0" + ")" * 99,
        "where(lt(x0, 2), exp(x0), " * 45 + "x0" + ")" * 45,
        "max(x0, " * 40 + "x0" + ")" * 40,
    ],
)
def test_derivatives_of_long_kernels_compile_everywhere(text: str) -> None:
    kernel = elementwise("f", [text]).ranked(1)
    for program in (kernel, kernel.grad(), kernel.jvp(), kernel.grad().grad()):
        assert deepest(program.source()) < CLANG
    assert deepest(kernel.grad().source("cuda")) < CLANG


@pytest.mark.parametrize("count", one_in(2, [48, 192]))
def test_the_gradient_of_divisions_behind_a_choice_is_as_long_as_the_kernel(count: int) -> None:
    text = "where(gt(x0, 2), 1, x1" + " / x0" * count + ")"
    derived = elementwise("f", [text]).ranked(1, 1).grad()
    assert len(derived.source()) < 15_000 + 500 * count
    found = derived(np.ones(2), np.ones(2), target="numpy")
    np.testing.assert_allclose(found, [[-count] * 2, [1, 1]])


def test_a_long_kernel_has_the_value_of_its_text() -> None:
    text = "where(lt(x0, 2), x0 * x1, " * 40 + "x1" + ")" * 40 + " - 2 * x0" * 50
    given = np.array([[1, 2, 3], [0.5, 4, 1]], np.float32), np.array([3, 1, 2], np.float32)
    x, y = given
    wanted = np.where(x < 2, x * y, y) - 100 * x
    for target in ("numpy", "c"):
        assert np.allclose(elementwise("f", [text])(*given, target=target), wanted)


def test_a_long_kernel_folds_inputs_first() -> None:
    text = "sum 1: " + " + ".join(["x0", "x1"] * 20)
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), X
    kernel = elementwise("f", [text])
    assert np.allclose(kernel(x, y, target="numpy"), 20 * (x.sum(0) + y))


def read_often(count: int) -> Component:
    """One value that so many expressions read."""
    copies = I
    for _ in range(count - 1):
        copies = copies & I
    total = i("i+i~i")
    for _ in range(count - 2):
        total = (total | I) >> i("i+i~i")
    return i("i*i~i") >> copies >> total


@pytest.mark.parametrize("count", [16, 17, 300])
def test_a_value_that_many_read(count: int) -> None:
    gradient = read_often(count).grad()
    given = X, X, np.ones_like(X)
    for result in gradient(*given, target="numpy"):
        assert np.array_equal(result, count * X)
    assert deepest(gradient.source()) < CLANG


def test_an_operation_of_many_operands() -> None:
    given = [X] * 300
    assert np.array_equal(einx.add(", ".join(["a"] * 300) + " -> a", *given), 300 * X)


def test_the_primitives_of_a_kernel_are_expressions() -> None:
    lines = ['a0 = elementwise("f: x[i] -> ' + " + ".join(["x"] * 200) + '")']
    lines += [f"a{n} = a{n - 1} >> a{n - 1}" for n in range(1, 14)]
    module = parse_module(Source("m.i", "\n".join(lines) + "\n"))
    definitions = Definitions({each.name: each for each in module.definitions})
    assert definitions.leaves(definitions["a0"].body) == 199
    with pytest.raises(MeaningError, match="E0250"):
        definitions.check_size(definitions["a13"].body)

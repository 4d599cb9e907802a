"""The reader of elementwise kernels: what it reads, what it refuses and where, and what ranks heads give."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import Error, elementwise, i
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.components.printer import print_tree
from ilang.core.notation.kernel import parse_kernel
from ilang.core.source import Source


@pytest.mark.parametrize(
    ("text", "code", "column", "says"),
    [
        ("x -> x", "E0182", 1, "`x` is no order"),
        ("f x -> x", "E0180", 3, "expected `:` after the order"),
        ("f: -> 1", "E0180", 4, "expected the name of an input"),
        ("f: x", "E0180", 5, "expected `,` or `->`"),
        ("f: x, x -> x", "E0181", 7, "two inputs of the kernel are called x"),
        ("f: x[i,] -> x", "E0180", 8, "expected the name of an axis"),
        ("f: x -> x > 2", "E0180", 11, "`>` is no part"),
        ("f: x -> x +", "E0180", 12, "expected an operand"),
        ("f: x -> (x", "E0180", 11, "expected `)`"),
        ("f: x -> x; y", "E0181", 12, "no input `y`"),
        ("f: x -> mean: x", "E0182", 9, "`mean` is no accumulator"),
        ("f: x -> sub 1: x", "E0182", 9, "`sub` is not associative"),
        ("f: x -> epx(x)", "E0181", 9, "no function `epx`"),
        ("f: x -> not(x, x)", "E0183", 9, "`not` has 1 operand, and 2"),
        ("f: x -> where(x)", "E0183", 9, "`where` has 3 operands, and 1"),
        ("f: x[i,j], y[i] -> x", "E0184", 12, "in the order f the axes of y are y[j]"),
        ("c: x[i,j], y[j] -> x", "E0184", 12, "in the order c the axes of y are y[i]"),
        ("f: x[i,j], y[j,i] -> x", "E0184", 12, "in the order f the axes of y are y[i,j]"),
        ("f: x[i,i] -> x", "E0184", 4, "x has two axes i, and a kernel reads no diagonal"),
        ("f: x -> x x", "E0180", 11, "expected an operator, `;` or the end"),
        ("f: x -> " + "(" * 200 + "x" + ")" * 200, "E0180", 110, "nested more than 100 deep"),
    ],
)
def test_refused(text: str, code: str, column: int, says: str) -> None:
    with pytest.raises(Error) as caught:
        parse_kernel(Source("<kernel>", text))
    error = caught.value
    assert (error.code, says in error.message) == (code, True), error
    assert error.span is not None
    assert error.span.start + 1 == column


def test_axes_of_the_other_order_are_led_to_it() -> None:
    with pytest.raises(Error) as caught:
        parse_kernel(Source("<kernel>", "f: x[i,j,k], y[i,j] -> x * y"))
    assert caught.value.help.startswith("write `y[j,k]`, or `c:`")
    parse_kernel(Source("<kernel>", "c: x[i,j,k], y[i,j], z[] -> x * y + z"))


def test_inputs_that_no_output_mentions_by_number_are_asked_for() -> None:
    with pytest.raises(Error, match="inputs are missing") as caught:
        elementwise("f", ["x * y"])
    assert caught.value.help == 'name them in order: inputs=["x", "y"]'


def test_functions_of_other_systems_are_answered_with_formulas() -> None:
    for name, formula in {"abs": "max(x, -x)", "sigmoid": "1 / (1 + exp(-x))"}.items():
        with pytest.raises(Error, match=f"there is no function `{name}`") as caught:
            parse_kernel(Source("<kernel>", f"f: x -> {name}(x)"))
        assert formula in (caught.value.help or "")
        parse_kernel(Source("<kernel>", f"f: x -> {formula}"))


@pytest.mark.parametrize(
    "text",
    [
        'elementwise("f: x[i,j], y[j] -> x * y; sum: x + y")',
        'I >> elementwise("c: x[] -> max 0: -x / 2.5e-3")',
        '(elementwise("f: x[2] -> x") | i*i~i) >> i+i~i',
    ],
)
def test_printed_as_read(text: str) -> None:
    tree = parse_program(Source("<text>", text))
    printed = print_tree(tree)
    assert print_tree(parse_program(Source("<text>", printed))) == printed
    assert 'elementwise("' in printed


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x + y * 2 - 1", 2.0 + 3 * 2 - 1),
        ("-(x - y) / y", 1 / 3),
        ("--x", 2.0),
        ("pow(x, y)", 8.0),
        ("pow(x)", np.exp(2.0)),
        ("log(x, y)", np.log(3.0) / np.log(2.0)),
        ("where(lt(x, y), x, y)", 2.0),
        ("max(x - 5)", 0.0),
        ("not(x) + gt(y)", 1.0),
        ("xor(x, 0 * y)", 1.0),
    ],
)
def test_expressions(expression: str, expected: float) -> None:
    result = elementwise("f", [expression], ["x", "y"])(2.0, 3.0, target="numpy")
    np.testing.assert_allclose(float(result), expected, rtol=1e-6)


def test_definitions_say_ranks() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0])
    f = i('f(x[n,m], y[n]) = elementwise("c: a, b -> a * b; sum: a")')
    product, total = f(x, y, target="numpy")
    np.testing.assert_array_equal(product, x * y[:, None])
    np.testing.assert_array_equal(total, x.sum(1))
    g = i(
        'g(x[n,m], y[n]) = { p, s = elementwise("c: a[i,j], b[i] -> a * b; sum: a")(x, y); s, p }'
    )
    np.testing.assert_array_equal(g(x, y, target="numpy")[0], total)


def test_arrays_say_ranks() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0])
    open_ranks = i('f(x, y) = elementwise("c: a, b -> a * b; sum: a; sum: a * b")')
    for target in ("numpy", "c"):
        product, total, both = open_ranks(x, y, target=target)
        np.testing.assert_array_equal(product, x * y[:, None])
        np.testing.assert_array_equal(total, x.sum(1))
        np.testing.assert_array_equal(both, x.sum(1) * y)
        np.testing.assert_array_equal(open_ranks(y, y, target=target)[1], y)
    assert str(open_ranks.explain((2, 3), (2,), verbose=True)).count("folded by") == 1
    chained = i('elementwise("f: a, b -> a - b") >> elementwise("c: a -> exp(a)") >> +ij~i')
    np.testing.assert_allclose(chained(x, x[1]), np.exp(x - x[1]).sum(1))
    for call in (open_ranks.explain, lambda: open_ranks.source("c")):
        with pytest.raises(Error) as caught:
            call()
        assert caught.value.code == "E0508"
    with pytest.raises(Error) as caught:
        open_ranks(x, np.ones(3))
    assert caught.value.code == "E0505"


@pytest.mark.parametrize(
    ("order", "outputs", "inputs", "code"),
    [
        (None, ["x0"], None, "E0182"),
        ("f", [], None, "E0716"),
        ("f", "x0", None, "E0716"),
        ("f", [("add", "x0", "x1")], None, "E0716"),
        ("f", [{"expr": "x0", "mode": "accumulate"}], None, "E0182"),
        ("f", [{"expr": "x0", "mode": ("accumulate", "div")}], None, "E0182"),
        ("f", [{"expr": "x0", "mode": ("accumulate", "sum", -1)}], None, "E0182"),
        ("f", [{"expr": ("add", "x0", True), "mode": "broadcast"}], None, "E0716"),
        ("f", [{"expr": ("add", "x0", float("inf"))}], None, "E0716"),
        ("f", [{"expr": "x0", "modes": "broadcast"}], None, "E0716"),
        ("f", ["1"], None, "E0716"),
        ("f", ["x"], ["x", "x"], "E0181"),
        ("f", ["x"], ["x y"], "E0716"),
        ("f", ["x0"], 0, "E0716"),
        ("f", ["x0 + x7"], 2, "E0181"),
    ],
)
def test_calls_refused(order: str, outputs: list[object], inputs: object, code: str) -> None:
    with pytest.raises(Error) as caught:
        elementwise(order, outputs, inputs)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_ranks_and_names() -> None:
    x, y = np.ones((2, 3)), np.ones(3)
    f = elementwise("f", ["x * y", "sum: x + y"], ["x", "y"])
    assert f.shapes((2, 3), (3,)) == ((2, 3), (3,))
    assert f(y=y, x=x, target="numpy")[1].shape == (3,)
    assert "out0[i,j] = in0[i,j] * in1[j]" in f.loops((2, 3), (3,))
    for call, code in (
        (lambda: f(x), "E0701"),
        (lambda: f(x, z=y), "E0747"),
        (lambda: f.source("c"), "E0508"),
        (lambda: f(np.ones((2, 2)), np.ones(3)), "E0505"),
    ):
        with pytest.raises(Error) as caught:
            call()
        assert caught.value.code == code
    with pytest.raises(Error) as caught:
        f(np.ones((2, 3)), np.ones(2))
    assert caught.value.help == 'these shapes line up in the order c: elementwise("c", ...)'
    chained = elementwise("f", ["2 * x0"]).ranked(2) >> "+ij~i"
    np.testing.assert_array_equal(chained(x, target="numpy"), 2 * x.sum(1))


def test_a_whole_kernel_in_place_of_an_order() -> None:
    with pytest.raises(Error) as caught:
        elementwise("f: x -> x * x")
    assert caught.value.code == "E0716"
    assert caught.value.help == """write i('elementwise("f: x -> x * x")')"""

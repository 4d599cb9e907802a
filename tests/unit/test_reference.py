"""The oracle against answers written by hand: every operator, every rule of section 1 of the language."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang.core.diagnostic import ElementTypeError, Error
from ilang.core.pipeline import fit, graph_of, infer, text_component
from ilang.core.reference import NUMPY_TYPES, evaluate

Array = npt.NDArray[Any]
NAN, INF = float("nan"), float("inf")


def array(elements: Any, dtype: str = "f32") -> Array:
    return np.asarray(elements, dtype=NUMPY_TYPES[dtype])


def named(dtype: np.dtype[Any]) -> str:
    return next(name for name, known in NUMPY_TYPES.items() if known == dtype)


def run(text: str, *arrays: Array, exact: bool = False) -> list[Array]:
    graph = graph_of(text_component(text), "f")
    dtypes = [named(a.dtype) for a in arrays]
    shaped = infer(graph, dtypes, [a.ndim for a in arrays])
    return evaluate(shaped, arrays, fit(shaped, [a.shape for a in arrays]), exact)


def gives(text: str, arrays: list[Array], elements: Any, dtype: str = "f32") -> None:
    """One output, element for element, the sign of zeros included."""
    (got,) = run(text, *arrays)
    want = array(elements, dtype)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        numbers = ~np.isnan(want)
        assert (np.signbit(got) == np.signbit(want))[numbers].all()


def refused(text: str, *arrays: Array) -> Error:
    with pytest.raises(ElementTypeError) as caught:
        run(text, *arrays)
    return caught.value


X = array([-2, 0, 3])
Y = array([4, 5, -6])
N, M = array([-2, 0, 3], "i32"), array([4, 5, -6], "i32")
P, Q = array([True, True, False, False], "bool"), array([True, False, True, False], "bool")


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("+", [2, 5, -3]),
        ("*", [-8, 0, -18]),
        ("-", [-6, -5, 9]),
        ("/", [-0.5, 0, -0.5]),
        (">", [4, 5, 3]),
        ("<", [-2, 0, -6]),
    ],
)
def test_binary_arithmetic(op: str, want: list[float]) -> None:
    if op == "/":
        gives("i/i~i", [X, Y], want)
        return
    gives(f"i{op}i~i", [X, Y], [w + 0.0 for w in want])
    gives(f"i{op}i~i", [N, M], want, "i32")


@pytest.mark.parametrize(
    ("op", "want"),
    [
        (">>", [False, False, True]),
        (">=", [False, True, True]),
        ("<<", [True, False, False]),
        ("<=", [True, True, False]),
        ("==", [False, True, False]),
        ("!=", [True, False, True]),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
def test_comparisons(op: str, want: list[bool], dtype: str) -> None:
    left, right = array([1, 2, 3], dtype), array([2, 2, 2], dtype)
    gives(f"i{op}i~i", [left, right], want, "bool")
    gives(f"{op}i~i", [array([-1, 0, 1], dtype)], want, "bool")


def test_nan_compares_as_unequal() -> None:
    x = array([NAN, 1])
    for op, want in (
        (">>", False),
        (">=", False),
        ("<<", False),
        ("<=", False),
        ("==", False),
        ("!=", True),
    ):
        gives(f"i{op}i~i", [x[:1], x[:1]], [want], "bool")
        gives(f"{op}i~i", [x[:1]], [want], "bool")


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("&&", [True, False, False, False]),
        ("||", [True, True, True, False]),
        ("^^", [False, True, True, False]),
    ],
)
def test_binary_logic(op: str, want: list[bool]) -> None:
    gives(f"i{op}i~i", [P, Q], want, "bool")
    gives(f"i{op}i~i", [array([-1, NAN, 0, -0.0]), array([2, 0, 0.5, 0])], want, "bool")
    gives(f"i{op}i~i", [array([7, 7, 0, 0], "i64"), Q], want, "bool")


@pytest.mark.parametrize("op", ["&&", "||", "^^"])
def test_unary_logic_is_truth(op: str) -> None:
    gives(f"{op}i~i", [array([0, -0.0, 0.5, NAN, INF])], [False, False, True, True, True], "bool")
    gives(f"{op}i~i", [array([0, 2], "i32")], [False, True], "bool")


def test_not() -> None:
    gives("!!i~i", [array([0, -0.0, 2, NAN])], [True, True, False, False], "bool")
    gives("!!i~i", [P], [False, False, True, True], "bool")


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("", [-2, 0, 3]),
        ("+", [-2, 0, 3]),
        ("*", [-2, 0, 3]),
        ("-", [2, -0.0, -3]),
        (">", [0, 0, 3]),
        ("<", [-2, 0, 0]),
    ],
)
def test_unary_arithmetic(op: str, want: list[float]) -> None:
    gives(f"{op}i~i", [X], want)
    gives(f"{op}i~i", [N], want, "i32")


def test_reciprocal() -> None:
    gives("/i~i", [array([2, -4, 0, -0.0, INF, NAN])], [0.5, -0.25, INF, -INF, 0, NAN])


def test_exponential_and_logarithms() -> None:
    gives("^i~i", [array([0, -INF, INF, NAN], "f64")], [1, 0, INF, NAN], "f64")
    (power,) = run("^i~i", array([1, -1], "f64"))
    np.testing.assert_allclose(power, [2.718281828459045, 0.36787944117144233], rtol=1e-15)
    gives("$i~i", [array([1, 0, -0.0, -1, INF], "f64")], [0, -INF, -INF, NAN, INF], "f64")
    (natural,) = run("$i~i", array([10], "f64"))
    np.testing.assert_allclose(natural, [2.302585092994046], rtol=1e-15)


def test_power_has_its_base_on_the_left() -> None:
    gives("i^i~i", [array([2, 3, -2, 4]), array([3, 0, 2, -1])], [8, 1, 4, 0.25])


def test_logarithm_has_its_base_on_the_left() -> None:
    (got,) = run("i$i~i", array([2, 10], "f64"), array([8, 1000], "f64"))
    np.testing.assert_allclose(got, [3, 3], rtol=1e-15)
    gives("i$i~i", [array([1, 2]), array([5, 1])], [INF, 0])


def test_division_by_zero() -> None:
    gives("i/i~i", [array([1, -1, 0, 1]), array([0, 0, 0, -0.0])], [INF, -INF, NAN, -INF])


# Patterns


def test_letters_missing_from_an_operand_broadcast() -> None:
    gives("ij+j~ij", [array([[1, 2], [3, 4]]), array([10, 20])], [[11, 22], [13, 24]])
    gives("i*j~ij", [array([1, 2]), array([10, 20, 30])], [[10, 20, 30], [20, 40, 60]])
    gives("i*j~ji", [array([1, 2]), array([10, 20, 30])], [[10, 20], [20, 40], [30, 60]])
    gives(".-i~i", [array(1), array([1, 2])], [0, -1])


def test_permuted_letters() -> None:
    gives("ij~ji", [array([[1, 2, 3], [4, 5, 6]])], [[1, 4], [2, 5], [3, 6]])
    gives(
        "ij-ji~ij", [array([[1, 2], [3, 4]]), array([[10, 20], [30, 40]])], [[-9, -28], [-17, -36]]
    )


def test_a_letter_twice_is_the_diagonal() -> None:
    square = array([[1, 2], [3, 4]])
    gives("ii~i", [square], [1, 4])
    gives("+ii~.", [square], 5)
    gives("ii*j~ij", [square, array([10, 20])], [[10, 20], [40, 80]])
    gives("iji~ij", [array(np.arange(8).reshape(2, 2, 2))], [[0, 2], [5, 7]])


def test_scalars() -> None:
    gives(".+.~.", [array(2), array(3)], 5)
    gives("-.~.", [array(2)], -2)


def test_matrix_multiply() -> None:
    one, other = array([[1, 2], [3, 4]]), array([[5, 6], [7, 8]])
    gives("ik*kj~ijk >> +ijk~ij", [one, other], [[19, 22], [43, 50]])


# Reductions


@pytest.mark.parametrize(
    ("op", "rows", "columns", "everything"),
    [
        ("+", [3, 12], [3, 5, 7], 15),
        ("", [3, 12], [3, 5, 7], 15),
        ("*", [0, 60], [0, 4, 10], 0),
        (">", [2, 5], [3, 4, 5], 5),
        ("<", [0, 3], [0, 1, 2], 0),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
def test_reductions(op: str, rows: Any, columns: Any, everything: Any, dtype: str) -> None:
    x = array([[0, 1, 2], [3, 4, 5]], dtype)
    gives(f"{op}ij~i", [x], rows, dtype)
    gives(f"{op}ij~j", [x], columns, dtype)
    gives(f"{op}ij~.", [x], everything, dtype)


def test_reductions_of_truth() -> None:
    x = array([[1, NAN, 0.5], [0, 2, 3], [0, 0, 0]])
    gives("&&ij~i", [x], [True, False, False], "bool")
    gives("||ij~i", [x], [True, True, False], "bool")
    gives("^^ij~i", [x], [True, False, False], "bool")


def test_bools_in_arithmetic_become_f32() -> None:
    gives("+i~.", [P], 2)
    gives("*i~.", [P], 0)
    gives(">i~.", [P], 1)
    gives("<i~.", [P], 0)
    gives("i+i~i", [P, Q], [2, 1, 1, 0])
    gives("i>i~i", [P, Q], [1, 1, 1, 0])
    gives("i/i~i", [P, P[::-1].copy()], [INF, INF, 0, 0])
    gives("-i~i", [P], [-1, -1, -0.0, -0.0])
    gives("i~i", [P], [True, True, False, False], "bool")
    gives("i>>i~i", [P, Q], [False, True, False, False], "bool")


@pytest.mark.parametrize(
    ("op", "dtype", "want"),
    [
        ("+", "f32", 0),
        ("*", "f32", 1),
        (">", "f32", -INF),
        ("<", "f64", INF),
        ("+", "i32", 0),
        ("*", "i64", 1),
        (">", "i32", -(2**31)),
        ("<", "i32", 2**31 - 1),
        (">", "i64", -(2**63)),
        ("<", "i64", 2**63 - 1),
    ],
)
def test_an_empty_reduction_gives_the_identity(op: str, dtype: str, want: float) -> None:
    gives(f"{op}ij~i", [array(np.zeros((2, 0)), dtype)], [want, want], dtype)
    gives(f"{op}ij~j", [array(np.zeros((0, 2)), dtype)], [want, want], dtype)
    gives(f"{op}ij~i", [array(np.zeros((0, 2)), dtype)], [], dtype)
    gives(f"{op}ij~.", [array(np.zeros((3, 0)), dtype)], want, dtype)


@pytest.mark.parametrize(("op", "want"), [("&&", True), ("||", False), ("^^", False)])
def test_an_empty_reduction_of_truth(op: str, want: bool) -> None:
    gives(f"{op}i~.", [array([], "bool")], want, "bool")
    gives(f"{op}i~.", [array([], "i32")], want, "bool")


def test_max_and_min_keep_nan() -> None:
    x, y = array([NAN, 1, NAN]), array([1, NAN, NAN])
    gives("i>i~i", [x, y], [NAN, NAN, NAN])
    gives("i<i~i", [x, y], [NAN, NAN, NAN])
    gives(">i~i", [x], [NAN, 1, NAN])
    gives("<i~i", [x], [NAN, 0, NAN])
    for row in ([NAN, 1, 2], [1, NAN, 2], [1, 2, NAN]):
        gives(">i~.", [array(row)], NAN)
        gives("<i~.", [array(row)], NAN)


def test_a_float32_sum_is_rounded_once() -> None:
    x = array(np.concatenate([[2.0**24], np.ones(64)]))
    gives("+i~.", [x], 2.0**24 + 64)


def test_exact_computes_in_float64() -> None:
    x = array([0.1, 0.2])
    (got,) = run("+i~.", x, exact=True)
    assert got.dtype == np.float64
    assert got == np.float64(x[0]) + np.float64(x[1])


# Constants


def test_constants_take_the_type_of_what_they_meet() -> None:
    gives("(I | 0.5) >> i*.~i", [X], [-1, 0, 1.5])
    gives("(I | 2) >> i*.~i", [N], [-4, 0, 6], "i32")
    gives("(I | 2.0) >> i*.~i", [array([1], "i64")], [2], "i64")
    gives("(I | 0.1) >> i*.~i", [array([1], "f64")], [0.1], "f64")
    gives("(I | 0.1) >> i*.~i", [array([1])], [np.float32(0.1)])
    gives("(I | -1) >> i+.~i", [P], [0, 0, -1, -1])
    gives("(I | 0) >> i==.~i", [P], [False, False, True, True], "bool")
    gives("0.5", [], 0.5)
    gives("(2 | 3) >> .-.~.", [], -1)
    gives("2 >> -.~.", [], -2)


def test_a_constant_that_its_type_cannot_hold_is_refused() -> None:
    assert refused("(I | 0.5) >> i*.~i", N).code == "E0603"
    assert refused("(I | 3e9) >> i+.~i", N).code == "E0603"


def test_some_powers_are_other_functions() -> None:
    gives("(I | 0.5) >> i^.~i", [array([4, -1, -0.0, -INF])], [2, NAN, -0.0, NAN])
    gives("(I | 2) >> i^.~i", [array([3, -3, -INF])], [9, 9, INF])
    gives("(I | -1) >> i^.~i", [array([4, -0.0])], [0.25, -INF])
    gives("(I | 3) >> i^.~i", [array([2, -2])], [8, -8])


def test_converted_constants() -> None:
    gives("2.9 >> i32", [], 2, "i32")
    gives("-2.9 >> i64", [], -2, "i64")
    gives("0.5 >> bool", [], True, "bool")
    gives("0 >> bool", [], False, "bool")
    gives("0.1 >> f64", [], 0.1, "f64")
    gives("0.1 >> f32 >> f64", [], float(np.float32(0.1)), "f64")
    gives("2.9 >> f64 >> i32", [], 2, "i32")
    gives("2.9 >> i32 >> f32", [], 2, "f32")


# Types


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("i32", "i64", "i64"),
        ("i64", "i32", "i64"),
        ("f32", "f64", "f64"),
        ("f64", "f32", "f64"),
        ("bool", "i32", "i32"),
        ("i64", "bool", "i64"),
        ("bool", "f32", "f32"),
        ("f64", "bool", "f64"),
        ("bool", "bool", "f32"),
    ],
)
def test_types_meet(left: str, right: str, want: str) -> None:
    gives("i+i~i", [array([1], left), array([1], right)], [2], want)


@pytest.mark.parametrize("integer", ["i32", "i64"])
@pytest.mark.parametrize("floating", ["f32", "f64"])
@pytest.mark.parametrize("op", ["+", "*", "-", "/", ">", "<", "^", "$", "==", "<<"])
def test_integer_beside_float_is_refused(integer: str, floating: str, op: str) -> None:
    assert refused(f"i{op}i~i", array([1], integer), array([1], floating)).code == "E0601"
    assert refused(f"i{op}i~i", array([1], floating), array([1], integer)).code == "E0601"


@pytest.mark.parametrize("op", ["&&", "||", "^^"])
def test_logic_takes_any_two_types(op: str) -> None:
    gives(f"i{op}i~i", [array([1], "i32"), array([0.5])], [op != "^^"], "bool")


@pytest.mark.parametrize("text", ["i/i~i", "i^i~i", "i$i~i"])
def test_some_operators_need_floats(text: str) -> None:
    for dtype in ("i32", "i64"):
        one = array([1], dtype)
        assert refused(text, one, one).code == "E0602"
        assert refused(f"{text[1]}i~i", one).code == "E0602"


def test_integers_wrap() -> None:
    low, high = -(2**31), 2**31 - 1
    ends = array([low, high], "i32")
    gives("i+i~i", [ends, ends], [0, -2], "i32")
    gives("i*i~i", [ends, ends], [0, 1], "i32")
    gives("i-i~i", [ends, ends[::-1].copy()], [1, -1], "i32")
    gives("-i~i", [ends], [low, -high], "i32")
    gives("+i~.", [array([high, 1], "i32")], low, "i32")
    gives("*i~.", [array([2**16, 2**16], "i32")], 0, "i32")
    gives("+i~.", [array([2**63 - 1, 1], "i64")], -(2**63), "i64")


def test_conversions() -> None:
    gives("i32", [array([2.9, -2.9, 0.5])], [2, -2, 0], "i32")
    gives("i32", [array([NAN, INF, -INF, 3e9])], [-(2**31)] * 4, "i32")
    gives("i64", [array([NAN, 1e19, 2.0**62], "f64")], [-(2**63), -(2**63), 2**62], "i64")
    gives("i32", [array([2**32 + 5], "i64")], [5], "i32")
    gives("f32", [array([16777217], "i32")], [16777216])
    gives("f64", [array([16777217], "i32")], [16777217], "f64")
    gives("f32", [array([1e300, 0.1], "f64")], [INF, np.float32(0.1)])
    gives("bool", [array([0, -0.0, 0.5, NAN])], [False, False, True, True], "bool")
    gives("f32", [P], [1, 1, 0, 0])
    gives("i64", [P], [1, 1, 0, 0], "i64")


# Wiring


def test_outputs_may_be_inputs_constants_and_twice_the_same() -> None:
    got = run("I & I & -i~i", X)
    assert [a.tolist() for a in got] == [X.tolist(), X.tolist(), [2.0, -0.0, -3.0]]
    got = run("2 | I | 2.5", X)
    assert [a.tolist() for a in got] == [2.0, X.tolist(), 2.5]


def test_combinators() -> None:
    gives("(I & +i~.) >> i/.~i", [array([1, 3])], [0.25, 0.75])
    gives("~(I | I) >> i-i~i", [X, Y], [6, 5, -9])
    gives("i-i~i << ~(I | I)", [X, Y], [6, 5, -9])
    gives("(I & I) >> i*i~i", [X], [4, 0, 9])
    left = run("(I | I) >> -i~i", X, Y)  # what is left over comes first
    assert [a.tolist() for a in left] == [Y.tolist(), [2.0, -0.0, -3.0]]
    right = run("-i~i << (I | I)", X, Y)  # here it comes last
    assert [a.tolist() for a in right] == [[2.0, -0.0, -3.0], Y.tolist()]

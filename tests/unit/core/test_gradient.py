"""Gradients: conventions where there are several, what is computed, and what a call takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, I, einsum, elementwise, i, load, tensor
from ilang.core import pipeline
from ilang.core.ir.assignments import all_reads
from ilang.core.ir.shaped import Assignment
from ilang.core.transform.reverse import gradient

Array = npt.NDArray[Any]
SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def grads(text: str, *arrays: Any, target: str = "numpy") -> Any:
    return i(text).grad()(*arrays, target=target)


@pytest.mark.parametrize(
    ("text", "arrays", "wanted"),
    [
        ("i>i~i", [[2.0, 3.0], [2.0, 1.0]], [[0.5, 1.0], [0.5, 0.0]]),
        (">i~i", [[-1.0, 0.0, 2.0]], [0.0, 0.0, 1.0]),
        ("<i~i", [[-1.0, 0.0, 2.0]], [1.0, 0.0, 0.0]),
        (">ij~i", [[[1.0, 3.0, 3.0]]], [[0.0, 0.5, 0.5]]),
        ("*ij~i", [[[2.0, 0.0, 3.0]]], [[0.0, 6.0, 0.0]]),
        ("*ij~i", [[[1e-200, 1e-200, 5.0]]], [[5e-200, 5e-200, 0.0]]),
        ("*ij~.", [[[2.0, 3.0], [5.0, 7.0]]], [[105.0, 70.0], [42.0, 30.0]]),
        ("i^i~i", [[0.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]),
        ("i==i~i", [[1.0], [1.0]], [[0.0], [0.0]]),
        ("ii~i", [[[1.0, 2.0], [3.0, 4.0]]], [[1.0, 0.0], [0.0, 1.0]]),
        ("+ij[j<=i]~i", [[[1.0, 1.0], [1.0, 1.0]]], [[1.0, 0.0], [1.0, 1.0]]),
        ("+(i+k:2)~i", [[1.0, 1.0, 1.0, 1.0]], [1.0, 2.0, 2.0, 1.0]),
        (">(2i+k:2)~i", [[1.0, 3.0, 2.0, 2.0, 5.0]], [0.0, 1.0, 0.5, 0.5, 0.0]),
        ("+(2i+k:3)~i", [[1.0, 1.0, 1.0, 1.0, 1.0]], [1.0, 1.0, 2.0, 1.0, 1.0]),
        ("(0 | I) >> .>i~i", [[0.0, 2.0]], [0.5, 1.0]),
        ("(I | 0) >> i<.~i", [[0.0, 2.0]], [0.5, 0.0]),
        ('elementwise("f: x[n] -> max(0, x)")', [[0.0, 2.0]], [0.5, 1.0]),
        ('elementwise("f: x[n] -> max(x, 0)")', [[0.0, 2.0]], [0.5, 1.0]),
        ('elementwise("f: x[n] -> min(0, x)")', [[0.0, 2.0]], [0.5, 0.0]),
        ('elementwise("f: x[n] -> max(x)")', [[0.0, 2.0]], [0.0, 1.0]),
        ("^i~i >> +i[i<1]~. >> $.~.", [[0.0, 1000.0]], [1.0, 0.0]),
        ("(I | 0.5) >> i^.~i >> +i[i>=1]~.", [[0.0, 4.0]], [0.0, 0.25]),
        ('elementwise("f: x[n] -> where(lt(x, 1), x, sqrt(x))")', [[0.0, 4.0]], [1.0, 0.25]),
        (
            'elementwise("f: x[n] -> where(lt(x, 50), log(1 + exp(x)), x)")',
            [[0.0, 900.0]],
            [0.5, 1.0],
        ),
        (
            'elementwise("f: x[n], y[n] -> max(sqrt(x * x + y * y), 0.001)")',
            [[0.0, 3.0], [0.0, 4.0]],
            [[0.0, 0.6], [0.0, 0.8]],
        ),
    ],
)
def test_conventions(text: str, arrays: list[Any], wanted: Any) -> None:
    given = [np.array(array) for array in arrays]
    several = isinstance(wanted[0], list) and len(given) > 1
    result = grads(text, *given)
    for one, other in zip(
        result if several else [result], wanted if several else [wanted], strict=True
    ):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_sorted_element_passes_back_to_where_it_was(target: str) -> None:
    x = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]])
    g = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    sort = i('einx.sort("a [b]")')
    np.testing.assert_array_equal(sort.grad()(x, g, target=target), [[3, 1, 2], [5, 6, 4]])
    np.testing.assert_array_equal(sort.jvp()(x, g, target=target)[1], [[2, 3, 1], [6, 4, 5]])
    cubed = i('einx.sort("a [b]") >> (I | 3) >> ab^.~ab')
    back = cubed.grad().grad(wrt="in0")(x, g, np.ones_like(x), target=target)
    np.testing.assert_array_equal(back, 6 * x * [[3, 1, 2], [5, 6, 4]])


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_softmax_rows_with_nothing_inside_are_as_the_page_says(target: str) -> None:
    """Row 0 has no weights inside the guard; divided by 1 there, they are 0."""
    x, g = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), np.ones((2, 3))
    powers = "(I & >ij[j<i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<i]~i) >> "
    divisor = 'elementwise("f: s[n] -> where(gt(s, 0), s, 1)")'
    weights = i(f"{powers}ij[j<i]/i~ij")
    np.testing.assert_array_equal(weights(x, target=target), [[np.nan] * 3, [1, 0, 0]])
    np.testing.assert_array_equal(weights.grad()(x, g, target=target), np.zeros((2, 3)))
    weights = i(f"{powers}(I | {divisor}) >> ij[j<i]/i~ij")
    np.testing.assert_array_equal(weights(x, target=target), [[0] * 3, [1, 0, 0]])
    np.testing.assert_array_equal(weights.grad()(x, g, target=target), np.zeros((2, 3)))


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_what_stores_each_element_once_passes_back_twice(target: str) -> None:
    picked, x = np.array(1), np.array([3.0, 1.0, 2.0])
    back = i(".@z~.").grad(wrt="in1").grad(wrt="dout")
    np.testing.assert_array_equal(back(picked, x, np.array(2.0), x, target=target), 1)
    rows, x = np.array([2, 0]), np.array([[3.0, 1.0, 2.0], [4.0, 5.0, 6.0]])
    back = i("i@iz~i").grad(wrt="in1").grad(wrt="dout")
    np.testing.assert_array_equal(back(rows, x, np.ones(2), x, target=target), [2, 4])


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_causal_softmax_passes_nothing_back_from_ahead(target: str) -> None:
    """Scores behind the guard are 1,000 above the maximum, where e^x is infinite."""
    attention = load(SAMPLES / "24_causal.i")["attention"]
    q = np.array([[100, 0], [0, 1], [1, 1]], np.float32)
    k = np.array([[1, 0], [0, 1], [10, 0]], np.float32)
    v = np.array([[1, 0], [0, 1], [5, 5]], np.float32)
    near = k.copy()
    near[2] = 0  # the first two rows of q do not see it
    for one, other in zip(
        attention.grad()(q, k, v, target=target)[0][:2],
        attention.grad()(q, near, v, target=target)[0][:2],
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_only_what_is_asked_for_is_computed() -> None:
    f = i("ik*kj~ijk >> +ijk~ij")
    x, y, g = np.ones((2, 3)), np.ones((3, 4)), np.full((2, 4), 2.0)
    (whole, other), lone = f.grad()(x, y, g, target="numpy"), f.grad(wrt=1)(x, y, g, target="numpy")
    np.testing.assert_array_equal(lone, other)
    assert whole.shape == x.shape
    assert "din0" not in f.grad(wrt="in1").loops()
    value, first = f.value_and_grad(wrt=[0])(x, y, g, target="numpy")
    np.testing.assert_array_equal(value, x @ y)
    np.testing.assert_array_equal(first, g @ y.T)


def test_a_gradient_of_a_product_is_two_products() -> None:
    """Copies are seen through, so that both have the loops of a contraction, with tiles in registers."""
    loops = i("ik*kj~ijk >> +ijk~ij").grad().loops()
    assert loops.count("tile[") == 4
    assert "din0_zeros" not in loops


def test_a_gradient_reads_what_a_relu_gives() -> None:
    """What the relu is of has no other reader, so that it stays in registers."""
    text = pipeline.text_component("ik*kj~ijk >> +ijk~ij >> >ij~ij")
    shaped = gradient(pipeline.infer(pipeline.graph_of(text, "p")), [0, 1], values=True)
    reads, _ = all_reads(shaped)
    relu = shaped.outputs[0]
    node = shaped.nodes[relu]
    assert isinstance(node, Assignment)
    assert [len(reads[read.value]) for read in node.reads] == [1]
    assert len(reads[relu]) == 1, "where it is positive something flows back"


def test_a_gradient_of_a_window_gathers() -> None:
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component("(i+k)*k~ik >> +ik~i"), "p"))
    nodes = gradient(shaped, [0, 1]).nodes
    assert all(getattr(node, "base", None) is None for node in nodes)


@pytest.mark.parametrize(
    ("text", "acc"),
    [(">(2i+k:2)~i", None), (">(3i+k:2)~i", None), (">(2i+k:3)~i", "+"), ("ii~i", None)],
)
def test_what_is_met_once_is_no_sum(text: str, acc: str | None) -> None:
    """Windows that do not overlap, and diagonals: stored among zeros, in the type that they have."""
    shaped = gradient(pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "p")), [0])
    stored = [n for n in shaped.nodes if isinstance(n, Assignment) and n.base is not None]
    assert [(node.acc, node.acc_dtype()) for node in stored] == [(acc, "f64" if acc else "f32")]


def test_gradients_of_gradients() -> None:
    x = np.array([0.3, -0.7])
    f = i("(I & I) >> i*i~i >> ^i~i")  # exp(x²)
    first = f.grad()(x, np.ones(2), target="numpy")
    np.testing.assert_allclose(first, 2 * x * np.exp(x * x))
    second = f.grad().grad(wrt=0)(x, np.ones(2), np.ones(2), target="numpy")
    np.testing.assert_allclose(second, (2 + 4 * x * x) * np.exp(x * x))


def test_cotangents_are_ones_where_none_are_given() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(i("i*i~i").grad()(x, x + 1, target="numpy")[0], x + 1)
    f = i("f(x[n], y[n]) = { z = (i*i~i)(x, y); z }").grad()
    np.testing.assert_array_equal(f(y=x, x=x, target="numpy")[1], x)
    np.testing.assert_array_equal(f(x, x, dz=3 * x, target="numpy")[1], 3 * x * x)


def test_every_notation() -> None:
    x, y = np.random.default_rng(0).random((2, 3)), np.random.default_rng(1).random((3, 4))
    g = np.ones((2, 4))
    for f in (einsum("ij,jk->ik"), einsum("ij;jk=>ik"), i("ij*jk~ijk >> +ijk~ik")):
        np.testing.assert_allclose(f.grad()(x, y, g, target="numpy")[0], g @ y.T)
    kernel = elementwise("f", ["x0 * x1", "sum: x0"])
    grad = kernel.grad()(x, x[0], np.ones((2, 3)), np.ones(3), target="numpy")
    np.testing.assert_allclose(grad[0], np.broadcast_to(x[0], (2, 3)) + 1)
    looked = i("f(ids: i64[b], table[v,d]) = b@vd~bd")
    table, ids = np.random.default_rng(2).random((5, 2)), np.array([1, 1, 4])
    dense = looked.grad(wrt=1)(ids, table, np.ones((3, 2)), target="numpy")
    np.testing.assert_array_equal(dense[:, 0], [0, 2, 0, 0, 1])


@pytest.mark.parametrize("wrt", [2, "z", [0, 0], 1.5, [True]])
def test_wrt_names_inputs(wrt: object) -> None:
    with pytest.raises(Error) as caught:
        i("i*i~i").grad(wrt)
    assert caught.value.code == "E0716"


@pytest.mark.parametrize("method", ["grad", "value_and_grad", "jvp"])
def test_arrays_are_for_what_a_derivative_gives(method: str) -> None:
    with pytest.raises(Error) as caught:
        getattr(i("i*i~i"), method)(np.ones(2))
    assert caught.value.help.endswith(f"f.{method}()(x, y)")


def test_a_gradient_is_no_part_of_others() -> None:
    f = i("-i~i").grad()
    combinations: list[Callable[[], Any]] = [
        lambda: f >> "-i~i",
        lambda: I & f,
        lambda: f | f,
        lambda: ~f,
    ]
    for combine in combinations:
        with pytest.raises(Error) as caught:
            combine()
        assert caught.value.code == "E0716"


def test_cotangents_have_the_types_of_outputs() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(Error) as caught:
        i("-i~i").grad()(x, np.ones(3))
    assert caught.value.code == "E0604"
    assert "dout is f64" in caught.value.message


def test_whole_numbers_have_no_gradient() -> None:
    x = np.array([1, 2, 3])
    result = i("i*i~i").grad()(x, x, np.ones(3, np.float32), target="numpy")
    assert [each.dtype for each in result] == [np.float32, np.float32]
    assert not any(each.any() for each in result)


def test_gradients_of_tensors() -> None:
    x = tensor.data(np.array([[1.0, 2.0], [3.0, 4.0]]), batch=1)
    w = tensor.param("w", output=[3], value=np.arange(6.0))
    b = tensor.param("b", value=np.zeros(3))
    loss = tensor.einsum("...|... => 0", tensor.relu(w @ x + b))
    program = tensor.solve(loss)
    dw, db = program.grad(loss)()
    np.testing.assert_array_equal(dw, [[4.0, 6.0]] * 3)
    np.testing.assert_array_equal(db, [2.0, 2.0, 2.0])
    (lone,) = [program.grad(loss, [b])(w=np.arange(6.0))]
    np.testing.assert_array_equal(lone, db)
    with pytest.raises(Error) as caught:
        program.grad(b, [w])
    assert caught.value.code == "E0741"


def test_directional_derivatives() -> None:
    f = i("(I & I) >> i*i~i")
    x, t = np.array([1.0, 2.0]), np.array([1.0, 10.0])
    value, tangent = f.jvp()(x, t)
    np.testing.assert_array_equal(value, x * x)
    np.testing.assert_array_equal(tangent, 2 * x * t)
    y = np.array([3.0, 4.0])
    along = i("i*i~i").jvp(wrt="in1")
    np.testing.assert_array_equal(along(x, y, t, target="numpy")[1], x * t)
    np.testing.assert_array_equal(along(x, y, tin1=t, target="numpy")[1], x * t)
    second = f.jvp().jvp(wrt=0)(x, t, np.ones(2), target="numpy")
    np.testing.assert_array_equal(second[3], 2 * t)


def test_tangents_and_cotangents_have_the_ranks_of_what_they_belong_to() -> None:
    x = np.ones((2, 3))
    for f, wrong in ((i("+ij~i").grad(), np.ones((2, 3))), (i("+ij~i").jvp(), np.ones(2))):
        with pytest.raises(Error) as caught:
            f(x, wrong)
        assert caught.value.code == "E0503"


def test_the_gradient_of_a_padded_window_asks_only_where_the_cotangent_ends() -> None:
    f = i("(y+u-1)*u~yu >> +yu~y")
    x, w, g = np.arange(5.0), np.array([1.0, 10.0, 100.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    flowed = [sum(w[u] * g[p - u + 1] for u in range(3) if 0 <= p - u + 1 < 5) for p in range(5)]
    np.testing.assert_array_equal(f.grad(wrt=0)(x, w, g), flowed)
    loops = f.grad(wrt=0).loops()
    assert "< n_y else 0" in loops
    assert "< n_yu" not in loops, "its own dimension has no ends to test"

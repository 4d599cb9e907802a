"""`std`: components of any rank and tensor functions along axes beside the same in NumPy; `ilang.lib`; refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, i, lib, load
from ilang.core.build import along
from ilang.core.library import INNER
from ilang.core.library.std import AXES, PLAIN
from ilang.core.notation.files.pieces import named_pieces

pytestmark = pytest.mark.usefixtures("shared_cache", "compiled_quickly")

X = np.random.default_rng(4).standard_normal((3, 4, 5))
TARGETS = ("c", "numpy", pytest.param("cuda-emulated", marks=pytest.mark.deep))


def softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layer_norm(x: Any, axis: int = -1) -> Any:
    d = x - x.mean(axis=axis, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=axis, keepdims=True) + 1e-5)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "logsumexp": logsumexp,
}
ALONG_ONE: dict[str, Callable[..., Any]] = {
    "softmax": softmax,
    "log_softmax": lambda x, axis=-1: np.log(softmax(x, axis)),
    "layer_norm": layer_norm,
    "argmax": lambda x, axis=-1: np.argmax(x, axis=axis),
    "argmin": lambda x, axis=-1: np.argmin(x, axis=axis),
}
ELEMENTS: dict[str, Callable[..., Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "sqrt": lambda x: np.emath.sqrt(x).real + np.where(x < 0, np.nan, 0),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "softplus": lambda x: np.logaddexp(x, 0),
    "gelu": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
}


def test_every_component_has_its_axes_and_its_values_here() -> None:
    public = named_pieces(" ".join((*AXES, *PLAIN))).keys() - INNER
    assert public == {*AXES, *PLAIN}
    assert set(AXES) == {*REDUCTIONS, *ALONG_ONE}
    assert set(PLAIN) == {*ELEMENTS, "matmul", "conv2d", "max_pool2d", "mean_pool2d"}


@pytest.mark.parametrize("target", TARGETS)
def test_components(target: str) -> None:
    for name, expected in {**REDUCTIONS, **ALONG_ONE, **ELEMENTS}.items():
        for x in (X, X[0], X[0, 0]):
            np.testing.assert_allclose(
                i(name)(x, target=target), expected(x), rtol=1e-9, atol=1e-12
            )
    y = X.transpose(0, 2, 1)
    np.testing.assert_allclose(i("matmul")(X, y, target=target), X @ y)
    np.testing.assert_allclose(i("matmul")(X[0], y[0], target=target), X[0] @ y[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4,))],
)  # fmt: skip
def test_products_of_other_ranks(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """A vector is a row or a column, and axes before the last two may be those of one array, as NumPy has it."""
    x, y = (np.random.default_rng(2).standard_normal(shape) for shape in (left, right))
    np.testing.assert_allclose(lib.matmul(x, y), x @ y)


def test_convolution() -> None:
    images, weights = X.reshape(2, 2, 3, 5), X.reshape(5, 2, 2, 3)
    windows = np.lib.stride_tricks.sliding_window_view(images, (2, 3), (2, 3))
    expected = np.einsum("ncyxuv,ocuv->noyx", windows, weights)
    np.testing.assert_allclose(lib.conv2d(images, weights), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_of_a_call(target: str) -> None:
    for name, ours in (("var", lib.var), ("std", lib.std)):
        for axis in (None, 1, (0, 2)):
            expected = REDUCTIONS[name](X, axis=axis, ddof=2)
            np.testing.assert_allclose(ours(X, axis=axis, ddof=2, target=target), expected)
    centered = X - X.mean(axis=1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 0.5)
    np.testing.assert_allclose(lib.layer_norm(X, axis=1, eps=0.5, target=target), expected)
    images, weights = X.reshape(2, 2, 3, 5), X.reshape(5, 2, 2, 3)
    windows = np.lib.stride_tricks.sliding_window_view(images, (2, 3), (2, 3))[:, :, ::2, ::2]
    expected = np.einsum("ncyxuv,ocuv->noyx", windows, weights)
    np.testing.assert_allclose(lib.conv2d(images, weights, stride=2, target=target), expected)
    for stride, dilation, padding in ((1, 2, 2), (2, 1, 1), (3, 2, 0), (2, 3, 4)):
        padded = np.pad(images, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
        shape = (dilation + 1, 2 * dilation + 1)
        if any(size < window for size, window in zip(padded.shape[2:], shape, strict=True)):
            continue
        windows = np.lib.stride_tricks.sliding_window_view(padded, shape, (2, 3))
        windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
        expected = np.einsum("ncyxuv,ocuv->noyx", windows, weights)
        given = {"stride": stride, "dilation": dilation, "padding": padding}
        np.testing.assert_allclose(lib.conv2d(images, weights, target=target, **given), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_pools(target: str) -> None:
    images = np.random.default_rng(7).standard_normal((2, 3, 6, 7))
    every = np.lib.stride_tricks.sliding_window_view
    for numbers, size, stride in (
        ({}, 2, 2),
        ({"size": 3}, 3, 3),
        ({"size": 3, "stride": 1}, 3, 1),
    ):
        windows = every(images, (size, size), (2, 3))[:, :, ::stride, ::stride]
        most = lib.max_pool2d(images, **numbers, target=target)
        np.testing.assert_allclose(most, windows.max(axis=(4, 5)))
        mean = lib.mean_pool2d(images, **numbers, target=target)
        np.testing.assert_allclose(mean, windows.mean(axis=(4, 5)))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_of_the_library_along_axes(name: str, keepdims: bool) -> None:
    for axis in (None, 0, 1, -1, (0, 2), (-1, 0, 1)):
        expected = REDUCTIONS[name](X, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(getattr(lib, name)(X, axis=axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("name", ALONG_ONE)
def test_functions_of_the_library_along_one_axis(name: str) -> None:
    for axis in (0, 1, 2, -2):
        answer = getattr(lib, name)(X, axis=axis)
        np.testing.assert_allclose(answer, ALONG_ONE[name](X, axis=axis), atol=1e-12)


def test_one_hot() -> None:
    labels = np.array([[0, 2], [1, 1]])
    np.testing.assert_array_equal(lib.one_hot(labels, 3), np.eye(3)[labels])
    np.testing.assert_array_equal(lib.one_hot(np.array(2), 3), np.eye(3)[2])
    assert lib.one_hot(labels[:0], 3).shape == (0, 2, 3)


def test_gradients() -> None:
    assert np.allclose(i("mean").grad()(X), 1 / X.size)
    cotangent = np.cos(np.arange(X.size)).reshape(X.shape)
    for name in (
        "softmax",
        "log_softmax",
        "layer_norm",
        "gelu",
        "silu",
        "sigmoid",
        "softplus",
        "tanh",
        "erf",
    ):
        f, step = i(name), 1e-6 * np.sin(np.arange(X.size)).reshape(X.shape)
        slope = (cotangent * (f(X + step) - f(X - step))).sum() / 2
        assert np.isclose((f.grad()(X, cotangent) * step).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: lib.softmax(X, axis=3), "E0777"),
        (lambda: lib.softmax(X, axis=None), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.mean(X, axis=(0, -3)), "E0777"),
        (lambda: lib.mean(X, axis=1.0), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.relu(X, axis=1), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.one_hot(np.array([0]), 0), "E0777"),
        (lambda: lib.softmax(X, dim=0), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.sum(X, 0), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.mean(np.array(["a"]), axis=0), "E0703"),
        (lambda: lib.mean(X, ddof=1), "E0747"),  # type: ignore[call-overload]
        (lambda: lib.var(X, ddof=1.5), "E0777"),  # type: ignore[call-overload]
        (lambda: i('einx.var("[a]", ddof=(1, 2))')(X[0, 0]), "E0229"),
        (lambda: lib.layer_norm(X, eps="small"), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.max_pool2d(X[None], size=0), "E0777"),
        (lambda: lib.max_pool2d(X[None], 2), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.conv2d(X[None], X[None], 2), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.matmul(X, 2.0), "E0503"),
        (lambda: lib.sum(X, axis=True), "E0777"),
        (lambda: lib.sum(X, keepdims=3), "E0777"),  # type: ignore[call-overload]
        (lambda: lib.one_hot(np.array([0, 3]), 3), "E0746"),
        (lambda: lib.one_hot(np.array([[-1]]), 3), "E0746"),
        (lambda: lib.one_hot(np.array([1.0]), 3), "E0605"),
    ],
)
def test_what_the_library_refuses(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(Error) as caught:
        call()
    assert caught.value.code == code


def test_extremes_of_conditions_are_conditions() -> None:
    holds = np.array([[True, False], [True, True]])
    for got, expected in (
        (lib.max(holds, axis=0), [True, True]),
        (lib.min(holds, axis=1, keepdims=True), [[False], [True]]),
        (lib.min(holds), False),
    ):
        assert got.dtype == bool
        np.testing.assert_array_equal(got, expected)


def test_help_of_the_library_is_python() -> None:
    with pytest.raises(Error) as caught:
        lib.mean(np.array([1, 2]))
    assert caught.value.help == "convert it: lib.mean(x.astype(np.float32))"
    with pytest.raises(Error) as caught:
        lib.one_hot(np.array([5]), 3)
    assert caught.value.help == "classes are 0 to 2"


def test_pages_of_the_library_in_python() -> None:
    """What `help` shows: how a function is called, and the text that it is compiled from."""
    assert "tanh(0.797" in (lib.gelu.__doc__ or "")
    assert (lib.softmax.__doc__ or "").startswith("lib.softmax(x, axis=-1, keepdims=False)")
    assert "conv2d(x[n,c,h,w], w[o,c,u,v]) = " in (lib.conv2d.__doc__ or "")


def test_names_of_the_library_in_python() -> None:
    assert {"softmax", "one_hot"} <= set(dir(lib))
    with pytest.raises(AttributeError, match="did you mean softmax"):
        lib.sofmax  # type: ignore[attr-defined]  # noqa: B018


FUNCTIONS = """use std
op total(x) = sum(x)
op by_letter(x[b|n, m]) = sum(x; "n")
op by_letters(x[b|n, m]) = max(x; "b, m")
op first(x) = sum(x; 0)
op second(x) = min(x; 1)
op last(x) = mean(x; -1)
op some(x[b|n, m]) = mean(x; [0, 2])
op spread(x[b|n, m]) = var(x - 2; "n")
op rows(x) = softmax(x)
op columns(x) = softmax(x; 1)
op logs(x) = log_softmax(x; -2)
op normal(x[b|n, m]) = layer_norm(x; "n, m")
op peak(x) = logsumexp(x; -1)
op count(x[b|n, m]) = elements(x; "b, m") + 0 *. x
op inner(y[a|b, c]) = sum(y; "c")
op outer(x[c|b, a]) = inner(x)
op both(x, y) = max(x, y) + gelu(silu(x))
op flat(x[b|n, m]) = x ++ "b|n, m => b|n"
op late(x[b|n, m]) = mean(flat(x) + 1; -1)
op turned(x[b|n, m]) = max(x ++ "b|n, m => n, b|m"; 1)
op rows_of_rows(x[b|n, m]) = sum(x *+ "...|n, m; ...|k, m => ..., n|k" x; 1)
op twice(x[b|n, m]) = sum(max(x; "m"); "n")
op beside(x[b|n, m]) = mean(x + sum(x; "n"); "m")
"""
EXPECTED: dict[str, Callable[[Any], Any]] = {
    "total": lambda x: x.sum(keepdims=True).reshape(1),
    "by_letter": lambda x: x.sum(axis=1, keepdims=True),
    "by_letters": lambda x: x.max(axis=(0, 2), keepdims=True),
    "first": lambda x: x.sum(axis=0, keepdims=True),
    "second": lambda x: x.min(axis=1, keepdims=True),
    "last": lambda x: x.mean(axis=-1, keepdims=True),
    "some": lambda x: x.mean(axis=(0, 2), keepdims=True),
    "spread": lambda x: x.var(axis=1, keepdims=True),
    "rows": softmax,
    "columns": lambda x: softmax(x, 1),
    "logs": lambda x: np.log(softmax(x, -2)),
    "normal": lambda x: layer_norm(x, (1, 2)),  # type: ignore[arg-type]
    "peak": lambda x: logsumexp(x, -1, keepdims=True),
    "count": lambda x: np.full_like(x, 15),
    "outer": lambda x: x.sum(axis=2, keepdims=True),
    "late": lambda x: (x.sum(axis=2) + 1).mean(axis=1, keepdims=True),
    "turned": lambda x: x.transpose(1, 0, 2).max(axis=1, keepdims=True),
    "rows_of_rows": lambda x: (x @ x.transpose(0, 2, 1)).sum(axis=1, keepdims=True),
    "twice": lambda x: x.max(axis=2, keepdims=True).sum(axis=1, keepdims=True),
    "beside": lambda x: (x + x.sum(axis=1, keepdims=True)).mean(axis=2, keepdims=True),
}


@pytest.mark.parametrize("target", TARGETS)
def test_tensor_functions_along_axes(target: str, tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(FUNCTIONS, encoding="utf-8")
    library = load(tmp_path / "m.i")
    for name, expected in EXPECTED.items():
        x = X.astype(np.float32)
        answer = library[name](x, target=target)
        assert answer.shape == expected(X).shape, name
        np.testing.assert_allclose(answer, expected(x.astype(float)), rtol=2e-5, atol=2e-6)
    y = library["both"](X, X + 1, target=target)
    expected_y = X + 1 + ELEMENTS["gelu"](ELEMENTS["silu"](X))
    np.testing.assert_allclose(y, expected_y, rtol=2e-5)


@pytest.mark.parametrize("axis", ["1", '"n"'])
def test_axes_of_a_long_program_are_found_once(
    axis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work of a chain in which each step reduces the one before grows as the chain does."""
    entries = []
    completed = along._completed

    def counting(known: Any, value: Any, below: Any, entry: Any) -> Any:
        def counted(each: Any) -> Any:
            entries.append(each)
            return entry(each)

        return completed(known, value, below, counted)

    monkeypatch.setattr(along, "_completed", counting)
    steps = "".join(f"  v{n + 1} = v{n} - mean(v{n}; {axis})\n" for n in range(100))
    text = f"use std\nop f(x[b|n]) {{\n  v0 = x +. 1\n{steps}  v100\n}}\n"
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    load(tmp_path / "m.i")["f"].graph()
    assert 100 <= len(entries) <= 1000


def test_a_mean_of_doubles_divides_by_a_double(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text("use std\nop f(x: f64) = elements(x) + 0 *. sum(x)\n", "utf-8")
    x = np.zeros((2**24 + 1, 1))
    assert load(tmp_path / "m.i")["f"](x)[0] == 2**24 + 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_of_equal_terms_is_a_product(target: str, tmp_path: Path) -> None:
    """Of numbers of each type, also where the extents of the terms come from another operand."""
    text = """op floats(x: f64[b|n]) = sum(0.5 + 0 *. x; "n")
op whole(x: i64[b|n]) = i64(elements(x; "n")) + i64(elements(x)) +. sum(x)
op given(x: i32[b|n]) = i32(elements(x; "b")) *. x
"""
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    library = load(tmp_path / "m.i")
    ones = np.ones((3, 4))
    np.testing.assert_array_equal(library["floats"](ones, target=target), np.full((3, 1), 2.0))
    whole = library["whole"](ones.astype(np.int64), target=target)
    assert (whole == 4 + 12 + 12).all()
    assert whole.dtype == np.int64
    given = library["given"](ones.astype(np.int32), target=target)
    assert (given == 3).all()
    assert given.dtype == np.int32


def test_training_on_a_mean(tmp_path: Path) -> None:
    text = """use std, optim
op loss(x, t) { d = "w" * x - t; mean(d *. d) }
cd step(x, t; lr = 0.1) {
  l = loss(x, t)
  backprop(l)
  for p in params(l) { sgd(p; lr) }
  return l
}
"""
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    x, t = X[0].astype(np.float32), X[1, :, :2].astype(np.float32)
    step = load(tmp_path / "m.i").session("step")
    step.fit(x, t)
    w = step.parameters["loss.w"].copy()
    d = x @ w.T - t
    np.testing.assert_allclose(step(x, t), (d * d).mean(keepdims=True).reshape(1), rtol=1e-5)
    np.testing.assert_allclose(
        step.parameters["loss.w"], w - 0.1 * 2 * d.T @ x / d.size, rtol=1e-4, atol=1e-6
    )


def test_one_name_as_a_component_and_as_a_tensor_function(tmp_path: Path) -> None:
    text = """use std
wired(x[n,c]) = softmax >> max
named(x[n,c]) = { e = softmax(x); mean(e) }
op called(x) = max(softmax(x; 0), mean(x; 1))
"""
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    library, x = load(tmp_path / "m.i"), X[0]
    assert np.isclose(library["wired"](x), softmax(x).max())
    assert np.isclose(library["named"](x), 1 / 5)
    expected = np.maximum(softmax(x, 0), x.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(library["called"](x), expected, rtol=1e-5)


def test_names_of_nn_come_first_in_tensor_functions(tmp_path: Path) -> None:
    text = "use std, nn\nop f(x) = mean(layer_norm(x); -1)\nop g(x) = softmax(x)\n"
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    library = load(tmp_path / "m.i")
    shapes = {"x": "3|4"}
    assert [*library.session("f", shapes).parameters] == ["layer_norm.scale", "layer_norm.shift"]
    np.testing.assert_allclose(library["g"](X[0]), softmax(X[0]), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ('op f(x[b|n]) = sum(x; "m")', "E0290", 1, 16),
        ("op f(x[b|n]) = sum(x; 2)", "E0290", 1, 16),
        ("op f(x[b|n]) = sum(x; 0.5)", "E0290", 1, 16),
        ("op f(x[b|n]) = sum(x; [0, -1, 1])", "E0290", 1, 16),
        ('op f(x[b|n], y[n|b]) = sum(x + y; "n")', "E0290", 1, 24),
        ('op f(x[n|n]) = sum(x; "n")', "E0290", 1, 16),
        ("op f(x[b|n]) = sum(x, x)", "E0420", 1, 16),
        ("op f(x[b|n]) = sum(x; 0, 1)", "E0444", 1, 26),
        ("op f(x[b|n]) = sum(x; dim = 0)", "E0444", 1, 23),
        ("op f(x[b|n]) = max(x, x; 0)", "E0444", 1, 16),
        ('op f(x[b|n]; a = "n") = a + x', "E0262", 1, 25),
        ('op f(x[b|n]; a = "n") = "w" a * x', "E0445", 1, 29),
        ("op f(x) = mean(x)", "E0401", 1, 11),
        ("f(x[n]) = softmax(x)", "E0401", 1, 11),
        ("f(x[n]) = softmax", "E0401", 1, 11),
        ("use std\nop sum(x) = x\nop f(x) = mean(x)", "E0414", 2, 4),
        ("use std\nsum = +ij~i\nop f(x) = mean(x)", "E0414", 2, 1),
        ("use std\ncentered_last = I\nf(x[n]) = layer_norm", "E0414", 2, 1),
    ],
)
def test_what_is_wrong(text: str, code: str, line: int, column: int, tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(f"{text}\n", encoding="utf-8")

    def call() -> None:
        library = load(tmp_path / "m.i")
        library["f"](*[X[0]] * len(library.model.inputs("f")))

    with pytest.raises(Error) as caught:
        call()
    span = caught.value.span
    assert span is not None
    assert (caught.value.code, span.line_number(), span.column()) == (code, line, column)
    if code == "E0401":
        assert "`use std`" in (caught.value.help or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("softmax >> +ij~i", np.ones(4)),
        ("f(x[n,c]) = softmax(x)", softmax(X[0])),
        ("mean >> (I | 2) >> .*.~.", X[0].mean() * 2),
        ("max=+ij~i", None),
        ("f(mean[n,c]) = (ij~ji)(mean)", X[0].T),
        ("ij*ij~ij >> sum", None),
    ],
)
def test_texts_may_name_them(text: str, expected: Any) -> None:
    if text == "max=+ij~i":
        with pytest.raises(Error):
            i(text)
    elif expected is None:
        assert np.isclose(i(text)(X[0], X[0]), (X[0] * X[0]).sum())
    else:
        np.testing.assert_allclose(i(text)(X[0]), expected)


def test_what_a_text_meant_it_still_means() -> None:
    letters = i("max>>i~maxi")
    assert letters.shapes((2, 3, 4), (5,)) == ((2, 3, 4, 5),)
    with pytest.raises(Error) as caught:
        i("sofmax >> +ij~i")
    assert caught.value.help == "did you mean `softmax`, of `std`?"
    assert repr(i("softmax") >> "sum").startswith("<Component softmax >> sum: 1 input")
    assert np.isclose((i("softmax") >> "sum")(X[0]), 4)


def test_names_of_numpy_lead_to_programs() -> None:
    with pytest.raises(AttributeError, match="windows that end at each place"):
        _ = lib.cumsum  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="did you mean softmax"):
        _ = lib.softmx  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("dtype", "x.astype"), ("thread", "did you mean threads"), ("dim", "lib has functions")],
)
def test_arguments_that_calls_have_not(name: str, shown: str) -> None:
    with pytest.raises(Error) as caught:
        i("+ij~i")(X, **{name: 1})  # type: ignore[call-overload]
    assert caught.value.code == "E0747"
    assert shown in caught.value.help


def test_arguments_that_methods_have_not() -> None:
    with pytest.raises(TypeError, match="did you mean shapes="):
        i("+ij~i").explain(shape=[(2, 3)])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="there are shapes, verbose, html"):
        i("+ij~i").explain(dtype="f64")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lib.max_pool2d(X), "`max_pool2d` takes x[n,c,h,w], and x has 3 axes where"),
        (lambda: lib.conv2d(X[None], X), "`conv2d` takes w[o,c,u,v], and w has 3 axes where"),
        (lambda: lib.matmul(X[0], X[0, :2, :2]), "axis j is 5 in x (dimension 1) and 2 in y"),
        (lambda: lib.matmul(X), "`matmul` takes 2 arrays, and 1 array is given"),  # type: ignore[call-overload]
        (lambda: lib.softmax(2.0), "x has rank 0"),
        (lambda: lib.layer_norm("X"), "x is of type str, not an array"),
        (lambda: i("conv2d")(X, X), "`conv2d` takes x[n,c,h,w], and x has 3 axes where"),
    ],
)
def test_messages_name_the_function_and_its_argument(call: Callable[[], Any], message: str) -> None:
    """They spoke of a program and of in0."""
    with pytest.raises(Error) as caught:
        call()
    assert message in caught.value.message

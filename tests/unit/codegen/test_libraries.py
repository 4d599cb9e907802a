"""`use nn, optim`: every layer, loss and optimiser of the libraries beside the same in NumPy; names and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, lib, load
from ilang.core.diagnostic import ShapeError
from ilang.core.library import LIBRARIES, text_of
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.libraries import text_of_kind
from ilang.core.source import Source

pytestmark = pytest.mark.usefixtures("shared_cache")

DRAW = np.random.default_rng(5)
BEGIN = DRAW.bit_generator.state
Values = dict[str, Any]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    DRAW.bit_generator.state = BEGIN


def session(folder: Path, text: str, shapes: dict[str, str], target: str = "c") -> Any:
    (folder / "m.i").write_text(f"use nn, optim\n{text}\n", encoding="utf-8")
    return load(folder / "m.i").session("f", shapes, seed=3, target=target)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normalised(x: Any, axis: int | tuple[int, ...], p: Values, name: str) -> Any:
    d = x - x.mean(axis=axis, keepdims=True)
    return (
        d / np.sqrt(d.var(axis=axis, keepdims=True) + 1e-5) * p[f"{name}.scale"]
        + p[f"{name}.shift"]
    )


def convolved(x: Any, k: Any, b: Any) -> Any:
    size = k.shape[1]
    padded = np.pad(x, ((0, 0), (size // 2,) * 2, (size // 2,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
    return np.einsum("byxiuv,ouvi->byxo", windows, k) + b


def attended(x: Any, p: Values, name: str, causal: bool) -> Any:
    q, k, v = (
        np.einsum("hwd,btd->bthw", p[f"{name}.{n}.w"], x) + p[f"{name}.{n}.b"] for n in "qkv"
    )
    scores = np.einsum("bthw,bshw->bhts", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
    mixed = np.einsum("bhts,bshw->bthw", softmax(scores), v)
    return np.einsum("ohw,bthw->bto", p[f"{name}.out.w"], mixed) + p[f"{name}.out.b"]


def transformed(x: Any, p: Values) -> Any:
    p = {path.removeprefix("transformer_block."): values for path, values in p.items()}
    y = x + attended(normalised(x, -1, p, "before"), p, "causal_attention", causal=True)
    up = np.maximum(0, normalised(y, -1, p, "between") @ p["up.w"].T + p["up.b"])
    return y + up @ p["down.w"].T + p["down.b"]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def one_cell(x: Any, s: Any, p: Values) -> Any:
    h, c = s[:, 0], s[:, 1]

    def gate(name: str) -> Any:
        given = x @ p[f"lstm_cell.{name}.w"].T + p[f"lstm_cell.{name}.b"]
        return given + h @ p[f"lstm_cell.{name}_h.w"].T

    c = sigmoid(gate("forget")) * c + sigmoid(gate("enter")) * np.tanh(gate("new"))
    return np.stack([sigmoid(gate("leave")) * np.tanh(c), c], axis=1)


def entropy(z: Any, t: Any) -> Any:
    return -(np.log(softmax(z)) * t).sum()[None] / len(z)


LAYERS: dict[str, tuple[str, dict[str, str], Callable[..., Any]]] = {
    "linear": (
        "op f(x) = linear(x; 4)", {"x": "5,2|3"},
        lambda p, x: x @ p["linear.w"].T + p["linear.b"],
    ),
    "mlp": (
        "op f(x) = mlp(x; [4], 2)", {"x": "5|3"},
        lambda p, x: np.maximum(0, x @ p["mlp.linear_1.w"].T + p["mlp.linear_1.b"])
        @ p["mlp.linear_2.w"].T + p["mlp.linear_2.b"],
    ),
    "conv3": (
        "op f(x) = conv3(x; 4)", {"x": "2|5,6,3"},
        lambda p, x: convolved(x, p["conv3.k"], p["conv3.b"]),
    ),
    "conv5": (
        "op f(x) = conv5(x; 2)", {"x": "2|5,6,3"},
        lambda p, x: convolved(x, p["conv5.k"], p["conv5.b"]),
    ),
    "max_pool2": (
        "op f(x) = max_pool2(x)", {"x": "2|4,6,3"},
        lambda _, x: x.reshape(2, 2, 2, 3, 2, 3).max(axis=(2, 4)),
    ),
    "mean_pool": ("op f(x) = mean_pool(x)", {"x": "2|4,6,3"}, lambda _, x: x.mean(axis=(1, 2))),
    "softmax": ("op f(x) = softmax(x)", {"x": "3,2|5"}, lambda _, x: softmax(x)),
    "layer_norm": (
        "op f(x) = layer_norm(x;)", {"x": "3,2|5"}, lambda p, x: normalised(x, -1, p, "layer_norm"),
    ),
    "batch_norm": (
        "op f(x) = batch_norm(x;)", {"x": "9|5"}, lambda p, x: normalised(x, 0, p, "batch_norm"),
    ),
    "batch_norm2d": (
        "op f(x) = batch_norm2d(x;)", {"x": "3|4,5,2"},
        lambda p, x: normalised(x, (0, 1, 2), p, "batch_norm2d"),
    ),
    "cross_entropy": (
        "op f(z, t) = cross_entropy(z, t)", {"z": "4|3", "t": "4|3"}, lambda _, z, t: entropy(z, t),
    ),
    "cross_entropy_at": (
        "op f(z, t: i64[b|]) = cross_entropy_at(z, t)", {"z": "4|3", "t": "4|"},
        lambda _, z, t: entropy(z, np.eye(3)[t]),
    ),
    "cross_entropy_sum_at": (
        "op f(z, t: i64[b, s|]) = cross_entropy_sum_at(z, t)", {"z": "2,4|3", "t": "2,4|"},
        lambda _, z, t: 8 * entropy(z.reshape(8, 3), np.eye(3)[t.reshape(8)]),
    ),
    "squared_error": (
        "op f(y, t) = squared_error(y, t)", {"y": "4|3", "t": "4|3"},
        lambda _, y, t: ((y - t) ** 2).mean()[None],
    ),
    "attention": (
        "op f(x) = attention(x; 2, 3, 5)", {"x": "2,4|5"},
        lambda p, x: attended(x, p, "attention", causal=False),
    ),
    "causal_attention": (
        "op f(x) = causal_attention(x; 2, 3, 5)", {"x": "2,4|5"},
        lambda p, x: attended(x, p, "causal_attention", causal=True),
    ),
    "transformer_block": (
        "op f(x) = transformer_block(x; 6, 2, 7)", {"x": "2,4|6"}, lambda p, x: transformed(x, p),
    ),
    "embedding": (
        "op f(t: i64[b, s|]) = embedding(t; 3, 4)", {"t": "2,5|"},
        lambda p, t: p["embedding.table"][t],
    ),
    "lstm_cell": (
        "op f(x, s) = lstm_cell(x, s; 4)", {"x": "3|5", "s": "3|2,4"},
        lambda p, x, s: one_cell(x, s, p),
    ),
}  # fmt: skip


def drawn_inputs(s: Any) -> Values:
    return {
        name: DRAW.integers(0, 3, tensor.shape.memory())
        if tensor.dtype == "i64"
        else DRAW.standard_normal(tensor.shape.memory()).astype(np.float32)
        for name, tensor in s.inputs.items()
    }


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_what_it_says(name: str, tmp_path: Path) -> None:
    text, shapes, expected = LAYERS[name]
    s = session(tmp_path, text, shapes)
    given = drawn_inputs(s)
    for path in s.parameters:
        values = DRAW.standard_normal(s.parameters[path].shape)
        s.parameters[path] = values if "scale" in path or "shift" in path else values / 2
    p = {path: values.astype(np.float64) for path, values in s.parameters.items()}
    wide = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in given.items()}
    np.testing.assert_allclose(s(**given), expected(p, **wide), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_targets_agree_on_a_layer(name: str, tmp_path: Path) -> None:
    text, shapes, _ = LAYERS[name]
    s, reference = (session(tmp_path, text, shapes, target) for target in ("c", "numpy"))
    given = drawn_inputs(s)
    np.testing.assert_allclose(s(**given), reference(**given), rtol=1e-4, atol=1e-5)


def misfits(shapes: dict[str, str]) -> Iterator[dict[str, str]]:
    """The shapes with an axis more or less in a row of one of them, or with an axis of another size."""
    for name, shape in shapes.items():
        batch, output = ([int(n) for n in row.split(",") if n] for row in shape.split("|"))
        for rows in (
            ([*batch, 2], output), (batch[1:], output), (batch, [2, *output]), (batch, output[1:]),
            *(([*batch[:n], batch[n] + 2, *batch[n + 1 :]], output) for n in range(len(batch))),
            *((batch, [*output[:n], output[n] + 2, *output[n + 1 :]]) for n in range(len(output))),
        ):  # fmt: skip
            yield {**shapes, name: "|".join(",".join(map(str, row)) for row in rows)}


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_that_do_not_fit_a_layer_are_told_at_its_call(name: str, tmp_path: Path) -> None:
    """They were told as the rows of an operation in the text of the library."""
    text, shapes, _ = LAYERS[name]
    text = re.sub(r": i64\[[^]]*\]", "", text)
    (tmp_path / "m.i").write_text(f"use nn\n{text}\n")
    layer: Any = load(tmp_path / "m.i")["f"]
    refused: list[tuple[str, ShapeError]] = []
    for other in misfits(shapes):
        try:
            layer.parameters(other)
        except ShapeError as error:
            refused.append((next(n for n in shapes if other[n] != shapes[n]), error))
    at = text.index(f"{name}(")
    for wrong, told in refused:
        assert told.span is not None
        assert told.span.line() == text
        assert told.span.text() == text[at:]
        assert "has 1 axis and" not in told.message
        said = told.message + told.labels[0].text
        assert f"`{name}` takes" in said or "called here: x is [" in said, said
        assert re.search(rf"\b{wrong}\b", said), said


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_a_class_that_is_impossible_costs_nothing_where_it_is_wrong(
    tmp_path: Path, target: str
) -> None:
    z, expected = np.array([[0, 1, -np.inf]], np.float32), np.log1p(np.exp(-1))
    for name, t in (
        ("cross_entropy", np.eye(3, dtype=np.float32)[1:2]),
        ("cross_entropy_at", np.array([1])),
    ):
        text, shapes, _ = LAYERS[name]
        one = {key: f"1|{rows.partition('|')[2]}" for key, rows in shapes.items()}
        s = session(tmp_path, text, one, target)
        np.testing.assert_allclose(s(z=z, t=t), expected, rtol=1e-5)


@pytest.mark.parametrize("target", ["c", "numpy", "cuda-emulated"])
def test_a_number_of_no_class_is_refused(tmp_path: Path, target: str) -> None:
    s = session(tmp_path, "op f(z, t) = cross_entropy_at(z, t)", {"z": "2|3", "t": "2|"}, target)
    assert s.inputs["t"].dtype == "i64", "as the library writes it"
    z = np.zeros((2, 3), np.float32)
    np.testing.assert_allclose(s(z, np.array([0.0, 2.0])), np.log(3), rtol=1e-6)
    for wrong in (-1, 3):
        with pytest.raises(Error) as caught:
            s(z, np.array([0, wrong]))
        assert caught.value.code == "E0746"
    with pytest.raises(Error) as caught:
        s(z, np.array([0, 0.5]))
    assert caught.value.code == "E0758"
    with pytest.raises(Error) as caught:
        session(tmp_path, "op f(z, t: f32) = cross_entropy_at(z, t)", {"z": "2|3"}, target)
    assert caught.value.code == "E0604"


@pytest.mark.parametrize("name", ["batch_norm", "batch_norm2d"])
def test_batch_norm_keeps_moments_for_prediction(name: str, tmp_path: Path) -> None:
    shape = (6, 4) if name == "batch_norm" else (3, 4, 5, 2)
    rows = f"{shape[0]}|{','.join(map(str, shape[1:]))}"
    axes = tuple(range(len(shape) - 1))
    (tmp_path / "m.i").write_text(
        f"use nn\nop net(x; training = 0) = {name}(x; training = training)\n"
        'cd step(x) {\n  y = net(x; training = 1)\n  l = y *. y *. y ++ "...|... => 0"\n  backprop(l)\n'
        "  for p in params(l) { p =- 0.1 *. p.grad }\n  return y\n}\n"
    )
    m = load(tmp_path / "m.i")
    s = m.session("step", {"x": rows})
    mean, variance = np.zeros(shape[-1]), np.ones(shape[-1])
    x = np.zeros(shape)
    for n in range(3):
        x = (DRAW.standard_normal(shape) * (n + 1) + n).astype(np.float32)
        s(x)
        mean = 0.9 * mean + 0.1 * x.mean(axis=axes)
        variance = 0.9 * variance + 0.1 * x.var(axis=axes, ddof=1)
    p = {path: np.asarray(s.parameters[path]) for path in s.parameters}
    np.testing.assert_allclose(p[f"net.{name}.mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p[f"net.{name}.variance"], variance, rtol=1e-5)
    predict = m.session("net", {"x": rows}, parameters=s)
    expected = (x - mean) / np.sqrt(variance + 1e-5)
    expected = expected * p[f"net.{name}.scale"] + p[f"net.{name}.shift"]
    np.testing.assert_allclose(predict(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(predict.parameters[f"{name}.mean"], p[f"net.{name}.mean"])


def test_rows_of_layers_follow_before_shapes_are_known(tmp_path: Path) -> None:
    for name, (text, _, _) in LAYERS.items():
        (tmp_path / "m.i").write_text(f"use nn\n{text}\n", encoding="utf-8")
        definition: Any = load(tmp_path / "m.i")["f"]
        values = definition.shape_so_far().values
        assert any(each.rows for each in values), name


@pytest.mark.deep
def test_dropout_draws_anew_each_step_and_alike_everywhere(tmp_path: Path) -> None:
    text = """cd f(x; rate = 0.25) {
  "n" =: n + 1
  y = dropout("w" 1.0 *. x, n; rate)
  l = y ++ "...|... => 0"
  backprop(l)
  other = dropout(x, n; rate, key = 1)
  return y, other
}"""
    x = np.ones((6, 1000), np.float32)
    sessions = [session(tmp_path, text, {"x": "6|1000"}, target) for target in ("c", "numpy")]
    drawn = []
    for _ in range(4):
        (y, other), (same, also) = (s(x) for s in sessions)
        assert (y == same).all()
        assert (other == also).all()
        np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
        np.testing.assert_allclose(sessions[0].value("w.grad"), y.sum(axis=0), rtol=1e-5)
        drawn += [y.ravel() > 0, other.ravel() > 0]
    drawn.append(np.roll(drawn[0], 1))
    drawn.append(np.roll(drawn[0], 1000))
    deviation = np.sqrt(0.25 * 0.75 / x.size)
    assert all(abs(each.mean() - 0.75) < 5 * deviation for each in drawn)
    alike = np.corrcoef(np.array(drawn)) - np.eye(len(drawn))
    assert np.abs(alike).max() < 5 / np.sqrt(x.size)
    sessions[0].config["rate"] = 0.0
    assert (sessions[0](x)[0] == 1).all()


@pytest.mark.deep
def test_dropout_follows_the_seed(tmp_path: Path) -> None:
    """Every seed dropped the same elements."""
    text = """op net(x, n) = dropout("w" 1.0 *. dropout(x, n; 0.5), n; 0.5)
cd f(x) {
  "n" =: n + 1
  y = net(x, n)
  l = y ++ "...|... => 0"
  backprop(l)
  for p in params(l) { p =- 0 *. p.grad }
  return y
}"""
    (tmp_path / "m.i").write_text(f"use nn\n{text}\n", "utf-8")
    x, shapes = np.ones((4, 1000), np.float32), {"x": "4|1000"}
    library = load(tmp_path / "m.i")
    seeds = (0, 0, 1, 2**40, 2**64 - 1)
    sessions = [library.session("f", shapes, seed=seed) for seed in seeds]
    drawn = [np.concatenate([s(x).ravel() > 0 for _ in range(2)]) for s in sessions]
    assert (drawn[0] == drawn[1]).all()
    assert all(abs(each.mean() - 0.25) < 0.03 for each in drawn), "the two dropouts are apart"
    alike = np.corrcoef(np.array(drawn[1:])) - np.eye(4)
    assert np.abs(alike).max() < 5 / np.sqrt(x.size)
    sessions[-1].save(tmp_path / "s.npz")
    later = sessions[-1](x)
    other = library.session("f", shapes, seed=7)
    other.load(tmp_path / "s.npz")
    assert (other(x) == later).all(), "a checkpoint has what is drawn"


def sgd(w: Any, g: Any, kept: Values, momentum: float, nesterov: bool, decay: float) -> Any:
    g = g + decay * w
    if momentum:
        kept["v"] = momentum * kept.get("v", 0) + g
        g = g + momentum * kept["v"] if nesterov else kept["v"]
    return w - 0.1 * g


def adam(w: Any, g: Any, kept: Values, decay: float, decoupled: bool) -> Any:
    kept["n"] = n = kept.get("n", 0) + 1
    if decoupled:
        w = w - 0.1 * decay * w
    else:
        g = g + decay * w
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    return w - 0.1 * (kept["m"] / (1 - 0.9**n)) / (np.sqrt(kept["v"] / (1 - 0.999**n)) + 1e-8)


def clipped(w: Any, g: Any, _: Values) -> Any:
    return w - 0.1 * g * min(1, 0.7 / (np.sqrt((g * g).sum()) + 1e-6))


def by_cosine(w: Any, g: Any, kept: Values) -> Any:
    kept["n"] = n = kept.get("n", 0) + 1
    done = min(1, max(0, (n - 2) / 4))
    return w - 0.1 * min(n / 2, 0.5 * (1 + np.cos(np.pi * done))) * g


def by_line(w: Any, g: Any, kept: Values) -> Any:
    kept["n"] = n = kept.get("n", 0) + 1
    return w - 0.1 * min(n / 2, max(0, (6 - n) / 4)) * g


OPTIMISERS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "sgd": ("", "sgd(p; lr)", lambda w, g, kept: sgd(w, g, kept, 0, False, 0)),
    "momentum": (
        "", "sgd(p; lr, momentum = 0.9, decay = 0.2)", lambda w, g, kept: sgd(w, g, kept, 0.9, False, 0.2),
    ),
    "nesterov": (
        "", "sgd(p; lr, momentum = 0.9, nesterov = true)", lambda w, g, kept: sgd(w, g, kept, 0.9, True, 0),
    ),
    "adam": ("", "adam(p; lr, decay = 0.1)", lambda w, g, kept: adam(w, g, kept, 0.1, False)),
    "adamw": ("", "adamw(p; lr, decay = 0.1)", lambda w, g, kept: adam(w, g, kept, 0.1, True)),
    "clip": ("clip(l; 0.7)", "sgd(p; lr)", clipped),
    "cosine": (
        '"n" =: n + 1; "rate" =: cosine_rate(n; lr, 2, 6)', "p =- rate *. p.grad", by_cosine,
    ),
    "line": (
        '"n" =: n + 1; "rate" =: linear_rate(n; lr, 2, 6)', "p =- rate *. p.grad", by_line,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_is_what_it_says(name: str, tmp_path: Path) -> None:
    before, update, expected = OPTIMISERS[name]
    text = f"""op model(x) = "w" 4 *. x
cd f(x; lr = 0.1) {{
  l = model(x) ++ "...|... => 0"
  backprop(l)
  {before}
  for p in params(l) {{ {update} }}
}}"""
    s = session(tmp_path, text, {"x": "3|4"})
    s.parameters["model.w"] = DRAW.standard_normal(4)
    kept: Values = {}
    w = s.parameters["model.w"].astype(np.float64)
    for _ in range(7):
        x = DRAW.standard_normal((3, 4)).astype(np.float32)
        s(x)
        w = expected(w, x.astype(np.float64).sum(axis=0), kept)
        np.testing.assert_allclose(s.parameters["model.w"], w, rtol=2e-4, atol=1e-5)


def test_names_of_libraries_hide_nothing_and_mean_one_thing(tmp_path: Path) -> None:
    texts = [text_of(name) for name in LIBRARIES]
    assert not set(LAYERS) - {word for text in texts for word in text.replace("(", " ").split()}
    s = session(tmp_path, "op f(x) { m = linear(x; 2); m + 1 }", {"x": "4|3"})
    assert list(s.parameters) == ["linear.w", "linear.b"]
    own = session(tmp_path, "op softmax(x) = x + 1\nop f(x) = softmax(x)", {"x": "4|3"})
    assert (own(np.ones((4, 3), np.float32)) == 2).all()
    local = session(tmp_path, "op f(x) { linear = x + 1; linear *. 2 }", {"x": "4|3"})
    assert (local(np.ones((4, 3), np.float32)) == 4).all()
    unneeded = session(tmp_path, "op exp(x) = x + 1\nop f(x) = exp(linear(x; 2))", {"x": "4|3"})
    assert unneeded(np.zeros((4, 3), np.float32)).shape == (4, 2)
    parameter = session(tmp_path, 'op f(x) = "linear" 3 *. x', {"x": "4|3"})
    assert list(parameter.parameters) == ["linear"]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("op linear(x) = x\nop f(x) = mlp(x; [2], 1)", "E0414", 2, 4),
        ("op exp(x) = x + 1\nop f(x) = softmax(x)", "E0414", 2, 4),
        ("exp = >bo~bo\nop f(x) = softmax(x)", "E0414", 2, 1),
        ("op f(x) = lineer(x; 2)", "E0401", 2, 11),
        ("use nm\nop f(x) = linear(x; 2)", "E0413", 2, 5),
        ("use nn optim\nop f(x) = linear(x; 2)", "E0406", 2, 8),
    ],
)
def test_what_is_wrong_with_names(
    text: str, code: str, line: int, column: int, tmp_path: Path
) -> None:
    with pytest.raises(Error) as caught:
        session(tmp_path, text, {"x": "4|3"})
    span = caught.value.span
    assert span is not None
    assert (caught.value.code, span.line_number(), span.column()) == (code, line, column)


def test_the_tidy_layout_keeps_the_libraries() -> None:
    text = "use  nn ,optim # layers\n\nop f(x)=linear(x;3)\n"
    tidy = format_module(Source("m.i", text))
    assert tidy == "use nn, optim  # layers\n\nop f(x) = linear(x; 3)\n"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_has_a_tidy_layout(library: str) -> None:
    if library != "std":  # which has components and tensor functions of one name
        assert text_of(library) == format_module(Source("m.i", text_of(library)))
        return
    for wired in (True, False):
        text = re.sub(r"\n( *\n)+", "\n", text_of_kind(library, wired))
        assert text == format_module(Source("m.i", text))


CALLS = (
    "linear(a; 3)", "mlp(a; [4], 3)", "conv3(a; 3)", "conv5(a; 3)", "convolve(a, b)", "max_pool2(a)",
    "mean_pool(a)", "softmax(a)", "layer_norm(a)", "batch_norm(a)", "batch_norm2d(a)", "dropout(a, b; 0.5)",
    "cross_entropy(a, b)", "cross_entropy_sum(a, b)", "cross_entropy_at(a, b)", "cross_entropy_sum_at(a, b)",
    "squared_error(a, b)", "attention(a; 2, 3, 4)", "causal_attention(a; 2, 3, 4)", "attention_scores(a, b; 3)",
    "attention_mix(a, b)", "causal_softmax(a)", "transformer_block(a; 4, 2, 8)", "rows_of(a, b)",
    "embedding(a; 5, 4)", "lstm_cell(a, b; 3)",
)  # fmt: skip
SHAPES = ("4|3", "2|2,4", "|", "4,2|3", "5|3->2")


@pytest.mark.deep
@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_shape_or_type_is_told_at_the_call(call: str, tmp_path: Path) -> None:
    """At the line of the user, and with the user's argument beside the library's name for it."""
    names = [name for name in "ab" if re.search(rf"\b{name}\b", call)]
    errors: list[Error] = []
    for dtype in ("", ": i64", ": bool"):
        for number, shape in enumerate(SHAPES):
            given = {"a": shape, "b": SHAPES[number - 1]}
            heads = ", ".join(f"{name}{dtype}" for name in names)
            (tmp_path / "m.i").write_text(f"use nn\nop f({heads}) = {call}\n", encoding="utf-8")
            try:
                explained(tmp_path / "m.i", "f", {name: given[name] for name in names})
            except Error as refused:
                errors.append(refused)
    assert errors
    for error in errors:
        assert error.span is not None
        assert error.span.source.name.endswith("m.i"), str(error)
        told = " ".join([error.message, *(label.text for label in error.labels)])
        assert any(re.search(rf"\b{name}\b", told) for name in names), str(error)


def explained(file: Path, name: str, *shapes: Any) -> None:
    module: Any = load(file)
    module[name].explain(*shapes)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("p(x: i64[b,h,t,s]) = causal_softmax(x)", "E0602", "causal_softmax"),
        ("p = -bhts~bhts >> rows_of", "E0501", "-bhts~bhts"),
        ("op f(a) = softmax(a, a)", "E0420", "softmax(a, a)"),
        ("op f(a) = linear(a)", "E0444", "linear(a)"),
        ("op f(a) = linear(a; out = 3, in = 2)", "E0444", "in = 2"),
        ("op f(a) = attention(a; 1.5, 3, 4)", "E0270", "1.5"),
        ("op f(a, n) = dropout(a, n; 2.0)", "E0272", "2.0"),
        ("op f(a, n) = layer_norm(a; -1) + n", "E0272", "-1"),
        ("op f(a, n) = batch_norm(a; training = 5) + n", "E0272", "5"),
        ("op f(a, n; r = 1) = dropout(a, n; r)", "E0272", "r = 1"),
        ("op f(a) = linear(a; [3])", "E0445", "linear(a; [3])"),
    ],
)
def test_a_wrong_call_is_told_where_it_is(text: str, code: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(f"use nn\n{text}\n", encoding="utf-8")
    arguments = ["f", {"a": "4,5|3"}] if text.startswith("op") else ["p"]
    with pytest.raises(Error) as caught:
        explained(tmp_path / "m.i", *arguments)
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.text() == words


def test_a_file_may_use_the_words_of_a_library(tmp_path: Path) -> None:
    """Names in heads and bodies of a library are its own."""
    text = "use nn\nx = -i~i\nd(table[n]) = x(table)\ntable = +i~.\nids(t[v,d], k: i64[b,t]) = rows_of(t, k)\n"
    (tmp_path / "m.i").write_text(text.replace("table[n]", "y[n]").replace("x(table)", "x(y)"))
    assert load(tmp_path / "m.i")["ids"](np.eye(2), np.array([[1]])).shape == (1, 1, 2)
    (tmp_path / "m.i").write_text("use nn\nz = -i~i\nm = +i~.\nop f(a) = softmax(layer_norm(a))\n")
    assert load(tmp_path / "m.i").session("f", {"a": "4|3"})(np.ones((4, 3))).shape == (4, 3)


@pytest.mark.parametrize("of", ["square(x - t)", "exp(square(x))"])
def test_a_square_matrix_is_no_power(tmp_path: Path, of: str) -> None:
    x = np.ones((4, 3), np.float32)
    with pytest.raises(Error, match="`square` says") as caught:
        session(tmp_path, f"op f(x, t) = {of} +. t", {})(x=x, t=x)
    assert caught.value.code == ("E0450" if "-" in of else "E0512")
    assert "`x *. x`" in caught.value.help
    assert session(tmp_path, 'op f(x) = square("w") * x', {})(x=x).shape == (4, 3)


@pytest.mark.usefixtures("shared_cache")
def test_more_degrees_of_freedom_than_elements_give_no_negative_variance() -> None:
    m = np.arange(12, dtype=np.float32).reshape(3, 4)
    for ddof in (4, 5):
        assert np.isposinf(lib.var(m, axis=1, ddof=ddof)).all()

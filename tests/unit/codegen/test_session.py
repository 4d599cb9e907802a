"""Sessions: parameters by path, state over runs, configuration, sharing, what may be read, and what is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, load

pytestmark = pytest.mark.usefixtures("shared_cache")

MLP = """
op layer(x; hid) = ?/("w" * x + "b" hid)
op mlp(x; out = 2) = "v" * layer(layer(x; 6); 5) + "c" out
op half_squares(p, t) { d = p - t; 0.5 *. (d *. d ++ "...|... => 0") }
cd sgd(p; lr, momentum = 0.0) {
  "delta" =: p.grad
  if momentum > 0 { "velocity" =: momentum *. velocity + delta; delta =: velocity }
  p =- lr *. delta
}
cd step(x, t; lr = 0.1) {
  loss = half_squares(mlp(x), t)
  backprop(loss)
  for p in params(loss) { sgd(p; lr = lr, momentum = 0.5) }
  return loss
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "model.i"
    path.write_text(MLP, encoding="utf-8")
    return load(path)


def test_parameters_without_axes_have_none_in_numpy_either(tmp_path: Path) -> None:
    text = 'cd f(x) { loss = sum("w" 0.5 *. x); backprop(loss); return w.grad }'
    (tmp_path / "f.i").write_text(text, "utf-8")
    for target in ("c", "numpy"):
        one = load(tmp_path / "f.i").session("f", {"x": "3|"}, target=target)
        assert one.parameters["w"].shape == ()
        assert one(np.ones(3, np.float32)) == 3


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_parameters_that_only_the_first_run_reads_stay(target: str, tmp_path: Path) -> None:
    """State that is set once rests on them, so no later run binds them; a caller may read them after each."""
    text = """cd step(x: f64) {
      h = "w" * x + "b" 2 ++ "...|a => ...|a"
      "c" =:@- h
      loss = ("v" * x + "d" 4 ++ "...|a => ...|a") **. 2 ++ "...|... => 0"
      backprop(loss)
      return loss
    }"""
    (tmp_path / "f.i").write_text(text, "utf-8")
    one = load(tmp_path / "f.i").session("step", {"x": "2|3"}, seed=1, target=target)
    before = np.array(one.parameters["w"])
    for _ in range(4):
        one(np.ones((2, 3)))
        np.testing.assert_array_equal(one.parameters["w"], before)
    one.parameters["w"] = 2 * before
    one(np.ones((2, 3)))
    np.testing.assert_array_equal(one.parameters["w"], 2 * before)


def arrays() -> tuple[Any, Any]:
    draw = np.random.default_rng(3)
    return draw.standard_normal((4, 3), np.float32), draw.standard_normal((4, 2), np.float32)


def session(module: Any, **options: Any) -> Any:
    return module.session("step", {"x": "4|3", "t": "4|2"}, seed=1, **options)


def test_paths_shapes_and_initial_values(module: Any) -> None:
    s = session(module)
    shapes = {path: array.shape for path, array in s.parameters.items()}
    assert shapes == {
        "mlp.v": (2, 5),
        "mlp.layer_1.w": (6, 3),
        "mlp.layer_1.b": (6,),
        "mlp.layer_2.w": (5, 6),
        "mlp.layer_2.b": (5,),
        "mlp.c": (2,),
    }
    bound = {"mlp.v": 5, "mlp.layer_1.w": 3, "mlp.layer_2.w": 6}
    for path, values in s.parameters.items():
        if path in bound:
            assert 0 < np.abs(values).max() <= 1 / np.sqrt(bound[path])
        else:
            assert not values.any(), "what is only added begins as zeros"
    again = session(module)
    assert all((again.parameters[path] == s.parameters[path]).all() for path in shapes)


def by_hand(s: Any, x: Any, t: Any, lr: float, velocity: dict[str, Any]) -> float:
    """One step of the same network in NumPy, in f64, into the arrays of ``s``."""
    p = {path: values.astype(np.float64) for path, values in s.items()}
    h1 = np.maximum(0, x @ p["mlp.layer_1.w"].T + p["mlp.layer_1.b"])
    h2 = np.maximum(0, h1 @ p["mlp.layer_2.w"].T + p["mlp.layer_2.b"])
    d = h2 @ p["mlp.v"].T + p["mlp.c"] - t
    g2 = (d @ p["mlp.v"]) * (h2 > 0)
    g1 = (g2 @ p["mlp.layer_2.w"]) * (h1 > 0)
    grads = {
        "mlp.v": d.T @ h2,
        "mlp.c": d.sum(0),
        "mlp.layer_2.w": g2.T @ h1,
        "mlp.layer_2.b": g2.sum(0),
        "mlp.layer_1.w": g1.T @ x,
        "mlp.layer_1.b": g1.sum(0),
    }
    for path, gradient in grads.items():
        velocity[path] = 0.5 * velocity.get(path, 0) + gradient
        s[path] = (p[path] - lr * velocity[path]).astype(np.float64)
    return float(0.5 * (d * d).sum())


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_training_with_momentum_is_what_numpy_gives(module: Any, target: str) -> None:
    s = session(module, target=target)
    x, t = arrays()
    mine = {path: np.array(values, np.float64) for path, values in s.parameters.items()}
    velocity: dict[str, Any] = {}
    for lr in (0.1, 0.1, 0.02):
        s.config["lr"] = lr
        loss = s(x=x, t=t)
        np.testing.assert_allclose(loss, [by_hand(mine, x, t, lr, velocity)], rtol=1e-5)
    for path, values in mine.items():
        np.testing.assert_allclose(s.parameters[path], values, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(
            s.state[f"{path}.velocity"], velocity[path], rtol=1e-3, atol=1e-5
        )
    assert s.value("mlp.v.grad").shape == (2, 5)


def test_predicting_with_what_was_trained(module: Any) -> None:
    s = session(module)
    x, t = arrays()
    predict = module.session("mlp", {"x": "4|3"}, parameters=s)
    before = predict(x=x)
    s(x=x, t=t)
    assert (predict(x=x) != before).any(), "the parameters are one"
    s.parameters["mlp.c"] = [7, 8]
    np.testing.assert_array_equal(predict.parameters["c"], [7, 8])
    predict.parameters["c"] = [1, 2]
    np.testing.assert_array_equal(s.parameters["mlp.c"], [1, 2])


def test_arrays_of_the_caller_stay_as_they_are(module: Any) -> None:
    s = session(module)
    x, t = arrays()
    given = np.full((2, 5), 0.5, np.float32)
    s.parameters["mlp.v"] = given
    copies = x.copy(), t.copy()
    s(x=x, t=t)
    assert (given == 0.5).all()
    assert (x == copies[0]).all()
    assert (t == copies[1]).all()


def test_what_is_fixed_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text("op f(x; n = 2, scale = 1) = scale *. x **. n\n", encoding="utf-8")
    s = load(path).session("f", {"x": "3"}, {"scale": 3})
    s.config["scale"] = 10
    np.testing.assert_array_equal(s([1, 2, 3]), [10, 40, 90])
    with pytest.raises(Error, match="n is fixed") as caught:
        s.config["n"] = 3
    assert caught.value.code == "E0755"


def test_a_run_that_is_refused_changes_nothing(module: Any) -> None:
    s = session(module)
    x, t = arrays()
    s(x=x, t=t)
    before = {path: values.copy() for path, values in {**s.parameters, **s.state}.items()}
    with pytest.raises(Error, match=r"\(4, 3\)"):
        s(x=x[:2], t=t)
    assert all(
        (values == before[path]).all() for path, values in {**s.parameters, **s.state}.items()
    )


ARRAY = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
WHOLE = {
    'cd f(x, n: i64) { t = track(x); "c" =: t *. 3; y = t *. c + f32(n); backprop(y); return t.grad }\n': 3
    * ARRAY,
    'op f(x, n: i64) = x + stop_gradient(x ++ "b|i => |0") + f32(n) *. 0\n': ARRAY + ARRAY.sum(),
    'cd f(x, n: i64) { t = track(x); h = t ++ "b|i => |0"; y = h + t + f32(n) *. 0; backprop(y); return h.grad }\n': [
        12
    ],
    "op f(x, n: i64) = x @| n\n": ARRAY[2],
    'op f(x, n: i64) = einx.mean("b [i]")(x) + f32(n) *. 0\n': ARRAY.mean(1),
    'op f(x[b|k], n: i64) = (x ++ "...|... => 0") /. dim(x, "k") + f32(n) *. 0\n': [
        ARRAY.sum() / 3
    ],
    "op f(x, n: i64) = repeat(x; h in [2, 3]) { x *. h + 1 } + f32(n) *. 0\n": (ARRAY * 2 + 1) * 3
    + 1,
    "op f(x, n: i64) = where(x > 0, x, f32(n))\n": np.where(ARRAY > 0, ARRAY, 2),
    "op f(x, n: i64) = (x > 0) + (x > 1) + f32(n) *. 0\n": (ARRAY > 0) * 1.0 + (ARRAY > 1),
    'op up(a) = prim ~logic:"." { v =: v1; v =@^ 0 } grad { g1 =+ g }\nop f(x, n: i64) = up(x) + f32(n) *. 0\n': (
        np.maximum(ARRAY, 0)
    ),
    'cd f(x, n: i64) { "c" =: x; c =** 2; c =- f32(n); return c }\n': ARRAY**2 - 2,
    'cd f(x, n: i64) { a = x *. 0; "c" =:- a; d = recip(c) + f32(n); return d }\n': (
        np.full_like(ARRAY, np.inf)  # 0 - 0 has no sign
    ),
    'cd f(x, n: i64) { "c" =:+ exp(x) ~logic:"b|i => i"; c =+ f32(n); return c }\n': (
        np.exp(ARRAY).sum(0) + 2
    ),
    "cd f(x, n: i64) { t = track(x); y = t *. t *. f32(n); backprop(y); return t.grad }\n": 4
    * ARRAY,
}


@pytest.mark.parametrize("text", WHOLE)
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_what_texts_mean(text: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(text, encoding="utf-8")
    s = load(path).session("f", {"x": "4|3", "n": ""}, target=target)
    result = s(x=ARRAY, n=np.int64(2))
    np.testing.assert_allclose(result, np.asarray(WHOLE[text], np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("op f(x) = (+ij~i)(x)", lambda x: x.sum(1)),
        ('op f(x) = einx.sum("a [b]")(x)', lambda x: x.sum(1)),
        ('op f(x) = einx.sum("a [...]")(x +. 1)', lambda x: (x + 1).sum(1)),
        ('op f(x) = elementwise("c: a, b -> a + b")(x, einx.sum("a [...]")(x))', lambda x: x + x.sum(1)[:, None]),
    ],
)  # fmt: skip
def test_arrays_say_what_components_are_given(text: str, want: Any, tmp_path: Path) -> None:
    file = tmp_path / "m.i"
    file.write_text(text, "utf-8")
    module = load(file)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for run in (module["f"], module.session("f"), module.session("f", shapes={"x": "2,3"})):
        np.testing.assert_allclose(run(x), want(x))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('op f(x) = (^ij~ij)(x) ++ "...|... => 0"', lambda x: np.exp(x).sum()),
        ('op f(x) = (^ij~ij)(x) ++ "...|...->... => 0"', lambda x: np.exp(x).sum()),
        ('op f(x) = (^ij~ij)(x) ++ "i, j => j|i" ++ "...|... => 0"', lambda x: np.exp(x).sum()),
        ('op f(x) = ((^ij~ij)(x) ++ "...|... => ...|...") + "b" (2, 3)', np.exp),
        ('op f(x) = (^ij~ij)(x) *+ "...|...; ...|... => 0" [| [1; 1; 1]; [2; 2; 2] |]',
         lambda x: (np.exp(x) * [[1], [2]]).sum()),
        ('cd f(x) { y = (^ij~ij)("w" (2, 3) + x) ++ "...|... => 0"; backprop(y); return y, w.grad }',
         lambda x: (np.exp(x).sum(), np.exp(x))),
    ],
)  # fmt: skip
def test_results_of_components_have_output_axes(text: str, want: Any, tmp_path: Path) -> None:
    """Rows that share them, `...|...`, had none of them, and were refused (E0501)."""
    file = tmp_path / "m.i"
    file.write_text(text, "utf-8")
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    given, wanted = load(file).session("f", shapes={"x": "|2,3"})(x), want(x)
    for result, value in zip(
        *((e if isinstance(e, tuple) else (e,)) for e in (given, wanted)), strict=True
    ):
        np.testing.assert_allclose(np.squeeze(result), value, rtol=1e-5)


def test_inputs_are_widened_where_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "m.i"
    file.write_text("op f(x) = x *. 0.5", "utf-8")
    double = load(file)["f"]
    for dtype in ("uint8", "int16", "float16", "uint32"):
        np.testing.assert_array_equal(double(np.array([[1, 255]], dtype)), [[0.5, 127.5]])
    for dtype in ("uint64", "longdouble"):
        with pytest.raises(Error) as caught:
            double(np.ones(2, dtype))
        assert caught.value.code == "E0703"


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_numbers_that_a_type_has_not_are_refused(target: str, tmp_path: Path) -> None:
    """They wrapped, or became infinite, without a word."""
    file = tmp_path / "m.i"
    file.write_text('op f(x: i32) = x + 1\nop g(x) = x *. "w" 2.0\n', "utf-8")
    f, g = load(file).session("f", target=target), load(file).session("g", target=target)
    for _ in range(2):
        np.testing.assert_array_equal(f(np.array([[1, -(2**31)]])), [[2, 1 - 2**31]])
        np.testing.assert_allclose(g(np.array([[1e30, np.inf]])), [[2e30, np.inf]], rtol=1e-6)
        for session, array in ((f, np.array([[1, 2**40]])), (g, np.array([[1.0, 1e300]]))):
            with pytest.raises(Error) as caught:
                session(array)
            assert caught.value.code == "E0758"
            assert str(array[0, 1].item()) in caught.value.message
    with pytest.raises(Error) as caught:
        g.parameters["w"] = np.full(g.parameters["w"].shape, 1e300)
    assert caught.value.code == "E0758"


def test_ranks_that_no_shape_gives_are_not_guessed(tmp_path: Path) -> None:
    file = tmp_path / "m.i"
    file.write_text('op f(x) = einx.sum("a [...]")(x)', "utf-8")
    with pytest.raises(Error) as caught:
        _ = load(file).session("f").inputs
    assert caught.value.code == "E0520"
    assert "x" in caught.value.message


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_gradients_of_one_text_are_two(target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(
        "cd g(x, y) {\n"
        "  a = track(x); b = track(y); loss = a *. b *. b\n"
        "  backprop(loss)\n"
        "  return a.grad, b.grad\n"
        "}\n",
        encoding="utf-8",
    )
    session = load(path).session("g", {"x": "|1", "y": "|1"}, target=target)
    x, y = np.full(1, 3, np.float32), np.full(1, 5, np.float32)
    assert [float(each[0]) for each in session(x, y)] == [25, 30]
    assert session.value("track.grad") == 25
    assert session.value("track_2.grad") == 30


@pytest.mark.parametrize(
    ("body", "shape", "result"),
    [
        ("values(1, 2, 3) *. x", (4, 1, 3), (4, 1, 3)),
        ("(ij(k+u:3)~ijku)(x)", (4, 1, 5), (4, 1, 3, 3)),
        ('einx.id("b (h c) m -> b h c m", h=2)(x)', (4, 6, 1), (4, 2, 3, 1)),
    ],
)
def test_what_rests_on_guessed_sizes_waits_for_arrays(
    body: str, shape: tuple[int, ...], result: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "m.i"
    path.write_text(f"op f(x[b|n,m]) = {body}\n", encoding="utf-8")
    session = load(path).session("f", target="numpy")
    assert session(np.ones(shape, np.float32)).shape == result
    with pytest.raises(Error) as caught:
        load(path)["f"](np.ones((2, 1, 1), np.float32), target="numpy")
    assert caught.value.code in ("E0518", "E0519", "E0577")


@pytest.mark.parametrize(
    ("head", "shape"),
    [("x", "8|3"), ("x[b|h,w,c]", "8|3,2,5"), ("x[t,b|f]", "8,8|3"), ("x[b|4,n]", "8|4,3")],
)
def test_examples_of_shapes_follow_the_head(head: str, shape: str, tmp_path: Path) -> None:
    """What is asked for the shapes of a definition names shapes that it takes."""
    path = tmp_path / "m.i"
    path.write_text(f"use nn\nop f({head}) = linear(x; 4)\n", encoding="utf-8")
    model: Any = load(path)
    with pytest.raises(Error) as caught:
        _ = model.session("f").config
    assert caught.value.help.endswith(f"m.session('f', {{'x': '{shape}'}})")
    with pytest.raises(Error) as caught:
        model["f"].parameters()
    assert caught.value.help.endswith(f"for example --shape x='{shape}'")
    assert model.session("f", {"x": shape}).parameters["linear.w"].shape[0] == 4


def test_a_position_beyond_the_batch_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text("op f(x, n: i64) = x @| n\n", encoding="utf-8")
    s = load(path).session("f", {"x": "4|3", "n": ""})
    with pytest.raises(Error) as caught:
        s(x=ARRAY, n=np.int64(4))
    assert caught.value.code == "E0746"


@pytest.mark.parametrize("target", ["c", "numpy", "cuda-emulated"])
def test_an_element_that_is_no_index_is_named(target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    text = 'rows_of(table[v,d], ids: i64[b]) = (b@vd~bd)(ids, table)\ncd f(n: i64) { "k" =+ 1; '
    path.write_text(text + 'y = rows_of("w" (3, 2), n) *. k; return y }\n', encoding="utf-8")
    s = load(path).session("f", {"n": "|2"}, target=target)
    first = s(n=np.array([0, 2]))
    with pytest.raises(Error, match=r"n\[1\] is 3, which is no index of axis v of extent 3"):
        s(n=np.array([0, 3]))
    np.testing.assert_array_equal(s(n=np.array([0, 2])), 2 * first)


def test_arrays_that_a_caller_has_got_are_not_written_again(module: Any) -> None:
    x, t = arrays()
    s = session(module)
    kept: list[tuple[Any, Any]] = []
    for _ in range(5):
        loss = s(x=x, t=t)
        got = [
            loss,
            *s.parameters.values(),
            *s.state.values(),
            s.value("mlp.c.grad"),
            s.value("mlp.layer_1.w"),
        ]
        kept += [(array, array.copy()) for array in got]
        s(x=x, t=t)
    assert all((array == copy).all() for array, copy in kept)


def test_runs_go_on_from_arrays_that_are_replaced_or_changed_in_place(module: Any) -> None:
    x, t = arrays()
    compiled, plain = session(module), session(module, target="numpy")
    for turn in range(7):
        losses = [float(s(x=x, t=t)[0]) for s in (compiled, plain)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
        for s in (compiled, plain):
            if turn % 3 == 1:
                s.parameters["mlp.c"] = np.full(2, turn / 10)
            if turn % 3 == 2:
                s.parameters["mlp.v"][...] *= 0.5
            s.config["lr"] = 0.1 / (turn + 1)
    for path, values in compiled.parameters.items():
        np.testing.assert_allclose(values, plain.parameters[path], rtol=1e-4, atol=1e-6)


def test_a_session_reads_what_another_trains(module: Any) -> None:
    x, t = arrays()
    s = session(module)
    predict = module.session("mlp", {"x": "4|3"}, parameters=s)
    own = module.session("mlp", {"x": "4|3"})
    for _ in range(5):
        s(x=x, t=t)
        for path, values in s.parameters.items():
            own.parameters[path.removeprefix("mlp.")] = values
        assert (predict(x) == own(x)).all()
    other = session(module, parameters=s)
    before = s.parameters["mlp.c"].copy()
    other(x=x, t=t)
    assert not (s.parameters["mlp.c"] == before).all(), (
        "one that trains what it shares, trains both"
    )
    s(x=x, t=t)
    assert (other.parameters["mlp.c"] == s.parameters["mlp.c"]).all()


NAMED = """
op layer(x) = tanh("w" * x)
cd step(x, t; lr = 0.1) {
  y = layer(x)
  z = y + 1
  loss = (z - t) *. (z - t) ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  "seen" =: seen + 1
  return loss, y
}
"""


def test_values_have_the_names_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(NAMED, encoding="utf-8")
    step: Any = load(tmp_path / "m.i")["step"]
    shaped = step.shaped({"x": "4|3", "t": "4|2"})
    names = [each.name for each in shaped.tensors]
    results = [names[value] for value in shaped.outputs]
    assert results[:4] == ["loss", "y", "next_w", "next_seen"]
    assert "z" in names
    values = {each.name: each for each in step.shape_so_far().values}
    assert values["y"].formula == "layer(x)"
    assert [values[n].kind for n in ("x", "layer.w", "seen", "lr", "loss", "next_w")] == [
        *("input", "parameter", "state", "setting", "named", "update")
    ]


def test_what_heads_write_of_the_same_tensors_is_kept_once(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(
        "op f(x: f32[n], y: f32[n]) = x + y\n"
        "op g(a: f32[n], b: f32[n]) = f(a, b) + f(a, b)\n"
        "op h(a: f32[n], b: f32[n]) = g(a, b) + f(b, a)\n"
        "op other(x: f32[m]) = h(x, x)\n",
        encoding="utf-8",
    )
    module: Any = load(tmp_path / "m.i")
    assert [len(module[name].graph().constraints) for name in ("f", "g", "h")] == [2, 2, 4]
    assert module["h"].parameters({"a": "|4"}) == {}
    with pytest.raises(Error) as caught:
        module["h"].check_so_far({"a": "|4", "b": "|3"})
    assert caught.value.code == "E0510"
    assert len(module["other"].graph().constraints) == 3


def test_what_is_known_before_a_session(module: Any) -> None:
    mlp = module["mlp"]
    s = module.session("mlp", {"x": "4|3"})
    assert mlp.parameters({"x": "4|3"}) == {path: a.shape for path, a in s.parameters.items()}
    rows = {each.name: each.rows for each in mlp.shape_so_far().values if each.name}
    assert rows["c"] == "2"
    assert rows["layer_1.b"] == "6"
    assert rows["x"] == "...|...->..."
    given = {each.name: each.rows for each in mlp.shape_so_far({"x": "4|3"}).values if each.name}
    assert given["x"] == "4|3"
    told = module["step"].explain({"x": "4|3", "t": "4|2"})
    assert [each.path for each in told.parameters] == list(session(module).parameters)
    assert len(told.state) == 6
    assert str(module["step"].check({"x": "4|3", "t": "4|2"})).startswith("step(")
    assert (mlp.session({"x": "4|3"})(arrays()[0]) == s(arrays()[0])).all()
    with pytest.raises(Error) as caught:
        mlp(arrays()[0])
    assert caught.value.code == "E0764"
    assert "v, layer_1.w, layer_1.b and 3 more" in caught.value.message
    with pytest.raises(Error) as caught:
        module["mpl"]
    assert "mlp" in str(caught.value)


def test_the_text_of_a_definition(module: Any) -> None:
    mlp = module["mlp"]
    assert mlp.source("c", {"x": "4|3"}).startswith("/* mlp:")
    assert "__global__" in mlp.source("cuda", {"x": "4|3"})
    assert "for b0 in 0..4" in mlp.loops({"x": "4|3"})
    with pytest.raises(Error) as raised:
        mlp.source("fortran")
    assert raised.value.code == "E0712"
    with pytest.raises(AttributeError, match="`backprop\\(loss\\)` in a `cd`"):
        mlp.grad()
    assert not hasattr(mlp, "other")


def test_arrays_bring_the_shapes_that_are_not_given(module: Any) -> None:
    x, t = arrays()
    s = module.session("step", {"x": "4|3"}, seed=1)
    assert s(x, t) == session(module)(x, t)  # inference knows the shape of t
    late = module.session("mlp", seed=1)
    with pytest.raises(Error) as caught:
        late.parameters["c"]
    assert caught.value.code == "E0520"
    with pytest.raises(Error) as caught:
        late()
    assert caught.value.code == "E0742"
    late.fit(x)
    assert late.parameters["layer_1.w"].shape == (6, 3), "axis 0 is the batch"
    assert (late(x) == module.session("mlp", {"x": "4|3"}, seed=1)(x)).all()


@pytest.mark.parametrize(
    "target", ["c", "numpy", pytest.param("cuda-emulated", marks=pytest.mark.deep)]
)
def test_batches_of_several_sizes(module: Any, target: str) -> None:
    """A session of the first batch refused every other one."""
    x, t = arrays()
    late = module.session("mlp", seed=1, target=target)
    whole = late(x)
    for count in (2, 4, 1, 2):
        assert np.allclose(late(x[:count]), whole[:count], atol=1e-6)
    with pytest.raises(Error) as caught:
        late(x[:, :2])
    assert caught.value.code == "E0754", "features are those of the parameters"
    with pytest.raises(Error) as caught:
        module.session("mlp", {"x": "4|3"}, target=target)(x[:2])
    assert caught.value.code == "E0754", "a shape that is given holds"
    one, other = (module.session("step", seed=1, target=each) for each in (target, "numpy"))
    for _ in range(2):
        for part in (slice(0, 3), slice(3, 4)):
            assert np.allclose(one(x[part], t[part]), other(x[part], t[part]), atol=1e-6)
    for path in one.parameters:
        assert np.allclose(one.parameters[path], other.parameters[path], atol=1e-6)
    with pytest.raises(Error) as caught:
        one(x[:2], t[:3])
    assert caught.value.code == "E0510"
    assert one.runs == 4


def test_a_checkpoint_is_loaded_before_the_first_run(module: Any, tmp_path: Path) -> None:
    """It was refused, as no shape of a parameter was known."""
    x, _ = arrays()
    first = module.session("mlp", {"x": "4|3"}, seed=7)
    said = first(x)
    first.save(tmp_path / "mlp.safetensors")
    late = module.session("mlp")
    assert late.load(tmp_path / "mlp.safetensors")["seed"] == "7"
    assert (late(x) == said).all()
    assert late.runs == 2
    narrow = module.session("mlp")
    narrow.load(tmp_path / "mlp.safetensors")
    for _ in range(2):
        with pytest.raises(Error) as caught:
            narrow(x[:, :2])
        assert caught.value.code == "E0754"


@pytest.mark.parametrize("head", ["x", "x: f64"])
def test_axis_0_of_an_array_is_the_batch(head: str, tmp_path: Path) -> None:
    """A batch of 32 was one example of 32 features, and made another network."""
    path = tmp_path / "m.i"
    path.write_text(f'op net({head}) = "w" * x + "b" 2\nop row(x[i]) = "w" * x + "b" 2\n', "utf-8")
    library = load(path)
    x = np.linspace(-1, 1, 96).reshape(32, 3).astype(np.float32)
    for array, shape in ((x, (2, 3)), (x[:, :1], (2, 1)), (x[:, 0], (2,))):
        session = library.session("net")
        assert session(array).shape == (len(array), 2)
        assert session.parameters["w"].shape == shape
    assert library.session("row")(x[0]).shape == (2,), "a head that writes rows says otherwise"
    session = library.session("net", {"x": "|32,3"})
    assert session(x).shape == (2,), "so does a shape"
    assert session.parameters["w"].shape == (2, 32, 3)


def test_what_was_changed_before_the_first_run_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(
        'op f(x; n = 1.0) = ("b" [ 0.5 ] + n) ++ "i => 0" *. x\nop g(x) = "b" 0.5 *. x\n'
    )
    s = load(path).session("f")
    s.parameters["b"] = np.array([2.0])
    s.config["n"] = 3
    assert s(np.array([[1.0, 2.0]])).tolist() == [[5.0, 10.0]]
    s = load(path).session("g")
    s.parameters["b"] = np.array(2.0)
    with pytest.raises(Error) as caught:
        s(np.ones((1, 2)))
    assert caught.value.code == "E0754"
    assert s.parameters["b"].tolist() == 2.0
    assert s(np.array(3.0)).tolist() == 6.0


@pytest.mark.parametrize("target", ["c", "numpy", "cuda-emulated"])
def test_what_has_no_parameters_is_called_as_it_is(target: str, tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(
        "op scaled(x, y; n = 2) = n *. x + y\n"
        'op rows(x[b|t]) = x ++ "b|t => b|0"\n'
        'op inner(x[i->o]) = x ++ "i->o => i"\n'
        'cd count(x) { "n" =+ x; return n }\n'
    )
    module = load(path)
    scaled, rows = module["scaled"], module["rows"]
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    assert scaled(x, 1.0, target=target).tolist() == (2 * x + 1).tolist()
    one, other = x[:1], x[1:]
    assert scaled(one, y=other, target=target).tolist() == (2 * one + other).tolist()
    tripled = scaled(one, other, config={"n": 3}, target=target)
    assert tripled.tolist() == (3 * one + other).tolist()
    assert rows(x, target=target).tolist() == [[6.0], [15.0]]
    assert module["inner"](x, target=target).tolist() == [5.0, 7.0, 9.0]
    assert module["scaled"] is scaled
    with pytest.raises(Error) as caught:
        module["count"](x)
    assert caught.value.code == "E0764"
    with pytest.raises(Error) as caught:
        scaled(x, x, x)
    assert caught.value.code == "E0756"
    assert "2 arrays, and 3" in caught.value.message


def test_calls_inside_a_shared_definition_have_parameters_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(
        'op inner(x; out) = "w" * x + "b" out\n'
        "op outer(x; out) = tanh(inner(x; out))\n"
        "op net(x) = outer(outer(x; 3); 3)\n"
        "op twice(x) = net(x) + net(2 *. x)\n"
    )
    paths = load(path).session("twice", {"x": "4|3"}).parameters
    assert sorted(paths) == sorted(
        f"net.outer_{n}.inner.{name}" for n in (1, 2) for name in ("w", "b")
    ), "one set for both calls of net, and in it one for each call of outer"


def test_a_routine_that_another_one_calls_has_parameters(tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(
        'cd part(x; k = 2) { "s" =: k *. s + ("b" - x) }\n'
        "cd f(x) { part(x; k = 3); y = x + x; return y }\n"
    )
    assert [*load(path).session("f", {"x": "2|3"}).parameters] == ["part.b"]


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_numbers_alone_have_the_type_of_what_keeps_them(target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text('cd f(x: f64) { "c" =+ x; c =:+ 0.1; return x }\n', encoding="utf-8")
    s = load(path).session("f", {"x": "4|3"}, target=target)
    for _ in range(2):
        s(x=ARRAY.astype(np.float64))
        np.testing.assert_array_equal(s.state["c"], np.full((4, 3), 0.1))


WIDE = """
op f(x: f64) = x + exp2(sin(2 /. 1.25)) + (x > 1) *. 0.1 + sqrt(not (x > 1) + 0.3)
cd ints(x: i64) { "k" =: k + x; return k }
cd truths(x: f64) { "was" =: m; "m" =: x > 1; y = where(was, x, 0); return y }
cd late(x: f64) { z = "s" *. x; s =: x; return z }
cd narrow(x: f64) { "z" =: "s" *. x; s =: x > 1; return z }
"""


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_types_are_those_of_what_numbers_and_state_meet(target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(WIDE, encoding="utf-8")
    module, x = load(path), np.asarray([0.5, 2.0, 3.0])

    def session(name: str) -> Any:
        return module.session(name, {"x": "3"}, target=target)

    above = x > 1
    wanted = x + 2 ** np.sin(2 / 1.25) + above * 0.1 + np.sqrt((1 - above) + 0.3)
    np.testing.assert_allclose(session("f")(x=x), wanted, rtol=1e-14)
    ints, truths, late = session("ints"), session("truths"), session("late")
    whole = np.asarray([1, 2**40, 3])
    ints(x=whole)
    np.testing.assert_array_equal(ints(x=whole), 2 * whole)
    np.testing.assert_array_equal(truths(x=x), [0, 0, 0])
    np.testing.assert_array_equal(truths(x=x[::-1].copy()), [0, 2, 0.5])
    assert truths.state["m"].dtype == np.bool_
    np.testing.assert_allclose(late(x=x), x * x)
    np.testing.assert_array_equal(late.parameters["s"], x)
    with pytest.raises(Error, match="`s` is f64, and what is assigned to it is bool"):
        session("narrow")(x=x)


@pytest.mark.parametrize(
    ("statements", "dtype"),
    [
        ('"k" =: k', "f32"),
        ('"k" =: k + 1', "f32"),
        ('"was" =: k; "k" =: x > 0', "bool"),
        ('"k" =: k + n', "i64"),
        ('"k" =: max(k, n)', "i64"),
        ('"was" =: k; "k" =: i32(x)', "i32"),
        ('"k" =: f64(k) + x', "f64"),
        ('"k" =: where(x > 0, k, 2)', "f32"),
        ('"was" =: k; "k" =: m; "m" =: m + n', "i64"),
        ('"m" =: k + 2; "k" =: i64(x)', "i64"),
        ('"was" =: k; "k" =: (m > 1) *. (x > 0); "m" =: m + n', "f32"),
        ('"k" =: where(x > 0, k, m); "m" =: where(x > 0, k, n)', "i64"),
    ],
)
def test_state_has_the_lowest_type_of_what_it_gets(
    statements: str, dtype: str, tmp_path: Path
) -> None:
    """Through other state, too; no type is tried that what it meets refuses."""
    path = tmp_path / "m.i"
    path.write_text(f"cd f(x, n: i64) {{ {statements}; return x, n }}\n", encoding="utf-8")
    tensors = load(path).session("f", {"x": "3", "n": "3"})._solved.tensors("declared")
    assert next(each.dtype for each in tensors if each.path == "k") == dtype


def test_what_stands_for_a_gradient_says_no_rows(module: Any) -> None:
    from ilang.core.check.graph import verify
    from ilang.core.diagnostic import InternalError
    from ilang.core.explain.graph import graph_text
    from ilang.core.record import replace

    graph = module.session("step", {"x": "4|3", "t": "4|2"})._solved.built.graph
    assert "= stands for v_grad" in graph_text(graph)
    with pytest.raises(InternalError, match="what flows back has the rows of a value"):
        verify(replace(graph, constraints=()))


def test_parameters_are_listed_in_the_order_of_evaluation(module: Any) -> None:
    paths = ["v", "layer_1.w", "layer_1.b", "layer_2.w", "layer_2.b", "c"]
    assert list(session(module).parameters) == [f"mlp.{path}" for path in paths]
    assert list(module.session("mlp", {"x": "4|3"}).parameters) == paths
    state = [f"mlp.{path}.velocity" for path in paths]
    assert list(session(module).state) == state


REFUSED = """
op free(x) = prim ~logic:"." { v =: v1 * v1 }
op layer(x; n) = "w" * x + "b" n
cd keeps(p) { "v" =: 0.5 *. v + p; p =: v }
"""


@pytest.mark.parametrize(
    ("text", "code", "message", "places"),
    [
        ('cd f(x) { l = free("s" 3 + x); backprop(l); return l }', "E0261", "free has no grad", 2),
        ('cd f(x) { "c" =: x; keeps(c); keeps(c); return c }', "E0279", "has state, c.v,", 3),
        ("op f(x) = layer(x; -3)", "E0270", "an extent is a whole number of 1 or more", 2),
        ("op f(x) = layer(x; 0)", "E0270", "an extent is a whole number of 1 or more, not 0", 2),
        ("op f(x) = repeat(x; h in 4) { layer(x; h) }", "E0270", "counts from 0 to 3", 2),
        ("op f(x) = x + [ 1; 2; 3 ] @| 0", "E0512", "takes the first batch axis", 1),
        ('op f(x) = x /. dim(x, "q")', "E0289", "nothing calls an axis of this tensor q", 1),
        ('cd f(x) { y = "s" * x + "b" 2; backprop(y); s =- x; return y }', "E0513", "batch row", 1),
    ],
)
def test_refusals_name_what_they_are_of(
    text: str, code: str, message: str, places: int, tmp_path: Path
) -> None:
    path = tmp_path / "m.i"
    path.write_text(REFUSED + text, encoding="utf-8")
    module: Any = load(path)
    with pytest.raises(Error, match=message) as caught:
        module["f"].explain({"x": "4|3"})
    assert caught.value.code == code
    assert caught.value.help
    assert len(caught.value.labels or [caught.value.span]) == places


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"shapes": {"q": "4|3"}}, "E0756", "step has no input q"),
        ({"shapes": {"x": "n|3"}}, "E0752", "'n|3' is no shape for x"),
        ({"shapes": {"x": (4, 3)}}, "E0752", r"\(4, 3\) is no shape for x"),
        ({"shapes": {"x": f"|{2**62}"}}, "E0507", "below 2\\^62"),
        ({"shapes": {"x": f"|{2**70}"}}, "E0507", "below 2\\^62"),
        ({"config": {"lr": "fast"}}, "E0750", "not 'fast'"),
        ({"config": {"lr": object()}}, "E0750", "is a number or a list of numbers"),
        ({"config": {"lr": 10**400}}, "E0750", "a number or a list of numbers"),
        ({"config": {"lr": 1e300}}, "E0758", "f32 in this session, which has no 1e[+]300"),
        ({"config": {"lr": np.array([[0.5]])}}, "E0750", "a number or a list of numbers"),
        ({"config": [0.5]}, "E0750", "given by name"),
        ({"shapes": ["4|3"]}, "E0752", "given by name"),
        ({"parameters": 3}, "E0756", "those of a session, or arrays by path, not 3"),
        ({"seed": "a"}, "E0756", "the seed is a whole number"),
        ({"keep": ["losss"]}, "E0757", "step has no tensor losss"),
        ({"keep": "lr"}, "E0757", "step has no tensor lr"),
    ],
)
def test_what_sessions_are_not_made_with(
    module: Any, given: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(Error, match=message) as caught:
        module.session("step", **{"shapes": {"x": "4|3", "t": "4|2"}, **given})
    assert caught.value.code == code
    assert caught.value.help or caught.value.span


def test_numbers_of_numpy_are_configuration(module: Any) -> None:
    s = session(module, config={"lr": np.float32(0.5)}, keep="loss")
    x, t = arrays()
    assert s(x=x, t=t) == s.value("loss")
    for number in (np.float32(0.25), np.int64(2), np.array(0.125), True):
        s.config["lr"] = number
        assert s.config["lr"] == number
    for refused, code in ((10**400, "E0750"), (1e300, "E0758"), (np.ones(1), "E0750")):
        with pytest.raises(Error) as caught:
            s.config["lr"] = refused
        assert (caught.value.code, s.config["lr"]) == (code, True)
    with pytest.raises(Error, match="complex64"):
        s(x=x.astype(np.complex64), t=t)


def test_what_they_are_is_printed(module: Any) -> None:
    s = session(module)
    assert repr(s) == "<Session step: 6 parameters, no runs, c>"
    x, t = arrays()
    s(x=x, t=t)
    assert repr(s) == "<Session step: 6 parameters, 1 run, c>"
    assert repr(module.session("step")) == "<Session step: shapes come with the first run>"
    assert repr(module) == "<Library: layer, mlp, half_squares, sgd, step>"


ROWS = """
op late(x, y) = x + (y + y) @| 1
cd whole(x, n: i64[b|]) { y = "w" * x + "b" 3; return y, n }
"""


def test_rows_of_slices_and_of_what_nothing_uses(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(ROWS, encoding="utf-8")
    module: Any = load(path)
    x, y = np.ones((4, 2, 3)), np.arange(6.0).reshape(2, 3)
    late = module.session("late", {"x": "4,2|3", "y": "2|3"}, target="numpy")
    given = {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    np.testing.assert_array_equal(late(**given), x + 2 * y[1])
    rows = {each.name: each.rows for each in module["whole"].shape_so_far().values}
    assert rows["n"] == "?|()"


def test_arrays_of_a_file_are_there_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text("use nn\nop net(x) = linear(x; 2)\n", encoding="utf-8")
    m: Any = load(tmp_path / "m.i")
    s = m.session("net")
    with pytest.raises(Error, match="E0520") as caught:
        _ = s.parameters
    assert "m.session('net', {'x': '8|3'})" in caught.value.help
    s(np.ones((4, 3), np.float32))
    s.save(tmp_path / "net.safetensors")
    later = m.session("net")
    later.load(tmp_path / "net.safetensors")
    assert {path: values.shape for path, values in later.parameters.items()} == {
        "linear.w": (2, 3),
        "linear.b": (2,),
    }
    assert not later.state


def test_files_are_pickled_and_copied_and_sessions_are_not(module: Any) -> None:
    for again in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert repr(again) == repr(module)
        assert repr(again.step) == repr(module.step)
    with pytest.raises(TypeError, match="E0716") as caught:
        copy.deepcopy(module.session("step"))
    assert "s.save(" in str(caught.value)


def test_letters_stand_for_open_sizes(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(
        'op half(x) = "w" *. x + "b" 3\n'
        'eights = einx.id("b (h w) -> b h w", h=8)\n'
        'sevens = einx.id("b (h w) -> b h w", h=7)\n'
        "op wide(x) = eights(x)\nop other(x) = sevens(x)\n"
        'op large(x) = einx.id("b (h w) -> b h w", h=11)(x)\n'
        'op sums(x[rows, cols], y) = einx.id("b x, b y -> b (x + y)")(x, y)\n'
        "use std\nop mean_of(x) = mean(x *. x)\n"
        'cd step(x, t) {\n  d = "w" * half(x) - t\n  loss = d *. d ++ "...|... => 0"\n  backprop(loss)\n'
        "  for p in params(loss) { p =- p.grad }\n  return loss\n}\n"
        'cd both(x, y) { z = "w" * x; s = z + y; return s, x }\n',
        encoding="utf-8",
    )
    m: Any = load(tmp_path / "m.i")
    page = m["both"].shape_by_example()
    assert page.example is not None
    assert page.example.texts() == {"x": "8|3", "y": "8|2"}
    rows = {each.name: each.rows for each in page.values}
    assert [rows[name] for name in ("x", "y", "w", "z")] == ["b|n", "b|m", "n->m", "b|m"]
    assert "  n  output axis of x\n  m  output axis of y\n" in str(page)
    step = m["step"].shape_by_example()
    assert [each.name for each in step.of("named")] == ["d", "loss"]
    assert "returns loss" in str(step)
    wide = m["wide"].shape_by_example()
    assert {each.name: each.rows for each in wide.of("named")} == {"out": "b,8,n/8"}
    assert str(wide).count("?") == 0
    other = m["other"].shape_by_example()
    assert (other.example.texts(), other.values[-1].rows) == ({"x": "8|420"}, "b,7,n/7")
    assert m["large"].shape_by_example().example is None
    sums = {each.name: each.rows for each in m["sums"].shape_by_example().values}
    assert sums == {"x": "rows,cols", "y": "rows,n", "out": "rows,cols+n"}
    mean = m["mean_of"].shape_by_example()
    assert [each.formula for each in mean.of("named")] == ["mean(x *. x)"]


KEEPS = """
op seen(x; keep = 0.5) { "m" [ 1; 2 ] =: keep *. m + (1 - keep) *. (x ++ "b|n => n"); "w" *. (x - m) }
op counted(x) { "n" =: n + 1; x *. n }
cd step(x) { y = seen(x;) ++ "...|... => 0"; backprop(y); for p in params(y) { p =- p.grad }; return y }
cd twice(x) { y = counted(x) + counted(x + 1); return y }
"""


@pytest.mark.parametrize("target", ["c", "numpy", "cuda-emulated"])
def test_a_tensor_function_keeps_what_the_next_run_begins_with(target: str, tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(KEEPS, encoding="utf-8")
    m = load(tmp_path / "m.i")
    s = m.session("step", {"x": "2|2"}, target=target)
    x = np.array([[1, 2], [3, 5]], np.float32)
    w, kept = s.parameters["seen.w"].copy(), np.array([1, 2], np.float32)
    for _ in range(3):
        np.testing.assert_allclose(s(x), [(w * (x - kept)).sum()], rtol=1e-5)
        w, kept = w - (x - kept).sum(axis=0), 0.5 * kept + 0.5 * x.sum(axis=0)
        np.testing.assert_allclose(s.parameters["seen.m"], kept)
        np.testing.assert_allclose(s.parameters["seen.w"], w, rtol=1e-5)
    assert not list(s.state), "it is a parameter that nothing trains"
    n = m.session("counted", {"x": "2|2"}, target=target)
    assert [float(n(x)[1, 1]) for _ in range(3)] == [0, 5, 10]


def test_what_two_calls_would_keep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(KEEPS, encoding="utf-8")
    with pytest.raises(Error) as caught:
        load(tmp_path / "m.i").session("twice", {"x": "2|2"})
    assert caught.value.code == "E0282"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('"m" =+ x; x', "E0132"),
        ('"m" =: m + x', "E0132"),
        ("m =: x; x", "E0132"),
        ('"m" 2.0 =: x; "m" =: x + 1; x + m', "E0423"),
        ('"m" (2, 3) =: x; x + m', "E0510"),
    ],
)
def test_malformed_sayings_of_the_next_run(body: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(f"op f(x) {{ {body} }}\n", encoding="utf-8")
    with pytest.raises(Error) as caught:
        load(tmp_path / "m.i").session("f", {"x": "2|4"})
    assert caught.value.code == code


def test_what_a_library_refuses_tells_the_call_too(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(
        "use nn, optim\ncd step(x) {\n  y = linear(x; 3)\n  for p in params(y) { sgd(p; 0.1) }\n  return y\n}\n"
    )
    with pytest.raises(Error) as caught:
        load(tmp_path / "m.i").session("step", {"x": "4|3"})
    places = [(each.span.source.name, each.span.text()) for each in caught.value.labels]
    assert places == [(str(tmp_path / "m.i"), "sgd(p; 0.1)"), ("optim.i", "p.grad")]
    assert caught.value.span == caught.value.labels[0].span, "the user's line is the first"


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_inputs_come_in_the_order_of_the_head(target: str, tmp_path: Path) -> None:
    """Whatever the order in which the text reads them."""
    (tmp_path / "model.i").write_text("cd f(x, y) { d = y - 2 *. x; return d }\n")
    session = load(tmp_path / "model.i").session("f", {"x": "2", "y": "2"}, target=target)
    x, y = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(session(x, y), [8, 16])
        np.testing.assert_array_equal(session(y=y, x=x), [8, 16])
    assert list(session.inputs) == ["x", "y"]


@pytest.mark.parametrize("given", [{"x": 3}, [3, 4], None, -1, 2**70])
def test_what_is_no_path_is_refused(module: Any, given: Any) -> None:
    step = module.session("step", {"x": "4|3", "t": "4|2"})
    for work, code in ((step.save, "E0725"), (step.load, "E0725"), (step.value, "E0757")):
        with pytest.raises(Error) as caught:
            work(given)
        assert (caught.value.code, bool(caught.value.help)) == (code, True)


def test_gradients_are_read_where_nothing_is_changed(tmp_path: Path) -> None:
    text = """op net(x) = "w" * x + "b" 2
    cd slope(x) { loss = net(x) ++ "...|... => 0"; backprop(loss); return loss }
    """
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    s: Any = load(tmp_path / "m.i").session("slope", shapes={"x": "2|3"})
    s(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(s.value("net.w.grad"), [[2, 2, 2]] * 2)
    with pytest.raises(Error, match="E0757") as caught:
        s.value("gradients")
    assert "net.w.grad" in caught.value.help


def test_arrays_of_a_session_show_their_shapes(tmp_path: Path) -> None:
    file = tmp_path / "m.i"
    file.write_text('op f(x) = "w" * x + "b" 2', "utf-8")
    session = load(file).session("f", {"x": "4|3"})
    assert repr(session.parameters) == "<w: f32[2, 3], b: f32[2]>"
    assert repr(session.state) == "<no arrays>"

"""Operations in einx notation against NumPy, on every target and in every spelling."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import ilang
from ilang import Error, einx, elementwise, i
from ilang.core.pipeline import graph_text

pytestmark = pytest.mark.usefixtures("compiled_quickly")

Array = NDArray[np.float64]


def marked_texts(error: Error) -> list[str]:
    """What an error underlines."""
    if error.labels:
        return [label.span.text() for label in error.labels]
    return [] if error.span is None else [error.span.text()]


def ramp(*shape: int) -> Array:
    """0, 1, 2, ... in a shape."""
    return np.arange(float(np.prod(shape))).reshape(shape)


def noise(*shape: int) -> Array:
    """Normal numbers."""
    return np.random.default_rng(3).standard_normal(shape)


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


X, Y, Z = noise(4, 6), noise(6, 5), noise(2, 4, 8, 3)
P = np.array([[0, 1], [2, 4], [3, 5]])
RESULTS = [
    ("id", "a b -> b a", [X], {}, X.T),
    ("id", "(a b) c -> b a c", [X], {"a": 2}, X.reshape(2, 2, 6).transpose(1, 0, 2)),
    ("id", "(a b) c -> c (a b)", [X], {}, X.T),
    ("id", "a (b c) -> (a c) b", [X], {"b": 3}, X.reshape(4, 3, 2).transpose(0, 2, 1).reshape(8, 3)),
    ("id", "a b -> a 2 b 1", [X], {}, np.broadcast_to(X[:, None, :, None], (4, 2, 6, 1))),
    ("id", "a a -> a", [X[:, :4]], {}, np.diagonal(X[:, :4])),
    ("id", "a c, b c -> (a + b) c", [X, X[:2]], {}, np.concatenate([X, X[:2]])),
    ("id", "a, -> (a + 1)", [X[0], 7.0], {}, np.append(X[0], 7)),
    ("id", "a b, a b -> b a (1 + 1)", [X, -X], {}, np.stack([X.T, -X.T], 2)),
    ("id", "... c -> c ...", [Z], {}, np.moveaxis(Z, -1, 0)),
    ("sum", "a [b]", [X], {}, X.sum(1)),
    ("sum", "a b -> a", [X], {}, X.sum(1)),
    ("sum", "(a [b]) c", [X], {"b": 2}, X.reshape(2, 2, 6).sum(1)),
    ("mean", "b (s [r])... c", [Z], {"r": 4}, Z.reshape(2, 1, 4, 2, 4, 3).mean((2, 4))),
    ("mean", "b (s [r])... c", [Z], {"r": (2, 4)}, Z.reshape(2, 2, 2, 2, 4, 3).mean((2, 4))),
    ("sum", "[...] [...]", [X[:, :4]], {}, X[:, :4].sum()),
    ("mean", "x [s...] [s...] -> x", [Z[:, :2, :2, 0]], {},
     Z[:, :2, :2, 0].mean((1, 2))),
    ("sum", "a 6 -> 2", [X], {}, np.full(2, X.sum())),
    ("max", "(2 a) b -> b a", [X], {}, X.reshape(2, 2, 6).max(0).T),
    ("sum", "(a->) 6", [X], {}, X.sum(0, keepdims=True)),
    ("add", "a b, (a, b)", [X, X[:, 0], X[0]], {}, X + X[:, :1] + X[0]),
    ("id", "(a, b), c -> (a + b + c)", [X[0], X[1], X[2]], {}, X[:3].ravel()),
    ("var", "a [b]", [X], {}, X.var(1)),
    ("std", "[a] b -> 1 b", [X], {}, X.std(0, keepdims=True)),
    ("sum", "([...] [c]) a", [Y], {"c": 3, "keepdims": True}, Y.sum(0, keepdims=True)),
    ("flip", "a ([s...]) -> [s]... a", [X], {"s": (2, 3)}, X[:, ::-1].T.reshape(2, 3, 4)),
    ("flip", "a ([s...]) -> ([s]... a)", [X], {}, X[:, ::-1].T.reshape(24)),
    ("max", "a ([b])", [X], {}, X.max(1, keepdims=True)),
    ("any", "a [b]", [X > 1], {}, (X > 1).any(1)),
    ("count_nonzero", "a [b]", [X > 0], {}, (X > 0).sum(1)),
    ("logsumexp", "a [b]", [X], {}, np.log(np.exp(X).sum(1))),
    ("logsumexp", "a [b]", [np.full((2, 3), -np.inf)], {}, np.full(2, -np.inf)),
    ("add", "a b, b", [X, Y[:, 0]], {}, X + Y[:, 0]),
    ("add", "a [b]", [X, Y[:, 0]], {}, X + Y[:, 0]),
    ("multiply", "a, b, -> b a", [X[0], X[1], 2.0], {}, 2 * X[1][:, None] * X[0]),
    ("floor_divide", "a b, a", [X, X[:, 0]], {}, X // X[:, :1]),
    ("logaddexp", "a b, a", [X, X[:, 0]], {}, np.logaddexp(X, X[:, :1])),
    ("where", "a b, a b, ", [X > 0, X, 0.0], {}, np.where(X > 0, X, 0)),
    ("dot", "a [b->c]", [X, Y], {}, X @ Y),
    ("dot", "a b, b c, c d -> a d", [X, Y, Y.T], {}, X @ Y @ Y.T),
    ("dot", "b (g [c]), g [c] d -> b (g d)", [X, noise(2, 3, 2)], {},
     np.einsum("bgc,gcd->bgd", X.reshape(4, 2, 3), noise(2, 3, 2)).reshape(4, 4)),
    ("flip", "[a a]", [X[:, :4]], {}, X[::-1, 3::-1]),
    ("softmax", "c [a a] -> [a a] c", [Z[:, :2, :2, 0]], {},
     _softmax(Z[:, :2, :2, 0].reshape(2, 4), 1).reshape(2, 2, 2).transpose(1, 2, 0)),
    ("softmax", "a [b]", [X], {}, _softmax(X, 1)),
    ("softmax", "(a [b]) c", [X], {"a": 2}, _softmax(X.reshape(2, 2, 6), 1).reshape(4, 6)),
    ("log_softmax", "[a] b -> b [a]", [X], {}, np.log(_softmax(X, 0)).T),
    ("flip", "a [b]", [X], {}, X[:, ::-1]),
    ("roll", "[a b]", [X], {"shift": (1, -8)}, np.roll(X, (1, -8), (0, 1))),
    ("sort", "a [b]", [X], {}, np.sort(X)),
    ("sort", "([a] b) c", [np.array([[2.0, np.nan], [0, 1], [2, -1], [0, np.nan]])], {"b": 1},
     np.sort(np.array([[2.0, np.nan], [0, 1], [2, -1], [0, np.nan]]), 0)),
    ("argsort", "[a] b -> b [a]", [np.round(X)], {}, np.argsort(np.round(X), 0, kind="stable").T),
    ("argmax", "a [b]", [X], {}, X.argmax(1)[:, None]),
    ("argmin", "[a] b -> b", [X], {}, X.argmin(0)),
    ("argmax", "[a b]", [X], {}, np.array(np.unravel_index(X.argmax(), X.shape))),
    ("argmax", "[(a 1)] -> [n]", [X[0]], {}, X[:1].argmax(1)),
    ("get_at", "[(1 h) w], p [2] -> p", [X, P], {}, X[P[:, 0], P[:, 1]]),
    ("get_at", "[h w], p [2] -> p", [X, P], {}, X[P[:, 0], P[:, 1]]),
    ("get_at", "a [h], p -> p a", [X, P[:, 1]], {}, X[:, P[:, 1]].T),
    ("set_at", "[h w], p [2], p", [X, P, X[0, :3]], {}, None),
    ("add_at", "a [h], p, a", [X, np.array([1, 1, 2]), X[:, 0]], {}, None),
]  # fmt: skip


def expected(op: str, arrays: list[Array]) -> Array:
    """What is stored and added, as NumPy does it."""
    out = arrays[0].copy()
    if op == "set_at":
        out[P[:, 0], P[:, 1]] = arrays[2]
        return out
    for place in arrays[1]:
        out[:, int(place)] += arrays[2]
    return out


@pytest.mark.parametrize("case", RESULTS, ids=lambda case: f"{case[0]} {case[1]}")
def test_against_numpy(case: tuple[str, str, list[Array], dict[str, int], Array | None]) -> None:
    op, text, arrays, parameters, given = case
    want = expected(op, arrays) if given is None else given
    operation = getattr(einx, op)
    before = [np.copy(array) for array in arrays]
    for target in ("c", "numpy"):
        got = operation(text, *arrays, target=target, **parameters)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)
    written = repr(operation(text, **parameters)).removeprefix("<Component ").rpartition(":")[0]
    np.testing.assert_allclose(i(written)(*arrays), want, rtol=1e-12, atol=1e-12)


def test_several_outputs() -> None:
    x = ramp(5, 2)
    first, second = einx.id("(a + b) c -> a c, c b", x, a=2)
    np.testing.assert_array_equal(first, x[:2])
    np.testing.assert_array_equal(second, x[2:].T)
    one, two, three = einx.id("(a + b + c) -> a, b, c", ramp(9), a=2, c=3)
    assert [part.tolist() for part in (one, two, three)] == [[0, 1], [2, 3, 4, 5], [6, 7, 8]]


def test_extents_come_at_run_time() -> None:
    f = einx.mean("(s [r]) c", r=2)
    for n in (0, 2, 6):
        x = ramp(n, 3)
        np.testing.assert_allclose(f(x), x.reshape(-1, 2, 3).mean(1))
    with pytest.raises(Error) as caught:
        f(ramp(5, 3))
    assert caught.value.code == "E0577"
    assert "5" in caught.value.message
    assert "2" in caught.value.message


def test_components_combine() -> None:
    attention = (
        einx.dot("b q (h [d]), b k (h [d]) -> b h q k", h=2)
        >> einx.softmax("b h q [k]")
        >> einx.dot("b h q [k], b [k] (h d) -> b q (h d)")
    )
    q, k, v = noise(2, 3, 4), noise(2, 5, 4)[::-1], noise(2, 5, 6)
    split = [x.reshape(2, -1, 2, x.shape[2] // 2) for x in (q, k, v)]
    weights = _softmax(np.einsum("bqhd,bkhd->bhqk", split[0], split[1]), 3)
    want = np.einsum("bhqk,bkhd->bqhd", weights, split[2]).reshape(2, 3, 6)
    np.testing.assert_allclose(attention(q, k, v), want, rtol=1e-12)
    rows = i('einx.sum("a [b]") >> +i~.')
    assert rows(ramp(2, 3)) == 15


@pytest.mark.parametrize(
    ("op", "text", "shapes", "parameters", "code", "words"),
    [
        ("dot", "a [b], [b] c -> a c", [(2, 3), (4, 5)], {}, "E0505", ["b", "3", "4"]),
        ("id", "(a b) c -> a b c", [(7, 2)], {"a": 2}, "E0577", ["7", "2", "a"]),
        ("id", "(a b) c -> c (b a)", [(6, 2)], {}, "E0578", ["a", "b"]),
        ("sum", "a (b [c])", [(2, 6)], {}, "E0578", ["b", "c"]),
        ("id", "a b -> a", [(2, 3)], {}, "E0506", ["b", "3", "1"]),
        ("id", "(a + b) -> a, b", [(5,)], {"a": 7}, "E0518", ["5", "7"]),
        ("get_at", "[h w], p -> p", [(3, 3), (4,)], {}, "E0228", ["2", "1"]),
        ("argmax", "[a (b c)] -> [3]", [(3, 6)], {}, "E0578", ["b", "c"]),
        ("roll", "[(a b)]", [(6,)], {"shift": 1}, "E0578", ["a", "b"]),
        ("get_at", "[(a b)] [c], p [3] -> p", [(6, 2), (4, 3)], {}, "E0578", ["a", "b"]),
        ("add_at", "[(a b)], p [2], p", [(6,), (4, 2), (4,)], {}, "E0578", ["a", "b"]),
        ("argmin", "[(a b)] -> [n]", [(6,)], {}, "E0578", ["a", "b"]),
        ("argmin", "[(a b...)] -> [n]", [(6,)], {"a": 2}, "E0540", ["`b...`"]),
        ("argmax", "[...] b -> b [0]", [(3,)], {}, "E0228", ["[...] b"]),
        ("set_at", "[...] b, p [0], p", [(3,), (2, 0), (2,)], {}, "E0228", ["[...] b"]),
        ("argmax", "b [...] [s...] -> b [3]", [(3, 2, 3, 2)], {}, "E0540", ["`...`", "`s...`"]),
        ("id", "(a b b...) -> b... a", [(12,)], {"b": (2, 5)}, "E0541", ["b"]),
        ("sum", "(a (s [t])...)", [(18,)], {"a": 2, "s": (3, 1)}, "E0578", ["t_0", "t_1"]),
        ("sum", "(a (s [t])...)", [(18,)], {"a": 4, "s": (3, 1)}, "E0544", ["18"]),
    ],
)
def test_refused(
    op: str,
    text: str,
    shapes: list[tuple[int, ...]],
    parameters: dict[str, int],
    code: str,
    words: list[str],
) -> None:
    arrays = [ramp(*shape) for shape in shapes]
    with pytest.raises(Error) as caught:
        getattr(einx, op)(text, *arrays, **parameters)
    assert caught.value.code == code
    assert all(word in caught.value.message for word in words), caught.value.message
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("op", "text", "name", "shapes"),
    [
        ("id", "a b -> a", "b", [(2, 3)]),
        ("dot", "[a] b, b c -> c", "b", [(1, 3), (3, 4)]),
        ("add", "a b, a -> a", "b", [(2, 3), (2,)]),
    ],
)
def test_the_axis_that_no_output_has_is_told(
    op: str, text: str, name: str, shapes: list[tuple[int, ...]]
) -> None:
    with pytest.raises(Error) as caught:
        getattr(einx, op)(text, *(ramp(*shape) for shape in shapes))
    assert f"`[{name}]`, or write it in the output" in (caught.value.help or "")


def test_coordinates() -> None:
    x = ramp(4, 5)
    with pytest.raises(ilang.DataError) as caught:
        einx.get_at("[h w], p [2] -> p", x, np.array([[0, 5]]))
    assert caught.value.code == "E0746"
    small = np.array([[3, 4]], np.uint8)
    assert einx.get_at("[h w], p [2] -> p", np.tile(x, (50, 60)), small) == x[3, 4]
    with pytest.raises(ilang.ElementTypeError):
        einx.get_at("[h], p -> p", x[0], np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("text", "shapes", "sizes", "solved"),
    [
        ("(a b c)", [(12,)], {"a": 2, "b": 3}, {"a": 2, "b": 3, "c": 2}),
        ("(a b) c, c a", [(6, 5), (5, 2)], {}, {"a": 2, "b": 3, "c": 5}),
        ("(a + b) (a + c) (b + c)", [(5, 6, 7)], {}, {"a": 2, "b": 3, "c": 4}),
        ("(a b) (b c) (a c)", [(6, 12, 8)], {}, {"a": 2, "b": 3, "c": 4}),
        ("(a a)", [(9,)], {}, {"a": 3}),
        ("(a b) 3", [(1, 3)], {}, {"a": 1, "b": 1}),
        ("b (s p)...", [(1, 4, 6)], {"p": 2}, {"b": 1, "s": [2, 3], "p": [2, 2]}),
        ("... a", [(1, 4, 6)], {}, {"a": 6}),
    ],
)
def test_sizes_alone(
    text: str, shapes: list[tuple[int, ...]], sizes: dict[str, int], solved: dict[str, object]
) -> None:
    found = einx.solve_axes(text, *(ramp(*shape) for shape in shapes), **sizes)
    assert {name: np.asarray(size).tolist() for name, size in found.items()} == solved
    assert einx.matches(text, *(ramp(*shape) for shape in shapes), **sizes)


@pytest.mark.parametrize(
    ("text", "shapes", "code"),
    [
        ("(a + b) (a b)", [(5, 6)], "E0578"),
        ("(a b)", [(6,)], "E0578"),
        ("(a + b)", [(6,)], "E0521"),
        ("(a b) c", [(0, 2)], "E0578"),
        ("(a b), c", [(6,), (0,)], "E0578"),
        ("(a a)", [(8,)], "E0544"),
        ("a a", [(2, 3)], "E0505"),
        ("a b", [(2,)], "E0503"),
        ("a, a", [(2,)], "E0701"),
    ],
)
def test_sizes_that_are_not_there(text: str, shapes: list[tuple[int, ...]], code: str) -> None:
    with pytest.raises(Error) as caught:
        einx.solve_axes(text, *(ramp(*shape) for shape in shapes))
    assert caught.value.code == code


def test_shapes_alone() -> None:
    x = ramp(12, 3)
    assert einx.solve_shapes("(a...) b", x) == ((12, 3),)
    assert einx.solve_shapes("(a b) c, a c", x, None, b=4) == ((12, 3), (3, 3))
    assert einx.solve_shapes("(a + b) c", x) == ((12, 3),)
    assert not einx.matches("a a", x)
    assert einx.matches("(a + b) b", x)
    assert not einx.matches("(a + b) b", x.T)
    with pytest.raises(ilang.NotationError):
        einx.matches("a (b", x)


def test_nothing_is_guessed() -> None:
    for text in ("(a + b) -> a, b", "(a + b + c) -> a, b, c"):
        with pytest.raises(ilang.ShapeError) as caught:
            einx.id(text, ramp(5), **({"a": 2} if "c" in text else {}))
        assert caught.value.code == "E0521"


def test_sizes_that_one_shape_gives() -> None:
    np.testing.assert_array_equal(einx.id("(a a) -> a", ramp(9)), [0, 4, 8])
    with pytest.raises(ilang.ShapeError) as caught:
        einx.id("(a a) -> a")(ramp(9))
    assert caught.value.code == "E0578"


def test_made_operands() -> None:
    asked = []

    def make(shape: tuple[int, ...]) -> Array:
        asked.append(shape)
        return np.ones(shape)

    np.testing.assert_array_equal(einx.multiply("... c, c", ramp(2, 3), make), ramp(2, 3))
    assert asked == [(3,)]


def test_operations_by_name() -> None:
    np.testing.assert_array_equal(einx.reduce("a [b]", X, op="max"), X.max(1))
    np.testing.assert_array_equal(einx.reduce("a [b]", X, op=einx.max), X.max(1))
    both = einx.elementwise("a, b -> a b", X[0], X[1], op="subtract")
    np.testing.assert_array_equal(both, X[0][:, None] - X[1])
    np.testing.assert_allclose(einx.vmap("a [b]", X, op="softmax"), _softmax(X, 1))
    for form, op in (("reduce", "add"), ("elementwise", "sum"), ("vmap", len)):
        with pytest.raises(ilang.NotationError) as caught:
            getattr(einx, form)("a [b]", X, op=op)
        assert caught.value.code == "E0165"


def test_explained_stage_by_stage() -> None:
    (row,) = einx.mean("b (s [r])... c", r=2).explain((2, 4, 8, 3)).operations
    assert [(stage.subject, stage.says) for stage in row.stages] == [
        ("in full", "b (s [r])... c -> b (s)... c"),
        ("ellipsis", "(s [r])... 2 times: in0 has rank 4, and `b (s [r])... c` 2 dimensions beside it"),
        ("repeated", "b (s_0 [r_0]) (s_1 [r_1]) c -> b (s_0) (s_1) c"),
        (
            "equations",
            "; ".join(
                [f"dimension {n} of in0 = {of}" for n, of in enumerate(["b", "s_0·r_0", "s_1·r_1", "c"])]
                + ["r_0 = 2", "r_1 = 2"]
            ),
        ),
        ("solution", "b = 2; s_0 = 2; r_0 = 2; s_1 = 4; r_1 = 2; c = 3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ('einx.id("a b -> b a")', "ij~ji"),
        ('einx.id("(a b) c -> c (a b)")', "ij~ji"),
        ('einx.sum("a [b]")', "+ij~i"),
        ('einx.max("[a] b")', ">ij~j"),
        ('einx.subtract("a b, b")', "ij-j~ij"),
        ('einx.dot("a [b->c]")', "ij*jk~ijk >> +ijk~ik"),
    ],
)
def test_the_same_in_index_expressions(text: str, index: str) -> None:
    (row,) = i(text).explain().operations
    assert row.stages[-1].subject == "the same"
    assert row.stages[-1].says == index
    arrays = [X, Y] if "dot" in text else [X, X[0]][: i(text).takes()]
    np.testing.assert_allclose(i(text)(*arrays), i(index)(*arrays), rtol=1e-12)


def test_schedules() -> None:
    text = 'einx.dot("q d, key d -> q key") | q:4 | q key d q\''
    np.testing.assert_allclose(i(text)(X, X), X @ X.T, rtol=1e-12)
    assert repr(i(repr(i(text)).removeprefix("<Component ").rpartition(": ")[0])) == repr(i(text))
    for refused, code in (
        ('einx.mean("a [b]") || a b', "E0330"),
        ('einx.id("a, b -> (a + b)") || a', "E0330"),
        ('einx.sum("a [b]") || a', "E0306"),
    ):
        with pytest.raises(ilang.ScheduleError) as caught:
            i(refused).explain()
        assert caught.value.code == code


PRODUCT = i("i*i~i >> +i~.")
TOLD = [
    ("vmap", "a [b], [b] c -> c a", [X, Y], PRODUCT, (X @ Y).T),
    ("vmap", "(a [6]) -> a", [X.ravel()], i("+i~."), X.sum(1)),
    ("vmap", "a [b] -> a [c]", [X], i("+(i+k:2)~i"), X[:, :-1] + X[:, 1:]),
    ("vmap", "... [a b] -> [b] ... [a]", [Z], i("ij~ji"), np.moveaxis(Z, 3, 0)),
    ("vmap", "a a [b c] -> a", [Z[:, :2]], einx.sum("[...]"), Z[[0, 1], [0, 1]].sum((1, 2))),
    ("vmap", "n [a b], n [b] -> n [a]", [Z[0], Z[0, :, 0]], i('einsum("ij,j->i")'),
     np.einsum("nab,nb->na", Z[0], Z[0, :, 0])),
    ("vmap", "[v] d, p -> p d", [X, P[:, 0]], i("f(t[v], p) = (.@v~.)(p, t)"), X[P[:, 0]]),
    ("vmap", "[b], [n], p -> p [b]", [Y[0], P[0, 1:], X[1, :2]], einx.set_at("[b], [1], "),
     np.stack([np.where(np.arange(5) == 1, x, Y[0]) for x in X[1, :2]])),
    ("reduce", "[a] b", [X], i("(I & I) >> i*i~i >> +i~."), (X * X).sum(0)),
    ("elementwise", "a, b -> a b", [X[0], X[1]], i(".-.~."), np.subtract.outer(X[0], X[1])),
    ("elementwise", "a b, a", [X, X[:, 0]], i(".*.~."), X * X[:, :1]),
    ("vmap", "a [b] -> a [b]", [X], i('einsum("...|i => ...|i")'), X),
    ("vmap", "n [b o i], [b i] n -> [b o] n", [Z, Z[:, :, 0].transpose(1, 2, 0)],
     i('einsum("...|i->o; ...|i => ...|o")'), np.einsum("nboi,nbi->bon", Z, Z[:, :, 0])),
    ("vmap", "n [b i] -> n [b]", [Z[0]], i('einsum("...i->...")'), Z[0].sum(2)),
    ("vmap", "n [a b], n [b] -> n [a b]", [Z[0], Z[0, :, 0]], elementwise("f", ["x0 * x1"]),
     Z[0] * Z[0, :, :1]),
    ("elementwise", "a, b -> a b", [X[0], X[1]], elementwise("f", ["x0 - x1"]),
     np.subtract.outer(X[0], X[1])),
]  # fmt: skip


@pytest.mark.parametrize("case", TOLD, ids=lambda case: f"{case[0]} {case[1]}")
def test_components_along_axes(case: tuple[str, str, list[Array], ilang.Component, Array]) -> None:
    form, text, arrays, op, want = case
    got = getattr(einx, form)(text, *arrays, op=op, target="numpy")
    np.testing.assert_allclose(got, want, rtol=1e-12, strict=True)
    component = getattr(einx, form)(text, op=op)
    written = repr(component).removeprefix("<Component ").rpartition(": ")[0]
    if "op=f)" in written:  # a definition, which a text alone does not have
        return
    read = i(written)
    assert graph_text(read.graph()) == graph_text(component.graph())
    np.testing.assert_allclose(read(*arrays, target="numpy"), want, rtol=1e-12, strict=True)


IN_TEXT = [
    ('einx.reduce("a [b]", op="sum")', [X], X.sum(1)),
    ("einx.reduce('a [b]', op=einx.max)", [X], X.max(1)),
    ('einx.elementwise("a, b -> a b", op="subtract")', [X[0], X[1]], np.subtract.outer(X[0], X[1])),
    ('einx.vmap("a [b]", shift=2, op="roll")', [X], np.roll(X, 2, 1)),
    ('einx.vmap("(a c) [b] -> a c", op=((I & I) >> i*i~i >> +i~.), c=2, )', [X],
     (X * X).sum(1).reshape(2, 2)),
    ('einx.vmap("a [b] -> a", op=i("+i~."))', [X], X.sum(1)),
    ('einx.vmap("a [b] -> a", op=einx.vmap("(c [d]) -> c", d=3, op=einsum("d->")) >> +i~.)', [X], None),
    ('einx.vmap("a [b] -> a", op=(einx.vmap("(c [d]) -> c", d=3, op=einsum("d->")) >> +i~.))', [X],
     X.sum(1)),
    ('einx.vmap("n [a b], n [b] -> n [a b]", op=elementwise("f: x, y -> x * y"))',
     [Z[0], Z[0, :, 0]], Z[0] * Z[0, :, :1]),
    ('einx.vmap("n [...], n [b] -> n [...]", op=elementwise("f: x, y -> x * y"))',
     [Z[0], Z[0, :, 0]], Z[0] * Z[0, :, :1]),
    ('einx.vmap("n [...] -> n [a b]", op=(elementwise("c: x -> -x") >> elementwise("f: x -> x - 1")))',
     [Z[0]], -Z[0] - 1),
    ('einx.reduce("n [...]", op=(elementwise("f: x -> sum 1: x") >> +i~.))',
     [Z[0]], Z[0].sum((1, 2))),
    ('einx.vmap("a [b] -> a [b]", op=f32) >> ij~ji', [X], X.astype(np.float32).T),
]  # fmt: skip


@pytest.mark.parametrize("case", IN_TEXT, ids=lambda case: case[0])
def test_what_programs_are_told(case: tuple[str, list[Array], Array | None]) -> None:
    text, arrays, want = case
    if want is None:
        with pytest.raises(ilang.NotationError) as caught:
            i(text)
        assert caught.value.code == "E0112"
        return
    for target in ("numpy", "c", *(["cuda-emulated"] if "vmap" in text else [])):
        np.testing.assert_allclose(i(text)(*arrays, target=target), want, rtol=1e-6, strict=True)


FILE = """
row   = (I & +i~.) >> i/.~i
whole = einx.vmap("a [b] -> a [b]", op=row)
named(x[a,b]) = { y = einx.vmap("a [b] -> b", op=(row >> total))(x); y }
total = +i~.
op scaled(x) = einx.vmap("[a] b -> [a] b", op=row)(x) *. 2
op loss(x) = einx.reduce("[a b]", op="sum")(whole("w" * x))
"""


def test_files_tell_definitions(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(FILE.replace('a [b] -> b"', 'a [b] -> a"'), "utf-8")
    file = ilang.load(path)
    rows = X / X.sum(1, keepdims=True)
    np.testing.assert_allclose(file["whole"](X), rows)
    np.testing.assert_allclose(file["named"](X), np.ones(4))
    scaled = file.session("scaled", shapes={"x": "4|6"})(x=X.astype(np.float32))
    np.testing.assert_allclose(scaled, 2 * X / X.sum(0), rtol=1e-5)
    one, other = (
        file["whole"].grad()(X, X),
        i("(+ij~i & I) >> ij/i~ij".replace("(+ij~i & I)", "(I & +ij~i)")).grad()(X, X),
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
    # Definitions of two files of the same name stay apart.
    path.write_text(
        'row = (I & >i~.) >> i-.~i\nwhole = einx.vmap("a [b] -> a [b]", op=row)\n', "utf-8"
    )
    both = file["whole"] >> ilang.load(path)["whole"]
    np.testing.assert_allclose(both(X), rows - rows.max(1, keepdims=True))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("op half(x) = x *. 0.5\nf = einx.vmap(\"a [b] -> a [b]\", op=half)", ["half"]),
        ("op half(x) = x *. 0.5\nop f(x) = einx.vmap(\"a [b] -> a [b]\", op=half)(x)", ["half", "op half(x)"]),
        ("op half(x) = x *. 0.5\nop f(x) = (half >> f32)(x)", ["half", "op half(x)"]),
        ("cd run(x) { return x }\nop f(x) = (run >> f32)(x)", ["run", "cd run(x)"]),
    ],
)  # fmt: skip
def test_no_tensor_function_is_told(text: str, marked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(text, "utf-8")
    with pytest.raises(ilang.ModuleError) as caught:
        ilang.load(path)
    assert caught.value.code == "E0440"
    assert marked_texts(caught.value) == marked
    path.write_text("op half(x) = x *. 0.5\n", "utf-8")
    with pytest.raises(ilang.ModuleError) as told:
        einx.vmap("a [b] -> a [b]", X, op=ilang.load(path)["half"])
    assert told.value.code == "E0441"
    assert "half" in told.value.message


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ('einx.reduce("a [b]", op="sam")', "E0165", ["sam"]),
        ('einx.reduce("a [b]", op="add")', "E0165", ["add"]),
        ('einx.reduce("a [b]", op=total)', "E0401", ["total"]),
        ('einx.reduce("a [b]", op=+i~.)', "E0112", ["+i~."]),
        ('einx.reduce("a [b]", op=I >> +i~.)', "E0112", [">>"]),
        ('einx.reduce("a [b]", op=3)', "E0112", ["3"]),
        ('einx.reduce("a [b]", op=einx.)', "E0112", [")"]),
        ('einx.reduce("a [b]", op=(+i~.)', "E0110", ["("]),
        ('einx.reduce("a [b]", op=(+i~.', "E0110", ["("]),
        ('einx.reduce("a [b]", op="sum', "E0112", ['"']),
        ('einx.reduce("a [b]")', "E0229", ["reduce"]),
        ('einx.reduce("a [b]", op="sum", op="max")', "E0166", ["op"]),
        ('einx.sum("a [b]", op="max")', "E0166", ['"']),
        ('einx.reduce("a [b]", op=(i*i~i >> +i~.))', "E0221", ["a [b]", "i*i~i >> +i~."]),
        ('einx.reduce("a [b]", op=(+i~. & *i~.))', "E0221", ["a [b]", "+i~. & *i~."]),
        ('einx.vmap("a [b] -> a, a", op=(+i~.))', "E0221", ["a, a", "+i~."]),
        ('einx.vmap("a [b c] -> a", op=(+i~.))', "E0503", ["a [b c]", "+i~."]),
        ('einx.vmap("a [b] -> a [b]", op=(+i~.))', "E0226", ["a [b]", "+i~."]),
        ('einx.vmap("a [b...] -> a", op=elementwise("f: x -> x"))', "E0508", ["a [b...]"]),
    ],
)  # fmt: skip
def test_what_programs_must_not_be_told(text: str, code: str, marked: list[str]) -> None:
    with pytest.raises(Error) as caught:
        i(text).explain()
    error = caught.value
    assert error.code == code
    assert marked_texts(error) == marked
    assert error.help or error.code in ("E0110", "E0112")


@pytest.mark.parametrize(
    ("operation", "shapes", "hint"),
    [
        ('id("(a + b) c -> b c, a c", a=1)', [(3, 4)], "their names suggest `-> a c, b c`"),
        ('id("a b, c -> c, a b")', [(3, 4), (4,)], "their names suggest `-> a b, c`"),
        ('add("a b, b")', [(4,), (3, 4)], "and in1, in0 would fit"),
        ('where("a, b, a b")', [(3, 4), (3,), (4,)], "and in1, in2, in0 would fit"),
        ('dot("a b, b c -> a c")', [(4, 5), (3, 4)], "and in1, in0 would fit"),
        ('add("a b, 3")', [(2, 2), (3,)], "for the number leave it out, and pass 3"),
        ('dot("a b, b c -> a c")', [(3, 4), (3, 4)], None),
        ('add("a, b -> a b")', [(3,), (4, 5)], None),
    ],
)
def test_refusals_say_which_order_would_fit(
    operation: str, shapes: list[tuple[int, ...]], hint: str | None
) -> None:
    component = i(f"einx.{operation}")
    arrays = [np.ones(shape) for shape in shapes]
    for call in (lambda: component(*arrays), lambda: component.explain(*shapes)):
        with pytest.raises(ilang.ShapeError) as caught:
            call()
        words = caught.value.help or ""
        assert "by position" not in words if hint is None else words.endswith(hint)
        assert words.count("by position") < 2


def test_explanations_say_which_order_names_suggest() -> None:
    told = str(i('einx.id("(q + k) d -> k d, q d", q=1)').explain((2, 3), verbose=True))
    assert "pieces go by position, and their names suggest `-> q d, k d`" in told
    assert "position" not in str(i('einx.id("(q + k) d -> q d, k d", q=1)').explain((3, 3)))


def test_nothing_is_told_without_end() -> None:
    inner = "+i~."
    for _ in range(20):
        inner = f'einx.vmap("[a] -> ", op=({inner}))'
    np.testing.assert_allclose(i(inner)(X[0], target="numpy"), X[0].sum())
    with pytest.raises(ilang.NotationError) as caught:
        i(f'einx.vmap("[a] -> ", op=({inner}))').graph()
    assert caught.value.code == "E0114"


def test_several_results_along_axes() -> None:
    f = einx.vmap("n [a b] -> n [b], [a] n", op=einx.sum("[a] b") & einx.mean("a [b]"))
    total, mean = f(Z[0])
    np.testing.assert_allclose(total, Z[0].sum(1))
    np.testing.assert_allclose(mean, Z[0].mean(2).T)
    np.testing.assert_allclose((f >> (i("+ij~.") | "I"))(Z[0])[0], Z[0].sum())
    row = i("(I & +i~.) >> i/.~i")
    given = einx.vmap("a [b] -> a [b]", op=row).grad()(X, X, target="numpy")
    np.testing.assert_allclose(given, [row.grad()(x, x, target="numpy") for x in X])


@pytest.mark.parametrize(
    ("text", "op", "code"),
    [
        ("a [b] -> a [b]", i("+i~."), "E0226"),
        ("a [b] -> a", i("+ij~i"), "E0503"),
        ("a [b], [b] -> a", i("+i~."), "E0221"),
        ("a [b]", i("+i~."), "E0222"),
        ("a [b] -> [b]", i("I >> f32"), "E0506"),
        ("a [b] -> a", i("f(x: i64[n]) = (+n~.)(x)"), "E0604"),
        ("a [b] -> a", i("f(x[3]) = (+n~.)(x)"), "E0506"),
    ],
)
def test_what_does_not_go_along_axes(text: str, op: ilang.Component, code: str) -> None:
    with pytest.raises(Error) as caught:
        einx.vmap(text, *([X] * (1 + text.count(","))), op=op)
    assert caught.value.code == code

"""The functions of einops, with its patterns, against NumPy."""

import numpy as np
import pytest

from ilang import Error, einops
from ilang.einops import pack, parse_shape, rearrange, reduce, repeat, unpack

X = np.random.default_rng(2).standard_normal((2, 4, 6, 3))


def test_rearrange() -> None:
    np.testing.assert_array_equal(rearrange(X, "b h w c -> b c h w"), X.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(
        rearrange(X, "b h w c -> b (c h w)"), X.transpose(0, 3, 1, 2).reshape(2, -1)
    )
    np.testing.assert_array_equal(
        rearrange(X, "b ... c -> b c (...)"), X.reshape(2, 24, 3).transpose(0, 2, 1)
    )
    tiles = X.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(12, 2, 2, 3)
    np.testing.assert_array_equal(
        rearrange(X, "b (h h1) (w w1) c -> (b h w) h1 w1 c", h1=2, w1=2), tiles
    )
    np.testing.assert_array_equal(rearrange(X, "b(h h1)(w w1)c->(b h w)h1 w1 c", h1=2, w1=2), tiles)
    np.testing.assert_array_equal(rearrange(list(X), "b h w c -> (b h) w c"), X.reshape(8, 6, 3))
    np.testing.assert_array_equal(rearrange(X, "b h w c -> b h w c () 1"), X[..., None, None])


def test_reduce() -> None:
    np.testing.assert_allclose(reduce(X, "b h w c -> b c", "mean"), X.mean((1, 2)))
    pooled = X.reshape(2, 2, 2, 3, 2, 3).max((2, 4))
    np.testing.assert_array_equal(reduce(X, "b (h 2) (w 2) c -> b h w c", "max"), pooled)
    np.testing.assert_allclose(
        reduce(X, "b ... -> b () ()", "sum"), X.sum((1, 2, 3))[:, None, None]
    )
    np.testing.assert_allclose(reduce(X, "b ... c -> c b", "min"), X.min((1, 2)).T)


def test_repeat() -> None:
    x = X[0, :, :, 0]
    np.testing.assert_array_equal(repeat(x, "h w -> h w c", c=3), np.repeat(x[..., None], 3, 2))
    np.testing.assert_array_equal(repeat(x, "h w -> (h 2) w"), np.repeat(x, 2, 0))
    np.testing.assert_array_equal(repeat(x, "h w -> (2 h) w"), np.tile(x, (2, 1)))


def test_pack_and_unpack() -> None:
    tensors = [X[:, 0, 0], X[:, 0], X]
    packed, shapes = pack(tensors, "b * c")
    assert shapes == [(), (6,), (4, 6)]
    want = np.concatenate([t.reshape(2, -1, 3) for t in tensors], 1)
    np.testing.assert_array_equal(packed, want)
    for one, other in zip(unpack(packed, shapes, "b * c"), tensors, strict=True):
        np.testing.assert_array_equal(one, other)
    assert unpack(packed[:, :0], [], "b * c") == []
    parts = unpack(packed, [(1,), (-1,)], "b * c")
    assert [part.shape for part in parts] == [(2, 1, 3), (2, 30, 3)]


def test_parse_shape() -> None:
    assert parse_shape(X, "batch h _ _") == {"batch": 2, "h": 4}
    assert parse_shape(X, "... c") == {"c": 3}
    assert parse_shape(X[:, :1], "_ () w 3") == {"w": 6}


def test_einsum() -> None:
    x, y = X[0, :, :, 0], X[1, :, :, 1]
    np.testing.assert_allclose(einops.einsum(x, y, "row width, other width -> row other"), x @ y.T)
    np.testing.assert_allclose(einops.einsum(X, "... c -> ..."), X.sum(-1))
    np.testing.assert_allclose(einops.einsum(x, x, "a b, a b ->"), (x * x).sum())


def test_a_function_is_no_reduction() -> None:
    with pytest.raises(Error, match="there is no reduction max") as caught:
        reduce(X, "b h w c -> b", np.max)  # type: ignore[call-overload]
    assert str(caught.value.help).startswith("it is a text, one of 'sum', 'mean', 'max'")


def test_both_places_are_underlined() -> None:
    with pytest.raises(Error) as caught:
        rearrange(X, "a b ...  -> ... (a b ...)")
    error = caught.value
    assert error.message == "`...` stands twice on one side of the pattern"
    assert [label.span.text() for label in error.labels] == ["...", "..."]
    assert len({label.span.start for label in error.labels}) == 2


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: rearrange(X, "b h w c -> b h w"), "E0167"),
        (lambda: rearrange(X, "... b ... -> b ... ..."), "E0167"),
        (lambda: rearrange(X, "... c -> c (... ...)"), "E0167"),
        (lambda: rearrange(X, "b (...) -> b (...)"), "E0167"),
        (lambda: rearrange(X, "b h w c -> b h w c ..."), "E0167"),
        (lambda: rearrange(X, "b h... -> h... b"), "E0167"),
        (lambda: rearrange(X, "b b w c -> b w c"), "E0167"),
        (lambda: rearrange(X, "b h w c -> b ((h w) c)"), "E0167"),
        (lambda: rearrange(X, "b h w 3 -> b h w 3"), "E0167"),
        (lambda: rearrange(X, "b h w 0 -> b h w"), "E0167"),
        (lambda: rearrange(X, "b h_ w c -> b h_ w c"), "E0167"),
        (lambda: rearrange(X, "b h w c -> b h w c d", d=2), "E0167"),
        (lambda: rearrange(X, "b [h] w c -> b [h] w c"), "E0160"),
        (lambda: rearrange(X, "b h w c | b h w c"), "E0160"),
        (lambda: rearrange(X, "b h w c -> b h -> w c"), "E0164"),
        (lambda: rearrange(X, "b (h h1) w c -> b h h1 w c"), "E0578"),
        (lambda: rearrange(X, "b h w c -> b h w c", q=2), "E0166"),
        (lambda: reduce(X, "b h w c -> b d", "sum", d=2), "E0167"),
        (lambda: reduce(X, "b h w c -> b 2", "sum"), "E0167"),
        (lambda: repeat(X, "b h w c -> b h w"), "E0167"),
        (lambda: repeat(X, "b h w 3 -> b h w 2"), "E0167"),
        (lambda: parse_shape(X, "b b _ c"), "E0167"),
        (lambda: parse_shape(X, "(b h) _ c"), "E0167"),
        (lambda: parse_shape(X, "b -> c"), "E0164"),
        (lambda: parse_shape(X, "b ... ... c"), "E0167"),
        (lambda: pack([X], "b b *"), "E0167"),
        (lambda: pack([X], "b (c) *"), "E0167"),
        (lambda: pack([], "b *"), "E0701"),
        (lambda: pack([X[0, 0]], "b h w *"), "E0503"),
        (lambda: unpack(X, [(1,)], "b *"), "E0503"),
        (lambda: unpack(X[0, 0, 0], [(-1,), (-1,)], "*"), "E0518"),
        (lambda: unpack(X[0, 0, 0], [(-1, -1)], "*"), "E0518"),
        (lambda: unpack(X[0, 0, 0], [(2,), (2,)], "*"), "E0518"),
        (lambda: unpack(X[0, 0, 0], [], "*"), "E0518"),
        (lambda: unpack(X[0, 0, 0], [(3,)], "* ..."), "E0167"),
        (lambda: rearrange(X, "b h w -> w h b"), "E0503"),
        (lambda: rearrange(X, "b (h h1) w c -> b h h1 w c", h1=3), "E0577"),
        (lambda: repeat(X, "b h w c -> b h w c d"), "E0223"),
        (lambda: reduce(X, "b h w c -> b", "median"), "E0165"),  # type: ignore[call-overload]
        (lambda: pack([X], "b * *"), "E0161"),
        (lambda: unpack(X[0, 0, 0], [(3,), ()], "b *"), "E0503"),
        (lambda: rearrange(X, ["b h w c"]), "E0716"),  # type: ignore[call-overload]
        (lambda: parse_shape(X, "b h"), "E0503"),
    ],
)
def test_refused(call: object, code: str) -> None:
    with pytest.raises(Error) as caught:
        call()  # type: ignore[operator]
    assert caught.value.code == code
    assert einops.__all__

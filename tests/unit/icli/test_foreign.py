"""Lines of the REPL as other languages write them, and what the help says to type."""

from typing import Any

import numpy as np
import pytest

from ilang.core.diagnostic import Error
from ilang.icli.entries import Entries
from ilang.icli.session import ReplSession

D = np.array([[1, 5, 3], [4, 2, 6]], np.float32)
X = np.array([1, 2, 3], np.float32)
V = np.array([1, 2], np.float32)
IDS = np.array([1, 0])


@pytest.fixture
def session() -> ReplSession:
    session = ReplSession()
    for line in ("D = [[1,5,3],[4,2,6]]", "x = [1,2,3]", "v = [1,2]", "ids = i64:[1,0]"):
        session.feed(line)
    return session


def refused(session: ReplSession, line: str) -> Error:
    (error,) = session.feed(line).parts
    assert isinstance(error, Error), line
    return error


def computed(session: ReplSession, line: str) -> Any:
    """The array that an expression is, bound to a name, and shown alone."""
    for each in (line, f"y = {line}"):
        reply = session.feed(each)
        assert not reply.failed, reply.parts
    np.testing.assert_array_equal(session.arrays["_"], session.arrays["y"])
    return session.arrays["y"]


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x^2 + 1", X**2 + 1),
        ("D[ids, [2, -1]] + D[np.arange(2), ids]", D[IDS, [2, -1]] + D[[0, 1], IDS]),
        ("D[None][:, [0, 1], [2, 0]]", D[None][:, [0, 1], [2, 0]]),
        ("np.stack([D, D])[[0, 1], ids - 1]", np.stack([D, D])[[0, 1], IDS - 1]),
        ("np.zeros((2, 3), np.int64) + np.ones(3, int)", np.ones((2, 3))),
        ("list(x)", X),
        ("np.sum(f64:[1, 2]) + i64:3", 6),
        ("bool:[true, false] + bool:[false, false]", [True, False]),
        ("f64:[[1, 2, 3]] * D[:1] + f64:arange(3)", D[:1] * X + [0, 1, 2]),
        ("[1, nan] == [1, np.nan]", [True, False]),
        ("D[np.arange(2)]", D),
        ("min(D, 3) + max(2, D)", np.minimum(D, 3) + np.maximum(2, D)),
        ("np.max(D, 0)", D.max(0)),
        ("round(D / 4 - 0.5)", np.round(D / 4 - 0.5)),
        (
            "np.rint(D / 4) + ceil(D / 5) - floor(-D / 3)",
            np.rint(D / 4) + np.ceil(D / 5) - np.floor(-D / 3),
        ),
        ("D.sum(axis=(0, -1))", D.sum()),
        ("ids + 2 ** 40 // 3", IDS + 2**40 // 3),
        ("D - D.mean(1)[:, None]", D - D.mean(1)[:, None]),
        ("v[:, np.newaxis] * D - x[None]", V[:, np.newaxis] * D - X[None]),
        ("D[..., None]", D[..., None]),
        ("D[:, [0, -1, 0]] + D[[-1]]", D[:, [0, -1, 0]] + D[[-1]]),
        ("D[1, None, 1:]", D[1, None, 1:]),
        ("D / D.sum((0, 1), keepdims=True)", D / D.sum((0, 1), keepdims=True)),
        ("ids * 2.5 + v", IDS * 2.5 + V),
        ("ids / 2 + ids ** 0.5", IDS / 2 + IDS**0.5),
        ("ids * 9007199254740993 + -1", IDS * 9007199254740993 - 1),
        ("ids + D.astype(int)[0, 0]", IDS + 1),
        ("ids + [1, 2]", IDS + V),
        ("(D > 2) * D", (D > 2) * D),
        ("(D > 2).mean()", 4 / 6),
        ("where(ids > 0, ids, 2)", np.where(IDS > 0, IDS, 2)),
        ("2·x", 2 * X),
        ("list(range(3))", np.arange(3)),
        ("D[:, ::2]", D[:, ::2]),
        ("x[1::2]", X[1::2]),
        ("x[::-1]", X[::-1]),
        ("D[:, 2:0:-2]", D[:, 2:0:-2]),
        ("(x > 1) & (x < 3) | np.logical_and(ids[0], ids[1])", [0, 1, 0]),
        ("np.logical_and(ids, ids) | (v > 1)", [1, 1]),
        ("np.array(D.sum(0).shape)", [3]),
        ("np.array(D[:, None].shape)", [2, 1, 3]),
        ("D % 4 + D // 4", D % 4 + D // 4),
        ("-x % v[0] - np.mod(x, v[1])", (-X) % 1 - X % 2),
        ("D[ids]", D[IDS]),
        ("D[:, ids]", D[:, IDS]),
        ("sum(D, dims=1)", D.sum(0)),
        ("mean(D, dim=1)", D.mean(1)),
        ("argmax(D, 0)", D.argmax(0)),
        ("np.argmax(D) + 10 * D.argmin()", D.argmax() + 10 * D.argmin()),
        ("np.concatenate([D, D, D], 1)", np.concatenate([D, D, D], 1)),
        ("torch.cat([D, D], dim=-1)", np.concatenate([D, D], -1)),
        ("np.vstack([x, x]) + np.hstack([D, D])[:, 3:]", np.vstack([X, X]) + D),
        ("np.hstack([x, v])", np.hstack([X, V])),
        ("np.hstack([D[None], D[None]])", np.hstack([D[None], D[None]])),
        ("np.column_stack([x, x])", np.column_stack([X, X])),
        ("np.stack([D, D], -1) - np.stack([D, D], axis=2)", np.zeros((2, 3, 2))),
        ("np.stack([x, x])", np.stack([X, X])),
        ("np.flip(D) + np.flip(D, 0)", np.flip(D) + np.flip(D, 0)),
        ("reversed(D)", D[::-1]),
        ("np.var(D, 0, ddof=1) + D.std(ddof=1)", np.var(D, 0, ddof=1) + D.std(ddof=1)),
        ("torch.var(D)", np.var(D, ddof=1)),
        ("(D > 1) + (D > 2)", D > 1),
        ("(D > 1) * (D > 2)", D > 2),
        ("(D > 1) ^ (D > 2)", (D > 1) ^ (D > 2)),
        ("np.max(D > 5, 0)", np.max(D > 5, 0)),
        ("np.sum(D > 2, 1)", np.sum(D > 2, 1)),
        ("np.cumsum(D) + np.cumsum(D)", 2 * np.cumsum(D)),
        ("np.cumsum(D, 0) + D.cumprod(axis=1)", np.cumsum(D, 0) + D.cumprod(axis=1)),
        ("D[None] @ D.T", D[None] @ D.T),
        ("D[None] @ D.T[None] + D @ D.T", 2 * (D @ D.T)[None]),
        ("np.take(D, ids) + np.take(D, ids, 1)", np.take(D, IDS) + np.take(D, IDS, 1)),
        ("D[:, i64(v - 1)] * (1, -1)", D[:, [0, 1]] * (1, -1)),
        ("+x - -2", X + 2),
        ("D.argmin(axis=1)", D.argmin(1)),
        ("sort(D, 0)", np.sort(D, 0)),
        ("np.sort(D)", np.sort(D)),
        ("softmax(D, 0)", np.exp(D) / np.exp(D).sum(0)),
        ("norm(x)", np.sqrt(14)),
        ("np.linalg.norm(D, axis=1)", np.linalg.norm(D, axis=1)),
        ("count_nonzero(D, 0)", [2, 2, 2]),
        ("sin(x)", np.sin(X)),
        ("np.abs(-x)", X),
        ("where(D > 2, D, 0)", np.where(D > 2, D, 0)),
        ("np.clip(D, 2, 4)", np.clip(D, 2, 4)),
        ("concatenate([D, D])", np.concatenate([D, D])),
        ("np.hstack((D, D))", np.hstack((D, D))),
        ("torch.cat([D, D], dim=1)", np.hstack((D, D))),
        ("D.reshape(3, -1)", D.reshape(3, -1)),
        ("D.flatten()", D.ravel()),
        ("np.outer(x, v)", np.outer(X, V)),
        ("np.einsum('ij,j->i', D, x)", D @ X),
        ("D.astype(np.float64)", D),
        ("not x", [0, 0, 0]),
        ("np.array([[1, 2]])", [[1, 2]]),
        ("[k * 2 for k in x]", X * 2),
        ("[k for k in range(3)]", np.arange(3)),
        ("(x > 1) & (x < 3)", [0, 1, 0]),
        ("D.mean", D.mean()),
        ("np.pi", np.pi),
        ("2 * np.pi", 2 * np.pi),
        ("pi", np.pi),
        ('einx.sum("a [b]", D)', D.sum(1)),
        ('rearrange(D, "a b -> (b a)")', D.T.ravel()),
        ("sum(x) / len(x)", X.mean()),
        ("x.sum() / x.size", X.mean()),
        ("sorted(x)", X),
        ("D.mul(2)", D * 2),
        ("D.permute(1, 0)", D.T),
        ("np.swapaxes(D, 0, 1)", D.T),
        ("D[..., 0]", D[..., 0]),
        ("np.tril(D[:, :2])", np.tril(D[:, :2])),
        ("print(v)", V),
        ("len(v)", 2),
        ("D.ndim * D.shape[1]", 6),
        ("softmax(D; 0)", np.exp(D) / np.exp(D).sum(0)),
        ("-i~i(x)", -X),
        ("+ij~i(D) + v", D.sum(1) + V),
        ("2 * +ij~i(D)", 2 * D.sum(1)),
        ("np.exp(+ij~i(D))", np.exp(D.sum(1))),
        ("D.T @ +ij~i(D)", D.T @ D.sum(1)),
        ("ij-i~ij D (+ij~i D)", D - D.sum(1)[:, None]),
        ("v.tolist()", V),
        ("np.zeros_like(D) + np.ones_like(ids)[0] - np.full_like(D, 0.5)", np.full((2, 3), 0.5)),
        ("np.zeros(D.shape) + np.ones((len(D), 1))", np.ones((2, 3))),
        ("D[: len(x) - 2, -D.shape[0] :]", D[:1, -2:]),
        ("D[D > 2]", D[D > 2]),
        ("D[D > 9]", []),
        ("D[ids > 0]", D[IDS > 0]),
        ("D[:, x > 1] + D[1, x > 1]", D[:, X > 1] + D[1, X > 1]),
        ("D[[True, False]]", D[:1]),
        ("D[:, ids - 1]", D[:, IDS - 1]),
        ("np.take(D, [0, -1], axis=1)", D[:, [0, -1]]),
        ("np.take(D, -1, axis=1)", D[:, -1]),
        ("D[ids, 1:] + D[1:, ids]", D[IDS, 1:] + D[1:, IDS]),
        ("D == True", D == 1),
        ("True + 1", 2),
        ("2 + 3 * len(x)", 11),
        ("ids % 0 + ids // 0", [0, 0]),
        ("-ids % 2 + 3 % (ids + 2)", -IDS % 2 + 3 % (IDS + 2)),
        ("(ids > 0) ** (ids > 1)", [1, 1]),
        ("(ids > 0) // (ids < 1)", [0, 0]),
        ("(ids > 0) @ (ids > 0)", True),
        ("(ids + 3037000500) ** 2", (IDS + 3037000500) ** 2),
        ("np.sum(D, 1, dtype=np.float64)", D.sum(1)),
        (
            "np.max(D, 1, keepdims=True) - D.argmax(1, keepdims=True)",
            D.max(1)[:, None] - D.argmax(1)[:, None],
        ),
        ("np.linalg.norm(D, axis=1, keepdims=True)", np.linalg.norm(D, axis=1)[:, None]),
        ("np.linalg.norm(x, 1) + np.linalg.norm(x, np.inf)", 9),
        ("np.median(D) + np.median(x)", np.median(D) + 2),
        ("np.percentile(D, 25, axis=0)", np.percentile(D, 25, axis=0)),
        ("np.quantile(D, 0.9, axis=1, keepdims=True)", np.quantile(D, 0.9, axis=1)[:, None]),
        ("np.ptp(D, 1) + np.ptp(D)", np.ptp(D, 1) + 5),
        ("np.diff(D)", np.diff(D)),
        ("np.roll(D, 1) + np.roll(D, -1, axis=1)", np.roll(D, 1) + np.roll(D, -1, axis=1)),
        ("np.tile(v, 2) - np.repeat(v, 2)", [0, 1, -1, 0]),
        ("np.repeat(D, 2, axis=0)", np.repeat(D, 2, axis=0)),
        ("np.round(D / 3, 2)", np.round(D / 3, 2)),
        ("np.dstack([D, D])", np.dstack([D, D])),
        ("np.append(x, D) + 0", np.append(X, D)),
        ("np.vstack([D, x])", np.vstack([D, X])),
        ("np.squeeze(D[None, :, None])", D),
        ("np.moveaxis(D[None], 0, -1)", np.moveaxis(D[None], 0, -1)),
        ("np.expand_dims(x, 1)", X[:, None]),
        ("np.isclose(x, x + 1e-9) & np.isfinite(x)", [1, 1, 1]),
        ("np.sort(D, axis=None)", np.sort(D, axis=None)),
        ("np.sum(v[0])", 1),
        ("np.cov(D) + np.corrcoef(D)", np.cov(D) + np.corrcoef(D)),
        ("np.rot90(D) - np.rot90(D[None])[:, 0].T[0]", np.rot90(D) - np.rot90(D[None])[:, 0].T[0]),
        ("np.pad(D, 1) + np.pad(D, ((1, 1), (0, 2)))", np.pad(D, 1) + np.pad(D, ((1, 1), (0, 2)))),
        ("np.pad(x, (1, 2))", np.pad(X, (1, 2))),
        ("np.convolve(v, x)", np.convolve(V, X)),
        ("np.convolve(x, v, 'same')", np.convolve(X, V, "same")),
        ("np.convolve(x, v, mode='valid')", np.convolve(X, V, "valid")),
        ("np.inner(D, D) + np.inner(x, x)", np.inner(D, D) + np.inner(X, X)),
        ("np.inner(D, x)", np.inner(D, X)),
        ("np.diag(v) @ D", np.diag(V) @ D),
        ("np.diag(D @ D.T)", np.diag(D @ D.T)),
        ("np.flatnonzero(D > 2)", np.flatnonzero(D > 2)),
        ("np.array([D[k].mean() for k in range(2)])", D.mean(1)),
        ("[D[:, k] for k in range(3)]", D.T),
        ("np.array([x.mean(), x.max(), 1])", [2, 3, 1]),
    ],
)
def test_expressions(line: str, expected: Any, session: ReplSession) -> None:
    np.testing.assert_allclose(computed(session, line), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("line", "code", "message", "help_line"),
    [
        ("D + v", "E0505", "D (2×3) and v (2)", "`ij+i~ij D v`"),
        ("v - D", "E0505", "v (2) and D (2×3)", "`i-ij~ij v D`"),
        ("D + [1,2,3,4]", "E0505", "(2×3) and [1, 2, 3, 4] (4)", "`ij+k~ijk D [1, 2, 3, 4]`"),
        ("D * D.T", "E0505", "do not meet", "product is `ik*kj~ijk >> +ijk~ij D t1`"),
        ("D @ D", "E0505", "D (2×3) and the first of D (2×3)", "`ik*jk~ijk >> +ijk~ij D D`"),
        ("D @ v", "E0505", "the last axis of D (2×3)", "`ik*i~ki >> +ki~k D v`"),
        ("concat(D, x)", "E0505", "different numbers of axes", "the same number"),
        ("np.concatenate([D, D[:, 1:]])", "E0505", "along axis 0", "the same sizes"),
        ("np.vstack([D, D], 0)", "E0821", "`np.vstack([D, D], 0)`", "takes arrays"),
        (
            "(D > 1) - (D > 2)",
            "E0505",
            "between the conditions",
            "!= t2` is true where they differ",
        ),
        ("ids & ids", "E0505", "one of bits", "(ids != 0) & (ids != 0)"),
        ("x & x", "E0505", "`&` joins conditions, and x (3) is none", "(x != 0) & (x != 0)"),
        ("(x > 1) | x", "E0505", "and x (3) is none", "t1 | (x != 0)"),
        ("D, x", "E0821", "a line computes one array", "type them one by one: `D`, then `x`"),
        ("x and x", "E0505", "`&` joins conditions", "(x != 0) & (x != 0)"),
        ("np.min([])", "E0505", "[] (0) has no elements", "`<i~.` gives inf for none"),
        ("np.bitwise_or(x, x)", "E0505", "`|` joins conditions", "(x != 0) | (x != 0)"),
        ("x > 1 & x < 3", "E0821", "binds before comparisons", "`(x > 1) & (x < 3)`"),
        ("x[1.5]", "E0821", "is no array", "a whole number"),
        ("~ids", "E0505", "one of bits", "`ids == 0`"),
        ("ids | 2", "E0505", "one of bits", "(ids != 0) | (2 != 0)"),
        ("ids ^ 2", "E0505", "one of their bits", "`ids ** 2`"),
        ("np.sum(D, axis=2)", "E0505", "D (2×3) has no axis 2", "0 to 1, or -2 to -1"),
        ("D.argmax(axis=-3)", "E0505", "has no axis -3", "0 to 1, or -2 to -1"),
        ("np.sum(D, axs=0)", "E0821", "`np.sum` takes no `axs`", "did you mean `axis`?"),
        ("np.sum(D, out=x)", "E0821", "takes no `out`", "a, axis, keepdims, dtype"),
        ("np.sort(D, 0, 1)", "E0821", "`np.sort` takes a, axis", "`np.sort(a, axis)`"),
        ("np.take(D)", "E0821", "`np.take` needs indices", "a, indices, axis"),
        ("np.take(D, [3], 1)", "E0505", "3 positions along axis 1, and 3 is none", "the last 2"),
        ("D[0, 5]", "E0505", "D (2×3) has 3 positions along axis 1, and 5", "the last 2"),
        ("np.percentile(D, [1, 2])", "E0821", "`[1, 2]` is not one number", "after the other"),
        ("np.random.normal(size=3)", "E0821", "no `np.random.normal`", "`randn(2, 3)`"),
        ("np.foo(D)", "E0821", "there is no `np.foo` here", "`:help` lists"),
        ("np.summ(D)", "E0821", "there is no `np.summ` here", "did you mean `sum`?"),
        ("np.linalg.inv(D)", "E0821", "there is no `np.linalg.inv` here", "with NumPy"),
        ("D.foo", "E0821", "there is no `D.foo` here", ""),
        ("qq.sum()", "E0820", "no array named `qq`", "bind one"),
        ("x if v else x", "E0821", "chooses one of two", "`where(c, x, y)`"),
        ("D.sum(axis=(0, 0))", "E0505", "the axes 0, 0 of D (2×3) are one twice", "once"),
        ("x % v", "E0505", "x (3) and v (2) do not meet", "have one size"),
        ("x[v > 1]", "E0505", "the condition t1 (2) does not fit x (3)", "the sizes"),
        ("np.sum(D, dtype=str)", "E0821", "`str` is no element type", "f32, f64, i64"),
        ("1 / np.reciprocal(ids)", "E0505", "which is of integers", "`1 / ids`"),
        ("0 < x < 2", "E0821", "compares twice", "`(0 < x) & (x < 2)`"),
        ("x[3:]", "E0505", "takes none of 3 positions", "the last 2"),
        ("D[:, v]", "E0505", "indices are integers", "`i64(v)`"),
        ("D.reshape(4, 2)", "E0505", "has 6 elements, and 4×2 has 8", "keeps the number"),
        ("+ij~i(D) + x", "E0505", "t1 (2) and x (3)", "`t1 = +ij~i D`"),
        ("lambda x: x", "E0821", "a statement", "`op f(x) = x + 1`"),
        ("list(1:10)", "E0721", "is not an array", "`arange(1, 10)`, which ends before 10"),
        ("q += x", "E0820", "no array named `q`", "bind one"),
        ("f = lambda x: x * x", "E0821", "a function", "write `op f(x) = x *. x`"),
        ("f(x) = x^2 + 1", "E0821", "a function", "write `op f(x) = x **. 2 + 1`"),
        ("def f(x, y): return x / y", "E0821", "a function", "write `op f(x, y) = x /. y`"),
        ("import numpy as np", "E0821", "a statement", "nothing is imported"),
        ("def f(x):", "E0821", "a statement", "`op f(x) = x + 1`"),
        ("for i in range(3): print(i)", "E0821", "a statement", "loops are written by indices"),
        ("p = p - lr * p.grad", "E0821", "a statement of a routine", "p =- 0.1 *. p.grad"),
        ("p =- lr * p.grad", "E0821", "a statement of a routine", "p =- 0.1 *. p.grad"),
        ("D[2]", "E0505", "D (2×3) has 2 positions along axis 0", "the last 1, or -1"),
        ("D[0, 1] = 5", "E0821", "arrays are not changed in place", "where(c, x, y)"),
        ("x.sum(), D.max()", "E0821", "computes one array", "`x.sum()`, then `D.max()`"),
        ("zeros", "E0720", "zeros is not an array", "write `zeros(2, 3)`"),
        ("hello there", "E0105", "expected", "`:help` lists what can be typed"),
        ("rank(x)", "E0401", "no definition named `rank`", "`:help` lists what can be typed"),
        ("load x.npy", "E0821", "a call", "write `:load x.npy`"),
        ("-i~i x >> ^i~i", "E0821", "stand after it", "write `-i~i >> ^i~i x`"),
        ("x;", "E0821", "stand after it", "write `x`"),
        ("x >> -i~i", "E0401", "`x` is an array", "write `-i~i x`"),
        ("x | v >> i*j~ij", "E0401", "`x` is an array", "write `i*j~ij x v`"),
        ("cd f(x) { y = x.grid; backprop(y) }", "E0198", "no part `.grid`", "the parts are"),
        ("op f(x) { return x }", "E0191", "`return` is a word", "ends with its value"),
        ("w", "E0401", "no array and no definition named `w`", "bind one"),
        ("(1, 2)", "E0721", "is not an array", "write `[1, 2]`"),
        ("0x10", "E0721", "is not a number", "write `16`"),
        ("1_000", "E0721", "is not a number", "write `1000`"),
        ("rand 2", "E0720", "is not an array", "write `rand(2)`"),
        ("zeros:2", "E0720", "is not an array", "write `zeros(2)`"),
        ("q * 2", "E0820", "no array named `q`", "bind one"),
        ("2 * q", "E0820", "no array named `q`", "bind one"),
        ("exp(q)", "E0820", "no array named `q`", "bind one"),
        ("x.squeeze(0)", "E0505", "sizes other than 1", "only an axis of size 1"),
        ("plt.plot(x)", "E0821", "a call", "write `:plot x`"),
        ("np.save('x.npy', x)", "E0821", "a call", "write `:save x.npy x`"),
    ],
)
def test_what_cannot_be_typed_so(
    line: str, code: str, message: str, help_line: str, session: ReplSession
) -> None:
    error = refused(session, line)
    assert error.code == code
    assert message in error.message
    assert help_line in error.help


@pytest.mark.parametrize(
    "name", ["exp", "sqrt", "len", "reshape", "flatten", "sort", "where", "einsum", "cat", "zeros"]
)
@pytest.mark.parametrize(
    "given", ["", "[]", "D, D, D, D", "'a'", "x=1", "*x", "D[9]", "None", "...", "(D,)"]
)
def test_calls_that_mean_nothing_are_no_bugs(name: str, given: str, session: ReplSession) -> None:
    for part in session.feed(f"np.{name}({given})").parts:
        assert not isinstance(part, Error) or part.code != "E9900"


def test_a_definition_that_waits_is_in_nobodys_way(session: ReplSession) -> None:
    assert session.feed("w = later").parts == ("w  waits for later",)
    assert refused(session, "w = [1, [2]]").code == "E0722"
    assert "`w` waits for later" in refused(session, "+i~. w").message
    assert not session.feed("w = rand:3").failed


def test_a_block_of_another_language_is_one_mistake(session: ReplSession) -> None:
    block = "cd step(x, t):\n    loss = x\n    backprop(loss)\n\nfor i in y:\n  print(i)\nx"
    entries = [*(e := Entries(session.is_array)).of(block.split("\n")), *e.rest()]
    assert [entry.split("\n")[0] for entry in entries] == ["cd step(x, t):", "for i in y:", "x"]
    assert refused(session, entries[0]).code == "E0190"


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rows x + 1", np.sum(D, 1) + 1),
        ("softmax(rows x)", np.exp([9, 12]) / np.exp([9, 12]).sum()),
        ("2 * rows(x) - rows x", np.sum(D, 1)),
        ("rows(x) * rows(x)", np.sum(D, 1) ** 2),
        ("ij-i~ij(x, rows(x))", D - np.sum(D, 1)[:, None]),
        ("(ij-i~ij)(x, rows x) + 1", D - np.sum(D, 1)[:, None] + 1),
        ("(ij-i~ij) x (rows x) + 1", D - np.sum(D, 1)[:, None] + 1),
        ("both x (x * 2)", D * 3),
        ("both x x[:, ::-1] + x[0]", D + D[:, ::-1] + D[0]),
        ('einsum("ij->j")(x) / rows(x).size', np.sum(D, 0) / 2),
        ("{ s = rows(x); both(x, x), s }", 2 * D),
        ("half(x) + half x", D),
        ("rows(half x) * 2", np.sum(D, 1)),
        ("half(x * 2)[0] @ half(x)[1]", D[0] @ D[1] / 2),
        ("half(x) * half(x)", D * D / 4),
        ("x > rows(x)[0]", D > 9),
        ("+ij~i (>ij~ij x)", np.sum(D, 1)),
        ("+ij~i x + 1", np.sum(D, 1) + 1),
        ("+ij~i >ij~ij x", np.sum(D, 1)),
        ("2 * +ij~i x - rows x", np.sum(D, 1)),
        ("softmax rows x", np.exp([9, 12]) / np.exp([9, 12]).sum()),
        ("ij-i~ij x rows x", D - np.sum(D, 1)[:, None]),
        ("+ij~i half x", np.sum(D, 1) / 2),
        ("+ij~i (x + 1)", np.sum(D, 1) + 3),
        ("ij*j~ij (ij+ij~ij x x) (+ij~j x)", 2 * D * np.sum(D, 0)),
        ("+ij~i (ij-i~ij x (rows x))", np.sum(D - np.sum(D, 1)[:, None], 1)),
        ('elementwise("f: x, y -> x*y") (both x x) x', 2 * D * D),
        ("rows (ij*ij~ij x x)", np.sum(D * D, 1)),
    ],
)
def test_definitions_in_expressions(line: str, expected: Any) -> None:
    session = ReplSession()
    for each in (
        "x = [[1,5,3],[4,2,6]]",
        "rows = ij~i",
        "both(a, b) = ij+ij~ij",
        "op half(a) = a *. 0.5",
    ):
        session.feed(each)
    reply = session.feed(line)
    assert not reply.failed, reply.parts
    np.testing.assert_allclose(session.arrays["_"], expected, rtol=1e-5)
    assert session.arrays.keys() == {"x", "_"}


def test_random_arrays_have_other_numbers_each_and_the_same_in_each_session() -> None:
    sessions = ReplSession(), ReplSession()
    for session in sessions:
        for line in ("a = rand:3", "b = np.random.rand(3)", "c = randn(3)", "d = randn(3)"):
            assert not session.feed(line).failed
    arrays = [session.arrays for session in sessions]
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in "abcd")
    assert not np.array_equal(arrays[0]["a"], arrays[0]["b"])
    assert not np.array_equal(arrays[0]["c"], arrays[0]["d"])
    assert not sessions[0].feed("ij-ij~ij rand:2x2 rand:2x2").failed
    assert np.all(sessions[0].arrays["_"] != 0)


def test_an_expression_is_one_program(session: ReplSession) -> None:
    (page,) = session.feed(":explain x * 2 + 1").parts
    assert "out[i] = 2·x[i] + 1" in str(page)
    assert session.feed("y = x * 2 + 1").parts == ("y  3  f32",)
    assert session.feed("x.shape").parts == ("x  3  f32",)
    assert session.feed("(x + x).shape").parts == ("(x + x)  3  f32",)
    assert session.feed("x.sum(0).dtype").parts == ("x.sum(0)  .  f32",)
    assert session.feed("f64:[1,2].dtype").parts == ("f64:[1,2]  2  f64",)
    assert session.feed("[1,2].dtype").parts == ("[1,2]  2  f32",)
    assert str(session.feed("x.shape + x.shape").parts[0]).startswith("out  1  f32")


@pytest.mark.parametrize(
    ("line", "value"), [("x += 1", X + 1), ("x *= 2", 2 * X), ("x: int = 3", 3), ("x := 3", 3)]
)
def test_assignments(line: str, value: Any, session: ReplSession) -> None:
    assert not session.feed(line).failed
    np.testing.assert_array_equal(session.arrays["x"], value)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("x + zz", "E0820", "no array named `zz`"),
        ("D + zz(x)", "E0401", "no definition named `zz`"),
        ("sums(x) + 1", "E0503", "x has rank 1"),
        ("sums(D, D) + 1", "E0420", "`sums` takes 1 input"),
        ("sums(sums D) + 1", "E0503", "rank 1"),
    ],
)
def test_mistakes_in_expressions(line: str, code: str, message: str, session: ReplSession) -> None:
    session.feed("sums = +ij~i")
    error = refused(session, line)
    assert (error.code, message in error.message) == (code, True), error


@pytest.mark.usefixtures("compiled_quickly")
def test_sums_of_short_integers_have_64_bits(session: ReplSession) -> None:
    session.feed("n = i32:[2147483647, 1]")
    n = np.array([2147483647, 1], np.int32)
    for line, expected in (
        ("n.sum()", n.sum()),
        ("np.prod(n * 2)", (n * 2).prod()),
        ("np.cumsum(n)", n.cumsum()),
    ):
        np.testing.assert_array_equal(computed(session, line), expected)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("conv2d(D)", "E0420", "takes 2 inputs, and 1 value is given"),
        ("gelu()", "E0420", "takes 1 input, and no values are given"),
        ("a, b = D", "E0815", "1 output cannot be bound to 2 names"),
    ],
)
def test_counts_that_do_not_fit(session: ReplSession, line: str, code: str, said: str) -> None:
    error = refused(session, line)
    assert error.code == code
    assert said in error.message


def test_types_of_expressions(session: ReplSession) -> None:
    assert session.feed("D[None].dtype").parts == ("D[None]  1×2×3  f32",)
    assert session.feed("(+ij~i D).dtype").parts == ("(+ij~i D)  2  f32",)
    assert session.feed("type(D @ x)").parts == ("D @ x  2  f32",)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("x > 2 & x < 4 | x == 1", "E0821", "(x > 2) & (x < 4) | (x == 1)"),
        ("ids << 2", "E0821", "ids * 2 ** 2"),
        ("a, b = 1, 2", "E0821", "`a = 1`, then `b = 2`"),
        ("a = 1; b = D @ x", "E0821", "`a = 1`, then `b = D @ x`"),
        ("a = b = 3", "E0821", "`b = 3`, then `a = b`"),
        ("x[x > 2] = 0", "E0821", "`x = where(x > 2, 0, x)`"),
        ("np.array([[1, 2], [3]])", "E0505", "have the lengths 1 and 2"),
        ("x[0] @ 2", "E0505", "multiplies by a number"),
        ("D[[0, 1], [0, 1, 2]]", "E0505", "other numbers of places, 2 and 3"),
        ("D[ids, i64:[0, 3]]", "E0746", "3"),
        ("D[ids, i64:[0, -4]]", "E0746", "-1"),
        ("D[[0, 1], 0, [1, 2]]", "E0821", "both arrays of places"),
        ("x(0)", "E0401", "`x[0]` is its first element"),
        ("np.array([1, 2)", "E0110", "write `]` there"),
        ("import numpy as np", "E0821", "`np.sum(x)` and `softmax(x)` are there"),
        ("D.sum(0, 1)", "E0821", "D.sum((0, 1))"),
        ("D.sum(0, 1)", "E0821", "takes axis, keepdims, dtype in this order, and 2 are given"),
        ("D.sum(axis=1.5)", "E0821", "an axis is a whole number"),
        ("x + i8:[1, 2, 3]", "E0720", "types are f32, f64, i32, i64 and bool; write `i32:"),
        ("y = u7:[1]", "E0720", "there is no type u7"),
        ("w + w", "E0820", "there is no array named `w`"),
        ("w = 2147483647", "E0723", "i64:2147483647"),
        ("w.shape", "E0820", "there is no array named `w`"),
        ("x.", "E0821", "`x.sum(0)`; `x` alone shows it"),
        ("!ls -l", "E0821", "is a command of a shell"),
        ("pwd", "E0821", "use another terminal"),
        ('"ik,kj->ij"', "E0113", 'write `einsum("ik,kj->ij")`'),
        ("'+ij~i'", "E0113", "write `i('+ij~i')`"),
    ],
)
def test_what_a_mistake_is_answered_with(
    line: str, code: str, said: str, session: ReplSession
) -> None:
    error = refused(session, line)
    assert error.code == code
    assert said in f"{error.message}; {error.help}"

"""Index expressions against NumPy, on every target: all forms, all combinators, element types, refusals.

Programs are in the Python spelling. What each must give is written out by hand, never taken from the compiler's own
tables.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ilang import Error
from ilang.core.ops import OPS
from tests.conformance.adapter import index

TARGETS = ("numpy", "c")
NAN, INF = np.nan, np.inf

on_each_target = pytest.mark.parametrize("target", TARGETS)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


def i64(*values: int) -> Any:
    return np.array(values, np.int64)


def f64(*values: float) -> Any:
    return np.array(values, np.float64)


def bools(*values: int) -> Any:
    return np.array(values, np.bool_)


def agree(got: Any, expected: Any) -> None:
    """Same number of outputs, element types, shapes, and values (floats to 1e-6, NaN where NaN is)."""
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(got) == len(expected)
    for have, want in zip(got, map(np.asarray, expected), strict=True):
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(
            have, want, rtol=1e-6, atol=1e-6 if have.dtype.kind == "f" else 0
        )


LEFT, RIGHT = f32(-2, 0, 1.5, 3, NAN), f32(1, 0, 1.5, -4, 2)
BASE, POWER = f32(0.5, 1, 2, 3, 10), f32(2, 5, -1, 0.5, 3)

BINARY: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
    ">": np.maximum,
    "<": np.minimum,
    ">>": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&&": lambda a, b: (a != 0) & (b != 0),
    "||": lambda a, b: (a != 0) | (b != 0),
    "^^": lambda a, b: (a != 0) ^ (b != 0),
}

UNARY: dict[str, Callable[..., Any]] = {
    "": lambda x: x,
    "+": lambda x: x,
    "*": lambda x: x,
    "-": lambda x: -x,
    "/": lambda x: 1 / x,
    ">": lambda x: np.maximum(0, x),
    "<": lambda x: np.minimum(0, x),
    "^": np.exp,
    ">>": lambda x: x > 0,
    ">=": lambda x: x >= 0,
    "<<": lambda x: x < 0,
    "<=": lambda x: x <= 0,
    "==": lambda x: x == 0,
    "!=": lambda x: x != 0,
    "&&": lambda x: x != 0,
    "||": lambda x: x != 0,
    "^^": lambda x: x != 0,
    "!!": lambda x: x == 0,
}

REDUCED: dict[str, Callable[..., Any]] = {
    "": lambda x: x.sum(1),
    "+": lambda x: x.sum(1),
    "*": lambda x: x.prod(1),
    ">": lambda x: x.max(1),
    "<": lambda x: x.min(1),
    "&&": lambda x: (x != 0).all(1),
    "||": lambda x: (x != 0).any(1),
    "^^": lambda x: (x != 0).sum(1) % 2 == 1,
}


def test_every_operator_has_its_cases() -> None:
    assert {*BINARY, "^", "$"} == {symbol for symbol, op in OPS.items() if op.binary}
    assert {*UNARY, "$"} == {"", *OPS}
    assert {*REDUCED} == {"", *(symbol for symbol, op in OPS.items() if op.identity is not None)}


@on_each_target
@pytest.mark.parametrize("op", BINARY)
def test_binary(op: str, target: str) -> None:
    with np.errstate(all="ignore"):
        agree(index(f'i("i{op}i~i")', [LEFT, RIGHT], target), BINARY[op](LEFT, RIGHT))


@on_each_target
def test_the_left_operand_is_the_base(target: str) -> None:
    agree(index('i("i^i~i")', [BASE, POWER], target), BASE**POWER)
    base = f32(2, 3, 10, 0.5)
    agree(index('i("i$i~i")', [base, f32(8, 9, 1000, 4)], target), f32(3, 2, 3, -2))


@on_each_target
@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str, target: str) -> None:
    with np.errstate(all="ignore"):
        agree(index(f'i("{op}i~i")', [LEFT], target), UNARY[op](LEFT))


@on_each_target
def test_unary_log(target: str) -> None:
    agree(index('i("$i~i")', [f32(1, np.e, 0, -1)], target), f32(0, 1, -INF, NAN))


@on_each_target
@pytest.mark.parametrize("op", REDUCED)
def test_reduction(op: str, target: str) -> None:
    x = np.array([[1, -2, 3], [0, 0.5, 2], [0, 0, 0], [4, 5, NAN]], np.float32)
    agree(index(f'i("{op}ij~i")', [x], target), REDUCED[op](x))


@on_each_target
@pytest.mark.parametrize(
    ("op", "identity"),
    [("+", 0.0), ("*", 1.0), (">", -INF), ("<", INF), ("&&", True), ("||", False), ("^^", False)],
)
def test_empty_reduction_gives_the_identity(op: str, identity: float, target: str) -> None:
    dtype = np.bool_ if isinstance(identity, bool) else np.float32
    got = index(f'i("{op}ij~i")', [np.ones((2, 0), np.float32)], target)
    agree(got, np.array([identity, identity], dtype))


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7
S = np.arange(9, dtype=np.float32).reshape(3, 3)
V = f32(10, 20, 30)
N = np.array(4, np.float32)

PATTERNS: list[tuple[str, list[Any], Any]] = [
    ('i("ij~ji")', [A], A.T),
    ('i("ijk~kij")', [C], C.transpose(2, 0, 1)),
    ('i("ii~i")', [S], np.diagonal(S)),
    ('i("+ii~.")', [S], np.trace(S)),
    ('i("iij~ji")', [np.stack([S, S + 1, S * 2])], np.array([[0, 4, 12], [1, 5, 14], [2, 6, 16]], np.float32)),
    ('i("ii+i~i")', [S, V], f32(10, 24, 38)),
    ('i("ij+j~ij")', [A, V], A + V),
    ('i("j+ij~ji")', [V, A], (A + V).T),
    ('i("i*j~ij")', [V, A[0]], np.outer(V, A[0])),
    ('i(".+i~i")', [N, V], V + 4),
    ('i("i-.~i")', [V, N], V - 4),
    ('i(".*.~.")', [N, N], np.float32(16)),
    ('i("-.~.")', [N], np.float32(-4)),
    ('i("+ijk~ki")', [C], C.sum(1).T),
    ('i(">ijk~j")', [C], C.max((0, 2))),
    ('i("+ij~.")', [A], A.sum()),
    ('i("  +  ij ~ i  ")', [A], A.sum(1)),
    ('i("ij + j ~ ij")', [A, V], A + V),
    ('i("ik*kj~ijk") >> i("+ijk~ij")', [A, B], A @ B),
    ('i("ik*kj~ijk >> +ijk~ij")', [A, B], A @ B),
    ('i("i+i~i")', [np.ones(0, np.float32), np.ones(0, np.float32)], np.ones(0, np.float32)),
    ('i("ik*kj~ijk >> +ijk~ij")', [A[:, :0], B[:0]], np.zeros((2, 4), np.float32)),
    ('i("+ij~i >> +i~.")', [A], A.sum()),
    ('i("(I & +ij~i) >> ij/i~ij")', [A + 1], (A + 1) / (A + 1).sum(1, keepdims=True)),
    ('i("0j~j")', [A], A[0]),
    ('i("i2~i")', [A], A[:, 2]),
    ('i("0j~j >> 1~.")', [A], np.float32(1)),
    ('i("(I & i0~i) >> ij-i~ij")', [A], A - A[:, :1]),
    ('i("(2i)~i")', [LEFT], LEFT[::2]),
    ('i("(i+1)~i")', [LEFT], LEFT[1:]),
    ('i("(2i+k:2)~ik")', [V[[0, 1, 2, 0, 1]]], np.array([[10, 20], [30, 10]], np.float32)),
    ('i("(i+2k)*k~ik >> +ik~i")', [f32(1, 2, 3, 4, 5), f32(1, 10)], f32(31, 42, 53)),
    ('i("(i+k-1)*k~ik >> +ik~i")', [f32(1, 2, 4), f32(1, 10, 100)], f32(210, 421, 42)),
    ('i("(2i+k-1)*k~ik >> +ik~i")', [f32(1, 2, 4, 8), f32(1, 10, 100)], f32(210, 842)),
    ('i(">(2i+k:3-1)~i")', [f32(-3, -1, -4, -1, -5)], f32(-1, -1, -1)),
    ('i("<(i+k:2)(j+l:2)~ij")', [S], S[:2, :2]),
    ('i("ij~ji")', [A[:, ::-2]], A[:, ::-2].T),
    ('i("ij~ij")', [np.asfortranarray(A)], A),
]  # fmt: skip


@on_each_target
@pytest.mark.parametrize(("program", "inputs", "expected"), PATTERNS)
def test_pattern(program: str, inputs: list[Any], expected: Any, target: str) -> None:
    agree(index(program, inputs, target), expected)


X, Y, Z = f32(1, 2), f32(5, -3), f32(0.5, 4)
SUB, DIV, NEG, EXP = ('i("i-i~i")', 'i("i/i~i")', 'i("-i~i")', 'i("^i~i")')

COMBINED: list[tuple[str, list[Any], Any]] = [
    # chain: f's unpaired outputs come first, g's unpaired inputs last
    (f"{SUB} >> {NEG}", [X, Y], Y - X),
    (f"{NEG} >> {SUB}", [X, Y], -X - Y),
    (f"(I & {NEG}) >> {EXP}", [X], (-X, np.exp(X))),
    (f"({SUB} & {DIV}) >> {SUB}", [X, Y], (X - Y) - X / Y),
    (f"({NEG} | {EXP} | {NEG}) >> {SUB}", [X, Y, Z], (-Z, -X - np.exp(Y))),
    (f"{NEG} >> ({SUB} | {EXP})", [X, Y, Z], (-X - Y, np.exp(Z))),
    # compose: f's outputs come first, f's unpaired inputs last
    (f"{SUB} << {NEG}", [X, Y], -X - Y),
    (f"{EXP} << (I & {NEG})", [X], (np.exp(X), -X)),
    (f"{DIV} << ({NEG} | {EXP})", [X, Y], -X / np.exp(Y)),
    (f"({SUB} | {NEG}) << ({EXP} & {NEG})", [X, Y], (np.exp(X) + X, -Y)),
    # fanout: the first inputs are shared
    (f"{SUB} & {EXP}", [X, Y], (X - Y, np.exp(X))),
    (f"{EXP} & {SUB}", [X, Y], (np.exp(X), X - Y)),
    (f"{SUB} & {DIV}", [X, Y], (X - Y, X / Y)),
    ('i("0.5") & I', [X], (np.float32(0.5), X)),
    # pair, swap
    (f"{NEG} | {SUB}", [X, Y, Z], (-X, Y - Z)),
    (f"~({NEG} | {EXP})", [X, Y], (np.exp(Y), -X)),
    (f"~(I | I | {NEG})", [X, Y, Z], (Y, X, -Z)),
    (f"~{NEG}", [X], -X),
    (f"~(I & {NEG}) >> {SUB}", [X], -X - X),
    # precedence and grouping, as in Python
    (f"{NEG} >> {EXP} & I | I", [X, Y], (np.exp(-X), X, Y)),
    (f"{SUB} << {NEG} >> {EXP}", [X, Y], np.exp(-X - Y)),
    ('i("-i~i >> ^i~i & I | I")', [X, Y], (np.exp(-X), X, Y)),
    ('i("~(I & -i~i) >> i-i~i")', [X], -2 * X),
    (f'{NEG} >> "i-i~i"', [X, Y], -X - Y),
    # the identity anywhere
    ("I", [A], A),
    ("I >> I", [X], X),
    ("I | I", [X, A], (X, A)),
    ("I & I", [X], (X, X)),
    (f"(I & I) >> {SUB}", [X], X - X),
    (f"I >> {NEG} >> I", [X], -X),
    (f"{NEG} >> (I & I)", [X], (-X, -X)),
    (f"({NEG} & I) >> I", [X], (X, -X)),
    (f"{SUB} << I", [X, Y], X - Y),
    (f"I << {NEG}", [X], -X),
    (f"{NEG} & I", [X], (-X, X)),
    # constants
    ('(I | i("0.125")) >> i("ij*.~ij")', [A], A / 8),
    ('(I | i("-1.5")) >> i("i+.~i")', [X], X - 1.5),
    ('(I | i("0.5")) >> i("i^.~i")', [Z], np.sqrt(Z)),
    ('(I | i("2")) >> i("i^.~i")', [Y], Y * Y),
    ('(I | i("-1")) >> i("i^.~i")', [Y], 1 / Y),
    ('i("2") >> i(".^i~i")', [X], f32(2, 4)),
    ('(i("2") | i("3")) >> i(".-.~.")', [], np.float32(-1)),
    ('i("1e-3")', [], np.float32(1e-3)),
]


@on_each_target
@pytest.mark.parametrize(("program", "inputs", "expected"), COMBINED)
def test_combined(program: str, inputs: list[Any], expected: Any, target: str) -> None:
    agree(index(program, inputs, target), expected)


BIG = 2**31 - 1
TRUTHS, OTHERS = bools(1, 1, 0), bools(1, 0, 0)

TYPED: list[tuple[str, list[Any], Any]] = [
    ('i("i+i~i")', [f64(0.1, 0.2), f64(1, 2)], f64(1.1, 2.2)),
    ('i("i+i~i")', [f32(1, 2), f64(0.5, 0.5)], f64(1.5, 2.5)),
    ('i("i+i~i")', [i32(BIG, 1), i32(1, 1)], i32(-BIG - 1, 2)),
    ('i("i*i~i")', [i64(2**62, 3), i64(4, -5)], i64(0, -15)),
    ('i("-i~i")', [i32(-BIG - 1, 5)], i32(-BIG - 1, -5)),
    ('i("i+i~i")', [i32(BIG), i64(1)], i64(BIG + 1)),
    ('i("i-i~i")', [TRUTHS, i32(5, 6, 7)], i32(-4, -5, -7)),
    ('i("i*i~i")', [TRUTHS, f64(0.5, 2, 3)], f64(0.5, 2, 0)),
    ('i("i+i~i")', [TRUTHS, OTHERS], f32(2, 1, 0)),
    ('i("i>i~i")', [TRUTHS, OTHERS], f32(1, 1, 0)),
    ('i("i==i~i")', [TRUTHS, OTHERS], bools(1, 0, 1)),
    ('i("i~i")', [TRUTHS], TRUTHS),
    ('i("-i~i")', [TRUTHS], f32(-1, -1, 0)),
    ('i("+i~.")', [TRUTHS], np.float32(2)),
    ('i("&&i~.")', [TRUTHS], np.bool_(False)),
    ('i("^^i~.")', [i32(3, 0, 5, 7)], np.bool_(True)),
    ('i("!!i~i")', [f32(0, NAN, 2)], bools(1, 0, 0)),
    ('i("i&&i~i")', [f32(0.5, 0, NAN), i32(1, 1, 1)], bools(1, 0, 1)),
    ('i("i<<i~i")', [i32(1, 2), i64(2, 2)], bools(1, 0)),
    ('i("+i~.")', [i32(BIG, 1)], np.int32(-BIG - 1)),
    ('i(">i~.")', [i32()], np.int32(-BIG - 1)),
    ('i("<i~.")', [i64()], np.int64(2**63 - 1)),
    ('i("i>i~i")', [i32(3, -4), i32(-5, 6)], i32(3, 6)),
    ('(I | i("2")) >> i("i*.~i")', [i32(3, 4)], i32(6, 8)),
    ('(I | i("2")) >> i("i*.~i")', [f64(0.1)], f64(0.2)),
    ('(I | i("2")) >> i("i*.~i")', [TRUTHS], f32(2, 2, 0)),
    ('i("i32")', [f32(2.9, -2.9, NAN, 1e10)], i32(2, -2, -BIG - 1, -BIG - 1)),
    ('i("i64")', [f64(1e18, -1e19, INF)], i64(10**18, -(2**63), -(2**63))),
    ('i("i64 >> i32")', [f32(5.5)], i32(5)),
    ('i("bool")', [f32(0, -0.0, NAN, 0.1)], bools(0, 0, 1, 1)),
    ('i("f32 >> +i~.")', [i64(1, 2, 3)], np.float32(6)),
    ('i("f64")', [TRUTHS], f64(1, 1, 0)),
    ('i("(I | f32) >> i*i~i")', [f32(0.5, 0.25), i32(4, 8)], f32(2, 2)),
]


@on_each_target
@pytest.mark.parametrize(("program", "inputs", "expected"), TYPED)
def test_typed(program: str, inputs: list[Any], expected: Any, target: str) -> None:
    agree(index(program, inputs, target), expected)


@on_each_target
def test_python_numbers_fit_rank_0(target: str) -> None:
    agree(index('i("i*.~i")', [X, 3], target), 3 * X)
    agree(index('i("i*.~i")', [f64(0.1), 0.5], target), f64(0.05))


@on_each_target
def test_long_sums_stay_exact(target: str) -> None:
    x = np.full(2**22, 0.1, np.float32)
    got = index('i("+i~.")', [x], target)
    assert abs(float(got) - float(x.astype(np.float64).sum())) <= 1e-6 * 0.1 * 2**22


@on_each_target
def test_inputs_are_only_read(target: str) -> None:
    x = A.copy()
    x.flags.writeable = False
    agree(index("I", [x], target), A)
    assert not np.shares_memory(index("I", [x], target), x)


REFUSED: list[tuple[str, str, list[Any]]] = [
    ("E0101", 'i("")', []),
    ("E0102", 'i("i%i~i")', [X, X]),
    ("E0103", 'i("i+~i")', [X, X]),
    ("E0104", 'i("ij+jk")', [A, B]),
    ("E0106", 'i("iJ~i")', [A]),
    ("E0107", 'i("(i+i)~i")', [X]),
    ("E0108", 'i("i~i >>")', [X]),
    ("E0110", 'i("(i~i")', [X]),
    ("E0112", 'i("einsum(x)")', [X]),
    ("E0112", 'i("einx.sum(x)")', [X]),
    ("E0115", 'i("op f(x) = x")', [X]),
    ("E0116", 'i("2.")', []),
    ("E0201", 'i("i~ij")', [X]),
    ("E0202", 'i("ij*jk~ik")', [A, B]),
    ("E0203", 'i("-ij~i")', [A]),
    ("E0203", 'i("!!i~.")', [X]),
    ("E0204", 'i("i!!i~i")', [X, X]),
    ("E0205", 'i("ij~ii")', [A]),
    ("E0206", 'i("ij~(2i)j")', [A]),
    ("E0207", 'i(">(2i+u:3)(2j+u:2)~ij")', [S]),
    ("E0301", 'i("+ij~i | j:0 | i j j\'")', [A]),
    ("E0306", 'i("+ij~i || i")', [A]),
    ("E0401", 'i("softmix")', [A]),
    ("E0501", 'i("ij~ij >> i~i")', [A]),
    ("E0503", 'i("ij~ij")', [X]),
    ("E0505", 'i("i+i~i")', [f32(1, 2), f32(1, 2, 3)]),
    ("E0505", 'i("ij+ij~ij")', [A, A[:1]]),
    ("E0505", 'i("ii~i")', [A]),
    ("E0570", 'i("+(y+u)~y")', [X]),
    ("E0571", 'i("(-y+u:2)~yu")', [X]),
    ("E0572", 'i("+(y+u:5)~y")', [X]),
    ("E0573", 'i("(I & (+(y+u:3)~y)) >> y+y~y")', [LEFT]),
    ("E0574", 'i("2j~j")', [A]),
    ("E0601", 'i("i+i~i")', [i32(1), f32(1)]),
    ("E0601", 'i("i==i~i")', [f64(1), i64(1)]),
    ("E0602", 'i("i/i~i")', [i32(1), i32(1)]),
    ("E0602", 'i("^i~i")', [i64(1)]),
    ("E0603", '(I | i("0.5")) >> i("i*.~i")', [i32(1)]),
    ("E0701", 'i("i+i~i")', [X]),
    ("E0702", 'i("i~i")', [{1.0, 2.0}]),
    ("E0703", 'i("i~i")', [X.astype(np.complex64)]),
    ("E0703", 'i("i~i")', [np.array(["x"])]),
    ("E0705", 'i(".+.~.")', [np.array(1, np.int32), 2**40]),
    ("E0716", 'i("i~i") >> 3', [X]),
]


@on_each_target
@pytest.mark.parametrize(("code", "program", "inputs"), REFUSED)
def test_refused(code: str, program: str, inputs: list[Any], target: str) -> None:
    with pytest.raises(Error) as caught:
        index(program, inputs, target)
    assert caught.value.code == code

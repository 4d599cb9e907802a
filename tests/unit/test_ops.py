"""The op table, the oracle's meanings and the spellings in C: every operator and primitive has each, and they agree."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import elementwise, i, load
from ilang.codegen.compile import toolchain
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.targets import c_library
from ilang.codegen.targets.cfamily import C_TYPES, Spelling
from ilang.codegen.targets.library import linked
from ilang.core.dtype import DTYPES, FLOATS, INTEGERS
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Buffer, Program
from ilang.core.ir.scalar import Apply, Load
from ilang.core.machine import CPU
from ilang.core.ops import OPS, PRIMITIVES, SYMBOLS, Primitive
from ilang.core.reference import MEANING, NUMPY_TYPES
from tests.shares import one_in

Array = npt.NDArray[Any]

CONTRACT = {
    "+": ("add", "add", "copy", 0),
    "*": ("mul", "mul", "copy", 1),
    "-": ("sub", "sub", "neg", None),
    "/": ("div", "div", "recip", None),
    ">": ("max", "max", "max", -np.inf),
    "<": ("min", "min", "min", np.inf),
    "^": ("pow", "pow", "exp", None),
    "$": ("log", "log", "ln", None),
    ">>": ("gt", "gt", "gt", None),
    ">=": ("gte", "gte", "gte", None),
    "<<": ("lt", "lt", "lt", None),
    "<=": ("lte", "lte", "lte", None),
    "==": ("eq", "eq", "eq", None),
    "!=": ("neq", "neq", "neq", None),
    "&&": ("and", "and", "truth", 1),
    "||": ("or", "or", "truth", 0),
    "^^": ("xor", "xor", "truth", 0),
    "!!": ("not", None, "not", None),
}
"""Symbol, name, binary and unary primitive, identity: the table of docs/language.md section 2."""


def test_the_table_is_that_of_the_contract() -> None:
    found = {s: (op.name, op.binary, op.unary, op.identity) for s, op in OPS.items()}
    assert found == CONTRACT
    assert all(symbol == op.symbol for symbol, op in OPS.items())


def test_longer_symbols_are_tried_first() -> None:
    assert sorted(SYMBOLS) == sorted(OPS)
    for one, other in itertools.combinations(SYMBOLS, 2):
        assert not other.startswith(one)


def test_forms_use_primitives_of_their_arity() -> None:
    for op in OPS.values():
        if op.binary is not None:
            assert PRIMITIVES[op.binary].arity == 2
        filled = (op.unary_left is not None) + (op.unary_right is not None)
        assert PRIMITIVES[op.unary].arity == 1 + filled


def test_every_primitive_is_used() -> None:
    used = {op.unary for op in OPS.values()} | {op.binary for op in OPS.values()}
    powers = {"sqrt", "square"}  # what powers by a literal become
    units = {"tf32", "bf16"}  # what matrix units round
    assert set(PRIMITIVES) - used - powers - units == {
        "sin",
        "cos",
        "tanh",
        "erf",
        "where",
        "floor_divide",
    }  # of tensor operations, and of those in einx notation


def test_the_oracle_knows_every_primitive() -> None:
    assert set(MEANING) == set(PRIMITIVES)


@pytest.mark.parametrize("symbol", [s for s, op in OPS.items() if op.identity is not None])
def test_identities_are_neutral(symbol: str) -> None:
    op = OPS[symbol]
    assert op.binary is not None
    assert op.identity is not None
    logic = PRIMITIVES[op.binary].kind == "logic"
    x = np.asarray([False, True]) if logic else np.asarray([-np.inf, -1.0, 0.0, 2.0, np.inf])
    identity = x.dtype.type(op.identity)
    np.testing.assert_array_equal(MEANING[op.binary](identity, x), x)
    np.testing.assert_array_equal(MEANING[op.binary](x, identity), x)


def types_of(primitive: Primitive) -> tuple[str, ...]:
    """The types that the operands of a primitive may have in a kernel."""
    match primitive.kind:
        case "float":
            return FLOATS
        case "arithmetic":
            return (*FLOATS, *INTEGERS)
        case _:
            return DTYPES


CASES = [(p.name, dtype) for p in PRIMITIVES.values() if p.kind != "move" for dtype in types_of(p)]

LIBM = {"pow", "sqrt", "sqrtf", "sin", "cos", "erf"}
"""Functions that C programs take from the C library."""

SAMPLES: dict[str, list[float]] = {
    "f32": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        3.0,
        -2.5,
        1.00048828125,
        1e-40,
        3e38,
        np.inf,
        -np.inf,
        np.nan,
    ],
    "f64": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        3.0,
        -2.5,
        1.00048828125,
        5e-324,
        1e308,
        np.inf,
        -np.inf,
        np.nan,
    ],
    "i32": [0, 1, -1, 2, 46341, 2**31 - 1, -(2**31)],
    "i64": [0, 1, -1, 2, 3037000500, 2**63 - 1, -(2**63)],
    "bool": [0, 1],
}


def scalar_of(name: str, dtype: str) -> tuple[Apply, Program]:
    """A primitive on elements of two arrays, and a program that holds them."""
    primitive = PRIMITIVES[name]
    arguments = tuple(Load(BufferId(n), (), dtype) for n in range(primitive.arity))
    result = "bool" if primitive.kind in ("compare", "logic") else dtype
    buffers = tuple(Buffer(f"x{n}", dtype, (), "temporary") for n in range(primitive.arity))
    return Apply(name, arguments, result), Program("f", (), buffers, (), (), ())


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_primitive_has_a_spelling(name: str, dtype: str) -> None:
    scalar, program = scalar_of(name, dtype)
    text = Spelling(program, None).value(scalar)
    assert all(f"x{n}[0]" in text for n in range(len(scalar.arguments)))
    ours = {name for part in c_library.parts(CPU) for name in part.names}
    for called in set(re.findall(r"\b(\w+)\(", text)) - {"INT64_C"}:
        assert f"{called}(" in ours or called in LIBM


def c_functions() -> Iterator[str]:
    """A C function per primitive and type that applies it to arrays."""
    yield "#include <math.h>\n#include <stdint.h>\n"
    functions = "\n".join(_c_function(name, dtype) for name, dtype in CASES)
    yield from linked(functions, c_library.parts(CPU))
    yield functions


def _c_function(name: str, dtype: str) -> str:
    scalar, program = scalar_of(name, dtype)
    assert scalar.dtype is not None
    value = Spelling(program, None).value(scalar).replace("[0]", "[n]")
    given = C_TYPES[dtype]
    inputs = ", ".join(f"const {given} *x{number}" for number in range(3))
    head = f"void {name}_of_{dtype}(int count, {inputs}, {C_TYPES[scalar.dtype]} *out)"
    loop = f"for (int n = 0; n < count; ++n) out[n] = {value};"
    return f"{head}\n{{ (void)x1; (void)x2; {loop} }}\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions, compiled as programs are."""
    import cffi

    folder: Path = tmp_path_factory.mktemp("primitives")
    (folder / "all.c").write_text("\n".join(c_functions()), "utf-8")
    command = [*find_compiler().command, *toolchain.STANDARD, "-O2", "-Wall", "-Werror"]
    subprocess.run([*command, "all.c", "-o", "all.so", "-lm"], cwd=folder, check=True)
    ffi = cffi.FFI()
    for name, dtype in CASES:
        ffi.cdef(f"void {name}_of_{dtype}(int, const void *, const void *, const void *, void *);")
    return ffi, ffi.dlopen(str(folder / "all.so"))


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_c_means_what_the_oracle_means(library: Any, name: str, dtype: str) -> None:
    """Every primitive on all pairs of special values gives the oracle's answer, signs of zeros included."""
    ffi, functions = library
    arity = PRIMITIVES[name].arity
    pairs = np.array(list(itertools.product(SAMPLES[dtype], repeat=arity)), dtype=object)
    columns = [np.asarray(list(column), dtype=NUMPY_TYPES[dtype]) for column in pairs.T]
    with np.errstate(all="ignore"):
        want: Array = np.asarray(MEANING[name](*columns))
    got = np.empty(len(pairs), dtype=want.dtype)
    inputs = [ffi.from_buffer(column) for column in (*columns, columns[0], columns[0])[:3]]
    getattr(functions, f"{name}_of_{dtype}")(len(pairs), *inputs, ffi.from_buffer(got))
    if want.dtype.kind != "f" or name not in (
        "exp",
        "ln",
        "log",
        "pow",
        "sin",
        "cos",
        "tanh",
        "erf",
    ):
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "f32" else 1e-14, atol=1e-44)
    if want.dtype.kind == "f" and name != "log":
        settled = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[settled], np.signbit(want)[settled])


def test_quotients_of_f32_are_rounded_down_as_if_exact() -> None:
    """Near whole numbers, up to where those are no floats; a division in f32 rounds many up to the next one."""
    draw = np.random.default_rng(0)
    y = draw.uniform(0.001, 5, 20_000).astype(np.float32)
    x = (np.round(draw.uniform(-4e6, 4e6, y.size)) * y).astype(np.float32)
    x[::2] = np.nextafter(x[::2], np.float32(0))
    got = elementwise("f", ["floor_divide(x, y)"], inputs=["x", "y"])(x, y)
    exact = [Fraction(float(a)) // Fraction(float(b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(got, np.array(exact, np.float64).astype(np.float32))


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_zero_with_a_sign_is_the_smaller_one(target: str) -> None:
    """Whatever the order and however many there are: in pairs and in lanes."""
    for count in (2, 37, 200):
        zeros = np.zeros(count, np.float32)
        zeros[count // 2 :] = -0.0
        for x in (zeros, zeros[::-1].copy()):
            assert not np.signbit(i(">i~.")(x, target=target))
            assert np.signbit(i("<i~.")(x, target=target))
            greater, less = (i(f"(I | I) >> i{op}i~i") for op in "><")
            assert not np.signbit(greater(x, -x, target=target)).any()
            assert np.signbit(less(x, -x, target=target)).all()
        assert np.signbit(i(">i~.")(-np.abs(zeros), target=target))
        assert not np.signbit(i("<i~.")(np.abs(zeros), target=target))


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_zero_written_with_a_sign_has_it(target: str) -> None:
    """``-0`` is -0.0 beside floats and 0 beside whole numbers, in every notation of expressions."""
    ones, wholes = np.ones(2, np.float32), np.array([3, 0])
    assert i("(-0) >> /.~.")(target=target) == -np.inf
    assert i("(-0 | I) >> .*i~i >> /i~i")(ones, target=target).tolist() == [-np.inf] * 2
    assert i("(-0 | I) >> .+i~i")(wholes, target=target).tolist() == [3, 0]
    kernel = elementwise("f", ["1 / (x0 * -0)", "1 / -(-0)"])
    for got, want in zip(kernel(ones, target=target), (-np.inf, np.inf), strict=True):
        assert (got == want).all()


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("target", one_in(2, ["c", "cuda-emulated"]))
@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("op f(x) = recip(x *. (-0))", [-np.inf, -np.inf]),
        ("op f(x) = recip(x *. -(-0))", [np.inf, np.inf]),
        ("op f(x) = recip([ -0; 0 ] *. x)", [-np.inf, np.inf]),
        ('op f(x) = recip("w" [ -0; 0 ] *. x)', [-np.inf, np.inf]),
        ("op f(x) = recip(values(-0, 0) *. x)", [-np.inf, np.inf]),
        ("op f(x) = recip(fill(-0) *. x)", [-np.inf, -np.inf]),
        ("op f(x; a = -0) = recip(a *. x)", [-np.inf, -np.inf]),
        ("op f(x) = recip(repeat(x; a in [-0]) { a *. x })", [-np.inf, -np.inf]),
        ('cd f(x) { "d" =: x * -0 ~logic:"."; y = recip(d); return y }', [-np.inf, -np.inf]),
    ],
)
def test_a_zero_written_with_a_sign_has_it_in_tensor_functions(
    target: str, text: str, want: list[float], tmp_path: Path
) -> None:
    (tmp_path / "f.i").write_text(text)
    session = load(tmp_path / "f.i").session("f", shapes={"x": "2"}, target=target)
    assert session(x=np.ones(2, np.float32)).tolist() == want

"""Components: combined lazily, called with arrays that are checked, the same from every target."""

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ilang
from ilang import Error, I, einsum, i, load, tensor
from ilang.codegen.components.component import Component

ROOT = Path(__file__).resolve().parents[3]
Array = npt.NDArray[Any]

pytestmark = pytest.mark.usefixtures("real_compiler")

PLUS = "ij+ij~ij"


@pytest.fixture
def plus() -> Component:
    return i(PLUS)


def grid(*shape: int, dtype: Any = np.float32) -> Array:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def refused(code: str, component: Component, *arrays: object, **named: Any) -> Error:
    with pytest.raises(Error) as caught:
        component(*arrays, **named)
    assert caught.value.code == code
    return caught.value


# combining


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_product(target: str) -> None:
    f = i("ik*kj~ijk") >> i("+ijk~ij")
    x, y = grid(3, 4), grid(4, 5)
    np.testing.assert_allclose(f(x, y, target=target), x @ y, rtol=1e-6)


def test_text_on_either_side() -> None:
    x, y = grid(2, 3), grid(3, 2)
    f = i("ik*kj~ijk")
    for g in (
        f >> "+ijk~ij",
        "ik*kj~ijk" >> i("+ijk~ij"),
        "+ijk~ij" << f,
        i("+ijk~ij") << "ik*kj~ijk",
    ):
        np.testing.assert_allclose(g(x, y), x @ y)


def test_fanout_pair_swap_and_identity() -> None:
    x = grid(2, 3)
    doubled: Any = (I & "+ij~i")(x)
    assert isinstance(doubled, tuple)
    np.testing.assert_array_equal(doubled[0], x)
    assert not np.shares_memory(doubled[0], x)
    np.testing.assert_array_equal(doubled[1], x.sum(1))
    first, second = (~("-i~i" | i("+ij~i")))(grid(3), x)
    np.testing.assert_array_equal(first, x.sum(1))
    np.testing.assert_array_equal(second, -grid(3))
    for g in ("-ij~ij" & i("+ij~i"), i("-ij~ij") & "+ij~i"):
        assert [r.ndim for r in g(x)] == [2, 1]
    for g in ("-i~i" | i("+i~."), i("-i~i") | "+i~."):
        assert [r.ndim for r in g(grid(3), grid(4))] == [1, 0]


def test_constant_beside_identity() -> None:
    f = (I | "0.5") >> i("ij*.~ij")
    np.testing.assert_array_equal(f(grid(2, 3)), grid(2, 3) / 2)


@pytest.mark.parametrize("other", [3, 0.5, None, [1], np.ones(3), np.float32(2)])
def test_only_components_and_texts_combine(other: Any) -> None:
    f = i("-i~i")
    attempts: list[Callable[[], Any]] = [
        lambda: f >> other,
        lambda: other >> f,
        lambda: f << other,
        lambda: other << f,
        lambda: f & other,
        lambda: other & f,
        lambda: f | other,
        lambda: other | f,
    ]
    for attempt in attempts:
        with pytest.raises(Error) as caught:
            attempt()
        assert caught.value.code == "E0716"


def test_text_is_read_at_once() -> None:
    with pytest.raises(ilang.NotationError):
        i("ij~")
    with pytest.raises(ilang.NotationError):
        i("-i~i") >> "?"
    with pytest.raises(Error) as caught:
        i(3)  # type: ignore[arg-type]
    assert caught.value.code == "E0716"


def test_doubling_is_cheap_until_it_is_used() -> None:
    f = i("-i~i")
    for _ in range(64):
        f = f >> f
    assert repr(f) == f"<Component {2**64} expressions: 1 input, 1 output>"
    refused("E0250", f, grid(3))


def test_long_chains() -> None:
    f, g = i("-i~i"), i("-i~i")
    for _ in range(999):
        f = f >> "-i~i"
        g = "-i~i" >> g
    np.testing.assert_array_equal(f(grid(3)), grid(3))
    np.testing.assert_array_equal(g(grid(3)), grid(3))


def test_deep_trees_go_away_quietly() -> None:
    f, g = i("-i~i"), i("-i~i")
    for n in range(100_000):
        f = g >> f if n % 2 else f >> g
    assert repr(f) == "<Component 100001 expressions: 1 input, 1 output>"
    del f


def test_a_file_is_loaded_and_has_attributes(tmp_path: Path) -> None:
    (tmp_path / "mm.i").write_text("total = +i~.\n")
    library = load(tmp_path / "mm.i")
    assert library.total is library["total"]
    with pytest.raises(AttributeError, match="the file defines no totl: it has total"):
        _ = library.totl
    with pytest.raises(Error, match="is the name of a file") as caught:
        i("mm.i")
    assert caught.value.help == 'load("mm.i") reads a file'


def test_arrays_in_messages_are_their_shapes() -> None:
    with pytest.raises(Error, match=r"f\.grad\(\)\(x, y\)"):
        i("i*i~i").grad(np.ones(2), np.ones(2))
    with pytest.raises(Error, match=r"wrt=an array of shape \(2,\) does not name inputs"):
        i("+i~.").grad(np.ones(2))
    with pytest.raises(Error, match=r"an array of shape \(2, 3\) is no list of axes"):
        einsum(np.ones((2, 3)), np.ones((2, 3)))


def test_modules_are_attributes() -> None:
    code = "import ilang; ilang.einops.rearrange, ilang.einx.id, ilang.tensor.data"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_repr() -> None:
    assert repr(i("ik*kj~ijk>>+ijk~ij")) == "<Component ik*kj~ijk >> +ijk~ij: 2 inputs, 1 output>"
    assert repr(I) == "<Component I: 1 input, 1 output>"
    assert repr(i("2")) == "<Component 2: 0 inputs, 1 output>"
    assert repr(~(I & I)) == "<Component ~(I & I): 1 input, 2 outputs>"


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("I >> I", 1, 1),
        ("i*i~i >> I", 2, 1),
        ("I >> i*i~i", 2, 1),
        ("i*i~i << I", 2, 1),
        ("(I & I) >> I", 1, 2),
        ("(I | I) << (I & I)", 1, 2),
        ("i*i~i & I", 2, 2),
        ("I & i*i~i", 2, 2),
        ("(I | 2) >> i*.~i", 1, 1),
        ("f64 | ~(I | I)", 3, 3),
    ],
)
def test_counts_are_those_of_the_graph(text: str, inputs: int, outputs: int) -> None:
    f = i(text)
    graph = f.graph()
    assert (len(graph.inputs), len(graph.outputs)) == (inputs, outputs)
    assert (f.program.wires.inputs, f.program.wires.outputs) == (inputs, outputs)


def test_pickle() -> None:
    f = pickle.loads(pickle.dumps(i("ik*kj~ijk") >> i("+ijk~ij")))
    np.testing.assert_allclose(f(grid(2, 3), grid(3, 2)), grid(2, 3) @ grid(3, 2))


# what can be asked without arrays


def test_shapes() -> None:
    f = i("ik*kj~ijk") >> i("+ijk~ij")
    assert f.shapes((2, 3), (3, 4)) == ((2, 4),)
    assert f.shapes([2, np.int64(3)], (3, 4)) == ((2, 4),)  # type: ignore[arg-type]
    assert (I & "+ij~.").shapes((2, 3)) == ((2, 3), ())
    assert i("2").shapes() == ((),)


@pytest.mark.parametrize(
    ("shapes", "code"),
    [
        (((2, 3),), "E0701"),
        (((2, 3), (4, 4)), "E0505"),
        (((2, 3), (3,)), "E0503"),
        (((2, 3), (3, -1)), "E0507"),
        ((2, 3), "E0715"),
        (((2, 3), (3, 1.5)), "E0715"),
        (((2, 3), "34"), "E0715"),
    ],
)
def test_shapes_that_do_not_fit(shapes: Any, code: str) -> None:
    f = i("ik*kj~ijk") >> i("+ijk~ij")
    for ask in (f.shapes, f.loops, lambda *given: f.source("c", *given)):
        with pytest.raises(Error) as caught:
            ask(*shapes)
        assert caught.value.code == code


def test_source_and_loops() -> None:
    f = i("ik*kj~ijk") >> i("+ijk~ij")
    assert "int64_t k" in f.source("c")
    assert f.source() == f.source("c")
    assert "__global__ void" in f.source("cuda", (2, 3), (3, 4))
    assert "char none" in f.source("c", (2, 3), (3, 4))
    assert "0..4" in f.loops((2, 3), (3, 4))
    assert "0..n_k" in f.loops()


# arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_element_types(dtype: Any, target: str, plus: Component) -> None:
    x = grid(2, 3, dtype=dtype)
    result = plus(x, x, target=target)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, x + x)


@pytest.mark.parametrize(
    "text", ["(0 | I) >> .-i~i", "(0 | f32) >> .-i~i", "(0 | f64) >> .-i~i", "(0 | -i~i) >> .+i~i"]
)
def test_nothing_minus_nothing_is_no_negative_zero(text: str) -> None:
    """C compilers that take ``0 - (float)n`` for ``-(float)n`` give -0 where ``n`` is 0."""
    result = i(text)(np.array([False, True]))
    assert list(np.signbit(result)) == [False, True]
    assert list(result) == [0, -1]


def test_booleans() -> None:
    x = np.array([True, False, True, False])
    result = i("i&&i~i")(x, x[::-1])
    assert result.dtype == np.bool_
    np.testing.assert_array_equal(result, x & x[::-1])


@pytest.mark.parametrize(
    "dtype", ["c8", "c16", "u8", "g", "O", "U3", "S3", "M8[s]", "m8[s]", "f4,f4"]
)
def test_other_element_types_are_refused(dtype: str, plus: Component) -> None:
    x = grid(2, 2)
    error = refused("E0703", plus, x, np.zeros((2, 2), dtype))
    assert "in1" in error.message
    assert error.help is not None
    assert "float32, float64, int32, int64 and bool" in error.help


@pytest.mark.parametrize(
    ("dtype", "casts"),
    [
        (np.uint64, "convert it where you see what is lost: in1.astype(np.int64)"),
        (np.longdouble, "convert it where you see what is lost: in1.astype(np.float64)"),
        (np.complex64, "pass in1.real and in1.imag"),
    ],
)
def test_refused_arrays_are_told_the_cast(dtype: Any, casts: str, plus: Component) -> None:
    error = refused("E0703", plus, grid(2, 2), np.zeros((2, 2), dtype))
    assert (error.help or "").endswith(f"; {casts}")


@pytest.mark.parametrize(
    ("dtype", "read_as"),
    [
        *(("f2", "f4"), (">f2", "f4")),
        *((kind, "i4") for kind in ("i1", "i2", "u1", "u2", ">i2")),
        ("u4", "i8"),
    ],
)
def test_smaller_element_types_are_read_as_wider_ones(dtype: str, read_as: str) -> None:
    """Each call anew: an array of another type is never taken for one of an earlier call."""
    total = i("+ij~i")
    for fill in (3, 5, 100):
        given = np.full((2, 4), fill, dtype)
        result = total(given)
        assert result.dtype == np.dtype(read_as)
        np.testing.assert_array_equal(result, [4 * fill, 4 * fill])
        np.testing.assert_array_equal(total(given.astype(read_as)), result)
    np.testing.assert_array_equal(total.grad()(np.ones((2, 2), "f2")), np.ones((2, 2), "f4"))


HOLDING_ITSELF: list[Any] = []
HOLDING_ITSELF += [HOLDING_ITSELF, HOLDING_ITSELF]


@pytest.mark.parametrize(
    "value", [[[1.0, 2.0], [3.0]], HOLDING_ITSELF, None, "text", b"bytes", 1j, object(), {}, {1.0}]
)
def test_what_is_no_array_is_refused(value: object, plus: Component) -> None:
    assert "in0" in refused("E0702", plus, value, grid(2, 2)).message


class Shared:
    """An array that only DLPack gives."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([[1, 2], [3, 4]], "float32"),
        (((1.5, 2), (3, 4)), "float32"),
        ([range(2), range(2)], "int64"),
        ([np.ones(2), np.ones(2)], "float64"),
        (np.ones((2, 2), np.int32).data, "int32"),
        (Shared(np.ones((2, 2))), "float64"),
        ([[]], "float32"),
        ([[float("nan"), float("inf")]], "float32"),
    ],
)
def test_lists_and_exported_memory(value: Any, dtype: str) -> None:
    result = i("+ij~i")(value)
    assert result.dtype == dtype
    array = np.asarray(value.array if isinstance(value, Shared) else value)
    np.testing.assert_array_equal(result, array.sum(1))


def test_lists_have_the_type_of_what_stands_beside(plus: Component) -> None:
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        ones = np.ones((1, 2), dtype)
        assert plus([[1, 2]], ones).dtype == plus(ones, ones).dtype
    assert "1073741824" in refused("E0705", plus, [[1, 2**30]], np.ones((1, 2), np.float32)).message
    refused("E0705", plus, [[1, 2**40]], np.ones((1, 2), np.int32))
    refused("E0703", plus, [["text"]], grid(1, 1))
    refused("E0703", plus, [[10**30]], grid(1, 1))


class Chunked:
    """What an array of Dask is told by."""

    def __dask_graph__(self) -> None:
        """Say that something is yet to be computed."""

    def __array__(self, *_: object, **__: object) -> Array:
        raise AssertionError("nothing computes it unasked")


def test_arrays_of_dask_are_refused(plus: Component) -> None:
    error = refused("E0702", plus, grid(2, 2), Chunked())
    assert "x.compute()" in error.help


def test_masked_arrays_are_refused(plus: Component) -> None:
    masked = np.ma.masked_array(grid(2, 2), grid(2, 2) > 1)
    refused("E0704", plus, grid(2, 2), masked)
    plus(grid(2, 2), grid(2, 2))
    refused("E0704", plus, grid(2, 2), masked)
    refused("E0704", plus, grid(2, 2), grid(2, 2), out=masked)


def test_number_of_arrays(plus: Component) -> None:
    error = refused("E0701", plus, grid(2, 2))
    assert error.message == "the program takes 2 arrays, and 1 array is given"
    assert error.help == "its inputs are in0 (`ij`), in1 (`ij`); missing: in1"
    refused("E0701", plus)
    refused("E0701", plus, grid(2, 2), grid(2, 2), grid(2, 2))
    refused("E0701", i("2"), grid(2))


def test_rank_and_extents(plus: Component) -> None:
    for _ in range(2):
        assert "in1" in refused("E0503", plus, grid(2, 2), grid(2, 2, 1)).message
        message = refused("E0505", plus, grid(2, 3), grid(2, 4)).message
        assert message == "axis j is 3 in in0 (dimension 1) and 4 in in1 (dimension 1)"
        refused("E0505", plus, grid(2, 3), grid(1, 3))
        plus(grid(2, 3), grid(2, 3))


def test_types_do_not_mix(plus: Component) -> None:
    refused("E0601", plus, grid(2, 2), grid(2, 2, dtype=np.int32))


def test_widening(plus: Component) -> None:
    assert plus(grid(2, 2), grid(2, 2, dtype=np.float64)).dtype == np.float64
    assert plus(grid(2, 2, dtype=np.int32), grid(2, 2, dtype=np.int64)).dtype == np.int64


def _frozen(x: Array) -> Array:
    x.flags.writeable = False
    return x


class _OtherClass(np.ndarray[Any, Any]):
    """An array class of somebody else."""


def _other_class(x: Array) -> Array:
    return x.copy().view(_OtherClass)


class _Foreign:
    """Something that can be read as an array."""

    def __init__(self, x: Array) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.x


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "plain": lambda x: x.copy(),
    "transposed": lambda x: x.T.copy().T,
    "every other": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: _frozen(x.copy()),
    "unaligned": lambda x: np.frombuffer(b"." + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    "another class": _other_class,
    "foreign": _Foreign,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_layouts(layout: str, dtype: Any, plus: Component) -> None:
    x, y = grid(3, 4, dtype=dtype), LAYOUTS[layout](grid(3, 4, dtype=dtype))
    before = np.array(y)
    for _ in range(3):
        result = plus(x, y)
        np.testing.assert_array_equal(result, x + before)
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(plus(y, x), x + before)
    np.testing.assert_array_equal(np.array(y), before)


class _SilentError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("this error has no words")


@pytest.mark.parametrize("is_property", [False, True])
@pytest.mark.parametrize("name", ["__array__", "__array_interface__"])
@pytest.mark.parametrize(
    "failure",
    [ValueError("wrong"), RuntimeError("\ud800"), MemoryError(), KeyError("k"), _SilentError()],
)
def test_whatever_a_foreign_array_raises(
    failure: Exception, name: str, is_property: bool, plus: Component
) -> None:
    def fail(*_given: object, **_named: object) -> None:
        raise failure

    value = type("Foreign", (), {name: property(fail) if is_property else fail})()
    error = refused("E0702", plus, grid(2, 2), value)
    assert "in1" in error.message
    assert str(error).encode()
    code = refused("E0706", plus, grid(2, 2), grid(2, 2), out=value).message
    assert "Foreign" in code
    with pytest.raises(Error) as caught:
        einsum("i; i => i", np.ones(2), value)
    assert caught.value.code == "E0702"
    with pytest.raises(Error) as caught:
        tensor.data(value, name="weights")
    assert "weights" in caught.value.message


def test_values_that_cannot_be_shown(plus: Component) -> None:
    class Hidden:
        def __repr__(self) -> str:
            raise ValueError("nothing to see")

    refused("E0711", plus, grid(2, 2), grid(2, 2), threads=Hidden())
    refused("E0712", plus, grid(2, 2), grid(2, 2), target=Hidden())
    for shapes in (Hidden(), (Hidden(),), (10**20000,)):
        with pytest.raises(Error) as caught:
            i("-i~i").shapes(shapes)  # type: ignore[arg-type]
        assert caught.value.code == "E0715"
    assert "bits" in refused("E0705", i("-i~i"), 10**20000).message


def test_too_large_says_how_large() -> None:
    error = refused("E0713", i("i*j~ij"), np.ones(2**23, np.float32), np.ones(2**24, np.float32))
    assert f"the result: {2**49:,} bytes" in error.message


def test_foreign_arrays_that_fail(plus: Component) -> None:
    class Wrong:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
            raise OverflowError("nothing here")

    assert "nothing here" in refused("E0702", plus, grid(2, 2), Wrong()).message


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_arrays(shape: tuple[int, int], plus: Component) -> None:
    x = np.zeros(shape, np.float32)
    for _ in range(2):
        assert plus(x, x).shape == shape
        assert plus(x, x, out=np.zeros(shape, np.float32)).shape == shape
    np.testing.assert_array_equal(i("+ij~i")(x), np.zeros(shape[0]))


def test_rank_0_results_are_arrays() -> None:
    for _ in range(2):
        result = i("+i~.")(grid(4))
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert float(result) == 6


def test_int_spellings_share_a_type(plus: Component) -> None:
    for name in ("l", "q"):
        x = np.ones((2, 2), name)
        assert plus(x, x).dtype == np.int64


def test_many_sizes(plus: Component) -> None:
    plus = plus.dynamic()
    for n in range(300):
        assert plus(grid(n, 1), grid(n, 1)).shape == (n, 1)
    assert len(plus.program.plans) <= 256


# Python numbers


@pytest.mark.parametrize(
    ("value", "beside", "dtype"),
    [
        (0.5, np.float32, np.float32),
        (0.5, np.float64, np.float64),
        (2, np.float32, np.float32),
        (2, np.float64, np.float64),
        (2, np.int32, np.int32),
        (2, np.int64, np.int64),
        (True, np.int32, np.int32),
        (float("inf"), np.float32, np.float32),
        (float("nan"), np.float32, np.float32),
        (np.float64(2), np.float32, np.float64),
    ],
)
def test_numbers(value: Any, beside: Any, dtype: Any) -> None:
    x = np.ones(3, beside)
    result = i("i*.~i")(x, value)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.array([value] * 3, dtype))


def test_numbers_alone() -> None:
    assert i("+.~.")(3).dtype == np.float32
    assert i("+.~.")(0.1).dtype == np.float32
    assert i("+.~.")(True).dtype == np.bool_


@pytest.mark.parametrize(
    ("value", "beside"),
    [
        (2**24 + 1, np.float32),
        (2**31, np.int32),
        (-(2**63) - 1, np.int64),
        (1e300, np.float32),
        (10**400, np.float64),
    ],
)
def test_numbers_that_do_not_fit(value: Any, beside: Any) -> None:
    assert "in1" in refused("E0705", i("i*.~i"), np.ones(3, beside), value).message


def test_numbers_are_of_rank_0(plus: Component) -> None:
    refused("E0503", plus, grid(2, 2), 3.0)


# outputs


def test_out(plus: Component) -> None:
    x, z = grid(2, 3), np.empty((2, 3), np.float32)
    for target in ("c", "numpy", "c"):
        z[...] = -1
        assert plus(x, x, out=z, target=target) is z
        np.testing.assert_array_equal(z, x + x)
    assert plus(x, x, out=(z,))[0] is z


def test_several_outs() -> None:
    x, outs = grid(2, 3), (np.empty((2, 3), np.float32), np.empty(2, np.float32))
    f = I & "+ij~i"
    assert f(x, out=outs) is outs
    np.testing.assert_array_equal(outs[1], x.sum(1))
    refused("E0706", f, x, out=outs[0])
    refused("E0706", f, x, out=outs[:1])
    refused("E0706", f, x, out=(*outs, outs[0]))
    refused("E0706", f, x, out=(outs[0], None))


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize("warm", [False, True])
def test_outs_that_do_not_fit(target: str, warm: bool) -> None:
    f, x = i(PLUS), grid(4, 4)
    if warm:
        f(x, x)

    def refuse(code: str, out: object) -> None:
        refused(code, f, x, x, out=out, target=target)

    refuse("E0707", np.empty((4, 3), np.float32))
    refuse("E0707", np.empty(16, np.float32))
    refuse("E0708", np.empty((4, 4), np.float64))
    refuse("E0708", np.empty((4, 4), np.dtype(np.float32).newbyteorder()))
    refuse("E0710", np.empty((4, 4), np.float32).T)
    refuse("E0710", np.empty((4, 8), np.float32)[:, ::2])
    refuse("E0710", _frozen(np.empty((4, 4), np.float32)))
    refuse("E0710", np.frombuffer(bytearray(65), np.float32, offset=1).reshape(4, 4))
    refuse("E0706", [[0.0] * 4] * 4)
    refuse("E0706", "out")


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize("warm", [False, True])
def test_overlaps(target: str, warm: bool) -> None:
    f = i(PLUS)
    memory = np.zeros(200, np.float32)
    x, y = memory[:16].reshape(4, 4), np.ones((4, 4), np.float32)
    if warm:
        f(x, y)
    for start in (0, 1, 8, 15):
        out = memory[start : start + 16].reshape(4, 4)
        for arrays in ((x, y), (y, x), (x.T, y)):
            message = refused("E0709", f, *arrays, out=out, target=target).message
            assert "in0" in message or "in1" in message
    beside = memory[16:32].reshape(4, 4)
    np.testing.assert_array_equal(f(x, y, out=beside, target=target), x + y)
    interleaved = memory[100:132:2].reshape(4, 4)
    refused("E0709", f, interleaved, y, out=memory[101:117].reshape(4, 4), target=target)


def test_outs_that_overlap_each_other() -> None:
    memory = np.zeros(10, np.float32)
    refused("E0709", i("-i~i & +i~i"), grid(4), out=(memory[:4], memory[3:7]))
    first, second = i("-i~i & +i~i")(grid(4), out=(memory[:4], memory[4:8]))
    np.testing.assert_array_equal(first, -second)


def test_bytes_that_interleave_do_not_overlap() -> None:
    pairs = np.zeros((3, 8), np.float32)
    x, out = pairs[:, 0], pairs[1, 4:7]
    np.testing.assert_array_equal(i("-i~i")(x, out=out), -x)


@pytest.mark.parametrize("program", ["i+i~i", "i+i~i >> (I & +i~.) >> i-.~i"])
def test_outputs_are_checked_in_later_calls_too(program: str) -> None:
    f = i(program)
    x, y, z = grid(5), grid(5), np.zeros(5, np.float32)
    expected = f(x, y, target="numpy")
    for _ in range(2):
        assert f(x, y, out=z) is z
        np.testing.assert_allclose(z, expected)
    z[:] = 7
    read_only = np.zeros(5, np.float32)
    read_only.flags.writeable = False
    unaligned = np.zeros(21, np.uint8)[1:].view(np.float32)
    for code, out in {
        "E0704": np.ma.zeros(5, np.float32),
        "E0706": [0.0] * 5,
        "E0707": np.zeros(6, np.float32),
        "E0708": np.zeros(5, np.float64),
        "E0709": x,
    }.items():
        refused(code, f, x, y, out=out)
    for out in (read_only, unaligned, np.zeros(10, np.float32)[::2]):
        refused("E0710", f, x, y, out=out)
    np.testing.assert_array_equal(x, grid(5))
    assert f(x, y, out=(z,))[0] is z


def test_a_cached_program_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = grid(3, 4)
    expected = i("+ij~i")(x)

    def lower(*_: object, **__: object) -> None:
        raise AssertionError("lowered again")

    monkeypatch.setattr("ilang.codegen.call.load._loaded", {})
    monkeypatch.setattr("ilang.core.pipeline.lower", lower)
    np.testing.assert_array_equal(i("+ij~i")(x), expected)
    for text, array in (("+ij~j", x), ("+ij~i", x.astype(np.float64)), ("+ik~i", x)):
        with pytest.raises(AssertionError):
            i(text)(array)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", None, True])
def test_threads_that_are_no_number(threads: Any, plus: Component) -> None:
    x = grid(2, 2)
    refused("E0711", plus, x, x, threads=threads)
    plus(x, x)
    refused("E0711", plus, x, x, threads=threads)
    refused("E0711", plus, x, x, threads=threads, out=grid(2, 2))


def test_as_many_threads_as_are_worth_it(plus: Component) -> None:
    x = grid(2, 2)
    for _ in range(2):
        assert (plus(x, x, threads="auto") == 2 * x).all()
        out = np.empty_like(x)
        assert plus(x, x, threads="auto", out=out) is out
    sums = i("+ij~i")
    large = np.random.default_rng(2).random((2048, 2100), np.float32)
    alone = sums(large)
    assert (sums(large, threads="auto") == alone).all()
    assert refused("E0711", plus, x, x, threads="all").help.endswith('or "auto"')


@pytest.mark.parametrize("target", ["C", "", None, 3, "rust", {"x": "3|1"}, [3]])
def test_targets(target: Any, plus: Component) -> None:
    with pytest.raises(Error, match="E0712"):
        plus.check(target)
    refused("E0712", plus, grid(2, 2), grid(2, 2), target=target)


def test_results_too_large() -> None:
    refused("E0713", i("i*j~ij"), np.ones(2**23, np.float32), np.ones(2**24, np.float32))


# files


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "m.i"
    path.write_text(
        "mm(a[m,k], b[k,n]) = ik*kj~ijk >> +ijk~ij\n"
        "scaled(x: f64[m,4], by) = ij*.~ij\n"
        "norm = (I & total) >> ij/i~ij\n"
        "total = +ij~i\n"
    )
    return path


def test_load(module: Path) -> None:
    library = load(module)
    assert list(library) == ["mm", "scaled", "norm", "total"]
    x = grid(2, 3) + 1
    np.testing.assert_allclose(library["norm"](x), x / x.sum(1, keepdims=True))
    assert repr(library["norm"]) == "<Component norm = (I & total) >> ij/i~ij: 1 input, 1 output>"
    assert "mm_sizes" in library["mm"].source()


def test_written_names_and_numbers(module: Path) -> None:
    library = load(str(module))
    message = refused("E0505", library["mm"], grid(2, 3), grid(4, 5)).message
    assert message == "axis k is 3 in a (dimension 1) and 4 in b (dimension 0)"
    scaled = library["scaled"]
    x = grid(2, 4, dtype=np.float64)
    np.testing.assert_array_equal(scaled(x, 3), x * 3)
    assert refused("E0701", scaled, x).help == "its inputs are x (`ij`), by (`.`); missing: by"
    refused("E0506", scaled, grid(2, 5, dtype=np.float64), 3.0)
    with pytest.raises(ilang.ElementTypeError):
        scaled(grid(2, 4), 3.0)


def test_names_that_are_not_there(module: Path, tmp_path: Path) -> None:
    with pytest.raises(ilang.ModuleError) as caught:
        load(module)["totl"]
    assert (caught.value.code, caught.value.help) == ("E0401", "did you mean total?")
    with pytest.raises(ilang.DataError) as missing:
        load(tmp_path / "none.i")
    assert missing.value.code == "E0725"
    with pytest.raises(ilang.DataError):
        load(tmp_path)


@pytest.mark.parametrize(
    ("path", "named"), [(None, "None is"), (3, "3 is"), (b"no.i", "no.i cannot be read")]
)
def test_what_is_no_path(path: Any, named: str) -> None:
    with pytest.raises(ilang.DataError) as caught:
        load(path)
    assert caught.value.code == "E0725"
    assert caught.value.message.startswith(named)


def test_components_of_two_files_keep_their_meanings(module: Path, tmp_path: Path) -> None:
    other = tmp_path / "n.i"
    other.write_text("norm = total >> -i~i\ntotal = +ij~j\n")
    one, two = load(module), load(other)
    x = grid(2, 3) + 1
    wanted = -(x / x.sum(1, keepdims=True)).sum(0)
    f = one["norm"] >> two["norm"]
    np.testing.assert_allclose(f(x), wanted, rtol=1e-6)
    assert repr(f) == "<Component norm >> norm_2: 1 input, 1 output>"
    np.testing.assert_allclose((one["total"] | two["total"])(x, x)[1], x.sum(0))
    np.testing.assert_allclose((one["norm"] >> one["total"])(x), np.ones(2), rtol=1e-6)


# start-up


def test_import_is_lazy() -> None:
    code = (
        "import sys, ilang; assert not {'numpy', 'cffi', 'ilang.core.diagnostic'} & set(sys.modules);"
        "from ilang import i, I, load, Error; i('+ij~i') >> I;"
        "assert not {'numpy', 'cffi', 'subprocess', 'click', 'rich'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_first_call_imports_what_it_needs() -> None:
    code = (
        "import sys, numpy; from ilang import i; i('i*i~i')(numpy.ones(3), numpy.ones(3));"
        "names = {'c_session', 'c_tile', 'matrix_unit', 'compositions', 'suggestion', 'scalar_rules', 'gpu.bind'};"
        "loaded = [m for m in sys.modules if m.startswith('ilang.') and m.endswith(tuple(names))];"
        "assert not loaded and 'json' not in sys.modules, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_face() -> None:
    assert {"i", "I", "load", "einsum", "einx", "elementwise", "Error"} <= set(dir(ilang))
    assert issubclass(ilang.ShapeError, Error)
    with pytest.raises(AttributeError):
        ilang.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("combine", "code"),
    [
        (lambda: i("ij~ji") >> i("+ijk~i"), "E0501"),
        (lambda: i("ij~ji") >> "+ijk~i", "E0501"),
        (lambda: i("+ijk~i") << i("ij~ji"), "E0501"),
        (lambda: i("+ij~i") & i("ijk~k"), "E0502"),
        (lambda: i("2") >> i("ij~i"), "E0501"),
        (lambda: i("ij~ji >> +ijk~i"), "E0501"),
        (lambda: einsum("ij; jk => ik") >> i("i~i"), "E0501"),
        (lambda: (I & i("+ij~i")) >> i("ij/ij~ij"), "E0501"),
    ],
)
def test_ranks_are_compared_when_components_are_combined(
    combine: Callable[[], object], code: str
) -> None:
    with pytest.raises(Error) as caught:
        combine()
    assert caught.value.code == code
    assert caught.value.span is not None


def test_what_fits_is_combined() -> None:
    assert repr(~(i("ij~ij") & i("+ij~i")) >> i("i*ij~ij"))
    assert repr(einsum("...i; ij => ...j") >> i("i~i"))
    assert repr(i("f32") >> i("ij~i") >> i("f64") >> i("i~i"))


def test_shapes_do_not_depend_on_element_types() -> None:
    f = i("(i32 | f32) >> ij*ij~ij")  # refused with any arrays: an integer beside a float
    assert f.shapes((2, 3), (2, 3)) == ((2, 3),)
    assert i("i32 >> i+i~i").shapes((4,), (4,)) == ((4,),)
    assert (i("2.5") >> "i64").shapes() == ((),)
    assert i("ij>>ij~ij >> ij/ij~ij").shapes((2, 3), (2, 3), (2, 3)) == ((2, 3),)


def test_shapes_with_element_types_are_checked_like_a_call() -> None:
    f = i("ik*kj~ijk >> +ijk~ij")
    for dtypes in (("i32", "i64"), (np.int32, np.dtype(np.int64)), ["int32", ">i8"], (None, "f64")):
        assert f.shapes((2, 3), (3, 4), dtypes=dtypes) == ((2, 4),)
    with pytest.raises(Error) as caught:
        f.shapes((2, 3), (3, 4), dtypes=("i32", "f32"))
    assert caught.value.code == "E0601"


def test_texts_for_element_types() -> None:
    f = i("ij+ij~ij")
    assert "int32_t *restrict in0" in f.source("c", dtypes=("i32", "i32"))
    assert "float *restrict in0" in f.source("c")
    text = f.source("c", (2, 3), (2, 3), dtypes=(np.float64, "f64"))
    assert "double *restrict in0" in text
    assert "n_i" not in text
    assert "f64(" in i("+ij~i").loops((2, 3000), dtypes=("f32",))
    assert "f64(" not in i("+ij~i").loops((2, 3), dtypes=("f64",))


@pytest.mark.parametrize(
    ("dtypes", "code"),
    [
        (("f32",), "E0701"),
        ("f32", "E0701"),
        (("f32", "f16"), "E0703"),
        (("f32", np.complex64), "E0703"),
        (("f32", 3), "E0703"),
        (("f32", object()), "E0703"),
        (3, "E0701"),
    ],
)
def test_bad_element_types(dtypes: Any, code: str) -> None:
    f = i("ij+ij~ij")
    for call in (f.shapes, f.loops, lambda *s, dtypes: f.source("c", *s, dtypes=dtypes)):
        with pytest.raises(Error) as caught:
            call((2, 3), (2, 3), dtypes=dtypes)
        assert caught.value.code == code


def test_a_folder_that_is_no_path() -> None:
    with pytest.raises(Error) as caught:
        i("i+i~i").build(3)  # type: ignore[arg-type]
    assert caught.value.code == "E0725"
    assert "3 is not the path of a folder" in caught.value.message


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        (
            "f(x: f64[m,64], y[m]) = (ij*i~ij)(x, y)",
            [("x", "f64", ("m", 64)), ("y", None, ("m",))],
            [("out", "f64", ("m", 64))],
        ),
        (
            "+ij~i & >@ij~i",
            [("in0", None, ("i", "j"))],
            [("out0", None, ("i",)), ("out1", "i64", ("i",))],
        ),
        (
            "b@vd~bd",
            [("in0", "i64", ("b",)), ("in1", None, ("v", "d"))],
            [("out", None, ("b", "d"))],
        ),
        (
            "ij==ij~ij",
            [(f"in{n}", None, ("i", "j")) for n in (0, 1)],
            [("out", "bool", ("i", "j"))],
        ),
        ("softmax", [("in0", None, None)], [("out", None, None)]),
        ("2", [], [("out", "f32", ())]),
    ],
)
def test_inputs_and_outputs_as_data(text: str, inputs: list[Any], outputs: list[Any]) -> None:
    f = i(text)
    assert [tuple(each) for each in f.inputs] == inputs
    assert [tuple(each) for each in f.outputs] == outputs


def test_the_ends_of_a_gradient() -> None:
    g = i("+ij~i").grad()
    assert [each.name for each in (*g.inputs, *g.outputs)] == ["in0", "dout", "din0"]
    assert g.outputs[0].shape == ("i", "j")


def test_listed_names_are_those_for_users(tmp_path: Path) -> None:
    listed = {name for name in dir(I) if not name.startswith("_")}
    assert {"grad", "inputs", "outputs", "source", "explain"} <= listed
    assert not {"told_to", "inferred", "run", "gradient_for", "keep_open"} & listed
    assert not {"os", "annotations", "TYPE_CHECKING", "_contract"} & set(dir(ilang))
    (tmp_path / "m.i").write_text("sums = +ij~i\nop net(x) = x\ncd step(x) { return x }\n", "utf-8")
    library = ilang.load(tmp_path / "m.i")
    assert {"sums", "net", "step", "session"} <= set(dir(library))
    assert library.sums is library["sums"]
    assert library.net is library["net"]
    with pytest.raises(AttributeError, match="it has sums, net, step"):
        library.nets  # noqa: B018
    assert copy.copy(library)["sums"] is library.sums


def test_exact_types(tmp_path: Path) -> None:
    """What a type checker knows of a call; mypy runs on this file."""
    from typing import assert_type

    from numpy.typing import NDArray

    x: NDArray[Any] = grid(2, 3)
    f = i("+ij~i")
    assert_type(f(x), NDArray[Any])
    out = (np.zeros(2, np.float32), np.zeros((2, 3), np.float32))
    assert_type((f & "I")(x, out=out), tuple[NDArray[Any], ...])
    (tmp_path / "m.i").write_text("sums = +ij~i\n", "utf-8")
    assert_type(ilang.load(tmp_path / "m.i").sums(x), NDArray[Any])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("", "[1, 1, 1] 1"), ("2", "[2, 2, 2] 2"), ("auto", "[1, 1, 1] auto"), ("no", "E0711")],
)
def test_the_environment_says_how_many_threads(asked: str, expected: str) -> None:
    """Where a call does not: those of components, of einsum, of sessions; a short call has one where it is "auto"."""
    text = """
import numpy as np
from ilang import Error, einsum, i, load
from ilang.codegen.session.model import DEFAULTS
from ilang.codegen.call.plan import CallPlan
seen, run = [], CallPlan.run

def told(plan, arrays, outs, threads=1):
    seen.append(threads)
    return run(plan, arrays, outs, threads)

CallPlan.run = told
try:
    i("+ij~i")(np.ones((3, 4)))
    einsum("ij->j", np.ones((3, 4)))
    einsum("ij;jk=>ik", np.ones((3, 4)), np.ones((4, 2)))
    i("+ij~i")(np.ones((3, 4)), threads=3)
    assert seen.pop() == 3
    print(seen, DEFAULTS["threads"])
except Error as error:
    print(error.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "I_THREADS": asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (expected, "")

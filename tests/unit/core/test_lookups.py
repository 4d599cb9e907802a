"""Indices that are looked up: gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, i
from ilang.codegen.call.specialization import Specialization
from ilang.core.calculus.affine import axis_index
from ilang.core.check.graph import verify
from ilang.core.ir.graph import Assignment, Axis, Graph, Input, Lookup, Read
from ilang.core.ir.scalar import Operand
from ilang.core.pipeline import explain, fit, graph_of, infer, lower, text_component
from ilang.core.source import Source, Span

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((7, 5)).astype(np.float32)
WIDE = RNG.standard_normal((3, 7)).astype(np.float32)
X = RNG.standard_normal((2, 3, 5)).astype(np.float32)
IDS = np.array([[6, 0, 2], [2, 2, 5]])
PICK = np.array([4, 0, 6], np.int32)
WINDOW = np.arange(9.0, dtype=np.float32)


def scattered(ids: Array, values: Array, extent: int, ufunc: Any, start: float) -> Array:
    """What adding, or the like, at places gives."""
    out = np.full((extent, *values.shape[ids.ndim :]), start, values.dtype)
    ufunc.at(out, ids, values)
    return out


ROWS = np.stack([scattered(n, x, 7, np.add, 0) for n, x in zip(IDS, X[..., 0], strict=True)])


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize(
    ("text", "arrays", "wanted"),
    [
        ("bt@vd~btd", [IDS, TABLE], TABLE[IDS]),
        ("bt@vd~dtb", [IDS, TABLE], TABLE[IDS].transpose(2, 1, 0)),
        ("(I | -vd~vd) >> bt@vd~btd", [IDS, TABLE], -TABLE[IDS]),
        ("(I | +ikd~id) >> +b@id~d", [PICK, np.stack([TABLE, TABLE], 1)], 2 * TABLE[PICK].sum(0)),
        ("b@bv~b", [PICK, WIDE], WIDE[np.arange(3), PICK]),
        ("^b@bv~b", [PICK, WIDE], np.exp(WIDE[np.arange(3), PICK])),
        ("+bt@vd~bd", [IDS, TABLE], TABLE[IDS].sum(1)),
        (">bt@vd~d", [IDS, TABLE], TABLE[IDS].max((0, 1))),
        ("bt@vd*btd~btd", [IDS, TABLE, X], TABLE[IDS] * X),
        ("bt@vd+bt@we~btde", [IDS, TABLE, IDS, TABLE], TABLE[IDS][..., None] + TABLE[IDS][:, :, None]),
        ("bt@vd~btd >> btd*d~btd >> ^btd~btd", [IDS, TABLE, TABLE[0]], np.exp(TABLE[IDS] * TABLE[0])),
        ("bt@vd~btd >> btd*de~btde >> +btde~bte", [IDS, TABLE, WIDE.T[:5]], TABLE[IDS] @ WIDE.T[:5]),
        (">@ij~i >> i@jd~id", [TABLE.T, TABLE], TABLE[TABLE.T.argmax(1)]),
        ("(3 | I) >> .@vd~d", [TABLE], TABLE[3]),
        ("(3.9 >> i32 | I) >> .@vd~d", [TABLE], TABLE[3]),
        ("(2 >> i64 | 5) >> .@.~(v:4)", [], np.array([0, 0, 5, 0])),
        ("b@(v+k:2)~bk", [PICK, WINDOW], WINDOW[PICK[:, None] + np.arange(2)]),
        ("b[b<=1]@vd~bd", [PICK, TABLE], np.where(np.arange(3)[:, None] <= 1, TABLE[PICK], 0)),
        ("(b:5-1)@vd~bd", [PICK, TABLE], np.pad(TABLE[PICK], ((1, 1), (0, 0)))),
        (">(b:5-1)@vd~d", [PICK, TABLE], TABLE[PICK].max(0)),
        ("b@vd[v<=d]~bd", [PICK, TABLE], np.where(PICK[:, None] <= np.arange(5), TABLE[PICK], 0)),
        ("i@v~i >> i@vd~id", [PICK, np.arange(7) % 3, TABLE], TABLE[(np.arange(7) % 3)[PICK]]),
        ("+bt@btd~(v:7)d", [IDS, X], scattered(IDS, X, 7, np.add, 0)),
        ("bt@btd~d(v:7)", [IDS, X], scattered(IDS, X, 7, np.add, 0).T),
        (">bt@btd~(v:7)d", [IDS, X], scattered(IDS, X, 7, np.maximum, -np.inf)),
        ("bt@bt[t<=b]~(v:7)", [IDS, X[..., 0]], np.bincount(IDS[[0, 1, 1], [0, 0, 1]], X[[0, 1, 1], [0, 0, 1], 0], 7)),
        ("(I | 1) >> bt@.~(v:7)", [IDS], np.bincount(IDS.ravel(), minlength=7)),
        ("i@@i~(v:4)", [np.array([2, 0, 3, 1])], np.array([1, 3, 0, 2])),
        ("bt@bt~b(v:7)", [IDS, X[..., 0]], ROWS),
        ("b@bv~b || b", [PICK, WIDE], WIDE[np.arange(3), PICK]),
        ("bt@vd~btd | d:2,t:2 | d t b t' d'", [IDS, TABLE], TABLE[IDS]),
        ("+bt@vd~bd | t:2 | b t d t'", [IDS, TABLE], TABLE[IDS].sum(1)),
        ("-bt~bt >> -bt~bt >> bt@vd~btd >> ^btd~btd || b t d 0", [IDS, TABLE], np.exp(TABLE[IDS])),
    ],
)  # fmt: skip
def test_values(target: str, text: str, arrays: list[Array], wanted: Array) -> None:
    result = i(text)(*arrays, target=target)
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize(
    ("text", "arrays", "message"),
    [
        ("bt@vd~btd", [IDS + 1, TABLE], "in0[0,0] is 7, which is no index of axis v of extent 7"),
        ("bt@vd~btd", [IDS - 1, TABLE], "in0[0,1] is -1, which is no index of axis v of extent 7"),
        ("b@bv~b", [PICK, WIDE[:, :0]], "in0[0] is 4, which is no index of axis v of extent 0"),
        ("i@i~(v:4)", [PICK, PICK], "in0[0] is 4, which is no index of axis v of extent 4"),
        (
            "-i~i >> i@i~(v:4)",
            [PICK, PICK],
            "negative[0] is -4, which is no index of axis v of extent 4",
        ),
        ("b[b<1]@vd~bd", [PICK + 1, TABLE], "in0[2] is 7, which is no index of axis v of extent 7"),
    ],
)
def test_out_of_range(target: str, text: str, arrays: list[Array], message: str) -> None:
    component = i(text)
    for _ in range(2):  # the second call takes the short way
        with pytest.raises(Error) as caught:
            component(*arrays, target=target)
        assert caught.value.code == "E0746"
        assert caught.value.message == message


def test_devices_look_up_too() -> None:
    """A kernel checks the indices; loops over places that may meet are one thread's."""
    rows, counts = i("bt@vd~btd"), i("i@i~(v:7)")
    assert np.array_equal(rows(IDS, TABLE, target="cuda-emulated"), TABLE[IDS])
    wanted = scattered(PICK, PICK.astype(np.float32), 7, np.add, 0)
    got = counts(PICK, PICK.astype(np.float32), target="cuda-emulated")
    assert np.array_equal(got, wanted)
    with pytest.raises(Error, match="is 7, which is no index of axis v of extent 7"):
        rows(IDS + 1, TABLE, target="cuda-emulated")


def test_indices_of_the_caller_are_checked_before_anything_is_written() -> None:
    out = np.full((2, 3, 5), 9, np.float32)
    with pytest.raises(Error):
        i("-bt~bt & bt@vd~btd")(IDS + 5, TABLE, out=(np.empty((2, 3), np.int64), out))
    assert (out == 9).all()


def test_empty_arrays_look_nothing_up() -> None:
    nothing = np.zeros((0, 3), np.int64)
    assert i("bt@vd~btd")(nothing, TABLE[:0]).shape == (0, 3, 5)
    assert i("bt@btd~(v:2)d")(nothing, X[:0]).tolist() == [[0.0] * 5] * 2


def test_threads_change_nothing() -> None:
    ids = RNG.integers(0, 50, 200_000)
    values = RNG.standard_normal(200_000).astype(np.float32)
    component = i("i@i~(v:50)")
    assert np.array_equal(component(ids, values), component(ids, values, threads=4))


def test_sums_of_many_terms_are_accurate() -> None:
    ids = np.zeros(2**20, np.int64)
    values = np.full(2**20, 0.1, np.float32)
    result = i("i@i~(v:2)")(ids, values)
    np.testing.assert_allclose(result[0], values.astype(np.float64).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@i@vd~id", "E0119"),
        ("b@~b", "E0119"),
        ("b@vd~b", "E0210"),
        ("b@bd~bd", "E0210"),
        ("ik@kj~ij", "E0210"),
        ("b@bd~vd", "E0210"),
        ("b@vd-c@vd~bcd", "E0210"),
        ("b@@v~b", "E0210"),
        ("b@bd*bd~(v:3)d", "E0210"),
        ("^b@b~(v:3)", "E0203"),
        ("b@b~(2v:3)", "E0206"),
        ("i@ij~(v:4)", "E0210"),
        (">@b@vd~d", "E0209"),
        ("b@vd~bd || b d v", "E0303"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        i(text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "arrays", "code"),
    [
        ("b@vd~bd", [TABLE[0], TABLE], "E0605"),
        ("(2.5 | I) >> .@vd~d", [TABLE], "E0605"),
        ("(1 >> bool | I) >> .@vd~d", [TABLE], "E0605"),
        ("b@vd~bd || b d 1", [PICK, TABLE], "E0331"),
        ("(I | -vd~vd) >> b@vd~bd || b 1 d", [PICK, TABLE], "E0331"),
        ("+b@b~(v:3) || b | b:p", [PICK, PICK], "E0326"),
    ],
)
def test_refusals_with_types(text: str, arrays: list[Array], code: str) -> None:
    with pytest.raises(Error) as caught:
        i(text)(*arrays)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        (">b@vd~b", "b@vd~bd >> >bd~b"),
        ("-b@vd~b", "-b@vd~bd >> +bd~b"),
        ("b@vd*b~b", "b@vd*b~bd >> +bd~b"),
        ("-bt@vd~bd", "-bt@vd~btd >> +btd~bd"),
        ("-i@ij~j(v:4)", None),
        ("i@ij~j(v:4)(w:3)", None),
        ("i@(2w+j)~(v:4)", None),
    ],
)
def test_help_of_refusals_is_legal(text: str, spelling: str | None) -> None:
    with pytest.raises(Error) as caught:
        i(text)
    advised = (caught.value.help or "").split("`")
    assert advised[1:2] == ([spelling] if spelling else [])
    if spelling:
        i(spelling)


@pytest.mark.parametrize(
    ("text", "shapes", "shape"),
    [
        ("bt@vd~btd", [(2, 3), (4, 5)], (2, 3, 5)),
        ("bt@vd[v<d]~d", [(2, 3), (4, 5)], (5,)),
        ("bt@btd~d(v:7)", [(2, 3), (2, 3, 5)], (5, 7)),
        ("(i64 | I) >> i@v~i >> i@@i~(v:4)", [(2,), (5,)], (4,)),
        ("(1.5 | I) >> .@v~.", [(5,)], ()),
    ],
)
def test_shapes_ask_nothing_of_types(
    text: str, shapes: list[tuple[int, ...]], shape: tuple[int, ...]
) -> None:
    assert i(text).shapes(*shapes) == (shape,)


HERE = Span(Source("<graph>", "x"), 0, 1)


def axes(letters: str) -> tuple[Axis, ...]:
    return tuple(Axis(letter, None, HERE) for letter in letters)


def read(value: int, *index: int, skips: bool = False) -> Read:
    spans = tuple(HERE for _ in index)
    return Read(value, tuple(map(axis_index, index)), skips, spans, HERE)


def both(graph: Graph, arrays: Sequence[Array]) -> Array:
    """What a graph gives, compiled and evaluated."""
    verify(graph)
    dtypes = [{"f": f"f{8 * a.itemsize}", "i": f"i{8 * a.itemsize}"}[a.dtype.kind] for a in arrays]
    shaped = infer(graph, dtypes, [array.ndim for array in arrays])
    lower(shaped)
    specialization = Specialization(shaped)
    extents = fit(shaped, [array.shape for array in arrays])
    wanted: Array = specialization.evaluate(arrays, extents, None)
    got = specialization.plan(extents).call(arrays, arrays, None, 1)
    assert np.array_equal(got, wanted)
    return wanted


def inputs(count: int) -> tuple[Input, ...]:
    return tuple(Input(None, HERE) for _ in range(count))


def test_two_axes_of_one_read() -> None:
    looked = (Lookup(1, 0), Lookup(2, 1))
    reads = (read(0, 0), read(1, 0), read(2, 1, 2))
    node = Assignment(
        axes("bvw"), (axis_index(0),), reads, Operand(2), None, None, "x[v,w]", HERE, lookups=looked
    )
    graph = Graph("pairs", (*inputs(3), node), (0, 1, 2), (3,))
    other = np.array([1, 4, 3])
    assert np.array_equal(both(graph, (PICK, other, TABLE)), TABLE[PICK, other])


def test_what_is_looked_up_by_what_is_looked_up() -> None:
    looked = (Lookup(1, 0), Lookup(2, 1))
    reads = (read(0, 0), read(1, 1), read(2, 2))
    node = Assignment(
        axes("bvw"),
        (axis_index(0),),
        reads,
        Operand(2),
        None,
        None,
        "x[y[z]]",
        HERE,
        lookups=looked,
    )
    graph = Graph("twice", (*inputs(3), node), (0, 1, 2), (3,))
    between = np.arange(7)[::-1].copy()
    assert np.array_equal(both(graph, (PICK, between, TABLE[:, 0].copy())), TABLE[between[PICK], 0])


@pytest.mark.parametrize("acc", [None, "+"])
def test_a_copy_of_a_base_is_written_in_order(acc: str | None) -> None:
    reads = (read(1, 0, skips=True), read(2, 0, 2, skips=True))
    target = (axis_index(1), axis_index(2))
    node = Assignment(
        axes("bvd"),
        target,
        reads,
        Operand(1),
        acc,
        None,
        "set",
        HERE,
        lookups=(Lookup(1, 0),),
        base=0,
    )
    graph = Graph("set", (*inputs(3), node), (0, 1, 2), (3,))
    ids, values = np.array([2, 0, 2, 2]), RNG.standard_normal((4, 5)).astype(np.float32)
    wanted = TABLE.astype(np.float64)
    for number, row in zip(ids, values, strict=True):
        wanted[number] = row + (wanted[number] if acc else 0)
    got = both(graph, (TABLE, ids, values))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_the_table_of_accesses_names_what_indices_are_looked_up_in() -> None:
    graph = graph_of(text_component("b@vd~bd"), "program")
    (projection,) = explain(graph, None).projections
    assert [(row.tensor, row.index) for row in projection.rows] == [
        ("in0", ""),
        ("in1", "[in0[b],d]"),
        ("out", ""),
    ]

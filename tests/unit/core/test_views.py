"""Views: other dimensions of what memory has, with extents that are products and parts."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import ShapeError
from ilang.core import pipeline
from ilang.core.check.graph import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.graph import Annotation, Graph, View
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Statement, Store, statements_within
from ilang.core.record import replace
from tests.mixing import AT, Mixing
from tests.unit.infer.test_mixed import arange, checked, fitted, refused, results

Array = npt.NDArray[Any]


def split(text: str, *shape: int, **extents: int) -> list[tuple[int, ...]]:
    """The shape of a copy of a view of an array, inferred at run time and before, with the right elements."""
    m = Mixing(1)
    array = arange(*shape)
    ((found,),) = checked(m.graph(m.view(text, 0, **extents)), [array])
    np.testing.assert_array_equal(found.ravel(), array.ravel())
    return [found.shape]


@pytest.mark.parametrize(
    ("text", "shape", "extents", "result"),
    [
        ("(a b) -> a b", (12,), {"a": 4}, (4, 3)),
        ("(a b) -> a b", (12,), {"b": 4}, (3, 4)),
        ("(a b c) -> a (b c)", (30,), {"a": 2, "c": 5}, (2, 15)),
        ("a b -> (a b)", (3, 4), {}, (12,)),
        ("(a b) c -> a (b c)", (6, 5), {"a": 2}, (2, 15)),
        ("a -> a ()", (3,), {}, (3, 1)),
        ("a () b -> a b", (3, 1, 2), {}, (3, 2)),
        ("() -> ", (1,), {}, ()),
        (" -> () ()", (), {}, (1, 1)),
        ("(a b) -> a b", (0,), {"a": 4}, (4, 0)),
        ("a b c -> (a b) c", (2, 0, 3), {}, (0, 3)),
        ("(a b) (c d) -> a (b c) d", (6, 20), {"a": 3, "d": 4}, (3, 10, 4)),
    ],
)
def test_a_view_has_products_and_parts(
    text: str, shape: Sequence[int], extents: dict[str, int], result: tuple[int, ...]
) -> None:
    assert split(text, *shape, **extents) == [result]


def test_extents_come_at_run_time() -> None:
    m = Mixing(1)
    heads = m.index("sd~ds", m.view("(s d) -> s d", 0, d=8))
    graph = m.graph(m.view("d s -> (d s)", heads))
    shaped = pipeline.infer(graph, ranks=[1])
    assert [size.fixed for size in shaped.sizes] == [None, None, 8]
    assert "s   follows from (s d) -> s d: sd / d = sd / 8" in pipeline.stage_text(graph, "extents")
    for found, array in zip(
        checked(graph, [arange(24)], [arange(0)], [arange(8)]), (24, 0, 8), strict=True
    ):
        np.testing.assert_array_equal(found[0], arange(array).reshape(-1, 8).T.ravel())


def test_an_axis_that_meets_another_dimension_has_its_extent() -> None:
    m = Mixing(2)
    graph = m.graph(m.index("ab*a~ab", m.view("(a b) -> a b", 0), 1))
    x, y = arange(12), arange(4)
    ((found,),) = checked(graph, [x, y])
    np.testing.assert_array_equal(found, x.reshape(4, 3) * y[:, None])


def test_an_annotation_of_a_view_names_extents() -> None:
    m = Mixing(2)
    one, other = m.view("(a b) -> a b", 0), m.view("(b c) -> b c", 1, c=2)
    notes = tuple(
        Annotation(value, "heads", None, dims, 0, AT)
        for value, dims in ((one, ("a", "b")), (other, ("b", "c")))
    )
    graph = replace(m.graph(one, other), annotations=notes)
    ((a, b),) = checked(graph, [arange(12), arange(6)])
    assert (a.shape, b.shape) == ((4, 3), (3, 2))


def test_what_is_split_and_put_together_is_one_extent() -> None:
    m = Mixing(1)
    parts = m.index("ab~ab", m.view("(a b) -> a b", 0, a=4))
    whole = m.index("ij~ij", m.view("(i j) -> i j", m.view("a b -> (a b)", parts), i=4))
    shaped = pipeline.infer(m.graph(m.view("i j -> (i j)", whole)), ranks=[1])
    assert len([size for size in shaped.sizes if size.fixed is None]) == 2
    assert len(shaped.derived) == 1


def test_a_view_of_an_input_or_of_what_is_stored_is_no_copy() -> None:
    m = Mixing(2)
    heads = m.view("b s (h d) -> b s h d", 0, h=4)
    graph = m.graph(
        m.index("bshd*bthd~bhstd >> +bhstd~bhst", heads, m.view("b t (h d) -> b t h d", 1, h=4))
    )
    program = pipeline.lower(pipeline.infer(graph, ranks=[3, 3]))
    assert len(program.kernels) == 1
    owners = [
        program.buffers[buffer.owner].name for buffer in program.buffers if buffer.owner is not None
    ]
    assert sorted(owners) == ["in0", "in1"]
    x, y = arange(2, 3, 8), arange(2, 5, 8)
    ((found,),) = checked(graph, [x, y])
    want = np.einsum("bshd,bthd->bhst", x.reshape(2, 3, 4, 2), y.reshape(2, 5, 4, 2))
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_pages_tell_of_views() -> None:
    m = Mixing(1)
    heads = m.index("+shd~hd", m.view("s (h d) -> s h d", 0, h=4))
    graph = m.graph(m.index("i+i~i", *[m.view("h d -> (h d)", heads)] * 2))
    page = str(pipeline.explain(graph, verbose=True))
    assert re.search("axis hd +dimension 1 of in0", page)
    assert "view  in0 as s (h:4 d) -> s h:4 d" in page
    assert "no intermediate storage" in page
    told = str(pipeline.story(graph, None))
    assert "s (h d) -> s h d" in told


def test_a_view_is_looked_up() -> None:
    m = Mixing(2)
    graph = m.graph(m.index("bt@vd~btd", m.view("(b t) -> b t", 0, b=2), 1))
    ids, table = np.array([0, 2, 1, 1], np.int64), arange(3, 5)
    shaped = pipeline.infer(graph, ["i64", "f32"], [1, 2])
    assert "before k0: every element of view is at least 0" in pipeline.stage_text(graph, "host")
    np.testing.assert_array_equal(results(shaped, [ids, table])[0], table[ids.reshape(2, 2)])


@pytest.mark.parametrize(
    ("text", "extents", "shape", "code"),
    [
        ("(a b) -> a b", {"a": 4}, (7,), "E0577"),
        ("(a b) -> a b", {"a": 4, "b": 2}, (7,), "E0506"),
        ("(a b) -> a b", {"a": 0}, (0,), "E0578"),
        ("(a b) -> a b", {}, (1,), "E0578"),
        ("(a b c) -> a b c", {"c": 3}, (12,), "E0578"),
        ("a b -> (a b)", {}, (2**40, 2**40), "E0507"),
    ],
)
def test_what_is_refused(
    text: str, extents: dict[str, int], shape: tuple[int, ...], code: str
) -> None:
    m = Mixing(1)
    assert refused(m.graph(m.view(text, 0, **extents)), shape) == code


@pytest.mark.parametrize("known", [True, False])
def test_a_refusal_names_axes_and_values(known: bool) -> None:
    m = Mixing(1)
    graph = m.graph(m.view("(h d) -> h d", 0, h=4))
    with pytest.raises(ShapeError) as caught:
        fitted(graph, [(10,)], [(10,)] if known else None)
    words = ("10/4", "h = 4", ": 10 (dimension 0 of in0)")
    assert all(word in str(caught.value) for word in words)


def test_numbers_of_leaves_are_refused_at_once() -> None:
    m = Mixing()
    leaf = m.leaf((), (), (10,))
    with pytest.raises(ShapeError) as caught:
        pipeline.infer(m.graph(m.view("(h d) -> h d", leaf, h=4)), ranks=[1])
    assert caught.value.code == "E0577"
    assert "an axis of 10 is 10, and h = 4: d would be 10/4" in str(caught.value)


def test_a_view_has_each_axis_once_in_order() -> None:
    m = Mixing(1)
    graph = m.graph(m.view("(a b) -> a b", 0, a=4))
    node = graph.nodes[1]
    assert isinstance(node, View)
    wrong = replace(node, target=((1,), (0,)))
    with pytest.raises(InternalError, match="in order"):
        verify(Graph("wrong", (graph.nodes[0], wrong), (0,), (1,)))


def test_a_view_that_is_asked_is_stored_at_once() -> None:
    m = Mixing(1)
    heads = m.index("bhsd~bshd", 0)
    graph = m.graph(m.view("b s h d -> b s (h d)", heads))
    program = pipeline.lower(pipeline.infer(graph, ranks=[4]))
    assert [len(program.kernels), program.buffers[program.outputs[0]].name] == [1, "out"]
    assert "values  f32[b,s,h,d]  of out" in pipeline.stage_text(graph, "host")
    x = arange(2, 4, 3, 5)
    ((found,),) = checked(graph, [x])
    np.testing.assert_array_equal(found, x.transpose(0, 2, 1, 3).reshape(2, 3, 20))


def test_results_never_share_memory() -> None:
    m = Mixing(1)
    turned = m.index("ij~ji", 0)
    flat = m.view("j i -> (j i)", turned)
    graph = m.graph(flat, turned, m.view("(j i) -> j i", flat, i=2), m.view("i j -> (i j)", 0), 0)
    x = arange(2, 3)
    (found,) = checked(graph, [x])
    wanted = [x.T.ravel(), x.T, x.T, x.ravel(), x]
    for one, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, want)
    assert not any(
        np.shares_memory(one, other) for n, one in enumerate([x, *found]) for other in found[n:]
    )


def moved(m: Mixing, *outputs: int) -> tuple[int, int]:
    """How many values a graph stores between its kernels, and how many kernels it has."""
    ranks = [None] * m.inputs
    program = pipeline.lower(pipeline.infer(m.graph(*outputs), ranks=ranks))
    stored = {b for k in program.kernels for s in statements_within(k.body) for b in _stored(s)}
    roles = [
        program.memory(buffer).role for buffer in stored if not program.buffers[buffer].private
    ]
    return roles.count("temporary"), len(program.kernels)


def _stored(s: Statement) -> list[BufferId]:
    return [s.buffer] if isinstance(s, Store) else []


def test_what_is_computed_before_a_view_is_split_as_the_view_does() -> None:
    m = Mixing(2)
    before = m.index("ij+j~ij", 0, 1)
    assert moved(m, m.index("+bshd~bh", m.view("(b s) (h d) -> b s h d", before, b=2, h=4))) == (
        0,
        1,
    )


def test_what_is_computed_behind_a_view_is_split_as_its_source() -> None:
    m = Mixing(2)
    turned = m.index("ij~ji", 0)
    behind = m.index("i*i~i", m.view("j i -> (j i)", turned), 1)
    assert moved(m, m.index("-i~i", behind)) == (0, 1)


def test_what_is_flattened_and_summed_is_not_stored() -> None:
    m = Mixing(2)
    turned = m.index("kij*j~kji", 0, 1)
    assert moved(m, m.index("+ki~k", m.view("k j i -> k (j i)", turned))) == (0, 1)


def test_a_sum_and_what_is_made_of_its_view_are_one_kernel() -> None:
    m = Mixing(3)
    product = m.index("sk*khd~skhd >> +skhd~shd", 0, 1)
    assert moved(m, m.index("ij+j~ij", m.view("s h d -> s (h d)", product), 2)) == (0, 1)


@pytest.mark.parametrize(
    "text", ["(i+k:3)~ik >> +ik~i", "i[0<=i-2]~i", "i*@i~i", "-i~i | i:4 | i i'"]
)
def test_windows_guards_positions_and_schedules_keep_a_view_where_it_is(text: str) -> None:
    m = Mixing(1)
    assert moved(m, m.index("ab*ab~ba", *[m.view("(a b) -> a b", m.index(text, 0), b=2)] * 2)) == (
        1,
        2,
    )


@pytest.mark.parametrize(("inner", "kernels"), [(2, 2), (64, 1)])
def test_exponentials_keep_loops_for_lanes(inner: int, kernels: int) -> None:
    m = Mixing(1)
    m.view("(a b) -> a b", m.index("^i~i", 0), b=inner)
    assert moved(m, m.index("-ab~ba", len(m.nodes) - 1)) == (kernels - 1, kernels)


def test_products_that_a_view_of_them_would_store_stay() -> None:
    m = Mixing(3)
    heads = m.index("shd*h~shd", 0, 1)
    graph = m.index("sk*kn~skn >> +skn~sn", m.view("s h d -> s (h d)", heads), 2)
    assert moved(m, graph) == (1, 2)


def test_a_number_of_elements_is_a_product_of_run_time_sizes() -> None:
    m = Mixing(1)
    fill = m.leaf(None, None, None, kind="fill", elements=12)
    graph = m.graph(m.operation("pointwise", m.index("-ij~ij", 0), fill))
    shaped = pipeline.infer(graph, ranks=[2, None])
    x = arange(3, 4)
    np.testing.assert_array_equal(results(shaped, [x, x])[0], np.zeros((3, 4)))
    with pytest.raises(ShapeError) as caught:
        pipeline.fit(shaped, [(5, 4), (5, 4)])
    assert caught.value.code == "E0577"

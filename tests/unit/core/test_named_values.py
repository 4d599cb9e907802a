"""Names of values: in shapes, pages, C and results, and what is discarded."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import Error, i
from ilang.core import pipeline
from ilang.core.ir.graph import Graph

NORMAL = """\
standard(x) = { m = (+ij~i)(x); (ij-i~ij)(x, m) }
f(x, y) = {
  m = standard(x)
  big, _ = (>ij~i & <ij~i)(m)
  m, big, (ij+ij~ij)(m, y), m
}
"""


def graph_of(text: str) -> Graph:
    return pipeline.program_graph(pipeline.text_program(text))


def test_names_of_the_outer_definition_come_first() -> None:
    graph = graph_of(NORMAL)
    assert graph.output_names(graph.outputs) == ["m", "big", "out2", "m2"]
    shaped = pipeline.infer(graph)
    assert [tensor.name for tensor in shaped.tensors] == [
        *("x", "y", "m3", "m", "big", "out2", "m2")
    ]
    steps = pipeline.explain(graph).steps
    assert [step.name for step in steps][:3] == ["m3", "m", "big"]


def test_c_has_the_names() -> None:
    text = i(NORMAL).source("c")
    assert "output  big: f32" in text
    assert "output  m2: f32" in text


@pytest.mark.parametrize("name", ["sizes", "work", "t1", "n_i", "for", "acc", "int", "in0", "out"])
def test_any_name_is_one_in_c(name: str) -> None:
    f = i(f"f(x, y) = {{ {name} = (+ij~i)(x); z = (ij-i~ij)(y, {name}); z, {name} }}")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for target in ("c", "numpy"):
        z, total = f(x, x, target=target)
        np.testing.assert_array_equal(total, [3, 12])
        np.testing.assert_array_equal(z, x - total[:, None])


def test_what_is_discarded_is_checked_and_not_computed() -> None:
    shaped = pipeline.infer(graph_of("f(x, y) = { _ = (ij+ij~ij)(x, y); (+ij~i)(x) }"))
    assert [tensor.name for tensor in shaped.tensors] == ["x", "y", "out"]
    f = i("f(x, y) = { _ = (ij+ij~ij)(x, y); (+ij~i)(x) }")
    np.testing.assert_array_equal(f(np.ones((2, 3)), np.ones((2, 3))), [3, 3])
    with pytest.raises(Error) as caught:
        f(np.ones((2, 3)), np.ones((2, 4)))
    assert caught.value.code == "E0505"
    with pytest.raises(Error) as caught:
        f(np.ones((2, 3)), np.ones((2, 3), np.int32))
    assert caught.value.code == "E0601"


def test_inputs_are_given_by_name() -> None:
    f = i("f(x, y) = (i-i~i)(x, y)")
    x, y = np.arange(3.0), np.ones(3)
    for result in (f(x, y), f(x, y=y), f(y=y, x=x), f(x, y=y, out=np.empty(3))):
        np.testing.assert_array_equal(result, x - y)
    for given, named, code in (
        ((x,), {}, "E0701"),
        ((), {"x": x}, "E0701"),
        ((x,), {"x": x}, "E0747"),
        ((x,), {"z": y}, "E0747"),
        ((x, y), {"y": y}, "E0747"),
    ):
        with pytest.raises(Error) as caught:
            f(*given, **named)
        assert caught.value.code == code


def test_a_text_of_definitions_is_one_component() -> None:
    f = i("half = 0.5\nf(x) = (i*.~i)(x, half)\n")
    assert (~(f | f)).takes() == 2
    np.testing.assert_array_equal((f >> f)(np.ones(2)), [0.25, 0.25])
    with pytest.raises(Error) as caught:
        i("ij = ij~ij")
    assert caught.value.code == "E0105"
    with pytest.raises(Error) as caught:
        i("f(x) = (i~i)(x)\ng(x) = (i~i)(x)")
    assert caught.value.code == "E0430"

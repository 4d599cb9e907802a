"""What derivatives are made shorter by: constants, copies, common sub-expressions, and values computed where read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilang import i
from ilang.core import pipeline
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.transform.building import pruned
from ilang.core.transform.reverse import gradient
from ilang.core.transform.simplified import (
    computed_once,
    constants_in_place,
    recomputed,
    simplified,
)


def shaped_of(text: str) -> Shaped:
    return infer(graph_of(text_component(text), "f"))


def run(shaped: Shaped, *arrays: Any) -> tuple[Any, ...]:
    """What the reference evaluator gives."""
    return tuple(evaluate(shaped, arrays, pipeline.fit(shaped, [a.shape for a in arrays])))


def names(shaped: Shaped) -> list[str]:
    """The assignments of a program, by name."""
    return [
        tensor.name
        for node, tensor in zip(shaped.nodes, shaped.tensors, strict=True)
        if isinstance(node, Assignment)
    ]


def test_equal_values_are_computed_once_whatever_their_axes_are_called() -> None:
    shaped = shaped_of("(I & I) >> (^ij~ij | ^kl~kl) >> ab*ba~ab")
    assert len(names(shaped)) == 3
    once = computed_once(shaped)
    assert len(names(once)) == 2
    (product,) = (n for n in once.nodes if isinstance(n, Assignment) and len(n.reads) == 2)
    assert {read.value for read in product.reads} == {1}


def test_values_that_differ_are_all_computed() -> None:
    for text in (
        "(I & I) >> (^ij~ij | -ij~ij) >> ab*ab~ab",
        "(I & I) >> (^ij~ij | ^ij~ji) >> ab*ba~ab",
        "(I & I) >> (+ij~i | +ij~j) >> a*b~ab",
        "(I & I) >> ((I | 0) >> i*.~i | (I | (0 >> -.~.)) >> i*.~i) >> i/i~i",
    ):
        assert names(computed_once(shaped_of(text))) == names(pruned(shaped_of(text))), text


def test_outputs_stay_in_memory_of_their_own() -> None:
    once = computed_once(shaped_of("^i~i & ^i~i"))
    assert len(once.outputs) == len(set(once.outputs)) == 2


def test_schedules_that_a_person_wrote_stay() -> None:
    shaped = shaped_of("(I & I) >> (^ij~ij || i j | ^ij~ij || j i) >> ab*ab~ab")
    assert names(simplified(shaped)) == names(shaped)


def test_ones_are_no_factors() -> None:
    """The gradient of a sum of everything: the cotangent is not read, nor multiplied with."""
    shaped = infer(graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f"))
    back = gradient(shaped, [0, 1], ones=True)
    assert names(back) == ["din0", "din1"]
    assert constants_in_place(back) == back
    for node in back.nodes:
        assert not isinstance(node, Assignment) or len(node.reads) == 1
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    given = infer(graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f"), ["f64", "f64"])
    dx, dy = run(gradient(given, [0, 1], ones=True), x, y)
    np.testing.assert_array_equal(dx, np.ones((2, 4)) @ y.T)
    np.testing.assert_array_equal(dy, x.T @ np.ones((2, 4)))


CENTERED = "(I & +ij~i) >> ij-i~ij"


def test_what_is_as_cheap_to_compute_as_to_read_is_not_stored() -> None:
    several = shaped_of(f"{CENTERED} >> (^ij~ij & -ij~ij)")
    assert "difference" in names(several)
    assert "t2" not in names(recomputed(several))
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    for one, other in zip(run(several, x), run(recomputed(several), x), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_takes_long_or_is_met_again_is_stored() -> None:
    for text in (
        "^ij~ij >> (+ij~i & +ij~j)",  # slow
        f"{CENTERED} >> (I & I) >> ik*kj~ijk >> +ijk~ij",  # by a product, again and again
        "(I | I) >> ij+ij~ij >> (^ij~ij & -ij~ij)",  # two tensors as large
        "(I & +ij~i) >> ij-i~ij >> (I & ^ij~ij)",  # an output
        f"{CENTERED} >> +(i+k:2)j~ij & ({CENTERED} >> ^ij~ij)",  # by windows
    ):
        shaped = computed_once(shaped_of(text))
        assert names(recomputed(shaped)) == names(shaped), text


def test_gradients_of_normed_rows_store_no_centered_rows() -> None:
    norm = f"{CENTERED} >> (I & ((I & I) >> ij*ij~ij >> +ij~i)) >> ij/i~ij"
    back = gradient(shaped_of(norm), [0])
    assert "t2" not in names(back)
    explained = pipeline.explain_shaped(i(norm).grad().graph(), back)
    assert explained.execution.cost.storage == "no intermediate storage; scratch 4·j bytes"
    assert replace(back, name="") == replace(simplified(back), name="")

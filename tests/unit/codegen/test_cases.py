"""How far a result of a self-test may be from what is stored: as far as roundings move it, whatever causes them."""

from __future__ import annotations

import numpy as np

from ilang import i
from ilang.codegen.project.cases import case_of, inputs_of, limits_of
from ilang.codegen.project.emulation import first_wrong
from ilang.codegen.targets.session import ExportedFunction
from ilang.core import pipeline
from ilang.core.explain.definition_text import definition_text
from ilang.core.transform.reverse import gradient

SCORES = "ik*jk~ijk >> +ijk~ij"
SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"


def test_terms_that_cancel_may_be_rounded() -> None:
    """Where one weight of a softmax is nearly 1, its gradient is a difference of terms a million times as large."""
    component = i(f"{SCORES} >> {SOFTMAX} >> ij*jd~ijd >> +ijd~id")
    shaped = gradient(pipeline.infer(component.graph()), range(3))
    text = definition_text(shaped)
    assert text is not None
    again = pipeline.infer(pipeline.program_graph(pipeline.text_program(text)))
    function = ExportedFunction(again, pipeline.lower(again))
    case = case_of(function, (64, 32, 64, 32))
    assert case.outputs is not None
    arrays = inputs_of(again, case.extents, case.starts, limits_of(again, case.extents))
    for stored, result in zip(case.outputs, i(text)(*arrays), strict=True):
        assert first_wrong(stored, result) is None
        wrong = np.array(result)
        wrong.reshape(-1)[0] += 1e-3
        assert first_wrong(stored, wrong) == 0

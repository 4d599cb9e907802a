"""Shapes and types of the results of a component, for libraries that trace calls before there are arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.codegen.call.arguments import Output, checked_shapes, outputs_of
from ilang.core import pipeline

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component


def results_for(
    component: Component, dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> list[Output]:
    """The shapes and NumPy types of the results of a component for arrays of these types and shapes.

    Raises:
        Error: E05, E06: they do not fit.
    """
    checked = checked_shapes(shapes)
    shaped = component.program.inferred(tuple(dtypes), tuple(map(len, checked)))
    return outputs_of(shaped, pipeline.fit(shaped, checked))

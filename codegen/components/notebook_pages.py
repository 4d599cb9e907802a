"""Pages on components for notebooks: formulas and shapes, with loops, how they run and C that unfold."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ilang.core.diagnostic import DataError, ElementTypeError, ShapeError
from ilang.core.explain.explanation import Explanation
from ilang.core.explain.first_page import first_page, formulas_text, loops_page, plain_loops
from ilang.core.markup import escaped, folded, preformatted, table

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component

HEADS = ("", "name", "type", "shape")


class ComponentExplanation(Explanation):
    """An explanation that a notebook shows as a page, with the C of its component where it has one."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        component, shapes = self.__dict__["of"]
        rows = [
            (kind, row.name, row.dtype, " × ".join(row.extents) or "scalar")
            for kind, ends in (("input", self.inputs), ("output", self.outputs))
            for row in ends
        ]
        parts = [f"<code>{escaped(self.name)}</code>", preformatted(formulas_text(self))]
        parts += [table(HEADS, rows), folded("loops", plain_loops(self))]
        parts.append(folded("how it runs", loops_page(self)))
        parts += [] if component is None else [folded("C", component.source("c", *shapes))]
        parts.append(folded("the whole page", first_page(self)))
        return f"<div>{''.join(parts)}</div>"


def notebook_page(
    page: Explanation, component: Any = None, shapes: Sequence[tuple[int, ...]] = ()
) -> ComponentExplanation:
    """An explanation as a notebook shows it; of a component at shapes it has the C."""
    shown = object.__new__(ComponentExplanation)
    shown.__dict__.update(vars(page), of=(component, shapes))
    return shown


def component_page(component: Component) -> str:
    """A component as HTML: its text, its formulas where they are known, its inputs and outputs."""
    formulas = ""
    with contextlib.suppress(DataError, ElementTypeError, ShapeError):
        formulas = preformatted(formulas_text(component.explain()))
    ends = [("input", each) for each in component.inputs]
    ends += [("output", each) for each in component.outputs]
    rows = [(kind, each.name, each.dtype or "any", _extents(each.shape)) for kind, each in ends]
    title = escaped(component.program.shown())
    return f"<div><code>{title}</code>{formulas}{table(HEADS, rows)}</div>"


def _extents(shape: tuple[int | str, ...] | None) -> str:
    return "any" if shape is None else " × ".join(map(str, shape)) or "scalar"

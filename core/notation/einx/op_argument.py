"""The argument ``op`` of ``einx.reduce``, ``einx.elementwise`` and ``einx.vmap``: an operation, or a component.

In:  ``op="sum"`` of ``einx.reduce``, ``op="add"`` of it
Out: the operation ``einx.sum``; E0165, einx.reduce has no operation `add`
"""

from __future__ import annotations

from ilang.core.diagnostic import Label, MeaningError, NotationError, counted
from ilang.core.einx_ops import EINX_OPS
from ilang.core.ir.einx import Form, places
from ilang.core.ir.syntax import Einx, ElementKernel, Tree
from ilang.core.notation.components.printer import print_tree
from ilang.core.source import Span
from ilang.core.suggestion import did_you_mean

NEEDED = 'add the name of an operation, `op="sum"`, or a component: `op=f`, `op=(+i~.)`'
KINDS = {"reduce": "reduce", "elementwise": "elementwise"}
"""The kind of the operations that a form may have as its ``op`` by name; `vmap` any."""


def op_name(form: str, name: str, at: Span | None) -> str:
    """The name of the operation that is the ``op`` of a form, checked; ``at`` is where it stands in a text.

    Raises:
        NotationError: E0165.
    """
    rows = [row for row in EINX_OPS.values() if row.kind != "map"]
    known = [row.name for row in rows if row.kind == KINDS.get(form, row.kind)]
    if name in known:
        return name
    every = f"there are {', '.join(known)}; a component is an op as well"
    help_line = did_you_mean(name, known, every, "`{}`")
    message = f"einx.{form} has no operation `{name}`"
    raise NotationError("E0165", message, at, help_line)


def check_body(node: Einx, inputs: int, outputs: int) -> None:
    """Check that the ``op`` of an operation has an input, and an output, for each expression.

    Raises:
        MeaningError: E0221.
    """
    assert node.body is not None
    form, printed = node.form, print_tree(node.body)
    for count, side, word, noun in (
        (inputs, form.inputs, "input", "before"),
        (outputs, form.outputs, "output", "after"),
    ):
        if len(side) == count:
            continue
        counted_side, verb = counted(len(side), "expression"), "is" if len(side) == 1 else "are"
        message = (
            f"`{printed}` has {counted(count, word)}, and there {verb} {counted_side} {noun} `->`"
        )
        at = side[0].span.to(side[-1].span)
        labels = [Label(at, counted_side), Label(node.body.span, counted(count, word))]
        help_line = "write an expression for each, with `,` between them"
        raise MeaningError("E0221", message, at, help_line, labels)


def ranked(body: Tree, form: Form) -> Tree:
    """The ``op`` of an operation; a kernel that leaves ranks open has those of the axes in brackets."""
    if not isinstance(body, ElementKernel) or len(body.inputs) != len(form.inputs):
        return body
    marked = [[place for place in places(each) if place.marked] for each in form.inputs]
    ranks = [None if any(place.around for place in each) else len(each) for each in marked]
    return body.ranked(ranks)

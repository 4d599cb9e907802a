"""The operations of einx notation: a row says what kind an operation is, and what scalars it is made of.

To add one: a row, and its name in ``ilang/einx.py`` for type checkers. A kind says which expressions have brackets and
what an operation that is written short means (``notation/einx/forms.py``), and which assignments it becomes
(``passes/einx/bodies.py``).
"""

from __future__ import annotations

from typing import Literal

from ilang.core.ops import PRIMITIVES, REDUCING
from ilang.core.record import record

Kind = Literal["id", "reduce", "elementwise", "dot", "preserve", "argument", "get", "set", "map"]


@record
class EinxOp:
    """An operation: what it takes, and what it is made of.

    ``meaning`` is a primitive of ``ops.PRIMITIVES`` of elementwise operations, the operator of a reduction or of what
    is stored, or the name of a body; those of kind ``map`` have a component as ``op``. ``arity`` counts the operands,
    None for any number. ``options`` are parameters that are no sizes; those with a ``!`` must be given. To one that is
    ``apart``, two axes in brackets are never one of their product: it counts them, or goes along each.
    """

    name: str
    kind: Kind
    meaning: str
    arity: int | None = None
    options: tuple[str, ...] = ()
    apart: bool = False


_MEANS = {
    **{p.notation.numpy: p.name for p in PRIMITIVES.values() if p.notation.numpy},
    "true_divide": "div",
    **{op.numpy: op.symbol for op in REDUCING.values() if op.numpy},
}
"""Primitives, and operators of reductions, by NumPy's names."""
_REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
_BODIES = ("mean", "count_nonzero", "logsumexp")
_SPREADS = ("var", "std")
_MANY = ("add", "multiply", "logical_and", "logical_or", "maximum", "minimum")
_TWO = (
    *("subtract", "divide", "floor_divide", "true_divide", "less", "less_equal"),
    *("greater", "greater_equal", "equal", "not_equal"),
)

EINX_OPS: dict[str, EinxOp] = {
    op.name: op
    for op in (
        EinxOp("id", "id", "copy"),
        EinxOp("rearrange", "id", "copy"),
        *(EinxOp(name, "reduce", _MEANS[name], 1, ("keepdims",)) for name in _REDUCTIONS),
        *(EinxOp(name, "reduce", name, 1, ("keepdims",)) for name in _BODIES),
        *(EinxOp(name, "reduce", name, 1, ("keepdims", "ddof")) for name in _SPREADS),
        *(EinxOp(name, "elementwise", _MEANS[name]) for name in _MANY),
        EinxOp("logaddexp", "elementwise", "logaddexp"),
        *(EinxOp(name, "elementwise", _MEANS[name], 2) for name in _TWO),
        EinxOp("where", "elementwise", "where", 3),
        EinxOp("dot", "dot", "mul"),
        EinxOp("softmax", "preserve", "softmax", 1),
        EinxOp("log_softmax", "preserve", "log_softmax", 1),
        EinxOp("flip", "preserve", "flip", 1),
        EinxOp("roll", "preserve", "roll", 1, ("shift!",), apart=True),
        EinxOp("sort", "preserve", "sort", 1),
        EinxOp("argsort", "preserve", "argsort", 1),
        EinxOp("argmax", "argument", ">", 1, apart=True),
        EinxOp("argmin", "argument", "<", 1, apart=True),
        *(EinxOp(name, "map", "program", apart=True) for name in ("vmap", "reduce", "elementwise")),
        EinxOp("get_at", "get", "copy", apart=True),
        EinxOp("set_at", "set", "copy", apart=True),
        EinxOp("add_at", "set", "add", apart=True),
        EinxOp("subtract_at", "set", "sub", apart=True),
    )
}

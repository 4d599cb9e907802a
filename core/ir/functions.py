"""Tensor functions (``op``) and routines (``cd``) as they are written, every node with its span.

Produced by ``definitions.py`` and ``routines.py`` of ``notation/functions/``, printed back by ``printing.py`` there,
consumed by ``build/functions.py`` and ``build/routines.py``. docs/functions.md has the grammar.

Invariants:
    - ``parse(print(definition)) == definition``; spans take no part in equality.
    - Nothing is resolved here: a name is a name, whatever it stands for, and a call of ``exp`` is a call.
    - Expressions nest at most ``DEEPEST`` levels, chains of operators of one level aside, which lean left: traverse
      those with a loop.
    - Dots that change nothing are kept: ``a +. b`` is a ``Binary`` with ``+.``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast, get_args

from ilang.core.ir.spec import Spec
from ilang.core.ir.syntax import Schedule, Tree, same
from ilang.core.record import record
from ilang.core.source import Span

Component = get_args(Tree)
"""The nodes of components of other notations."""
DEEPEST = 100
"""Brackets and prefixes nest no deeper, nor do calls of tensor functions in each other."""


# -- shapes ----------------------------------------------------------------------------------------------------------


@record
class AxisNote:
    """One axis of an annotation: a letter that stands for a size, or a size; and its label, or None."""

    size: str | int
    label: str | None
    span: Span


@record
class RowNote:
    """The axes of a row of an annotation; ``variable`` names the row variable between them, or None."""

    leading: tuple[AxisNote, ...]
    variable: str | None
    trailing: tuple[AxisNote, ...]


@record
class ShapeNote:
    """``b|i->o, p``: batch, input and output rows; an omitted row has no axes."""

    __slots__ = ("__dict__", "_hash")
    rows: tuple[RowNote, RowNote, RowNote]
    span: Span


# -- expressions -----------------------------------------------------------------------------------------------------

Part = Literal["value", "grad", "merge", "grad.merge"]
"""The part of a tensor that is meant: its value, its gradient, or the sum of one of them over the other ranks."""

Prefix = Literal["-", "not", "?/", "!.", "!.."]
Infix = Literal[
    "*", "*.", "/", "/.", "**.", "+", "+.", "-", "-.", "-?/", "<", "<=", ">", ">=", "=", "<>", "&&", "||",
]  # fmt: skip


@record
class Reference:
    """``x``: a tensor, a configuration value, or an instance of a definition."""

    name: str
    span: Span


@record
class Access:
    """``x.grad``: a part of a tensor; only in routines, and in ``~~( )``."""

    tensor: Reference | Declared
    part: Part
    span: Span


@record
class Number:
    """A number as written; ``whole`` where it has neither point nor exponent. ``true`` and ``false`` are 1 and 0."""

    text: str
    value: float | int
    whole: bool
    span: Span


@record
class Unit:
    """``'q' 2.0``: a number whose one output axis has a label and does not stretch."""

    label: str
    number: float
    span: Span


@record
class Nested:
    """``[ (1, 2); (3, 4) ]``: numbers as they stand; per level, outermost first, its row (0 1 2) and its extent."""

    numbers: tuple[float, ...]
    levels: tuple[tuple[int, int], ...]
    span: Span


@record
class Listed:
    """``[64, 32]``: a list of numbers, a configuration value."""

    items: tuple[Term, ...]
    span: Span


@record
class Declared:
    """A string that declares a tensor where it stands, and binds its name.

    ``extents``: those of its output axes (``"b" 16``, ``"b" (2, hid)``), or None. ``initial``: the number or the
    literal that it starts from, or None. At most one of the two is there. ``kept``: a ``StateUpdate`` writes it.
    """

    name: str
    extents: tuple[Term, ...] | None
    initial: Number | Nested | None
    span: Span
    kept: bool = False


@record
class Text:
    """A string that is an argument: the specification of ``einmax``, a letter for ``dim``, the path of ``file``."""

    text: str
    span: Span


@record
class Unary:
    """``-x``, ``not x``, ``?/ x``; ``!. n`` and ``!.. n`` are n."""

    operator: Prefix
    operand: Term
    span: Span


@record
class Binary:
    """``a *. b``; ``span`` is that of the whole, ``sign`` that of the operator."""

    operator: Infix
    left: Term
    right: Term
    sign_span: Span
    span: Span


@record
class EinsumTerm:
    """``a ++ "spec"``, a specification of one operand, or ``a *+ "spec" b``, of two."""

    operands: tuple[Term, ...]
    spec: Spec
    span: Span

    def operator(self) -> Literal["++", "*+"]:
        """The operator before the specification."""
        return "++" if len(self.operands) == 1 else "*+"


@record
class Sliced:
    """``x @| n``: one position of the first batch axis."""

    operand: Term
    position: Term
    span: Span


@record
class Setting:
    """A configuration value of a call, by position where ``name`` is None; ``label = "L1"`` has a ``Text``."""

    name: str | None
    value: Term
    span: Span


@record
class Called:
    """``layer(x; 64)``, ``exp(x)``, ``einsum("ij => ji")(x)``: ``settings`` is None where no `;` is written.

    ``component`` is a name, or a parenthesised program, a quotation or a type name as in every definition. As a
    statement it is the call of another routine, by its name.
    """

    component: Reference | Tree
    arguments: tuple[Term, ...]
    settings: tuple[Setting, ...] | None
    span: Span


@record
class Repeated:
    """``repeat(x; h in hids) { ... }``: ``over`` is a list or a number; ``carried`` starts as ``start``.

    ``start`` is a reference to ``carried`` where the text names a tensor alone. ``bound``: the place of ``carried``.
    ``place``: that of the variable.
    """

    carried: str
    start: Term
    variable: str
    over: Term
    body: Body
    carried_span: Span
    name_span: Span
    span: Span


@record
class ScheduledExpression:
    """``(a * b) ~schedule:"| splits | order"``: an expression in parentheses and the schedule of its last operation."""

    term: Term
    schedule: Schedule
    span: Span


Term = (
    Reference
    | Access
    | Number
    | Unit
    | Nested
    | Listed
    | Declared
    | Text
    | Unary
    | Binary
    | EinsumTerm
    | Sliced
    | Called
    | Repeated
    | ScheduledExpression
)


@record
class NameBinding:
    """``name = EXPR``; ``name`` is None for ``_``, which computes nothing and only constrains shapes."""

    name: str | None
    term: Term
    name_span: Span
    span: Span


@record
class StateUpdate:
    """``"mean" 0.0 =: EXPR`` in a block: what a tensor that lasts from run to run has in the next one."""

    target: Declared
    term: Term
    span: Span


@record
class Body:
    """The statements of a block, none without braces, and the expression that it ends in."""

    bindings: tuple[NameBinding | StateUpdate, ...]
    result: Term
    span: Span


# -- heads -----------------------------------------------------------------------------------------------------------


@record
class TensorParameter:
    """``x: i64[b|t]``: a tensor of a head; its type and its shape are None where they are not written."""

    name: str
    dtype: str | None
    shape: ShapeNote | None
    span: Span


@record
class Configured:
    """``hid = 64``: a configuration value of a head, with its default or None."""

    name: str
    default: Term | None
    span: Span


@record
class Head:
    """``NAME(tensors; configuration)``; ``configuration`` is None where no `;` is written."""

    name: str
    tensors: tuple[TensorParameter, ...]
    configuration: tuple[Configured, ...] | None
    span: Span


@record
class CustomOperation:
    """``prim ~logic:"." { ... } grad { ... }``: an operation with its own gradient; ``backward`` None without one.

    Slots are references named ``v v1 v2 v3 g g1 g2 g3``, whichever of their spellings the text has.
    """

    logic: Logic
    forward: tuple[Statement, ...]
    backward: tuple[Statement, ...] | None
    span: Span


@record
class Function:
    """``op NAME(...) = EXPR``, ``op NAME(...) { ... }`` or ``op NAME(...) = prim ...``."""

    head: Head
    body: Body | CustomOperation
    span: Span

    @property
    def name(self) -> str:
        """The name that its head gives it."""
        return self.head.name


# -- statements ------------------------------------------------------------------------------------------------------

Accumulator = Literal["+", "-", "*", "/", "**", "?/", "@^", "@-", "&&", "||"]
Operator = Literal["+", "-", "*", "/", "**", "-?/"]
"""An operator between the two operands of one assignment."""


@record
class Logic:
    """``~logic:"."``, ``"@"``, ``"T"`` or a specification: ``kind`` is ``spec`` with ``spec`` there."""

    kind: Literal[".", "@", "T", "spec"]
    spec: Spec | None
    span: Span


@record
class Single:
    """The right side that is one assignment: ``r1 OP r2``, ``OP r`` or ``r``, or a primitive of up to three operands.

    ``operator``: ``+ - * / ** -?/`` between two operands, a prefix before one, the name of a primitive, or None.
    Operands are names, parts of tensors, numbers, calls, or expressions in parentheses.
    """

    operator: str | None
    operands: tuple[Term, ...]
    span: Span


@record
class Assigned:
    """``LHS ASGN RHS [~logic] [~schedule]``.

    ``accumulator`` None is `=:`; ``fresh`` says that `:` stands between `=` and an accumulator, which starts from its
    neutral element. ``right`` is a ``Single``, or a longer expression, whose forward code stands before.
    ``logic`` is None where none is written.
    """

    target: Reference | Access | Declared
    accumulator: Accumulator | None
    fresh: bool
    right: Single | Term
    logic: Logic | None
    schedule: Schedule | None
    sign_span: Span
    span: Span


TensorWord = Literal["forward", "zero_grads", "backprop"]


@record
class TensorStatement:
    """``forward(t)``, ``zero_grads(t)``, ``backprop(t)``."""

    word: TensorWord
    tensor: Reference
    span: Span


@record
class ForEach:
    """``for p in params(t) { ... }``; ``place`` is that of the variable."""

    variable: str
    tensor: Reference
    statements: tuple[Statement, ...]
    name_span: Span
    span: Span


@record
class Condition:
    """``if CONDITION { ... } else { ... }``; ``otherwise`` is empty without an else."""

    test: Term
    statements: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    span: Span


@record
class Returned:
    """``return a, b``."""

    terms: tuple[Term, ...]
    span: Span


@record
class Commented:
    """``~~("text" tensor "text"; statements)``: a comment that reaches explain and C, and what it is about."""

    says: tuple[Text | Reference | Access, ...]
    statements: tuple[Statement, ...]
    span: Span


Statement = (
    Assigned | NameBinding | TensorStatement | ForEach | Condition | Called | Returned | Commented
)


@record
class Routine:
    """``cd NAME(tensors; configuration) { statements }``."""

    head: Head
    statements: tuple[Statement, ...]
    span: Span

    @property
    def name(self) -> str:
        """The name that its head gives it."""
        return self.head.name


def nodes_within(node: object) -> Iterator[object]:
    """Every node of a tree in the order of the text, parents first; programs of other notations are not looked into."""
    todo = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, tuple):
            todo.extend(reversed(each))
        elif type(each).__module__ == __name__:
            yield each
            fields = [value for name, value in vars(each).items() if not name.endswith("span")]
            todo.extend(reversed(fields))


def strings(node: object) -> dict[str, list[Declared]]:
    """The strings that declare tensors in a body, by name, in the order of the text."""
    declared: dict[str, list[Declared]] = {}
    for each in nodes_within(node):
        if isinstance(each, Declared):
            declared.setdefault(each.name, []).append(each)
    return declared


def alike(one: object, other: object) -> bool:
    """Equality of two definitions, or of parts of them, of any depth, spans aside."""
    stack = [(one, other)]
    while stack:
        a, b = stack.pop()
        if a.__class__ is not b.__class__:
            return False
        if isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif type(a).__module__ == __name__:
            fields = [name for name in vars(a) if not name.endswith("span")]
            stack.extend((getattr(a, name), getattr(b, name)) for name in fields)
        elif isinstance(a, Component):
            if not same(a, cast("Tree", b)):
                return False
        elif a != b:
            return False
    return True


BoundKind = Literal["input", "configuration", "value", "parameter"]
SLOTS = frozenset(("v", "v1", "v2", "v3", "g", "g1", "g2", "g3"))
"""Names for result, operands and gradients in the statements of an operation with a gradient of its own."""


def bound_names(definition: Function | Routine) -> frozenset[str]:
    """The names that a definition binds itself, whatever they name in its file."""
    bound = frozenset(name for name, *_ in bindings(definition))
    is_custom = isinstance(definition, Function) and isinstance(definition.body, CustomOperation)
    return bound | SLOTS if is_custom else bound


def bindings(node: object) -> Iterator[tuple[str, BoundKind, Span]]:
    """Names that nodes bind, in the order of the text: the name, its kind, and its place."""
    for part in nodes_within(node):
        match part:
            case TensorParameter(name=name):
                yield name, "input", part.span.begin(len(name))
            case Configured(name=name):
                yield name, "configuration", part.span.begin(len(name))
            case NameBinding(name=str(name)):
                yield name, "value", part.name_span
            case ForEach():
                yield part.variable, "value", part.name_span
            case Repeated():
                yield part.carried, "value", part.carried_span
                yield part.variable, "configuration", part.name_span
            case Declared(name=name):
                yield name, "parameter", part.span.begin(len(name), past=1)
            case _:
                pass

"""Operations with a gradient of their own: ``prim ~logic:"." { v =: ... } grad { g1 =+ ... }`` (docs/functions.md).

Slots are tensors: ``v`` is what the statements make of it, one after the other, and so are ``g1``, ``g2``, ``g3``,
which begin as zeros. Element by element all slots have the axes of the result: what has fewer is repeated first, so
that what flows back to it is summed by the rule of every repetition. Under another logic a slot has the rows that the
shape of that slot in the specification says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.build.values import Custom, NumberTensor, Stored, Tensor
from ilang.core.diagnostic import MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.operation import Logic
from ilang.core.ir.primitives import BETWEEN, ELEMENTWISE, FOLDS, joined
from ilang.core.ir.scalar import Apply, Operand, Scalar
from ilang.core.ir.spec import Spec
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.ops import OPS
from ilang.core.record import replace
from ilang.core.source import Source

if TYPE_CHECKING:
    from ilang.core.build.functions import Functions
    from ilang.core.build.settings import Setting
    from ilang.core.source import Span

SLOTS = ("v1", "v2", "v3")


def custom(
    build: Functions,
    function: ast.Function,
    given: Sequence[Tensor],
    settings: Mapping[str, Setting],
    span: Span,
) -> Tensor:
    """The result of an operation with a gradient of its own."""
    body = function.body
    assert isinstance(body, ast.CustomOperation)
    operands = list(given)
    if body.logic.kind == "." and len(given) > 1:
        operands = _repeated(build, given, given, span)
    if body.logic.kind == "@" and len(given) > 1:
        rows = parse_spec(Source("<spec>", "...|..i..->..o.. => ...|"))
        batches = [build.operation(Operand(0), "+", rows, [each], span) for each in given]
        operands = _repeated(build, given, batches, span)
    slots: dict[str, Tensor] = dict(zip(SLOTS, operands, strict=False))
    name = function.head.name
    forward = _Slots(build, body.logic, {**slots}, settings, name)
    forward.run(body.forward)
    if "v" not in forward.values:
        message = f"{name} never gives its result, `v`"
        raise MeaningError("E0277", message, body.span, "assign it: `v =: v1 + v2`")
    result = forward.values["v"]
    if body.backward is None:
        pairs = tuple((each, each) for each in operands if not isinstance(each, NumberTensor))
        return Custom(result, name, span, gradients=pairs, refused=True)
    cotangent = Stored("cotangent", f"d{name}", (None, None, None), None, span)
    values = {**slots, "v": result, "g": cotangent}
    backward = _Slots(build, body.logic, values, settings, name)
    backward.run(body.backward)
    gradients = tuple(
        (operand, build.pointwise(Operand(0), [backward.values[slot]], span))
        for operand, slot in zip(operands, ("g1", "g2", "g3"), strict=False)
        if slot in backward.values and not isinstance(operand, NumberTensor)
    )
    return Custom(result, name, span, gradients=gradients, cotangent=cotangent)


def _repeated(
    build: Functions, given: Sequence[Tensor], to: Sequence[Tensor], span: Span
) -> list[Tensor]:
    """Tensors repeated along the axes that others have and they lack; of those nothing is read."""
    return [build.operation(Operand(0), "+", "pointwise", [each, *to], span) for each in given]


class _Slots:
    """The statements of one side, and what its slots and names are by now."""

    def __init__(
        self,
        build: Functions,
        logic: ast.Logic,
        values: dict[str, Tensor],
        settings: Mapping[str, Setting],
        name: str,
    ) -> None:
        from ilang.core.build.settings import Evaluation

        self.build = build
        self.logic = logic
        self.values = values
        self.name = name
        self.frame = Evaluation(build.root, {**settings, **values}, {})

    def run(self, statements: Sequence[ast.Statement]) -> None:
        """Follow statements."""
        for each in statements:
            match each:
                case ast.Assigned():
                    self._assign(each)
                case ast.NameBinding(name=str(name)):
                    self._keep(name, self.build.tensor(self.frame, each.term))
                case ast.Condition():
                    holds = self.build.number(self.frame, each.test)
                    self.run(each.statements if holds else each.otherwise)
                case _:
                    message = f"{self.name} is an operation: it holds assignments to its slots, names and `if`"
                    raise MeaningError(
                        "E0277", message, each.span, "write what else it does outside of it"
                    )

    def _keep(self, name: str, value: Tensor) -> None:
        self.values[name] = value
        self.frame.names[name] = value

    def _assign(self, each: ast.Assigned) -> None:
        if not isinstance(each.target, ast.Reference):
            raise MeaningError(
                "E0277",
                "an operation assigns to its slots",
                each.target.span,
                "its slots are v, and g, g1, g2, g3 after `grad`",
            )
        name = each.target.name
        comes = self._right(each, name)
        if each.accumulator is None:
            self._keep(name, comes)
            return
        before = self.values.get(name)
        if each.fresh or before is None:
            fold = OPS[FOLDS[each.accumulator][1] or "*"]
            neutral = (fold.identity or 0.0) if each.fresh else 0.0
            if each.accumulator in ("+", "||") and neutral == 0.0:
                self._keep(name, comes)
                return
            before = NumberTensor(neutral, each.span)
        scalar = joined(each.accumulator)
        self._keep(name, self.build.pointwise(scalar, [before, comes], each.span))

    def _right(self, each: ast.Assigned, target: str) -> Tensor:
        right = each.right
        if not isinstance(right, ast.Single):
            return self.build.tensor(self.frame, right)
        operands = [self.build.tensor(self.frame, term) for term in right.operands]
        scalar = single_scalar(right, len(operands))
        if self.logic.kind == ".":
            return self.build.pointwise(scalar, operands, each.span)
        logic = self._logic(target, right, each.span)
        fold = FOLDS[each.accumulator or "+"][1] or "+"
        return self.build.operation(scalar, fold, logic, operands, each.span)

    def _logic(self, target: str, right: ast.Single, span: Span) -> Logic:
        """The logic of the operation as it is between the slots that an assignment names."""
        places = [_place(target), *(self._slot(term) for term in right.operands)]
        if None in places:
            message = f'under ~logic:"{self.logic.kind}" an assignment is between slots'
            raise MeaningError(
                "E0277",
                message,
                span,
                "its slots are v, v1, v2, v3, and g, g1, g2, g3 after `grad`",
            )
        if self.logic.kind == "spec":
            spec = self.logic.spec
            assert spec is not None
            shapes = [spec.result, *spec.operands]
            target_shape, *others = (shapes[place or 0] for place in places)
            return replace(spec, operands=tuple(others), result=target_shape)
        if places == [0, 1, 2] and self.logic.kind == "@":
            return "compose"
        if self.logic.kind == "T" and len(places) == 2:
            return "transpose" if places[0] != places[1] else "pointwise"
        return _contraction(places)

    def _slot(self, term: ast.Term) -> int | None:
        """The slot whose rows an operand has: 0 the result, 1 to 3 the operands."""
        names = {each.name for each in ast.nodes_within(term) if isinstance(each, ast.Reference)}
        places = {_place(name) for name in names} - {None}
        return places.pop() if len(places) == 1 else None


def _place(name: str) -> int | None:
    return (
        int(name[1])
        if name in ("v1", "v2", "v3", "g1", "g2", "g3")
        else 0
        if name in ("v", "g")
        else None
    )


def _contraction(places: Sequence[int | None]) -> Spec:
    """``~logic:"@"`` as a specification between the slots in these places."""
    shapes = ("...|..i..->..o..", "...|..k..->..o..", "...|..i..->..k..")
    target, *others = (shapes[place or 0] for place in places)
    return parse_spec(Source("<spec>", f"{'; '.join(others)} => {target}"))


def single_scalar(right: ast.Single, count: int) -> Scalar:
    """The scalar that the operator of an assignment computes of its operands."""
    sign = right.operator
    if sign is None:
        return Operand(0)
    if count == 1 and sign == "-":
        return Apply("neg", (Operand(0),))
    if count == 1 and sign in ("not", "?/"):
        return Apply("not", (Operand(0),)) if sign == "not" else ELEMENTWISE["relu"]
    if sign in BETWEEN:
        return BETWEEN[sign]
    return ELEMENTWISE[sign]

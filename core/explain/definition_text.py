"""A typed graph as a definition of the language, where it can be written so, with schedules if they are wanted.

Example, of a matrix multiply and its cotangent:
    out:  p_gradient(in0[i,k], in1[k,j], dout[i,j]) = {
            din0 = (ij*kj~ikj >> +ikj~ik)(dout, in1)
            din1 = (ij*ik~kji >> +kji~kj)(dout, in0)
            din0, din1
          }

Every scalar function of several operators becomes several statements, one an operator; with schedules, which are of
whole assignments, it has no words. There are no words either for accumulations into parts of a tensor, look-ups, views,
functions that no operator is, and guards that depend on extents: what has none is None, and so is a program that leaves
an input unread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from ilang.core.calculus.affine import Affine, Within, inside, sides, variables_of
from ilang.core.diagnostic import ElementTypeError
from ilang.core.explain.expression import affine_text, extents_of, number_text, parameter
from ilang.core.infer.dtypes import type_scalar
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Position, Scalar
from ilang.core.ir.schedule import Nest, schedule_text
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped
from ilang.core.names import LETTERS, Names
from ilang.core.ops import BETWEEN, OPS, POWERS
from ilang.core.record import record, replace

UNARY = {
    op.unary: op.symbol
    for op in OPS.values()
    if op.unary not in ("copy", op.binary) and op.unary_left is None and op.unary_right is None
}

LETTER = re.compile("[a-z]")


class _Unwritten(Exception):
    """The language has no words for a part of the program."""


def definition_text(shaped: Shaped, nests: Sequence[Nest | None] = ()) -> str | None:
    """The program as a definition over the names of its inputs; None where the language has no words for it.

    Args:
        shaped: the program.
        nests: the schedule of each value that has one; then each assignment is an expression with its schedule.
    """
    try:
        return _Statements(shaped, nests).text()
    except _Unwritten:
        return None


@record
class _Word:
    """A part of a scalar as the operand of an expression: its pattern, and its argument if it takes one.

    ``read`` is the number of the read that it is, if it is one.
    """

    pattern: str
    argument: str | None = None
    read: int | None = None

    def takes(self) -> bool:
        """Whether it takes an argument."""
        return self.argument is not None

    def letters(self) -> list[str]:
        """The letters of its axes."""
        return LETTER.findall(self.pattern.partition("[")[0])


class _Statements:
    """Statements under construction; every value, and every part of one, has a name."""

    def __init__(self, shaped: Shaped, nests: Sequence[Nest | None]) -> None:
        self.shaped = shaped
        self.nests = nests
        self.names = Names()
        self.called = [self.names.fresh(_identifier(each.name)) for each in shaped.tensors]
        self.lines: list[str] = []

    def text(self) -> str:
        """The head, a statement for each part, and the outputs."""
        shaped = self.shaped
        for value, node in enumerate(shaped.nodes):
            if isinstance(node, Assignment):
                self._assign(value, node)
            elif not isinstance(node, Input):
                raise _Unwritten
        read = {r.value for n in shaped.nodes if isinstance(n, Assignment) for r in n.reads}
        if not read.issuperset(shaped.inputs):
            raise _Unwritten  # a definition reads every input that it names
        outputs = ", ".join(self.called[value] for value in shaped.outputs)
        name = "f" if shaped.name.startswith(UNNAMED) else _identifier(shaped.name)
        body = "\n".join(f"  {line}" for line in [*self.lines, outputs])
        return f"{name}({', '.join(map(self._parameter, shaped.inputs))}) = {{\n{body}\n}}"

    def _parameter(self, value: int) -> str:
        """``x: f64[i,k]``."""
        tensor = self.shaped.tensors[value]
        return parameter(self.called[value], tensor.dtype, extents_of(self.shaped, value))

    def _assign(self, value: int, node: Assignment) -> None:
        if node.base is not None or len(node.axes) > len(LETTERS):
            raise _Unwritten
        names = [axis.name for axis in node.axes]
        if not all(map(LETTER.fullmatch, names)) or len({*names}) < len(names):
            renamed = zip(node.axes, LETTERS, strict=False)
            node = replace(node, axes=tuple(replace(a, name=c) for a, c in renamed))
        name = self.called[value]
        target = [index.axis() for index in node.target]
        if None in target:
            raise _Unwritten
        letters = "".join(node.axes[axis].name for axis in target if axis is not None) or "."
        if self.nests or not isinstance(node.scalar, Apply):
            self._whole(value, node, letters)
        elif node.acc is None:
            self._operator(node, node.scalar, (name, letters))
        else:
            word = self._operator(replace(node, guards=()), node.scalar, None)
            if {*word.pattern} != {axis.name for axis in node.axes}:
                raise _Unwritten  # a sum over an axis that nothing in it walks
            form = f"{node.acc}{word.pattern}{_guards(node, node.guards)}"
            self.lines.append(f"{name} = ({form}~{letters})({word.argument})")

    # -- one expression for an assignment ------------------------------------------------------------------------------

    def _whole(self, value: int, node: Assignment, target: str) -> None:
        """The statement of an assignment that is one expression, with its schedule if it has one."""
        scalar, name = node.scalar, self.called[value]
        if node.acc is None and isinstance(scalar, Convert):
            read = self._plain(node, scalar)
            self.lines.append(f"{name} = {scalar.dtype}({read})")
            return
        if node.acc is None and isinstance(scalar, Apply):
            symbol, arguments = _operator(scalar)
        else:
            symbol, arguments = node.acc or "", (scalar,)
        words = [self._word(node, each) for each in arguments]
        self._check(node, scalar, [each.read for each in words])
        schedule = self._schedule(value, node, words)
        self.lines.append(f"{name} = {_expression(symbol, words, target + schedule)}")

    def _schedule(self, value: int, node: Assignment, words: Sequence[_Word]) -> str:
        """The schedule of an expression, after a blank: its digits number operands as they are written."""
        nest = self.nests[value] if self.nests else None
        if nest is None:
            return ""
        numbers = {word.read: n for n, word in enumerate(words) if word.read is not None}
        operands = tuple(numbers[read] for read in range(len(node.reads)))
        return f" {schedule_text(replace(node, operands=operands), nest)}"

    def _plain(self, node: Assignment, scalar: Convert) -> str:
        """The argument of a conversion, which is of a whole value."""
        whole = tuple(range(len(node.axes)))
        if (
            isinstance(scalar.argument, Operand)
            and len(node.reads) == 1
            and not node.reads[0].guards
        ):
            indices = (node.target, node.reads[0].index)
            if all(tuple(each.axis() for each in index) == whole for index in indices):
                return self.called[node.reads[0].value]
        raise _Unwritten

    def _check(self, node: Assignment, scalar: Scalar, reads: Sequence[int | None]) -> None:
        """Check that an expression reads what the assignment reads, walks its axes, and has its types."""
        if sorted(each for each in reads if each is not None) != list(range(len(node.reads))):
            raise _Unwritten
        axes = variables_of(part for read in node.reads for part in read.index)
        if axes != {*range(len(node.axes))}:
            raise _Unwritten  # a value that is repeated, or a sum, along an axis that nothing walks
        types = [Operand(n, self.shaped.tensors[r.value].dtype) for n, r in enumerate(node.reads)]
        try:
            typed = type_scalar(_untyped(scalar), types, node.span)
        except ElementTypeError:
            raise _Unwritten from None
        if typed != scalar:
            raise _Unwritten

    # -- a statement for each operator ---------------------------------------------------------------------------------

    def _operator(self, node: Assignment, scalar: Apply, last: tuple[str, str] | None) -> _Word:
        symbol, arguments = _operator(scalar)
        words = [
            self._operator(node, each, None) if isinstance(each, Apply) else self._word(node, each)
            for each in arguments
        ]
        if any(isinstance(each, Convert) for each in arguments):
            raise _Unwritten
        taken, named = (
            {c for word in words if word.takes() is takes for c in word.letters()}
            for takes in (True, False)
        )
        if named - taken:
            raise _Unwritten  # a position along an axis that nothing in it walks
        letters = "".join(axis.name for axis in node.axes if axis.name in taken) or "."
        name, target = last or (self.names.fresh("t"), letters)
        if last is not None and {*target} - {"."} != taken:
            raise _Unwritten  # repeated along an axis that nothing in it walks
        self.lines.append(f"{name} = {_expression(symbol, words, target)}")
        return _Word(letters, name)

    # -- operands ------------------------------------------------------------------------------------------------------

    def _word(self, node: Assignment, scalar: Scalar) -> _Word:
        while isinstance(scalar, Convert):
            scalar = scalar.argument
        match scalar:
            case Operand():
                read = node.reads[scalar.number]
                pattern = self._pattern(node, read)
                return _Word(pattern, self.called[read.value], scalar.number)
            case Constant() if isfinite(scalar.value):
                return _Word(".", number_text(scalar.value))
            case Position():
                return _Word(self._position(node, scalar.index))
            case _:
                raise _Unwritten

    def _pattern(self, node: Assignment, read: Read) -> str:
        """The pattern of a read of a value, with its guards: ``ij[j<=i]``."""
        indices = "".join(self._index(node, part) for part in read.index) or "."
        if len(read.index) == 1 and indices[1:-1].isdigit():
            indices = indices[1:-1]  # before `>>` a number in parentheses is one of its own
        implied = inside(read.index, self.shaped.tensors[read.value].dims)
        guards = [each for each in (*read.guards, *node.guards) if each not in implied]
        return indices + _guards(node, guards)

    def _index(self, node: Assignment, index: Affine) -> str:
        """An index of a pattern: ``i``, ``0``, ``(3)``, ``(2i+k:3-1)``."""
        axis = index.axis()
        if axis is not None:
            return node.axes[axis].name
        if index.sizes or index.looked:
            raise _Unwritten
        if not index.variables():
            return "0" if not index.offset else f"({index.offset})"
        return f"({affine_text(index, lambda n: _with_extent(node, n))})"

    def _position(self, node: Assignment, index: Affine) -> str:
        """The position along axes, or the extent of one: ``@i``, ``@(2i+j)``, ``:j``."""
        if not index.variables() and not index.offset and len(index.sizes) == 1:
            ((coefficient, size),) = index.sizes
            if coefficient == 1 and size in node.sizes:
                return f":{node.axes[node.sizes.index(size)].name}"
        if index.sizes or index.looked or not index.variables():
            raise _Unwritten
        text = affine_text(index, lambda axis: node.axes[axis].name)
        return f"@{text}" if LETTER.fullmatch(text) else f"@({text})"


def _expression(symbol: str, words: Sequence[_Word], target: str) -> str:
    """An expression and its arguments: ``(ij*j~ij)(x, y)``; what stands after the tilde is given."""
    form = symbol.join(w.pattern for w in words) if len(words) > 1 else symbol + words[0].pattern
    given = ", ".join(word.argument for word in words if word.argument is not None)
    return f"({form}~{target})({given})"


def _identifier(name: str) -> str:
    """A name without what names of the language do not have: ``layer_1.w`` is ``layer_1_w``."""
    return re.sub(r"\W", "_", name)


def _operator(scalar: Apply) -> tuple[str, tuple[Scalar, ...]]:
    if len(scalar.arguments) == 2 and scalar.primitive in BETWEEN:
        is_unary = scalar.primitive in ("max", "min") and isinstance(scalar.arguments[0], Constant)
        return BETWEEN[scalar.primitive], scalar.arguments[is_unary:]
    if len(scalar.arguments) == 1 and scalar.primitive in UNARY:
        return UNARY[scalar.primitive], scalar.arguments
    for power, primitive in POWERS.items():
        if scalar.primitive == primitive:
            return "^", (*scalar.arguments, Constant(power, scalar.dtype))
    raise _Unwritten


def _with_extent(node: Assignment, axis: int) -> str:
    """An axis of a window, with its extent where one is written."""
    each = node.axes[axis]
    return each.name if each.extent is None else f"{each.name}:{each.extent}"


def _guards(node: Assignment, guards: Sequence[Within]) -> str:
    """Guards after the indices of a pattern: ``[j<=i,k==j]``; two of opposite signs are an equality."""
    words: list[str] = []
    last: Within | None = None
    for guard in guards:
        if last is not None and guard == replace(last, index=-last.index):
            words[-1], last = "==".join(reversed(_sides(node, last))), None
        else:
            words.append("<=".join(_sides(node, guard)))
            last = guard
    return f"[{','.join(words)}]" if words else ""


def _sides(node: Assignment, guard: Within) -> tuple[str, str]:
    """The sides of a condition on axes, the lesser first: ``j<=i`` where i - j is at least 0."""
    index = guard.index
    if guard.size is not None or not index.variables() or index.sizes or index.looked:
        raise _Unwritten
    lesser, greater = sides(index)
    names = [axis.name for axis in node.axes]
    return affine_text(lesser, names.__getitem__), affine_text(greater, names.__getitem__)


def _untyped(scalar: Scalar) -> Scalar:
    """A scalar as it is written: without types, without conversions, and with powers by numbers."""
    match scalar:
        case Convert():
            return _untyped(scalar.argument)
        case Constant():
            return replace(scalar, dtype=None)
        case Apply():
            is_written = scalar.primitive in BETWEEN
            arguments = scalar.arguments if is_written else _operator(scalar)[1]
            is_power = len(scalar.arguments) < len(arguments)
            primitive = "pow" if is_power else scalar.primitive
            return Apply(primitive, tuple(map(_untyped, arguments)))
        case _:
            return scalar

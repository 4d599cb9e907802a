"""A typed graph as a definition of the language, where it can be written so.

Example, of a matrix multiply and its cotangent:
    out:  p_gradient(in0[i,k], in1[k,j], dout[i,j]) = {
            din0 = (ij*kj~ikj >> +ikj~ik)(dout, in1)
            din1 = (ij*ik~kji >> +kji~kj)(dout, in0)
            din0, din1
          }

Every scalar function of several operators becomes several statements, one an operator. What the language has no words
for is None: accumulations into parts of a tensor, guards, look-ups, positions, views, conversions, and functions that
no operator is; and so is a program that leaves an input unread.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.explain.expression import number_text, size_text
from ilang.core.ir.affine import Affine
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.scalar import Apply, Constant, Operand, Scalar
from ilang.core.ir.shaped import Assignment, Input, Shaped
from ilang.core.names import Names
from ilang.core.ops import OPS

BINARY = {op.binary: op.symbol for op in OPS.values() if op.binary is not None}
UNARY = {
    op.unary: op.symbol
    for op in OPS.values()
    if op.unary not in ("copy", op.binary) and op.unary_left is None and op.unary_right is None
}
LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


class _Unwritten(Exception):
    """The language has no words for a part of the program."""


def definition_text(shaped: Shaped) -> str | None:
    """The program as a definition over the names of its inputs; None where the language has no words for it."""
    try:
        return _Definition(shaped).text()
    except _Unwritten:
        return None


class _Definition:
    """Statements under construction; every value, and every part of one, has a name."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.names = Names(frozenset(tensor.name for tensor in shaped.tensors))
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
        outputs = ", ".join(shaped.tensors[value].name for value in shaped.outputs)
        name = "f" if shaped.name.startswith(UNNAMED) else shaped.name
        body = "\n".join(f"  {line}" for line in [*self.lines, outputs])
        return f"{name}({', '.join(map(self._parameter, shaped.inputs))}) = {{\n{body}\n}}"

    def _parameter(self, value: int) -> str:
        """``x: f64[i,k]``."""
        tensor = self.shaped.tensors[value]
        dtype = "" if tensor.dtype == "f32" else f": {tensor.dtype}"
        dims = ",".join(size_text(self.shaped.sizes[size]) for size in tensor.dims)
        return f"{tensor.name}{dtype}[{dims}]"

    def _assign(self, value: int, node: Assignment) -> None:
        """The statements of an assignment."""
        plain = node.base is None and not node.guards and len(node.axes) <= len(LETTERS)
        if not plain or any(read.guards for read in node.reads):
            raise _Unwritten
        name = self.shaped.tensors[value].name
        target = self._pattern(node.target)
        part, letters = self._part(node, node.scalar, None if node.acc else (name, target))
        if node.acc is None:
            if part is not None:
                self.lines.append(f"{name} = ({letters}~{target})({part})")
            return
        if sorted(letters.replace(".", "")) != sorted(self._letters(range(len(node.axes)))):
            raise _Unwritten  # a sum over an axis that nothing in it walks
        self.lines.append(f"{name} = ({node.acc}{letters}~{target})({part})")

    def _part(
        self, node: Assignment, scalar: Scalar, last: tuple[str, str] | None
    ) -> tuple[str | None, str]:
        """A part of a scalar as an argument and the letters of its pattern; ``last`` names the whole, and its axes.

        What is named by ``last`` is a statement already: then the argument is None.
        """
        match scalar:
            case Operand():
                read = node.reads[scalar.number]
                return self.shaped.tensors[read.value].name, self._pattern(read.index)
            case Constant():
                return number_text(scalar.value), "."
            case Apply() if len(scalar.arguments) == 2 and scalar.primitive in BINARY:
                return self._statement(node, BINARY[scalar.primitive], scalar.arguments, last)
            case Apply() if len(scalar.arguments) == 1 and scalar.primitive in UNARY:
                return self._statement(node, UNARY[scalar.primitive], scalar.arguments, last)
            case _:
                raise _Unwritten

    def _statement(
        self,
        node: Assignment,
        symbol: str,
        arguments: Sequence[Scalar],
        last: tuple[str, str] | None,
    ) -> tuple[str | None, str]:
        """A statement for one operator."""
        parts = [self._part(node, argument, None) for argument in arguments]
        walked = {letter for _, letters in parts for letter in letters if letter != "."}
        letters = "".join(c for c in self._letters(range(len(node.axes))) if c in walked) or "."
        name, target = last or (self.names.fresh("t"), letters)
        if last is not None and set(target) - {"."} != walked:
            raise _Unwritten  # repeated along an axis that nothing in it walks
        patterns = [letters for _, letters in parts]
        left = symbol.join(patterns) if len(patterns) == 2 else symbol + patterns[0]
        given = ", ".join(str(argument) for argument, _ in parts)
        self.lines.append(f"{name} = ({left}~{target})({given})")
        return (None if last is not None else name), letters

    @staticmethod
    def _letters(axes: Sequence[int]) -> str:
        return "".join(LETTERS[axis] for axis in axes)

    def _pattern(self, index: Sequence[Affine]) -> str:
        """Axes as letters; positions, sums of axes and repeated axes have no text here."""
        axes = [part.axis() for part in index]
        if None in axes or len(set(axes)) < len(axes):
            raise _Unwritten
        return self._letters([axis for axis in axes if axis is not None]) or "."

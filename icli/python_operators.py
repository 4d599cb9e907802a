"""Errors of operators that bind otherwise in Python than they read, or have no meaning for arrays.

x > 2 & x < 4    x > (2 & x) < 4 in Python: `(x > 2) & (x < 4)` was meant
0 < x < 1        `(0 < x) & (x < 1)`
n << 2           bits are not shifted: `n * 2 ** 2`
"""

from __future__ import annotations

import ast

from ilang.icli.array_functions import Array, MismatchError

JUNCTIONS: dict[type, str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
"""Operators between conditions, which bind tighter than comparisons."""


def several_comparisons(node: ast.Compare) -> MismatchError:
    """The error for comparisons in a row, or for conditions that are joined without parentheses."""
    text = ast.unparse(node)
    operands = [_joined(each) for each in (node.left, *node.comparators)]
    if all(len(each) == 1 for each in operands):
        ends = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        pairs = [ast.unparse(ast.Compare(left, [op], [right])) for left, op, right in ends]
        meant = " & ".join(f"({each})" for each in pairs)
        return MismatchError(f"`{text}` compares twice", f"compare each pair: `{meant}`", "E0821")
    signs = [
        ast.unparse(ast.Compare(ast.Name("x"), [op], [ast.Name("x")]))[2:-2] for op in node.ops
    ]
    meant, sign = "", ""
    for compared, operand in zip(("", *signs), operands, strict=True):
        first, *rest = operand
        meant += f" {compared} {first}" if compared else f"({first}"
        for sign, other in zip(rest[::2], rest[1::2], strict=True):
            meant += f") {sign} ({other}"
    return MismatchError(
        f"`{sign}` binds tighter than comparisons in `{text}`", f"write `{meant})`", "E0821"
    )


def _joined(node: ast.expr) -> list[str]:
    """The texts that an operand joins, and the signs between them: ``a & b | c`` has five."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in JUNCTIONS:
            return [*_joined(left), JUNCTIONS[type(op)], *_joined(right)]
        case _:
            return [ast.unparse(node)]


def shift_of_bits(node: ast.BinOp, one: Array, other: Array) -> MismatchError:
    """The error for ``<<`` and ``>>`` between arrays."""
    is_left = isinstance(node.op, ast.LShift)
    sign, factor, comparison = ("<<", "*", "<") if is_left else (">>", "//", ">")
    message = f"`{sign}` between {one.named()} and {other.named()} would shift bits"
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    hint = f"`{left} {factor} 2 ** {right}` is that of integers; `{left} {comparison} {right}` compares"
    return MismatchError(message, hint, "E0821")

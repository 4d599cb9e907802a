"""Whole numbers in an expression of arrays: sizes, and arithmetic over these, computed before the arrays are.

x[: len(x) // 2]       x[:2]              where x has 4 elements
zeros(x.shape[0], 1)   zeros(4, 1)
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from ilang.icli.array_functions import COUNTS, Array
from ilang.icli.python_nodes import MODULES, whole_number

FOLDED: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
"""Arithmetic over whole numbers that gives whole numbers."""


BITS = 64
"""Powers of so many factors, or more, are no whole numbers of programs."""


class SizesFolded(ast.NodeTransformer):
    """An expression with numbers in place of sizes of arrays and of arithmetic over whole numbers."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        """The arrays that have names."""
        self.arrays = arrays

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``x.shape``, ``x.size``, ``x.ndim``."""
        match node:
            case ast.Attribute(ast.Name(name), "shape") if name in self.arrays:
                return ast.Tuple([ast.Constant(size) for size in self.arrays[name].shape])
            case ast.Attribute(ast.Name(name), "nan" | "inf" as number) if name in MODULES:
                return ast.Name(number)
            case ast.Attribute(ast.Name(name), "size" | "ndim" as count) if name in self.arrays:
                return ast.Constant(COUNTS[count](self.arrays[name].shape))
            case _:
                return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``len(x)``."""
        match node:
            case ast.Call(ast.Name("len"), [ast.Name(name)], []) if name in self.arrays:
                return ast.Constant(COUNTS["len"](self.arrays[name].shape))
            case ast.Call(ast.Attribute(func) as method):
                method.value = self.visit(func)
            case _:
                pass
        node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``x.shape[0]``."""
        self.generic_visit(node)
        at = whole_number(node.slice)
        if isinstance(node.value, ast.Tuple) and at is not None:
            parts = node.value.elts
            if -len(parts) <= at < len(parts):
                return parts[at]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """``len(x) - 1``."""
        self.generic_visit(node)
        left, right = whole_number(node.left), whole_number(node.right)
        if left is None or right is None or type(node.op) not in FOLDED:
            return node
        if right == 0 and isinstance(node.op, ast.FloorDiv | ast.Mod):
            return node
        if isinstance(node.op, ast.Pow) and not 0 <= right < BITS:
            return node
        result = FOLDED[type(node.op)](left, right)
        return (
            ast.Constant(result) if result >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-result))
        )


class Replaced(ast.NodeTransformer):
    """An expression with what is written out in place of names."""

    def __init__(self, nodes: Mapping[str, ast.expr]) -> None:
        """``nodes`` by the names that they replace."""
        self.nodes = nodes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, or what stands for it."""
        return self.nodes.get(node.id, node)

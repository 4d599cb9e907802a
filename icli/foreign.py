"""Lines of the REPL that are spelled as in Python, and what is written instead: ``x*2``, ``zeros(3)``, ``x @ y``.

``spelled`` takes the text of a line and the shapes of the arrays that have names, and gives lines that work, each
bound to a name but the last: ``(x + y) @ w`` is ``t1 = ij+ij~ij x y`` and ``ik*kj~ijk >> +ijk~ij t1 w``.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

from ilang.core.diagnostic import DataError
from ilang.core.ops import OPS, PRIMITIVES, REDUCING
from ilang.core.record import record
from ilang.icli.filled import ARRAYS, filled_shape, is_filled

Shape = tuple[int, ...]

LETTERS = "ijklmnop"
"""Axes of a suggestion: the ranks that it is made for."""

OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^", ast.BitXor: "^",
    ast.Gt: ">>", ast.GtE: ">=", ast.Lt: "<<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
UNARY = {
    **{
        name: op.symbol
        for op in OPS.values()
        if op.unary_left is op.unary_right is None and op.unary not in ("copy", "truth")
        for name in (
            op.unary,
            PRIMITIVES[op.unary].notation.numpy,
            PRIMITIVES[op.unary].notation.function,
        )
        if name
    },
    "relu": ">",
}
REDUCTIONS = {
    **{op.numpy: op.symbol for op in REDUCING.values() if op.numpy},
    "amax": ">",
    "amin": "<",
    "mean": "+",
}
BINARY = {
    PRIMITIVES[op.binary].notation.numpy: op.symbol
    for op in OPS.values()
    if op.binary is not None and PRIMITIVES[op.binary].notation.numpy
}
PRODUCTS = ("dot", "matmul")
FILLED = {
    "identity": "eye", "range": "arange", "iota": "arange", "empty": "zeros", "random": "rand", "randn": "rand",
}  # fmt: skip
"""Functions that make an array, and those of ``filled.py`` for them."""
SHOWN = (
    "print",
    "show",
    "display",
    "array",
    "asarray",
    "tensor",
    "len",
    "shape",
    "size",
    "type",
    "typeof",
)
MEMBERS = ("shape", "dtype", "ndim", "size")
"""Members of arrays that a line with its name shows."""
TRANSPOSED = re.compile(r"(?<=[\w)\]])'(?!\w)")
"""The sign of a transpose in MATLAB and Julia."""


@record
class Array:
    """A part of a line that is an array: text that stands for an array (a name or a literal), and its shape."""

    text: str
    shape: Shape


class _Unknown(Exception):
    """The line is nothing that a suggestion is made for."""


class UnknownNameError(Exception):
    """A name that is no array: ``args[0]``."""


def spelled(text: str, arrays: Mapping[str, Shape]) -> list[str] | None:
    """The lines that do what a line in Python's spelling means, or None where it is none, or nothing does.

    Raises: UnknownNameError for a name among arrays, or in a known function, that is bound to nothing.
    """
    text = TRANSPOSED.sub(".T", text.strip())
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = value_names(tree)
    if isinstance(tree, ast.Name | ast.Constant | ast.List):
        return None
    if isinstance(tree, ast.Attribute) and tree.attr in MEMBERS:
        tree = ast.Call(ast.Name("show"), [tree.value], [])
    if not isinstance(tree, ast.Call) and names and not arrays.keys() & set(names):
        return None  # letters of an index expression, more likely
    reading = _NamedSteps(arrays)
    try:
        last = reading.array(tree)
    except (_Unknown, RecursionError):
        return None
    return (
        [*reading.lines[:-1], reading.lines[-1].partition(" = ")[2]]
        if reading.lines
        else [last.text]
    )


def value_names(tree: ast.expr) -> list[str]:
    """The names in an expression that are not those of functions it calls, in order."""
    nodes = [*ast.walk(tree)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    in_order = sorted(names, key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in in_order))


class _NamedSteps:
    """The lines so far; each binds one step to a name."""

    def __init__(self, arrays: Mapping[str, Shape]) -> None:
        self.arrays = arrays
        self.lines: list[str] = []

    def array(self, node: ast.expr) -> Array:
        """The array that a part of a line gives."""
        match node:
            case ast.Name():
                if node.id not in self.arrays:
                    raise UnknownNameError(node.id)
                return Array(node.id, self.arrays[node.id])
            case ast.Constant(value=int() | float()):
                return Array(_number(node), ())
            case ast.List():
                return _literal(node)
            case ast.BinOp(op=ast.MatMult()):
                return self.product(self.array(node.left), self.array(node.right))
            case ast.BinOp() if type(node.op) in OPERATORS:
                return self.binary(OPERATORS[type(node.op)], node.left, node.right)
            case ast.Compare(ops=[op]) if type(op) in OPERATORS:
                return self.binary(OPERATORS[type(op)], node.left, node.comparators[0])
            case ast.UnaryOp(op=ast.USub()):
                return self.unary("-", self.array(node.operand))
            case ast.Attribute(attr="T"):
                return self.transposed(self.array(node.value))
            case ast.Subscript():
                return self.indexed(self.array(node.value), node.slice)
            case ast.Call():
                return self.call(node)
            case _:
                raise _Unknown

    def step(self, program: str, shape: Shape, *operands: Array) -> Array:
        """One line more."""
        name = f"t{len(self.lines) + 1}"
        while name in self.arrays:
            name += "_"
        words = " ".join((program, *(operand.text for operand in operands)))
        self.lines.append(f"{name} = {words}")
        return Array(name, shape)

    def binary(self, sign: str, left: ast.expr, right: ast.expr) -> Array:
        """An operator between two arrays, or an array and a number."""
        one, other = self.array(left), self.array(right)
        numbers = [_is_number(left), _is_number(right)]
        if numbers == [False, True]:
            axes = _axes(one)
            return self.step(f"(I | {other.text}) >> {axes}{sign}.~{axes}", one.shape, one)
        if numbers == [True, False]:
            axes = _axes(other)
            return self.step(f"({one.text} | I) >> .{sign}{axes}~{axes}", other.shape, other)
        return self.between(sign, one, other)

    def between(self, sign: str, one: Array, other: Array) -> Array:
        """Two arrays, the smaller rank along the last axes of the larger."""
        whole = max(one, other, key=lambda array: len(array.shape))
        axes = _axes(whole)
        for array in (one, other):
            if array.shape != whole.shape[len(whole.shape) - len(array.shape) :]:
                raise _Unknown
        left, right = (axes[len(axes) - len(a.shape) :] if a.shape else "." for a in (one, other))
        return self.step(f"{left}{sign}{right}~{axes}", whole.shape, one, other)

    def unary(self, sign: str, array: Array) -> Array:
        axes = _axes(array)
        return self.step(f"{sign}{axes}~{axes}", array.shape, array)

    def product(self, one: Array, other: Array) -> Array:
        """A matrix product, of vectors too."""
        ranks = len(one.shape), len(other.shape)
        if ranks not in ((1, 1), (1, 2), (2, 1), (2, 2)) or one.shape[-1] != other.shape[0]:
            raise _Unknown
        left, right = "i" * (ranks[0] == 2), "j" * (ranks[1] == 2)
        both = f"{left}k*k{right}~{left}{right}k"
        shape = one.shape[:-1] + other.shape[1:]
        return self.step(f"{both} >> +{left}{right}k~{left + right or '.'}", shape, one, other)

    def transposed(self, array: Array) -> Array:
        axes = _axes(array)
        return self.step(f"{axes}~{axes[::-1]}", array.shape[::-1], array)

    def reduced(self, name: str, array: Array, axis: int | None) -> Array:
        """All elements, or those along one axis, in one."""
        axes, rank = _axes(array), len(array.shape)
        if not rank or (axis is not None and not -rank <= axis < rank):
            raise _Unknown
        dropped = range(rank) if axis is None else (axis % rank,)
        kept = "".join(axes[n] for n in range(rank) if n not in dropped) or "."
        shape = tuple(array.shape[n] for n in range(rank) if n not in dropped)
        if name in ("var", "std"):
            mean = self.reduced("mean", array, axis)
            apart = self.step(f"{axes}-{kept}~{axes}", array.shape, array, mean)
            square = self.step(f"{axes}*{axes}~{axes}", array.shape, apart, apart)
            spread = self.reduced("mean", square, axis)
            root = f"(I | 0.5) >> {kept}^.~{kept}"
            return self.step(root, shape, spread) if name == "std" else spread
        program = f"{REDUCTIONS[name]}{axes}~{kept}"
        if name == "mean":
            count = math.prod(array.shape[n] for n in dropped)
            program = f"({program} | {count}) >> {kept}/.~{kept}"
        return self.step(program, shape, array)

    def indexed(self, array: Array, index: ast.expr) -> Array:
        """Numbers and ranges in the place of axes: one expression for each."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        rank = len(array.shape)
        if rank < len(parts):
            raise _Unknown
        expressions, shape, axis = [], list(array.shape), 0
        for part in parts:
            if isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step):
                axis += 1
                continue
            letters = LETTERS[: len(shape)]
            before, after = letters[:axis], letters[axis + 1 :]
            if isinstance(part, ast.Slice):
                first, count = _range(part, shape[axis])
                window = (
                    f"({first}+" * (first > 0) + "(" * (not first) + f"{letters[axis]}:{count})"
                )
                expressions.append(f"{before}{window}{after}~{letters}")
                shape[axis] = count
                axis += 1
                continue
            at = _integer(part)
            if at is None or not -shape[axis] <= at < shape[axis]:
                raise _Unknown
            expressions.append(f"{before}{at % shape[axis]}{after}~{before + after or '.'}")
            del shape[axis]
        if not expressions:
            return array
        return self.step(" >> ".join(expressions), tuple(shape), array)

    def call(self, node: ast.Call) -> Array:
        """A function of NumPy, by its own name, as a method, or after a module."""
        name, arguments = _called(node, self.arrays)
        if name == "load":
            return _file(node)
        if FILLED.get(name, name) in ARRAYS:
            return _filled(FILLED.get(name, name), arguments)
        if name in BINARY and len(arguments) == 2:
            return self.binary(BINARY[name], *arguments)
        if name in PRODUCTS and len(arguments) == 2:
            return self.product(*map(self.array, arguments))
        if name in (*REDUCTIONS, "var", "std") and arguments:
            axes = [k.value for k in node.keywords if k.arg == "axis"] or arguments[1:]
            axis = _integer(axes[0]) if axes else None
            if 1 < len(axes) or (axes and axis is None):
                raise _Unknown
            return self.reduced(name, self.array(arguments[0]), axis)
        if len(arguments) != 1:
            raise _Unknown
        return self.applied(name, arguments[0])

    def applied(self, name: str, argument: ast.expr) -> Array:
        """A function of one array."""
        if name in UNARY:
            return self.unary(UNARY[name], self.array(argument))
        if name == "sqrt":
            return self.binary("^", argument, ast.Constant(0.5))
        if name == "transpose":
            return self.transposed(self.array(argument))
        if name in SHOWN:
            return self.array(argument)
        raise _Unknown


def _filled(name: str, arguments: Sequence[ast.expr]) -> Array:
    """An array of numbers that follow from few, or of random ones."""
    text = f"{name}({', '.join(ast.unparse(each) for each in arguments)})"
    if not is_filled(text):
        raise _Unknown
    try:
        return Array(text.replace(" ", ""), filled_shape(text))
    except DataError:
        raise _Unknown from None


def _axes(array: Array) -> str:
    if len(LETTERS) < len(array.shape):
        raise _Unknown
    return LETTERS[: len(array.shape)] or "."


def _range(part: ast.Slice, extent: int) -> tuple[int, int]:
    """The first element and the number of those that a slice takes. Raises: _Unknown (it takes none, or has a step)."""
    ends = [None if each is None else _integer(each) for each in (part.lower, part.upper)]
    if part.step is not None or (part.lower, part.upper).count(None) != ends.count(None):
        raise _Unknown
    first, stop, _ = slice(*ends).indices(extent)
    if stop <= first:
        raise _Unknown
    return first, stop - first


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _number(node: ast.Constant) -> str:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise _Unknown
    return repr(node.value)


def _integer(node: ast.expr) -> int | None:
    """The whole number that a node is, with a sign or without."""
    try:
        number = _signed(node)
    except _Unknown:
        return None
    return number if isinstance(number, int) else None


def _signed(node: ast.expr) -> int | float:
    """The number that a node is, with a sign or without. Raises: _Unknown."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return sign * number
        case _:
            raise _Unknown


def _called(node: ast.Call, arrays: Mapping[str, Shape]) -> tuple[str, list[ast.expr]]:
    """The name of a function and its arguments: the array of a method is the first."""
    match node.func:
        case ast.Name(name):
            return name, node.args
        case ast.Attribute(owner, name):
            return name, node.args if _is_module(owner, arrays) else [owner, *node.args]
        case _:
            raise _Unknown


def _literal(node: ast.List) -> Array:
    """A list of numbers, as it is written."""
    shape, level = [], [node]
    while level and all(isinstance(part, ast.List) for part in level):
        lengths = {len(part.elts) for part in level}
        if len(lengths) != 1:
            raise _Unknown
        shape.append(lengths.pop())
        level = [item for part in level for item in part.elts]  # type: ignore[misc]
    return Array(ast.unparse(node), tuple(shape))


def _file(node: ast.Call) -> Array:
    """The array of a file that a call reads: a file stands where an array does."""
    match node.args:
        case [ast.Constant(value=str() as path)] if path.endswith(".npy") and " " not in path:
            return Array(path, ())
        case _:
            raise _Unknown


def _is_module(node: ast.expr, arrays: Mapping[str, Shape]) -> bool:
    """Whether this is ``np`` or ``torch.nn``: a name that is no array, or an attribute of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in arrays

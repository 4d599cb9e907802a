"""Expressions of arrays as Python writes them, as steps that are programs: ``x*2``, ``rows(x) + 1``, ``x @ y``.

``spelled`` takes a text, the shapes of the arrays that have names, and the programs at hand, and gives steps, of which
each names its result: ``(x + y) @ w`` is ``t1 = ij+ij~ij x y`` and ``t2 = ik*kj~ijk >> +ijk~ij t1 w``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Protocol

from ilang.core.diagnostic import Error, enumerated
from ilang.core.dtype import INTEGERS
from ilang.core.record import record
from ilang.icli.array_calls import ArrayCall, unread_part
from ilang.icli.array_functions import (
    ALIASES,
    CONDITIONS,
    CONVERSIONS,
    KERNELS,
    KNOWN,
    Array,
    MismatchError,
    NoSpellingError,
    Shape,
    UnknownNameError,
    aligned,
    axes_of,
    combined,
    common_type,
    multiplied,
    without_product,
)
from ilang.icli.folded import Replaced, SizesFolded
from ilang.icli.indexing import indexed
from ilang.icli.python_nodes import (
    called,
    expression_of,
    is_number,
    number_text,
    value_names,
    whole_number,
    whole_numbers,
)
from ilang.icli.python_operators import several_comparisons, shift_of_bits
from ilang.icli.respelling import as_python
from ilang.icli.signatures import SIGNATURES

OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^",
    ast.Gt: ">>", ast.GtE: ">=", ast.Lt: "<<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "&", ast.Or: "|", ast.BitAnd: "&", ast.BitOr: "|", ast.MatMult: "@",
    ast.FloorDiv: "floor_divide", ast.Mod: "mod",
}  # fmt: skip
SIGNS: dict[type, str] = {ast.USub: "-", ast.Not: "!!", ast.Invert: "!!"}
CONSTANTS = {
    "pi": "3.141592653589793",
    "e": "2.718281828459045",
    "inf": "inf",
    "nan": "nan",
    "NaN": "nan",
}
"""Numbers of modules."""
JUNCTIONS = {"&": "&&", "|": "||"}
"""Signs that join conditions, and their operators; between numbers they are those of bits in NumPy."""
MOST_TURNS = 64
"""The most arrays that a list with a ``for`` makes one of."""
MULTIPLIED = range(1, 5)
"""Powers of integers that are products, and do not lose what floats cannot hold."""


@record
class AppliedProgram:
    """A program that is applied, and the name of its result."""

    name: str
    program: str
    operands: tuple[Array, ...]

    def application(self) -> str:
        """The step as a body over names takes it, without its name."""
        component = self.program if self.program.isidentifier() else f"({self.program})"
        return f"{component}({', '.join(each.text for each in self.operands)})"

    def line(self) -> str:
        """The step as the REPL takes it, without its name."""
        return " ".join((self.program, *(each.text for each in self.operands))).removeprefix("I ")


class Programs(Protocol):
    """The programs that an expression may call beside the functions of array libraries."""

    def is_component(self, name: str, count: int | None = None) -> bool:
        """Whether a name is that of a component; a function of a library is one with so many inputs."""

    def runs(self, name: str) -> bool:
        """Whether this is a tensor function."""

    def result(self, program: str, operands: Sequence[Array]) -> tuple[Shape, str]:
        """The shape and the element type of what a program gives. Raises: Error."""

    def places(self, condition: Array, steps: Sequence[AppliedProgram]) -> Array:
        """The places where a condition holds, which is computed at once, after some steps. Raises: Error."""

    def may_be_negative(self, integers: Array) -> bool:
        """Whether some of these may be below 0."""

    def run(self, name: str, operands: Sequence[Array], steps: Sequence[AppliedProgram]) -> Array:
        """The result of a tensor function, after some steps. Raises: Error."""


def spelled(
    text: str, arrays: Mapping[str, Array], programs: Programs
) -> list[AppliedProgram] | None:
    """The steps that an expression is, at least one, or None where a text is none, or nothing does what it means.

    Raises:
        UnknownNameError: A name among arrays, or in a known function, is bound to nothing.
        MismatchError: Arrays do not fit.
        Error: Those of the programs.
    """
    has_caret, whole, text = "^" in text, text.strip(), as_python(text)
    tree = expression_of(text)
    if tree is None:
        return None
    names = value_names(tree)
    is_known = names == [whole] and (whole in arrays or whole not in CONSTANTS)
    if is_known or isinstance(tree, ast.Constant | ast.List) or _is_listed(tree):
        return None
    if (
        not isinstance(tree, ast.Call | ast.ListComp)
        and {*names} - {*CONVERSIONS}
        and not {*arrays, "pi", "nan", "inf"} & {*names}
    ):
        return None  # letters of an index expression, more likely
    if isinstance(tree, ast.Tuple):
        lines = ", then ".join(f"`{ast.unparse(each)}`" for each in tree.elts)
        raise MismatchError("a line computes one array", f"type them one by one: {lines}", "E0821")
    reading = NamedSteps(arrays, programs, has_caret)
    try:
        last = reading.array(SizesFolded(arrays).visit(tree))
    except Error:
        raise  # a ValueError, too
    except NoSpellingError as error:
        raise unread_part(tree if error.part is None else error.part) from None
    except (RecursionError, ValueError):
        return None
    except MismatchError as mismatch:
        words = {*re.findall(r"\w+", f"{mismatch.message} {mismatch.hint}")}
        if words & {each.name for each in reading.steps}:
            before = "".join(f"`{each.name} = {each.line()}`, then " for each in reading.steps)
            mismatch.hint = before + mismatch.hint
        raise
    if not reading.steps or last.text != reading.steps[-1].name:
        reading.step("I", last)
    return reading.steps


class NamedSteps:
    """The steps so far."""

    def __init__(
        self, arrays: Mapping[str, Array], programs: Programs, has_caret: bool = False
    ) -> None:
        self.arrays = arrays
        self.has_caret = has_caret
        self.programs = programs
        self.named: dict[str, Array] = {}
        self.steps: list[AppliedProgram] = []

    def array(self, node: ast.expr) -> Array:
        """The array that a part of a line gives. Raises: NoSpellingError (``part`` is what none does)."""
        try:
            return self._array(node)
        except NoSpellingError as error:
            error.part = error.part or node
            raise

    def _array(self, node: ast.expr) -> Array:
        match node:
            case ast.Name(name):
                return self.value(name)
            case ast.Constant(value=bool() as truth):
                return Array(str(truth).lower(), (), "bool")
            case ast.Constant(value=int() | float()):
                return Array(number_text(node), ())
            case ast.List() | ast.Tuple() | ast.ListComp():
                return self.listed(node)
            case ast.BinOp(left, ast.LShift() | ast.RShift(), right) if not (
                {*value_names(node)} - {*self.arrays, *self.named}
            ):
                raise shift_of_bits(node, self.array(left), self.array(right))
            case ast.BinOp() | ast.Compare() | ast.BoolOp():
                return self.binary(*_pair(node))
            case ast.UnaryOp():
                return self.signed(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Attribute():
                return self.member(node)
            case ast.Call():
                return self.quoted(node) or self.at_hand(node) or self.call(node)
            case _:
                raise NoSpellingError

    def signed(self, node: ast.UnaryOp) -> Array:
        """An array with a sign before it, or a number below 0."""
        match node:
            case ast.UnaryOp(ast.USub(), ast.Constant(value=int() | float()) as number):
                return Array(f"-{number_text(number)}", ())
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.array(operand)
            case _:
                array = self.array(node.operand)
        if isinstance(node.op, ast.Invert) and array.dtype != "bool":
            message = f"`~` of {array.named()}, which is of {array.dtype}, would be one of bits"
            raise MismatchError(message, f"`{array.text} == 0` is true where it is 0")
        return self.unary(SIGNS[type(node.op)], array)

    def value(self, name: str) -> Array:
        """An array, or a number, by its name."""
        if name in self.named:
            return self.named[name]
        if name in self.arrays:
            return self.arrays[name]
        if name in CONSTANTS:
            return Array(CONSTANTS[name], ())
        raise UnknownNameError(name)

    def subscript(self, node: ast.Subscript) -> Array:
        """Elements of an array by their places, or by a condition, or a size of its shape."""
        match node:
            case ast.Subscript(ast.Attribute(value, "shape"), index):
                return _number_at(self.array(value).shape, index)
            case _:
                return indexed(self, self.array(node.value), node.slice)

    def member(self, node: ast.Attribute) -> Array:
        """A transpose, a shape, a constant, or a method that lacks its parentheses."""
        if node.attr == "T":
            return self.call(ast.Call(ast.Name("transpose"), [node.value], []))
        if node.attr == "shape":
            return _literal(ast.List([ast.Constant(n) for n in self.array(node.value).shape]))
        if node.attr in CONSTANTS:
            return Array(CONSTANTS[node.attr], ())
        return self.call(ast.Call(node, [], []))

    def listed(self, node: ast.List | ast.Tuple | ast.ListComp) -> Array:
        """A list of numbers, of arrays of one shape, or of an expression with each of some numbers."""
        match node:
            case ast.ListComp(
                elt, [ast.comprehension(ast.Name(name), ast.Call(ast.Name("range"), ends), [], 0)]
            ) if _is_computed(elt):
                return self.array(_turns(elt, name, range(*whole_numbers(ends)), self.arrays))
            case ast.ListComp(elt, [ast.comprehension(ast.Name(name), each, [], 0)]):
                return self.for_each(elt, name, self.array(each))
            case ast.List(parts) | ast.Tuple(parts) if parts and not _is_written(node):
                return self.call(ast.Call(ast.Name("stack"), [ast.List(parts)], []))
            case ast.List(parts) | ast.Tuple(parts):
                return _literal(ast.List(parts))
            case _:
                raise NoSpellingError

    def for_each(self, elt: ast.expr, name: str, whole: Array) -> Array:
        """An expression of each element of an array, which has no calls: the same of the whole."""
        if _is_computed(elt):
            raise NoSpellingError
        self.named[name] = whole
        return self.array(elt)

    def quoted(self, node: ast.Call) -> Array | None:
        """A call of einsum, einx or einops whose arrays stand beside its quoted axes; None for another call."""
        name, arguments = called(node, self.arrays)
        texts = [
            each.value
            for each in arguments
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        operation = {"rearrange": "einx.id", "repeat": "einx.id", "einsum": "einsum"}.get(name)
        if (
            operation is None
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) == "einx"
        ):
            operation = f"einx.{name}"
        if operation is None or len(texts) != 1:
            return None
        operands = [self.array(each) for each in arguments if not isinstance(each, ast.Constant)]
        sizes = "".join(f", {each.arg}={ast.unparse(each.value)}" for each in node.keywords)
        return self.step(f'{operation}("{texts[0]}"{sizes})', *operands)

    def step(self, program: str, *operands: Array) -> Array:
        """One step more; integers and conditions are converted first where a program takes no such operands."""
        try:
            result = self.programs.result(program, operands)
        except Error as error:
            wanted = common_type(error.code, operands)
            if not wanted:
                raise
            operands = tuple(
                each if each.dtype == wanted else self.step(wanted, each) for each in operands
            )
            result = self.programs.result(program, operands)
        name = f"t{len(self.steps) + 1}"
        while name in self.arrays:
            name += "_"
        self.steps.append(AppliedProgram(name, program, operands))
        return Array(name, *result)

    def binary(self, sign: str, left: ast.expr, right: ast.expr) -> Array:
        """An operator between two arrays, or an array and a number."""
        one, other = self.array(left), self.array(right)
        kinds = {
            each.dtype for node, each in ((left, one), (right, other)) if not _is_whole_number(node)
        }
        if sign == "^" and self.has_caret and {*kinds} <= {*INTEGERS} and kinds:
            message = f"`^` between the integers {one.named()} and {other.named()} would be one of their bits"
            raise MismatchError(message, f"a power is `{one.text} ** {other.text}`")
        sign = _sign_of_types(sign, one, other, kinds or {"f32"}, self.has_caret)
        if {*kinds} <= {*INTEGERS, "bool"} and kinds and sign in ("floor_divide", "mod", "^"):
            power = (whole_number(right) or 0) if sign == "^" else 0
            if power in MULTIPLIED and one.dtype in INTEGERS:
                return _powered(self, one, power)
            one, other = (self.as_integers(each) for each in (one, other))
            sign = "mod_of_integers" if sign == "mod" else sign
        if sign in KERNELS:
            return self.kernel(sign, one, other)
        if sign == "@":
            return self.product(one, other)
        numbers = [not each.shape and not each.text.isidentifier() for each in (one, other)]
        if numbers == [False, True]:
            axes = axes_of(one)
            return self.step(f"(I | {other.text}) >> {axes}{sign}.~{axes}", one)
        if numbers == [True, False]:
            axes = axes_of(other)
            return self.step(f"({one.text} | I) >> .{sign}{axes}~{axes}", other)
        return self.between(sign, one, other)

    def as_integers(self, array: Array) -> Array:
        """Conditions, and a number that is written out, as integers."""
        return array if array.dtype in INTEGERS else self.step("i64", array)

    def kernel(self, name: str, *operands: Array) -> Array:
        """A function of each element of some arrays, which meet at their last axes."""
        for each in operands[1:]:
            aligned(name, operands[0], each)
        return self.step(combined(name, operands, None), *operands)

    def between(self, sign: str, one: Array, other: Array) -> Array:
        """Two arrays that meet at their last axes; one of size 1 meets any."""
        left, right, axes = aligned(sign, one, other)
        return self.step(f"{left}{sign}{right}~{axes}", one, other)

    def widened(self, array: Array, places: Sequence[int]) -> Array:
        """An array with axes of size 1 at places of the result."""
        axes, rank = iter(axes_of(array)), len(array.shape) + len(places)
        new = " ".join("1" if n in places else next(axes) for n in range(rank))
        return self.step(f'einx.id("{new.replace("1", "")} -> {new}")', array)

    def unary(self, sign: str, array: Array) -> Array:
        """A sign before each element of an array."""
        axes = axes_of(array)
        return self.step(f"{sign}{axes}~{axes}", array)

    def product(self, one: Array, other: Array) -> Array:
        """A matrix product, of vectors too."""
        if not one.shape or not other.shape:
            message = f"`@` of {one.named()} and {other.named()} is no product of matrices"
            raise MismatchError(message, f"`{one.text} * {other.text}` multiplies by a number")
        if one.shape[-1] != other.shape[-2:][0]:
            raise without_product(one, other)
        program = multiplied(one, other)
        if one.dtype == other.dtype == "bool":
            program = program.replace("*", "&&").replace("+", "||")
        return self.step(program, one, other)

    def at_hand(self, node: ast.Call) -> Array | None:
        """A call of a component or of a tensor function; None for another one."""
        if not isinstance(node.func, ast.Name) or node.keywords:
            return None
        name = node.func.id
        is_run = self.programs.runs(name)
        if not is_run and not self.programs.is_component(name, len(node.args)):
            if name in (*KNOWN, *SIGNATURES, *ALIASES):
                return None
            if not self.programs.is_component(name):
                raise UnknownNameError(name)
        operands = [self.array(each) for each in node.args]
        if is_run:
            return self.programs.run(name, operands, self.steps)
        return self.step(name, *operands)

    def call(self, node: ast.Call) -> Array:
        """A function of NumPy, by its own name, as a method, or after a module."""
        return ArrayCall(self, node).array()


def _turns(elt: ast.expr, name: str, numbers: range, arrays: Mapping[str, Array]) -> ast.List:
    """A list of an expression with each of some numbers for a name. Raises: NoSpellingError (there are many)."""
    if not 0 < len(numbers) <= MOST_TURNS:
        raise NoSpellingError
    turns = [Replaced({name: ast.Constant(n)}).visit(deepcopy(elt)) for n in numbers]
    return ast.List([SizesFolded(arrays).visit(each) for each in turns])


def _powered(steps: NamedSteps, array: Array, power: int) -> Array:
    """Integers multiplied by themselves."""
    result = array
    for _ in range(power - 1):
        result = steps.between("*", result, array)
    return result


def _is_computed(elt: ast.expr) -> bool:
    """Whether an expression has calls or indices, which are not of each element of an array."""
    return any(isinstance(part, ast.Call | ast.Subscript) for part in ast.walk(elt))


def _is_written(node: ast.expr) -> bool:
    """Whether a list is one of numbers, and of lists of numbers."""
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_written, node.elts))
    return is_number(node)


def _is_whole_number(node: ast.expr) -> bool:
    """Whether this is a whole number that is written out, which takes the type of what it stands beside."""
    return is_number(node) and whole_number(node) is not None


def _sign_of_types(
    sign: str, one: Array, other: Array, kinds: Collection[str], has_caret: bool
) -> str:
    """The operator of a program that is an operator of NumPy between arrays of some types.

    Raises:
        MismatchError: NumPy has no such operator.
    """
    if {one.dtype, other.dtype} == {"bool"} and sign == "-":
        message = f"`-` between the conditions {one.named()} and {other.named()} has no meaning"
        raise MismatchError(message, f"`{one.text} != {other.text}` is true where they differ")
    if {one.dtype, other.dtype} != {"bool"} and sign in JUNCTIONS:
        message = f"`{sign}` between {one.named()} and {other.named()} would be one of bits"
        if not {*kinds} <= {*INTEGERS, "bool"}:
            number = one if one.dtype != "bool" else other
            message = f"`{sign}` joins conditions, and {number.named()} is none"
        both = (e.text if e.dtype == "bool" else f"({e.text} != 0)" for e in (one, other))
        raise MismatchError(message, f"conditions are joined: `{f' {sign} '.join(both)}`")
    sign = JUNCTIONS.get(sign, sign)
    is_power = sign == "^" and not has_caret
    is_logic = {one.dtype, other.dtype} == {"bool"} and not is_power
    return CONDITIONS.get(sign, sign) if is_logic else sign


def _pair(node: ast.BinOp | ast.Compare | ast.BoolOp) -> tuple[str, ast.expr, ast.expr]:
    """The operator between two operands, and these. Raises: NoSpellingError (it is none, or there are more)."""
    match node:
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
            sign = OPERATORS.get(type(op))
        case ast.Compare(
            one, [op, last], [ast.BinOp(left, ast.BitAnd() | ast.BitOr() as between, right), other]
        ):
            joined = OPERATORS[type(between)]
            message = f"`{joined}` binds before comparisons in `{ast.unparse(node)}`"
            first, second = ast.Compare(one, [op], [left]), ast.Compare(right, [last], [other])
            hint = f"write `({ast.unparse(first)}) {joined} ({ast.unparse(second)})`"
            raise MismatchError(message, hint, "E0821")
        case ast.Compare(ops=[_, _, *_]):
            raise several_comparisons(node)
        case ast.BoolOp(junction, [left, right]):
            sign = OPERATORS.get(type(junction))
        case _:
            raise NoSpellingError
    if sign is None:
        raise NoSpellingError
    return sign, left, right


def _is_listed(tree: ast.expr) -> bool:
    """Whether a line is numbers in parentheses, which are no array alone."""
    return isinstance(tree, ast.Tuple) and all(isinstance(each, ast.Constant) for each in tree.elts)


def _number_at(shape: Shape, index: ast.expr) -> Array:
    """One size of a shape. Raises: NoSpellingError (there is none)."""
    at = whole_number(index)
    if at is None or not -len(shape) <= at < len(shape):
        raise NoSpellingError
    return Array(str(shape[at]), ())


def _literal(node: ast.List) -> Array:
    shape, level = [], [node]
    while level and all(isinstance(part, ast.List) for part in level):
        lengths = {len(part.elts) for part in level}
        if len(lengths) != 1:
            message = f"the lists of `{ast.unparse(node)}` have the lengths {enumerated([*map(str, sorted(lengths))])}"
            hint = "an array is full: the lists of one level have one length"
            raise MismatchError(message, hint, "E0505")
        shape.append(lengths.pop())
        level = [item for part in level for item in part.elts]  # type: ignore[misc]
    if level and isinstance(level[0], ast.Constant) and isinstance(level[0].value, bool):
        return Array(ast.unparse(node).lower(), tuple(shape), "bool")
    return Array(ast.unparse(node), tuple(shape))

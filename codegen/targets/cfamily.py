"""The common part of C and its relatives: names, literals, and scalar expressions as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from math import prod

from ilang.codegen.targets import mathlib
from ilang.codegen.targets.constants import ConstantNames, Steps, grouped
from ilang.codegen.targets.identifiers import identifier, loop_identifier
from ilang.core.calculus.affine import Affine, Within, at_least_0, left
from ilang.core.calculus.extent import Extent
from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS
from ilang.core.ir import scalar as scalars
from ilang.core.ir.kernel import For, Kernel, Program, Variable
from ilang.core.ops import PRIMITIVES
from ilang.core.record import record, replace

C_TYPES = {
    "f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "bool": "uint8_t",
    "bf16": "uint16_t",
}  # fmt: skip
"""The C type of each element type, and that of the bits of bf16."""
WIDTH = 100
"""Columns of a row of text."""
INDENT = "    "
UNSIGNED = {"i32": "uint32_t", "i64": "uint64_t"}
ORDERED = {"f32": "i32", "f64": "i64"}
"""Integers that stand for floats in their order."""


def product(words: Iterable[str]) -> str:
    """A product without the factors that are 1; one of numbers alone is a number."""
    factors = [word for word in words if word != "1"]
    if factors and all(word.isdigit() for word in factors):
        return str(prod(map(int, factors)))
    return " * ".join(factors) or "1"


def comment(text: str) -> str:
    """Text that may stand in a C comment: no end, no trigraph, no line splice, ASCII only."""
    safe = "".join(c if " " <= c <= "~" else "?" for c in text)
    safe = safe.replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"\?(?=\?)", "? ", safe).rstrip("\\ ")


def literal(value: float | int, dtype: str) -> str:
    """A constant of an element type."""
    if dtype == "bool":
        return "1" if value else "0"
    if dtype in INTEGERS:
        if value == INTEGER_ENDS[dtype][0]:
            return "INT32_MIN" if dtype == "i32" else "INT64_MIN"
        return str(int(value)) if dtype == "i32" else f"INT64_C({int(value)})"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value)) + ("f" if dtype == "f32" else "")


def listed(head: str, words: Sequence[str], tail: str) -> Iterator[str]:
    """A list on one line where it fits, else filled into indented lines."""
    one = head + ", ".join(words) + tail
    if len(one) <= WIDTH:
        yield one
        return
    yield head
    indent = " " * (len(head) - len(head.lstrip()))
    line = indent + INDENT + words[0]
    for word in words[1:]:
        if WIDTH < len(line) + len(word) + 3:
            yield f"{line},"
            line = indent + INDENT + word
        else:
            line += f", {word}"
    if tail.startswith("}"):
        yield line
        yield indent + tail
    else:
        yield line + tail


def affine(
    index: Affine,
    variable: Callable[[int], str],
    size: Callable[[int], str],
    element: Callable[[int, Sequence[Affine]], str] | None = None,
    spelled: Steps | None = None,
    number: str = "",
) -> str:
    """An affine form as C text; ``element`` gives that of an element of a buffer, where any is looked up.

    ``spelled`` has names for numbers, by the variable that they are the coefficient of; ``number`` is the name of the
    last one.
    """
    text, spelled = "", spelled or {}
    named = [
        (c, spelled.get(number, {}).get(abs(c), str(abs(c))), variable(number))
        for c, number in index.steps()
    ]
    for c, each in index.looked:
        assert element is not None
        named.append((c, str(abs(c)), element(each.source, each.index)))
    named += [(c, str(abs(c)), size(number)) for c, number in index.sizes]
    for coefficient, times, name in named:
        word = name if times == "1" else f"{times} * {name}"
        sign = "-" if coefficient < 0 else "+"
        text = f"{text} {sign} {word}" if text else (word if coefficient > 0 else f"-{word}")
    if not text:
        return str(index.offset)
    if index.offset:
        text += f" {'-' if index.offset < 0 else '+'} {number or abs(index.offset)}"
    return text


@record
class Ends:
    """The first iteration of a loop, and the one past the last: ``end``, a new variable where it has a ``value``."""

    start: str
    end: str
    value: str = ""

    def declared(self, name: str) -> str:
        """The declaration of a loop variable."""
        more = f", {self.end} = {self.value}" if self.value else ""
        return f"int64_t {name} = {self.start}{more}"


def deferred_name(program: Program, copy: int) -> str:
    """The name of what says that a tile fills a copy, and no loop before it."""
    return f"late_{identifier(program.buffers[copy].name)}"


def stored_name(program: Program, tile: int) -> str:
    """The name of what says that the tile of a buffer is stored where it belongs."""
    return f"stored_{identifier(program.buffers[tile].name)}"


class KernelNames:
    """The names of one kernel as C text: extents, variables, elements of buffers, and indices and loops over them."""

    def __init__(
        self,
        program: Program,
        kernel: Kernel | None,
        counter: str = "int64_t",
        constants: ConstantNames | None = None,
    ) -> None:
        """Names for a kernel, or for the program's own function (``kernel`` None); loops count in a ``counter``."""
        self.program = program
        self.kernel = kernel
        self.counter = counter
        self.constants = constants or ConstantNames(kernel)

    def size(self, number: int) -> str:
        """An extent: its number, or the variable that holds it."""
        size = self.program.sizes[number]
        return f"n_{size.name}" if size.fixed is None else str(size.fixed)

    def count(self, loop: For) -> str:
        """The number of all iterations of a loop: its name, if it has one."""
        return self.constants.count(loop.variable, self.size(loop.size))

    def limit(self, index: Affine, step: int) -> str:
        """The iteration at which a loop begins or ends; 0 or less where it is before the first one."""
        part, more = left(index), step - 1
        if part is None or not part[0].variables():
            text = self.index(index + more)
            return text if step == 1 else f"({text}) / {step}"
        text = f"{self.size(part[1])} - ({self.index(part[0])})"
        return text if step == 1 else f"({text} + {more}) / {step}"

    def bound(self, bound: Extent, whole: str = "") -> str:
        """The beginning or the end of a loop; ``whole`` in place of the number of all its iterations."""
        if bound.index is not None:
            return self.limit(bound.index, bound.number)
        if not bound.operands:
            return whole or bound.text(self.size, {})
        words = [self.bound(bound.operands[0], whole), *map(self.bound, bound.operands[1:])]
        if bound.operation == "start":
            return f"start_of({', '.join(words)})"
        if bound.operation == "+":
            return " + ".join(words)
        if all(word.isdigit() for word in words):
            return str((min if bound.operation == "min" else max)(map(int, words)))
        return reduce(lambda one, other: f"{bound.operation}_i64({one}, {other})", words)

    def opened(self, loop: For, step: str = "1", end: str = "") -> str:
        """The head of a loop, as far as its brace; ``end`` in place of its own."""
        name, end = self.variable(loop.variable), end_of(self, loop, end)
        first = f"{self.counter} {name} = 0"
        if loop.end.operands and not end.isdigit():
            first += f", end_{name} = {end}"
            end = f"end_{name}"
        elif end == self.size(loop.size):
            end = self.count(loop)
        more = f"++{name}" if step == "1" else f"{name} += {step}"
        return f"for ({first}; {name} < {end}; {more})"

    def conditions(self, within: Sequence[Within]) -> str:
        """The test that indices are inside their dimensions, or at least 0 where no dimension is meant."""
        words = []
        for condition in within:
            part = condition.index
            if condition.size is None:
                left, relation, right = at_least_0(part)
                words.append(f"{self.index(left)} {relation} {self.index(right)}")
                continue
            if not part.is_natural():
                words.append(f"{self.index(part)} >= 0")
            words.append(self._below(part, condition.size))
        return " && ".join(words)

    def _below(self, part: Affine, size: int) -> str:
        """The test that an index is below a size: of the last one of a tile, that the next begins there at most.

        ``TILE_I * (i + 1) <= n_i`` is ``128i + 127 < n_i``.
        """
        last, first, steps = part.offset + 1, replace(part, offset=0), self.constants.steps
        for coefficient, variable in reversed(part.steps()):
            if 0 < last and last % coefficient == 0 and coefficient in steps.get(variable, ()):
                words = {number: self.variable(number) for number in part.variables()}
                words[variable] = f"({self.variable(variable)} + {last // coefficient})"
                text = affine(first, words.__getitem__, self.size, self._looked, steps)
                return f"{text} <= {self.size(size)}"
        name = self.constants.number(part, last)
        more = f"{self.index(first)} + {name} <= " if name else f"{self.index(part)} < "
        return more + self.size(size)

    def variable(self, number: int) -> str:
        """A loop variable: ``j_1`` where C's ``j1`` is a function."""
        assert self.kernel is not None
        return loop_identifier(self.kernel.names[number], self.kernel.names)

    def scalar(self, number: int) -> Variable:
        """A scalar variable of the kernel."""
        assert self.kernel is not None
        return self.kernel.locals[number]

    def name(self, number: int) -> str:
        """The name of a scalar variable, without its lane."""
        return identifier(self.scalar(number).name)

    def local(self, number: int) -> str:
        """A scalar variable; of one with lanes lane 0, which has its value once they are folded."""
        return f"{self.name(number)}[0]" if self.scalar(number).lanes > 1 else self.name(number)

    def kind(self, variable: int, dtype: str) -> str:
        """The C type of a scalar variable: unsigned where it wraps, which C then defines.

        So no step of a reduction converts: GCC 12 before 12.3 loses terms of reductions that do, once it makes vectors
        of them (its bug 107212).
        """
        scalar = self.scalar(variable)
        dtype = ORDERED[dtype] if scalar.ordered else dtype
        return UNSIGNED[dtype] if scalar.wrapping else C_TYPES[dtype]

    def element_kind(self, buffer: int) -> str:
        """The C type of the elements of a buffer."""
        described = self.program.buffers[buffer]
        dtype = ORDERED[described.dtype] if described.ordered else described.dtype
        return (UNSIGNED if described.wrapping else C_TYPES)[dtype]

    def index(self, part: Affine) -> str:
        """An index; the elements that it looks up are of 64 bits, as loop variables are."""
        constants = self.constants
        name = constants.number(part, abs(part.offset))
        return affine(part, self.variable, self.size, self._looked, constants.steps, name)

    def _looked(self, buffer: int, index: Sequence[Affine]) -> str:
        text = self._loaded(buffer, index)
        return text if self.program.buffers[buffer].dtype == "i64" else f"(int64_t){text}"

    def _loaded(self, buffer: int, index: Sequence[Affine]) -> str:
        described, text = self.program.buffers[buffer], self.element(buffer, index)
        if described.ordered:
            return f"ordered_{described.ordered}_{described.dtype}({text})"
        return f"({C_TYPES[described.dtype]}){text}" if described.wrapping else text

    def element(self, buffer: int, index: Sequence[Affine]) -> str:
        """An element of a buffer, as it stands there."""
        name = identifier(self.program.buffers[buffer].name)
        return f"{name}[{self.position(buffer, index)}]"

    def position(self, buffer: int, index: Sequence[Affine]) -> str:
        """The number of an element in a buffer."""
        return linear(self.dimensions(buffer), [*map(self.index, index)])

    def dimensions(self, buffer: int) -> list[str]:
        """The extents of a buffer, by their names where they have some."""
        sizes = self.program.buffers[buffer].dims
        return self.constants.extents(buffer, [*map(self.size, sizes)])


def end_of(names: KernelNames, loop: For, whole: str = "") -> str:
    """The end of a loop; ``whole`` in place of the number of all its iterations, which may have a name."""
    return names.bound(loop.end, whole or (names.count(loop) if loop.end.operands else ""))


def linear(extents: Sequence[str], words: Sequence[str]) -> str:
    """An index of an array of some extents, made linear by Horner's rule."""
    text = ""
    for extent, word in zip(extents, words, strict=True):
        if not text or text == "0":
            text = word
            continue
        left = text if text.isidentifier() or text.isdigit() else f"({text})"
        text = product((left, grouped(extent)))
        text += "" if word == "0" else f" + {word}"
    return text or "0"


class Spelling(KernelNames):
    """The names of one kernel, and its scalars as C text."""

    def first(self, variable: int, value: scalars.Scalar) -> str:
        """The first value of a scalar variable, as it holds it."""
        return self._placed(value, self.scalar(variable).ordered)

    def change(self, variable: int, value: scalars.Scalar) -> str:
        """The statement that gives a scalar variable a value."""
        return self.update(self.local(variable), value, self.scalar(variable).ordered)

    def store(self, buffer: int, index: Sequence[Affine], value: scalars.Scalar) -> str:
        """The statement that gives an element of a buffer a value."""
        ordered = self.program.buffers[buffer].ordered
        return self.update(self.element(buffer, index), value, ordered)

    def _placed(self, value: scalars.Scalar, ordered: str) -> str:
        """A value, or the integer of its place in an order, which may be what already stands somewhere."""
        if (
            ordered
            and isinstance(value, scalars.Local)
            and self.scalar(value.variable).ordered == ordered
        ):
            return self.local(value.variable)
        if ordered and isinstance(value, scalars.Load):
            buffer = self.program.buffers[value.buffer]
            if buffer.ordered == ordered and buffer.dtype == value.dtype:
                return self.element(value.buffer, value.index)
        text = self.value(value)
        return f"order_{ordered}_{value.dtype}({text})" if ordered else text

    def value(self, scalar: scalars.Scalar) -> str:
        """A scalar as an expression that may stand alone on the right of an assignment to its type."""
        text = self.expression(scalar)
        if scalar.dtype == "bool" and not isinstance(scalar, (scalars.Local, scalars.Constant)):
            return f"(uint8_t)({text})"
        return text

    def update(self, target: str, value: scalars.Scalar, ordered: str = "") -> str:
        """The statement that gives ``target`` a value: ``+=`` and the like where the value is the target and something.

        No step of such a reduction converts what it reduces: integers that wrap are added unsigned where they stand,
        and truth values combined bit by bit.
        """
        if not isinstance(value, scalars.Apply) or len(value.arguments) != 2:
            return f"{target} = {self._placed(value, ordered)};"
        old, change = value.arguments
        if self._place(old) != target:
            return f"{target} = {self._placed(value, ordered)};"
        if ordered:
            other = self._placed(change, ordered)
            return f"{target} = {ordered}_{ORDERED[value.dtype or '']}({target}, {other});"
        if value.primitive in ("add", "mul"):
            sign = PRIMITIVES[value.primitive].notation.c
            if value.dtype in FLOATS:
                return f"{target} {sign}= {self.expression(change)};"
            if isinstance(old, scalars.Load) and not self.program.buffers[old.buffer].wrapping:
                target = f"*({UNSIGNED[value.dtype or '']} *)&{target}"
            return f"{target} {sign}= {self._unsigned(change)};"
        row = PRIMITIVES[value.primitive]
        if row.kind == "logic" and old.dtype == "bool":
            word = self.expression(change) if change.dtype == "bool" else self._truth(change)
            return f"{target} {row.notation.c}= {word};"
        return f"{target} = {self.value(value)};"

    def _place(self, scalar: scalars.Scalar) -> str:
        """The place where the value of a variable or an element stands; "" of anything else."""
        if isinstance(scalar, scalars.Local):
            return self.local(scalar.variable)
        return self.element(scalar.buffer, scalar.index) if isinstance(scalar, scalars.Load) else ""

    def _unsigned(self, scalar: scalars.Scalar) -> str:
        """An integer as an unsigned one, in parentheses where it is more than one word."""
        if isinstance(scalar, scalars.Local) and self.scalar(scalar.variable).wrapping:
            return self.local(scalar.variable)
        if isinstance(scalar, scalars.Load) and self.program.buffers[scalar.buffer].wrapping:
            return self.element(scalar.buffer, scalar.index)
        assert scalar.dtype is not None
        return f"({UNSIGNED[scalar.dtype]}){self._atom(scalar)}"

    def expression(self, scalar: scalars.Scalar) -> str:
        """A scalar as an expression, without outer parentheses; a bool is an int that is 0 or 1."""
        match scalar:
            case scalars.Local():
                name, variable = self.local(scalar.variable), self.scalar(scalar.variable)
                if variable.ordered:
                    return f"ordered_{variable.ordered}_{scalar.dtype}({name})"
                wrapping = variable.wrapping
                return f"({C_TYPES[scalar.dtype]}){name}" if wrapping else name
            case scalars.Load():
                text = self._loaded(scalar.buffer, scalar.index)
                given = self.program.memory(scalar.buffer).role in ("input", "inout")
                return f"{text} != 0" if scalar.dtype == "bool" and given else text
            case scalars.Constant():
                assert scalar.dtype is not None
                return literal(scalar.value, scalar.dtype)
            case scalars.Position():
                fixed = scalar.index.constant() is not None
                text = self.index(scalar.index)
                return f"(int64_t){text}" if fixed else text
            case scalars.Convert():
                return self._convert(scalar)
            case scalars.Select():
                words = self._atom(scalar.then), self._atom(scalar.otherwise)
                return f"({self.conditions(scalar.within)}) ? {words[0]} : {words[1]}"
            case scalars.Apply():
                return self._apply(scalar)
            case _:
                raise AssertionError(f"no operand reaches a target: {scalar}")

    def _atom(self, scalar: scalars.Scalar) -> str:
        """A scalar as an expression, in parentheses where it is more than one word."""
        text = self.expression(scalar)
        whole = isinstance(scalar, (scalars.Local, scalars.Constant)) or (
            isinstance(scalar, scalars.Load) and " != 0" not in text
        )
        whole = whole or (isinstance(scalar, scalars.Position) and text.isidentifier())
        whole = whole or (isinstance(scalar, scalars.Convert) and text.startswith("("))
        called = isinstance(scalar, scalars.Apply) and scalar.primitive in CALLS
        return text if (whole and not text.startswith("-")) or called else f"({text})"

    def _convert(self, scalar: scalars.Convert) -> str:
        assert scalar.dtype is not None
        source, inner = scalar.argument.dtype, self._atom(scalar.argument)
        if scalar.dtype == "bool":
            return f"{inner} != 0"
        if scalar.dtype == "bf16" or (scalar.dtype in INTEGERS and source in FLOATS):
            return f"{scalar.dtype}_of_{source}({self.expression(scalar.argument)})"
        return f"({C_TYPES[scalar.dtype]}){inner}"

    def _compared(self, scalar: scalars.Scalar, other: scalars.Scalar) -> str:
        """An operand of a comparison with ``other``: compilers warn where a truth value beside a number decides it."""
        truth = scalar
        if isinstance(scalar, scalars.Convert) and scalar.dtype in INTEGERS:
            truth = scalar.argument
        is_number = truth is not scalar or isinstance(other, scalars.Constant)
        if truth.dtype == "bool" and is_number and not isinstance(truth, scalars.Constant):
            return f"({self._atom(truth)} ? 1 : 0)"
        return self._atom(scalar)

    def _apply(self, scalar: scalars.Apply) -> str:
        assert scalar.dtype is not None
        row = PRIMITIVES[scalar.primitive]
        if _is_operator(scalar):
            compared, (first, second) = row.kind == "compare", scalar.arguments
            left, right = (
                self._compared(a, b) if compared else self._atom(a)
                for a, b in ((first, second), (second, first))
            )
            if left == right and compared and scalar.arguments[0].dtype not in FLOATS:
                # compilers warn about comparing a thing with itself; it is no float, and so no NaN
                return str(int(row.python(0, 0))) if row.python else ""
            return f"{left} {row.notation.c} {right}"
        if scalar.primitive in WRAPPING and scalar.dtype in INTEGERS:
            return self._wrapping(scalar)
        if row.kind == "logic":
            return self._logic(scalar)
        if row.expansion is not None:
            return self._apply(row.expansion(partial(_of_type, scalar.dtype), *scalar.arguments))
        if row.arity == 1 and row.notation.c:
            return f"{row.notation.c}{self._atom(scalar.arguments[0])}"
        if scalar.primitive == "where":
            test, yes, no = scalar.arguments
            if scalars.reads_both(scalar):
                words = [self._truth(test), self.expression(yes), self.expression(no)]
                return f"where_{scalar.dtype}({', '.join(words)})"
            return f"{self._truth(test)} ? {self._atom(yes)} : {self._atom(no)}"
        given = ", ".join(self.expression(a) for a in scalar.arguments)
        return f"{mathlib.name_of(scalar.primitive, scalar.dtype)}({given})"

    def _wrapping(self, scalar: scalars.Apply) -> str:
        """Integer arithmetic that wraps: done on unsigned values, where C defines it."""
        assert scalar.dtype is not None
        unsigned = UNSIGNED[scalar.dtype]
        words = [self._unsigned(a) for a in scalar.arguments]
        if scalar.primitive == "neg":
            words.insert(0, f"({unsigned})0")
        return f"({C_TYPES[scalar.dtype]})({words[0]} {PRIMITIVES[scalar.primitive].notation.c} {words[1]})"

    def _logic(self, scalar: scalars.Apply) -> str:
        """Logic of truth values, each 0 or 1. Both sides are computed: see ``where_f32`` in ``headers/numbers.h``."""
        words = [self._truth(a) for a in scalar.arguments]
        sign = "!=" if scalar.primitive == "xor" else PRIMITIVES[scalar.primitive].notation.c
        return f" {sign} ".join(words) if len(words) == 2 else f"{sign}{words[0]}"

    def _truth(self, scalar: scalars.Scalar) -> str:
        """0 or 1: whether a value differs from 0; NaN does."""
        if scalar.dtype == "bool":
            return self._atom(scalar)
        assert scalar.dtype is not None
        return f"({self._atom(scalar)} != {literal(0, scalar.dtype)})"


class InLane(Spelling):
    """The names of a kernel where a variable with lanes means the one of a lane."""

    def __init__(self, plain: Spelling) -> None:
        """Names as ``plain`` has them, but for variables that have lanes."""
        super().__init__(plain.program, plain.kernel, constants=plain.constants)

    def local(self, number: int) -> str:
        """A scalar variable; of one with lanes, that of the loop over ``lane``."""
        name = self.name(number)
        return f"{name}[lane]" if self.scalar(number).lanes > 1 else name


class Held(Spelling):
    """Scalars of a kernel, some of which variables hold already."""

    def __init__(self, plain: Spelling, held: Mapping[scalars.Scalar, str]) -> None:
        """Names as ``plain`` has them; ``held`` are scalars, each with the text of what holds it."""
        super().__init__(plain.program, plain.kernel, plain.counter, plain.constants)
        self.held = held

    def expression(self, scalar: scalars.Scalar) -> str:
        """A scalar as C text."""
        return self.held.get(scalar) or super().expression(scalar)


def combined(primitive: str, dtype: str, target: str, other: str) -> str:
    """The statement that combines two variables into the first: kept unsigned where they are integers that wrap."""
    sign = PRIMITIVES[primitive].notation.c
    if sign:
        return f"{target} {sign}= {other};"
    return f"{target} = {primitive}_{dtype}({target}, {other});"


def _of_type(dtype: str, primitive: str, *arguments: scalars.Scalar | float) -> scalars.Apply:
    return scalars.Apply(
        primitive,
        tuple(
            scalars.Constant(each, dtype) if isinstance(each, int | float) else each
            for each in arguments
        ),
        dtype,
    )


WRAPPING = frozenset(p.name for p in PRIMITIVES.values() if p.kind == "arithmetic" and p.notation.c)
"""Arithmetic that wraps in integers."""
CALLS = frozenset(
    p.name
    for p in PRIMITIVES.values()
    if not p.notation.c and p.expansion is None and p.kind in ("arithmetic", "float")
)
"""Primitives spelled as a call."""


def _is_operator(scalar: scalars.Apply) -> bool:
    row = PRIMITIVES[scalar.primitive]
    return (
        row.notation.c != ""
        and row.arity == 2
        and row.kind != "logic"
        and not (scalar.primitive in WRAPPING and scalar.dtype in INTEGERS)
        and not keeps_sign_of_zero(scalar)
    )


def keeps_sign_of_zero(scalar: scalars.Apply) -> bool:
    """Whether a sum or a difference of floats has a constant zero beside what is more than a variable or an element.

    Operands of such a sum are passed to a function: GCC 12 takes ``0 - (float)n`` and ``0 + -(float)n`` for
    ``-(float)n``, which is -0 where ``n`` is 0.
    """
    if scalar.primitive not in ("add", "sub") or scalar.dtype not in FLOATS:
        return False
    zeros = [_is_zero(argument) for argument in scalar.arguments]
    plain = [
        isinstance(a, (scalars.Local, scalars.Load, scalars.Constant)) for a in scalar.arguments
    ]
    return (zeros[0] and not plain[1]) or (scalar.primitive == "add" and zeros[1] and not plain[0])


def _is_zero(scalar: scalars.Scalar) -> bool:
    scalar = scalar.argument if isinstance(scalar, scalars.Convert) else scalar
    return isinstance(scalar, scalars.Constant) and scalar.value == 0

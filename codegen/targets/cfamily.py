"""What C and its relatives share: names, literals, and scalar expressions as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS
from ilang.core.ir.affine import Affine
from ilang.core.ir.kernel import Kernel, Program
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Scalar

C_TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "bool": "uint8_t"}
INDENT = "    "
UNSIGNED = {"i32": "uint32_t", "i64": "uint64_t"}

RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    _Bool _Complex _Imaginary _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert _Thread_local
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return
    co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export
    false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename
    typeof using virtual wchar_t xor xor_eq linux unix main
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t intptr_t uintptr_t ptrdiff_t
    NULL INFINITY NAN SIZE_MAX PTRDIFF_MAX INT32_MIN INT64_MIN INT64_C UINT64_C MOST_THREADS
    sizes work plan bytes scratch scratch_bytes mine arrays lengths status total padded thread threads add array
    arguments aligned overlap measure check base
    exp exp2 expm1 log log2 log10 log1p pow sqrt cbrt fabs floor ceil round trunc sin cos tan asin acos atan sinh cosh
    tanh erf erfc gamma lgamma tgamma hypot fmin fmax fma fmod remainder ldexp frexp modf nan div abs labs expf logf
    powf sqrtf abort exit free malloc calloc realloc memcpy memset memcmp printf puts rand time clock signal remove
    rename system select read write open close link pipe wait fork exec index y0 y1 yn j0 j1 jn
    """.split()  # noqa: SIM905 - a list of two hundred words reads better as words
)
"""Words that a generated name must not be: keywords of C and C++, names of headers and of our own helpers."""


def identifier(name: str) -> str:
    """A name as a C identifier: a reserved word, or a name like those of extents, gets an underscore."""
    return f"{name}_" if name.rstrip("_") in RESERVED or name.startswith("n_") else name


def comment(text: str) -> str:
    """Text that may stand in a C comment: no end, no trigraph, no line splice, ASCII only."""
    safe = "".join(c if " " <= c <= "~" else "?" for c in text)
    return safe.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").rstrip("\\").rstrip()


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


def affine(index: Affine, variable: Callable[[int], str]) -> str:
    """An affine form as C text."""
    text = ""
    for coefficient, number in index.terms:
        word = (
            variable(number)
            if abs(coefficient) == 1
            else f"{abs(coefficient)} * {variable(number)}"
        )
        sign = "-" if coefficient < 0 else "+"
        text = f"{text} {sign} {word}" if text else (word if coefficient > 0 else f"-{word}")
    if not text:
        return str(index.offset)
    if index.offset:
        text += f" {'-' if index.offset < 0 else '+'} {abs(index.offset)}"
    return text


class Spelling:
    """The names of one kernel, and its scalars and elements as C text."""

    def __init__(self, program: Program, kernel: Kernel | None) -> None:
        """Names for a kernel, or for the program's own function (``kernel`` None)."""
        self.program = program
        self.kernel = kernel

    def size(self, number: int) -> str:
        """An extent: its number, or the variable that holds it."""
        size = self.program.sizes[number]
        return f"n_{size.name}" if size.fixed is None else str(size.fixed)

    def variable(self, number: int) -> str:
        """A loop variable."""
        assert self.kernel is not None
        return identifier(self.kernel.names[number])

    def local(self, number: int) -> str:
        """A scalar variable."""
        assert self.kernel is not None
        return identifier(self.kernel.locals[number])

    def element(self, buffer: int, index: Sequence[Affine]) -> str:
        """An element of a buffer, its index made linear by Horner's rule."""
        described = self.program.buffers[buffer]
        text = ""
        for size, part in zip(described.dims, index, strict=True):
            word = affine(part, self.variable)
            if not text:
                text = word
                continue
            left = text if text.isidentifier() or text.isdigit() else f"({text})"
            text = f"{left} * {self.size(size)} + {word}"
        return f"{identifier(described.name)}[{text or '0'}]"

    def value(self, scalar: Scalar) -> str:
        """A scalar as an expression that may stand alone on the right of an assignment to its type."""
        text = self.expression(scalar)
        if scalar.dtype == "bool" and not isinstance(scalar, (Local, Constant)):
            return f"(uint8_t)({text})"
        return text

    def update(self, target: str, value: Scalar) -> str:
        """The statement that gives ``target`` a value: ``+=`` where the value is the target plus something."""
        if isinstance(value, Apply) and value.primitive in ("add", "mul") and _is_operator(value):
            old, change = value.arguments
            if self.expression(old) == target:
                return f"{target} {OPERATORS[value.primitive]}= {self.expression(change)};"
        return f"{target} = {self.value(value)};"

    def expression(self, scalar: Scalar) -> str:
        """A scalar as an expression, without outer parentheses; a bool is an int that is 0 or 1."""
        match scalar:
            case Local():
                return self.local(scalar.variable)
            case Load():
                text = self.element(scalar.buffer, scalar.index)
                given = self.program.buffers[scalar.buffer].role == "input"
                return f"{text} != 0" if scalar.dtype == "bool" and given else text
            case Constant():
                assert scalar.dtype is not None
                return literal(scalar.value, scalar.dtype)
            case Convert():
                return self._convert(scalar)
            case Apply():
                return self._apply(scalar)
            case _:
                raise AssertionError(f"no operand reaches a target: {scalar}")

    def _atom(self, scalar: Scalar) -> str:
        """The same, in parentheses where it is more than one word."""
        text = self.expression(scalar)
        whole = isinstance(scalar, (Local, Constant)) or (
            isinstance(scalar, Load) and " != 0" not in text
        )
        whole = whole or (isinstance(scalar, Convert) and text.startswith("("))
        called = (
            isinstance(scalar, Apply) and scalar.primitive in CALLS and not _is_operator(scalar)
        )
        return text if (whole and not text.startswith("-")) or called else f"({text})"

    def _convert(self, scalar: Convert) -> str:
        assert scalar.dtype is not None
        source, inner = scalar.argument.dtype, self._atom(scalar.argument)
        if scalar.dtype == "bool":
            return f"{inner} != 0"
        if scalar.dtype in INTEGERS and source in FLOATS:
            return f"{scalar.dtype}_of_{source}({self.expression(scalar.argument)})"
        return f"({C_TYPES[scalar.dtype]}){inner}"

    def _apply(self, scalar: Apply) -> str:
        assert scalar.dtype is not None
        if _is_operator(scalar):
            left, right = (self._atom(a) for a in scalar.arguments)
            return f"{left} {OPERATORS[scalar.primitive]} {right}"
        if scalar.primitive in WRAPPING and scalar.dtype in INTEGERS:
            return self._wrapping(scalar)
        if scalar.primitive in LOGIC:
            return self._logic(scalar)
        if scalar.primitive == "neg":
            return f"-{self._atom(scalar.arguments[0])}"
        if scalar.primitive == "recip":
            return f"{literal(1.0, scalar.dtype)} / {self._atom(scalar.arguments[0])}"
        if scalar.primitive == "where":
            test, yes, no = scalar.arguments
            return f"{self._truth(test)} ? {self._atom(yes)} : {self._atom(no)}"
        words = [self.expression(a) for a in scalar.arguments]
        if scalar.primitive == "log":
            name = LIBM["ln"][scalar.dtype]
            return f"{name}({words[1]}) / {name}({words[0]})"
        if scalar.primitive in LIBM:
            return f"{LIBM[scalar.primitive][scalar.dtype]}({', '.join(words)})"
        return f"{scalar.primitive}_{scalar.dtype}({', '.join(words)})"

    def _wrapping(self, scalar: Apply) -> str:
        """Integer arithmetic that wraps: done on unsigned values, where C defines it."""
        assert scalar.dtype is not None
        unsigned = UNSIGNED[scalar.dtype]
        words = [f"({unsigned}){self._atom(a)}" for a in scalar.arguments]
        if scalar.primitive == "neg":
            words.insert(0, f"({unsigned})0")
        sign = {"add": "+", "sub": "-", "mul": "*", "neg": "-"}[scalar.primitive]
        return f"({C_TYPES[scalar.dtype]})({words[0]} {sign} {words[1]})"

    def _logic(self, scalar: Apply) -> str:
        words = [self._truth(a) for a in scalar.arguments]
        match scalar.primitive:
            case "and":
                return f"{words[0]} && {words[1]}"
            case "or":
                return f"{words[0]} || {words[1]}"
            case "xor":
                return f"{words[0]} != {words[1]}"
            case "not":
                return f"!{words[0]}"
            case _:
                return words[0]

    def _truth(self, scalar: Scalar) -> str:
        """0 or 1: whether a value differs from 0; NaN does."""
        if scalar.dtype == "bool":
            return self._atom(scalar)
        assert scalar.dtype is not None
        return f"({self._atom(scalar)} != {literal(0, scalar.dtype)})"


OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "==", "neq": "!=",
}  # fmt: skip
WRAPPING = frozenset({"add", "sub", "mul", "neg"})
LOGIC = frozenset({"and", "or", "xor", "not", "truth"})
LIBM = {
    "exp": {"f32": "expf", "f64": "exp"},
    "ln": {"f32": "logf", "f64": "log"},
    "pow": {"f32": "powf", "f64": "pow"},
    "sqrt": {"f32": "sqrtf", "f64": "sqrt"},
    "sin": {"f32": "sinf", "f64": "sin"},
    "cos": {"f32": "cosf", "f64": "cos"},
    "tanh": {"f32": "tanhf", "f64": "tanh"},
}
HELPERS = frozenset({"max", "min", "square"})
CALLS = HELPERS | LIBM.keys()
"""Primitives spelled as a call."""


def _is_operator(scalar: Apply) -> bool:
    return scalar.primitive in OPERATORS and not (
        scalar.primitive in WRAPPING and scalar.dtype in INTEGERS
    )

"""What C and its relatives share: names, literals, and scalar expressions as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ilang.codegen.targets import cmath
from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS
from ilang.core.ir.affine import Affine, Within
from ilang.core.ir.kernel import Define, For, Kernel, Program, Rest, statements_within
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Scalar, Select

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
    NULL INFINITY NAN SIZE_MAX PTRDIFF_MAX INT32_MIN INT64_MIN INT64_C UINT64_C MOST_THREADS MOST_SCRATCH ENOUGH INLINED
    FETCH FUSED MOST_DIVIDED largest reciprocal size
    lane half stream block start filled element quad quad_anywhere in_registers quad_past past_end SHUFFLED
    tile_row tile_rows tile_lanes part row first_row first_lane rows_at_once parts_at_once sums blocks VECTOR HELD
    sizes work plan bytes scratch scratch_bytes arrays lengths status total padded thread threads add array
    team sharing share shares scratches iterations first last at start_of
    arguments aligned overlap measure check base derive
    assert errno EOF BUFSIZ RAND_MAX EXIT_SUCCESS EXIT_FAILURE stdin stdout stderr offsetof setjmp va_arg
    isfinite isinf isnan isnormal fpclassify isgreater isgreaterequal isless islessequal islessgreater isunordered
    abort abs alloca atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clearerr clock close ctime div exec
    execl execle execlp execv execve execvp exit fclose feof ferror ffs ffsl ffsll fflush fgetc fgets fopen fork fprintf
    fputc fputs fread free freopen fscanf fseek ftell fwrite getc getchar getenv gets gettext dgettext dcgettext index
    isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit
    iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit
    imaxabs imaxdiv labs ldiv link llabs lldiv longjmp malloc memchr memcmp memcpy memmove mempcpy memset mktime open
    perror pipe posix_memalign printf putc putchar puts qsort raise rand read realloc remove rename rewind rindex scanf
    select setbuf setvbuf signal snprintf sprintf srand sscanf stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll
    strcpy strcspn strdup strerror strfmon strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk
    strrchr strspn strstr strtod strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system time tmpfile
    tmpnam toascii tolower toupper towlower towupper ungetc vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf
    wait write
    """.split()  # noqa: SIM905 - a list of two hundred words reads better as words
)
"""Words that a generated name must not be: keywords of C and C++, names of headers and of our own helpers."""

MATHEMATICS = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim
    finite floor fma fmax fmin fmod frexp gamma gamma_r hypot ilogb isinf isnan j0 j1 jn ldexp lgamma lgamma_r llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo
    rint round scalb scalbln scalbn signbit significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin csinh
    csqrt ctan ctanh
    """.split()  # noqa: SIM905 - as above
)
"""Functions of the C library that compilers know by themselves, each also with ``f`` or ``l`` appended."""

PATTERNS = re.compile(
    r"n_.*|_.*"  # extents; what belongs to compilers
    r"|(max|min|square|exp|ln|tanh|pow|sin|cos)_(f32|f64|i32|i64)|i(32|64)_of_f(32|64)"  # our own helpers
    r"|(bits_of|muladd|power|quarters|wave|quotient|divides)_f(32|64)|f(32|64)_of_bits"
    r"|(U?INT(_LEAST|_FAST)?\d+|U?INTPTR|U?INTMAX|PTRDIFF|SIZE|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX|C|WIDTH)"
    r"|transpose(_square)?_[fi](32|64)|[fi](32|64)x\d+(u|m|_\w+)?"
    r"|(M|FP|MATH)_[A-Z0-9_]+|HUGE_VAL[FL]?|(PRI|SCN)[diouxX][A-Z0-9]+"  # macros of headers
)


def identifier(name: str) -> str:
    """A name as a C identifier: a name that C, its library or our own text uses gets an underscore."""
    bare = name.rstrip("_")
    known = (
        bare in RESERVED
        or bare in MATHEMATICS
        or (bare[-1:] in ("f", "l") and bare[:-1] in MATHEMATICS)
    )
    return f"{name}_" if known or PATTERNS.fullmatch(bare or name) else name


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


def affine(index: Affine, variable: Callable[[int], str], size: Callable[[int], str]) -> str:
    """An affine form as C text."""
    text = ""
    named = [(c, variable(number)) for c, number in index.terms]
    named += [(c, size(number)) for c, number in index.sizes]
    for coefficient, name in named:
        word = name if abs(coefficient) == 1 else f"{abs(coefficient)} * {name}"
        sign = "-" if coefficient < 0 else "+"
        text = f"{text} {sign} {word}" if text else (word if coefficient > 0 else f"-{word}")
    if not text:
        return str(index.offset)
    if index.offset:
        text += f" {'-' if index.offset < 0 else '+'} {abs(index.offset)}"
    return text


OTHER_LANE = -1
"""The variable that stands for the other lane while lanes are folded."""


def _laned(kernel: Kernel) -> frozenset[int]:
    """The variables of a kernel that have lanes."""
    return frozenset(
        s.variable for s in statements_within(kernel.body) if isinstance(s, Define) and s.lanes > 1
    )


class Spelling:
    """The names of one kernel, and its scalars and elements as C text."""

    def __init__(self, program: Program, kernel: Kernel | None) -> None:
        """Names for a kernel, or for the program's own function (``kernel`` None)."""
        self.program = program
        self.kernel = kernel
        self.laned = _laned(kernel) if kernel is not None else frozenset()
        self.lane = "0"
        """The lane that a laned variable means here: lane 0 once its lanes are folded."""
        self.other = ""

    def size(self, number: int) -> str:
        """An extent: its number, or the variable that holds it."""
        size = self.program.sizes[number]
        return f"n_{size.name}" if size.fixed is None else str(size.fixed)

    def rest(self, rest: Rest) -> str:
        """The iterations that are left of a split dimension; 0 or less where none is."""
        start = affine(rest.start, self.variable, self.size)
        left = self.size(rest.size) + ("" if start == "0" else f" - ({start})")
        return left if rest.step == 1 else f"({left} + {rest.step - 1}) / {rest.step}"

    def variable(self, number: int) -> str:
        """A loop variable."""
        assert self.kernel is not None
        return identifier(self.kernel.names[number])

    def name(self, number: int) -> str:
        """The name of a scalar variable, without its lane."""
        assert self.kernel is not None
        return identifier(self.kernel.locals[number])

    def local(self, number: int) -> str:
        """A scalar variable; of a laned one, the lane at hand."""
        if number == OTHER_LANE:
            return self.other
        return f"{self.name(number)}[{self.lane}]" if number in self.laned else self.name(number)

    def element(self, buffer: int, index: Sequence[Affine]) -> str:
        """An element of a buffer."""
        name = identifier(self.program.buffers[buffer].name)
        return f"{name}[{self.position(buffer, index)}]"

    def position(self, buffer: int, index: Sequence[Affine]) -> str:
        """The number of an element in a buffer: its index made linear by Horner's rule."""
        described = self.program.buffers[buffer]
        text = ""
        for size, part in zip(described.dims, index, strict=True):
            word = affine(part, self.variable, self.size)
            if not text or text == "0":
                text = word
                continue
            left = text if text.isidentifier() or text.isdigit() else f"({text})"
            text = f"{left} * {self.size(size)}" + ("" if word == "0" else f" + {word}")
        return text or "0"

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
            case Select():
                words = self._atom(scalar.then), self._atom(scalar.otherwise)
                return f"({self.conditions(scalar.within)}) ? {words[0]} : {words[1]}"
            case Apply():
                return self._apply(scalar)
            case _:
                raise AssertionError(f"no operand reaches a target: {scalar}")

    def opened(self, loop: For, indent: str, step: str = "1", end: str = "") -> str:
        """The head of a loop; ``end`` in place of its own."""
        name, end = self.variable(loop.variable), end or self.size(loop.size)
        first = f"int64_t {name} = 0"
        if loop.rest is not None:
            first += f", end_{name} = min_i64({end}, {self.rest(loop.rest)})"
            end = f"end_{name}"
        more = f"++{name}" if step == "1" else f"{name} += {step}"
        return f"{indent}for ({first}; {name} < {end}; {more}) {{"

    def conditions(self, within: Sequence[Within]) -> str:
        """That indices are inside their dimensions."""
        words = []
        for condition in within:
            part = condition.index
            index = affine(part, self.variable, self.size)
            if part.offset < 0 or any(c < 0 for c, _ in (*part.terms, *part.sizes)):
                words.append(f"{index} >= 0")
            words.append(f"{index} < {self.size(condition.size)}")
        return " && ".join(words)

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
            if (
                left == right
                and scalar.primitive in SAME
                and scalar.arguments[0].dtype not in FLOATS
            ):
                return SAME[scalar.primitive]  # compilers warn about comparing a thing with itself
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
        name = cmath.name_of(scalar.primitive, scalar.dtype)
        if scalar.primitive == "log":
            return f"{name}({words[1]}) / {name}({words[0]})"
        if name is None and scalar.primitive in LIBM:
            name = LIBM[scalar.primitive][scalar.dtype]
        return f"{name or f'{scalar.primitive}_{scalar.dtype}'}({', '.join(words)})"

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
SAME = {"gt": "0", "gte": "1", "lt": "0", "lte": "1", "eq": "1", "neq": "0"}
"""Comparisons of a value that is no float, and so no NaN, with itself."""
WRAPPING = frozenset({"add", "sub", "mul", "neg"})
LOGIC = frozenset({"and", "or", "xor", "not", "truth"})
LIBM = {
    "pow": {"f64": "pow"},
    "sqrt": {"f32": "sqrtf", "f64": "sqrt"},
    "sin": {"f64": "sin"},
    "cos": {"f64": "cos"},
}
"""What the C library serves for; ``cmath`` has the others."""
HELPERS = frozenset({"max", "min", "square"})
CALLS = HELPERS | LIBM.keys() | {"exp", "ln", "tanh"}
"""Primitives spelled as a call."""


def _is_operator(scalar: Apply) -> bool:
    return scalar.primitive in OPERATORS and not (
        scalar.primitive in WRAPPING and scalar.dtype in INTEGERS
    )

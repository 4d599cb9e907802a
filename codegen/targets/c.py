"""C: programs as text, C99 with optional OpenMP.

    size_t NAME_work(const NAME_sizes *sizes);
    int NAME(const NAME_sizes *sizes, const T *input..., T *output..., void *work);

Buffers are row-major and contiguous; extents count elements; ``work`` points to ``NAME_work`` bytes and may be NULL
when that is 0. Nothing is global, nothing is allocated. ``c_entry.STATUS`` lists what the function returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ilang.codegen.targets import c_quotient, cmath
from ilang.codegen.targets.c_entry import (
    STATUS,
    Entry,
    Use,
    entry_helpers,
    wrapped,
)
from ilang.codegen.targets.c_stream import HELPER, is_streamed
from ilang.codegen.targets.c_stream import condition as stream_condition
from ilang.codegen.targets.c_stream import lines as stream_lines
from ilang.codegen.targets.c_tile import REGISTERS, TileText, extremum, helpers_of
from ilang.codegen.targets.cfamily import (
    C_TYPES,
    HELPERS,
    INDENT,
    OTHER_LANE,
    Spelling,
    comment,
    identifier,
)
from ilang.core.dtype import BYTES, FLOATS, INTEGERS
from ilang.core.ir.kernel import (
    Change,
    Define,
    Fold,
    For,
    If,
    Kernel,
    Program,
    Statement,
    Store,
    Tile,
    statements_within,
)
from ilang.core.ir.scalar import Apply, Convert, Local, walk

PARALLEL_FROM = 32768
"""Iterations below which a parallel loop runs on one thread: starting threads costs about as much."""


INCLUDES = (
    "#include <math.h>",
    "#include <stddef.h>",
    "#include <stdint.h>",
    "#include <string.h>",
    "#ifdef _OPENMP",
    "#include <omp.h>",
    "#endif",
)


def emit(program: Program) -> str:
    """A program as one self-contained C text."""
    return (
        "\n".join([*INCLUDES, "", *_declarations(program), "", *_implementation([program])]) + "\n"
    )


def emit_header(programs: Sequence[Program], stem: str) -> str:
    """The header of a file of programs, usable from C and C++."""
    guard = f"{stem.upper()}_H"
    lines = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
    ]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for program in programs:
        lines += [*_declarations(program), ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join(lines) + "\n"


def emit_source(programs: Sequence[Program], stem: str) -> str:
    """The implementation that goes with ``emit_header``."""
    lines = [f'#include "{stem}.h"', "", *INCLUDES, "", *_implementation(programs)]
    return "\n".join(lines) + "\n"


def _declarations(program: Program) -> Iterator[str]:
    name = identifier(program.name)
    sizes = [size for size in program.sizes if size.is_argument()]
    yield f"/* {name}: its extents, in elements */"
    yield "typedef struct {"
    yield from (f"{INDENT}int64_t {identifier(size.name)};" for size in sizes)
    if not sizes:
        yield f"{INDENT}char none; /* every extent is fixed */"
    yield f"}} {name}_sizes;"
    yield ""
    yield "/* Bytes of workspace a call needs; SIZE_MAX if the extents do not fit. */"
    yield f"size_t {name}_work(const {name}_sizes *sizes);"
    yield ""
    yield "/*"
    for word, buffers in (("input ", program.inputs), ("output", program.outputs)):
        for number in buffers:
            buffer = program.buffers[number]
            extents = ", ".join(_extent(program, size) for size in buffer.dims)
            yield comment(f" * {word}  {identifier(buffer.name)}: {buffer.dtype}[{extents}]")
    yield from (f" * returns {code}: {text}" for code, text in STATUS.items())
    yield " */"
    yield f"{signature(program)};"


def _extent(program: Program, size: int) -> str:
    fixed = program.sizes[size].fixed
    return program.sizes[size].name if fixed is None else str(fixed)


def signature(program: Program) -> str:
    """The declaration of the program's function, without the semicolon."""
    name = identifier(program.name)
    words = [f"const {name}_sizes *sizes"]
    for number in (*program.inputs, *program.outputs):
        buffer = program.buffers[number]
        const = "" if number in program.outputs else "const "
        words.append(f"{const}{C_TYPES[buffer.dtype]} *{identifier(buffer.name)}")
    return wrapped(f"int {name}(", [*words, "void *work"], ")")


def _implementation(programs: Sequence[Program]) -> Iterator[str]:
    emissions = [_Emission(program) for program in programs]
    body = [line for emission in emissions for line in emission.lines()]
    yield from entry_helpers(body)
    helpers = {name for emission in emissions for name in emission.helpers()}
    yield from cmath.definitions(helpers & cmath.NAMES)
    for helper in sorted(helpers - cmath.NAMES):
        yield from _helper(helper)
    vectors = sorted({name for emission in emissions for name in emission.vectors()})
    if vectors:
        yield "#ifdef __GNUC__"
        yield from REGISTERS
        for dtype, lanes, primitive in vectors:
            yield from extremum(dtype, lanes, primitive) if primitive else helpers_of(dtype, lanes)
        yield "#endif"
        yield ""
    yield from body


class _Emission:
    """The implementation of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.name = identifier(program.name)
        self.uses = [Use.of(program, kernel) for kernel in program.kernels]
        self.tiles: dict[int, TileText] = {}
        for kernel in program.kernels:
            tiles = [s for s in statements_within(kernel.body) if isinstance(s, Tile)]
            for number, tile in enumerate(tiles):
                text = TileText(program, kernel, tile, f"{self.name}_{kernel.name}_tile{number}")
                if text.holds:
                    self.tiles[id(tile)] = text

    def vectors(self) -> set[tuple[str, int, str]]:
        """The vector types that tiles use, and the functions on them."""
        return {helper for text in self.tiles.values() for helper in text.helpers()}

    def helpers(self) -> set[str]:
        """The helper functions that the kernels call."""
        found = set()
        for kernel, use in zip(self.program.kernels, self.uses, strict=True):
            spelling = Spelling(self.program, kernel)
            for s in statements_within(kernel.body):
                if isinstance(s, (Define, Change, Store)):
                    for part in walk(s.value):
                        if isinstance(part, Apply):
                            found |= _called(part)
                        if (
                            isinstance(part, Convert)
                            and part.dtype in INTEGERS
                            and part.argument.dtype in FLOATS
                        ):
                            found.add(f"{part.dtype}_of_{part.argument.dtype}")
                if isinstance(s, Fold) and s.primitive in HELPERS:
                    found.add(f"{s.primitive}_{s.dtype}")
                if isinstance(s, For):
                    found |= self._of_loop(s)
                    if s.parallel and any(self._parallel(s, spelling)):
                        found |= {"threads", "thread"} if use.private else {"threads"}
        return found

    def _of_loop(self, loop: For) -> set[str]:
        """The helper functions that a loop itself calls."""
        found = {"min_i64"} if loop.rest is not None else set()
        found |= {"fetch"} if loop.ahead else set()
        if c_quotient.divided(self.program, loop):
            found |= set(c_quotient.HELPERS)
        if is_streamed(self.program, loop):
            found |= {"min_i64", "stream"}
        return found

    def lines(self) -> Iterator[str]:
        if self.tiles:
            yield "#ifdef __GNUC__"
            for text in self.tiles.values():
                yield from text.lines()
            yield "#endif"
            yield ""
        for kernel, use in zip(self.program.kernels, self.uses, strict=True):
            yield from self._kernel(kernel, use)
        yield from Entry(self.program, self.uses, signature(self.program)).lines()

    def _kernel(self, kernel: Kernel, use: Use) -> Iterator[str]:
        spelling = Spelling(self.program, kernel)
        yield "/*"
        yield from (comment(f" * {line}") for line in kernel.comments)
        yield " */"
        words = [
            f"int64_t {spelling.size(n)}" for n in use.sizes if self.program.sizes[n].fixed is None
        ]
        for number in use.shared:
            buffer = self.program.buffers[number]
            const = "" if number in use.written else "const "
            words.append(f"{const}{C_TYPES[buffer.dtype]} *restrict {identifier(buffer.name)}")
        if use.private:
            words += ["char *scratch", "size_t scratch_bytes"]
        yield wrapped(f"static void {self.name}_{kernel.name}(", words, ")")
        yield "{"
        if use.private and not any(isinstance(s, For) and s.parallel for s in kernel.body):
            yield f"{INDENT}(void)scratch_bytes;"
            yield from self._private(use, spelling, INDENT, "scratch")
        for statement in kernel.body:
            yield from self._statement(statement, spelling, INDENT, use)
        yield "}"
        yield ""

    def _private(self, use: Use, spelling: Spelling, indent: str, base: str) -> Iterator[str]:
        """Pointers into scratch storage, one buffer after the other, each aligned."""
        offset = base
        for number in use.private:
            buffer = self.program.buffers[number]
            c_type = C_TYPES[buffer.dtype]
            yield f"{indent}{c_type} *restrict {identifier(buffer.name)} = ({c_type} *)(void *)({offset});"
            count = " * ".join(f"(size_t){spelling.size(size)}" for size in buffer.dims)
            offset += f" + padded({count} * sizeof({c_type}))"

    def _statement(self, s: Statement, spelling: Spelling, indent: str, use: Use) -> Iterator[str]:
        match s:
            case For():
                yield from self._for(s, spelling, indent, use)
            case If():
                yield f"{indent}if ({spelling.conditions(s.within)}) {{"
                for inner in s.body:
                    yield from self._statement(inner, spelling, indent + INDENT, use)
                if s.otherwise:
                    yield f"{indent}}} else {{"
                for inner in s.otherwise:
                    yield from self._statement(inner, spelling, indent + INDENT, use)
                yield f"{indent}}}"
            case Define() if s.lanes > 1:
                name, lanes = (
                    spelling.name(s.variable),
                    f"for (int lane = 0; lane < {s.lanes}; ++lane)",
                )
                yield f"{indent}{C_TYPES[s.dtype]} {name}[{s.lanes}];"
                yield f"{indent}{lanes} {name}[lane] = {spelling.value(s.value)};"
            case Fold():
                yield from _fold(s, spelling, indent)
            case Define():
                const = "" if s.mutable else "const "
                name = spelling.local(s.variable)
                yield f"{indent}{const}{C_TYPES[s.dtype]} {name} = {spelling.value(s.value)};"
            case Change():
                yield indent + spelling.update(spelling.local(s.variable), s.value)
            case Tile():
                yield from self._tile(s, spelling, indent, use)
            case Store():
                yield indent + spelling.update(spelling.element(s.buffer, s.index), s.value)

    def _tile(self, s: Tile, spelling: Spelling, indent: str, use: Use) -> Iterator[str]:
        """A tile in registers where the compiler has vectors and every loop is whole, else element by element."""
        buffer = self.program.buffers[s.buffer]
        name, elements = identifier(buffer.name), self._elements(s)
        yield f"{indent}{C_TYPES[buffer.dtype]} {name}[{elements}];"
        text = self.tiles.get(id(s))
        inside = indent
        condition = "" if text is None else text.condition()
        if text is not None and condition:
            yield "#ifdef __GNUC__"
            yield f"{indent}if ({condition}) {{"
            yield f"{indent}{INDENT}{text.call()}"
            yield f"{indent}}} else"
            yield "#endif"
            yield f"{indent}{{"
            inside = indent + INDENT
        elif text is not None:
            yield "#ifdef __GNUC__"
            yield f"{indent}{text.call()}"
            yield "#else"
        start = spelling.expression(s.start)
        yield f"{inside}for (int element = 0; element < {elements}; ++element) {name}[element] = {start};"
        for inner in s.edge:
            yield from self._statement(inner, spelling, inside, use)
        if text is not None:
            yield f"{indent}}}" if condition else "#endif"

    def _elements(self, s: Tile) -> int:
        """How many elements a tile has."""
        return math.prod(
            self.program.sizes[n].fixed or 0 for n in self.program.buffers[s.buffer].dims
        )

    def _for(self, loop: For, spelling: Spelling, indent: str, use: Use) -> Iterator[str]:
        name, size = spelling.variable(loop.variable), spelling.size(loop.size)
        first, whole = f"int64_t {name} = 0", size
        if loop.rest is not None:
            whole = f"min_i64({size}, {spelling.rest(loop.rest)})"
            first, size = f"{first}, end_{name} = {whole}", f"end_{name}"
        if loop.lanes > 1:
            yield f"{indent}{{"
            yield f"{indent}{INDENT}const int64_t end_{name} = {whole};"
            yield from self._laned(loop, f"end_{name}", spelling, indent + INDENT, use)
            yield f"{indent}}}"
            return
        if is_streamed(self.program, loop):
            pragma = list(self._parallel(loop, spelling)) if loop.parallel else []
            yield f"{indent}if ({stream_condition(self.program, loop, spelling)}) {{"
            yield from stream_lines(self.program, loop, spelling, indent + INDENT, pragma)
            yield f"{indent}}} else {{"
            yield from self._divided_for(loop, first, size, spelling, indent + INDENT, use)
            yield f"{indent}}}"
            return
        yield from self._divided_for(loop, first, size, spelling, indent, use)

    def _divided_for(
        self, loop: For, first: str, size: str, spelling: Spelling, indent: str, use: Use
    ) -> Iterator[str]:
        """A loop, and before it one that does the same without dividing where that is possible."""
        division = c_quotient.divided(self.program, loop)
        if division is None:
            yield from self._plain_for(loop, first, size, spelling, indent, use)
            return
        name = spelling.variable(loop.variable)
        head = f"for ({first}; {name} < {size}; ++{name}) {{"
        yield f"{indent}{{"
        yield from c_quotient.lines(loop, division, head, spelling, indent + INDENT)
        yield from self._plain_for(loop, first, size, spelling, indent + INDENT, use)
        yield f"{indent}}}"

    def _plain_for(
        self, loop: For, first: str, size: str, spelling: Spelling, indent: str, use: Use
    ) -> Iterator[str]:
        """A loop one iteration after the other, or on several threads."""
        name = spelling.variable(loop.variable)
        if loop.parallel:
            yield from self._parallel(loop, spelling)
        if loop.role == "u":
            yield f"#pragma GCC unroll {self.program.sizes[loop.size].fixed}"
        yield f"{indent}for ({first}; {name} < {size}; ++{name}) {{"
        if loop.parallel and use.private:
            inside = indent + INDENT
            own = " + thread() * scratch_bytes" if any(self._parallel(loop, spelling)) else ""
            if not own:
                yield f"{inside}(void)scratch_bytes;"
            yield f"{inside}char *const mine = scratch{own};"
            yield from self._private(use, spelling, inside, "mine")
        for inner in loop.body:
            yield from self._statement(inner, spelling, indent + INDENT, use)
        yield f"{indent}}}"

    def _parallel(self, loop: For, spelling: Spelling) -> Iterator[str]:
        """The pragma of a parallel loop, with a test of its size where that is not known here."""
        sizes = deepest(loop)
        fixed = [size.fixed for n in sizes if (size := self.program.sizes[n]).fixed is not None]
        known = math.prod(fixed)
        if len(fixed) == len(sizes) and known < PARALLEL_FROM:
            return
        words = [
            f"(double){spelling.size(n)}" for n in sizes if self.program.sizes[n].fixed is None
        ]
        words += [str(known)] if known != 1 and words else []
        test = f" if ({' * '.join(words)} >= {PARALLEL_FROM})" if words else ""
        yield "#ifdef _OPENMP"
        yield f"#pragma omp parallel for schedule(static) num_threads(threads()){test}"
        yield "#endif"

    def _laned(
        self, loop: For, size: str, spelling: Spelling, indent: str, use: Use
    ) -> Iterator[str]:
        """Whole blocks of lanes, which a compiler turns into vectors, then the iterations that are left."""
        name, lanes = spelling.variable(loop.variable), loop.lanes
        whole = f"{size} / {lanes} * {lanes}"
        deeper, inside = indent + INDENT, indent + INDENT + INDENT
        yield f"{indent}for (int64_t {name}_block = 0; {name}_block < {whole}; {name}_block += {lanes}) {{"
        for load in loop.ahead:
            line = 64 // BYTES[load.dtype]
            head = f"{name} = {name}_block; {name} < {name}_block + {lanes}; {name} += {line}"
            write = int(self.program.buffers[load.buffer].role != "input")
            element = spelling.element(load.buffer, load.index)
            yield f"{deeper}for (int64_t {head}) FETCH(&{element}, {write});"
        yield f"{deeper}for (int lane = 0; lane < {lanes}; ++lane) {{"
        yield f"{inside}const int64_t {name} = {name}_block + lane;"
        spelling.lane = "lane"
        for inner in loop.body:
            yield from self._statement(inner, spelling, inside, use)
        yield f"{deeper}}}"
        yield f"{indent}}}"
        yield f"{indent}for (int lane = 0; lane < {size} - {whole}; ++lane) {{"
        yield f"{deeper}const int64_t {name} = {whole} + lane;"
        for inner in loop.body:
            yield from self._statement(inner, spelling, deeper, use)
        spelling.lane = "0"
        yield f"{indent}}}"


def _fold(s: Fold, spelling: Spelling, indent: str) -> Iterator[str]:
    """Combine lanes pairwise: half of them take the other half, until one is left."""
    mine, other = Local(s.variable, s.dtype), Local(OTHER_LANE, s.dtype)
    deeper = indent + INDENT
    yield f"{indent}for (int half = {s.lanes // 2}; half > 0; half /= 2) {{"
    yield f"{deeper}for (int lane = 0; lane < half; ++lane) {{"
    spelling.lane = "lane"
    spelling.other = f"{spelling.name(s.variable)}[lane + half]"
    update = spelling.update(spelling.local(s.variable), Apply(s.primitive, (mine, other), s.dtype))
    yield f"{deeper}{INDENT}{update}"
    spelling.lane = "0"
    yield f"{deeper}}}"
    yield f"{indent}}}"


def deepest(loop: For) -> list[int]:
    """The sizes of the deepest nest that starts with a loop, itself included; a split dimension counts as it is."""
    best: list[int] = []
    stack: list[tuple[For, dict[int, int]]] = [(loop, {})]
    while stack:
        top, above = stack.pop()
        here = {**above, top.variable: top.size}
        if top.rest is not None and top.rest.step == 1:
            split = {v for _, v in top.rest.start.terms}
            here = {v: size for v, size in here.items() if v not in split}
            here[top.variable] = top.rest.size
        best = list(here.values()) if len(here) >= len(best) else best
        stack.extend((s, here) for s in top.body if isinstance(s, For))
    return best


def _called(scalar: Apply) -> set[str]:
    """The function that a primitive is a call of, if its definition is ours to write."""
    assert scalar.dtype is not None
    name = cmath.name_of(scalar.primitive, scalar.dtype)
    if name is None and scalar.primitive in HELPERS:
        name = f"{scalar.primitive}_{scalar.dtype}"
    return {name} if name else set()


def _helper(name: str) -> Iterator[str]:
    """The definition of a helper function."""
    if name == "stream":
        yield from HELPER
        return
    if name == "fetch":
        yield from FETCH
        return
    if name in THREADS:
        yield from THREADS[name]
        return
    kind, _, dtype = name.rpartition("_")
    c_type = C_TYPES[dtype]
    if kind in ("max", "min"):
        sign = ">" if kind == "max" else "<"
        nan = "; NaN if one is" if dtype in FLOATS else ""
        said = f"the {'larger' if kind == 'max' else 'smaller'} of two{nan}"
        body = f"(b {sign} a) ? b : a"
        yield from (f"/* {said} */", f"static inline {c_type} {name}({c_type} a, {c_type} b)")
    elif kind == "square":
        body = "a * a"
        yield f"static inline {c_type} {name}({c_type} a)"
    else:
        target = kind.removesuffix("_of")
        end, suffix = {
            "i32": ("2147483648.0", "INT32_MIN"),
            "i64": ("9223372036854775808.0", "INT64_MIN"),
        }[target]
        end += "f" if dtype == "f32" else ""
        body = f"(a >= -{end} && a < {end}) ? ({C_TYPES[target]})a : {suffix}"
        yield "/* towards zero; what does not fit gives the smallest value */"
        yield f"static inline {C_TYPES[target]} {name}({c_type} a)"
    yield "{"
    if kind in ("max", "min") and dtype in FLOATS:
        yield f"{INDENT}const {c_type} one = {body};"
        body = "b != b ? b : one"
    yield from (f"{INDENT}return {body};", "}", "")


FETCH = (
    "/* move a cache line nearer, to be written or read; any address will do */",
    "#ifdef __GNUC__",
    "#define FETCH(address, write) __builtin_prefetch(address, write)",
    "#else",
    "#define FETCH(address, write) ((void)0)",
    "#endif",
    "",
)

THREADS = {
    "threads": (
        "#ifdef _OPENMP",
        "/* threads of a parallel loop: what OpenMP would take, as far as there is workspace */",
        "static inline int threads(void)",
        "{",
        f"{INDENT}const int most = omp_get_max_threads();",
        f"{INDENT}return most < MOST_THREADS ? most : MOST_THREADS;",
        "}",
        "#endif",
        "",
    ),
    "thread": (
        "/* the number of the calling thread in its parallel loop */",
        "static inline size_t thread(void)",
        "{",
        "#ifdef _OPENMP",
        f"{INDENT}return (size_t)omp_get_thread_num();",
        "#else",
        f"{INDENT}return 0;",
        "#endif",
        "}",
        "",
    ),
}

"""C: programs as text, C99 with optional OpenMP.

    size_t NAME_work(const NAME_sizes *sizes);
    int NAME(const NAME_sizes *sizes, const T *input..., T *output..., void *work);

Buffers are row-major and contiguous; extents count elements; ``work`` points to ``NAME_work`` bytes and may be NULL
when that is 0. Nothing is global, nothing is allocated. ``c_entry.STATUS`` lists what the function returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, assert_never

from ilang.codegen.targets import c_library, c_scalar, c_variants
from ilang.codegen.targets.braces import LEFT_SMALL, braced, branches, indented
from ilang.codegen.targets.c_entry import Entry
from ilang.codegen.targets.c_header import beginning_of, declarations, signature
from ilang.codegen.targets.c_parallel import KernelFunctions, outlined
from ilang.codegen.targets.cfamily import (
    C_TYPES,
    Ends,
    InLane,
    comment,
    deferred_name,
    end_of,
    product,
    stored_name,
)
from ilang.codegen.targets.constants import with_constants
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.codegen.targets.library import PREFIX, linked, own, prefixed
from ilang.codegen.targets.marked_lines import with_marks
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import DeferredPacking, Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.rewriting import is_guarded
from ilang.core.ir.scalar import Apply
from ilang.core.pipeline import host_of

if TYPE_CHECKING:  # what only some programs need is imported where it is used
    from ilang.codegen.targets.c_loops import Piece
    from ilang.codegen.targets.c_session import SessionsText
    from ilang.codegen.targets.c_tile import TileText
    from ilang.core.explain.marks import LineMark

INCLUDES = {
    "#include <math.h>": r"\b(INFINITY|NAN|(copysign|cos|floor|fma|fmod|log|pow|sin|sqrt)f?)\b",
    "#include <stddef.h>": "",
    "#include <stdint.h>": "",
    "#include <string.h>": r"\b(memcpy|memset|str\w+)\(",
    "#ifdef _OPENMP\n#include <omp.h>\n#endif": r"\bomp_\w+\(",
}
"""The headers of C, each with a pattern of the names for which a text includes it: compilers read them every time."""

INCLUDES_OF_STOPS = ("#ifdef _OPENMP", "#include <setjmp.h>", "#endif")
"""The headers of a text whose parallel loops can be stopped; ``headers/stop.h`` says how."""


def emit(program: ir.Program, stoppable: bool = False) -> str:
    """A program as one self-contained C text; ``stoppable`` for one that ``codegen/call/stopping.py`` can stop."""
    body = [*declarations(program), "", *_implementation(program, stoppable)]
    includes = [*_includes(body), *(INCLUDES_OF_STOPS if stoppable else ())]
    return "\n".join([*includes, "", *body]) + "\n"


def emit_marked(program: ir.Program) -> list[tuple[str, LineMark]]:
    """The lines of ``emit``, each with what it is of."""
    return with_marks(emit(program), list(_Emission(program, marking=True).lines()))


def emit_kernels(program: ir.Program) -> str:
    """The functions of the kernels of a program, without the library that they call, checks and workspace."""
    return "\n".join(prefixed(list(_Emission(program).work()), c_library.parts(program.machine)))


def emit_source(
    programs: Sequence[ir.Program], stem: str, sessions: SessionsText | None = None
) -> tuple[str, str]:
    """The support header and the implementation that go with ``emit_header``; functions of programs may have variants.

    What comes after programs is in no variant of theirs.
    """
    includes, more = (sessions.includes(), [*sessions.lines()]) if sessions else ((), [])
    emissions = [_Emission(program, has_variants=True) for program in programs]
    around = [line for each in emissions for line in each.support()]
    body = [line for each in emissions for line in each.functions()]
    parts, text = c_library.parts(programs[0].machine), "\n".join([*around, *body])
    support = [*linked(text, parts), *around]
    if more:
        support += c_variants.once(linked("\n".join(more), parts, before=text))
        body += c_variants.once(more)
    renamed = own("\n".join([text, *more]), parts, f"{beginning_of(programs)}_{PREFIX}")
    used = _includes([*support, *body])
    head = [f'#include "{stem}.h"', "", *used, *includes, "", *renamed, *c_variants.NAMES]
    files = ([*head, *prefixed(support, parts)], prefixed(body, parts))
    support_text, source_text = ("\n".join(lines) + "\n" for lines in files)
    return support_text, source_text


def _includes(lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    return [include for include, names in INCLUDES.items() if re.search(names, text)]


def _implementation(program: ir.Program, stoppable: bool) -> Iterator[str]:
    """The parts of the library that a program uses, and the program."""
    body = list(_Emission(program, stoppable).lines())
    parts = c_library.parts(program.machine)
    yield from prefixed([*linked("\n".join(body), parts), *body], parts)


class _Emission:
    """The implementation of one program."""

    def __init__(
        self,
        program: ir.Program,
        stoppable: bool = False,
        has_variants: bool = False,
        marking: bool = False,
    ) -> None:
        self.program = program
        self.stoppable = stoppable
        self.entry = Entry(host_of(program), signature(program), has_variants)
        self.name = function_identifier(program.name)
        self.kernels = [
            KernelFunctions(program, kernel, f"{self.name}_{kernel.name}", stoppable, marking)
            for kernel in program.kernels
        ]
        self.tiles = [
            (_tile_text(s, functions), s, functions)
            for functions in self.kernels
            for s in ir.statements_within(functions.kernel.body)
            if isinstance(s, Tile) and s.number is not None
        ]

    def lines(self) -> Iterator[str]:
        """The functions of the program, one text."""
        yield from _stop_function(self.name) if self.stoppable else ()
        yield from self.work()
        yield from self.entry.lines()

    def work(self) -> Iterator[str]:
        """Tiles in registers, and the functions of the kernels, which use them."""
        yield from self._tiles()
        yield from self._kernels()

    def support(self) -> Iterator[str]:
        """The part for the support header: tiles in registers and the layout of the workspace, which functions use."""
        yield from self._tiles()
        yield from self.entry.layout()

    def functions(self) -> Iterator[str]:
        """The functions that run: of the kernels, and that of the program."""
        yield from self._kernels()
        yield from self.entry.function()

    def _tiles(self) -> Iterator[str]:
        if self.tiles:
            yield "#ifdef __GNUC__"
            for text, tile, functions in self.tiles:
                lines = functions.marked(text.lines(), tile, whole=True)
                yield from indented(with_constants(functions.kernel, lines))
            without = [each for each in self.tiles if not each[0].condition()]
            yield from ["#else"] if without else []
            for text, tile, functions in without:
                by_element = [*self._tile_by_element(tile, functions)]
                lines = text.without_vectors(by_element)
                yield from indented(with_constants(functions.kernel, lines))
            yield "#endif"
            yield ""

    def _kernels(self) -> Iterator[str]:
        for functions in self.kernels:
            kernel = functions.kernel
            for loop, outline in outlined(kernel.body):
                loops = list(_nest(loop, outline.loops))
                body = functions.marked(self._range(loops, functions), loops[0])
                lines = functions.function(outline, loops, body)
                yield from indented(with_constants(kernel, lines))
            assert kernel.outline is not None
            yield "/*"
            yield " * each assignment, its expression and schedule: tiles | order of loops"
            yield from (comment(f" * {line}") for line in dict.fromkeys(kernel.comments))
            yield " */"
            body = self._block(kernel.body, functions)
            lines = functions.function(kernel.outline, (), body)
            yield from indented(with_constants(kernel, lines))

    def _block(self, body: Sequence[ir.Statement], functions: KernelFunctions) -> Iterator[str]:
        for s in body:
            yield from functions.marked(self._statement(s, functions), s)

    def _deferred(
        self, loop: ir.For, deferred: DeferredPacking, functions: KernelFunctions
    ) -> Iterator[str]:
        """A loop that fills a copy, unless a tile does so later in the block, which threads may share."""
        name, spelling = deferred_name(self.program, deferred.copy), functions.spelling
        words = ["team < 2"] if deferred.alone else []
        words += [spelling.conditions(deferred.guards)] if deferred.guards else []
        yield f"const int {name} = {' && '.join(['HAS_VECTORS', *words])};"
        yield from braced(f"if (!{name})", self._for(loop, functions))

    def _statement(self, s: ir.Statement, functions: KernelFunctions) -> Iterator[str]:
        spelling = functions.spelling
        match s:
            case ir.For() if s.deferred is not None:
                yield from self._deferred(s, s.deferred, functions)
            case ir.For():
                yield from self._for(s, functions)
            case ir.If():
                words = spelling.conditions(s.within)
                if s.stored is not None:
                    words = f"!{stored_name(self.program, s.stored)}"
                bodies = (self._block(body, functions) for body in (s.body, s.otherwise))
                yield from branches(words, s, *bodies)
            case ir.Define() | ir.Change() | ir.Store() | ir.HorizontalReduction():
                yield from c_scalar.lines(s, spelling)
            case Tile():
                yield from self._tile(s, functions)
            case Transpose():
                from ilang.codegen.targets.c_transpose import call

                yield call(s, spelling)
            case ThreadLoop() | Barrier() | CombineThreads() | SwapBuffers() | MatrixProduct():
                raise AssertionError("C has no grid")
            case _:
                assert_never(s)

    def _tile(self, s: Tile, functions: KernelFunctions) -> Iterator[str]:
        """A tile in registers where the compiler has vectors and every loop is whole, else element by element."""
        buffer = self.program.buffers[s.buffer]
        name, elements = identifier(buffer.name), _elements(s, functions)
        aligned = "" if s.number is None else "ALIGNED "
        kind = functions.spelling.element_kind(s.buffer)
        yield f"{aligned}{kind} {name}[{elements}];"
        if s.number is None:
            yield from self._tile_by_element(s, functions)
            return
        text = _tile_text(s, functions)
        stored = text.stored_name() if s.target is not None else ""
        condition = text.condition()
        if stored:
            yield f"const int {stored} = {text.stored()};"
        if not condition:
            yield text.call()
            return
        yield "#ifdef __GNUC__"
        yield f"if ({condition}) {{"
        yield text.call()
        yield "} else"
        yield "#endif"
        yield from braced("", self._tile_by_element(s, functions))

    def _tile_by_element(self, s: Tile, functions: KernelFunctions) -> Iterator[str]:
        """A tile in memory, its blocks and its partial sums added in f64."""
        from ilang.codegen.targets.c_terms import in_partials
        from ilang.codegen.targets.c_tile import end_of_block

        spelling, buffer = functions.spelling, self.program.buffers[s.buffer]
        name = identifier(buffer.name)
        elements = _elements(s, functions)
        each = f"for (int element = 0; element < {elements}; ++element)"
        partials, start = s.partial, spelling.expression(s.start)
        summed = bool(s.blocks) or partials is not None
        if summed:
            yield f"double sums_{name}[{elements}];"
            yield f"{each} sums_{name}[element] = 0.0;"
        for loop in s.blocks:
            yield spelling.opened(loop, end=end_of_block(s, loop, spelling)) + " {"
        yield f"{each} {name}[element] = {start};"
        added = f"sums_{name}[element] += {name}[element];"
        if partials is not None:
            block = partial(self._block, functions=functions)
            again = f"{each} {{ {added} {name}[element] = {start}; }}"
            yield from in_partials(partials, s.body, spelling, block, again)
        else:
            yield from self._block(s.body, functions)
            yield from [f"{each} {added}"] if summed else []
        yield from ["}"] * len(s.blocks)
        if summed:
            yield f"{each} {name}[element] = ({C_TYPES[buffer.dtype]})sums_{name}[element];"

    def _for(self, loop: ir.For, functions: KernelFunctions) -> Iterator[str]:
        """A loop: a call of its function where threads share it, with vectors where it has lanes, or as it is."""
        spelling = functions.spelling
        name = spelling.variable(loop.variable)
        start, whole = spelling.bound(loop.begin), end_of(spelling, loop)
        named = loop.end.operands and not whole.isdigit()
        ends = Ends(start, f"end_{name}", whole) if named else Ends(start, whole)
        if loop.outline is not None and loop.outline.estimate is not None:
            yield functions.call(loop.outline, loop.outline.estimate)
        elif loop.lanes > 1:
            first = [f"const int64_t start_{name} = {start};"] if loop.begin.operands else []
            lines = (*first, *self._vectorised(loop, whole, functions))
            is_alone = whole.isdigit() and not loop.begin.operands
            yield from lines if is_alone else braced("", lines)
        else:
            yield from self._plain_for(loop, ends, functions)

    def _range(self, loops: Sequence[ir.For], functions: KernelFunctions) -> Iterator[str]:
        """The body of the function of parallel loops: some of their iterations."""
        if len(loops) == 1:
            start = "first"
            if loops[0].begin.operands:
                start = f"max_i64(first, {functions.spelling.bound(loops[0].begin)})"
            return self._plain_for(loops[0], Ends(start, "last"), functions)
        return functions.together(loops, self._block(loops[-1].body, functions))

    def _plain_for(self, loop: ir.For, ends: Ends, functions: KernelFunctions) -> Iterator[str]:
        """A loop; where all is divided by one number, a loop that does not divide stands before."""
        iterations = self._iterations(loop, ends, functions)
        if not isinstance(loop.version, Apply):
            return iterations
        from ilang.codegen.targets import c_loops

        spelling = functions.spelling
        whole = ends.start == "0" and not ends.value and ends.end == spelling.size(loop.size)
        row = c_loops.divided_row(loop, loop.version, spelling) if whole else None
        if row is not None:
            return functions.marked(iter([row]), loop, whole=True)
        name = spelling.variable(loop.variable)
        head = f"for ({ends.declared(name)}; {name} < {ends.end}; ++{name})"
        lines = c_loops.divided_lines(loop, loop.version, head, spelling)
        return braced("", (*functions.marked(lines, loop, whole=True), *iterations))

    def _iterations(self, loop: ir.For, ends: Ends, functions: KernelFunctions) -> Iterator[str]:
        """The loop itself: whole, or in the parts before, where and after a condition in it holds."""
        spelling, end = functions.spelling, ends.end
        name, version = spelling.variable(loop.variable), loop.version
        first = ends.declared(name)
        copies = [LEFT_SMALL] if isinstance(version, Apply) else []
        if loop.copies is not None:
            copies = [f"#pragma GCC unroll {loop.copies}"]

        def loops(parts: Iterable[Piece]) -> Iterator[str]:
            for head, body in parts:
                tests = ["SCALAR;"] if is_guarded(body) else []
                yield from copies
                yield from braced(head, (*tests, *self._block(body, functions)))

        if not isinstance(version, ir.If):
            end = spelling.count(loop) if end == spelling.size(loop.size) else end
            yield from loops([(f"for ({first}; {name} < {end}; ++{name})", loop.body)])
            return
        from ilang.codegen.targets import c_loops

        lines, parts = c_loops.pieces(version, end, spelling)
        yield from braced("", (f"{first};", *lines, *loops(parts)))

    def _vectorised(self, loop: ir.For, size: str, functions: KernelFunctions) -> Iterator[str]:
        """Whole blocks of lanes, which a compiler turns into vectors, then the iterations that are left."""
        spelling = functions.spelling
        name, lanes = spelling.variable(loop.variable), loop.lanes
        start, end, whole = "0", f"end_{name}", f"whole_{name}"
        multiple = f"{end} / {lanes} * {lanes}"
        if loop.begin.operands:
            start = f"start_{name}"
            multiple = f"{start} + ({end} - {start}) / {lanes} * {lanes}"
        left = f"{end} - {whole}"
        if size.isdigit() and not loop.begin.operands:
            end, whole = size, str(int(size) // lanes * lanes)
            left = str(int(end) - int(whole))
        else:
            yield f"const int64_t {end} = {size};"
            yield f"const int64_t {whole} = {multiple};"
        yield from self._blocks_of_lanes(loop, Ends(start, whole), functions)
        if left != "0":
            yield LEFT_SMALL
            head = f"for (int lane = 0; lane < {left}; ++lane)"
            yield from braced(head, _in_lane(loop, f"{whole} + lane", functions))

    def _blocks_of_lanes(
        self, loop: ir.For, ends: Ends, functions: KernelFunctions
    ) -> Iterator[str]:
        """Whole blocks of the lanes of a loop between two ends."""
        name, lanes = functions.spelling.variable(loop.variable), loop.lanes
        head = f"for (int lane = 0; lane < {lanes}; ++lane)"
        block = braced(head, _in_lane(loop, f"{name}_block + lane", functions))
        # GCC writes out shorter loops
        longer = ["SCALAR;"] if lanes > self.program.machine.sum_lanes else []
        longer += [LEFT_SMALL] if loop.is_kept else []
        first, last = f"int64_t {name}_block = {ends.start}", f"{name}_block < {ends.end}"
        yield from braced(f"for ({first}; {last}; {name}_block += {lanes})", (*longer, *block))


def _stop_function(name: str) -> Iterator[str]:
    """``NAME_stop``, by which ``codegen/call/stopping.py`` says how calls of this thread are stopped."""
    yield "#ifdef _OPENMP"
    yield f"void {name}_stop(void *call);"
    yield f"void {name}_stop(void *call)"
    yield from ("{", "    running_stop = call;", "}", "#endif", "")


def _elements(s: Tile, functions: KernelFunctions) -> str:
    """The number of elements of a tile, as text."""
    return product(functions.spelling.dimensions(s.buffer))


def _tile_text(tile: Tile, functions: KernelFunctions) -> TileText:
    from ilang.codegen.targets.c_tile import TileText

    return TileText(functions.program, functions.kernel, tile, functions.spelling)


def _nest(loop: ir.For, depth: int) -> Iterator[ir.For]:
    """So many loops with nothing between them."""
    yield loop
    if depth > 1:
        (inner,) = loop.body
        assert isinstance(inner, ir.For)
        yield from _nest(inner, depth - 1)


def _in_lane(loop: ir.For, iteration: str, functions: KernelFunctions) -> Iterator[str]:
    """The statements of an iteration, by its number, of a loop in lanes, in the lane of that number."""
    lane = InLane(functions.spelling)
    yield f"const int64_t {functions.spelling.variable(loop.variable)} = {iteration};"
    for s in loop.body:
        assert isinstance(s, (ir.Define, ir.Change, ir.Store)), (
            "a loop in lanes has no loops inside"
        )
        yield from functions.marked(c_scalar.lines(s, lane), s)

"""Register tiles in C: a function per tile, its elements in vector types, which GCC and Clang keep in registers.

    static void NAME_k0_tile(int64_t n_k, const float *restrict a, ..., int64_t i, float *restrict tile)

One text for every vector unit: macros of the compiler say how long its vectors are, and how many rows its registers
hold at a time. Sums of products are contracted here (``fma``), and nowhere else: a product that feeds only a sum loses
no digit by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from ilang.codegen.targets import c_terms
from ilang.codegen.targets.c_entry import FORMULAS, several_a_line
from ilang.codegen.targets.c_terms import COUNT, SUMS
from ilang.codegen.targets.c_vector import ACC, LOADED, VectorSpelling, vector_type
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling, deferred_name, stored_name
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.core.calculus.affine import variables_of
from ilang.core.ir.cpu import TileTarget
from ilang.core.ir.kernel import For, Kernel, Program, Store, Tile
from ilang.core.ir.scalar import Load, scalars_within
from ilang.core.record import replace

TILE_PARTS = ("", "_part", "_whole", "_filling", "_any", "_lanes", "_most", "_some", "_few")
"""Endings of the names of a tile's functions and constants."""


def end_of_block(tile: Tile, loop: For, spelling: Spelling) -> str:
    """The end of the outermost loop over blocks of a tile, at 0 where one inside is empty; "" where none may be."""
    first, *inner = tile.blocks
    tests = [
        f"{spelling.size(each.size)} > 0"
        for each in inner
        if not spelling.program.sizes[each.size].fixed
    ]
    if loop is not first or not tests:
        return ""
    return f"({' && '.join(tests)} ? {spelling.size(loop.size)} : 0)"


class TileText:
    """The functions of one tile that registers hold, and the calls of them."""

    def __init__(self, program: Program, kernel: Kernel, tile: Tile, spelling: Spelling) -> None:
        """For a tile of a kernel, whose names ``spelling`` has."""
        assert tile.registers is not None
        self.program = program
        self.tile = tile
        self.registers = tile.registers
        owner = f"{function_identifier(program.name)}_{kernel.name}"
        self.name = f"{owner}_tile{self.registers.number}"
        self.dtype = program.buffers[tile.buffer].dtype
        self.dims, self.ragged = self.registers.extents, self.registers.loops
        self.core, self.loops = self.registers.core, [replace(x, within=()) for x in self.ragged]
        self.lanes, self.partial = tile.vector, tile.partial
        self.plain = spelling
        self.spelling = VectorSpelling(spelling, tile, self.registers)

    def condition(self) -> str:
        """The condition in which the function may run; "" for always."""
        return self.plain.conditions(self.registers.guards)

    def _parameters(self, some: bool = False) -> tuple[list[str], list[str]]:
        """The parameters of the function, or of the one of ``some`` of it, and the arguments it is called with."""
        captured = self.registers.part if some else self.registers.whole
        numbers = [self.spelling.size(n) for n in captured.sizes]
        words = [(f"int64_t {name}", name) for name in numbers]
        for number in captured.buffers:
            buffer = self.program.buffers[number]
            filled = self.tile.fill is not None and number == self.tile.fill.buffer
            kind = f"{'' if filled else 'const '}{C_TYPES[buffer.dtype]}"
            name = identifier(buffer.name)
            words.append((f"{kind} *restrict {name}", name))
        names = [self.spelling.variable(n) for n in captured.variables]
        words += [(f"int64_t {name}", name) for name in names]
        for part in captured.locals:
            name = self.spelling.local(part.variable)
            words.append((f"{self.spelling.kind(part.variable, part.dtype)} {name}", name))
        if self.tile.fill is not None and not some:
            words.append(("int fills", "fills"))
        name = identifier(self.program.buffers[self.tile.buffer].name)
        words.append((f"{C_TYPES[self.dtype]} *restrict {name}", name))
        if self.tile.target is not None:
            words.append(("int64_t stride", "stride"))
        return [declared for declared, _ in words], [argument for _, argument in words]

    def call(self, indent: str) -> str:
        """The call of the function, indented; a tile that is ``stored`` by it goes where it belongs."""
        parameters, arguments = self._parameters()
        if self.tile.fill is not None:
            words = [
                self.deferred_name(),
                *(f"{self.plain.variable(v)} == 0" for v in self.tile.first),
            ]
            arguments[parameters.index("int fills")] = " && ".join(words)
        if self.tile.target is not None:
            stored, into = self.stored_name(), self.tile.target
            arguments[-2:] = [
                f"{stored} ? &{self.plain.element(into.buffer, into.first)} : {arguments[-2]}",
                f"{stored} ? {self._stride_into(into)} : {self.dims[-1]}",
            ]
        return several_a_line(f"{indent}{self.name}(", arguments, ");")

    def _stride_into(self, into: TileTarget) -> str:
        """The number of elements between rows where a whole tile belongs."""
        return into.stride.text(self.plain.size, FORMULAS)

    def deferred_name(self) -> str:
        """The name of what says that the tile fills the copy that it reads."""
        assert self.tile.fill is not None
        return deferred_name(self.program, self.tile.fill.buffer)

    def stored_name(self) -> str:
        """The name of what says that the function stores the tile where it belongs."""
        return stored_name(self.program, self.tile.buffer)

    def stored(self) -> str:
        """The condition in which the function stores the tile where it belongs."""
        into = self.tile.target
        assert into is not None
        words = [self.plain.conditions(into.within) or "1"]
        words += [self.condition()] if self.registers.guards else []
        return " && ".join(words)

    def _stride(self) -> str:
        """The number of elements between rows of what the function writes."""
        return "stride" if self.tile.target is not None else str(self.dims[-1])

    def lines(self) -> Iterator[str]:
        """Two functions: some rows and lanes of the tile in registers, and all of it."""
        if self.registers.contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT ON"
            yield "#else"
            yield "#pragma GCC push_options"
            # Regions of their own make GCC keep the vectors that all rows use in memory, for some processors.
            yield '#pragma GCC optimize ("fp-contract=fast", "ira-region=one")'
            yield "#endif"
        yield from self._at_once()
        yield from self._some()
        yield from self._whole()
        if self.tile.fill is not None:
            yield from self._whole(filling=True)
        yield from self._all()
        yield from self._either()
        if self.registers.contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT OFF"
            yield "#else"
            yield "#pragma GCC pop_options"
            yield "#endif"
        yield ""

    def without_vectors(self, body: Sequence[str]) -> Iterator[str]:
        """The function in the text for a compiler without vectors, which does all element by element."""
        parameters, names = self._parameters()
        yield several_a_line(f"static void {self.name}(", parameters, ")")
        yield "{"
        words = {word for line in body for word in re.findall(r"\w+", line)}
        yield from (f"{INDENT}(void){name};" for name in names if name not in words)
        yield from body
        yield "}"
        yield ""

    def _at_once(self) -> Iterator[str]:
        """The numbers of rows and lanes that are computed at a time, as constants."""
        for number, block in enumerate(self.tile.micro_tiles):
            yield ("#if HELD >= {0}", "#elif HELD >= {0}", "#else")[number].format(block.held)
            words = zip(("lanes", "most", "some", "few"), (block.lanes, *block.rows), strict=True)
            yield f"enum {{ {', '.join(f'{self.name}_{word} = {n}' for word, n in words)} }};"
        yield "#endif"

    def _some(self) -> Iterator[str]:
        """The function of a part of the tile; how much that is, is constant where it is called."""
        kind = vector_type(self.dtype, self.lanes)
        counts = ["const int rows_at_once", "const int parts_at_once"]
        counts += ["const int filling"] if self.tile.fill is not None else []
        counts += ["int64_t first_row", "int64_t first_lane"]
        head = f"static inline __attribute__((always_inline)) void {self.name}_part("
        yield several_a_line(head, [*counts, *self._parameters(some=True)[0]], ")")
        yield "{"
        for loop in self.ragged[:-1]:
            if loop.within and loop.variable in self._walked():
                stop = f"{self.plain.end(loop)} - 1"
                yield f"{INDENT}const int64_t last_{self.plain.variable(loop.variable)} = {stop};"
        rows = f"{self.name}_most" if len(self.dims) == 2 else str(prod(self.dims[:-1]))
        yield f"{INDENT}{kind} {ACC}[{rows}][{self.name}_lanes / lanes_{kind}];"
        start = self.spelling.expression(self.tile.start)
        zero = f"({kind}){{0}}"
        value = zero if start in ("0.0f", "0.0") else f"{zero} + {start}"
        yield from self._over_part(f"{ACC}[tile_row][part] = {value};")
        held = ACC
        if self.registers.apart:
            held = SUMS
            yield f"{INDENT}{kind} {held}[{rows}][{self.name}_lanes / lanes_{kind}];"
            yield from self._over_part(f"{held}[tile_row][part] = {zero};")
        elif self.partial is not None:
            yield f"{INDENT}int64_t {COUNT} = 0;"
        yield from self._core(INDENT)
        place, value = self._place(), f"{held}[tile_row][part]"
        if self.partial is not None and held == ACC:
            yield f"{INDENT}if ({COUNT} > 1) {{"
            yield from self._over_part(f"{place} += {value};", INDENT + INDENT)
            yield f"{INDENT}{INDENT}return;"
            yield f"{INDENT}}}"
        yield from self._over_part(f"{place} = {value};")
        yield "}"
        yield ""

    def _core(self, indent: str) -> Iterator[str]:
        """The loops that fill the rows at hand; what a run of terms gives is added to that of those before it."""
        kind, outer = vector_type(self.dtype, self.lanes), indent
        for depth, loop in enumerate(self.core):
            if self.partial is not None and depth == self.partial.depth:
                sums, terms = c_terms.opened(self.partial, loop, self.plain, indent)
                yield sums
                if not self.registers.apart:
                    yield from self._before_run(indent + INDENT)
                yield terms
                indent += INDENT
            else:
                yield self.plain.opened(loop, indent)
            indent += INDENT
        if self.tile.fill is not None:
            yield from self._filled(self.tile.fill, indent)
        yield from self._loaded(indent)
        for loop, extent, ragged in zip(self.loops, self.dims, self.ragged, strict=True):
            last = loop is self.loops[-1]
            name = self.plain.variable(loop.variable)
            grouped = not last and len(self.dims) == 2
            yield f"#pragma GCC unroll {self._most_parts() if last else extent}"
            if last:
                lanes = f"parts_at_once * lanes_{kind}"
                yield self.plain.opened(loop, indent, f"lanes_{kind}", lanes)
            else:
                yield self.plain.opened(loop, indent, end="rows_at_once" if grouped else "")
            indent += INDENT
            is_read = loop.variable in self._walked() and not (last and self._reads_no_lanes())
            if loop.variable in self.registers.counted() and is_read:
                at = self._lane(name) if last else name
                at = f"first_row + {name}" if grouped else at
                clamped = not last and ragged.within
                at = f"min_i64({at}, last_{name})" if clamped else at
                yield f"{indent}const int64_t in_{name} = {at};"
        for s in self.registers.body:
            yield indent + self.spelling.statement(s)
        run = len(outer) + len(INDENT) * (
            self.partial.depth + 1 if self.partial is not None else -1
        )
        while len(indent) > len(outer):
            indent = indent[: -len(INDENT)]
            yield f"{indent}}}"
            if len(indent) == run and self.registers.apart:
                held, summed = f"{SUMS}[tile_row][part]", f"{ACC}[tile_row][part]"
                yield from self._over_part(
                    f"{{ {held} += {summed}; {summed} = ({kind}){{0}}; }}", indent
                )

    def _loaded(self, indent: str) -> Iterator[str]:
        """The vectors that all rows use, in registers, if there are as many: compilers may read them for each row."""
        kind, loop = vector_type(self.dtype, self.lanes), self.loops[-1]
        name, inside = self.plain.variable(loop.variable), indent + INDENT
        loads = self._shared_loads()
        if not loads:
            return
        for number in range(len(loads)):
            yield f"{indent}{kind} {LOADED}{number}[{self.name}_lanes / lanes_{kind}];"
        yield f"#pragma GCC unroll {self._most_parts()}"
        lanes = f"parts_at_once * lanes_{kind}"
        yield self.plain.opened(loop, indent, f"lanes_{kind}", lanes)
        if loop.variable in self.registers.counted():
            yield f"{inside}const int64_t in_{name} = {self._lane(name)};"
        texts = self.spelling.hold(loads, name)
        registers = f"(rows_at_once + {len(loads)}) * parts_at_once < 4 * HELD / VECTOR / 3"
        for load, text in zip(loads, texts, strict=True):
            yield f"{inside}{self.spelling.held[load]} = {text};"
            yield f"{inside}if ({registers}) IN_REGISTER({self.spelling.held[load]});"
        yield f"{indent}}}"

    def _shared_loads(self) -> list[Load]:
        """The loads of whole vectors that are the same for all rows."""
        rows = {loop.variable for loop in self.loops[:-1]}
        whole = self.lanes == self.program.machine.vector_lanes(self.dtype)
        return [
            load
            for load in self.registers.along
            if whole and load.dtype == self.dtype and len(self.dims) == 2
            if not any(part.looked or rows & part.variables() for part in load.index)
        ][:4]

    def _reads_no_lanes(self) -> bool:
        """Whether all that is read lane by lane was read before the loops over rows and lanes."""
        return self.spelling.held.keys() >= set(self.registers.along)

    def _walked(self) -> set[int]:
        """The variables of loops by which an iteration reads memory: some rows repeat the one before."""
        return variables_of(
            index
            for s in self.registers.body
            for part in scalars_within(s.value)
            if isinstance(part, Load) and part.buffer != self.tile.buffer
            for index in part.index
        )

    def _before_run(self, indent: str) -> Iterator[str]:
        """Add what the run before this one gave to those before it, where the tile will be; the first one starts."""
        value, inside = f"{ACC}[tile_row][part]", indent + INDENT
        again = f"{value} = ({vector_type(self.dtype, self.lanes)}){{0}};"
        for sign, condition in (("=", f"if ({COUNT} == 1)"), ("+=", f"else if ({COUNT} > 1)")):
            yield f"{indent}{condition} {{"
            yield from self._over_part(f"{{ {self._place()} {sign} {value}; {again} }}", inside)
            yield f"{indent}}}"
        yield f"{indent}++{COUNT};"

    def _place(self) -> str:
        """The address of a vector of the part at hand."""
        kind = vector_type(self.dtype, self.lanes)
        name = identifier(self.program.buffers[self.tile.buffer].name)
        row = f"(first_row + tile_row) * {self._stride()}"
        return f"*({kind}u *)&{name}[{row} + {self._lane(f'part * lanes_{kind}')}]"

    def _lane(self, lane: str, first: str = "first_lane + ") -> str:
        """The lane where a vector begins: the last of a row that vectors do not divide ends with the row."""
        at = f"{first}{lane}"
        if not self._overlaps():
            return at
        return f"min_i64({at}, {self.dims[-1]} - lanes_{vector_type(self.dtype, self.lanes)})"

    def _overlaps(self) -> bool:
        """Whether the last two vectors of a row overlap, as none of its length divides the row."""
        return self.dims[-1] % self.lanes != 0

    def _filled(self, fill: Store, indent: str) -> Iterator[str]:
        """Fill a row of the copy before any of it is read, by the first lanes: its source is read in order."""
        kind, loop = vector_type(self.dtype, self.lanes), self.loops[-1]
        name, inside = self.plain.variable(loop.variable), indent + INDENT + INDENT
        yield f"{indent}if (filling && first_lane == 0) {{"
        yield f"#pragma GCC unroll {self._most_parts()}"
        yield self.plain.opened(loop, indent + INDENT, f"lanes_{kind}", str(self.dims[-1]))
        if loop.variable in self.registers.counted():
            yield f"{inside}const int64_t in_{name} = {self._lane(name, '')};"
        target = self.spelling.element(fill.buffer, fill.index)
        yield f"{inside}*({kind}u *)&{target} = {self.spelling.expression(fill.value)};"
        yield f"{indent}{INDENT}}}"
        yield f"{indent}}}"

    def _whole(self, filling: bool = False) -> Iterator[str]:
        """The function of as many rows and lanes as are computed at a time: with no others around, it starts soon."""
        end = "filling" if filling else "whole"
        head = f"static __attribute__((noinline)) void {self.name}_{end}("
        starts = ["int64_t first_row", "int64_t first_lane"]
        yield several_a_line(head, [*starts, *self._parameters(some=True)[0]], ")")
        yield "{"
        rows = f"{self.name}_most" if len(self.dims) == 2 else str(prod(self.dims[:-1]))
        parts = f"{self.name}_lanes / lanes_{vector_type(self.dtype, self.lanes)}"
        arguments = ["first_row", "first_lane", *self._parameters(some=True)[1]]
        arguments = [*self._fills(filling), *arguments]
        yield f"{INDENT}{self.name}_part({', '.join([rows, parts, *arguments])});"
        yield "}"
        yield ""

    def _fills(self, filling: bool = False) -> list[str]:
        """The argument that says whether a part fills the copy that it reads."""
        return [] if self.tile.fill is None else [str(int(filling))]

    def _either(self) -> Iterator[str]:
        """The function that is called: a whole tile of one block is one call where registers hold it."""
        parameters, arguments = self._parameters()
        yield several_a_line(f"static inline void {self.name}(", parameters, ")")
        yield "{"
        words = [
            f"{self.name}_lanes {'>=' if self._overlaps() else '=='} {self.dims[-1]}",
            f"{self.name}_most == {prod(self.dims[:-1])}",
        ]
        words += [f"{self.plain.end(loop)} == 1" for loop in self.tile.blocks]
        for loop, extent in zip(self.ragged, self.dims, strict=True):
            ends = [end.at(loop.variable, extent - 1) for end in loop.within]
            words += [self.plain.conditions([end]) for end in ends]
        fills = f"if (fills) {self.name}_filling" if self.tile.fill is not None else ""
        yield f"{INDENT}if ({' && '.join(words)}) {{"
        first = dict.fromkeys(
            (self.plain.variable(loop.variable) for loop in self.tile.blocks), "0"
        )
        some = ["0", "0", *(first.get(word, word) for word in self._parameters(some=True)[1])]
        if fills:
            yield f"{INDENT}{INDENT}{fills}({', '.join(some)});"
        yield f"{INDENT}{INDENT}{'else ' if fills else ''}{self.name}_whole({', '.join(some)});"
        yield f"{INDENT}}} else {{"
        yield f"{INDENT}{INDENT}{self.name}_any({', '.join(arguments)});"
        yield f"{INDENT}}}"
        yield "}"

    def _all(self) -> Iterator[str]:
        """The function of the tile: block by block, its rows and lanes that are inside, part by part."""
        name = identifier(self.program.buffers[self.tile.buffer].name)
        head = f"static __attribute__((noinline)) void {self.name}_any("
        yield several_a_line(head, self._parameters()[0], ")")
        yield "{"
        rows, lanes = prod(self.dims[:-1]), self.dims[-1]
        some = self.plain.end(self.ragged[0], str(rows)) if len(self.dims) == 2 else str(rows)
        yield f"{INDENT}const int64_t tile_rows = {some};"
        yield f"{INDENT}const int64_t tile_lanes = {self.plain.end(self.ragged[-1])};"
        if not self.tile.blocks:
            yield from self._parts(INDENT, self._parameters(some=True)[1])
            yield "}"
            yield ""
            return
        yield from self._blocks(name, rows, lanes)
        yield "}"
        yield ""

    def _blocks(self, name: str, rows: int, lanes: int) -> Iterator[str]:
        """The results of all blocks, added in the wider type; the first two of them are kept as they are."""
        kind, elements = C_TYPES[self.dtype], rows * lanes
        longest = self.program.machine.vector_bytes()
        last = f"given[{elements} + element]"
        each = f"for (int element = 0; element < {elements}; ++element)"
        trips = map(self.plain.end, self.tile.blocks)
        yield f"{INDENT}const int64_t blocks = {' * '.join(trips)};"
        yield f"{INDENT}int64_t block = 0;"
        yield f"{INDENT}{kind} given[{2 * elements}] __attribute__((aligned({longest})));"
        yield f"{INDENT}double sums[{elements}] __attribute__((aligned({longest})));"
        if self.tile.target is not None:
            yield f"{INDENT}const int64_t step = blocks == 1 ? stride : {lanes};"
        partial = f"tile_rows < {rows} || tile_lanes < {lanes}"
        yield f"{INDENT}if (blocks < 1 || (blocks > 1 && ({partial})))"
        yield f"{INDENT}{INDENT}{each} sums[element] = given[element] = {last} = 0;"
        indent = INDENT
        for loop in self.tile.blocks:
            yield self.plain.opened(loop, indent, end=end_of_block(self.tile, loop, self.plain))
            indent += INDENT
        first = f"blocks == 1 ? {name} : given"
        yield f"{indent}{kind} *const filled = block > 0 ? given + {elements} : {first};"
        places = {name: "filled", "stride": "step"}
        arguments = [places.get(word, word) for word in self._parameters(some=True)[1]]
        yield from self._parts(indent, arguments)
        yield f"{indent}if (blocks == 1) return;"
        yield f"{indent}if (block == 1 && blocks > 2)"
        yield f"{indent}{INDENT}{each} sums[element] = (double)given[element] + {last};"
        yield f"{indent}else if (block > 1 && block < blocks - 1)"
        yield f"{indent}{INDENT}{each} sums[element] += {last};"
        yield f"{indent}++block;"
        while len(indent) > len(INDENT):
            indent = indent[: -len(INDENT)]
            yield f"{indent}}}"
        yield f"{INDENT}if (blocks == 2) {{"
        yield from self._sum(name, kind, "(double)given[element]", INDENT + INDENT)
        yield f"{INDENT}}} else {{"
        yield from self._sum(name, kind, "sums[element]", INDENT + INDENT)
        yield f"{INDENT}}}"

    def _sum(self, name: str, kind: str, before: str, indent: str) -> Iterator[str]:
        """The tile from the sums of all blocks ``before`` the last, and what that one gives."""
        rows, lanes = prod(self.dims[:-1]), self.dims[-1]
        inside = indent + INDENT
        yield f"{indent}for (int tile_row = 0; tile_row < {rows}; ++tile_row) {{"
        yield f"{inside}for (int lane = 0; lane < {lanes}; ++lane) {{"
        yield f"{inside}{INDENT}const int element = tile_row * {lanes} + lane;"
        total = f"({kind})({before} + given[{rows * lanes} + element])"
        yield f"{inside}{INDENT}{name}[tile_row * {self._stride()} + lane] = {total};"
        yield f"{inside}}}"
        yield f"{indent}}}"

    def _parts(self, indent: str, arguments: Sequence[str]) -> Iterator[str]:
        """The calls that compute the rows and lanes of a block, with these arguments."""
        kind, deeper = vector_type(self.dtype, self.lanes), indent + INDENT
        inside, given = deeper + INDENT, ", ".join(["row", "lane", *arguments])
        most = f"{self.name}_most" if len(self.dims) == 2 else "tile_rows"
        yield f"{indent}for (int64_t row = 0; row < tile_rows; row += {most}) {{"
        yield f"{deeper}int64_t lane = 0;"
        wide = f"{self.name}_lanes"
        yield f"{deeper}for (; tile_lanes - lane > {wide} / 2; lane += {wide}) {{"
        filled = "".join(f"{word}, " for word in self._fills())
        otherwise = ""
        if self.tile.fill is not None:
            yield f"{inside}if (fills)"
            yield f"{inside}{INDENT}{self.name}_filling({given});"
            otherwise = "else "
        if len(self.dims) == 2:
            less = "0"
            for height in (f"{self.name}_few", f"{self.name}_some"):
                known = "".join(f"({word}) && " for word in self._left(0, most, less, height))
                yield f"{inside}{otherwise}if ({known}tile_rows - row <= {height})"
                part = f"{self.name}_part({height}, {wide} / lanes_{kind}, {filled}{given});"
                yield f"{inside}{INDENT}{part}"
                otherwise, less = "else ", height
        if otherwise:
            yield f"{inside}else"
        yield f"{inside}{INDENT}{self.name}_whole({given});"
        yield f"{deeper}}}"
        for word in self._left(-1, wide, "0", f"{wide} / 2"):
            yield f"{deeper}if ({word})"
            deeper = inside
        yield f"{deeper}for (; lane < tile_lanes; lane += lanes_{kind})"
        rows = f"{self.name}_most" if len(self.dims) == 2 else str(prod(self.dims[:-1]))
        yield f"{deeper}{INDENT}{self.name}_part({rows}, 1, {filled}{given});"
        yield f"{indent}}}"

    def _left(self, dimension: int, step: str, more: str, most: str) -> list[str]:
        """The constant condition that steps along a dimension leave so much over; none where no length is known.

        A compiler leaves out what computes such a part where the condition does not hold.
        """
        lengths = self._lengths(dimension)
        words = [f"LEAVES({length}, {step}, {more}, {most})" for length in lengths]
        return [" || ".join(words)] if words else []

    def _lengths(self, dimension: int) -> list[int]:
        """The numbers of rows or lanes that a block may have; none where they are not known."""
        extent, loop = self.dims[dimension], self.ragged[dimension]
        lengths = {extent}
        for end in loop.within:
            whole = None if end.size is None else self.program.sizes[end.size].fixed
            start = end.index.without((loop.variable,))
            if whole is None or not start.is_multiple(extent):
                return []
            lengths |= {whole % extent} - {0}
            lengths -= {extent} if whole < extent else set()
        return sorted(lengths)

    def _most_parts(self) -> int:
        """Vectors of a row where they are shortest."""
        return -(-self.dims[-1] // self.program.machine.least_vector_lanes(self.dtype))

    def _over_part(self, statement: str, indent: str = INDENT) -> Iterator[str]:
        """A statement for every vector of the rows at hand."""
        yield f"#pragma GCC unroll {prod(self.dims[:-1])}"
        yield f"{indent}for (int tile_row = 0; tile_row < rows_at_once; ++tile_row) {{"
        yield f"#pragma GCC unroll {self._most_parts()}"
        yield f"{indent}{INDENT}for (int part = 0; part < parts_at_once; ++part) {statement}"
        yield f"{indent}}}"

"""Register tiles in C: a function per tile, its elements in vector types, which GCC and Clang keep in registers.

    static void NAME_k0_tile(int64_t n_k, const float *restrict a, ..., int64_t i, float *restrict tile)

One text for every vector unit: macros of the compiler say how long its vectors are, and how many rows its registers
hold at a time. Sums of products are contracted here (``fma``), and nowhere else: a product that feeds only a sum loses
no digit by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ilang.codegen.targets.braces import braced, filled
from ilang.codegen.targets.c_entry import FORMULAS, several_a_line
from ilang.codegen.targets.c_micro_kernel import MicroKernel, TileFunction
from ilang.codegen.targets.cfamily import (
    C_TYPES,
    INDENT,
    Spelling,
    deferred_name,
    end_of,
    product,
    stored_name,
)
from ilang.core.ir.cpu import Tile
from ilang.core.ir.kernel import For, Kernel, Program

COMMENT = {
    "_micro": "the micro-kernel: rows of vectors, whose sums stay in registers",
    "_full": "one of as many rows and vectors as registers hold",
    "_packing": "the same; packs what it reads, for the tiles after it",
    "_loop": "a tile of any extents, one micro-kernel after the other",
    "_lanes, _vectors": "of a row, at a time",
    "_most, _some, _few": "rows at a time, by how many are left",
}
"""The meanings of the endings of names, in the comment above the functions of a tile."""
TILE_ENDINGS = ("", *", ".join(COMMENT).split(", "))
"""Endings of the names of a tile's functions and constants."""


def end_of_block(tile: Tile, loop: For, spelling: Spelling) -> str:
    """The end of a loop over blocks of a tile where that is not its size, as C text; "" where it is.

    Of the outermost loop it is 0 if a loop inside has no iterations: there is nothing to add then.
    """
    first, *inner = tile.blocks
    tests = [
        f"{spelling.size(each.size)} > 0"
        for each in inner
        if not spelling.program.sizes[each.size].fixed
    ]
    if loop is not first or not tests:
        return ""
    return f"({' && '.join(tests)} ? {spelling.size(loop.size)} : 0)"


class TileText(TileFunction):
    """The functions of one tile that registers hold, and the calls of them."""

    def __init__(self, program: Program, kernel: Kernel, tile: Tile, spelling: Spelling) -> None:
        """For a tile of a kernel, whose names ``spelling`` has."""
        super().__init__(program, kernel, tile, spelling)
        self.micro_kernel = MicroKernel(program, kernel, tile, spelling)

    # -- the call ------------------------------------------------------------------------------------------------------

    def condition(self) -> str:
        """The condition in which the function may run; "" for always."""
        return self.plain.conditions(self.tile.guards)

    def call(self) -> str:
        """The call of the function; a tile that is ``stored`` by it goes where it belongs."""
        parameters, arguments = self.parameters()
        if self.tile.fill is not None:
            firsts = (f"{self.plain.variable(v)} == 0" for v in self.tile.first)
            words = [deferred_name(self.program, self.tile.fill.buffer), *firsts]
            arguments[parameters.index("int packs")] = " && ".join(words)
        if self.tile.target is not None:
            stored, into = self.stored_name(), self.tile.target
            place = f"{stored} ? &{self.plain.element(into.buffer, into.first)} : {self.elements}"
            arguments[parameters.index(f"{C_TYPES[self.dtype]} *restrict {self.elements}")] = place
            if self.has_stride():
                stride = into.stride.text(self.plain.size, FORMULAS)
                arguments[-1] = f"{stored} ? {stride} : {self.extents[-1]}"
        return filled(f"{self.name}(", arguments, ");")

    def stored_name(self) -> str:
        """The name of what says that the function stores the tile where it belongs."""
        return stored_name(self.program, self.tile.buffer)

    def stored(self) -> str:
        """The condition in which the function stores the tile where it belongs."""
        into = self.tile.target
        assert into is not None
        within = self.plain.conditions([*dict.fromkeys((*into.within, *self.tile.guards))])
        return f"HAS_VECTORS && {within}" if within else "HAS_VECTORS"

    # -- the functions -------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """All functions: of some rows and lanes in registers, of a whole tile, of any, and the one that is called."""
        yield "/*"
        yield f" * {self.name}: a tile in registers"
        absent = {
            "_packing": self.tile.fill is None,
            "_loop": self._is_whole(),
            "_most, _some, _few": not self.is_matrix(),
        }
        for ending, text in COMMENT.items():
            if not absent.get(ending, False):
                yield f" * {ending}: {text}"
        yield " */"
        if self.tile.contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT ON"
            yield "#else"
            yield "#pragma GCC push_options"
            # Regions of their own make GCC keep the vectors that all rows use in memory, for some processors.
            yield '#pragma GCC optimize ("fp-contract=fast", "ira-region=one")'
            yield "#endif"
        yield from self._at_once()
        yield from self.micro_kernel.lines()
        yield from self._full()
        if self.tile.fill is not None:
            yield from self._full(packing=True)
        if not self._is_whole():
            yield from self._loop()
        yield from self._called()
        if self.tile.contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT OFF"
            yield "#else"
            yield "#pragma GCC pop_options"
            yield "#endif"
        yield ""

    def without_vectors(self, body: Sequence[str]) -> Iterator[str]:
        """The function in the text for a compiler without vectors, which does all element by element."""
        parameters, names = self.parameters()
        yield several_a_line(f"static void {self.name}(", parameters, ")")
        words = {word for line in body for word in re.findall(r"\w+", line)}
        unread = (f"(void){name};" for name in names if name not in words)
        yield from braced("", (*unread, *body))
        yield ""

    def _at_once(self) -> Iterator[str]:
        """The numbers of rows and lanes that are computed at a time, as constants."""

        def constants(words: Sequence[str], numbers: Sequence[int]) -> str:
            values = zip(words, numbers, strict=True)
            return f"enum {{ {', '.join(f'{self.name}_{word} = {n}' for word, n in values)} }};"

        blocks = self.tile.micro_tiles
        rows = [constants(("most", "some", "few"), each.rows) for each in blocks]
        is_same = len({*rows}) == 1
        if self.is_matrix() and is_same:
            yield rows[0]
        for number, block in enumerate(blocks):
            yield ("#if HELD >= {0}", "#elif HELD >= {0}", "#else")[number].format(block.held)
            yield constants(("lanes",), (block.lanes,))
            if self.is_matrix() and not is_same:
                yield rows[number]
        yield "#endif"
        yield f"enum {{ {self.name}_vectors = {self.name}_lanes / lanes_{self.kind} }};"

    def _full(self, packing: bool = False) -> Iterator[str]:
        """The function of as many rows and lanes as are computed at a time: with no others around, it starts soon."""
        parameters, arguments = self.parameters(some=True)
        end = "packing" if packing else "full"
        head = f"static __attribute__((noinline)) void {self.name}_{end}("
        place = [*self.of_rows("int64_t first_row"), "int64_t first_lane"]
        yield several_a_line(head, [*place, *parameters], ")")
        words = [
            *self.of_rows(self.rows()),
            f"{self.name}_vectors",
            *self._packs(packing),
            *self._all_rows(not packing),
        ]
        words += [*self.of_rows("first_row"), "first_lane", *arguments]
        yield from braced("", [f"{self.name}_micro({', '.join(words)});"])
        yield ""

    def _all_rows(self, are_there: bool = False) -> list[str]:
        """The argument that says whether all rows of a micro-kernel are there."""
        return [str(int(are_there))] if self.micro_kernel.repeats() else []

    def _packs(self, packing: bool = False) -> list[str]:
        """The argument that says whether a micro-kernel packs the copy that it reads."""
        return [] if self.tile.fill is None else [str(int(packing))]

    def _called(self) -> Iterator[str]:
        """The function that is called: a whole tile of one block is one call where registers hold it."""
        parameters, arguments = self.parameters()
        yield several_a_line(f"static inline void {self.name}(", parameters, ")")
        words = [f"{self.name}_lanes {'>=' if self.overlaps() else '=='} {self.dims[-1]}"]
        words += self.of_rows(f"{self.name}_most == {self.dims[0]}")
        words += [f"{end_of(self.plain, loop)} == 1" for loop in self.tile.blocks]
        for loop, extent in zip(self.ragged, self.dims, strict=True):
            words += [self.plain.conditions([end]) for end in loop.reaches(extent - 1)]
        first = {self.plain.variable(loop.variable): "0" for loop in self.tile.blocks}
        some = (first.get(word, word) for word in self.parameters(some=True)[1])
        given = ", ".join((*self.of_rows("0"), "0", *some))
        packing = [f"if (packs) {self.name}_packing({given});"] if self.tile.fill else []
        whole = (*packing, f"{'else ' if packing else ''}{self.name}_full({given});")
        yield "{"
        if self._is_whole():
            yield from whole
        else:
            yield f"if ({' && '.join(words)}) {{"
            yield from whole
            yield "} else {"
            yield f"{self.name}_loop({', '.join(arguments)});"
            yield "}"
        yield "}"

    def _is_whole(self) -> bool:
        """Whether all of the tile is computed at a time, whatever vectors and extents are."""
        last, is_wide = self.dims[-1], self.overlaps()
        ragged = any(loop.within for loop in self.ragged)
        return not (self.tile.blocks or ragged or self.is_matrix()) and all(
            last <= each.lanes if is_wide else last == each.lanes for each in self.tile.micro_tiles
        )

    def _loop(self) -> Iterator[str]:
        """The function of the tile: block by block, its rows and lanes that are inside, one part after the other."""
        head = f"static __attribute__((noinline)) void {self.name}_loop("
        yield several_a_line(head, self.parameters()[0], ")")
        rows = self.of_rows(f"const int64_t tile_rows = {end_of(self.plain, self.ragged[0])};")
        counts = (*rows, f"const int64_t tile_lanes = {end_of(self.plain, self.ragged[-1])};")
        body = self._blocks() if self.tile.blocks else self._parts(self.parameters(some=True)[1])
        yield from braced("", (*counts, *body))
        yield ""

    def _blocks(self) -> Iterator[str]:
        """The results of all blocks, added in the wider type."""
        lanes, kind = self.extents[-1], C_TYPES[self.dtype]
        rows, elements = product(self.extents[:-1]), product(self.extents)
        longest = self.program.machine.vector_bytes()
        each = f"for (int element = 0; element < {elements}; ++element)"
        trips = (end_of(self.plain, loop) for loop in self.tile.blocks)
        yield f"const int64_t blocks = {' * '.join(trips)};"
        yield "int64_t block = 0;"
        yield f"{kind} given[{elements}] __attribute__((aligned({longest})));"
        yield f"double sums[{elements}] __attribute__((aligned({longest})));"
        yield f"{kind} *const filled = blocks == 1 ? {self.elements} : given;"
        if self.has_stride():
            yield f"const int64_t step = blocks == 1 ? stride : {lanes};"
        partial = " || ".join((*self.of_rows(f"tile_rows < {rows}"), f"tile_lanes < {lanes}"))
        yield f"if (blocks < 1 || (blocks > 1 && ({partial})))"
        yield f"{INDENT}{each} sums[element] = given[element] = 0;"
        for loop in self.tile.blocks:
            yield self.plain.opened(loop, end=end_of_block(self.tile, loop, self.plain)) + " {"
        places = {self.elements: "filled", "stride": "step"}
        yield from self._parts([places.get(w, w) for w in self.parameters(some=True)[1]])
        yield "if (blocks == 1) return;"
        yield "if (++block < blocks)"
        before = "block > 1 ? sums[element] : 0"
        yield f"{INDENT}{each} sums[element] = ({before}) + (double)given[element];"
        yield from ["}"] * len(self.tile.blocks)
        total = f"({kind})(sums[element] + (double)given[element])"
        element = (
            f"const int element = tile_row * {lanes} + lane;",
            f"{self.elements}[tile_row * {self.stride()} + lane] = {total};",
        )
        row = braced(f"for (int lane = 0; lane < {lanes}; ++lane)", element)
        yield from braced(f"for (int tile_row = 0; tile_row < {rows}; ++tile_row)", row)

    def _parts(self, arguments: Sequence[str]) -> Iterator[str]:
        """The calls that compute the rows and lanes of a block, with these arguments."""
        wide = f"{self.name}_lanes"
        given = ", ".join([*self.of_rows("row"), "lane", *arguments])
        rows = self.of_rows(self.rows())
        one_vector = ", ".join([*rows, "1", *self._packs(), *self._all_rows(), given])
        row = [
            "int64_t lane = 0;",
            *braced(
                f"for (; tile_lanes - lane > {wide} / 2; lane += {wide})",
                self._choices(self.rows(), wide, given),
            ),
        ]
        narrow = self._left(
            -1, [(each.lanes, 0, each.lanes // 2) for each in self.tile.micro_tiles]
        )
        if narrow is not False:
            row += [] if narrow else [f"if ({self._leaves(-1, wide, '0', f'{wide} / 2')})"]
            inner = "" if narrow else INDENT
            row.append(f"{inner}for (; lane < tile_lanes; lane += lanes_{self.kind})")
            row.append(f"{inner}{INDENT}{self.name}_micro({one_vector});")
        if not self.is_matrix():
            yield from row
            return
        yield from braced(f"for (int64_t row = 0; row < tile_rows; row += {self.rows()})", row)

    def _choices(self, most: str, wide: str, given: str) -> Iterator[str]:
        """The call for as many lanes as are computed at a time: of all rows, or of few where few are left."""
        otherwise = ""
        if self.tile.fill is not None:
            yield "if (packs)"
            yield f"{INDENT}{self.name}_packing({given});"
            otherwise = "else "
        if self.is_matrix():
            less = "0"
            heights = [f"{self.name}_few", f"{self.name}_some"]
            heights += [f"{self.name}_most"] if self.micro_kernel.repeats() else []
            for number, height in enumerate(heights):
                end = f"{height} - 1" if height in heights[2:] else height
                rows = [(0, *each.rows[::-1]) for each in self.tile.micro_tiles]
                ranges = [(each[3], each[number], each[number + 1] - number // 2) for each in rows]
                known = self._left(0, ranges)
                if known is not False:
                    word = "" if known else f"({self._leaves(0, most, less, end)}) && "
                    yield f"{otherwise}if ({word}tile_rows - row <= {end})"
                    words = (
                        height,
                        f"{self.name}_vectors",
                        *self._packs(),
                        *self._all_rows(),
                        given,
                    )
                    yield f"{INDENT}{self.name}_micro({', '.join(words)});"
                    otherwise = "else "
                less = height
        if otherwise:
            yield "else"
        yield f"{INDENT}{self.name}_full({given});"

    def _left(self, dimension: int, ranges: Sequence[tuple[int, int, int]]) -> bool | None:
        """Whether steps along a dimension may leave more than one number over, and at most another; None: for some.

        The ``ranges`` are the step and both numbers for each length of vectors.
        """
        lengths = self._lengths(dimension)
        if not lengths:
            return True
        known = {any(a < n % step <= b for n in lengths) for step, a, b in ranges}
        return known.pop() if len(known) == 1 else None

    def _leaves(self, dimension: int, step: str, more: str, most: str) -> str:
        """The constant condition for that, by which a compiler leaves out what computes such a part."""
        lengths = self._lengths(dimension)
        return " || ".join(f"LEAVES({length}, {step}, {more}, {most})" for length in lengths)

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

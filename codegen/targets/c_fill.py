"""Let the first tile that reads a packed copy fill it: what it reads is in registers anyway.

Example:
    in:   for k: for j': c[k,j'] = in0[k,64j+j']      out:  the same where threads share tiles, or lanes are missing;
          for i: tile t of in1[6i+i',k] * c[k,j']           else the tile of i = 0 reads in0 and writes c

A tile reads whole rows of lanes, the same ones in all iterations of the loops between it and the copy; where the index
of the copy has none of their variables, the first of those iterations reads all that the others do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ilang.codegen.targets.c_tile import TileText
from ilang.codegen.targets.cfamily import variables_of
from ilang.core.ir.affine import walks
from ilang.core.ir.kernel import For, If, Kernel, Program, Statement, Store, Tile, statements_within
from ilang.core.ir.scalar import Load
from ilang.core.passes.rewriting import parts_of, walked_index
from ilang.core.passes.transposing import step_of
from ilang.core.record import replace


def fill_by_tiles(program: Program) -> Program:
    """The program with tiles that fill copies."""
    kernels = tuple(_Filling(program, kernel).run() for kernel in program.kernels)
    return replace(program, kernels=kernels)


class _Filling:
    """One kernel: its blocks are walked from the outside in."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program = program
        self.kernel = kernel
        stores = (s for s in statements_within(kernel.body) if isinstance(s, Store))
        self.written = Counter(s.buffer for s in stores)
        self.read = Counter(load.buffer for load in _loads(kernel.body))
        self.variables = variables_of(kernel)

    def run(self) -> Kernel:
        """The kernel, its copies marked that a tile may fill."""
        return replace(self.kernel, body=self._block(self.kernel.body, frozenset()))

    def _block(self, body: Sequence[Statement], opened: frozenset[int]) -> tuple[Statement, ...]:
        filled: dict[int, Tile] = {}  # by the identity of the tile as it was
        late: set[int] = set()
        readers: Readers | None = None
        for n, s in enumerate(body):
            copied = _copied(s)
            if copied is None or not isinstance(s, For):
                continue
            readers = _tile_readers(body) if readers is None else readers
            for at, loops, tile in readers.get(copied.buffer, ()):
                made = None
                if n < at and id(tile) not in filled:
                    made = self._filled(copied, loops, tile, opened)
                if made is not None:
                    filled[id(tile)] = made
                    late.add(n)
                    break
        out = [_with_tiles(s, filled) if filled else s for s in body]
        for n in late:
            out[n] = replace(out[n], late=True)
        for n, s in enumerate(out):
            if isinstance(s, For):
                out[n] = replace(s, body=self._block(s.body, opened | {s.variable}))
            elif isinstance(s, If):
                parts = (self._block(part, opened) for part in (s.body, s.otherwise))
                out[n] = If(s.within, *parts)
        return tuple(out)

    def _filled(
        self, copied: Store, loops: Sequence[For], tile: Tile, opened: frozenset[int]
    ) -> Tile | None:
        """A tile inside loops that fills a copy, if that is possible."""
        text = TileText(self.program, self.kernel, tile, "", variables=self.variables)
        if not text.holds or text.condition():
            return None
        fill = self._fill(copied, tile, opened)
        if fill is None:
            return None
        return replace(tile, fill=fill, first=tuple(x.variable for x in loops))

    def _fill(self, copied: Store, tile: Tile, opened: frozenset[int]) -> Store | None:
        """What a tile stores in a copy while it reads the source of it."""
        source = copied.value
        assert isinstance(source, Load)
        inside = [part for part in _loads((tile,)) if part.buffer == copied.buffer]
        if (
            self.read[copied.buffer] != len(inside)
            or len({part.index for part in _loads(tile.body, copied)}) != 1
        ):
            return None
        if self.written[copied.buffer] != 1 or source.buffer in self.written:
            return None
        chain = _chain(tile)
        count = len(self.program.buffers[tile.buffer].dims)
        lanes = chain[-1].variable
        index = next(_loads(tile.body, copied)).index
        own = {loop.variable for loop in (*tile.blocks, *chain[:-count], chain[-1])} | opened
        if any(v not in own for part in index for _, v in part.terms):
            return None
        instead = {
            part.terms[0][1]: at for part, at in zip(copied.index, index, strict=True) if part.terms
        }
        taken = tuple(walked_index(part, instead) for part in source.index)
        for at in (index, taken):
            if not at or step_of(at[-1], lanes) != 1 or any(step_of(x, lanes) for x in at[:-1]):
                return None
        return Store(copied.buffer, index, replace(source, index=taken))


def _copied(s: Statement) -> Store | None:
    """What loops copy that do nothing else, each along a dimension of a private buffer."""
    variables = []
    while isinstance(s, For) and len(s.body) == 1 and s.stretch is None and s.lanes == 1:
        variables.append(s.variable)
        s = s.body[0]
    if not isinstance(s, Store) or not isinstance(s.value, Load) or s.value.dtype == "bool":
        return None
    return s if [walks(v) for v in variables] == list(s.index) else None


Readers = dict[int, list[tuple[int, tuple[For, ...], Tile]]]
"""Where in a block a tile reads each buffer: which statement, the loops around the first tile in it, the tile."""


def _tile_readers(body: Sequence[Statement]) -> Readers:
    """The tiles inside plain loops of a block, and nothing but loops."""
    found: Readers = {}
    for n, s in enumerate(body):
        here: dict[int, tuple[int, tuple[For, ...], Tile]] = {}
        stack: list[tuple[Statement, tuple[For, ...]]] = [(s, ())]
        while stack:
            inner, around = stack.pop()
            if isinstance(inner, Tile) and around:
                for load in _loads(inner.body):
                    here.setdefault(load.buffer, (n, around, inner))
            elif isinstance(inner, For) and inner.stretch is None and inner.lanes == 1:
                stack += [(below, (*around, inner)) for below in reversed(inner.body)]
        for buffer, reader in here.items():
            found.setdefault(buffer, []).append(reader)
    return found


def _with_tiles(s: Statement, filled: Mapping[int, Tile]) -> Statement:
    """A statement with other tiles in its loops."""
    if isinstance(s, Tile):
        return filled.get(id(s), s)
    if not isinstance(s, For):
        return s
    body = tuple(_with_tiles(inner, filled) for inner in s.body)
    same = all(old is new for old, new in zip(s.body, body, strict=True))
    return s if same else replace(s, body=body)


def _chain(tile: Tile) -> list[For]:
    """The loops of a tile, outermost first."""
    chain: list[For] = []
    body = tile.body
    while len(body) == 1 and isinstance(body[0], For):
        chain.append(body[0])
        body = body[0].body
    return chain


def _loads(body: Sequence[Statement], copied: Store | None = None) -> Iterator[Load]:
    """What statements read, or of that what is copied."""
    for s in statements_within(body):
        for part in parts_of(s):
            if isinstance(part, Load) and (copied is None or part.buffer == copied.buffer):
                yield part

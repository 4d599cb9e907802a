"""Elements that move together, as CUDA text: vectors are read before they are used, and stored after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets import c_scalar
from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.cfamily import Held, Spelling, affine, linear
from ilang.codegen.targets.constants import grouped
from ilang.codegen.targets.identifiers import identifier
from ilang.core.calculus.affine import Affine, divided
from ilang.core.dtype import BYTES
from ilang.core.ir.gpu import VectorAccess
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import Change, Define, For, Statement, Store
from ilang.core.ir.rewriting import parts_of, substituted
from ilang.core.ir.scalar import Apply, Load, Scalar

VECTORS = {
    "f32": "float", "f64": "double", "i32": "int", "i64": "longlong", "bool": "uchar",
    "bf16": "ushort",
}  # fmt: skip
"""The names in CUDA of vectors of elements, less their number."""
LANES = "xyzw"
"""The names in CUDA of the elements of a vector."""


def vector(
    spelling: Spelling, number: int, index: Sequence[Affine], count: int, const: str = ""
) -> str:
    """A vector of an array, by its number: one that nvcc knows by its first element, it takes apart.

    Where rows are known to be whole vectors, the index counts vectors: nvcc does not divide a sum of multiples, and
    keeps the quotients of a loop in registers.
    """
    program = spelling.program
    buffer, last = program.buffers[number], index[-1]
    row = program.sizes[buffer.dims[-1]].fixed if 1 < len(index) else 0
    if row is not None and row % count == 0 and _is_multiple(last, count):
        *extents, of_row = spelling.dimensions(number)
        of_row = str(row // count) if of_row.isdigit() else f"({grouped(of_row)} / {count})"
        steps = spelling.constants.of_vectors(count)
        vectors = affine(divided(last, count), spelling.variable, spelling.size, None, steps)
        position = linear([*extents, of_row], [*map(spelling.index, index[:-1]), vectors])
    else:
        position = spelling.position(number, index)
        position = f"{f'({position})' if ' ' in position else position} / {count}"
    return f"(({const}{_kind(spelling, number, count)} *){identifier(buffer.name)})[{position}]"


def _is_multiple(part: Affine, count: int) -> bool:
    """Whether all of an index is a multiple of a number, whatever its variables are."""
    return not (part.sizes or part.looked) and part.is_multiple(count)


def contracted(s: Change | Store, spelling: Spelling) -> str:
    """A product and a sum that are rounded once."""
    value = s.value
    assert isinstance(value, Apply)
    old, product = value.arguments
    assert isinstance(product, Apply)
    words = [spelling.expression(part) for part in (*product.arguments, old)]
    return f"{'fmaf' if value.dtype == 'f32' else 'fma'}({', '.join(words)})"


def unrolled(spelling: Spelling, loop: For, wide: Sequence[BufferId]) -> Iterator[str]:
    """The iterations of a loop, each an element of vectors of some buffers."""
    lanes = range(spelling.program.sizes[loop.size].fixed or 0)
    return _vector_iterations(
        spelling, wide, loop.variable, [Affine((), lane) for lane in lanes], loop.body
    )


def _kind(spelling: Spelling, number: int, count: int) -> str:
    """The type of a vector of an array."""
    return f"{VECTORS[spelling.program.buffers[number].dtype]}{count}"


def condition(spelling: Spelling, vectors: VectorAccess) -> str:
    """The condition in which iterations go several at a time: sizes are multiples, and the first rows begin at one."""
    words = [f"{spelling.size(size)} % {vectors.count} == 0" for size in vectors.whole]
    for number in vectors.moved:
        buffer = spelling.program.buffers[number]
        bytes_ = vectors.count * BYTES[buffer.dtype]
        words.append(f"(size_t){identifier(buffer.name)} % {bytes_} == 0")
    return " && ".join(words)


def together(
    spelling: Spelling, vectors: VectorAccess, variable: VariableId, body: Sequence[Statement]
) -> Iterator[str]:
    """The statements of a worker for a vector, whose elements are those of a block and of the iterations after it."""
    steps = [Affine(((1, variable),), n) for n in range(vectors.count)]
    return _vector_iterations(spelling, vectors.moved, variable, steps, body)


def _vector_iterations(
    spelling: Spelling,
    moved: Sequence[BufferId],
    variable: VariableId,
    steps: Sequence[Affine],
    body: Sequence[Statement],
) -> Iterator[str]:
    """The statements of iterations, each an element of vectors of the buffers that are ``moved``."""
    count = len(steps)
    each = [[substituted(s, {variable: step}) for s in body] for step in steps]
    loads = [[*dict.fromkeys(_loads(block, moved))] for block in each]
    stores = [s for s in each[0] if isinstance(s, Store) and s.buffer in moved]
    for n, load in enumerate(loads[0]):
        kind = _kind(spelling, load.buffer, count)
        place = vector(spelling, load.buffer, load.index, count, "const ")
        yield f"const {kind} loaded_{n} = {place};"
    copied = _copied(spelling, moved, each, loads)
    places = {store.buffer: f"stored_{n}" for n, store in enumerate(stores)}
    for store in stores:
        if store.buffer not in copied:
            yield f"{_kind(spelling, store.buffer, count)} {places[store.buffer]};"
    for lane, block, lanes in zip(LANES, each, loads, strict=False):
        words: dict[Scalar, str] = {
            load: _element_text(spelling, load, f"loaded_{n}.{lane}")
            for n, load in enumerate(lanes)
        }
        body = [s for s in block if not (isinstance(s, Store) and s.buffer in copied)]
        lines = _lane_lines(Held(spelling, words), body, places, lane)
        scoped = any(isinstance(s, Define) for s in block)  # variables of an element are its own
        yield from braced("", lines) if scoped else lines
    for store in stores:
        place = vector(spelling, store.buffer, store.index, count)
        yield f"{place} = {copied.get(store.buffer, places[store.buffer])};"


def _copied(
    spelling: Spelling,
    moved: Sequence[BufferId],
    each: Sequence[Sequence[Statement]],
    loads: Sequence[Sequence[Load]],
) -> dict[BufferId, str]:
    """The buffers whose vectors are stored as they were loaded, each with what holds the vector."""
    kinds, copied = spelling.program.buffers, dict[BufferId, str]()
    for at, s in enumerate(each[0]):
        if not isinstance(s, Store) or s.buffer not in moved or s.value not in loads[0]:
            continue
        number = loads[0].index(s.value)
        others = zip(each, loads, strict=True)
        is_whole = all(
            getattr(block[at], "value", None) == lanes[number] for block, lanes in others
        )
        dtype = kinds[s.buffer].dtype
        if is_whole and dtype == kinds[loads[0][number].buffer].dtype != "bool":
            copied[s.buffer] = f"loaded_{number}"
    return copied


def _lane_lines(
    spelling: Spelling, body: Sequence[Statement], places: dict[BufferId, str], lane: str
) -> Iterator[str]:
    for s in body:
        if isinstance(s, Store) and s.buffer in places:
            value = contracted(s, spelling) if s.contracts else spelling.value(s.value)
            yield f"{places[s.buffer]}.{lane} = {value};"
        elif isinstance(s, Change) and s.contracts:
            yield f"{spelling.local(s.variable)} = {contracted(s, spelling)};"
        else:
            assert isinstance(s, (Define, Change, Store))
            yield from c_scalar.lines(s, spelling)


def _loads(body: Sequence[Statement], moved: Sequence[int]) -> Iterator[Load]:
    """The elements of vectors that statements read, in order."""
    for s in body:
        yield from (p for p in parts_of(s) if isinstance(p, Load) and p.buffer in moved)


def _element_text(spelling: Spelling, load: Load, text: str) -> str:
    """An element of a vector as an expression: a bool of a caller is whatever is not 0."""
    given = spelling.program.memory(load.buffer).role in ("input", "inout")
    return f"{text} != 0" if load.dtype == "bool" and given else text

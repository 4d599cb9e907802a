"""Statements of kernels, read and rewritten: their scalars, and other indices for their loop variables."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard, TypeVar

from ilang.core.calculus.affine import Affine, Within, lookups
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.gpu import MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.scalar import Constant, Load, Local, Position, Scalar, Select, scalars_within
from ilang.core.record import mapped, once, replace

T = TypeVar("T")
Access = tuple[BufferId, tuple[Affine, ...]]
"""A buffer, and the index of an element of it."""
Substitution = Mapping[VariableId, Affine]
"""The index for each loop variable that is replaced."""


def with_indices(body: ir.Block, index_of: Callable[[Access], tuple[Affine, ...]]) -> ir.Block:
    """A block in which each element that is loaded or stored has another index."""

    def loaded(load: Load) -> Load:
        return replace(load, index=index_of((load.buffer, load.index)))

    def change(s: ir.Statement) -> ir.Statement:
        match s:
            case ir.Store():
                index = index_of((s.buffer, s.index))
                return replace(s, index=index, value=replaced_loads(s.value, loaded))
            case ir.Define() | ir.Change():
                return replace(s, value=replaced_loads(s.value, loaded))
            case _:
                return s

    return ir.map_statements(body, change)


def with_bodies(program: ir.Program, change: Callable[[ir.Kernel], ir.Block]) -> ir.Program:
    """The program with other bodies of its kernels; the program itself where all of them stay what they are."""
    kernels = [with_body(kernel, change(kernel)) for kernel in program.kernels]
    if all(a is b for a, b in zip(kernels, program.kernels, strict=True)):
        return program
    return replace(program, kernels=tuple(kernels))


def with_body(kernel: ir.Kernel, body: ir.Block) -> ir.Kernel:
    """A kernel with another body; the kernel itself where that stays what it is."""
    return kernel if body is kernel.body else replace(kernel, body=body)


def unless_same(block: ir.Block, out: Sequence[ir.Statement]) -> ir.Block:
    """Statements as a block: the block that they are made of where each of them is the same statement as there."""
    same = len(out) == len(block) and all(a is b for a, b in zip(block, out, strict=True))
    return block if same else tuple(out)


def chain_of(body: ir.Block) -> tuple[list[ir.For], ir.Block]:
    """The loops of a block that holds nothing else, each right inside the one before, and what is inside of all."""
    chain: list[ir.For] = []
    while len(body) == 1 and isinstance(body[0], ir.For):
        chain.append(body[0])
        body = body[0].body
    return chain, body


def loops_of(s: ir.Statement) -> tuple[ir.For, ...]:
    """The loops that a statement opens: itself, or those that threads share."""
    return (s,) if isinstance(s, ir.For) else s.loops if isinstance(s, ThreadLoop) else ()


def nested(loops: Sequence[ir.For], body: ir.Block) -> ir.Block:
    """A block inside of loops, outermost first, each right inside the one before, whatever they did."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def parts_of(s: ir.Statement) -> Iterator[Scalar]:
    """Every scalar of a statement itself, not of the statements in it."""
    if isinstance(s, (ir.Define, ir.Change, ir.Store)):
        yield from scalars_within(s.value)
    elif isinstance(s, Tile):
        yield from scalars_within(s.start)
    elif isinstance(s, MatrixProduct):
        for each in (*s.sums, *s.left, *s.right):
            yield from scalars_within(each)


def guards(body: Iterable[ir.Statement]) -> Iterator[tuple[Within, ...]]:
    """The conditions under which statements read, or are done at all; all those of one hold where it is."""
    for s in body:
        if isinstance(s, ir.For):
            yield from guards(s.body)
        elif isinstance(s, ir.If) and s.stored is None:
            if not s.otherwise and not any(isinstance(inner, ir.For) for inner in s.body):
                yield s.within
                yield from guards(s.body)
        elif isinstance(s, (ir.Define, ir.Change, ir.Store)):
            yield from (part.within for part in scalars_within(s.value) if is_guarded_load(part))


def is_guarded_load(scalar: Scalar) -> TypeGuard[Select]:
    """Whether a scalar is a read, or else a constant."""
    return (
        isinstance(scalar, Select)
        and isinstance(scalar.then, Load)
        and isinstance(scalar.otherwise, Constant)
    )


def is_guarded(body: Sequence[ir.Statement]) -> bool:
    """Whether statements of a block, not those of loops in it, read or count under a condition."""
    return any(True for _ in guards(s for s in body if not isinstance(s, ir.For)))


def chosen_loads(s: ir.Statement) -> Iterator[Load]:
    """The elements that a statement itself reads where conditions hold only."""
    for each in parts_of(s):
        if isinstance(each, Select):
            yield from (part for part in scalars_within(each) if isinstance(part, Load))


def strides(dims: Sequence[int], index: Sequence[Affine]) -> set[int]:
    """The sizes that the position of an element rests on: none before the first index that is not always 0."""
    first = next((d for d, part in enumerate(index) if part.constant() != 0), len(dims))
    return set(dims[first + 1 :])


def reads_of(s: ir.Statement) -> Sequence[Access]:
    """Every element that a statement itself reads, those that its indices look up among them."""
    if isinstance(s, (ir.Define, ir.Change, ir.Store, ir.If)):
        return kept_reads(s)  # most are asked again after each pass
    return () if isinstance(s, ir.For) else tuple(_listed(s))


@once
def kept_reads(s: ir.Define | ir.Change | ir.Store | ir.If) -> Sequence[Access]:
    """The elements that a statement reads, which it keeps."""
    return tuple(_listed(s))


def _listed(s: ir.Statement) -> Iterator[Access]:
    indices: list[Affine] = list(s.index) if isinstance(s, ir.Store) else []
    indices += [each.index for each in s.within] if isinstance(s, ir.If) else []
    for part in parts_of(s):
        if isinstance(part, Load):
            yield part.buffer, part.index
            indices += part.index
        elif isinstance(part, Position):
            indices.append(part.index)
        elif isinstance(part, Select):
            indices += [each.index for each in part.within]
    yield from ((BufferId(each.source), each.index) for each in lookups(indices))


def accesses(body: Sequence[ir.Statement]) -> Iterator[Access]:
    """Every element that a block reads or writes."""
    for s in ir.statements_within(body):
        yield from reads_of(s)
        if isinstance(s, ir.Store):
            yield s.buffer, s.index


def named(body: Sequence[ir.Statement]) -> set[BufferId]:
    """The buffers that a block mentions: those that it reads or writes, and those that it swaps."""
    return {n for n, _ in accesses(body)} | {
        n for s in ir.every(body, SwapBuffers) for n in (s.first, s.second)
    }


def substituted(value: T, substitution: Substitution) -> T:
    """A statement, or what one is made of, with other indices for some of the loop variables around it."""
    return mapped(value, Affine, lambda index: index.substituted(substitution))


def vector_stores(program: ir.Program, loop: ir.For) -> tuple[ir.Store, ...]:
    """The stores of all iterations of a loop over the elements of vectors, in order."""
    (store,) = loop.body
    assert isinstance(store, ir.Store)
    lanes = range(program.sizes[loop.size].fixed or 0)
    return tuple(substituted(store, {loop.variable: Affine((), lane)}) for lane in lanes)


def is_invariant(scalar: Scalar, variable: int, defined: Container[int]) -> bool:
    """Whether a leaf is the same in all iterations of the loop over a variable, which defines ``defined``."""
    match scalar:
        case Constant():
            return True
        case Local():
            return scalar.variable not in defined
        case Load():
            return all(variable not in part.axes() for part in scalar.index)
        case _:
            return False


def replaced_loads(value: T, change: Callable[[Load], Load]) -> T:
    """A scalar, or what has one, that reads other elements."""
    return mapped(value, Load, change)

"""Statements of kernels, read and rewritten: their scalars, and other indices for their loop variables."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir.cpu import Fetch, Transpose
from ilang.core.ir.gpu import (
    Barrier,
    CombineThreads,
    MatrixProduct,
    Neighbors,
    Spread,
    SwapBuffers,
    Trim,
)
from ilang.core.ir.kernel import (
    Block,
    Change,
    Define,
    For,
    HorizontalReduction,
    If,
    Kernel,
    Program,
    Rest,
    Statement,
    Store,
    Tile,
    statements_within,
)
from ilang.core.ir.scalar import (
    Apply,
    Constant,
    Convert,
    Load,
    Local,
    Position,
    Scalar,
    Select,
    scalars_within,
)
from ilang.core.record import replace

Access = tuple[int, tuple[Affine, ...]]
"""A buffer, and the index of an element of it."""
Substitution = Mapping[int, Affine]
"""The index for each loop variable that is replaced."""


def with_bodies(program: Program, change: Callable[[Kernel], Block]) -> Program:
    """The program with other bodies of its kernels; the program itself where all of them stay what they are."""
    kernels = [with_body(kernel, change(kernel)) for kernel in program.kernels]
    if all(a is b for a, b in zip(kernels, program.kernels, strict=True)):
        return program
    return replace(program, kernels=tuple(kernels))


def with_body(kernel: Kernel, body: Block) -> Kernel:
    """A kernel with another body; the kernel itself where that stays what it is."""
    return kernel if body is kernel.body else replace(kernel, body=body)


def unless_same(block: Block, out: Sequence[Statement]) -> Block:
    """Statements as a block: the block that they are made of where each of them is the same statement as there."""
    same = len(out) == len(block) and all(a is b for a, b in zip(block, out, strict=True))
    return block if same else tuple(out)


def parts_of(s: Statement) -> Iterator[Scalar]:
    """Every scalar of a statement itself, not of the statements in it."""
    if isinstance(s, (Define, Change, Store)):
        yield from scalars_within(s.value)
    elif isinstance(s, Tile):
        yield from scalars_within(s.start)
    elif isinstance(s, MatrixProduct):
        for each in (*s.sums, *s.left, *s.right):
            yield from scalars_within(each)


def chosen_loads(s: Statement) -> Iterator[Load]:
    """The elements that a statement itself reads where conditions hold only."""
    for each in parts_of(s):
        if isinstance(each, Select):
            yield from (part for part in scalars_within(each) if isinstance(part, Load))


def strides(dims: Sequence[int], index: Sequence[Affine]) -> set[int]:
    """The sizes that the position of an element rests on: none before the first index that is not always 0."""
    first = next(
        (d for d, part in enumerate(index) if part.constant() != 0),
        len(dims),
    )
    return set(dims[first + 1 :])


def reads_of(s: Statement) -> Iterator[Access]:
    """Every element that a statement itself reads, those that its indices look up among them."""
    indices: list[Affine] = list(s.index) if isinstance(s, Store) else []
    indices += [each.index for each in s.within] if isinstance(s, If) else []
    for part in parts_of(s):
        if isinstance(part, Load):
            yield part.buffer, part.index
            indices += part.index
        elif isinstance(part, Position):
            indices.append(part.index)
        elif isinstance(part, Select):
            indices += [each.index for each in part.within]
    for index in indices:
        if index.looked:
            yield from ((each.source, each.index) for each in index.lookups())


def accesses(body: Sequence[Statement]) -> Iterator[Access]:
    """Every element that a block reads or writes."""
    for s in statements_within(body):
        yield from reads_of(s)
        if isinstance(s, Store):
            yield s.buffer, s.index


def named(body: Sequence[Statement]) -> set[int]:
    """The buffers that a block mentions: those that it reads or writes, and those that it swaps."""
    swaps = (s for s in statements_within(body) if isinstance(s, SwapBuffers))
    return {n for n, _ in accesses(body)} | {n for s in swaps for n in (s.first, s.second)}


def substituted(s: Statement, substitution: Substitution) -> Statement:
    """A statement with other indices for some of the loop variables around it."""
    match s:
        case For():
            rest, fetch = substituted_rest(s.rest, substitution), _fetch(s.fetch, substitution)
            quotient = None if s.quotient is None else substituted_scalar(s.quotient, substitution)
            assert quotient is None or isinstance(quotient, Apply)
            body = _block(s.body, substitution)
            each = tuple(x for x in _block(s.each, substitution) if isinstance(x, Store))
            trim = substituted_trim(s.trim, substitution)
            s = replace(s, rest=rest, fetch=fetch, quotient=quotient, trim=trim)
            return replace(s, body=body, each=each)
        case If():
            body, otherwise = _block(s.body, substitution), _block(s.otherwise, substitution)
            return replace(
                s, within=_within(s.within, substitution), body=body, otherwise=otherwise
            )
        case Store():
            at = tuple(index.substituted(substitution) for index in s.index)
            return replace(s, index=at, value=substituted_scalar(s.value, substitution))
        case Define() | Change():
            return replace(s, value=substituted_scalar(s.value, substitution))
        case Tile():
            opened = tuple(
                replace(loop, rest=substituted_rest(loop.rest, substitution)) for loop in s.blocks
            )
            body, edge = _block(s.body, substitution), _block(s.edge, substitution)
            return replace(s, body=body, edge=edge, blocks=opened)
        case Spread():
            opened = tuple(
                replace(
                    loop,
                    rest=substituted_rest(loop.rest, substitution),
                    trim=substituted_trim(loop.trim, substitution),
                )
                for loop in s.loops
            )
            neighbors = None if s.neighbors is None else _neighbors(s.neighbors, substitution)
            return replace(s, loops=opened, body=_block(s.body, substitution), neighbors=neighbors)
        case HorizontalReduction() | Barrier() | CombineThreads() | SwapBuffers():
            return s
        case MatrixProduct():
            left, right = (
                tuple(substituted_scalar(each, substitution) for each in side)
                for side in (s.left, s.right)
            )
            sums = tuple(substituted_load(each, substitution) for each in s.sums)
            return MatrixProduct(s.rounding, sums, left, right)
        case Transpose():
            loops = substituted(s.loops, substitution)
            assert isinstance(loops, For)
            rows, columns = (
                replace(end, rest=substituted_rest(end.rest, substitution))
                for end in (s.rows, s.columns)
            )
            target, source = (
                replace(at, first=tuple(index.substituted(substitution) for index in at.first))
                for at in (s.target, s.source)
            )
            return replace(s, loops=loops, target=target, source=source, rows=rows, columns=columns)


def _neighbors(neighbors: Neighbors, substitution: Substitution) -> Neighbors:
    """Neighbors at other indices."""
    loops = tuple(
        replace(loop, rest=substituted_rest(loop.rest, substitution)) for loop in neighbors.loops
    )
    each = tuple(_block(body, substitution) for body in neighbors.each)
    return replace(neighbors, loops=loops, each=each)


def substituted_rest(rest: Rest | None, substitution: Substitution) -> Rest | None:
    """The rest of a dimension, for other indices."""
    if rest is None:
        return None
    until = None if rest.until is None else rest.until.substituted(substitution)
    return replace(rest, start=rest.start.substituted(substitution), until=until)


def substituted_trim(trim: Trim | None, substitution: Substitution) -> Trim | None:
    """The ends between which a loop does anything, for other indices."""
    if trim is None:
        return None
    least, most = (
        tuple(replace(b, index=b.index.substituted(substitution)) for b in bounds)
        for bounds in (trim.least, trim.most)
    )
    return replace(trim, least=least, most=most)


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


def substituted_load(load: Load, substitution: Substitution) -> Load:
    """An element at other indices."""
    return replace(load, index=tuple(part.substituted(substitution) for part in load.index))


def substituted_scalar(scalar: Scalar, substitution: Substitution) -> Scalar:
    """A scalar whose loads have other indices."""
    match scalar:
        case Load():
            return substituted_load(scalar, substitution)
        case Position():
            return Position(scalar.index.substituted(substitution), scalar.dtype)
        case Convert():
            return Convert(substituted_scalar(scalar.argument, substitution), scalar.dtype)
        case Apply():
            arguments = tuple(substituted_scalar(a, substitution) for a in scalar.arguments)
            return Apply(scalar.primitive, arguments, scalar.dtype)
        case Select():
            parts = (
                substituted_scalar(scalar.then, substitution),
                substituted_scalar(scalar.otherwise, substitution),
            )
            return Select(_within(scalar.within, substitution), *parts, scalar.dtype)
        case _:
            return scalar


def replaced_loads(scalar: Scalar, change: Callable[[Load], Load]) -> Scalar:
    """A scalar that reads other elements."""
    match scalar:
        case Load():
            return change(scalar)
        case Convert():
            return replace(scalar, argument=replaced_loads(scalar.argument, change))
        case Apply():
            arguments = tuple(replaced_loads(a, change) for a in scalar.arguments)
            return replace(scalar, arguments=arguments)
        case Select():
            then = replaced_loads(scalar.then, change)
            return replace(scalar, then=then, otherwise=replaced_loads(scalar.otherwise, change))
        case _:
            return scalar


def _fetch(fetch: Fetch | None, substitution: Substitution) -> Fetch | None:
    if fetch is None:
        return None
    lines = (
        replace(each, loads=tuple(substituted_load(load, substitution) for load in each.loads))
        for each in fetch.lines
    )
    return replace(fetch, lines=tuple(lines))


def _block(body: Sequence[Statement], substitution: Substitution) -> tuple[Statement, ...]:
    return tuple(substituted(s, substitution) for s in body)


def _within(within: Sequence[Within], substitution: Substitution) -> tuple[Within, ...]:
    return tuple(replace(each, index=each.index.substituted(substitution)) for each in within)

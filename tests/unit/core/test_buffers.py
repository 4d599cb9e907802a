"""Double-buffered copies: one barrier for a tile, what needs no second buffer, and what has no room."""

from __future__ import annotations

import pytest

from ilang.core.check.gpu import verify, verify_ordered
from ilang.core.diagnostic import InternalError, ScheduleError
from ilang.core.ir.gpu import Barrier, SwapBuffers
from ilang.core.ir.kernel import Block, For, Program, blocks_of, map_statements, statements_within
from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import replace

PRODUCT = (
    "ik*kj~ijk | i:16,j:16,k:16 | i j k 0 1 k' i' j' | {} "
    ">> +ijk~ij | i:16,j:16,k:16 | i j k k' i' j' 0 | i:y,j:x,i':ty,j':tx"
)


def program(text: str, shapes: list[tuple[int, ...]] | None = None) -> Program:
    return lower(infer(graph_of(text_component(text), "f"), shapes=shapes), GPU)


def swaps(made: Program) -> list[SwapBuffers]:
    return [
        s for k in made.kernels for s in statements_within(k.body) if isinstance(s, SwapBuffers)
    ]


def barriers_of_a_tile(made: Program) -> int:
    """The most barriers on one path through the innermost loop that all threads go through."""
    (kernel,) = made.kernels
    loops = [s for s in statements_within(kernel.body) if isinstance(s, For)]
    inner = [s for s in loops if any(isinstance(x, Barrier) for x in statements_within(s.body))][-1]
    return most_barriers(inner.body)


def most_barriers(body: Block) -> int:
    """The most barriers on one path through a block."""
    return sum(
        isinstance(s, Barrier) or max(map(most_barriers, blocks_of(s)), default=0) for s in body
    )


@pytest.mark.parametrize(
    ("roles", "barriers", "swapped"), [("0:s,1:s", 2, 0), ("0:s2,1:s", 2, 1), ("0:s2,1:s2", 1, 2)]
)
def test_one_barrier_is_enough_where_both_take_turns(
    roles: str, barriers: int, swapped: int
) -> None:
    made = program(PRODUCT.format(roles))
    assert (barriers_of_a_tile(made), len(swaps(made))) == (barriers, swapped)


def test_without_its_barrier_threads_meet() -> None:
    made = program(PRODUCT.format("0:s2,1:s2"))
    (kernel,) = made.kernels
    for loop in (s for s in statements_within(kernel.body) if isinstance(s, For)):
        if any(isinstance(x, Barrier) for x in statements_within(loop.body)):
            bare = map_statements((loop,), lambda s: None if isinstance(s, Barrier) else s)
            body = map_statements(kernel.body, lambda s: bare[0] if s == loop else s)  # noqa: B023
            with pytest.raises(InternalError, match="wait before they meet"):
                verify_ordered(replace(made, kernels=(replace(kernel, body=body),)))
            return
    raise AssertionError("no loop has a barrier")


def test_only_what_a_block_shares_is_swapped() -> None:
    made = program(PRODUCT.format("0:s2,1:s2"))
    (kernel,) = made.kernels
    for other in (0, swaps(made)[0].first):  # an input, and itself
        body = map_statements(
            kernel.body,
            lambda s: replace(s, second=other) if isinstance(s, SwapBuffers) else s,  # noqa: B023
        )
        with pytest.raises(InternalError, match="swapped are alike"):
            verify(replace(made, kernels=(replace(kernel, body=body),)))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (PRODUCT.format("0:s2,1:s2"), [(64, 16), (16, 64)]),  # one tile
        ("ij~ji | i:32,j:8 | j i 0 j' i' | i':tx,j':ty,0:s2", None),  # one copy for each block
        ("ik*kj~ijk || i j k 0 1 | 0:s2,1:s2 >> +ijk~ij || i j k 0", None),  # for each thread
    ],
)
def test_what_is_filled_once_has_one_buffer(
    text: str, shapes: list[tuple[int, ...]] | None
) -> None:
    assert not swaps(program(text, shapes))


def test_both_buffers_are_counted() -> None:
    one = "ij~ji | i:64,j:128 | j i 0 j' i' | j:x,i:q,i':tx,j':u,0:{}"
    program(one.format("s"))
    with pytest.raises(ScheduleError, match=r"shares 69,632 bytes \(in0_copy twice\)") as caught:
        program(one.format("s2"))
    assert caught.value.code == "E0333"
    assert caught.value.fix is not None
    program(one.split(" | ", maxsplit=1)[0] + " " + caught.value.fix.text)

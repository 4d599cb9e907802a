"""Which loops the threads of a GPU share: never two that touch one element."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.check.gpu import verify, verify_ordered
from ilang.core.diagnostic import InternalError, ScheduleError
from ilang.core.ir.gpu import Barrier, CombineThreads, ThreadLoop
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Kernel, Program, map_statements, statements_within
from ilang.core.machine import GPU
from ilang.core.record import replace


def program(text: str, **known: object) -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.lower(pipeline.infer(graph, **known), GPU)  # type: ignore[arg-type]


def host(text: str, **known: object) -> Host:
    return pipeline.host_of(program(text, **known))


def shared(kernel: Kernel) -> str:
    """The loops that threads share, outermost first."""
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    return " ".join(kernel.names[loop.variable] for loop in spread.loops)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("ij+ij~ij", ["ij"]),
        ("ij+j~ij", ["i j"]),
        (
            "ik*kj~ijk >> +ijk~ij",
            ["i j b", "i j"],
        ),  # parts of the terms, and what adds their results
        ("ij~ji", ["j i"]),
        ("+i~.", ["b", ""]),  # chunks of a sum, each a block's, then one thread that adds them
        ("ij~j || i j", ["j", "j", "j"]),  # threads keep their columns, row after row
        ("(I & +ij~i) >> ij/i~ij", ["i"]),  # a row is a block's
        ("2.5", [""]),
        ("+ij~i || j i", ["i", "i", "i"]),
        ("+ij~i || i j | i:q", [""]),  # one after the other, as it is written
    ],
)
def test_loops_that_threads_share(text: str, loops: list[str]) -> None:
    assert [shared(kernel) for kernel in program(text).kernels] == loops


def test_a_variable_keeps_statements_in_one_launch() -> None:
    names = [kernel.name for kernel in program("+i~. || i >> .*.~.").kernels]
    assert names == ["k0_0", "k0_1", "k1"]


def test_small_buffers_are_a_threads_own() -> None:
    rows = "^ij~ij || i j >> (I & +ij~i || i j 0) >> ij/i~ij || i 0 1 j"
    spaces = {b.name: b.space for b in program(rows, shapes=[(5, 8)]).buffers if b.private}
    assert set(spaces.values()) == {"local"}
    large = host(rows)
    (launch,) = large.launches()
    assert launch.scratch
    assert launch.divided
    assert launch.grid is not None
    assert launch.grid.threads == GPU.device.block_threads  # type: ignore[union-attr]


def test_launches_have_a_thread_for_each_iteration() -> None:
    known = host("ij+j~ij")
    (launch,) = known.launches()
    assert launch.grid is not None
    assert [known.program.sizes[n].name for n in launch.grid.sizes] == ["i", "j"]


def test_threads_that_meet_are_told() -> None:
    right = program("ij~j || i j")
    kernel = right.kernels[1]
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    (loop,) = spread.body
    wrong = replace(spread, loops=(replace(loop, body=()),), body=loop.body)  # type: ignore[union-attr]
    turned = replace(wrong, body=(replace(spread.loops[0], body=wrong.body),))
    with pytest.raises(InternalError, match="no other thread touches"):
        verify(replace(right, kernels=(replace(kernel, body=(turned,)),), calls=()))


TILES = (
    "ik*kj~ijk | i:16:4,j:16:4,k:8 | i j k 0 1 i' j' k' i'' j'' "
    ">> +ijk~ij | i:16:4,j:16:4,k:8 | i j k i' j' k' i'' j'' 0"
)


def test_loops_of_one_prime_are_for_the_threads_of_a_block() -> None:
    tiled = program(TILES)
    (kernel,) = tiled.kernels
    (blocks,) = kernel.body
    assert isinstance(blocks, ThreadLoop)
    assert (blocks.over, blocks.threads) == ("blocks", 256)
    assert shared(kernel) == "i j"
    inside = [s for s in statements_within(blocks.body) if isinstance(s, ThreadLoop)]
    assert {s.over for s in inside} == {"threads"}
    loops = [" ".join(kernel.names[loop.variable] for loop in s.loops) for s in inside]
    copies = {"i1 i2 k1v", "k1 j1", "i1 i2 k1", "k1 j1 j2"}  # go along memory, in vectors or not
    stored = {"i1 j1 j2"}  # side by side, where rows are no vectors
    assert set(loops) - {"i1 j1"} == copies | stored


def test_what_each_thread_has_alone_is_its_own_and_copies_are_the_blocks() -> None:
    spaces = {b.name: (b.space, len(b.dims)) for b in program(TILES).buffers if b.private}
    copies = {"in0_copy": ("shared", 3), "in1_copy": ("shared", 3)}  # of 4
    held = {"in0_copy_held": ("local", 1), "in1_copy_held": ("local", 1)}
    stored = {"out_stored": ("shared", 3)}
    assert spaces == {"out_acc": ("local", 2), "out_run": ("local", 2), **copies, **held, **stored}


def test_threads_wait_before_copies_and_before_they_read_them() -> None:
    text = pipeline.stage_text(
        pipeline.graph_of(pipeline.text_component(TILES), "f"), "barriers", machine=GPU
    )
    lines = [line.strip() for line in text.splitlines()]
    assert (
        lines.count("barrier") == 4 + 2
    )  # in whole blocks, and in others; around what is stored side by side
    first = lines.index("barrier")
    assert lines[first - 1].startswith("if ")
    assert lines[first + 3].startswith("in0_copy[")


def test_a_missing_barrier_is_told() -> None:
    right = program(TILES)
    (kernel,) = right.kernels
    bare = map_statements(kernel.body, lambda s: None if isinstance(s, Barrier) else s)
    with pytest.raises(InternalError, match="wait before they meet"):
        verify_ordered(replace(right, kernels=(replace(kernel, body=bare),)))


def test_more_threads_than_a_block_has_are_refused() -> None:
    with pytest.raises(ScheduleError, match="2,048 threads"):
        program("ij+ij~ij | i:64,j:32 | i j i' j'")


def test_what_a_block_has_no_room_for_is_done_by_single_threads() -> None:
    rows = program("ij~ij | i:4 | i 0 i' j")  # four rows of any length
    assert [s.over for s in rows.kernels[0].body if isinstance(s, ThreadLoop)] == ["grid"]


def combined(text: str) -> list[tuple[str, int]]:
    """How the threads of blocks combine what they have."""
    inside = (s for kernel in program(text).kernels for s in statements_within(kernel.body))
    return [(s.primitive, s.threads) for s in inside if isinstance(s, CombineThreads)]


def test_threads_share_a_row_and_combine_what_they_have() -> None:
    assert combined("+ij~i") == [("add", 256), ("add", 256)]  # of a part, and of all parts
    assert combined(">ij~i") == [("max", 256), ("max", 256)]
    assert combined("+ij~.") == [("add", 256), ("add", 256)]  # of a chunk, and of all chunks
    assert combined("+ij~j") == [("add", 256)]  # of many parts: neighbors have neighboring columns
    assert combined("+ij~i || i j") == []

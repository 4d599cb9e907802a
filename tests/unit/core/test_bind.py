"""Which loops the threads of a GPU share: never two that touch one element."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.check.gpu import verify
from ilang.core.diagnostic import InternalError
from ilang.core.ir.gpu import Spread
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Kernel, Program
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
    assert isinstance(spread, Spread)
    return " ".join(kernel.names[loop.variable] for loop in spread.loops)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("ij+ij~ij", ["i j"]),
        ("ik*kj~ijk >> +ijk~ij", ["i j"]),
        ("ij~ji", ["j i"]),
        ("+i~.", ["b", ""]),  # blocks of a sum, then one thread that adds them
        ("ij~j || i j", ["j", "j", "j"]),  # threads keep their columns, row after row
        ("(I & +ij~i) >> ij/i~ij", ["i", "i j"]),
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
    (launch,) = large.launches
    assert launch.scratch
    assert launch.divided
    assert launch.grid is not None
    assert launch.grid.threads == GPU.device.block_threads  # type: ignore[union-attr]


def test_launches_have_a_thread_for_each_iteration() -> None:
    known = host("ij+ij~ij")
    (launch,) = known.launches
    assert launch.grid is not None
    assert [known.program.sizes[n].name for n in launch.grid.sizes] == ["i", "j"]


def test_threads_that_meet_are_told() -> None:
    right = program("ij~j || i j")
    kernel = right.kernels[1]
    (spread,) = kernel.body
    assert isinstance(spread, Spread)
    (loop,) = spread.body
    wrong = replace(spread, loops=(replace(loop, body=()),), body=loop.body)  # type: ignore[union-attr]
    turned = replace(wrong, body=(replace(spread.loops[0], body=wrong.body),))
    with pytest.raises(InternalError, match="no other thread touches"):
        verify(replace(right, kernels=(replace(kernel, body=(turned,)),)))

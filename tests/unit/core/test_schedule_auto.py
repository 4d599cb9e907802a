"""What the chosen schedule achieves: storage, nests and loop orders, not their text."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core.ir.cpu import Tile
from ilang.core.ir.kernel import For, Program, statements_within
from ilang.core.ir.shaped import Assignment
from ilang.core.pipeline import graph_of, infer, lower, shaped_stage_text, text_component
from ilang.core.schedule.choose import tile


def program(text: str, dtypes: list[str | None] | None = None) -> Program:
    return lower(infer(graph_of(text_component(text), "f"), dtypes))


def stored(p: Program) -> list[tuple[str, int, bool]]:
    """Name, rank and privacy of every temporary."""
    return [(b.name, len(b.dims), b.private) for b in p.buffers if b.role == "temporary"]


def tiles(p: Program) -> list[tuple[int, ...]]:
    """The extents, by size number, of every register tile."""
    found = (s for kernel in p.kernels for s in statements_within(kernel.body))
    return [p.buffers[s.buffer].dims for s in found if isinstance(s, Tile)]


def loop_letters(p: Program, kernel: int) -> str:
    """The loops met first at each depth of a kernel."""
    letters = ""
    body = p.kernels[kernel].body
    while loops := [s for s in body if isinstance(s, For)]:
        deepest = max(loops, key=depth)
        letters += p.kernels[kernel].names[deepest.variable]
        body = deepest.body
    return letters


def depth(loop: For) -> int:
    return 1 + max((depth(s) for s in loop.body if isinstance(s, For)), default=0)


@pytest.mark.parametrize(
    ("text", "shapes", "is_packed"),
    [
        ("bo*bk~obk >> +obk~ok", [(512, 64), (512, 256)], True),
        ("nbo*nbk~nobk >> +nobk~nok", [(3, 512, 64), (3, 512, 320)], True),
        ("bo*bk~obk >> +obk~ok", [(512, 64), (512, 255)], False),  # few lanes share a copy
        ("bo*bhk~ohbk >> +ohbk~ohk", [(512, 64), (512, 4, 64)], True),  # those of all heads do
        ("bo*bhk~ohbk >> +ohbk~ohk", [(512, 64), (512, 3, 64)], False),
        ("ob*bk~obk >> +obk~ok", [(64, 512), (512, 256)], False),  # rows go along memory
        ("bo*bk~obk >> +obk~ok", None, False),
    ],
)
def test_what_runs_across_rows_is_packed_for_many_lanes(
    text: str,
    shapes: list[tuple[int, ...]] | None,
    is_packed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tile, "cheapest", lambda _, rule: rule)
    shaped = infer(graph_of(text_component(text), "f"), shapes=shapes)
    names = {buffer.name.replace("_flat", "") for buffer in lower(shaped).buffers}
    assert "in1_copy" in names
    assert ("in0_copy" in names) is is_packed


@pytest.mark.parametrize(("columns", "is_packed"), [(32, False), (64, False), (200, True)])
def test_rows_as_long_as_a_tile_are_not_packed(columns: int, is_packed: bool) -> None:
    shaped = infer(
        graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f"), shapes=[(64, 100), (100, columns)]
    )
    assert ("in1_copy" in {buffer.name for buffer in lower(shaped).buffers}) is is_packed


@pytest.mark.parametrize(("m", "n"), [(64, 16), (8, 48), (16, 48), (128, 100), (1000, 1000)])
def test_tiles_of_fixed_extents_are_narrow_and_fit_registers(m: int, n: int) -> None:
    graph = graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f")
    p = lower(infer(graph, shapes=[(m, 32), (32, n)]))
    rows, lanes = (p.sizes[n].fixed or 0 for n in tiles(p)[0])
    assert lanes % 16 == 0
    assert lanes < n + 16
    assert rows < m + 8
    assert 6 <= rows * lanes // 16 <= 24, (
        "vectors of sums: enough to hide additions, and no more than are held"
    )


@pytest.mark.parametrize("count", [2, 5, 40])
def test_a_chain_of_pointwise_expressions_is_one_nest(count: int) -> None:
    p = program(" >> ".join(["-ij~ij"] * count))
    assert len(p.kernels) == 1
    assert stored(p) == []
    assert loop_letters(p, 0) == "ij"


def test_every_output_is_an_assignment_of_its_own() -> None:
    shaped = infer(graph_of(text_component("(I & I) | 0.5"), "f"), None, [2])
    assert len(set(shaped.outputs)) == 3
    assert all(isinstance(shaped.nodes[value], Assignment) for value in shaped.outputs)


def test_what_a_tile_reads_goes_along_memory() -> None:
    """No copy transposes it before: the exponentials would be read across memory, and wait one for the other."""
    text = """f(q[b,n,d], s[b,d,e], c[b,d]) = {
        a = (^bid~bid)(q)
        z = (bid*bd~bid >> +bid~bi)(a, c)
        (bie/bi~bie)((bid*bde~bide >> +bide~bie)(a, s), z)
    }"""
    shaped = i(text).shaped([(64, 126, 64), (64, 64, 64), (64, 64)])
    first = shaped_stage_text(shaped, "schedule").splitlines()[0]
    assert (first[:2], first[-8:]) == ("a ", "|| b i d")


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(("width", "order"), [(40, "y u v x"), (9, "y u x v")])
def test_functions_of_windows_go_along_rows(width: int, order: str) -> None:
    """What is stored of each window has the windows side by side, not their elements, where rows are long."""
    program = i(f"""f(x[h,w]) = {{
        e = (^yxuv~yxuv)(((y+u:3)(x+v:3)-yx~yxuv)(x, ((y:6+1)(x:{width}+1)~yx)(x)))
        (yx/yx~yx)((yxuv*(y+u)(x+v)~yxuv >> +yxuv~yx)(e, x), (+yxuv~yx)(e))
    }}""")
    shape = (8, width + 2)
    text = shaped_stage_text(program.shaped([shape]), "schedule").splitlines()
    assert next(line for line in text if line.startswith("e ")).split("|| ")[1][:7] == order
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    assert np.allclose(program(x), program(x, target="numpy"), rtol=1e-5)

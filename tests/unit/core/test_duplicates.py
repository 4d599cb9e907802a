"""Kernels that do the same are one kernel, which is called again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ilang import Error, load
from ilang.codegen.targets import c, cuda
from ilang.core import pipeline
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.explain.kernel import loops_text
from ilang.core.ir.host import LONG
from ilang.core.ir.kernel import Call, Program
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.notation.files.module import parse_module
from ilang.core.passes.gpu.bind import with_launches
from ilang.core.record import replace
from ilang.core.source import Source
from tests.property.large import training_step

RNG = np.random.default_rng(7)
TWO = "(+ij~i >> ^i~i) | (+ij~i >> ^i~i)"


def program_of(text: str, *shapes: tuple[int, ...], machine: Machine = CPU) -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.lower(pipeline.infer(graph, shapes=shapes or None), machine)


def test_equal_kernels_are_one() -> None:
    program = program_of(TWO, (4, 5), (4, 5))
    assert [kernel.name for kernel in program.kernels] == ["k0"]
    assert [(call.kernel, call.group) for call in program.calls] == [(0, 0), (0, 1)]
    names = [buffer.name for buffer in program.buffers]
    pairs = {(names[ours], names[other]) for ours, other in program.calls[1].arrays}
    assert pairs == {("in0", "in1"), ("out0", "out1")}
    assert loops_text(program).endswith("\n\nout1 as out0, in1 for in0")


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("-i~i | -i~i", ((4,), (5,))),  # another extent
        ("-i~i | -i~i", ()),  # extents of run time, each its own
        ("-i~i | ^i~i", ((4,), (4,))),  # another operation
        ("((I | 1.5) >> i*.~i) | ((I | 2.5) >> i*.~i)", ((4,), (4,))),
        ("((I | 0.0) >> i+.~i) | ((I | -0.0) >> i+.~i)", ((4,), (4,))),  # 0 is -0 in Python
        ("((I & I) >> i*j~ij) | (i*j~ij)", ((4,), (4,), (4,))),  # one array twice, and two
        ("f64 | f64 >> f32", ((4,), (4,))),  # another element type
    ],
)
def test_others_stay_apart(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    program = program_of(text, *shapes)
    assert len(program.kernels) == 2
    assert not any(call.arrays for call in program.calls)


LAYER = "(ik*kj~ijk >> +ijk~ij >> (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~j) >> ij/j~ij)"
LOOKED = "bt@vd~btd"
HEAD = "x[70,70], y[70,70], z[70,70], a: i64[2,5], s[9,4], b: i64[2,5], t[9,4]"


def test_each_call_has_its_own_arrays(tmp_path: Path) -> None:
    file = tmp_path / "twice.i"
    file.write_text(
        f"f({HEAD}) = (({LAYER} | I) >> {LAYER}) | {LOOKED} | {LOOKED}\n", encoding="utf-8"
    )
    f = load(file)["f"]
    square = [RNG.standard_normal((70, 70)).astype(np.float32) / 9 for _ in range(3)]
    tables = [RNG.standard_normal((9, 4)).astype(np.float32) for _ in range(2)]
    rows = [RNG.integers(0, 9, (2, 5)) for _ in range(2)]
    arrays = [*square, rows[0], tables[0], rows[1], tables[1]]
    for ours, right in zip(f(*arrays), f(*arrays, target="numpy"), strict=True):
        np.testing.assert_allclose(ours, right, rtol=2e-5)
    rows[1][1, 4] = 9
    with pytest.raises(Error) as caught:
        f(*arrays)
    assert caught.value.code == "E0746"


def test_the_function_around_many_launches_is_straight(tmp_path: Path) -> None:
    def text(count: int) -> str:
        heads = ", ".join(f"x{n}[3]" for n in range(count))
        return f"f({heads}) = {' | '.join(['^i~i'] * count)}\n"

    modules = [parse_module(Source("f.i", text(count))) for count in (LONG - 1, LONG)]
    graphs = [pipeline.module_graph(module, "f") for module in modules]
    emitted = [c.emit(pipeline.lower(pipeline.infer(graph))) for graph in graphs]
    launches = ["launches", "launches, so many that compilers optimise nothing around them"]
    for graph, heading in zip(graphs, launches, strict=True):
        assert heading in pipeline.stage_text(graph, "host").splitlines()
    assert "STRAIGHT" not in emitted[0]
    assert "\nil_STRAIGHT int f(" in emitted[1]
    file = tmp_path / "f.i"
    file.write_text(text(LONG), encoding="utf-8")
    arrays = [RNG.standard_normal(3).astype(np.float32) for _ in range(LONG)]
    for ours, array in zip(load(file)["f"](*arrays), arrays, strict=True):
        np.testing.assert_allclose(ours, np.exp(array), rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 5), (3000, 500)])
def test_a_gpu_has_each_kernel_once(shape: tuple[int, ...]) -> None:
    program = program_of(TWO, shape, shape, machine=GPU)
    emitted = cuda.emit(program)
    assert len(program.calls) == 2 * len(program.kernels)
    assert emitted.count("static __global__") == len(program.kernels)


def test_parts_of_a_kernel_are_called_together() -> None:
    program = program_of(TWO, (4, 5), (4, 5))
    (kernel,) = program.kernels
    parts = with_launches(replace(program, kernels=(replace(kernel, body=kernel.body * 2),)))
    assert [kernel.name for kernel in parts.kernels] == ["k0_0", "k0_1"]
    assert [(call.kernel, call.group) for call in parts.calls] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert parts.calls[3].arrays == program.calls[1].arrays


def test_layers_have_the_same_kernels() -> None:
    few, many = (pipeline.lower(training_step(layers)) for layers in (3, 4))
    assert len(many.kernels) == len(few.kernels)
    assert len(few.calls) < len(many.calls)


def test_what_is_called_on_others_is_like_them() -> None:
    program = program_of(TWO, (4, 5), (4, 5))
    ours, other = program.calls[1].arrays[0]
    check.verify(program)
    assert (ours, other) == program.inputs
    wrong = Call(0, 1, ((ours, program.outputs[1]),))
    for calls in ((Call(0, 0), wrong), (Call(0, 0), Call(1, 1))):
        with pytest.raises(InternalError, match="calls of program"):
            check.verify(replace(program, calls=calls))


QUERIES_AND_KEYS = (
    "f(x[s,d], wq[d,e], wk[d,e]) = ~(I & proj) >> (I | proj)\nproj = sd*de~sed >> +sed~se\n"
)


def test_parts_of_a_call_have_its_memory() -> None:
    """Sums in parts whose number comes at run time are the results themselves where there is one part."""
    module = parse_module(Source("f.i", QUERIES_AND_KEYS))
    program = pipeline.lower(pipeline.infer(pipeline.module_graph(module, "f")), GPU)
    again = program.calls[-2]
    (parts,) = (n for n, _ in again.arrays if program.buffers[n].whole() is not None)
    other = program.buffers[again.array(parts)]
    assert other.whole() == program.outputs[1]
    mixed = tuple(
        replace(b, owner=program.outputs[0]) if b == other else b for b in program.buffers
    )
    with pytest.raises(InternalError, match="from the same call's"):
        check.verify(replace(program, buffers=mixed))

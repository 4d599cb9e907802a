"""Programs whose kernels alone are compiled: launched by way of a driver, which the emulator plays."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ilang
from ilang import Error, i, tensor
from ilang.codegen.call.native import Address
from ilang.codegen.compile import cache
from ilang.codegen.compile.compilers import Compiler
from ilang.codegen.device import driver, gpu, launched_program
from ilang.codegen.device.device import DeviceArray
from ilang.codegen.device.driver import Driver
from ilang.codegen.device.executable import DeviceSource
from ilang.codegen.device.launched_program import CompiledKernels, LaunchedProgram, kernels_in
from ilang.codegen.device.nvrtc import MARK
from ilang.codegen.emulator import recipes
from ilang.codegen.emulator.runtime import Emulator, emulator
from ilang.codegen.emulator.translate import translate
from ilang.codegen.targets import cuda
from tests.unit.emulator.conftest import program

HERE = Path(__file__).parent
STARTER = """
#include <cstring>
#include <utility>

template <class... P, size_t... N>
static int started(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                   void **values, std::index_sequence<N...>)
{
    ::cuda_emulator::Configured(name, grid, block, shared, stream)(kernel, *(std::decay_t<P> *)values[N]...);
    return cudaGetLastError();
}

template <class... P>
static int start(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                 void **values)
{
    return started(name, kernel, grid, block, shared, stream, values, std::index_sequence_for<P...>());
}

extern "C" int start_kernel(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream, void **values)
{
"""
ON: dict[str, Any] = {"target": "cuda"}


def emulated_kernels(source: DeviceSource) -> CompiledKernels:
    """What a compiler of kernels makes of a program: the path of a library, every access of which is checked."""
    head, _, text = launched_program.text_of(source.program()).partition("\n")
    known = json.loads(head.removeprefix(MARK))
    plain = text.replace("\n".join(cuda.WITHOUT_HEADERS), "\n".join(cuda.INCLUDES))
    assert plain != text
    starts = "".join(
        f'    if (!strcmp(name, "{name}")) return start(name, {name}, grid, block, shared, stream, values);\n'
        for name in known["kernels"]
    )
    whole = f"{translate(plain, 'kernels.cu')}{STARTER}{starts}    return 500;\n}}\n"
    path = cache.library(whole, recipes.program_recipe(emulator().content, checked=True), str)
    known["kernels"] = {name: name for name in known["kernels"]}
    return kernels_in(path.encode() + b"\0\n" + json.dumps(known).encode())


@pytest.fixture(autouse=True)
def machine(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """The emulated machine behind a driver, on which the compiler is one of kernels alone."""
    text = f"// {recipes.identity()}\n{(HERE / 'driver.cpp').read_text('utf-8')}"
    library = cache.library(text, recipes.program_recipe(machine.content), str)
    monkeypatch.setattr(driver, "DRIVERS", (library,))
    monkeypatch.setattr(gpu, "find_compiler", lambda _: Compiler((), "", gpu.NVRTC))
    monkeypatch.setattr(gpu, "kernels_of", lambda source, _: emulated_kernels(source))
    gpu.gpu.cache_clear()
    yield machine
    gpu.gpu.cache_clear()


def rand(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ik*kj~ijk >> +ijk~ij", ((33, 20), (20, 45))),
        ("(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij", ((5, 70),)),
        ("+ij~.", ((50, 700),)),
        ("+ij~i", ((3, 20000),)),
        *(("+ij~j", ((terms, 3),)) for terms in (200, 900, 20000)),  # one part, few and many
        ("ik*jk~ijk >> +ijk[j<=i]~ij", ((20, 8), (35, 8))),
        ("ijk+ijk~ijk | k:8 | i j k k' | i:z,j:y,k:x,k':tx", ((3, 4, 70), (3, 4, 70))),
        ("ij~ji", ((0, 3),)),
    ],
)
def test_results_are_those_of_the_reference(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    f, given = i(text), [rand(*shape) for shape in shapes]
    wanted = f(*given, target="numpy")
    np.testing.assert_allclose(f(*given, **ON), wanted, rtol=1e-4, atol=1e-5)
    there = [gpu.gpu().array(array) for array in given]
    result = f(*there, **ON)
    assert isinstance(result, DeviceArray)
    np.testing.assert_allclose(result.get(), wanted, rtol=1e-4, atol=1e-5)


def test_indices_out_of_range_are_told() -> None:
    f, table = i("bt@vd~btd"), rand(7, 3)
    indices = np.array([[1, 6], [0, 2]], np.int32)
    assert np.array_equal(f(indices, table, **ON), table[indices])
    with pytest.raises(Error, match="no index of axis v") as refusal:
        f(indices + 1, table, **ON)
    assert refusal.value.code == "E0746"
    assert np.array_equal(f(indices, table, **ON), table[indices])


def test_streams_and_arrays_of_the_device(machine: Emulator) -> None:
    """Work of the streams of arrays comes before, and what they are given later after, in whatever order they run."""
    kernels, f, x = program("kernels.cu", checked=True), i("i+i~i"), rand(50)
    for seed in range(1, 5):
        handles = np.zeros(2, np.uintp)
        for place in (handles[:1], handles[1:]):
            assert kernels.call("new_stream", place) == 0
        one, two = map(int, handles)
        with machine.settings(streams=seed):
            device = gpu.gpu()
            first = device.empty((50,), np.float32, one)
            assert kernels.call("fill", first, np.float32(3), 50, Address(one)) == 0
            second = f(first, device.array(x), stream=two, **ON)
            assert second.__cuda_array_interface__["stream"] == two
            out = device.empty((50,), np.float32)
            given: Any = f(second, device.array(x), out=out, **ON)
            assert given is out
            np.testing.assert_allclose(out.get(), 3 + 2 * x, rtol=1e-6)
            assert device.holds(out.address)
            assert not device.holds(x.ctypes.data)
        assert out.__dlpack_device__()[0] == 2
        for handle in (one, two):
            assert kernels.call("free_stream", Address(handle)) == 0


def test_programs_run_on_the_first_gpu(machine: Emulator) -> None:
    """Whatever device the thread has chosen, which it has again afterwards."""
    kernels, f, x = program("kernels.cu", checked=True), i("-i~i"), rand(4)
    place = np.zeros(1, np.uintp)
    with machine.settings(devices=2):
        assert kernels.call("choose", 1) == 0
        there = gpu.gpu().array(x)
        result = f(there, **ON)
        assert gpu.gpu().holds(result.address)
        assert (result.get() == -x).all()
        assert kernels.call("new_memory", place, np.uint64(16)) == 0
        assert not gpu.gpu().holds(int(place[0]))
        assert kernels.call("choose", 0) == 0
        assert kernels.call("free_memory", Address(int(place[0]))) == 0


def test_training_runs_there(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(
        'op f(x) = "w" *. x\n'
        "cd step(x, t; lr = 0.1) {\n  d = f(x) - t\n"
        '  loss = d *. d ++ "...|... => 0"\n  backprop(loss)\n'
        "  for p in params(loss) { p =- lr *. p.grad }\n  return loss\n}\n"
    )
    x, t = rand(8, 3), rand(8, 3)
    losses = []
    for target in ("numpy", "cuda"):
        session = ilang.load(str(path)).session("step", {"x": "8|3", "t": "8|3"}, target=target)
        losses.append([float(np.sum(session(x=x, t=t))) for _ in range(3)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert losses[0][2] < losses[0][0]


def test_tensor_programs() -> None:
    x = tensor.data(None, (4,), (), (2,), "x")
    y = tensor.relu(tensor.param("w") @ x + tensor.param("b", output=(3,), value=1.0))
    f, given, weights = tensor.solve(y), rand(4, 2), rand(3, 2)
    assert np.allclose(f(weights, given, **ON), f(weights, given), rtol=1e-5)


def test_what_fails_is_told(machine: Emulator) -> None:
    x = rand(100)
    device = gpu.gpu()
    with machine.settings(memory=1 << 10), pytest.raises(Error) as refusal:
        device.empty((1 << 20,), np.float32)
    assert refusal.value.code == "E0713"
    with pytest.raises(Error, match=r"the GPU failed: invalid argument \(status 1 of CUDA\)"):
        device.check(1)
    launching = LaunchedProgram(Driver(), kernels_of_product())
    there = device.array(x)
    wrong = launching.at([-1])
    assert wrong.space > 1 << 62
    assert wrong.run([there.address] * 3, 0, 1) == 3
    assert launching.at([100]).run([there.address] * 3, 0, 1) in (1, 2)
    with pytest.raises(Error, match="does not take the kernels") as refusal:
        LaunchedProgram(Driver(), CompiledKernels(b"no path\0", {}, kernels_of_product().host))
    assert refusal.value.code == "E0922"
    with machine.settings(devices=0), pytest.raises(Error, match="gave status 100"):
        Driver()


@functools.cache
def kernels_of_product() -> CompiledKernels:
    """Kernels of a program that is launched without Python's own checks."""
    from ilang.core.machine import GPU
    from ilang.core.pipeline import graph_of, infer, lower, text_component

    shaped = infer(graph_of(text_component("i*i~i"), "f"))
    return emulated_kernels(DeviceSource("f", "", lambda: lower(shaped, GPU)))

"""Programs on a device, by way of the emulator: arrays moved, taken where they are, and given there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, elementwise, i, tensor
from ilang.codegen.call.native import Address
from ilang.codegen.compile import cache
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.device import driver as driver_module
from ilang.codegen.device import gpu, offload
from ilang.codegen.device.device import DeviceArray
from ilang.codegen.device.streams import STREAM_OF_THREAD
from ilang.codegen.emulator.program import emulated, load
from ilang.codegen.emulator.runtime import Emulator
from ilang.codegen.project import emulation
from ilang.codegen.project.cases import StoredOutput
from ilang.codegen.targets import cuda
from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.icli.main import main
from tests.unit.emulator.conftest import new_array, on_device, program

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("machine")]

RANDOM = np.random.default_rng(0)
ON: Any = {"target": "cuda-emulated"}


def rand(*shape: int) -> Any:
    return RANDOM.standard_normal(shape, dtype=np.float32)


class Foreign:
    """An array of another library: nothing but ``__cuda_array_interface__``."""

    def __init__(self, array: DeviceArray, **changed: object) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ik*kj~ijk >> +ijk~ij", [(33, 19), (19, 7)]),
        ("-i~i", [(0,)]),
        ("+ij~.", [(5, 6)]),
        ("(+ij~i) & (ij~ji)", [(4, 5), (4, 5)]),
        (">ij~i", [(3, 4)]),
        ("i*i~i", [(5,), (5,)]),
    ],
)
def test_results_are_those_of_the_reference(text: str, shapes: list[tuple[int, ...]]) -> None:
    f = i(text)
    arrays = [rand(*shape) for shape in shapes[: f.takes()]]
    results, expected = f(*arrays, **ON), f(*arrays, target="numpy")
    results, expected = (x if isinstance(x, tuple) else (x,) for x in (results, expected))
    for result, wanted in zip(results, expected, strict=True):
        assert type(result) is np.ndarray
        assert result.dtype == wanted.dtype
        assert np.allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_element_types(dtype: Any) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    result = i("+ij~i")(x[:, ::2], **ON)  # strided arrays are copied
    assert result.dtype == x.dtype
    assert (result == x[:, ::2].sum(1)).all()
    assert i("i*.~i")(np.arange(3.0), 2, **ON).tolist() == [0.0, 2.0, 4.0]


def test_arrays_are_taken_and_given_where_they_are() -> None:
    x, y = rand(8, 4), rand(4, 3)
    f = i("ik*kj~ijk >> +ijk~ij")
    on_gpu = on_device(x)
    result = f(on_gpu, y, **ON)
    assert isinstance(result, DeviceArray)
    assert np.allclose(result.get(), x @ y, rtol=1e-5)
    again = i("ij~ji")(result, **ON)
    assert np.allclose(again.get(), (x @ y).T, rtol=1e-5)
    assert np.allclose(f(Foreign(on_gpu, strides=(16, 4)), y, **ON).get(), x @ y, rtol=1e-5)
    out = new_array((8, 3), np.float32)
    assert f(x, y, out=out, **ON) is out
    assert np.allclose(out.get(), x @ y, rtol=1e-5)
    plain = np.empty((8, 3), np.float32)
    assert f(on_gpu, y, out=plain, **ON) is plain
    assert np.allclose(plain, x @ y, rtol=1e-5)


class Handed:
    """An array of another library that has DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        assert isinstance(self.array, np.ndarray), "an array of the device is read there"
        return self.array


def test_dlpack(machine: Emulator) -> None:
    x = rand(3, 5)
    there = on_device(x)
    seen = np.from_dlpack(there)
    assert seen.ctypes.data == there.address  # the emulated device has memory of the host
    assert (seen == x).all()
    result = i("ij~ji")(Handed(there), **ON)
    assert isinstance(result, DeviceArray)
    assert (np.from_dlpack(result) == x.T).all()
    assert type(i("ij~ji")(Handed(x), **ON)) is np.ndarray
    live = machine.live_allocations()
    capsule = there.__dlpack__()
    address = there.address
    del there
    assert machine.live_allocations() == live
    del seen
    assert emulated().holds(address)
    del capsule
    assert machine.live_allocations() == live - 1
    with pytest.raises(Error, match="E0703"):
        i("-i~i")(Handed(on_device(np.ones(3, np.uint16))), **ON)


@pytest.mark.parametrize("text", ["-i~i", "bt@vd~btd"])
def test_an_error_of_the_caller_is_told_and_stays(text: str) -> None:
    kernels = program("kernels.cu", checked=False)
    shaped = infer(graph_of(text_component(text), "f"))
    loaded = load(cuda.emit(lower(shaped, GPU)), "f.cu", checked=False)
    arrays = [rand(4)] if text == "-i~i" else [np.zeros((1, 2), np.int64), rand(1, 3)]
    sizes = np.array([n for array in arrays for n in array.shape], np.int64)
    wanted = -arrays[0] if text == "-i~i" else arrays[1][arrays[0]]
    out = np.zeros(wanted.shape, np.float32)
    invalid_device = kernels.call("choose", 9)
    assert loaded.call("f_host", sizes, *arrays, out) == -invalid_device
    assert kernels.call("take_error") == invalid_device
    assert loaded.call("f_host", sizes, *arrays, out) == 0
    assert np.array_equal(out, wanted)


class OfDevice(Foreign):
    """An array of another library that says which device has it."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 1)


def test_arrays_of_another_device_are_refused(machine: Emulator) -> None:
    kernels, f = program("kernels.cu", checked=False), i("-i~i")
    x = rand(4)
    place = np.zeros(1, np.uintp)
    with machine.settings(devices=2):
        assert kernels.call("choose", 1) == 0
        assert kernels.call("new_memory", place, np.uint64(16)) == 0
        assert kernels.call("choose", 0) == 0
        address = int(place[0])
        assert not emulated().holds(address)
        there = on_device(x)
        data = {"data": (address, False)}
        for array, said in (
            (Foreign(there, **data), "in0 is an array of CUDA, and not in"),
            (OfDevice(there, **data), "in0 is an array of device 1 of CUDA, and not in"),
        ):
            with pytest.raises(Error, match="E0714") as refusal:
                f(array, **ON)
            assert said in refusal.value.message
        with pytest.raises(Error, match="E0714"):
            f(x, out=OfDevice(there, **data), **ON)
        assert kernels.call("free_memory", Address(address)) == 0


def test_only_what_is_on_the_host_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    device = emulated()
    write = device.write
    x, y = device.array(rand(8, 4)), rand(4, 3)

    def counted(address: int, array: Any, stream: int = 1) -> None:
        written.append(array.nbytes)
        write(address, array, stream)

    monkeypatch.setattr(device, "write", counted)
    i("ik*kj~ijk >> +ijk~ij")(x, y, **ON)
    assert written == [y.nbytes]


def test_work_of_the_streams_of_arrays_comes_first(machine: Emulator) -> None:
    """Two producers on two streams that nothing else orders: whatever runs first, both are done before the program."""
    kernels = program("kernels.cu", checked=True)
    f = i("i+i~i")
    f(np.ones(100, np.float32), np.ones(100, np.float32), **ON)
    for seed in range(1, 7):
        handles = np.zeros(2, np.uintp)
        assert (
            kernels.call("new_stream", handles[:1]) == kernels.call("new_stream", handles[1:]) == 0
        )
        one, two = int(handles[0]), int(handles[1]) if seed % 2 else STREAM_OF_THREAD
        x, y = new_array((100,), np.float32), new_array((100,), np.float32)
        with machine.settings(streams=seed):
            assert kernels.call("fill", x, np.float32(3), 100, Address(one)) == 0
            assert kernels.call("fill", y, np.float32(4), 100, Address(two)) == 0
            result = f(Foreign(x, stream=one), Foreign(y, stream=two), **ON)
            assert result.stream == one
            assert (result.get() == 7).all()
        for handle in handles:
            assert kernels.call("free_stream", Address(int(handle))) == 0


class Torch:
    """A stream as torch has it."""

    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle


class Cupy:
    """A stream as CuPy has it."""

    def __init__(self, handle: int) -> None:
        self.ptr = handle


class Protocol:
    """A stream of whatever follows the protocol of cuda.core."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@pytest.mark.parametrize("kind", [int, np.uintp, Torch, Cupy, Protocol])
def test_a_call_runs_on_the_stream_that_it_is_given(machine: Emulator, kind: Any) -> None:
    """After what the stream of an input has to do, and before what the streams of arrays are given then."""
    kernels = program("kernels.cu", checked=True)
    f, g = i("i+i~i"), i("i*i~i")
    ones = np.ones(100, np.float32)
    f(ones, ones, **ON)
    g(ones, ones, **ON)
    for seed in range(1, 7):
        handles = np.zeros(2, np.uintp)
        assert (
            kernels.call("new_stream", handles[:1]) == kernels.call("new_stream", handles[1:]) == 0
        )
        one, two = (int(handle) for handle in handles)
        x, y, out = (new_array((100,), np.float32) for _ in range(3))
        with machine.settings(streams=seed):
            assert kernels.call("fill", x, np.float32(3), 100, Address(one)) == 0
            assert kernels.call("fill", y, np.float32(4), 100, Address(two)) == 0
            given = Foreign(x, stream=one), Foreign(y, stream=two)
            f(*given, out=Foreign(out, stream=one), stream=kind(two), **ON)
            assert kernels.call("fill", x, np.float32(5), 100, Address(one)) == 0
            result = g(*given, stream=kind(two), **ON)
            assert result.stream == two
            emulated().wait(one)  # on which the first result is ready, too
            assert (out.get() == 7).all()
            assert (result.get() == 20).all()
        for handle in (one, two):
            assert kernels.call("free_stream", Address(handle)) == 0


def test_streams_that_are_none() -> None:
    f, x = i("-i~i"), np.ones(4, np.float32)
    there = on_device(x)
    assert f(there, stream=Torch(0), **ON).stream == f(there, stream=0, **ON).stream == 1
    assert f(there, stream=None, **ON).stream == 1
    for stream in (True, -1, 1 << 64, 1.5, "two", [3], Torch(-1)):
        with pytest.raises(Error, match="no stream of CUDA") as refusal:
            f(there, stream=stream, **ON)
        assert refusal.value.code == "E0767"
    for target in ("c", "numpy"):
        with pytest.raises(Error, match=f"the target is {target}") as refusal:
            f(x, stream=1, target=target)
        assert refusal.value.code == "E0767"
    solved: Any = tensor.solve(tensor.relu(tensor.data(None, (4,), (), (2,), "x")))
    summed = elementwise("f", ["x + y"], inputs=["x", "y"])
    with pytest.raises(Error, match="E0767"):
        solved(np.ones((2, 4), np.float32), stream=1)
    with pytest.raises(Error, match="E0767"):
        summed(x, x, stream=1)
    assert summed(there, there, stream=1, **ON).stream == 1


def test_streams_that_arrays_name() -> None:
    """1 is the legacy default stream, 2 that of a thread, None any; 0 would be either (CUDA Array Interface 3)."""
    f, x = i("ij~ji"), rand(3, 4)
    there = on_device(x)
    for named, given, stream in [(2, None, 2), (1, 2, 2), (2, 1, 1), (None, 2, 2), (None, None, 1)]:
        result = f(Foreign(there, stream=named), stream=given, **ON)
        assert result.__cuda_array_interface__["stream"] == result.stream == stream
        assert (result.get() == x.T).all()
        assert (f(result, **ON).get() == x).all()
    out = new_array((4, 3), np.float32)
    f(there, out=Foreign(out, stream=2), stream=2, **ON)
    assert (out.get() == x.T).all()
    wrong: list[tuple[object, str]] = [(0, "may be the legacy"), (-1, "is no stream"), (True, "no")]
    for value, says in wrong:
        at = Foreign(there, stream=value)
        calls: list[Callable[[], Any]] = [partial(f, at, **ON), partial(f, x, out=at, **ON)]
        for call in calls:
            with pytest.raises(Error, match=says) as refusal:
                call()
            assert refusal.value.code == "E0767"
    with pytest.raises(Error, match="E0767"):
        there.__dlpack__(stream=0)


@pytest.mark.parametrize(("stream", "new"), [(1, 0), (2, 2)])
def test_threads_share_workspaces_of_streams_that_they_share(
    monkeypatch: pytest.MonkeyPatch, stream: int, new: int
) -> None:
    """Calls on one stream come one after the other; those on the streams of two threads may meet."""
    f, x = i("+ij~j >> ^j~j >> (I & (+j~.)) >> j/.~j"), on_device(rand(5, 4))
    device, both = emulated(), threading.Barrier(2, timeout=60)
    spaces: list[DeviceArray] = []
    f(x, stream=1, **ON)
    empty = device.empty

    def counted(shape: tuple[int, ...], dtype: Any, stream: int = 1) -> DeviceArray:
        array = empty(shape, dtype, stream)
        if dtype is np.uint8:
            spaces.append(array)
        return array

    def call() -> None:
        both.wait()
        f(x, stream=stream, **ON)
        both.wait()

    monkeypatch.setattr(device, "empty", counted)
    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(spaces) == new


def test_kernels_take_the_rank_of_an_array_that_tells_its_shape_alone() -> None:
    x = rand(3, 4)
    rows = elementwise("f", [{"expr": "x", "mode": ("accumulate", "sum", 1)}], inputs=["x"])
    result = rows(Foreign(on_device(x)), **ON)
    assert np.allclose(result.get(), rows(x, target="numpy"), atol=1e-6)


def test_refusals() -> None:
    f, x = i("-i~i"), np.ones(4, np.float32)
    there = on_device(x)
    on_host = Foreign(there, data=(x.ctypes.data, False))
    readonly = Foreign(there, data=(there.address, True))
    attempts: list[tuple[str, Callable[[], Any]]] = [
        ("E0714", lambda: f(Foreign(there, strides=(8,), shape=(2,)), **ON)),
        ("E0714", lambda: f(on_host, **ON)),
        ("E0703", lambda: f(on_device(np.ones(4, np.int8)), **ON)),
        ("E0701", lambda: f(there, there, **ON)),
        ("E0702", lambda: f(Foreign(there))),
        ("E0706", lambda: f(there, out=(there, there), **ON)),
        ("E0707", lambda: f(there, out=new_array((5,), np.float32), **ON)),
        ("E0708", lambda: f(there, out=new_array((4,), np.float64), **ON)),
        ("E0709", lambda: f(there, out=there, **ON)),
        ("E0710", lambda: f(x, out=readonly, **ON)),
        ("E0711", lambda: f(x, threads=0, **ON)),
        ("E0712", lambda: f(x, target="cuda_emulated")),
    ]
    for code, attempt in attempts:
        with pytest.raises(Error) as refusal:
            attempt()
        assert refusal.value.code == code


def test_a_device_that_fails(machine: Emulator) -> None:
    f, x = i("-i~i"), np.ones(1000, np.float32)
    f(x, **ON)
    with machine.settings(memory=3000), pytest.raises(Error, match="E0713"):
        f(x, **ON)
    there = on_device(x)  # more than what the device then has
    with machine.settings(memory=3000), pytest.raises(Error, match="E0713"):
        f(there, **ON)
    with machine.settings(devices=0), pytest.raises(Error, match="no CUDA-capable device"):
        f(x, **ON)
    machine.take_findings()
    device = emulated()
    with pytest.raises(Error) as failure:
        device.read(8, np.empty(4, np.uint8))
    assert failure.value.code == "E0922"
    assert "the source: 0x8 is no device memory [host code]" in failure.value.message


def test_a_call_that_looks_elements_up_neither_allocates_nor_waits(machine: Emulator) -> None:
    """Kernels look at arrays of indices before anything is written; a call that waits tells what they saw."""
    component = i("(b@vd~bd) | (c@wd~cd)")
    text = component.source("cuda", dtypes=("i64", "f32", "i64", "f32"))
    run = text[text.index("int program(") : text.index("int program_wait(")]
    assert not any(word in run for word in ("cudaMalloc", "Synchronize", "cudaMemcpy", ", true"))
    native, sizes = load(text, "looked.cu", checked=True), np.full(8, 4, np.int64)
    work = new_array((native.call("program_work", sizes, gives="size"),), np.uint8)
    indices, table = np.array([3, 0, 2, 1]), rand(4, 4)
    outputs = [on_device(np.zeros((4, 4), np.float32)) for _ in range(2)]
    for last, wanted in ((4, 4), (-1, 4), (1, 0)):
        indices[-1] = last
        arrays = (on_device(np.arange(4)), on_device(table), on_device(indices), on_device(table))
        with machine.settings(failing=1):
            assert native.call("program", sizes, *arrays, *outputs, work, None) == 0
            assert native.call("program_wait", sizes, work, None) == wanted
        assert outputs[0].get().any() == (wanted == 0)
    np.testing.assert_array_equal(outputs[1].get(), table[indices])
    assert native.call("program_wait", sizes, None, None) == 1


def test_indices_that_are_computed_of_others() -> None:
    """Where the first ones are out of range, nothing computes the next ones, and nothing looks at them."""
    f = i("f(x[b], y[v], z[w]) = { p = (b@v~b)(x, y); (b@w~b)(p, z) }")
    y, z = np.array([2, 0, 1]), rand(3)
    for x, whole in (([0, 2], True), ([0, 3], False), ([-1, 2], False)):
        if whole:
            np.testing.assert_array_equal(f(np.array(x), y, z, **ON), z[y[x]])
        else:
            with pytest.raises(Error, match="E0746"):
                f(np.array(x), y, z, **ON)
    with pytest.raises(Error, match="E0746"):
        f(np.array([0, 2]), y + 1, z, **ON)


def test_threads_share_a_device() -> None:
    f = i("ij*jk~ijk >> +ijk~ik >> +ij~i")
    x = rand(20, 20)
    expected = f(x, x, target="numpy")
    right: list[bool] = []

    def work() -> None:
        right.extend(np.allclose(f(x, x, **ON), expected, rtol=1e-4) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 60


def test_tensor_programs() -> None:
    x = tensor.data(None, (4,), (), (2,), "x")
    y = tensor.relu(tensor.param("w") @ x + tensor.param("b", output=(3,), value=1.0))
    f, given, weights = tensor.solve(y), rand(4, 2), rand(3, 2)
    assert np.allclose(f(weights, given, **ON), f(weights, given), rtol=1e-5)


def front(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    said = capsys.readouterr()
    return status, said.out, said.err


def test_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", "+i~.", "[1,2]", "--target")
    assert front(capsys, *words, "cuda", "--emulate") == (0, "out  .  f32\n3.\n", "")
    status, _, error = front(capsys, *words, "numpy", "--emulate")
    assert (status, error.splitlines()[0]) == (
        2,
        "error[E0822]: --emulate is for CUDA, not for numpy",
    )
    monkeypatch.setattr(driver_module, "DRIVERS", ("libnone.so",))
    gpu.gpu.cache_clear()
    status, _, error = front(capsys, *words, "cuda")
    assert status == 3
    assert error == (
        "error[E0923]: there is no GPU that CUDA can use: no driver of NVIDIA is installed (libnone.so)\n"
        'help: emulate one, slowly: --emulate on the command line, target="cuda-emulated" in Python\n'
    )


def test_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("check", "ik*kj~ijk >> +ijk~ij", "--target", "cuda")
    line = "(in0[i,k], in1[k,j]) -> [i,j]   CUDA right at 7 sets of extents in 3 orders of threads, emulated\n"
    assert front(capsys, *words) == (0, line, "")
    _, out, _ = front(capsys, *words, "--json")
    (told,) = json.loads(out)["definitions"]
    assert told["cuda"]["runs"] == 7
    simple = ("check", "--target", "cuda", "--", "-i~i")

    def planted(before: str, after: str) -> tuple[int, str]:
        def emitted(lowered: Any) -> str:
            text = original(lowered)
            assert before in text
            return text.replace(before, after)

        original = cuda.emit
        with monkeypatch.context() as patch:
            patch.setattr(cuda, "emit", emitted)
            patch.setattr(cache, "_writer", lambda: None)  # what it wrote is not remembered
            status, _, error = front(capsys, *simple)
        return status, error

    status, error = planted("in0[", "in0[1 + ")
    assert (status, error.split(":")[0]) == (70, "error[E9912]")
    assert "illegal read at program.cu:" in error
    status, error = planted("in0[", "2 * in0[")
    assert (status, error.split(":")[0]) == (70, "error[E9905]")


def test_what_a_text_follows_from_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of an earlier run is loaded, not written again: another component is as good as another run."""
    x = rand(7)
    expected = i("i*i~i")(x, x, **ON)
    monkeypatch.setattr(cuda, "emit", None)
    assert np.array_equal(i("i*i~i")(x, x, **ON), expected)


def test_comparison_is_that_of_the_self_test() -> None:
    stored = StoredOutput(np.array([1.0, np.nan, np.inf], np.float32), 2, 1e-3, 0.0)
    right = np.array([1.0005, 9, np.nan, 9, np.inf, 9], np.float32)
    assert emulation.first_wrong(stored, right) is None
    for place, value in ((0, 1.002), (2, 0.0), (4, 1e30), (0, np.nan)):
        wrong = right.copy()
        wrong[place] = value
        assert emulation.first_wrong(stored, wrong) == place // 2
    exact = StoredOutput(np.array([1, 2], np.int32), 1, 0.0, 0.0)
    assert emulation.first_wrong(exact, np.array([1, 3], np.int32)) == 1


DRIVER = """
int cuInit(unsigned flags) { return FAILS; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? 8 : 0;
    return device;
}
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = context; return device; }
int cuCtxPushCurrent_v2(void *context) { return context == 0; }
int cuCtxPopCurrent_v2(void **context) { *context = context; return 0; }
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Put a driver in place that says what a test wants."""

    def install(fails: int, count: int) -> None:
        library = tmp_path / f"libcuda{fails}{count}.so"
        (tmp_path / "driver.c").write_text(DRIVER, "utf-8")
        numbers = [f"-DFAILS={fails}", f"-DCOUNT={count}"]
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            *numbers,
            str(tmp_path / "driver.c"),
            "-o",
            str(library),
        ]
        subprocess.run(command, check=True)
        monkeypatch.setattr(driver_module, "DRIVERS", (str(library),))
        gpu.gpu.cache_clear()

    return install


def test_what_the_driver_says(driver: Callable[[int, int], None]) -> None:
    driver(3, 1)
    with pytest.raises(Error, match="cuInit of the driver gave status 3"):
        gpu.capability()
    driver(0, 0)
    with pytest.raises(Error, match="knows of none"):
        gpu.capability()
    driver(0, 1)
    assert gpu.capability() == 80


def test_tensor_programs_take_arrays_of_the_device() -> None:
    """By place and by name, mixed with those of the host; any shape with as many elements, and no single number."""
    x = tensor.data(None, (4,), (), (2,), "x")
    y = tensor.relu(tensor.param("w") @ x + tensor.param("b", output=(3,), value=1.0))
    f, given, weights = tensor.solve(y), rand(4, 2), rand(3, 2)
    wanted = f(x=given, w=weights)
    device = emulated()
    moved = device.array(given)
    for mixed in ({"w": weights}, {"w": device.array(weights.reshape(6))}):
        result = f(x=moved, **mixed, **ON)
        assert isinstance(result, DeviceArray)
        assert np.allclose(result.get(), wanted, rtol=1e-5)
    out = device.empty(wanted.shape, np.float32)
    assert f(x=moved, w=weights, out=out, **ON) is out
    assert np.allclose(out.get(), wanted, rtol=1e-5)
    for wrong in (rand(), rand(5)):
        with pytest.raises(Error, match="x has shape"):
            f(x=device.array(wrong), w=weights, **ON)


def test_components_check_their_cuda() -> None:
    told = i("ik*kj~ijk >> +ijk~ij").check("cuda")
    assert told.cuda is not None
    assert told.cuda.runs == 7
    assert str(told).endswith("CUDA right at 7 sets of extents in 3 orders of threads, emulated")
    assert "   schedule legal" in str(i("+ij~i | i:4 | i j i'").check("cuda"))
    with pytest.raises(Error, match="no check for target 'numpy'") as refusal:
        i("-i~i").check("numpy")
    assert refusal.value.code == "E0712"


def test_no_compiler(
    driver: Callable[[int, int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    driver(0, 1)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("NVCC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    status, out, error = front(capsys, "run", "-i~i", "[1]", "--target", "cuda")
    looked = "looked for $NVCC (not set), nvcc, the packages of ilang[nvcc] and the packages of ilang[cuda]"
    help_line = (
        "pip install 'ilang[cuda]', or install NVIDIA's CUDA toolkit; or emulate one, slowly"
    )
    first, second = error.splitlines()
    assert (status, out) == (3, "")
    assert first == f"error[E0901]: no CUDA compiler was found: {looked}"
    assert second.startswith(f"help: {help_line}: --emulate on the command line")


def test_nvcc_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest that can run, told where its libraries are; any nvcc on the path goes before."""
    sites = tmp_path / "site"
    for release, mode in (("cu12", 0o755), ("cu13", 0o755), ("cu14", 0o644)):
        nvcc = sites / "nvidia" / release / "bin" / "nvcc"
        nvcc.parent.mkdir(parents=True)
        nvcc.write_text("#!/bin/sh\n")
        nvcc.chmod(mode)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.delenv("NVCC", raising=False)
    root = sites / "nvidia" / "cu13"
    spec = ModuleSpec("nvidia", None, is_package=True)
    assert spec.submodule_search_locations is not None
    spec.submodule_search_locations.append(str(sites / "nvidia"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    assert find_compiler(gpu.CUDA).command == (str(root / "bin" / "nvcc"), f"-L{root / 'lib'}")
    for release in ("cu12/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13"):
        library = sites / "nvidia" / release
        library.parent.mkdir(exist_ok=True)
        library.write_text("")
    assert find_compiler(gpu.CUDA).package == gpu.WHEELS
    monkeypatch.setenv("NVCC", "nvrtc")
    assert find_compiler(gpu.CUDA).command[-1] == str(root / "lib" / "libnvrtc.so.13")
    monkeypatch.delenv("NVCC")
    monkeypatch.setenv("PATH", str(sites / "nvidia" / "cu12" / "bin"))
    assert find_compiler(gpu.CUDA).command == (str(sites / "nvidia/cu12/bin/nvcc"),)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_project_takes_nvcc_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Makefile asks Python where no nvcc is on the path, and takes whatever NVCC names."""
    compiler = tmp_path / "site" / "nvidia" / "cu13" / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "cat", "make"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    # Of a make that runs this test: it would be told what that one was told.
    for variable in ("NVCC", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "double.i").write_text("double = i+i~i\n")
    assert (
        main(["build", str(tmp_path / "double.i"), "--target", "cuda", "-o", str(tmp_path / "p")])
        == 0
    )

    def compiled_by(*words: str) -> str:
        done = subprocess.run(
            ["make", "-n", f"PYTHON={sys.executable}", *words, "double.o"],
            cwd=tmp_path / "p",
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()[-1].partition(" -std")[0]

    assert compiled_by() == f"{compiler} -L{compiler.parents[1] / 'lib'}"
    assert compiled_by("NVCC=other") == "other"
    compiler.chmod(0o644)
    assert compiled_by() == "nvcc"
    (tools / "nvcc").write_text("#!/bin/sh\n")
    (tools / "nvcc").chmod(0o755)
    assert compiled_by() == str(tools / "nvcc")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")
def test_nvcc_compiles_for_the_gpu(driver: Callable[[int, int], None]) -> None:
    """As far as it goes without a GPU: programs are compiled and loaded, and CUDA refuses to run them."""
    driver(0, 1)
    device = offload.device_of("cuda")
    assert device.name == "the GPU"
    with pytest.raises(Error) as failure:
        i("-i~i")(np.ones(3), target="cuda")
    assert failure.value.code == "E0922"
    gpu.gpu.cache_clear()


def test_a_long_call_can_be_stopped(machine: Emulator) -> None:
    f, x = i("ik*kj~ijk >> +ijk~ij"), rand(1500, 1500)
    small = f(x[:8, :8], x[:8, :8], **ON)
    before = machine.threads_run()

    def interrupt() -> None:
        while machine.threads_run() < before + 1000:
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        f(x, x, **ON)
    thread.join()
    assert machine.threads_run() < before + x.size
    assert np.array_equal(f(x[:8, :8], x[:8, :8], **ON), small)


def test_a_forked_child_has_a_device_of_its_own() -> None:
    """Also where another thread runs a kernel at the time of the fork: the child finds the lock open."""
    f, x = i("ij*jk~ijk >> +ijk~ik"), rand(64, 64)
    expected = f(x, x, **ON)
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            f(x, x, **ON)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of forks of processes with threads
            child = os.fork()
        if not child:
            os._exit(0 if np.array_equal(f(x, x, **ON), expected) else 1)
    finally:
        is_over.set()
        thread.join()
    assert os.waitpid(child, 0)[1] == 0

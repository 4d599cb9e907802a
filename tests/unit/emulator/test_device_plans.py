"""Calls on a device like an earlier one: what they look at, what they leave to the long way, and where they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ilang import Error, i
from ilang.codegen.call.native import Address
from ilang.codegen.components.component import Component
from ilang.codegen.device import device_plans
from ilang.codegen.device.device import DeviceArray
from ilang.codegen.device.device_plans import ArrayReading, TensorMemory
from ilang.codegen.emulator.program import emulated
from ilang.codegen.emulator.runtime import Emulator
from tests.unit.emulator.conftest import new_array, on_device, program

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("machine")]

ON: Any = {"target": "cuda-emulated"}


def rand(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


class Foreign:
    """An array of another library: nothing but ``__cuda_array_interface__``."""

    def __init__(self, array: DeviceArray, **changed: object) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets of calls that were looked at as a whole."""
    taken: list[str] = []
    from ilang.codegen.components.program import WrittenProgram

    call = WrittenProgram.call

    def counted(self: Any, given: Any, out: Any, threads: Any, target: str, stream: Any) -> Any:
        taken.append(target)
        return call(self, given, out, threads, target, stream)

    monkeypatch.setattr(WrittenProgram, "call", counted)
    return taken


def test_a_call_like_an_earlier_one_goes_the_short_way(long_ways: list[str]) -> None:
    f, x, y = i("ik*kj~ijk >> +ijk~ij"), rand(8, 4), rand(4, 3)
    a, b, out = on_device(x), on_device(y), new_array((8, 3), np.float32)
    for kind in (lambda each: each, Foreign):
        long_ways.clear()
        for turn in range(3):
            result = f(kind(a), kind(b), **ON)
            assert isinstance(result, DeviceArray)
            np.testing.assert_allclose(result.get(), x @ y, rtol=1e-5)
            given = kind(out)
            assert f(kind(a), kind(b), out=given, **ON) is given
            np.testing.assert_allclose(out.get(), x @ y, rtol=1e-5)
            assert len(long_ways) == 2, turn
    np.testing.assert_allclose(f(on_device(x[:5]), b, **ON).get(), x[:5] @ y, rtol=1e-5)
    assert len(long_ways) == 3
    assert type(f(a, y, **ON)) is DeviceArray  # an array of the host is copied each time
    assert type(f(a, y, **ON)) is DeviceArray
    assert len(long_ways) == 5
    np.testing.assert_allclose(f(x, y), x @ y, rtol=1e-5, atol=1e-6)


def test_several_outputs_and_calls_that_wait(long_ways: list[str]) -> None:
    f, x = i("(+ij~i) & (ij~ji)"), rand(4, 5)
    there = on_device(x)
    outs = new_array((4,), np.float32), new_array((5, 4), np.float32)
    for _ in range(2):
        sums, turned = f(there, **ON)
        np.testing.assert_allclose(sums.get(), x.sum(1), rtol=1e-5)
        assert (turned.get() == x.T).all()
        assert f(there, out=outs, **ON) is outs
        assert (outs[1].get() == x.T).all()
    assert len(long_ways) == 2
    g, table = i("bt@vd~btd"), on_device(rand(7, 3))
    good, bad = (on_device(np.array([[0, last]])) for last in (6, 7))
    for _ in range(2):
        assert (g(good, table, **ON).get() == rand(7, 3)[[[0, 6]]]).all()
    with pytest.raises(Error, match="E0746"):
        g(bad, table, **ON)
    assert len(long_ways) == 3


def test_what_is_refused_is_refused_after_a_call_that_was_right(machine: Emulator) -> None:
    kernels, f = program("kernels.cu", checked=False), i("-i~i")
    x = rand(4)
    there, out = on_device(x), new_array((4,), np.float32)
    for _ in range(2):
        f(Foreign(there), **ON)
        f(there, **ON)
        f(there, out=Foreign(out), **ON)
    place = np.zeros(1, np.uintp)
    with machine.settings(devices=2):
        assert kernels.call("choose", 1) == 0
        assert kernels.call("new_memory", place, np.uint64(16)) == 0
        assert kernels.call("choose", 0) == 0
        data = {"data": (int(place[0]), False)}
        attempts: list[tuple[str, Callable[[], Any]]] = [
            ("E0714", lambda: f(Foreign(there, **data), **ON)),
            ("E0714", lambda: f(there, out=Foreign(out, **data), **ON)),
            ("E0714", lambda: f(Foreign(there, data=(x.ctypes.data, False)), **ON)),
            ("E0714", lambda: f(Foreign(there, strides=(8,)), **ON)),
            ("E0710", lambda: f(there, out=Foreign(out, data=(out.address, True)), **ON)),
            ("E0709", lambda: f(there, out=Foreign(there), **ON)),
            ("E0707", lambda: f(there, out=new_array((5,), np.float32), **ON)),
            ("E0711", lambda: f(there, threads=0, **ON)),
            ("E0767", lambda: f(there, stream=-1, **ON)),
            ("E0767", lambda: f(Foreign(there, stream=0), **ON)),
            ("E0702", lambda: f(Foreign(there))),
            ("E0701", lambda: f(there, there, **ON)),
            ("E0712", lambda: f(there, target="cuda_emulated")),
        ]
        for code, attempt in attempts:
            with pytest.raises(Error) as refusal:
                attempt()
            assert refusal.value.code == code
        assert kernels.call("free_memory", Address(int(place[0]))) == 0
    assert (f(there, **ON).get() == -x).all()


def test_the_short_way_orders_streams(machine: Emulator) -> None:
    kernels, f = program("kernels.cu", checked=True), i("i+i~i")
    ones = on_device(np.ones(100, np.float32))
    f(Foreign(ones), Foreign(ones), out=Foreign(new_array((100,), np.float32)), **ON)
    for seed in range(1, 7):
        handles = np.zeros(2, np.uintp)
        for place in (handles[:1], handles[1:]):
            assert kernels.call("new_stream", place) == 0
        one, two = map(int, handles)
        x, y, out = (new_array((100,), np.float32) for _ in range(3))
        with machine.settings(streams=seed):
            assert kernels.call("fill", x, np.float32(3), 100, Address(one)) == 0
            assert kernels.call("fill", y, np.float32(4), 100, Address(two)) == 0
            given = Foreign(x, stream=one), Foreign(y, stream=two)
            f(*given, out=Foreign(out, stream=one), stream=two, **ON)
            assert kernels.call("fill", x, np.float32(5), 100, Address(one)) == 0
            emulated().wait(one)
            assert (out.get() == 7).all()
        for handle in (one, two):
            assert kernels.call("free_stream", Address(handle)) == 0


class Tensor:
    """A stand-in for a tensor on a GPU: its class says which device it is of."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.device = "cuda:0"
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None}


def test_tensors_are_made_on_the_current_stream(
    monkeypatch: pytest.MonkeyPatch, long_ways: list[str]
) -> None:
    """PyTorch has no tensors of an emulated device: what ``torch_tensors`` does with them is played."""
    kernels, handles = program("kernels.cu", checked=True), np.zeros(1, np.uintp)
    assert kernels.call("new_stream", handles) == 0
    streams = [int(handles[0])]

    def reading(tensor: Tensor) -> ArrayReading:
        return ArrayReading(("tensor", tensor.array.shape), tensor.array.address)

    spaces: list[int] = []

    def memory_of(device: str, outputs: Any) -> TensorMemory:
        def new() -> Any:
            tensors = tuple(Tensor(new_array(shape, dtype)) for shape, dtype in outputs)
            return tensors, [each.array.address for each in tensors]

        def space(count: int) -> tuple[DeviceArray, int]:
            spaces.append(count)
            held = new_array((count,), np.uint8)
            return held, held.address

        assert device == "cuda:0"
        return TensorMemory(lambda: streams[0], new, space)

    monkeypatch.setitem(device_plans._readers, Tensor, reading)
    monkeypatch.setitem(device_plans._memories, Tensor, memory_of)
    f, x = i("-i~i"), rand(6)
    there = Tensor(on_device(x))
    f(there, **ON)
    results = [f(there, stream=stream, **ON) for stream in (None, streams[0])]
    emulated().wait(streams[0])
    for result in results:
        assert type(result) is Tensor
        assert (result.array.get() == -x).all()
    assert len(long_ways) == 1
    assert type(f(there, stream=1, **ON)) is DeviceArray
    assert len(long_ways) == 2
    sums, square = i("+ij~j >> ^j~j >> (I & (+j~.)) >> j/.~j"), rand(3, 3)
    assert type(sums(Tensor(on_device(square)), **ON)) is Tensor  # the first call, too
    assert len(spaces) == 1
    assert kernels.call("free_stream", Address(streams[0])) == 0


def test_tensors_off_a_gpu_are_not_read() -> None:
    torch = pytest.importorskip("torch")
    reading = pytest.importorskip("ilang.codegen.frameworks.torch_tensors").reading
    assert reading(torch.zeros(3)) is None
    assert reading(torch.zeros(3, device="meta")) is None
    f: Component = i("-i~i")
    f(on_device(rand(3)), **ON)
    assert torch.equal(f(torch.ones(3)), -torch.ones(3))

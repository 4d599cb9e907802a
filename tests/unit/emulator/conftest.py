"""Programs of this folder: compiled once, and nothing found that a test does not ask for."""

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ilang.codegen.call.native import Native
from ilang.codegen.device.device import DeviceArray
from ilang.codegen.emulator.program import emulated, load
from ilang.codegen.emulator.runtime import Emulator, emulator
from tests.shares import one_in

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def has_compiler() -> None:
    """The cache is the one of all tests: compiling the emulator takes longer than most that run on it."""
    if shutil.which("g++") is None:
        pytest.skip("the emulator needs g++, which is not here")


@pytest.fixture
def machine() -> Iterator[Emulator]:
    """The emulated machine; the test takes what is found, and frees what it allocates."""
    machine = emulator()
    emulated()
    machine.take_findings()
    gc.collect()  # sessions of other tests, which keep arrays there
    before = machine.live_allocations()
    yield machine
    assert machine.take_findings() == ()
    if machine.live_allocations() != before:
        gc.collect()  # errors and what they happened to hold may point to each other
    assert machine.live_allocations() == before


def on_device(array: Any) -> DeviceArray:
    """A copy of an array on the emulated device."""
    return emulated().array(array)


def new_array(shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    """A new array on the emulated device."""
    return emulated().empty(shape, dtype)


def program(name: str, *, checked: bool) -> Native:
    """A .cu file of this folder."""
    return load((HERE / name).read_text("utf-8"), name, checked=checked)


@pytest.fixture(params=["fast", "checked"])
def kernels(request: pytest.FixtureRequest, machine: Emulator) -> Native:
    """The correct kernels, in both builds."""
    machine.take_findings()
    return program("kernels.cu", checked=request.param == "checked")


@pytest.fixture(params=one_in(2, [5, 1, 0]), ids=["random", "backward", "forward"])
def order(request: pytest.FixtureRequest, machine: Emulator) -> Iterator[None]:
    """Orders in which threads run."""
    with machine.settings(order=request.param):
        yield

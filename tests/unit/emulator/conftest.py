"""Programs of this folder: compiled once, kept for the next run, and nothing found that a test does not ask for."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ilang.codegen.emulator.program import Program, load
from ilang.codegen.emulator.runtime import Runtime, emulated_device

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def kept_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is compiled beside pytest's own files."""
    if shutil.which("g++") is None:
        pytest.skip("the emulator needs g++, which is not here")
    cache = getattr(request.config, "cache", None)
    if cache is not None:
        monkeypatch.setenv("I_CACHE_DIR", str(cache.mkdir("emulator")))


@pytest.fixture
def device() -> Iterator[Runtime]:
    """The emulated device; the test takes what is found, and frees what it allocates."""
    device = emulated_device()
    device.take_findings()
    before = device.live_allocations()
    yield device
    assert device.take_findings() == ()
    assert device.live_allocations() == before


def program(name: str, *, checked: bool) -> Program:
    """A .cu file of this folder."""
    return load((HERE / name).read_text("utf-8"), name, checked=checked)


@pytest.fixture(params=["fast", "checked"])
def kernels(request: pytest.FixtureRequest, device: Runtime) -> Program:
    """The correct kernels, in both builds."""
    device.take_findings()
    return program("kernels.cu", checked=request.param == "checked")


@pytest.fixture(params=[0, 1, 5], ids=["forward", "backward", "random"])
def order(request: pytest.FixtureRequest, device: Runtime) -> Iterator[None]:
    """Orders in which threads run."""
    with device.settings(order=request.param):
        yield

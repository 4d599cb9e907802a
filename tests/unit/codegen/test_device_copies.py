"""Sessions on a device: what goes there and comes back, and that nobody sees values of before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ilang import load
from ilang.codegen.device.device import Device
from ilang.codegen.device.streams import DEFAULT_STREAM
from ilang.codegen.emulator.program import emulated
from ilang.core.diagnostic import ToolError

pytestmark = [
    pytest.mark.usefixtures("shared_cache"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++"),
]

TEXT = """
cd step(x: f32, t: f32; lr = 0.1) {
  p = "w" * x + "b" 2 *. "scale" 0.5
  "velocity" =: 0.5 *. velocity + (p - t ++ "b|o => o") ++ "|o => o"
  loss = (p - t) **. 2 ++ "...|... => 0"
  backprop(loss)
  w =- lr *. w.grad
  b =- lr *. b.grad
  "runs" =: runs + 1
  return loss, velocity
}
"""
TARGET = "cuda-emulated"
RUNS = 4


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    """What makes a session of the step."""
    path = tmp_path / "m.i"
    path.write_text(TEXT, "utf-8")
    module = load(path)

    def session(target: str = TARGET, **options: Any) -> Any:
        return module.session("step", {"x": "4|3", "t": "4|2"}, seed=1, target=target, **options)

    return session


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """``w`` for each array that is copied to the device, ``r`` for each that is copied from it."""
    copies: list[str] = []
    write, read = Device.write, Device.read

    def noted(sign: str, function: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any) -> None:
            copies.append(sign)
            function(*given)

        return call

    monkeypatch.setattr(Device, "write", noted("w", write))
    monkeypatch.setattr(Device, "read", noted("r", read))
    return copies


def arrays() -> tuple[Any, Any]:
    draw = np.random.default_rng(3)
    return draw.standard_normal((4, 3), np.float32), draw.standard_normal((4, 2), np.float32)


def agree(one: Any, other: Any) -> None:
    for kept, expected in ((one.parameters, other.parameters), (one.state, other.state)):
        for path, array in expected.items():
            np.testing.assert_allclose(kept[path], array, rtol=1e-5, atol=1e-6, err_msg=path)


def test_arrays_stay_between_runs(opened: Callable[..., Any], copied: list[str]) -> None:
    s, host, (x, t) = opened(), opened("c"), arrays()
    first, expected = s(x, t), host(x, t)
    del copied[:]
    for _ in range(RUNS):
        first, expected = s(x, t), host(x, t)
    assert copied == [*"wwrr"] * RUNS
    for got, wanted in zip(first, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    del copied[:]
    agree(s, host)
    assert copied == ["r"] * 4, "w, b, velocity and runs; scale has not changed"


def test_what_a_caller_has_got_is_sent_again(opened: Callable[..., Any]) -> None:
    s, host, (x, t) = opened(), opened("c"), arrays()
    for _ in range(RUNS):
        for one in (s, host):
            one(x, t)
            one.parameters["w"][0] += 1
            one.parameters["scale"][...] *= 1.5
            one.state["velocity"][...] = 2
    agree(s, host)
    held = s.parameters["scale"], host.parameters["scale"]
    for one, scale in zip((s, host), held, strict=True):
        for _ in range(RUNS):
            scale[...] *= 0.5
            one(x, t)
    agree(s, host)


class Recorder:
    """Streams that are the default one; recordings that enqueue once more."""

    def __init__(self) -> None:
        self.launches = 0

    def stream(self) -> tuple[int, int]:
        return 0, DEFAULT_STREAM

    def end_stream(self, stream: int) -> int:
        return 0 * stream

    def recorded(self, stream: int, enqueue: Callable[[], None]) -> Any:
        def launch() -> None:
            self.launches += 1
            enqueue()

        assert stream == DEFAULT_STREAM
        return SimpleNamespace(launch=launch)


def test_runs_are_recorded(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run on each of two sides is made by itself, the others are launched, until arrays are replaced."""
    recorder = Recorder()
    monkeypatch.setattr(emulated(), "recorder", recorder)
    monkeypatch.setattr(Device, "recorded", recorder.recorded)
    s, host, (x, t) = opened(), opened("c"), arrays()
    for _ in range(2 + RUNS):
        s(x, t)
        host(x, t)
    assert recorder.launches == RUNS
    agree(s, host)
    for one in (s, host):
        one.parameters["b"] = [3, 4]
        one(x, t)
    assert recorder.launches == RUNS
    agree(s, host)


def test_what_cannot_be_recorded_is_enqueued() -> None:
    """A device that refuses to record, at the beginning, in between or at the end: recording always ends."""
    calls: list[str] = []

    class Refusing:
        at = "begin"

        def record(self, stream: int) -> int:
            calls.append("begin")
            return 900 * (self.at == "begin") + 0 * stream

        def recorded(self, stream: int) -> tuple[int, int]:
            calls.append("end")
            return 901 * (self.at == "end") + 0 * stream, 1

        def end_graph(self, graph: int) -> int:
            return 0 * graph

    def enqueue() -> None:
        if recorder.at == "between":
            raise ToolError("E0922", "the stream is capturing")

    recorder: Any = Refusing()
    nothing: Any = SimpleNamespace()
    device = Device("a device", nothing, nothing)
    device.recorder = recorder
    for at, expected in (("begin", 1), ("between", 2), ("end", 2), ("", 2)):
        recorder.at = at
        del calls[:]
        assert (device.recorded(5, enqueue) is None) is (at != "")
        assert len(calls) == expected


def test_arrays_that_are_replaced(opened: Callable[..., Any], tmp_path: Path) -> None:
    s, host, (x, t) = opened(), opened("c"), arrays()
    for one in (s, host):
        one(x, t)
        one.parameters["b"] = [3, 4]
        one.config["lr"] = 0.01
        one(x, t)
        one(x, t)
        one.save(tmp_path / f"{one is s}.npz")
        one(x, t)
        one.load(tmp_path / f"{one is s}.npz")
        one(x, t)
    agree(s, host)


def test_sessions_that_share_parameters(opened: Callable[..., Any]) -> None:
    x, t = arrays()
    for other in ("c", TARGET):
        s, host = opened(), opened("c")
        s(x, t)
        host(x, t)
        one, alike = opened(other, parameters=s), opened("c", parameters=host)
        for _ in range(2):
            for each in (s, host, one, alike, one, alike, s, host):
                each(x, t)
        agree(s, host)
        agree(one, alike)


def test_gradients_and_what_is_kept(opened: Callable[..., Any]) -> None:
    s, host, (x, t) = opened(keep=["p"]), opened("c", keep=["p"]), arrays()
    values = []
    for one in (s, host):
        one(x, t)
        one(x, t)
        first = one.value("p")
        before = first.copy()
        values.append([one.value("w.grad"), first])
        one(x, t)
        np.testing.assert_array_equal(first, before)
    for got, wanted in zip(*values, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_run_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(
        "rows_of(table[v,d], ids: i64[b]) = (b@vd~bd)(ids, table)\n"
        'cd f(n: i64) { "k" =+ 1; y = rows_of("w" (3, 2), n) *. k; return y }\n'
    )
    s = load(path).session("f", {"n": "|2"}, target=TARGET)
    first = s(n=np.array([0, 2]))
    for _ in range(2):
        with pytest.raises(Exception, match="no index of axis v"):
            s(n=np.array([0, 3]))
    np.testing.assert_array_equal(s.state["k"], np.ones((2, 2)))
    np.testing.assert_array_equal(s(n=np.array([0, 2])), 2 * first)

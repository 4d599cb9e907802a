"""Correct kernels give what NumPy gives, in both builds, whatever the order of threads, and nothing is found."""

from typing import Any

import numpy as np
import pytest

from ilang.codegen.call.native import Native
from ilang.codegen.device.device import DeviceArray
from ilang.codegen.emulator.runtime import Emulator
from tests.unit.emulator.conftest import new_array, on_device

RANDOM = np.random.default_rng(0)


def rand(*shape: int) -> Any:
    return RANDOM.standard_normal(shape, dtype=np.float32)


def close(result: DeviceArray, expected: Any, tolerance: float = 1e-6) -> None:
    array = result.get()
    assert np.isfinite(array).all()
    assert np.linalg.norm(array - expected) <= tolerance * np.linalg.norm(expected)


def softmax(x: Any) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("is_dynamic", [0, 1])
@pytest.mark.usefixtures("order")
def test_matmul(kernels: Native, is_dynamic: int) -> None:
    m, n, k = 33, 70, 19
    a, b = rand(m, k), rand(k, n)
    c = new_array((m, n), np.float32)
    assert kernels.call("matmul", on_device(a), on_device(b), c, m, n, k, is_dynamic) == 0
    close(c, a.astype(np.float64) @ b)


@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (3, 100), (2, 1024)])
@pytest.mark.usefixtures("order")
def test_softmax(kernels: Native, rows: int, columns: int) -> None:
    x = rand(rows, columns) * 5
    y = new_array(x.shape, x.dtype)
    assert kernels.call("softmax", on_device(x), y, rows, columns) == 0
    close(y, softmax(x))


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["directly", "tile", "padded"])
@pytest.mark.usefixtures("order")
def test_transpose(kernels: Native, kind: int) -> None:
    x = rand(70, 45)
    y = new_array((45, 70), x.dtype)
    assert kernels.call("transpose", on_device(x), y, 70, 45, kind) == 0
    assert (y.get() == x.T).all()


@pytest.mark.usefixtures("order")
def test_reductions(kernels: Native) -> None:
    x, total, parts = rand(10007), new_array((1,), np.float32), new_array((8,), np.float32)
    assert kernels.call("total", on_device(x), total, parts, x.size) == 0
    assert abs(total.get()[0] - x.sum(dtype=np.float64)) < 1e-3
    values = RANDOM.integers(0, 50, 3000).astype(np.int32)
    counts = new_array((50,), np.int32)
    assert kernels.call("histogram", on_device(values), counts, values.size, 50) == 0
    assert (counts.get() == np.bincount(values, minlength=50)).all()
    rows, sums = rand(3, 384), new_array((3,), np.float32)
    assert kernels.call("row_sums", on_device(rows), sums, 3, 384) == 0
    close(sums, rows.sum(1, dtype=np.float64))


@pytest.mark.parametrize(("queries", "keys"), [(32, 32), (40, 70)])
@pytest.mark.usefixtures("order")
def test_online_attention(kernels: Native, queries: int, keys: int) -> None:
    q, k, v = rand(queries, 64) / 8, rand(keys, 64), rand(keys, 64)
    o = new_array(q.shape, q.dtype)
    given = [on_device(array) for array in (q, k, v)]
    assert kernels.call("attention", *given, o, queries, keys) == 0
    close(o, softmax(q @ k.T) @ v)


def test_shuffles_follow_the_rule_of_ptx(kernels: Native) -> None:
    lanes, y = np.arange(32), new_array((32,), np.int32)
    for width in (1, 2, 8, 32):
        first, last = lanes & ~(width - 1), lanes | (width - 1)
        for by in (0, 1, 5, 8, 31):
            sources = [first + (by & (width - 1)), lanes - by, lanes + by, lanes ^ by]
            inside = [lanes >= 0, first <= sources[1], sources[2] <= last, sources[3] <= last]
            for kind in range(4):
                assert kernels.call("shuffle", y, kind, by, width) == 0
                expected = 100 + np.where(inside[kind], sources[kind], lanes)
                assert (y.get() == expected).all()


@pytest.mark.usefixtures("order")
def test_warps(kernels: Native) -> None:
    x = rand(32)
    y = on_device(x)
    assert kernels.call("reverse", y) == 0
    assert (y.get() == x[::-1]).all()
    small = on_device(np.arange(70, dtype=np.uint8))
    assert kernels.call("bytes", small) == 0
    assert (small.get() == (4 * np.arange(70) + 3).astype(np.uint8)).all()
    bits = RANDOM.integers(0, 2, 32).astype(np.int32)
    votes = new_array((4,), np.int32)
    assert kernels.call("vote", on_device(bits), votes) == 0
    ballot, any_, all_, count = votes.get()
    assert np.uint32(ballot) == sum(1 << n for n in range(32) if bits[n])
    assert (any_, all_, count) == (1, 0, bits.sum())


def test_streams_show_a_missing_event(kernels: Native, machine: Emulator) -> None:
    """Work that runs at the next wait, in some order, is wrong for some seed where nothing orders it."""
    x, y = rand(1000), np.zeros(1000, np.float32)
    right: dict[int, list[bool]] = {0: [], 1: []}
    for has_event, seen in right.items():
        for seed in range(1, 7):
            with machine.settings(streams=seed):
                assert kernels.call("six_times", x, y, x.size, has_event) == 0
            seen.append(np.allclose(y, 6 * x))
            machine.take_findings()  # the wrong order reads what was not written
    assert all(right[1])
    assert not all(right[0])


def test_a_failed_allocation_leaks_nothing(kernels: Native, machine: Emulator) -> None:
    x = rand(100)
    for failing in (1, 2, 3):
        with machine.settings(failing=failing):
            assert kernels.call("six_times", x, x.copy(), x.size, 1) == 2


def test_many_allocations(kernels: Native) -> None:
    """What is freed leaves nothing behind that a later allocation could meet."""
    for n in range(1, 100):
        x = rand(n % 37 + 1, n % 53 + 1)
        y = new_array(x.shape[::-1], x.dtype)
        assert kernels.call("transpose", on_device(x), y, *x.shape, 2) == 0
        assert (y.get() == x.T).all()

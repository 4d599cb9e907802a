"""Calls of solved tensor programs: arrays in order and by name, what is kept between calls, every refusal."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, i, tensor
from ilang.codegen.components import routine
from ilang.core import pipeline

Array = npt.NDArray[Any]
pytestmark = pytest.mark.usefixtures("real_compiler", "shared_cache")


def grid(*shape: int, dtype: Any = np.float32) -> Array:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def layer(weights: Any = None) -> tuple[tensor.Tensor, tensor.Program]:
    x = tensor.data(None, (4,), (), (2,), "x")
    w, b = tensor.param("w", value=weights), tensor.param("b", output=(3,), value=1.0)
    y = tensor.relu(w @ x + b)
    return y, tensor.solve(y)


def code(program: Any, *arrays: Any, **named: Any) -> str:
    with pytest.raises(Error) as caught:
        program(*arrays, **named)
    assert caught.value.code is not None
    return caught.value.code


def test_arrays_stand_in_the_order_of_first_use() -> None:
    y, f = layer()
    x, w = grid(4, 2), grid(3, 2)
    wanted = np.maximum(x @ w.T + 1, 0)
    assert f.routine(y).takes() == ("w", "x")
    assert np.array_equal(f(w, x), wanted)
    assert np.array_equal(f(w, x=x), wanted)
    assert np.array_equal(f(x=x, w=w), wanted)
    assert np.array_equal(f.value(y, x=x, w=w), wanted)
    assert np.array_equal(f(w, x, target="numpy"), wanted)


def test_a_later_call_infers_and_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    y, f = layer(grid(6))
    wanted = f(grid(4, 2))
    monkeypatch.setattr(pipeline, "tensors_shaped", None)
    monkeypatch.setattr(routine, "supported_array", None)
    assert np.array_equal(f(grid(4, 2)), wanted)
    assert np.array_equal(f(x=grid(4, 2)), wanted)
    assert np.array_equal(f.value(y, x=grid(4, 2)), wanted)
    into = np.empty((4, 3), np.float32)
    assert f(grid(4, 2), out=into) is into
    assert np.array_equal(into, wanted)
    assert np.array_equal(f(grid(4, 2), threads=2), wanted)


def test_types_have_a_specialization_each() -> None:
    _, f = layer(grid(6))
    assert f(grid(4, 2)).dtype == np.float32
    assert f(grid(4, 2, dtype=np.float64)).dtype == np.float64
    assert f(grid(4, 2)).dtype == np.float32


def test_values_of_a_leaf_are_read_at_each_call() -> None:
    weights = grid(3, 2)
    _, f = layer(weights)
    x = grid(4, 2)
    assert np.array_equal(f(x), np.maximum(x @ weights.T + 1, 0))
    weights *= 2
    assert np.array_equal(f(x), np.maximum(x @ weights.T + 1, 0))


@pytest.mark.parametrize("weights", [grid(6)[::-1], grid(6).astype(">f4"), grid(6, dtype=np.int16)])
def test_values_that_c_cannot_read_are_read_anew(weights: Array) -> None:
    _, f = layer(weights)
    x = grid(4, 2)
    for _ in range(2):
        assert np.array_equal(f(x), np.maximum(x @ weights.reshape(3, 2).T + 1, 0))
        weights += 1


def test_flat_and_strided_arrays() -> None:
    _, f = layer(grid(6))
    x = grid(4, 2)
    wanted = f(x)
    for other in (x.ravel(), np.asfortranarray(x), x.astype(">f4"), grid(4, 4)[:, :2] * 0 + x):
        assert np.array_equal(f(other), wanted)
        assert np.array_equal(f(other), wanted)


def test_several_results() -> None:
    x = tensor.data(None, (), (), (3,), "x")
    f = tensor.solve(x + 1, x * 2)
    for _ in range(2):
        more, twice = f(grid(3))
        assert more.tolist() == [1, 2, 3]
        assert twice.tolist() == [0, 2, 4]


def test_refusals() -> None:
    _, f = layer(grid(6))
    x = grid(4, 2)
    assert code(f) == "E0742"
    assert code(f, x, x) == "E0701"
    assert code(f, x, v=x) == "E0741"
    assert code(f, grid(4, 3)) == "E0743"
    assert code(f, x, target="metal") == "E0712"
    assert code(f, x, threads=0) == "E0711"
    assert code(f, x, out=np.empty((4, 4), np.float32)) == "E0707"
    assert code(f, x, out=x.reshape(2, 4)) == "E0707"


def test_pages(tmp_path: Path) -> None:
    _, f = layer()
    page = str(f.explain())
    assert page.startswith("tensor(w[3,2], x[4,2], b[3]) -> [4,3]")
    assert "out[b0,o0] = max(0, Σ_k0 w[o0,k0]·x[b0,k0] + b[o0])" in page
    assert str(f.check()) == "tensor(w[3,2], x[4,2], b[3]) -> [4,3]"
    written = f.build(tmp_path, "layer")
    assert [path.name for path in written][:2] == ["layer.h", "layer.c"]
    done = subprocess.run(["make", "-s", "test"], cwd=tmp_path, capture_output=True, check=True)
    assert b"tests passed" in done.stdout


def test_pages_of_components(tmp_path: Path) -> None:
    f = i("ik*kj~ijk >> +ijk~ij")
    assert "in0  f32[3,4]  i k" in str(f.explain((3, 4), (4, 5)))
    assert f.explain(verbose=True).story
    assert str(f.check()) == "(in0[i,k], in1[k,j]) -> [i,j]"
    scheduled = str(i("+ij~i | i:4 | i j i'").check())
    assert scheduled.startswith("(in0[i,j]) -> [i]   schedule legal; right at ")
    assert f.build(tmp_path, "product", {"in0": (3, 4)})[0] == tmp_path / "product.h"


def test_text() -> None:
    _, f = layer(grid(6))
    assert "int tensor(" in f.source()
    assert "for " in f.loops()
    with pytest.raises(Error, match="no text for target"):
        f.source("numpy")

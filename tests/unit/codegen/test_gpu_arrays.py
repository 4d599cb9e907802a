"""Arrays of a GPU from other libraries: values, gradients, streams and refusals. Needs a GPU, and skips without one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, I, einsum, einx, i, lib, load
from ilang.codegen.device import gpu

pytestmark = pytest.mark.cuda

NUMBERS = np.random.default_rng(5).standard_normal((37, 53)).astype(np.float32)
PRODUCT = "ik*kj~ijk >> +ijk~ij"
SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"


@pytest.fixture(autouse=True, scope="module")
def device() -> None:
    """A GPU."""
    try:
        gpu.capability()
    except Error as none:
        pytest.skip(none.message)


def codes(call: Any) -> str:
    with pytest.raises(Error) as caught:
        call()
    return caught.value.code


class TestTorch:
    """Tensors of PyTorch on a GPU."""

    @pytest.fixture(autouse=True)
    def imported(self) -> None:
        """PyTorch, which is no dependency."""
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def given(self, *shape: int, dtype: Any = None) -> Any:
        torch = self.torch
        return torch.randn(*shape, device="cuda", dtype=dtype or torch.float32)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_results_stay_on_the_device(self, dtype: str) -> None:
        torch = self.torch
        a, b = (self.given(*s, dtype=getattr(torch, dtype)) for s in ((70, 90), (90, 33)))
        c = i(PRODUCT)(a, b)
        assert c.device == a.device
        assert c.dtype == a.dtype
        torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-4)

    def test_notations(self) -> None:
        torch = self.torch
        x = self.given(37, 53)
        torch.testing.assert_close(i(SOFTMAX)(x), torch.softmax(x, 1))
        torch.testing.assert_close(einsum("ij,kj->ik", x, x), x @ x.T, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(einx.softmax("a [b]", x), torch.softmax(x, 1))
        torch.testing.assert_close(lib.var(x, axis=0), x.var(0, correction=0))

    def test_integers_and_flags(self) -> None:
        torch = self.torch
        table, rows = self.given(50, 8), torch.randint(0, 50, (20,), device="cuda")
        assert torch.equal(i("b@vd~bd")(rows, table), table[rows])
        n = torch.arange(24, device="cuda").reshape(4, 6)
        assert torch.equal(i("+ij~j")(n), n.sum(0))
        codes_of_rows = torch.tensor([3, 99], device="cuda")
        assert codes(lambda: i("b@vd~bd")(codes_of_rows, table)).startswith("E07")
        assert torch.equal(i("b@vd~bd")(rows, table), table[rows])

    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (1, 1025), (1025, 1)])
    def test_extents_at_the_edge(self, shape: tuple[int, int]) -> None:
        torch = self.torch
        x = self.given(*shape)
        torch.testing.assert_close(i("+ij~i")(x), x.sum(1), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(i("+ij~j")(x), x.sum(0), rtol=1e-4, atol=1e-4)

    def test_gradients(self) -> None:
        torch = self.torch
        x = self.given(5, 7, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(i(SOFTMAX), (x,))
        assert torch.autograd.gradgradcheck(i(SOFTMAX), (x,))
        y = self.given(64, 48).requires_grad_()
        i(SOFTMAX)(y).square().sum().backward()
        mine, y.grad = y.grad, None
        torch.softmax(y, 1).square().sum().backward()
        torch.testing.assert_close(mine, y.grad)

    def test_out(self) -> None:
        torch = self.torch
        x, out = self.given(40, 30), torch.full((30, 40), float("nan"), device="cuda")
        assert i("ij~ji")(x, out=out) is out
        assert torch.equal(out, x.T)

    def test_streams(self) -> None:
        torch = self.torch
        f, side = i(PRODUCT), torch.cuda.Stream()
        a = self.given(512, 512)
        expected = a.double() @ a.double()
        for _ in range(20):
            with torch.cuda.stream(side):
                b = a * 2
                c = f(b, b)
                d = c / 4
            side.synchronize()
            torch.testing.assert_close(d.double(), expected, rtol=1e-4, atol=1e-2)

    def test_a_graph_records_a_call(self) -> None:
        torch = self.torch
        f, a = i(PRODUCT), self.given(256, 256)
        out = torch.empty_like(a)
        f(a, a, out=out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            f(a, a, out=out)
        a.copy_(self.given(256, 256))
        graph.replay()
        torch.testing.assert_close(out.double(), a.double() @ a.double(), rtol=1e-4, atol=1e-3)

    def test_refusals(self) -> None:
        torch = self.torch
        x = self.given(6, 4)
        assert codes(lambda: i("ij+ij~ij")(x, x.cpu())) == "E0716"
        assert codes(lambda: i("ij+ij~ij")(x.T, x.T)) == "E0714"
        assert torch.equal(i("ij+ij~ij")(x.half(), x.half()), x.half().float() * 2)
        torch.testing.assert_close(i("ij+ij~ij")(x, x), 2 * x)

    def test_threads(self) -> None:
        torch = self.torch
        f, wrong = i(PRODUCT), []

        def work(seed: int) -> None:
            a = torch.full((64 + seed, 64 + seed), float(seed), device="cuda")
            if not all(torch.allclose(f(a, a), a @ a) for _ in range(30)):
                wrong.append(seed)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_compiled_functions(self) -> None:
        torch = self.torch
        f = i(SOFTMAX)
        x = self.given(32, 40)
        g = torch.compile(lambda t: f(t * 2) + 1, fullgraph=True)
        torch.testing.assert_close(g(x), torch.softmax(x * 2, 1) + 1)

    def test_definitions(self, tmp_path: Path) -> None:
        torch = self.torch
        path = tmp_path / "m.i"
        path.write_text("op f(x: f32, y: f32) = tanh(x *. y)\n")
        x = self.given(9, 4)
        torch.testing.assert_close(load(path)["f"](x, x), torch.tanh(x * x))


class TestOthers:
    """Arrays of CuPy and JAX on a GPU."""

    def test_cupy(self) -> None:
        cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
        x = cupy.asarray(NUMBERS)
        y = i(SOFTMAX)(x, target="cuda")
        shown = cupy.asnumpy(cupy.asarray(y))
        e = np.exp(NUMBERS - NUMBERS.max(1, keepdims=True))
        np.testing.assert_allclose(shown, e / e.sum(1, keepdims=True), rtol=1e-5)
        out = cupy.empty((53, 37), cupy.float32)
        i("ij~ji")(x, out=out, target="cuda")
        np.testing.assert_array_equal(cupy.asnumpy(out), NUMBERS.T)

    def test_jax(self) -> None:
        jax = pytest.importorskip("jax", reason="JAX is not installed")
        x = jax.numpy.asarray(NUMBERS)
        if x.devices().pop().platform not in ("gpu", "cuda"):
            pytest.skip("JAX sees no GPU")
        y = i(SOFTMAX)(x)
        np.testing.assert_allclose(np.asarray(y), np.asarray(jax.nn.softmax(x, 1)), rtol=1e-5)
        assert y.devices() == x.devices()

    def test_arrays_of_the_host(self) -> None:
        sums = i("+ij~i")(NUMBERS, target="cuda")
        np.testing.assert_allclose(sums, NUMBERS.sum(1), rtol=1e-4, atol=1e-4)
        squares = (I & i("ij~ji")) >> i("ik*kj~ijk >> +ijk~ij")
        expected = NUMBERS @ NUMBERS.T
        np.testing.assert_allclose(squares(NUMBERS, target="cuda"), expected, rtol=1e-4, atol=1e-3)


def test_steps_of_training(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    path.write_text(
        "cd step(x, t; lr = 0.01) {\n"
        '  y = tanh("w" * x + "b" 20)\n'
        '  loss = (y - t) **. 2 ++ "...|... => 0"\n'
        "  backprop(loss)\n"
        "  for p in params(loss) { p =- lr *. p.grad }\n"
        "  return loss\n"
        "}\n"
    )
    t = np.tanh(NUMBERS[:, :20])
    shapes = {"x": "37|53", "t": "37|20"}
    one, other = (load(path).session("step", shapes, seed=1, target=on) for on in ("cuda", "c"))
    for _ in range(20):
        np.testing.assert_allclose(one(NUMBERS, t), other(NUMBERS, t), rtol=1e-4)
    for name, array in other.parameters.items():
        np.testing.assert_allclose(one.parameters[name], array, rtol=1e-3, atol=1e-5)

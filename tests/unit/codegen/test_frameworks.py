"""Tensors of PyTorch and arrays of JAX: the same memory in and out, gradients, traced functions, refusals."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, einsum, einx, elementwise, i, lib, load
from ilang.codegen.frameworks import foreign

pytestmark = pytest.mark.usefixtures("shared_cache", "compiled_quickly")

NUMBERS = np.random.default_rng(3).standard_normal((4, 5))
CALLS: dict[str, Callable[[Any], Any]] = {
    "program": i("(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"),
    "named": lambda x: i("f(x[n,m]) = softmax(x)")(x=x),
    "einsum": lambda x: einsum("ij,kj->ik", x, x),
    "of three": lambda x: einsum("ij,kj,kl->il", x, x, x),
    "ours": lambda x: einsum("ij;kj=>ik", x, x),
    "einx": lambda x: einx.softmax("a [b]", x),
    "composed": lambda x: einx.mean("a (b [c])", x, c=5),
    "library": lambda x: lib.var(x, axis=0),
    "kernel": lambda x: elementwise("f", ["x0 * x0", "sum: exp(x0)"])(x)[0],
    "mixed": lambda x: i("ij*j~ij")(x, NUMBERS[0].astype(str(x.dtype).rpartition(".")[2])),
    "number": lambda x: i("ij*.~ij")(x, 2.0),
    "gradient": lambda x: i("softmax").grad()(x, x),
    "ones": lambda x: i("ij*ij~ij >> +ij~i").grad(wrt=0)(x, x),
    "values": lambda x: i("softmax").value_and_grad()(x, x)[1],
    "slope": lambda x: i("softmax").jvp()(x, x)[1],
}


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "vmap": lambda to, f, a: to.vmap(f, (0, None))(a["batch"], a["y"]),
    "vmap of both": lambda to, f, a: to.vmap(f, (0, 2), 1)(
        a["batch"], a["y"][..., None].expand(3, 2, 4)
    ),
    "vmap of vmap": lambda to, f, a: to.vmap(to.vmap(f, (0, None)), (0, None))(
        a["batch"][:, None], a["y"]
    ),
    "grad": lambda to, f, a: to.grad(lambda x: f(x, a["y"]).sum())(a["x"]),
    "vmap of grad": lambda to, f, a: to.vmap(to.grad(lambda y, x: (f(x, y) ** 2).sum()), (None, 0))(
        a["y"], a["batch"]
    ),
    "grad of vmap": lambda to, f, a: to.grad(lambda b: to.vmap(f, (0, None))(b, a["y"]).sum())(
        a["batch"]
    ),
    "jacrev": lambda to, f, a: to.jacrev(f)(a["x"], a["y"]),
    "jacfwd": lambda to, f, a: to.jacfwd(f, 1)(a["x"], a["y"]),
    "jvp": lambda to, f, a: to.jvp(f, (a["x"], a["y"]), (2 * a["x"], a["y"])),
    "hessian": lambda to, f, a: to.hessian(lambda x: (f(x, a["y"]) ** 2).sum())(a["x"]),
}
"""Transforms of a product of matrices, of which b is a batch."""

DEFINITIONS = """
use nn
op f(x: f64, y: f64; by = 2) = tanh(x *. y) + by *. x *. [1; 2; 3]
cd parts(x: f64, y: f64) { a = x *. y; b = a ++ "...|i => ...|"; return a, b }
op unread(x: f64, y: f64) { _ = y; x *. x }
op net(x) = linear(tanh(linear(x; 4)); 2)
cd counted(x) { "n" =: n + 1; y = x *. n; return y }
"""


def codes(call: Callable[[], Any]) -> str:
    with pytest.raises(Error) as caught:
        call()
    return caught.value.code


def test_numpy_alone_is_of_no_library() -> None:
    assert foreign.library_of([NUMBERS, 1.0, [2], object()]) is None


def test_calls_import_no_library() -> None:
    text = """import sys, numpy
from ilang import i
i("+i~.")(numpy.ones(3))
sys.exit(" ".join({"torch", "jax", "ilang.codegen.frameworks.torch_tensors"} & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class TestTorch:
    """Tensors of PyTorch."""

    @pytest.fixture(autouse=True)
    def imported(self) -> None:
        """PyTorch, which is no dependency."""
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    @pytest.mark.parametrize("name", CALLS)
    def test_values_are_those_of_arrays(self, name: str) -> None:
        for dtype in (np.float32, np.float64):
            x = NUMBERS.astype(dtype)
            answer, expected = CALLS[name](self.torch.from_numpy(x)), CALLS[name](x)
            assert isinstance(answer, self.torch.Tensor)
            np.testing.assert_array_equal(answer.numpy(), expected)
            assert answer.numpy().dtype == np.asarray(expected).dtype

    @pytest.mark.parametrize("name", CALLS)
    def test_gradients(self, name: str) -> None:
        x = self.torch.from_numpy(NUMBERS[:2, :5].copy()).requires_grad_()
        assert self.torch.autograd.gradcheck(CALLS[name], (x,))

    @pytest.mark.parametrize("name", ["program", "einsum", "library"])
    def test_gradients_of_gradients(self, name: str) -> None:
        x = self.torch.from_numpy(NUMBERS[:2].copy()).requires_grad_()
        assert self.torch.autograd.gradgradcheck(CALLS[name], (x,))

    def test_several_inputs_and_outputs(self) -> None:
        torch = self.torch
        f = i("ij*j~ij >> (I & >@ij~i) >> (I | I)")
        x = torch.from_numpy(NUMBERS.copy()).requires_grad_()
        y = torch.from_numpy(NUMBERS[0].copy())
        product, places = f(x, y)
        assert (places == (x * y).argmax(1)).all()
        assert product.requires_grad
        assert not places.requires_grad
        product.sum().backward()
        assert torch.allclose(x.grad, y.expand(4, 5))
        assert y.grad is None

    def test_integers_have_no_gradient(self) -> None:
        torch = self.torch
        table = torch.from_numpy(NUMBERS.copy()).requires_grad_()
        rows = i("b@vd~bd")(torch.tensor([2, 0, 2]), table)
        rows.sum().backward()
        assert table.grad[:, 0].tolist() == [1, 0, 2, 0]

    def test_memory_is_shared(self) -> None:
        torch = self.torch
        x, out = torch.zeros(3, 4), torch.ones(3)
        view = x.t()[1:]
        assert i("+ij~j")(view, out=out) is out
        assert out.tolist() == [0, 0, 0]
        two = torch.ones(3, 4), torch.ones(3)
        assert i("I & +ij~i")(x, out=two) is two
        answer = i("-i~i")(out)
        answer.numpy()[0] = 7
        assert answer[0] == 7
        assert i("+i~.")(x[0]).shape == ()
        assert i("ij~ji")(x[:0]).shape == (4, 0)

    def test_layouts_and_parameters(self) -> None:
        torch = self.torch
        x = torch.from_numpy(NUMBERS.copy())
        parameter = torch.nn.Parameter(x)
        assert torch.equal(i("+ij~i")(parameter).detach(), i("+ij~i")(x))
        assert torch.allclose(i("+ij~i")(x.t().flip(0)[::2]), x.t().flip(0)[::2].sum(1))
        negative = torch.complex(x, x).conj().imag
        assert torch.allclose(i("+ij~i")(negative), -x.sum(1))
        with torch.no_grad():
            assert not i("+ij~i")(parameter).requires_grad

    def test_calls_like_earlier_ones_are_answered_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from ilang.codegen.frameworks import torch_tensors

        f, x = i("+ij~i"), self.torch.from_numpy(NUMBERS.copy())
        first = f(x)
        looked: list[object] = []
        monkeypatch.setattr(torch_tensors, "_call", lambda *given: looked.append(given))
        assert self.torch.equal(f(x), first)
        assert not looked
        negative = self.torch.complex(x, x).conj().imag
        for other in (x.clone().requires_grad_(), negative, self.torch.nn.Parameter(x)):
            f(other)
        f(x, out=first)
        assert len(looked) == 4

    def test_transforms_of_functions(self) -> None:
        torch, x = self.torch, self.torch.from_numpy(NUMBERS.copy())
        slope = torch.func.grad(lambda a: (i("^ij~ij")(a)).sum())(x)
        assert torch.allclose(slope, x.exp())

    def test_tensor_functions(self, tmp_path: Path) -> None:
        torch = self.torch
        (tmp_path / "m.i").write_text("op f(x) = x *. x\ncd g(x) { return x, x }\n", "utf-8")
        library, x = load(tmp_path / "m.i"), torch.from_numpy(NUMBERS.astype(np.float32))
        assert torch.equal(library["f"](x), x * x)
        assert torch.equal(library["f"](x=x), x * x)
        assert all(torch.equal(each, x) for each in library["g"](x))

    @pytest.fixture
    def definitions(self, tmp_path: Path) -> Any:
        (tmp_path / "m.i").write_text(DEFINITIONS, "utf-8")
        return load(tmp_path / "m.i")

    @pytest.mark.parametrize("name", ["f", "parts", "unread"])
    @pytest.mark.parametrize("kind", ["call", "function"])
    def test_gradients_of_definitions(self, name: str, kind: str, definitions: Any) -> None:
        import ilang.torch

        torch, call = self.torch, definitions[name]
        call = ilang.torch.function(call) if kind == "function" else call
        x, y = (torch.from_numpy(NUMBERS[:2, n : n + 3].copy()).requires_grad_() for n in (0, 2))
        assert torch.autograd.gradcheck(call, (x, y))
        if name != "unread":
            assert torch.autograd.gradgradcheck(call, (x, y))

    @pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own look at a graph break
    def test_definitions_by_name_and_with_configuration(self, definitions: Any) -> None:
        torch = self.torch
        x, y = (torch.from_numpy(NUMBERS[:2, n : n + 3].copy()).requires_grad_() for n in (0, 2))
        expected = torch.tanh(x * y) + 5 * x * torch.tensor([1, 2, 3])
        assert torch.allclose(definitions.f(y=y, x=x, config={"by": 5}), expected)
        with torch.no_grad():
            assert not definitions.f(x, y).requires_grad
        compiled = torch.compile(lambda a: definitions.f(2 * a, y).sum(), backend="aot_eager")
        compiled(x).backward()
        again = x.detach().requires_grad_()
        definitions.f(2 * again, y).sum().backward()
        assert torch.allclose(x.grad, again.grad)

    def test_definitions_in_a_compiled_graph(self, definitions: Any) -> None:
        import ilang.torch

        torch, function = self.torch, ilang.torch.function(definitions.f)
        x, y = (torch.from_numpy(NUMBERS[:2, n : n + 3].copy()).requires_grad_() for n in (0, 2))
        loss = torch.compile(
            lambda a, b: (function(2 * a, b) ** 2).sum(), fullgraph=True, backend="aot_eager"
        )
        loss(x, y).backward()
        for tensor, other in zip((x, y), (x, y), strict=True):
            again = [each.detach().requires_grad_() for each in (x, y)]
            (definitions.f(2 * again[0], again[1]) ** 2).sum().backward()
            assert torch.allclose(tensor.grad, again[0 if other is x else 1].grad)

    def test_a_network_as_a_module(self, definitions: Any) -> None:
        import ilang.torch

        torch = self.torch
        x = torch.from_numpy(NUMBERS[:, :3].astype(np.float32))
        net = ilang.torch.Network(definitions.net, x, seed=3)
        session = definitions.session("net", shapes={"x": "4|3"}, seed=3)
        np.testing.assert_allclose(net(x).detach().numpy(), session(x.numpy()), rtol=1e-6)
        assert net.paths == {path.replace(".", "_"): path for path in session.parameters}
        assert net(x[:2]).shape == (2, 2)
        assert {*net.state_dict()} == {"linear_1_w", "linear_1_b", "linear_2_w", "linear_2_b"}
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        losses = []
        for _ in range(50):
            loss = ((net(x) - x[:, :2]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 4
        again = [copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
        assert all(torch.equal(each(x), net(x)) for each in again)
        assert "6 numbers" in str(net) or "numbers" in str(net)
        assert net(x.half()).dtype == torch.float32

    def test_inputs_that_a_network_is_not_for(self, definitions: Any) -> None:
        """Parameters have the shapes of the example; one row without a batch asks for others."""
        import ilang.torch

        x = self.torch.from_numpy(NUMBERS[:, :3].astype(np.float32))
        net = ilang.torch.Network(definitions.net, x)
        with pytest.raises(Error, match=r"inputs of shape \(3,\) give linear_1.w") as caught:
            net(x[0])
        assert caught.value.code == "E0754"
        assert "x.unsqueeze(0)" in caught.value.help
        assert codes(lambda: net(x[:, :2])) == "E0754"

    def test_definitions_that_are_refused(self, definitions: Any) -> None:
        import ilang.torch

        torch, library = self.torch, definitions
        x = torch.from_numpy(NUMBERS[:, :3].astype(np.float32)).requires_grad_()
        assert codes(lambda: library.net(x)) == "E0764"
        assert codes(lambda: ilang.torch.Network(library.counted, x)) == "E0764"
        assert codes(lambda: library.f(x, x.double())) == "E0758"
        assert codes(lambda: library.f(x)) == "E0701"
        assert codes(lambda: ilang.torch.function(library.f)(x.double(), x)) == "E0758"
        assert codes(lambda: ilang.torch.Network(i("+ij~i"), x)) == "E0716"  # type: ignore[arg-type]

    def test_refusals(self) -> None:
        torch, f = self.torch, i("+ij~i")
        for dtype, says in ((torch.uint64, "x.float()"), (torch.complex64, "x.real and x.imag")):
            with pytest.raises(Error) as caught:
                f(torch.zeros(3, 4, dtype=dtype))
            assert says in (caught.value.help or "")
        assert codes(lambda: f(torch.zeros(3, 4, device="meta"))) == "E0702"
        assert codes(lambda: f(torch.zeros(3, 4).to_sparse())) == "E0702"
        assert codes(lambda: f(torch.zeros(3))) == "E0503"
        x = torch.zeros(3, 4, requires_grad=True)
        assert codes(lambda: f(x, out=torch.zeros(3))) == "E0716"
        pair = (torch.zeros(3), torch.zeros(3, device="meta"))
        assert codes(lambda: i("i+i~i")(*pair)) == "E0716"
        assert codes(lambda: f(x, target="cude")) == "E0712"

    def test_a_function_for_compile(self) -> None:
        import ilang.torch

        torch = self.torch
        function = ilang.torch.function(i("ij*j~ij >> (I & +ij~i) >> ij-i~ij"))
        argmax = ilang.torch.function(i("I & >@ij~i"))

        def loss(x: Any, y: Any) -> Any:
            kept, places = argmax(function(2 * x, y))
            return (kept**2).sum() + places.sum() * 0

        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        x = torch.from_numpy(NUMBERS.copy()).requires_grad_()
        y = torch.from_numpy(NUMBERS[0].copy()).requires_grad_()
        value = compiled(x, y)
        value.backward()
        z = 2 * x.detach().clone().requires_grad_() * y.detach()
        assert torch.allclose(value, ((z - z.sum(1, keepdim=True)) ** 2).sum())
        checked = (x.detach().requires_grad_(), y.detach().requires_grad_())
        assert torch.autograd.gradcheck(loss, checked)
        assert torch.allclose(x.grad, torch.autograd.grad(loss(*checked), checked)[0])
        torch.library.opcheck(_operator_of(function), (x.detach(), y.detach()))
        assert codes(lambda: ilang.torch.function("+ij~i")) == "E0716"  # type: ignore[arg-type]

    def test_a_bare_component_breaks_a_compiled_graph(self) -> None:
        torch, f = self.torch, i("softmax")
        compiled = torch.compile(lambda x: f(x * 2) + 1, backend="eager")
        x = torch.from_numpy(NUMBERS.copy())
        assert torch.allclose(compiled(x), torch.softmax(x * 2, 1) + 1)

    @pytest.mark.parametrize("name", ["i", "grad", "einsum", "lib", "einx", "einops"])
    def test_programs_are_made_inside_a_compiled_function(self, name: str) -> None:
        from ilang import einops, einsum, einx, lib

        def call(x: Any) -> Any:
            if name == "i":
                return (i("ij*ij~ij") >> i("+ij~i"))(x, x) + 1
            if name == "grad":
                return i("ij*ij~ij").grad()(x, x, x)[0] + 1
            if name == "einsum":
                return einsum("ij,kj->ik", x, x) + 1
            if name == "lib":
                return lib.softmax(x) + lib.mean(x, axis=0)
            return einx.sum("a [b]", x) if name == "einx" else einops.rearrange(x, "a b -> b a")

        self.torch._dynamo.reset()
        x = self.torch.from_numpy(NUMBERS.copy())
        assert self.torch.allclose(self.torch.compile(call, backend="eager")(x), call(x))

    def test_smaller_types_are_widened(self) -> None:
        import ilang.torch

        torch, f = self.torch, i("+ij~i")
        for call in (f, ilang.torch.function(f)):
            for kind, wide in ((torch.bfloat16, torch.float32), (torch.uint8, torch.int32)):
                x = torch.full((2, 3), 100).to(kind)
                assert torch.equal(call(x), torch.tensor([300, 300], dtype=wide))
            x = torch.ones(2, 3, dtype=torch.float16, requires_grad=True)
            call(x).sum().backward()
            assert torch.equal(x.grad, torch.ones(2, 3, dtype=torch.float16))

    @pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
    @pytest.mark.parametrize("name", sorted(TRANSFORMS))
    @pytest.mark.parametrize("kind", ["component", "operator", "definition"])
    def test_transforms(self, name: str, kind: str, tmp_path: Path) -> None:
        """Those of `torch.func`, alone and one inside another, are those of the same function of PyTorch."""
        import ilang.torch

        torch = self.torch

        def wanted(x: Any, y: Any) -> Any:
            return (x @ y).exp()

        f: Any = i("(ik*kj~ijk >> +ijk~ij) >> ^ij~ij")
        if kind == "operator":
            f = ilang.torch.function(f)
        if kind == "definition":
            text = 'op f(x[n k|], y[k m|]) = exp(x *+ "nk|; km| => nm|" y)'
            (tmp_path / "m.i").write_text(text, "utf-8")
            f = load(tmp_path / "m.i").f
        generator = torch.Generator().manual_seed(0)
        shapes = {"x": (2, 3), "y": (3, 2), "batch": (4, 2, 3)}
        given = {key: torch.randn(shape, generator=generator) for key, shape in shapes.items()}
        answer, expected = (TRANSFORMS[name](torch.func, one, given) for one in (f, wanted))
        torch.testing.assert_close(answer, expected, rtol=1e-4, atol=1e-5)

    @pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
    def test_forward_mode_outside_of_transforms(self) -> None:
        import ilang.torch

        forward = self.torch.autograd.forward_ad
        f, x = i("ij*ij~ij"), self.torch.ones(2, 3)
        for call in (f, ilang.torch.function(f)):
            with forward.dual_level():
                dual = forward.make_dual(x, 3 * x)
                tangent = forward.unpack_dual(call(dual, dual)).tangent
            assert self.torch.equal(tangent, 6 * x)


def _operator_of(function: Any) -> Any:
    return next(cell.cell_contents for cell in function.__closure__)


class TestJax:
    """Arrays of JAX."""

    @pytest.fixture(autouse=True)
    def imported(self) -> None:
        """JAX, which is no dependency."""
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")

    @pytest.mark.parametrize("name", sorted(set(CALLS) - {"mixed"}))
    def test_values_are_those_of_arrays(self, name: str) -> None:
        x = NUMBERS.astype(np.float32)
        answer, expected = CALLS[name](self.jax.numpy.asarray(x)), CALLS[name](x)
        assert isinstance(answer, self.jax.Array)
        np.testing.assert_array_equal(np.asarray(answer), expected)

    def test_integers(self) -> None:
        x = self.jax.numpy.asarray(NUMBERS)
        assert (i(">@ij~i")(x) == x.argmax(1)).all()

    def test_a_number_of_arrays_that_is_refused(self) -> None:
        import ilang.jax

        product = ilang.jax.function(i("ik*kj~ijk >> +ijk~ij"))
        assert codes(lambda: self.jax.jit(product)(self.jax.numpy.ones((2, 2)))) == "E0701"

    def test_types_that_are_refused(self) -> None:
        import ilang.jax

        x = self.jax.numpy.ones((2, 3), "bfloat16")
        assert i("softmax")(x).dtype == np.float32
        with pytest.raises(Error, match=r'function\(i\("softmax"\)\)'):
            ilang.jax.function(lib.softmax)  # type: ignore[arg-type]

    def test_definitions(self, tmp_path: Path) -> None:
        import ilang.jax

        (tmp_path / "m.i").write_text(DEFINITIONS.replace(": f64", ""), "utf-8")
        library, numpy = load(tmp_path / "m.i"), self.jax.numpy
        x, y = (numpy.asarray(NUMBERS[:2, n : n + 3].astype(np.float32)) for n in (0, 2))
        function = ilang.jax.function(library.f)

        def plain(a: Any, b: Any) -> Any:
            return numpy.tanh(a * b) + 2 * a * numpy.array([1.0, 2.0, 3.0])

        def twice(of: Any) -> Any:
            slope = self.jax.grad(lambda a, b: (of(a, b) ** 2).sum())
            return self.jax.grad(lambda a, b: (slope(a, b) ** 3).sum())

        np.testing.assert_allclose(self.jax.jit(function)(x, y), plain(x, y), rtol=1e-5)
        for position in (0, 1):
            slopes = [
                self.jax.grad(lambda a, b, of=of: (of(a, b) ** 2).sum(), argnums=position)(x, y)
                for of in (function, plain)
            ]
            np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-4)
        np.testing.assert_allclose(twice(function)(x, y), twice(plain)(x, y), rtol=1e-3)
        assert [each.shape for each in ilang.jax.function(library.parts)(x, y)] == [(2, 3), (2,)]
        other = ilang.jax.function(library.f, config={"by": 5})(x, y) - plain(x, y)
        np.testing.assert_allclose(other, 3 * x * numpy.array([1.0, 2.0, 3.0]), rtol=1e-4)
        assert codes(lambda: ilang.jax.function(library.net)(x)) == "E0764"
        assert codes(lambda: function(x, y.astype(int))) == "E0758"

    def test_traced_functions(self) -> None:
        import ilang.jax

        jax, jnp = self.jax, self.jax.numpy
        f = ilang.jax.function(i("(ij*j~ij >> ^ij~ij) >> (I & >@ij~i)"))

        def ours(x: Any, y: Any) -> Any:
            return (f(x, y)[0] ** 2).sum()

        def theirs(x: Any, y: Any) -> Any:
            return (jnp.exp(x * y) ** 2).sum()

        x, y = jnp.asarray(NUMBERS, np.float32), jnp.asarray(NUMBERS[0], np.float32)
        np.testing.assert_allclose(jax.jit(ours)(x, y), theirs(x, y), rtol=1e-5)
        places = jax.jit(f)(x, y)[1]
        assert (places == jnp.exp(x * y).argmax(1)).all()
        for argument in (0, 1):
            slope = jax.jit(jax.grad(ours, argument))(x, y)
            np.testing.assert_allclose(slope, jax.grad(theirs, argument)(x, y), rtol=1e-4)
        twice = jax.jacrev(jax.grad(ours, 1), 1)(x, y)
        np.testing.assert_allclose(twice, jax.jacrev(jax.grad(theirs, 1), 1)(x, y), rtol=1e-4)
        batch = jax.vmap(f, in_axes=(0, None))(jnp.stack([x, 2 * x]), y)[0]
        np.testing.assert_allclose(batch[1], jnp.exp(2 * x * y), rtol=1e-5)

    def test_integers_in_traced_functions(self) -> None:
        import ilang.jax

        jax, jnp = self.jax, self.jax.numpy
        rows = ilang.jax.function(i("b@vd~bd"))
        table, places = jnp.asarray(NUMBERS, np.float32), jnp.asarray([2, 0, 2])
        slope = jax.grad(lambda t: rows(places, t).sum())(table)
        assert slope[:, 0].tolist() == [1, 0, 2, 0]

    def test_refusals(self) -> None:
        import ilang.jax

        jax, jnp, f = self.jax, self.jax.numpy, i("+ij~i")
        x = jnp.ones((2, 3))
        for traced in (jax.jit(f), jax.grad(lambda a: f(a).sum()), jax.vmap(i("+i~."))):
            with pytest.raises(Error, match="traced by JAX") as caught:
                traced(x)
            assert caught.value.code == "E0702"
            assert "ilang.jax.function(f)" in (caught.value.help or "")
        assert codes(lambda: jax.jit(ilang.jax.function(f))(x.astype(jnp.complex64))) == "E0703"
        assert codes(lambda: jax.jit(ilang.jax.function(f))(x[0])) == "E0503"
        assert codes(lambda: ilang.jax.function("+ij~i")) == "E0716"  # type: ignore[arg-type]

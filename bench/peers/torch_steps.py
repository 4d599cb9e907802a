"""Steps of training in PyTorch, as its users write them; with ``torch.compile``, of the model and its loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.steps import Arrays, Call, Step

functional: Any = torch.nn.functional


class Block(torch.nn.Module):  # type: ignore[misc]
    """A transformer block; q, k and v are one product, as in GPT-2 of its users."""

    def __init__(self, start: Arrays, *, heads: int, causal: bool) -> None:
        super().__init__()
        size, hidden = start["down.w"].shape
        self.heads, self.causal = heads, causal
        self.before, self.between = torch.nn.LayerNorm(size), torch.nn.LayerNorm(size)
        self.qkv, self.out = torch.nn.Linear(size, 3 * size), torch.nn.Linear(size, size)
        self.up, self.down = torch.nn.Linear(size, hidden), torch.nn.Linear(hidden, size)
        for name in ("before", "between"):
            _fill(getattr(self, name), start[f"{name}.scale"], start[f"{name}.shift"])
        for name in ("out", "up", "down"):
            _fill(getattr(self, name), start[f"{name}.w"], start[f"{name}.b"])
        for n, name in enumerate("qkv"):
            part = slice(n * size, (n + 1) * size)
            with torch.no_grad():
                self.qkv.weight[part] = _tensor(start[f"{name}.w"]).reshape(size, size)
                self.qkv.bias[part] = _tensor(start[f"{name}.b"]).reshape(size)

    def forward(self, x: Any, t: Any) -> Any:
        """The sum of squares of what is off."""
        batch, length, size = x.shape
        parts = self.qkv(self.before(x)).split(size, dim=2)
        shape = (batch, length, self.heads, size // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        y = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        z = y + self.down(torch.relu(self.up(self.between(y))))
        return functional.mse_loss(z, t, reduction="sum")


class Convolutions(torch.nn.Module):  # type: ignore[misc]
    """Two convolutions and a linear layer."""

    def __init__(self, start: Arrays) -> None:
        super().__init__()
        shape = start["out.w"].shape
        self.out = torch.nn.Linear(shape[1] * shape[2] * shape[3], shape[0])
        for name in ("one", "two"):
            kernel = start[f"{name}.k"].transpose(0, 3, 1, 2)
            layer = torch.nn.Conv2d(kernel.shape[1], kernel.shape[0], 3, padding=1)
            _fill(layer, kernel, start[f"{name}.b"])
            setattr(self, name, layer)
        _fill(self.out, start["out.w"].transpose(0, 3, 1, 2), start["out.b"])

    def forward(self, x: Any, t: Any) -> Any:
        """The mean cross entropy."""
        y = functional.max_pool2d(torch.relu(self.one(x)), 2)
        y = functional.max_pool2d(torch.relu(self.two(y)), 2)
        return functional.cross_entropy(self.out(y.flatten(1)), t)


class Slope(torch.nn.Module):  # type: ignore[misc]
    """A matrix."""

    def __init__(self, start: Arrays) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(_tensor(start["w"]))

    def forward(self, x: Any, t: Any) -> Any:
        """The sum of squares of what is off."""
        return functional.mse_loss(x @ self.w.t(), t, reduction="sum")


def _fill(layer: Any, weight: Any, bias: Any) -> None:
    with torch.no_grad():
        layer.weight.copy_(_tensor(weight).reshape(layer.weight.shape))
        layer.bias.copy_(_tensor(bias).reshape(layer.bias.shape))


def _tensor(array: Any) -> Any:
    return torch.from_numpy(array.copy())


def call_of(
    name: str, step: Step, start: Arrays, arrays: Arrays, threads: int, device: str = "cpu"
) -> Call:
    """A call that takes one step on a device; its model is compiled where the peer is called so."""
    torch.set_num_threads(threads)
    torch._dynamo.reset()  # noqa: SLF001 - else every step is one more recompilation, up to a limit
    x, t, rate = _tensor(arrays["x"]), _tensor(arrays["t"]), 0.01
    model: Any
    match step.program:
        case "block":
            model = Block(start, heads=step.config["heads"], causal=step.routine == "causal")
            rate = 0.000001
        case "convolutions":
            model, x = Convolutions(start), x.permute(0, 3, 1, 2).contiguous()
        case _:
            model = Slope(start)
    model, x, t = model.to(device), x.to(device), t.to(device)
    if name == "torch.compile":
        model = torch.compile(model, dynamic=False)
    return _step(model, torch.optim.SGD(model.parameters(), rate, fused=True), x, t)


def _step(model: Callable[..., Any], optimizer: Any, x: Any, t: Any) -> Call:
    def call() -> Any:
        optimizer.zero_grad()
        loss = model(x, t)
        loss.backward()
        optimizer.step()
        return loss.detach().cpu()

    return call

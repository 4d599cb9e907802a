"""Steps of training in JAX: loss, gradients and update are one compiled function, which may write where it reads."""

from __future__ import annotations

from typing import Any

from bench.peers.on_jax import load
from bench.steps import Arrays, Call, Step


def call_of(_: str, step: Step, start: Arrays, arrays: Arrays, threads: int) -> Call:
    """A call that takes one step, and waits for all of it."""
    jax = load(threads)
    loss, rate = _losses(jax, step)
    given = jax.numpy.asarray(arrays["x"]), jax.numpy.asarray(arrays["t"])

    def advance(parameters: Any, x: Any, t: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, x, t)
        return jax.tree.map(lambda old, by: old - rate * by, parameters, gradients), value

    now = {name: jax.numpy.array(array, copy=True) for name, array in _joined(start).items()}
    compiled = jax.jit(advance, donate_argnums=0).lower(now, *given).compile()

    def call() -> Any:
        nonlocal now
        now, value = jax.block_until_ready(compiled(now, *given))
        return value

    return call


def _joined(start: Arrays) -> dict[str, Any]:
    """Parameters, those of q, k and v as one, as users who want speed write it."""
    import numpy as np

    if "q.w" not in start:
        return dict(start)
    joined = {name: array for name, array in start.items() if name[:2] not in ("q.", "k.", "v.")}
    for each in "wb":
        joined[f"qkv.{each}"] = np.stack([start[f"{name}.{each}"] for name in "qkv"])
    return joined


def _losses(jax: Any, step: Step) -> tuple[Any, float]:
    """The loss of parameters, x and t, and the rate."""
    numpy, causal = jax.numpy, step.routine == "causal"

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered * centered).mean(-1, keepdims=True)
        return centered * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    def block(p: Any, x: Any, t: Any) -> Any:
        normal = norm(x, p["before.scale"], p["before.shift"])
        joined = numpy.einsum("btd,nhwd->nbthw", normal, p["qkv.w"])
        q, k, v = joined + p["qkv.b"][:, None, None]
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
        y = x + numpy.einsum("bthw,ohw->bto", mixed, p["out.w"]) + p["out.b"]
        normal = norm(y, p["between.scale"], p["between.shift"])
        hidden = jax.nn.relu(normal @ p["up.w"].T + p["up.b"])
        off = y + hidden @ p["down.w"].T + p["down.b"] - t
        return (off * off).sum()

    def pooled(x: Any, kernel: Any, bias: Any) -> Any:
        orders = ("NHWC", "OHWI", "NHWC")
        y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=orders)
        by = (1, 2, 2, 1)
        return jax.lax.reduce_window(
            jax.nn.relu(y + bias), -numpy.inf, jax.lax.max, by, by, "VALID"
        )

    def convolutions(p: Any, x: Any, t: Any) -> Any:
        y = pooled(pooled(x, p["one.k"], p["one.b"]), p["two.k"], p["two.b"])
        z = y.reshape(len(y), -1) @ p["out.w"].reshape(10, -1).T + p["out.b"]
        return -(jax.nn.log_softmax(z) * t).sum() / len(t)

    def slope(p: Any, x: Any, t: Any) -> Any:
        off = x @ p["w"].T - t
        return (off * off).sum()

    losses = {"block": (block, 0.000001), "convolutions": (convolutions, 0.01)}
    return losses.get(step.program, (slope, 0.01))

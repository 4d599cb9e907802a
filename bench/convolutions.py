"""Convolutions of known networks, one image unless it says more: ``--suite convolutions``.

Layers of ResNet-50 (He et al., 2015), MobileNetV2 (Sandler et al., 2018), ConvNeXt (Liu et al., 2022), U-Net
(Ronneberger et al., 2015) and of sound. Images are padded beforehand, for everyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.suites import Task, arrays

Shape = tuple[int, ...]

FULL: Sequence[Shape] = (
    *(
        (1, 64, 64, 56, 3, 1),
        (1, 128, 128, 28, 3, 1),
        (1, 256, 256, 14, 3, 1),
        (1, 512, 512, 7, 3, 1),
    ),
    *(
        (1, 128, 128, 28, 3, 2),
        (1, 3, 64, 112, 7, 2),
        (1, 64, 256, 56, 1, 1),
        (1, 256, 64, 56, 1, 1),
    ),
    *((1, 1024, 256, 14, 1, 1), (1, 512, 2048, 7, 1, 1), (1, 256, 512, 28, 1, 2)),
    *((8, 16, 32, 32, 3, 1), (8, 64, 64, 16, 3, 1), (1, 1, 16, 200, 5, 1), (1, 64, 3, 128, 3, 1)),
)
"""Images, channels, channels of the result, extent of the result along an axis, side of the window, stride."""

DEPTHWISE: Sequence[Shape] = (
    *(
        (1, 32, 112, 3, 1),
        (1, 96, 56, 3, 2),
        (1, 144, 56, 3, 1),
        (1, 192, 28, 3, 1),
        (1, 384, 14, 3, 1),
    ),
    *((1, 960, 7, 3, 1), (1, 96, 56, 7, 1), (1, 384, 14, 7, 1), (4, 64, 28, 5, 1)),
)
"""Images, channels, extent of the result along an axis, side of the window, stride."""

SIGNALS: Sequence[Shape] = ((4, 64, 128, 1000, 9), (1, 1, 32, 16_000, 80), (8, 256, 256, 100, 3))
"""Signals, channels, channels of the result, length of the result, length of the window."""


def tasks(seed: int, count: int) -> Iterator[Task]:
    """All layers, whatever the count."""
    del count
    for shape in FULL:
        yield _full(seed, shape)
    for shape in DEPTHWISE:
        yield _depthwise(seed, shape)
    for shape in SIGNALS:
        yield _signal(seed, shape)


def _full(seed: int, shape: Shape) -> Task:
    n, c, k, size, side, stride = shape
    extent = stride * (size - 1) + side
    axes = "(h+r)(w+s)" if stride == 1 else f"({stride}h+r)({stride}w+s)"

    def meaning(xp: Any, x: Any, w: Any) -> Any:
        return _convolved(xp, x, w, stride, 1)

    return Task(
        "pointwise" if side == 1 else "full",
        f"nc{axes}*kcrs~nkhwcrs >> +nkhwcrs~nkhw",
        arrays(seed, "float32", (n, c, extent, extent), (k, c, side, side)),
        meaning,
    )


def _depthwise(seed: int, shape: Shape) -> Task:
    n, c, size, side, stride = shape
    extent = stride * (size - 1) + side
    axes = "(h+r)(w+s)" if stride == 1 else f"({stride}h+r)({stride}w+s)"

    def meaning(xp: Any, x: Any, w: Any) -> Any:
        return _convolved(xp, x, w[:, None], stride, c)

    return Task(
        "depthwise",
        f"nc{axes}*crs~nchwrs >> +nchwrs~nchw",
        arrays(seed, "float32", (n, c, extent, extent), (c, side, side)),
        meaning,
    )


def _signal(seed: int, shape: Shape) -> Task:
    n, c, k, length, side = shape

    def meaning(xp: Any, x: Any, w: Any) -> Any:
        return _convolved(xp, x[:, :, None], w[:, :, None], 1, 1)[:, :, 0]

    return Task(
        "signal",
        "nc(t+r)*kcr~nktcr >> +nktcr~nkt",
        arrays(seed, "float32", (n, c, length + side - 1), (k, c, side)),
        meaning,
    )


def _convolved(xp: Any, x: Any, w: Any, stride: int, groups: int) -> Any:
    """A convolution without padding; ``w`` has axes of result, channels of a group, height, width."""
    if xp.__name__ == "torch":
        return xp.conv2d(x, w, stride=stride, groups=groups)
    if xp.__name__ == "jax.numpy":
        from jax import lax

        strides = (stride, stride)
        return lax.conv_general_dilated(x, w, strides, "VALID", feature_group_count=groups)
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    views = views[:, :, ::stride, ::stride]
    if groups == 1:
        return np.einsum("nchwrs,kcrs->nkhw", views, w, optimize=True)
    return np.einsum("nchwrs,crs->nchw", views, w[:, 0], optimize=True)

"""Calls that `torch.compile` leaves alone: TorchDynamo, its machinery, would follow them into the compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def uncompiled(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call into which `torch.compile` does not look, where its machinery is loaded."""
    if "torch._dynamo" in sys.modules:
        import torch

        disabled: Callable[..., Any] = torch.compiler.disable(call)
        return disabled
    return call

"""The same functions as PyTorch's, compiled by ``torch.compile`` for their shapes; needs a C++ compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.peers import Arrays, Call, Calls
from bench.peers.on_torch import FUNCTIONS
from bench.workloads import Workload


def calls(threads: int) -> Calls:
    """Each function compiled at its first call; it does not compile functions that ask for gradients inside."""
    torch.set_num_threads(threads)
    return {
        program: _prepare(function)
        for program, function in FUNCTIONS.items()
        if program != "mlp_train"
    }


def _prepare(function: Callable[..., Any]) -> Callable[[Workload, Arrays], Call]:
    def prepare(_: Workload, arrays: Arrays) -> Call:
        torch._dynamo.reset()  # noqa: SLF001 - else every workload is one more recompilation, up to a limit
        tensors = [torch.from_numpy(array) for array in arrays.values()]
        compiled = torch.compile(function, dynamic=False)

        def call() -> Any:
            with torch.no_grad():
                return compiled(*tensors)

        return call

    return prepare

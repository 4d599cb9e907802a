"""Other array systems: a table of them, and a file each.

A file defines ``calls(threads)``, which gives by program a function that takes the workload and its arrays and gives a
call without arguments: the fastest that the system documents for its users, with outputs and plans made beforehand
where it can. Programs that a system has no words for are left out.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from bench.workloads import Workload
from ilang.core.record import record

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Call = Callable[[], Any]
Calls = Mapping[str, Callable[[Workload, Arrays], Call]]


@record
class Peer:
    """Where a peer's calls are, and the packages it needs."""

    module: str
    packages: tuple[str, ...]


PEERS: Mapping[str, Peer] = {
    "NumPy": Peer("on_numpy", ("numpy",)),
    "numba": Peer("on_numba", ("numba",)),
    "PyTorch": Peer("on_torch", ("torch",)),
    "torch.compile": Peer("on_torch_compile", ("torch",)),
    "JAX": Peer("on_jax", ("jax",)),
    "onnxruntime": Peer("on_onnxruntime", ("onnxruntime", "onnx")),
}
"""By the name in tables."""


def installed() -> list[str]:
    """The peers whose packages are there, nothing of them loaded."""
    return [
        name
        for name, peer in PEERS.items()
        if all(importlib.util.find_spec(package) is not None for package in peer.packages)
    ]


def version_of(name: str) -> str:
    """The version of a peer's first package."""
    from importlib.metadata import version

    return version(PEERS[name].packages[0])


def calls_of(name: str, threads: int) -> Calls:
    """Load a peer, once the threads of this process are set. Raises whatever its packages raise."""
    calls: Calls = importlib.import_module(f"bench.peers.{PEERS[name].module}").calls(threads)
    return calls

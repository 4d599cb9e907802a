"""Our side: the programs of ``bench/programs`` as they stand, compiled, run into an array that is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.workloads import PROGRAMS
from ilang import load

Array = npt.NDArray[Any]


def call_of(
    program: str, arrays: Mapping[str, Array], output: tuple[int, ...], threads: int
) -> Callable[[], Array]:
    """A call without arguments that runs a program on these arrays, in the order of its inputs."""
    component = load(PROGRAMS / f"{program}.i")[program]
    inputs = tuple(arrays.values())
    out = np.empty(output, np.float32)
    return lambda: component(*inputs, out=out, threads=threads)

"""Our side: the programs of ``bench/programs`` as they stand, compiled, run into an array that is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.workloads import PROGRAMS
from ilang import load

Array = npt.NDArray[Any]


def call_of(
    program: str, arrays: Mapping[str, Array], outputs: Sequence[tuple[int, ...]], threads: int
) -> Callable[[], Any]:
    """A call without arguments that runs a program on these arrays, in the order of its inputs."""
    component = load(PROGRAMS / f"{program}.i")[program]
    inputs = tuple(arrays.values())
    made = tuple(np.empty(shape, np.float32) for shape in outputs)
    out = made if len(made) > 1 else made[0]
    return lambda: component(*inputs, out=out, threads=threads)

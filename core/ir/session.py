"""Sessions: what lasts from run to run, and the stages of a run, each with the names of the arrays that it works on.

Produced by ``core/runs.py`` from a definition. Python runs the stages on arrays that are bound to the names, C and
CUDA print them; when a run has succeeded, what it has written takes the place of what it has read.

Invariants:
    - Each name is that of one array: of an input, of a value that is returned, of a tensor that is kept, or of the
      next one.
    - A stage reads what is given, kept, or written by a stage before it.
"""

from __future__ import annotations

from math import prod
from typing import Literal

from ilang.core.dtype import BYTES
from ilang.core.ir.shaped import Shaped
from ilang.core.record import record

KeptRole = Literal[
    "parameter", "state", "gradient", "setting", "constant", "ranks", "kept", "between"
]
"""The use of a tensor: ``kept`` is left to be read after a run, ``between`` lasts from one stage to another."""


@record
class RankSum:
    """Arrays that lie one after the other, and are summed over ranks at once: ``parts``, by their names.

    ``others`` are the arrays that get the sums over the other ranks, in the same order, and ``room`` has place for the
    parts of one rank; without them the sum over all ranks takes the place of the parts. A sum that ``overlaps`` goes on
    while the next stages run.
    """

    dtype: str
    parts: tuple[str, ...]
    others: tuple[str, ...]
    room: str
    overlaps: bool = False


@record
class RunStage:
    """A part of a run, a program of its own: what its inputs and its outputs are called, then what is done with these.

    ``copies`` are a target and a source each; ``sums`` are made when all ranks have come here. With
    ``ends_sums``, all sums that go on end before it begins.
    """

    program: Shaped
    arguments: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    sums: tuple[RankSum, ...]
    ends_sums: bool = False


Between = dict[str, tuple[str, tuple[int, ...]]]
"""The arrays that are between two stages of a run: the element type and the extents of each, by name."""


@record
class Uniform:
    """Random numbers from -bound to bound, by seed and path; ``hash`` is that of the path."""

    bound: float
    path: str
    hash: int


Numbers = tuple[float | int, ...]
"""Numbers of the text; one stands for all that are alike."""


@record
class KeptTensor:
    """A tensor of a session: what it is for, its path, its name, what it begins with.

    ``next`` is the name of the array that runs write, where they give it other values; ``place``, in a struct whose
    arrays are memory of a device, of the array where runs find a setting or the number of ranks, which are fields of
    the struct.
    """

    role: KeptRole
    path: str
    name: str
    dtype: str
    dims: tuple[int, ...]
    fill: Uniform | Numbers = (0,)
    next: str = ""
    place: str = ""

    def count(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    def bytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.count() * BYTES[self.dtype]

    def is_table(self) -> bool:
        """Whether its values are a table of the C file, which a run on the host reads where it is."""
        return self.role == "constant"

    def is_field(self) -> bool:
        """Whether it is a field of the struct itself."""
        return self.role in ("setting", "ranks")


@record
class Run:
    """A run of a session: its stages, and the names of all arrays.

    ``inputs`` and ``outputs`` are those that a caller gives, in the order of the head and of what is returned;
    ``tensors`` has their types and extents, None for one that comes with a run.
    """

    stages: tuple[RunStage, ...]
    kept: tuple[KeptTensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, tuple[str, tuple[int | None, ...]]]

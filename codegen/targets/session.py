"""Functions and sessions that are to be written as C or CUDA: a definition, what it keeps, how a run computes.

Produced by ``project/sessions.py``, written by ``c_session.py`` and ``cuda_session.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.codegen.targets.c_entry import STATUS_WORDS
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.ir.kernel import Program
from ilang.core.ir.session import KeptTensor, RunStage
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import Machine
from ilang.core.record import record

FUNCTIONS = ("bytes", "init", "run", "save", "load", "arrays", "sizes", "work", "status")
PARTS = (*FUNCTIONS, *STATUS_WORDS.values())
"""Endings after the name of a session: its functions, that of its program, and its statuses."""
DEVICE_PARTS = (*PARTS, "run_host", "set")
"""The same on a device."""
TITLES = {
    "parameter": "parameters; a run that changes one exchanges its two arrays",
    "state": "state, which lasts from run to run",
    "gradient": "gradients of the last run",
    "setting": "configuration of the next run",
    "constant": "constants",
    "ranks": "how many ranks run it together",
}
ARRAYS = ("parameter", "state", "gradient", "between")
"""The roles that have arrays in the memory of the caller."""


@record
class ExportedFunction:
    """An exported function, before and after lowering."""

    shaped: Shaped
    program: Program

    def name(self) -> str:
        """The name of the function in C."""
        return function_identifier(self.program.name)

    def free(self) -> tuple[int, ...]:
        """The numbers of the sizes that are run-time arguments."""
        return tuple(n for n, size in enumerate(self.shaped.sizes) if size.is_argument())

    def arguments(self, extents: Sequence[int]) -> dict[str, int]:
        """The run-time arguments among the extents of all sizes, by name."""
        return {self.shaped.sizes[n].name: extents[n] for n in self.free()}

    def arguments_text(self, extents: Sequence[int]) -> str:
        """The same in words: ``n=3 m=5``."""
        return " ".join(f"{name}={extent}" for name, extent in self.arguments(extents).items())

    def count(self, value: int, extents: Sequence[int]) -> int:
        """The elements of a tensor at the extents of all sizes."""
        return prod(extents[size] for size in self.shaped.tensors[value].dims)

    def is_full(self, extents: Sequence[int]) -> bool:
        """Whether no run-time extent is 0."""
        return all(
            0 < extent
            for size, extent in zip(self.shaped.sizes, extents, strict=True)
            if size.fixed is None
        )


@record
class Stage:
    """A stage of a ``run`` (``core/transform/stages.py``), whose program is a function of its own."""

    run: RunStage
    function: ExportedFunction

    def dims(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The names of what the program takes and gives, each with the sizes of its dimensions."""
        shaped = self.function.shaped
        values = (*shaped.inputs, *shaped.outputs)
        for name, value in zip(self.run.arguments, values, strict=True):
            yield name, shaped.tensors[value].dims

    def sizes(self) -> list[str]:
        """The names of the sizes that come with a run."""
        return [size.name for size in self.function.program.sizes if size.is_argument()]


@record
class Struct:
    """The memory that sessions have together, a struct in C; its name is that of the session that begins it.

    ``stages`` are those of all runs, ``kept`` has every tensor, once, ``counters`` are the fields that count runs.
    """

    name: str
    machine: Machine
    stages: tuple[Stage, ...]
    kept: tuple[KeptTensor, ...]
    counters: tuple[str, ...]

    def blocks(self) -> list[list[tuple[str, KeptTensor]]]:
        """Every array in the memory of the caller, by its name, with the tensor that it is of.

        Arrays of a block lie one after the other.
        """
        roles = (*ARRAYS, "constant") if self.on_device() else ARRAYS
        by_name = {each.name: each for each in self.kept if each.role in roles}
        sums = [each for stage in self.stages for each in stage.run.sums]
        joined = [names for each in sums for names in (each.parts, each.others) if names]
        alone = by_name.keys() - {name for names in joined for name in names}
        blocks = [[(name, by_name[name])] for name in by_name if name in alone]
        blocks += [[(name, by_name[name]) for name in names] for names in joined]
        further = [(name, each) for each in self.kept for name in (each.next, each.place) if name]
        return blocks + [[one] for one in further]

    def layout(self, line: int) -> tuple[dict[str, tuple[int, str]], int]:
        """The beginning and the type of each array, blocks on whole cache lines; and the beginning of the workspace."""
        places, total = {}, 0
        for block in self.blocks():
            for name, each in block:
                places[name] = total, each.dtype
                total += each.bytes()
            total = -(-total // line) * line
        return places, total

    def on_device(self) -> bool:
        """Whether its arrays are memory of a device."""
        return self.machine.device is not None


@record
class EmittedSession:
    """A definition to be written as C or CUDA, and its name there.

    ``stages`` compute one run. The arguments of a stage are the names of tensors that are kept, or of what a caller
    gives: ``inputs`` and ``outputs`` of a run, whose types and extents are ``tensors``, None for one that comes with a
    run. The tensors ``kept`` are in a ``struct``, maybe beside those of other sessions, some of which are the same:
    there a path may be another. ``counter`` is its field that counts runs; ``renamed`` are names of the text that are
    others in C.
    """

    name: str
    definition: str
    stages: tuple[Stage, ...]
    kept: tuple[KeptTensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, tuple[str, tuple[int | None, ...]]]
    struct: Struct
    counter: str
    renamed: tuple[tuple[str, str], ...]

    def functions(self) -> list[ExportedFunction]:
        """The functions of the stages."""
        return [stage.function for stage in self.stages]

    def saved(self) -> list[KeptTensor]:
        """The tensors in a file: parameters, then state."""
        return [each for role in ("parameter", "state") for each in self.kept if each.role == role]

    def count(self, name: str) -> int:
        """The number of elements of an input or an output whose sizes are fixed."""
        dims = [extent for extent in self.tensors[name][1] if extent is not None]
        assert len(dims) == len(self.tensors[name][1])
        return prod(dims)

    def is_open(self) -> bool:
        """Whether sizes come with a run, and the caller has its workspace."""
        return bool(self.sizes())

    def sizes(self) -> list[str]:
        """The names of the sizes that come with a run, each once."""
        return list(dict.fromkeys(name for stage in self.stages for name in stage.sizes()))

    def begins(self) -> bool:
        """Whether its struct is begun by it, and not by another session."""
        return self.struct.name == self.name

    def on_device(self) -> bool:
        """Whether its arrays are memory of a device."""
        return self.struct.on_device()

    def parts(self) -> tuple[str, ...]:
        """Endings after the name of the session."""
        return DEVICE_PARTS if self.on_device() else PARTS

    def of_ranks(self) -> bool:
        """Whether several ranks may run it together."""
        is_counted = any(each.role == "ranks" for each in self.kept)
        return is_counted or any(stage.run.sums for stage in self.stages)

    def waits(self) -> bool:
        """Whether a run waits for other ranks, between two of its stages."""
        return self.of_ranks() and 1 < len(self.stages)

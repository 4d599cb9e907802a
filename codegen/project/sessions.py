"""Tensor functions and routines as C or CUDA: each with what it keeps from run to run, in memory of the caller.

A definition that keeps nothing becomes a function of its inputs, as components do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.project.exported_names import exported_function, exported_name, renamed_words
from ilang.codegen.session.checkpoint import Checkpoint, read
from ilang.codegen.session.function import Function
from ilang.codegen.session.given_shapes import shape_options
from ilang.codegen.session.initial import initial
from ilang.codegen.session.model import DEFAULTS, Model, Options, rows_of
from ilang.codegen.session.philox import hashed
from ilang.codegen.session.sharing import matched
from ilang.codegen.session.solved import SolvedDefinition
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.codegen.targets.session import (
    DEVICE_PARTS,
    EmittedSession,
    ExportedFunction,
    Stage,
    Struct,
)
from ilang.core.build.merging import RANKS
from ilang.core.build.program import Given
from ilang.core.build.tensor import Rows
from ilang.core.build.values import Stored
from ilang.core.diagnostic import DataError, MeaningError, ShapeError
from ilang.core.ir.session import KeptTensor, Numbers, RunStage, Uniform
from ilang.core.machine import CPU, Machine
from ilang.core.pipeline import lower
from ilang.core.record import replace
from ilang.core.runs import RunBuilder

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array

FIELDS = (
    "model",
    "seed",
    "runs",
    "work",
    "work_bytes",
    "status",
    "this_rank",
    "all_ranks",
    "begun_sums",
)
"""Names of a session and of its functions."""


class CNames:
    """Names in C: none is given twice."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._taken = set(taken)

    def of(self, path: str, owner: str = "") -> str:
        """A name for a path, ``mlp_w`` of ``mlp.w``; that of an owner before it, and a number after it if taken."""
        first = name = identifier(path.replace(".", "_"))
        if owner and name in self._taken:
            first = name = f"{owner}_{name}"
        number = 2
        while name in self._taken:
            name, number = f"{first}_{number}", number + 1
        self._taken.add(name)
        return name


def solved(
    model: Model, name: str, shapes: Mapping[str, Rows], config: Mapping[str, Given]
) -> SolvedDefinition:
    """A tensor function or a routine to be exported, its shapes inferred, for any number of ranks.

    Raises:
        DataError: E0765 (it gives nothing), E0766 (a size comes at run time, and may not), E0774 (the number of axes
            of an input is open). MeaningError: E0286 (the number of ranks has to be known). Error: whatever is wrong
            with the text, the shapes or the configuration.
    """
    so_far = {} if shapes else _inputs_so_far(model, name, config)
    opened = shapes or {each: _open_rows(model, name, each, text) for each, text in so_far.items()}
    options = Options(name, opened, config, *DEFAULTS.values())
    try:
        one = SolvedDefinition(model, options, of_any_ranks=True)
    except ShapeError as error:
        if error.code == "E0520" and not shapes:
            error.help += f"; for example {shape_options(model.inputs(name), 'n')}, n the batch"
        raise
    for each, text in so_far.items():
        if "..." in text:
            message = f"{name} is built without --shape, and nothing says how many axes {each} has"
            help_line = (
                f"give them: --shape {each}='n|784', or write them in the head: {each}[n|784]"
            )
            raise DataError("E0774", message, model.head(name).span, help_line)
    place = one.built.fixed.get(RANKS)
    if place is not None and RANKS not in one.config:
        message = (
            f"{name} is built for any number of ranks, and this must be known when it is built"
        )
        help_line = "use `ranks` in arithmetic only; in a single process `x.merge` is 0"
        raise MeaningError("E0286", message, place, help_line)
    for cell in one.number:
        if cell.kind != "input" and None in one.open_dims(cell):
            message = f"{cell.name} would have a size that comes at run time"
            example = shape_options(model.inputs(name), "n")
            help_line = (
                f"sizes of parameters and state are numbers: {example} has n open, the batch"
            )
            raise DataError("E0766", message, cell.span, help_line)
    if not one.results:
        message = f"a run of {name} gives nothing, and there is nothing to compute"
        help_line = "`return` a tensor, or assign a parameter or state"
        raise DataError("E0765", message, model.head(name).span, help_line)
    return one


def _inputs_so_far(model: Model, name: str, config: Mapping[str, Given]) -> dict[str, str]:
    """The rows of inputs that the text of a definition leaves open: ``?`` is an axis, ``...`` any number of them."""
    inputs = Function(model, name).shape_so_far(None, config).of("input")
    return {each.name: each.rows for each in inputs if "?" in each.rows or "..." in each.rows}


def _open_rows(model: Model, name: str, tensor: str, text: str) -> Rows:
    """The rows of an input, of which sizes that nothing says come at run time, called as in the head.

    Example:
        in:   ?|64 of x[b|n]
        out:  b|64
    """
    if "..." in text:
        return None, None, None
    note = next(each.shape for each in model.head(name).tensors if each.name == tensor)
    noted = [axis for row in note.rows for axis in (*row.leading, *row.trailing)] if note else []
    words = [axis.size for axis in noted if isinstance(axis.size, str)]
    first, *others = text.split("?")
    if len(words) != len(others):
        words = [f"{tensor}_{n}" for n in range(len(others))]
    return rows_of(
        tensor, first + "".join(map("".join, zip(words, others, strict=True))), words=True
    )


def exported(
    definitions: Sequence[SolvedDefinition], machine: Machine = CPU, prefix: str = ""
) -> tuple[list[ExportedFunction], list[EmittedSession]]:
    """Definitions as functions and sessions, lowered for a machine; those with the same parameters have one struct.

    The names of functions and of structs begin with a prefix and an underscore, where there is a prefix.

    The session that begins a struct comes before the others that have it.
    """
    alone = [each for each in definitions if _keeps_nothing(each)]
    grouped = groups([each for each in definitions if each not in alone])
    sessions = [
        each for group in grouped for each in _SharedStruct(group, machine, prefix).exported()
    ]
    return [exported_function(each.shaped(), machine, prefix) for each in alone], sessions


def _keeps_nothing(solved: SolvedDefinition) -> bool:
    """Whether a run reads its inputs alone and gives what it returns, nothing else."""
    kinds = {cell.kind for cell in solved.needed} - {"input"}
    return not kinds and all(result.role == "return" for result in solved.results)


class _SharedStruct:
    """The sessions of one struct, and the names of all of it."""

    def __init__(self, group: Sequence[StructMember], machine: Machine, prefix: str) -> None:
        self.machine = machine
        self.prefix = prefix
        exports = [_Export(member, self) for member in group]
        taken = {name for each in exports for name in each.taken}
        self.names = CNames((*FIELDS, *taken))
        self.sessions = exports
        self.kept: dict[str, KeptTensor] = {}
        self.by_path: dict[tuple[str, str], str] = {}

    def exported(self) -> list[EmittedSession]:
        """All of them, the one that begins the struct first."""
        drafts = [each.draft() for each in self.sessions]
        stages = tuple(stage for session in drafts for stage in session.stages)
        counters = tuple(session.counter for session in drafts)
        name = self.sessions[0].name
        struct = Struct(name, self.machine, stages, tuple(self.kept.values()), counters)
        return [replace(session, struct=struct) for session in drafts]

    def keep(self, kept: KeptTensor, path: str, is_written: bool, owner: str) -> KeptTensor:
        """A tensor of a session, in the struct from now on: one of the same role and path is the same.

        Args:
            kept: without names.
            path: what it is called in the session that begins the struct; empty where that has none of it.
            is_written: whether runs of the session give it other values.
            owner: the name of the definition, before a name that something else has.
        """
        known = self.kept.get(self.by_path.get((kept.role, path), ""))
        if known is None:
            text = "constant" if kept.role == "constant" else kept.path
            name = self.names.of(text, owner)
            is_read_there = kept.is_field() and self.machine.device is not None
            place = self.names.of(f"{name}_on_device") if is_read_there else ""
            known = replace(kept, name=name, place=place)
            if path:
                self.by_path[kept.role, path] = name
        if is_written and not known.next:
            known = replace(known, next=self.names.of(f"next_{known.name}"))
        self.kept[known.name] = known
        return replace(known, path=kept.path, next=known.next if is_written else "")


class _Export(RunBuilder):
    """The run of a session, and the names of what it keeps."""

    def __init__(self, member: StructMember, struct: _SharedStruct) -> None:
        self.solved, self.owner_path = member
        self.struct = struct
        self.wanted = exported_name(self.solved.name, struct.prefix)
        self.name = function_identifier(self.wanted)
        shaped = replace(self.solved.shaped(), name=f"{self.name}_arrays")
        super().__init__(self.solved, shaped)
        self.constants = self.solved.constants()
        parts = [f"{self.name}_{part}" for part in DEVICE_PARTS]
        stages = range(1, len(self.solved.merged()) + 2)
        sizes = [f"{each}_{n}" for each in ("sizes", "plan") for n in stages]
        names = CNames((*FIELDS, *sizes, self.name, *parts))
        inputs = [cell.name for cell, _ in self.solved.built.inputs if cell.kind == "input"]
        self.given = {name: names.of(name) for name in inputs}
        returned = [result.path for result in self.solved.results if result.role == "return"]
        alone = len(returned) == 1
        self.returned = {path: names.of("out" if alone else f"out{path}") for path in returned}
        self.taken = (*sizes, self.name, *parts, *self.given.values(), *self.returned.values())

    def draft(self) -> EmittedSession:
        """The session, its struct unfinished."""
        struct = self.struct
        is_first = self is struct.sessions[0]
        counter = "runs" if is_first else struct.names.of(f"{self.solved.name}_runs")
        run = self.run(self.given, self.returned, struct.machine.bucket_bytes)
        struct.kept |= {each.name: each for each in run.kept if each.role == "between"}
        return EmittedSession(
            name=self.name,
            definition=self.solved.name,
            stages=tuple(_lowered(each, struct.machine) for each in run.stages),
            kept=run.kept,
            inputs=run.inputs,
            outputs=run.outputs,
            tensors=run.tensors,
            struct=Struct(self.name, struct.machine, (), (), ()),
            counter=counter,
            renamed=tuple(self._renamed(run.kept)),
        )

    def _renamed(self, kept: Sequence[KeptTensor]) -> Iterator[tuple[str, str]]:
        """The names of the session, of inputs and of what is kept, each with that in C, where it is another."""
        yield from renamed_words({self.wanted: self.name, **self.given})
        for each in kept:
            word = each.path.replace(".", "_")
            if identifier(word) != word:
                yield each.path, each.name

    def name_of(self, path: str) -> str:
        """A name in the struct."""
        return self.struct.names.of(path)

    def keep(self, tensor: KeptTensor, cell: Stored | None, is_written: bool) -> KeptTensor:
        """A tensor of the struct, the same as that of a parameter or of its gradient in the session that begins it."""
        same = ""
        if tensor.role == "parameter":
            same = self.owner_path.get(tensor.path, "")
        elif tensor.role == "ranks":
            same = tensor.path
        elif tensor.role == "gradient":
            of = self.owner_path.get(tensor.path.removesuffix(".grad"))
            same = f"{of}.grad" if of else ""
        filled = tensor if cell is None else replace(tensor, fill=self._fill(cell, tensor))
        return self.struct.keep(filled, same, is_written, self.solved.name)

    def _fill(self, cell: Stored, tensor: KeptTensor) -> Uniform | Numbers:
        dtype = NUMPY_TYPES[tensor.dtype]
        if cell in self.constants:
            return _listed(self.constants[cell])
        if cell.kind == "declared":
            return (0,)
        if cell.kind == "setting":
            return _listed(np.full(1, cell.initial, dtype))
        first = initial(self.solved, cell, tensor.dims, dtype)
        if isinstance(first, float):
            return Uniform(first, tensor.path, hashed(tensor.path))
        return (0,) if first is None else _listed(first)


def _listed(values: Array) -> Numbers:
    """Numbers: one where all are alike."""
    flat = values.reshape(-1)
    if flat.tobytes() == flat[:1].tobytes() * flat.size:
        flat = flat[:1]
    return tuple(flat.tolist())


def _lowered(stage: RunStage, machine: Machine) -> Stage:
    """A stage with its program lowered, whose inputs and outputs are called as its session calls them."""
    shaped = stage.program
    tensors, places = list(shaped.tensors), (*shaped.inputs, *shaped.outputs)
    for value, name in zip(places, stage.arguments, strict=True):
        if places.count(value) == 1:
            tensors[value] = replace(tensors[value], name=name)
    shaped = replace(shaped, tensors=tuple(tensors))
    return Stage(stage, ExportedFunction(shaped, lower(shaped, machine)))


StructMember = tuple[SolvedDefinition, Mapping[str, str]]
"""A definition in a struct, and its parameters by path, each with its path in the session that begins the struct."""


def groups(definitions: Sequence[SolvedDefinition]) -> list[list[StructMember]]:
    """Definitions by struct, in each first the one that begins it.

    The first one has all parameters of the others; of several that do, it is the one that changes most of them.
    Parameters are the same if their paths are equal after one common prefix, as in ``session(…, parameters=s)``, and
    the text has them in one place; then their shapes and types have to be equal, too.
    """
    by_size = sorted(definitions, key=_keeps, reverse=True)
    grouped: list[list[StructMember]] = []
    for each in by_size:
        for group in grouped:
            paths = _paths(each, group[0][0])
            if paths:
                group.append((each, paths))
                break
        else:
            grouped.append([(each, {path: path for path in _parameters(each)})])
    return grouped


def _keeps(one: SolvedDefinition) -> tuple[int, int]:
    """The number of parameters of a definition, and of those that a run of it changes."""
    return len(_parameters(one)), sum(each.role == "parameter" for each in one.results)


def _paths(member: SolvedDefinition, host: SolvedDefinition) -> Mapping[str, str] | None:
    """The parameters of a definition by path, with their paths in another; None if that does not have all of them."""
    wanted, given = _parameters(member), _parameters(host)
    try:
        paths = matched(list(wanted), list(given))
    except DataError:
        return None
    return paths if all(wanted[path] == given[other] for path, other in paths.items()) else None


def _parameters(one: SolvedDefinition) -> dict[str, object]:
    """Keys that are equal for equal parameters, by path: the place in the text, the shape, the type."""
    return {
        tensor.path: (cell.span.source.text, cell.span.start, tensor.shape.memory(), tensor.dtype)
        for cell, tensor in one.cells("parameter")
    }


def trained(sessions: Sequence[EmittedSession], path: str) -> list[EmittedSession]:
    """Sessions that begin with the values of a file, as if they had loaded it.

    Raises:
        DataError: E0725 to E0729, E0761 (the file), E0760 (a path is missing), E0754 (a shape or a type).
    """
    checkpoint = read(path)
    changed = []
    for session in sessions:
        values = dict(_values(session.struct, checkpoint, path))
        struct = replace(session.struct, kept=_filled(session.struct.kept, values))
        changed.append(replace(session, kept=_filled(session.kept, values), struct=struct))
    return changed


def _filled(kept: Sequence[KeptTensor], values: dict[str, Numbers]) -> tuple[KeptTensor, ...]:
    return tuple(replace(each, fill=values.get(each.name, each.fill)) for each in kept)


def _values(struct: Struct, checkpoint: Checkpoint, path: str) -> Iterator[tuple[str, Numbers]]:
    """The values of parameters by their names in a struct, and those of its state where the file has any."""
    given_by_role = (("parameter", checkpoint.parameters()), ("state", checkpoint.state()))
    for role, given in given_by_role:
        tensors = {each.path: each for each in struct.kept if each.role == role}
        if role == "parameter" or given:
            for wanted, place in matched(list(tensors), list(given), path).items():
                yield tensors[wanted].name, _numbers(tensors[wanted], given[place], path)


def _numbers(tensor: KeptTensor, array: Array, path: str) -> Numbers:
    """The elements of an array that a tensor begins with. Raises: DataError E0754 (they do not fit)."""
    dtype = NUMPY_TYPES[tensor.dtype]
    if (array.shape, array.dtype) != (tuple(tensor.dims), dtype):
        message = (
            f"{tensor.path} is {array.dtype} of shape {array.shape} in {path}, "
            f"and {dtype} of shape {tuple(tensor.dims)} here"
        )
        raise DataError("E0754", message, help="build it for inputs like those of training")
    return tuple(array.reshape(-1).tolist())

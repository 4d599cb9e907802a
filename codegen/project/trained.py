"""Sessions of a project that begin with the parameters and the state of a checkpoint: the project contains them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.session.checkpoint import Checkpoint, read
from ilang.codegen.session.sharing import matched
from ilang.codegen.targets.session import EmittedSession, Struct
from ilang.core.diagnostic import DataError
from ilang.core.ir.session import KeptTensor, Numbers
from ilang.core.record import replace

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array


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
    """Tensors of a struct, with values by name."""
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

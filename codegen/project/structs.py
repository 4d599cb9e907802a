"""Sessions of a project that keep their parameters together: those that would be one session's in Python.

Example: ``step`` trains ``mlp.w`` and ``mlp.b``, and ``mlp`` alone has ``w`` and ``b``, of the same places in the text:
    the struct is that of ``step``, and ``mlp`` runs on it, with ``w`` for ``mlp.w``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.codegen.session.sharing import matched
from ilang.codegen.session.solved import SolvedDefinition
from ilang.core.diagnostic import DataError

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

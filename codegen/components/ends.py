"""Inputs and outputs of a program, as far as they are known without arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ilang.core.diagnostic import DataError, ElementTypeError, ShapeError
from ilang.core.explain.expression import extents_of
from ilang.core.explain.page import shape_data

if TYPE_CHECKING:
    from ilang.codegen.components.program import ComponentProgram
    from ilang.core.ir.shaped import Shaped


class End(NamedTuple):
    """An input or an output of a component.

    ``dtype`` is None where the arrays of a call give it. ``shape`` has a number for an extent that is written, else its
    name; it is None where the number of axes is open.
    """

    name: str
    dtype: str | None
    shape: tuple[int | str, ...] | None


def ends_of(program: ComponentProgram) -> tuple[tuple[End, ...], tuple[End, ...]]:
    """The inputs and the outputs of a program."""
    graph = program.graph()
    types = graph.written_dtypes()
    shaped = _shaped_alone(program, None)
    if shaped is None:
        inputs = zip(program.graph().input_names(), types, strict=True)
        return (
            tuple(End(name, dtype, None) for name, dtype in inputs),
            tuple(End(name, None, None) for name in program.output_names()),
        )
    other = _shaped_alone(program, [each or "f64" for each in types])
    results = [
        tensor.dtype
        if other is None or other.tensors[other.outputs[n]].dtype == tensor.dtype
        else None
        for n, tensor in enumerate(shaped.tensors[value] for value in shaped.outputs)
    ]
    return (
        _ends(program.graph().input_names(), types, shaped, shaped.inputs),
        _ends(program.output_names(), results, shaped, shaped.outputs),
    )


def _shaped_alone(program: ComponentProgram, dtypes: Sequence[object] | None) -> Shaped | None:
    """The program without shapes; None where it needs them, or has no such types."""
    try:
        return program.shaped((), dtypes)
    except (DataError, ElementTypeError, ShapeError):
        return None


def _ends(
    names: Sequence[str], dtypes: Sequence[str | None], shaped: Shaped, values: Sequence[int]
) -> tuple[End, ...]:
    return tuple(
        End(name, dtype, tuple(shape_data(extents_of(shaped, value))))
        for name, dtype, value in zip(names, dtypes, values, strict=True)
    )

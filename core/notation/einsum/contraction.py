"""A specification of many operands as several of two each, in the order of ``calculus/contraction.py``.

Example:
    in:   einsum `ij,jk,kl->il` of n0 n1 n2, path (0, 1) (0, 1)
    out:  n3 = einsum `ij,jk->ik` of n0 n1
          n4 = einsum `kl,ik->il` of n2 n3

A path is a tuple of contractions, each the positions of what it takes among the tensors that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ilang.core.calculus.contraction import Path, contraction_steps, path_of, removed
from ilang.core.ir.spec import Axis, AxisLabel, Fixed, ShapeSpec, Spec, SpecRow, output_shape
from ilang.core.ir.syntax import Schedule
from ilang.core.notation.einsum.subscripts import VARIABLE, letters, output_row
from ilang.core.source import Span

USUAL = 64
"""The number that an extent is taken for where nothing gives it."""


def contraction_path(spec: Spec, extents: Mapping[str, int]) -> Path:
    """An order of contraction for a specification in which every shape is an output row.

    Args:
        spec: the specification; what an ellipsis stands for counts as one axis.
        extents: of axes by their names, where they are known.
    """
    terms = [_axes(shape) for shape in spec.operands]
    if len(terms) <= 2:
        return (tuple(range(len(terms))),)

    def size(axes: frozenset[str]) -> int:
        return prod(max(extents.get(axis, USUAL), 1) for axis in axes)

    return path_of(contraction_steps(terms, _axes(spec.result), size), len(terms))


def usual_path(spec: Spec, schedule: Schedule | None) -> Path:
    """The path of a specification whose extents nobody knows yet; none where all its operands are one nest.

    A specification of this language is one nest, and so is one with a schedule, which is of that nest.
    """
    if not spec.subscripts or schedule is not None or len(spec.operands) <= 2:
        return ()
    return contraction_path(spec, {})


def _axes(shape: ShapeSpec) -> frozenset[str]:
    dots = {VARIABLE} if output_row(shape).variable is not None else set()
    return frozenset(letters(shape)) | dots


def contractions(spec: Spec, path: Path) -> tuple[tuple[tuple[int, ...], Spec], ...]:
    """The steps of a path over a specification in which every shape is an output row; the last gives the result.

    Of each step the tensors that it takes (numbers from that of the operands on are earlier steps) and what it does.
    """
    shapes = list(spec.operands)
    tensors = list(range(len(shapes)))
    needed = Counter(axis for shape in (*shapes, spec.result) for axis in _axes(shape))
    steps: list[tuple[tuple[int, ...], Spec]] = []
    for taken in path:
        operands = tuple(shapes[n] for n in taken)
        needed.subtract(axis for shape in operands for axis in _axes(shape))
        removed(shapes, taken)
        result = _between(operands, needed, spec.span) if shapes else spec.result
        needed.update(_axes(result))
        steps.append((tuple(tensors[n] for n in taken), _step(spec, operands, result)))
        shapes.append(result)
        removed(tensors, taken)
        tensors.append(len(spec.operands) + len(steps) - 1)
    return tuple(steps)


def _between(operands: Sequence[ShapeSpec], needed: Counter[str], span: Span) -> ShapeSpec:
    """The shape of a product that is no result: the axes that later shapes have, in order of appearance."""
    axes: dict[str, Axis] = {}
    dots = False
    for shape in operands:
        dots = dots or (output_row(shape).variable is not None and 0 < needed[VARIABLE])
        for axis in shape.axes():
            if isinstance(axis, AxisLabel) and 0 < needed[axis.name]:
                axes.setdefault(axis.name, axis)
    return output_shape(SpecRow((), VARIABLE if dots else None, tuple(axes.values())), span)


def _step(spec: Spec, operands: tuple[ShapeSpec, ...], result: ShapeSpec) -> Spec:
    """The specification of one step; its text is written anew."""
    text = f"{','.join(map(_spelled, operands))}->{_spelled(result)}"
    whole = text if len(operands) < len(spec.operands) else spec.text
    return Spec(operands, result, spec.named, whole, spec.span, subscripts=True)


def _spelled(shape: ShapeSpec) -> str:
    row = output_row(shape)
    sides = ["".join(_letter(axis) for axis in axes) for axes in (row.leading, row.trailing)]
    return ("..." if row.variable is not None else "").join(sides)


def _letter(axis: Axis) -> str:
    match axis:
        case AxisLabel():
            return axis.name
        case Fixed():
            return str(axis.position)
        case _:
            return axis.span.text()

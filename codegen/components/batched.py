"""Programs put along axes: as an einx operation says, or along a batch, as `torch.func.vmap` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ilang.codegen.components.gradient import GradientProgram, gradient_of
from ilang.codegen.components.program import ComponentProgram, WrittenProgram
from ilang.core.ir.einx import Form
from ilang.core.ir.syntax import Einx
from ilang.core.notation.components.arity import wires_of
from ilang.core.notation.einx.forms import complete
from ilang.core.notation.einx.operation import read_einx
from ilang.core.record import replace
from ilang.core.source import Source, whole


def along_axes(program: ComponentProgram, form: Form) -> WrittenProgram:
    """An operation in einx notation that goes along axes with a program.

    Raises:
        DataError: E0716 (the program is a gradient).
        MeaningError: E0221 (another number of inputs or outputs).
    """
    written, definitions = program.written()
    tree = Einx(form, form.span, None, written)
    wires = replace(wires_of(Einx(form, form.span), {}), leaves=program.wires.leaves)
    along = WrittenProgram(tree, wires, definitions)
    along.graph()
    return along


def batched(
    program: ComponentProgram, ranks: Sequence[int], has_batch: Sequence[bool]
) -> ComponentProgram | None:
    """A program whose results, and those of its inputs that have a batch, have it as axis 0.

    Args:
        program: what runs for each element of the batch.
        ranks: those of its inputs, without the batch.
        has_batch: which inputs have a batch.

    Returns:
        The program; None where it has no text that einx could repeat, as that of a definition.
    """
    if isinstance(program, GradientProgram) and all(has_batch):
        of, wrt = program.differentiated()
        inputs = of.wires.inputs
        inner = None if wrt is None else batched(of, ranks[:inputs], has_batch[:inputs])
        return None if inner is None else gradient_of(inner, wrt, values=False)
    if type(program) is not WrittenProgram:
        return None
    names = (f"a{number}" for number in count())

    def words(rank: int, is_along: bool = True) -> str:
        axes = f"[{' '.join(next(names) for _ in range(rank))}]" if rank else ""
        return f"batch {axes}" if is_along else axes

    shaped = program.inferred(None, tuple(ranks))
    takes = ", ".join(map(words, ranks, has_batch))
    gives = ", ".join(words(len(shaped.tensors[value].dims)) for value in shaped.outputs)
    source = Source("<einx>", f"{takes} -> {gives}")
    return along_axes(program, complete("vmap", read_einx(source), [], whole(source), True))

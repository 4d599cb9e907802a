"""The assignments that an elementwise kernel becomes: folds first, each of an input, then a scalar function.

Example:
    in:   f: x[i,j], y[j] -> x * y; sum: x + y
    out:  n2 = n0[i,j] * n1[j]   for i j
          n3 = fold + over i: n0[i,j]   for j
          n4 = n3[j] + n1[j]   for j

All shapes are parts of that of the greatest rank: its last axes in the order f, its first ones in the order c. An
output that accumulates folds every input of greater rank over the axes that it has more; outputs that fold one input
alike share the fold. (PyTensor's Elemwise.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.calculus.affine import axis_index
from ilang.core.diagnostic import ShapeError
from ilang.core.ir import graph, syntax
from ilang.core.ir.scalar import Operand, Scalar, operands_of, renumbered
from ilang.core.names import LETTERS
from ilang.core.record import replace

Add = Callable[[graph.Node], int]


def kernel_outputs(node: syntax.ElementKernel, slots: Sequence[int], add: Add) -> list[int]:
    """Add the assignments of a kernel whose inputs are the values ``slots``; the values of its outputs.

    Raises:
        ShapeError: E0508 (an input whose rank nothing says), E0501 (an output of greater rank than every input).
    """
    return _Kernel(node, slots, add).outputs()


def kernel_annotations(
    node: syntax.ElementKernel, slots: Sequence[int], scope: int
) -> list[graph.Annotation]:
    """Annotations of the inputs of a kernel: equal axes have equal extents, also of inputs that no output reads."""
    ranks = _ranks(node)
    return [
        graph.Annotation(
            slot, each.name, None, _letters(node.order, max(ranks), rank), scope, each.span
        )
        for slot, each, rank in zip(slots, node.inputs, ranks, strict=True)
    ]


def _ranks(node: syntax.ElementKernel) -> list[int]:
    ranks = []
    for each in node.inputs:
        if each.rank is None:
            raise ShapeError(
                "E0508",
                f"nothing says what rank {each.name} has",
                each.span,
                f"write its axes where the kernel names it, `{each.name}[i,j]`, or give its shape (`--shape 2x3`)",
            )
        ranks.append(each.rank)
    return ranks


def _letters(order: syntax.KernelOrder, full: int, rank: int) -> tuple[str, ...]:
    """The axes of a value of some rank, of those of the greatest."""
    names = tuple(
        LETTERS[n] if n < len(LETTERS) else f"{LETTERS[n % len(LETTERS)]}{n // len(LETTERS)}"
        for n in range(full)
    )
    return names[full - rank :] if order == "f" else names[:rank]


class _Kernel:
    """A kernel whose ranks are known, and the folds of its inputs that there are."""

    def __init__(self, node: syntax.ElementKernel, slots: Sequence[int], add: Add) -> None:
        self.node = node
        self.slots = slots
        self.add = add
        self.ranks = _ranks(node)
        self.full = max(self.ranks)
        self.folds: dict[tuple[int, str, int], int] = {}

    def outputs(self) -> list[int]:
        """The value of each output."""
        return [self._output(output) for output in self.node.outputs]

    def _output(self, output: syntax.KernelOutput) -> int:
        """The value of an output: an assignment for each of its steps, the last of which is the output."""
        rank = self.node.rank_of(output)
        assert rank is not None
        if self.full < rank:
            raise ShapeError(
                "E0501",
                f"the output `{output.text}` has rank {rank}, and no input has more than {self.full}",
                output.span,
                "an output has at most the rank of its inputs",
            )
        steps: list[tuple[int, int]] = []
        for number, step in enumerate(output.steps, 1):
            used = list(operands_of(step))
            reads = [self._read(each, steps, output.acc, rank) for each in used]
            held = max((held for _, held in reads), default=0)
            if number == len(output.steps) and held < rank:
                reads.append(self._value(self.ranks.index(self.full), output.acc, rank))
                held = rank
            scalar = renumbered(step, {operand: n for n, operand in enumerate(used)})
            assigned = self._assignment(reads, held, held, scalar, None, output)
            if number < len(
                output.steps
            ):  # the whole text is that of the output alone: it may be long
                assigned = replace(assigned, text=f"step {number} of {len(output.steps)}")
            steps.append((self.add(assigned), held))
        return steps[-1][0]

    def _read(
        self, operand: int, steps: Sequence[tuple[int, int]], acc: str | None, rank: int
    ) -> tuple[int, int]:
        """An operand of a step, an input or an earlier step; and its rank."""
        inputs = len(self.ranks)
        return self._value(operand, acc, rank) if operand < inputs else steps[operand - inputs]

    def _value(self, number: int, acc: str | None, rank: int) -> tuple[int, int]:
        """An input as an output reads it, folded where it has more axes; and its rank."""
        held = self.ranks[number]
        if acc is None or held <= rank:
            return self.slots[number], held
        key = (number, acc, rank)
        if key not in self.folds:
            read = [(self.slots[number], held)]
            self.folds[key] = self.add(
                self._assignment(read, held, rank, Operand(0), acc, self.node.inputs[number])
            )
        return self.folds[key], rank

    def _assignment(
        self,
        reads: Sequence[tuple[int, int]],
        loops: int,
        rank: int,
        scalar: Scalar,
        acc: str | None,
        at: syntax.KernelInput | syntax.KernelOutput,
    ) -> graph.Assignment:
        """An assignment over ``loops`` axes to a value of rank ``rank``; ``reads`` are values and their ranks."""
        names = _letters(self.node.order, self.full, loops)

        def index(held: int) -> tuple[int, ...]:
            axes = range(loops)
            return tuple(axes[loops - held :] if self.node.order == "f" else axes[:held])

        target = tuple(map(axis_index, index(rank)))
        text = at.text if isinstance(at, syntax.KernelOutput) else f"{at.name} folded by {acc}"
        return graph.Assignment(
            tuple(graph.Axis(name, None, at.span) for name in names),
            target,
            tuple(
                graph.Read(
                    value,
                    tuple(map(axis_index, index(held))),
                    acc is not None,
                    tuple(at.span for _ in range(held)),
                    at.span,
                )
                for value, held in reads
            ),
            scalar,
            acc,
            None,
            text,
            at.span,
        )

"""Operations over rows to accumulating assignments, once every row is solved (``assembly.py``).

Example:
    in:   n2 = einsum `a; b => a^b` of n0[3] n1[2]
    out:  t1 = 0 for o;  t2 = t1 with t2[a] = n0[a];  out = t2 with out[b+3] = n1[b]
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.infer.operations import Inferred
from ilang.core.infer.projections import project, sizes_of
from ilang.core.ir import graph, shaped
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.scalar import Constant, Operand
from ilang.core.passes.assembly import Assembly, name_tensors
from ilang.core.record import replace


def operations_to_shaped(
    inferred: Inferred, dtypes: Sequence[str], outputs: Sequence[int]
) -> shaped.Shaped:
    """The assignments of a solved graph.

    Args:
        inferred: the graph and its rows.
        dtypes: the element type of each input of the graph.
        outputs: the values to give, operations or leaves; inputs that none of them needs are left out.

    Raises:
        ElementTypeError: E06.
    """
    return _Shaping(inferred, dtypes).run(outputs)


class _Shaping(Assembly):
    """One run: the shaped nodes so far."""

    def __init__(self, inferred: Inferred, dtypes: Sequence[str]) -> None:
        self.inferred = inferred
        self.dtypes = dtypes
        self.inputs = 0
        self.sizes: dict[int, int] = {}
        self.extents: list[int] = []
        self.places: dict[int, list[shaped.Place]] = {}
        super().__init__(lambda loop: self._size(loop.extent or 0), self.extents.__getitem__)

    def run(self, outputs: Sequence[int]) -> shaped.Shaped:
        program = self.inferred.graph
        needed = _needed(program, outputs)
        for value, node in enumerate(program.nodes):
            if value not in needed:
                continue
            if isinstance(node, Terminal):
                self._terminal(value, node)
            elif isinstance(node, Operation):
                dims = self._dims(value)
                self.operation(value, node, dims, project(self.inferred, value))
        given = self._outputs(outputs)
        names = name_tensors(program, given, self.number, len(self.nodes))
        sizes = tuple(
            shaped.Size(f"n{extent}", extent, tuple(self.places.get(extent, ())))
            for extent in self.sizes
        )
        return shaped.Shaped(
            program.name,
            tuple(self.nodes),
            tuple(replace(t, name=n) for t, n in zip(self.tensors, names, strict=True)),
            sizes,
            (),
            (),
            tuple(self.number[value] for value in program.inputs if value in needed),
            tuple(given),
        )

    def _size(self, extent: int) -> int:
        if extent not in self.sizes:
            self.sizes[extent] = len(self.extents)
            self.extents.append(extent)
        return self.sizes[extent]

    def _dims(self, value: int) -> list[int]:
        """The size numbers of the dimensions of a value."""
        return [self._size(extent) for extent in sizes_of(self.inferred.shapes[value])]

    def _terminal(self, value: int, node: Terminal) -> None:
        if node.kind == "number":
            assert node.value is not None
            self.constants[value] = Constant(node.value)
            return
        dims = sizes_of(self.inferred.shapes[value])
        for dim, extent in enumerate(dims):
            self.places.setdefault(extent, []).append(shaped.Place(self.inputs, dim, node.span))
        made = shaped.Input(self.inputs, node.span)
        self.inputs += 1
        self.number[value] = self.add(made, self.dtypes[value], self._dims(value))

    def _outputs(self, outputs: Sequence[int]) -> list[int]:
        """Every output as a value of its own."""
        given: dict[int, None] = {}
        for value in outputs:
            number = self.number.get(value)
            if number is None or number in given or isinstance(self.nodes[number], shaped.Input):
                number = self._copied(value)
            given[number] = None
        return list(given)

    def _copied(self, value: int) -> int:
        dims = self._dims(value)
        span = self.inferred.graph.nodes[value].span
        if value in self.constants:
            return self.filled(replace(self.constants[value], dtype="f32"), dims, "constant", span)
        source = self.number[value]
        return self.plain(dims, source, Operand(0, self.tensors[source].dtype), "copy", span)


def _needed(program: graph.Graph, outputs: Sequence[int]) -> set[int]:
    """The values that the outputs are computed from, themselves included."""
    found: set[int] = set()
    todo = list(outputs)
    while todo:
        value = todo.pop()
        if value not in found:
            found.add(value)
            node = program.nodes[value]
            todo += node.operands if isinstance(node, Operation) else ()
    return found

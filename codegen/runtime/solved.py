"""A tensor function or a routine whose shapes are inferred: what its runs read, keep and give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.runtime.arguments import NUMPY_TYPES
from ilang.codegen.runtime.initial import stored_values
from ilang.codegen.runtime.stored import Tensor
from ilang.core import pipeline
from ilang.core.build.measure import extent_of_axis
from ilang.core.build.tensor import Shape
from ilang.core.build.values import Measured, Stored
from ilang.core.infer.projections import sizes_of
from ilang.core.ir.rows import extent_of, known_axes
from ilang.core.transform.attached import attached

if TYPE_CHECKING:
    from ilang.codegen.runtime.arguments import Array
    from ilang.codegen.runtime.session import Model, Options
    from ilang.core.infer.inferred import Inferred


class Solved:
    """A definition whose shapes are inferred."""

    def __init__(self, model: Model, options: Options) -> None:
        """Infer them.

        Raises:
            Error: whatever is wrong with the text, the shapes or the configuration.
        """
        self.name = options.name
        self.built = model.built(options)
        self.config = model.configuration(options)
        self.inferred: Inferred = pipeline.infer_rows(self.built.graph)
        inputs = [cell for cell, _ in self.built.inputs if cell.kind == "input"]
        wide = any(cell.dtype == "f64" for cell in inputs)
        self.dtype = "f64" if wide else "f32"
        self.float = NUMPY_TYPES[self.dtype]
        self.results = self.built.results
        self.number = dict(self.built.inputs)
        from ilang.core.passes.solved_to_shaped import needed_values

        outputs = [each.number for each in self.results]
        wanted = needed_values(self.built.graph, outputs)
        self.needed = [cell for cell, number in self.built.inputs if number in wanted]

    def dims(self, cell: Stored) -> tuple[int, ...]:
        """The extents of what a tensor keeps, in memory order."""
        return tuple(sizes_of(self.inferred.shapes[self.number[cell]]))

    def shape(self, cell: Stored) -> Shape:
        """Its rows."""
        rows = self.inferred.shapes[self.number[cell]]
        batch, inner, output = (tuple(map(extent_of, known_axes(row))) for row in rows)
        return Shape(batch, inner, output)

    def type_of(self, cell: Stored) -> str:
        """Its element type."""
        return cell.dtype or (self.dtype if cell.kind != "input" else "f32")

    def cells(self, kind: str) -> list[tuple[Stored, Tensor]]:
        """What a run keeps of one kind, in the order of evaluation."""
        paths = self.built.paths
        return [
            (cell, Tensor(paths.get(cell, cell.name), self.shape(cell), self.type_of(cell)))
            for cell, _ in self.built.inputs
            if cell.kind == kind
        ]

    def tensors(self, kind: str) -> list[Tensor]:
        """The same, without what the text has of them."""
        return [tensor for _, tensor in self.cells(kind)]

    def constants(self) -> dict[Stored, Array]:
        """The arrays of constants."""
        found: dict[Stored, Array] = {}
        for cell, _ in self.built.inputs:
            if cell.kind != "constant":
                continue
            dims = self.dims(cell)
            if isinstance(cell.initial, Measured):
                extent = extent_of_axis(self.built, self.inferred, cell)
                found[cell] = np.full(dims, extent, self.float)
            else:
                found[cell] = np.ascontiguousarray(stored_values(cell, dims, self.float))
        return found

    def merged(self) -> list[tuple[int, int, bool]]:
        """The inputs that are sums over ranks: position, that of the result that is summed, whether over all ranks."""
        sources = [n for n, each in enumerate(self.results) if each.role == "merged"]
        return [
            (self.needed.index(each.cell), source, each.whole)
            for each, source in zip(self.built.merged, sources, strict=True)
            if each.cell in self.needed
        ]

    def shaped(self) -> Any:
        """The typed graph, gradients attached."""
        dtypes = [self.dtype] * len(self.built.graph.inputs)
        for cell, number in self.built.inputs:
            dtypes[number] = self.type_of(cell)
        outputs = [each.number for each in self.results]
        return attached(pipeline.tensors_shaped(self.inferred, dtypes, outputs))

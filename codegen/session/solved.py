"""A definition of a file for arrays: what its runs read, keep and give, and the arrays of its constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.session.given_shapes import shape_options
from ilang.codegen.session.initial import stored_values
from ilang.core.build.values import Measured, Stored
from ilang.core.definition import TypedDefinition
from ilang.core.diagnostic import ShapeError

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.model import Model, Options


class SolvedDefinition(TypedDefinition):
    """A definition whose shapes are inferred, of a model with a configuration."""

    def __init__(self, model: Model, options: Options, of_any_ranks: bool = False) -> None:
        """Infer them; ``of_any_ranks`` for a program that as many ranks run as there are then.

        Raises:
            Error: whatever is wrong with the text, the shapes or the configuration.
        """
        built = model.built(options, of_any_ranks)
        try:
            super().__init__(options.name, built, model.module)
        except ShapeError as error:
            inputs = model.inputs(options.name)
            if error.code == "E0520" and len(options.shapes) < len(inputs):
                error.help += f"; for example {shape_options(inputs)}"
            raise
        self.config = model.configuration(options)
        self.float = NUMPY_TYPES[self.dtype]

    def constants(self) -> dict[Stored, Array]:
        """The arrays of constants."""
        constants: dict[Stored, Array] = {}
        for cell, _ in self.built.inputs:
            if cell.kind != "constant" or isinstance(cell.initial, Measured):
                continue
            dims = self.dims(cell)
            constants[cell] = np.asarray(stored_values(cell, dims, self.float), order="C")
        return constants

"""A definition to the run of a session: what lasts, the stages, and the names of their arrays.

Example, of ``p.grad =+ p.grad.merge`` and ``p =- lr *. p.grad``, its input called ``x``:
    kept    parameter p, next next_p; setting lr; between p_grad_sum
    stages  x and p are read, p_grad_sum is written, and summed over ranks; then p, lr and p_grad_sum are read, next_p
            is written
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ilang.core.ir.session import KeptRole, KeptTensor, Run
from ilang.core.record import replace
from ilang.core.transform.stages import fixed_dims, run_of

if TYPE_CHECKING:
    from ilang.core.build.routines import Result
    from ilang.core.build.values import Stored
    from ilang.core.definition import TypedDefinition
    from ilang.core.ir.shaped import Shaped

ROLES: Mapping[str, KeptRole] = {
    "parameter": "parameter",
    "declared": "state",
    "setting": "setting",
    "constant": "constant",
}
"""The roles of what is kept, by the kinds of what a run reads."""


class RunBuilder:
    """The run of a definition; whoever has names of their own for what is kept overrides ``keep`` and ``name_of``.

    ``cells`` are what runs read, by the names of the tensors.
    """

    def __init__(self, definition: TypedDefinition, shaped: Shaped) -> None:
        """For a definition and the program of a run of it."""
        self.definition = definition
        self.shaped = shaped
        self.cells: dict[str, Stored] = {}
        self._names = 0

    def name_of(self, path: str) -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{path} {self._names}"

    def keep(self, tensor: KeptTensor, cell: Stored | None, is_written: bool) -> KeptTensor:
        """A tensor with its names; ``cell`` is what runs read of it, ``is_written`` whether they change that."""
        del cell
        name = self.name_of(tensor.path)
        return replace(tensor, name=name, next=f"next {name}" if is_written else "")

    def run(
        self,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        bucket_bytes: int | None = None,
    ) -> Run:
        """The run, where some have given names to inputs, by those of the text, and to what is returned, by its path.

        Raises:
            DataError: E0766 (what lasts has a size that comes at run time).
        """
        definition, shaped = self.definition, self.shaped
        given = [cell for cell, _ in definition.built.inputs if cell.kind == "input"]
        returned = [each.path for each in definition.results if each.role == "return"]
        inputs = inputs or {cell.name: self.name_of(cell.name) for cell in given}
        outputs = outputs or {path: self.name_of(f"result {path}") for path in returned}
        cells = dict(self._read())
        kept = [*cells.values(), *self._left()]
        by_path = {(str(each.role), each.path): each.next or each.name for each in kept}
        names = {cell: each.name for cell, each in cells.items()}
        tensors = {}
        for cell in given:
            names[cell] = inputs[cell.name]
            tensors[names[cell]] = definition.type_of(cell), definition.open_dims(cell)
        written = []
        for result, value in zip(definition.results, shaped.outputs, strict=True):
            written.append(_place(result, outputs, by_path))
            if result.role == "return":
                tensor = shaped.tensors[value]
                dims = tuple(shaped.sizes[size].fixed for size in tensor.dims)
                tensors[outputs[result.path]] = tensor.dtype, dims
        read = [names.get(cell) for cell in definition.needed]
        merged = definition.merged()
        stages, between = run_of(shaped, merged, read, written, self.name_of, bucket_bytes)
        kept += [KeptTensor("between", "", name, *each) for name, each in between.items()]
        named = tuple(inputs.values()), tuple(outputs.values())
        return Run(stages if written else (), tuple(kept), *named, tensors)

    def _read(self) -> Iterator[tuple[Stored, KeptTensor]]:
        definition = self.definition
        written = {(result.role, result.path) for result in definition.results}
        settings = definition.built.settings.values()
        for kind, usual in ROLES.items():
            for cell, tensor in definition.cells(kind):
                if kind in ("setting", "constant") and cell not in definition.needed:
                    continue
                role = "ranks" if kind == "setting" and cell not in settings else usual
                dims = tensor.shape.memory()
                kept = KeptTensor(role, tensor.path, "", tensor.dtype, dims)
                named = self.keep(kept, cell, (role, kept.path) in written)
                self.cells[named.name] = cell
                yield cell, named

    def _left(self) -> Iterator[KeptTensor]:
        results = zip(self.definition.results, self.shaped.outputs, strict=True)
        for result, value in results:
            if result.role in ("gradient", "kept"):
                dims = fixed_dims(self.shaped, value, result.path)
                dtype = self.shaped.tensors[value].dtype
                kept = KeptTensor(result.role, result.path, "", dtype, dims)
                yield self.keep(kept, None, is_written=False)


def _place(result: Result, outputs: Mapping[str, str], kept: Mapping[tuple[str, str], str]) -> str:
    """The name of the array that takes what a run gives; what ranks sum might be called by its path."""
    if result.role == "merged":
        return result.path
    return outputs[result.path] if result.role == "return" else kept[result.role, result.path]

"""Elementwise kernels in Python: a component for each combination of ranks that calls, or shapes, give its inputs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import check_is, read_array, shown
from ilang.codegen.components.component import Component
from ilang.codegen.components.gradient import gradient_of, refusal
from ilang.codegen.components.layout import LaidOutProgram, checked_orders, orders_of
from ilang.codegen.components.program import ComponentProgram, WrittenProgram
from ilang.codegen.system.concurrency import kept
from ilang.core.diagnostic import DataError, Error, Label, NotationError, ShapeError, counted
from ilang.core.ir.syntax import Definition, ElementKernel, Tree
from ilang.core.limits import check_expressions
from ilang.core.notation.kernel import DEEPEST, accumulator, order_of, parse_kernel, too_deep
from ilang.core.record import replace
from ilang.core.source import Source, whole
from ilang.core.transform.layouts import Order

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Output
    from ilang.codegen.call.versions import Version
    from ilang.core.ir.shaped import Shaped

NUMBERED = re.compile(r"\bin(\d+)\b")
"""An input, as a program without names calls it."""
MODE_HELP = 'a mode is "broadcast", ("accumulate", "sum") or ("accumulate", "sum", 1)'
OUTPUT_HELP = (
    'for example: "sum: x0 + x1", or {"expr": ("add", "x0", "x1"), "mode": ("accumulate", "sum")}'
)


def _rank(name: str, value: object) -> int:
    """The rank of what is no NumPy array: a number, a list, an array of a device that tells its shape alone.

    Raises:
        DataError: E0702 (no array), E0704 (masked).
    """
    interface = getattr(value, "__cuda_array_interface__", None)
    shape = interface.get("shape") if isinstance(interface, dict) else None
    return read_array(name, value).ndim if shape is None else len(shape)


def kernel(order: object, outputs: object, inputs: object) -> ElementwiseKernel:
    """The component of a kernel; see ``ilang.elementwise``.

    Raises:
        NotationError: E0180 to E0183. DataError: E0716 (outputs or inputs of another form).
        MeaningError: E0250 (too many inputs or expressions).
    """
    if isinstance(order, str) and ":" in order and not outputs:
        message = "outputs are missing, and the order is the text of a whole kernel"
        raise DataError("E0716", message, help=f"write i('elementwise(\"{order}\")')")
    chosen = order_of(order)
    if (
        isinstance(outputs, str | bytes | Mapping)
        or not isinstance(outputs, Sequence)
        or not outputs
    ):
        message = f"outputs are a list of at least one, not {shown(outputs)}"
        raise DataError("E0716", message, help=OUTPUT_HELP)
    names = _names(inputs, outputs)
    texts = "; ".join(_output(output, names) for output in outputs)
    source = Source("<kernel>", f"{chosen}: {', '.join(names)} -> {texts}")
    return ElementwiseKernel(KernelProgram(parse_kernel(source)))


def _names(inputs: object, outputs: Sequence[object]) -> list[str]:
    """The names of inputs: x0, x1, ... where only their number is given, or as many as the outputs name."""
    if inputs is None:
        most = max((n for output in outputs for n in _mentioned(output)), default=-1)
        if most < 0:
            message = "inputs are missing, and the outputs mention none of x0, x1, ..."
            raise DataError("E0716", message, help='name them in order: inputs=["x", "y"]')
        inputs = most + 1
    if isinstance(inputs, int) and not isinstance(inputs, bool):
        check_expressions(inputs, whole(Source("<kernel>", f"{inputs} inputs")))
        names = [f"x{n}" for n in range(inputs)]
    elif isinstance(inputs, Sequence) and all(isinstance(name, str) for name in inputs):
        names = list(inputs)
    else:
        message = f"inputs are names or their number, not {shown(inputs)}"
        raise DataError("E0716", message, help='for example: inputs=["x", "y"], inputs=2')
    if not names or not all(name.isidentifier() and name.isascii() for name in names):
        message = f"a kernel has at least one input, and names for them, not {shown(inputs)}"
        raise DataError("E0716", message, help='for example: inputs=["x", "y"], inputs=2')
    return names


def _mentioned(output: object) -> list[int]:
    """The numbers of the inputs x0, x1, ... that an output mentions."""
    numbers: list[int] = []
    todo = [output]
    while todo:
        part = todo.pop()
        if isinstance(part, Mapping):
            todo.append(part.get("expr"))
        elif isinstance(part, tuple | list):
            todo += part[1:]
        elif isinstance(part, str):
            words = "".join(c if c.isalnum() or c == "_" else " " for c in part).split()
            numbers += [int(w[1:]) for w in words if w[0] == "x" and w[1:].isdigit() and len(w) < 6]
    return numbers


def _output(output: object, names: Sequence[str]) -> str:
    """An output, a text or an expression and its mode, as it stands in the text of a kernel."""
    if isinstance(output, str):
        return " ".join(output.split())
    if not isinstance(output, Mapping) or set(output) - {"expr", "mode"} or "expr" not in output:
        raise DataError("E0716", f"{shown(output)} is no output of a kernel", help=OUTPUT_HELP)
    return _mode(output.get("mode", "broadcast")) + _expression(output["expr"], names)


def _mode(mode: object) -> str:
    """The text before an expression: ``sum 1: ``. Raises NotationError E0182."""
    if mode == "broadcast":
        return ""
    if not isinstance(mode, tuple | list) or not 2 <= len(mode) <= 3 or mode[0] != "accumulate":
        fault = "has no accumulator" if mode == "accumulate" else "is no mode of an output"
        raise NotationError("E0182", f"{shown(mode)} {fault}", None, MODE_HELP)
    accumulator(mode[1])
    if len(mode) == 2:
        return f"{mode[1]}: "
    if type(mode[2]) is not int or mode[2] < 0:
        message = f"{shown(mode[2])} is no rank"
        raise NotationError("E0182", message, None, "a rank is a number from 0 on")
    return f"{mode[1]} {mode[2]}: "


def _expression(part: object, names: Sequence[str], depth: int = 0) -> str:
    """An expression of nested tuples, texts and numbers as text. Raises NotationError E0180, DataError E0716."""
    if isinstance(part, str):
        return part if part in names else f"({part})"
    if isinstance(part, int | float) and not isinstance(part, bool) and isfinite(part):
        return repr(part)
    if not isinstance(part, tuple | list) or not part or not isinstance(part[0], str):
        raise DataError("E0716", f"{shown(part)} is no expression", help=OUTPUT_HELP)
    if depth == DEEPEST:
        raise too_deep(None)
    operands = ", ".join(_expression(operand, names, depth + 1) for operand in part[1:])
    return f"{part[0]}({operands})"


class KernelProgram(WrittenProgram):
    """A kernel whose ranks follow from the arrays of a call: a program for each combination of ranks and orders."""

    __slots__ = ("_derived", "_kernel", "_laid_out", "_open", "_ranked")

    def __init__(self, kernel: ElementKernel, derived: tuple[tuple[Any, bool], ...] = ()) -> None:
        """The kernel, of inputs of any ranks; or its gradient, once for each ``wrt`` and whether values are wanted."""
        super().__init__(kernel)
        self._kernel = kernel
        self._derived = derived
        self._open: Collection[str] | None = ()
        self._ranked: dict[tuple[int, ...], ComponentProgram] = {}
        self._laid_out: dict[tuple[Order, ...], ComponentProgram] = {}

    def differentiated(self, wrt: Any, values: bool) -> KernelProgram:
        """The gradient, of inputs of any ranks."""
        return KernelProgram(self._kernel, (*self._derived, (wrt, values)))

    def ranked(self, ranks: tuple[int, ...]) -> ComponentProgram:
        """The program for inputs of these ranks. Raises DataError E0701."""

        def ranked() -> ComponentProgram:
            program: ComponentProgram = WrittenProgram(self._with_ranks(ranks))
            for wrt, values in self._derived:
                program = gradient_of(program, wrt, values)
            program.keep_open(self._open)
            return program

        return kept(self._ranked, ranks, ranked)

    def laid_out(self, orders: tuple[Order, ...]) -> ComponentProgram:
        """The program for inputs that are stored in these orders."""

        def stored() -> ComponentProgram:
            program = LaidOutProgram(self._with_ranks([*map(len, orders)]), orders)
            program.keep_open(self._open)
            return program

        return kept(self._laid_out, orders, stored)

    def _with_ranks(self, ranks: Sequence[int]) -> ElementKernel:
        """The kernel for inputs of these ranks. Raises DataError E0701."""
        inputs = self._kernel.inputs
        if len(ranks) != len(inputs):
            message = (
                f"the kernel takes {counted(len(inputs), 'array')}, and {len(ranks)} are given"
            )
            names = ", ".join(each.name for each in inputs)
            raise DataError("E0701", message, help=f"pass one for each of {names}")
        pairs = zip(inputs, ranks, strict=True)
        return replace(self._kernel, inputs=tuple(replace(each, rank=n) for each, n in pairs))

    def written(self) -> tuple[Tree, Mapping[str, Definition]]:
        """The kernel as a part of others. Raises DataError E0716: it is a gradient."""
        if self._derived:
            raise refusal()
        return super().written()

    def call(
        self, given: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any
    ) -> Any:
        """Run on arrays by the program for their ranks and orders, whose plan answers later calls like this one."""
        shaping = given[: len(self._kernel.inputs)] if self._derived else given
        try:
            ranks = tuple([array.ndim for array in shaping])
        except AttributeError:  # numbers and lists are arrays, too
            called = [*self.names_in_calls(), *(f"in{n}" for n in range(len(shaping)))]
            ranks = tuple(map(_rank, called, shaping))
        orders = None if out is not None or self._derived else orders_of(given)
        try:
            if orders is not None:
                try:
                    return self.laid_out(orders).run(given, None, threads, target, stream)
                except Error:  # said of dimensions as they are written
                    pass
            program = self.ranked(ranks)
            arrays = program.completed(tuple(given))
            results = program.run(arrays, out, threads, target, stream)
        except ShapeError as error:
            raise self._hinted(error, [np.shape(array) for array in given]) from None
        plan = program.plans.of(given)
        if plan is not None:
            self.plans.keep(given, plan)
        return results

    def placed_error(self, error: DataError, given: Sequence[Any], target: str) -> DataError:
        """An error of a call as it is: a kernel looks nothing up."""
        del given, target
        return error

    def names_in_calls(self) -> list[str]:
        """The names by which a call may give arrays."""
        return [each.name for each in self._kernel.inputs]

    def keep_open(self, names: Collection[str] | None) -> None:
        """Take note, before the first call, of which extents stay open."""
        self._open = names

    def versions(self) -> tuple[Version, ...]:
        """The programs compiled for calls, whatever the ranks and orders of their arrays."""
        every = (*self._ranked.values(), *self._laid_out.values())
        return tuple(dict.fromkeys(version for each in every for version in each.versions()))

    def results(
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None
    ) -> list[Output]:
        """Shapes and NumPy types of the outputs for inputs of these shapes."""
        try:
            return self.at(shapes).results(shapes, dtypes)
        except ShapeError as error:
            raise self._hinted(error, shapes) from None

    def _hinted(self, error: ShapeError, shapes: Sequence[object]) -> ShapeError:
        """A refusal of extents, of inputs by their names; its help says where the shapes line up in the other order."""
        from ilang.codegen.call.arguments import checked_shapes

        error = self._named(error)
        other = "c" if self._kernel.order == "f" else "f"
        given = checked_shapes(shapes[: len(self._kernel.inputs)])
        keyed = [tuple(reversed(shape)) if other == "f" else shape for shape in given]
        full = max(keyed, key=len)
        if error.code != "E0505" or any(full[: len(shape)] != shape for shape in keyed):
            return error
        help_line = f'these shapes line up in the order {other}: elementwise("{other}", ...)'
        return error.with_help(help_line)

    def _named(self, error: ShapeError) -> ShapeError:
        """An error that calls inputs as the kernel does, and not by their numbers."""
        names = self.names_in_calls()

        def named(text: str) -> str:
            return NUMBERED.sub(
                lambda m: names[int(m[1])] if int(m[1]) < len(names) else m[0], text
            )

        labels = [Label(each.span, named(each.text)) for each in error.labels]
        return ShapeError(error.code, named(error.message), error.span, named(error.help), labels)

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program for inputs of these shapes, typed."""
        return self.at(shapes).shaped(shapes, dtypes)

    def at(self, shapes: Sequence[Any]) -> ComponentProgram:
        """The program for inputs of these shapes; without any, whatever needs no rank, or the refusal for it."""
        from ilang.codegen.call.arguments import check_is_list, checked_shapes

        check_is_list(shapes)
        if not shapes:
            return WrittenProgram(self._kernel)
        return self.ranked(tuple(len(shape) for shape in checked_shapes(list(shapes))))

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelProgram, (self._kernel, self._derived), (None, {"_open": self._open})


class ElementwiseKernel(Component):
    """A kernel whose ranks follow from the arrays of a call; ``ranked`` is the component that others combine with."""

    __slots__ = ()

    program: KernelProgram

    def ranked(self, *ranks: int, layouts: Sequence[object] | None = None) -> Component:
        """The component for inputs of these ranks.

        Args:
            ranks: one per input.
            layouts: how inputs are stored: "C", "F", or the dimensions, the outermost first; by default "C" for all.

        Raises:
            DataError: E0701 (another number of inputs), E0716 (no order of so many dimensions).
        """
        for rank in ranks:
            check_is(rank, int, "E0716", "ranks are numbers of dimensions", "f.ranked(2, 1)")
        if layouts is None:
            return Component(self.program.ranked(ranks))
        says = "layouts are a list of one for each input"
        check_is(layouts, (tuple, list), "E0716", says, 'layouts=("F", "C")')
        if len(layouts) != len(ranks):
            message = (
                f"there are {counted(len(ranks), 'rank')}, and {counted(len(layouts), 'layout')}"
            )
            raise DataError("E0701", message, help='give one for each input: layouts=("F", "C")')
        return Component(self.program.laid_out(checked_orders(layouts, ranks)))

    def grad(self, wrt: Any = None) -> Component:
        """The gradient, of inputs of any ranks."""
        return ElementwiseKernel(self.program.differentiated(wrt, values=False))

    def value_and_grad(self, wrt: Any = None) -> Component:
        """The outputs and then the gradients, of inputs of any ranks."""
        return ElementwiseKernel(self.program.differentiated(wrt, values=True))

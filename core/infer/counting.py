"""Row variables: how many axes each row variable of an einsum specification stands for, counted from ranks.

A shape of a specification is a linear equation: the rank of the tensor is the number of its written axes plus the
length of each of its row variables. Ranks come from arrays, from definitions and from expressions on either side; an
equation with one unknown gives it, until no equation does. Left over are:

    - several row variables that stand next to each other wherever they stand: how they divide their axes among
      themselves does not matter, so the last of them has all
    - several others: refused, since their division matters and nothing decides it
    - row variables whose tensors have ranks that nothing gives: they stand for no axes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Operation
from ilang.core.ir.rows import MEMORY_ORDER
from ilang.core.ir.shaped import Counted
from ilang.core.ir.spec import Axis, ShapeSpec, Spec, variable_text
from ilang.core.record import record
from ilang.core.source import Span
from ilang.core.walks import left_unsettled

Variable = tuple[int, str]
"""A row variable: the node of its specification, and its name."""
Known = dict[int, tuple[int, Span, str]]
"""The rank of each group of values, who says so, and in what role."""


@record
class RowAxis:
    """An axis that a row variable stands for: its place among those of the variable, from 0."""

    variable: str
    place: int

    def name(self) -> str:
        """The name in loops and messages: ``n0`` of ``..n..``; ``b0``, ``i0`` and ``o0`` of ``...``, by the row."""
        is_named = not self.variable.startswith("...")
        return f"{self.variable if is_named else self.variable[3]}{self.place}"


Flat = tuple[list[Axis | RowAxis], list[Axis | RowAxis], list[Axis | RowAxis]]
"""The axes of the batch, input and output rows."""


def flat(shape: ShapeSpec, count: Callable[[str], int]) -> Flat:
    """The axes of the three rows of a shape whose row variables are counted."""
    lengths = []
    for row in shape.rows:
        number = 0 if row.variable is None else count(row.variable)
        middle = [RowAxis(row.variable or "", place) for place in range(number)]
        lengths.append([*row.leading, *middle, *row.trailing])
    return lengths[0], lengths[1], lengths[2]


def axis_says(axis: Axis | RowAxis) -> str:
    """An axis as it is written; one of a row variable by its place."""
    return axis.name() if isinstance(axis, RowAxis) else axis.span.text()


def variable_says(variable: str) -> str:
    """The name of a row variable in messages: as it is written."""
    row = f" of the {variable.strip('.')} row" if variable.startswith(".") else ""
    return f"`{variable_text(variable)}`{row}"


@record
class _Equation:
    """The rank of a value: ``explicit`` axes and those of ``variables``, which may stand there twice."""

    value: int
    explicit: int
    variables: tuple[Variable, ...]
    shape: ShapeSpec


class LengthEquations:
    """The equations of the specifications of a graph; ``run`` solves them into what is ``counted``."""

    def __init__(self, graph: Graph, find: Callable[[int], int], known: Known) -> None:
        """``find`` gives the group of a value: values of one group have one rank, which goes into ``known``."""
        self.graph = graph
        self.find = find
        self.known = known
        self.counted: dict[Variable, Counted] = {}
        """The row variables, in the order in which they are determined."""

    def rank(self, value: int) -> int | None:
        """The rank of a value, None where nothing fixes it."""
        entry = self.known.get(self.find(value))
        return None if entry is None else entry[0]

    def run(self) -> None:
        """Count every row variable.

        Raises:
            ShapeError: E0501, E0503 (a tensor with too few axes, or an odd number of them), E0509 (a division among row
                variables that nothing decides).
        """
        pending = left_unsettled(list(_equations(self.graph)), self._settle)
        while pending:
            glued = self._glued(pending)
            if glued is None:
                because = "nothing says how many axes it stands for, and none are assumed"
                self._count(self._open(pending[0])[0], 0, because, assumed=True)
            else:
                chosen, other = glued
                neighbour = variable_says(other[1])
                self._count(
                    chosen, 0, f"{neighbour} stands next to it everywhere, and has its axes too"
                )
            pending = left_unsettled(pending, self._settle)

    def _count(
        self, variable: Variable, length: int, because: str, *, assumed: bool = False
    ) -> None:
        span = self.graph.nodes[variable[0]].span
        self.counted[variable] = Counted(variable_says(variable[1]), length, because, assumed, span)

    def _open(self, equation: _Equation) -> list[Variable]:
        variables = dict.fromkeys(v for v in equation.variables if v not in self.counted)
        return list(variables)

    def _settle(self, equation: _Equation) -> bool:
        """Whether an equation is settled: one with one unknown is, by what follows."""
        opened = self._open(equation)
        lengths = (self.counted[v].length for v in equation.variables if v in self.counted)
        sure = equation.explicit + sum(lengths)
        group = self.find(equation.value)
        if group not in self.known:
            if opened:
                return False
            role = "gives" if equation.shape is self._result(equation) else "reads"
            self.known[group] = (sure, equation.shape.span, role)
            return True
        rank = self.known[group][0]
        if rank < sure or (not opened and rank != sure):
            raise self._misfit(equation, rank, sure, more=bool(opened))
        if len(opened) > 1:
            return False
        if opened:
            times = equation.variables.count(opened[0])
            if (rank - sure) % times:
                raise self._misfit(
                    equation, rank, sure + times * ((rank - sure) // times), more=False
                )
            text = equation.shape.span.text().strip()
            half = " on each side" if times > 1 else ""
            because = f"`{text}` has rank {rank}, {sure} without it{half}"
            self._count(opened[0], (rank - sure) // times, because)
        return True

    def _result(self, equation: _Equation) -> ShapeSpec | None:
        node = self.graph.nodes[equation.value]
        if isinstance(node, Operation) and isinstance(node.logic, Spec):
            return node.logic.result
        return None

    def _misfit(self, equation: _Equation, rank: int, wanted: int, more: bool) -> ShapeError:
        """A tensor whose rank its shape in the specification cannot have."""
        text, span = equation.shape.span.text().strip(), equation.shape.span
        takes = f"at least {wanted}" if more else f"{wanted}"
        place, role = self.known[self.find(equation.value)][1:]
        labels = [Label(span, f"rank {takes}"), Label(place, f"{role} rank {rank}")]
        if equation.value < len(self.graph.inputs):
            name = self.graph.input_name(self.graph.inputs.index(equation.value))
            message = f"{name} has rank {rank}, but `{text}` reads it with rank {takes}"
            help_line = f"pass an array of rank {takes} as {name}, or change the shape"
            return ShapeError("E0503", message, span, help_line, labels[: 1 + (place != span)])
        message = f"a value of rank {rank} meets `{text}`, which has rank {takes}"
        help_line = "write one entry per axis, or a row variable (`...`) for the axes in between"
        return ShapeError("E0501", message, span, help_line, labels)

    def _glued(self, pending: list[_Equation]) -> tuple[Variable, Variable] | None:
        """A row variable of a value of known rank, and the one after it, which may have its axes as well."""
        for equation in pending:
            if self.find(equation.value) not in self.known:
                continue
            opened = self._open(equation)
            node = self.graph.nodes[opened[0][0]]
            assert isinstance(node, Operation)
            assert isinstance(node.logic, Spec)
            for (number, one), (_, other) in pairwise(opened):
                if _is_glued(node.logic, one, other):
                    return (number, one), (number, other)
            raise self._undecided(equation, opened)
        return None

    def _undecided(self, equation: _Equation, opened: Sequence[Variable]) -> ShapeError:
        rank = self.known[self.find(equation.value)][0]
        names = " and ".join(variable_says(name) for _, name in opened)
        text = equation.shape.span.text().strip()
        return ShapeError(
            "E0509",
            f"`{text}` reads a tensor of rank {rank}, and how its axes are divided among {names} changes the result",
            equation.shape.span,
            "name the axes of one of the rows, or leave its row variable out",
        )


def _equations(graph: Graph) -> Iterator[_Equation]:
    """The equations with row variables; the others are ranks like those of index expressions."""
    for value, node in enumerate(graph.nodes):
        if isinstance(node, Operation) and isinstance(node.logic, Spec):
            values = (*node.operands, value)
            for each, shape in zip(values, node.logic.shapes(), strict=True):
                rows = [shape.rows[kind] for kind in MEMORY_ORDER]
                variables = tuple((value, row.variable) for row in rows if row.variable is not None)
                if variables:
                    yield _Equation(each, len(shape.axes()), variables, shape)


def _is_glued(spec: Spec, one: str, other: str) -> bool:
    """Whether a row variable stands directly before another wherever either of them stands, in the order of storage."""
    for shape in spec.shapes():
        order: list[object] = []
        for kind in MEMORY_ORDER:
            row = shape.rows[kind]
            order += [*row.leading, *([row.variable] if row.variable else []), *row.trailing]
        places = [n for n, item in enumerate(order) if item == one]
        behind = [n for n, item in enumerate(order) if item == other]
        if [n + 1 for n in places] != behind:
            return False
    return True

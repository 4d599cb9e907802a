"""Cycles among variables: rows that would grow without end, and variables that bound each other.

The number of axes of a row variable is bounded from below by those of others (a result has at least the axes of its
operands). A cycle that demands more axes than itself has no solution; it is refused before solving, which is what
makes growing end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ilang.core.diagnostic import ShapeError
from ilang.core.infer import conflicts
from ilang.core.ir.rows import Constraint, Origin, Row, RowBelow, RowEqual


class Edges(Protocol):
    """The edges from each node: a mapping, or something that computes it."""

    def get(self, node: int, default: Sequence[int], /) -> Sequence[int]:
        """The nodes that ``node`` leads to."""


def components(nodes: Iterable[int], edges: Edges, single: bool = False) -> Iterator[list[int]]:
    """Strongly connected components, each after those it leads to (Tarjan, without recursion).

    Args:
        nodes: where to start.
        edges: asked once for each node that is reached.
        single: whether to give components of one node, too.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    for start in nodes:
        if start in index:
            continue
        todo = [(start, iter(edges.get(start, ())))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while todo:
            node, rest = todo[-1]
            for step in rest:
                if step not in index:
                    index[step] = low[step] = len(index)
                    stack.append(step)
                    todo.append((step, iter(edges.get(step, ()))))
                    break
                low[node] = min(low[node], low[step])
            else:
                todo.pop()
                lowest = low[node]
                if todo and lowest < low[todo[-1][0]]:
                    low[todo[-1][0]] = lowest
                if lowest == index[node]:
                    component = _popped(stack, node, low)
                    if single or len(component) > 1:
                        yield component


_DONE = 1 << 62
"""Above every number of an open node."""


def _popped(stack: list[int], root: int, low: dict[int, int]) -> list[int]:
    """The component of ``root``, taken off the stack."""
    component = []
    while True:
        node = stack.pop()
        low[node] = _DONE
        component.append(node)
        if node == root:
            component.sort()
            return component


def check_ranks(count: int, constraints: Iterable[Constraint]) -> None:
    """Refuse rows that would need more axes than they have.

    Raises:
        ShapeError: E0514.
    """
    ranks = _Ranks(count)
    rows = [c for c in constraints if isinstance(c, RowEqual | RowBelow)]
    for c in rows:
        if isinstance(c, RowEqual):
            ranks.equate(c)
    ranks.check([c for c in rows if isinstance(c, RowBelow)])


class _Bound(NamedTuple):
    """The number of axes of one set of variables is at least that of another, and so many ``more``."""

    result: int
    operand: int
    more: int
    row: Row
    origin: Origin

    def infinite(self) -> ShapeError:
        """The refusal of a bound that asks its result to be longer than itself."""
        return conflicts.infinite(conflicts.row_text(self.row), self.origin)


class _Ranks:
    """Numbers of axes of row variables: equal ones by union-find with differences."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))
        self.more = [0] * count  # axes of the variable over those of its parent

    def find(self, variable: int) -> tuple[int, int]:
        """The variable that stands for a set, and how many axes more this one has."""
        more = 0
        path = []
        while self.parent[variable] != variable:
            path.append((variable, more))
            more += self.more[variable]
            variable = self.parent[variable]
        for step, before in path:
            self.parent[step] = variable
            self.more[step] = more - before
        return variable, more

    def equate(self, c: RowEqual) -> None:
        """Let two rows have equally many axes: one variable then has so many more than the other."""
        if c.one.variable is None or c.other.variable is None:
            return
        one, more_of_one = self.find(c.one.variable)
        other, more_of_other = self.find(c.other.variable)
        difference = c.other.count() + more_of_other - c.one.count() - more_of_one
        if one == other and difference:
            raise conflicts.infinite(conflicts.row_text(c.one), c.origin)
        if one != other:
            self.parent[one] = other
            self.more[one] = difference

    def check(self, rows: list[RowBelow]) -> None:
        """No cycle of inequalities asks for more axes than itself."""
        edges: dict[int, list[int]] = {}
        bounds: list[_Bound] = []
        for c in rows:
            if c.result.variable is None or c.operand.variable is None:
                continue
            result, more_of_result = self.find(c.result.variable)
            operand, more_of_operand = self.find(c.operand.variable)
            more = c.operand.count() + more_of_operand - c.result.count() - more_of_result
            bound = _Bound(result, operand, more, c.result, c.origin)
            if result == operand and more > 0:
                raise bound.infinite()
            edges.setdefault(result, []).append(operand)
            bounds.append(bound)
        if all(bound.more <= 0 for bound in bounds):
            return
        home = {
            node: number
            for number, component in enumerate(components(list(edges), edges))
            for node in component
        }
        inside: dict[int, list[_Bound]] = {}
        for bound in bounds:
            if bound.result in home and home[bound.result] == home.get(bound.operand):
                inside.setdefault(home[bound.result], []).append(bound)
        for cyclic in inside.values():
            _check_component(cyclic)


def _check_component(bounds: list[_Bound]) -> None:
    """Lengths of longest paths settle within as many rounds as there are nodes, or never."""
    length = {node: 0 for bound in bounds for node in (bound.result, bound.operand)}
    last = bounds[0]
    for _ in range(len(length) + 1):
        longer = [b for b in bounds if length[b.result] < length[b.operand] + b.more]
        if not longer:
            return
        for b in longer:
            length[b.result] = max(length[b.result], length[b.operand] + b.more)
        last = longer[0]
    raise last.infinite()

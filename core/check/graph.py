"""Invariants of ``ir/graph.py``."""

from __future__ import annotations

from ilang.core.calculus.affine import variables_of
from ilang.core.diagnostic import InternalError
from ilang.core.ir import graph as graphs
from ilang.core.ir.operation import Alike, Operation, Terminal
from ilang.core.ir.scalar import Operand, Position, scalars_within


def verify(graph: graphs.Graph) -> None:
    """Raise an InternalError (E9902) naming the first invariant that does not hold."""
    count = len(graph.nodes)
    pairs = [(each.one, each.other) for each in graph.constraints if isinstance(each, Alike)]
    related = {value for pair in pairs for value in pair}
    verified: set[tuple[object, ...]] = set()
    for value, node in enumerate(graph.nodes):
        match node:
            case graphs.Input():
                _demand(value < len(graph.inputs), "inputs come first", value)
            case graphs.Elementwise():
                pass
            case graphs.View():
                for groups in (node.source, node.target):
                    axes = [axis for group in groups for axis in group]
                    in_order = axes == list(range(len(node.axes)))
                    _demand(in_order, "a view has each of its axes once, in order", value)
            case Terminal():
                _demand(
                    (node.kind != "number") == (value < len(graph.inputs)),
                    "leaves with arrays are inputs",
                    value,
                )
                if node.kind == "alike":
                    written = any(rows is not None for rows in node.rows)
                    _demand(
                        not written and node.count is None, "what flows back says no rows", value
                    )
                    _demand(value in related, "what flows back has the rows of a value", value)
            case Operation():
                used = {p.number for p in scalars_within(node.scalar) if isinstance(p, Operand)}
                _demand(used <= set(range(len(node.operands))), "a scalar uses operands", value)
            case graphs.Assignment():
                _once(node, value, verified)
            case graphs.Einx():
                form = node.form
                _demand(len(node.operands) == len(form.inputs), "an operand an expression", value)
                _demand(0 <= node.output < len(form.outputs), "it has the output", value)
            case graphs.OpenKernel():
                kernel = node.kernel
                _demand(len(node.operands) == len(kernel.inputs), "an operand an input", value)
                _demand(0 <= node.output < len(kernel.outputs), "it has the output", value)
        reads = graphs.operands(node)
        _demand(all(0 <= read < value for read in reads), "a node reads smaller numbers", value)
    _demand(all(0 <= each.value < count for each in graph.called), "what is called is a value", 0)
    _demand(graph.inputs == tuple(range(len(graph.inputs))), "input n has value n", 0)
    _demand(all(0 <= value < count for value in graph.outputs), "outputs are values", 0)


def _identity(node: graphs.Assignment) -> tuple[object, ...]:
    """The very objects that an assignment is made of, apart from values: uses of one definition share them."""
    reads = [part for read in node.reads for part in (id(read.index), id(read.guards))]
    whole = (id(node.axes), id(node.target), id(node.scalar), id(node.lookups))
    return (*whole, node.acc, node.base is None, *reads)


def _once(node: graphs.Assignment, value: int, verified: set[tuple[object, ...]]) -> None:
    """Verify an assignment unless one of the same objects is: nothing here depends on the values that it reads."""
    parts = _identity(node)
    if parts not in verified:
        _assignment(node, value)
        verified.add(parts)


def _assignment(node: graphs.Assignment, value: int) -> None:
    axes = set(range(len(node.axes)))
    kept = variables_of(node.target)
    read = variables_of(part for r in node.reads for part in r.index)
    guards = [guard for r in node.reads for guard in r.guards]
    read |= variables_of(guard.index for guard in guards)
    _demand(kept | read <= axes, "axes holds every axis", value)
    places = [part.index for part in scalars_within(node.scalar) if isinstance(part, Position)]
    positions = variables_of(places)
    _demand(positions <= axes, "a position is one along axes", value)
    extents = {axis for place in places for _, axis in place.sizes}
    _demand(extents <= axes, "an extent is that of an axis", value)
    looked = _lookups(node, value)
    _demand(not positions & looked, "a position is one along counted axes", value)
    plain = all(guard.size is None and not guard.index.sizes for guard in guards)
    _demand(plain, "a guard is over axes alone", value)
    measured = node.measured()
    _demand(
        not measured & (kept | read | positions | looked), "what is measured is not walked", value
    )
    meets = axes - looked - measured != kept - looked or bool(kept & looked)
    _demand(
        node.base is not None or (node.acc is None) == (not meets),
        "acc is None exactly when no axis is reduced, and none of the target looked up",
        value,
    )
    _demand(node.base is None or bool(kept & looked), "a base is written at places", value)
    _demand(len(kept) == len(node.target), "the target walks distinct axes", value)


def _lookups(node: graphs.Assignment, value: int) -> set[int]:
    """The axes that are looked up, once each, by what is known before."""
    looked: set[int] = set()
    for lookup in node.lookups:
        _demand(lookup.axis not in looked, "an axis is looked up once", value)
        _demand(0 <= lookup.read < len(node.reads), "a lookup is of a read", value)
        later = {each.axis for each in node.lookups} - looked
        index = node.reads[lookup.read].index
        axes = variables_of(index)
        _demand(not axes & later, "a lookup reads at what is known", value)
        looked.add(lookup.axis)
    return looked


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        raise InternalError("E9902", f"graph, node {value}: {invariant}")

"""Numbers of inputs and outputs of trees, and the ranks of those: what each combinator does to the wires of its sides.

Counting a tree is linear in its size, and combining two components is not: the counts of a combination come from the
counts of its sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.ir import syntax
from ilang.core.ir.spec import ShapeSpec
from ilang.core.record import record, replace
from ilang.core.walks import parts_first

Ranks = tuple[int | None, ...]
"""The rank of each wire of one side, None where it is open."""
MOST_RANKED = 32
"""Wires of one side whose ranks are followed: combining stays cheap."""


@record
class Wires:
    """Inputs and outputs of a component, and the expressions it would have written out in full.

    ``takes`` and ``gives`` are the ranks of inputs and outputs, None where there are many. ``clash`` says that two
    known ranks meet which differ; what follows from ranks that are open is left to inference.
    """

    inputs: int
    outputs: int
    leaves: int
    takes: Ranks | None = None
    gives: Ranks | None = None
    clash: bool = False


def shared_wires(symbol: str, f: tuple[int, int], g: tuple[int, int]) -> int:
    """The number of wires of ``f symbol g`` that meet, in order; each side is given by its inputs and its outputs.

    In: ">>", (1, 2), (3, 1). Out: 2, the outputs of f that the first inputs of g take.
    """
    match symbol:
        case ">>":
            return min(f[1], g[0])
        case "<<":
            return min(g[1], f[0])
        case "&":
            return min(f[0], g[0])
        case _:
            return 0


def combined(symbol: str, f: Wires, g: Wires) -> Wires:
    """The wires of ``f symbol g`` (docs/language.md section 3)."""
    pairs = shared_wires(symbol, (f.inputs, f.outputs), (g.inputs, g.outputs))
    if symbol == "<<":
        return _chained(g, f, pairs, composed=True)
    if symbol == ">>":
        return _chained(f, g, pairs, composed=False)
    clash = f.clash or g.clash or _differ(f.takes, g.takes, pairs)
    takes: Ranks | None = None
    if f.takes is not None and g.takes is not None:
        shared = [a if a is not None else b for a, b in zip(f.takes, g.takes, strict=False)]
        takes = (*shared[:pairs], *f.takes[pairs:], *g.takes[pairs:])
    inputs, outputs = f.inputs + g.inputs - pairs, f.outputs + g.outputs
    gives = None if f.gives is None or g.gives is None else f.gives + g.gives
    return _limited(Wires(inputs, outputs, f.leaves + g.leaves, takes, gives, clash))


def _chained(first: Wires, then: Wires, pairs: int, *, composed: bool) -> Wires:
    """The wires of what hands results on; ``composed``: written the other way round, `then << first`."""
    clash = first.clash or then.clash or _differ(first.gives, then.takes, pairs)
    takes = gives = None
    if first.takes is not None and then.takes is not None:
        takes = first.takes + then.takes[pairs:]
    if first.gives is not None and then.gives is not None:
        rest = first.gives[pairs:]
        gives = then.gives + rest if composed else rest + then.gives
    inputs, outputs = first.inputs + then.inputs - pairs, first.outputs + then.outputs - pairs
    return _limited(Wires(inputs, outputs, first.leaves + then.leaves, takes, gives, clash))


def _differ(one: Ranks | None, other: Ranks | None, pairs: int) -> bool:
    """Whether two known ranks of paired wires differ."""
    if one is None or other is None or one[:pairs] == other[:pairs]:
        return False
    met = zip(one[:pairs], other, strict=False)
    return any(a != b and a is not None and b is not None for a, b in met)


def _limited(wires: Wires) -> Wires:
    """The same wires; of many the ranks are not followed."""
    if wires.inputs <= MOST_RANKED and wires.outputs <= MOST_RANKED:
        return wires
    return Wires(wires.inputs, wires.outputs, wires.leaves, None, None, wires.clash)


def _leaf(tree: syntax.Tree) -> Wires:
    match tree:
        case syntax.Expression():
            takes: Ranks = tuple(len(pattern.indices) for pattern in tree.inputs())
            return Wires(len(takes), 1, 1, takes, (len(tree.output.indices),))
        case syntax.Einsum():
            takes = tuple(_rank(shape) for shape in tree.spec.operands)
            return _limited(Wires(len(takes), 1, 1, takes, (_rank(tree.spec.result),)))
        case syntax.ElementKernel():
            takes = tuple(each.rank for each in tree.inputs)
            gives = tuple(tree.rank_of(output) for output in tree.outputs)
            return _limited(Wires(len(takes), len(gives), len(gives), takes, gives))
        case syntax.Einx():
            from ilang.core.ir.einx import dimensions

            takes = tuple(map(dimensions, tree.form.inputs))
            gives = tuple(map(dimensions, tree.form.outputs))
            return _limited(Wires(len(takes), len(gives), 1, takes, gives))
        case syntax.Number():
            return Wires(0, 1, 1, (), (0,))
        case _:
            return Wires(1, 1, 1, (None,), (None,))


def _rank(shape: ShapeSpec) -> int | None:
    """The rank of a shape of a specification; open where it has row variables."""
    is_open = any(row.variable is not None for row in shape.rows)
    return None if is_open else len(tuple(shape.axes()))


def swapped(f: Wires) -> Wires:
    """The wires of ``~f``."""
    if f.gives is None or f.outputs < 2:
        return f
    first, second, *rest = f.gives
    return replace(f, gives=(second, first, *rest))


def wires_of(tree: syntax.Tree, known: Mapping[str, Wires]) -> Wires:
    """The wires of a tree; ``known`` has those of every name in it. Values are no inputs: a head says which are."""
    stack: list[Wires] = []
    for node in syntax.postorder(tree):
        match node:
            case syntax.Combine():
                right, left = stack.pop(), stack.pop()
                stack.append(combined(node.symbol, left, right))
            case syntax.Swap():
                stack[-1] = swapped(stack[-1])
            case syntax.Name():
                stack.append(known[node.name])
            case syntax.Value():
                stack.append(Wires(0, 1, 0))
            case syntax.Einx(body=body) if body is not None:
                stack.append(replace(_leaf(node), leaves=stack.pop().leaves))
            case syntax.Application() | syntax.Block():
                count = len(syntax.children(node))
                below, stack = stack[-count:], stack[:-count]
                stack.append(_given(node, below))
            case _:
                stack.append(_leaf(node))
    return stack[0]


def wires_if_known(tree: syntax.Tree, known: Mapping[str, Wires]) -> Wires | None:
    """The wires of a tree, None where those of a name are not known."""
    is_known = all(node.name in known for node in syntax.names_in(tree))
    return wires_of(tree, known) if is_known else None


def _given(node: syntax.Application | syntax.Block, below: Sequence[Wires]) -> Wires:
    """The wires of an application or a block, given those of its parts: every input has a value."""
    giving = below[-1:] if isinstance(node, syntax.Application) else below[len(node.bindings) :]
    leaves = sum(wires.leaves for wires in below)
    clash = any(wires.clash for wires in below)
    return Wires(0, sum(wires.outputs for wires in giving), leaves, clash=clash)


def wires_of_all(definitions: Mapping[str, syntax.Definition]) -> dict[str, Wires]:
    """The wires of every definition; they have no cycles. A definition that uses an unknown name is left out."""
    used = {n: {name.name for name in syntax.names_in(d.body)} for n, d in definitions.items()}
    known: dict[str, Wires] = {}
    for name in parts_first(definitions, lambda name: sorted(used[name] & definitions.keys())):
        if used[name] <= known.keys():
            known[name] = _defined(definitions[name], known)
    return known


def _defined(definition: syntax.Definition, known: Mapping[str, Wires]) -> Wires:
    """The wires of a definition: one with a head takes what that says; a body that takes another number is refused."""
    wires = wires_of(definition.body, known)
    if not syntax.over_names(definition.body):
        named = definition.parameters
        if named is None or len(named) == wires.inputs:
            return wires
        return _limited(replace(wires, inputs=len(named), takes=(None,) * len(named)))
    takes = tuple(None if p.dims is None else len(p.dims) for p in definition.parameters or ())
    return _limited(replace(wires, inputs=len(takes), takes=takes))

"""The computation of each einx operation, as assignments over leaves: see ``building.py`` for how it gets them.

Example, softmax over k:
    n1 = fold > over k: n0[b,k]        n2 = exp(n0[b,k] - n1[b])
    n3 = fold + over k: n2[b,k]        n4 = n2[b,k] / n3[b]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.calculus.affine import axis_index, size_value
from ilang.core.diagnostic import Label, MeaningError
from ilang.core.dtype import LARGEST_WHOLE
from ilang.core.einx_ops import EinxOp
from ilang.core.ir.scalar import (
    INFINITY,
    Apply,
    Constant,
    Convert,
    Operand,
    Position,
    Scalar,
    folded,
)
from ilang.core.passes.einx.building import (
    EinxBuilder,
    Fold,
    LeafDimension,
    LeafTensor,
    Leaves,
    Lookups,
)
from ilang.core.record import replace


def computed(
    b: EinxBuilder,
    op: EinxOp,
    operands: Sequence[LeafTensor],
    target: Leaves,
    options: Mapping[str, object],
) -> LeafTensor:
    """The result of an operation: a tensor of the leaves of its output.

    Args:
        b: takes the nodes.
        op: the operation, none that has several outputs.
        operands: its tensors.
        target: the leaves of its output, in order.
        options: its arguments beside sizes.
    """
    match op.kind:
        case "id":
            return b.copied(operands[0], target)
        case "elementwise":
            return _elementwise(b, op, operands, target)
        case "reduce":
            return b.copied(_reduced(b, op, operands[0], target, options), target)
        case "dot":
            return b.copied(_contracted(b, operands, target), target)
        case "preserve":
            return _preserved(b, op, operands[0], target, options)
        case "argument":
            return _argument(b, op, operands[0], target)
        case "get":
            return _get(b, operands, target)
        case "set":
            return _set(b, op, operands, target)
        case "map":
            raise AssertionError(op)


def _leaves_of(target: Leaves, *operands: LeafTensor) -> list[LeafDimension]:
    keys = {leaf.key for each in operands for leaf in each.leaves}
    return [leaf for leaf in target if leaf.key in keys]


# -- element by element ----------------------------------------------------------------------------------------------


def _elementwise(
    b: EinxBuilder, op: EinxOp, operands: Sequence[LeafTensor], target: Leaves
) -> LeafTensor:
    keys = [leaf.key for leaf in target]
    read = [b.kept(each, keys) for each in operands]
    terms: list[Scalar] = [Operand(n) for n in range(len(read))]
    if op.meaning == "where":
        return b.assign(target, read, Apply("where", tuple(terms)))
    if len(terms) == 1 and op.meaning in ("and", "or"):
        return b.assign(target, read, Apply("truth", (terms[0],)))
    if op.meaning == "logaddexp" and 1 < len(terms):
        return _log_added(b, read, target)
    return b.assign(target, read, folded(op.meaning, terms))


def _log_added(b: EinxBuilder, operands: Sequence[LeafTensor], target: Leaves) -> LeafTensor:
    """ln(e^x + e^y + ...), the largest taken out before."""
    numbers = range(len(operands))
    most = b.assign(target, operands, folded("max", [Operand(number) for number in numbers]))
    shift = _shift(Operand(len(operands)))
    terms = [Apply("exp", (Apply("sub", (Operand(number), shift)),)) for number in numbers]
    total = folded("add", terms)
    return b.assign(target, [*operands, most], Apply("add", (Apply("ln", (total,)), shift)))


def _shift(most: Scalar) -> Scalar:
    """A maximum that can be subtracted: 0 where it is infinite."""
    ends = tuple(Apply("eq", (most, Constant(end))) for end in (INFINITY, -INFINITY))
    return Apply("where", (Apply("or", ends), Constant(0), most))


# -- reductions ------------------------------------------------------------------------------------------------------


def _reduced(
    b: EinxBuilder, op: EinxOp, x: LeafTensor, target: Leaves, options: Mapping[str, object]
) -> LeafTensor:
    marked = [leaf for leaf in x.leaves if leaf.marked]
    b.kept(x, [leaf.key for leaf in (*target, *marked)])
    kept = _leaves_of(target, x)
    match op.meaning:
        case "mean":
            return _mean(b, x, kept, marked)
        case "var" | "std":
            lost = options.get("ddof", 0)
            if not isinstance(lost, int):
                message = f"ddof is {lost}, and it is one number"
                raise MeaningError("E0229", message, b.span, "write `ddof=1`")
            return _variance(b, x, kept, marked, op.meaning == "std", lost)
        case "logsumexp":
            return _log_sum(b, x, kept, marked)
        case "count_nonzero":
            counts = Convert(Apply("neq", (Operand(0), Constant(0))), "i64")
            return _folded(b, x, kept, marked, "+", counts)
        case _:
            return _folded(b, x, kept, marked, op.meaning, Operand(0))


def _folded(
    b: EinxBuilder,
    x: LeafTensor,
    kept: Leaves,
    marked: Leaves,
    acc: str,
    scalar: Scalar,
    *others: LeafTensor,
) -> LeafTensor:
    """Elements folded along some axes with an operator; along none, a logical one makes truth values of them."""
    if marked:
        return b.assign(kept, [x, *others], scalar, Fold(acc, tuple(marked)))
    if acc in ("&&", "||"):
        scalar = Apply("truth", (scalar,))
    return b.assign(kept, [x, *others], scalar)


def _averaged(b: EinxBuilder, total: LeafTensor, marked: Leaves, lost: int = 0) -> LeafTensor:
    """A sum divided by how many elements it has, without the ``lost`` degrees of freedom."""

    def scalar(number: Mapping[str, int]) -> Scalar:
        divided: Scalar = Operand(0)
        if lost:
            # a 1 of the type of the sum, which no constant beside sizes has
            count: Scalar = Apply("where", (Apply("eq", (divided, divided)), Constant(1), divided))
            for leaf in marked:
                count = Apply("mul", (count, Position(size_value(number[leaf.key]))))
            left = Apply(
                "max", (Apply("sub", (count, Constant(lost))), Constant(0))
            )  # as NumPy has it
            return Apply("div", (divided, left))
        for leaf in marked:
            divided = Apply("div", (divided, Position(size_value(number[leaf.key]))))
        return divided

    if not marked:
        return total
    return b.assign(total.leaves, [total], scalar, measured=marked)


def _mean(b: EinxBuilder, x: LeafTensor, kept: Leaves, marked: Leaves) -> LeafTensor:
    return _averaged(b, _folded(b, x, kept, marked, "+", Operand(0)), marked)


def _variance(
    b: EinxBuilder, x: LeafTensor, kept: Leaves, marked: Leaves, root: bool, lost: int
) -> LeafTensor:
    """The mean of squares of differences from the mean, or with ``root`` its root."""
    mean = _mean(b, x, kept, marked)
    difference = Apply("sub", (Operand(0), Operand(1)))
    squares = _folded(b, x, kept, marked, "+", Apply("square", (difference,)), mean)
    variance = _averaged(b, squares, marked, lost)
    return b.assign(kept, [variance], Apply("sqrt", (Operand(0),))) if root else variance


def _log_sum(b: EinxBuilder, x: LeafTensor, kept: Leaves, marked: Leaves) -> LeafTensor:
    most = _folded(b, x, kept, marked, ">", Operand(0))
    shift = b.assign(kept, [most], _shift(Operand(0)))
    term = Apply("exp", (Apply("sub", (Operand(0), Operand(1))),))
    total = _folded(b, x, kept, marked, "+", term, shift)
    return b.assign(kept, [total, shift], Apply("add", (Apply("ln", (Operand(0),)), Operand(1))))


def _contracted(b: EinxBuilder, operands: Sequence[LeafTensor], target: Leaves) -> LeafTensor:
    """Products, two tensors at a time; an axis is summed as soon as no later tensor has it."""
    kept = {leaf.key for leaf in target}
    plain = [_by_name(each) for each in operands]
    result = plain[0]
    for n, other in enumerate(plain[1:], 1):
        later = kept | {leaf.key for each in plain[n + 1 :] for leaf in each.leaves}
        both = {leaf.key: leaf for leaf in (*result.leaves, *other.leaves)}
        dropped = {k for k, leaf in both.items() if not leaf.marked and k not in later}
        b.kept(result, [key for key in both if key not in dropped])
        b.kept(other, [key for key in both if key not in dropped])
        axes = [leaf for key, leaf in both.items() if key not in dropped]
        order = [leaf for leaf in target if leaf.key in both]
        order += [leaf for leaf in axes if leaf.key in later and leaf.key not in kept]
        summed = [leaf for leaf in axes if leaf.key not in later]
        product = Apply("mul", (Operand(0), Operand(1)))
        fold = Fold("+", tuple(summed)) if summed else None
        is_one_of_many = 2 < len(operands)
        result = b.assign(order, [result, other], product, fold, associative=is_one_of_many)
    return result


def _by_name(tensor: LeafTensor) -> LeafTensor:
    """An operand of a product: axes in brackets are those of their names."""
    leaves = tuple(replace(leaf, key=leaf.name or leaf.key) for leaf in tensor.leaves)
    return LeafTensor(tensor.value, leaves)


# -- operations that keep the axes they see --------------------------------------------------------------------------


def _preserved(
    b: EinxBuilder, op: EinxOp, x: LeafTensor, target: Leaves, options: Mapping[str, object]
) -> LeafTensor:
    target = _renamed(x, target)
    marked = [leaf for leaf in x.leaves if leaf.marked]
    b.kept(x, [leaf.key for leaf in (*target, *marked)])
    match op.meaning:
        case "softmax" | "log_softmax":
            preserved = _softmax(b, x, target, marked, op.meaning == "log_softmax")
        case "flip":
            preserved = _from_other_places(b, x, target, [(leaf, None) for leaf in marked])
        case "sort" | "argsort":
            preserved = _sorted(b, op, x, marked)
        case _:
            preserved = _from_other_places(b, x, target, _shifts(b, marked, options["shift"]))
    return b.copied(preserved, target)


def _renamed(x: LeafTensor, target: Leaves) -> list[LeafDimension]:
    """The leaves of an output, those in brackets as the input has them: the n-th of a name is the n-th."""
    waiting: dict[tuple[str | None, int | None], list[LeafDimension]] = {}
    for leaf in x.leaves:
        if leaf.marked:
            waiting.setdefault((leaf.name, leaf.size), []).append(leaf)
    return [
        replace(leaf, key=waiting[leaf.name, leaf.size].pop(0).key) if leaf.marked else leaf
        for leaf in target
    ]


def _softmax(
    b: EinxBuilder, x: LeafTensor, target: Leaves, marked: Leaves, log: bool
) -> LeafTensor:
    common = _leaves_of(target, x)
    kept = [leaf for leaf in common if not leaf.marked]
    most = _folded(b, x, kept, marked, ">", Operand(0))
    shifted = b.assign(common, [x, most], Apply("sub", (Operand(0), Operand(1))))
    powers = b.assign(common, [shifted], Apply("exp", (Operand(0),)))
    total = _folded(b, powers, kept, marked, "+", Operand(0))
    if not log:
        return b.assign(common, [powers, total], Apply("div", (Operand(0), Operand(1))))
    scalar = Apply("sub", (Operand(0), Apply("ln", (Operand(1),))))
    return b.assign(common, [shifted, total], scalar)


def _sorted(b: EinxBuilder, op: EinxOp, x: LeafTensor, marked: Leaves) -> LeafTensor:
    """Elements, or where they were, in ascending order along one axis: equal ones in their order, NaN last.

    in:   sort [a] of n0
    out:  n1[a] = fold + over a2: i64(n0[a2] stands before n0[a]);  n2[v] = a, v = n1[a];  n3[a] = n0[v], v = n2[a]
    """
    if len(marked) != 1:
        message = f"{op.name} orders along one axis, and {len(marked)} are in brackets"
        labels = [Label(leaf.span, "") for leaf in marked]
        raise MeaningError("E0226", message, b.span, "put brackets around one axis", labels)
    (axis,) = marked
    unit = [leaf for leaf in x.leaves if not leaf.marked]
    other = replace(axis, key=b.keys.fresh(axis.key))
    again = LeafTensor(x.value, tuple(other if leaf is axis else leaf for leaf in x.leaves))
    ranks = b.assign(
        [*unit, axis], [x, again], lambda n: _before(n[axis.key], n[other.key]), Fold("+", (other,))
    )
    ranked = LeafTensor(ranks.value, (*unit, other))
    places = b.assign(x.leaves, [], lambda n: Position(axis_index(n[axis.key])))
    moved = LeafTensor(places.value, again.leaves)
    order = b.scattered(places, [(axis, ranked)], moved, Operand(1), None)
    return order if op.meaning == "argsort" else b.looked_up(x.leaves, again, [(other, order)])


def _before(axis: int, other: int) -> Scalar:
    """Whether the second operand, at place ``other``, stands before the first, at ``axis``: 1 or 0."""
    less = Apply("lt", (Operand(1), Operand(0)))
    odd = Apply("neq", (Operand(0), Operand(0))), Apply("neq", (Operand(1), Operand(1)))
    less = Apply("or", (less, Apply("and", (odd[0], Apply("not", (odd[1],))))))
    same = Apply("or", (Apply("eq", (Operand(1), Operand(0))), Apply("and", odd)))
    earlier = Apply("lt", (Position(axis_index(other)), Position(axis_index(axis))))
    return Convert(Apply("or", (less, Apply("and", (same, earlier)))), "i64")


def _shifts(
    b: EinxBuilder, marked: Leaves, shift: object
) -> list[tuple[LeafDimension, int | None]]:
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(marked)
    if len(shifts) != len(marked):
        message = f"shift is {len(shifts)} numbers, and {len(marked)} axes are in brackets"
        labels = [Label(leaf.span, "") for leaf in marked]
        help_line = "give one number for all axes in brackets, or one each"
        raise MeaningError("E0229", message, b.span, help_line, labels)
    return list(zip(marked, shifts, strict=True))


def _from_other_places(
    b: EinxBuilder, x: LeafTensor, target: Leaves, moves: Sequence[tuple[LeafDimension, int | None]]
) -> LeafTensor:
    """Each element from another place along some axes: mirrored where the shift is None, else rolled by it."""
    places: dict[str, LeafTensor] = {}
    for leaf, shift in moves:

        def place(
            number: Mapping[str, int], leaf: LeafDimension = leaf, shift: int | None = shift
        ) -> Scalar:
            axis = number[leaf.key]
            position, extent = Position(axis_index(axis)), Position(size_value(axis))
            if shift is None:
                return Apply("sub", (Apply("sub", (extent, Constant(1))), position))
            before = Apply("sub", (position, Constant(shift)))
            turns = Apply("floor_divide", (before, extent))
            return Apply("sub", (before, Apply("mul", (turns, extent))))

        places[leaf.key] = b.assign([leaf], [], place)
    return _gathered(b, x, _leaves_of(target, x), places)


def _gathered(
    b: EinxBuilder, x: LeafTensor, target: Leaves, places: Mapping[str, LeafTensor]
) -> LeafTensor:
    """Elements of a tensor at looked-up positions along some axes; a place may have axes of the target."""
    looked = [leaf for leaf in x.leaves if leaf.key in places]
    inner = {leaf.key: replace(leaf, key=b.keys.fresh(leaf.key)) for leaf in looked}
    table = LeafTensor(x.value, tuple(inner.get(leaf.key, leaf) for leaf in x.leaves))
    pairs = [(inner[key], place) for key, place in places.items()]
    return b.looked_up(target, table, pairs)


# -- positions -------------------------------------------------------------------------------------------------------


def _argument(b: EinxBuilder, op: EinxOp, x: LeafTensor, target: Leaves) -> LeafTensor:
    """The place of the first extreme: a coordinate per axis in brackets, along one axis of the output or none."""
    marked = [leaf for leaf in x.leaves if leaf.marked]
    along = [leaf for leaf in target if leaf.marked]
    kept = [leaf for leaf in _leaves_of(target, x) if not leaf.marked]
    b.kept(x, [leaf.key for leaf in (*kept, *marked)])
    most = b.assign(kept, [x], Operand(0), Fold(op.meaning, tuple(marked)))
    indices: list[LeafTensor] = []
    while len(indices) < len(marked):
        indices.append(_first_position(b, x, most, kept, marked, indices))
    if not along:
        return b.copied(indices[0], target)
    (axis,) = along

    def scalar(number: Mapping[str, int]) -> Scalar:
        chosen: Scalar = Operand(len(indices) - 1)
        for n in reversed(range(len(indices) - 1)):
            is_at = Apply("eq", (Position(axis_index(number[axis.key])), Constant(n)))
            chosen = Apply("where", (is_at, Operand(n), chosen))
        return chosen

    both = [leaf for leaf in target if leaf.marked or leaf in kept]
    return b.copied(b.assign(both, indices, scalar), target)


def _first_position(
    b: EinxBuilder,
    x: LeafTensor,
    most: LeafTensor,
    kept: Leaves,
    marked: Leaves,
    tensors: Sequence[LeafTensor],
) -> LeafTensor:
    """The first position of an extreme, or NaN, along the next axis; ``tensors`` has those along axes before."""
    before, leaf = marked[: len(tensors)], marked[len(tensors)]

    def scalar(number: Mapping[str, int]) -> Scalar:
        met: Scalar = Apply("eq", (Operand(0), Operand(1)))
        met = Apply("or", (met, Apply("neq", (Operand(0), Operand(0)))))
        for n, other in enumerate(before, 2):
            is_at = Apply("eq", (Position(axis_index(number[other.key])), Operand(n)))
            met = Apply("and", (met, is_at))
        at = Position(axis_index(number[leaf.key]))
        return Apply("where", (met, at, Constant(LARGEST_WHOLE["i64"])))

    fold = Fold("<", tuple(marked), (leaf,))
    return b.assign(kept, [x, most, *tensors], scalar, fold)


# -- look-ups --------------------------------------------------------------------------------------------------------


def _pairs(x: LeafTensor, operands: Sequence[LeafTensor], b: EinxBuilder) -> Lookups:
    """Each axis in brackets, and the tensor that gives its positions.

    One of several coordinates is a tensor of its own: all that is looked up along an axis must be an index of it.
    """
    places: list[LeafTensor] = []
    for each in operands:
        along = next((leaf for leaf in each.leaves if leaf.marked), None)
        if along is None:
            places.append(each)
            continue
        for n in range(b.size(along) or 0):
            leaves = tuple(
                replace(leaf, position=n) if leaf is along else leaf for leaf in each.leaves
            )
            rest = [leaf for leaf in each.leaves if leaf is not along]
            places.append(b.assign(rest, [LeafTensor(each.value, leaves)], Operand(0)))
    return list(zip((leaf for leaf in x.leaves if leaf.marked), places, strict=True))


def _get(b: EinxBuilder, operands: Sequence[LeafTensor], target: Leaves) -> LeafTensor:
    x, *coordinates = operands
    keys = [leaf.key for leaf in target]
    for each in operands:
        b.kept(each, [*keys, *(leaf.key for leaf in each.leaves if leaf.marked)])
    common = _leaves_of(target, *operands)
    return b.copied(b.looked_up(common, x, _pairs(x, coordinates, b)), target)


def _set(b: EinxBuilder, op: EinxOp, operands: Sequence[LeafTensor], target: Leaves) -> LeafTensor:
    x, *coordinates, updates = operands
    pairs = _pairs(x, coordinates, b)
    scalar: Scalar = Operand(len(pairs))
    if op.meaning == "sub":
        scalar = Apply("neg", (scalar,))
    stored = b.scattered(x, pairs, updates, scalar, None if op.meaning == "copy" else "+")
    return b.copied(stored, _renamed(x, target))

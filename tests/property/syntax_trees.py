"""Random programs as trees: well formed, awkward on purpose, decided by a seed alone."""

from random import Random

from ilang.core.ir.spec import Fixed
from ilang.core.ir.syntax import (
    Application,
    Argument,
    Axis,
    Binding,
    Block,
    Combine,
    Conversion,
    Expression,
    Guard,
    Identity,
    Index,
    Linear,
    Lookup,
    LoopPart,
    Name,
    Number,
    Operand,
    Pattern,
    Position,
    Schedule,
    Site,
    Split,
    Start,
    Swap,
    Term,
    Tree,
    Value,
    WrittenRole,
)
from ilang.core.notation.index.expressions import RELATIONS
from ilang.core.ops import OPS
from ilang.core.source import Source, Span

NAMES = ("x", "k", "ij", "e5", "f16", "boolean", "op_", "Iota", "_")
"""Names that definitions may have; some read as patterns."""

NOWHERE = Span(Source("<random>", ""), 0, 0)
BINARY = tuple(symbol for symbol, op in OPS.items() if op.binary is not None)
REDUCIBLE = tuple(symbol for symbol, op in OPS.items() if op.identity is not None)
NUMBERS = ("0", "2", "-1", "0.5", "0.125", "1e-5", "-2.5e+3", "007", "-0")


def random_tree(random: Random, size: int) -> Tree:
    """A program of about ``size`` components."""
    if size <= 1:
        return _leaf(random)
    if random.random() < 0.2:
        return Swap(random_tree(random, size - 1), NOWHERE)
    left = random.randint(1, size - 1)
    symbol = random.choice((">>", "<<", "&", "|"))
    return Combine(symbol, random_tree(random, left), random_tree(random, size - left), NOWHERE)


def _leaf(random: Random) -> Tree:
    kind = random.randrange(8)
    if kind == 0:
        return Identity(NOWHERE)
    if kind == 1:
        return Number(random.choice(NUMBERS), NOWHERE)
    if kind == 2:
        return Conversion(random.choice(("f32", "f64", "i32", "i64", "bool")), NOWHERE)
    if kind == 3:
        return Name(random.choice(NAMES), NOWHERE)
    return random_expression(random)


def random_expression(random: Random) -> Expression:
    """A well formed expression, every other one with a schedule."""
    if random.random() < 0.1:
        return _lookup(random)
    letters = random.sample("ijkxe", random.randint(0, 4))
    left = [c for c in letters if random.random() < 0.7]
    right = [c for c in letters if c not in left or random.random() < 0.5]
    op: str | None
    if letters and random.random() < 0.2:
        terms = [
            Term(random.choice((1, 1, 2, -1)), Axis(c, NOWHERE), random.choice((None, 3)))
            for c in letters
        ]
        place = Position(tuple(terms[: random.randint(1, 2)]), random.choice((0, 0, 1)), NOWHERE)
        op, output = random.choice(BINARY), random.sample(letters, len(letters))
        extent = Position((), 0, NOWHERE, Axis(random.choice(letters), NOWHERE))
        leaf = place if random.random() < 0.7 else extent
        sides: list[Operand] = [_read(random, letters), leaf]
        random.shuffle(sides)
        e = Expression(op, sides[0], sides[1], _pattern(output), None, NOWHERE)
    elif random.random() < 0.5:
        op, output = random.choice(BINARY), random.sample(letters, len(letters))
        e = Expression(
            op, _read(random, left), _read(random, right), _pattern(output), None, NOWHERE
        )
    else:
        op, output = random.choice((None, *OPS)), random.sample(letters, len(letters))
        if letters and (op is None or op in REDUCIBLE) and random.random() < 0.5:
            output = output[1:]
        if random.random() < 0.2:
            letters += letters[:1]
        e = Expression(op, _read(random, letters), None, _pattern(output), None, NOWHERE)
    if random.random() < 0.5:
        return e
    return Expression(e.op, e.left, e.right, e.output, _schedule(random, e), NOWHERE)


def _lookup(random: Random) -> Expression:
    """A gather or a scatter along v."""
    letters = random.sample("ijkxe", random.randint(0, 4))
    place = _read(random, [c for c in letters if random.random() < 0.7])
    read = random.random() < 0.5
    others = [c for c in letters if c not in place.letters() or random.random() < 0.3]
    table = _read(random, [*others, *("v" if read else "")])
    operand = Lookup(place, table, NOWHERE)
    output = _pattern(random.sample(letters, len(letters)))
    extended = Linear((Term(1, Axis("v", NOWHERE), 7),), 0, NOWHERE)
    if not read:
        output = Pattern((*output.indices, extended), NOWHERE)
    return Expression(random.choice((None, *REDUCIBLE)), operand, None, output, None, NOWHERE)


def _pattern(letters: list[str]) -> Pattern:
    return Pattern(tuple(Axis(c, NOWHERE) for c in letters), NOWHERE)


def _read(random: Random, letters: list[str]) -> Pattern:
    """The pattern of an input: letters, sometimes in groups, sometimes with positions between."""
    indices: list[Index] = []
    for letter in letters:
        axis = Axis(letter, NOWHERE)
        term = Term(random.choice((1, 2, -1)), axis, random.choice((None, 3)))
        grouped = Linear((term,), random.choice((0, 1, -2)), NOWHERE)
        indices.append(grouped if random.random() < 0.1 else axis)
    while random.random() < 0.25:
        position = Fixed(random.choice((0, 0, 1, 32)), NOWHERE)
        indices.insert(random.randint(0, len(indices)), position)
    guards = []
    while letters and random.random() < 0.15:
        relation = random.choice(RELATIONS)
        guards.append(Guard(_linear(random, letters), relation, _linear(random, letters), NOWHERE))
    return Pattern(tuple(indices), NOWHERE, tuple(guards))


def _linear(random: Random, letters: list[str]) -> Linear:
    """One side of a guard."""
    chosen = random.sample(sorted(set(letters)), random.randint(0, min(2, len(set(letters)))))
    terms = [Term(random.choice((1, 2, -1)), Axis(c, NOWHERE), None) for c in chosen]
    return Linear(tuple(terms), random.choice((0, 0, 1, -2)), NOWHERE)


def _schedule(random: Random, e: Expression) -> Schedule:
    right = e.right.letters() if e.right is not None else ""
    axes = list(dict.fromkeys(e.left.letters() + right))
    splits = [
        Split(axis, tuple(random.choice((1, 2, 16)) for _ in range(random.randint(1, 3))), NOWHERE)
        for axis in axes
        if random.random() < 0.4
    ]
    factors = {split.axis: len(split.factors) for split in splits}
    loops = [LoopPart(a, part, NOWHERE) for a in axes for part in range(factors.get(a, 0) + 1)]
    order: list[LoopPart | Site | Start] = []
    if random.random() < 0.7:
        order = random.sample(loops, len(loops))
        _put_start(random, e, order)
        for operand in range(1 if e.right is None else 2):
            if random.random() < 0.4:
                order.insert(random.randint(0, len(order)), Site(operand, NOWHERE))
    roles: list[WrittenRole] = [
        WrittenRole(loop, random.choice("ptvuq"), NOWHERE)
        for loop in loops
        if random.random() < 0.2
    ]
    roles += [
        WrittenRole(atom.operand, random.choice(("s", "s2", "r", "c", "c2")), NOWHERE)
        for atom in order
        if isinstance(atom, Site) and random.random() < 0.5
    ]
    return Schedule(tuple(splits), tuple(order), tuple(roles), NOWHERE)


def _put_start(random: Random, e: Expression, order: list[LoopPart | Site | Start]) -> None:
    """Place ``!`` in a reduction: anywhere inside the last output loop."""
    kept = e.output.letters()
    if e.right is not None or set(kept) == set(e.left.letters()) or random.random() < 0.5:
        return
    last = max(
        (n for n, atom in enumerate(order) if isinstance(atom, LoopPart) and atom.axis in kept),
        default=-1,
    )
    order.insert(random.randint(last + 1, len(order)), Start(NOWHERE))


def random_body(random: Random, size: int, inputs: tuple[str, ...]) -> Application | Block:
    """A body over names that reads every input, and every name that it binds: of about ``size`` statements.

    Counts of values are not looked at: what is read and printed does not depend on them.
    """
    if size == 0:
        return _application(random, [*inputs], list(inputs), 2)
    known, unread, bindings = list(inputs), list(inputs), []
    for number in range(size):
        application = _application(random, known, _some(random, unread), 2)
        names = [f"v{number}", *(f"v{number}_{n}" for n in range(random.randint(0, 2)))]
        targets = [Value("_" if random.random() < 0.2 else name, NOWHERE) for name in names]
        bindings.append(Binding(tuple(targets), application, NOWHERE))
        bound = [target.name for target in targets if target.name != "_"]
        known, unread = known + bound, unread + bound
    outputs: list[Argument] = [Value(name, NOWHERE) for name in unread]
    outputs += [_application(random, known, [], 1)] * random.randint(not outputs, 1)
    return Block(tuple(bindings), tuple(outputs), NOWHERE)


def _some(random: Random, names: list[str]) -> list[str]:
    """Some of the names, which the list loses."""
    taken = [name for name in names if random.random() < 0.5]
    names[:] = [name for name in names if name not in taken]
    return taken


def _application(random: Random, known: list[str], needed: list[str], depth: int) -> Application:
    """A component applied to the values that are needed, and to others."""
    arguments: list[Argument] = [Value(name, NOWHERE) for name in needed]
    for _ in range(random.randint(0, 2)):
        kind = random.randrange(4)
        if kind == 0:
            arguments.append(Number(random.choice(NUMBERS), NOWHERE))
        elif kind == 1:
            arguments.append(Name(random.choice(NAMES), NOWHERE))
        elif kind == 2 and depth:
            arguments.append(_application(random, known, [], depth - 1))
        elif known:
            arguments.append(Value(random.choice(known), NOWHERE))
    random.shuffle(arguments)
    component = random_tree(random, random.randint(1, 3))
    return Application(component, tuple(arguments), NOWHERE)

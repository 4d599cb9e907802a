"""Extents at which a self-test runs a function: small and larger primes, what fills vectors, ones, each extent 0."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import ShapeError
from ilang.core.infer.fit import fit_shaped
from ilang.core.ir.shaped import Assignment, Derivation

MOST_RUN = 1_000
"""Expressions of a program that checks run, with sanitizers or on the emulator."""
LARGEST_DOMAIN = 2_000_000
"""Iterations of one assignment beyond which a case is left out: the reference evaluator holds all of them."""
LARGEST_ADDED = 200_000
"""The same for the case of larger primes, which is worth less time."""

PRIMES = (3, 5, 2, 7, 11, 13)
LARGER_PRIMES = (19, 23, 17, 29)
FILLING = ((64, 32), (32, 64, 3, 2), (3, 64), (64, 3), (2, 32))
"""Extents that fill vectors of any width, with nothing left over: compilers have other code for these, and faults of
its own."""
WINDOWS = (3, 2)
"""Extents of what walks inside a dimension, which must have room for it."""
ROOM = (0, 4, 16, 64)
"""Elements to add to a dimension inside which something walks, until all fits."""
MOST_VARIED = 8
"""Run-time sizes that take a turn at being 0 and at being negative."""


def settled_extents(function: ExportedFunction, extents: Sequence[int]) -> tuple[int, ...] | None:
    """All extents of a function, given those of the arguments; None where they do not fit.

    An argument that also follows from other extents is set to what follows, one that is divided to what the others
    divide.
    """
    shaped, chosen = function.shaped, list(extents)
    for _ in range(2):
        shapes = [tuple(chosen[n] for n in shaped.tensors[v].dims) for v in shaped.inputs]
        try:
            return fit_shaped(shaped, shapes)
        except ShapeError:
            for rule in shaped.derived:
                if _divides(rule):
                    _divided(chosen, rule)
                is_there = rule.divisor.value(chosen) != 0
                chosen[rule.size] = max(0, rule.divided(chosen)[0]) if is_there else 0
    return None


def _divides(rule: Derivation) -> bool:
    """Whether a rule divides a product of extents by others."""
    return rule.is_composed() and rule.divisor.constant() is None


def _divided(chosen: list[int], rule: Derivation) -> None:
    """Let the first extent of a product be one that those it is divided by divide."""
    first, *others = rule.whole.sizes()
    step = rule.divisor.value(chosen)
    step //= math.gcd(step, math.prod(chosen[size] for size in others))
    if step:
        chosen[first] = -(-chosen[first] // step) * step


def extents_of(function: ExportedFunction) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Extents to run a function at, and (only the arguments count) extents that it must refuse.

    A function runs at small primes and at larger ones, at what fills vectors, beyond one tile, at ones, and with each
    extent 0, as far as these fit its rules and the reference evaluator can hold its arrays. A call must refuse those of
    them that do not fit the rules, what a view does not divide, and negative extents.
    """
    free, runs, refused = function.free(), [], []
    tries = [spread(function, PRIMES, WINDOWS, room) for room in ROOM]
    tries += [spread(function, values, (2, 1), 4) for values in ((3, 2), (2, 1))]
    fitting = [
        extents for each in tries if (extents := settled_extents(function, each)) is not None
    ]
    small = next((e for e in fitting if function.is_full(e) and _fits(function, e)), None)
    if small is not None:
        runs.append(small)
    larger = settled_extents(function, spread(function, LARGER_PRIMES, WINDOWS, 0))
    if free and larger is not None and _fits(function, larger, LARGEST_ADDED):
        runs.append(larger)
    runs += _filling(function) if free else []
    tiled = settled_extents(function, _beyond_tiles(function))
    if free and tiled is not None and _fits(function, tiled):
        runs.append(tiled)
    ones = spread(function, (1,), (1,), 0)
    base = ones if small is None else small
    varied = [
        tuple(0 if n == zero else e for n, e in enumerate(base)) for zero in free[:MOST_VARIED]
    ]
    for given in [ones, *varied] if free else []:
        extents = settled_extents(function, given)
        if extents is None:
            refused.append(given)
        elif _fits(function, extents):
            runs.append(extents)
    refused += dict.fromkeys(_undivided(function, base))
    refused += [
        tuple(-1 if n == wrong else e for n, e in enumerate(base)) for wrong in free[:MOST_VARIED]
    ]
    return list(dict.fromkeys(runs)), refused


def _undivided(function: ExportedFunction, base: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Extents of which one leaves something over where a view divides it."""
    shaped, free = function.shaped, function.free()
    for rule in shaped.derived:
        first = rule.sources()[0]
        if _divides(rule) and first in free:
            extents = [e + (n == first) for n, e in enumerate(base)]
            shapes = [tuple(extents[n] for n in shaped.tensors[v].dims) for v in shaped.inputs]
            try:
                fit_shaped(shaped, shapes)
            except ShapeError:
                yield tuple(extents)


def _filling(function: ExportedFunction) -> list[tuple[int, ...]]:
    """Extents that fill vectors, if there are such that fit."""
    for values in FILLING:
        extents = settled_extents(function, spread(function, values, WINDOWS, 0))
        if extents is not None and _fits(function, extents, LARGEST_ADDED):
            return [extents]
    return []


def spread(
    function: ExportedFunction, values: Sequence[int], windows: Sequence[int], room: int
) -> tuple[int, ...]:
    """Extents: the run-time ones take ``values`` in turn, or ``windows`` where they are of a window.

    A dimension that a window walks in gets ``room`` more.
    """
    shaped, extents, turn, other = function.shaped, [], 0, 0
    terms = [term for rule in shaped.derived for term in rule.whole.steps()]
    bases = {size for coefficient, size in terms if coefficient > 0}
    windows_inside = {size for coefficient, size in terms if coefficient < 0}
    least = {each.size: each.index.offset + 1 for each in shaped.reaches}
    for number, size in enumerate(shaped.sizes):
        if not size.is_argument():
            extents.append(size.fixed or 0)
        elif number in windows_inside:
            extents.append(max(windows[other % len(windows)], least.get(number, 0)))
            other += 1
        else:
            extent = values[turn % len(values)] + (room if number in bases else 0)
            extents.append(max(extent, least.get(number, 0)))
            turn += 1
    return tuple(extents)


def _beyond_tiles(function: ExportedFunction) -> tuple[int, ...]:
    """Extents of more than one tile of a written schedule, the last one ragged; small ones where nothing is split."""
    extents = list(spread(function, PRIMES, WINDOWS, 0))
    for node in function.shaped.nodes:
        if not isinstance(node, Assignment) or node.schedule is None:
            continue
        sizes = {axis.name: size for axis, size in zip(node.axes, node.sizes, strict=True)}
        for split in node.schedule.splits:
            tile, size = math.prod(split.factors), sizes[split.axis]
            if function.shaped.sizes[size].is_argument():
                extents[size] = max(extents[size], tile + tile // 2 + 1)
    return tuple(extents)


def _fits(function: ExportedFunction, extents: Sequence[int], most: int = LARGEST_DOMAIN) -> bool:
    """Whether every tensor and every domain of a program has at most so many elements."""
    shaped = function.shaped
    domains = [tensor.dims for tensor in shaped.tensors]
    domains += [node.sizes for node in shaped.nodes if isinstance(node, Assignment)]
    return all(math.prod(extents[size] for size in sizes) <= most for sizes in domains)

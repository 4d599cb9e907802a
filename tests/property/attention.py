"""Random schedules of programs like attention, drawn so that reductions are often read while they are partial.

A step of a program is an expression; each gets splits, an order and places for its inputs. One drawing gives one order
of all loops, which every expression follows but for a few accidents, so that most loops fuse.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SOFTMAX = "(I & >mn~m{}) >> mn-m~mn{} >> ^mn~mn{} >> (I & +mn~m{}) >> mn/m~mn{}"
MIX = "mn*ne~mne{} >> +mne~me{}"
SOFT = "(I & >mn#~m{}) >> mn#-m~mn{} >> ^mn~mn{} >> (I & +mn#~m{}) >> mn#/m~mn{}"
MIXED = "mn#*ne~mne{} >> +mne#~me{}"
"""The same with places for guards, of which each is drawn or left out."""
LEGAL: dict[str, str] = {
    "attention": f"md*nd~mnd{{}} >> +mnd~mn{{}} >> {SOFTMAX} >> {MIX}",
    "masked": f"(md*nd~mnd{{}} >> +mnd~mn{{}} | I) >> mn+mn~mn{{}} >> {SOFTMAX} >> {MIX}",
    "heads": "hmd*hnd~hmnd{} >> +hmnd~hmn{} >> (I & >hmn~hm{}) >> hmn-hm~hmn{} >> ^hmn~hmn{}"
    " >> (I & +hmn~hm{}) >> hmn/hm~hmn{} >> hmn*hne~hmne{} >> +hmne~hme{}",
    "values": f"{SOFTMAX} >> {MIX}",
    "rows": "(I & >mn~m{}) >> mn-m~mn{} >> ^mn~mn{} >> +mn~m{}",
    "whole": "(I & >mn~.{}) >> mn-.~mn{} >> ^mn~mn{} >> +mn~.{}",
    "columns": "(I & >mn~n{}) >> mn-n~mn{} >> ^mn~mn{} >> (I & +mn~n{}) >> mn/n~mn{}"
    " >> mn*ne~mne{} >> +mne~ne{}",
    "kept": "(I & >mnp~m{}) >> mnp-m~mnp{} >> ^mnp~mnp{} >> +mnp~mp{}",
    "both": "(I & >mnp~m{}) >> mnp-m~mnp{} >> ^mnp~mnp{} >> (I & +mnp~m{}) >> mnp/m~mnp{}"
    " >> +mnp~m{}",
    "divided": f"(I & +mn~m{{}}) >> mn/m~mn{{}} >> {MIX}",
    "peak": f"(I & >mn~m{{}}) >> mn/m~mn{{}} >> {MIX}",
    "nested": f"{SOFTMAX} >> (I & +mn~m{{}}) >> mn/m~mn{{}} >> {MIX}",
    "guarded": f"{SOFT} >> {MIXED}",
    "guarded attention": f"md*nd~mnd{{}} >> +mnd~mn{{}} >> {SOFT} >> {MIXED}",
    "guarded heads": "hmd*hnd~hmnd{} >> +hmnd~hmn{} >> (I & >hmn#~hm{}) >> hmn-hm~hmn{} >> ^hmn~hmn{}"
    " >> (I & +hmn#~hm{}) >> hmn#/hm~hmn{} >> hmn*hne~hmne{} >> +hmne~hme{}",
    "guarded rows": "(I & >mn#~m{}) >> mn#-m~mn{} >> ^mn~mn{} >> +mn#~m{}",
    "guarded quotients": f"(I & +mn#~m{{}}) >> mn#/m~mn{{}} >> {MIXED}",
    "guarded peaks": f"(I & >mn#~m{{}}) >> mn#/m~mn{{}} >> {MIXED}",
    "guarded columns": "(I & >mnp#~m{}) >> mnp-m~mnp{} >> ^mnp~mnp{} >> (I & +mnp#~m{})"
    " >> mnp#/m~mnp{} >> +mnp#~mp{}",
}
"""Programs whose partial reductions can be corrected, under some schedule."""

ILLEGAL: dict[str, str] = {
    "added to": "(I & +mn~m{}) >> mn/m~mn{} >> mn+n~mn{} >> +mn~m{}",
    "exponential of a quotient": "(I & +mn~m{}) >> mn/m~mn{} >> ^mn~mn{} >> +mn~m{}",
    "rows summed": "(I & +mn~m{}) >> mn/m~mn{} >> mn*k~mnk{} >> +mnk~k{}",
}
"""Programs in which no partial reduction can."""

GUARDS = (
    ("n<=m", "n<m", "n<=m,n>=m-2"),
    ("n<=m,n>=m-2", "n==m", "n<=m,n>m-2"),
    ("n<m", "n<m,m<4", "n<m-1"),
    ("n>=m", "n>m+1", "n>=m,n<m+3"),
    ("n<=m+3,n>=m", "n==m+1"),
    ("m<n+2", "m<n"),
    ("2n<=m+3", "2n<m", "n<m,2n<=m+3"),
    ("n<3", "n<2"),
    ("m>1", "m>1,n<=m"),
    ("m<2n", "m<n"),
)
"""Guards, the first one of each line being what all the others are within."""
EXPRESSION = re.compile(r"((?:[a-z.^>+*/-]|\[[^\]]*\])+~[a-z.]+)\{\}")
BINARY = re.compile(r"[a-z.\]][+*/-][a-z.]")
PRODUCTS = ("attention", "heads", "guarded attention", "guarded heads")
KINDS = ("normal", "normal", "whole numbers", "whole numbers", "masked", "special", "large")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Drawing:
    """A program with schedules; ``near`` where what it sums may be far below a maximum that is not behind its guards.

    Of numbers that are far apart exponentials then leave the range of their type, with a schedule or without.
    """

    name: str
    text: str
    near: bool


def draw(rng: random.Random) -> Drawing:
    """A program and a schedule for nearly each of its expressions."""
    name = rng.choice([*LEGAL, *ILLEGAL])
    text = {**LEGAL, **ILLEGAL}[name]
    guard, *within = rng.choice(GUARDS)
    kinds = [[guard], within, [""]]
    weights = rng.choice(((8, 1, 1), (4, 2, 2), (0, 1, 3)))
    guards = [rng.choice(kind) for kind in rng.choices(kinds, weights, k=text.count("#"))]
    if guards and rng.random() < 0.3:
        guards[0] = ""
    for each in guards:
        text = text.replace("#", f"[{each}]" if each else "", 1)
    expressions = EXPRESSION.findall(text)
    axes = sorted({c for expression in expressions for c in expression if c.isalpha()})
    splits: dict[str, tuple[int, ...]] = {axis: rng.choice(((), (), (2,), (3,))) for axis in axes}
    parts = [axis + "'" * part for axis in axes for part in range(len(splits[axis]) + 1)]
    rng.shuffle(parts)
    if rng.random() < 0.4:
        parts.sort(key=len)
    if rng.random() < 0.4:
        parts.sort(key=lambda part: part != "n")
    inside = rng.randint(1, max(1, len(parts) * 2 // 3))
    schedules = iter([_schedule(e, splits, parts, inside, rng) for e in expressions])
    near = not set(guards) <= {*guards[:1], ""}
    return Drawing(name, re.sub(r"\{\}", lambda _: next(schedules), text), near)


def _schedule(
    expression: str,
    splits: dict[str, tuple[int, ...]],
    parts: list[str],
    inside: int,
    rng: random.Random,
) -> str:
    """The schedule of one expression, or none; most inputs stand inside the first ``inside`` loops of the program."""
    if rng.random() < 0.04:
        return ""
    order = [part for part in parts if part[0] in expression]
    if order and rng.random() < 0.1:
        order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))
    sites: list[tuple[int, int]] = []
    for operand in range(2 if BINARY.search(expression.partition("~")[0]) else 1):
        chance = rng.random()
        if chance < 0.7:
            sites.append((sum(part in parts[:inside] for part in order), operand))
        elif chance < 0.93:
            sites.append((rng.randint(0, len(order)), operand))
    words = list(order)
    for site, operand in sorted(sites, reverse=True):
        words.insert(site, str(operand))
    entries = [
        ":".join([axis, *map(str, factors)])
        for axis, factors in splits.items()
        if factors and axis in expression
    ]
    return f" | {','.join(entries)} | {' '.join(words)}"


def draw_arrays(drawing: Drawing, shapes: list[tuple[int, ...]], rng: random.Random) -> list[Array]:
    """An array per input; the one that a softmax is taken of has -inf, and NaN, now and then."""
    name = drawing.name
    numbers = np.random.default_rng(rng.getrandbits(32))
    kind = rng.choice(KINDS)
    softened = None if name in PRODUCTS else {"masked": 2}.get(name, 0)
    found = []
    for number, shape in enumerate(shapes):
        most = 1 if name in PRODUCTS else 2
        scale = most if drawing.near else 30 if kind == "large" else 2
        array = numbers.normal(size=shape) * scale
        if kind == "whole numbers":
            array = numbers.integers(-2, 3, shape).astype(float)
        if kind in ("masked", "special") and number == softened and array.size:
            hidden = numbers.random(shape) < rng.choice((0.3, 0.7, 0.95))
            array = np.where(hidden, -np.inf, array)
            array[numbers.integers(shape[0])] = -np.inf
            if rng.random() < 0.5:
                array[:, :3] = -np.inf
        if kind == "special":
            few = np.array([np.inf, np.nan, -np.inf, 0.0])
            array = np.where(numbers.random(shape) < 0.03, numbers.choice(few, shape), array)
        found.append(np.asarray(array, np.float32))
    return found

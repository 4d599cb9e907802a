"""The common parts of listings: indices, scalars, numbers, sizes, and rows of words in columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir.graph import Axis, Groups
from ilang.core.ir.scalar import Apply, Constant, Convert, Scalar
from ilang.core.ir.shaped import Shaped, Size
from ilang.core.ops import PRIMITIVES

Spelling = Callable[[int], str]
"""The words for axes, sizes or values, by their numbers."""


def affine_text(index: Affine, name: Spelling, size: Spelling = str, source: Spelling = str) -> str:
    """An affine index: ``2i+k-1``.

    ``size`` names the sizes in it, or gives their numbers; ``source`` names what is looked up.
    """
    text = ""
    for coefficient, word in affine_terms(index, name, size, source):
        sign = "-" if coefficient < 0 else ("+" if text else "")
        text += f"{sign}{'' if abs(coefficient) == 1 and word else abs(coefficient)}{word}"
    return text or "0"


def affine_terms(
    index: Affine, name: Spelling, size: Spelling = str, source: Spelling = str
) -> list[tuple[int, str]]:
    """The terms of an affine index: a coefficient and a word each; the number comes last, with an empty word."""
    offset = index.offset
    terms = [(c, name(axis)) for c, axis in index.steps()]
    for c, each in index.looked:
        at = ",".join(affine_text(part, name, size, source) for part in each.index)
        terms.append((c, f"{source(each.source)}[{at}]" if at else source(each.source)))
    for coefficient, number in index.sizes:
        if size(number).isdigit():
            offset += coefficient * int(size(number))
        else:
            terms.append((coefficient, size(number)))
    return [*terms, (offset, "")] if offset else terms


def subscript(
    index: Sequence[Affine], name: Spelling, size: Spelling = str, source: Spelling = str
) -> str:
    """An index in brackets, ``[n,2y+u]``; empty for a scalar."""
    words = ",".join(affine_text(part, name, size, source) for part in index)
    return f"[{words}]" if index else ""


def guards_text(
    guards: Sequence[Within], name: Spelling, size: Spelling = str, source: Spelling = str
) -> str:
    """Guards as conditions: ``0 <= i-j and 0 <= k < n``."""
    return " and ".join(
        f"0 <= {affine_text(guard.index, name, size, source)}"
        + ("" if guard.size is None else f" < {size(guard.size)}")
        for guard in guards
    )


def stored_text(order: Sequence[int]) -> str:
    """The dimensions of the text in their order in memory: ``dimensions 1 0``."""
    return f"dimensions {' '.join(map(str, order))}"


def view_text(axes: Sequence[Axis], source: Groups, target: Groups) -> str:
    """The renaming of dimensions by a view, with the extents that are written: ``(a:4 b) c -> a (b c)``."""
    sides = (" ".join(group_text(axes, group) for group in side) for side in (source, target))
    return " -> ".join(sides)


def written_names(axes: Sequence[Axis], text: str) -> list[str]:
    """The names of axes as a text has them: where an axis is written twice, the second ``i`` is ``i2`` inside."""
    words, names = re.findall(r"\w+", text), [axis.name for axis in axes]
    stems = [name if name in words else name.rstrip("0123456789") for name in names]
    return [stem if stem in names else name for name, stem in zip(names, stems, strict=True)]


def group_text(axes: Sequence[Axis], group: Sequence[int]) -> str:
    """The axes of one dimension of a view: ``(a:4 b)``, or ``c`` where it is one."""
    parts = [axes[axis] for axis in group]
    text = " ".join(x.name + ("" if x.extent is None else f":{x.extent}") for x in parts)
    return text if len(parts) == 1 else f"({text})"


def scalar_text(scalar: Scalar, leaf: Callable[[Scalar], str], top: bool = True) -> str:
    """A scalar in the usual notation; ``leaf`` names operands, loads and locals."""
    match scalar:
        case Constant():
            return number_text(scalar.value)
        case Convert():
            return f"{scalar.dtype}({scalar_text(scalar.argument, leaf)})"
        case Apply():
            words = [scalar_text(a, leaf, top=False) for a in scalar.arguments]
            sign = PRIMITIVES[scalar.primitive].notation.sign
            if sign:
                text = f" {sign} ".join(words)
                return text if top else f"({text})"
            inner = ", ".join(scalar_text(a, leaf) for a in scalar.arguments)
            if scalar.primitive == "neg":
                return f"-{words[0]}"
            if scalar.primitive == "recip":
                return f"1 / {words[0]}" if top else f"(1 / {words[0]})"
            return f"{scalar.primitive}({inner})"
        case _:
            return leaf(scalar)


def number_text(value: float | int) -> str:
    """A number without a needless fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return repr(value)


def size_text(size: Size) -> str:
    """An extent: its number, or its name."""
    return size.name if size.fixed is None else str(size.fixed)


def extents_of(shaped: Shaped, value: int) -> list[str]:
    """The extents of a value: numbers, or names."""
    return [size_text(shaped.sizes[number]) for number in shaped.tensors[value].dims]


def typed(dtype: str, extents: Sequence[str]) -> str:
    """A tensor without its name, ``f64[m,n]``; f32 goes without saying."""
    return f"{'' if dtype == 'f32' else dtype}[{','.join(extents)}]"


def parameter(name: str, dtype: str, extents: Sequence[str]) -> str:
    """A tensor as a head writes it: ``x[m,n]``, ``x: f64[m,n]``."""
    return f"{name}{'' if dtype == 'f32' else ': '}{typed(dtype, extents)}"


def head_text(name: str, takes: Sequence[str], gives: Sequence[str]) -> str:
    """A component in one line: ``attention(q[m,d], k[n,d], v[n,d]) -> [m,d]``."""
    result = gives[0] if len(gives) == 1 else f"({', '.join(gives)})"
    return f"{name}({', '.join(takes)}) -> {result}"


def written_rows(batch: str, inner: str, output: str) -> str:
    """Rows as a shape is written, ``5|2->3``, of which empty ones are left out."""
    return f"{batch}|" * bool(batch) + f"{inner}->" * bool(inner) + output


def aligned(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows of words as lines with aligned columns; no blanks at line ends."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

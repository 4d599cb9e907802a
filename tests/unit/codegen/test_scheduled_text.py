"""Schedules in the text of a program: cut, replaced, and added, where every other character stays."""

from __future__ import annotations

import pytest

from ilang import i
from ilang.codegen.components.scheduled_text import ScheduledText, scheduled_text
from ilang.codegen.components.tuning import component
from ilang.core.schedule.written import without_schedules
from ilang.core.source import Source, Span

PRODUCT = "ik*kj~ijk >> +ijk~ij"


def _text(text: str, name: str = "<text>", definition: str = "") -> ScheduledText:
    return scheduled_text(Source(name, text), component(name, text, definition), ())


def _spans(text: ScheduledText, *expressions: str) -> list[Span]:
    """The spans of expressions in a text without its schedules."""
    bare = text.bare
    starts = [bare.text.index(expression) for expression in expressions]
    return [
        Span(bare, start, start + len(each))
        for start, each in zip(starts, expressions, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (PRODUCT, PRODUCT),
        ("-ij~ij | j:4 |", "-ij~ij"),
        ("-ij~ij || i j | -i~i", "-ij~ij | -i~i"),
        ("+ij~ij || i j | ||ij~i", "+ij~ij | ||ij~i"),
        ("(-ij~ij || i j) >> +ij~i", "(-ij~ij) >> +ij~i"),
        ("(-ij~ij || i j & +ij~i || i j)", "(-ij~ij & +ij~i)"),
        ('einsum("ab;bc=>ac") || a b c', 'einsum("ab;bc=>ac")'),
        ('einx.sum("a [b]") | a:4 | a b a\'', 'einx.sum("a [b]")'),
        ("+ij~i\t| i:8 | i i' j | i:p >> -i~i", "+ij~i >> -i~i"),
        ("ik*kj~ijk | i:8 | i i' j k >> +ijk~ij || i j k", PRODUCT),
    ],
)
def test_schedules_are_cut(text: str, bare: str) -> None:
    """What is left is the program that the compiler makes of the text when it ignores schedules."""
    assert _text(text).bare.text == bare
    free = without_schedules(i(text).shaped(()))
    texts = [getattr(node, "text", "") for node in free.nodes]
    assert texts == [getattr(node, "text", "") for node in i(bare).shaped(()).nodes]


def test_schedules_stand_after_their_expressions() -> None:
    text = _text(PRODUCT)
    spans = _spans(text, "ik*kj~ijk", "+ijk~ij")
    words = [*zip(spans, ("| i:4 | i j k i'", "|| i j k 0"), strict=True)]
    assert text.with_schedules(words) == "ik*kj~ijk | i:4 | i j k i' >> +ijk~ij || i j k 0"
    other = Span(Source("other.i", PRODUCT), 0, 9)
    assert text.with_schedules([(other, "|| i j k")]) is None


def test_schedules_are_replaced_where_they_stand() -> None:
    """The blanks before a schedule stay; one that has no successor goes with its blanks, or with its line."""
    text = (
        "f(a, b) = (ik*kj~ijk  # the products\n"
        "    | i:4 | i i' j k\n"
        "  >> +ijk~ij   | i:4 | i i' j k  # the sums\n"
        "  >> -ij~ij\n"
        "    || j i )\n"
        "g(a) = -ij~ij || j i\n"
    )
    scheduled = _text(text, "m.i", "f")
    first, second, third = _spans(scheduled, "ik*kj~ijk", "+ijk~ij", "-ij~ij")
    assert scheduled.bare.text == (
        "f(a, b) = (ik*kj~ijk  # the products\n"
        "  >> +ijk~ij  # the sums\n"
        "  >> -ij~ij\n"
        "     )\n"
        "g(a) = -ij~ij || j i\n"
    )
    assert scheduled.with_schedules([(first, "|| A"), (second, "|| B"), (third, "|| C")]) == (
        "f(a, b) = (ik*kj~ijk  # the products\n"
        "    || A\n"
        "  >> +ijk~ij   || B  # the sums\n"
        "  >> -ij~ij\n"
        "    || C )\n"
        "g(a) = -ij~ij || j i\n"
    )
    assert scheduled.with_schedules([(second, "|| B")]) == (
        "f(a, b) = (ik*kj~ijk  # the products\n"
        "  >> +ijk~ij   || B  # the sums\n"
        "  >> -ij~ij\n"
        "     )\n"
        "g(a) = -ij~ij || j i\n"
    )
    assert scheduled.with_schedules([]) == scheduled.bare.text


def test_schedules_are_added_beside_others() -> None:
    text = _text("ik*kj~ijk || i j k >> +ijk~ij >> -ij~ij || j i")
    first, second = _spans(text, "ik*kj~ijk", "+ijk~ij")
    assert text.with_schedules([(first, "|| A"), (second, "|| B")]) == (
        "ik*kj~ijk || A >> +ijk~ij || B >> -ij~ij"
    )
    assert text.with_schedules([(second, "|| B")]) == "ik*kj~ijk >> +ijk~ij || B >> -ij~ij"

"""Programs of too many expressions, in every notation: they are refused while they are read."""

from __future__ import annotations

import pytest

from ilang import elementwise
from ilang.core import limits
from ilang.core.diagnostic import Error, MeaningError, NotationError
from ilang.core.ir.syntax import Combine
from ilang.core.notation.einsum.subscripts import is_subscripts
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import text_component
from ilang.core.source import Source, whole
from tests.property.growth import PROPORTIONAL, times_as_long

COMPONENTS = {
    "index expressions": ("-i~i", " >> -i~i", " >> "),
    "pairs": ("-i~i", " | (-i~i)", " | ("),
    "numbers": ("1", " | 1", " | "),
    "quoted programs": ("-i~i", " >> i('-i~i')", " >> i('"),
    "a quoted program": ("i('-i~i", " >> -i~i", " >> ')"),
    "einsum": ("einsum('i->i')", " >> einsum('i->i')", " >> einsum('"),
    "operands of an einsum": ("einsum('i", ",i", ",?->i')"),
    "operands of a specification": ("einsum('i", ";i", ";?=>i')"),
    "einx": ("einx.id('a -> a')", " >> einx.id('a -> a')", " >> einx."),
    "operands in einx notation": ("einx.add('a", ", a", ", ? -> a')"),
    "inputs of a kernel": ("elementwise('f: x", ", x", " ->')"),
    "operators of a kernel": ("elementwise('f: x -> x", " + x", " +')"),
    "functions of a kernel": ("elementwise('f: x -> x", " + exp(x)", " + ?')"),
    "outputs of a kernel": ("elementwise('f: x -> x", "; x", "; ')"),
}
MODULES = {
    "statements": ("f(x) = { y = (-i~i)(x)", "; y = (-i~i)(y)", "; y = (-i)(y); y }"),
    "operators": ("op f(x) = x", " + x", " +"),
    "specifications": ("op f(x) = x", ' ++ "i => i"', ' ++ "i'),
    "calls": ("op f(x) = x", " + exp(x)", " + exp(x"),
    "lines of a function": ("op f(x) {\n  y = x", "\n  y = y + x", "\n  y + * y\n}"),
    "lines of a routine": ("cd f(x) {\n  y = x", "\n  y = exp(y)", "\n  y = * y\n}"),
}
"""How a text begins, what is said again and again, and how it ends: with a mistake."""


def _read(title: str, times: int) -> None:
    begins, again, ends = (COMPONENTS | MODULES)[title]
    text = begins + again * times + ends
    if title in COMPONENTS:
        text_component(text)
    else:
        parse_module(Source("long.i", text))


@pytest.mark.parametrize("title", [*COMPONENTS, *MODULES])
def test_what_follows_too_many_expressions_is_not_read(
    title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Error) as caught:
        _read(title, 200)
    assert caught.value.code != "E0250"
    monkeypatch.setattr(limits, "MOST_LEAVES", 10)
    with pytest.raises(MeaningError, match="more than 10 expressions"):
        _read(title, 200)


@pytest.mark.parametrize("inputs", [10**12, [f"x{n}" for n in range(11)]])
def test_a_kernel_of_too_many_inputs_is_refused_at_once(
    inputs: int | list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_LEAVES", 10)
    with pytest.raises(MeaningError, match="E0250"):
        elementwise("f", ["x0"], inputs)


@pytest.mark.parametrize("depth", [101, 10_000])
def test_a_kernel_of_tuples_in_tuples_is_refused(depth: int) -> None:
    expression: object = "x0"
    for _ in range(depth):
        expression = ("add", expression, "x0")
    with pytest.raises(NotationError, match="E0180"):
        elementwise("f", [{"expr": expression}])


@pytest.mark.parametrize("title", ["axes of an operand", "words of an operand"])
def test_specifications_are_read_in_proportion(title: str) -> None:
    again = {"axes of an operand": "i", "words of an operand": "ijk "}[title]
    assert times_as_long(lambda times: is_subscripts(again * times), 400_000) < PROPORTIONAL


@pytest.mark.parametrize("title", ["einsum", "calls"])
def test_reading_takes_time_in_proportion(title: str) -> None:
    def refused(times: int) -> None:
        with pytest.raises(Error):
            _read(title, times)

    assert times_as_long(refused, 8_000) < PROPORTIONAL


@pytest.mark.parametrize("length", [1, 5, 7, 8, 100])
def test_the_beginning_of_a_long_text_is_that_of_its_line(length: int) -> None:
    text = "\n  x +\n\ty \u2003+ z "
    assert whole(Source("long.i", text)).line_up_to(length) == " ".join(text.split())[:length]


def test_index_expressions_are_counted_before_any_is_read() -> None:
    with pytest.raises(MeaningError, match="more than 100,000 expressions") as caught:
        text_component("~-i~i" + " >> ~ (i)+(j) ~ij" * 100_001 + " >> (")
    assert caught.value.span is not None
    assert caught.value.span.text() == "~"
    assert isinstance(text_component("~-i~i" + " >> ~-i~i" * 10), Combine)

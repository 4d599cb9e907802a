"""Examples in the comments of a file of programs: arrays, and what its definition gives for them.

    # in x = [[1, 2], [3, 4]]
    # out = [3, 7]

Lines ``# in NAME = ARRAY`` give the inputs, by the names that the definition gives them; in order where it names none,
and by lines ``# in = ARRAY``. One line may have several: ``# in a = [1, 2], b = 3``. Lines ``# out = ARRAY`` or
``# out N = ARRAY`` give the results in order. An ``# in`` after an ``# out`` begins another example. Before an array in
brackets, or a number that ends the line, ``=`` may be a colon or nothing; capitals and blanks before ``#`` make no
difference. Arrays are written as on the command line. A result agrees where it differs by at most 1e-5 of the number
written, and 1e-8, or, with ``within 0.001`` behind it, by at most that; one without a written element type takes that
of the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ilang.codegen.call.arguments import listed_inputs
from ilang.codegen.system.npy import Array
from ilang.core.diagnostic import DataError, Error, Label, counted
from ilang.core.record import record
from ilang.core.source import Source, Span
from ilang.core.suggestion import did_you_mean
from ilang.icli.arrays import array_of
from ilang.icli.literal import number_of, split_dtype
from ilang.icli.shapes import shape_text
from ilang.icli.values import DTYPES

BARE = r"(?:(?:[a-z]\w*:)?\[.*\S|-?\.?\d[\w.+-]*(?=[ \t]*$))"
"""An array that needs no sign before it."""
LINE = re.compile(
    r"^[ \t]*#+[ \t]*(?i:in(?:[ \t]+(?P<name>[a-z_]\w*))?|(?P<out>out(?:put)?)(?:[ \t]+(?P<place>\d+))?)"
    rf"[ \t]*(?:(?P<equals>=)[ \t]*|:[ \t]*(?={BARE})|(?<=[ \t])(?={BARE}))(?P<array>(?(equals).*\S|{BARE}))",
    re.MULTILINE,
)
EMPTY = re.compile(
    r"^[ \t]*#+[ \t]*(?i:in|out)(?:[ \t]+\w+)?[ \t]*(?P<equals>=)[ \t]*$", re.MULTILINE
)
"""A line of an example whose array is missing."""
NEXT = re.compile(r",[ \t]*(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*")
"""The name of the next input of a line, outside of brackets."""
WITHIN = re.compile(r"[ \t]+within[ \t]+(?P<most>\S+)$")
"""The difference that a result may have, behind it."""
NAMED = re.compile(r"^#[ \t]*out[ \t]+[A-Za-z_]\w*[ \t]*=[ \t]*(?P<array>.*\S)", re.MULTILINE)
"""A line of a result under a name, which is no line of an example."""
RELATIVE, ABSOLUTE = 1e-5, 1e-8


@record
class WrittenArray:
    """An array of an example: the name of its input (empty for a result), its text, and how far a result may differ."""

    name: str
    span: Span
    within: float | None = None

    def array(self, dtype: str | None, number: int = 0) -> Array:
        """The array, of the type that is written, else of the one asked for.

        Raises: DataError (it is none), at its place in the file.
        """
        try:
            return array_of(self.span.text(), dtype, number)
        except Error as error:
            raise type(error)(error.code, error.message, self._place(error), error.help) from None

    def _place(self, error: Error) -> Span:
        """The place in the file of an error in the text of the array."""
        if error.span is None:
            return self.span
        inner = error.span
        start = self.span.start + self.span.text().rindex(inner.source.text)
        return Span(self.span.source, start + inner.start, start + inner.end)


@record
class Example:
    """The arrays that go in, and those that come out."""

    inputs: tuple[WrittenArray, ...]
    results: tuple[WrittenArray, ...]

    def span(self) -> Span:
        """The place of its first array."""
        return (*self.inputs, *self.results)[0].span

    def arrays(self, names: Sequence[str], dtypes: Sequence[str | None]) -> list[Array]:
        """The arrays for inputs of some names, given the element types that the program writes.

        Raises: DataError E0747 (the definition names its inputs, and has none of a name).
        """
        self._check_names(names)
        by_name = {each.name: each for each in self.inputs}
        is_named = len(by_name) == len(self.inputs) and by_name.keys() == set(names)
        written = [by_name[name] for name in names] if is_named else list(self.inputs)
        wanted = (*dtypes, *(None for _ in written))
        return [each.array(wanted[number], number) for number, each in enumerate(written)]

    def _check_names(self, names: Sequence[str]) -> None:
        if all(re.fullmatch(r"in\d+", name) for name in names):
            return  # inputs that no definition names are read in order, by any name
        for each in self.inputs:
            if each.name not in (*names, "in"):
                help_line = did_you_mean(each.name, names, listed_inputs(names))
                message = f"the program has no input named {each.name}"
                raise DataError("E0747", message, each.span, help_line)


def examples_of(source: Source) -> list[Example]:
    """The examples of a file, in order. Raises: DataError E0720 (the array of a line is missing)."""
    empty = EMPTY.search(source.text)
    if empty is not None:
        message = "an array is missing after `=`"
        help_line = "write one: `# in x = [1, 2]`, `# out = 3`"
        raise DataError("E0720", message, Span(source, *empty.span("equals")), help_line)
    groups: list[tuple[list[WrittenArray], list[WrittenArray]]] = []
    for line in LINE.finditer(source.text):
        whole = Span(source, *line.span("array"))
        written = [_result(whole)] if line["out"] else _inputs(line["name"] or "in", whole)
        if not groups or (written[0].name and groups[-1][1]):
            groups.append(([], []))
        groups[-1][0 if written[0].name else 1].extend(written)
    return [Example(tuple(inputs), tuple(results)) for inputs, results in groups]


def _inputs(name: str, whole: Span) -> list[WrittenArray]:
    """The arrays of a line, the first of which has a name: ``[1, 2], b = 3``."""
    text, start, inputs = whole.text(), 0, list[WrittenArray]()
    for match in NEXT.finditer(text):
        before = text[: match.start()]
        if all(before.count(a) == before.count(b) for a, b in ("()", "[]")):
            inputs.append(WrittenArray(name, _part(whole, start, match.start())))
            name, start = match["name"], match.end()
    return [*inputs, WrittenArray(name, _part(whole, start, len(text)))]


def _part(whole: Span, start: int, end: int) -> Span:
    return Span(whole.source, whole.start + start, whole.start + end)


def _result(whole: Span) -> WrittenArray:
    """A result, and the difference that it may have: ``[0.33, 0.67] within 0.01``. Raises: DataError E0720."""
    text = whole.text()
    match = WITHIN.search(text)
    if match is None:
        return WrittenArray("", whole)
    number = number_of(match["most"])
    most = -1.0 if number is None else float(number[0])
    if not 0 <= most < float("inf"):
        place = _part(whole, *match.span("most"))
        message = f"`{match['most']}` is no difference, which is a number from 0 on"
        raise DataError("E0720", message, place, "write one: `# out = 0.33 within 0.01`")
    return WrittenArray("", _part(whole, 0, match.start()), most)


def located(error: Error, example: Example) -> Error:
    """An error of a run, with the place of the example that it is of."""
    span = example.span()
    if error.span is None:
        return type(error)(error.code, error.message, span, error.help)
    labels = (*error.labels, Label(span, "in this example"))
    return type(error)(error.code, error.message, error.span, error.help, labels)


def check(example: Example, results: Sequence[tuple[str, Array]]) -> None:
    """Compare results, by name, with those that an example writes.

    Raises: DataError E0771 (they differ), with the first element that does.
    """
    if len(results) != len(example.results):
        count, writes = counted(len(results), "result"), len(example.results)
        message = f"the program gives {count}, and the example has {writes} of the lines `# out`"
        named = NAMED.search(example.span().source.text)
        help_line = (
            f"a result has no name: `# out = {named['array']}`"
            if named and writes < len(results)
            else UPDATE_HELP
        )
        raise DataError("E0771", message, example.span(), help_line)
    for (name, got), written in zip(results, example.results, strict=True):
        wanted = written.array(None if split_dtype(written.span.text())[0] else _dtype(got))
        if wanted.dtype != got.dtype:
            message = f"{name} is of type {_dtype(got)}, and the example writes {_dtype(wanted)}"
            raise DataError("E0771", message, written.span, UPDATE_HELP)
        if wanted.shape != got.shape:
            message = f"{name} {_shaped(got)}, and the example writes what {_shaped(wanted)}"
            raise DataError("E0771", message, written.span, UPDATE_HELP)
        relative, absolute = RELATIVE, ABSOLUTE
        if written.within is not None:
            relative, absolute = 0.0, written.within
        agrees = np.isclose(got, wanted, relative, absolute, equal_nan=True)
        if not agrees.all():
            at = tuple(int(n) for n in np.argwhere(~agrees)[0])
            place = f"{name}[{','.join(map(str, at))}]" if at else name
            message = f"{place} is {got[at]}, and the example writes {wanted[at]}"
            differing = int((~agrees).sum())
            if 1 < differing:
                message += f"; {differing} of {agrees.size} elements differ"
            help_line = f"{UPDATE_HELP}; `within 0.01` behind it allows such a difference"
            raise DataError("E0771", message, written.span, help_line)


def _shaped(array: Array) -> str:
    return f"has shape {shape_text(array.shape)}" if array.shape else "is one number"


UPDATE_HELP = "`i test --update` writes what comes out into the file"


def updated(example: Example, results: Sequence[tuple[str, Array]]) -> list[tuple[int, int, str]]:
    """Changes of a file, as start, end and new text, that give an example the results of a run."""
    if len(results) == len(example.results):
        return [
            (written.span.start, written.span.end, literal(array))
            for written, (_, array) in zip(example.results, results, strict=True)
        ]
    text = example.span().source.text
    removed = []
    for each in example.results:
        begin = text.rfind("\n", 0, each.span.start) + 1
        removed.append((begin, min(each.span.end + 1, len(text)), ""))
    last = (*example.inputs, *example.results)[-1].span.end
    numbers = [""] if len(results) == 1 else [f" {number}" for number in range(len(results))]
    lines = [
        f"# out{number} = {literal(array)}\n"
        for number, (_, array) in zip(numbers, results, strict=True)
    ]
    end = min(last + 1, len(text))
    return [*removed, (end, end, "".join(lines))]


def literal(array: Array) -> str:
    """An array as the command line takes it; types that it would not have there are written."""
    dtype = _dtype(array)
    values = _nested(array.tolist(), dtype == "f32")
    return values if dtype in ("f32", "bool") else f"{dtype}:{values}"


def _nested(value: object, is_single: bool) -> str:
    """Lists of numbers as text, each with the fewest digits that give it back."""
    if isinstance(value, list):
        return f"[{', '.join(_nested(each, is_single) for each in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(np.float32(value) if is_single else value).removesuffix(".0")
    return str(value)


def _dtype(array: Array) -> str:
    return DTYPES[array.dtype.name]

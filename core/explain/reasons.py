"""The source of each extent: dimensions of inputs, numbers in the text, or a rule over other extents.

k  one extent: dimension 1 of in0, dimension 0 of in1
y  follows from the index (y+u-1): yu + 2 - (u - 1) = 10 + 2 - (3 - 1) = 10
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from ilang.core.calculus.extent import (
    ATOM,
    PLAIN,
    PRODUCT,
    QUOTIENT,
    SUM,
    Extent,
    Operator,
    joined,
    linear,
    size,
)
from ilang.core.explain.expression import size_text
from ilang.core.infer.solved import Solved
from ilang.core.ir.graph import Annotation
from ilang.core.ir.shaped import Assignment, Derivation, Reach, Shaped, Size, View
from ilang.core.source import Span

ALONG_BRACKETS = re.compile(r"einx\.(?:softmax|log_softmax|flip)\(")
"""The beginning of an operation that goes along axes in brackets, and takes none, too."""
LAST_AXIS = re.compile(r"([\w.]+)(\s*[\"'])")
"""The last axis of quoted axes."""


def _quotient(whole: str, divisor: str) -> str:
    """A quotient; a sum of one word has no parentheses."""
    word = whole.removeprefix("(").removesuffix(")")
    return f"{word if word.isidentifier() else whole} / {divisor}"


FORMULAS = {
    "+": Operator(joined, SUM, (SUM,)),
    "*": Operator(lambda *words: "·".join(words), PRODUCT, (PRODUCT,)),
    "scaled": Operator(
        lambda factor, word: {"1": word, "-1": f"-{word}"}.get(factor, f"{factor}·{word}"),
        PRODUCT,
        (PRODUCT,),
    ),
    "//": Operator(_quotient, QUOTIENT, (QUOTIENT, ATOM)),
}
"""The spellings of operations in reasons."""


class Reasons:
    """The sizes of a program, and the reason for each."""

    def __init__(
        self, program: Solved | Shaped, inputs: Sequence[str], texts: Mapping[int, str], given: bool
    ) -> None:
        """Look through them once.

        Args:
            program: a program whose extents are inferred.
            inputs: the names of its inputs.
            texts: where the text has the number of a size.
            given: whether the extents of the inputs are those of ``--shape``.
        """
        self.sizes = program.sizes() if isinstance(program, Solved) else program.sizes
        self.inputs = inputs
        self.texts = texts
        self.given = given
        self.derived: dict[int, list[Derivation]] = {}
        self.reaches: dict[int | None, list[Reach]] = {}
        for each in program.derived:
            self.derived.setdefault(each.size, []).append(each)
        for reach in program.reaches:
            self.reaches.setdefault(reach.size, []).append(reach)

    def of(self, number: int) -> str:
        """The source of an extent: dimensions, the text, ``--shape``, or a rule."""
        size, text = self.sizes[number], self.texts.get(number)
        places = [f"dimension {place.dim} of {self.inputs[place.number]}" for place in size.places]
        derived = self.derived.get(number, [])
        reasons = []
        if places:
            one = "one extent: " if len(places) > 1 else ""
            reasons.append(one + ", ".join(places))
        if size.guessed:
            reasons.append(f"nothing gives it: the least it can be, {size.fixed}")
        elif text:
            reasons.append(text)
        elif size.fixed is not None and places and self.given:
            reasons.append(f"`--shape` gives {size.fixed}")
        elif size.fixed is not None and not derived:
            reasons.append(f"written as {size.fixed} in a definition")
        reasons += [_derived(self.sizes, each) for each in derived]
        fixed = [each.index.offset for each in self.reaches.get(number, ()) if each.part is None]
        reasons += [f"read at {position}, so more than that" for position in fixed]
        return "; ".join(reasons)


def window_notes(shaped: Shaped, shown: Set[int]) -> Iterator[str]:
    """The run-time extents of windows among some: ``ik = i+k-1``, or ``i = n-k+3`` where n has a name."""
    sizes = shaped.sizes

    def spelled(extent: Extent) -> str:
        return extent.text(lambda number: size_text(sizes[number]), PLAIN)

    for rule in shaped.derived:
        if rule.padding is None or sizes[rule.size].fixed is not None:
            continue
        (_, base), *windows = rule.whole.steps()
        axes = [(1, rule.size), *((-step, window) for step, window in windows)]
        letters = "".join(sizes[number].name for _, number in axes)
        divisor, text = rule.divisor.number, spelled(rule.whole)
        if shown.isdisjoint((rule.size, base)):
            continue
        if divisor == 1 and sorted(sizes[base].name) == sorted(letters):
            offset = sum(step for step, _ in windows) - rule.padding
            whole = linear([(factor, size(number)) for factor, number in axes], offset)
            yield f"{sizes[base].name} = {spelled(whole)}"
            continue
        if divisor != 1:
            text = f"floor({text if text.isidentifier() else f'({text})'}/{divisor})"
        if sizes[rule.size].name != text:  # the extent that the input has
            yield f"{sizes[rule.size].name} = {text}"


def of_shaped(shaped: Shaped, annotations: Sequence[Annotation], given: bool) -> Reasons:
    """The reasons of a typed graph; ``annotations`` are what definitions write of its inputs."""
    inputs = [shaped.tensors[value].name for value in shaped.inputs]
    return Reasons(shaped, inputs, _texts(shaped, annotations), given)


def of_solved(solved: Solved) -> Reasons:
    """The reasons of run-time extents of a solved graph."""
    graph = solved.graph
    return Reasons(solved, [graph.input_name(value) for value in solved.inputs], {}, False)


def _texts(shaped: Shaped, annotations: Sequence[Annotation]) -> dict[int, str]:
    """The sizes whose number is in the text, and where."""
    texts: dict[int, str] = {}
    for node in shaped.nodes:
        if isinstance(node, Assignment | View):
            for axis, size in zip(node.axes, node.sizes, strict=True):
                if axis.extent is not None:
                    texts.setdefault(size, _place(axis.span, axis.extent))
    for annotation in annotations:
        if len(shaped.inputs) <= annotation.value:
            continue  # the wiring numbers inputs first: this is the result of another definition
        dims = shaped.tensors[shaped.inputs[annotation.value]].dims
        for size, number in zip(dims, annotation.dims or (), strict=False):
            if isinstance(number, int):
                texts.setdefault(size, _place(annotation.span, number))
    return texts


def _place(span: Span, number: int) -> str:
    """``written as 3, column 5``; the line as well where the text has several."""
    line = f"line {span.line_number()}, " if "\n" in span.source.text.strip() else ""
    return f"written as {number}, {line}column {span.column()}"


def _derived(sizes: Sequence[Size], rule: Derivation) -> str:
    """The formula of a derived extent: in names, with the numbers that are known put in, and the result."""
    steps = [formula(rule, lambda number: sizes[number].name)]
    steps.append(formula(rule, lambda number: size_text(sizes[number])))
    result = sizes[rule.size].fixed
    if result is not None:
        steps.append(str(result))
    index = "the index " if rule.padding is not None else ""
    return f"follows from {index}{rule.span.text()}: {' = '.join(dict.fromkeys(steps))}"


def formula(rule: Derivation, spelled: Callable[[int], str]) -> str:
    """A rule as a formula over sizes."""
    if rule.padding is not None:
        return _window(rule, spelled)
    text = rule.value().text(spelled, FORMULAS)
    return text if rule.exact or rule.divisor.constant() == 1 else f"⌊{text}⌋"


def _window(derived: Derivation, spelled: Callable[[int], str]) -> str:
    """The steps that a window takes inside its dimension."""
    (_, base), *windows = derived.whole.steps()
    text = spelled(base)
    if derived.padding:
        text += f" {'+' if derived.padding > 0 else '-'} {abs(derived.padding)}"
    for step, window in windows:
        reach = f"({spelled(window)} - 1)"
        text += f" - {reach if step == -1 else f'{-step}·{reach}'}"
    divisor = derived.divisor.number
    return text if divisor == 1 else f"⌊({text} - 1) / {divisor}⌋ + 1"


def bracket_notes(shaped: Shaped) -> Iterator[str]:
    """The operations that go along axes in brackets, and that have none: each is of one element alone."""
    texts = dict.fromkeys(
        node.span.text() for node in shaped.nodes if isinstance(node, Assignment | View)
    )
    for text in texts:
        if ALONG_BRACKETS.match(text) and "[" not in text:
            marked = LAST_AXIS.sub(r"[\1]\2", text, count=1)
            yield f"no axis of `{text}` is in brackets, so it goes along none; along the last: `{marked}`"

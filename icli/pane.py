"""The pane under the prompt: what the line that is typed means, what it lacks, or the first mistake in it.

ik*kj~ijk >> +ijk~ij        out[i,j] = Σ_k in0[i,k]·in1[k,j]
(in0[i,k], in1[k,j]) -> [i,j]
ik*kj~ij                    axis k is missing from the output, ...
soft                        softmax
ik*kj~ij D                  error[E0202]: axis k is missing from the output, ...
ik*kj~ij D
^

A text is an error only where no further typing mends it. Brackets and quotes that it leaves open are closed first, so
that what is typed so far has a meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error, ShapeError, plain
from ilang.core.notation.lines import without_comments
from ilang.icli.candidates import completions
from ilang.icli.entries import Entries
from ilang.icli.filled import RANGE, is_filled
from ilang.icli.lines import BINDS, DEFINES, NAME, closing, open_bracket
from ilang.icli.readings import read
from ilang.icli.session import ReplSession

if TYPE_CHECKING:
    from ilang.core.ir.graph import Graph
    from ilang.core.source import Span

LONGEST = 400
"""Code points of a program that is inferred while it is typed."""
MOST_FORMULAS = 3
MOST_WORDS = 8
"""Words that are offered for one that is begun."""
EXCERPT = re.compile(r" *\d* \| ?(.*)")
WORD = re.compile(r"\w*$")
NAMES = re.compile(rf"{NAME}(?:\s*,\s*{NAME})*\s*,?")
"""A text that may become the names of results: ``y, z``."""
COMPUTED = re.compile(r"(.+?)\s*(?:\.\w*|[-+*/@^<>=&|.]+|\[[^\]]*)\s*")
"""The beginning of an expression as Python writes it, of an array that it begins with."""
HEAD = re.compile(rf"\s*{NAME}\s*\([^~=]*\)\s*")
"""A text that may become the head of a definition."""
BEGINNINGS = {
    "op": "op f(x) = ...   a tensor function",
    "cd": "cd f(x, y) { ... }   a routine",
    "use": "use std, nn, optim   libraries",
}
"""Words that begin a definition, and how it goes on."""
BEGUN = re.compile(rf"({'|'.join(BEGINNINGS)})(?:\s+\w*)?\s*")
CLOSERS = (")", "]", "}")
"""Ends of texts that grow no more."""
GROWING = ("E01", "E04", "E07")
"""Errors that longer words may mend."""
NEVER = ("E0102", "E0115")
"""Codes of them that nothing mends."""
LACKING = {
    "E0197": r"[\w.]+\s*",
    "E0202": r"[^~]*~[a-z]*",
    "E0306": r".*",
    "E0422": r".*(?<!\})",
    "E0508": r".*",
}
"""Errors of what is not there yet, and the text from their place to the end where that may still come."""
NO_HELP = "there is no help while this is typed, by a mistake of ours"
UNTOLD = ("E0106", "E07")
"""Errors of words that may become something else, ``data.np``, and of arrays that are begun: they mislead."""


def pane(session: ReplSession, text: str) -> list[str]:
    """The lines on a text: formulas and shapes, what it lacks, or an error with its place; perhaps none."""
    if "\n" in text:  # of several entries the last one is typed
        entries = Entries(session.is_array)
        typed = [*entries.of(text.split("\n")), *entries.rest()]
        text = typed[-1] if typed else ""
        at = open_bracket(without_comments(text))
        if 0 <= at:
            return [f"`{text[at]}` is open: close it, or end with an empty line, or Ctrl-C"]
    code = without_comments(text)
    if not code.strip() or LONGEST < len(code) or code.lstrip().startswith((":", "?")):
        return []
    begun = BEGUN.fullmatch(code.strip())
    if begun is not None and begun[1] not in session.names():
        return [BEGINNINGS[begun[1]]]
    try:
        return _meaning_or_mistake(session, code, code.strip() + closing(code))
    except Exception as failure:  # a mistake of ours, which the prompt outlives and shows
        return [f"{NO_HELP}: {type(failure).__name__}"]


def _meaning_or_mistake(session: ReplSession, code: str, whole: str) -> list[str]:
    try:
        return _meaning(session, whole)
    except Error as error:
        return _mistake(session, code, whole, error)


def _meaning(session: ReplSession, line: str) -> list[str]:
    """The formulas and the shapes of a program, also of one that gets a name."""
    from ilang.icli.calls import Calls, defined_name
    from ilang.icli.definitions import checked_line
    from ilang.icli.programs import defined
    from ilang.icli.staged import library_line

    function, defines, binds = defined_name(line), DEFINES.match(line), BINDS.match(line)
    if function is not None:
        calls = Calls(session.with_texts({function: line}), session.calls)
        return [checked_line(calls.function(function), {}, {})] if function in calls.heads else []
    if defines is not None and binds is None:
        name = defines.group(1)
        return _described(session, defined(session.with_texts({name: line}), name).graph, None)
    body = line if binds is None else binds.group(2).strip()
    if not body:
        return []
    calls = session.calls
    if calls.read(body, session.arrays, session.is_array) or calls.calls_any(body):
        return []
    if session.is_array(body):
        return _array(session, body)
    if body in session.calls.heads:
        return [checked_line(session.calls.function(body), {}, {})]
    subject, words = read(session, body)
    if words is None and (reply := library_line(session, body, subject)) is not None:
        return [str(part) for part in reply.parts]
    return _described(session, subject.graph, words)


def _array(session: ReplSession, word: str) -> list[str]:
    """The head of an array that has a name, the shape of one that is spelled; nothing of one in a file."""
    from ilang.icli.shapes import shape_text
    from ilang.icli.values import head_text

    if word in session.arrays:
        return [head_text(word, session.arrays[word])]
    try:
        shape = _shape(session, word)
    except CommandError:  # a shape that is begun
        return []
    return [] if shape is None else [shape_text(shape)]


def _described(session: ReplSession, graph: Graph, words: list[str] | None) -> list[str]:
    """The formulas and the shapes of a component, at the shapes of arrays where there are some."""
    from ilang.core.explain.meaning import meaning
    from ilang.core.explain.page import signature
    from ilang.core.pipeline import infer
    from ilang.icli.staged import shapes_at_hand

    shapes = shapes_at_hand(session, graph)[0]
    if words is not None:
        given = [_shape(session, word) for word in words]
        known = [shape for shape in given if shape is not None]
        shapes = tuple(known) if len(known) == len(graph.inputs) else None
    try:
        shaped = infer(graph, shapes=shapes)
    except ShapeError:
        if words is not None or shapes is None:
            raise
        shaped = infer(graph)
    formulas = [each.text for each in meaning(shaped).formulas]
    more = [f"… and {len(formulas) - MOST_FORMULAS} more"] if MOST_FORMULAS < len(formulas) else []
    return [*formulas[:MOST_FORMULAS], *more, signature(shaped)]


def _shape(session: ReplSession, word: str) -> tuple[int, ...] | None:
    """The shape of an array that a word names or spells; None for one in a file."""
    from ilang.icli.literal import spelled_shape

    if word in session.arrays:
        shape: tuple[int, ...] = session.arrays[word].shape
        return shape
    return spelled_shape(word)


def _mistake(session: ReplSession, code: str, whole: str, error: Error) -> list[str]:
    """The lines on what a text lacks, or else on an error: its first line, its place in the text, the help.

    ``code`` is the text as it is typed, ``whole`` with everything closed that it leaves open.
    """
    from ilang.icli.advice import advised
    from ilang.icli.waiting import is_applied, waiting_definition

    lacks = _lacks(session, code, whole, error)
    if lacks is not None:
        return lacks
    head = DEFINES.match(whole) or BINDS.match(whole)
    if head is not None and not is_applied(session, whole):
        waits = waiting_definition(session, head.group(1), whole, error)
        if waits is not None:
            return [waits.says(head.group(1))]
    header, *rest = plain(advised(session, whole, error)).split("\n")
    matches = [match[1] for each in rest if (match := EXCERPT.fullmatch(each)) and match[1]]
    return [header, *matches[:2], *(each for each in rest[-1:] if each.startswith("help: "))]


def _lacks(session: ReplSession, code: str, whole: str, error: Error) -> list[str] | None:
    """The lines on a text that more typing may mend; None for one that is wrong whatever follows."""
    if error.span is None:
        return [error.help] if error.help and whole != code.strip() else None
    if error.code in NEVER:
        return None
    blanks = code[len(code.rstrip()) :]
    code = code.strip()
    start, end = _place(error.span, whole)
    rest = code[start:] + blanks
    if error.code in LACKING and re.fullmatch(LACKING[error.code], rest, re.DOTALL):
        return [error.message]
    if error.code == "E0401" and error.span.text() == rest:
        offered = [each for each in completions(session, rest) if each != rest]
        return ["  ".join(offered[:MOST_WORDS])] if offered else []
    if NAMES.fullmatch(code) and error.code in ("E0401", "E0105"):
        return []
    binds = BINDS.match(code)
    value = code if binds is None else binds[2].strip()
    computed = COMPUTED.fullmatch(value)
    if computed is not None and (computed[1] in session.arrays or is_filled(computed[1])):
        return []
    may_be_head = error.code == "E0401" or "[" in code
    if may_be_head and HEAD.fullmatch(whole) and _is_head(session, code, whole):
        return ["expected `=` and a program"]
    is_word = not blanks and not code.endswith(CLOSERS)
    if not error.code.startswith(GROWING) or (end if is_word else start) < len(code):
        return None
    if error.code.startswith(UNTOLD) or len(whole) < start:
        return [f"help: {error.help}"] if RANGE.fullmatch(value) else []
    lacks = error.message.partition(" before ")[0].rstrip(",")
    return [lacks, f"help: {error.help}"] if error.help else [lacks]


def _place(span: Span, whole: str) -> tuple[int, int]:
    """The place of a span in a whole line: its source is that, or a part, or that and what follows."""
    source = span.source.text
    at = len(whole) - len(source) if whole.endswith(source) else max(0, whole.find(source))
    return at + span.start, at + span.end


def _is_head(session: ReplSession, code: str, whole: str) -> bool:
    """Whether a text may become the head of a definition: names of inputs, perhaps with their axes."""
    try:
        session.with_texts({"_": f"{whole} = I"})
    except Error as error:
        is_open = error.span is not None and len(code) <= error.span.start
        return error.code not in ("E0407", "E0408") or is_open
    return True

"""The pane under the prompt: what the line that is typed means, or the first mistake in it.

ik*kj~ijk >> +ijk~ij        out[i,j] = Σ_k in0[i,k]·in1[k,j]
(in0[i,k], in1[k,j]) -> [i,j]
ik*kj~ij                    error[E0202]: axis k is missing from the output, ...
ik*kj~ij
^
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ilang.core.diagnostic import Error, ShapeError, plain
from ilang.core.notation.lines import without_comments
from ilang.icli.entries import Entries
from ilang.icli.lines import BINDS, DEFINES
from ilang.icli.session import ReplSession

if TYPE_CHECKING:
    from ilang.core.ir.graph import Graph

LONGEST = 400
"""Code points of a program that is inferred while it is typed."""
MOST_FORMULAS = 3
EXCERPT = re.compile(r" *\d* \| ?(.*)")


def pane(session: ReplSession, text: str) -> list[str]:
    """The lines on a text: formulas and shapes, or an error with its place; none where there is nothing to say."""
    if "\n" in text:  # of several entries the last one is typed
        entries = Entries(session.is_array)
        typed = [*entries.of(text.split("\n")), *entries.rest()]
        text = typed[-1] if typed else ""
    line = without_comments(text).strip()
    if not line or LONGEST < len(line) or line.startswith((":", "?")):
        return []
    try:
        return _meaning(session, line)
    except Error as error:
        return _mistake(session, line, error)
    except Exception:  # whatever it is, the answer to the line will say it
        return []


def _meaning(session: ReplSession, line: str) -> list[str]:
    """The formulas and the shapes of a program, also of one that gets a name."""
    from ilang.icli.calls import Calls, defined_name
    from ilang.icli.definitions import checked_line
    from ilang.icli.programs import defined
    from ilang.icli.values import head_text

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
    if session.calls.read(body, session.arrays, session.is_array) is not None:
        return []
    if session.is_array(body):
        return [head_text(body, session.arrays[body])] if body in session.arrays else []
    if body in session.calls.heads:
        return [checked_line(session.calls.function(body), {}, {})]
    subject, words = session.read(body)
    return _described(session, subject.graph, words)


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
        shapes = tuple(known) if len(known) == len(given) else None
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
    from ilang.icli.literal import looks_literal, parse_literal, split_dtype
    from ilang.icli.shapes import parse_shape

    if word in session.arrays:
        shape: tuple[int, ...] = session.arrays[word].shape
        return shape
    rest = split_dtype(word)[1]
    if rest.startswith("rand:"):
        return parse_shape(rest[len("rand:") :])
    return parse_literal(rest).shape if looks_literal(rest) else None


def _mistake(session: ReplSession, line: str, error: Error) -> list[str]:
    """The first line of an error, and the text with the place of the mistake; or what a definition waits for."""
    from ilang.icli.advice import advised
    from ilang.icli.waiting import is_applied, waiting_definition

    head = DEFINES.match(line) or BINDS.match(line)
    if head is not None and not is_applied(session, line):
        waits = waiting_definition(session, head.group(1), line, error)
        if waits is not None:
            return [waits.says(head.group(1))]
    header, *rest = plain(advised(session, line, error)).split("\n")
    matches = [match[1] for each in rest if (match := EXCERPT.fullmatch(each)) and match[1]]
    return [header, *matches[:2]]

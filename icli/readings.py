"""Readings of a line of the REPL: arrays, a program with its arrays or without, a run of a tensor function.

+ij~i                   a program
+ij~i x    f(g(x), y)   a program and its arrays
net(x; n = 2)           a run
rows x + 1              an expression of arrays (``arithmetic.py``), where a line is none of these
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import DataError, Error
from ilang.core.notation.reader import COMBINATORS
from ilang.core.record import replace
from ilang.core.source import Source
from ilang.icli.calls import RunRequest
from ilang.icli.lines import DECIDED, HEAD, LONGEST, UNREAD, WHERE, split_words
from ilang.icli.python_nodes import expression_of

if TYPE_CHECKING:
    from ilang.codegen.system.npy import Array
    from ilang.icli.programs import Subject
    from ilang.icli.session import ReplSession


def literals(session: ReplSession, text: str, words: Sequence[str]) -> list[Array] | None:
    """The arrays that a text is; None where it is a program or an expression.

    Raises: DataError (it is none of these).
    """
    if not all(map(session.is_array, words)) or any(word[0] in "+-" for word in words[1:]):
        return None
    try:
        return session.values([], words)
    except DataError:
        from ilang.icli.arithmetic import arithmetic

        if arithmetic(session, text) is None:
            raise
        return None


def asked_array(line: str) -> str | None:
    """The array whose shape or element type a line asks for; None where it asks for neither, as ``x + y.dtype``."""
    asked = HEAD.fullmatch(line)
    if asked is None:
        return None
    tree = expression_of(line)
    if asked["array"] and tree is not None and not isinstance(tree, ast.Attribute):
        return None
    return (asked["array"] or asked["other"]).strip()


def head_line(session: ReplSession, text: str) -> str | None:
    """The shape and the element type of one array, or of what an expression gives; None for another text."""
    from ilang.icli.values import head_text

    if text in session.arrays:
        return head_text(text, session.arrays[text])
    is_read = session.is_array(text) or expression_of(text) is not None or text.startswith("(")
    if text.isidentifier() or not is_read:
        return None
    arrays = literals(session, text, [text])
    if arrays is not None:
        return head_text(text, arrays[0])
    reading = reading_of(session, text)
    if isinstance(reading, RunRequest):
        return head_text(text, session.called(reading)[0][0][1])
    subject, arguments = reading
    if arguments is None:
        return None
    return head_text(text, session.apply(subject, arguments)[0][1])


def reading_of(session: ReplSession, line: str) -> RunRequest | tuple[Subject, list[str] | None]:
    """A line as a run of a tensor function, or as a program and its arrays, None where it has none."""
    call = session.calls.read(line, session.arrays, session.is_array)
    if call is not None:
        return call
    try:
        return read(session, line)
    except Error as error:
        call = session.calls.expression(line, session.arrays, error)
        if call is None:
            raise
        return call


def read(session: ReplSession, line: str) -> tuple[Subject, list[str] | None]:
    """A line as a program (None), or as a program and the arrays it is applied to."""
    try:
        return _read(session, line)
    except Error as error:
        if not error.code.startswith(UNREAD) or error.code in DECIDED or LONGEST < len(line):
            raise
        from ilang.icli.arithmetic import arithmetic

        expression = arithmetic(session, line)
        if expression is None:
            raise
        return expression


def _read(session: ReplSession, line: str) -> tuple[Subject, list[str] | None]:
    """A line that is written as files are, but for its arrays."""
    from ilang.icli.applied import applied

    source, module = Source(WHERE, line), session.calls.module
    if "(" in line:
        from ilang.core.notation.files.pieces import named_pieces

        pieces = named_pieces(line, session.names())
        module = replace(module, definitions=(*module.definitions, *pieces.values()))
    application = applied(source, module, session.arrays, session.is_array)
    if application is not None:
        return application
    try:
        return session.program(line), None
    except Error:
        head, words = _split_arrays(line, session.is_array)
        if not words or not head or head.endswith(COMBINATORS):
            raise
        return session.program(head), words


def _split_arrays(line: str, is_array: Callable[[str], bool]) -> tuple[str, list[str]]:
    """A line in two: a program text, and the words at the end that are arrays."""
    words = split_words(line)
    count = 0
    while count < len(words) and is_array(words[-1 - count]):
        count += 1
    head = line
    for word in reversed(words[len(words) - count :]):
        head = head[: head.rindex(word)].rstrip()
    return head, words[len(words) - count :]

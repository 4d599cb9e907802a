"""Arithmetic over arrays in the REPL: ``rows x + 1``, ``2 * softmax(x - mean(x))``, ``net(x) @ w``, ``x[:, 0]``.

An expression means what NumPy means by it, and each part of it what it means as a line of its own.
Expressions become a block of named values, whose steps are programs (``foreign.py``): ``rows(x) * 2`` is
``{ t1 = rows(x); ((I | 2) >> i*.~i)(t1) }``, one component, which is explained, compiled and timed as such.
Tensor functions run at once, and what they give is an array of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.arguments import SUPPORTED
from ilang.core.diagnostic import Error, ShapeError
from ilang.core.dtype import DTYPES
from ilang.core.notation.files.pieces import named_pieces
from ilang.core.notation.index.lookahead import CALLED
from ilang.core.record import replace
from ilang.core.source import Source, Span
from ilang.icli.applied import applied
from ilang.icli.array_functions import (
    Array,
    MismatchError,
    NoExpressionError,
    Shape,
    UnknownNameError,
)
from ilang.icli.calls import RunRequest
from ilang.icli.filled import NUMBER
from ilang.icli.foreign import AppliedProgram, spelled
from ilang.icli.lines import BRACKETS, WHERE, split_words
from ilang.icli.literal import spelled_shape

if TYPE_CHECKING:
    from ilang.icli.programs import Subject
    from ilang.icli.session import ReplSession

QUOTED = r"\"[^\"]*\"|'[^']*'"
NAME = re.compile(rf"{QUOTED}|(?<![\w.])([A-Za-z_]\w*)")
OPERAND = re.compile(r"\s+(?:([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*|\d[\w.]*|(?=[(\[]))")
"""The beginning of an array or a number that stands behind a component."""
PROGRAM = re.compile(r"(?:einsum|elementwise|einx\.\w+)\s*$")
"""The beginning of a program whose parentheses hold its quoted text."""
FORM = re.compile(r"(?<![^\s(,])([^\s(),~\"'=]+~[a-z.]+)(?=\()")
"""A form with its arrays behind it, in an expression: ``+ij~i(x) + 1``."""
BEFORE = re.compile(
    r"(?<![^\s(])[^\s(),=\"']*~[a-z.]+(?=\s+(?:[A-Za-z_(\[\d]|[^\s(),=\"']*~[a-z.]))"
)
"""A form whose arrays stand behind it without parentheses: ``ij-i~ij x (sums x)``, ``+ij~i >ij~ij x``."""
OPENS = re.compile(r"(?:|.*(?:[-+*/@%(,]|~[a-z.]+\)?))", re.DOTALL)
"""A text after which an operand stands, or the arrays of a form."""
TYPED = re.compile(
    rf"(?<![\w.])({'|'.join(DTYPES)})\s*:\s*"
    rf"(?:\[|rand:[\dx]+|(?:true|false|True|False|nan|inf)\b|{NUMBER}|[a-z][\w.]*\()"
)
"""An array with its type, up to its bracket where it has one."""
WHOLE = re.compile(r"(?:[a-z.]|\([^()~]*\)|[-+*/<>^$=!&|@](?! +[-+*/<>])| )*~[a-z.]+")
"""One form, blanks in it."""


def arithmetic(session: ReplSession, text: str) -> tuple[Subject, list[str]] | None:
    """The component that an expression of arrays is, and its arrays; None for another text.

    Raises:
        Error: E0505, E0821 for arrays that do not fit; those of its programs.
    """
    try:
        steps = ProgramsAtHand(session).steps(text)
    except (UnknownNameError, NotReadError):
        return None
    return None if steps is None else _applied(session, steps)


def _applied(
    session: ReplSession, steps: Sequence[AppliedProgram], values: Sequence[str] = ()
) -> tuple[Subject, list[str]]:
    """The component that steps are, and its arrays; some ``values`` are known beside the arrays of the session."""
    module = session.calls.module
    pieces = named_pieces(" ".join(each.program for each in steps), session.names())
    module = replace(module, definitions=(*module.definitions, *pieces.values()))
    names = dict.fromkeys((*session.arrays, *session.held, *values))
    application = applied(Source(WHERE, block_of(steps)), module, names, session.is_array)
    assert application is not None
    return application


def block_of(steps: Sequence[AppliedProgram]) -> str:
    """Steps as a block of named values, one step as an application."""
    parts = [each.application() for each in steps]
    bound = [f"{each.name} = {part}" for each, part in zip(steps, parts, strict=True)]
    return f"{{ {'; '.join((*bound[:-1], parts[-1]))} }}" if 1 < len(parts) else parts[0]


class NotReadError(Exception):
    """A text that is no expression of arrays: ``error`` is to be shown, if it is nothing else."""

    def __init__(self, error: Error) -> None:
        """Build it."""
        super().__init__(error)
        self.error = error


class ProgramsAtHand:
    """The programs that an expression may call: definitions of a session, pieces of ``std``, programs in its text."""

    def __init__(self, session: ReplSession) -> None:
        """For one expression."""
        self.session = session
        self.written: dict[str, str] = {}
        """The programs in the text, and the arrays with their types, by the names that stand for them."""

    def steps(self, text: str) -> list[AppliedProgram] | None:
        """The steps of an expression; None where it is none.

        Raises:
            UnknownNameError: A name among arrays is bound to nothing.
            NotReadError: It is no expression of arrays.
            Error: E0505, E0821; those of its programs.
        """
        whole, text, typed = text, *self._with_typed(text)
        called = CALLED.fullmatch(text.strip())
        is_form = called is not None and WHOLE.fullmatch(called[1])
        text = f"({called[1]}){called[2]}" if called and is_form else FORM.sub(r"(\1)", text)
        named = self._with_names(text if self._is_applied(text) else BEFORE.sub(_grouped, text))
        arrays = {name: _described(name, array) for name, array in self.session.arrays.items()}
        arrays |= typed
        try:
            steps = spelled(with_calls(named, self._is_called), arrays, self)
        except MismatchError as mismatch:
            error = self._told(mismatch, whole)
            is_other = isinstance(mismatch, NoExpressionError)
            raise (NotReadError(error) if is_other else error) from None
        return steps and [replace(each, program=self._text(each.program)) for each in steps]

    def _is_applied(self, text: str) -> bool:
        """Whether a text is one form and names or arrays behind it, which is a line of its own."""
        form = BEFORE.match(text.strip())
        words = [] if form is None else split_words(text.strip()[form.end() :])
        return bool(words) and all(
            self.session.is_array(each) or (each.isidentifier() and not self._is_called(each))
            for each in words
        )

    def _told(self, mismatch: MismatchError, text: str) -> ShapeError:
        """The error for arrays that do not fit, at its words in a text."""
        message, hint = (
            re.sub(r"(?:program|array)_\d+", lambda name: self._text(name[0]), each)
            for each in (mismatch.message, mismatch.hint)
        )
        at = text.find(mismatch.words) if mismatch.words else -1
        span = Span(Source(WHERE, text), at, at + len(mismatch.words)) if 0 <= at else None
        return ShapeError(mismatch.code, message, span, hint)

    def _text(self, program: str) -> str:
        return self.written.get(program, program)

    def _is_called(self, name: str) -> bool:
        return self.is_component(name) or self.runs(name)

    def _with_typed(self, text: str) -> tuple[str, dict[str, Array]]:
        """The text with a name in place of each array with its type, ``i64:[0, 1]``, and these by their names."""
        arrays: dict[str, Array] = {}
        at = 0
        while (typed := TYPED.search(text, at)) is not None:
            opens = text[typed.end() - 1] in "[("
            stop = past_group(text, typed.end() - 1) if opens else typed.end()
            word = "".join(text[typed.start() : stop].split())
            name = f"array_{len(arrays)}"
            while name in self.session.names():
                name += "_"
            shape = spelled_shape(word) or ()
            held = word if shape else self._held(*self.session.values([], [word]))
            arrays[name], self.written[name] = Array(held, shape, typed[1]), word
            text = f"{text[: typed.start()]}{name}{text[stop:]}"
            at = typed.start() + len(name)
        return text, arrays

    def _with_names(self, text: str) -> str:
        """The text with a name in place of each program in parentheses."""
        at = 0
        while (at := text.find("(", at)) >= 0:
            stop = past_group(text, at)
            inner = text[at:stop]
            quoted = PROGRAM.search(text[:at])
            start = quoted.start() if quoted else at
            is_called = text[stop:].lstrip().startswith("(")
            is_program = is_called and (quoted or not re.search(r"[\w.\])]\s*$", text[:at]))
            is_outer = re.search(r"[\w.\])]$", text[:at]) or inner[1:].lstrip().startswith("(")
            if not is_program and ("~" not in inner or '"' in inner or is_outer):
                at += 1
                continue
            name = f"program_{len(self.written)}"
            self.written[name] = text[start:stop] if quoted else inner[1:-1]
            text = f"{text[:start]}{name}{text[stop:]}"
            at = start + len(name)
        return text

    # -- what an expression asks ---------------------------------------------------------------------------------------

    def is_component(self, name: str, count: int | None = None) -> bool:
        """Whether a name is that of a component; one of ``std`` has ``count`` inputs, where that is asked."""
        session = self.session
        if self.runs(name):
            return False
        if name in self.written or name in session.texts:
            return True
        is_piece = name in named_pieces(name, session.names())
        return is_piece and count in (None, len(session.program(name).graph.inputs))

    def runs(self, name: str) -> bool:
        """Whether this is a tensor function or a routine."""
        return name in self.session.calls.heads

    def result(self, program: str, operands: Sequence[Array]) -> tuple[Shape, str]:
        """The shape and the element type of what a program gives. Raises: Error."""
        by_text = {each.text: each for each in operands}
        step = AppliedProgram("", self._text(program), tuple(operands))
        values = [text for text in by_text if text.isidentifier()]
        subject, words = _applied(self.session, [step], values)
        given = [by_text[word] for word in words]
        shapes, dtypes = [each.shape for each in given], [each.dtype for each in given]
        results = subject.component().program.results(shapes, dtypes)
        return results[0][0], SUPPORTED[results[0][1]]

    def run(self, name: str, operands: Sequence[Array], steps: Sequence[AppliedProgram]) -> Array:
        """The result of a tensor function, after some steps. Raises: Error."""
        session = self.session
        words = tuple(self._word(each, steps) for each in operands)
        results, remarks = session.called(RunRequest(session.calls.function(name), words, {}))
        session.remarks += remarks
        (_, array), *_ = results
        return _described(self._held(array), array)

    def places(self, condition: Array, steps: Sequence[AppliedProgram]) -> Array:
        """The places where a condition holds, which is computed at once, after some steps. Raises: Error."""
        (holds,) = self.session.values([], [self._word(condition, steps)])
        places = holds.nonzero()[0]
        return _described(self._held(places), places)

    def may_be_negative(self, integers: Array) -> bool:
        """Whether some of these may be below 0: those of an array that has a name are known."""
        array = self.session.arrays.get(integers.text, self.session.held.get(integers.text))
        return array is None or bool((array < 0).any())

    def _word(self, operand: Array, steps: Sequence[AppliedProgram]) -> str:
        """The word of an array, computed where it is the result of a step."""
        numbers = [n for n, each in enumerate(steps) if each.name == operand.text]
        if not numbers:
            return operand.text
        above = [replace(e, program=self._text(e.program)) for e in steps[: numbers[0] + 1]]
        ((_, array),) = self.session.apply(*_applied(self.session, above))
        return self._held(array)

    def _held(self, array: Any) -> str:
        """The name of an array that is kept for the rest of the line."""
        held = self.session.held
        name = f"held_{len(held)}"
        while name in self.session.names():
            name += "_"
        held[name] = array
        return name


def _grouped(form: re.Match[str]) -> str:
    """A form in parentheses, where a value may stand."""
    before = form.string[: form.start()].rstrip()
    return f"({form[0]})" if OPENS.fullmatch(before) else form[0]


def _described(text: str, array: Any) -> Array:
    """An array of the session, as expressions see it."""
    return Array(text, array.shape, SUPPORTED[array.dtype])


def past_group(text: str, start: int) -> int:
    """Past the bracket that closes the one at a place; the end of the text where none does."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in BRACKETS) - (text[at] in BRACKETS.values())
        if depth == 0:
            return at + 1
    return len(text)


def with_calls(text: str, is_called: Callable[[str], bool]) -> str:
    """A text whose components stand before their arrays in parentheses: ``rows x + 1`` is ``rows(x) + 1``."""
    written, at = "", 0
    while (name := NAME.search(text, at)) is not None:
        written, at = written + text[at : name.end()], name.end()
        if name[1] is None or not is_called(name[1]):
            continue
        arguments = []
        while (end := _past_operand(text, at, is_called)) >= 0:
            arguments.append(with_calls(text[at:end].strip(), is_called))
            at = end
        if arguments:
            written += f"({', '.join(arguments)})"
    return written + text[at:]


def _past_operand(text: str, start: int, is_called: Callable[[str], bool]) -> int:
    """Past the array, number or group that stands behind blanks; -1 where none does."""
    operand = OPERAND.match(text, start)
    if operand is None:
        return -1
    begin, at = operand.end(), operand.end()
    while text[at : at + 1] in ("(", "["):
        at = past_group(text, at)
    is_name = operand[1] is not None
    is_program = is_name and at == begin and is_called(operand[1])
    several = not is_name and 1 < len(split_words(text[begin + 1 : at - 1], ","))
    if several and text[begin] == "(":
        return -1
    while is_program and (end := _past_operand(text, at, is_called)) >= 0:
        begin, at = at, end
    return -1 if is_program and at == operand.end() else at

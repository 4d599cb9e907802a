"""Programs: index expressions, constants and names, wired by combinators.

Precedence as in Python: ``~``, then ``>> <<``, then ``&``, then ``|``; all but ``~`` group to the left. At an operand a
known name directly before ``>>`` or ``<<`` is that name; else the longest ``[op] pattern [op pattern] ~ pattern`` is
an expression; else it is a name. Inside ``i("...")`` there are no names.

One loop with a stack of its own reads everything, so that ten thousand chained expressions need no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from ilang.core import limits
from ilang.core.diagnostic import Error, MeaningError, ModuleError, NotationError
from ilang.core.ir.syntax import Combine, Conversion, Einsum, Identity, Name, Number, Swap, Tree
from ilang.core.notation.index import lookahead
from ilang.core.notation.index.expressions import read_expression
from ilang.core.notation.lines import past_bracket
from ilang.core.notation.reader import (
    BLANKS,
    DEFINITION_HELP,
    DIGITS,
    LATER,
    QUOTED,
    QUOTES,
    TYPES,
    WORD,
    WORD_START,
    Reader,
    brief_number,
    is_head,
    no_program,
    unclosed,
)
from ilang.core.source import Source, Span

Part = TypeVar("Part")
DEEPEST = 200
"""Open parentheses and ``~`` at one place, at most."""

BINDING = {"|": 1, "&": 2, ">>": 3, "<<": 3, "~": 4, "(": 0}
NUMBER = re.compile(r"-?[0-9]*(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
KERNEL_HELP = 'a kernel is quoted: `elementwise("f: x[i,j], y[j] -> x * y")`'
EINX_HELP = 'an operation is called on quoted axes: `einx.sum("a [b]")`'
EINSUM_HELP = 'a specification is quoted: `einsum("ij;jk=>ik")`'
QUOTING = {
    "einsum": ("`(` and a quoted specification", EINSUM_HELP),
    "elementwise": ("`(` and a quoted kernel", KERNEL_HELP),
    "einx": ("`.` and the name of an operation", EINX_HELP),
}
"""The text that is missing after a word that a quoted one follows, and the help."""
PROGRAM_HELP = "an index expression has a `~` and an output: `+ij~i`"
CLOSING_HELP = "write the `)` that is missing"
APPLIED_HELP = "a program that is applied to inputs names them: `f(x) = (+ij~i)(x)`"
INFINITY = float("inf")
OUTPUT = re.compile(r"[\w)\]]\s*~")
"""The ``~`` of an index expression, which stands after an operand; that of a swap stands before one."""


def parse_program(source: Source, names: Container[str] = ()) -> Tree:
    """The tree of a program text; ``names`` are the definitions it may use."""
    return read_program(Reader(source), names)


def read_program(reader: Reader, names: Container[str]) -> Tree:
    """The program that fills a reader; what is refused comes with a spelling that works, where one is known."""
    if not reader.skip():
        raise no_program(reader)
    start = reader.pos
    _check_length(reader)
    try:
        return _Program(reader, names).read()
    except (NotationError, ModuleError) as error:
        from ilang.core.notation.advice import advised

        raise advised(error, reader, start, _parse) from None


def _parse(source: Source) -> Tree:
    """The tree of a text; what is refused comes without other spellings, none of which is asked for another."""
    return _Program(Reader(source), ()).read()


def _check_length(reader: Reader) -> None:
    """Refuse a text of too many index expressions before any is read: each has a ``~`` after an operand.

    Raises:
        MeaningError: E0250.
    """
    if reader.text.count("~", reader.pos, reader.end) <= limits.MOST_LEAVES:
        return
    tildes = OUTPUT.finditer(reader.text, reader.pos, reader.end)
    for count, tilde in enumerate(tildes, 1):
        limits.check_expressions(count, reader.span(tilde.end() - 1, tilde.end()), is_exact=False)


class _Program:
    """The state of one reading: finished trees, and the operators that wait for an operand."""

    def __init__(self, reader: Reader, names: Container[str]) -> None:
        self.reader = reader
        self.names = names
        self.trees: list[Tree] = []
        self.waiting: list[tuple[str, Span]] = []
        self.depth = 0

    def read(self) -> Tree:
        reader = self.reader
        while True:
            self.prefixes()
            self.trees.append(self.operand())
            reader.count(self.trees[-1].span)
            while reader.skip() == ")":
                self.close()
            if not reader.peek():
                return self.finish()
            symbol = reader.combinator(reader.pos)
            if not symbol:
                raise _trailing(reader, self.trees[-1])
            self.reduce(BINDING[symbol])
            span = reader.take(reader.pos + len(symbol), left=True, right=True)
            self.waiting.append((symbol, span))

    def prefixes(self) -> None:
        """Take the ``(`` and ``~`` before an operand."""
        reader = self.reader
        while True:
            c = reader.skip()
            if not (c == "~" or (c == "(" and not lookahead.opens_expression(reader, reader.pos))):
                return
            self.depth += 1
            if self.depth > DEEPEST:
                message = f"more than {DEEPEST} parentheses and `~` are open"
                help_line = "name a part of the program in a file, or group less"
                raise NotationError("E0114", message, reader.here(), help_line)
            self.waiting.append((c, reader.take(reader.pos + 1)))

    def reduce(self, binding: int) -> None:
        """Build the trees of all waiting operators that bind at least as tightly."""
        while self.waiting and BINDING[self.waiting[-1][0]] >= binding:
            symbol, span = self.waiting.pop()
            right = self.trees.pop()
            if symbol == "~":
                self.depth -= 1
                self.trees.append(Swap(right, span.to(right.span)))
            else:
                left = self.trees.pop()
                self.trees.append(Combine(symbol, left, right, left.span.to(right.span)))

    def close(self) -> None:
        """Take a ``)`` after an operand."""
        self.reduce(1)
        if not self.waiting:
            raise _unopened(self.reader)
        self.waiting.pop()
        self.depth -= 1
        self.reader.take(self.reader.pos + 1)

    def finish(self) -> Tree:
        self.reduce(1)
        if self.waiting:
            raise unclosed(self.waiting[-1][1], CLOSING_HELP)
        return self.trees.pop()

    def operand(self) -> Tree:
        """One component."""
        reader = self.reader
        c = reader.peek()
        if c in WORD_START:
            return self.word()
        if c in DIGITS or (c == "-" and reader.peek(1) in DIGITS):
            return self.number()
        if c in QUOTES:
            stop = _closing_quote(reader, reader.pos)
            text = reader.text[reader.pos : stop + 1]
            call = "einsum" if "->" in text and " " not in text else "i"
            shown = text if len(text) < 40 else '"..."'
            help_line = f"write `{call}({shown})`"
            message = f"a quoted program needs `{call}(` before it"
            raise NotationError("E0113", message, reader.span(reader.pos, stop + 1), help_line)
        if c == "" or (c in "|&)" and not reader.operator(reader.pos)):
            raise self.missing()
        return read_expression(reader)

    def missing(self) -> NotationError:
        """No operand where one must stand."""
        reader = self.reader
        if reader.peek() == ")" and not any(symbol == "(" for symbol, _ in self.waiting):
            return _unopened(reader)
        last = self.waiting[-1][0] if self.waiting else ""
        after = f" after `{last}`" if last else ""
        help_line = None
        if last == "|":
            help_line = "a schedule has two bars at least: `+ij~i || i j`"
        elif last == "&" and reader.peek() == "&":
            help_line = "`&&` is an operator; the fanout of two components is `&`"
        elif last == "~":
            help_line = "`~f` exchanges the outputs of a component: `~(<ij~i & >ij~i)`"
        elif last == "(":
            help_line = "parentheses group components: `(I & +ij~i) >> ij/i~ij`"
        elif last:
            help_line = f"write one, `{last} +ij~i`, or leave `{last}` out"
        else:
            help_line = "write one first: `ij*ij~ij >> +ij~i`"
        return reader.unexpected("E0108", f"a component{after}", help_line)

    def number(self) -> Tree:
        """The tree that begins with a digit: a constant, or an expression that begins with a fixed index."""
        if lookahead.matches_form(self.reader):
            return read_expression(self.reader)
        return read_number(self.reader)

    def word(self) -> Tree:
        """A component that begins with a letter: a quotation, an expression or a name."""
        reader = self.reader
        start = reader.pos
        word = reader.word()
        stop = start + len(word)
        after = reader.past(BLANKS, stop)
        wired = reader.at((">>", "<<"), after)
        known = word in TYPES or word in self.names
        if wired and known:
            return named_component(word, reader.take(stop))
        follows = reader.text[after] if after < reader.end else ""
        grouped = follows == "(" and lookahead.is_affine(reader, after)
        quotes = follows == "(" and not (
            lookahead.is_index(reader, after) if word == "i" else grouped
        )
        if word in QUOTED and (follows == "." if word == "einx" else quotes):
            return read_quoted(reader, self.names)
        if lookahead.matches_form(reader) or grouped:
            return self.expression(word)
        if known or word == "I":
            return named_component(word, reader.take(stop))
        operated = follows == "~" or (bool(reader.operator(after)) and not wired)
        if word in LATER and not operated:
            raise no_component_word(word, reader.here())
        alone = follows in ("", "(", ")") or bool(reader.combinator(after))
        if follows == "=" and not operated and is_head(reader.text[:after]):
            reader.pos = after
            help_line = reader.hint() or PROGRAM_HELP
            raise reader.unexpected("E0105", f"an operator or `~` after `{word}`", help_line)
        if word in QUOTING and not operated:
            reader.pos = after
            raise reader.unexpected("E0112", *QUOTING[word])
        if operated or word == "i" or not alone:
            return read_expression(reader)  # which says what is missing
        raise self.unknown(word)

    def expression(self, word: str) -> Tree:
        """An expression; if a definition's name was misspelt before ``>>``, the error says so."""
        reader = self.reader
        start = reader.pos
        try:
            return read_expression(reader)
        except MeaningError as error:
            after = reader.past(BLANKS, reader.past(WORD, start))
            wired = reader.at((">>", "<<"), after)
            if (
                error.code == "E0202"
                and wired
                and len(word) > 2
                and self.close_to(word, self.names)
            ):
                reader.pos = start
                raise self.unknown(word) from None
            raise

    def close_to(self, word: str, names: object) -> str | None:
        """The name most like a word, where names are listed."""
        from ilang.core.suggestion import nearest

        return nearest(word, list(names)) if isinstance(names, Iterable) else None

    def unknown(self, word: str) -> ModuleError:
        """A word that is neither an expression nor the name of a definition."""
        from ilang.core.notation.files.libraries import piece_help
        from ilang.core.notation.guidance import NO_NUMBERS

        close = self.close_to(word, self.names)
        if close is None and len(word) > 2:
            close = self.close_to(word, TYPES)
        piece = None if len(word) < 3 else piece_help(word, bool(self.names))
        if close is not None:
            help_line = f"did you mean `{close}`?"
        elif piece is not None:
            help_line = piece
        elif self._defines():
            help_line = DEFINITION_HELP
        elif word in NO_NUMBERS:
            help_line = f"the number {word} is computed: `{NO_NUMBERS[word]}`"
        elif self.waiting and self.waiting[-1][0] == "|":
            help_line = "a schedule has two bars at least: `+ij~i || i j`"
        else:
            help_line = PROGRAM_HELP
        message = f"there is no definition named `{word}`"
        return ModuleError("E0401", message, self.reader.here(), help_line)

    def _defines(self) -> bool:
        """Whether the text begins like a definition with inputs: ``f(x) =``."""
        head, equals, program = self.reader.text.partition("=")
        return equals != "" and is_head(head) and not program.startswith("=")

    def quotation(self, bracket: int) -> Tree:
        """``i("...")``: the text inside has no names."""
        reader = self.reader
        reader.take(reader.pos + 1)
        help_line = 'it is written `i("+ij~i")`'
        return self.quoted(
            bracket,
            "quoted program",
            help_line,
            lambda text: read_program(reader.part(text.start, text.end, reader.unit), ()),
        )

    def specification(self, bracket: int) -> Tree:
        """``einsum("ij;jk=>ik")``, and the schedule after it, checked where its axes are known."""
        from ilang.core.notation.einsum.specification import parse_spec
        from ilang.core.notation.einsum.subscripts import check_dots

        reader = self.reader
        start = reader.pos
        reader.take_name()
        end = reader.text.find(")", bracket, reader.end)
        bare = reader.text[bracket + 1 : reader.end if end < 0 else end].strip()
        help_line = f'a specification is quoted: `einsum("{bare}")`' if bare[:1].isalpha() else None
        spec = self.quoted(
            bracket,
            "quoted specification",
            help_line or EINSUM_HELP,
            lambda text: parse_spec(reader.source, reader.take(text.end)),
        )
        schedule = None
        if lookahead.opens_schedule(reader, True):
            from ilang.core.notation.index.schedule import parse_schedule

            schedule = parse_schedule(reader, True)
        check_dots(spec)
        return Einsum(spec, schedule, reader.span(start), None)

    def kernel(self, bracket: int) -> Tree:
        """``elementwise("f: x[i,j], y[j] -> x * y")``."""
        from ilang.core.notation.kernel import parse_kernel

        reader = self.reader
        reader.take_name()
        return self.quoted(
            bracket,
            "quoted kernel",
            KERNEL_HELP,
            lambda text: parse_kernel(reader.source, reader.take(text.end)),
        )

    def quoted(self, bracket: int, noun: str, help_line: str, read: Callable[[Span], Part]) -> Part:
        """A text in quotes and parentheses, which ``read`` takes; ``noun`` is what messages call it."""
        reader = self.reader
        reader.pos = bracket
        opened = reader.take(bracket + 1)
        if reader.skip() not in QUOTES:
            raise reader.unexpected("E0112", f"a {noun}", help_line)
        close = _closing_quote(reader, reader.pos)
        reader.take(reader.pos + 1)
        part = read(reader.span(reader.pos, close))
        reader.pos = close
        reader.take(close + 1)
        if reader.skip() != ")":
            if not reader.peek():
                raise unclosed(opened, CLOSING_HELP)
            raise reader.unexpected("E0112", f"`)` after the {noun}", CLOSING_HELP)
        reader.take(reader.pos + 1)
        return part


def named_component(word: str, span: Span) -> Tree:
    """The component that a word is: ``I``, a conversion to a type, or a definition."""
    if word == "I":
        return Identity(span)
    return Conversion(word, span) if word in TYPES else Name(word, span)


def no_component_word(word: str, span: Span) -> NotationError:
    """The error for ``op`` or ``cd`` where a component belongs."""
    kind = "a tensor function" if word == "op" else "a routine"
    message = f"`{word}` defines {kind}, and a component belongs here"
    lines = f"definitions of {kind.removeprefix('a ')}s are lines of a file, or of the REPL"
    help_line = f'{lines}: `i run model.i`, in Python `load("model.i")["f"]`'
    return NotationError("E0115", message, span, help_line)


def _closing_quote(reader: Reader, start: int) -> int:
    """The position of the quote that closes the one at ``start``, on the same line."""
    mark = reader.text[start]
    close = reader.text.find(mark, start + 1, reader.end)
    line = reader.text.find("\n", start, reader.end if close < 0 else close)
    if close < 0 or line >= 0:
        message = f"this quote is not closed by another `{mark}` on its line"
        help_line = (
            f"close it behind the text, or write the other quote inside: `i({mark}+ij~i{mark})`"
        )
        raise NotationError("E0112", message, reader.span(start, start + 1), help_line)
    return close


def read_quoted(reader: Reader, names: Container[str]) -> Tree:
    """``i("...")``, ``einsum("...")``, ``elementwise("...")`` or ``einx.sum("...")`` at the cursor."""
    word = reader.word()
    program, after = _Program(reader, names), reader.past(BLANKS, reader.pos + len(word))
    match word:
        case "einx":
            from ilang.core.notation.einx.call import read_call

            return read_call(reader, names, read_component)
        case "i":
            return program.quotation(after)
        case "elementwise":
            return program.kernel(after)
        case _:
            return program.specification(after)


def read_parenthesis(reader: Reader, definitions: Container[str]) -> Tree:
    """The program in the parentheses at the cursor, which are closed."""
    stop = past_bracket(reader, reader.pos)
    reader.take(reader.pos + 1)
    tree = read_program(reader.part(reader.pos, stop - 1, "parenthesis"), definitions)
    reader.pos = stop - 1
    reader.take(stop)
    return tree


def read_component(
    reader: Reader, definitions: Container[str], unknown: Callable[[str, Span], Error]
) -> Tree:
    """A component that is applied, or an ``op``: a program in parentheses, which are closed, a quoted one, or a name.

    Args:
        reader: at a parenthesis or a word.
        definitions: names that have a meaning.
        unknown: the error for another word.
    """
    if reader.peek() == "(":
        return read_parenthesis(reader, definitions)
    word = reader.word()
    if word in QUOTED:
        return read_quoted(reader, definitions)
    span = reader.take(reader.pos + len(word))
    if word in definitions or word in TYPES or word == "I":
        return named_component(word, span)
    if word in LATER:
        raise no_component_word(word, span)
    raise unknown(word, span)


def read_number(reader: Reader) -> Tree:
    """A decimal constant: ``2``, ``-1``, ``0.125``, ``1e-5``."""
    start = reader.pos
    match = reader.matches(NUMBER, start)
    assert match is not None
    text, stop = match.group(), match.end()
    tail = reader.text[stop : stop + 1] if stop < reader.end else ""
    if tail == "." or text.endswith("."):
        message = f"`{text}.` is not a number" if tail else f"`{text}` is not a number"
        span = reader.span(start, stop + len(tail))
        help_line = "a decimal number is written like 2, 0.5 or 1e-5"
        raise NotationError("E0116", message, span, help_line)
    if tail in WORD_START | {"("}:
        return read_expression(reader)  # which says what is missing
    if abs(float(text)) == INFINITY:
        message = f"the number {brief_number(text)} is too large"
        help_line = "numbers are below 1.8e308, and those of type f32 below 3.4e38"
        raise NotationError("E0116", message, reader.span(start, stop), help_line)
    return Number(text, reader.take(stop))


def _unopened(reader: Reader) -> NotationError:
    help_line = "leave it out, or open it where the group begins: `(I & +ij~i) >> ij/i~ij`"
    return NotationError("E0111", "this parenthesis was never opened", reader.here(), help_line)


def _trailing(reader: Reader, last: Tree) -> NotationError:
    """Something stands after a program, the last component of which is ``last``."""
    help_line = (
        reader.hint() or "components are joined by these: `f >> g` gives the result of f to g"
    )
    before = reader.text[: reader.pos].rstrip(BLANKS)
    if reader.at("(") and (before.endswith(")") or isinstance(last, Name | Conversion | Identity)):
        help_line = APPLIED_HELP
    elif reader.peek() == "~":
        help_line = "an expression has one `~`; the outputs of `f` are exchanged by `~f`"
    elif reader.at("(") and reader.text[reader.pos - 1] not in BLANKS:
        help_line = "an output is letters alone, one per dimension: axes are not merged"
    elif reader.at("->") or reader.at("=>"):
        help_line = "results flow on through `>>`: `+ij~i >> ^i~i`"
    elif reader.at(","):
        help_line = "components side by side are paired by `|`: `(I | 2)`"
    elif reader.operator(reader.pos) and isinstance(last, Identity):
        sign = reader.operator(reader.pos)
        help_line = f"`I` hands a value on; to compute with it twice, `(I & I) >> i{sign}i~i`"
    elif reader.operator(reader.pos):
        help_line = "to compute with results, chain them: `(+ij~i & >ij~i) >> i-i~i`"
    return reader.unexpected("E0109", "`>>`, `<<`, `&` or `|`", help_line)

"""The likely meaning of a line of the REPL that failed: a better diagnostic than the language has, where one is known.

The language knows no arrays by name, so to it ``+ij~i zz`` goes wrong before ``zz``, and ``x*2`` before ``2``.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, DataError, Error, ModuleError, NotationError
from ilang.core.notation.index.lookahead import CALLED
from ilang.core.notation.reader import COMBINATORS, DEFINITION_HELP, RESERVED
from ilang.core.source import Source, Span
from ilang.core.suggestion import nearest
from ilang.icli.array_functions import KNOWN, UnknownNameError
from ilang.icli.arrays import TYPED, not_an_array
from ilang.icli.calls import defined_name
from ilang.icli.filled import call_of, range_of
from ilang.icli.lines import (
    BINDS,
    BRACKETS,
    CALLS,
    DECIDED,
    LONGEST,
    UNREAD,
    WHERE,
    array_in_program,
    function_in_program,
    mismatched_brackets,
    split_words,
)
from ilang.icli.literal import respelled
from ilang.icli.python_nodes import MODULES, expression_of, value_names
from ilang.icli.readings import asked_array, read
from ilang.icli.respelling import as_python, colon_command, tensor_function

if TYPE_CHECKING:
    from ilang.icli.session import ReplSession

STATEMENTS = {
    "import using": "nothing is imported: `np.sum(x)` and `softmax(x)` are there; `use nn` is for networks",
    "from": "nothing is imported: `np.sum(x)` and `softmax(x)` are there; `use nn` is for networks",
    "for while": "loops are written by indices: `+ij~i` sums over j for each i",
    "if elif else": 'elements are chosen by `elementwise("f: c, x, y -> where(c, x, y)")`',
    "def return function lambda": "a tensor function is `op f(x) = x + 1`, a component `f(x[m,n]) = +ij~i`",
    "class with try assert": "`:help` lists what can be typed",
    "del": "`:drop x` forgets a name",
}
"""Words that begin statements of other languages, and what there is for them."""
STATEMENT = re.compile(rf"\s*({'|'.join(STATEMENTS).replace(' ', '|')})\b[ :](?!.*~)")
ELEMENT = re.compile(r"\s*[A-Za-z_]\w*\s*\[[^\]]*\]\s*[-+*/]?=(?![=>~])")
"""An assignment to elements of an array."""
MOVED = ("E0102", "E0109", "E0120", "E0122", "E0401")
"""Errors of what is no part of a program."""
SPLITS = re.compile(r"^[^|]*\|[^|]*:[^|]*$")
"""A program with the splits of a schedule, whose order is left out."""
WIRED = re.compile(r"^(?:\s*(?:>>|<<|&|\|))+\s*|(?:>>|<<|&|\|)\s*(?=>>|<<|&|\||$)")
"""Signs between components that are left where an array stood beside them."""
PROSE = re.compile(r"[A-Za-z]+(?:[\s,.!?']+[A-Za-z]+)+[\s,.!?']*")
"""Words without a sign."""
DEFINED_HELP = (
    "after `name =` stands a program, an array (`[1,2]`, `rand:3`, `x.npy`), or a program and "
    "its arrays; `equal` is written `==`"
)
NO_PROSE = "a line is a program, an array, or a command: `:help` lists what can be typed"
SPACED_OPERATOR = re.compile(r"\w +(?:[-+*/@%]|\*\*|//) +\w")
"""An operator between blanks, as few write it between indices."""
UPDATE = re.compile(r".*\.grad\b.*|.*\bbackprop\(.*|.*\bbackward\(.*")
"""Statements of routines."""
ROUTINE = "a routine has it: `cd step(x, t) { loss = ...; backprop(loss); p =- 0.1 *. p.grad; return loss }`"
SHELL = re.compile(r"\s*(?:!\s*[A-Za-z]\w*(?:\s.*)?|pwd|(?:cd|cat|ls|mkdir)\s+[\w./~-]+)\s*")
"""Commands of a shell."""
DOTTED = re.compile(r"\s*(\w+)\.\s*")
"""A name and a dot, after which nothing stands."""
MOST_NAMES = 8
"""Arrays that a help line lists."""


def advised(session: ReplSession, line: str, error: Error) -> Error:
    """The error to show for a line without comments that gave ``error``."""
    in_function = defined_name(line) is not None
    if in_function or not error.code.startswith(UNREAD) or LONGEST < len(line):
        return error
    for rule in (
        _mismatched,
        _of_head,
        _moved,
        _as_function,
        _as_statement,
        _in_another_language,
        _as_array,
        _of_names,
    ):
        better = rule(session, line, error)
        if better is not None:
            return better
    help_line = _repl_help(line, error)
    return error if help_line is None else error.with_help(help_line)


def _repl_help(line: str, error: Error) -> str | None:
    """The help line of the REPL in place of one of files; None where that is true in the REPL, too."""
    if error.help == DEFINITION_HELP:
        return DEFINED_HELP
    if error.code == "E0105" and PROSE.fullmatch(line.strip()):
        return NO_PROSE
    in_file = ("define it in a line of the file", "an input is named in the parentheses")
    is_unknown = error.code == "E0401" and error.help.startswith(in_file)
    if is_unknown and error.span is not None:
        return f"define it, `{error.span.text()} = +ij~i`; `:help` lists what can be typed"
    return None


def _mismatched(_session: ReplSession, line: str, _error: Error) -> NotationError | None:
    """The error for a bracket that another one closes: ``[1, 2)``."""
    pair = mismatched_brackets(line)
    if pair is None:
        return None
    opens, at = pair
    message = f"the `{line[opens]}` before it is closed by `{line[at]}`"
    wanted = BRACKETS[line[opens]]
    span = Span(Source(WHERE, line), at, at + 1)
    return NotationError("E0110", message, span, f"write `{wanted}` there")


def _of_head(session: ReplSession, line: str, _error: Error) -> CommandError | None:
    """The error for the shape of what is no array."""
    name = asked_array(line) or ""
    if not name.isidentifier() or name in MODULES:
        return None
    return unknown_array(session, line, name, 0)


def _moved(session: ReplSession, line: str, error: Error) -> Error | None:
    """The error for arrays that stand elsewhere than after their program: ``+ij~i x >> ^i~i``, ``+ij~i(x)``, ``x;``."""
    binding, value = _value(line)
    called = CALLED.fullmatch(value.strip())
    words = (
        split_words(value)
        if called is None
        else [called[1], *re.split(r"[\s,]+", called[2].strip("() "))]
    )
    words = [word for each in words if (word := each.strip(";,"))]
    arrays = [word for word in words if session.is_array(word)]
    program = WIRED.sub("", " ".join(word for word in words if not session.is_array(word))).strip()
    written = " ".join((program, *arrays)).strip()
    if SPLITS.search(program):  # a bar would end them, and then an order may follow
        written = " ".join((f"({program.rstrip()} |)", *arrays))
    if not arrays or error.code not in MOVED or written == value.strip():
        return None
    if not program and ("&" in value or "|" in value):
        return None
    try:
        given = bool(program) and read(session, written)[1]
    except Error:
        return None
    if not given and (program or binding):
        return None
    if error.code == "E0401" and error.span is not None and error.span.text() in arrays:
        unwired = array_in_program(error.span)
        unwired.help = f"write `{binding}{written}`"
        return unwired
    message = (
        f"`{value.strip()}` is a program with its arrays, which stand after it without other signs"
    )
    return CommandError("E0821", message, help=f"write `{binding}{written}`")


def _as_array(_session: ReplSession, line: str, _error: Error) -> DataError | None:
    """The error for an array whose call lacks its parentheses, or in other brackets than its own."""
    value = _value(line)[1].strip()
    typed = TYPED.search(value)
    if typed is not None and not value[: typed.start()][-1:].isalnum():
        return not_an_array(value[typed.start() :])
    if call_of(value) is not None:
        return not_an_array(value)
    spelling = respelled(value) if value.startswith(("(", "{")) else None
    if spelling is None:
        return None
    return DataError("E0721", f"`{value}` is not an array", help=f"write `{spelling}`")


def _brief(line: str) -> str:
    """The first line of a text, for messages."""
    return line.strip().partition("\n")[0]


def _value(line: str) -> tuple[str, str]:
    """The names that a line binds, with their ``=``, and the value that it gives."""
    binds = BINDS.match(line)
    return ("", line) if binds is None else (f"{binds[1]} = ", line[binds.start(2) :])


def _in_another_language(session: ReplSession, line: str, error: Error) -> Error | None:
    """The error for an expression of arrays of which one has no name, or for a range as slices write it."""
    from ilang.icli.arithmetic import NotReadError, ProgramsAtHand

    value = _value(line)[1]
    try:
        ProgramsAtHand(session).steps(value)
    except UnknownNameError as unknown:
        return _unknown_in_expression(session, line, value, unknown.args[0], error)
    except NotReadError as unread:
        return unread.error
    except Error:
        return None
    text = value.strip()
    unknown_name = _unknown_operand(session, text, error)
    if unknown_name is not None:
        return unknown_array(session, line, unknown_name, len(line) - len(value))
    ranged = None if error.code == "E0721" else range_of(as_python(text))
    if ranged is None:
        return None
    return DataError("E0721", f"`{text}` is not an array", help=f"write {ranged}")


def _unknown_operand(session: ReplSession, text: str, error: Error) -> str | None:
    """The name in ``q * 2`` or ``q + r`` that is bound to nothing, or None for another text; ``i+j`` are indices."""
    tree = expression_of(as_python(text))
    if not isinstance(tree, ast.BinOp):
        return None
    is_of_number = any(isinstance(each, ast.Constant) for each in ast.walk(tree))
    is_spaced = SPACED_OPERATOR.search(text) is not None
    if not is_spaced and (error.code == "E0104" or not is_of_number):
        return None
    return next((name for name in value_names(tree) if _is_free(session, name)), None)


def _unknown_in_expression(
    session: ReplSession, line: str, value: str, name: str, error: Error
) -> Error | None:
    """The error for a name in an expression, of an array or before parentheses; None where ``error`` says it better."""
    at_name = error.span is None or error.span.text() == name
    if error.code in DECIDED or (error.code == "E0401" and at_name):
        return None
    start = len(line) - len(value)
    called = re.compile(rf"(?<![\w.]){re.escape(name)}\s*\(").search(line, start)
    if called is None:
        return unknown_array(session, line, name, start)
    span = Span(Source(WHERE, line), called.start(), called.start() + len(name))
    guess = nearest(name, sorted({*session.texts, *KNOWN}))
    hint = f"did you mean `{guess}`?" if guess else f"define it: `{name} = +ij~i`"
    if name in session.arrays:
        hint = f"`{name}` is an array: `{name}[0]` is its first element or row"
    return ModuleError("E0401", f"there is no definition named `{name}`", span, hint)


def _of_names(session: ReplSession, line: str, error: Error) -> Error | None:
    """The error for a name that stands where an array belongs, or an array where a component does."""
    value = _value(line)[1]
    name = _missing_operand(session, value)
    if name is not None:
        return unknown_array(session, line, name, len(line) - len(value))
    if error.code != "E0401" or error.span is None:
        return None
    if value.strip().isidentifier():
        return _unknown_name(session, line, value.strip(), error)
    if error.span.text() in session.calls.heads:
        return function_in_program(error.span)
    return array_in_program(error.span) if error.span.text() in session.arrays else None


def _as_statement(session: ReplSession, line: str, _error: Error) -> CommandError | None:
    """The error for a call or a statement of another language, or of a routine."""
    from ilang.icli.colon import COMMANDS

    first = line.split(maxsplit=1)[0]
    if SHELL.fullmatch(line) and first not in session.names():
        message = f"`{_brief(line)}` is a command of a shell"
        return CommandError("E0821", message, help="leave with `:quit`, or use another terminal")
    dotted = DOTTED.fullmatch(line)
    if dotted is not None and dotted[1] in session.names():
        name, is_array = dotted[1], dotted[1] in session.arrays
        hint = f"`{name}.shape`, `{name}.T`, `{name}.sum(0)`; " if is_array else ""
        hint += f"`{name}` alone {'shows' if is_array else 'explains'} it"
        return CommandError("E0821", f"nothing stands after the dot of `{line.strip()}`", help=hint)
    command = colon_command(line)
    if command is None and first in COMMANDS and first not in session.names() and "=" not in line:
        command = f":{line.strip()}"
    if command is not None:
        message = f"`{_brief(line)}` is a call of another language; here a command does it"
        return CommandError("E0821", message, help=f"write `{command}`")
    several = _assignments(line)
    if several:
        lines = ", then ".join(f"`{each}`" for each in several)
        message = f"`{_brief(line)}` gives values to several names"
        return CommandError("E0821", message, help=f"type them one by one: {lines}")
    if ELEMENT.match(line) and line.partition("[")[0].strip() in session.arrays:
        message = f"`{_brief(line)}` changes an element, and arrays are not changed in place"
        hint = (
            _without_change(line)
            or "compute another one: elements by a condition are `where(c, x, y)`"
        )
        return CommandError("E0821", message, help=hint)
    statement = STATEMENT.match(line)
    if statement is None and not UPDATE.fullmatch(line):
        return None
    kind = "of a routine" if statement is None else "of another language"
    message = (
        f"`{_brief(line)}` is a statement {kind}; a line here is a program, or gives a name to one"
    )
    hint = ROUTINE
    if statement is not None:
        hint = next(says for words, says in STATEMENTS.items() if statement[1] in words.split())
    words = line.split()
    hint = f"`:drop {words[1]}`" if words[0] == "del" and len(words) == 2 else hint
    return CommandError("E0821", message, help=hint)


def _assignments(line: str) -> list[str]:
    """The lines that ``a = 1; b = 2``, ``a, b = 1, 2`` and ``a = b = 3`` stand for; none for another line."""
    try:
        statements = [] if "~" in line else ast.parse(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for each in statements:
        match each:
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
                pairs += zip(names, values, strict=True)
            case ast.Assign(targets, value):
                first, *others = targets[::-1]
                pairs += [(first, value), *((name, first) for name in others)]
            case _:
                return []
    named = all(isinstance(name, ast.Name) for name, _ in pairs)
    lines = [f"{ast.unparse(name)} = {ast.unparse(value)}" for name, value in pairs]
    return lines if named and 1 < len(lines) else []


def _without_change(line: str) -> str:
    """The line that computes what ``x[x > 2] = 0`` changes; nothing for other elements."""
    try:
        (statement,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    match statement:
        case ast.Assign([ast.Subscript(ast.Name(name), ast.Compare() as holds)], value):
            chosen = f"{ast.unparse(holds)}, {ast.unparse(value)}, {name}"
            return f"compute another one: `{name} = where({chosen})`"
        case _:
            return ""


def _as_function(session: ReplSession, line: str, _error: Error) -> CommandError | None:
    """The error for a function of another language that is a tensor function here."""
    function = tensor_function(line)
    if function is None:
        return None
    name, text = function
    try:
        session.with_texts({name: text})
    except Error:
        return None
    message = f"`{_brief(line)}` is a function of another language; here it is a tensor function"
    return CommandError("E0821", message, help=f"write `{text}`")


def _missing_operand(session: ReplSession, value: str) -> str | None:
    """The last name after a program that is no array, or None where no program is followed by such a name."""
    call = CALLS.fullmatch(value)
    if call is not None and call.group(1) in session.texts:
        return next((w for w in split_words(call.group(2), ",") if _is_free(session, w)), None)
    words, head, missing = split_words(value), value.rstrip(), None
    while 1 < len(words) and (_is_free(session, words[-1]) or session.is_array(words[-1])):
        word = words.pop()
        missing = word if _is_free(session, word) else missing
        head = head[: head.rindex(word)].rstrip()
    if missing is None or head.endswith(COMBINATORS):
        return None
    try:
        session.program(head)
    except Error:
        return None
    return missing


def _is_free(session: ReplSession, word: str) -> bool:
    """Whether a word could name an array, and names nothing."""
    return word.isidentifier() and word not in session.names() and word not in RESERVED


def unknown_array(session: ReplSession, line: str, name: str, start: int) -> CommandError:
    """The error for a name in a line, after ``start``, that stands where an array belongs."""
    at = line.rfind(name, start)
    kind = "a definition, and an array belongs here" if name in session.texts else ""
    message = f"`{name}` is {kind}" if kind else f"there is no array named `{name}`"
    return CommandError(
        "E0820", message, Span(Source(WHERE, line), at, at + len(name)), _how_to_bind(session, name)
    )


def _unknown_name(session: ReplSession, line: str, name: str, error: Error) -> ModuleError:
    at = line.rindex(name)
    return ModuleError(
        error.code,
        f"there is no array and no definition named `{name}`",
        Span(Source(WHERE, line), at, at + len(name)),
        error.help if _is_spelled(error) else _how_to_bind(session, name),
    )


def _is_spelled(error: Error) -> bool:
    """Whether the help on an unknown name is the program that it means elsewhere: ``softmax``."""
    return "~" in error.help and error.help.startswith("`")


def _how_to_bind(session: ReplSession, name: str) -> str:
    """The name that was meant, or the names there are, and how an array gets one."""
    guess = nearest(name, sorted(session.names()))
    if guess is not None and guess != name:
        return f"did you mean `{guess}`?"
    bound = list(session.arrays)[:MOST_NAMES]
    listed = f"there {'are' if 1 < len(bound) else 'is'} {', '.join(bound)}; " if bound else ""
    free = name if name.isascii() and name.isidentifier() and name not in session.texts else "x"
    return f"{listed}bind one: `{free} = rand:2x3`, `{free} = [[1,2],[3,4]]` or `{free} = file.npy`"

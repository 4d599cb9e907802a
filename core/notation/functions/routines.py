"""The reader of statements: bodies of routines, and of operations with a gradient of their own.

In:  ``"c" =:+ a * b ~logic:"@"; return c``
Out: ``(Assigned(Declared("c"), "+", True, Single("*", (a, b)), Logic("@")), Returned((c,)))``

    statement = target assign right [ ~logic ] [ ~schedule ] | name "=" EXPR | word(...) ...
    assign    = "=" [ ":" ] [ accumulator ], not "=" alone
"""

from __future__ import annotations

from typing import cast, get_args

from ilang.core.diagnostic import Error, NotationError, gathered
from ilang.core.ir import functions as ast
from ilang.core.ir.syntax import Schedule
from ilang.core.notation.functions.quotes import at_label, read_logic, read_schedule
from ilang.core.notation.functions.singles import read_right
from ilang.core.notation.functions.terms import read_binding, read_settings, read_tensor, read_term
from ilang.core.notation.functions.tokens import (
    ASSIGN,
    TAIL,
    WORDS,
    Context,
    closing,
    expect,
    finished,
    lexeme,
    lexeme_at,
    listed,
    refuse_brace,
    sign,
    take,
    unexpected,
    word,
)
from ilang.core.notation.lines import collected, divided, past_bracket, statements
from ilang.core.notation.reader import BLANKS, Reader, unclosed

STATEMENT_HELP = (
    "a statement is an assignment, `c =: a + b`, a binding, `y = f(x)`, a call, `sgd(p; 0.1)`, or one of "
    "`forward(t)`, `backprop(t)`, `for`, `if`, `return`"
)
TENSOR_STATEMENTS: tuple[ast.TensorWord, ...] = get_args(ast.TensorWord)


def read_statements(reader: Reader, context: Context) -> tuple[ast.Statement, ...]:
    """The statements of the block at the cursor.

    Raises:
        NotationError: E0110, E0197, E0199, those of expressions, all of them together.
    """
    context.enter(reader.span(reader.pos, reader.pos + 1))
    parts = statements(reader)
    refused: list[Error] = []
    collected_statements = collected(parts, lambda part: _statement(part, context), refused)
    if refused:
        raise gathered(refused)
    context.leave()
    return tuple(collected_statements)


def _statement(part: Reader, context: Context) -> ast.Statement:
    token = lexeme(part)
    start = part.pos
    follows = lexeme_at(part, token.end)
    if token.text == "~~":
        return _commented(part, context)
    statement: ast.Statement | None = None
    if token.kind == "word" and follows.text == "(":
        statement = _begins_with_call(part, context, token.text)
    elif token.text == "for":
        statement = _for(part, context)
    elif token.text == "return":
        return _returned(part, context)
    if token.text == "if":
        statement = _condition(part, context)
    if statement is not None:
        finished(part, "E0197", usual=STATEMENT_HELP)
        return statement
    if token.text == "else":
        message = "`else` stands without its `if`"
        help_line = "it begins on the line of the brace before it: `} else { ... }`"
        raise NotationError("E0197", message, part.span(start, token.end), help_line)
    if (
        token.kind == "word"
        and follows.text == "="
        and not ASSIGN.match(part.text, part.past(BLANKS, token.end), part.end)
    ):
        return read_binding(part, context)
    return _assigned(part, context)


def _begins_with_call(part: Reader, context: Context, name: str) -> ast.Statement | None:
    """``forward(t)`` and its like, or the call of a routine; None where the call is a target."""
    at = part.past(BLANKS, lexeme(part).end)
    stop = past_bracket(part, at)
    if name in TENSOR_STATEMENTS and (name in WORDS or name not in context.definitions):
        return _of_tensor(part, name)
    if name in WORDS or (stop > 0 and lexeme_at(part, stop).kind != "end"):
        return None
    start = part.pos
    reference = ast.Reference(name, take(part))
    bracket = take(part)
    arguments = listed(part, (")", ";"), lambda: read_term(part, context))
    settings = read_settings(part, context) if sign(part) == ";" else None
    closing(part, ")", bracket, "E0191", "`,`, `;` or `)`" if settings is None else "`,` or `)`")
    return ast.Called(reference, tuple(arguments), settings, part.span(start))


def _of_tensor(part: Reader, name: str) -> ast.Statement:
    """``forward(t)``, ``backprop(t)``, ``zero_grads(t)``."""
    start = part.pos
    take(part)
    tensor = _tensor_in_parentheses(part, name)
    word = next(each for each in TENSOR_STATEMENTS if each == name)
    return ast.TensorStatement(word, tensor, part.span(start))


def _tensor_in_parentheses(part: Reader, name: str) -> ast.Reference:
    """``(t)``."""
    help_line = f"give the tensor a name: `loss = ...`, then `{name}(loss)`"
    bracket = expect(part, "(", f"`(` after `{name}`", "E0197")
    if not word(part):
        raise unexpected(part, "E0197", "the name of a tensor", help_line)
    span = take(part)
    if sign(part) != ")" and lexeme(part).kind != "end":
        raise unexpected(part, "E0197", "`)`", help_line)
    closing(part, ")", bracket, "E0197", "`)`")
    return ast.Reference(span.text(), span)


def _for(part: Reader, context: Context) -> ast.ForEach:
    """``for p in params(t) { ... }``."""
    help_line = "it is written `for p in params(loss) { sgd(p; 0.1) }`"
    start = part.pos
    take(part, right=True)
    if not word(part):
        raise unexpected(part, "E0197", "a name for each parameter", help_line)
    variable = take(part)
    for each in ("in", "params"):
        if lexeme(part).text != each:
            raise unexpected(part, "E0197", f"`{each}`", help_line)
        take(part, left=True, right=each == "in")
    tensor = _tensor_in_parentheses(part, "params")
    refuse_brace(part, help_line)
    inside = read_statements(part, context)
    return ast.ForEach(variable.text(), tensor, inside, variable, part.span(start))


def _condition(part: Reader, context: Context) -> ast.Condition:
    """``if CONDITION { ... } else { ... }``."""
    help_line = "it is written `if momentum > 0 { ... } else { ... }`"
    start = part.pos
    context.enter(take(part, right=True))
    test = read_term(part, context)
    refuse_brace(part, help_line)
    then = read_statements(part, context)
    otherwise: tuple[ast.Statement, ...] = ()
    if lexeme(part).text == "else":
        take(part, left=True)
        if lexeme(part).text == "if":  # `else if`: a condition is the only statement of the branch
            part.skip()
            begins = len(part.trace or ())
            otherwise = (_condition(part, context),)
            _space_before(part, begins)
        else:
            refuse_brace(part, help_line)
            otherwise = read_statements(part, context)
    context.leave()
    return ast.Condition(test, then, otherwise, part.span(start))


def _space_before(part: Reader, number: int) -> None:
    """Have a space before a token that was taken without one."""
    if part.trace is not None:
        start, end, _, right = part.trace[number]
        part.trace[number] = (start, end, True, right)


def _returned(part: Reader, context: Context) -> ast.Returned:
    """``return a, b``."""
    start = part.pos
    take(part, right=True)
    terms = listed(part, (), lambda: _output(part, context))
    finished(part, "E0197", "give it a name above: `y = ...`, then `return y`")
    return ast.Returned(tuple(terms), part.span(start))


def _output(part: Reader, context: Context) -> ast.Term:
    if not word(part):
        raise unexpected(part, "E0197", "the name of a tensor", "it is written `return a, b`")
    return read_tensor(part, context)


def _commented(part: Reader, context: Context) -> ast.Commented:
    """``~~("text" tensor "text"; statements)``."""
    start = part.pos
    take(part)
    help_line = 'a comment is `~~("sum of" a "and b"; c =: a + b)`'
    if sign(part) != "(":
        raise unexpected(part, "E0197", "`(` after `~~`", help_line)
    close = past_bracket(part, part.pos) - 1
    bracket = take(part)
    if close < 0:
        raise unclosed(bracket)
    context.enter(bracket)
    says: list[ast.Text | ast.Reference | ast.Access] = []
    while sign(part) not in (";", ")"):
        token = lexeme(part)
        if token.kind == "string":
            span = take(part, left=bool(says))
            says.append(ast.Text(token.text[1:-1], span))
        elif token.kind == "word":
            begins = len(part.trace or ())
            tensor = read_tensor(part, context)
            if says:
                _space_before(part, begins)
            says.append(cast("ast.Reference | ast.Access", tensor))
        else:
            raise unexpected(part, "E0197", "a string, a tensor, or `;`", help_line)
    found_statements: tuple[ast.Statement, ...] = ()
    if sign(part) == ";":
        take(part, right=True)
        refused: list[Error] = []
        parts = divided(part, close, by_lines=False)
        found_statements = tuple(collected(parts, lambda each: _statement(each, context), refused))
        if refused:
            raise gathered(refused)
    closing(part, ")", bracket, "E0197", "`)`")
    context.leave()
    finished(part, "E0197", help_line)
    return ast.Commented(tuple(says), found_statements, part.span(start))


# -- assignments -----------------------------------------------------------------------------------------------------


def _assigned(part: Reader, context: Context) -> ast.Assigned:
    """``LHS ASSIGN RHS [~logic] [~schedule]``, which fills a reader."""
    start = part.pos
    target = _target(part, context)
    part.skip()
    match = part.matches(ASSIGN)
    if match is None:
        raise _no_assignment(part, target)
    place = part.take(match.end(), left=True, right=True)
    fresh = match.group(1) is not None and match.group(2) is not None
    accumulator = cast("ast.Accumulator | None", match.group(2) or match.group(3))
    end = _before_tail(part)
    inner = part.part(part.pos, end, "statement")
    right = read_right(inner, context)
    part.pos = end
    logic, schedule = read_tail(part)
    finished(part, "E0197", usual=STATEMENT_HELP)
    span = part.span(start)
    return ast.Assigned(target, accumulator, fresh, right, logic, schedule, place, span)


def _no_assignment(part: Reader, target: ast.Term) -> NotationError:
    """The error for a target without an operator of assignment."""
    if isinstance(target, ast.Declared) and sign(part) == "=":
        help_line = f'`"{target.name}" =: ...` assigns; a name is bound without quotes: `{target.name} = ...`'
        return unexpected(part, "E0197", "an operator of assignment", help_line)
    if lexeme(part).kind == "end":
        message = "this statement does nothing"
        return NotationError("E0197", message, target.span, STATEMENT_HELP)
    usual = "a name, `x.grad` or a string is assigned: `c =: f(x)`"
    wanted = "an operator of assignment, such as `=:` or `=+`,"
    return unexpected(part, "E0197", wanted, usual=usual)


def _target(part: Reader, context: Context) -> ast.Reference | ast.Access | ast.Declared:
    """The target of an assignment: a name, ``x.grad``, or a string."""
    token = lexeme(part)
    if token.kind not in ("word", "string") or (token.kind == "word" and token.text in WORDS):
        name = f"`{token.text}(loss)`" if token.text in TENSOR_STATEMENTS else ""
        usual = f"its tensor stands in parentheses: {name}" if name else STATEMENT_HELP
        raise unexpected(part, "E0197", "a statement", usual=usual)
    return read_tensor(part, context)


def _before_tail(part: Reader) -> int:
    """The place where the logic and the schedule at the end of a statement begin."""
    end = part.end
    while True:
        match = TAIL.search(part.text, part.pos, end)
        if match is None or part.text.count('"', part.pos, match.start()) % 2:
            return end
        end = match.start()


def read_tail(part: Reader) -> tuple[ast.Logic | None, Schedule | None]:
    """``[~logic] [~schedule]`` at the cursor."""
    logic = read_logic(part) if at_label(part, "logic") else None
    schedule = read_schedule(part) if at_label(part, "schedule") else None
    if at_label(part, "logic"):
        message = "`~logic` stands a second time" if logic else "`~logic` stands before `~schedule`"
        part.skip()
        raise NotationError("E0197", message, part.span(part.pos, part.end), "write it once, first")
    return logic, schedule

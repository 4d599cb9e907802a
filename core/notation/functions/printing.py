"""Files, tensor functions and routines back to text: ``parse(print(definition))`` is the definition again.

Parentheses stand only where operators ask for them; a definition is one line, its statements divided by ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ilang.core.ir import functions as ast
from ilang.core.ir import syntax
from ilang.core.ir.spec import variable_text
from ilang.core.notation.components.printer import (
    is_called_bare,
    print_anywhere,
    print_definition,
    print_schedule,
    print_tree,
)
from ilang.core.notation.functions import tokens

BRACKETS = {2: ("[ ", "; ", " ]"), 1: ("(", ", ", ")"), 0: ("[| ", "; ", " |]")}
"""The brackets of a literal along an output, an input and a batch axis."""
OPERAND = 10
"""Binds more tightly than every operator."""
Piece = str | tuple[ast.Term, int]
"""A text, or a term that must bind at least so tightly."""


def print_program(program: syntax.Tree | syntax.Module) -> str:
    """A tree, or definitions, one a line."""
    if isinstance(program, syntax.Module):
        names = frozenset(definition.name for definition in program.definitions)
        lines = [print_definition(each, names) for each in program.definitions]
        lines += map(print_function, program.functions_and_routines())
        return "\n".join(lines)
    return print_tree(program)


def print_term(term: ast.Term, *, guarded: bool = False) -> str:
    """The text of an expression; ``guarded``: what has a schedule stands in parentheses."""
    pieces: list[str] = []
    todo: list[Piece] = [(term, 0)]
    while todo:
        piece = todo.pop()
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        node, asked = piece
        closed = _level(node) < asked or (guarded and isinstance(node, ast.ScheduledExpression))
        below = _pieces(node)
        todo += reversed(["(", *below, ")"] if closed else below)
    return "".join(pieces)


def _level(term: ast.Term) -> int:
    match term:
        case ast.Binary():
            return tokens.BINDING[term.operator]
        case ast.EinsumTerm():
            return tokens.BINDING[term.operator()]
        case ast.Unary():
            return tokens.NEGATION if term.operator == "-" else tokens.PREFIX
        case ast.Sliced():
            return tokens.CALL
        case _:
            return OPERAND


def _pieces(term: ast.Term) -> list[Piece]:
    match term:
        case ast.Unary():
            return _unary(term)
        case ast.Binary():
            return _binary(term)
        case ast.EinsumTerm():
            left, *right = term.operands
            sign, level = term.operator(), tokens.BINDING[term.operator()]
            pieces: list[Piece] = [(left, level), f' {sign} "{term.spec.text}"']
            return [*pieces, " ", (right[0], level + 1)] if right else pieces
        case ast.Sliced():
            return [(term.operand, tokens.CALL), " @| ", (term.position, OPERAND)]
        case ast.Called():
            listed = _listed(term.arguments)
            return [_component(term), "(", *listed, *_settings(term.settings), ")"]
        case ast.Listed():
            return ["[", *_listed(term.items), "]"]
        case ast.Declared():
            return _declared(term)
        case ast.ScheduledExpression():
            return ["(", (term.term, 0), ")", _schedule(term.schedule)]
        case ast.Repeated():
            return _repeated(term)
        case _:
            return [_leaf(term)]


def _leaf(term: ast.Term) -> str:
    match term:
        case ast.Reference():
            return term.name
        case ast.Access():
            return f"{print_term(term.tensor)}.{term.part}"
        case ast.Number():
            return term.text
        case ast.Unit():
            return f"'{term.label}' {term.number!r}"
        case ast.Nested():
            return print_nested(term)
        case ast.Text():
            return f'"{term.text}"'
        case _:
            return print_term(term)


def _unary(term: ast.Unary) -> list[Piece]:
    """A prefix; a space keeps it apart from what would make another sign of it."""
    operand = term.operand
    first = operand
    while isinstance(first, ast.Sliced):
        first = first.operand
    number = term.operator.startswith("!") and isinstance(first, ast.Number)
    gate = term.operator == "-" and isinstance(operand, ast.Unary) and operand.operator == "?/"
    gap = " " if number or gate or term.operator == "not" else ""
    return [term.operator + gap, (operand, tokens.POWER if term.operator == "-" else tokens.CALL)]


def _binary(term: ast.Binary) -> list[Piece]:
    level = tokens.BINDING[term.operator]
    sign = f" {term.operator} "
    if level == tokens.POWER:
        right = term.right
        negative = isinstance(right, ast.Unary) and right.operator == "-"
        exponent: list[Piece] = [(right, OPERAND)]
        if negative and isinstance(right, ast.Unary):
            exponent = ["-", (right.operand, OPERAND)]
        return [(term.left, tokens.PREFIX), sign, *exponent]
    return [(term.left, level + (level == tokens.COMPARISON)), sign, (term.right, level + 1)]


def _component(term: ast.Called) -> str:
    """The text of a called component: in parentheses unless it is a word, or in quotes without a schedule."""
    component = term.component
    if isinstance(component, ast.Reference):
        return component.name
    text = print_anywhere(component)
    return text if is_called_bare(component) else f"({text})"


def _listed(terms: Sequence[ast.Term]) -> list[Piece]:
    pieces: list[Piece] = []
    for each in terms:
        pieces += [", ", (each, 0)] if pieces else [(each, 0)]
    return pieces


def _settings(settings: Sequence[ast.Setting] | None) -> list[Piece]:
    """``; 64, momentum = 0.9``; what would read as a name and its value stands in parentheses."""
    if settings is None:
        return []
    pieces: list[Piece] = ["; "]
    for n, each in enumerate(settings):
        pieces.append(", " if n else "")
        text = print_term(each.value)
        if each.name is not None:
            text = f"{each.name} = {text}"
        elif tokens.BINDS.match(text):
            text = f"({text})"
        pieces.append(text)
    return pieces


def _declared(term: ast.Declared) -> list[Piece]:
    """``"b"``, ``"b" 16``, ``"b" (2, hid)``, ``"b" (-0.5)``, ``"b" [ 1; 2 ]``."""
    name = f'"{term.name}"'
    if isinstance(term.initial, ast.Number):
        text = term.initial.text
        return [f"{name} ({text})" if text.startswith("-") else f"{name} {text}"]
    if term.initial is not None:
        return [f"{name} {print_nested(term.initial)}"]
    if term.extents is None:
        return [name]
    bare = len(term.extents) == 1 and isinstance(term.extents[0], ast.Number | ast.Reference)
    return [f"{name} ", *(_listed(term.extents) if bare else ["(", *_listed(term.extents), ")"])]


def print_nested(literal: ast.Nested) -> str:
    """``[ (1, 2); (3, 4) ]``."""
    texts = [_number(number) for number in literal.numbers]
    for row, extent in reversed(literal.levels):
        opens, between, closes = BRACKETS[row]
        rows = [texts[n : n + extent] for n in range(0, len(texts), extent)]
        texts = [f"{opens}{between.join(each)}{closes}" for each in rows]
    return texts[0]


def _number(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else repr(number)


def _repeated(term: ast.Repeated) -> list[Piece]:
    begins = term.carried
    if not (isinstance(term.start, ast.Reference) and term.start.name == term.carried):
        begins += f" = {print_term(term.start)}"
    over = print_term(term.over)
    return [f"repeat({begins}; {term.variable} in {over}) {_block(term.body)}"]


def _schedule(schedule: syntax.Schedule | None) -> str:
    return "" if schedule is None else f' ~schedule:"{print_schedule(schedule)}"'


# -- definitions -----------------------------------------------------------------------------------------------------


def print_function(definition: ast.Function | ast.Routine) -> str:
    """One definition on one line."""
    head = _head(definition.head)
    if isinstance(definition, ast.Routine):
        return f"cd {head} {_statements(definition.statements)}"
    body = definition.body
    if isinstance(body, ast.CustomOperation):
        backward = "" if body.backward is None else f" grad {_statements(body.backward)}"
        return f"op {head} = prim{_logic(body.logic)} {_statements(body.forward)}{backward}"
    if body.bindings:
        return f"op {head} {_block(body)}"
    return f"op {head} = {print_term(body.result)}"


def _head(head: ast.Head) -> str:
    tensors = []
    for each in head.tensors:
        dtype = "" if each.dtype is None else f": {each.dtype}"
        shape = "" if each.shape is None else f"[{print_shape(each.shape)}]"
        tensors.append(f"{each.name}{dtype}{shape}")
    text = ", ".join(tensors)
    if head.configuration is not None:
        values = [
            each.name if each.default is None else f"{each.name} = {print_term(each.default)}"
            for each in head.configuration
        ]
        text += f"; {', '.join(values)}"
    return f"{head.name}({text})"


def print_shape(shape: ast.ShapeNote) -> str:
    """``b|i->o, p``."""
    batch, inner, output = (_row(row) for row in shape.rows)
    return (f"{batch}|" if batch else "") + (f"{inner}->" if inner else "") + output


def _row(row: ast.RowNote) -> str:
    items = [_axis(axis) for axis in row.leading]
    if row.variable is not None:
        items.append(variable_text(row.variable))
    return ", ".join([*items, *(_axis(axis) for axis in row.trailing)])


def _axis(axis: ast.AxisNote) -> str:
    return f"{axis.size}" if axis.label is None else f"'{axis.label}' {axis.size}"


def _block(body: ast.Body) -> str:
    parts = [
        f"{print_term(each.target)} =: {print_term(each.term)}"
        if isinstance(each, ast.StateUpdate)
        else _bound(each)
        for each in body.bindings
    ]
    result = print_term(body.result)
    parts.append(f"({result})" if tokens.BINDS.match(result) else result)
    return f"{{ {'; '.join(parts)} }}"


def _bound(bound: ast.NameBinding) -> str:
    return f"{bound.name or syntax.DISCARD} = {print_term(bound.term)}"


# -- statements ------------------------------------------------------------------------------------------------------


def _statements(statements: Sequence[ast.Statement]) -> str:
    inner = "; ".join(print_statement(each) for each in statements)
    return f"{{ {inner} }}" if inner else "{ }"


def print_statement(statement: ast.Statement) -> str:
    """One statement on one line."""
    match statement:
        case ast.Assigned():
            return _assigned(statement)
        case ast.NameBinding():
            return _bound(statement)
        case ast.TensorStatement():
            return f"{statement.word}({statement.tensor.name})"
        case ast.ForEach():
            head = f"for {statement.variable} in params({statement.tensor.name})"
            return f"{head} {_statements(statement.statements)}"
        case ast.Condition():
            text = f"if {print_term(statement.test)} {_statements(statement.statements)}"
            other = statement.otherwise
            return f"{text} else {_statements(other)}" if other else text
        case ast.Called():
            return print_term(statement)
        case ast.Returned():
            return f"return {', '.join(print_term(each) for each in statement.terms)}"
        case ast.Commented():
            says = " ".join(print_term(each) for each in statement.says)
            inner = "; ".join(print_statement(each) for each in statement.statements)
            return f"~~({says}; {inner})" if inner else f"~~({says})"


def _assigned(statement: ast.Assigned) -> str:
    accumulator = statement.accumulator
    sign = "=:" if accumulator is None else f"={':' if statement.fresh else ''}{accumulator}"
    right = _right(statement.right, guarded=False)
    if tokens.TAIL.search(right):  # a schedule at the end would be that of the assignment
        right = _right(statement.right, guarded=True)
    tail = ("" if statement.logic is None else _logic(statement.logic)) + _schedule(
        statement.schedule
    )
    return f"{print_term(statement.target)} {sign} {right}{tail}"


def _right(right: ast.Single | ast.Term, *, guarded: bool) -> str:
    if not isinstance(right, ast.Single):
        return print_term(right, guarded=guarded)
    operator = right.operator
    if operator is not None and re.fullmatch(r"[a-z]\w*", operator) and operator != "not":
        listed = ", ".join(print_term(each) for each in right.operands)
        return f"{operator}({listed})"
    operands = [_operand(each, guarded) for each in right.operands]
    if operator is None:
        return operands[0]
    if len(operands) == 1:
        return f"{operator} {operands[0]}" if operator == "not" else f"{operator}{operands[0]}"
    return f" {operator} ".join(operands)


def _operand(term: ast.Term, guarded: bool) -> str:
    """An operand of an assignment: in parentheses unless it is a name, a part, a number or a call."""
    text = print_term(term, guarded=guarded)
    bare = isinstance(
        term, ast.Reference | ast.Access | ast.Number | ast.Called | ast.ScheduledExpression
    )
    bare = bare or (isinstance(term, ast.Unary) and term.operator.startswith("!"))
    return text if bare else f"({text})"


def _logic(logic: ast.Logic) -> str:
    return f' ~logic:"{logic.kind if logic.spec is None else logic.spec.text}"'

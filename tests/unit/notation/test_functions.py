"""Texts of tensor functions and routines, and what is read of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.functions import (
    Access,
    Assigned,
    Binary,
    Body,
    Called,
    CustomOperation,
    Declared,
    EinsumTerm,
    NameBinding,
    Nested,
    Number,
    Reference,
    Repeated,
    Single,
    Sliced,
    Statement,
    Term,
    Unary,
    Unit,
)
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.ir.syntax import Conversion
from ilang.core.notation.functions.annotations import read_shape
from ilang.core.notation.functions.environment import NAME_HELP
from ilang.core.source import Source
from tests.unit.notation.refusal import module

OTHERS = """
both = +ij~i & >ij~i
op g(x; hid = 1, hids = 2) = x *. hid
op l(x, y; hid, hids = 2) = x *. y
cd sgd(a; lr = 0.1) { a =- lr }
"""


def term(text: str) -> Term:
    """An expression of a function whose last operands are read besides."""
    body = module(f"op f(x, y, a; n) {{ _ = x + y + a; {text} }}{OTHERS}").functions[0].body
    assert isinstance(body, Body)
    return body.result


def statements(text: str) -> tuple[Statement, ...]:
    return module(f"cd f(a, b; n) {{ {text}; _ = a + b }}{OTHERS}").routines[0].statements[:-1]


def shape(node: object) -> Any:
    """A term as nested tuples: operators and names."""
    match node:
        case Reference(name=name):
            return name
        case Number(value=value):
            return value
        case Unary():
            return (node.operator, shape(node.operand))
        case Binary():
            return (shape(node.left), node.operator, shape(node.right))
        case EinsumTerm():
            return (shape(node.operands[0]), node.operator(), *map(shape, node.operands[1:]))
        case Sliced():
            return (shape(node.operand), "@|", shape(node.position))
        case Called(component=Reference(name=name)):
            return (name, *map(shape, node.arguments))
        case Single():
            return (node.operator, *map(shape, node.operands))
        case Access():
            return (shape(node.tensor), node.part)
        case Declared():
            return (node.name, node.extents and tuple(map(shape, node.extents)), node.initial)
        case _:
            return node


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("x - y - a", (("x", "-", "y"), "-", "a")),
        ("x /. y *. a", (("x", "/.", "y"), "*.", "a")),
        ("x + 1 < y *. 2", (("x", "+", 1), "<", ("y", "*.", 2))),
        ("-x **. 2", ("-", ("x", "**.", 2))),
        ("x **. -1", ("x", "**.", ("-", 1))),
        ("?/ x **. n", (("?/", "x"), "**.", "n")),
        ("not x > 0 && y || a", (((("not", "x"), ">", 0), "&&", "y"), "||", "a")),
        ("x -?/ y", ("x", "-?/", "y")),
        ("x - ?/y", ("x", "-", ("?/", "y"))),
        ("x*-y", ("x", "*", ("-", "y"))),
        ("x *. -y *. a", (("x", "*.", ("-", "y")), "*.", "a")),
        ('x + y ++ "i=>i"', (("x", "+", "y"), "++")),
        ('x *+ "i;i=>i" y *+ "i;i=>i" a', (("x", "*+", "y"), "*+", "a")),
        ("x @| 1 @| n *. y", ((("x", "@|", 1), "@|", "n"), "*.", "y")),
        ("exp(x) @| 0", (("exp", "x"), "@|", 0)),
        ("!..n + x", (("!..", "n"), "+", "x")),
        ("true + x", (1, "+", "x")),
    ],
)
def test_how_operators_bind(text: str, reading: object) -> None:
    assert shape(term(text)) == reading


@pytest.mark.parametrize(
    ("text", "extents", "initial"),
    [
        ('"b"', None, None),
        ('"b" 16', (16,), None),
        ('"b" n', ("n",), None),
        ('"b" (2, n)', (2, "n"), None),
        ('"b" (2 *. n)', ((2, "*.", "n"),), None),
        ('"b" 0.5', None, 0.5),
        ('"b" (-0.5)', None, -0.5),
        ('"b" 1e-3', None, 1e-3),
    ],
)
def test_what_follows_a_parameter(text: str, extents: object, initial: object) -> None:
    declared = term(text)
    assert isinstance(declared, Declared)
    found = None if declared.extents is None else tuple(map(shape, declared.extents))
    assert found == extents
    assert (declared.initial and shape(declared.initial)) == initial


def test_literals() -> None:
    nested = term("[ (1, 2, 3); (4, 5, 6) ]")
    assert isinstance(nested, Nested)
    assert nested.levels == ((2, 2), (1, 3))
    row = term("(1, 2)")
    assert isinstance(row, Nested)
    assert row.levels == ((1, 2),)
    assert shape(term("(1)")) == 1
    unit = term("'q' 2.0")
    assert isinstance(unit, Unit)
    assert (unit.label, unit.number) == ("q", 2.0)


def test_calls() -> None:
    called = term('l(x, y; 64, hids = [64, 32], label = "L1")')
    assert isinstance(called, Called)
    assert called.settings is not None
    assert [each.name for each in called.settings] == [None, "hids", "label"]
    plain = term("g(x)")
    assert isinstance(plain, Called)
    assert plain.settings is None
    made = module(f"op f(x) {{ h = g(; 64); h(h(x)) }}{OTHERS}").functions[0].body
    assert isinstance(made, Body)
    assert isinstance(made.bindings[0].term, Called)
    assert made.bindings[0].term.arguments == ()
    program = term("(+ij~i >> -i~i)(x)")
    assert isinstance(program, Called)
    assert not isinstance(program.component, Reference)
    converted = term("f64(x)")
    assert isinstance(converted, Called)
    assert isinstance(converted.component, Conversion)
    for text in ('einsum("ij => ji")(x)', 'einx.sum("a [b]")(x)', 'i("+ij~i")(x)'):
        assert isinstance(term(text), Called)


def test_repeat() -> None:
    repeated = term("repeat(x; h in [64, 32]) { m = x *. 2; m + h }")
    assert isinstance(repeated, Repeated)
    assert (repeated.carried, repeated.variable) == ("x", "h")
    (bound,) = repeated.body.bindings
    assert isinstance(bound, NameBinding)
    assert bound.name == "m"
    other = term("repeat(z = x + y; k in 12) { z *. 2 }")
    assert isinstance(other, Repeated)
    assert shape(other.start) == ("x", "+", "y")


@pytest.mark.parametrize(
    ("text", "accumulator", "fresh", "right"),
    [
        ('"c" =: a', None, False, (None, "a")),
        ('"c" =:+ a * b ~logic:"@"', "+", True, ("*", "a", "b")),
        ("a =- b", "-", False, (None, "b")),
        ("a =-b", "-", False, (None, "b")),
        ('"c" =: - a ~logic:"T"', None, False, ("-", "a")),
        ('"c" =:- a', "-", True, (None, "a")),
        ('"c" =:@^ max(a, b)', "@^", True, ("max", "a", "b")),
        ('"c" =: a + b *. 2', None, False, ("a", "+", ("b", "*.", 2))),
        ('"c" =: a + (b *. 2)', None, False, ("+", "a", ("b", "*.", 2))),
        ('"c" =: a ** -1', None, False, ("**", "a", ("-", 1))),
        (
            '"c" =: a.value -?/ b.grad.merge',
            None,
            False,
            ("-?/", ("a", "value"), ("b", "grad.merge")),
        ),
        ('"c" =?/ g(a)', "?/", False, (None, ("g", "a"))),
    ],
)
def test_assignments(text: str, accumulator: str, fresh: bool, right: object) -> None:
    (statement,) = statements(text)
    assert isinstance(statement, Assigned)
    assert (statement.accumulator, statement.fresh) == (accumulator, fresh)
    assert shape(statement.right) == right


def test_statements_of_each_kind() -> None:
    text = """
      y = "w" * a   # bound
      forward(y); backprop(y)
      zero_grads(y)
      for p in params(y) { p =- 0.1 *. p.grad }
      if n > 1 { sgd(a; lr = 0.1) } else if n > 0 { sgd(b) } else { "d" =: a *+ "i;i=>i"
        y }
      ~~("sum of" a "and b"; "e" =: a + b; "h" =: e)
      return y, y.grad
    """
    found = [
        getattr(each, "word", type(each).__name__)
        for each in module(f"cd f(a, b; n) {{ {text} }}{OTHERS}").routines[0].statements
    ]
    assert found == [
        *("NameBinding", "forward", "backprop", "zero_grads"),
        *("ForEach", "Condition", "Commented", "Returned"),
    ]


def test_schedules_belong_to_the_statement_or_to_a_parenthesis() -> None:
    (one,) = statements('"c" =: (a + b) ~logic:"." ~schedule:"| i:8 | i i\'"')
    assert isinstance(one, Assigned)
    assert one.schedule is not None
    assert one.logic is not None
    (other,) = statements('"c" =: (a + b) ~schedule:"| i:8 | i i\'" + a')
    assert isinstance(other, Assigned)
    assert other.schedule is None


def test_primitives_name_their_slots_in_one_way() -> None:
    text = 'op s(x) = prim ~logic:"." { lhs =: t1 * rhs1 } grad { g1 =+ g * t }'
    body = module(text).functions[0].body
    assert isinstance(body, CustomOperation)
    (forward,) = body.forward
    assert isinstance(forward, Assigned)
    assert (shape(forward.target), shape(forward.right)) == ("v", ("*", "v1", "v1"))


def test_a_text_string_is_one_where_a_primitive_takes_one() -> None:
    called = term('einmax("b|i => b|0", x)')
    assert isinstance(called, Called)
    assert type(called.arguments[0]).__name__ == "Text"
    hidden = module('op einmax(a, b) = a + b\nop f(x) = einmax("w", x)').functions[1].body
    assert isinstance(hidden, Body)
    assert isinstance(hidden.result, Called)
    assert isinstance(hidden.result.arguments[0], Declared)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("64|784", ([64], [], [784])),
        ("b|i->o, p", (["b"], ["i"], ["o", "p"])),
        ("bt|10", (["b", "t"], [], [10])),
        ("5|3,4", ([5], [], [3, 4])),
        ("", ([], [], [])),
        ("'rgb' 3", ([], [], [3])),
        ("b3c", ([], [], ["b", 3, "c"])),
    ],
)
def test_shapes(text: str, rows: object) -> None:
    note = read_shape(Source("<shape>", text))
    assert tuple([axis.size for axis in row.trailing] for row in note.rows) == rows


def test_row_variables() -> None:
    note = read_shape(Source("<shape>", "..v..|...->x, ..., y"))
    assert [row.variable for row in note.rows] == ["v", "...input", "...output"]
    assert len(note.rows[2].leading) == len(note.rows[2].trailing) == 1


def test_a_brace_ends_a_statement() -> None:
    """One of `for` or `if`, before whatever follows on its line; with a `;` or a line it is the same."""
    body = (
        "for p in params(x) { sgd(p; 0.1) }; "
        'if k > 0 { "d" =: x } else { "e" =: x }; if k > 1 { "d" =: x }; return x'
    )
    texts = (body, body.replace("};", "}"), body.replace("};", "}\n"), body.replace("}; ", "}"))
    for text in texts:
        read = module(f"{OTHERS}cd f(x; k) {{ {text} }}\n").routines[1].statements
        assert [type(each).__name__ for each in read] == [
            "ForEach",
            "Condition",
            "Condition",
            "Returned",
        ]


def test_definitions_of_each_kind_stand_together() -> None:
    text = """
# a file
share = (I & +ij~i) >> ij/i~ij
op half(x: f32[b|n]; by = 2) {
  m = x ++ "...|... => 0"   # summed
  x -. m /.
    by
}
cd run(x) { return x }
op f(x) = half(x; 3) +
  share(x)
"""
    found = module(text)
    assert [each.name for each in found.definitions] == ["share"]
    assert [each.head.name for each in found.functions] == ["half", "f"]
    assert [each.head.name for each in found.routines] == ["run"]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("op f(x) = x *.5", "E0193", 1, 13),
        ("op f(x) = x **.2", "E0193", 1, 13),
        ("op f(x) = 2 * x", "E0192", 1, 13),
        ("op f(x) = x / (-2)", "E0192", 1, 13),
        ("op f(x) = 0 < x < 1", "E0194", 1, 17),
        ("op f(x) = x **. 2 **. 2", "E0194", 1, 19),
        ("op f(x) = x.grad", "E0198", 1, 11),
        ("op f(x) = x.T", "E0198", 1, 12),
        ("op f(x) = x @ x.T", "E0191", 1, 13),
        ("op f(x) = x ^ 2", "E0191", 1, 13),
        ("op f(x) = x ** 2", "E0191", 1, 13),
        ("op f(x) = x +", "E0191", 1, 14),
        ("op f(x) = f(x", "E0110", 1, 12),
        ("op f(x) = (x, y)", "E0191", 1, 13),
        ("op f(x) = x + 2.", "E0116", 1, 15),
        ("op f(x) = x + 2x", "E0116", 1, 15),
        ('op f(x) = "w', "E0112", 1, 11),
        ("op f(x) = {x}", "E0190", 1, 11),
        ("op f = x", "E0190", 1, 6),
        ("op f(x, x) = x", "E0408", 1, 9),
        ("op f(x: f16) = x", "E0412", 1, 9),
        ("op i(x) = x", "E0404", 1, 4),
        ("op f(x) { m = x }", "E0132", 1, 17),
        ("op f(x) { x; x }", "E0132", 1, 11),
        ("op f(x[b|c|d]) = x", "E0195", 1, 11),
        ('op f(x) = "b" (2.5, 3)', "E0196", 1, 16),
        ('op f(x) = x ++ "i=>j|k|l"', "E0142", 1, 23),
        ("cd f(x) = x", "E0190", 1, 9),
        ("cd f(x) { x }", "E0197", 1, 11),
        ('cd f(x) { "c" = x }', "E0197", 1, 15),
        ("cd f(x) { y = x\nelse { return y } }", "E0197", 2, 1),
        ('cd f(x) { "c" =: x ** 2 + 1 }', "E0199", 1, 20),
        ("op f(x) = " + "(" * 300 + "x" + ")" * 300, "E0114", 1, 111),
        ("op f(x) = x\ng = f >> f", "E0440", 2, 5),
        ("op f(x) = x + ij~i", "E0191", 1, 17),
        ("op f(x) = x + +ij~i", "E0191", 1, 15),
        ("op f(x) = x + z", "E0401", 1, 15),
        ("op f(x) = epx(x)", "E0401", 1, 11),
        ("op f(x, y) = x", "E0422", 1, 9),
        ("op f(x) { m = x; x }", "E0422", 1, 11),
        ("op f(x) { m = x; m = x; m }", "E0423", 1, 18),
        ("op f(x) { x = x; x }", "E0423", 1, 11),
        ("g = +ij~i\nop f(g) = g", "E0423", 2, 6),
        ('op f(x) = x + "x"', "E0423", 1, 15),
        ('op f(x) = x + "in"', "E0404", 1, 15),
        ("op f(value) = value", "E0404", 1, 6),
        ("op f(x) { y = z; z = x; y + z }", "E0424", 1, 15),
        ("op f(x) = x(x)", "E0425", 1, 11),
        ("g = +ij~i\nop f(x) = x + g", "E0426", 2, 15),
        ("op f(x) = f(x)", "E0403", 1, 4),
        ("cd up(p) { p =+ 1 }\nop f(x) = up(x)", "E0440", 2, 11),
        ("op f(x) = x\ncd r(p) { f(p) }", "E0440", 2, 11),
        ("op f(x) = exp(x, x)", "E0420", 1, 11),
        ("g = i+j~ij\nop f(x) = g(x)", "E0420", 2, 11),
        ('op f(x, y) = x *+ "ij=>ji" y', "E0442", 1, 20),
        ("g = (I & I)\nop f(x) = g(x) + x", "E0443", 2, 11),
        ("op g(x; n) = x *. n\nop f(x) = g(x)", "E0444", 2, 11),
        ("op g(x; n) = x *. n\nop f(x) = g(x; m = 2)", "E0444", 2, 16),
        ("op f(x; n) = n * x", "E0192", 1, 16),
        ('op f(x) = x + "b" x', "E0445", 1, 19),
        ("op f(x) = repeat(x; n in x) { x *. n }", "E0445", 1, 26),
        ('cd f(x) { "c" =: x; if c > 0 { c =+ 1 } }', "E0445", 1, 24),
        ('cd f(x) { "c" =: x * x }', "E0446", 1, 18),
        ('cd f(x) { "c" =: x ~logic:"ij=>i" }', "E0447", 1, 15),
        ('cd f(x) { return x; "c" =: x }', "E0448", 1, 11),
        ('op f(x) = x + "a b"', "E0449", 1, 15),
        ("cd f(x) { d =: x }", "E0401", 1, 11),
        ("cd f(x; n) { if n > 0 { y = x } else { y = x }; y = x; return y }", "E0423", 1, 49),
        ('op f(x) = prim ~logic:"." { v =: x * v1 }', "E0401", 1, 34),
    ],
)
def test_refusals(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(Error) as caught:
        module(text)
    error = caught.value
    assert error.span is not None
    assert (error.code, error.span.line_number(), error.span.column()) == (code, line, column)


@pytest.mark.parametrize(
    ("text", "help_line"),
    [
        ("op f(x) = x ** 2", "the pointwise power is `**.`: `x **. 2`"),
        ("op f(x) = x == 1", "`equal` is written `=`"),
        ("op f(x) = x // 2", "a quotient is `/.`"),
        ("op f(x) = x > 1 and x < 2", "`and` is written `&&`"),
        ("op f(x) = if x", "a choice by element is `where(test, a, b)`"),
        ("op f(x) = 'w' * x", 'a parameter stands in double quotes: `"w"`'),
        ("op f(x) = x @| -1", "positions count from 0: `x @| 0` is the first"),
        ("op f(grad) = grad", "another name will do, such as `grad_`"),
        ("op f(x) = (x", "close it with `)`"),
        ("op g(x; n = 1) = x *. n\nop f(x) = g(x, 2)", "configuration follows a `;`: `(x; 2)`"),
        ("op g(x; n) = x *. n\nop f(x; m) = g(x, m)", "configuration follows a `;`: `(x; m)`"),
        ("op f(x) = softmax(x)", "`use nn` has `softmax`"),
        ("import std", "`use std` makes the definitions of a library known"),
        ("from nn import linear", "`use nn` makes the definitions of a library known"),
        ("op f(x) = linnear(x; 3)", "did you mean `linear`, of `nn`?"),
        ("use nn\nop f(x) = gelu(x)", "`use std` has `gelu`"),
        ("def f(x):", "a tensor function is `op f(x) = x + 1`, a routine `cd step(x) { ... }`"),
        ("op f(x) = x >> tanh", "a call takes the result of another: `tanh(linear(x; 16))`"),
        (
            "op f(x) = x[0]",
            'a position of an axis is `x ++ "b|0 => b|"`, of the first batch axis `x @| 0`',
        ),
        ("op f(x) = x .* 2", "the pointwise product is `*.`: `x *. 2`"),
        (
            "op f(x) = np.stack(x)",
            '`einx.id("b n, b n -> b (1 + 1) n")(x, y)` puts x and y side by side',
        ),
        (
            "op f(x) = x.reshape(2, 3)",
            '`einx.id("b (h w) -> b h w", h=2)(x)` makes two axes of one',
        ),
        ("op f(x) = nn.Linear(3, 4)(x)", "`use nn` has `linear(x; 4)`, with 4 outputs"),
        ("op f(x) = 2x", "a product is written `2 *. x`"),
        ("op f(x) = -x * 2", "write `*.`: `-x *. 2`"),
        ("op f(x) = torch.relu(x)", "its tensor stands in parentheses: `relu(x)`"),
        ("op f(x) = nn.linear(x; 3)", "its tensor stands in parentheses: `linear(x)`"),
        (
            "op f(x) = (x + 1).sum()",
            "`sum(x)` is the sum of all elements, `sum(x; -1)` that along the last axis",
        ),
        (
            "cd f(x) { x.backward() }",
            "`backprop(loss)` computes the gradients of a loss, in a routine",
        ),
        ("cd f(x) { x.foo() }", "the parts are `.value`, `.grad`, `.merge` and `.grad.merge`"),
        ("cd f(x) { backprop x }", "its tensor stands in parentheses: `backprop(loss)`"),
        (
            "use nn\nop f(x) = dropout(x; 0.5)",
            "a call gives a tensor to every input, in order: x, step",
        ),
        ('cd f(x) { "c" += x }', "`c =+ x` adds, in a routine"),
        (
            "cd f(p; lr) { p =- lr * p.grad }",
            '`lr *. p.grad` goes element by element, `~logic:"@"` behind the operands contracts',
        ),
        ("cd f(p; lr) { p =- p.grad / lr }", "`p.grad /. lr` goes element by element"),
        (
            "cd f(p) { p = p - p.grad }",
            f"{NAME_HELP}; in a routine `p =: ...` sets it, `p =- ...` subtracts",
        ),
        ("cd f(x) { f(x) =: x }", "a name, `x.grad` or a string is assigned: `c =: f(x)`"),
    ],
)
def test_help_with_what_other_languages_write(text: str, help_line: str) -> None:
    with pytest.raises(Error) as caught:
        module(text)
    assert caught.value.help == help_line


def test_mistakes_are_told_together() -> None:
    with pytest.raises(Error) as caught:
        module("op f(x) {\n  a = 2 * x\n  b = x *.5\n  a +\n}\ncd g(x) {\n  x\n  =: 2\n}")
    error = caught.value
    codes = [error.code, *(each.code for each in error.others)]
    assert codes == ["E0192", "E0193", "E0191", "E0197", "E0197"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("cd step(x):\n  y = x + 1\n  for p in params:\n    p -= y\n  return y", ["E0190"]),
        ("def f(x):\n    y = x @ x\n    return y", ["E0406"]),
        ("op f(x) =\n  a = 2 * x\n  a + x\nop g(x) = +", ["E0192", "E0191"]),
        ("a = +ij~i\n  b = \nc = +ij", ["E0108", "E0104"]),
    ],
)
def test_a_body_in_another_notation_is_one_mistake(text: str, codes: list[str]) -> None:
    with pytest.raises(Error) as caught:
        module(text)
    assert [caught.value.code, *(each.code for each in caught.value.others)] == codes


def test_long_chains_need_no_recursion() -> None:
    assert isinstance(term(" + ".join(["x"] * 20_000)), Binary)


def test_the_page_lists_the_primitives() -> None:
    page = (Path(__file__).parents[3] / "docs" / "functions.md").read_text("utf-8")
    listed = re.search(r"^- Primitives: `([^`]+)`", page, re.MULTILINE)
    assert listed
    assert set(listed[1].split()) == set(PRIMITIVES)

"""Bodies over names: how applications and blocks are read, and every refusal with its places."""

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.syntax import Application, Block, Expression, Name, Number, Value
from ilang.core.notation.components.printer import print_definition
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source
from tests.unit.notation.refusal import check_error, module

DEFINITIONS = """\
two = >ij~i & <ij~i
total = +ij~i
less = i-i~i
half = 0.5
"""


def printed(text: str) -> str:
    """The last of some definitions, after those above, as it is printed."""
    return print_definition(module(DEFINITIONS + text).definitions[-1])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f(x) = total(x)", "f(x) = total(x)"),
        ("f(x) = (total)( x )", "f(x) = total(x)"),
        ("f(x) = less(two(x))", "f(x) = less(two(x))"),
        ("f(x) = (ij * .~ij)(x,-2)", "f(x) = (ij*.~ij)(x, -2)"),
        ("f(x) = (ij*.~ij)(x, half)", "f(x) = (ij*.~ij)(x, half)"),
        ("f(x) = i('ij~ji')(x)", "f(x) = (ij~ji)(x)"),
        ('f(x) = einsum("ij => ji")(x)', 'f(x) = einsum("ij => ji")(x)'),
        ('f(x) = (einsum("ij => ji") ||)(x)', 'f(x) = (einsum("ij => ji") ||)(x)'),
        ("f(x) = f64(I(x))", "f(x) = f64(I(x))"),
        ("f(x) = (~two)(x)", "f(x) = (~two)(x)"),
        ("f() = (half | 2)()", "f() = (half | 2)()"),
        ("f = (i-i~i)(2, 3)", "f = (i-i~i)(2, 3)"),
        ("f(x) = (2i+k)(k+1)~ik", "f(x) = (2i+k)(k+1)~ik"),
        ("f(x, total_) = less(\n  total(x),\n  total_)", "f(x, total_) = less(total(x), total_)"),
        ("f(x) = {a=total(x)\n a}", "f(x) = { a = total(x); a }"),
        ("f(x) = {a=total(x);;;a;}", "f(x) = { a = total(x); a }"),
        (
            "f(x) = {\n  a,\n  _ =\n  two(\nx)  # why; {\n\n  a, half,\n  total(x)\n}",
            "f(x) = { a, _ = two(x); a, half, total(x) }",
        ),
        ("f(x) = {\r\n  a = total(x)\r\n  a\r\n}", "f(x) = { a = total(x); a }"),
    ],
)
def test_reads(text: str, wanted: str) -> None:
    assert printed(text) == wanted
    assert printed(wanted) == wanted


def test_a_tree_has_places() -> None:
    body = (
        module(DEFINITIONS + "f(x) = { a = total(x); less(a, total(x)), 2 }").definitions[-1].body
    )
    assert isinstance(body, Block)
    (binding,) = body.bindings
    assert [target.span.text() for target in binding.targets] == ["a"]
    assert binding.span.text() == "a = total(x)"
    first, second = body.outputs
    assert isinstance(first, Application)
    assert first.span.text() == "less(a, total(x))"
    assert isinstance(first.component, Name)
    assert [type(argument) for argument in first.arguments] == [Value, Application]
    assert isinstance(second, Number)
    assert body.span.text() == "{ a = total(x); less(a, total(x)), 2 }"


@pytest.mark.parametrize("text", ["f(x) = ij(2)*ij~ij", "f(x, y) = ij(2y+u)*u~ijyu"])
def test_an_index_expression_stays_one(text: str) -> None:
    assert isinstance(module(f"ij = +ab~a\n{text}").definitions[-1].body, Expression)


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("f(x) = total(x", "E0110", 1, 13),
        ("f(x) = total(x,)", "E0130", 1, 16),
        ("f(x) = less(total(x)", "E0110", 1, 12),
        ("f(x) = total(x + 2)", "E0130", 1, 16),
        ("f(x) = total(ij~i)", "E0130", 1, 14),
        ("f(x) = less(total(x) >> less)", "E0130", 1, 22),
        ("f(x) = { total(x), }", "E0130", 1, 19),
        ("f(x) = { a = x; a }", "E0131", 1, 14),
        ("f(x) = { a = 2; total(x), a }", "E0131", 1, 14),
        ("f(x) = { a = total; total(x), a }", "E0131", 1, 14),
        ("f(x) = { a = ; total(x) }", "E0131", 1, 13),
        ("f(x) = {}", "E0132", 1, 9),
        ("f(x) = { a = total(x) }", "E0132", 1, 23),
        ("f(x) = { total(x); total(x) }", "E0132", 1, 10),
        ("f(x) = { a = total(x)", "E0110", 1, 8),
        ("f(x) = total(x) >> less", "E0109", 1, 17),
        ("f(x) = { total(x) } >> less", "E0109", 1, 21),
        ("f(x) = { a = total(x) b\n a }", "E0109", 1, 23),
        ("f(x) = total >> less(x, x)", "E0109", 1, 21),
        ("f(x) = { x } }", "E0109", 1, 14),
        ("f(x) = { { x } }", "E0130", 1, 10),
        ("f(x) = totl(x)", "E0401", 1, 8),
        ("f(x) = total(y)", "E0401", 1, 14),
        ("f(x) = x", "E0401", 1, 8),
        ("f(x) = -i~i >> x", "E0401", 1, 16),
        ("f(x) = { f64 = total(x); f64 }", "E0404", 1, 10),
        ("f(x) = op(x)", "E0115", 1, 8),
        ("f(x, y) = total(x, y)", "E0420", 1, 11),
        ("f(x) = less(x, two(x))", "E0420", 1, 8),
        ("f(x) = less(x)", "E0420", 1, 8),
        ("f(x) = { a, b = total(x); a, b }", "E0421", 1, 10),
        ("f(x) = { a = two(x); a }", "E0421", 1, 10),
        ("f(x, y) = total(x)", "E0422", 1, 6),
        ("f(x) = { a = total(x); x }", "E0422", 1, 10),
        ("f(x) = { a = total(x); a = total(x); a }", "E0423", 1, 24),
        ("f(x) = { x = total(x); x }", "E0423", 1, 10),
        ("f(x) = { half = total(x); x }", "E0423", 1, 10),
        ("f(half) = total(half)", "E0423", 1, 3),
        ("f(x) = { a = total(b); b = total(x); a }", "E0424", 1, 20),
        ("f(x) = { a = total(a); a, x }", "E0424", 1, 20),
        ("f(x, y) = x(y)", "E0425", 1, 11),
        ("f(x) = less(total, total(x))", "E0426", 1, 13),
        ("f(x) = { x, total }", "E0426", 1, 13),
        ("f(x) = { a = f(x); a }", "E0403", 1, 1),
    ],
)
def test_refusals(text: str, code: str, line: int, column: int) -> None:
    error = check_error(DEFINITIONS + text, code, line + 4, column, file=True)
    assert error.help
    assert code not in ("E0421", "E0422", "E0423", "E0424", "E0425") or 1 < len(error.labels)


@pytest.mark.parametrize(
    "text",
    [
        "f(p) = { s = total(+ij~i(p)); s }",
        "f(p) = { +ij~i(p) }",
        "f(p) = { s = +ij~i (p); s }",
        "op f(p) { s = +ij~i(p); s }",
        "op f(p) = abs(+ij~i(p) )",
    ],
)
def test_a_form_that_is_called_is_written_in_parentheses(text: str) -> None:
    with pytest.raises(Error) as caught:
        parse_module(Source("f.i", DEFINITIONS + text))
    assert "(+ij~i)(p)`" in (caught.value.help or "")


def told(text: str) -> list[str]:
    """The codes of all that is wrong, in order."""
    with pytest.raises(Error) as caught:
        parse_module(Source("m.i", DEFINITIONS + text))
    return [caught.value.code, *(other.code for other in caught.value.others)]


def test_every_mistake_is_told() -> None:
    text = """\
f(x, y) = {
  a = totl(x)
  b = less(x)
  2c = total(x)
  d = total(c)
  a, d
}
g(x) = f(x)
h(x) = less(x)
"""
    assert told(text) == ["E0401", "E0420", "E0132", "E0420"]


def test_counts_are_both_told() -> None:
    error = check_error("f(x) = (i-i~i)((>ij~i & <ij~i)(x), x)", "E0420", 1, 8, file=True)
    assert error.message == "`i-i~i` takes 2 inputs, and 3 values are given"
    assert error.help == "`(>ij~i & <ij~i)(x)` stands for all of its outputs, 2 values"
    error = check_error("f(x) = { a, b = (-i~i)(x); a, b }", "E0421", 1, 10, file=True)
    assert error.message == "`-i~i` has 1 output, and 2 names are bound"


def test_a_foreign_function_is_spelled() -> None:
    error = check_error("f(x) = (exp >> -i~i)(x)", "E0401", 1, 9, file=True)
    assert error.help == "`exp` is `^ij~ij`"


@pytest.mark.parametrize(
    ("text", "code", "function"),
    [
        ("f(x) = x+1", "E0104", "`op f(x) = x+1`"),
        ("f(x, y) = x*y/2", "E0104", "`op f(x, y) = x *. y /. 2`"),
        ("f(x[i]) = exp(x)", "E0401", "`op f(x[i]) = exp(x)`"),
        ("f(x[i]) = x", "E0401", "`op f(x[i]) = x`"),
        ("f(x) = x^2 + 1", "E0104", "`op f(x) = x **. 2 + 1`"),
        ("f(x) = mean(x) - x", "E0401", "`op f(x) = mean(x) - x`, after a line `use std`"),
    ],
)
def test_names_of_inputs_lead_to_tensor_functions(text: str, code: str, function: str) -> None:
    with pytest.raises(Error) as raised:
        module(text)
    assert (raised.value.code, raised.value.help) == (
        code,
        f"to compute with inputs by name, write {function}",
    )


def test_nesting_is_limited() -> None:
    text = "x"
    for _ in range(200):
        text = f"(-i~i)({text})"
    assert len(module(f"f(x) = {text}").definitions) == 1
    check_error(f"f(x) = I({text})", "E0114", 1, 8 + 2 + 199 * 7, file=True)


def test_a_block_of_any_length_is_read() -> None:
    count = 5_000
    statements = "".join(f"  v{n + 1} = (-i~i)(v{n})\n" for n in range(count))
    text = f"f(x) = {{\n  v0 = (-i~i)(x)\n{statements}  v{count}\n}}\n"
    (definition,) = module(text).definitions
    assert isinstance(definition.body, Block)
    assert len(definition.body.bindings) == count + 1


def test_few_unknown_names_are_compared() -> None:
    statements = "".join(f"  v{n + 1} = (i+i~i)(w{n}, x)\n" for n in range(300))
    with pytest.raises(Error) as caught:
        parse_module(Source("m.i", f"f(x) = {{\n  v0 = (-i~i)(x)\n{statements}  v300\n}}\n"))
    helps = [error.help or "" for error in (caught.value, *caught.value.others)]
    assert len(helps) == 300
    assert sum(line.startswith("did you mean") for line in helps) == 20

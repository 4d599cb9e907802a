"""Programs: precedence, names, numbers, quotations, and every refusal with its place."""

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.spec import Fixed
from ilang.core.ir.syntax import Combine, Expression, Name, Number, Swap, same
from ilang.core.notation.components.printer import print_tree
from tests.property.growth import PROPORTIONAL, times_as_long
from tests.unit.notation.refusal import check_error, parse


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a & b >> c", "a & (b >> c)"),
        ("a | b & c", "a | (b & c)"),
        ("a >> b << c", "(a >> b) << c"),
        ("a & b & c", "(a & b) & c"),
        ("a | b | c", "(a | b) | c"),
        ("~a >> b", "(~a) >> b"),
        ("~~a & b", "(~(~a)) & b"),
        ("a | b >> c & d", "a | ((b >> c) & d)"),
        ("((a))", "a"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert parse(text, "a", "b", "c", "d") == parse(grouped, "a", "b", "c", "d")


def test_names_and_expressions() -> None:
    chain = parse("x >> xy~xy", "x")
    assert isinstance(chain, Combine)
    assert isinstance(chain.left, Name)
    assert isinstance(parse("x >> xy~xy"), Expression)
    assert isinstance(parse('i("x>>xy~xy")', "x"), Expression)
    assert isinstance(parse("x*y~xy", "x", "y"), Expression)
    assert isinstance(parse("~x", "x"), Swap)
    assert isinstance(parse("op*p~op"), Expression)
    assert isinstance(parse("i>>i~i"), Expression)
    assert isinstance(parse("bool >> i~i"), Combine)
    assert isinstance(parse("x | ||i~i", "x"), Combine)


@pytest.mark.parametrize("text", ["2>>.~.", "2 >> .~.", "1<<ii~i", "0>>i~i", "0==i~i", "00>>i~i"])
def test_the_longest_expression_wins_over_a_number(text: str) -> None:
    tree = parse(text)
    assert isinstance(tree, Expression)
    assert isinstance(tree.inputs()[0].indices[0], Fixed)


@pytest.mark.parametrize("text", ["-1 >> i~i", "0.5 >> i~i", "2 >> -i~i", "(2) >> i~i", "2 >> I"])
def test_numbers_are_chained_where_no_expression_begins(text: str) -> None:
    tree = parse(text)
    assert isinstance(tree, Combine)
    assert isinstance(tree.left, Number)


def test_a_name_or_a_number_before_an_arrow() -> None:
    assert isinstance(parse("x0>>x~x", "x0"), Combine)
    assert isinstance(parse("x0>>x~x"), Expression)
    assert same(parse('i("x0>>x~x")', "x0"), parse("x0>>x~x"))


@pytest.mark.parametrize("text", ["oc(0)(0)~oc", "oc00~oc", "oc0(0)~oc", "oc( 0 )0~oc"])
def test_positions_next_to_each_other(text: str) -> None:
    assert same(parse(text), parse("oc(0)(0)~oc"))
    tree = parse(text)
    assert isinstance(tree, Expression)
    assert [index.position for index in tree.inputs()[0].indices if isinstance(index, Fixed)] == [
        0,
        0,
    ]


def test_three_bars_before_any_pattern() -> None:
    for text in ("i~i ||| 0j~j", "i~i ||| (2i+k:3)~ik", "i~i ||| .~."):
        tree = parse(text)
        assert isinstance(tree, Combine), text
        assert tree.symbol == "|"


def test_quotations() -> None:
    assert parse('i("+ij~i")') == parse("+ij~i")
    assert parse("i ( '+ij~i' )") == parse("+ij~i")
    assert same(parse('i("ik*kj~ijk >> +ijk~ij") & I'), parse("(ik*kj~ijk >> +ijk~ij) & I"))
    assert parse('i("+ij~i | i:2 | i i\' j")') == parse("+ij~i | i:2 | i i' j")


@pytest.mark.parametrize("text", ["2", "0.125", "1e-5", "-1", "-2.5e+3", "007"])
def test_numbers(text: str) -> None:
    assert parse(text) == parse(f"({text})")
    number = parse(text)
    assert isinstance(number, Number)
    assert number.text == text
    chained = parse(f"({text}) >> i~i")
    assert isinstance(chained, Combine)
    assert isinstance(chained.left, Number)


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("", "E0101", 1),
        (" \t", "E0101", 3),
        ('i(" ")', "E0101", 5),
        ("+ij~i &", "E0108", 8),
        (">> I", "E0103", 4),
        ("& i~i", "E0108", 1),
        ("i~i && j~j", "E0108", 6),
        ("()", "E0108", 2),
        ("(I | )", "E0108", 6),
        ("i~i x", "E0109", 5),
        ("+i~i~i", "E0109", 5),
        ("i~i > x", "E0109", 5),
        ("9**9", "E0109", 2),
        ("(I & I", "E0110", 1),
        ('i("+ij~i"', "E0110", 2),
        ("I)", "E0111", 2),
        (")", "E0111", 1),
        ("i(+ij~i)", "E0112", 3),
        ('i("+ij~i)', "E0112", 3),
        ('i("+ij~i" "+ij~i")', "E0112", 11),
        ('i("+ij~i\n")', "E0112", 3),
        ('"+ij~i"', "E0113", 1),
        ('I >> "+ij~i"', "E0113", 6),
        ("(" * 201 + "I" + ")" * 201, "E0114", 201),
        ("~" * 201 + "I", "E0114", 201),
        ("einsum", "E0112", 7),
        ("einsum + 1", "E0104", 11),
        ("einsum(ij=>i)", "E0112", 8),
        ('einsum("ij=>i"', "E0110", 7),
        ('einsum("ij=>i" 2)', "E0112", 16),
        ('einsum("ij=>i', "E0112", 8),
        ('I >> einsum("ij;=i")', "E0141", 17),
        ('I >> einsum("i$=>i")', "E0140", 15),
        ("einx + 1", "E0104", 9),
        ("einx >> I", "E0112", 6),
        ("einx.mean(a)", "E0112", 11),
        ('einx.mean("a [b]"', "E0110", 10),
        ('einx.mean("a [b]" r=4)', "E0112", 19),
        ('einx.mean("a [b]", r=x)', "E0166", 22),
        ('einx.mean("a [b", r=4)', "E0162", 14),
        ('einx.meam("a [b]")', "E0165", 6),
        ("I >> elementwise", "E0112", 17),
        ("I >> op", "E0115", 6),
        ("1.", "E0116", 1),
        ("1e999", "E0116", 1),
        ("foo", "E0401", 1),
        ("I >> foo_1", "E0401", 6),
        ('__import__("os")', "E0401", 1),
        ('i("x") >> I', "E0401", 4),
    ],
)
def test_refusals(text: str, code: str, column: int) -> None:
    line = text.count("\n", 0, column) + 1
    check_error(text, code, line, column)


def test_did_you_mean() -> None:
    for text in ("scors", "scors >> ij~ij", "I | scors"):
        with pytest.raises(Error) as caught:
            parse(text, "scores", "shift")
        assert (caught.value.code, caught.value.help) == ("E0401", "did you mean `scores`?")


def test_two_hundred_levels_are_fine() -> None:
    assert parse("(" * 200 + "I" + ")" * 200) == parse("I")
    assert print_tree(parse("(I) & " * 300 + "~I")) == "I & " * 300 + "~I"


def test_long_chains_need_no_recursion() -> None:
    tree = parse(" >> ".join(["+i~i"] * 10_000))
    count = 0
    while isinstance(tree, Combine):
        tree, count = tree.left, count + 1
    assert count == 9_999


@pytest.mark.parametrize(
    ("begins", "again", "ends", "times"),
    [
        *(("", "(", "", 20_000), ("", "~", "", 20_000), ("", "a", "", 20_000)),
        *(("", "x>>", "", 7_000), ("", "a*", "", 10_000), ("", "|", "", 20_000)),
        *(("", "(1+", "", 7_000), ("", 'i("', "", 7_000), ("i~i ||", "i", "", 20_000)),
        *(("", "9", "", 20_000), ("", "1e", "", 10_000), ("i~i|i:", "2:", "", 10_000)),
        *(("i~i||i", "'", "", 20_000), ("", "a" + " " * 99, "", 200), ("", '"', "", 20_000)),
        *(("", "i~i|", "", 5_000), ("", "i~i |||", "", 3_000), ("", " ", "", 20_000)),
        *(("", "a", "~b", 20_000), ("a~", "b", "", 20_000)),
    ],
)
def test_hostile_text_is_refused_quickly(begins: str, again: str, ends: str, times: int) -> None:
    def refused(times: int) -> None:
        with pytest.raises(Error) as caught:
            parse(begins + again * times + ends, "x", "ab")
        assert len(str(caught.value)) < 20_000

    assert times_as_long(refused, times) < PROPORTIONAL

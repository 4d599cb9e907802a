"""Index expressions: what reads as what, and every refusal with its place."""

import pytest

from ilang.core.ir.syntax import Expression
from ilang.core.ops import OPS
from tests.unit.notation.refusal import check_error, parse


def expression(text: str) -> Expression:
    tree = parse(text)
    assert isinstance(tree, Expression)
    return tree


def parts(text: str) -> tuple[str | None, str, str | None, str]:
    e = expression(text)
    right = None if e.right is None else e.right.letters()
    return e.op, e.left.letters(), right, e.output.letters()


@pytest.mark.parametrize("symbol", OPS)
def test_every_operator_reads(symbol: str) -> None:
    assert parts(f"{symbol}i~i") == (symbol, "i", None, "i")
    if OPS[symbol].binary is not None:
        assert parts(f" i {symbol} ij ~ ij ") == (symbol, "i", "ij", "ij")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ij~ji", (None, "ij", None, "ji")),
        ("ii~i", (None, "ii", None, "i")),
        (".*i~i", ("*", "", "i", "i")),
        ("+i~.", ("+", "i", None, "")),
        (".~.", (None, "", None, "")),
        ("\t+ ijk\n~\r\nij ", ("+", "ijk", None, "ij")),
        ("i>>i~i", (">>", "i", "i", "i")),
        ("i||i~i", ("||", "i", "i", "i")),
        ("abcdefghijklmnopqrstuvwxyz~.", (None, "abcdefghijklmnopqrstuvwxyz", None, "")),
    ],
)
def test_forms(text: str, wanted: tuple[str | None, str, str | None, str]) -> None:
    assert parts(text) == wanted


def test_spans_cover_the_words() -> None:
    e = expression("  ik * kj ~ ijk  ")
    assert e.right is not None
    assert [part.span.text() for part in (e, e.left, e.right, e.output)] == [
        "ik * kj ~ ijk",
        "ik",
        "kj",
        "ijk",
    ]
    assert [axis.span.start for axis in e.output.indices] == [12, 13, 14]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("+ij∼i", "E0102", 4),  # noqa: RUF001
        ("α~α", "E0102", 1),
        ("+ij\x1b~i", "E0102", 4),
        ("i%i~i", "E0102", 2),
        ("+ij~i }", "E0102", 7),
        ("+i\u200dj~i", "E0102", 3),
        ("+~i", "E0103", 2),
        ("+ij~", "E0103", 5),
        ("+ij~~i", "E0103", 5),
        ("i++i~i", "E0103", 3),
        ("$HOME~$HOME", "E0103", 2),
        ("Ij~Ij", "E0103", 1),
        ("i> >i~i", "E0103", 4),
        ("i", "E0104", 2),
        ("i+i", "E0104", 4),
        ("+i+i~i", "E0104", 3),
        ("+ij->i", "E0104", 4),
        ("+ i j~i", "E0104", 5),
        ("i+i+", "E0104", 4),
        ("i j~ij", "E0105", 3),
        ("i,j~i", "E0105", 2),
        ("i=i~i", "E0105", 2),
        ("i&i~i", "E0105", 2),
        ("i!i~i", "E0105", 2),
        ("+ij~..", "E0106", 5),
        (".i~i", "E0106", 1),
        ("i.~i", "E0106", 1),
        ("i~iJ", "E0106", 3),
        ("i1~i1", "E0206", 5),
        ("(i+i)~i", "E0107", 4),
        ("(2+3)j~j", "E0107", 1),
        ("(0i+k)~ik", "E0107", 2),
        ("(i+k:)~ik", "E0107", 6),
        ("(i+k:0)~ik", "E0107", 4),
        ("(9999999999i+k)~ik", "E0107", 2),
        ("ij~(2i)j", "E0206", 4),
        ("i~i2", "E0206", 4),
        ("i~ij", "E0201", 4),
        ("i*j~ijk", "E0201", 7),
        (".~i", "E0201", 3),
        ("ik*kj~ij", "E0202", 2),
        ("ij+i~i", "E0202", 2),
        ("-ij~i", "E0203", 3),
        ("!!ij~i", "E0203", 4),
        (">>ij~i", "E0203", 4),
        ("i!!i~i", "E0204", 1),
        ("i~ii", "E0205", 4),
    ],
)
def test_refusals(text: str, code: str, column: int) -> None:
    check_error(text, code, 1, column)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ik*kj~ij", "`ik*kj~ijk >> +ijk~ij`"),
        ("i*i~.", "`i*i~i >> +i~.`"),
        ("i=i~i", "`==`"),
        ("i&i~i", "`&&`"),
        ("+ij->i", "`~`"),
        ("+ij∼i", "`~`"),  # noqa: RUF001
        ("i÷i~i", "`/`"),
        ("i×i~i", "`*`"),
        ("Ij~Ij", "`ij~ij`"),
        ("i~iJ", "`ij`"),
        ("i j~ij", "without blanks"),
        ("+ij~i | i j", "`|| i j`"),
        ("ik*kj~ijk >> +ijk~ij | i j 0 k'", "`|| i j 0 k'`"),
        ("+ij~i | i j~ij", "without blanks"),
        ("(2 i+k)~ik", "`2i`"),
        ("f = ij~i", "belongs in a file"),
        ("Foo = ij~i", "belongs in a file"),
        ("my_sum = +ij~i", "belongs in a file"),
        ("f(x) = ij~i", "belongs in a file"),
        ("i+j = k", "`equal` is written `==`"),
        ("= i~i", "`equal` is written `==`"),
        ("f(x) == i~i", "an index expression has"),
    ],
)
def test_help(text: str, words: str) -> None:
    with pytest.raises(Exception, match=r"E0\d\d\d") as caught:
        parse(text)
    assert words in (getattr(caught.value, "help", None) or "")

"""Module files: lines, names, inputs, bytes, and every refusal with its place."""

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.syntax import Definition, same
from ilang.core.notation.components.printer import print_definition
from ilang.core.notation.files.module import decode_module, exports, parse_module
from ilang.core.source import Source
from tests.unit.notation.refusal import check_error, module, parse

ATTENTION = """\
# attention.i
scores = ik*jk~ijk >> +ijk~ij
shift  = (I & >ij~i) >> ij-i~ij
exp    = ^ij~ij
norm   = (I & +ij~i) >> ij/i~ij
mix    = ij*jk~ijk >> +ijk~ik
attention(q[m,d], k[n,d], v[n,d]) = scores >> shift >> exp >> norm >> mix
"""


def only(text: str) -> Definition:
    (definition,) = module(text).definitions
    return definition


def test_attention() -> None:
    found = module(ATTENTION)
    assert [d.name for d in found.definitions] == [
        *("scores", "shift", "exp", "norm", "mix", "attention")
    ]
    assert [d.name for d in exports(found)] == ["attention"]
    assert print_definition(found.definitions[1]) == "shift = (I & >ij~i) >> ij-i~ij"


@pytest.mark.parametrize(
    "text",
    [
        "a = +ij~i >>\n  -i~i",
        "a = +ij~i\n  >> -i~i",
        "a = +ij~i\n\n # between\n>> -i~i # after",
        "a = (+ij~i\n>>\n-i~i\n)",
        "a = (\n\n+ij~i >> # comment\n-i~i)\n",
        "a = +ij~i >> # comment\n\n# more\n-i~i\n",
        "\ufeffa = +ij~i >> -i~i\r\n",
        "a=+ij~i>>-i~i",
        "# first\r\n\r\na = +ij~i >>\r\n -i~i\r\n",
        "a =\t+ij~i >> -i~i",
    ],
)
def test_lines_go_on(text: str) -> None:
    assert same(only(text).body, parse("+ij~i >> -i~i"))


def test_a_tilde_starts_no_continuation() -> None:
    check_error("a = (I | I)\n~a", "E0406", 2, 1, file=True)


def test_a_hash_in_quotes_is_no_comment() -> None:
    check_error('a = i("+ij~i # x")', "E0102", 1, 14, file=True)
    assert same(only("a = +ij~i | i:2 | i i' j # 'x'").body, parse("+ij~i | i:2 | i i' j"))


def test_inputs() -> None:
    head = "f(q: f64[m, 64], k[], v, w: bool) = +ij~i"
    tidy = "f(q: f64[m,64], k[], v, w: bool) = +ij~i"
    assert print_definition(only(head)) == tidy
    parameters = only(head).parameters
    assert parameters is not None
    assert [(p.dtype, p.dims) for p in parameters] == [
        ("f64", ("m", 64)),
        (None, ()),
        (None, None),
        ("bool", None),
    ]
    assert [p.span.text() for p in parameters] == ["q: f64[m, 64]", "k[]", "v", "w: bool"]
    assert only("f() = 2").parameters == ()
    assert only("f = 2").parameters is None


def test_names_read_in_any_order() -> None:
    found = module("b = a >> x~x\na = x >> x~x\nx = -i~i")
    assert [print_definition(d) for d in found.definitions] == [
        *("b = a >> x~x", "a = x >> x~x", "x = -i~i")
    ]
    assert [d.name for d in exports(found)] == ["b"]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "E0405", 1, 1),
        ("\n \t\n# nothing\n", "E0405", 1, 1),
        ("a = +ij~i\n?\n", "E0406", 2, 1),
        ("+ij~i", "E0406", 1, 1),
        ("let a = +ij~i", "E0406", 1, 1),
        ("a b = +ij~i", "E0406", 1, 1),
        ("(a,b) = +ij~i", "E0406", 1, 1),
        ("a", "E0406", 1, 1),
        ("a == +ij~i", "E0406", 1, 1),
        ("1a = +ij~i", "E0406", 1, 1),
        (">> a = +ij~i", "E0406", 1, 1),
        ("a =", "E0108", 1, 4),
        ("a =\nb = +ij~i", "E0108", 1, 4),
        ("a = +ij~i >>\n", "E0108", 1, 13),
        ("a = )", "E0111", 1, 5),
        ("a = (I\nb = I", "E0109", 2, 1),
        ('a = i("+ij~i"\n', "E0110", 1, 6),
        ("a = +ij~i extra", "E0109", 1, 11),
        ("a = [[", "E0103", 1, 5),
        ("a = b", "E0401", 1, 5),
        ("a = I\na = I", "E0402", 2, 1),
        ("a = a", "E0403", 1, 1),
        ("a = b\nb = a", "E0403", 1, 1),
        ("z = I\na = z >> b\nb = z & c\nc = I | a", "E0403", 2, 1),
        ("i = I", "E0404", 1, 1),
        ("f32 = I", "E0404", 1, 1),
        ("op = I", "E0404", 1, 1),
        ("f(I) = I", "E0404", 1, 3),
        ("f(x[f32]) = I", "E0404", 1, 5),
        ("f(x[m,op]) = I", "E0404", 1, 7),
        ("op layer(x hid) = x", "E0190", 1, 12),
        ("cd sgd(p) {", "E0110", 1, 11),
        ("f(x = I", "E0407", 1, 5),
        ("f(x,) = I", "E0407", 1, 5),
        ("f(x[m,]) = I", "E0407", 1, 7),
        ("f(x[1.5]) = I", "E0407", 1, 6),
        ("f(x y) = I", "E0407", 1, 5),
        ('eval("1")', "E0407", 1, 6),
        ("f(x, x) = I", "E0408", 1, 6),
        ("a = I\r", "E0409", 1, 6),
        ("a = I\nb\x00 = I", "E0409", 2, 2),
        ("a = I \x1b[31m", "E0409", 1, 7),
        ("a = I \x85", "E0409", 1, 7),
        ("f(x: f16) = I", "E0412", 1, 6),
        ("f(x: float) = I", "E0412", 1, 6),
        ("f(x[9223372036854775808]) = I", "E0411", 1, 5),
        ("f(x[" + "9" * 9_000 + "]) = I", "E0411", 1, 5),
        ("a = -ij~i", "E0203", 1, 7),
    ],
)
def test_refusals(text: str, code: str, line: int, column: int) -> None:
    check_error(text, code, line, column, file=True)


def test_i_may_name_a_dimension() -> None:
    (found,) = module("f(x[n,i]) = +ij~i").definitions
    assert found.parameters is not None
    assert found.parameters[0].dims == ("n", "i")


def test_a_type_among_the_dimensions_is_led_to_its_place() -> None:
    error = check_error("f(x[f32]) = I", "E0404", 1, 5, file=True)
    assert "`x: f32[m]`" in (error.help or "")


def test_a_circle_is_named() -> None:
    error = check_error("a = b\nb = c\nc = a", "E0403", 1, 1, file=True)
    assert "a -> b -> c -> a" in error.message


def test_unknown_names_get_a_hint() -> None:
    error = check_error("scores = I\na = scors >> ij~ij", "E0401", 2, 5, file=True)
    assert error.help == "did you mean `scores`?"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a = I\nb = \xff", "byte 0xff at line 2, byte 5"),
        (b"\xc3\xa9 = \xc3", "byte 0xc3 at line 1, byte 6"),
        (b"\xff\xfea\x00", "m.i is UTF-16 or UTF-32, from line 1, byte 1"),
        (b"\xfe\xff\x00a", "line 1, byte 1"),
        (b"a = \x00", "0x00 on line 1"),
        (b"PK\x03\x04", "0x03 on line 1"),
        (b"a = \xed\xa0\x80", "0xed"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, words: str) -> None:
    with pytest.raises(Error) as caught:
        decode_module(data, "m.i")
    assert caught.value.code == "E0409"
    assert words in caught.value.message
    assert str(caught.value)


def test_bytes_that_are_text() -> None:
    source = decode_module("\ufeff# é\r\na = I\r\n".encode(), "m.i")
    assert source.text == "# é\r\na = I\r\n"
    assert [d.name for d in parse_module(source).definitions] == ["a"]


def test_many_definitions() -> None:
    chain = "\n".join(f"a{n} = a{n + 1} >> -i~i" for n in range(10_000))
    found = parse_module(Source("m.i", f"{chain}\na10000 = I\n"))
    assert [d.name for d in exports(found)] == ["a0"]
    check_error(f"{chain}\na10000 = a0\n", "E0403", 1, 1, file=True)

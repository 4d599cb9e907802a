"""Trees to text and back: hand-written awkward ones, random ones, and random edits of programs."""

from random import Random

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.syntax import NamedInput, Tree, postorder, same
from ilang.core.notation.components.application import read_body
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.components.printer import print_definition, print_tree
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.module import parse_module
from ilang.core.notation.reader import Reader
from ilang.core.source import Source, Span
from tests.property.syntax_trees import NAMES, random_body, random_tree
from tests.unit.notation.refusal import module, parse


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("((ij ~ ji))", "ij~ji"),
        ("(a >> b) >> c", "a >> b >> c"),
        ("a >> (b >> c)", "a >> (b >> c)"),
        ("a >> (b << c) >> a", "a >> (b << c) >> a"),
        ("(a >> b) & c | a", "a >> b & c | a"),
        ("a >> (b & c)", "a >> (b & c)"),
        ("a & (b & c)", "a & (b & c)"),
        ("(a | b) & c", "(a | b) & c"),
        ("~(a | b)", "~(a | b)"),
        ("~(a >> b) >> c", "~(a >> b) >> c"),
        ("~(~a)", "~~a"),
        ("~(i~i)", "~i~i"),
        ("i~i|||i~i", "i~i | ||i~i"),
        ("(i~i||)|||i~i", "(i~i ||) | ||i~i"),
        ("(i~i||)", "i~i ||"),
        ("(i~i|i:2|) | i~i", "(i~i | i:2 |) | i~i"),
        ("(i~i|i:2|) >> i~i", "(i~i | i:2 |) >> i~i"),
        ("i~i||i >> i~i", "i~i || i >> i~i"),
        ("(i~i||i) | i~i", "i~i || i | i~i"),
        ("i~i|||i:v", "i~i || | i:v"),
        ('i("x>>xy~xy") & x >> i~i', 'i("x>>xy~xy") & x >> i~i'),
        ('i("x>>xy~xy") & y', "x>>xy~xy & y"),
        ("x >> (i~i | (2) >> i~i)", "x >> (i~i | (2) >> i~i)"),
        ("x >> (i~i | 2 >> i~i)", "x >> (i~i | 2>>i~i)"),
        ("(2) >> +i~i", "2 >> +i~i"),
        ("~(2) >> i~i", "~(2) >> i~i"),
        ("(I | 2) << i~i", "(I | 2) << i~i"),
        ("I >> (1e5) << i~i", "I >> (1e5) << i~i"),
        ("oc(0)(0)~oc", "oc00~oc"),
        ("oc(0)(1)0~oc", "oc0(1)0~oc"),
        ("(0)i(12)(3)~i", "0i12(3)~i"),
        ("(2e+1)i~ei", "(1+2e)i~ei"),
        ("f(32)>>f~f", "f(32)>>f~f"),
        ("i~i ||| (2i)k~ik", "i~i | ||(2i)k~ik"),
        ("i~i ||| 0k~k", "i~i | ||0k~k"),
        ("bool >> (i~i)", "bool >> i~i"),
        ("I | -1 | f64", "I | -1 | f64"),
    ],
)
def test_text(text: str, wanted: str) -> None:
    tree = parse(text, "a", "b", "c", "x", "y")
    assert print_tree(tree) == wanted
    assert same(parse(wanted, *{n.name for n in postorder(tree) if hasattr(n, "name")}), tree)


def test_definitions_stay_on_their_line() -> None:
    found = module("a = i~i||\n")
    assert print_definition(found.definitions[0]) == "a = (i~i ||)"
    found = module('x = I\na = i("x>>xy~xy")\nb = i>>i~i')
    assert [print_definition(d) for d in found.definitions[1:]] == [
        'a = i("x>>xy~xy")',
        "b = i>>i~i",
    ]


def test_random_trees_come_back() -> None:
    for seed in range(500):
        random = Random(seed)
        tree = random_tree(random, random.randint(1, 12))
        for names in (None, NAMES):
            text = print_tree(tree, names)
            used = names or [n.name for n in postorder(tree) if hasattr(n, "name")]
            again = parse(text, *used)
            assert same(again, tree), f"seed {seed}: {text}"
            assert print_tree(again, names) == text, f"seed {seed}: {text}"


def test_random_bodies_come_back() -> None:
    definitions = "".join(f"{name} = 2\n" for name in NAMES)
    for seed in range(300):
        random = Random(seed)
        inputs = tuple(f"in{n}" for n in range(random.randint(0, 3)))
        body = random_body(random, random.randint(0, 4), inputs)
        head = f"f({', '.join(inputs)})"
        text = f"{head} = {print_tree(body, NAMES)}"
        again, refused = read_again(definitions + text)
        assert not refused, f"seed {seed}: {text}"
        assert again is not None
        assert same(again, body), f"seed {seed}: {text}"
        assert print_tree(again, NAMES) == print_tree(body, NAMES)


def read_again(text: str) -> tuple[Tree | None, list[Error]]:
    """The body of the last definition of a text, and what is wrong with it."""
    refused: list[Error] = []
    last = text.rindex("\n") + 1
    source = Source("m.i", text)
    reader = Reader(source, text.index("=", last) + 1)
    names = text[last:].partition("(")[2].partition(")")[0].split(", ")
    at = Span(source, last, last)
    parameters = tuple(NamedInput(name, None, None, at) for name in names if name)
    return read_body(reader, NAMES, parameters, refused), refused


def test_deep_trees_print() -> None:
    for symbol in (">>", "&", "|"):
        text = f" {symbol} ".join(["-i~i"] * 5_000)
        assert print_tree(parse(text)) == text


PROGRAMS = (
    "ik*kj~ijk >> +ijk~ij",
    "(I | 0.125) >> ij*.~ij",
    "ik*kj~ijk | i:6,j:64,k:128 | j k 1 i k' i' j' >> +ijk~ij | i:6 | j k i 0 i' | i':u,0:s2",
    '~(x & i("+ij~i")) | ||i~i',
    "f64 >> x << >ij~i & 1e-5",
)
FILES = (
    "# one\na = +ij~i >> # two\n -i~i\nb(q: f64[m,4], k) = (a | a)\n  >> i*i~i\n",
    'x = I\ny = i("x>>xy~xy") & x\nz = y | +ij~i || i j | i:p\n',
    "f = +ij~i\ng(x, y) = {  # one\n  a, _ = (f & f)(x); b = f(\n  y)\n\n  a, b, f(x),\n    2\n}\n",
)
ALPHABET = "ijkx I~~+-*/<>=&|!^$.,:;'\"()[]{}0129efab_#\n\t\r\x00\x1b ∼é\u2028"  # noqa: RUF001


def edited(random: Random, text: str) -> str:
    """The text after one to four small changes."""
    for _ in range(random.randint(1, 4)):
        at, length = random.randint(0, len(text)), random.choice((0, 0, 1, 2, 9))
        new = "".join(random.choice(ALPHABET) for _ in range(random.choice((0, 1, 1, 2))))
        if random.random() < 0.2:
            start = random.randint(0, len(text))
            new = text[start : start + random.randint(1, 12)]
        text = text[:at] + new + text[at + length :]
    return text


def outcome(text: str) -> Tree | Error:
    try:
        return parse_program(Source("<text>", text), ("x",))
    except Error as error:
        return error


def test_edited_programs_are_read_or_refused() -> None:
    read = 0
    for seed in range(2_000):
        random = Random(seed)
        text = edited(random, random.choice(PROGRAMS))
        found = outcome(text)
        if isinstance(found, Error):
            assert str(found).startswith(f"error[{found.code}]"), f"seed {seed}: {text!r}"
            assert found.span is not None, f"seed {seed}: {text!r}"
        else:
            read += 1
            again = outcome(print_tree(found, ("x",)))
            assert not isinstance(again, Error), f"seed {seed}: {text!r}"
            assert same(again, found), f"seed {seed}: {text!r}"
    assert read > 50


def layout(text: str) -> str | Error:
    try:
        parse_module(Source("m.i", text))
    except Error as error:
        return error
    return format_module(Source("m.i", text))  # where no refusal is expected any more


def test_edited_files_are_read_or_refused() -> None:
    read = 0
    for seed in range(1_500):
        random = Random(seed)
        text = edited(random, random.choice(FILES))
        once = layout(text)
        if isinstance(once, Error):
            assert str(once).startswith(f"error[{once.code}]"), f"seed {seed}: {text!r}"
        else:
            read += 1
            assert layout(once) == once, f"seed {seed}: {text!r}"
    assert read > 50

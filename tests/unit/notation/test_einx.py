"""Operations in einx notation: what is read, what is filled in, and what is refused."""

import pytest

from ilang import Error
from ilang.core.ir.einx import Form, Parameter, expression_text, form_text
from ilang.core.notation.components.printer import print_tree
from ilang.core.notation.einx.forms import complete
from ilang.core.notation.einx.operation import read_einx
from ilang.core.notation.files.layout import format_module
from ilang.core.passes.einx.ellipses import repeat
from ilang.core.passes.einx.fusing import fuse
from ilang.core.pipeline import text_component
from ilang.core.source import Source, whole

SIZES = {"none": ()}


def form(op: str, text: str, **sizes: object) -> Form:
    """A complete operation."""
    source = Source("<einx>", text)
    parameters = [Parameter(name, value, whole(source)) for name, value in sizes.items()]  # type: ignore[arg-type]
    return complete(op, read_einx(source), parameters, whole(source))


@pytest.mark.parametrize(
    ("op", "text", "whole_text"),
    [
        ("id", "a b", "a b -> a b"),
        ("id", "a (b c -> c b)", "a (b c) -> a (c b)"),
        ("id", "(a, b) c -> a c, b c", "(a) c, (b) c -> a c, b c"),
        ("id", "a | a 1", "a -> a 1"),
        ("id", "a,b->\n\t(a+b)", "a, b -> (a + b)"),
        ("sum", "a b -> a", "a [b] -> a"),
        ("sum", "a ([b] c)", "a ([b] c) -> a (c)"),
        ("mean", "b (s [r])... c", "b (s [r])... c -> b (s)... c"),
        ("sum", "[...]", "[...] ->"),
        ("argmin", "b [h->1] w", "b [h] w -> b [1] w"),
        ("get_at", "b p [i,->]", "b p [i], b p -> b p"),
        ("dot", "a b, b c -> a c", "a [b], [b] c -> a c"),
        ("dot", "a [b->c]", "a [b], [b] c -> a c"),
        ("dot", "[a b] -> [a c]", "a [b], a [b] c -> a c"),
        ("dot", "b... (g [c1->c2])", "b... (g [c1]), [c1] c2 -> b... (g c2)"),
        ("add", "a b, b", "a b, b -> a b"),
        ("add", "a [b]", "a b, b -> a b"),
        ("multiply", "b... (g [c])", "b... (g c), (c) -> b... (g c)"),
        ("softmax", "a [b]", "a [b] -> a [b]"),
        ("subtract_at", "a [h], p, p", "a [h], p, p -> a [h]"),
    ],
)
def test_what_is_left_out(op: str, text: str, whole_text: str) -> None:
    assert form_text(form(op, text)) == whole_text


@pytest.mark.parametrize(
    ("op", "text", "code"),
    [
        ("id", "a-b -> a", "E0160"),
        ("id", "2a -> 2a", "E0160"),
        ("id", "(a b)(c d) -> a b c d", "E0160"),
        ("id", "a...... -> a", "E0161"),
        ("id", "a (b -> b a", "E0162"),
        ("id", "a b) -> a", "E0162"),
        ("id", "(a [b) c] -> a", "E0162"),
        ("id", "a + b -> a, b", "E0163"),
        ("id", "(a + [b]) -> a, b", "E0163"),
        ("id", "(a + b c) -> a, b c", "E0163"),
        ("id", "(a +) -> a", "E0163"),
        ("id", "a -> b -> c", "E0164"),
        ("id", "a (b -> c) (d -> e -> f)", "E0164"),
        ("sim", "a [b]", "E0165"),
        ("sum", "a [b] b", "E0220"),
        ("add", "a [b], b -> a b", "E0220"),
        ("divide", "a, a, a", "E0221"),
        ("id", "a, b", "E0222"),
        ("add", "a, b", "E0222"),
        ("add", "a b, b a", "E0222"),
        ("dot", "a [b], [b] c", "E0222"),
        ("argmax", "[a] b [c]", "E0222"),
        ("id", "a -> a b", "E0223"),
        ("id", "a -> a ...", "E0223"),
        ("id", "a -> a a", "E0225"),
        ("sum", "a [b] -> a [b]", "E0226"),
        ("softmax", "a [b] -> a", "E0226"),
        ("dot", "[a a], [a] ->", "E0226"),
        ("roll", "a [b]", "E0229"),
    ],
)
def test_refused(op: str, text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        form(op, text)
    assert caught.value.code == code
    assert caught.value.help
    assert caught.value.span is not None


def test_unknown_parameters() -> None:
    for sizes in ({"bb": 3}, {"b": -1}):
        with pytest.raises(Error) as caught:
            form("id", "a b -> b a", **sizes)
        assert caught.value.code == "E0166"


@pytest.mark.parametrize(
    ("text", "sizes", "ranks", "repeated"),
    [
        ("b s... c -> c s... b", {}, [2], "b c -> c b"),
        ("(s p)... -> s... p...", {"s": 2}, [2], "(s_0 p_0) (s_1 p_1) -> s_0 s_1 p_0 p_1"),
        ("a -> a b...", {"b": (2, 3)}, [1], "a -> a b_0 b_1"),
        ("a... b... -> b... a...", {"b": (3, 4)}, [3], "a_0 b_0 b_1 -> b_0 b_1 a_0"),
        ("b (s...) c -> b (s...) c", {}, [3], "b (s) c -> b (s) c"),
        ("... c -> c ...", {}, [3], "i j c -> c i j"),
        (
            "(a b...)... -> (b... a)...",
            {"b": ((2, 3),)},
            [1],
            "(a_0 b_0_0 b_0_1) -> (b_0_0 b_0_1 a_0)",
        ),
        ("s_0 s... -> s... s_0", {}, [2], "s_0 s_02 -> s_02 s_0"),
    ],
)
def test_ellipses(text: str, sizes: dict[str, object], ranks: list[int], repeated: str) -> None:
    found = repeat(form("id", text, **sizes), ranks, ["x"])
    shown = (", ".join(map(expression_text, side)) for side in (found.inputs, found.outputs))
    assert " -> ".join(shown) == repeated


@pytest.mark.parametrize(
    ("text", "sizes", "ranks", "code"),
    [
        ("a b -> b a", {}, [3], "E0503"),
        ("a s... b c -> a", {}, [2], "E0503"),
        ("a..., a... -> a...", {}, [2, 3], "E0503"),
        ("a... b... -> b... a...", {}, [3], "E0540"),
        ("([a]...) b -> b", {}, [2], "E0226"),
        ("b s... c -> b s c", {}, [3], "E0541"),
        ("a b -> b a", {"a": (2,)}, [2], "E0541"),
        ("a... -> a...", {"a": ((1, 2), (1,))}, [2], "E0542"),
    ],
)
def test_ellipses_refused(text: str, sizes: dict[str, object], ranks: list[int], code: str) -> None:
    with pytest.raises(Error) as caught:
        repeat(form("id", text, **sizes), ranks, [f"x{n}" for n in range(len(ranks))])
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        ("(a b) c -> c (a b)", "a_b c -> c a_b"),
        ("(a b) c -> c (b a)", "(a b) c -> c (b a)"),
        ("(a b c) -> ((a b) c)", "a_b_c -> a_b_c"),
        ("(a b) (c d) -> (a (b c) d)", "a_b c_d -> (a_b c_d)"),
        ("(a b) -> (a b) a", "(a b) -> (a b) a"),
        ("(a 1 b) -> (a b)", "a_b -> a_b"),
        ("(a b a b) -> (a b)", "(a_b a_b) -> a_b"),
    ],
)
def test_fusing(text: str, fused: str) -> None:
    source = Source("<einx>", text)
    inputs, outputs = read_einx(source).sides
    assert " -> ".join(map(expression_text, fuse(inputs, outputs, ()))) == fused


@pytest.mark.parametrize(
    "text",
    [
        'einx.mean("b (s [r])... c", r=4)',
        'einx.mean("b (s [r])... c", r=(4, 2))',
        'einx.id("a -> a b...", b=((2, 3), (1, 4)), )',
        'einx.roll("[a]", shift=-1) >> +i~.',
        '(I | einx.id("a b -> b a")) >> i*ij~ij',
        'einx.sum(" a   [b]  3 ... ", keepdims = True)',
        "einx . sum ( 'a [b]' , b = 3 ) | a:4 | a a' b",
    ],
)
def test_printed(text: str) -> None:
    tree = text_component(text)
    assert text_component(print_tree(tree)) == tree


def test_laid_out() -> None:
    module = 'p( x[a,b] )=einx . sum( "a   [b]" ,b=3 )( x )  # rows\nq = einx.id("a 2  ...", a=( 4 ),)>>+i~.\n'
    once = format_module(Source("<text>", module))
    assert format_module(Source("<text>", once)) == once
    assert '"a   [b]"' in once

"""Array literals: text to numbers, and everything that is not one."""

import numpy as np
import pytest

from ilang.core.diagnostic import DataError
from ilang.core.dtype import FLOATS
from ilang.icli.exchange import literal_array
from ilang.icli.literal import is_array, parse_literal


@pytest.mark.parametrize(
    ("text", "shape", "numbers", "kind"),
    [
        ("3", (), (3,), "int"),
        ("-0.5", (), (-0.5,), "float"),
        ("[1, 2]", (2,), (1, 2), "int"),
        ("[-0, 0]", (2,), (0, 0), "int"),
        ("[[1,2],[3,4.5]]", (2, 2), (1, 2, 3, 4.5), "float"),
        ("[]", (0,), (), "float"),
        ("[[],[]]", (2, 0), (), "float"),
        ("[true,false]", (2,), (True, False), "bool"),
        ("[1e3,.5,-inf]", (3,), (1000.0, 0.5, float("-inf")), "float"),
    ],
)
def test_literals(
    text: str, shape: tuple[int, ...], numbers: tuple[object, ...], kind: str
) -> None:
    literal = parse_literal(text)
    assert (literal.shape, literal.numbers, literal.kind) == (shape, numbers, kind)


def test_a_zero_with_a_sign_has_it_in_floats() -> None:
    signs = [np.signbit(literal_array(parse_literal("[-0, 0]"), dtype)) for dtype in FLOATS]
    assert [each.tolist() for each in signs] == [[True, False]] * 2
    assert literal_array(parse_literal("[-0, 7]"), "i64").tolist() == [0, 7]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "]", "[1", "1]", "[1,]", "[,1]", "[1 2]", "1 2", "[1,2]]", "[[1]", "[1,1,"),
        *("[1_0]", "[0x1]", "[--1]", "[x]", "(1,2)", "[nan(1)]", "[\u0661]", "[1,true]"),
        "[" * 30 + "1" + "]" * 30,
    ],
)
def test_not_literals(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_literal(text)
    assert caught.value.code == "E0721"


@pytest.mark.parametrize(
    "text", ["[1,[2]]", "[[1],2]", "[[1,2],[3]]", "[[],[[]]]", "[[[1]],[2]]", "[[],1]", "[[1],[]]"]
)
def test_ragged_ones(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_literal(text)
    assert caught.value.code == "E0722"


def test_what_looks_like_an_array() -> None:
    arrays = [
        "[1]",
        "3",
        "rand:3x4",
        "x.npy",
        "x.npz",
        "x.npz:key",
        "f64:[1]",
        "f64:rand:3",
        "true",
    ]
    assert [text for text in arrays if not is_array(text)] == []
    others = ["x", "+ij~i", "infer", "trueish", "sums", "f64", "f64 >> +ij~i", ""]
    assert [text for text in others if is_array(text)] == []

"""Ranks, extents and element types: what is found, and what is refused where."""

from __future__ import annotations

import pickle

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.shaped import Shaped
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import fit, graph_of, infer, module_graph, text_component
from ilang.core.source import Source


def shaped(
    text: str, dtypes: list[str | None] | None = None, ranks: list[int] | None = None
) -> Shaped:
    return infer(graph_of(text_component(text), "f"), dtypes, ranks)


def of_module(text: str, name: str) -> Shaped:
    return infer(module_graph(parse_module(Source("m.i", text)), name))


def refused(text: str, dtypes: list[str | None] | None = None) -> Error:
    with pytest.raises(Error) as caught:
        shaped(text, dtypes)
    return caught.value


def names(s: Shaped, value: int) -> list[str]:
    return [s.sizes[n].name for n in s.tensors[value].dims]


def test_sizes_are_named_by_the_letters_that_read_them() -> None:
    s = shaped("ik*kj~ijk >> +ijk~ij")
    assert [size.name for size in s.sizes] == ["i", "k", "j"]
    assert names(s, s.outputs[0]) == ["i", "j"]


def test_one_letter_in_two_expressions_is_two_sizes() -> None:
    s = shaped("-i~i | -i~i")
    assert [size.name for size in s.sizes] == ["i", "i2"]


def test_equal_dimensions_are_one_size_through_a_chain() -> None:
    s = shaped("ij~ji >> ab+a~ab")
    assert [size.name for size in s.sizes] == ["i", "j"]
    assert names(s, s.inputs[1]) == ["j"]


def test_written_names_win_and_numbers_fix() -> None:
    s = of_module("f(q[m,64], k[n,64]) = ik*jk~ijk >> +ijk~ij\n", "f")
    assert [(size.name, size.fixed) for size in s.sizes] == [
        ("m", None),
        ("n", 64),
        ("n", None),
    ] or [(size.name, size.fixed) for size in s.sizes] == [("m", None), ("k", 64), ("n", None)]


def test_a_written_name_means_one_extent() -> None:
    s = of_module("f(x[n], y[n]) = -i~i | -i~i\n", "f")
    assert len(s.sizes) == 1
    with pytest.raises(Error) as caught:
        fit(s, [(3,), (4,)])
    assert caught.value.code == "E0505"
    assert "axis n is 3 in x (dimension 0) and 4 in y (dimension 0)" in caught.value.message


def test_fixed_extents_are_checked() -> None:
    s = of_module("f(x[4]) = +i~.\n", "f")
    with pytest.raises(Error) as caught:
        fit(s, [(3,)])
    assert caught.value.code == "E0506"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("+i~. >> -i~i", "E0501"),
        ("+ij~i & -i~i", "E0502"),
        ("I", "E0508"),
        ("f64", "E0508"),
        ("(i32 | I) >> i+i~i", "E0601"),
        ("i32 >> /i~i", "E0602"),
        ("(i32 | 0.5) >> i*.~i", "E0603"),
        ("(I | 1e300) >> i*.~i", "E0603"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    assert refused(text).code == code


@pytest.mark.parametrize(
    ("text", "given", "result"),
    [
        ("i+i~i", ["f32", "f64"], "f64"),
        ("i+i~i", ["i32", "i64"], "i64"),
        ("i+i~i", ["bool", "i32"], "i32"),
        ("i+i~i", ["bool", "bool"], "f32"),
        ("i>i~i", ["bool", "bool"], "f32"),
        ("i>>i~i", ["i32", "i32"], "bool"),
        ("i&&i~i", ["f32", "bool"], "bool"),
        ("+ij~i", ["bool"], "f32"),
        ("&&ij~i", ["f32"], "bool"),
        ("+i~i", ["bool"], "bool"),
        ("-i~i", ["bool"], "f32"),
        ("^i~i", ["bool"], "f32"),
        ("(I | 2) >> i*.~i", ["i32"], "i32"),
        ("(I | 0.1) >> i*.~i", ["f64"], "f64"),
        ("(I | 2) >> i*.~i", ["bool"], "f32"),
        ("0.1 | (I & I) >> i*i~i", ["f64"], "f32"),
        ("i64", ["f32"], "i64"),
    ],
)
def test_element_types(text: str, given: list[str | None], result: str) -> None:
    s = shaped(text, given, [1] * len(given) if text == "i64" else None)
    assert s.tensors[s.outputs[0]].dtype == result


def test_a_type_in_an_inner_definition_is_checked() -> None:
    module = "half(x: f64[n]) = (I | 0.5) >> i*.~i\nnarrow(x: f32[n]) = half\n"
    with pytest.raises(Error) as caught:
        of_module(module, "narrow")
    assert caught.value.code == "E0604"


def test_unequal_extents_name_both_inputs_and_both_values() -> None:
    s = shaped("ik*kj~ijk")
    with pytest.raises(Error) as caught:
        fit(s, [(2, 3), (4, 5)])
    message = str(caught.value)
    assert "axis k is 3 in in0 (dimension 1) and 4 in in1 (dimension 0)" in message
    assert "^ 4 here, in in1" in message
    assert "- 3 here, in in0" in message


def test_a_definition_that_doubles_itself_is_refused() -> None:
    lines = ["a0 = -i~i"] + [f"a{n + 1} = a{n} >> a{n}" for n in range(30)]
    with pytest.raises(Error) as caught:
        of_module("\n".join(lines) + "\n", "a30")
    assert caught.value.code == "E0250"


@pytest.mark.deep
def test_ten_thousand_expressions() -> None:
    s = shaped(" >> ".join(["-i~i"] * 10_000))
    assert len(s.nodes) == 10_001


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("f(x[3,n]) = 2j~j", ["n2", "n"]),
        ("f(x[2,n], y[n]) = 0j*j~j", ["n2", "n"]),
        ("f(x[m,n]) = 0j~j", ["m", "n"]),
    ],
)
def test_written_names_are_kept(text: str, sizes: list[str]) -> None:
    assert [size.name for size in of_module(text + "\n", "f").sizes] == sizes


def test_errors_survive_pickling() -> None:
    error = refused("i32 >> /i~i")
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error)
    assert str(copied) == str(error)


@pytest.mark.parametrize("text", ["(I | 16777217) >> i*.~i", "(f64 | 9007199254740993) >> i*.~i"])
def test_whole_constants_are_exact(text: str) -> None:
    assert refused(text).code == "E0603"

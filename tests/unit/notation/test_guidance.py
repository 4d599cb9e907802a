"""Programs as people from other systems write them: which error they get, and the spelling that its help shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ilang import einsum, i
from ilang.core.diagnostic import Error
from ilang.core.notation.guidance import POINTWISE, PROGRAMS, REDUCTIONS, named, specification
from ilang.core.pipeline import graph_of, infer, module_graph, text_component
from tests.unit.notation.refusal import module

SUGGESTED = re.compile("`([^`]*~[^`]*)`")

MISTAKES: list[tuple[str, str, str]] = [
    # capitals, and signs of schedules
    ("AB~BA", "E0103", "`ab~ba`"),
    ("ij*JK~ijk", "E0103", "`ij*jk~ijk`"),
    ("AB*BC~AC", "E0103", "`ab*bc~acb >> +acb~ac`"),
    ("+IJ~I", "E0103", "`+ij~i`"),
    ("I >> AB~BA", "E0103", "`ab~ba`"),
    ("+ij~i | j=4 |", "E0105", "`+ij~i | j:4 |`"),
    ("+ij~i | j=4 | i j", "E0105", "`+ij~i | j:4 | i j j'`"),
    ("+ij~i | i:4 || i j", "E0105", "`+ij~i | i:4 | i i' j`"),
    ("+ij~i || i j | i=p", "E0105", "`+ij~i || i j | i:p`"),
    ("+ij~i D | j:2", "E0109", "a program has no arrays in it"),
    ("+ij~i | j:4", "E0120", "write `| j:4 |` for the default order"),
    ("+ij~i | i:4,j:2 | j i", "E0306", "`j j' i i'`"),
    ("v[ids]~id", "E0117", "`n@vd~nd`"),
    ("v[i]~i", "E0117", "`n@vd~nd`"),
    # functions, by name, with or without indices
    ("exp(ij)~ij", "E0401", "`^ij~ij`"),
    ("+(i+a-1:3)~i", "E0107", "`(i+a:3-1)`"),
    ("ij*kl~(ik)(jl)", "E0103", 'einx.id("a b c d -> (a c) (b d)")'),
    ("exp(x)", "E0401", "`^ij~ij`"),
    ("log(i)~i", "E0401", "`$i~i`"),
    ("ln i~i", "E0105", "`$i~i`"),
    ("sum(ij)~i", "E0401", "`+ij~i`"),
    ("sum(ij)~j", "E0401", "along i is `+ij~j`"),
    ("sum ij~i", "E0105", "`+ij~i`"),
    ("sum", "E0401", "`+ij~i`"),
    ("max(x)", "E0401", "`>ij~i`"),
    ("max ij~i", "E0105", "`>ij~i`"),
    ("min(ijk)~ij", "E0401", "along k is `<ijk~ij`"),
    ("prod(ij)~i", "E0401", "`*ij~i`"),
    ("any(ij)~i", "E0401", "`||ij~i`"),
    ("all(ij)~i", "E0401", "`&&ij~i`"),
    ("mean", "E0401", "`ij/:j~ij >> +ij~i`"),
    ("mean ij~j", "E0105", "along i"),
    ("sqrt(i)~i", "E0401", "`(I | 0.5) >> i^.~i`"),
    ("square(ij)", "E0401", "`(I | 2) >> ij^.~ij`"),
    ("abs", "E0401", "`(I & -ij~ij) >> ij>ij~ij`"),
    ("relu", "E0401", "`>ij~ij`"),
    ("relu >> +ij~i", "E0401", "`relu` is `>ij~ij`"),
    ("+ij~i >> exp(i)~i", "E0401", "`exp` is `^i~i`"),
    ("sigmoid(i)~i", "E0401", "`-i~i >> ^i~i >> (I | 1) >> i+.~i >> /i~i`"),
    ("tanh", "E0401", "`tanh` is"),
    ("softmax", "E0401", "along j is `(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij`"),
    ("softmax(x)", "E0401", "`softmax` along j"),
    ('elementwise("f: x -> x ** 2")', "E0180", "`pow(x, 3)`, a square `square(x)`"),
    ('elementwise("f: x -> x ^ 2")', "E0180", "`pow(x, 3)`, a square `square(x)`"),
    ("softmx", "E0401", "did you mean `softmax`, of `std`?"),
    ("matmul", "E0401", "`ik*kj~ijk >> +ijk~ij`"),
    ("matmul(x, y)", "E0401", "`ik*kj~ijk >> +ijk~ij`"),
    ("dot", "E0401", "`i*i~i >> +i~.`"),
    ("outer", "E0401", "`i*j~ij`"),
    ("transpose", "E0401", "`ij~ji`"),
    ("trace", "E0401", "`ii~.`"),
    ("diag", "E0401", "`ii~i`"),
    ("maximum", "E0401", "`ij>ij~ij`"),
    ("conv2d", "E0401", "`nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx`"),
    ("np.sum(x)", "E0106", "`+ij~i`"),
    ("np.sum(ij)~i", "E0106", "`+ij~i`"),
    ("torch.relu(x)", "E0106", "`>ij~ij`"),
    ("F.softmax(x, dim=-1)", "E0103", "`softmax` along j"),
    ("x.sum()", "E0106", "`+ij~i`"),
    ("x.mean(axis=1)", "E0106", "`mean` along j"),
    ("where(i>0, i, 0)", "E0401", "where(c, x, y)"),
    ("argmax", "E0401", "`>@ij~i`"),
    ("concatenate", "E0401", 'einsum("a; b => a^b")'),
    ("reshape", "E0401", '`einx.id("(a b) -> a b", a=2)`'),
    ("sin", "E0401", '`elementwise("f: x -> sin(x)")`'),
    ("sin(x)", "E0401", '`elementwise("f: x -> sin(x)")`'),
    ("np.linalg.norm(x)", "E0106", "`norm` along j is"),
    ("np.sort(x)", "E0106", 'einx.sort("... [c]")'),
    ('elementwise("x -> sin(x)")', "E0182", "it comes first: `f: x -> x * x`"),
    # element types of other systems
    ("float32", "E0401", "write `f32`"),
    ("double", "E0401", "write `f64`"),
    ("int >> ^i~i", "E0401", "write `i32`"),
    ("long", "E0401", "write `i64`"),
    # arrows, commas, and other notations of einsum and einops
    ("ij,jk->ik", "E0105", "`ij*jk~ikj >> +ikj~ik`"),
    ("ij->ji", "E0103", "`ij~ji`"),
    ("ij -> i", "E0103", "`ij~i`"),
    ("i j -> j i", "E0105", "`ij~ji`"),
    ("b i d, b j d -> b i j", "E0105", "`bid*bjd~bijd >> +bijd~bij`"),
    ("b c h w -> b (c h w)", "E0105", "not merged or split"),
    ("bchw~b(chw)", "E0109", "axes are not merged"),
    ("ij → ji", "E0102", "`ij~ji`"),
    ("∑j ij", "E0102", "`+ij~i`"),
    ("C[i,j] = A[i,k]*B[k,j]", "E0103", "`ik*kj~ijk >> +ijk~ij`"),
    ("A[i,k]*B[k,j]", "E0103", "`ik*kj~ijk`"),
    ("A*B~C", "E0103", "`ij*ij~ij`"),
    ("A @ B", "E0103", "`ik*kj~ijk >> +ijk~ij`"),
    ("a@b", "E0104", "`ik*kj~ijk >> +ijk~ij`"),
    ("x @ w.T", "E0106", "`ik*jk~ijk >> +ijk~ij`"),
    ("x.T @ w.T", "E0106", "`ki*jk~ijk >> +ijk~ij`"),
    ("x * w.T", "E0106", "`ij*ji~ij`"),
    ("i+inf~i", "E0202", "`(1 | 0) >> ./.~.`"),
    ("nan*i~i", "E0202", "`(0 | 0) >> ./.~.`"),
    ("inf | I", "E0401", "`(1 | 0) >> ./.~.`"),
    ("(i+k:9999999999)~ik", "E0107", "write a smaller extent"),
    ("(-inf) | I", "E0107", "`(-1 | 0) >> ./.~.`"),
    ("i+-inf~i", "E0103", "`(I | (-1 | 0) >> ./.~.) >> i+.~i`"),
    ("-inf*ij~ij", "E0104", "`((-1 | 0) >> ./.~. | I) >> .*ij~ij`"),
    ("i>-inf~i", "E0103", "`(I | (-1 | 0) >> ./.~.) >> i>>.~i`"),
    ("i>=-nan~i", "E0103", "`(I | (0 | 0) >> ./.~.) >> i>=.~i`"),
    ("A + B", "E0103", "`ij+ij~ij`"),
    ("A.T", "E0103", "`ij~ji`"),
    ("ijk.T", "E0106", "`ijk~kji`"),
    ("ij@jk~ik", "E0210", "`ij*jk~ikj >> +ikj~ik`"),
    ('einsum("ij;jk->ik")', "E0141", "`ij; jk => ik`"),
    ('einsum("batch i, batch j -> batch i j")', "E0141", "`batch,i; batch,j => batch,i,j`"),
    ("einsum(ij,jk->ik)", "E0112", '`einsum("ij,jk->ik")`'),
    # no output
    ("ij*i", "E0104", "`ij*i~ij`, or, summed over i, `ij*i~ij >> +ij~j`"),
    ("use std", "E0105", "write the name alone: `softmax`"),
    (">c(2*h+p:2)~ch", "E0104", "a coefficient stands before its letter: `2h`"),
    ("ik*kj", "E0104", "`ik*kj~ijk`, or, summed over k, `ik*kj~ijk >> +ijk~ij`"),
    ("ij+j", "E0104", "`ij+j~ij`"),
    ("+ij", "E0104", "`+ij~ij` for each element, `+ij~i`"),
    ("^ij", "E0104", "`^ij~ij`"),
    ("ij", "E0401", "`ij~ji` transposes"),
    ("+ij~", "E0103", "`+ij~i`"),
    ("x+y", "E0104", "letters are axes, not arrays"),
    ("x * 2", "E0104", "`(I | 2) >> x*.~x`"),
    # numbers
    ("ij*0.5~ij", "E0106", "`(I | 0.5) >> ij*.~ij`"),
    ("0.5*ij~ij", "E0109", "`(0.5 | I) >> .*ij~ij`"),
    ("i+1e-5~i", "E0104", "`(I | 1e-5) >> i+.~i`"),
    ("ij**2~ij", "E0103", "`(I | 2) >> ij^.~ij`"),
    ("i**j~ij", "E0103", "`i^j~ij`"),
    # wiring
    ("+ij~i -> ^i~i", "E0109", "`>>`"),
    ("+ij~i => ^i~i", "E0109", "`>>`"),
    ("+ij~i |> ^i~i", "E0103", "`>>`"),
    ("+ij~i + ^i~i", "E0109", "chain them"),
    ("+ij~i && ^i~i", "E0108", "`&`"),
    ("(I , 2) >> i*.~i", "E0109", "`(I | 2)`"),
    # forms
    ("ij*jk~ik", "E0202", "`ij*jk~ikj >> +ikj~ik`"),
    ("-ij~i", "E0203", "`-ij~ij >> +ij~i`"),
    ("^ij~i", "E0203", "`^ij~ij >> +ij~i`"),
    ("+ij~ii", "E0205", "`~i`"),
    ("ij~jk", "E0201", "the output may use i, j"),
    ("i+i+i~i", "E0104", "chain two"),
    ("i//i~i", "E0103", "`i/j~ij`"),
    ("i//i~i", "E0103", 'rounded down, it is `elementwise("f: x, y -> floor_divide(x, y)")`'),
    ("net", "E0401", "define it; or, if these are axes, name the output: `net~ten`"),
    ("ijk", "E0401", "name the output: `ijk~kji` transposes"),
    ("i%i~i", "E0102", "no remainder"),
    ("ij==ij", "E0104", "`ij==ij~ij`"),
    ("ij=ij~ij", "E0105", "`==`"),
    ("f = +ij~i", "E0105", "belongs in a file"),
    ('"+ij~i"', "E0113", '`i("+ij~i")`'),
    ("IJ~I", "E0103", "lower-case"),
    ("i j~i", "E0105", "without blanks"),
    ("x[0]", "E0117", "plain letters"),
    ("not i~i", "E0105", "`!!i~i`"),
]


@pytest.mark.parametrize(("text", "code", "shown"), MISTAKES)
def test_a_typical_mistake_gets_a_spelling_that_works(text: str, code: str, shown: str) -> None:
    with pytest.raises(Error) as caught:
        infer(graph_of(text_component(text), "program"))
    error = caught.value
    assert error.code == code, str(error)
    assert error.span is not None
    assert shown in (error.help or ""), str(error)
    for program in SUGGESTED.findall(error.help or ""):
        if program not in ("~i", "~f", "~"):
            infer(graph_of(text_component(program), "program"))


@pytest.mark.parametrize("name", [*POINTWISE, *REDUCTIONS, *PROGRAMS])
@pytest.mark.parametrize("pattern", ["ij", "i", "abc"])
def test_every_function_has_a_program(name: str, pattern: str) -> None:
    program = (named(name, pattern) or "").split("`")[-2]
    infer(graph_of(text_component(program), "program"))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


MEANINGS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "reciprocal": lambda x: 1 / x,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "log2": np.log2,
    "log10": np.log10,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "tanh": np.tanh,
    "sign": np.sign,
    "isnan": np.isnan,
    "sum": lambda x: x.sum(-1),
    "prod": lambda x: x.prod(-1),
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(-1),
    "any": lambda x: x.any(-1),
    "all": lambda x: x.all(-1),
    "mean": lambda x: x.mean(-1),
    "norm": lambda x: np.linalg.norm(x, axis=-1),
    "logsumexp": lambda x: np.log(np.exp(x).sum(-1)),
    "count_nonzero": lambda x: np.count_nonzero(x, axis=-1),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "log_softmax": lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
    "normalize": lambda x: x / x.sum(-1, keepdims=True),
    "matmul": lambda x: x @ x.T,
}


@pytest.mark.parametrize("name", MEANINGS)
def test_functions_mean_what_their_names_say(name: str) -> None:
    x = np.array([[0.5, 2.0, 3.0], [1.5, 0.25, 4.0]])
    x = x if name in ("log", "sqrt", "rsqrt", "log2", "log10", "matmul") else x - 1.25
    program = (named(name) or "").split("`")[-2]
    given = (x, x.T.copy()) if name == "matmul" else (x,)
    result = i(program)(*given, target="numpy")
    np.testing.assert_allclose(result, MEANINGS[name](x), rtol=1e-9, atol=1e-12)


def test_products_of_kronecker_and_differences_mean_what_numpy_says() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.array([[0.0, 1.0], [2.0, 5.0]])
    kron, diff = ((named(name) or "").split("`")[-2] for name in ("kron", "diff"))
    np.testing.assert_array_equal(i(kron)(x, y, target="numpy"), np.kron(x, y))
    np.testing.assert_array_equal(i(diff)(y.ravel(), target="numpy"), np.diff(y.ravel()))


@pytest.mark.parametrize(
    "text",
    ["ij,jk->ik", "ij,jk", "bij,bjk->bik", "ij->ji", "i,j->ij", "ij,ij->", "ijk,k->ij", "ik,kj"],
)
def test_respelled_specifications_mean_what_numpy_says(text: str) -> None:
    rng = np.random.default_rng(0)
    operands = [part.strip() for part in text.partition("->")[0].split(",")]
    arrays = [rng.random([3] * len(part)) for part in operands]
    spelling = specification(text)
    assert spelling is not None
    result = einsum(spelling)(*arrays, target="numpy")
    np.testing.assert_allclose(result, np.einsum(text, *arrays), rtol=1e-9)


def test_a_file_that_uses_a_library_is_told_what_is_wrong_below() -> None:
    with pytest.raises(Error) as caught:
        module("use std\nm(x[n,k]) = +ij/j~i\n")
    assert caught.value.code == "E0104"
    assert "an expression has one operator" in (caught.value.help or "")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("softmax(x[m,n]) = softmax\n", "E0403", "give it another name"),
        ("rows(t[v,d], ids: i64[n]) = n@vd~nd\n", "E0502", "in the order of the head"),
    ],
)
def test_names_and_orders_that_are_taken(text: str, code: str, said: str) -> None:
    with pytest.raises(Error) as caught:
        infer(module_graph(module(text), text.partition("(")[0]))
    assert caught.value.code == code
    assert said in (caught.value.help or "")

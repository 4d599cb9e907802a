"""Einsum as NumPy writes it: what is read, in which order it is contracted, and what a call makes of its arrays."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, einsum, i
from ilang.core.calculus.contraction import Path
from ilang.core.ir.spec import Spec
from ilang.core.notation.einsum.contraction import contraction_path, contractions
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.notation.einsum.subscripts import letters
from ilang.core.source import Source

Array = npt.NDArray[Any]

SPECIFICATIONS = [
    ",", ",,->", ",,a,->a", ",a,->a", ",ab,->ab", ",i->", ",i->i", "->", "..., ...", "...,...", "...a,...b",
    "...a,ab", "...a->...", "...a->...a", "...b,...a->...", "...ft,mf->...mt", "...i, ...i", "...i,...i",
    "...i->...", "...ii->...i", "...ii->i...", "...ij,...jk->...ik", "...k,kj", "...kl,k", "...kl,k...",
    "...lmn,...lmno->...o", "...lmn,lmno->...o", "AB,BC->CA", "a,->a", "a,a,a->a", "a,ab,abc->abc",
    "a,ac,ab,ad,cd,bd,bc->", "a,b", "a,b,ab->ab", "a,b,abc->c", "a,b,c", "a,b,c->abc", "a,b->", "a,bcd,efg->",
    "a...->...", "a...a->...a", "aab,bc->ac", "aab,bcc->ac", "aab,ccb->ac", "aab,fa,df,ecc->bde", "aabb->ab",
    "aabcb,abc", "ab,->", "ab,->ab", "ab,ab", "ab,ab,c->", "ab,ab,c->c", "ab,ab,cd,cd,ef,ef->", "ab,ab,cd,cd->",
    "ab,ab,cd,cd->ac", "ab,ab,cd,cd->cd", "ab,ba", "ab,bc", "ab,bc,bd->acd", "ab,bc,cd", "ab,bc,cd,de->ae",
    "ab,bc,cd->", "ab,bc,cd->a", "ab,bc,cd->b", "ab,bc,cd->c", "ab,bc,de->", "ab,bc->ac", "ab,bc->ca", "ab,bcc->ac",
    "ab,bcd,cd->abcd", "ab,bcd,cd->abd", "ab,cb", "ab,cd,ad,cb", "ab,cd,de->abcde", "ab,cd,de->be", "ab,cd,ef,fg",
    "ab,cd,ef->abcdef", "ab,cd,ef->acdf", "abc,abc", "abc,bac", "abc,bcd,dea", "abc,bcd,df->fa",
    "abc,bdef,fghj,cem,mhk,ljk->adgl", "abc,cba", "abc,cfd,dbe,efa", "abc,def->fedcba", "abcd,ab", "abcd,ad",
    "abcd,cd", "abcd,cdef", "abcd,cdef->feba", "abcd,ea,fb,gc,hd->efgh", "abcd,efdc", "abhe,hidj,jgba,hiab,gab",
    "abjk,kl,jl", "abjk,kl,jl,ab->ab", "acdf,jbje,gihb,hfac", "acdf,jbje,gihb,hfac,gfac,gifabc,hfac",
    "adb,bc,fa,cfc->d", "aef,fbc,dca->bde", "afd,ba,cc,dc->bf", "ajk,kbl,jl,ab->ab", "ba,ac,da->bcd", "ba,bc",
    "ba,cb", "baa,bcc->ac", "baa,dcf,af,cde->be", "baegffahgc,hdggeff->dhg", "bb,ff,be->e", "bbcdc->d",
    "bbd,bda,fc,db->acf", "bc,ab->bca", "bca,bd->acd", "bca,cdb,dbf,afc->", "bcb,bb,fc,fff->", "bcf,bbb,fbf,fc->",
    "bd,db,eac->ace", "bde,cdh,agdb,hica,ibd,hgicd,hiac", "bdef,cdkj,ji,ikeh,hbc,lfo", "bdhe,acad,hiab,agac,hibd",
    "c,d->", "cab,cdd->ab", "cacc,bcb->", "cd,bdhe,aidb,hgca,gc,hgibcd,hgac", "cehgbaifff,fhhdegih->cdghbi",
    "chd,bde,agbc,hiad,bdi,cgh,agdb", "chd,bde,agbc,hiad,hgc,hgi,hiad", "cl, cpx->lpx", "cl, cpxy->lpxy", "da,ab",
    "dba,ead,cad->bce", "dcc,fce,ea,dbf->ab", "dd,fb,be,cdb->cef", "ea,fb,abcd,gc,hd->efgh",
    "ea,fb,gc,hd,abcd->efgh", "eb,cb,fb->cef", "ecb,fef,bad,ed->ac", "ed,fcd,ff,bcf->be", "efc,dbc,acf,fd->abe",
    "fbb,dfd,fc,fc->", "fdf,cdd,ccd,afe->ae", "fff,fae,bef,def->abd", "gah,cdbcghefg->ef",
    "hbc,bdef,cdkj,ji,ikeh,lfo", "i, i", "i,->", "i,->i", "i,i", "i,i,i,i->", "i,i,i->", "i,i,i->i", "i,i->",
    "i,i->i", "i,ij->", "i,j", "i,j->ij", "i->", "i->i", "i->ij", "i...->...", "i...i->...i", "i...i->i...",
    "i...k->...", "ii->i", "ii...->...i", "ii...->i...", "iii->i", "ij, j", "ij, jh", "ij,i->", "ij,ij->j", "ij,j",
    "ij,jk", "ij,jk,kl", "ij,jk,kl->", "ij,jk,kl->il", "ij,jk,kl->li", "ij,jk->ik", "ij->", "ij->i", "ij->ij",
    "ij->j", "ij...,...j->ij...", "ij...,j->ij...", "ij...,j...->i...", "ij...,j...->ij...",
    "ijab,acd,bce,df,ef->ji", "ijij->", "ijk, jil -> kl", "ijk,ikj", "ijk,j->ijk", "ijk,jil->kl", "ijk,k->ij",
    "ijk,kl,jl", "ijk,kl,jl,i->i", "ijk->jik", "ijkl,k", "ijkl,k->ijl", "ijklm,ijn,ijn->", "ijklm,ijn->",
    "ijp,ipq,ikq->ijk", "ik,k...->i...", "ik,kj->ij", "ik...,...kj->i...j", "ik...,k...->i...", "im,im,im->m",
    "jhcabhijaci,dfijejgh->fgje", "ji,i->", "ji,j", "jii->ij", "mi,mi,mi->m", "nlp,nlq,pl->n", "obk,ijk->ioj",
    "x,yx,zx->xzy", "z,mz,zm->",
]  # fmt: skip
"""Those of the einsum tests of NumPy 2.4 and opt_einsum 3.4 which NumPy accepts for some arrays."""


def spec_of(text: str) -> Spec:
    return parse_spec(Source("<spec>", text))


def operands_of(text: str, seed: int) -> list[Array]:
    """Arrays for a specification: extents 2 and 3, each ellipsis up to two axes, the same at the right."""
    chance, extents, inserted = random.Random(seed), dict[str, int](), (3, 2)
    rng = np.random.default_rng(seed)
    arrays = []
    for term in text.partition("->")[0].replace(" ", "").split(","):
        left, dots, right = term.partition("...")
        shape = [extents.setdefault(letter, chance.choice((2, 3))) for letter in left]
        shape += inserted[2 - chance.randint(0, 2) :] if dots else ()
        shape += [extents.setdefault(letter, chance.choice((2, 3))) for letter in right]
        arrays.append(rng.standard_normal(shape))
    return arrays


@pytest.mark.parametrize("optimize", [True, False])
def test_specifications_mean_what_numpy_says(optimize: bool) -> None:
    refused = 0
    for number, text in enumerate(SPECIFICATIONS):
        arrays = operands_of(text, number)
        try:
            expected = np.einsum(text, *arrays, optimize=True)
        except ValueError:  # what an ellipsis stands for here has no place in the result
            with pytest.raises(Error):
                einsum(text, *arrays, target="numpy")
            refused += 1
            continue
        if not optimize and len(set(text)) > 8:
            continue  # one nest over that many axes takes the evaluator long
        result = einsum(text, *arrays, optimize=optimize, target="numpy")
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9, err_msg=text)
        assert np.shape(result) == expected.shape, text
    assert refused < len(SPECIFICATIONS) / 10


@pytest.mark.parametrize(
    "text",
    ["ij,jk,kl->li", "...ij,...jk->...ik", "aab,bcc->ac", "i...,i->...", "abcd,ea,fb,gc,hd->efgh"],
)
def test_compiled(text: str) -> None:
    arrays = [array.astype(np.float32) for array in operands_of(text, 5)]
    np.testing.assert_allclose(
        einsum(text, *arrays), np.einsum(text, *arrays), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("text", "code", "column", "says"),
    [
        ("ij,j?->ik", "E0140", 5, "`?` is no part"),
        ("i... ...->i", "E0143", 6, "`...` stands twice"),
        ("ij->ii", "E0152", 6, "axis i stands twice in the result"),
        ("ij->ik", "E0152", 6, "axis k of the result stands in no operand"),
        ("...i,i->i", "E0152", 9, "the operand `...i` has `...`"),
        ("ij;jk", "E0141", 1, "has `;` between its inputs"),
        ("batch i, i -> batch", "E0141", 1, "has `;` between its inputs"),
    ],
)
def test_refused(text: str, code: str, column: int, says: str) -> None:
    with pytest.raises(Error) as caught:
        einsum(text)
    assert (caught.value.code, says in caught.value.message) == (code, True)
    assert caught.value.span is not None
    assert caught.value.span.start + 1 == column


def test_as_a_component_and_in_text() -> None:
    rng = np.random.default_rng(1)
    x, y, z = (rng.random(shape) for shape in ((3, 4), (4, 5), (5, 2)))
    for f in (einsum("ij,jk,kl"), i('einsum("ij,jk,kl")'), i('einsum("ij,jk,kl") || 0 i l j k')):
        np.testing.assert_allclose(f(x, y, z, target="numpy"), x @ y @ z)
    both = i('einsum("ij,jk->ik") >> einsum("ij->ji")')
    np.testing.assert_allclose(both(x, y, target="numpy"), (x @ y).T)


# contraction orders


def cost(spec: Spec, path: Path, extents: dict[str, int]) -> int:
    """The multiplications of a path."""
    return sum(
        prod(
            extents[letter]
            for letter in {name for shape in step.operands for name in letters(shape)}
        )
        for _, step in contractions(spec, path)
    )


def every_path(count: int) -> list[Path]:
    if count == 1:
        return [()]
    return [
        (pair, *rest) for pair in combinations(range(count), 2) for rest in every_path(count - 1)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_no_path_multiplies_less(seed: int) -> None:
    """The order of few operands is the best of all."""
    chance = random.Random(seed)
    extents = {letter: chance.choice((1, 2, 7, 30)) for letter in "abcdef"}
    count = chance.randint(3, 5)
    terms = ["".join(chance.sample("abcdef", chance.randint(1, 3))) for _ in range(count)]
    known = sorted(set("".join(terms)))
    text = (
        ",".join(terms)
        + "->"
        + "".join(chance.sample(known, chance.randint(0, min(3, len(known)))))
    )
    spec = spec_of(text)
    least = min(cost(spec, path, extents) for path in every_path(count))
    assert cost(spec, contraction_path(spec, extents), extents) == least, text


def test_many_operands_are_ordered_greedily() -> None:
    """A chain of forty products is contracted with forty products of matrices, whatever its length."""
    names = [chr(0x4E00 + n) for n in range(41)]
    text = ",".join(a + b for a, b in pairwise(names)) + f"->{names[0]}{names[-1]}"
    spec, extents = spec_of(text), dict.fromkeys(names, 10)
    path = contraction_path(spec, extents)
    assert cost(spec, path, extents) <= 39 * 10**3
    assert all(len(step) == 2 for step in path)


# calls


def test_lists_of_axes() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(einsum(x, [0, 1], y, [1, 2], target="numpy"), x @ y)
    np.testing.assert_allclose(einsum(x, [7, 4], [4, 7], target="numpy"), x.T)
    np.testing.assert_allclose(einsum(x, [..., 0], [0, ...], target="numpy"), x.T)
    with pytest.raises(Error) as caught:
        einsum(x, [0, 52])
    assert caught.value.code == "E0716"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,ij->ij", [(1, 3), (2, 3)]),
        ("ij,jk->ik", [(2, 1), (5, 3)]),
        ("...ij,...jk->...ik", [(4, 1, 2, 3), (5, 3, 2)]),
        ("ii,i->i", [(1, 1), (4,)]),
        ("i,i->", [(1,), (0,)]),
        ("...,...", [(3, 1), (1, 2)]),
    ],
)
def test_extents_of_one_repeat(text: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.random.default_rng(n).random(shape) for n, shape in enumerate(shapes)]
    result = einsum(text, *arrays, target="numpy")
    np.testing.assert_allclose(result, np.einsum(text, *arrays))


@pytest.mark.parametrize(
    ("text", "shapes", "code", "says"),
    [
        ("ij,jk", [(2, 3), (4, 5)], "E0505", "axis j is 3 in in0"),
        ("ij,jk", [(2, 3), (3,)], "E0503", "in1 has rank 1, but `jk` reads it with rank 2"),
        ("...ij", [(2,)], "E0503", "in0 has rank 1, but `...ij` reads it with rank at least 2"),
        ("ii->i", [(1, 3)], "E0505", "axis i is 1 in in0"),
        ("ij,jk", [(2, 3)], "E0150", "2 operands, and 1 array"),
    ],
)
def test_misfits(text: str, shapes: list[tuple[int, ...]], code: str, says: str) -> None:
    with pytest.raises(Error) as caught:
        einsum(text, *(np.ones(shape) for shape in shapes))
    assert caught.value.code == code
    assert says in caught.value.message


def test_types_are_joined_as_numpy_joins_them() -> None:
    whole, real, truth = (
        np.arange(4, dtype=np.int32),
        np.ones(4, np.float32),
        np.array([0, 1, 1, 0], bool),
    )
    for arrays in ((whole, whole), (whole, real), (truth, truth), (truth, whole)):
        expected = np.einsum("i,i->i", *arrays)
        result = einsum("i,i->i", *arrays, target="numpy")
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    assert einsum("i,i", truth, truth, target="numpy")
    assert einsum("i->", real, dtype="f8", target="numpy").dtype == np.float64


def test_outputs() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for out in (np.empty((2, 4)), np.empty((4, 2)).T, np.empty((2, 8))[::-1, ::2]):
        assert einsum("ij,jk", x, y, out=out, target="numpy") is out
        np.testing.assert_allclose(out, x @ y)
    for wrong, code in ((np.empty((4, 2)), "E0707"), (np.empty((2, 4), np.int32), "E0708")):
        with pytest.raises(Error) as caught:
            einsum("ij,jk", x, y, out=wrong, target="numpy")
        assert caught.value.code == code


@pytest.mark.parametrize("optimize", ["fastest", [(0, 7)], [(0, 0)], 3, ["einsum_path", (0, 1.5)]])
def test_no_order(optimize: object) -> None:
    x = np.ones((2, 2))
    with pytest.raises(Error) as caught:
        einsum("ij,jk,kl", x, x, x, optimize=optimize)
    assert caught.value.code == "E0719"


def test_orders() -> None:
    rng = np.random.default_rng(3)
    x, y, z = (rng.random(shape) for shape in ((3, 4), (4, 5), (5, 2)))
    orders = [
        False,
        "greedy",
        ("optimal", 100),
        ["einsum_path", (0, 1), (0, 1)],
        [(0, 2)],
        [(0,), (0, 1, 2)],
    ]
    for optimize in orders:
        result = einsum("ij,jk,kl->li", x, y, z, optimize=optimize, target="numpy")
        np.testing.assert_allclose(result, (x @ y @ z).T)

"""Contractions of the TCCG suite (Springer and Bientinesi, 2016), at sizes that take milliseconds.

They come from coupled-cluster methods, transformations of orbitals and products along one mode. The suite writes
``C-A-B`` in Fortran's order, first axis contiguous; an axis that is contiguous in one of the arrays is a multiple of
24, any other of 4, and all are about alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bench.suites import Task, arrays

ELEMENTS = 3_000_000
"""Elements of the largest array, about."""
OPERATIONS = 0.75e9
"""Multiplications, at most."""
MODE = 24
"""The extent of the new axis ``j`` of a product along one mode."""

CONTRACTIONS = {
    "ccsd": """
        ij-ik-kj ij-ikl-ljk ij-kil-lkj ijk-ikl-lj ijk-il-jlk ijk-ilk-jl ijk-ilk-lj ijk-ilmk-mjl ijkl-imjn-lnkm
        ijkl-imjn-nlmk ijkl-imkn-jnlm ijkl-imkn-njml ijkl-imln-jnkm ijkl-imln-njmk ijkl-imnj-nlkm ijkl-imnk-njml
        ijkl-minj-nlmk ijkl-mink-jnlm ijkl-minl-njmk""",
    "orbitals": "aqrs-pa-pqrs abrs-qb-aqrs abcs-rc-abrs",
    "mode": """
        abj-bka-kj ajb-kba-jk abjc-cbka-kj ajbc-ckba-jk abjc-kbac-jk abjcd-dkbac-jk adbjc-cbdka-kj
        ajbdc-ckbad-jk""",
    "ccsd(t)": """
        abcijk-ijma-mkbc abcijk-ijmb-mkac abcijk-ijmc-mkab abcijk-ikmb-mjac abcijk-eiab-jkec abcijk-ekbc-ijea""",
    "flattened": "abc-bk-akc",
}


def tasks(seed: int, count: int) -> Iterator[Task]:
    """All contractions, whatever the count."""
    del count
    for kind, listed in CONTRACTIONS.items():
        for name in listed.split():
            yield _task(kind, name, seed)


def _task(kind: str, name: str, seed: int) -> Task:
    extents = _extents(name, kind == "mode")
    result, left, right = (axes[::-1] for axes in name.split("-"))
    every = result + "".join(sorted({*left, *right} - {*result}))
    spec = f"{left},{right}->{result}"
    path = np.einsum_path(spec, *(np.empty([extents[c] for c in t]) for t in (left, right)))[0]

    def meaning(xp: object, x: object, y: object) -> object:
        if xp is np:
            return np.einsum(spec, x, y, optimize=path)  # type: ignore[call-overload]
        return xp.einsum(spec, x, y)  # type: ignore[attr-defined]

    return Task(
        kind,
        f"{left}*{right}~{every} >> +{every}~{result}",
        arrays(seed, "float32", *([extents[c] for c in axes] for axes in (left, right))),
        meaning,
        spec,
        name,
    )


def _extents(name: str, is_mode: bool) -> dict[str, int]:
    """The extents of all axes; while there is too much to do, the longest axis is made shorter."""
    terms = name.split("-")
    contiguous = {axes[0] for axes in terms}
    usual = ELEMENTS ** (1 / max(map(len, terms)))
    extents = {}
    for axis in sorted({*"".join(terms)}):
        unit = 24 if axis in contiguous else 4
        extents[axis] = max(1, round(usual / unit)) * unit
    if is_mode:
        extents["j"] = MODE
    while OPERATIONS < math.prod(extents.values()):
        axis = max(extents, key=lambda each: extents[each])
        extents[axis] -= 24 if 48 < extents[axis] else 4
    return extents

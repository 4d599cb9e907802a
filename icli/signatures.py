"""Parameters of the functions of array libraries, by their names in NumPy, bound to what a call gives.

np.sum(x, axis=0)      a: x, axis: 0, keepdims: False, dtype: None
torch.sum(x, dim=0)    the same
np.sum(x, axs=0)       refused: it takes no `axs`
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache

from ilang.core.diagnostic import enumerated
from ilang.core.suggestion import nearest
from ilang.icli.array_functions import (
    BINARY,
    COUNTS,
    CUMULATIVE,
    FLIPPED,
    JOINED,
    JOINED_ALONG,
    KERNELS,
    PLACES,
    PRODUCTS,
    REDUCERS,
    SHOWN,
    SPREAD,
    MismatchError,
    NoExpressionError,
    NoSpellingError,
)
from ilang.icli.filled import MAKERS
from ilang.icli.python_nodes import whole_number, whole_numbers

REDUCED = "a, axis=None, *, keepdims=False"

EXPANSIONS = {
    "ptp": (REDUCED, "amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)"),
    "average": (REDUCED, "mean(a, axis, keepdims=keepdims)"),
    "cov": (
        "m",
        "(m - mean(m, 1, keepdims=True)) @ (m - mean(m, 1, keepdims=True)).T / (m.shape[1] - 1)",
    ),
    "corrcoef": ("m", "cov((m - mean(m, 1, keepdims=True)) / std(m, 1, ddof=1, keepdims=True))"),
    "rot90": ("m", "swapaxes(m, 0, 1)[::-1]"),
    "diff": ("a", "a[..., 1:] - a[..., :-1]"),
    "hypot": ("x1, x2", "sqrt(x1 * x1 + x2 * x2)"),
    "exp2": ("x", "2.0 ** x"),
    "isfinite": ("x", "abs(x) < inf"),
    "isinf": ("x", "abs(x) == inf"),
    "trunc": ("x", "where(x < 0, ceil(x), floor(x))"),
    "isclose": ("a, b", "(a == b) | (abs(a - b) <= 1e-08 + 1e-05 * abs(b))"),
    "allclose": ("a, b", "all((a == b) | (abs(a - b) <= 1e-08 + 1e-05 * abs(b)))"),
    "array_equal": ("a1, a2", "all(a1 == a2)"),
}
"""Functions that are expressions of others: what they take, and the expression over its names."""
KEYWORDS = {
    "dim": "axis", "dims": "axis", "keepdim": "keepdims", "correction": "ddof", "min": "a_min", "max": "a_max",
    "input": "a", "x": "a", "indices_or_sections": "indices", "index": "indices",
}  # fmt: skip
"""Keywords of other libraries, and what NumPy calls them."""
SIGNATURES: dict[str, str] = {
    **dict.fromkeys(REDUCERS, REDUCED),
    **dict.fromkeys(("sum", "prod", "mean"), f"{REDUCED}, dtype=None"),
    **dict.fromkeys(("var", "std"), f"{REDUCED}, ddof=0"),
    **dict.fromkeys((*PLACES, "logsumexp", "count_nonzero", "median"), REDUCED),
    **dict.fromkeys(("quantile", "percentile"), REDUCED.replace("a,", "a, q,")),
    "norm": REDUCED.replace("axis", "ord=None, axis"),
    **dict.fromkeys(FLIPPED, "a"),
    "flip": "a, axis=None",
    **dict.fromkeys(SPREAD, "a, axis=-1"),
    **dict.fromkeys(CUMULATIVE, "a, axis=None"),
    **dict.fromkeys(JOINED, "*arrays"),
    **dict.fromkeys(JOINED_ALONG, "*arrays, axis=0"),
    "pad": "a, pad_width",
    "convolve": "a, v, mode='full'",
    "flatnonzero": "a",
    "append": "arr, values, axis=None",
    "take": "a, indices, axis=None",
    **dict.fromkeys(COUNTS, "a"),
    **dict.fromkeys(("reshape", "view"), "a, *shape"),
    **dict.fromkeys(("transpose", "permute"), "a, *axes"),
    **dict.fromkeys(("flatten", "ravel"), "a"),
    "swapaxes": "a, axis1, axis2",
    "moveaxis": "a, source, destination",
    **dict.fromkeys(("expand_dims", "unsqueeze"), "a, axis"),
    "squeeze": "a, axis=None",
    "repeat": "a, repeats, axis=None",
    "tile": "a, reps",
    "roll": "a, shift, axis=None",
    **{name: kernel.partition(" ->")[0] for name, kernel in KERNELS.items()},
    "round": "a, decimals=0",
    **dict.fromkeys(BINARY, "x1, x2"),
    **dict.fromkeys((*PRODUCTS, "outer", "inner", "vdot", "bmm"), "a, b"),
    **dict.fromkeys(SHOWN, "a, dtype=None"),
    **dict.fromkeys(("astype", "to", "type"), "a, dtype"),
    **dict.fromkeys(MAKERS, "*numbers, dtype=None"),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), "a, dtype=None"),
    "full_like": "a, fill_value, dtype=None",
    **{name: parameters for name, (parameters, _) in EXPANSIONS.items()},
}
"""The parameters of functions by their names; any other one takes ``x``."""


@cache
def parameters_of(name: str) -> ast.arguments:
    """The parameters of a function, as Python reads them."""
    function = ast.parse(f"def f({SIGNATURES.get(name, 'x')}): 0").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


def optional_of(name: str) -> dict[str, ast.expr]:
    """The parameters of a function that may be left out, and what they are then."""
    takes = parameters_of(name)
    optional = [*takes.args[len(takes.args) - len(takes.defaults) :], *takes.kwonlyargs]
    values = [*takes.defaults, *filter(None, takes.kw_defaults)]
    return {each.arg: value for each, value in zip(optional, values, strict=True)}


def parameters_told(name: str, owners: int = 0) -> str:
    """The parameters of a function, for messages: ``a, axis, keepdims``; those of a method without its owner."""
    takes = parameters_of(name)
    rest = [] if takes.vararg is None else [takes.vararg]
    return ", ".join(each.arg for each in (*takes.args[owners:], *rest, *takes.kwonlyargs))


def bound(
    name: str,
    spelled: str,
    given: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
    owners: int = 0,
) -> tuple[dict[str, ast.expr], list[ast.expr]]:
    """The arguments of a call of a function, which is ``spelled`` somehow: by parameters, and those without an end.

    The first of a method is its owner, one of ``owners``, which stands before its name.

    Raises: MismatchError (it does not take them), NoExpressionError (one is missing), NoSpellingError.
    """
    takes, listed = parameters_of(name), parameters_told(name, owners)
    names = [each.arg for each in takes.args]
    if any(isinstance(each, ast.Starred) for each in given) or any(not k.arg for k in keywords):
        raise NoSpellingError
    if len(names) < len(given) and takes.vararg is None:
        message = f"`{spelled}` takes {listed or 'nothing'} in this order, and {len(given) - owners} are given"
        named_alone = f"; `{takes.kwonlyargs[0].arg}=` is written out" if takes.kwonlyargs else ""
        hint = f"`{spelled}({', '.join(names[owners:])})`{named_alone}"
        axes = given[names.index("axis") :] if takes.kwonlyargs and "axis" in names else []
        if axes and all(whole_number(each) is not None for each in axes):
            several = ", ".join(
                map(ast.unparse, (*given[owners : len(given) - len(axes)], ast.Tuple([*axes])))
            )
            hint = f"several axes stand in parentheses: `{spelled}({several})`"
        raise MismatchError(message, hint, "E0821", spelled)
    arguments = optional_of(name) | dict(zip(names, given, strict=False))
    for each in keywords:
        known = [*names, *(other.arg for other in takes.kwonlyargs)]
        arguments[_keyword(known, spelled, each, listed)] = _from_zero(each)
    missing = [each for each in names if each not in arguments]
    if missing:
        message = f"`{spelled}` needs {enumerated(missing)}"
        raise NoExpressionError(message, f"it takes {listed}", "E0821", spelled)
    return arguments, [*given[len(names) :]]


def _keyword(known: Sequence[str], spelled: str, keyword: ast.keyword, listed: str) -> str:
    """The parameter that a keyword names."""
    word = keyword.arg or ""
    name = word if word in known else KEYWORDS.get(word, word)
    if name in known:
        return name
    guess = nearest(word, known)
    hint = f"did you mean `{guess}`?" if guess else f"it takes {listed}"
    raise MismatchError(f"`{spelled}` takes no `{word}`", hint, "E0821", word)


def _from_zero(keyword: ast.keyword) -> ast.expr:
    """The value of a keyword; Julia counts ``dims`` from 1."""
    if keyword.arg != "dims":
        return keyword.value
    return ast.Tuple([ast.Constant(axis - (0 < axis)) for axis in whole_numbers([keyword.value])])

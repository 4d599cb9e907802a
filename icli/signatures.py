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
from ilang.core.record import record
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
from ilang.icli.python_nodes import whole_numbers

REDUCED = "a, axis=None, *, keepdims=False"

EXPANSIONS = {
    "ptp": (REDUCED, "amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)"),
    "average": (REDUCED, "mean(a, axis, keepdims=keepdims)"),
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


@record
class Parameters:
    """Names in order, those that stand by keyword alone, and the values of those that may be left out."""

    names: tuple[str, ...]
    keywords: tuple[str, ...]
    defaults: tuple[tuple[str, ast.expr], ...]
    rest: tuple[str, ...]
    """The name of arguments without an end, such as sizes."""

    def told(self) -> str:
        """The names as messages list them: ``a, axis, keepdims``."""
        return ", ".join((*self.names, *self.rest, *self.keywords))


@cache
def parameters_of(name: str) -> Parameters:
    """The parameters of a function."""
    function = ast.parse(f"def f({SIGNATURES.get(name, 'x')}): 0").body[0]
    assert isinstance(function, ast.FunctionDef)
    args = function.args
    names = tuple(each.arg for each in args.args)
    keywords = tuple(each.arg for each in args.kwonlyargs)
    optional = names[len(names) - len(args.defaults) :]
    values = (*args.defaults, *(each for each in args.kw_defaults if each is not None))
    defaults = tuple(zip((*optional, *keywords), values, strict=True))
    rest = () if args.vararg is None else (args.vararg.arg,)
    return Parameters(names, keywords, defaults, rest)


@record
class CallArguments:
    """The arguments of a call by the parameters of its function, and the rest where these have no end."""

    named: dict[str, ast.expr]
    rest: tuple[ast.expr, ...]

    def is_given(self, name: str) -> bool:
        """Whether something other than ``None`` stands for a parameter."""
        node = self.named.get(name)
        return node is not None and not (isinstance(node, ast.Constant) and node.value is None)

    def axes(self) -> list[int] | None:
        """The axes that are named; None for all. Raises: NoSpellingError."""
        return whole_numbers([self.named["axis"]]) if self.is_given("axis") else None

    def keeps(self) -> bool:
        """Whether axes that are reduced stay with size 1."""
        return "keepdims" in self.named and ast.unparse(self.named["keepdims"]) == "True"


def bound(
    name: str, spelled: str, given: Sequence[ast.expr], keywords: Sequence[ast.keyword]
) -> CallArguments:
    """The arguments of a call of a function, which is ``spelled`` somehow.

    Raises: MismatchError (it does not take them), NoExpressionError (one is missing), NoSpellingError.
    """
    takes = parameters_of(name)
    if any(isinstance(each, ast.Starred) for each in given) or any(not k.arg for k in keywords):
        raise NoSpellingError
    if len(takes.names) < len(given) and not takes.rest:
        message = f"`{spelled}` takes {takes.told()} in this order, and {len(given)} are given"
        keyword = f"; `{takes.keywords[0]}=` is written out" if takes.keywords else ""
        raise MismatchError(
            message, f"`{spelled}({', '.join(takes.names)})`{keyword}", "E0821", spelled
        )
    named = dict(takes.defaults) | dict(zip(takes.names, given, strict=False))
    for each in keywords:
        named[_keyword(takes, spelled, each)] = _from_zero(each)
    missing = [each for each in takes.names if each not in named]
    if missing:
        message = f"`{spelled}` needs {enumerated(missing)}"
        raise NoExpressionError(message, f"it takes {takes.told()}", "E0821", spelled)
    return CallArguments(named, tuple(given[len(takes.names) :]))


def _keyword(takes: Parameters, spelled: str, keyword: ast.keyword) -> str:
    """The parameter that a keyword names."""
    word = keyword.arg or ""
    known = (*takes.names, *takes.keywords)
    name = word if word in known else KEYWORDS.get(word, word)
    if name in known:
        return name
    guess = nearest(word, known)
    hint = f"did you mean `{guess}`?" if guess else f"it takes {takes.told()}"
    raise MismatchError(f"`{spelled}` takes no `{word}`", hint, "E0821", word)


def _from_zero(keyword: ast.keyword) -> ast.expr:
    """The value of a keyword; Julia counts ``dims`` from 1."""
    if keyword.arg != "dims":
        return keyword.value
    return ast.Tuple([ast.Constant(axis - (0 < axis)) for axis in whole_numbers([keyword.value])])

"""The likely meaning of a refused text, in a spelling that works: help lines out of the user's own words.

Nothing here runs while a text is read without an error. ``spelled`` gets the part of the text that was refused and
gives the program that its author most likely meant, or None; whoever calls it checks that the answer reads well.

    exp(ij)~ij                  ^ij~ij
    sum(ij)~i                   +ij~i
    ij,jk->ik                   ij*jk~ijk >> +ijk~ik
    C[i,j] = A[i,k]*B[k,j]      ik*kj~ijk >> +ijk~ij
    ij*0.5~ij                   (I | 0.5) >> ij*.~ij
    ij.T                        ij~ji
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ilang.core.ops import OPS, PRIMITIVES
from ilang.core.suggestion import nearest

POINTWISE = {
    "exp": "^P~P",
    "log": "$P~P",
    "ln": "$P~P",
    "neg": "-P~P",
    "negative": "-P~P",
    "relu": ">P~P",
    "reciprocal": "/P~P",
    "not": "!!P~P",
    "logical_not": "!!P~P",
    "abs": "(I & -P~P) >> P>P~P",
    "absolute": "(I & -P~P) >> P>P~P",
    "fabs": "(I & -P~P) >> P>P~P",
    "sqrt": "(I | 0.5) >> P^.~P",
    "root": "(I | 0.5) >> P^.~P",
    "rsqrt": "(I | -0.5) >> P^.~P",
    "square": "(I | 2) >> P^.~P",
    "sq": "(I | 2) >> P^.~P",
    "log2": "(2.0 | I) >> .$P~P",
    "log10": "(10.0 | I) >> .$P~P",
    "sigmoid": "-P~P >> ^P~P >> (I | 1) >> P+.~P >> /P~P",
    "silu": "(I & (-P~P >> ^P~P >> (I | 1) >> P+.~P)) >> P/P~P",
    "swish": "(I & (-P~P >> ^P~P >> (I | 1) >> P+.~P)) >> P/P~P",
    "softplus": "^P~P >> (I | 1) >> P+.~P >> $P~P",
    "tanh": "(I | 2) >> P*.~P >> ^P~P >> (I | 1) >> P+.~P >> (-2.0 | I) >> ./P~P >> (I | 1) >> P+.~P",
    "isnan": "(I & I) >> P!=P~P",
    "sign": "((I | 0) >> P>>.~P >> f32 & ((I | 0) >> P<<.~P >> f32)) >> P-P~P",
    "copy": "P~P",
    "identity": "P~P",
}
"""Functions of each element; ``P`` stands for the indices of the input."""

REDUCTIONS = {
    "sum": "+P~R",
    "reduce_sum": "+P~R",
    "add.reduce": "+P~R",
    "prod": "*P~R",
    "product": "*P~R",
    "max": ">P~R",
    "amax": ">P~R",
    "reduce_max": ">P~R",
    "min": "<P~R",
    "amin": "<P~R",
    "reduce_min": "<P~R",
    "any": "||P~R",
    "all": "&&P~R",
    "mean": "D+P~R",
    "average": "D+P~R",
    "avg": "D+P~R",
    "norm": "(I | 2) >> P^.~P >> +P~R >> (I | 0.5) >> R^.~R",
    "logsumexp": "(>P~R & ((I & >P~R) >> P-R~P >> ^P~P >> +P~R >> $R~R)) >> R+R~R",
    "count_nonzero": "(I | 0) >> P!=.~P >> +P~R",
    "softmax": "(I & >P~R) >> P-R~P >> ^P~P >> (I & +P~R) >> P/R~P",
    "log_softmax": "(I & >P~R) >> P-R~P >> (I & (^P~P >> +P~R >> $R~R)) >> P-R~P",
    "normalize": "(I & +P~R) >> P/R~P",
}
"""Functions along axes; ``R`` stands for the indices that are left, ``D`` for a division by each of the extents."""

PROGRAMS = {
    "matmul": "ik*kj~ijk >> +ijk~ij",
    "mm": "ik*kj~ijk >> +ijk~ij",
    "dot": "i*i~i >> +i~.",
    "vdot": "i*i~i >> +i~.",
    "inner": "i*i~i >> +i~.",
    "bmm": "bik*bkj~bijk >> +bijk~bij",
    "linear": "bi*oi~boi >> +boi~bo",
    "outer": "i*j~ij",
    "tensordot": "ik*kj~ijk >> +ijk~ij",
    "kron": 'einx.multiply("a b, c d -> (a c) (b d)")',
    "diff": "(i+k:2)~ik >> (I & I) >> i1-i0~i",
    "transpose": "ij~ji",
    "t": "ij~ji",
    "swapaxes": "ij~ji",
    "permute": "ijk~kij",
    "rearrange": "ij~ji",
    "trace": "ii~.",
    "diag": "ii~i",
    "diagonal": "ii~i",
    "add": "ij+ij~ij",
    "subtract": "ij-ij~ij",
    "sub": "ij-ij~ij",
    "multiply": "ij*ij~ij",
    "mul": "ij*ij~ij",
    "divide": "ij/ij~ij",
    "div": "ij/ij~ij",
    "power": "ij^ij~ij",
    "pow": "ij^ij~ij",
    "maximum": "ij>ij~ij",
    "minimum": "ij<ij~ij",
    "greater": "ij>>ij~ij",
    "less": "ij<<ij~ij",
    "equal": "ij==ij~ij",
    "conv": "(i+k)*k~ik >> +ik~i",
    "conv1d": "(i+k)*k~ik >> +ik~i",
    "convolve": "(i+k)*k~ik >> +ik~i",
    "convolution": "(i+k)*k~ik >> +ik~i",
    "correlate": "(i+k)*k~ik >> +ik~i",
    "conv2d": "nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx",
    "maxpool": ">(2i+k:2)~i",
    "max_pool2d": ">nc(2y+u:2)(2x+v:2)~ncyx",
    "attention": "((ik*jk~ijk >> +ijk~ij >> einx.softmax('a [b]')) | I) >> ij*jd~ijd >> +ijd~id",
    "argmax": ">@ij~i",
    "argmin": "<@ij~i",
    "tril": "ij[j<=i]~ij",
    "triu": "ij[j>=i]~ij",
    "arange": "@(i:10)~i",
    "eye": "@(i:3)==@(j:3)~ij >> f32",
    "identity": "@(i:3)==@(j:3)~ij >> f32",
    "one_hot": "i==@(c:10)~ic",
}
"""Functions of whole arrays."""

TYPES = {
    "float": "f32", "float32": "f32", "single": "f32", "half": "f32", "float16": "f32", "f16": "f32",
    "bf16": "f32", "bfloat16": "f32", "float64": "f64", "double": "f64", "int": "i32", "int32": "i32",
    "long": "i64", "int64": "i64", "int8": "i32", "i8": "i32", "u8": "i32", "uint8": "i32", "int16": "i32",
    "i16": "i32", "short": "i32", "bool_": "bool", "boolean": "bool",
}  # fmt: skip
"""Element types of other systems, and what converts to the nearest of ours."""

_KERNEL = 'elementwise("f: {}")'
MOVES = {
    "repeat": "an axis is repeated by another input that has it: `i*j~ij`",
    **dict.fromkeys(("reshape", "view"), 'it is written `einx.id("(a b) -> a b", a=2)`'),
    "clip": f"it is written `{_KERNEL.format('x, a, b -> min(max(x, a), b)')}`",
    "pad": "`i(j:8-1)~ij` has 8 columns: one of zeros, those of the input, and zeros again",
    **dict.fromkeys(
        ("histogram", "bincount"),
        "`i==@(v:4)~iv >> f32 >> +iv~v` counts how often 0, 1, 2 and 3 are there, of integers",
    ),
    "linspace": "`@(i:11)~i >> f32 >> (I | 10.0) >> i/.~i` has 11 numbers from 0 to 1",
    "meshgrid": "no grid is stored: an input is repeated along a letter that it lacks, `i+j~ij`",
    **dict.fromkeys(
        ("distance", "cdist"),
        "this is the square of it: `id-jd~ijd >> (I & I) >> ijd*ijd~ijd >> +ijd~ij`",
    ),
    "flatten": 'it is written `einx.id("a b -> (a b)")`',
    "squeeze": "an axis of extent 1 is left out by its position: `i0~i`",
    "concat": 'it is written `einsum("a; b => a^b")`',
    "concatenate": 'it is written `einsum("a; b => a^b")`',
    "cat": 'it is written `einsum("a; b => a^b")`',
    **dict.fromkeys(
        ("where", "if"), f"it is written `{_KERNEL.format('c, x, y -> where(c, x, y)')}`"
    ),
    "reduce": "a reduction names what it folds with and what it keeps: `+ij~i`",
    "zeros": "a constant is a number, such as `0`; `zeros(2, 3)` is an array, which stands after a program",
    "ones": "a constant is a number, such as `1`; `ones(2, 3)` is an array, which stands after a program",
    **{name: f"it is written `{_KERNEL.format(f'x -> {name}(x)')}`" for name in ("sin", "cos")},
    **{
        name: f'it is written `einx.{name}("... [c]")`, along the last axis'
        for name in ("sort", "argsort", "flip")
    },
    **dict.fromkeys(
        ("unsqueeze", "expand_dims", "newaxis"),
        "an axis that repeats is a letter that an input lacks: `ij*i~ij`",
    ),
    **dict.fromkeys(("seed", "manual_seed"), "the numbers of `rand:2x3` are the same every time"),
    **dict.fromkeys(
        ("mod", "modulo", "remainder"),
        f"it is written `{_KERNEL.format('x, y -> x - y * floor_divide(x, y)')}`",
    ),
    "floor": f"it is written `{_KERNEL.format('x -> floor_divide(x, 1)')}`",
    "ceil": f"it is written `{_KERNEL.format('x -> -floor_divide(-x, 1)')}`",
    "round": f"halves upwards, it is written `{_KERNEL.format('x -> floor_divide(x + 0.5, 1)')}`",
    "tile": 'it is written `einx.id("a -> (n a)", n=2)`',
    "reverse": 'it is written `einx.flip("... [c]")`, along the last axis',
    "variance": "`var` is a component of `std`",
    "roll": 'it is written `einx.roll("... [c]", shift=(1,))`, along the last axis',
    "help": "`i COMMAND --help` and `i explain WORD` in a terminal, `:help` in `i repl`",
    "load": "a file stands where an array does: `x = x.npy` in `i repl`, `i run PROGRAM x.npy`",
    "topk": 'it is written `einx.sort("... [c]")`, ascending; the largest along j is `>ij~i`, its place `>@ij~i`',
    **dict.fromkeys(
        ("gather", "take", "index_select", "embedding", "lookup"),
        'it is written `einx.get_at("[v] d, n -> n d")`, rows by their number',
    ),
    **dict.fromkeys(
        ("scatter", "scatter_add", "index_add", "put"),
        'it is written `einx.add_at("[v] d, n, n d -> [v] d")`, rows by their number',
    ),
    "cumsum": "it is written as windows that end at each place: `+(i:5+j:5-4)~i` of 5 elements, with n, n and n-1 of n;"
    " of any number, slower, `(I & I) >> ((I | 0) >> i^.~i | I) >> i*j[j<=i]~ij >> +ij~i`",
    **dict.fromkeys(
        [
            "median",
            "quantile",
            "percentile",
            "unique",
            "fft",
            "inv",
            "solve",
            "det",
            "svd",
            "eig",
            "qr",
            "lstsq",
            "pinv",
            "eigh",
            "cholesky",
            "interp",
            "searchsorted",
        ],
        "there is nothing like it here: compute it with NumPy, before or after",
    ),
    "lambda": "a program names indices, no variables: `+ij~i`",
    "for": "loops are written by indices: `+ij~i` sums over j for each i",
    "print": "`i run` prints what a program gives",
}
"""Operations that have no spelling of the same kind, and what there is instead."""

FUNCTIONS = (*POINTWISE, *REDUCTIONS, *PROGRAMS)
PREFIX = r"(?:(?:np|numpy|torch|jnp|jax|tf|math|F|nn|functional|xp|cp|einops|scipy|linalg|fft)\.)*"
LETTERS = r"[a-z]+"
CALL = re.compile(
    rf"{PREFIX}(?P<name>[A-Za-z_]\w*)\s*(?:\((?P<inside>.*)\)|\s(?P<bare>{LETTERS}|\.))?\s*(?:~\s*(?P<out>{LETTERS}|\.))?",
    re.DOTALL,
)
METHOD = re.compile(
    r"(?P<owner>[A-Za-z_]\w*)\.(?P<name>[A-Za-z_]\w*)(?:\(.*\))?(?:~.*)?", re.DOTALL
)
ARROW = re.compile(r"(?P<left>[^~]*?)\s*(?:-+>|=>|→)\s*(?P<right>[^~]*)", re.DOTALL)
SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\s*\[([a-z](?:\s*,\s*[a-z])*)\]")
ASSIGNED = re.compile(r"(.*?)\s*(\+?)=\s*(.*)")
NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
SIGN = r"(?:>>|<<|>=|<=|==|!=|&&|\|\||\^\^|\*\*|[-+*/><^$])"
LITERAL = rf"(?:{NUMBER}|-(?:inf|nan))"
"""A number beside an operator: without its sign ``inf`` is three axes."""
NO_NUMBERS = {"inf": "(1 | 0) >> ./.~.", "nan": "(0 | 0) >> ./.~."}
"""Words for numbers in other languages, and programs that give these."""
SCALED = re.compile(rf"({LETTERS})\s*({SIGN})\s*({LITERAL})\s*(?:~\s*({LETTERS}|\.))?")
SCALING = re.compile(rf"({LITERAL})\s*({SIGN})\s*({LETTERS})\s*(?:~\s*({LETTERS}|\.))?")
MATRICES = re.compile(
    rf"([A-Za-z]\w*)(\.T)?\s*(@|{SIGN})\s*([A-Za-z]\w*)(\.T)?\s*(?:~\s*[A-Za-z]*)?"
)
PLAIN = re.compile(rf"({SIGN}|!!)?\s*({LETTERS}|\.)\s*(?:({SIGN})\s*({LETTERS}|\.)\s*)?~?\s*")
FORM = re.compile(rf"(?:{SIGN}|!!)?\s*[a-z.]+\s*(?:{SIGN}\s*[a-z.]+\s*)?~\s*[a-z.]+")
SCHEDULED = re.compile(r"([^|~]+)(?:\|+([a-z'\s]*))?")
"""A schedule behind its first bar: splits, and perhaps an order."""
SPLIT = re.compile(r"([a-z])\s*[:=]\s*(\d+(?::\d+)*)")
"""The factors of an axis in a schedule, perhaps with another sign."""
EQUALS = re.compile(r"(?<=[a-z0-9'])\s*=\s*(?=\w)")
"""The sign of a program of other languages between a loop and its role, or a split."""
REDUCING = ("+", "*", ">", "<", "&&", "||", "^^")


def operator_help(symbol: str) -> str:
    """The meanings of an operator, each with an expression: reduction, one input, two inputs."""
    op = OPS[symbol]
    one, two = PRIMITIVES[op.unary].says, op.binary and PRIMITIVES[op.binary].says
    constant = op.unary_left if op.unary_left is not None else op.unary_right
    one += "" if constant is None else f" {'with ' if op.unary_left is not None else ''}0"
    meanings = [f"`{symbol}ij~i` {op.reduction_says} along j"] if op.reduction_says else []
    meanings += [f"`{symbol}ij~ij` {one}"]
    meanings += [f"`ij{symbol}ij~ij` {two}, of two arrays"] if two else []
    return "; ".join(meanings)


def spelled(text: str, unknown: str | None = None) -> str | None:
    """The help for a part of a program: its spelling here, or what there is instead; None where nothing is known.

    ``unknown`` is the word of it that names nothing.
    """
    text = text.strip()
    if len(text) > 200:
        return None
    for rule in (_matrices, _lowered, _scheduled, _constant, _called, _method, _arrow, _subscripts):
        help_line = rule(text)
        if help_line is not None:
            return help_line
    if unknown is None or (text == unknown and len(set(text)) == len(text) < 5):
        return _no_output(text)
    return None


def resembling(word: str) -> str | None:
    """The help for a misspelt function: ``softmx``."""
    close = nearest(word, FUNCTIONS) if 3 < len(word) else None
    return None if close is None else named(close)


def _wrapped(*programs: str) -> str:
    return "write " + ", or ".join(f"`{program}`" for program in programs)


def _distinct(text: str) -> str:
    return "".join(dict.fromkeys(text))


def _left(pattern: str) -> str:
    """The indices that a reduction leaves where nothing says: all but the last axis."""
    return _distinct(pattern)[:-1] or "."


def named(name: str, pattern: str = "ij", out: str | None = None) -> str | None:
    """The help for a function of other systems by its name; None where it is unknown."""
    key = name.lower()
    key = key if key in POINTWISE or key in REDUCTIONS else key.removeprefix("reduce_")
    if key in POINTWISE:
        plain = "" if pattern == "." else pattern
        program = POINTWISE[key].replace("P", plain or ".")
        if out is not None and sorted(out) != sorted(pattern):
            return None
        return f"`{name}` is `{program}`"
    if key in REDUCTIONS:
        kept = _left(pattern) if out is None or sorted(out) == sorted(pattern) else out
        dropped = [axis for axis in _distinct(pattern) if axis not in kept]
        divided = "".join(f"P/:{axis}~P >> " for axis in dropped)
        program = REDUCTIONS[key].replace("D", divided).replace("P", pattern).replace("R", kept)
        along = f" along {', '.join(dropped)}" if dropped else ""
        return f"`{name}`{along} is `{program}`"
    if key in PROGRAMS:
        return f"`{name}` is `{PROGRAMS[key]}`"
    if key in TYPES:
        return f"the element types are f32, f64, i32, i64 and bool: write `{TYPES[key]}`"
    return f"`{name}`: {MOVES[key]}" if key in MOVES else None


def _matrices(text: str) -> str | None:
    """``A*B~C``, ``x @ w.T``: letters are arrays to mathematicians, and axes here."""
    match = MATRICES.fullmatch(text)
    if match is None:
        return None
    one, turned, sign, other, also = match.groups()
    product = f"`{'ki' if turned else 'ik'}*{'jk' if also else 'kj'}~ijk >> +ijk~ij`"
    if sign == "@":
        return f"letters are axes, not arrays: a product of two matrices is {product}"
    if not (turned or also or (len(one) == len(other) == 1 and (one + other).isupper())):
        return None
    alike = f"`{'ji' if turned else 'ij'}{sign}{'ji' if also else 'ij'}~ij`"
    return f"letters are axes, not arrays: two matrices element by element are {alike}, their product {product}"


def _lowered(text: str) -> str | None:
    """``AB*BC~AC``: the same with axes as they are written here."""
    lowered = text.lower()
    if text == lowered or re.search(r"(?<!~)\bI\b(?!~)", text) or not FORM.fullmatch(lowered):
        return None
    body, _, out = (part.strip() for part in lowered.partition("~"))
    match = PLAIN.fullmatch(body)
    program = None if match is None else _completed(match, out.strip("."))
    return f"axes are lower-case letters: {program or _wrapped(lowered)}"


def _scheduled(text: str) -> str | None:
    """``+ij~i | j=4 |``, ``+ij~i | i:4 || i j``: a schedule with a sign that belongs elsewhere."""
    form, bar, rest = text.partition("|")
    match = SCHEDULED.fullmatch(rest)
    factors = [] if match is None else [split.groups() for split in SPLIT.finditer(match[1])]
    if match is None or not factors or SPLIT.sub("", match[1]).strip(", "):
        respelled = EQUALS.sub(":", rest)
        return None if respelled == rest or "~" in rest else _wrapped(form + bar + respelled)
    order = match[2] or ""
    loops = [*dict.fromkeys(re.sub("[^a-z]", "", order)), *(axis for axis, _ in factors)]
    counts = {axis: 2 + factor.count(":") for axis, factor in factors}
    parts = (axis + "'" * n for axis in dict.fromkeys(loops) for n in range(counts.get(axis, 1)))
    written = ",".join(f"{axis}:{factor}" for axis, factor in factors)
    return _wrapped(
        f"{form.strip()} | {written} | {' '.join(parts) if order.strip() else ''}".rstrip()
    )


def _called(text: str) -> str | None:
    match = CALL.fullmatch(text)
    if match is None:
        return None
    inside = (match["inside"] or match["bare"] or "").strip()
    first = inside.partition(",")[0].strip()
    is_pattern = re.fullmatch(LETTERS, first) is not None and (len(first) > 1 or match["out"])
    return named(match["name"], first if is_pattern else "ij", match["out"] if is_pattern else None)


def _method(text: str) -> str | None:
    """``ij.T``, ``x.sum()``."""
    match = METHOD.fullmatch(text)
    if match is None:
        return None
    owner = match["owner"]
    pattern = owner if re.fullmatch(LETTERS, owner) and len(owner) > 1 else "ij"
    if match["name"] == "T":
        return _wrapped(f"{pattern}~{pattern[::-1]}")
    return named(match["name"], pattern)


def product(operands: Sequence[str], out: str) -> str | None:
    """The program of a specification as NumPy writes it: ``ij``, ``jk`` and ``ik``; None for more than two operands."""
    kept = _distinct(out) or "."
    if len(operands) == 1:
        return f"{operands[0]}~{kept}"
    if len(operands) != 2:
        return None
    dropped = "".join(axis for axis in _distinct("".join(operands)) if axis not in out)
    pair = f"{operands[0] or '.'}*{operands[1] or '.'}~{_distinct(out) + dropped or '.'}"
    return f"{pair} >> +{_distinct(out)}{dropped}~{kept}" if dropped else pair


def specification(text: str) -> str | None:
    """A specification as NumPy or einops write it, as an extended one: ``ij,jk->ik`` gives ``ij; jk => ik``."""
    left, arrow, right = (part.strip() for part in re.sub("=>|→", "->", text).partition("->"))
    operands = [part.strip() for part in re.split("[,;]", left)]
    if not all(re.fullmatch(r"(?:\.\.\.|[A-Za-z_\s])*", p) for p in (*operands, right)):
        return None
    if any(
        2 < len(word.replace("...", ""))
        for part in operands
        for word in part.split()
        if " " in part
    ):
        return (
            "; ".join(",".join(part.split()) for part in operands)
            + f" => {','.join(right.split())}"
        )
    if not arrow:
        every = "".join(operands).replace(".", "").replace(" ", "")
        dots = "..." if any("..." in part for part in operands) else ""
        right = dots + "".join(sorted(axis for axis in set(every) if every.count(axis) == 1))
    shown = ["".join(part.split()) for part in (*operands, right)]
    return f"{'; '.join(shown[:-1])} => {shown[-1]}".rstrip()


def _arrow(text: str) -> str | None:
    """``ij,jk->ik``, ``i j -> j i``."""
    match = ARROW.fullmatch(text)
    if match is None:
        return None
    operands = [part.replace(" ", "") for part in re.split("[,;*]", match["left"])]
    out = match["right"].replace(" ", "")
    if not all(re.fullmatch("[a-z]*", part) for part in (*operands, out)):
        if "(" in match["left"] + match["right"]:
            return (
                "axes are not merged or split: every dimension keeps an index of its own, `ij~ji`"
            )
        return None
    program = product(operands, out)
    return None if program is None else _wrapped(program)


def _subscripts(text: str) -> str | None:
    """``C[i,j] = A[i,k]*B[k,j]``, ``A[i,k]*B[k,j]``."""
    plain, count = SUBSCRIPT.subn(lambda m: re.sub(r"[\s,]", "", m[1]), text)
    if not count:
        return None
    assigned = ASSIGNED.fullmatch(plain)
    out, body = (assigned[1], assigned[3]) if assigned else (None, plain)
    match = PLAIN.fullmatch(body)
    if match is None or not re.fullmatch("[a-z.]*", out or ""):
        return None
    return _completed(match, out)


def _no_output(text: str) -> str | None:
    """``ik*kj``, ``+ij``: what the output may be."""
    match = PLAIN.fullmatch(text)
    return None if match is None else _completed(match, None)


def _completed(match: re.Match[str], out: str | None) -> str | None:
    """The program of a form whose output is missing, or is ``out``."""
    before, left, between, right = match.groups()
    axes = _distinct((left + (right or "")).replace(".", ""))
    if right is None:
        return _one_input(before, left, axes, out)
    if before is not None or between == "**":
        return None
    shared = "".join(axis for axis in axes if axis in left and axis in right)
    kept = "".join(axis for axis in axes if axis not in shared) if out is None else out
    whole = _distinct(kept) + "".join(axis for axis in axes if axis not in kept)
    whole = next(
        (_distinct(p) for p in (left, right) if out is None and set(p) == set(axes)), whole
    )
    pair = f"{left}{between}{right}~{whole or '.'}"
    summed = f"{pair} >> +{whole}~{kept or '.'}"
    if out is not None:
        return _wrapped(pair if len(whole) == len(_distinct(out)) else summed)
    if len(left) == len(right) == 1 and not shared:
        alike = f"`i{between}i~i` takes two vectors element by element"
        return f"letters are axes, not arrays: {alike}, `{pair}` each with each"
    if between == "*" and shared and kept:
        return f"name the output: `{pair}`, or, summed over {', '.join(shared)}, `{summed}`"
    return f"name the output: `{left}{between}{right}~{axes or '.'}`"


def no_number(word: str, sign: str = "") -> str | None:
    """The help for a word that is a number in other languages; None where it is none."""
    number = _computed(word, sign)
    if number is None:
        return None
    return f"`{word}` is read as axes {', '.join(word)}; for the number write `{number}`"


def _computed(word: str, sign: str) -> str | None:
    """A program that gives what is a number in other languages; None for another word."""
    program = NO_NUMBERS.get(word)
    return program and program.replace("(1", "(-1" if sign == "-" else "(1")


def _one_input(op: str | None, pattern: str, axes: str, out: str | None) -> str | None:
    op = op or ""
    if out is None and pattern in NO_NUMBERS and op in ("", "-", "+"):
        return no_number(pattern, op)
    if out is not None:
        return _wrapped(f"{op}{pattern}~{out or '.'}")
    reducing = (not op or op in REDUCING) and axes
    if not reducing:
        return f"name the output: `{op}{pattern}~{axes or '.'}`"
    if not op and len(pattern) > 2 and list(pattern) != sorted(pattern):  # axes, or an unknown name
        return f"define it; or, if these are axes, name the output: `{pattern}~{axes[::-1]}`"
    kept = axes[:-1] or "."
    first = f"`{op}{pattern}~{axes}` for each element" if op or len(axes) < 2 else ""
    first = first or f"`{pattern}~{axes[::-1]}` transposes"
    return f"name the output: {first}, `{op or '+'}{pattern}~{kept}` reduces along {axes[-1]}"


def _constant(text: str) -> str | None:
    """``ij*0.5~ij``, ``1/i~i``: a number is a component of its own."""
    if (match := SCALED.fullmatch(text)) is not None:
        pattern, op, number, out = match.groups()
        program = scaled(pattern, op, number, out)
    elif (match := SCALING.fullmatch(text)) is not None:
        number, op, pattern, out = match.groups()
        program = scaled(pattern, op, number, out, first=True)
    else:
        return None
    return _wrapped(program) + compared(op, program)


def scaled(pattern: str, op: str, number: str, out: str | None, first: bool = False) -> str:
    """A form with a number for one input, as a program; ``first``: the number is the left one."""
    op = "^" if op == "**" else op
    kept = out if out is not None and sorted(out) == sorted(_distinct(pattern)) else None
    kept = kept or _distinct(pattern)
    number = _computed(number.removeprefix("-"), number[:1]) or number
    if first:
        return f"({number} | I) >> .{op}{pattern}~{kept}"
    return f"(I | {number}) >> {pattern}{op}.~{kept}"


def compared(op: str, program: str) -> str:
    """A remark on ``>`` and ``<``, which people write for comparisons, after a program that has one of them."""
    if op not in (">", "<"):
        return ""
    word = {">": "larger", "<": "smaller"}[op]
    head, chain, form = program.rpartition(" >> ")
    comparison = f"{head}{chain}{form.replace(op, op + op, 1)}"
    return f", the {word} of each two; `{op}{op}` compares: `{comparison}`"

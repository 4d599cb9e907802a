"""Signs and words that ``i explain`` explains: ``i explain '>'``, ``i explain sum``, ``i explain numpy``."""

from __future__ import annotations

import re

from ilang.core.ops import ARGUMENTS, NAMED, OPS, PRIMITIVES, Op

Page = tuple[str, dict[str, object]]
"""A text, and the same as data."""

ELEMENTS = " of each element"
OTHERS: dict[str, tuple[tuple[str, str], ...]] = {
    ">>": (("f >> g", "the results of f are the inputs of g"),),
    "<<": (("g << f", "the results of f are the inputs of g"),),
    "&": (("f & g", "both read the same inputs; the results of f, then those of g"),),
    "|": (
        ("f | g", "the inputs of f, then those of g; so do the results"),
        ("ij~i | i:4 | i j", "after an expression: its schedule"),
    ),
    "~": (
        ("ij~ji", "before the axes of the result"),
        ("~f", "exchanges the first two results of f"),
    ),
    ".": (("+i~.", "no axes: a single number"),),
    "@": (
        ("ij*@j~ij", "in the place of an input: the position along j, 0, 1, 2, ..."),
        ("b@vd~bd", "between two inputs: rows of the right one, by the indices in the left one"),
        ("i@i~(v:10)", "with an axis of the result alone: adds elements at the places that indices give"),
    ),
    ":": (
        ("ij/:j~ij", "in the place of an input: the extent of j"),
        ("(i+k:3)", "after an axis: its extent"),
    ),
    "[": (("ij[j<=i]~ij", "after the axes of an input: elements for which the condition does not hold are 0"),),
}  # fmt: skip
"""Signs that are no operators on elements, and operators that mean something between programs, too."""
TRIED = {
    "matmul": "'[[1, 2], [3, 4]]' '[[1, 0], [0, -1]]'",
    "conv2d": "rand:1x3x4x4 rand:2x3x2x2",
    **dict.fromkeys(("max_pool2d", "mean_pool2d"), "rand:1x2x4x4"),
}
"""The arrays to try components of ``std`` on that do not take one matrix."""
BETWEEN_PROGRAMS = {
    ">>": "'-ij~ij >> +ij~i' '[[1, 2], [3, 4]]'",
    "<<": "'+ij~i << -ij~ij' '[[1, 2], [3, 4]]'",
    "&": "'+ij~i & >ij~i' '[[1, 2], [3, 4]]'",
    "|": "'+i~. | >i~.' '[1, 2]' '[3, 4]'",
}
"""Signs that most often stand between programs, and what to try of each."""
TOPICS = {
    "I": "the inputs as they are, beside what is computed from them: `(I & +ij~i) >> ij/i~ij`",
    "axis": "an axis is a direction of an array, as the rows of a matrix are; in `+ij~i` each letter is one; "
    "its extent, how many elements it has, comes from the arrays: `--shape 64x32`",
    "guard": "a condition in brackets after the axes of an input, `ij[j<=i]~ij`: elements for which it does not "
    "hold are 0 between inputs, and left out of a sum, a maximum or a product; `i explain '['` has the sign",
    "window": "neighbours that an index in parentheses reads: `(i+k:3)~ik` has the elements i, i+1 and i+2, and "
    "`+(i+k:3)~i` adds them up",
    "stride": "the steps of a window: `>(2i+k:2)~i` is the larger of elements 0 and 1, of 2 and 3, ...",
    "dilation": "the distance of a window's elements: `+(i+2k:3)~i` adds up the elements i, i+2 and i+4",
    "padding": "an offset in a window adds elements at both ends, which are 0: `+(i+k:3-1)~i` has as many results "
    "as elements; a maximum leaves them out",
    "reduction": "a letter that the result lacks is gone through, and what is read is added up, multiplied, or the "
    "largest or smallest is taken: `+ij~i`, `*ij~i`, `>ij~i`, `<ij~i`",
    "component": "a program with its inputs and results; `f >> g` hands the results of f on, `f & g` gives both the "
    "same inputs, `f | g` stand side by side",
    "broadcast": "an input that lacks a letter is repeated along it: `ij+j~ij` adds a vector to each row",
    "flops": "operations on floating-point numbers, counted in the formulas; with few of them a byte, memory is "
    "slower than arithmetic",
    "bytes": "those that inputs and results have: each is read or written once at least",
    "kernel": "a loop nest that stores its result; what is `not stored` is computed where it is used",
    "scratch": "memory beside inputs and results: copies that kernels read faster (scratch), and what one kernel "
    "leaves for another (intermediate storage); in C the caller gives both, as the workspace",
    "tiles": "a tile is a block of the result that stays in registers while its terms are added up, so that each "
    "number that is read serves a whole row or column of it; docs/schedules.md builds one step by step",
    "vectors": "a processor computes with 4 to 16 numbers at once: `16 sums in vectors` are added up at the end",
    "cores": "`cores share i`: iterations of that loop are divided among them; results do not depend on it",
    "occupancy": "of a kernel for a GPU: the share of the threads of a multiprocessor (SM) that its blocks have at "
    "a time, limited by the threads, registers or shared memory of a block; `i explain PROGRAM --target cuda` "
    "prints all of them",
    "grid": "the blocks of a kernel for a GPU; the roles x, y and z give it loops, and tx, ty and tz give loops to "
    "the threads of a block: `ij~ji | i:32 | i j i' | i:y,j:x,i':tx`",
    "warp": "32 threads of a GPU that run together; the role `l` gives a loop to them: `+ij~i || i j | i:x,j:l`",
    "shared": "memory of a block of a GPU; digits in a schedule copy an input to it, and `0:s2` gives the copy two "
    "buffers; docs/cuda.md has an example",
    "coalesced": "neighbouring threads of a GPU read neighbouring elements, so that a warp reads whole sectors of "
    "memory; copies to shared memory are made so",
    "op": "a line `op f(x) = x + 1` of a file defines a tensor function: it works on values, takes any number of axes, "
    'and may have parameters, `"w" * x`; docs/functions.md has the language',
    "cd": "`cd step(x, t) { loss = ...; backprop(loss); for p in params(loss) { sgd(p; 0.1) } return loss }` defines a "
    "routine: what one step of training does, and changes; `i train` runs it on batches of data",
    "use": "a line `use nn, optim` of a file makes the definitions of libraries known: `i explain nn`, "
    "`i explain optim`; `use std` has those that `ilang.lib` has in Python, such as `softmax` and `mean`",
    "batch": "examples that are computed together: axis 0 of the inputs of an `op` or `cd`; all other axes are "
    "features; `--batch 64` of `i train` says how many",
    "schedule": "how loops run: their order, tiles, and what is copied; `ij~i | i:4 | i j i'` writes one; "
    "`i explain PROGRAM --schedule` shows what was chosen, docs/schedules.md how to write it",
}
"""Words of the pages that ``i explain`` prints."""
PHRASES = {
    "matrix product": "matmul",
    "matrix multiplication": "matmul",
    "matrix multiply": "matmul",
    "scalar product": "dot",
    "kronecker product": "kron",
    "cumulative sum": "cumsum",
    "running sum": "cumsum",
    "max pooling": "max_pool2d",
    "pooling": "max_pool2d",
    "moving average": "window",
    "batch size": "batch",
    "mean squared error": "squared_error",
    "shared memory": "shared",
}
"""Names of several words."""
LIKE = {"]": "[", "(": ":", ")": ":"}


def sign_page(sign: str) -> Page | None:
    """The page on a sign; None on what is none."""
    is_sign = sign in OPS or sign in OTHERS or sign in ARGUMENTS or sign in LIKE
    return _sign(LIKE.get(sign, sign)) if is_sign else None


def word_page(word: str) -> Page | None:
    """The page on a function of other systems, or on one of these systems; None where nothing is known."""
    from ilang.icli.equivalents import NAMES, SYSTEMS, cheat_sheet

    word = PHRASES.get(word.lower()) or "_".join(word.removesuffix(" product").split())
    key = word.lower()
    if key in NAMES:
        text = cheat_sheet(NAMES[key]) + f"\n\n{ARRAYS}\n"
        return text, {"word": SYSTEMS[NAMES[key]], "text": text}
    page = _word(word) or (_sign(NAMED[key]) if key in NAMED else None)
    if page is not None:
        return page
    topics = {word, key, f"{key}s", key[:-1], key.removesuffix("ing"), key.replace("axes", "axis")}
    if key in ("nn", "optim"):
        return _library(key)
    topic = next((each for each in TOPICS if each in topics), None)
    if topic is None:
        return None
    from textwrap import fill

    shown = fill(TOPICS[topic], 76, initial_indent="  ", subsequent_indent="  ")
    return f"{topic}\n\n{shown}\n", {"word": topic, "text": TOPICS[topic]}


def _library(name: str) -> Page:
    """The heads of the definitions of a library."""
    from ilang.core.library import INNER
    from ilang.core.notation.files.libraries import definitions_in

    heads = [
        re.split(r"\)\s*[={]", part.text())[0] + ")"
        for part in definitions_in(name)
        if part.name.text() not in INNER
    ]
    text = "\n".join(
        (
            f"use {name}",
            "",
            *heads,
            "",
            f"`i explain {heads[0].split('(')[0].split()[-1]}` has one as it is written",
        )
    )
    return f"{text}\n", {"word": name, "text": text}


ARRAYS = (
    "x[i,j] y[j,k] s[i,i] a[i] b[j] v[n] w[3] q[i,d] k[j,d] t[n,i,j] u[n,j,k] ids[n]\n"
    "docs/cheatsheet.md has the columns side by side; `i explain sum` explains a word, `i explain '>'` a sign"
)


def _sign(sign: str) -> Page:
    from ilang.core.explain.page import table

    op = OPS.get(sign)
    places = _places(op) if op is not None else []
    if sign in ARGUMENTS:
        most = OPS[ARGUMENTS[sign]].reduction_says
        places = [(f"{sign}ij~i", f"the position of the {most} along j", "before one input")]
    others = [(text, says, "between programs" if op else "") for text, says in OTHERS.get(sign, ())]
    meanings_here = (*others, *places) if sign in BETWEEN_PROGRAMS else (*places, *others)
    rows = [(f"  {text}", says, place) for text, says, place in meanings_here]
    name = op.name if op is not None else ""
    tried = BETWEEN_PROGRAMS.get(sign) or (f"'{places[0][0]}' '[[1, 2], [3, 4]]'" if places else "")
    title = sign if sign in BETWEEN_PROGRAMS else f"{sign}   {name}".rstrip()
    parts = (title, table(rows, "   "), tried and f"try  i run {tried}")
    text = "\n\n".join(part for part in parts if part)
    meanings = [{"text": each, "says": says, "place": place} for each, says, place in meanings_here]
    return text + "\n", {"sign": sign, "name": name, "meanings": meanings}


def _places(op: Op) -> list[tuple[str, str, str]]:
    """The three places of an operator: before an input whose axes the result lacks, before one, between two."""
    sign, one = op.symbol, PRIMITIVES[op.unary].says
    constant = op.unary_left if op.unary_left is not None else op.unary_right
    if constant is not None:
        one += f" {'with ' if op.unary_left is not None else ''}{constant:g}"
    places = []
    if op.reduction_says:
        says = f"{op.reduction_says} along j, which the result lacks"
        places.append((f"{sign}ij~i", says, "before one input"))
    places.append((f"{sign}ij~ij", one + ELEMENTS, "before one input"))
    if op.binary is not None:
        two = PRIMITIVES[op.binary].says
        places.append((f"ij{sign}ij~ij", f"{two}, element by element", "between two inputs"))
        places.append((f"ij{sign}j~ij", "the same, with each row", "between two inputs"))
    return places


def _word(word: str) -> Page | None:
    """The page on a function of other systems: its program, and lines of the cheat sheet."""
    from ilang.core.notation.guidance import named
    from ilang.icli.equivalents import cheat_sheet, rows_of

    says = named(word)
    same = cheat_sheet(0, word) if rows_of(word) else ""
    parts = (says, same, _of_networks(word), _of_std(word))
    if not any(parts):
        return None
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text, {"word": word, "text": text}


def _of_networks(word: str) -> str:
    """The definition of a layer, a loss or an optimiser; empty on another word."""
    from ilang.core.library import INNER, LIBRARIES, STD
    from ilang.core.notation.files.libraries import definitions_in

    for library in (each for each in LIBRARIES if each != STD):
        for each in definitions_in(library):
            if each.name.text() == word and word not in INNER:
                text = each.source.text[each.start : each.end].rstrip()
                return f"use {library}\n{text}"
    return ""


def _of_std(word: str) -> str:
    """The definition of a component of ``std``, and a command that runs it; empty on another word."""
    from ilang.core.library.std import AXES, PLAIN, TEXT

    if word not in (*AXES, *PLAIN):
        return ""
    written = next(line for line in TEXT.splitlines() if line.startswith((f"{word} =", f"{word}(")))
    arrays = TRIED.get(word, "'[[1, 2], [3, 4]]'")
    return f"std  {written}\ntry  i run {word} {arrays}"

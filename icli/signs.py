"""Signs and words that ``i explain`` explains: ``i explain '>'``, ``i explain sum``, ``i explain numpy``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ilang.core.library import LIBRARIES
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
        ("ij~i | i:4 | i j i'", "after an expression: its schedule"),
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
    "!": (("+ij~i || i ! j", "in the order of a schedule: where a sum starts"),),
    "[": (("ij[j<=i]~ij", "after the axes of an input: elements for which the condition does not hold are 0"),),
}  # fmt: skip
"""Signs that are no operators on elements, and operators that mean something between programs, too."""
IN_FUNCTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "*": (('"w" * x', "contracts the input axes of one with the output axes of the other: a layer"),),
    "*.": (("x *. y", "the product, element by element"),),
    "/.": (("x /. y", "the quotient, element by element"),),
    "+.": (("x +. y", "the sum, element by element, as `x + y`"),),
    "-.": (("x -. y", "the difference, element by element, as `x - y`"),),
    "**.": (("x **. 2", "the power of each element"),),
    "?/": (("?/x", "the larger of 0 and each element: relu"),),
    "-?/": (("x -?/ y", "y where x is above 0, else 0"),),
    "++": (('x ++ "...|i => ...|"', "einsum of one tensor: here the sum along its output axis"),),
    "*+": (('x *+ "ij; jk => ik" y', "einsum of two tensors: here a matrix product"),),
    "=>": (('x ++ "ij => ji"', "in the text of an einsum, before the axes of the result"),),
    "->": (("op f(w[n->m], x) = w * x", "in a shape: input axes, then output axes"),),
    "|": (("op f(x[b|n]) = x + 1", "in a shape: batch axes, then the others"),),
    "@|": (("x @| 0", "position 0 of the first batch axis"),),
    "=": (
        ("x = y", "whether two elements are equal"),
        ("z = x + 1", "as a statement: names a tensor"),
    ),
    "<>": (("x <> y", "whether two elements differ"),),
    ";": (("f(x; 64)", "before configuration: numbers, which are no tensors"),),
    '"': (('"w" * x', "around the name of a parameter, whose shape the compiler finds"),),
    "=:": (('"c" =: x', "sets c; what a tensor holds is kept for the next run"),),
}  # fmt: skip
"""Signs of tensor functions and of routines: a text with each, and what it means there."""
IN_ROUTINES = {
    "=+": (("c =+ x", "adds x to what c holds"),),
    "=-": (("c =- x", "subtracts x from what c holds: a step of gradient descent"),),
    "=:+": (("c =:+ x", "sets c to x, summed over the axes that c lacks"),),
}
"""Assignments that routines alone have."""
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
    "mean squared error": "squared_error",
}
"""Names of several words, of functions."""
MODULE = re.compile(r"^(?:(?:np|numpy|jnp|jax|torch|nn|functional|F)\.)+(?=\w)")
WORD = re.compile(rf"(?:{MODULE.pattern})?[A-Za-z_]\w*(?:[ -][A-Za-z_]\w*)*")
"""A word, a name of several words such as ``shared memory``, or one of a module: ``np.sum``."""
LIKE = {"]": "[", "(": ":", ")": ":", "?": "?/"}


def sign_page(sign: str) -> Page | None:
    """The page on a sign; None on what is none."""
    sign = LIKE.get(sign, sign)
    tables = (OPS, OTHERS, ARGUMENTS, IN_FUNCTIONS, IN_ROUTINES)
    return _sign(sign) if any(sign in each for each in tables) else None


def word_page(word: str) -> Page | None:
    """The page on a function of other systems, or on one of these systems; None where nothing is known."""
    from ilang.icli.equivalents import NAMES, SYSTEMS, cheat_sheet
    from ilang.icli.glossary import entry_of

    word = MODULE.sub("", word)
    key = word.lower()
    if key == "words":
        return index()
    if key in NAMES:
        text = cheat_sheet(NAMES[key]) + f"\n\n{ARRAYS}\n"
        return text, {"word": SYSTEMS[NAMES[key]], "text": text}
    name = PHRASES.get(key) or "_".join(re.split("[ -]", word.removesuffix(" product")))
    parts = [_word(name), _library(key) if key in LIBRARIES else ""]
    if not any(parts) and key in NAMED:
        return _sign(NAMED[key])
    entry = entry_of(word)
    parts += [entry.page()] if entry is not None else []
    if not any(parts):
        return None
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text, {"word": word, "text": text}


def index() -> Page:
    """The list of all that ``i explain`` explains."""
    from textwrap import wrap

    from ilang.icli.equivalents import NAMES
    from ilang.icli.glossary import sections

    words = {
        "signs": sorted({*OPS, *OTHERS, *ARGUMENTS}),
        "signs of tensor functions": sorted({*IN_FUNCTIONS, *IN_ROUTINES}),
        "programs beside those of other systems": list(NAMES),
        "libraries": list(LIBRARIES),
        "functions of arrays": functions(),
        **{
            title: [each.names[0] for each in entries]
            for title, entries in sections().items()
            if entries
        },
    }
    lines = [
        "i explain PROGRAM   its formula, its loops and its work; of a FILE, too",
        "i explain E0103     an error; `i explain codes` lists all",
        "i explain WORD      one of these",
    ]
    for title, listed in words.items():
        between = " " if title.startswith("signs") else ", "
        lines += [
            "",
            title,
            *wrap(
                between.join(listed),
                78,
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            ),
        ]
    lines += ["", "the language in lessons: `i learn`; commands: `i --help`"]
    return "\n".join(lines) + "\n", {"words": words}


def functions() -> list[str]:
    """The functions of libraries and of other systems that have a page."""
    from ilang.core.library.std import AXES, PLAIN
    from ilang.core.notation.guidance import FUNCTIONS, MOVES

    names = (*AXES, *PLAIN, *FUNCTIONS, *MOVES)
    return sorted({name for name in names if name.isidentifier()})


def near(word: str, asked: str = "i explain", others: Sequence[str] = ()) -> str:
    """The help on a word that has no page: one of these or of ``others`` that is like it, or where all are listed."""
    from ilang.core.suggestion import did_you_mean
    from ilang.icli.glossary import sections

    names = [name for entries in sections().values() for each in entries for name in each.names]
    listed = f"`{asked} words` lists the words that it explains; a program has a `~`: `+ij~i`"
    if len(word) <= 3:
        return listed
    return did_you_mean(
        word, (*others, *LIBRARIES, *functions(), *names), listed, f"`{asked} {{}}`"
    )


def _library(name: str) -> str:
    """The heads of the definitions of a library, and the names of its components."""
    from textwrap import wrap

    from ilang.core.library import INNER
    from ilang.core.notation.files.libraries import definitions_in

    parts = [part for part in definitions_in(name) if part.name.text() not in INNER]
    wired = [part.name.text() for part in parts if part.wired]
    heads = [re.split(r"\)\s*[={]", part.text())[0] + ")" for part in parts if not part.wired]
    first = wired[0] if wired else heads[0].split("(")[0].split()[-1]
    known = "components, known without `use` but in files, and functions of `ilang.lib` in Python: "
    listed = wrap(known + ", ".join(wired), 78) if wired else []
    return "\n".join(
        (*listed, *[""] * bool(wired), f"use {name}", *heads, "", f"try  i explain {first}")
    )


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
    inner = [(text, says, "in an `op` or `cd`") for text, says in IN_FUNCTIONS.get(sign, ())]
    inner += [(text, says, "in a `cd`") for text, says in IN_ROUTINES.get(sign, ())]
    first, then = (others, places) if sign in BETWEEN_PROGRAMS else (places, others)
    meanings_here = (*first, *then, *inner)
    rows = [(f"  {text}", says, place) for text, says, place in meanings_here]
    name = op.name if op is not None else ""
    tried = BETWEEN_PROGRAMS.get(sign) or (f"'{places[0][0]}' '[[1, 2], [3, 4]]'" if places else "")
    title = sign if sign in BETWEEN_PROGRAMS else f"{sign}   {name}".rstrip()
    more = "" if first or then else "docs/functions.md has the language of `op` and `cd`"
    parts = (title, table(rows, "   "), tried and f"try  i run {tried}", more)
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


def _word(word: str) -> str:
    """The page on a function of other systems: its program, and lines of the cheat sheet; empty on another word."""
    from ilang.core.notation.guidance import named
    from ilang.icli.equivalents import cheat_sheet, rows_of

    says = named(word)
    same = cheat_sheet(0, word) if rows_of(word) else ""
    parts = (says, same, _of_networks(word), _of_std(word))
    return "\n\n".join(part for part in parts if part)


def _of_networks(word: str) -> str:
    """The definition of a layer, a loss or an optimiser; empty on another word."""
    from ilang.core.library import INNER, STD
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

"""Lines as MATLAB, Julia, APL, R and Python write them, in the spelling that ``foreign.py`` reads, or as an ``op``.

D' * W         D.T@W            x += 1                x = x+ (1)
D .^ 2         D** 2            let y = sum(x)        y = sum(x)
+/ D           sum(D, -1)       f = lambda x: x * x   op f(x) = x *. x
D(1, :)        D[0,:]           def f(x): return -x   op f(x) = -x
"""

from __future__ import annotations

import re
from collections.abc import Collection

TURNED = re.compile(r"(?<=[\w)\]])'(?!\w)|\.'|\^T(?!\w)")
"""The sign of a transpose in MATLAB and Julia, or in mathematics."""
OPERAND = r"\s*(\w+)\s*$"
SIGNS = (
    (r"\+\s*\.\s*×", "@"),
    (r"(?<=[A-Za-z_)\]'])(\s*)\.([-+*/^])(?=\s*[\w(\[-])", r"\1\2"),
    (r"(?<![\^|])\^(?!\^)", "**"),
    ("[×·∙⋅]", "*"),
    ("÷", "/"),
    (r"\s*;\s*(?=-?\d+\s*\)\s*$)", ", "),
    (r"\b(?:collect|list|vec|asarray|jnp\.array)\(([^()]*(?:\([^()]*\))?)\)", r"\1"),
    (r"[⍳ι]" + OPERAND, r"arange(\1)"),  # noqa: RUF001
    (r"⍉" + OPERAND, r"\1.T"),
    (r"[⍴≢]" + OPERAND, r"shape(\1)"),  # noqa: RUF001
    (r"\+\s*[/⌿]" + OPERAND, r"sum(\1, -1)"),
    (r"[*×]\s*/" + OPERAND, r"prod(\1, -1)"),
    (r"⌈\s*/" + OPERAND, r"max(\1, -1)"),
    (r"⌊\s*/" + OPERAND, r"min(\1, -1)"),
)
"""Signs of other languages, and what Python has for them."""
ELEMENT = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(\s*((?:\d+|:)(?:\s*,\s*(?:\d+|:))*)\s*\)")
"""Elements of an array in parentheses, counted from 1."""
NAME = r"([A-Za-z_]\w*)"
ASSIGNMENTS = (
    (rf"(?:let|const|var|val|my|auto|int|float|double|global|local)\s+{NAME}\s*(?:<-|:?=)\s*(.+)", r"\1 = \2"),
    (rf"{NAME}\s*(?::=|<-|←|:\s*[\w.\[\]]+\s*=(?!=))\s*(.+)", r"\1 = \2"),
    (rf"{NAME}\s*(\*\*|//|[-+*/@^])=\s*(.+)", r"\1 = \1\2 (\3)"),
    (rf"{NAME}\s*(\+\+|--)", r"\1 = \1\2"),
)  # fmt: skip
"""Ways to give a name to a value."""
FUNCTIONS = (
    rf"def\s+{NAME}\s*\((.*?)\)\s*(?:->\s*\w+\s*)?:\s*(?:return\b)?\s*(.+)",
    rf"{NAME}\s*=\s*lambda\s+([^:]*):\s*(.+)",
    rf"{NAME}\s*=\s*@\((.*?)\)\s*(.+)",
    rf"{NAME}\s*=\s*\(?([\w\s,]+?)\)?\s*[-=]>\s*(.+)",
    rf"(?:function|fn|func|fun|let)\s+{NAME}\s*\((.*?)\)\s*(?:=|:|return\b|\{{)?\s*(.+?)\s*;?\s*(?:end|\}})?",
    rf"{NAME}\s*<-\s*function\s*\((.*?)\)\s*(.+)",
    rf"{NAME}\s*\(([\w\s,]*)\)\s*=\s*(.+)",
)
"""Ways to define a function: its name, its inputs, and what it gives."""

COMMANDS = (
    (r"(?:\w+\.)*(?:plot|imshow|hist|heatmap|show_image)\(\s*(\w+)\s*\)", r":plot \1"),
    (r"(?:np|numpy)\.save\(\s*['\"]?([\w./]+)['\"]?\s*,\s*(\w+)\s*\)", r":save \1 \2"),
    (r"(?:\w+\.)*(?:timeit|benchmark)\((.*)\)", r":time \1"),
    (r"(?:\w+\.)*(?:grad|gradient)\(\s*(\w+)\s*\)", r":grad \1"),
    (r"(?:\w+\.)*(?:exit|quit|sys\.exit)\(\w*\)|bye", ":quit"),
)
"""Calls of other languages that commands of the REPL do."""


def colon_command(line: str) -> str | None:
    """The command of the REPL that does what a call of another language does; None for another line."""
    for pattern, replacement in COMMANDS:
        match = re.fullmatch(pattern, line.strip())
        if match is not None:
            return match.expand(replacement)
    return None


def as_python(text: str, arrays: Collection[str]) -> str:
    """A line as Python writes it, as far as signs go; ``arrays`` are the names of arrays."""
    is_quote = re.search(r"[(,=]\s*'", text) is not None
    turned = text.strip() if is_quote else TURNED.sub(".T", text.strip())
    if (
        turned != text.strip() and ".T" not in text
    ):  # where a matrix is turned, `*` is a product of matrices
        turned = re.sub(r"(?<![.*])\*(?!\*)", "@", turned)
    for pattern, replacement in SIGNS:
        turned = re.sub(pattern, replacement, turned)

    def element(match: re.Match[str]) -> str:
        places = [each.strip() for each in match[2].split(",")]
        if match[1] not in arrays or "0" in places:
            return match[0]
        return f"{match[1]}[{','.join(each if each == ':' else str(int(each) - 1) for each in places)}]"

    return ELEMENT.sub(element, turned)


def assignment(line: str) -> str | None:
    """The line ``name = value`` that an assignment of another language is; None for another line."""
    for pattern, replacement in ASSIGNMENTS:
        match = re.fullmatch(pattern, line.strip().rstrip(";"))
        if match is not None:
            return match.expand(replacement).replace("++", "+ 1").replace("--", "- 1")
    return None


def tensor_function(line: str) -> tuple[str, str] | None:
    """The name and the text of the tensor function that a definition elsewhere may be; None for another line."""
    for pattern in FUNCTIONS:
        match = re.fullmatch(pattern, line.strip())
        if match is not None and re.fullmatch(r"\s*\w+(?:\s*,\s*\w+)*\s*", match[2]):
            plain = re.sub(r"(?<=[\w)])\.([*/^])", r"\1", match[3]).replace("^", "**")
            body = re.sub(r"\s*(\*\*|[*/])\s*", r" \1. ", plain)
            body = re.sub(r"(?:np|numpy|torch|math|jnp)\.", "", body).replace("@", "*")
            return match[1], f"op {match[1]}({match[2]}) = {body}"
    return None

"""Lines as Python and mathematics write them, in the spelling that ``foreign.py`` reads, or as an ``op``.

x^2            x**2             f = lambda x: x * x   op f(x) = x *. x
x += 1         x = x+ (1)       def f(x): return -x   op f(x) = -x
"""

from __future__ import annotations

import re

SIGNS = (
    (r"(?<![\^|])\^(?!\^)", "**"),
    ("[×·∙⋅]", "*"),
    (r"\s*;\s*(?=-?\d+\s*\)\s*$)", ", "),
    (r"\b(?:list|asarray|jnp\.array)\(([^()]*(?:\([^()]*\))?)\)", r"\1"),
)
"""Signs, and what Python has for them."""
NAME = r"([A-Za-z_]\w*)"
ASSIGNMENTS = (
    (rf"{NAME}\s*(?::=|:\s*[\w.\[\]]+\s*=(?!=))\s*(.+)", r"\1 = \2"),
    (rf"{NAME}\s*(\*\*|//|[-+*/@])=\s*(.+)", r"\1 = \1\2 (\3)"),
)
"""Ways to give a name to a value."""
FUNCTIONS = (
    rf"def\s+{NAME}\s*\((.*?)\)\s*(?:->\s*\w+\s*)?:\s*(?:return\b)?\s*(.+)",
    rf"{NAME}\s*=\s*lambda\s+([^:]*):\s*(.+)",
    rf"{NAME}\s*\(([\w\s,]*)\)\s*=\s*(.+)",
)
"""Ways to define a function: its name, its inputs, and what it gives."""
MORE = ":loops  how it runs    :schedule    :c  its C"
"""The commands for the stages of the last program, as they stand below a page."""
COMMANDS = (
    (r"(?:\w+\.)*(?:plot|imshow|hist|heatmap|show_image)\(\s*(\w+)\s*\)", r":plot \1"),
    (r"(?:np|numpy)\.save\(\s*['\"]?([\w./]+)['\"]?\s*,\s*(\w+)\s*\)", r":save \1 \2"),
    (r"(?:\w+\.)*(?:timeit|benchmark)\((.*)\)", r":time \1"),
    (r"(?:\w+\.)*(?:grad|gradient)\(\s*(\w+)\s*\)", r":grad \1"),
    (r"(?:\w+\.)*(?:exit|quit|sys\.exit)\(\w*\)|bye", ":quit"),
)
"""Calls that commands of the REPL do."""


def _shapes_by_name(match: re.Match[str]) -> str:
    """The command for shapes that Python gives by name."""
    return ":shape " + " ".join(re.sub(r"'(\w+)': '([^']*)',?", r"\1=\2", match[1]).split())


SHAPE = r"'?([\w.,|>?-]*(?:\.\.\.)?)'?"
HERE = (
    (rf"--shape (\w+=)?(?=['\w.]){SHAPE}", r":shape \1\2"),
    (r"(?<=\S)(?: \\\n)?[ ]+:shape (?=\w+=)", " "),
    (
        r"give it: config=\{[^}]*\}, or --config (\w+)=(\S+)",
        r"give it after `;` in a call: `; \1=\2`",
    ),
    (r"m\.session\('\w+', \{([^{}]*)\}\)", _shapes_by_name),
    (r"--loops  how it runs    --schedule    --emit c  its C", MORE),
)
"""Words of texts for the command line and for Python, and what is typed in the REPL instead."""


def in_repl(text: str) -> str:
    """A text that says what to type, as the REPL has it: ``:shape x=8|3`` for an option of commands."""
    for pattern, replacement in HERE:
        text = re.sub(pattern, replacement, text)
    return text


def colon_command(line: str) -> str | None:
    """The command of the REPL that does what a call elsewhere does; None for another line."""
    return _expanded(COMMANDS, line.strip())


def assignment(line: str) -> str | None:
    """The line ``name = value`` that an assignment elsewhere is; None for another line."""
    if "~" in line:
        return None
    return _expanded(ASSIGNMENTS, line.strip().rstrip(";"))


def _expanded(patterns: tuple[tuple[str, str], ...], line: str) -> str | None:
    for pattern, replacement in patterns:
        match = re.fullmatch(pattern, line)
        if match is not None:
            return match.expand(replacement)
    return None


def as_python(text: str) -> str:
    """A line as Python writes it, as far as signs go."""
    for pattern, replacement in SIGNS:
        text = re.sub(pattern, replacement, text.strip())
    return text


def tensor_function(line: str) -> tuple[str, str] | None:
    """The name and the text of the tensor function that a definition elsewhere may be; None for another line."""
    for pattern in FUNCTIONS:
        match = re.fullmatch(pattern, line.strip())
        if match is not None and re.fullmatch(r"\s*\w+(?:\s*,\s*\w+)*\s*", match[2]):
            body = re.sub(r"\s*(\*\*|[*/])\s*", r" \1. ", match[3].replace("^", "**"))
            body = re.sub(r"(?:np|numpy|torch|math|jnp)\.", "", body).replace("@", "*")
            return match[1], f"op {match[1]}({match[2]}) = {body}"
    return None

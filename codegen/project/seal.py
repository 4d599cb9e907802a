"""The last line of a generated file: a hash of the lines above it, which tells whether the file was edited since."""

from __future__ import annotations

import hashlib

SAYS = "Hash of the lines above, by which `i build` knows its own text:"


def sealed(name: str, text: str) -> str:
    """The text of a file with its last line, a comment of the language that the name of the file tells.

    After ``int f(void);`` in ``model.h`` stands ``/* Hash of the lines above, ...: 9c7c... */``.
    """
    says = f"{SAYS} {_hash(text)}"
    if name.endswith((".c", ".cu", ".h")):
        return f"{text}/* {says} */\n"
    return f"{text}\n<!-- {says} -->\n" if name.endswith(".md") else f"{text}# {says}\n"


def is_edited(text: str) -> bool:
    """Whether a text is not what its hash is of; ends of lines may be those of another system.

    A text without a hash is that of an earlier version, of which nothing is known.
    """
    lines = text.replace("\r\n", "\n")
    above, _, last = lines.removesuffix("\n").rpartition("\n")
    return SAYS in lines and f"{SAYS} {_hash(above)}" not in last


def _hash(text: str) -> str:
    """16 hexadecimal digits; empty lines at the end of a text do not count."""
    return hashlib.sha256(text.rstrip("\n").encode()).hexdigest()[:16]

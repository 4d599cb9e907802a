"""The fixed texts of a project: files beside this module, in which words in capitals stand for what differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def fixed_text(file: str, **words: str) -> str:
    """The text of a file beside this module, with a value for each of its words, one after the other.

    Example: ``fixed_text("makefile_c.mk", STEM="model")`` has ``libmodel.a`` where the file has ``libSTEM.a``.
    """
    result = Path(__file__).with_name(file).read_text("ascii")
    for word, value in words.items():
        result = result.replace(word, value)
    return result


def readme(
    file: str,
    names: Sequence[str],
    stem: str,
    of_sessions: str = "",
    inlined: Sequence[str] = (),
    **words: str,
) -> str:
    """The README: what there is, how it is compiled, how it is called.

    Args:
        file: the text beside this module.
        names: of functions and sessions.
        stem: of the files.
        of_sessions: what it says of sessions.
        inlined: the definitions that are part of functions, and have none.
        words: what else differs.
    """
    listed = "\n".join(f"- `{name}`" for name in names)
    if inlined:
        part = ", ".join(f"`{name}`" for name in inlined)
        listed += f"\n\nWithout a function, as part of what uses them: {part}."
    return fixed_text(file, **words, STEM=stem, FUNCTIONS=listed) + of_sessions

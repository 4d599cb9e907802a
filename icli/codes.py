"""The pages of the error codes: ``i explain E0103``."""

from __future__ import annotations

import re
from textwrap import indent

from ilang.core.diagnostic import CommandError

CODE = re.compile(r"[Ee][0-9]{4}")
FENCED = re.compile(r"^```\w+ ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (E[0-9]{4})\b.*$", re.MULTILINE)


def is_code(text: str) -> bool:
    """Whether a text is spelled like an error code."""
    return CODE.fullmatch(text) is not None


def pages() -> dict[str, str]:
    """Every page by its code, in order, heading included."""
    from pathlib import Path

    return _cut((Path(__file__).parent / "errors.md").read_text("utf-8"))


def _cut(text: str) -> dict[str, str]:
    heads = list(HEADING.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head.group(1): _drawn(text[head.start() + len("## ") : end].strip()) + "\n"
        for head, end in zip(heads, ends, strict=True)
    }


def _drawn(text: str) -> str:
    """A page without the marks of Markdown: what was fenced is indented, below the name of its file."""
    return FENCED.sub(lambda m: _file(m.group(1)) + indent(m.group(2), "    ").rstrip(), text)


def _file(name: str) -> str:
    return f"{name}:\n" if name else ""


def page(code: str) -> str:
    """The page of one code.

    Raises: CommandError E0813 if no message has that code.
    """
    known = pages()
    text = known.get(code.upper())
    if text is not None:
        return text
    family = [other for other in known if other[:3] == code.upper()[:3]]
    raise CommandError(
        "E0813",
        f"no message has the code {code.upper()}",
        help=f"the codes of its family: {' '.join(family)}" if family else None,
    )

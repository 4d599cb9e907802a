"""The pages of the error codes: ``i explain E0103``."""

from __future__ import annotations

import re

from ilang.core.diagnostic import CommandError

FENCED = r"(?ms)^```\w+ ?(\S*)\n(.*?)^```$"
HEADING = r"(?m)^## (E[0-9]{4})\b.*$"


def is_code(text: str) -> bool:
    """Whether a text is spelled like an error code, or the beginning of one, or asks for all: ``codes``."""
    if text.lower() == "codes":
        return True
    digits = text[1:]
    return text[:1] in ("E", "e") and digits.isdecimal() and digits.isascii() and len(digits) <= 4


def _text() -> str:
    """``errors.md``, which has a section for each code."""
    from pathlib import Path

    return (Path(__file__).parent / "errors.md").read_text("utf-8")


def pages() -> dict[str, str]:
    """Every page by its code, in order, heading included."""
    text = _text()
    heads = list(re.finditer(HEADING, text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head.group(1): _drawn(text[head.start() + len("## ") : end].strip()) + "\n"
        for head, end in zip(heads, ends, strict=True)
    }


def heading_line(code: str) -> int:
    """The line of ``errors.md``, from 1, on which the page of a code begins."""
    text = _text()
    return text[: text.find(f"\n## {code} ") + 1].count("\n") + 1


def _drawn(text: str) -> str:
    """A page without the marks of Markdown: what was fenced is indented, below the name of its file."""
    from textwrap import indent

    def listing(fenced: re.Match[str]) -> str:
        name, lines = fenced.groups()
        return f"{name}:\n" * bool(name) + indent(lines, "    ").rstrip()

    return re.sub(FENCED, listing, text)


def titles() -> dict[str, str]:
    """The meaning of each code in a few words."""
    return {code: _title(text) for code, text in pages().items()}


def answer(word: str) -> tuple[str, dict[str, object]]:
    """The meaning of a code, or the codes that begin with it, as text and as a JSON-ready object.

    ``E202`` is ``E0202``, if there is one; ``E05`` lists the codes that begin so, and ``codes`` lists all.

    Raises: CommandError E0813 if no message has that code.
    """
    known = pages()
    code = word.upper()
    full = code if code in known else f"E{code[1:]:0>4}"
    if full in known:
        return known[full], {"code": full, "title": _title(known[full]), "text": known[full]}
    begun = [each for each in known if word.lower() == "codes" or each.startswith(code)]
    if begun:
        rows = {each: _title(known[each]) for each in begun}
        text = "".join(f"{each}  {title}\n" for each, title in rows.items())
        return text, {"codes": [{"code": each, "title": title} for each, title in rows.items()]}
    family = [other for other in known if other[:3] == full[:3]]
    listed = (
        f"the codes of its family: {' '.join(family)}" if family else "`i explain codes` lists all"
    )
    raise CommandError("E0813", f"no message has the code {code}", help=listed)


def _title(text: str) -> str:
    """The words after the code in the heading of a page."""
    return text.partition("\n")[0].partition("· ")[2]

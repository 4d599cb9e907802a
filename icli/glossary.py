"""The words that ``i explain`` explains: the entries of ``glossary.md``, which says what each word means.

An entry is a paragraph: its names in bold, sentences, a line ``Try`` with a command, and a line ``See`` with words.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

SECTION = re.compile(r"^## (.*)\n", re.MULTILINE)
ENTRY = re.compile(r"^\*\*(.+?)\.\*\* (.+?)(?=\n\n|\n*\Z)", re.MULTILINE | re.DOTALL)
TRIED = re.compile(r"^Try `(.*)`\.$\n?", re.MULTILINE)
RELATED = re.compile(r"^See (.*)\.$\n?", re.MULTILINE)
LINK = re.compile(r"\[[^]]*\]\((?:\.\./)?([^)#]*)[^)]*\)")
WIDTH = 78


class Entry(NamedTuple):
    """One entry: its names, what it says, a command to try (empty where there is none), and related words."""

    names: tuple[str, ...]
    says: str
    tried: str
    related: tuple[str, ...]

    def page(self) -> str:
        """The entry for a terminal."""
        from textwrap import fill

        text = fill(self.says, WIDTH, initial_indent="  ", subsequent_indent="  ")
        related = fill(
            ", ".join(self.related), WIDTH, initial_indent="see  ", subsequent_indent="     "
        )
        last = "\n".join(
            (*(f"try  {each}" for each in (self.tried,) if each), *(related,) * bool(self.related))
        )
        return "\n\n".join(part for part in (", ".join(self.names), text, last) if part)


@cache
def sections() -> dict[str, list[Entry]]:
    """The entries of each section, in order."""
    from pathlib import Path

    text = (Path(__file__).parent / "glossary.md").read_text("utf-8")
    _, *rest = SECTION.split(text)
    return {
        title: [_entry(*match.groups()) for match in ENTRY.finditer(body)]
        for title, body in zip(rest[::2], rest[1::2], strict=True)
    }


def entry_of(word: str) -> Entry | None:
    """The entry of a word, also in the plural, or as ``-ing``; None where there is none."""
    key = _key(word)
    spellings = (key, f"{key}s", key[:-1], key.removesuffix("ing"), key.replace("axes", "axis"))
    entries = [each for section in sections().values() for each in section]
    known = {_key(name): each for each in reversed(entries) for name in each.names}
    return next((known[each] for each in spellings if each in known), None)


def _key(name: str) -> str:
    """A name in lower case, with blanks; a single small letter is an axis: ``I`` has an entry, and ``i`` none."""
    return re.sub("[-_]", " ", name.lower()) if 1 < len(name) else name


def _entry(names: str, body: str) -> Entry:
    tried, related = TRIED.search(body), RELATED.search(body)
    says = LINK.sub(r"\1", RELATED.sub("", TRIED.sub("", body))).replace("\n", " ").strip()
    says = re.sub(r"(?<![`\w*])\*(\w[\w -]*)\*(?![`\w*])", r"\1", says)
    words = related[1].replace("`", "").split(", ") if related else ()
    return Entry(tuple(names.split(", ")), says, tried[1] if tried else "", tuple(words))

"""The grammars of editors, out of the table of tokens: ``python -m ilang.icli.editors docs/editors``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from ilang.icli.highlight import TOKENS

NAME = "ilang"
"""The name of the language in editors: ``i`` alone is too short for a filter of theirs."""
GROUPS = {"(?:": "", "(?=": "@=", "(?!": "@!", "(?<=": "@<=", "(?<!": "@<!"}
"""The groups of regular expressions, and what vim writes behind one."""
PART = re.compile(r"\(\?<?[:=!]|\[\^?(?:\\.|[^\]])*\]|\{\d+,\d+\}|\\.|.", re.DOTALL)


def textmate() -> str:
    """The TextMate grammar, as VS Code, JetBrains and Sublime Text read it."""
    patterns = [{"name": f"{rule.scope}.{NAME}", "match": rule.pattern} for rule in TOKENS]
    grammar = {
        "name": NAME,
        "scopeName": f"source.{NAME}",
        "fileTypes": ["i"],
        "patterns": patterns,
    }
    return json.dumps(grammar, indent=2) + "\n"


def vim_syntax() -> str:
    """The syntax file of vim and Neovim; of two rules that match at one place the last one counts there."""
    rules = [
        f"syntax match ilang{rule.kind.capitalize()} ;{vim_pattern(rule.pattern)};"
        for rule in reversed(TOKENS)
    ]
    kinds = {rule.kind: rule.group for rule in TOKENS}
    links = [
        f"highlight default link ilang{kind.capitalize()} {group}" for kind, group in kinds.items()
    ]
    lines = (
        '" Written by python -m ilang.icli.editors out of icli/highlight.py.',
        'if exists("b:current_syntax")',
        "  finish",
        "endif",
        "syntax case match",
        *rules,
        *links,
        f'let b:current_syntax = "{NAME}"',
    )
    return "\n".join(lines) + "\n"


def vim_pattern(pattern: str) -> str:
    """A regular expression of the table as one of vim, which is "very magic"."""
    words: list[str] = []
    behind: list[str] = []
    for part in PART.findall(pattern):
        if part in GROUPS:
            behind.append(GROUPS[part])
            words.append("%(")
        elif part == ")":
            words.append(")" + behind.pop())
        elif part == r"\b":
            words.append("%(<|>)")
        elif len(part) > 1 or part.isalnum() or part in "_ .*+?|^$":
            words.append(part)
        else:
            words.append(f"\\{part}")
    return r"\v\C" + "".join(words)


def files() -> dict[str, str]:
    """Every file that is written, by its path."""
    detect = f"autocmd BufRead,BufNewFile *.i set filetype={NAME}\n"
    return {
        "vscode/i.tmLanguage.json": textmate(),
        f"vim/syntax/{NAME}.vim": vim_syntax(),
        f"vim/ftdetect/{NAME}.vim": detect,
    }


if __name__ == "__main__":
    for path, text in files().items():
        place = Path(sys.argv[1]) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

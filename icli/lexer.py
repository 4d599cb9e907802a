"""The lexer of Pygments: Sphinx, MkDocs, IPython and ``pygmentize`` color ``.i`` files by it."""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Text, string_to_tokentype

from ilang.icli.highlight import TOKENS


class ILexer(RegexLexer):  # type: ignore[misc]
    """Files of programs, and programs in pages: ``.. code-block:: ilang``."""

    name = "ilang"
    aliases: ClassVar = ["ilang"]
    filenames: ClassVar = ["*.i"]
    flags = re.MULTILINE | re.ASCII
    tokens: ClassVar = {
        "root": [
            *((rule.pattern, string_to_tokentype(rule.pygments)) for rule in TOKENS),
            (r"\s+|.", Text),
        ]
    }

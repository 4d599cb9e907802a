"""The number of threads of calls that do not say it: ``$I_THREADS``, as the process finds it, else 1."""

from __future__ import annotations

import os


def threads_of(text: str) -> int | str:
    """The number that a text is, or the text, which a call refuses if it is not "auto"."""
    return int(text) if text.isdecimal() else text


THREADS = threads_of(os.environ.get("I_THREADS") or "1")
"""One thread unless the environment says otherwise: a library that takes all cores is in the way of those around it."""

"""Tracebacks of refusals end at the line of the user that calls: what follows are files of the compiler.

An exception that is caught, loses its traceback and is raised again with a bare ``raise`` leaves no trace of the
function that does so. ``I_DEBUG=1`` keeps everything, as it does on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ilang.core.diagnostic import Error, InternalError

F = TypeVar("F", bound=Callable[..., Any])


def hide(error: BaseException) -> None:
    """Forget the frames that a refusal has come through; a bare ``raise`` follows. Bugs of ours keep theirs."""
    is_refusal = isinstance(error, Error) and not isinstance(error, InternalError)
    if is_refusal and os.environ.get("I_DEBUG") != "1":
        error.__traceback__ = None


def ends_at_caller(function: F) -> F:
    """A function whose refusals have a traceback that ends at the line that calls it."""

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except Error as error:
            hide(error)
            raise

    return cast("F", called)

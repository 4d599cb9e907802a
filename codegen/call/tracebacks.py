"""Tracebacks of refusals end at the line of the user that calls: what follows are files of the compiler.

An exception that is caught, loses its traceback and is raised again with a bare ``raise`` leaves no trace of the
function that does so. ``I_DEBUG=1`` keeps everything, as it does on the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ilang.core.diagnostic import Error, InternalError

F = TypeVar("F", bound=Callable[..., Any])
UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
"""The message of Python for an argument that a function does not have."""


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
        except TypeError as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is None:  # the call itself, not what it runs
                error.args = (_with_names(str(error), function),)
            raise

    return cast("F", called)


def _with_names(message: str, function: Callable[..., Any]) -> str:
    """The message of a call with an argument that a function does not have, with those that it has."""
    unknown = UNEXPECTED.search(message)
    if unknown is None:
        return message
    from inspect import signature

    from ilang.core.suggestion import did_you_mean

    kinds = signature(function).parameters.values()
    names = [
        each.name for each in kinds if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    names = [name for name in names if name != "self"]
    return f"{message}; {did_you_mean(unknown[1], names, 'there are ' + ', '.join(names), '{}=')}"

"""How the tests of the notation ask for one exact error."""

import pytest

from ilang.core.diagnostic import Error
from ilang.core.ir.syntax import Module, Tree
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source


def parse(text: str, *names: str) -> Tree:
    return parse_program(Source("<text>", text), names)


def module(text: str) -> Module:
    return parse_module(Source("m.i", text))


def check_error(text: str, code: str, line: int, column: int, file: bool = False) -> Error:
    """The text ends with exactly this error, at this place."""
    read = module if file else parse
    with pytest.raises(Error) as caught:
        read(text)
    error = caught.value
    assert error.span is not None
    place = (error.span.line_number(), error.span.column())
    assert (error.code, *place) == (code, line, column), str(error)
    return error

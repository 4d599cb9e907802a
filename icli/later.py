"""Modules that others import and seldom use, imported when something of them is used.

click imports modules of the standard library for types of parameters and for texts that no command has; they take half
of the time that it takes to import click (docs/decisions/0050-click.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module by name, which is imported when something of it is used.

    While it stands in for the module, so does what is taken of it by name.
    """

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            return _Part(self, name)
        return getattr(import_module(self.__name__), name)


class _Part:
    """A function or a class of a module that is imported when it is called, or used as a class."""

    def __init__(self, module: _Later, name: str) -> None:
        """The module stands in for itself."""
        self.__module, self.__name = module, name

    def __itself(self) -> Any:
        _withdraw(self.__module)
        return getattr(self.__module, self.__name)

    def __call__(self, *arguments: Any) -> Any:
        return self.__itself()(*arguments)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.__itself())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what `typing` asks of a parameter, and a function has not
            raise AttributeError(name)
        return getattr(self.__itself(), name)


@contextmanager
def imported_later(*names: str) -> Iterator[None]:
    """Stand in for modules while others are imported that have no use for them yet; then imports give them."""
    stand_ins = [_Later(name) for name in names if name not in sys.modules]
    sys.modules.update((each.__name__, each) for each in stand_ins)
    try:
        yield
    finally:
        for each in stand_ins:
            _withdraw(each)


def _withdraw(stand_in: ModuleType) -> None:
    if sys.modules.get(stand_in.__name__) is stand_in:
        del sys.modules[stand_in.__name__]

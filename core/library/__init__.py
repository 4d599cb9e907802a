"""Layers, losses and optimisers in the language itself; a line ``use nn`` of a file makes their names known in it."""

from __future__ import annotations

from importlib import import_module

LIBRARIES = ("nn", "optim")
"""The libraries, a module with a text of definitions each."""


def text_of(name: str) -> str:
    """The text of a library."""
    text: str = import_module(f"ilang.core.library.{name}").TEXT
    return text

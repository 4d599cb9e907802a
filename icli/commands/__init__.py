"""The commands of `i`, one a file, and the table of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

COMMANDS = {
    "explain": "Show what a program computes, or what an error code means",
    "run": "Run a program on arrays and print the results",
    "build": "Write a C or CUDA project for the definitions of a file",
    "train": "Train a model on data",
    "check": "Find mistakes, and print the inputs and outputs of each definition",
    "test": "Run the examples in the comments of files",
    "grad": "Print the gradient of a program, as a program",
    "graph": "Show the data flow of a program, as text or as a picture",
    "diff": "Compare two programs, or one under two schedules",
    "tune": "Time schedules, and print the fastest one",
    "learn": "Learn the language in short lessons",
    "repl": "Run programs line by line",
    "fmt": "Format a file",
    "lsp": "Answer an editor as its language server",
    "doctor": "Look at what programs need: compilers, OpenMP, the cache, a GPU",
    "completion": "Print the completion script of bash, zsh or fish",
}
"""Every command, which the module of its name runs, and what ``i --help`` says of it."""


def command_of(name: str) -> Any:
    """The command of a name; its module is imported."""
    return import_module(f"{__name__}.{name}").COMMAND

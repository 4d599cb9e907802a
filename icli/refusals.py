"""Errors of tokens that are no command line of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ilang.core.diagnostic import CommandError, Error, enumerated
from ilang.core.suggestion import did_you_mean, nearest
from ilang.icli.commands import COMMANDS, command_of

EXAMPLES = {
    "explain": "'+ij~i'",
    "run": "'+ij~i' '[[1, 2], [3, 4]]'",
    "build": "model.i -o out",
    "train": "model.i --data x=x.npy,t=t.npy",
    "check": "model.i",
    "test": "model.i",
    "grad": "'ij*ij~ij'",
    "graph": "'+ij~i'",
    "diff": "old.i new.i",
    "tune": "'ik*kj~ijk >> +ijk~ij' --shape 512x512,512x512",
    "fmt": "model.i",
    "completion": "bash",
}
"""Operands by which the help on a command without any shows what it takes."""


INSTEAD = {
    "version": "`i --version`",
    "demo tutorial start begin lesson lessons intro": "`i learn` teaches the language in short lessons",
    "shell console interactive python": "`i repl`",
    "compile make emit": "`i build model.i` writes a project in C, `i explain --emit c '+ij~i'` shows the C",
    "fit": "`i train model.i --data x=x.npy,t=t.npy`",
    "lint validate verify": "`i check model.i`",
    "format": "`i fmt model.i`",
    "bench benchmark time profile": "`i tune` times schedules; `:time f x` in `i repl` times a program",
    "exec eval execute": "`i run '+ij~i' '[[1, 2], [3, 4]]'`",
    "show print doc docs man examples list functions words": "`i explain` lists what it explains: signs, names, words",
    "ide editor": "`i lsp` is a language server",
    "install update upgrade": "`pip install` installs `i`, `i doctor` looks at what it needs",
}
"""Commands of other tools, and what there is."""


def unknown_command(word: str, names: Sequence[str], before: str = "") -> CommandError:
    """The error for a token that is no command where one is expected, at the start or after ``before``."""
    begun = [name for name in names if len(word) > 1 and name.startswith(word)]
    guess = nearest(word, tuple(names)) or (begun[0] if len(begun) == 1 else None)
    instead = next((says for words, says in INSTEAD.items() if word in words.split()), "")
    if instead and not before:
        hint = instead
    elif guess:
        hint = f"did you mean `i {before}{guess}`?"
    elif re.fullmatch(r"[Ee]\d{4}", word):
        hint = f"did you mean `i explain {word.upper()}`?"
    elif not before and _is_program(word):
        hint = (
            f"say what to do with it: i explain '{word}', i run '{word}' ARRAY or i check '{word}'"
        )
    elif word.startswith("-") and word != "-":
        listed = did_you_mean(word, ("--help", "--version"), "`i --help` lists what it has")
        return CommandError("E0802", f"i has no option {word}", help=listed)
    else:
        hint = f"the commands are {', '.join(names)}"
    return CommandError("E0801", f"there is no command {word or '(empty)'}", help=hint)


def _is_program(word: str) -> bool:
    from ilang.core.notation.files.libraries import defined_in

    return "~" in word or "(" in word or word.endswith(".i") or word in defined_in()


ELSEWHERE = {
    "--dtype": "an array has the type of its file, or one that is written: f64:[1,2], f64:rand:2x3",
    "--device": "--target cuda runs on a GPU",
    "--gpu": "--target cuda runs on a GPU",
    "--output": "-o FILE saves",
    "--lr": "the learning rate is a value of the routine: --config lr=0.1",
}
"""The help for options of other tools that no command has."""


def unknown_option(command: str, name: str, known: Sequence[str]) -> CommandError:
    """The error for a token that begins like an option; a long one may have one dash: ``-shape``."""
    guess = nearest(name, known) or (nearest(f"-{name}", known) if len(name) > 2 else None)
    hint = f"did you mean {guess}? " if guess else ""
    owners = [] if guess else [each for each in COMMANDS if name in _options(each)]
    if name in ELSEWHERE and not guess and not owners:
        hint = f"{ELSEWHERE[name]}; "
    elif owners:
        hint = f"{name} is an option of `i {'`, `i '.join(owners)}`; "
    elif not guess and "--config" in known:
        hint = f"a value of a definition is --config {name.lstrip('-')}=0.1; "
    return CommandError(
        "E0802",
        f"i {command} has no option {name}",
        help=f"{hint}`i {command} --help` lists its options",
    )


def no_choice(option: str, value: str, choices: Sequence[str]) -> CommandError:
    """The error for a value that is none of the words that an option takes."""
    hint = did_you_mean(value, choices, f"it is {enumerated(choices, 'or')}")
    return CommandError("E0804", f"{option} cannot be {value or 'empty'}", help=hint)


def too_few(command: str, operands: str) -> CommandError:
    """The error for a command without an operand that it needs."""
    message = f"i {command} needs {operands}"
    return CommandError("E0805", message, help=f"i {command} {EXAMPLES.get(command, operands)}")


def too_many_operands(command: str, most: int, others: Sequence[str]) -> CommandError:
    """The error for operands beyond those that a command takes."""
    help_line = "quote a program that holds blanks or signs: 'ik*kj~ijk >> +ijk~ij'"
    if command == "train":
        help_line = "--data names an array for each input: --data x=x.npy,t=t.npy"
    elif not most:
        help_line = f"i {command}"
    shapes = [_shape(other) for other in others] if "--shape" in _options(command) else [None]
    if None not in shapes:
        help_line = f"its arrays are given by their shapes: --shape {','.join(map(str, shapes))}"
    times = ("no operand", "one operand")[most] if most < 2 else f"{most} operands"
    return CommandError(
        "E0806", f"i {command} takes {times}, and {others[0]} is one too many", help=help_line
    )


def _options(command: str) -> list[str]:
    return [option for each in command_of(command).params for option in each.opts]


def _shape(word: str) -> str | None:
    """The shape of an array that a word spells, as options take it; None where it spells none."""
    from ilang.icli.literal import spelled_shape

    try:
        shape = spelled_shape(word)
    except Error:
        return None
    return None if shape is None else "x".join(map(str, shape)) or "."


def too_many(option: str, token: str) -> CommandError:
    """The error for a token after an option of ``i`` itself."""
    message = f"i {option} takes nothing more, and {token} is one too many"
    return CommandError("E0806", message, help=f"i {option}")

"""Shapes on the command line: by order, ``32x64,64x16``, or by name, ``x=32x64,y=64x16``; a scalar is ``.``.

A comma divides shapes; in a shape with a name it may stand between sizes as well as ``x`` does. Shapes of tensor
functions have rows, ``batch|input->output``: ``x=64|28x28``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ilang.core.diagnostic import CommandError, counted

EXTENT = r"[0-9]{1,19}"


def parse_shape(text: str) -> tuple[int, ...]:
    """One shape: ``32x64``, ``.`` for a scalar.

    Raises: CommandError E0810.
    """
    words = text.strip().replace("×", "x").split("x")
    if words == ["."]:
        return ()
    if not all(re.fullmatch(EXTENT, word) for word in words):
        named = re.fullmatch(r"\w+=([0-9x]+)", text.strip())
        hint = "a shape is numbers joined by x, like 32x64; a scalar is `.`"
        if named is not None:
            hint = f"shapes stand in the order of the inputs: {named[1]}"
        elif re.search(r"[a-wyz?_]", text):
            hint += "; to fix one extent alone, write it in the head: x[n,64]"
        raise CommandError("E0810", f"{text or '(empty)'} is not a shape", help=hint)
    return tuple(int(word) for word in words)


def written_shapes(options: Sequence[str]) -> list[tuple[str, str]]:
    """The shapes that options give, each with the name of its input; by order all names are empty.

    ``['32x64,64x16']`` gives ``('', '32x64'), ('', '64x16')``, and ``['x=5,4', 'y=3|4']`` gives ``('x', '5x4'),
    ('y', '3|4')``.

    Raises: CommandError E0807 (an input twice), E0810 (by order and by name).
    """
    pairs: list[tuple[str, str]] = []
    for option in options:
        parts = re.split(r",(?=\s*[A-Za-z_][\w.]*=)" if "=" in option else ",", option)
        for part in parts:
            name, equals, shape = part.rpartition("=") if "=" in part else ("", "", part)
            if equals and not re.fullmatch(r"[A-Za-z_][\w.]*", name.strip()):
                message = f"{part} is not a shape with its input"
                raise CommandError("E0810", message, help="--shape x=32x64")
            if equals and re.search(r"\d\s*,\s*\d", shape) and re.search(r"\d[x×]\d", shape):
                message = f"{part} has sizes with `x` and with `,`"
                raise CommandError(
                    "E0810", message, help="--shape x=32x64,y=64x16 names each input"
                )
            pairs.append((name.strip(), re.sub(r"(?<=\d)\s*[,×]\s*(?=\d)", "x", shape.strip())))
    names = [name for name, _ in pairs if name]
    if names and len(names) < len(pairs):
        message = "shapes stand in order or with names, not both"
        raise CommandError("E0810", message, help="--shape x=32x64,y=64x16, or --shape 32x64,64x16")
    for name, shape in dict(pairs).items():
        if name and any(shape != other for key, other in pairs if key == name):
            raise CommandError("E0807", f"--shape {name} is given twice", help="give it once")
    return pairs


def check_names(pairs: Sequence[tuple[str, str]], known: Sequence[str]) -> None:
    """Refuse shapes of names that no input has. Raises: CommandError E0814."""
    for name, _ in pairs:
        if name and name not in known:
            from ilang.core.suggestion import did_you_mean

            listed = ", ".join(sorted(known)[:20]) or "none"
            hint = did_you_mean(name, sorted(known), f"inputs are {listed}")
            raise CommandError("E0814", f"no input is named {name}", help=hint)


def shapes_by_name(
    pairs: Sequence[tuple[str, str]], inputs: Sequence[str], owner: str
) -> dict[str, str]:
    """The shapes, among those that options give, of the inputs of a program.

    Raises: CommandError E0811 (by order, another number of them).
    """
    if not pairs or pairs[0][0]:
        return {name: shape for name, shape in pairs if name in inputs}
    if len(pairs) != len(inputs):
        raise wrong_count(f"gives {counted(len(pairs), 'shape')}", inputs, owner)
    return dict(zip(inputs, (shape for _, shape in pairs), strict=True))


def named_shapes(
    options: Sequence[str], definitions: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The shapes that options give by the names of inputs, or those of the one definition in order.

    ``definitions`` are the inputs of each definition.

    Raises: CommandError E0807, E0810, E0811, E0814.
    """
    pairs = written_shapes(options)
    check_names(pairs, [name for names in definitions.values() for name in names])
    if not pairs or pairs[0][0]:
        return dict(pairs)
    if len(definitions) != 1:
        message = f"--shape gives shapes in order, and there are {len(definitions)} definitions"
        help_line = "give them by the names of inputs, --shape x=32x64, or choose one: --def"
        raise CommandError("E0811", message, help=help_line)
    ((owner, inputs),) = definitions.items()
    return shapes_by_name(pairs, [name for name in inputs if "." not in name], owner)


def wrong_count(gives: str, inputs: Sequence[str], owner: str) -> CommandError:
    """The error for shapes of which some inputs have none, or that no input takes."""
    takes = f"{owner} takes {len(inputs)}" + (f": {', '.join(inputs[:20])}" if inputs else "")
    help_line = "one shape for each input, separated by `,`: --shape 32x64,64x16; a scalar is `.`"
    return CommandError("E0811", f"--shape {gives}, and {takes}", help=help_line)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as messages and tables show it."""
    return "×".join(str(extent) for extent in shape) if shape else "."

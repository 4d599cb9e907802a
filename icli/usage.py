"""Help pages: the tables of ``options.py`` handed to click, which lays them out.

Tokens are not read by click: its rules for options are not ours (``options.py``), and importing it takes half as long
again as explaining a program.
"""

from __future__ import annotations

import click

from ilang.icli.options import Command, Option, options_of


def clicked(command: Command) -> click.Command:
    """A command as click sees it."""
    parameters: list[click.Parameter] = [
        click.Argument(
            ["operands"], nargs=-1, metavar=command.operands, type=click.Path(resolve_path=False)
        )
    ]
    for option in options_of(command):
        if option.names[-1] == "--help":
            continue
        parameters.append(
            click.Option(
                list(option.names),
                help=_says(option),
                metavar=option.metavar,
                is_flag=option.metavar is None,
                multiple=option.many,
                type=click.Choice(option.choices) if option.choices else None,
            )
        )
    return click.Command(
        command.name, params=parameters, help=command.says, epilog=command.more or None
    )


def _says(option: Option) -> str:
    """What the help page says of an option; the words it takes, where it takes few."""
    if not option.choices:
        return option.says
    return f"{option.says}: {', '.join(option.choices)}"


def help_page(command: Command) -> str:
    """What ``i COMMAND --help`` prints: the same at every width of the terminal."""
    known = clicked(command)
    context = click.Context(known, info_name=f"i {command.name}", terminal_width=80)
    return known.get_help(context) + "\n"

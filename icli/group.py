"""``i`` as click has it: a group of commands, of which the one that runs is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ilang.icli.commands import COMMANDS, command_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Commands(click.Group):
    """The commands of ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of commands, in the order in which they are shown."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name; its module is imported."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = command_of(cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names that begin with what is typed; after a dash, the options of ``i`` itself. No command is imported."""
        from click.shell_completion import CompletionItem

        rows = {**COMMANDS, "help": "Show the page of a command"}
        if incomplete.startswith("-"):
            rows = {"--help": "Show the page of all commands", "--version": "Show the version"}
        return [
            CompletionItem(text, help=says)
            for text, says in rows.items()
            if text.startswith(incomplete)
        ]


GROUP = Commands("i", add_help_option=False)
"""The commands of ``i``, once it is known that one is asked for."""

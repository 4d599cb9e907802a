"""``i completion``: what a shell reads to complete words of ``i``."""

from __future__ import annotations

from ilang.core.diagnostic import CommandError
from ilang.core.suggestion import did_you_mean
from ilang.icli.command import Command, CommandOperand, Request
from ilang.icli.screen import Screen

SHELLS = ("bash", "zsh", "fish")


def run(request: Request, screen: Screen) -> int:
    """Print the script of a shell.

    Raises: CommandError E0804 for a shell that is not known.
    """
    from pathlib import Path

    shell = request.operands[0]
    if shell not in SHELLS:
        hint = did_you_mean(shell, SHELLS, "it is bash, zsh or fish")
        raise CommandError("E0804", f"the shell cannot be {shell or 'empty'}", help=hint)
    place = Path(__file__).parents[1] / f"completion.{shell}"
    screen.write_exact(place.read_text("utf-8"))
    return 0


COMMAND = Command(
    "completion",
    "Print the script that completes commands, files and options of `i` in a shell.",
    run,
    (CommandOperand("shell", "bash|zsh|fish", SHELLS),),
    (),
    'bash: eval "$(i completion bash)" in ~/.bashrc. zsh: source <(i completion zsh) in ~/.zshrc, after'
    " compinit. fish: i completion fish > ~/.config/fish/completions/i.fish.",
)

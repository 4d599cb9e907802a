"""``i doctor``: what is there of all that programs need, and what to do about what is missing."""

from __future__ import annotations

from ilang import __version__
from ilang.icli.command import JSON, Command, Request
from ilang.icli.screen import Screen

FAILED = 3
"""The status where something is missing that every program needs: a tool is missing, or failed."""


def run(request: Request, screen: Screen) -> int:
    """Print a line for each thing that was looked at, and below it what to do."""
    from ilang.codegen.compile.surroundings import NEEDED, findings

    is_text = not request.has("--json")
    checked = [("i", "ok", __version__, "")]
    screen.write(f"{_line(checked[0])}\n" if is_text else "")
    for each in findings():
        checked.append(each)
        if is_text:
            screen.write(f"{_line(each)}\n")
            screen.close()
    failed = [name for name, state, _, _ in checked if name in NEEDED and state != "ok"]
    names = ("name", "state", "says", "help")
    if not is_text:
        checks = [dict(zip(names, each, strict=True)) for each in checked]
        screen.write_json({"ok": not failed, "checks": checks})
    elif failed:
        screen.write(f"\nprograms do not run as they should: {', '.join(failed)}\n")
    else:
        screen.write("\neverything that programs need is there\n")
    return FAILED if failed else 0


def _line(finding: tuple[str, str, str, str]) -> str:
    """A finding, with what to do on a line of its own."""
    name, state, says, remedy = finding
    return f"{state:<8} {name:<18} {says}" + (f"\n{'':<27} {remedy}" if remedy else "")


COMMAND = Command(
    "doctor",
    "Look at what programs need: compilers, OpenMP, the cache, a GPU; say what to do about what is missing.",
    run,
    (),
    (JSON,),
    "`missing` is what some programs need; the exit status is 3 if something is missing that all of them need.",
)

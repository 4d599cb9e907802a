"""``i learn``: short lessons, with tasks that are checked."""

from __future__ import annotations

import sys

from ilang.core.diagnostic import CommandError
from ilang.icli.command import Command, CommandOperand, Option, Request
from ilang.icli.lessons import lessons
from ilang.icli.screen import Screen, is_terminal

NUMBERS = tuple(str(number) for number in range(1, len(lessons()) + 1))


def run(request: Request, screen: Screen) -> int:
    """Teach one lesson, or from the first that is not done on; the status is 1 where lines of a pipe solve none.

    Raises: CommandError E0825 (there is no such lesson).
    """
    from ilang.icli.commands.repl import read_lines
    from ilang.icli.learning import LessonSession, done

    numbered = list(enumerate(lessons(), 1))
    known = done()
    if request.has("--list"):
        for number, lesson in numbered:
            screen.write(
                f"{number:>3}  {'done' if lesson.key in known else '    '}  {lesson.title}\n"
            )
        return 0
    if request.operands:
        asked = [each for each in numbered if str(each[0]) == request.operands[0]]
        if not asked:
            message = f"there is no lesson {request.operands[0] or '(empty)'}"
            raise CommandError(
                "E0825",
                message,
                help=f"a number from 1 to {len(numbered)}; `i learn --list` lists them",
            )
    else:
        first = next((n for n, each in enumerate(numbered) if each[1].key not in known), None)
        if first is None:
            screen.write("All lessons are done; `i learn 3` repeats one, `i repl` has no end.\n")
            return 0
        asked = numbered[first:]
    session = LessonSession(asked, lambda: screen.width(sys.stdout), screen.colored(sys.stdout))
    with session.folder:
        screen.write(session.page().lstrip("\n") + "\n")
        screen.close()
        if is_terminal(sys.stdin) and is_terminal(sys.stdout):
            from ilang.icli.terminal import interact

            return interact(session, screen)
        read_lines(session, screen)
    return int(session.typed > 0 and not session.solved and not session.skipped)


COMMAND = Command(
    "learn",
    "Learn the language in short lessons, whose tasks are checked.",
    run,
    (CommandOperand("lesson", "[NUMBER]", NUMBERS, required=False),),
    (Option("--list", None, "List the lessons, and which are done"),),
    "Without a number the lessons go on with the first that is not done. If standard input is a pipe, its lines are"
    " the answers: `i learn 3 < answers`.",
)

"""``i run``: a program on arrays."""

from __future__ import annotations

import sys

from ilang.core.diagnostic import CommandError
from ilang.icli.options import Command, Operand, Option, Request
from ilang.icli.programs import one_subject, open_program
from ilang.icli.screen import Screen


def run(request: Request, screen: Screen) -> int:
    """Run the component on the arrays; print what it gives, or save it."""
    target = _target(request)
    place = request.one("-o")
    program, *operands = request.operands
    subject = one_subject(open_program(program), request.one("--def"))
    if place is not None:
        _check_place(place, len(subject.graph.outputs))

    from ilang.icli.arrays import arrays_of, save
    from ilang.icli.values import array_text

    arrays = arrays_of(subject.written_dtypes(), operands)
    answer = subject.component()(*arrays, target=target)
    answers = answer if isinstance(answer, tuple) else (answer,)
    names = subject.graph.output_names(subject.graph.outputs)
    named = list(zip(names, answers, strict=True))
    if place is not None:
        save(place, named)
        return 0
    width = screen.width(sys.stdout)
    screen.write("\n".join(array_text(name, array, width) for name, array in named))
    return 0


def _target(request: Request) -> str:
    """What runs the program. Raises: CommandError E0822."""
    target = request.one("--target") or "c"
    if not request.has("--emulate"):
        return target
    if target != "cuda":
        raise CommandError(
            "E0822", f"--emulate is for CUDA, not for {target}", help="--target cuda --emulate"
        )
    return "cuda-emulated"


def _check_place(place: str, outputs: int) -> None:
    """Refuse a file that cannot hold the answer, before anything runs.

    Raises: CommandError E0812.
    """
    if not place.endswith((".npy", ".npz")):
        raise CommandError("E0812", f"-o {place or '(empty)'} must end in .npy or .npz")
    if outputs != 1 and place.endswith(".npy"):
        raise CommandError("E0812", f"{outputs} outputs do not fit a .npy", help="-o out.npz")


COMMAND = Command(
    "run",
    "Run a program on arrays and print what it gives.",
    "TEXT|FILE|- [ARRAY...]",
    1,
    None,
    (
        Option(("--def",), "NAME", "The definition of a file to run", names_a="definition"),
        Option(("-o",), "FILE", "Save to out.npy, or out.npz for several outputs, instead", names_a="array"),
        Option(("--target",), "TARGET", "What runs it; numpy is the slow reference",
               ("c", "numpy", "cuda")),
        Option(("--emulate",), None, "With --target cuda: emulate a GPU on the CPU, slowly"),
    ),
    run,
    (Operand("program"), Operand("array")),
    "ARRAY is x.npy, x.npz:name, a literal such as [[1,2],[3,4]] or 0.5, or rand:32x64: float32"
    " numbers in [0,1), the same ones every time. A literal takes the type that the program"
    " writes, else f32; i64:[1,2] and f64:rand:8 write one.",
)  # fmt: skip

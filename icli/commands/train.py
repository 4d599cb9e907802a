"""``i train``: a routine run on batches of data, epoch after epoch."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

from ilang.core.diagnostic import CommandError, DataError
from ilang.core.infer.conflicts import axes
from ilang.core.ir.functions import Head, TensorParameter
from ilang.core.ir.syntax import Module
from ilang.core.suggestion import did_you_mean
from ilang.icli.command import (
    CONFIG,
    EMULATE,
    TARGET,
    THREADS,
    Command,
    CommandOperand,
    Option,
    Request,
    seed_of,
    target_of,
    threads_of,
    whole_number,
)
from ilang.icli.definitions import NOTHING_RETURNED, config_of, files_read, heads_of, used_in
from ilang.icli.programs import is_file, unknown_definition
from ilang.icli.screen import Screen, is_terminal
from ilang.icli.shapes import shape_text

if TYPE_CHECKING:
    from ilang.codegen.session.batches import Batches
    from ilang.codegen.session.session import Session
    from ilang.codegen.session.step import Processes
    from ilang.codegen.system.npy import Array
    from ilang.icli.training import EpochLines, Job, Training


def run(request: Request, screen: Screen) -> int:
    """Train; print the loss of every epoch and the curve, and leave a checkpoint."""
    from ilang.codegen.system.files import read_module

    path = request.operands[0]
    if not is_file(path):
        raise CommandError(
            "E0816", f"i train takes a file, and {path} is none", help="i train model.i"
        )
    module = read_module(path)
    head = _head(module, request.one("--def"))
    settings = _Settings(request, path, head)
    _check_files(settings, module)
    if settings.ranks == 1:
        return _train(module, head, settings, screen, None)

    from ilang.codegen.session.mpi import is_rank
    from ilang.icli.ranks import as_rank, launched

    if not is_rank():
        return launched(settings.ranks, settings.place, screen)
    return as_rank(
        settings.ranks, lambda ranks, marked: _train(module, head, settings, marked, ranks)
    )


def _train(
    module: Module, head: Head, settings: _Settings, screen: Screen, ranks: Processes | None
) -> int:
    """Train, as one process or as one of several ranks, of which the first speaks."""
    from ilang.icli.training import Job, StoppedError, Training

    speaks = ranks is None or ranks.rank == 0
    data = _data(settings.data, head)
    kept = None if settings.held_back is None else _kept_data(settings.held_back, head, data)
    sessions = _Sessions(module, head, settings, ranks)
    batches = sessions.batches(data)
    session = sessions.of(data)
    session.check_loss()
    done = _resumed(session, settings, batches.count)
    is_over = 0 < done and settings.epochs * batches.count <= done
    if speaks and not is_over:
        _announce(session, settings, batches, done, screen)
    held_back = None if kept is None else sessions.held_back(session, kept)
    with ExitStack() as stack:
        log = stack.enter_context(_log(settings)) if speaks and settings.log else None
        epochs, place, debug = settings.epochs, settings.place, settings.debug
        every = settings.save_every
        job = Job(session, batches, epochs, place, held_back, log, debug, speaks, every)
        training = Training(job, _report(screen, job, done, stack), done)
        try:
            training.run()
        except StoppedError:
            stack.close()
            screen.note(
                f"interrupted after step {training.done}, which {place} has: --resume {place} goes on"
            )
            return 130
    if speaks and is_over:
        _tell_nothing_left(training, settings, screen)
    elif speaks:
        _tell(training, settings, screen)
    return 0


def _check_files(settings: _Settings, module: Module) -> None:
    """Refuse files to write that this command reads, that are one, or that are of another kind.

    Raises: DataError E0768.
    """
    from ilang.codegen.session.checkpoint import CHECKPOINT
    from ilang.codegen.system.outputs import check_outputs, file_at
    from ilang.icli.curve import CURVE
    from ilang.icli.training import LOG

    written = [
        (name, place, kind)
        for name, place, kind in (
            ("--save", settings.place, CHECKPOINT),
            ("--log", settings.log, LOG),
            ("--curve", settings.curve, CURVE),
        )
        if place is not None
    ]
    read = [("--data", each) for each in _files(settings.data)]
    read += [("--val", each) for each in _files(settings.held_back)]
    resumed = settings.resumed
    if resumed is not None and file_at(resumed) != file_at(settings.place):
        read.append(("--resume", resumed))
    check_outputs(written, [*files_read(module), *read])


def _announce(
    session: Session, settings: _Settings, batches: Batches, done: int, screen: Screen
) -> None:
    """Say what a reader would not expect: no loss, nothing learned, examples left out, steps done before."""
    if not session.outputs:
        screen.note(NOTHING_RETURNED)
    if not session.parameters.written:
        screen.note(
            "no step changes a parameter: assign to them, for example `p =- 0.01 *. p.grad`"
        )
    if batches.dropped:
        screen.note(
            f"{batches.dropped} of {batches.examples:,} examples are left out of every epoch: "
            f"the last batch of {batches.size} is incomplete"
        )
    if done:
        screen.note(f"going on after step {done} of {settings.resumed}")


def _tell_nothing_left(training: Training, settings: _Settings, screen: Screen) -> None:
    """Say that a checkpoint has every step that is asked for; only another file is written, and said to be."""
    from ilang.codegen.system.outputs import file_at

    resumed, place = settings.resumed or "", settings.place
    asked = settings.epochs * training.job.batches.count
    screen.note(
        f"nothing is left to do: {resumed} has {training.done} steps, and --epochs {settings.epochs} "
        f"asks for {asked}"
    )
    if file_at(place) != file_at(resumed):
        training.save()
        training.flush()
        screen.write(f"{training.done} steps; {place}\n")


def _tell(training: Training, settings: _Settings, screen: Screen) -> None:
    """The curve, and where things are."""
    from ilang.icli.curve import CURVE, curve_svg, curve_text

    screen.write(curve_text([loss for _, loss in training.losses]))
    if settings.curve is not None:
        from ilang.codegen.system.outputs import write_output

        drawn = curve_svg(training.losses, training.held_back).encode()
        write_output(settings.curve, CURVE, lambda stream: stream.write(drawn))
    screen.write(f"{training.done} steps; {settings.place}\n")


def _log(settings: _Settings) -> IO[str]:
    """The log, which a resumed run goes on with. Raises: DataError E0731."""
    place = settings.log or ""
    try:
        return open(place, "a" if settings.resumed else "w", encoding="utf-8")  # noqa: PTH123
    except (OSError, ValueError) as trouble:
        reason = getattr(trouble, "strerror", None) or trouble
        message = f"{place or '(empty name)'} cannot be written: {reason}"
        help_line = "name a file that can be written"
        raise DataError("E0731", message, help=help_line) from None


def _report(screen: Screen, job: Job, done: int, stack: ExitStack) -> EpochLines | None:
    """The receiver of progress: a bar, or a line for each epoch; none of a rank that does not speak."""
    from ilang.icli.training import EpochLines

    if not job.speaks:
        return None
    if not is_terminal(sys.stderr) or not screen.colored(sys.stderr):
        return EpochLines(screen, job.epochs)
    from ilang.icli.bar import Bar

    bar = Bar(screen, job.epochs, job.epochs * job.batches.count, done, job.batches.size)
    stack.callback(bar.close)
    return bar


def _resumed(session: Session, settings: _Settings, batches: int) -> int:
    """Load the checkpoint to go on from; how many steps were done.

    Raises:
        DataError: E0762 (of another seed, other batches), and those of ``Session.load``.
    """
    if settings.resumed is None:
        return 0
    notes = session.load(settings.resumed)
    steps, count, seed = (notes.get(each, "") for each in ("steps", "batches", "seed"))
    if not steps.isdecimal() or not count.isdecimal():
        return 0
    if seed != str(settings.seed):
        message = f"{settings.resumed} was trained with --seed {seed}, and this is {settings.seed}"
        raise DataError("E0762", message, help=f"--seed {seed}")
    if int(count) != batches:
        message = f"{settings.resumed} had {count} batches in an epoch, and this has {batches}"
        raise DataError("E0762", message, help="go on with the same data and --batch")
    return int(steps)


# -- options ---------------------------------------------------------------------------------------------------------


class _Settings:
    """The settings that the options give."""

    def __init__(self, request: Request, path: str, head: Head) -> None:
        """Read them. Raises: CommandError E0824, E0825."""
        self.name = head.name
        self.data = request.one("--data")
        self.held_back = request.one("--val")
        self.epochs = whole_number(request, "--epochs", 1)
        self.batch = whole_number(request, "--batch", 32)
        self.seed = seed_of(request)
        self.save_every = whole_number(request, "--save-every", 1)
        self.ranks = whole_number(request, "--ranks", 1)
        self.threads = threads_of(request)
        if self.ranks > 1 and not request.has("--threads"):
            self.threads = 1  # the ranks have the cores
        self.config = config_of(request.all("--config"), [head])
        self.resumed = request.one("--resume")
        stem = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
        self.place = request.one("--save") or self.resumed or f"{stem}.safetensors"
        self.log = request.one("--log")
        self.curve = request.one("--curve")
        self.shuffle = not request.has("--no-shuffle")
        self.debug = request.has("--debug-nan")
        self.target = target_of(request)


def _head(module: Module, name: str | None) -> Head:
    """The head of what is to be trained: a routine, the only one that no other one calls if none is named.

    Raises:
        CommandError: E0808 (no such definition), E0818 (several).
    """
    heads = heads_of(module)
    file_name = module.source.name
    if name is not None:
        if name not in heads:
            raise unknown_definition(file_name, name, list(heads))
        if name not in {each.name for each in module.routines}:
            message = f"{name} is a tensor function, and i train runs a routine"
            help_line = "write one that computes gradients of its loss: `cd step(x, y) { ... }`"
            raise CommandError("E0818", message, help=help_line)
        return heads[name]
    used = used_in(module)
    names = [each.name for each in module.routines if each.name not in used]
    if len(names) == 1:
        return heads[names[0]]
    message = f"{file_name} has {len(names) or 'no'} routines that no other one calls"
    help_line = f"choose one: --def {names[0]}" if names else "write one: `cd step(x, y) { ... }`"
    raise CommandError("E0818", message, help=help_line)


# -- data ------------------------------------------------------------------------------------------------------------


def _data(text: str | None, head: Head) -> dict[str, Array]:
    """An array for each input: ``x=a.npy,y=b.npy``, or a .npz with one of each name.

    Raises:
        CommandError: E0824. DataError: E0725 to E0729 (a file).
    """
    from ilang.codegen.system.npy import load_npz, members

    names = [each.name for each in head.tensors]
    usual = ",".join(f"{name}={name}.npy" for name in names)
    if text is None:
        raise CommandError("E0824", f"{head.name} needs data", help=f"--data {usual}")
    if "=" not in text:
        if not text.endswith(".npz"):
            message = f"{text or '(empty)'} names no input, and is no .npz file"
            raise CommandError("E0824", message, help=f"--data {usual}")
        held = members(text)
        missing = [name for name in names if name not in held]
        if missing:
            message = f"{text} has no array {missing[0]}"
            raise CommandError("E0824", message, help=f"it has {', '.join(held[:20]) or 'none'}")
        return {name: load_npz(text, name) for name in names}
    arrays: dict[str, Array] = {}
    given: dict[str, str] = {}
    for part in text.split(","):
        name, _, place = part.partition("=")
        if name not in names:
            hint = did_you_mean(name, names, f"its inputs are {', '.join(names)}")
            raise CommandError("E0824", f"{head.name} has no input {name or '(empty)'}", help=hint)
        if name in arrays:
            message = f"the input {name} is given twice: {given[name]} and {place or '(empty)'}"
            raise CommandError("E0824", message, help=f"--data {usual}")
        if not place:
            message = f"--data names no file for the input {name}"
            raise CommandError("E0824", message, help=f"--data {usual}")
        given[name] = place
        arrays[name] = _array(place)
    missing = [name for name in names if name not in arrays]
    if missing:
        message = f"--data has nothing for the input {missing[0]} of {head.name}"
        raise CommandError("E0824", message, help=f"{missing[0]}=FILE.npy")
    for each in head.tensors:
        _require_axes(head, each, arrays[each.name])
    return arrays


def _require_axes(head: Head, tensor: TensorParameter, array: Array) -> None:
    """Refuse data of another number of axes than a head writes. Raises: DataError E0762."""
    rows = () if tensor.shape is None else tensor.shape.rows
    count = sum(len(row.leading) + len(row.trailing) for row in rows)
    if not rows or any(row.variable is not None for row in rows) or array.ndim in (0, count):
        return
    message = (
        f"{tensor.name} of --data has {axes(array.ndim)}, {shape_text(array.shape)}, "
        f"and {head.name} takes {axes(count)}, {tensor.span.text()}"
    )
    help_line = "axis 0 has the examples, and the others are those of one example"
    if (array.ndim, count) == (1, 2):
        help_line = "numpy.reshape(a, (-1, 1)) has one number in each example"
    raise DataError("E0762", message, help=help_line)


def _kept_data(text: str, head: Head, data: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of ``--val``, whose examples have the shapes of those of ``--data``. Raises: as ``_data``."""
    kept = _data(text, head)
    for name, array in kept.items():
        one, other = array.shape[1:], data[name].shape[1:]
        if array.ndim != data[name].ndim or one != other:
            message = f"an example of {name} is {shape_text(one)} in --val and {shape_text(other)} in --data"
            help_line = "both have examples of one shape; only their number may differ"
            raise CommandError("E0824", message, help=help_line)
    return kept


def _array(place: str) -> Array:
    """An array in a file: ``a.npy``, ``a.npz:name``."""
    from ilang.codegen.system.npy import load_npy, load_npz
    from ilang.icli.files import member_of

    file, key = member_of(place)
    return load_npz(file, key) if file.endswith(".npz") else load_npy(file)


def _files(text: str | None) -> Iterator[str]:
    """The files that ``--data`` names."""
    from ilang.icli.files import member_of

    for part in text.split(",") if text else ():
        place = part.partition("=")[2] if "=" in part else part
        yield member_of(place)[0]


class _Sessions:
    """Sessions for arrays: the batch is axis 0, but for what the head writes otherwise."""

    def __init__(
        self, module: Module, head: Head, settings: _Settings, ranks: Processes | None
    ) -> None:
        from ilang.codegen.session.model import Model

        self.model = Model(module)
        self.head = head
        self.settings = settings
        self.ranks = ranks
        self.share = (0, 1) if ranks is None else (ranks.rank, ranks.size)

    def batches(self, data: Mapping[str, Array]) -> Batches:
        """The batches of arrays."""
        from ilang.codegen.session.batches import Batches

        settings = self.settings
        return Batches(
            data, settings.batch, settings.seed, shuffle=settings.shuffle, share=self.share
        )

    def of(self, data: Mapping[str, Array], held_back: bool = False) -> Session:
        """A session for batches of arrays; a configuration value ``training`` is 0 for data that is held back."""
        from ilang.codegen.session.given_shapes import shape_of_extents
        from ilang.codegen.session.model import options_of
        from ilang.codegen.session.session import Session

        settings, rows = self.settings, self.settings.batch // self.share[1]
        shapes = {
            each.name: shape_of_extents((rows, *data[each.name].shape[1:]), each.shape)
            for each in self.head.tensors
        }
        given = {
            "seed": settings.seed,
            "target": settings.target,
            "threads": settings.threads,
            "ranks": self.ranks,
        }
        config = dict(settings.config)
        if held_back and any(each.name == "training" for each in self.head.configuration or ()):
            config["training"] = 0
        return Session(self.model, options_of(self.head.name, shapes, config, given))

    def held_back(self, session: Session, data: Mapping[str, Array]) -> Callable[[], float | None]:
        """A function that gives the mean loss of held-back data: runs whose updates are dropped."""
        from ilang.codegen.session.session import take_values
        from ilang.icli.training import loss_on, wrong_in_data

        other = self.of(data, held_back=True)
        take_values(other, session)
        batches = self.batches(data)

        def mean() -> float | None:
            losses = []
            for batch in batches.epoch(0):
                take_values(other, session)
                loss = loss_on(other, batches, batch, "--val")
                if loss is not None and not math.isfinite(loss):
                    message = f"the loss on the data of --val is {loss}"
                    if (wrong := wrong_in_data(message, other, batches, batch)) is not None:
                        raise wrong
                losses.append(loss)
            known = [loss for loss in losses if loss is not None]
            return sum(known) / len(known) if known else None

        return mean


COMMAND = Command(
    "train",
    "Run a routine (`cd`) on batches of data, epoch after epoch, and save a checkpoint after each.",
    run,
    (CommandOperand("program", "FILE", "program"),),
    (
        Option.of_definition("The routine to run; default: the one that no other routine calls"),
        Option("--data", "DATA", "x=a.npy,y=b.npy, or a .npz with an array for each input", "array"),
        Option("--epochs", "N", "How many times to go through the data; default: 1"),
        Option("--batch", "N", "Examples in each step; default: 32"),
        CONFIG,
        Option("--val", "DATA", "Validation data: print its loss after each epoch", "array"),
        Option("--save", "FILE", "Write checkpoints to this file, .safetensors or .npz; default: FILE.safetensors",
               "array"),
        Option("--save-every", "N", "Write a checkpoint after every N epochs, and after the last one; default: 1"),
        Option("--resume", "FILE", "Continue from a checkpoint, as if training had never stopped", "array"),
        Option("--seed", "N", "Seed of the initial parameters and of the order of examples; default: 0"),
        Option("--no-shuffle", None, "Keep the examples in the order of the data"),
        Option("--log", "FILE", "Write a line of JSON for each step and each epoch"),
        Option("--curve", "FILE", "Draw the loss as an SVG picture"),
        Option("--debug-nan", None, "When the loss becomes inf or nan, find the expression that caused it; slower"),
        THREADS,
        Option("--ranks", "N", "How many processes share each batch, through MPI; default: 1"),
        TARGET,
        EMULATE,
    ),
    "Axis 0 of every array is the batch. Ctrl-C saves a checkpoint, and --resume continues from it.",
)  # fmt: skip

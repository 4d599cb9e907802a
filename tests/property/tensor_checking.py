"""Random tensor functions and routines: what they mean, sessions on the reference, and C or CUDA, which all agree.

Every program is run several times, since what it keeps lasts. Its gradients are compared with differences of what it
means; where two of them disagree, or slopes before and after, the loss has a kink nearby, and that run and those after
it are not compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ilang import Error, load
from ilang.core import pipeline
from ilang.core.record import replace
from tests.property.batch import Comparison, Subject, compiled, machine_of
from tests.property.tally import Tally
from tests.property.tensor_meaning import Array, Run
from tests.property.tensor_programs import Program, generate

RUNS = 3
STEP = 1e-4
"""Differences are of fourth order."""
CLOSE = 1e-5
"""How far a gradient may be from differences, relative to its greatest."""
AGREE = 1e-6
"""How far differences of second and of fourth order may be apart for either to tell something."""
LARGEST = 1e6
"""Numbers beyond it are not compared: training diverges there, and sines of such numbers keep few digits."""
EXPECTED = ("E0284",)
"""Refusals that a random text may deserve: a tensor assigned between its use and ``backprop``."""


def check(seeds: Sequence[int], mode: str, session_every: int = 0) -> Tally:
    """Check the programs of some seeds in one C program, or in one of CUDA.

    One program in ``session_every`` is run in a session that compiles, too.
    """
    tally, subjects = Tally(), list[Subject]()
    for place, seed in enumerate(seeds):
        says = list[str]()
        with tally.noting(seed, says):
            try:
                program = generate(seed)
                says.append(program.text)
                tally.count(programs=1)
                compiles = bool(session_every) and place % session_every == 0
                subjects.append(_by_reference(program, f"p{len(subjects)}", mode, compiles, tally))
            except Error as error:
                if error.code not in EXPECTED:
                    raise
                tally.count(refused=1)
    compiled(subjects, mode, tally)
    return tally


def _by_reference(program: Program, name: str, mode: str, compiles: bool, tally: Tally) -> Subject:
    """Run a session on the reference, each run beside what the text means."""
    session = session_of(program, "numpy")
    other = session_of(program, "c") if compiles else None
    tally.count(sessions=compiles)
    rng = np.random.default_rng(program.seed)
    shapes = program.shapes
    mirror = Mirror(program, session, tally)
    solved = session._solved
    shaped = replace(solved.shaped(), name=name)
    runs = []
    for turn in range(RUNS):
        given = {n: rng.normal(size=shape.dims()) for n, shape in shapes.items()}
        if turn == RUNS - 1 and "lr" in program.config:
            for each in (session, other):
                if each is not None:
                    each.config["lr"] = mirror.config["lr"] = 0.025
        before = [np.array(_read(session, cell, given)) for cell in solved.needed]
        results = as_tuple(session(**given))
        mirror.follow(given, results)
        wanted = _all_of(session, results)
        runs.append(Comparison(before, partial(_alike, wanted=wanted, what="compiled")))
        if other is not None:
            _alike(_all_of(other, as_tuple(other(**given))), wanted, f"session, run {turn}")
    kernels = pipeline.lower(shaped, machine_of(mode))
    return Subject(program.seed, program.text, shaped, kernels, runs)


def _read(session: Any, cell: Any, given: dict[str, Any]) -> Any:
    """The array of a cell that the next run reads."""
    kept = {"input": given, "parameter": session.parameters, "declared": session.state}
    if cell.kind not in kept:
        return session._fixed(cell)
    return kept[cell.kind][session._solved.built.paths.get(cell, cell.name)]


def session_of(program: Program, target: str) -> Any:
    with tempfile.TemporaryDirectory(prefix="ilang-fuzz-") as folder:
        path = Path(folder) / "m.i"
        path.write_text(program.text, "utf-8")
        shapes = {name: shape.text() for name, shape in program.shapes.items()}
        return load(path).session(program.name, shapes, target=target, seed=program.seed)


def as_tuple(result: Any) -> tuple[Array, ...]:
    return result if isinstance(result, tuple) else () if result is None else (result,)


def _all_of(session: Any, returned: Sequence[Array]) -> list[Array]:
    """Every result of the last run, in the order of the program's outputs."""
    order = iter(returned)
    return [
        np.array(next(order) if each.role == "return" else session.value(each.path))
        for each in session._solved.results
    ]


def _alike(got: Sequence[Array], wanted: Sequence[Array], what: str, close: float = 1e-9) -> None:
    """Arrays agree but for rounding, or are too large to tell."""
    assert len(got) == len(wanted), f"{what}: {len(got)} results in place of {len(wanted)}"
    for number, (one, other) in enumerate(zip(got, wanted, strict=True)):
        assert one.shape == other.shape, f"{what}, {number}: {one.shape}, not {other.shape}"
        scale = 1 + float(np.abs(other[np.isfinite(other)]).max(initial=0))
        if scale > LARGEST:
            continue
        fine = np.isclose(one, other, close, close * scale, equal_nan=True)
        assert np.all(fine), f"{what}, {number}: {one}\nin place of {other}"


class Mirror:
    """What a program means, run by run beside a session on the reference."""

    def __init__(self, program: Program, session: Any, tally: Tally) -> None:
        self.program, self.session, self.tally = program, session, tally
        self.config = dict(program.config)
        self.follows = True
        zeros = {name: np.zeros(shape.dims()) for name, shape in program.shapes.items()}
        program.run(self.begun(zeros, looks=True))
        wanted = program.owner.parameters()
        self.parameters = {p: np.array(v) for p, v in session.parameters.items()}
        found = {path: array.shape for path, array in self.parameters.items()}
        assert found == wanted, f"parameters {found}\nin place of {wanted}"
        self.cells: dict[str, Array] = {}
        self.results = session._solved.results

    def begun(self, given: Mapping[str, Array], looks: bool = False) -> Run:
        """A run that has not begun; looking, it may read parameters before there are any."""
        if looks:
            ones = {"lr": 0.1}
            return Run(given, {**ones, **self.config}, {}, {}, _Ones(), True)
        return Run(given, self.config, dict(self.parameters), dict(self.cells))

    def follow(self, given: Mapping[str, Array], results: Sequence[Array]) -> None:
        """Compare one run; a loss that differences tell nothing of ends that."""
        if not self.follows:
            return
        session, run = self.session, self.begun(given)
        gradients = {
            path: np.array(session.value(f"{path}.grad"))
            for path in self.parameters
            if any(each.path == f"{path}.grad" for each in self.results)
        }
        halves = ".grad =*" in self.program.text
        run.gradients = {path: g * 2 if halves else g for path, g in gradients.items()}
        with np.errstate(all="ignore"):
            self.program.run(run)
        everything = [*run.returned, *run.parameters.values(), *run.cells.values()]
        if not all(np.isfinite(a).all() and np.abs(a).max(initial=0) < LARGEST for a in everything):
            self.tally.count(unclear=1)
            self.follows = False
            return
        if run.backward is not None and not self.goes_back(run.gradients, given, run.held):
            self.tally.count(unclear=1)
            self.follows = False
            return
        self.tally.count(meant=1)
        _alike(results, run.returned, "meaning", 1e-7)
        for path, value in run.parameters.items():
            _alike([session.parameters[path]], [value], f"meaning of {path}", 1e-7)
        assert set(session.state) == run.state, f"state {set(session.state)}, not {run.state}"
        for path in run.state:
            _alike([session.state[path]], [run.cells[path]], f"meaning of {path}", 1e-7)
        self.parameters = run.parameters
        self.cells = {path: run.cells[path] for path in run.state}

    def loss(
        self, given: Mapping[str, Array], held: list[Array], path: str, place: int, step: float
    ) -> float:
        """The loss where one element of a parameter is another."""
        run = self.begun(given)
        run.replayed = held
        moved = run.parameters[path].copy()
        moved.reshape(-1)[place] += step
        run.parameters[path] = moved
        with np.errstate(all="ignore"):
            return self.program.loss(run)

    def goes_back(
        self, gradients: Mapping[str, Array], given: Mapping[str, Array], held: list[Array]
    ) -> bool:
        """Compare gradients with differences of the loss; whether these tell anything."""
        loss = partial(self.loss, given, held)
        for path, value in self.parameters.items():
            near, far = np.zeros(value.size), np.zeros(value.size)
            for place in range(value.size):
                at = [loss(path, place, k * STEP) for k in (-2, -1, 1, 2)]
                near[place] = (at[2] - at[1]) / (2 * STEP)
                far[place] = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * STEP)
            scale = 1 + float(np.abs(far).max(initial=0))
            steep = AGREE * scale * (1 + abs(loss(path, 0, 0.0)) * 1e-3)
            if not np.isfinite(far).all() or np.abs(near - far).max(initial=0) > steep:
                return False
            found = gradients.get(path, np.zeros(value.shape)).reshape(-1)
            noise = 1e-14 * abs(loss(path, 0, 0.0)) / STEP
            off = np.abs(found - far) > CLOSE * scale + noise
            if any(is_kink(partial(loss, path, int(n)), steep) for n in np.flatnonzero(off)):
                return False
            assert not off.any(), f"gradient of {path}: {found}\nin place of {far}"
            self.tally.count(gradients=value.size)
        return True


def is_kink(along: Callable[[float], float], steep: float) -> bool:
    """Whether the slopes of a function before and after 0 differ, however small the step: at a tie of a maximum.

    There the winners share what flows back, and differences tell half of the two slopes.
    """
    here = along(0.0)
    near, far = ((along(h) + along(-h) - 2 * here) / h for h in (STEP, 2 * STEP))
    return abs(far - 2 * near) > steep


class _Ones(dict[str, Array]):
    """No parameter has a gradient while a run only looks."""

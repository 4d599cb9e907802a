"""Gradients of random tensor functions and routines against those of JAX, where that is installed.

What a text means is NumPy's doing (``tensor_meaning.py``). The modules that say it are loaded once more with
``jax.numpy`` in the place of NumPy, so the same seed gives the same program for JAX to differentiate; what is held is
held there by ``stop_gradient``. At a kink the two may differ: differences of the loss tell whether there is one.

``jax_gradients.py`` runs it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ilang import Error
from tests.property import tensor_meaning
from tests.property.tensor_checking import (
    AGREE,
    EXPECTED,
    RUNS,
    Mirror,
    Tally,
    as_tuple,
    is_kink,
    session_of,
)
from tests.property.tensor_meaning import Array
from tests.property.tensor_programs import Program, generate
from tests.property.tensor_texts import pinned

MODULES = tuple(f"tests.property.tensor_{name}" for name in ("meaning", "texts", "programs"))
CLOSE = 1e-9
INPUT = "u"
"""The parameter by which the routine that goes back from a tensor function multiplies its input."""


class _JaxNumPy(ModuleType):
    """``jax.numpy``, and NumPy for what that has not."""

    def __init__(self) -> None:
        super().__init__("numpy")
        self.jax = importlib.import_module("jax.numpy")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jax, name, None) or getattr(np, name)


class Meanings:
    """What texts mean to JAX."""

    def __init__(self) -> None:
        """Load the modules that say it."""
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        kept = {name: sys.modules.pop(name) for name in MODULES}
        sys.modules["numpy"] = _JaxNumPy()
        try:
            loaded = [importlib.import_module(name) for name in MODULES]
        finally:
            sys.modules["numpy"] = np
            sys.modules.update(kept)
        self.meaning, _, self.programs = loaded

    def look(self, program: Any, run: Any) -> None:
        """Follow a run for its parameters alone, without computing anything."""

        def looked() -> tuple[()]:
            program.run(run)
            return ()

        self.jax.eval_shape(looked)

    def gradients(
        self, program: Any, mirror: Mirror, given: Mapping[str, Array]
    ) -> dict[str, Array]:
        """The gradients of the sum of the loss, by the paths of parameters."""
        hold = self.jax.lax.stop_gradient

        class Held(self.meaning.Run):  # type: ignore[name-defined, misc]
            """A run in which nothing flows back through what is held."""

            def hold(self, value: Any) -> Any:
                return hold(value)

        def loss(parameters: Mapping[str, Any], cells: Mapping[str, Any], given: Any) -> Any:
            run = Held(given, mirror.config, dict(parameters), dict(cells), replayed=[])
            with suppress(self.programs.WentBack):
                program.run(run)
            return run.backward.sum()

        found = self.jax.jit(self.jax.grad(loss))(mirror.parameters, mirror.cells, dict(given))
        return {path: np.asarray(gradient) for path, gradient in found.items()}


class _Differentiated(Mirror):
    """What a program means run by run, and its gradients as JAX has them."""

    def __init__(self, program: Program, session: Any, tally: Tally, meanings: Meanings) -> None:
        super().__init__(program, session, tally)
        self.meanings = meanings
        self.twin = routine(meanings.programs.generate(program.seed), meanings.meaning)
        zeros = {name: np.zeros(shape.dims()) for name, shape in program.shapes.items()}
        config = self.begun(zeros, looks=True).config
        meanings.look(self.twin, meanings.meaning.Run(zeros, config, {}, {}, {}, True))

    def goes_back(
        self, gradients: Mapping[str, Array], given: Mapping[str, Array], held: list[Array]
    ) -> bool:
        """Compare gradients with those of JAX; whether the loss has no kink where they differ."""
        theirs = self.meanings.gradients(self.twin, self, given)
        for path, wanted in theirs.items():
            found = gradients.get(path, np.zeros(wanted.shape))
            scale = 1 + float(np.abs(wanted).max(initial=0))
            off = ~np.isclose(found, wanted, CLOSE, CLOSE * scale)
            steep = AGREE * scale
            if any(
                is_kink(partial(self.loss, given, held, path, int(n)), steep)
                for n in np.flatnonzero(off)
            ):
                return False
            assert not off.any(), f"gradient of {path}: {found}\nin place of {wanted}"
            self.tally.gradients += wanted.size
        return True


def routine(program: Any, meaning: Any) -> Any:
    """A program with a loss: a tensor function gets a routine that goes back from it to its input and parameters."""
    if program.name == "step":
        return program
    row, inner = program.shapes["x"].output, program.meaning
    factor = pinned(f'"{INPUT}" 0.5', len(row))
    text = (
        f"cd step(x: f64, y: f64) {{\n  z = x *. ({factor})\n  loss = whole(z, y)\n"
        "  backprop(loss)\n  return loss\n}\n"
    )

    def stepped(frame: Any) -> None:
        run = frame.run
        given = {**run.inputs, "x": run.inputs["x"] * frame.parameter(INPUT, row)}
        inner(meaning.Frame(run, frame.owner.child(("shared", "whole"), "whole"), given))
        (run.backward,) = run.returned

    made = type(program)
    owner = meaning.Owner()
    return made(
        program.seed, program.text + text, "step", "f64", program.shapes, {}, stepped, owner
    )


def compare(seed: int, meanings: Meanings, tally: Tally) -> None:
    """Compare the gradients of one program, run after run."""
    program = routine(generate(seed), tensor_meaning)
    try:
        session = session_of(program, "numpy")
        mirror = _Differentiated(program, session, tally, meanings)
        rng = np.random.default_rng(seed)
        for _ in range(RUNS):
            given = {name: rng.normal(size=shape.dims()) for name, shape in program.shapes.items()}
            mirror.follow(given, as_tuple(session(**given)))
        tally.programs[program.name] += 1
    except AssertionError as error:
        tally.failures.append((seed, "jax", f"{program.text}\n{error}"))
    except Error as error:
        if error.code not in (
            *EXPECTED,
            "E0280",
        ):  # nothing that it is a gradient of feeds the loss
            tally.failures.append((seed, "refused", f"{program.text}\n{error}"))
        tally.refused += 1

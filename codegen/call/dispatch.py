"""Dispatch: from the arrays of a call to the plan of an earlier call with arrays like them.

In Python that takes two microseconds, most of them for looking at arrays and making arguments of them. A process that
makes many short calls therefore loads ``dispatch.c``, a small extension of Python that does the same in C. A thread
beside the calls compiles it, once for a machine and a version of Python and of NumPy, into the cache of compiled
programs. Where that cannot be, calls go on as before: decision 0092 has the reasons.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.target import DEVICES, check_target

if TYPE_CHECKING:
    from types import ModuleType

    from ilang.codegen.call.plan import CallPlan
    from ilang.codegen.call.specialization import Specialization
    from ilang.codegen.compile.toolchain import Recipe
    from ilang.codegen.device.device_plans import DevicePlans

LIKE = attrgetter("__class__", "shape", "dtype", "flags.num")
"""Properties that two arrays share if one plan serves both."""

MOST_PLANS = 256
"""Arrays that one component remembers; past it, it starts again."""

COUNTED = 16
"""Calls of a component after which it looks whether it can have a table."""

PAYS = 64
"""Looks in one process from which on the extension is worth loading: it then takes as long as it has saved."""


class CallPlans:
    """The plans of one component, by arrays. Safe to use from several threads.

    ``table`` answers calls in C, where it is there: on arrays, an output or None, and threads, it gives results, or
    None where it does not know such a call, or where that failed; the plan then tells how. ``devices`` has the plans
    of calls on devices, where there was one.
    """

    __slots__ = ("_calls", "_known", "devices", "table")

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], CallPlan] = {}
        self._calls = COUNTED
        self.table: Any = None
        self.devices: DevicePlans | None = None

    def __len__(self) -> int:
        return len(self._known)

    def of(self, arrays: Sequence[Any]) -> CallPlan | None:
        """The plan for arrays like these."""
        try:
            plan = self._known.get(tuple(map(LIKE, arrays)))
        except (AttributeError, TypeError):  # not all of them are arrays
            return None
        if plan is not None:
            self._calls -= 1
            if not self._calls:
                self._enter(plan, arrays)
        return plan

    def keep(self, arrays: Sequence[Any], plan: CallPlan) -> None:
        """Keep a plan for arrays like these: exactly NumPy's own class, and all as C reads them."""
        from numpy import ndarray

        if all(type(array) is ndarray for array in arrays):
            if MOST_PLANS <= len(self._known):
                self._known.clear()
                self.table = None
            self._known[tuple(map(LIKE, arrays))] = plan

    def on_devices(self) -> DevicePlans:
        """The plans of calls on devices."""
        if self.devices is None:
            from ilang.codegen.device.device_plans import DevicePlans

            self.devices = DevicePlans()
        return self.devices

    def _enter(self, plan: CallPlan, arrays: Sequence[Any]) -> None:
        """Let the table answer calls like this one; what it does not take is not offered again for a while."""
        if self.table is None:
            extension = _extension_that_pays()
            self.table = None if extension is None else extension.Table()
        is_taken = self.table is not None and plan.enter(self.table, arrays)
        self._calls = 1 if is_taken else COUNTED


class RunnableProgram:
    """A program that runs on arrays of NumPy or of a device, and the plans of its calls."""

    __slots__ = ("plans",)

    def __init__(self) -> None:
        self.plans = CallPlans()

    @abstractmethod
    def names_in_calls(self) -> list[str]:
        """The names by which a call may give arrays."""

    @abstractmethod
    def fitting(
        self, given: Sequence[Any], on_device: Collection[int] = ()
    ) -> tuple[Specialization, list[Any], tuple[int, ...]]:
        """The program for arrays, these checked, and its extents; arrays on a device are left as they lie."""

    def run(
        self, given: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any = None
    ) -> Any:
        """Run on arrays of NumPy or of a device, by the plan of an earlier call where there is one."""
        results = self.answer(given, out, threads, target, stream)
        return self.call(given, out, threads, target, stream) if results is None else results

    def answer(
        self, given: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any
    ) -> Any:
        """The results of a call like an earlier one; None for another one."""
        table = self.plans.table
        is_plain = target.__class__ is str and target == "c" and stream is None
        if table is not None and is_plain and threads.__class__ is int:
            results = table(given, out, threads)
            if results is not None:
                return results
        if self.plans.devices is not None:
            results = self.plans.devices.answer(given, out, threads, target, stream)
            if results is not None:
                return results
        plan = self.plans.of(given)
        return None if plan is None or not is_plain else plan.answer(given, out, threads)

    def call(
        self, given: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any
    ) -> Any:
        """Run on arrays, every argument looked at."""
        from ilang.codegen.call import arguments

        check_target(target)
        arguments.check_threads(threads)
        if stream is not None:
            from ilang.codegen.device.streams import stream_handle

            stream = stream_handle(stream, target)
        if target in DEVICES:
            from ilang.codegen.device.offload import device_of, separated

            device = device_of(target)
            separate, on_device = separated(self.names_in_calls(), given, device, stream)
            specialization, arrays, extents = self.fitting(separate, on_device)
            offloaded = specialization.on(device)
            if len(on_device) == len(given):
                offloaded.outs(out, extents, arrays)
                plans = self.plans.on_devices()
                plans.keep(given, out, target, offloaded, extents)
                results = plans.answer(given, out, threads, target, stream)
                if results is not None:
                    return results
            return offloaded.call(arrays, on_device, extents, out, stream)
        specialization, arrays, extents = self.fitting(given)
        if target == "numpy":
            return specialization.evaluate(arrays, extents, out)
        plan = specialization.plan(extents)
        plain = [arguments.contiguous(array) for array in arrays]
        self._remember(given, plain, plan)
        return plan.call(arrays, plain, out, threads)

    def _remember(self, given: Sequence[Any], plain: Sequence[Any], plan: CallPlan) -> None:
        """Keep the plan for arrays like these, if each was given as C reads it."""
        if all(a is b for a, b in zip(plain, given, strict=True)):
            self.plans.keep(given, plan)


_extension: ModuleType | None = None
_looks = 0


def _extension_that_pays() -> ModuleType | None:
    """The extension where it is loaded; else it is, once calls were many, if the cache has it or later will."""
    global _looks  # noqa: PLW0603 - a counter; nothing depends on its value but when to load
    _looks += 1
    if _looks == PAYS and not load():
        import threading

        threading.Thread(target=load, args=(True,), name="ilang-dispatch").start()
    return _extension


def load(compiled: bool = False) -> bool:
    """Load the extension from the cache, with ``compiled`` after compiling it there; whether it is there.

    Whatever is wrong with headers, the compiler or the cache is no error: Python does what the extension would.
    """
    global _extension  # noqa: PLW0603 - loaded once; results are the same without
    if _extension is None:
        from ilang.codegen.compile import cache

        try:
            text, recipe = _source()
            if compiled and cache.cache_folder() is not None:
                _extension = cache.library(text, recipe, _loaded)
            elif (entry := cache.entry_of(text, recipe)) is not None:
                _extension = _loaded(entry)
        except Exception:
            return False
    return _extension is not None


def _source() -> tuple[str, Recipe]:
    """The text of the extension, which names what it is compiled for, and how it is compiled.

    Raises:
        OSError: there are no headers of Python, or of NumPy, or this Python has no lock to guard a table.
    """
    from pathlib import Path

    import numpy as np

    from ilang.codegen.compile.compilers import C
    from ilang.codegen.compile.toolchain import STANDARD, Recipe

    flags = getattr(sys, "abiflags", "t")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}{flags}"
    headers = (
        Path(sys.base_prefix, "include", version, "Python.h"),
        Path(np.get_include(), "numpy", "ndarrayobject.h"),
    )
    if not all(header.exists() for header in headers):
        raise OSError("there are no headers")
    if sys.implementation.name != "cpython" or "t" in flags:
        raise OSError("this Python has no lock that would guard a table")
    text = Path(__file__).with_name("dispatch.c").read_text("ascii")
    folders = headers[0].parent, headers[1].parent.parent
    included = tuple(word for folder in folders for word in ("-isystem", str(folder)))
    recipe = Recipe(C, (*STANDARD, "-O2", *included), is_quiet=True)
    return f"/* {sys.version} {np.__version__} */\n{text}", recipe


def _loaded(path: str) -> ModuleType:
    """The extension at a path. Raises OSError: it cannot be loaded."""
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    loader = ExtensionFileLoader("dispatch", path)
    try:
        module = loader.create_module(ModuleSpec("dispatch", loader, origin=path))
        loader.exec_module(module)
    except ImportError as error:
        raise OSError(str(error)) from None
    return module

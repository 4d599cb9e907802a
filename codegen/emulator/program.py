"""Emulated programs: CUDA texts compiled for this process, and the device that they run on."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ilang.codegen.call.native import Native
from ilang.codegen.compile import cache
from ilang.codegen.device.device import Device, LibraryRuntime
from ilang.codegen.device.executable import DeviceSource, LibraryProgram
from ilang.codegen.emulator.recipes import heading, program_recipe
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.emulator.translate import translate
from ilang.codegen.targets import cuda


def load(text: str, name: str = "program.cu", *, checked: bool = False) -> Native:
    """A CUDA program, translated and compiled if the cache does not have it, and loaded.

    Args:
        text: the .cu file.
        name: of the file, for findings and messages.
        checked: look at every load and store.

    Raises:
        ToolError: E0901 to E0909 (the C++ compiler), E0920 (a construct that cannot be translated).
    """
    return _load(lambda: text, name, checked=checked)


def _load(text: Callable[[], str], name: str, source: str = "", *, checked: bool) -> Native:
    def translated() -> str:
        return heading() + translate(text(), name)

    recipe = program_recipe(emulator().content, checked)
    # PyTorch, for one, makes NVIDIA's runtime known to the whole process, whose functions have the emulator's names.
    return cache.library_of(source, translated, recipe, functools.partial(Native, alone=True))


@functools.lru_cache(maxsize=2)
def emulated(*, checked: bool = False) -> Device:
    """The emulated device; what is loaded by way of it is checked or not, and shares all memory.

    Raises:
        ToolError: E0901 to E0909 (no C++ compiler, or it fails).
    """

    def load_program(source: DeviceSource) -> LibraryProgram:
        text, name = (lambda: cuda.emit(source.program())), f"{source.name}.cu"
        native = _load(text, name, source.follows_from, checked=checked)
        return LibraryProgram(native, source.name)

    runtime = LibraryRuntime(functools.partial(_load, checked=checked))
    name, stop = "the emulated GPU", emulator().stop
    return Device(name, runtime, load_program, _findings_text, stop, is_host=True)


def _findings_text() -> str:
    return "".join(f"; {finding.says()}" for finding in emulator().take_findings()[:3])

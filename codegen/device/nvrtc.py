"""NVRTC as a command: kernels of CUDA to machine code, without nvcc, a C++ compiler, headers or a GPU.

    python -I nvrtc.py /.../libnvrtc.so.13 -arch=sm_90 program.cu -o program.so

The first line of the text is a comment that holds an object of JSON, whose ``kernels`` are what C++ calls them. The
file that is written has the machine code and, in a line of its own after it, that object, in which each kernel has the
name that the machine code has for it. Python runs this file alone, which so imports nothing of ours and starts in no
time.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

MARK = "// "
"""The sign before the object of JSON in a text."""


class Compilation:
    """One text in NVRTC."""

    def __init__(self, library: Path, text: str, name: str) -> None:
        """Load NVRTC, whose other library it looks for where the system does: it is loaded before, from beside it."""
        release = library.name.partition(".so")[2]
        for other in sorted(library.parent.glob(f"libnvrtc-builtins.so{release}*")):
            ctypes.CDLL(str(other), ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(library))
        self._program = ctypes.c_void_p()
        words = (text.encode(), name.encode(), 0, None, None)
        self._check(self._library.nvrtcCreateProgram(ctypes.byref(self._program), *words))

    def _check(self, status: int) -> None:
        if status:
            text = self._library.nvrtcGetErrorString
            text.restype = ctypes.c_char_p
            raise SystemExit(f"NVRTC: error: {text(status).decode()}")

    def compile(self, kernels: list[str], options: list[str]) -> bytes:
        """The machine code; what NVRTC says goes to standard error."""
        for kernel in kernels:
            self._check(self._library.nvrtcAddNameExpression(self._program, kernel.encode()))
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = self._library.nvrtcCompileProgram(self._program, len(options), words)
        sys.stderr.write(self._bytes("ProgramLog").rstrip(b"\0").decode("utf-8", "replace"))
        self._check(status)
        return self._bytes("CUBIN")

    def _bytes(self, kind: str) -> bytes:
        """Something that NVRTC has made, by its name in the functions for it."""
        size = ctypes.c_size_t()
        given = getattr(self._library, f"nvrtcGet{kind}Size")(self._program, ctypes.byref(size))
        self._check(given)
        room = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{kind}")(self._program, room))
        return room.raw

    def name(self, kernel: str) -> str:
        """The name that the machine code has for a kernel."""
        name = ctypes.c_char_p()
        words = (self._program, kernel.encode(), ctypes.byref(name))
        self._check(self._library.nvrtcGetLoweredName(*words))
        return (name.value or b"").decode()


def main(library: str, *words: str) -> None:
    """Compile: the options, the text, -o and where the machine code goes."""
    *options, source, _, target = words
    text = Path(source).read_text("utf-8")
    head = json.loads(text.partition("\n")[0].removeprefix(MARK))
    compilation = Compilation(Path(library), text, source)
    code = compilation.compile(head["kernels"], options)
    head["kernels"] = {kernel: compilation.name(kernel) for kernel in head["kernels"]}
    Path(target).write_bytes(code + b"\n" + json.dumps(head).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The README of a project in C."""

from __future__ import annotations

from collections.abc import Sequence


def readme(functions: Sequence[str], sessions: Sequence[str], stem: str) -> str:
    """The text: what there is, how it is compiled, how it is called; of the names of functions and sessions."""
    names = [*functions, *sessions]
    text = README + (OF_SESSIONS if sessions else "")
    return text.replace("STEM", stem).replace("FUNCTIONS", "\n".join(f"- `{n}`" for n in names))


README = """\
# STEM

A library of functions on arrays, written by `i build`.

FUNCTIONS

`STEM.h` says what each takes and gives, `STEM.c` what it computes and how; what that calls is in `STEM_support.h`.
It is C99, and needs no other library than C's:

```sh
make                  # libSTEM.a and libSTEM.so; each call takes the instructions that the processor has
make OPENMP=1         # the same, which uses several cores
make test             # compares every function with stored results
make example          # calls the first function
make install PREFIX=/usr/local
```

CMake has the same: `cmake -B build && cmake --build build`, with `-DOPENMP=ON`; `add_subdirectory` gives the target
`STEM`.
Once installed, `pkg-config --cflags --libs STEM` gives the flags.

Arrays are row-major and contiguous.
A function allocates nothing: its workspace is the caller's, and `NAME_work` says how many bytes.
A status of 0 is success; `NAME_status` says what others mean.
"""

OF_SESSIONS = """\

What lasts from run to run is in memory that the caller gives `NAME_init`, as much as `NAME_bytes` says.
`NAME_run` is one run; `NAME_save` and `NAME_load` write and read a file of safetensors.
"""

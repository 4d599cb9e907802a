"""Variants of functions: the same text compiled for newer processors, of which each call takes the newest that runs.

A Makefile compiles a file once more for each variant, with ``-DIL_VARIANT=v3``, and the file itself with
``-DIL_WITH_v3``. Where neither is defined, each function is the only one.

    int f(...)              calls f_v4 or f_v3, where that is there and this processor can run it
    int f_v4(...)           the same function in the file as it is compiled for AVX-512
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ilang.codegen.targets.cfamily import INDENT

V3 = ("avx2", "fma", "bmi", "bmi2")
VARIANTS = {"v4": (*V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"), "v3": V3}
"""The variants, the newest first, each with its instruction sets, as compilers call them."""


def header() -> str:
    """The text of a header: whether a processor can run a variant, and a call of the newest one that it can."""
    tests = (
        f"#ifdef IL_WITH_{variant}\n\n{_test(variant, sets)}\n\n#endif"
        for variant, sets in VARIANTS.items()
    )
    return "\n\n".join((*tests, "\n".join(_newest())))


def _newest() -> Iterator[str]:
    """A macro that returns what the newest variant does that this processor can run."""
    yield "/* return what the newest variant of a function does, where this processor can run one */"
    for variant in VARIANTS:
        yield f"#ifdef IL_WITH_{variant}"
        yield f"#define RETURN_{variant}(name, given) if (has_{variant}()) return name##_{variant} given"
        yield "#else"
        yield f"#define RETURN_{variant}(name, given)"
        yield "#endif"
    calls = "; ".join(f"RETURN_{variant}(name, given)" for variant in VARIANTS)
    yield f"#define RETURN_NEWEST(name, given) {calls}"


def _test(variant: str, sets: Sequence[str]) -> str:
    tests = f"\n{INDENT}{INDENT}&& ".join(f'__builtin_cpu_supports("{each}")' for each in sets)
    return (
        f"/* whether this processor, and its system, can run the variant {variant} of a function */\n"
        f"static inline int has_{variant}(void)\n{{\n{INDENT}return {tests};\n}}"
    )


NAMES = (
    "#ifdef IL_VARIANT",
    "/* this file once more, for newer processors: functions that those of the file itself call */",
    "#pragma GCC visibility push(hidden)",
    "#define IL_JOINED(name, variant) name##_##variant",
    "#define IL_OF_VARIANT(name, variant) IL_JOINED(name, variant)",
    "#define IL_NAMED(name) IL_OF_VARIANT(name, IL_VARIANT)",
    "#else",
    "#define IL_NAMED(name) name",
    "#endif",
    "",
)
"""The macro that puts the name of a variant after that of a function."""


def once(lines: Iterable[str]) -> Iterator[str]:
    """Lines that the file itself has, and no variant."""
    yield "#ifndef IL_VARIANT"
    yield from lines
    yield "#endif"
    yield ""


def declared(name: str) -> Iterator[str]:
    """The declarations of the variants of a function."""
    for variant in VARIANTS:
        yield f"#ifdef IL_WITH_{variant}"
        yield f"extern __typeof__({name}) {name}_{variant};"
        yield "#endif"
    yield ""

"""The header of C programs: what their functions are called, take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.codegen.targets.c_entry import status_declarations, statuses, wrapped
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, comment
from ilang.codegen.targets.identifiers import function_identifier, identifier, member_identifier
from ilang.core.calculus.extent import PLAIN, Extent, size
from ilang.core.ir.kernel import Program


def beginning_of(programs: Sequence[Program]) -> str:
    """The beginning of what only the files of some programs have: no other library has their first function.

    The name of the file is no such name: two folders may have a file of one name.
    """
    return function_identifier(programs[0].name)


def guard_of(programs: Sequence[Program]) -> str:
    """The macro of a header."""
    name = beginning_of(programs)
    return f"{name.upper() if name.islower() else name}_H"


def _with_statuses(program: Program) -> Iterator[str]:
    """The declarations of a program, and of what says the meaning of its statuses."""
    yield from declarations(program)
    yield ""
    yield from status_declarations(function_identifier(program.name), statuses(program))


def emit_header(
    programs: Sequence[Program],
    more: Sequence[str] = (),
    declared: Callable[[Program], Iterator[str]] = _with_statuses,
    first: Sequence[str] = (),
) -> str:
    """The header of a file of programs, each ``declared``, and of what ``more`` declares, usable from C and C++.

    Lines that stand ``first`` come after the includes.
    """
    guard = guard_of(programs)
    lines = [f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>"]
    lines += ["#include <stdint.h>", "", *first]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for program in programs:
        lines += [*declared(program), ""]
    lines += more
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join(lines) + "\n"


def declarations(program: Program) -> Iterator[str]:
    """The extents of a program and the declarations of its functions, with comments."""
    yield from sizes_lines(program)
    yield from work_lines(program)
    yield "/*"
    yield from argument_lines(program)
    yield from (f" * returns {code}: {text}" for code, text in statuses(program).items())
    yield " */"
    yield f"{signature(program)};"


def sizes_lines(program: Program) -> Iterator[str]:
    """The struct of the extents of a program."""
    name = function_identifier(program.name)
    sizes = [size for size in program.sizes if size.is_argument()]
    if sizes:
        yield f"/* {name}: its extents, in elements */"
    else:
        yield f"/* {name}: every extent is fixed, and `sizes` may be NULL */"
    yield "typedef struct {"
    yield from (f"{INDENT}int64_t {member_identifier(size.name)};" for size in sizes)
    yield from () if sizes else (f"{INDENT}char none;",)
    yield f"}} {name}_sizes;"
    yield ""


def work_lines(program: Program) -> Iterator[str]:
    """The declaration of the function that measures the workspace."""
    name = function_identifier(program.name)
    misfit = "; SIZE_MAX if the extents do not fit" if 3 in statuses(program) else ""
    yield f"/* Bytes of workspace a call needs{misfit}. */"
    yield f"size_t {name}_work(const {name}_sizes *sizes);"
    yield ""


def argument_lines(program: Program) -> Iterator[str]:
    """The arrays of a program, as lines of a comment."""
    for number in program.arguments():
        buffer = program.buffers[number]
        extents = ", ".join(_extent(program, each) for each in buffer.dims)
        yield comment(f" * {buffer.role:6}  {identifier(buffer.name)}: {buffer.dtype}[{extents}]")


def _extent(program: Program, number: int) -> str:
    """An extent as text: a number, the name of an argument, or what follows from those, as ``h-p+1``."""

    def followed(number: int) -> Extent:
        known = program.sizes[number]
        rule = next((rule for rule in program.derived if rule.size == number), None)
        if rule is None or known.fixed is not None or known.is_argument():
            return size(number)
        whole = rule.value()
        return whole.substituted({each: followed(each) for each in whole.sizes()})

    def spelled(number: int) -> str:
        fixed = program.sizes[number].fixed
        return program.sizes[number].name if fixed is None else str(fixed)

    return followed(number).text(spelled, PLAIN)


def signature(program: Program) -> str:
    """The declaration of the program's function, without the semicolon."""
    name = function_identifier(program.name)
    return wrapped(f"int {name}(", [*parameters(program), "void *work"], ")")


def parameters(program: Program) -> list[str]:
    """The sizes and the arrays that the function of a program takes."""
    words = [f"const {function_identifier(program.name)}_sizes *sizes"]
    for number in program.arguments():
        buffer = program.buffers[number]
        const = "const " if buffer.role == "input" else ""
        words.append(f"{const}{C_TYPES[buffer.dtype]} *{identifier(buffer.name)}")
    return words

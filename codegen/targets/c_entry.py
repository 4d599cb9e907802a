"""The host program in C: workspace layout, argument checks, and the calls of its kernels in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from ilang.codegen.targets import c_variants
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, WIDTH, Spelling, product
from ilang.codegen.targets.identifiers import function_identifier, identifier, member_identifier
from ilang.codegen.targets.workspace import Workspace, constant_workspace
from ilang.core.calculus.extent import ATOM, CHOICE, PRODUCT, QUOTIENT, SUM, Operator, joined
from ilang.core.ir.host import Condition, Host, Launch, Look, Step
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Derivation, Reach
from ilang.core.pipeline import host_of

STATUS = {
    0: "done",
    1: "a pointer is NULL",
    2: "an output overlaps another array or the workspace",
    3: "an extent is negative, or an array would be larger than memory can be",
    4: "an index read from an array is out of range",
}
"""The statuses that generated functions return."""
MISFIT = "an extent is negative or too small, or an array is too large for memory"
"""The meaning of 3 where extents follow from others."""
TOO_LARGE = "an array would be larger than memory can be"
"""The meaning of 3 where every extent is fixed."""
STATUS_WORDS = {
    0: "ok",
    1: "null_pointer",
    2: "overlap",
    3: "too_large",
    4: "bad_index",
    5: "no_file",
    6: "bad_file",
    7: "other_arrays",
    8: "failed_rank",
    9: "failed_nccl",
}
"""The names of statuses, after that of the function; those of sessions are among them."""
NO_STATUS = '"no such status"'
"""The meaning of any other number, in C."""


def statuses(program: Program) -> dict[int, str]:
    """The statuses that the function of a program may return, and what each means there."""
    host = host_of(program)
    never = set() if host.outside() is not None else {4}
    meanings = dict(STATUS)
    if constant_workspace(host) is not None:
        never.add(3)
    elif not any(size.is_argument() for size in program.sizes):
        meanings[3] = TOO_LARGE
    elif any(isinstance(step, (Derivation, Reach)) for step in host.checks):
        meanings[3] = MISFIT
    return {code: text for code, text in meanings.items() if code not in never}


def status_declarations(name: str, meanings: Mapping[int, str]) -> Iterator[str]:
    """The names of statuses, and the declaration of the function that says what one means."""
    yield f"/* What {name} returns, and the same in words. */"
    yield "enum {"
    for code in meanings:
        comma = "" if code == max(meanings) else ","
        yield f"{INDENT}{name}_{STATUS_WORDS[code]} = {code}{comma}"
    yield "};"
    yield f"const char *{name}_status(int status);"


def status_lines(
    name: str, meanings: Mapping[int, str], otherwise: str = NO_STATUS
) -> Iterator[str]:
    """The function that says what a status means; ``otherwise`` is what any other one means."""
    yield f"const char *{name}_status(int status)"
    yield "{"
    yield f"{INDENT}switch (status) {{"
    yield from (f'{INDENT}case {code}: return "{text}";' for code, text in meanings.items())
    yield f"{INDENT}default: return {otherwise};"
    yield f"{INDENT}}}"
    yield "}"
    yield ""


def _scaled(factor: str, extent: str) -> str:
    """A coefficient times a word, which it leaves out where it is 1."""
    return {"1": extent, "-1": f"-{extent}"}.get(factor, f"{factor} * {extent}")


def _chunks(terms: str, elements: str, *_: str) -> str:
    """The number of chunks; the limits stand in ``machine.h``."""
    return f"blocks({terms})" if elements == "0" else f"blocks_of({terms}, {elements})"


FORMULAS: dict[str, Operator] = {
    "+": Operator(joined, SUM, (SUM,)),
    "*": Operator(lambda *words: product(words), PRODUCT, (PRODUCT,)),
    "scaled": Operator(_scaled, PRODUCT, (PRODUCT,)),
    "terms": Operator(
        lambda *words: " * ".join(f"(double){word}" for word in words), PRODUCT, (ATOM,)
    ),
    "//": Operator(lambda whole, divisor: f"{whole} / {divisor}", QUOTIENT, (QUOTIENT, ATOM)),
    "ceil": Operator(
        lambda whole, step: f"{whole} / {step} + ({whole} % {step} != 0)", SUM, (QUOTIENT, ATOM)
    ),
    "when": Operator(
        lambda then, *counts: f"{' || '.join(f'{n} < 1' for n in counts)} ? 0 : {then}",
        CHOICE,
        (CHOICE, SUM),
    ),
    "chunks": Operator(_chunks),
}


def wrapped(head: str, words: Sequence[str], tail: str) -> str:
    """A list in parentheses on one line where it fits, else one word a line."""
    one = head + (", ".join(words) or ("void" if head.startswith("static") else "")) + tail
    if len(one) <= WIDTH:
        return one
    indent = " " * (len(head) - len(head.lstrip())) + INDENT
    return head + "\n" + ",\n".join(indent + word for word in words) + tail


def several_a_line(head: str, words: Sequence[str], tail: str) -> str:
    """A list in parentheses, as many words a line as fit."""
    indent = " " * (len(head) - len(head.lstrip())) + INDENT
    lines = [head if words else head + tail]
    for n, word in enumerate(words):
        text = word + ("," if n < len(words) - 1 else tail)
        if len(lines[-1]) + 1 + len(text) <= WIDTH:
            lines[-1] += (" " if n and len(lines[-1]) > len(indent) else "") + text
        else:
            lines.append(indent + text)
    return "\n".join(lines)


class Entry:
    """Text of ``NAME_plan``, ``NAME_work`` and ``NAME``: a host program in C."""

    formulas: Mapping[str, Operator] = FORMULAS
    """The spellings of the operations that sizes follow from."""
    added = "add({}, {})"
    """A C call that adds to a number of bytes, false if they do not fit."""
    zeros = "{0}"
    """The initializer of a struct whose members are all 0."""

    def __init__(self, host: Host, signature: str, has_variants: bool = False) -> None:
        """For a host program, and the declaration of the program's function, which may have variants."""
        self.host = host
        self.program = host.program
        self.signature = signature
        self.has_variants = has_variants
        self.name = function_identifier(host.program.name)
        self.spelling = Spelling(host.program, None)
        self.constant = constant_workspace(host)
        """The layout, where it is known: then its numbers stand in the text."""
        self.total = "plan.total" if self.constant is None else total_of(host, self.constant)
        """The bytes of the workspace."""
        self.is_open = any(size.is_argument() for size in host.program.sizes)
        """Whether a caller gives extents: else what points to them may be NULL."""
        self.manner = "STRAIGHT " if host.is_long() else ""
        """The specifiers of the functions that are as long as the program."""
        self.fields = ["size_t scratch, scratch_bytes, total;"]
        """The last fields of a layout."""
        self.marks_bytes = product((str(host.marks), "sizeof(int)"))

    def lines(self) -> Iterator[str]:
        """All three functions."""
        yield from self.layout()
        yield from self.function()

    def layout(self) -> Iterator[str]:
        """The layout of the workspace, and the declarations of the variants of the function."""
        work = [f"size_t {self.name}_work(const {self.name}_sizes *sizes)", "{"]
        if self.constant is None:
            yield from self._plan()
            work += [
                f"{INDENT}{self.name}_layout plan = {self.zeros};",
                *([f"{INDENT}if (sizes == NULL) return SIZE_MAX;"] if self.is_open else ()),
                f"{INDENT}return {self.name}_plan(sizes, &plan) ? plan.total : SIZE_MAX;",
            ]
        else:
            work += [f"{INDENT}(void)sizes;", f"{INDENT}return {self.total};"]
        work.append("}")
        if self.has_variants:
            more = status_lines(self.name, statuses(self.program))
            yield from c_variants.once((*work, "", *more))
            yield from c_variants.declared(self.name)
        else:
            yield from (*work, "")

    def _plan(self) -> Iterator[str]:
        table, host = self.host.in_table(), self.host
        yield "/* bytes of each argument, then where temporaries and scratch stand in the workspace */"
        yield "typedef struct {"
        if table:
            yield f"{INDENT}size_t bytes[{len(table)}];"
        yield from (f"{INDENT}size_t at_{self._array(n)};" for n in host.temporaries)
        yield from (f"{INDENT}{each}" for each in self.fields)
        yield f"}} {self.name}_layout;"
        yield ""
        yield "/* fill in the layout; 0 if an extent does not fit */"
        head = (
            f"static int {self.name}_plan(const {self.name}_sizes *sizes, {self.name}_layout *plan)"
        )
        yield self.manner + head
        yield "{"
        yield from self._checks()
        for position, number in enumerate(table):
            yield f"{INDENT}if (!{self._measure(number, f'&plan->bytes[{position}]')}) return 0;"
        if host.temporaries or host.scratch:
            yield f"{INDENT}size_t bytes = 0;"
        for number in host.temporaries:
            yield f"{INDENT}plan->at_{self._array(number)} = plan->total;"
            added = self.added.format("&plan->total", "bytes")
            yield f"{INDENT}if (!{self._measure(number, '&bytes')} || !{added}) return 0;"
        if host.marks:
            yield f"{INDENT}plan->marks = plan->total;"
            yield f"{INDENT}if (!{self.added.format('&plan->total', self.marks_bytes)}) return 0;"
        if host.scratch:
            alone = len(host.scratch) == 1
            target = "plan->scratch_bytes" if alone else "scratch"
            yield f"{INDENT}plan->scratch = plan->total;"
            yield from () if alone else [f"{INDENT}size_t scratch;"]
            for private in host.scratch:
                yield from () if alone else [f"{INDENT}scratch = 0;"]
                for number in private:
                    added = self.added.format(f"&{target}", "bytes")
                    yield f"{INDENT}if (!{self._measure(number, '&bytes')} || !{added}) return 0;"
                if not alone:
                    yield f"{INDENT}if (scratch > plan->scratch_bytes) plan->scratch_bytes = scratch;"
            yield from self._copies_of_scratch()
        if not host.has_workspace():
            yield f"{INDENT}return 1;"
        else:
            line = self.added.format("&plan->total", "1")
            yield f"{INDENT}return {line}; /* one line more, to align the first */"
        yield "}"
        yield ""

    def _copies_of_scratch(self) -> Iterator[str]:
        """Room for as many threads as there are, where they have parts of their own."""
        if not any(launch.divided for launch in self.host.launches()):
            yield f"{INDENT}if (!add(&plan->total, plan->scratch_bytes)) return 0;"
            return
        yield f"{INDENT}for (int t = 0; t < scratches(plan->scratch_bytes); ++t) {{"
        yield f"{INDENT}{INDENT}if (!add(&plan->total, plan->scratch_bytes)) return 0;"
        yield f"{INDENT}}}"

    def _array(self, number: BufferId) -> str:
        return identifier(self.program.memory(number).name)

    def _measure(self, number: int, target: str) -> str:
        """A C call that computes the bytes of a buffer, false if they do not fit."""
        buffer = self.program.buffers[number]
        extents = ", ".join(self.spelling.size(size) for size in buffer.dims)
        listed = f"(const int64_t[]){{{extents}}}" if extents else "NULL"
        return f"measure({target}, sizeof({C_TYPES[buffer.dtype]}), {len(buffer.dims)}, {listed})"

    def _checks(self) -> Iterator[str]:
        """Every extent, and what must hold of them."""
        checks = self.host.checks
        if not any(isinstance(step, int) for step in checks):
            yield f"{INDENT}(void)sizes;"
        limited = any(isinstance(step, Derivation) for step in checks)
        declared = False
        for step in checks:
            if isinstance(step, Derivation) and not declared:
                declared = True
                if any(isinstance(each, Derivation) and each.known for each in checks):
                    yield f"{INDENT}int64_t derived;"
            yield from self._step(step, limited)

    def _step(self, step: Step, limited: bool = False) -> Iterator[str]:
        """A step as C; ``limited`` where a size of the caller is so small that what follows cannot overflow."""
        size = self.spelling.size
        match step:
            case int():
                name = size(step)
                field = member_identifier(self.program.sizes[step].name)
                yield f"{INDENT}const int64_t {name} = sizes->{field};"
                if limited:
                    yield f"{INDENT}if ({name} < 0 || {name} > INT64_MAX / 8) return 0;"
            case Derivation() if step.known:
                derived = self._derive(step, "derived")
                yield f"{INDENT}if (!{derived} || derived != {size(step.size)}) return 0;"
            case Derivation():
                name = size(step.size)
                yield f"{INDENT}int64_t {name};"
                yield f"{INDENT}if (!{self._derive(step, name)}) return 0;"
            case Reach() if step.size is not None:
                yield f"{INDENT}if ({size(step.size)} <= {step.index.offset}) return 0;"
            case Reach():
                yield from _hold(step, size)
            case (number, value):
                yield f"{INDENT}const int64_t {size(number)} = {value.text(size, self.formulas)};"
            case _:
                assert_never(step)

    def _derive(self, rule: Derivation, name: str) -> str:
        """A C call that computes a derived extent, false if there is none."""
        if rule.is_composed():
            sides = [list(map(self.spelling.size, e.sizes())) for e in (rule.whole, rule.divisor)]
            return f"compose(&{name}, {', '.join(map(self._terms, sides))})"
        words = [f"{c}, {self.spelling.size(size)}" for c, size in rule.whole.steps()]
        least = " || ".join(f"1 < {self.spelling.size(size)}" for size in rule.spread)
        limits = f"{rule.divisor.number}, {int(rule.exact)}, {least or rule.least}"
        return f"derive(&{name}, {self._terms(words)}, {rule.whole.offset()}, {limits})"

    def _terms(self, words: Sequence[str]) -> str:
        listed = f"(const int64_t[]){{{', '.join(words)}}}" if words else "NULL"
        return f"{len(words)}, {listed}"

    def function(self) -> Iterator[str]:
        """The function itself."""
        one_line = " ".join(self.signature.split()).replace("( ", "(")
        start, _, words = one_line.removesuffix(")").partition("(")
        signature = several_a_line(f"{start}(", words.split(", "), ")")
        if not self.has_variants:
            yield from self._running(signature)
            return
        head, named = f"int {self.name}(", f"int IL_NAMED({self.name})("
        yield from self._running(signature.replace(head, named, 1))

    def _running(self, signature: str) -> Iterator[str]:
        """A function that checks its arguments and runs the kernels."""
        host, table = self.host, self.host.in_table()
        yield self.manner + signature
        yield "{"
        if self.has_variants:  # the newest one that this processor can run does the work
            arrays = [self._array(n) for n in self.program.arguments()]
            call = f"{INDENT}RETURN_NEWEST({self.name}, ("
            yield several_a_line(call, ["sizes", *arrays, "work"], "));")
        yield from planned(self)
        if table:
            yield from self._checked_arrays(f"work, {self.total}")
        for step in host.sizes:
            yield from self._step(step)
        if host.has_workspace():
            yield f"{INDENT}char *const base = start_in(work);"
        for temporary in host.temporaries:
            c_type, name = self.spelling.element_kind(temporary), self._array(temporary)
            start = f"plan.at_{name}" if self.constant is None else str(self.constant.at[temporary])
            place = f"({c_type} *)(void *)({at(start)})"
            yield f"{INDENT}{c_type} *{name} = {self._placed(temporary, place)};"
        yield from self._begun()
        for each in host.operations:
            yield from self._look(each) if isinstance(each, Look) else self._launch(each)
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""

    def _placed(self, number: int, place: str) -> str:
        """The address of a temporary, which has this place in the workspace."""
        return place

    def _begun(self) -> Iterator[str]:
        """The statements before all kernels."""
        yield from ()

    def _checked_arrays(self, work: str) -> Iterator[str]:
        """The test that arrays are there and do not overlap, nor with a workspace."""
        table = self.host.in_table()
        pointers = ", ".join(self._array(n) for n in table)
        yield f"{INDENT}const void *arrays[{len(table)}] = {{{pointers}}};"
        read = sum(self.program.buffers[n].role == "input" for n in table)
        if self.constant is not None:
            counts = ", ".join(map(str, self.constant.counts))
            yield f"{INDENT}const size_t bytes[{len(table)}] = {{{counts}}};"
        bytes_of = "plan.bytes" if self.constant is None else "bytes"
        call = f"check(arrays, {bytes_of}, {len(table)}, {read}, {work})"
        yield f"{INDENT}const int status = {call};"
        yield f"{INDENT}if (status != 0) return status;"

    def _look(self, look: Look) -> Iterator[str]:
        """The statements that refuse arrays of indices of which one is out of range."""
        for number, size in look.arrays:
            assert size is not None  # no kernel of a CPU is told whether floats are finite
            dtype = self.program.buffers[number].dtype
            words = f"{self._elements(number)}, {self.spelling.size(size)}"
            yield f"{INDENT}if (!are_below_{dtype}({words})) return 4;"

    def _elements(self, number: BufferId) -> str:
        """An array in C, and how many elements it has."""
        dims = self.program.buffers[number].dims
        count = " * ".join(map(self.spelling.size, dims)) or "1"
        return f"{self._array(number)}, {count}"

    def _condition(self, condition: Condition) -> str:
        """The test that a launch waits for."""
        extent, few, many = condition
        count = extent.text(self.spelling.size, self.formulas)
        return f"{count} > {few}" + ("" if many is None else f" && {count} <= {many}")

    def _launch(self, launch: Launch) -> Iterator[str]:
        words = [self.spelling.size(n) for n in launch.sizes]
        words += [self._array(n) for n in launch.buffers]
        words += [at(field(self, "scratch"))] if launch.scratch else []
        words += [field(self, "scratch_bytes")] if launch.divided else []
        kernel = f"{self.name}_{self.program.kernels[launch.kernel].name}"
        tests = " && ".join(map(self._condition, launch.every_condition()))
        yield several_a_line(f"{INDENT}{f'if ({tests}) ' if tests else ''}{kernel}(", words, ");")


def field(entry: Entry, name: str) -> str:
    """A number of the layout."""
    return f"plan.{name}" if entry.constant is None else str(getattr(entry.constant, name))


def at(place: str, base: str = "base") -> str:
    """An address in the workspace."""
    return base if place == "0" else f"{base} + {place}"


def total_of(host: Host, layout: Workspace) -> str:
    """The bytes of a workspace whose layout is known: with scratch storage for as many threads as there are."""
    if not any(launch.divided for launch in host.launches()):
        return str(layout.total - max(0, layout.workers - 1) * layout.scratch_bytes)
    each, others = layout.scratch_bytes, layout.total - layout.workers * layout.scratch_bytes
    return f"{others} + (size_t)scratches({each}) * {each}"


def planned(entry: Entry) -> Iterator[str]:
    """The layout for the sizes that a function is called with."""
    if entry.constant is None:
        yield f"{INDENT}{entry.name}_layout plan = {entry.zeros};"
    if entry.is_open:
        yield f"{INDENT}if (sizes == NULL) return 1;"
    elif entry.constant is not None:
        yield f"{INDENT}(void)sizes;"
    if entry.constant is None:
        yield f"{INDENT}if (!{entry.name}_plan(sizes, &plan)) return 3;"


def _hold(reach: Reach, size: Callable[[int], str]) -> Iterator[str]:
    """The test that positions are what their type holds, on both sides of 0."""
    for sign, relation in ((1, ">"), (-1, "<")):
        words = [
            f"{c} * ((double){size(number)} - 1)"
            for c, number in reach.index.steps()
            if 0 < c * sign
        ]
        if words or reach.limit < sign * reach.index.offset:
            total = " + ".join([*words, str(reach.index.offset)])
            yield f"{INDENT}if ({total} {relation} {sign * reach.limit}.0) return 0;"

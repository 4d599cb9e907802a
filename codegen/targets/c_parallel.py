"""Parallel loops in C: each is a function of a range of its iterations, which one thread calls or several.

    static void f_k0_out_i(int64_t first, int64_t last, ...);     out: iterations first to last - 1 of loop i

``core/passes/cpu/outlined.py`` says which there are, and what each takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ilang.codegen.targets.braces import braced, filled
from ilang.codegen.targets.c_entry import several_a_line
from ilang.codegen.targets.cfamily import Spelling, deferred_name, end_of
from ilang.codegen.targets.identifiers import identifier
from ilang.codegen.targets.marked_lines import Marker
from ilang.core.ir.cpu import Outline, ThreadEstimate
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import For, Kernel, Program, Statement, blocks_of

Parameter = tuple[str, str]
"""A declaration, and the argument."""
NOINLINE = "__attribute__((noinline)) "


def outlined(body: Sequence[Statement]) -> Iterator[tuple[For, Outline]]:
    """The loops that are functions, those inside others first."""
    for s in body:
        for block in blocks_of(s):
            yield from outlined(block)
        if isinstance(s, For) and s.outline is not None:
            yield s, s.outline


class KernelFunctions:
    """The functions of one kernel: the text of their parameters and calls."""

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        name: str,
        stoppable: bool = False,
        marking: bool = False,
    ) -> None:
        """For a kernel whose function is called ``name``.

        ``stoppable`` says that its threads are to be, ``marking`` that lines say what they are of.
        """
        self.program = program
        self.kernel = kernel
        self.spelling = Spelling(program, kernel)
        self.name = name
        self.stoppable = stoppable
        self.marked = Marker(program, kernel, marking).marked

    def name_of(self, outline: Outline) -> str:
        """The name of a function."""
        return f"{self.name}_{outline.name}" if outline.loops else self.name

    # -- parameters ----------------------------------------------------------------------------------------------------

    def parameters(self, outline: Outline) -> list[Parameter]:
        """The parameters of a function, but for the range of its loop and the scratch storage."""
        spelling, captured = self.spelling, outline.captured
        names = [spelling.size(n) for n in captured.sizes]
        names += [spelling.variable(n) for n in captured.variables]
        words = [(f"int64_t {name}", name) for name in names]
        for local in captured.locals:
            kind, name = spelling.kind(local.variable, local.dtype), spelling.name(local.variable)
            lanes = spelling.scalar(local.variable).lanes
            kind = f"const {kind} *" if lanes > 1 else f"{kind} "
            words.append((f"{kind}{name}", name))
        for copy in outline.fills:
            name = deferred_name(self.program, copy)
            words.append((f"int {name}", name))
        for number in captured.buffers:
            buffer = self.program.buffers[number]
            const, name = "" if number in outline.written else "const ", identifier(buffer.name)
            words.append((f"{const}{spelling.element_kind(number)} *restrict {name}", name))
        return words

    def extra(self, outline: Outline) -> list[Parameter]:
        """The scratch storage of a function, and what it needs to give work to threads."""
        words = [("char *scratch", "scratch")] if outline.scratch else []
        words += [("size_t scratch_bytes", "scratch_bytes")] if outline.divided else []
        words += [("int team", "team")] if outline.calls and outline.loops else []
        return words

    # -- text ----------------------------------------------------------------------------------------------------------

    def function(
        self, outline: Outline, loops: Sequence[For], body: Iterable[str]
    ) -> Iterator[str]:
        """A function that does what the lines of its body do, to its private buffers among others.

        The buffers are parameters of a second function: compilers take the word ``restrict`` from parameters alone.
        """
        parameters = self.parameters(outline)
        if loops:
            names = [self.spelling.variable(loop.variable) for loop in loops]
            names_text = (
                f"loop {names[0]}" if len(names) == 1 else f"the loops {', '.join(names)} together"
            )
            results = f"{', '.join(outline.results)}: " if outline.results else ""
            yield f"/* {results}iterations first to last - 1 of {names_text} */"
            parameters = [("int64_t first", "first"), ("int64_t last", "last"), *parameters]
        if outline.calls and not loops:
            given = "threads_with_scratch(scratch_bytes)" if outline.divided else "THREADS"
            body = (f"const int team = {given};", *body)
        extra = self.extra(outline)
        # GCC 12 miscompiles short loops of several kernels that it inlines into one function.
        apart = "" if loops or len(self.program.kernels) == 1 else NOINLINE
        name = self.name_of(outline)
        if outline.private:
            left = [each for each in extra if each[1] != "scratch" or outline.divided]
            inner = [*parameters, *left, *map(self._private, outline.private)]
            yield from self._defined(outline, f"{name}_in_scratch", NOINLINE, inner, body)
            arguments = [argument for _, argument in inner]
            body = (*self._placed(outline), filled(f"{name}_in_scratch(", arguments, ");"))
        yield from self._defined(outline, name, apart, [*parameters, *extra], body)

    def _private(self, number: BufferId) -> Parameter:
        """A private buffer as a parameter."""
        name = identifier(self.program.buffers[number].name)
        return f"{self.spelling.element_kind(number)} *restrict {name}", name

    def _placed(self, outline: Outline) -> Iterator[str]:
        """The places of private buffers in scratch storage."""
        for number in outline.private:
            buffer = self.program.buffers[number]
            kind, name = self.spelling.element_kind(number), identifier(buffer.name)
            yield f"{kind} *const {name} = ({kind} *)(void *)scratch;"
            if outline.divided or number != outline.private[-1]:
                count = " * ".join(f"(size_t){self.spelling.size(size)}" for size in buffer.dims)
                yield f"scratch += padded({count} * sizeof({kind}));"

    def _defined(
        self,
        outline: Outline,
        name: str,
        apart: str,
        parameters: Sequence[Parameter],
        body: Iterable[str],
    ) -> Iterator[str]:
        """The definition of a function."""
        halves = "HALF_VECTORS " if outline.half_vectors else ""
        words = [declared for declared, _ in parameters] or ["void"]
        yield several_a_line(f"static {halves}{apart}void {name}(", words, ")")
        yield "{"
        yield from body
        yield "}"
        yield ""

    def call(self, outline: Outline, estimate: ThreadEstimate) -> str:
        """Parallel loops where they stand: by one thread, or by several, unless loops inside are better to share."""
        parameters = (*self.parameters(outline), *self.extra(outline))
        of_thread = {"scratch": "scratch + worker * scratch_bytes", "team": "inside"}
        arguments = [of_thread.get(argument, argument) for _, argument in parameters]
        count, work = self._iterations(estimate), self._time(estimate)
        better = self._inside_is_better(estimate)
        if estimate.uneven and better != "0":
            work, better = f"{better} ? 0 : {work}", "0"
        macro = "SHARE_STOPPABLE" if self.stoppable else "SHARE_LOOP"
        words = [count, work, better, self.name_of(outline), "from", "until", *arguments]
        return filled(f"{macro}(", words, ");")

    def together(self, loops: Sequence[For], lines: Iterable[str]) -> Iterator[str]:
        """Several loops as one, whose iterations do what some lines do."""
        names = [self.spelling.variable(loop.variable) for loop in loops]
        yield "if (last <= first) return;"
        sizes = [self.spelling.size(loop.size) for loop in loops]
        for n, name in enumerate(names):
            inner = " * ".join(sizes[n + 1 :])
            value = "first" + (
                f" / ({inner})" if len(sizes[n + 1 :]) > 1 else f" / {inner}" if inner else ""
            )
            yield f"int64_t {name} = {value}{f' % {sizes[n]}' if n else ''};"
        following = f"++{names[0]};"
        for name, size in zip(names[1:], sizes[1:], strict=True):
            following = f"if (++{name} == {size}) {{ {name} = 0; {following} }}"
        yield from braced("for (int64_t at = first; at < last; ++at)", (*lines, following))

    def _iterations(self, estimate: ThreadEstimate) -> str:
        return " * ".join(end_of(self.spelling, loop) for loop in estimate.loops)

    def _inside_is_better(self, estimate: ThreadEstimate) -> str:
        """Whether the largest loop inside is to be shared: a test of its work, and of the loops inside of that."""
        inside = estimate.inside
        if inside is None:
            return "0"
        given = f"{self._iterations(inside)}, {self._time(inside)}"
        better = self._inside_is_better(inside)
        if inside.uneven:
            return f"!({better}) && 1 < shares(team, {given}, 0)"
        return f"1 < shares(team, {given}, {better})"

    def _time(self, estimate: ThreadEstimate) -> str:
        """The time of all iterations, as a product of doubles."""
        words = [f"(double){self.spelling.size(n)}" for n in estimate.times]
        words += [f"{estimate.time:.15g}"] if estimate.time != 1 or not words else []
        return " * ".join(words)

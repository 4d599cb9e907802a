"""Descriptions of a program that do not run it: loops, source, explanations, a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.target import check_target, source_of
from ilang.codegen.call.tracebacks import ends_at_caller
from ilang.core import pipeline

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from ilang.codegen.components.notebook_pages import ComponentExplanation
    from ilang.codegen.components.program import ComponentProgram
    from ilang.codegen.components.routine import TensorProgram
    from ilang.codegen.project.checking import Check
    from ilang.core.explain.why import Why
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

INNER = frozenset(("gradient_for", "graph", "program", "shaped", "takes"))
"""Attributes that other modules of the compiler use: `dir` does not list them."""


class DescribedProgram:
    """A face of a program: whatever can be said of it."""

    __slots__ = ()

    program: ComponentProgram | TensorProgram

    def graph(self) -> Graph:
        """The graph, made at the first use."""
        return self.program.graph()

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program inferred with these types, or f32 where nothing is written, and with these shapes, if any."""
        return self.program.shaped(shapes, dtypes)

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in INNER]

    @ends_at_caller
    def source(
        self, target: str = "c", *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None
    ) -> str:
        """The program as text, of "c" or "cuda"; with shapes, one per input, the extents are fixed in it.

        ``dtypes`` are the element types of the inputs, such as "i32" or numpy.int32; else they are those that the
        program writes, and f32.
        """
        check_target(target)
        return source_of(self.shaped(shapes, dtypes), target)

    @ends_at_caller
    def loops(self, *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None) -> str:
        """The loop nests as text; with shapes, one per input, the extents are numbers; ``dtypes`` as for ``source``."""
        return pipeline.loops_text(pipeline.lower(self.shaped(shapes, dtypes)))

    @ends_at_caller
    def explain(
        self,
        *given: Any,
        shapes: Sequence[Any] = (),
        verbose: bool = False,
        html: str | os.PathLike[str] | None = None,
    ) -> ComponentExplanation:
        """The explanation, as data; ``str`` gives its page. With shapes, one per input, extents are numbers.

        Args:
            given: shapes of the inputs, or arrays that have them; or none.
            shapes: the same as one list.
            verbose: say also how every extent and type was found.
            html: a file for the page that ``i explain --html`` writes.

        Raises:
            DataError: E0715 (no shapes), E0731, E0732, E0768 (the file cannot be written, or is of another kind).
        """
        from ilang.codegen.call.arguments import check_flag, check_is_list, checked_shapes
        from ilang.codegen.components.notebook_pages import notebook_page

        check_flag("verbose", verbose)
        check_is_list(shapes)
        shapes = checked_shapes(given or shapes)
        program, is_given = self.program.at(shapes), bool(shapes) or self.program.is_solved
        if html is not None:
            from ilang.codegen.components.html_page import write_html_page

            write_html_page(html, program.graph(), program.shaped(shapes), given=is_given)
        page = pipeline.explain_shaped(
            program.graph(), program.shaped(shapes), verbose, given=is_given
        )
        return notebook_page(page, self, shapes)

    @ends_at_caller
    def why(self, *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None) -> Why:
        """The reasons of the loops, as data; ``str`` gives the page of ``i explain --why``. Prices need shapes."""
        return pipeline.why(self.shaped(shapes, dtypes))

    @ends_at_caller
    def check(self, target: str = "c") -> Check:
        """The result of ``i check``, as data; ``str`` gives its line.

        Args:
            target: "cuda" checks the CUDA, too, on the emulator.

        Raises:
            Error: whatever is wrong with shapes, types and schedules.
        """
        from ilang.codegen.project.checking import check

        return check(self.shaped(()), target)

    @ends_at_caller
    def build(
        self,
        folder: str | os.PathLike[str],
        name: str | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> list[Path]:
        """Write a C project as ``i build`` does; the files, in the order in which to read them.

        Args:
            folder: where to write; it is made if it is missing.
            name: what the function and the files are called.
            shapes: shapes of inputs, by name, that fix their extents.

        Raises:
            Error: those of ``write_project``.
        """
        from pathlib import Path

        from ilang.codegen.call.arguments import check_file_name
        from ilang.codegen.system.files import path_text

        check_file_name(name)
        return self.program.write_project(Path(path_text(folder, "folder")), name, shapes)

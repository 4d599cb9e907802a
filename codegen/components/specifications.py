"""Components of specifications of einsum."""

from __future__ import annotations

from ilang.codegen.components.component import Component
from ilang.codegen.components.program import WrittenProgram
from ilang.core.diagnostic import DataTypeError


def from_spec(spec: object) -> Component:
    """The component that an einsum specification is. Raises NotationError E0140 to E0147, or DataError E0716."""
    from ilang.core.ir.syntax import Einsum
    from ilang.core.notation.einsum.specification import parse_spec
    from ilang.core.notation.einsum.subscripts import check_dots
    from ilang.core.source import Source

    if not isinstance(spec, str):
        raise DataTypeError(
            "E0716",
            f"a specification is a text, not {type(spec).__name__}",
            help='write it in quotes: einsum("ij; jk => ik")',
        )
    parsed = parse_spec(Source("<spec>", " ".join(spec.splitlines())))
    check_dots(parsed)
    tree = Einsum(parsed, None, parsed.span, None)
    return Component(WrittenProgram(tree))

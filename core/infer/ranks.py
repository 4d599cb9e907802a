"""Ranks: how many dimensions each value has.

An expression fixes the rank of what it reads and of what it gives; ``I`` and type conversions have the rank of
what they are wired to. A value whose rank nothing fixes takes it from the array, or stays unknown (None). The row
variables of einsum specifications are counted from ranks, and give ranks (``counting.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.infer import conflicts
from ilang.core.infer.counting import Known, LengthEquations
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.graph import (
    UNNAMED,
    Assignment,
    Einx,
    Elementwise,
    Graph,
    Input,
    OpenKernel,
    View,
)
from ilang.core.ir.operation import Operation
from ilang.core.ir.spec import Spec
from ilang.core.source import Span


def infer_ranks(graph: Graph, given: Sequence[int | None] | None) -> LengthEquations:
    """The ranks of a graph; ``given`` are those of its arrays, one per input, None for one that is not there.

    Raises:
        ShapeError: E0501 (a value is read with another rank than it has), E0502 (one input read with two ranks),
            E0503 (an array of another rank than the program reads), E0509 (row variables that nothing tells apart).
    """
    groups, known = _grouped(graph, given)
    equations = LengthEquations(graph, groups.find, known)
    equations.run()
    return equations


def input_ranks(graph: Graph, given: Sequence[int | None] | None) -> list[int | None]:
    """The rank of each input that is an array without rows, as far as arrays and what reads it write it."""
    groups, known = _grouped(graph, given)
    ranks = [known.get(groups.find(value)) for value in graph.inputs]
    return [None if entry is None else entry[0] for entry in ranks]


def _grouped(graph: Graph, given: Sequence[int | None] | None) -> tuple[UnionFind, Known]:
    """The groups of values of one rank, and the ranks that the program and its arrays write."""
    groups = UnionFind(len(graph.nodes))
    for value, node in enumerate(graph.nodes):
        if isinstance(node, Elementwise):
            groups.union(node.value, value)
    known: Known = {}

    def fix(value: int, rank: int, span: Span, role: str) -> None:
        group = groups.find(value)
        before = known.setdefault(group, (rank, span, role))
        if before[0] != rank:
            raise _mismatch(graph, value, before, (rank, span, role))

    for value, rank, span, role in _written(graph):
        fix(value, rank, span, role)
    for number, offered in enumerate(given or ()):
        if offered is None:
            continue
        group = groups.find(graph.inputs[number])
        if group in known and known[group][0] != offered:
            raise _wrong_rank(graph, number, offered, known[group])
        known.setdefault(group, (offered, graph.nodes[graph.inputs[number]].span, "is"))
    return groups, known


def _written(graph: Graph) -> Iterator[tuple[int, int, Span, str]]:
    """The ranks that the text writes of values: the value, its rank, where that stands, and in what role."""
    for value, node in enumerate(graph.nodes):
        if isinstance(node, Assignment):
            yield value, len(node.target), node.span, "gives"
            for read in node.reads:
                yield read.value, len(read.index), read.span, "reads"
            if node.base is not None:
                yield node.base, len(node.target), node.span, "updates"
        elif isinstance(node, View):
            yield value, len(node.target), node.span, "gives"
            yield node.value, len(node.source), node.span, "reads"
        elif isinstance(node, Operation) and isinstance(node.logic, Spec):
            yield from _of_spec(value, node, node.logic)
        elif isinstance(node, Einx):
            yield from _of_form(value, node)
        elif isinstance(node, OpenKernel):
            yield from _of_kernel(value, node)
    for annotation in graph.annotations:
        if annotation.dims is not None:
            yield annotation.value, len(annotation.dims), annotation.span, "is written with"


def _of_spec(value: int, node: Operation, logic: Spec) -> Iterator[tuple[int, int, Span, str]]:
    """The ranks that a specification writes: of shapes without row variables."""
    for each, shape in zip((*node.operands, value), logic.shapes(), strict=True):
        if all(row.variable is None for row in shape.rows):
            yield each, len(shape.axes()), shape.span, "gives" if each == value else "reads"


def _of_form(value: int, node: Einx) -> Iterator[tuple[int, int, Span, str]]:
    from ilang.core.ir.einx import dimensions

    result = node.form.outputs[node.output]
    for each, expression in zip((*node.operands, value), (*node.form.inputs, result), strict=True):
        rank = dimensions(expression)
        if rank is not None:
            yield each, rank, expression.span, "gives" if each == value else "reads"


def _of_kernel(value: int, node: OpenKernel) -> Iterator[tuple[int, int, Span, str]]:
    """The ranks that a kernel writes, of those that it does not leave open."""
    output = node.kernel.outputs[node.output]
    rank = node.kernel.rank_of(output)
    if rank is not None:
        yield value, rank, output.span, "gives"
    for each, read in zip(node.operands, node.kernel.inputs, strict=True):
        if read.rank is not None:
            yield each, read.rank, read.span, "reads"


def undetermined(program: Graph, number: int) -> ShapeError:
    """An input whose rank nothing says."""
    name = program.input_name(number)
    span = program.nodes[program.inputs[number]].span
    return ShapeError(
        "E0508",
        f"nothing says what rank {name} has",
        span,
        f"give its shape (`--shape 2x3`), its dimensions in a definition ({name}[n,m]), or an expression that reads it",
    )


def _wrong_rank(
    graph: Graph, number: int, offered: int, known: tuple[int, Span, str]
) -> ShapeError:
    """An array of another rank than the outermost head that has it writes, or than is read."""
    rank, span, role = known
    given = graph.inputs[number]
    heads = [a for a in graph.annotations if a.value == given and a.of not in ("", UNNAMED)]
    if not heads or len(heads[-1].dims or ()) != rank:
        labels = [Label(span, f"{role} rank {rank}")]
        return conflicts.wrong_rank(graph.input_name(number), offered, rank, span, labels)
    head = heads[-1]
    source = graph.nodes[given]
    name = source.name if isinstance(source, Input) and source.name else head.name
    axes = ", ".join(map(str, head.dims or ()))
    message = (
        f"`{head.of}` takes {head.span.text()}, "
        f"and {name} has {conflicts.axes(offered)} where it takes {rank}"
    )
    help_line = f"give {name} {conflicts.axes(rank)}{': ' * bool(rank)}{axes}"
    return ShapeError("E0503", message, head.span, help_line)


def _mismatch(
    graph: Graph, value: int, one: tuple[int, Span, str], other: tuple[int, Span, str]
) -> ShapeError:
    labels = [
        Label(other[1], f"{other[2]} rank {other[0]}"),
        Label(one[1], f"{one[2]} rank {one[0]}"),
    ]
    if isinstance(graph.nodes[value], Input) and "gives" not in (one[2], other[2]):
        name = graph.input_name(graph.inputs.index(value))
        message = f"{name} is read with rank {one[0]} and with rank {other[0]}"
        help_line = "an input has one rank; use two inputs, or pair with |"
        if "is written with" in (one[2], other[2]):
            help_line = (
                "inputs are taken in the order of the head; `(f)(y, x)` takes them in another one"
            )
        return ShapeError("E0502", message, other[1], help_line, labels)
    gives, reads = (one, other) if one[2] == "gives" else (other, one)
    message = (
        f"a value of rank {gives[0]} flows into a pattern of rank {reads[0]}: {reads[1].text()}"
    )
    return ShapeError(
        "E0501",
        message,
        other[1],
        _twice(graph, value, gives[0])
        or "give the pattern one letter per dimension of what flows into it",
        labels,
    )


def _twice(graph: Graph, value: int, rank: int) -> str | None:
    """Help where an expression reads the value first, and an array of its rank second; None where none does.

    The value is a reduction of an array that was meant to come first: ``+ij~i >> ij/i~ij``.
    """
    node = graph.nodes[value]
    if not isinstance(node, Assignment) or len(node.reads) != 1:
        return None
    for reader in graph.nodes:
        if not isinstance(reader, Assignment) or len(reader.reads) != 2:
            continue
        first, second = reader.reads
        is_meant = first.value == value and isinstance(graph.nodes[second.value], Input)
        if is_meant and (len(first.index), len(second.index)) == (len(node.reads[0].index), rank):
            result, text = node.text, reader.text
            return f"for the array and its result side by side, `(I & {result}) >> {text}`"
    return None

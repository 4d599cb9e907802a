"""A data-flow graph as text: for a terminal, for Mermaid, and for Graphviz.

Example for a terminal, a sum over rows divided by their number of elements:
    ┬     x      f32[m,n]
    └─┬─  total  f32[m]    total[i] = Σ_j x[i,j]
      └─  out    f32[m]    out[i] = total[i] / n

Each value that is still to be read has a column: it begins in the row of the value (┬), and each row that reads it
leaves it (├, ┼), the last one for good (└, ┴). A column that a row only passes is drawn through (│).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.explain.dataflow import FlowGraph, FlowNode
from ilang.core.explain.expression import aligned
from ilang.core.explain.formulas import ASCII

ASCII_LINES = str.maketrans({"│": "|", "─": "-", "…": "~", **dict.fromkeys("┬├┼└┴", "+")})
"""Characters for lines where only ASCII may stand; with them those of formulas."""
ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "&": "#amp;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
)
"""Characters in labels of Mermaid that mean something there."""
QUOTED = str.maketrans({'"': '\\"', "\\": "\\\\"})
"""Characters in texts of Graphviz, in quotes."""
UNSTORED = "   not stored"
"""The remark on a value that is no array in memory."""


def plain_text(flow: FlowGraph, ascii_only: bool = False, width: int | None = None) -> str:
    """The graph for a terminal: a row for each value, with lines from those that it is computed from.

    A formula that does not fit in ``width`` columns is cut.
    """
    heads = {nodes[0]: number for number, nodes in enumerate(flow.kernels) if nodes}
    inside = flow.inside()
    rails = _rails(flow)
    wide = max((len(rail) for _, rail in rails), default=0)
    names = aligned([("  " * (n in inside) + e.name, e.type) for n, e in enumerate(flow.nodes)])
    column = max(map(len, names), default=0)
    title = f"data flow of {flow.title}"
    lines = [title if width is None or len(title) <= width else f"{title[: width - 1]}…", ""]
    was_inside = False
    for number, ((before, rail), name) in enumerate(zip(rails, names, strict=True)):
        node = flow.nodes[number]
        if number in heads:
            lines.append(f"{before}  kernel k{heads[number]}")
        elif was_inside and number not in inside:
            lines.append(before.rstrip())
        was_inside = number in inside
        remark = "" if node.stored else UNSTORED
        room = None if width is None else width - wide - column - 4 - len(remark)
        formula = node.formula
        if room is not None and room < len(formula):
            formula = f"{formula[: max(room - 1, 0)]}…"
        lines.append(f"{rail}  {name.ljust(column)}  {formula}{remark}".rstrip())
    text = "\n".join(lines) + "\n"
    return text.translate(ASCII | ASCII_LINES) if ascii_only else text


def _rails(flow: FlowGraph) -> list[tuple[str, str]]:
    """The columns before each row, and those of the row itself."""
    last = dict(flow.edges)
    columns: list[int | None] = []
    drawn = list[tuple[str, str]]()
    for number in range(len(flow.nodes)):
        before = "".join("  " if each is None else "│ " for each in columns)
        read = [at for at, each in enumerate(columns) if each in flow.sources(number)]
        ends = [at for at in read if last[columns[at] or 0] == number]
        begins = None
        if number in last:
            free = [at for at, each in enumerate(columns) if each is None]
            begins = free[0] if free else len(columns)
            columns += [None] * (begins + 1 - len(columns))
        row = _row(columns, read, ends, begins)
        for at in ends:
            columns[at] = None
        if begins is not None:
            columns[begins] = number
        drawn.append((before, row))
    width = max((len(row) for _, row in drawn), default=0)
    return [
        (before.ljust(width), row.ljust(width, "─" if row.strip() else " "))
        for before, row in drawn
    ]


def _row(
    columns: Sequence[int | None], read: Sequence[int], ends: Sequence[int], begins: int | None
) -> str:
    """The columns of a row: a line goes from the first column that it reads, or begins, to the right."""
    touched = [*read, *([] if begins is None else [begins])]
    row = ""
    for at, each in enumerate(columns):
        started = bool(touched) and min(touched) <= at
        line = "─" if started else " "
        if at == begins:
            row += "┬" + line
        elif at in read:
            first = at == min(touched)
            row += ("└" if first else "┴") + line if at in ends else ("├" if first else "┼") + line
        else:
            row += ("│" if each is not None else line) + line
    return row


def mermaid_text(flow: FlowGraph) -> str:
    """The graph as a flowchart of Mermaid; what is not stored has a dashed border."""
    shapes = {"input": '(["{}"])', "output": '[["{}"]]', "value": '["{}"]'}

    def node(number: int) -> str:
        each = flow.nodes[number]
        label = "<br/>".join(line.translate(ENTITIES) for line in label_of(each))
        return f"v{number}{shapes[each.kind].format(label)}{'' if each.stored else ':::unstored'}"

    lines = ["flowchart TD", "  classDef unstored stroke-dasharray: 4 3"]
    return _text(lines, flow, node, ('subgraph {0}["kernel {0}"]', "end"), "v{} --> v{}")


def dot_text(flow: FlowGraph) -> str:
    """The graph in the language of Graphviz; what is not stored has a dashed border."""
    styles = {"input": "rounded", "output": "bold", "value": "solid"}

    def node(number: int) -> str:
        each = flow.nodes[number]
        style = styles[each.kind] if each.stored else "dashed"
        label = "\\n".join(each.translate(QUOTED) for each in label_of(each))
        return f'v{number} [label="{label}", style={style}];'

    head = [f'digraph "{flow.title.translate(QUOTED)}" {{']
    head.append('  node [shape=box, fontname="monospace"];')
    kernel = ('subgraph cluster_{0} {{ label="kernel {0}";', "}")
    return f"{_text(head, flow, node, kernel, 'v{} -> v{};')}}}\n"


def label_of(node: FlowNode) -> list[str]:
    """The lines in the box of a value: its name and its type, then its formula."""
    return [f"{node.name}  {node.type}".rstrip(), *([node.formula] if node.formula else [])]


def _text(
    lines: list[str],
    flow: FlowGraph,
    node: Callable[[int], str],
    kernel: tuple[str, str],
    edge: str,
) -> str:
    """The statements of a graph after some lines: its nodes, those of kernels between two lines each, its edges."""
    inside = flow.inside()
    lines = lines + [f"  {node(n)}" for n in range(len(flow.nodes)) if n not in inside]
    for number, nodes in enumerate(flow.kernels):
        lines.append(f"  {kernel[0].format(f'k{number}')}")
        lines += [f"    {node(n)}" for n in nodes]
        lines.append(f"  {kernel[1]}")
    lines += [f"  {edge.format(*pair)}" for pair in flow.edges]
    return "\n".join(lines) + "\n"

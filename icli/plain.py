"""An explanation as plain text: aligned, unwrapped, the same bytes everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.explanation import Cost, Explanation, Projection, ScheduleRow, StepRow, TensorRow
from ilang.icli.shapes import extents_text

GAP = "  "
PROJECTION_NOTE = "the dimension of each tensor that an axis walks"


def explanation_text(explanation: Explanation) -> str:
    """The whole page."""
    sections = [
        table([port_cells(port) for port in (*explanation.inputs, *explanation.outputs)]),
        table([step_cells(step) for step in explanation.steps]),
        *(projection_text(p, n == 0) for n, p in enumerate(explanation.projections)),
        explanation.loops.rstrip("\n"),
        "\n".join((cost_text(explanation.cost), *explanation.notes)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def table(rows: Sequence[Sequence[str]], gap: str = GAP) -> str:
    """Rows of cells with the columns aligned on their left; no blanks at line ends."""
    if not rows:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def port_cells(port: TensorRow) -> tuple[str, str, str, str]:
    """Name, shape, axes and element type of an input or output."""
    return port.name, extents_text(port.extents), " ".join(port.letters), port.dtype


def step_cells(step: StepRow) -> tuple[str, str, str, str]:
    """Number, expression, words and remark of a step."""
    return str(step.number), " ".join(step.text.split()), step.words, step.remark


def projection_rows(projection: Projection, first: bool) -> list[tuple[str, ...]]:
    """The table of one kernel: a column per axis, a row per tensor, remarks at the end."""
    rows: list[tuple[str, ...]] = [("axis →", *projection.axes, "")]
    last = len(projection.rows) - 1
    for number, row in enumerate(projection.rows):
        remark = projection.remark if number == last else ""
        if number == 0 and first and last != 0:
            remark = PROJECTION_NOTE
        rows.append((f"  {row.tensor}", *row.cells, f"{GAP}{remark}"))
    return rows


def projection_text(projection: Projection, first: bool) -> str:
    """The projections of one kernel."""
    return table(projection_rows(projection, first))


def cost_text(cost: Cost) -> str:
    """What the program costs, in one line; formulas where extents are open."""
    words = f"{counted(cost.flops, 'flop')}, at least {counted(cost.bytes, 'byte')}"
    if isinstance(cost.flops, int) and isinstance(cost.bytes, int) and cost.bytes:
        words += f", {cost.flops / cost.bytes:.1f} flops per byte"
    return f"{words}; {cost.storage}"


def counted(amount: int | str, unit: str) -> str:
    """``65,536 flops``, ``1 flop``, ``2·i·j flops``."""
    if isinstance(amount, str):
        return f"{amount} {unit}s"
    return f"{amount:,} {unit}" + ("" if amount == 1 else "s")


def signature(name: str, explanation: Explanation) -> str:
    """A component in one line: ``attention(q[m,d], k[n,d], v[n,d]) -> [m,d]``; f32 goes without saying."""
    takes = ", ".join(f"{p.name}{': ' if p.dtype != 'f32' else ''}{_type(p)}" for p in explanation.inputs)
    gives = [_type(port) for port in explanation.outputs]
    result = gives[0] if len(gives) == 1 else f"({', '.join(gives)})"
    return f"{name}({takes}) -> {result}"


def _type(port: TensorRow) -> str:
    return f"{'' if port.dtype == 'f32' else port.dtype}[{','.join(port.extents)}]"


def as_data(value: object) -> object:
    """A record as JSON-ready data: objects by field, tuples as lists."""
    if isinstance(value, tuple | list):
        return [as_data(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return {name: as_data(item) for name, item in vars(value).items()}


def schedule_text(rows: Sequence[ScheduleRow]) -> str:
    """Every expression with its schedule, as it could be pasted back."""
    return table([(" ".join(row.text.split()), row.schedule) for row in rows])

"""An explanation as plain text: aligned, unwrapped, the same bytes everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.explain.expression import (
    aligned,
    extents_of,
    head_text,
    parameter,
    stored_text,
    typed,
)
from ilang.core.ir.graph import UNNAMED, Graph
from ilang.core.ir.shaped import Shaped

if TYPE_CHECKING:
    from ilang.core.explain.explanation import (
        Cost,
        Explanation,
        ProjectionTable,
        StepRow,
        TensorRow,
        ViewRow,
    )

GAP = "  "
PROJECTION_NOTE = "the dimension of each tensor that an axis walks"


def explanation_text(explanation: Explanation) -> str:
    """The whole page."""
    sections = [
        table([port_cells(port) for port in (*explanation.inputs, *explanation.outputs)]),
        *("\n".join((rows[0][0], table(rows[1:]))) for rows in operation_tables(explanation)),
        table([view_cells(view) for view in explanation.views]),
        table([step_cells(step) for step in explanation.steps]),
        *(table(rows) for rows in projection_tables(explanation)),
        table(story_rows(explanation)),
        explanation.execution.loops.rstrip("\n"),
        occupancy_text(explanation),
        "\n".join((cost_text(explanation.execution.cost), *explanation.notes)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def occupancy_text(explanation: Explanation) -> str:
    """The blocks of each kernel that a GPU has at a time, a line each; nothing of other machines."""
    if not explanation.execution.occupancy:
        return ""
    from ilang.core.explain.occupancy import occupancy_table

    return table(occupancy_table(explanation.execution.occupancy))


def table(rows: Sequence[Sequence[str]], gap: str = GAP) -> str:
    """Rows of cells with the columns aligned on their left."""
    return "\n".join(aligned(rows, gap))


def port_cells(port: TensorRow) -> tuple[str, str, str, str]:
    """Name, shape, axes and element type of an input or output."""
    axes = port.rows or " ".join(port.letters)
    if port.order:
        axes += f", stored by {stored_text(port.order)}"
    return port.name, extents_text(port.extents), axes, port.dtype


def operation_tables(explanation: Explanation) -> list[list[tuple[str, str]]]:
    """A table per operation in einx notation: its text, and a row per stage; what a stage repeats is left out."""
    tables = []
    for row in explanation.operations:
        cells = [(row.text, "")]
        for before, stage in zip((None, *row.stages), row.stages, strict=False):
            again = before is not None and before.subject == stage.subject
            cells.append(("" if again else f"  {stage.subject}", stage.says))
        tables.append(cells)
    return tables


def view_cells(view: ViewRow) -> tuple[str, str]:
    """A view, and what it is of: ``t1``, ``in0 as s (h:4 d) -> s h:4 d``."""
    return view.name, f"{view.source} as {view.text}"


def step_cells(step: StepRow) -> tuple[str, str, str, str]:
    """Number, expression (``name = ij~ji`` where the program names it), words and remark of a step."""
    text = " ".join(step.text.split())
    text = f"{step.name} = {text}" if step.name else text
    return str(step.number), text, step.words, step.remark


def projection_tables(explanation: Explanation) -> list[list[tuple[str, ...]]]:
    """A table per loop nest: a column per axis, a row per tensor, remarks at the end; scalars walk nothing."""
    shown = [projection for projection in explanation.projections if projection.axes]
    head = "axis →" if len(shown) == 1 else "step {}"
    return [
        [(head.format(each.step), *each.axes, ""), *_projection_rows(each, number == 0)]
        for number, each in enumerate(shown)
    ]


def _projection_rows(projection: ProjectionTable, first: bool) -> list[tuple[str, ...]]:
    remarks = [""] * len(projection.rows)
    remarks[-1] = projection.remark
    if first and len(remarks) != 1:
        remarks[0] = PROJECTION_NOTE
    return [
        (f"  {row.tensor}{row.index}", *row.cells, f"{GAP}{remark}")
        for row, remark in zip(projection.rows, remarks, strict=True)
    ]


def extents_text(extents: Sequence[str]) -> str:
    """Extents, numbers or names, as tables show them."""
    return "×".join(extents) or "."


def story_rows(explanation: Explanation) -> list[tuple[str, str]]:
    """The rows of the table of what was inferred, and why."""
    return [(row.subject, row.says) for row in explanation.story]


def cost_text(cost: Cost) -> str:
    """The cost of the program, in one line; formulas where extents are open."""
    words = f"{counted(cost.flops, 'flop')}, at least {counted(cost.bytes, 'byte')}"
    if isinstance(cost.flops, int) and isinstance(cost.bytes, int) and cost.flops and cost.bytes:
        words += f", {cost.flops / cost.bytes:.1f} flops per byte"
    return f"{words}; {cost.storage}"


def counted(amount: int | str, unit: str) -> str:
    """``65,536 flops``, ``1 flop``, ``2·i·j flops``."""
    if isinstance(amount, str):
        return f"{amount} {unit}s"
    return f"{amount:,} {unit}" + ("" if amount == 1 else "s")


def signature(shaped: Shaped) -> str:
    """A component in one line: ``attention(q[m,d], k[n,d], v[n,d]) -> [m,d]``."""
    inputs = [(shaped.tensors[value], extents_of(shaped, value)) for value in shaped.inputs]
    takes = [parameter(tensor.name, tensor.dtype, extents) for tensor, extents in inputs]
    gives = [tensor_type(shaped, value) for value in shaped.outputs]
    return head_text("" if shaped.name == UNNAMED else shaped.name, takes, gives)


def equal_names(graph: Graph, shaped: Shaped) -> str:
    """A remark on names of a head that the body makes one size: ``n and m are one size: write m for both``.

    Empty where each name is a size of its own. The name that is kept is the one that the program goes by.
    """
    numbers = {shaped.tensors[value].name: shaped.tensors[value].dims for value in shaped.inputs}
    names: dict[int, dict[str, None]] = {}
    for each in graph.annotations:
        if each.of != graph.name or each.dims is None:
            continue
        for number, word in zip(numbers.get(each.name, ()), each.dims, strict=False):
            if isinstance(word, str):
                names.setdefault(number, {})[word] = None
    alike = [(number, [*each]) for number, each in names.items() if 1 < len(each)]
    return "; ".join(
        f"the body makes {', '.join(words[:-1])} and {words[-1]} one size: "
        f"write {shaped.sizes[number].name} for each"
        for number, words in alike
    )


def tensor_type(shaped: Shaped, value: int) -> str:
    """The element type of a value, empty for f32, and its extents in brackets."""
    return typed(shaped.tensors[value].dtype, extents_of(shaped, value))


def ends_of(shaped: Shaped, names: Sequence[str]) -> dict[str, object]:
    """The inputs of a component, and its outputs of some names, as data: name, element type, shape."""

    def end(name: str, value: int) -> dict[str, object]:
        shape = shape_data(extents_of(shaped, value))
        return {"name": name, "dtype": shaped.tensors[value].dtype, "shape": shape}

    return {
        "inputs": [end(shaped.tensors[value].name, value) for value in shaped.inputs],
        "outputs": [end(*each) for each in zip(names, shaped.outputs, strict=True)],
    }


def ends_data(rows: Sequence[TensorRow]) -> list[object]:
    """Inputs or outputs as data: name, element type, shape; rows and order where they say more."""
    return [
        {
            "name": row.name,
            "dtype": row.dtype,
            "shape": shape_data(row.extents),
            "letters": list(row.letters),
            **({"rows": row.rows} if row.rows else {}),
            **({"order": list(row.order)} if row.order else {}),
        }
        for row in rows
    ]


def shape_data(extents: Sequence[str]) -> list[int | str]:
    """A shape as data: numbers, and names of extents that come at run time."""
    return [int(each) if each.isdigit() else each for each in extents]


def page_data(page: Explanation) -> dict[str, object]:
    """An explanation as data."""
    data: dict[str, object] = {}
    for name, item in vars(page).items():
        data.update(vars(item) if name == "execution" else {name: item})
    ends = {"inputs": ends_data(page.inputs), "outputs": ends_data(page.outputs)}
    return {**{name: as_data(item) for name, item in data.items()}, **ends}


def as_data(value: object) -> object:
    """A record as JSON-ready data: objects by field or key, tuples as lists."""
    if isinstance(value, tuple | list):
        return [as_data(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    items = value if isinstance(value, dict) else vars(value)
    return {name: as_data(item) for name, item in items.items()}


UNWRITTEN = (
    "# kernels compute matrices again, and the language has no words for all of these assignments"
)
"""The remark above schedules that cannot be written back."""


def schedule_text(page: Explanation) -> str:
    """Every expression with its schedule, as it could be pasted back; all of them as one where the text lacks some."""
    rows = [(" ".join(row.text.split()), row.schedule) for row in page.execution.schedule]
    unwritten = "" if page.execution.definition is None else f"{UNWRITTEN}\n"
    return page.execution.definition or unwritten + table(rows)

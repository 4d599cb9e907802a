"""Element types of every value; operations become accumulating assignments, of sizes that are solved.

Example:
    in:   n2 = n0[i,k] * n1[k,j];  n3 = fold + over k: n2[i,j,k];  n0 and n1 are f32
    out:  in0 f32 [i,k]   in1 f32 [k,j]   t1 f32 [i,j,k]   out f32 [i,j]   sizes i k j at run time

Example:
    in:   n2 = einsum `a; b => a^b` of n0[3] n1[2]
    out:  t1 = 0 for o;  t2 = t1 with t2[a] = n0[a];  out = t2 with out[b+3] = n1[b]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import assert_never

from ilang.core.calculus.affine import Affine, Within, axis_index, variables_of
from ilang.core.diagnostic import ElementTypeError, Label
from ilang.core.dtype import FLOATS, INTEGERS, LARGEST_WHOLE
from ilang.core.infer.dtypes import is_open, type_scalar
from ilang.core.infer.solved import Solved
from ilang.core.ir import graph, shaped
from ilang.core.ir.ids import ValueId
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.scalar import Constant, Convert, Operand, Position, Scalar, scalars_within
from ilang.core.ir.schedule import has_units
from ilang.core.names import LETTERS
from ilang.core.passes.assignments import Assignments, is_logic, joined, name_tensors, word_of
from ilang.core.passes.lookups import CountedAxes, counted
from ilang.core.record import replace
from ilang.core.source import Span
from ilang.core.walks import reached


def solved_to_shaped(
    solved: Solved,
    dtypes: Sequence[str | None] | None = None,
    outputs: Sequence[int] | None = None,
    least: str = "f32",
) -> shaped.Shaped:
    """The assignments of a graph whose extents are solved.

    Args:
        solved: the graph and its extents.
        dtypes: the element type of each input of the graph; None where nothing is said.
        outputs: the values to give; those of the graph unless they are said.
        least: the float that is a constant which meets nothing.

    Raises:
        ElementTypeError: E06.
    """
    given = solved.graph.outputs if outputs is None else outputs
    types = dtypes or [None] * len(solved.graph.inputs)
    result = _ShapedBuilder(solved, types, least).run(given, solved.needed)
    read = needed_values(solved.graph, given).union(solved.inputs)
    if not all(value in read for value in solved.needed):
        # A value that nothing reads has types, and is not computed.
        result = _ShapedBuilder(solved, types, least).run(given, read)
    if not has_units(result):
        return result
    from ilang.core.matrix_unit import with_rounded_factors

    return with_rounded_factors(result)


def with_extents(program: shaped.Shaped, shapes: Sequence[tuple[int, ...]]) -> shaped.Shaped:
    """The program for arrays of these shapes alone.

    Raises:
        ShapeError: E05.
    """
    from ilang.core.infer.fit import fit_shaped

    return with_fixed(program, fit_shaped(program, shapes))


def with_fixed(program: shaped.Shaped, extents: Sequence[int | None]) -> shaped.Shaped:
    """The program with one extent per size, those of None left open; ``fit_shaped`` gives extents that fit."""
    sizes = tuple(replace(size, fixed=n) for size, n in zip(program.sizes, extents, strict=True))
    return replace(program, sizes=sizes)


def open_sizes(program: shaped.Shaped, names: Collection[str]) -> frozenset[int]:
    """The sizes that stay open where extents of these names do: what these follow from, and what follows from them."""
    given = {n for n, size in enumerate(program.sizes) if size.fixed is None}
    left = {n for n in given if program.sizes[n].name in names}
    for rule in reversed(program.derived):
        if rule.size in left:
            left.update(given.intersection(rule.sources()))
    for rule in program.derived:
        if rule.size in given and not left.isdisjoint(rule.sources()):
            left.add(rule.size)
    return frozenset(left)


def needed_values(program: graph.Graph, outputs: Sequence[int]) -> set[int]:
    """The values that the outputs are computed from, themselves included, and gradients among them."""
    beside: dict[int, list[int]] = {}
    for back in program.backward:
        for given, wrt in back.gradients:
            beside[given] = [back.of, wrt]
    for rule in program.custom:
        pairs = [value for pair in rule.gradients for value in pair]
        beside[rule.value] = [rule.cotangent, *pairs] if program.backward else []
    nodes = program.nodes
    return reached(outputs, lambda n: (*graph.operands(nodes[n]), *beside.get(n, ())))


class _ShapedBuilder(Assignments):
    """The nodes of a shaped program so far; a value of an open type is added when something asks for it in a type."""

    def __init__(self, solved: Solved, dtypes: Sequence[str | None], least: str) -> None:
        super().__init__(solved.size_of, solved.fixed, least)
        self.program = solved.graph
        self.solved = solved
        self.dtypes = _input_dtypes(self.program, dtypes)
        self.place = {value: number for number, value in enumerate(solved.inputs)}
        self.reaches: list[shaped.Reach] = []
        self.floats: dict[int, str | None] = {}
        """The float that literals are in each node which meet nothing there."""
        self.parts: list[str] = []
        """The definition that each value is computed in, where the program uses any."""
        self.typed: dict[tuple[object, ...], tuple[Scalar, Scalar, str]] = {}
        """Each scalar, its typed form and its type, by its identity, the sizes of axes and the types of operands."""

    def run(self, outputs: Sequence[int], needed: Collection[int]) -> shaped.Shaped:
        """The program that gives some values; ``needed`` has those to compute, inputs among them."""
        alone = _alone(self.program, outputs)
        for value, node in enumerate(self.program.nodes):
            if value not in needed:
                continue
            self.floats[value] = self._float_of(node)
            if self._is_open(node):
                self.open[value] = {}
                self._demand({value: self.floats[value] or self.least} if value in alone else {})
            else:
                self._demand(self._met(value, None))
                self._build(value, node)
            if self.program.parts:
                part = self.program.parts[value]
                self.parts += [part] * (len(self.nodes) - len(self.parts))
        for value in alone & self.open.keys():
            self.number[value] = self.open[value][self.floats[value] or self.least]
        given = self._outputs(outputs)
        _check_bounds(self.solved)
        result = shaped.Shaped(
            self.program.name,
            tuple(self.nodes),
            self._named_tensors(outputs, given),
            self.solved.sizes(),
            self.solved.derived,
            tuple(self.number[value] for value in self.solved.inputs),
            tuple(given),
            tuple(
                replace(rows, value=self.number[rows.value])
                for rows in self.solved.rows()
                if rows.value in self.number
            ),
            self.solved.counted(),
            (*self.solved.reaches, *self.reaches),
            *self._backward(),
        )
        _check_annotations(self.program, self.number, result)
        return result

    def _named_tensors(
        self, outputs: Sequence[int], given: Sequence[ValueId]
    ) -> tuple[shaped.Tensor, ...]:
        """The tensors so far, each with its name and with the definition that it is the result of, or computed in."""
        place = dict(zip(outputs, given, strict=True))
        defined: dict[int | None, str] = {
            place.get(each.value, self.number.get(each.value)): each.name
            for each in reversed(self.program.defined)
        }
        named = {self.number.get(value) for value in self.program.value_names()}
        parts = [*self.parts, *[""] * (len(self.nodes) - len(self.parts))]
        words = [
            defined.get(value) or "_".join((*filter(None, (parts[value],)), word_of(node)))
            for value, node in enumerate(self.nodes)
        ]
        names = name_tensors(self.program, outputs, given, self.number, words)
        return tuple(
            shaped.Tensor(
                names[value],
                tensor.dtype,
                tensor.dims,
                (),
                defined.get(value, ""),
                parts[value],
                value in named,
            )
            for value, tensor in enumerate(self.tensors)
        )

    def _backward(self) -> tuple[tuple[graph.Backprop, ...], tuple[graph.Custom, ...]]:
        """The gradients that are to be attached, of the values that there are."""
        backward = tuple(
            replace(
                each,
                of=self.number[each.of],
                gradients=_pairs(each.gradients, self.number, self.place),
            )
            for each in self.program.backward
            if any(given in self.place for given, _ in each.gradients)
        )
        custom = tuple(
            replace(
                each,
                value=self.number[each.value],
                cotangent=self.number[each.cotangent],
                gradients=_pairs(each.gradients, self.number, self.number),
            )
            for each in self.program.custom
            if each.value in self.number and each.cotangent in self.place
        )
        return backward, custom

    def _node(self, value: int, node: graph.Node) -> None:
        """Add what a node of the graph is here: an input, assignments or a view; a number is a constant."""
        match node:
            case Terminal(kind="number"):
                assert node.value is not None
                self.constants[value] = Constant(node.value)
            case graph.Input() | Terminal():  # the wiring numbers inputs first
                given = shaped.Input(self.place[value], node.span)
                self._add(value, given, self.dtypes[value])
            case graph.Assignment():
                if not node.reads and isinstance(node.scalar, Constant):
                    self.constants[value] = node.scalar
                    return
                self._assignment(value, node, self.solved.axes(value))
            case graph.Elementwise():
                if node.value in self.constants:
                    constants = [self.constants[node.value]]
                    folded = type_scalar(node.scalar, constants, node.span, self.least)
                    assert isinstance(folded, Constant)
                    self.constants[value] = folded
                    return
                dims = self.solved.dims(value)
                self._assignment(value, _spread(node, len(dims)), dims)
            case graph.View():
                self._view(value, node)
            case Operation():
                projections = self.solved.projections[value]
                self.operation(value, node, self.solved.dims(value), projections)
            case graph.Einx() | graph.OpenKernel():
                raise AssertionError(node)
            case _:
                assert_never(node)

    def _is_open(self, node: graph.Node) -> bool:
        """Whether a value has the type of what it meets: its nodes are added where that is known, one in each type."""
        match node:
            case graph.View():
                return node.value in self.open
            case graph.Assignment() | graph.Elementwise() | Operation():
                operands = graph.operands(node)
                meets = [v for v in operands if v in self.constants or v in self.open]
                if not meets and Constant not in map(type, scalars_within(node.scalar)):
                    return False
            case _:
                return False
        acc = None if isinstance(node, graph.Elementwise) else node.acc
        if isinstance(node.scalar, Constant) or (acc is not None and is_logic(acc)):
            return False
        if isinstance(node, graph.Elementwise) and operands[0] in self.constants:
            return False
        if isinstance(node, graph.Assignment) and node.base is not None:
            return False
        return is_open(node.scalar, self._operands(operands))

    def _float_of(self, node: graph.Node) -> str | None:
        """The float that literals are which meet nothing in a node: the greatest that it reads, if any.

        Open values that it reads, and earlier steps of its expression, count by what they read.
        """
        dtypes: set[str | None] = set()
        for value in graph.operands(node):
            if value in self.open or self.program.nodes[value].span == node.span:
                dtypes.add(self.floats[value])
            elif value not in self.constants:
                dtypes.add(self.tensors[self.number[value]].dtype)
        return "f64" if "f64" in dtypes else "f32" if "f32" in dtypes else None

    def _operands(self, values: Sequence[int]) -> list[Scalar]:
        """The scalar that a read of each value delivers: a constant, or an operand, whose type may be open."""
        return [
            self.constants[value]
            if value in self.constants
            else Operand(n, None if value in self.open else self.tensors[self.number[value]].dtype)
            for n, value in enumerate(values)
        ]

    def _met(self, number: int, meets: str | None) -> dict[int, str]:
        """The types that the open values have which a node reads, itself of a type if it is open."""
        node = self.program.nodes[number]
        values = graph.operands(node)
        if not any(value in self.open for value in values):
            return {}
        if isinstance(node, graph.View | graph.Input | Terminal | graph.Einx | graph.OpenKernel):
            return dict.fromkeys(values, meets or self.floats[number] or self.least)
        places: Collection[int] = ()
        if isinstance(node, graph.Assignment):
            places = node.places()
        elif isinstance(node, Operation):
            places = [n for n in range(len(values)) if self.is_position(node, n)]
        delivered, alone = self._operands(values), self.floats[number]
        typed = type_scalar(node.scalar, delivered, node.span, self.least, meets, alone)
        reached = dict.fromkeys(places, "i64")
        reached |= {
            part.number: part.dtype or self.least
            for part in scalars_within(typed)
            if isinstance(part, Operand) and part.number not in places
        }
        met: dict[int, str] = {}
        for place, value in enumerate(values):
            dtype = reached.get(place, typed.dtype or self.least)
            if value in self.open:
                met[value] = joined([met.get(value, dtype), dtype], node.span)
        return met

    def _demand(self, wanted: Mapping[int, str]) -> None:
        """Add open values in the types that are wanted of them, and before them what these read."""
        if not wanted:
            return
        todo, reached = list(wanted.items()), set[tuple[int, str]]()
        while todo:
            value, dtype = todo.pop()
            if dtype not in self.open[value] and (value, dtype) not in reached:
                reached.add((value, dtype))
                todo += self._met(value, dtype).items()
        for value, dtype in sorted(reached):
            for operand, each in self._met(value, dtype).items():
                self.number[operand] = self.open[operand][each]
            self.meets = dtype
            self._build(value, self.program.nodes[value])
            self.open[value][dtype] = self.number[value]
        self.number |= {value: self.open[value][dtype] for value, dtype in wanted.items()}

    def _build(self, value: int, node: graph.Node) -> None:
        """Add a node; ``meets`` is the type that it has if it is open."""
        self.alone = self.floats[value]
        self._node(value, node)
        self.meets = self.alone = None

    def _view(self, value: int, node: graph.View) -> None:
        if node.value in self.constants:
            self.constants[value] = self.constants[node.value]
            return
        source = self.number[node.value]
        groups = (node.source, node.target, node.text, node.span)
        view = shaped.View(source, node.axes, self.solved.axes(value), *groups)
        self._add(value, view, self.tensors[source].dtype)

    def _assignment(self, value: int, node: graph.Assignment, sizes: tuple[int, ...]) -> None:
        """Add an assignment, typed: its reads as operands or constants, its lookups in indices, its guards."""
        counts = counted(node, sizes, self._sources(node))
        places = [node.reads[lookup.read] for lookup in node.lookups]
        skipping = [place for place in places if place.skips]
        guards = [
            each
            for place in skipping
            for each in counts.guards(_leaving(self.solved, value, place))
        ]
        delivered: list[Scalar] = []
        reads: list[shaped.Read] = []
        operands: list[int] = []
        looked_up = node.places()
        for number, read in enumerate(node.reads):
            if number in looked_up:
                delivered.append(Constant(0))
                continue
            if read.value in self.constants:
                delivered.append(self.constants[read.value])
                continue
            source = self.number[read.value]
            delivered.append(Operand(len(reads), self.tensors[source].dtype))
            leaving = _looking(self.solved, value, node, read) + _leaving(self.solved, value, read)
            held = counts.guards(leaving) if leaving else ()
            if read.skips:
                guards += held
                held = ()
            reads.append(shaped.Read(source, counts.indices(read.index), held))
            operands.append(node.operand(number))
        scalar, dtype = self._typed_scalar(counts, node, delivered)
        result = shaped.Assignment(
            axes=counts.axes,
            sizes=counts.sizes,
            target=counts.indices(node.target),
            reads=tuple(reads),
            scalar=scalar,
            acc=node.acc,
            schedule=node.schedule,
            text=node.text,
            span=node.span,
            base=None,
            operands=() if operands == list(range(len(node.reads))) else tuple(operands),
            guards=tuple(dict.fromkeys(guards)),
            associative=node.associative,
        )
        if result.scatters():
            base = None if node.base is None else self.number[node.base]
            names = [node.axes[axis].name for part in node.target for axis in part.variables()]
            self.number[value] = self.scattered(result, base, self.solved.dims(value), names)
        else:
            self._add(value, result, dtype)

    def _typed_scalar(
        self, counts: CountedAxes, node: graph.Assignment, delivered: Sequence[Scalar]
    ) -> tuple[Scalar, str]:
        """The typed scalar of an assignment, and the type of its result, once for all uses of a definition."""
        types = [(type(each), each.dtype) for each in delivered]
        key = (id(node.scalar), node.acc, self.meets, self.alone, counts.extents, *types)
        known = self.typed.get(key)
        if known is not None:
            return known[1:]
        written = counts.scalar(node.scalar)
        scalar, dtype = self.reduced_scalar(written, node.acc, delivered, node.span)
        if written is not node.scalar:  # it has positions or extents
            self.reaches += _reaches(self.solved, scalar, counts.sizes, node.span)
        if not node.lookups and all(isinstance(each, Operand) for each in delivered):
            self.typed[key] = node.scalar, scalar, dtype
        return scalar, dtype

    def _sources(self, node: graph.Assignment) -> list[ValueId]:
        """The value of the shaped graph that each lookup is of.

        Raises:
            ElementTypeError: E0605 (what is looked up is no integer).
        """
        sources = []
        for lookup in node.lookups:
            read = node.reads[lookup.read]
            constant = self.constants.get(read.value)
            if constant is None:
                dtype = self.tensors[self.number[read.value]].dtype
            else:
                dtype = constant.dtype or ("i64" if isinstance(constant.value, int) else self.least)
            if dtype not in INTEGERS:
                axis = node.axes[lookup.axis].name
                raise ElementTypeError(
                    "E0605",
                    f"axis {axis} is looked up at integers, and what gives them is {dtype}",
                    read.span,
                    "convert it with the component i64, write the type in a definition, `ids: i64[b]`, "
                    "or in an array, `i64:[1, 0]`",
                )
            if constant is None:
                sources.append(self.number[read.value])
                continue
            typed = replace(constant, dtype=dtype)
            dims = self.solved.dims(read.value)
            sources.append(self.filled(typed, dims, str(constant.value), read.span))
        return sources

    def _add(self, value: int, node: shaped.Node, dtype: str) -> None:
        self.number[value] = self.add(node, dtype, self.solved.dims(value))

    def _outputs(self, outputs: Sequence[int]) -> list[ValueId]:
        """Every output as memory of its own: inputs, constants and repeated outputs are copied, and views of them."""
        given: dict[ValueId, ValueId] = {}
        for value in outputs:
            number = self.number.get(value)
            owner = ValueId(-1) if number is None else number
            while number is not None and isinstance(node := self.nodes[owner], shaped.View):
                owner = node.value
            if number is None or owner in given or isinstance(self.nodes[owner], shaped.Input):
                owner = number = self._copy(value)
            given[owner] = number
        return list(given.values())

    def _copy(self, value: int) -> ValueId:
        node, dims = self.program.nodes[value], self.solved.dims(value)
        copied = _spread(graph.Elementwise(value, Operand(0), "I", node.span), len(dims))
        kept = self.number.get(value)
        if value in self.constants:
            text = node.text if isinstance(node, graph.Assignment) else "I"
            copied = replace(copied, reads=(), scalar=self.constants[value], text=text)
        self._assignment(value, copied, dims)
        number = self.number[value]
        if kept is not None:
            self.number[value] = kept
        return number


def _alone(program: graph.Graph, outputs: Sequence[int]) -> set[int]:
    """The values that have the type of what meets nothing if they are open: results, and what gradients are of."""
    backward = [v for each in program.backward for v in (each.of, *chain(*each.gradients))]
    custom = [v for each in program.custom for v in (each.value, *chain(*each.gradients))]
    return {*outputs, *backward, *custom}


def _pairs(
    pairs: Sequence[tuple[int, int]], number: Mapping[int, int], present: Collection[int]
) -> tuple[tuple[int, int], ...]:
    """Pairs of values, those whose first is present."""
    return tuple((number[a], number[b]) for a, b in pairs if a in present)


def _spread(node: graph.Elementwise, rank: int) -> graph.Assignment:
    letters = [LETTERS[dim % 26] for dim in range(rank)]
    axes = tuple(graph.Axis(letter, None, node.span) for letter in letters)
    index = tuple(axis_index(axis) for axis in range(len(axes)))
    spans = tuple(node.span for _ in axes)
    read = graph.Read(node.value, index, False, spans, node.span)
    return graph.Assignment(axes, index, (read,), node.scalar, None, None, node.text, node.span)


def _leaving(solved: Solved, value: int, read: graph.Read) -> tuple[Within, ...]:
    """The conditions in which a read is one of an element: its indices are inside, and its guards hold."""
    return solved.guards(value, read) + read.guards


def _looking(
    solved: Solved, value: int, node: graph.Assignment, read: graph.Read
) -> tuple[Within, ...]:
    """The conditions in which the elements exist that a read looks up."""
    if read.skips or not node.lookups:
        return ()
    axes = variables_of(read.index)
    axes |= variables_of(guard.index for guard in read.guards)
    held: tuple[Within, ...] = ()
    for lookup in reversed(node.lookups):
        if lookup.axis in axes:
            place = node.reads[lookup.read]
            axes |= variables_of(place.index)
            held = _leaving(solved, value, place) + held
    return held


def _reaches(
    solved: Solved, scalar: Scalar, sizes: tuple[int, ...], span: Span
) -> Iterator[shaped.Reach]:
    """The last positions that a scalar reaches, where that may be more than their type holds exactly.

    An extent alone is one number: a float rounds it as it rounds any other number.
    """
    for part in scalars_within(scalar):
        index, dtype = None, "i64"
        if isinstance(part, Convert) and isinstance(part.argument, Position):
            index, dtype = part.argument.index, part.dtype or ""
        elif isinstance(part, Position) and sum(abs(c) for c, _ in part.index.steps()) > 1:
            index = part.index
        if index is None or dtype not in LARGEST_WHOLE:
            continue
        if dtype in FLOATS and not index.variables():
            continue
        terms = tuple((c, sizes[axis]) for c, axis in index.steps()) + index.sizes
        offset = index.offset + sum(c for c, _ in index.sizes)
        reach = shaped.Reach(Affine(terms, offset), span, None, None, LARGEST_WHOLE[dtype], dtype)
        known = {size: solved.fixed(size) for _, size in terms}
        if None in known.values():
            yield reach
        else:
            from ilang.core.infer.fit import check_reach

            check_reach(reach, known)


def _check_bounds(solved: Solved) -> None:
    """Extents that are known without arrays reach as far as they are read."""
    for reach in solved.reaches:
        from ilang.core.infer.fit import check_reach

        check_reach(reach, {n: solved.fixed(n) for n in (reach.size,) if n is not None})


def _check_annotations(
    program: graph.Graph, number: Mapping[int, int], result: shaped.Shaped
) -> None:
    """Element types written in definitions hold."""
    for annotation in program.annotations:
        value = number.get(annotation.value)
        if annotation.dtype is None or value is None:
            continue
        result_dtype = result.tensors[value].dtype
        if result_dtype != annotation.dtype:
            message = f"{annotation.name} is written as {annotation.dtype}, but what it gets is {result_dtype}"
            help_line = (
                f"convert it with the component {annotation.dtype}, or pass {annotation.dtype}"
            )
            labels = [Label(annotation.span, f"{annotation.dtype} here")]
            raise ElementTypeError("E0604", message, annotation.span, help_line, labels)


def _input_dtypes(program: graph.Graph, given: Sequence[str | None]) -> list[str]:
    """The type of each input: its array's, else the written one, else f32, or i64 of what is looked up."""
    written = {
        annotation.value: annotation.dtype
        for annotation in program.annotations
        if annotation.dtype is not None
    }
    looked_up = program.looked_up()
    return [
        dtype or written.get(value) or ("i64" if value in looked_up else "f32")
        for value, dtype in zip(program.inputs, given, strict=True)
    ]

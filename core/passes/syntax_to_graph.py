"""Wire combinators away: a syntax tree becomes the graph of its expressions.

Example:
    in:   ik*kj~ijk >> +ijk~ij
    out:  n2 = n0[i,k] * n1[k,j]   for i j k
          n3 = fold + over k: n2[i,j,k]   for i j
          inputs n0 n1, outputs n3

Every leaf starts with open input slots; a combinator binds slots of one side to outputs (or slots) of the other
(docs/language.md section 3); the slots that stay open are the inputs of the component. An application binds all slots
of its component to the values that its arguments are, in order. One traversal of the tree, linear in its expressions.

Example:
    in:   f(x, y) = { n = (ij*j~ij)(x, y); (+ij~i)(n) }
    out:  n2 = n0[i,j] * n1[j]   for i j   called n
          n3 = fold + over j: n2[i,j]   for i
          inputs n0 n1, outputs n3
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ilang.core.diagnostic import InternalError, ModuleError, NotationError, counted, visible
from ilang.core.ir import graph, syntax
from ilang.core.ir.scalar import Convert, Operand, operations
from ilang.core.limits import check_expressions
from ilang.core.notation.components.misapplied import constant_help
from ilang.core.notation.components.printer import print_tree
from ilang.core.ops import ARGUMENTS
from ilang.core.passes.expressions import argument, assignment, constant, extreme, operation
from ilang.core.record import record, replace
from ilang.core.walks import parts_first

if TYPE_CHECKING:
    from ilang.core.library.places import LibraryCall

DEEPEST = 20
"""Operations in einx notation of which each is the op of the next, at most."""


class Definitions(dict[str, syntax.Definition]):
    """Definitions by name, and how many expressions each is with its own definitions written out, counted once."""

    def __init__(self, definitions: Mapping[str, syntax.Definition]) -> None:
        """Start from the definitions that the names of some trees mean."""
        super().__init__(definitions)
        self.counted: dict[str, int] = {}

    def leaves(self, tree: syntax.Tree) -> int:
        """The expressions of a tree, written out. Nothing is: a definition, or a shared subtree, is counted once."""
        leaves: dict[int, int] = {}

        def below(node: syntax.Tree) -> tuple[syntax.Tree, ...]:
            if not isinstance(node, syntax.Name):
                return syntax.children(node)
            return () if node.name in self.counted else (self[node.name].body,)

        for node in parts_first([tree], below, key=id):
            if isinstance(node, syntax.Name):
                if node.name not in self.counted:
                    self.counted[node.name] = leaves[id(self[node.name].body)]
                leaves[id(node)] = self.counted[node.name]
            else:
                parts = syntax.children(node)
                count = sum(leaves[id(part)] for part in parts) if parts else _leaf_count(node)
                leaves[id(node)] = count
        return leaves[id(tree)]

    def check_size(self, tree: syntax.Tree) -> None:
        """Refuse a program with too many expressions before any is written out.

        Raises:
            MeaningError: E0250.
        """
        check_expressions(self.leaves(tree), tree.span)


def _leaf_count(leaf: syntax.Tree) -> int:
    """The expressions that a leaf is: the primitives of a kernel, one at least an output; none of a value's name."""
    if isinstance(leaf, syntax.ElementKernel):
        return sum(max(1, sum(map(operations, output.steps))) for output in leaf.outputs)
    return 0 if isinstance(leaf, syntax.Value) else 1


def syntax_to_graph(
    tree: syntax.Tree,
    name: str,
    definitions: Mapping[str, syntax.Definition],
    parameters: tuple[syntax.NamedInput, ...] | None = None,
) -> graph.Graph:
    """The graph of a tree; ``parameters`` names its inputs where a definition does.

    Raises:
        MeaningError: E0250 (too many expressions).
        ModuleError: E0410 (a definition names another number of inputs than it has).
    """
    if not isinstance(definitions, Definitions):
        definitions = Definitions(definitions)
    definitions.check_size(tree)
    wiring = _GraphBuilder(definitions)
    result = wiring.run(syntax.Definition(name, parameters, tree, tree.span))
    return wiring.finish(name, result, parameters)


class _Wires:
    """The open input slots of a component that is being wired, in order, and the values of its outputs."""

    __slots__ = ("inputs", "outputs")

    def __init__(self, inputs: Iterable[int], outputs: Iterable[int]) -> None:
        self.inputs = deque(inputs)
        self.outputs = deque(outputs)

    def counts(self) -> tuple[int, int]:
        """The numbers of open slots, and of outputs."""
        return len(self.inputs), len(self.outputs)


@record
class _Place:
    """The numbers of items, annotations, named values and scopes so far, and of definitions that are being wired."""

    items: int
    annotations: int
    called: int
    scopes: int
    deep: int


_Work = tuple[syntax.Tree | syntax.Definition | syntax.Binding, bool]
"""Work of a traversal: look below a node, or, where what is below is finished, wire it."""


class _GraphBuilder:
    """Nodes in the order in which they are wired; ``bound`` says which value each slot stands for."""

    def __init__(self, definitions: Mapping[str, syntax.Definition], deep: int = 0) -> None:
        self.definitions = definitions
        self.deep = deep
        self.items: list[graph.Node] = []
        self.bound: dict[int, int] = {}
        self.annotations: list[graph.Annotation] = []
        self.scopes = 0
        self.templates: dict[int, graph.Assignment] = {}
        self.wired: dict[int, list[int]] = {}
        """The values that a node reads which is that of another use, by its number as an item."""
        self.uses: dict[str, tuple[_Place, _Place, _Wires]] = {}
        """The first use of each definition: where its wiring began and ended, its inputs and its outputs."""
        self.values: list[dict[str, int]] = []
        """The values of each definition that is being wired, by name, the outermost first."""
        self.opened: list[_Place] = []
        """The place where the wiring of each of these began."""
        self.called: list[tuple[int, graph.ValueName]] = []
        """The values that names were bound to, and how deep inside other definitions."""
        self.library: tuple[LibraryCall, int, int, int] | None = None
        """The call of a library that is followed, with how many definitions, items and annotations were before it."""
        self.defined: list[graph.ValueName] = []
        """The results of the definitions that the outermost one uses."""
        self.parts: dict[int, str] = {}
        """The one of these that an item is wired in."""

    def run(self, definition: syntax.Definition) -> _Wires:
        """Wire a definition, those that it uses expanded, by one traversal with a stack of finished subtrees."""
        finished: list[_Wires] = []
        todo: list[_Work] = [(definition, False)]
        while todo:
            node, ready = todo.pop()
            if isinstance(node, syntax.Definition):
                if ready:
                    self._close(node, finished[-1])
                else:
                    self._open(node)
                    todo += [(node, True), (node.body, False)]
            elif isinstance(node, syntax.Binding):
                self._name(node, finished.pop())
            elif ready:
                self._combine(node, finished)
            elif isinstance(node, syntax.Name):
                definition = self.definitions[node.name]
                if node.name in self.uses:
                    first = len(self.items)
                    finished.append(self._copy(*self.uses[node.name]))
                    self._result(definition, finished[-1], first)
                    continue
                if self.library is None and definition.span.source.name != node.span.source.name:
                    from ilang.core.library.places import LibraryCall

                    call = LibraryCall(node.span, "")  # its parts will know where a file uses it
                    self.library = call, len(self.values), len(self.items), len(self.annotations)
                todo.append((definition, False))
            elif isinstance(node, syntax.Value):
                finished.append(_Wires([], [self.values[-1][node.name]]))
            elif below := _parts(node):
                todo.append((node, True))
                todo.extend(reversed(below))
            else:
                finished.append(self._leaf(node))
        return finished[0]

    def _leave_library(self) -> None:
        if self.library is None or self.library[1] < len(self.values):
            return
        call, _, first, noted = self.library
        self.items[first:] = map(call.placed, self.items[first:])
        self.annotations[noted:] = map(call.placed, self.annotations[noted:])
        self.library = None
        outside = [each for each in self.uses.items() if each[1][0].items < first]
        self.uses = dict(outside)  # what is inside knows of this call

    def _open(self, definition: syntax.Definition) -> None:
        """Begin a definition: one over names has its inputs as values."""
        named = definition.parameters or () if syntax.over_names(definition.body) else ()
        self.opened.append(self._place())
        self.values.append({p.name: self._add(graph.Input(None, p.span)) for p in named})

    def _close(self, definition: syntax.Definition, wires: _Wires) -> None:
        """End a definition; the inputs of one over names are those of its head, in their order."""
        values, parameters = self.values.pop(), definition.parameters
        if syntax.over_names(definition.body):
            wires.inputs = deque(values[p.name] for p in parameters or ())
        if parameters is not None:
            self.annotate(definition, wires)
        first, ends = self.opened.pop(), _Wires(wires.inputs, wires.outputs)
        self.uses[definition.name] = first, self._place(), ends
        self._result(definition, wires, first.items)
        self._leave_library()

    def _result(self, definition: syntax.Definition, wires: _Wires, first: int) -> None:
        """Note the result of a definition that the outermost one uses, and its items, from ``first`` on."""
        if len(self.values) != 1:
            return
        self.parts |= dict.fromkeys(range(first, len(self.items)), definition.name)
        if len(wires.outputs) == 1:
            result = graph.ValueName(wires.outputs[0], definition.name, definition.span)
            self.defined.append(result)

    def _place(self) -> _Place:
        return _Place(
            len(self.items), len(self.annotations), len(self.called), self.scopes, len(self.values)
        )

    def _copy(self, first: _Place, last: _Place, ends: _Wires) -> _Wires:
        """Wire a definition as it was wired first: the same nodes, which read and give other values."""
        start = self._place()
        offset = start.items - first.items
        block = range(first.items, last.items)
        nodes = self.items[first.items : last.items]
        self.items += nodes
        for value, node in zip(block, nodes, strict=True):
            if not isinstance(node, graph.Input):
                read = self.wired.get(value) or list(graph.operands(node))
                self.wired[value + offset] = [each + offset for each in read]
            elif value in self.bound:
                self.bound[value + offset] = self.bound[value] + offset
        wires = _Wires([v + offset for v in ends.inputs], [v + offset for v in ends.outputs])
        for value in wires.inputs:
            self.bound.pop(value, None)
        scopes = start.scopes - first.scopes
        self.annotations += [
            replace(each, value=each.value + offset, scope=each.scope + scopes)
            for each in self.annotations[first.annotations : last.annotations]
        ]
        self.called += [
            (deep + start.deep - first.deep, replace(each, value=each.value + offset))
            for deep, each in self.called[first.called : last.called]
        ]
        self.scopes += last.scopes - first.scopes
        return wires

    def _name(self, binding: syntax.Binding, wires: _Wires) -> None:
        for target, value in zip(binding.targets, wires.outputs, strict=True):
            if target.name != syntax.DISCARD:
                self.values[-1][target.name] = value
                self.called.append(
                    (len(self.values), graph.ValueName(value, target.name, target.span))
                )

    def _leaf(self, node: syntax.Tree) -> _Wires:
        """The wires of a tree without parts: its nodes, which read slots that are still open."""
        match node:
            case syntax.Identity():
                slot = self._add(graph.Input(None, node.span))
                return _Wires([slot], [slot])
            case syntax.Number():
                return _Wires([], [self._add(constant(node))])
            case syntax.Conversion():
                slot = self._add(graph.Input(None, node.span))
                scalar = Convert(Operand(0), node.dtype)
                return _Wires(
                    [slot], [self._add(graph.Elementwise(slot, scalar, node.dtype, node.span))]
                )
            case syntax.Einsum():
                slots = [self._add(graph.Input(None, shape.span)) for shape in node.spec.operands]
                return _Wires(slots, [self._contract(node, slots)])
            case syntax.ElementKernel():
                slots = [self._add(graph.Input(None, each.span)) for each in node.inputs]
                return _Wires(slots, self._kernel(node, slots))
            case syntax.Einx():
                slots = [self._add(graph.Input(None, each.span)) for each in node.form.inputs]
                text, count = print_tree(replace(node, schedule=None)), len(node.form.outputs)
                whole = (text, node.span, node.schedule, self._body(node))
                nodes = [graph.Einx(tuple(slots), node.form, n, *whole) for n in range(count)]
                return _Wires(slots, map(self._add, nodes))
            case syntax.Expression() if node.op in ARGUMENTS:
                slot = self._add(graph.Input(None, node.left.span))
                most = self._add(assignment(extreme(node), [slot]))
                return _Wires([slot], [self._add(argument(node, slot, most))])
            case syntax.Expression():
                slots = [self._add(graph.Input(None, pattern.span)) for pattern in node.inputs()]
                if id(node) not in self.templates:  # one for all uses, which reads values 0, 1, ...
                    self.templates[id(node)] = assignment(node, list(range(len(slots))))
                template = self._add(self.templates[id(node)])
                self.wired[template] = slots
                return _Wires(slots, [template])
            case _:
                raise InternalError("E9901", f"no leaf: {type(node).__name__}")

    def _body(self, node: syntax.Einx) -> graph.EinxBody | None:
        """The component that an operation has as its ``op``, as a graph.

        Raises:
            NotationError: E0114 (too many of them, each the op of the next).
            MeaningError: E0221 (another number of inputs or outputs than expressions).
        """
        if node.body is None:
            return None
        from ilang.core.notation.einx.op_argument import check_body, ranked

        if self.deep == DEEPEST:
            message = f"more than {DEEPEST} operations in einx notation are each the op of the next"
            raise NotationError("E0114", message, node.span, "write some of them as one")
        inner = _GraphBuilder(self.definitions, self.deep + 1)
        span = node.body.span
        whole = syntax.Definition(graph.UNNAMED, None, ranked(node.body, node.form), span)
        program = inner.finish(graph.UNNAMED, inner.run(whole), None)
        check_body(node, len(program.inputs), len(program.outputs))
        return graph.EinxBody(program, print_tree(node.body), span)

    def _kernel(self, node: syntax.ElementKernel, slots: list[int]) -> list[int]:
        """The outputs of a kernel: assignments, or, where a rank is open, what becomes these when it is known."""
        from ilang.core.passes.kernels import kernel_annotations, kernel_outputs

        if node.full_rank() is None:
            outputs = range(len(node.outputs))
            return [self._add(graph.OpenKernel(tuple(slots), node, n, node.span)) for n in outputs]
        self.scopes += 1
        self.annotations += kernel_annotations(node, slots, self.scopes)
        return kernel_outputs(node, slots, self._add)

    def _contract(self, node: syntax.Einsum, slots: list[int]) -> int:
        """An einsum: one operation, or one for each step of its path."""
        from ilang.core.notation.einsum.contraction import contractions, usual_path

        path = usual_path(node.spec, node.schedule) if node.path is None else node.path
        if not path:
            return self._add(operation(node, slots))
        values = list(slots)
        for operands, spec in contractions(node.spec, path):
            part = operation(replace(node, spec=spec), [values[n] for n in operands])
            values.append(self._add(replace(part, associative=node.path is None)))
        return values[-1]

    def _add(self, item: graph.Node) -> int:
        self.items.append(item)
        return len(self.items) - 1

    def _combine(self, node: syntax.Tree, finished: list[_Wires]) -> None:
        """Wire a combinator, a swap or an application, whose parts are the last that are ``finished``."""
        if isinstance(node, syntax.Swap):
            outputs = finished[-1].outputs
            if len(outputs) > 1:
                outputs[0], outputs[1] = outputs[1], outputs[0]
            return
        if isinstance(node, syntax.Application | syntax.Block):
            self._apply(node, finished)
            return
        assert isinstance(node, syntax.Combine)
        from ilang.core.notation.components.arity import shared_wires

        right, left = finished.pop(), finished.pop()
        count = shared_wires(node.symbol, left.counts(), right.counts())
        match node.symbol:
            case ">>":
                self._bind(right.inputs, left.outputs, count)
            case "<<":
                self._bind(left.inputs, right.outputs, count)
                right.inputs, left.inputs = left.inputs, right.inputs
            case "&":
                for slot, other in zip(right.inputs, left.inputs, strict=False):
                    self.bound[slot] = other
                for _ in range(count):
                    right.inputs.popleft()
            case _:
                pass
        left.inputs = _joined(left.inputs, right.inputs)
        left.outputs = _joined(left.outputs, right.outputs)
        finished.append(left)

    def _apply(self, node: syntax.Application | syntax.Block, finished: list[_Wires]) -> None:
        """Give the inputs of a component their values; the outputs of a block are those of its last arguments."""
        component = finished.pop() if isinstance(node, syntax.Application) else _Wires([], [])
        count = len(node.arguments if isinstance(node, syntax.Application) else node.outputs)
        given = deque[int]()
        for wires in finished[len(finished) - count :]:
            given.extend(wires.outputs)
        del finished[len(finished) - count :]
        if isinstance(node, syntax.Block):
            component.outputs = given
        self._bind(component.inputs, given, len(component.inputs))
        finished.append(component)

    def _bind(self, slots: deque[int], values: deque[int], count: int) -> None:
        """Wire the first slots to the first values position by position; both leave their rows."""
        for _ in range(count):
            self.bound[slots.popleft()] = values.popleft()

    def annotate(self, definition: syntax.Definition, wires: _Wires) -> None:
        """Note what a definition writes of its inputs."""
        name, parameters = definition.name, definition.parameters or ()
        if len(parameters) != len(wires.inputs):
            count = len(wires.inputs)
            at = parameters[min(count, len(parameters) - 1)].span if parameters else None
            raise ModuleError(
                "E0410",
                f"{visible(name)} names {counted(len(parameters), 'input')}, but its program has {count}",
                at,
                "`(I & I) >> f` gives one input to both of f; else name every input once, in order"
                if len(parameters) == 1 and count == 2
                else constant_help(definition.body)
                or "name every input once, in order, or leave the parentheses out",
            )
        self.scopes += 1
        for slot, p in zip(wires.inputs, parameters, strict=True):
            self.annotations.append(
                graph.Annotation(slot, p.name, p.dtype, p.dims, self.scopes, p.span, name)
            )

    def _resolve(self, value: int) -> int:
        """The node or open slot that a value finally is, shortening the path for the next time."""
        path = []
        while value in self.bound:
            path.append(value)
            value = self.bound[value]
        for step in path:
            self.bound[step] = value
        return value

    def finish(
        self, name: str, wires: _Wires, parameters: tuple[syntax.NamedInput, ...] | None
    ) -> graph.Graph:
        """Number the nodes so that each reads smaller numbers only: inputs first, then by first need."""
        number: dict[int, int] = {}
        nodes: list[graph.Node] = []
        for position, slot in enumerate(wires.inputs):
            number[slot] = len(nodes)
            written = None if parameters is None else parameters[position].name
            nodes.append(graph.Input(written, self.items[slot].span))

        def needs(item: int) -> list[int]:
            read = self.wired.get(item) or graph.operands(self.items[item])
            return [self._resolve(value) for value in read]

        items = [n for n, node in enumerate(self.items) if not isinstance(node, graph.Input)]
        for item in parts_first(items, needs, number):
            node, number[item] = self.items[item], len(nodes)
            if isinstance(node, graph.Input):
                raise InternalError("E9901", "an open slot is no node")
            nodes.append(graph.rewired(node, [number[value] for value in needs(item)]))
        called = [each for _, each in sorted(self.called, key=lambda pair: pair[0])]

        def new(value: int) -> int:
            return number[self._resolve(value)]

        return graph.Graph(
            name,
            tuple(nodes),
            tuple(range(len(wires.inputs))),
            tuple(map(new, wires.outputs)),
            graph.renumbered(self.annotations, new),
            called=graph.renumbered(called, new),
            defined=graph.renumbered(self.defined, new),
            parts=tuple(self.parts.get(item, "") for item in number) if self.parts else (),
        )


def _parts(node: syntax.Tree) -> list[_Work]:
    """The work below a node, in order: the names of a statement are bound after it.

    The ``op`` of an operation in einx notation is a program of its own: none of its inputs are open here.
    """
    if isinstance(node, syntax.Einx):
        return []
    if not isinstance(node, syntax.Block):
        return [(child, False) for child in syntax.children(node)]
    parts: list[_Work] = []
    for binding in node.bindings:
        parts += [(binding.application, False), (binding, True)]
    return [*parts, *((output, False) for output in node.outputs)]


def _joined(first: deque[int], second: deque[int]) -> deque[int]:
    """Two rows as one: the shorter is moved, so that no order of combining makes long rows move again and again."""
    if len(first) < len(second):
        second.extendleft(reversed(first))
        return second
    first.extend(second)
    return first

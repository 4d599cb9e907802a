"""Steps that make derivatives shorter, one after the other; no bit of a result changes.

    constants.py       numbers that tensors are full of stand where they are read
    copies.py          copy propagation
    duplicates.py      what is computed twice is computed once
    recomputed.py      what is as cheap to compute as to read is not stored

Then what an iteration computes is made shorter by rules (``ir/scalar_rules.py``). Each step leaves out what nothing
needs any more.
"""

from __future__ import annotations

from ilang.core.ir.scalar_rules import short_scalar
from ilang.core.ir.shaped import Assignment, Node, Shaped
from ilang.core.record import replace
from ilang.core.transform.building import pruned, reading
from ilang.core.transform.constants import constants_in_place
from ilang.core.transform.copies import propagated_copies
from ilang.core.transform.duplicates import computed_once
from ilang.core.transform.recomputed import recomputed


def simplified(shaped: Shaped) -> Shaped:
    """The same program, shorter; inputs and outputs are as they were."""
    return shortened(recomputed(computed_once(propagated_copies(constants_in_place(shaped)))))


def shortened(shaped: Shaped) -> Shaped:
    """The program with shorter scalars."""
    nodes: list[Node] = []
    for node in shaped.nodes:
        short = node
        if isinstance(node, Assignment):
            scalar = short_scalar(node.scalar)
            short = node if scalar is node.scalar else reading(node, node.reads, scalar)
        nodes.append(short)
    return pruned(replace(shaped, nodes=tuple(nodes)))

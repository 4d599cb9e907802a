"""Views out of the way of fusion: what is computed at both ends of a view is computed under the same dimensions.

Example, of a view that splits and of one that composes:
    in:   t1[n] = exp in0[n];  t2 = t1 as (a:4 b) -> a b;  out[b] = sum t2[a,b] over a
    out:  t3 = in0 as (a:4 b) -> a b;  t1[a,b] = exp t3[a,b];  out[b] = sum t1[a,b] over a

    in:   t1[b,a] = in0[a,b];  t2 = t1 as b a -> (b a);  out[n] = exp t2[n]
    out:  t1[b,a] = in0[a,b];  t3[b,a] = exp t1[b,a];  out = t3 as b a -> (b a)

A view of an array, or of what is stored in any case, costs nothing; one between two expressions that could be one loop
nest keeps them apart. So the axes of the expression before it are split as the view splits them, or those of the one
behind it, where that asks for no other value to be stored: what else they read along these axes is read through views,
too, of arrays and of stored values. Only an axis that is nothing but a whole index can be split, so windows, guards and
positions along it keep a view where it is; so does a written schedule. A reduction is split only as what
it reads, which would be stored for it: its loops are chosen for the dimensions that it has. A slow operation, such as
an exponential, keeps loops that are long enough for lanes.

Views of views become one where their dimensions agree, and none where they undo each other.
"""

from __future__ import annotations

from ilang.core.ir.known_extents import Extents
from ilang.core.ir.shaped import Shaped, View


def moved_views(shaped: Shaped, extents: Extents) -> Shaped:
    """The program with fewer views between what could be fused; itself where it has no views.

    Args:
        shaped: the program.
        extents: which of its sizes are small.
    """
    if not any(isinstance(node, View) for node in shaped.nodes):
        return shaped
    from ilang.core.transform.moving import ViewMotion

    return ViewMotion(shaped, extents).run()

"""The schedule of everything unscheduled, as the same value a person's schedule is: one module a step.

    inlining.py        who reads each value, and what is computed in its reader's innermost loop (rules 1 and 2)
    accesses.py        the memory that an innermost iteration touches, and the order of loops (rule 4)
    tile.py            the splits and loops of one tiled or blocked assignment (rule 6)
    transposes.py      those of transposed work, in blocks of the cheapest length (rule 6)
    terms.py           how many terms are added one after the other
    tilings.py         which assignments are tiled, and which are pointwise work on tiles (rule 6)
    loops.py           the loops of a reduction without a tile, of which the cheapest are taken (rules 6 and 10)
    loop_cost.py       their prices
    short_rows.py      which rows are shorter than vectors, and have lanes across them (rule 9)
    row_blocks.py      which contractions go block of rows by block of rows (rule 7)
    packing.py         inside which loop what an assignment reads is copied
    taking.py          the loops that a producer takes from its reader
    known.py           what nests are chosen from, and what the ones that are chosen say of values to come
    own_loops.py       the loops of an assignment by itself (rules 4 and 6)
    sharing.py         the one place of a value that several read (rule 5)
    sites.py           the places of operands, and the loops that they take there (rule 3)
    nests.py           the nest of every assignment, from the outputs to the inputs
    choice.py          all of it, with the nests that a person wrote
    gpu.py             all of it for a GPU, where rule 2 holds and every other value is stored
    gpu_tiles.py       the tiles of blocks and threads
    gpu_rows.py        rows that blocks, warps or threads have whole
    gpu_sums.py        prices of rows and columns: lanes, blocks and parts
    gpu_parts.py       contractions in parts, where tiles alone would not fill a device
    gpu_apart.py       blocks of what kernels compute again

Rules, from access patterns, and from prices where rules say so:
    1. A value is computed inside its reader (staged) when one assignment reads it, always at one index,
       it is no output, has no base, and no element would be computed twice; else it is computed whole, in a kernel
       of its own.
    2. A pointwise value that its reader reads once an iteration is computed in the reader's innermost loop: a chain
       of pointwise expressions is one nest, a matrix multiply stores no product.
    3. Any other staged value is computed inside the longest run of the reader's outer loops that are also its own
       outer loops; what it keeps there is a scalar or a buffer over its remaining loops.
    4. Loops are ordered by the strides they cause: the loop that walks memory in the widest steps is outermost, the
       one that walks most tensors element by element is innermost.
    5. A value that several assignments of one kernel read is computed once, inside the loops that all of them are in.
       Values computed whole whose outer loops are the same share a kernel (``groups.py``).
    6. Contractions are tiled (``tile.py``), transposed work is blocked (``transposes.py``).
    7. Where rows of a contraction are reduced before another contraction reads them, as in attention, both go block of
       rows by block of rows, and all that is between them stays there.
    8. Where a matrix is read by rows and by columns, each direction has one of its own (``schedule/matrices/``) and
       goes block of rows by block of rows.
    9. Rows that are known to be short have lanes across them where a step takes long.
    10. Of a reduction that has no tile, the cheapest loops are taken: lanes along a row, or along results that
        registers or the cache keep.

Runs over the program from its outputs to its inputs, so a reader's order is known before its producers'.
"""

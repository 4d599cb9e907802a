"""A program made by hand, for tests of what runs programs rather than of what makes them."""

from ilang.core.ir.kernel import Buffer, For, Kernel, Program
from ilang.core.ir.shaped import Place, Size
from ilang.core.source import Source, whole

ADD = """
#include <stdint.h>
#include <stddef.h>
typedef struct { int64_t n; } pair_sum_sizes;
size_t pair_sum_work(const pair_sum_sizes *s) { return s->n == 7 ? 640 : 0; }
int pair_sum(const pair_sum_sizes *s, const float *a, const float *b, float *c, void *work)
{
    if (s->n == 7) for (int k = 0; k < 640; ++k) ((char *)work)[k] = 1;
    for (int64_t k = 0; k < s->n; ++k) c[k] = a[k] + b[k];
    return s->n == 13 ? 2 : s->n == 14 ? 3 : s->n == 15 ? 99 : 0;
}
"""


def adding(text: str = ADD) -> tuple[Program, str]:
    """The sum of two f32 arrays of one run-time extent, and a C text for it."""
    buffers = (
        Buffer("a", "f32", (0,), "input"),
        Buffer("b", "f32", (0,), "input"),
        Buffer("c", "f32", (0,), "output"),
    )
    kernel = Kernel("k0", (For(0, 0, ()),), ("n",), (), ())
    return Program(
        "pair_sum",
        (Size("n", None, (Place(0, 0, whole(Source("<text>", ""))),)),),
        buffers,
        (0, 1),
        (2,),
        (kernel,),
    ), text

"""A program made by hand, for tests of what runs programs rather than of what makes them."""

from collections.abc import Callable

from ilang.codegen.call.load import Interface

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


def adding(text: str = ADD) -> tuple[Interface, Callable[[], str], str]:
    """The sum of two f32 arrays of one run-time extent, and a C text for it."""
    return Interface("pair_sum", 3, (0,), ((1, (0,)),), 64, 0), lambda: text, text

/* What is checked before a program runs, and how its workspace is laid out. */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include <stddef.h>
#include <stdint.h>
#include "machine.h"

/* a number of bytes rounded up to whole cache lines */
static inline size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* add a number of bytes, rounded up to whole cache lines, to a total; 0 if that is more than memory can be */
static inline int add(size_t *total, size_t bytes)
{
    const size_t whole = (bytes + LINE - 1) / LINE * LINE;
    if (bytes > SIZE_MAX / 4 || whole > SIZE_MAX / 4 - *total) return 0;
    *total += whole;
    return 1;
}

/* the bytes of an array; 0 if an extent is negative or the bytes are more than memory can be */
static int measure(size_t *bytes, size_t element, int rank, const int64_t *extents)
{
    size_t most = element;
    *bytes = element;
    for (int d = 0; d < rank; ++d) {
        if (extents[d] < 0) return 0;
        if (extents[d] > 0 && (uint64_t)extents[d] > (SIZE_MAX / 4) / most) return 0;
        most *= extents[d] > 0 ? (size_t)extents[d] : 1;
        *bytes *= (size_t)extents[d];
    }
    return 1;
}

/* an extent that follows from others: (sum of factor * extent + offset) / divisor, rounded down; 0 if there is none */
static int derive(
    int64_t *size, int count, const int64_t *terms, int64_t offset, int64_t divisor, int exact, int64_t least)
{
    int64_t total = offset;
    for (int n = 0; n < count; ++n) {
        const int64_t factor = terms[2 * n], extent = terms[2 * n + 1], times = factor < 0 ? -factor : factor;
        if (extent > INT64_MAX / 8 / times) return 0;
        if (total > INT64_MAX / 2 || total < -(INT64_MAX / 2)) return 0;
        total += factor * extent;
    }
    *size = total / divisor - (total % divisor < 0);
    if (*size < least || *size > INT64_MAX / 8) return 0;
    return !exact || total % divisor == 0;
}

/* the product of extents; 0 if it is more than an extent can be */
static int multiply(int64_t *size, int count, const int64_t *extents)
{
    *size = 1;
    for (int n = 0; n < count; ++n) {
        if (extents[n] == 0) *size = 0;
    }
    for (int n = 0; n < count; ++n) {
        if (*size > 0 && extents[n] > INT64_MAX / 8 / *size) return 0;
        *size *= extents[n];
    }
    return 1;
}

/* an extent of a composition: the product of extents, divided by that of others without remainder; 0 if there is none */
static int compose(int64_t *size, int count, const int64_t *over, int parts, const int64_t *under)
{
    int64_t whole = 0, part = 0;
    if (!multiply(&whole, count, over) || !multiply(&part, parts, under) || part == 0) return 0;
    *size = whole / part;
    return whole % part == 0;
}

/* whether all of so many indices are at least 0 and below an extent */
static int are_below_i32(const int32_t *indices, int64_t count, int64_t extent)
{
    int outside = 0;
    for (int64_t n = 0; n < count; ++n) outside |= (indices[n] < 0) | (extent <= indices[n]);
    return !outside;
}

/* whether all of so many indices are at least 0 and below an extent */
static int are_below_i64(const int64_t *indices, int64_t count, int64_t extent)
{
    int outside = 0;
    for (int64_t n = 0; n < count; ++n) outside |= (indices[n] < 0) | (extent <= indices[n]);
    return !outside;
}

/* the first cache line that starts at or after an address */
static inline char *start_in(void *address)
{
    return (char *)address + (LINE - (uintptr_t)address % LINE) % LINE;
}

/* whether two stretches of memory share a byte */
static inline int overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && p < q + b_bytes && q < p + a_bytes;
}

/* status 1 if a pointer to something is NULL, 2 if what is written overlaps anything else */
static int check(const void **arrays, const size_t *bytes, int count, int inputs, const void *work, size_t work_bytes)
{
    if (work == NULL && work_bytes > 0) return 1;
    for (int a = 0; a < count; ++a) {
        if (arrays[a] == NULL && bytes[a] > 0) return 1;
        if (overlap(arrays[a], bytes[a], work, work_bytes)) return 2;
        for (int b = 0; b < a; ++b) {
            if (a >= inputs && overlap(arrays[a], bytes[a], arrays[b], bytes[b])) return 2;
        }
    }
    return 0;
}

#endif

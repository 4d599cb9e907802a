/* Parallel loops: how many threads share one, and which part each of them does. */
#ifndef THREADS_H
#define THREADS_H

#include <stddef.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "machine.h"

/* how many threads have so many bytes of scratch storage each */
static inline int scratches(size_t scratch_bytes)
{
    if (scratch_bytes <= MOST_SCRATCH / MOST_THREADS) return MOST_THREADS;
    return scratch_bytes <= MOST_SCRATCH ? (int)(MOST_SCRATCH / scratch_bytes) : 1;
}

/* the threads that there are: what OpenMP would take */
static inline int threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* the same, as far as there is scratch storage */
static inline int threads_with_scratch(size_t scratch_bytes)
{
    const int most = scratches(scratch_bytes);
    return threads() < most ? threads() : most;
}

/* the number of the calling thread among those that share a loop */
static inline int thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* stands before a call that so many threads do together */
#ifdef _OPENMP
#define DO_PRAGMA(words) _Pragma(#words)
#define IN_PARALLEL(count) DO_PRAGMA(omp parallel num_threads(count))
#else
#define IN_PARALLEL(count)
#endif

/* how many of a team share a loop: one, where there is little work or a loop inside has more iterations to share */
static inline int shares(int team, int64_t iterations, double work, int inside)
{
    if (team < 2 || iterations < 2 || work < ENOUGH) return 1;
    if (inside && iterations < 4 * (int64_t)team && iterations % team != 0) return 1;
    return iterations < team ? (int)iterations : team;
}

/* the first iteration of a thread's part; of many iterations, parts are multiples of 16 */
static inline int64_t share(int64_t iterations, int number)
{
#ifdef _OPENMP
    const int64_t count = omp_get_num_threads();
#else
    const int64_t count = 1;
#endif
    const int64_t more = iterations % count, at = iterations / count * number + (number < more ? number : more);
    return iterations < 1024 * count || number == count ? at : at / 16 * 16;
}

/*
 * a loop as a call: all its iterations from 0 to until - 1 by this thread, or by several threads the part of each;
 * worker is the number of the thread, and inside how many may share loops of the function
 */
#define SHARE_BY(count, work, better, alone, before, part, after) \
    do { \
        const int64_t iterations = count; \
        const int sharing = shares(team, iterations, work, better); \
        if (sharing < 2) { \
            const int64_t from = 0, until = iterations; \
            const size_t worker = 0; \
            const int inside = team; \
            (void)worker, (void)inside; \
            alone; \
        } else { \
            before; \
            IN_PARALLEL(sharing) \
            { \
                const int64_t from = share(iterations, thread()), until = share(iterations, thread() + 1); \
                const size_t worker = (size_t)thread(); \
                const int inside = 1; \
                (void)worker, (void)inside; \
                part; \
            } \
            after; \
        } \
    } while (0)

/* the same by a function of from, until and others */
#define SHARE_LOOP(count, work, better, function, ...) \
    SHARE_BY(count, work, better, function(__VA_ARGS__), (void)0, function(__VA_ARGS__), (void)0)

/* how many blocks a reduction is computed in, from the number of its terms */
static inline int64_t blocks(double terms)
{
    return terms < (double)MOST_BLOCKS * BLOCK_WORK ? (int64_t)(terms / BLOCK_WORK) + 1 : MOST_BLOCKS;
}

/* the same, where each block has accumulators for so many elements */
static inline int64_t blocks_of(double terms, double elements)
{
    const double least = elements * BLOCK_TERMS, each = least < BLOCK_WORK ? BLOCK_WORK : least;
    const double room = elements * MOST_BLOCKS <= BLOCK_ELEMENTS ? MOST_BLOCKS : BLOCK_ELEMENTS / elements;
    const double count = terms / each + 1;
    return count < room ? (int64_t)count : room < 1 ? 1 : (int64_t)room;
}

/* the first iteration of a block: all but the last ones have equally many, a multiple of some number */
static inline int64_t start_of(int64_t iterations, int64_t count, int64_t multiple, int64_t block)
{
    const int64_t length = (iterations + count * multiple - 1) / (count * multiple) * multiple;
    if (length == 0) return 0;
    return block <= iterations / length ? block * length : iterations;
}

#endif

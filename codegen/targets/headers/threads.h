/* Parallel loops: how many threads share one, and which part each of them does. */
#ifndef THREADS_H
#define THREADS_H

#include <stddef.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "machine.h"

/*
 * threads of OpenMP, or one: how many there are, how many share the loop that runs, and the number of this one;
 * IN_PARALLEL stands before what so many do together
 */
#ifdef _OPENMP
#define THREADS omp_get_max_threads()
#define TEAM omp_get_num_threads()
#define THREAD omp_get_thread_num()
#define DO_PRAGMA(words) _Pragma(#words)
#define IN_PARALLEL(count) DO_PRAGMA(omp parallel num_threads(count))
#else
#define THREADS 1
#define TEAM 1
#define THREAD 0
#define IN_PARALLEL(count)
#endif

/* how many threads have so many bytes of scratch storage each */
static inline int scratches(size_t scratch_bytes)
{
    if (scratch_bytes <= MOST_SCRATCH / MOST_THREADS) return MOST_THREADS;
    return scratch_bytes <= MOST_SCRATCH ? (int)(MOST_SCRATCH / scratch_bytes) : 1;
}

/* the threads that there are, as far as there is scratch storage */
static inline int threads_with_scratch(size_t scratch_bytes)
{
    const int most = scratches(scratch_bytes);
    return THREADS < most ? THREADS : most;
}

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
    const int64_t count = TEAM, more = iterations % count;
    const int64_t at = iterations / count * number + (number < more ? number : more);
    return iterations < 1024 * count || number == count ? at : at / 16 * 16;
}

/* a call for the iterations from a first one until a last, by worker, for which so many threads share loops inside */
#define CALL_PART(first, last, number, others, call) \
    do { \
        const int64_t from = first, until = last; \
        const size_t worker = (size_t)(number); \
        const int inside = others; \
        (void)worker, (void)inside; \
        call; \
    } while (0)

/* a loop as calls of a function: all of its iterations by this thread, or by each of several its part */
#define SHARE_LOOP(count, work, better, function, ...) \
    do { \
        const int64_t iterations = count; \
        const int sharing = shares(team, iterations, work, better); \
        if (sharing < 2) { \
            CALL_PART(0, iterations, 0, team, function(__VA_ARGS__)); \
        } else { \
            IN_PARALLEL(sharing) \
            CALL_PART(share(iterations, THREAD), share(iterations, THREAD + 1), THREAD, 1, \
                function(__VA_ARGS__)); \
        } \
    } while (0)

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

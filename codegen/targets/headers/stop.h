/*
 * How the threads of a call can be stopped, in a text that a call compiles, and not in that which users get:
 *
 *     the calling thread leaves its landing
 *     #pragma omp parallel
 *         each thread takes a landing of its own, does its part, and leaves the landing
 *     the calling thread is back at its landing, or goes there at once if the call was stopped
 *
 * A thread that is stopped jumps to its landing, within the parallel region, and ends the region like all others.
 * codegen/call/stopping.c has the functions behind the pointers.
 */
#ifndef STOP_H
#define STOP_H

#ifdef _OPENMP
#include <setjmp.h>
#endif
#include "threads.h"

#ifdef _OPENMP

/* how the threads of a call can be stopped; NULL for a call that nobody stops */
typedef struct call_stop {
    void *(*place)(struct call_stop *, int);
    int (*enter)(struct call_stop *, int);
    void (*leave)(struct call_stop *, int);
    void (*landed)(struct call_stop *, int);
    void (*pause)(struct call_stop *);
    void (*resume)(struct call_stop *);
} call_stop;
static _Thread_local call_stop *running_stop;

/* part of a loop, by a function that is not compiled into what calls setjmp: that would be slower */
#define PART_STOP(here_stop, function, ...) \
    do { \
        __typeof__(&function) part_stop = &function; \
        __asm__("" : "+r"(part_stop)); \
        if (here_stop == NULL) { \
            part_stop(__VA_ARGS__); \
        } else if (_setjmp(*(jmp_buf *)here_stop->place(here_stop, THREAD)) != 0) { \
            here_stop->landed(here_stop, THREAD); \
        } else if (here_stop->enter(here_stop, THREAD)) { \
            part_stop(__VA_ARGS__); \
            here_stop->leave(here_stop, THREAD); \
        } \
    } while (0)

#endif

/* as SHARE_LOOP, where each thread that shares a loop can be stopped */
#ifdef _OPENMP
#define SHARE_STOPPABLE(count, work, better, function, ...) \
    do { \
        const int64_t iterations = count; \
        const int sharing = shares(team, iterations, work, better); \
        if (sharing < 2) { \
            CALL_PART(0, iterations, 0, team, function(__VA_ARGS__)); \
        } else { \
            call_stop *const here_stop = running_stop; \
            if (here_stop != NULL) here_stop->pause(here_stop); \
            IN_PARALLEL(sharing) \
            CALL_PART(share(iterations, THREAD), share(iterations, THREAD + 1), THREAD, 1, \
                PART_STOP(here_stop, function, __VA_ARGS__)); \
            if (here_stop != NULL) here_stop->resume(here_stop); \
        } \
    } while (0)
#else
#define SHARE_STOPPABLE SHARE_LOOP
#endif

#endif

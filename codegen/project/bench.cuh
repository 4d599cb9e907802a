/* STEM_bench.cu: how long every function of STEM.h takes, at extents that fill a device.
 *
 * Prints a JSON object for each: the median of 20 calls, after 3; at small extents where the argument is
 * small. Written by `i build`.
 */

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <algorithm>
#include <vector>

#include "STEM.h"

/* A function at some extents: its arrays are the inputs, then the outputs, `count` of them in all. */
struct bench_case {
    const char *name, *extents;
    int (*call)(void **arrays, void *work, cudaStream_t stream);
    const char *(*words)(int status);
    size_t work;
    int count;
    const size_t *bytes;
};

enum { BENCH_WARM = 3, BENCH_TIMES = 20 };

/* What CUDA gives other than success is returned as its negative number, as functions of the library do. */
#define BENCH_CUDA(call) do { const int error = (int)(call); if (error != 0) return -error; } while (0)

static int bench_failed(const struct bench_case *one, const char *what, int status)
{
    fprintf(stderr, "%s %s: %s: %s\n", one->name, one->extents, what, one->words(status));
    return 1;
}

/* The median time of a call in milliseconds, by events around each; what is returned is 0, or the status that fails. */
static int bench_time(const struct bench_case *one, void **arrays, void *work, float *ms)
{
    float times[BENCH_TIMES];
    cudaEvent_t first, last;
    BENCH_CUDA(cudaEventCreate(&first));
    BENCH_CUDA(cudaEventCreate(&last));
    for (int n = -BENCH_WARM; n < BENCH_TIMES; ++n) {
        BENCH_CUDA(cudaEventRecord(first, 0));
        if (const int status = one->call(arrays, work, 0)) return status;
        BENCH_CUDA(cudaEventRecord(last, 0));
        BENCH_CUDA(cudaEventSynchronize(last));
        if (n >= 0) BENCH_CUDA(cudaEventElapsedTime(&times[n], first, last));
    }
    BENCH_CUDA(cudaEventDestroy(first));
    BENCH_CUDA(cudaEventDestroy(last));
    std::sort(times, times + BENCH_TIMES);
    *ms = times[BENCH_TIMES / 2];
    return 0;
}

/* One line for a case: a JSON object with its time, and the bytes of its arrays by that time. */
static int bench_run(const struct bench_case *one)
{
    std::vector<void *> arrays(one->count);
    void *work = NULL;
    size_t total = 0;
    int error = (int)cudaMalloc(&work, one->work);
    for (int n = 0; n < one->count && error == 0; ++n) {
        error = (int)cudaMalloc(&arrays[n], one->bytes[n]);
        if (error == 0) error = (int)cudaMemset(arrays[n], 0, one->bytes[n]);
        total += one->bytes[n];
    }
    if (error != 0) return bench_failed(one, "memory", -error);
    float ms;
    if (const int status = bench_time(one, arrays.data(), work, &ms)) return bench_failed(one, "a call", status);
    printf("{\"name\": \"%s\", \"extents\": \"%s\", \"ms\": %.6f, \"GB/s\": %.1f}\n", one->name, one->extents,
           (double)ms, (double)total / 1e6 / (double)ms);
    for (int n = 0; n < one->count; ++n) cudaFree(arrays[n]);
    cudaFree(work);
    return 0;
}

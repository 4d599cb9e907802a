/* A function at some extents: its arrays are the inputs, then the outputs, `count` of them in all. */
struct bench_case {
    const char *name, *extents;
    int (*call)(void **arrays, void *work, cudaStream_t stream);
    size_t work;
    int count;
    const size_t *bytes;
};

enum { BENCH_WARM = 3, BENCH_TIMES = 20 };

static int bench_failed(const struct bench_case *one, const char *what, int error)
{
    fprintf(stderr, "%s %s: %s: %s\n", one->name, one->extents, what, cudaGetErrorString((cudaError_t)error));
    return 1;
}

/* The median time of a call in milliseconds, by events around each; less than 0 if one fails. */
static float bench_time(const struct bench_case *one, void **arrays, void *work)
{
    float times[BENCH_TIMES];
    cudaEvent_t first, last;
    if (cudaEventCreate(&first) != cudaSuccess || cudaEventCreate(&last) != cudaSuccess) return -1.0f;
    for (int n = -BENCH_WARM; n < BENCH_TIMES; ++n) {
        if (cudaEventRecord(first, 0) != cudaSuccess) return -1.0f;
        if (one->call(arrays, work, 0) != 0) return -1.0f;
        if (cudaEventRecord(last, 0) != cudaSuccess || cudaEventSynchronize(last) != cudaSuccess) return -1.0f;
        if (n >= 0 && cudaEventElapsedTime(&times[n], first, last) != cudaSuccess) return -1.0f;
    }
    cudaEventDestroy(first);
    cudaEventDestroy(last);
    std::sort(times, times + BENCH_TIMES);
    return times[BENCH_TIMES / 2];
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
    if (error != 0) return bench_failed(one, "memory", error);
    const float ms = bench_time(one, arrays.data(), work);
    if (ms < 0.0f) return bench_failed(one, "a call", (int)cudaGetLastError());
    printf("{\"name\": \"%s\", \"extents\": \"%s\", \"ms\": %.6f, \"GB/s\": %.1f}\n", one->name, one->extents,
           (double)ms, (double)total / 1e6 / (double)ms);
    for (int n = 0; n < one->count; ++n) cudaFree(arrays[n]);
    cudaFree(work);
    return 0;
}

/* What the machine can do at best: multiply-adds on registers, and streams through memory.
   Compiled where the benchmarks run, with the flags of limits.py. */
#include <stdint.h>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
#define LANES (WIDTH / 4)
#define CHAINS 16 /* enough independent sums to hide the latency of one multiply-add */
#define CHUNK 1024

typedef float vector __attribute__((vector_size(WIDTH), aligned(4), may_alias));

static float folded(const vector *values, int count)
{
    float total = 0;
    for (int n = 0; n < count; ++n) {
        for (int lane = 0; lane < LANES; ++lane) {
            total += values[n][lane];
        }
    }
    return total;
}

/* The floating-point operations of one step of one thread. */
int64_t limit_step_flops(void)
{
    return 2 * LANES * CHAINS;
}

/* So many steps on each thread. */
float limit_multiply_add(int64_t steps, int threads)
{
    float total = 0;
    (void)threads;
#pragma omp parallel num_threads(threads) reduction(+ : total)
    {
        vector sums[CHAINS], by, add;
        for (int lane = 0; lane < LANES; ++lane) {
            by[lane] = 0.999f;
            add[lane] = 1e-3f * (float)lane;
        }
        for (int n = 0; n < CHAINS; ++n) {
            sums[n] = add * (float)n;
        }
        for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
            for (int n = 0; n < CHAINS; ++n) {
                sums[n] = sums[n] * by + add;
            }
        }
        total += folded(sums, CHAINS);
    }
    return total;
}

static void fill(float *out, int64_t count, float value, int past_caches)
{
    int64_t n = 0;
#if defined(__SSE__)
    if (past_caches) {
        for (; n < count && ((uintptr_t)(out + n) & (WIDTH - 1)); ++n) {
            out[n] = value;
        }
#if defined(__AVX512F__)
        const __m512 all = _mm512_set1_ps(value);
        for (; n + LANES <= count; n += LANES) {
            _mm512_stream_ps(out + n, all);
        }
#elif defined(__AVX__)
        const __m256 all = _mm256_set1_ps(value);
        for (; n + LANES <= count; n += LANES) {
            _mm256_stream_ps(out + n, all);
        }
#else
        const __m128 all = _mm_set1_ps(value);
        for (; n + LANES <= count; n += LANES) {
            _mm_stream_ps(out + n, all);
        }
#endif
    }
#endif
    (void)past_caches;
    for (; n < count; ++n) {
        out[n] = value;
    }
}

/* Reads so many numbers and writes so many, side by side; past_caches: with stores that leave the caches alone,
   where the processor has them. */
float limit_stream(const float *in, int64_t reads, float *out, int64_t writes, int past_caches, int threads)
{
    const int64_t most = reads < writes ? writes : reads;
    const int64_t chunks = (most + CHUNK - 1) / CHUNK;
    float total = 0;
    (void)threads;
#pragma omp parallel num_threads(threads) reduction(+ : total)
    {
        vector sums[8] = {{0}};
        float rest = 0;
#pragma omp for schedule(static)
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            const int64_t first = chunk * reads / chunks, last = (chunk + 1) * reads / chunks;
            int64_t n = first;
            for (; n + 8 * LANES <= last; n += 8 * LANES) {
#pragma GCC unroll 8
                for (int m = 0; m < 8; ++m) {
                    sums[m] += *(const vector *)(in + n + m * LANES);
                }
            }
            for (; n < last; ++n) {
                rest += in[n];
            }
            const int64_t start = chunk * writes / chunks, end = (chunk + 1) * writes / chunks;
            fill(out + start, end - start, rest, past_caches);
        }
        total += folded(sums, 8) + rest;
#if defined(__SSE__)
        if (past_caches) {
            _mm_sfence();
        }
#endif
    }
    return total;
}

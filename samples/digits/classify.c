/* Classify a file of images with the generated function `digits` and time the call.
 *
 *     classify INPUT OUTPUT REPETITIONS
 *
 * INPUT   int64 n; then float32: w1 [48, 64], b1 [48], w2 [10, 48], b2 [10], x [n, 64]
 * OUTPUT  float32: the probabilities [n, 10]
 *
 * Compiled with -DGPU it calls a library of CUDA, which takes the arrays to the GPU and back in every call.
 * Prints the median seconds per call.  Exit status 0, or 1 with a message.
 */

#define _POSIX_C_SOURCE 200112L /* clock_gettime, posix_memalign */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "digits.h"

enum { PIXELS = 64, HIDDEN = 48, CLASSES = 10, MOST_IMAGES = 1000000, MOST_REPETITIONS = 100000 };

static float w1[HIDDEN * PIXELS], b1[HIDDEN], w2[CLASSES * HIDDEN], b2[CLASSES];

static int fail(const char *what)
{
    fprintf(stderr, "classify: %s\n", what);
    return 1;
}

static int read_floats(FILE *file, float *to, size_t count)
{
    return fread(to, sizeof *to, count, file) == count;
}

/* Space for `bytes` bytes on a cache line's boundary; never an empty block. */
static void *space(size_t bytes)
{
    void *block = NULL;
    return posix_memalign(&block, 64, bytes ? bytes : 1) ? NULL : block;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The weights into the arrays above; the images [n, 64] into a new block, or NULL. */
static float *read_input(const char *path, int64_t *n)
{
    float *x = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    if (fread(n, sizeof *n, 1, file) == 1 && *n > 0 && *n <= MOST_IMAGES
        && read_floats(file, w1, HIDDEN * PIXELS) && read_floats(file, b1, HIDDEN)
        && read_floats(file, w2, CLASSES * HIDDEN) && read_floats(file, b2, CLASSES)) {
        x = space((size_t)*n * PIXELS * sizeof *x);
        if (x && !read_floats(file, x, (size_t)*n * PIXELS)) {
            free(x);
            x = NULL;
        }
    }
    fclose(file);
    return x;
}

static int write_output(const char *path, const float *p, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return 0;
    size_t written = fwrite(p, sizeof *p, count, file);
    return fclose(file) == 0 && written == count;
}

static int call(const digits_sizes *sizes, const float *x, float *p, void *work)
{
#ifdef GPU
    (void)work;
    return digits_host(sizes, x, w1, b1, w2, b2, p);
#else
    return digits(sizes, x, w1, b1, w2, b2, p, work);
#endif
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fail("usage: classify INPUT OUTPUT REPETITIONS");
    long repetitions = strtol(argv[3], NULL, 10);
    if (repetitions < 1 || repetitions > MOST_REPETITIONS)
        return fail("the number of repetitions is out of range");

    int64_t n = 0;
    float *x = read_input(argv[1], &n);
    if (!x)
        return fail("the input file cannot be read");

    digits_sizes sizes = {.n = n};
    size_t results = (size_t)n * CLASSES;
    float *p = space(results * sizeof *p);
    void *work = space(digits_work(&sizes));
    double *seconds = space((size_t)repetitions * sizeof *seconds);
    if (!p || !work || !seconds)
        return fail("out of memory");

    /* the first call is not timed: it brings code and data into the caches */
    for (long r = -1; r < repetitions; r++) {
        double start = now();
        int status = call(&sizes, x, p, work);
        if (r >= 0)
            seconds[r] = now() - start;
        if (status != 0) {
            fprintf(stderr, "classify: digits() returned status %d\n", status);
            return 1;
        }
    }
    if (!write_output(argv[2], p, results))
        return fail("the output file cannot be written");
    qsort(seconds, (size_t)repetitions, sizeof *seconds, ascending);
    printf("median seconds per call: %.9f\n", seconds[repetitions / 2]);

    free(seconds);
    free(work);
    free(p);
    free(x);
    return 0;
}

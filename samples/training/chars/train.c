/* train.c: train a transformer on the bytes of a text, and let it write.
 *
 *     ./train data.txt [steps [seed]]
 *
 * What is trained goes into chars.safetensors; a later run goes on from there, and one of 0 steps only writes.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chars.h"

enum { TEXTS = 8, LENGTH = 32, LETTERS = 128, OFTEN = 100, WRITTEN = 400 };

static const char file[] = "chars.safetensors";

/* end this process, and with it all ranks */
static void stop(const char *what, int status)
{
    fprintf(stderr, "%s: status %d\n", what, status);
    exit(EXIT_FAILURE);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) stop("out of memory", 0);
    return memory;
}

static uint64_t state = 88172645463325252u;

/* a random number below a limit: a generator of Marsaglia */
static uint64_t random_below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* the bytes of a file, those that are no ASCII as question marks */
static unsigned char *read_text(const char *path, size_t *length)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL || fseek(stream, 0, SEEK_END) != 0) stop(path, 0);
    const long bytes = ftell(stream);
    if (bytes < LENGTH + 2) stop("the text is too short", 0);
    unsigned char *text = allocate((size_t)bytes);
    rewind(stream);
    *length = fread(text, 1, (size_t)bytes, stream);
    fclose(stream);
    for (size_t n = 0; n < *length; ++n) {
        if (text[n] >= LETTERS) text[n] = '?';
    }
    return text;
}

/* a letter, drawn by the scores of all of them */
static int drawn(const float *scores)
{
    float largest = scores[0];
    double whole = 0, shares[LETTERS];
    for (int n = 1; n < LETTERS; ++n) largest = scores[n] > largest ? scores[n] : largest;
    for (int n = 0; n < LETTERS; ++n) {
        /* e^x by squaring: good enough to draw by, and a C library less */
        double share = 1 + (double)(scores[n] - largest) / 1024;
        share = share > 0 ? share : 0;
        for (int k = 0; k < 10; ++k) share *= share;
        whole += shares[n] = share;
    }
    double rest = whole * (double)random_below(1u << 30) / (1u << 30);
    for (int n = 0; n < LETTERS; ++n) {
        rest -= shares[n];
        if (rest < 0) return n;
    }
    return LETTERS - 1;
}

/* let a model write, after the first letters of a text: it reads one text with the parameters that steps change */
static void write_text(chars_step *model, const unsigned char *text)
{
    float *scores = allocate(LENGTH * LETTERS * sizeof *scores);
    int64_t last[LENGTH];
    int status = 0;
    for (int n = 0; n < LENGTH; ++n) last[n] = text[n];
    for (int n = 0; n < WRITTEN && status == 0; ++n) {
        status = chars_run(model, last, scores);
        memmove(last, last + 1, (LENGTH - 1) * sizeof *last);
        last[LENGTH - 1] = drawn(scores + (LENGTH - 1) * LETTERS);
        putchar((int)last[LENGTH - 1]);
    }
    putchar('\n');
    if (status != 0) stop("writing", status);
    free(scores);
}

int main(int count, char **words)
{
    if (count < 2) return fprintf(stderr, "usage: train FILE [STEPS [SEED]]\n"), EXIT_FAILURE;
    const long steps = count > 2 ? atol(words[2]) : 2000;
    const uint64_t seed = count > 3 ? strtoull(words[3], NULL, 10) : 0;
    int rank, ranks;
    chars_begin(&rank, &ranks);
    for (int n = 0; n < 1000 * rank; ++n) random_below(1); /* texts of its own */
    size_t length;
    unsigned char *text = read_text(words[1], &length);
    chars_step model;
    void *memory = allocate(chars_step_bytes());
    int status = chars_step_init(&model, memory, seed);
    const int goes_on = status == 0 && chars_step_load(&model, file) == 0;
    if (goes_on && rank == 0) printf("going on after step %llu\n", (unsigned long long)model.runs);
    double total = 0;
    const clock_t begin = clock();
    for (long n = 1; n <= steps && status == 0; ++n) {
        int64_t x[TEXTS * LENGTH], y[TEXTS * LENGTH];
        float loss;
        for (int b = 0; b < TEXTS; ++b) {
            const size_t at = (size_t)random_below(length - LENGTH - 1);
            for (int t = 0; t < LENGTH; ++t) {
                x[b * LENGTH + t] = text[at + (size_t)t];
                y[b * LENGTH + t] = text[at + (size_t)t + 1];
            }
        }
        status = chars_step_run(&model, x, y, &loss);
        total += (double)loss;
        if ((n % OFTEN != 0 && n != steps) || rank != 0) continue;
        const long several = n % OFTEN == 0 ? OFTEN : n % OFTEN;
        const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        printf("step %llu   loss %.3f   %.2f ms a step\n", (unsigned long long)model.runs, total / (double)several,
               1e3 * seconds / (double)n);
        fflush(stdout);
        total = 0;
    }
    if (status == 0 && rank == 0) status = chars_step_save(&model, file);
    if (status != 0 && status != 8) fprintf(stderr, "rank %d: status %d\n", rank, status);
    if (status == 0 && rank == 0) write_text(&model, text);
    chars_end();
    free(memory);
    free(text);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

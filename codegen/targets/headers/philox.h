/*
 * Random numbers by counting: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, SC 2011).
 *
 * A number follows from a seed, the path of what it is for, and its place: any thread computes any of them.
 */
#ifndef PHILOX_H
#define PHILOX_H

#include "elementary.h"

/* the 64-bit FNV-1a hash of a path, which ends at a zero byte */
INLINED uint64_t hashed_path(const char *path)
{
    uint64_t value = 0xcbf29ce484222325u;
    for (; *path != 0; ++path) value = (value ^ (unsigned char)*path) * 0x100000001b3u;
    return value;
}

/* one of the ten rounds, which changes a counter */
INLINED void round_philox(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
    const uint64_t low = (uint64_t)counter[0] * 0xd2511f53u, high = (uint64_t)counter[2] * 0xcd9e8d57u;
    counter[0] = (uint32_t)(high >> 32) ^ counter[1] ^ key0;
    counter[1] = (uint32_t)high;
    counter[2] = (uint32_t)(low >> 32) ^ counter[3] ^ key1;
    counter[3] = (uint32_t)low;
}

/* four random words in place of a counter, whose lowest word is the first */
INLINED void philox(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
    for (uint32_t n = 0; n < 10; ++n) round_philox(counter, key0 + n * 0x9e3779b9u, key1 + n * 0xbb67ae85u);
}

/* words 4 block to 4 block + 3 of a path, whose hash is given, in a run */
INLINED void random_words(uint32_t words[4], uint64_t seed, uint64_t hash, uint32_t run, uint64_t block)
{
    const uint64_t key = seed ^ hash;
    words[0] = (uint32_t)block;
    words[1] = (uint32_t)(block >> 32);
    words[2] = run;
    words[3] = 0;
    philox(words, (uint32_t)key, (uint32_t)(key >> 32));
}

/* the upper 24 bits of a word as a number from -bound, included, to bound: only the last product rounds */
INLINED float uniform_of_word(uint32_t word, float bound)
{
    return ((float)(word >> 8) * 0x1p-23f - 1.0f) * bound;
}

/* so many numbers of a path, uniform from -bound, included, to bound */
INLINED void fill_uniform(float *numbers, uint64_t count, uint64_t seed, const char *path, float bound)
{
    const uint64_t hash = hashed_path(path);
    for (uint64_t n = 0; n < count; n += 4) {
        uint32_t words[4];
        random_words(words, seed, hash, 0, n / 4);
        for (uint64_t k = n; k < count && k < n + 4; ++k) numbers[k] = uniform_of_word(words[k - n], bound);
    }
}

/* the same numbers in twice the bits */
INLINED void fill_uniform_f64(double *numbers, uint64_t count, uint64_t seed, const char *path, float bound)
{
    const uint64_t hash = hashed_path(path);
    for (uint64_t n = 0; n < count; n += 4) {
        uint32_t words[4];
        random_words(words, seed, hash, 0, n / 4);
        for (uint64_t k = n; k < count && k < n + 4; ++k) numbers[k] = (double)uniform_of_word(words[k - n], bound);
    }
}

#endif

/*
 * Squares of elements, transposed in registers: loaded by rows, interleaved, and stored by columns.
 * What is written here for f32 stands for the other types.
 */
#ifndef SQUARES_H
#define SQUARES_H

#include <stdint.h>
#include <string.h>
#include "compilers.h"
#include "vectors.h"

#ifdef __GNUC__

/* a square in registers: to[c * step + r] = from[r * stride + c] */
static inline void transpose_square_f32(
    float *restrict to, int64_t step, const float *restrict from, int64_t stride, int past)
{
    f32x16 square[lanes_f32x16], next[lanes_f32x16];
#pragma GCC unroll 16
    for (int row = 0; row < lanes_f32x16; ++row) square[row] = *(const f32x16u *)&from[row * stride];
#pragma GCC unroll 4
    for (int stage = 0; stage < f32x16_stages; ++stage) {
#pragma GCC unroll 8
        for (int row = 0; row < lanes_f32x16 / 2; ++row) {
            next[2 * row] = f32x16_low(square[row], square[row + lanes_f32x16 / 2]);
            next[2 * row + 1] = f32x16_high(square[row], square[row + lanes_f32x16 / 2]);
        }
#pragma GCC unroll 16
        for (int row = 0; row < lanes_f32x16; ++row) square[row] = next[row];
    }
#pragma GCC unroll 16
    for (int row = 0; row < lanes_f32x16; ++row) {
        if (!past) *(f32x16u *)&to[row * step] = square[row];
        for (int piece = 0; past && piece < lanes_f32x16; piece += 16 / (int)sizeof(float)) {
            quad_past(&to[row * step + piece], (const float *)&square[row] + piece);
        }
    }
}

/* the same of half as many rows: two columns are a vector */
static inline void transpose_half_f32(
    float *restrict to, int64_t step, const float *restrict from, int64_t stride)
{
    f32x16 half[lanes_f32x16 / 2], next[lanes_f32x16 / 2];
#pragma GCC unroll 8
    for (int row = 0; row < lanes_f32x16 / 2; ++row) half[row] = *(const f32x16u *)&from[row * stride];
#pragma GCC unroll 3
    for (int stage = 1; stage < f32x16_stages; ++stage) {
#pragma GCC unroll 4
        for (int row = 0; row < lanes_f32x16 / 4; ++row) {
            next[2 * row] = f32x16_low(half[row], half[row + lanes_f32x16 / 4]);
            next[2 * row + 1] = f32x16_high(half[row], half[row + lanes_f32x16 / 4]);
        }
#pragma GCC unroll 8
        for (int row = 0; row < lanes_f32x16 / 2; ++row) half[row] = next[row];
    }
#pragma GCC unroll 16
    for (int column = 0; column < lanes_f32x16; ++column) {
        memcpy(&to[column * step], (const float *)half + column * (lanes_f32x16 / 2), sizeof(f32x16) / 2);
    }
}

#endif

#endif

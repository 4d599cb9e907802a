/*
 * Copies that run along one dimension of what they read and along another of what they write, in squares.
 * What is written here for f32 stands for the other types.
 */
#ifndef TRANSPOSES_H
#define TRANSPOSES_H

#include <stdint.h>
#include "compilers.h"
#include "machine.h"
#include "numbers.h"
#include "squares.h"

/* the elements of a cache line, which is as long as a vector at least */
enum { line_f32 = (LINE < VECTOR ? VECTOR : LINE) / sizeof(float) };

/* to[first + c * step + r] = from[origin + r * stride + c], past the caches if whole lines of all columns are */
static void transpose_f32(
    float *restrict to, int64_t first, int64_t step,
    const float *restrict from, int64_t origin, int64_t stride, int64_t rows, int64_t columns, int past)
{
#ifdef __GNUC__
    if (rows >= line_f32 && columns >= lanes_f32x16) {
        /* a line of the result at a time; the last lines and squares overlap those before them */
        const int lines = past && step % line_f32 == 0;
        const int64_t left = lines ? (int64_t)((LINE - (uintptr_t)(to + first) % LINE) % LINE / sizeof(float)) : 0;
        for (int64_t row = left > 0 ? left - line_f32 : 0; row < rows; row += line_f32) {
            const int64_t r = row < 0 ? 0 : min_i64(row, rows - line_f32);
            for (int64_t column = 0; column < columns; column += lanes_f32x16) {
                const int64_t c = min_i64(column, columns - lanes_f32x16);
                for (int part = 0; part < line_f32; part += lanes_f32x16) {
                    float *const target = to + first + c * step + r + part;
                    const float *const source = from + origin + (r + part) * stride + c;
                    if (lines && r == row) transpose_square_f32(target, step, source, stride, 1);
                    else transpose_square_f32(target, step, source, stride, 0);
                }
            }
        }
        if (lines) past_end();
        return;
    }
#else
    (void)past;
#endif
    for (int64_t row = 0; row < rows; row += line_f32) {
        for (int64_t c = 0; c < columns; ++c) {
            for (int64_t r = row; r < min_i64(row + line_f32, rows); ++r) {
                to[first + c * step + r] = from[origin + r * stride + c];
            }
        }
    }
}

/* the same, where the rows may be shorter than a line */
static void transpose_short_f32(
    float *restrict to, int64_t first, int64_t step,
    const float *restrict from, int64_t origin, int64_t stride, int64_t rows, int64_t columns, int past)
{
#ifdef __GNUC__
    if (rows < line_f32 && rows >= lanes_f32x16 / 2 && columns >= lanes_f32x16) {
        const int64_t high = rows >= lanes_f32x16 ? lanes_f32x16 : lanes_f32x16 / 2;
        for (int64_t row = 0; row < rows; row += high) {
            for (int64_t column = 0; column < columns; column += lanes_f32x16) {
                const int64_t r = min_i64(row, rows - high), c = min_i64(column, columns - lanes_f32x16);
                float *const target = to + first + c * step + r;
                const float *const source = from + origin + r * stride + c;
                if (rows >= lanes_f32x16) transpose_square_f32(target, step, source, stride, 0);
                else transpose_half_f32(target, step, source, stride);
            }
        }
        return;
    }
#endif
    transpose_f32(to, first, step, from, origin, stride, rows, columns, past);
}

#endif

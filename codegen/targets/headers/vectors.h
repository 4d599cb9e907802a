/* Vectors, as GCC and Clang have them, of so many lanes or as many as the processor has. */
#ifndef VECTORS_H
#define VECTORS_H

#include <stdint.h>
#include "machine.h"

#ifdef __GNUC__

/* 16 lanes of f32, or as many as a vector has; f32x16u is the same in memory, at any address */
enum { lanes_f32x16 = (VECTOR < 64 ? VECTOR : 64) / 4 };
typedef float f32x16 __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));
typedef float f32x16u __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64)), aligned(4), may_alias));
typedef int32_t f32x16m __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));

/* the larger of two vectors lane by lane, NaN if one is, and 0 is larger than -0; macros: a vector argument has no stable ABI */
#define MAX_LANES(vector, a, b) ((vector)(((vector##m)CHOSEN_LANES(vector, (a) > (b), a, b) & ((vector##m)(a) | ((a) != (b)))) | ((a) != (a))))

/* the smaller of two vectors lane by lane, NaN if one is, and -0 is smaller than 0 */
#define MIN_LANES(vector, a, b) ((vector)((vector##m)CHOSEN_LANES(vector, (a) < (b), a, b) | (vector##m)CHOSEN_LANES(vector, (b) < (a), b, a)))

/* lanes of a where a mask is set, of b elsewhere */
#define CHOSEN_LANES(vector, mask, a, b) ((vector)(((mask) & (vector##m)(a)) | (~(mask) & (vector##m)(b))))

/* 8 lanes of f32, or as many as a vector has; f32x8u is the same in memory, at any address */
enum { lanes_f32x8 = (VECTOR < 32 ? VECTOR : 32) / 4 };
typedef float f32x8 __attribute__((vector_size((VECTOR < 32 ? VECTOR : 32))));
typedef float f32x8u __attribute__((vector_size((VECTOR < 32 ? VECTOR : 32)), aligned(4), may_alias));
typedef int32_t f32x8m __attribute__((vector_size((VECTOR < 32 ? VECTOR : 32))));

/* 4 lanes of f32, or as many as a vector has; f32x4u is the same in memory, at any address */
enum { lanes_f32x4 = (VECTOR < 16 ? VECTOR : 16) / 4 };
typedef float f32x4 __attribute__((vector_size((VECTOR < 16 ? VECTOR : 16))));
typedef float f32x4u __attribute__((vector_size((VECTOR < 16 ? VECTOR : 16)), aligned(4), may_alias));
typedef int32_t f32x4m __attribute__((vector_size((VECTOR < 16 ? VECTOR : 16))));

/* 2 lanes of f32, or as many as a vector has; f32x2u is the same in memory, at any address */
enum { lanes_f32x2 = (VECTOR < 8 ? VECTOR : 8) / 4 };
typedef float f32x2 __attribute__((vector_size((VECTOR < 8 ? VECTOR : 8))));
typedef float f32x2u __attribute__((vector_size((VECTOR < 8 ? VECTOR : 8)), aligned(4), may_alias));
typedef int32_t f32x2m __attribute__((vector_size((VECTOR < 8 ? VECTOR : 8))));

/* 8 lanes of f64, or as many as a vector has; f64x8u is the same in memory, at any address */
enum { lanes_f64x8 = (VECTOR < 64 ? VECTOR : 64) / 8 };
typedef double f64x8 __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));
typedef double f64x8u __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64)), aligned(8), may_alias));
typedef int64_t f64x8m __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));

/* 4 lanes of f64, or as many as a vector has; f64x4u is the same in memory, at any address */
enum { lanes_f64x4 = (VECTOR < 32 ? VECTOR : 32) / 8 };
typedef double f64x4 __attribute__((vector_size((VECTOR < 32 ? VECTOR : 32))));
typedef double f64x4u __attribute__((vector_size((VECTOR < 32 ? VECTOR : 32)), aligned(8), may_alias));
typedef int64_t f64x4m __attribute__((vector_size((VECTOR < 32 ? VECTOR : 32))));

/* 2 lanes of f64, or as many as a vector has; f64x2u is the same in memory, at any address */
enum { lanes_f64x2 = (VECTOR < 16 ? VECTOR : 16) / 8 };
typedef double f64x2 __attribute__((vector_size((VECTOR < 16 ? VECTOR : 16))));
typedef double f64x2u __attribute__((vector_size((VECTOR < 16 ? VECTOR : 16)), aligned(8), may_alias));
typedef int64_t f64x2m __attribute__((vector_size((VECTOR < 16 ? VECTOR : 16))));

/* 16 lanes of i32, or as many as a vector has; i32x16u is the same in memory, at any address */
enum { lanes_i32x16 = (VECTOR < 64 ? VECTOR : 64) / 4 };
typedef int32_t i32x16 __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));
typedef int32_t i32x16u __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64)), aligned(4), may_alias));
typedef int32_t i32x16m __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));

/* 8 lanes of i64, or as many as a vector has; i64x8u is the same in memory, at any address */
enum { lanes_i64x8 = (VECTOR < 64 ? VECTOR : 64) / 8 };
typedef int64_t i64x8 __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));
typedef int64_t i64x8u __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64)), aligned(8), may_alias));
typedef int64_t i64x8m __attribute__((vector_size((VECTOR < 64 ? VECTOR : 64))));

/* whether steps along a length leave over more than one number, and at most another */
#define LEAVES(length, step, more, most) ((length) % (step) > (more) && (length) % (step) <= (most))

/* a vector that was read is in a register: for some processors GCC would read it again for each use, which takes longer */
#if defined(__SSE2__)
#define IN_REGISTER(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define IN_REGISTER(vector) __asm__("" : "+w"(vector))
#else
#define IN_REGISTER(vector) ((void)0)
#endif

/* elements of two vectors, by constant numbers */
#ifdef __clang__
#define SHUFFLED(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif

/* the first and the second halves of two vectors interleaved; f32x16_stages of it transpose a square */
#if VECTOR == 64
enum { f32x16_stages = 4 };
#define f32x16_low(a, b) SHUFFLED(f32x16m, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define f32x16_high(a, b) SHUFFLED(f32x16m, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif VECTOR == 32
enum { f32x16_stages = 3 };
#define f32x16_low(a, b) SHUFFLED(f32x16m, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define f32x16_high(a, b) SHUFFLED(f32x16m, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
enum { f32x16_stages = 2 };
#define f32x16_low(a, b) SHUFFLED(f32x16m, a, b, 0, 4, 1, 5)
#define f32x16_high(a, b) SHUFFLED(f32x16m, a, b, 2, 6, 3, 7)
#endif

/* the first and the second halves of two vectors interleaved; f64x8_stages of it transpose a square */
#if VECTOR == 64
enum { f64x8_stages = 3 };
#define f64x8_low(a, b) SHUFFLED(f64x8m, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define f64x8_high(a, b) SHUFFLED(f64x8m, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif VECTOR == 32
enum { f64x8_stages = 2 };
#define f64x8_low(a, b) SHUFFLED(f64x8m, a, b, 0, 4, 1, 5)
#define f64x8_high(a, b) SHUFFLED(f64x8m, a, b, 2, 6, 3, 7)
#else
enum { f64x8_stages = 1 };
#define f64x8_low(a, b) SHUFFLED(f64x8m, a, b, 0, 2)
#define f64x8_high(a, b) SHUFFLED(f64x8m, a, b, 1, 3)
#endif

/* the first and the second halves of two vectors interleaved; i32x16_stages of it transpose a square */
#if VECTOR == 64
enum { i32x16_stages = 4 };
#define i32x16_low(a, b) SHUFFLED(i32x16m, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define i32x16_high(a, b) SHUFFLED(i32x16m, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif VECTOR == 32
enum { i32x16_stages = 3 };
#define i32x16_low(a, b) SHUFFLED(i32x16m, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define i32x16_high(a, b) SHUFFLED(i32x16m, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
enum { i32x16_stages = 2 };
#define i32x16_low(a, b) SHUFFLED(i32x16m, a, b, 0, 4, 1, 5)
#define i32x16_high(a, b) SHUFFLED(i32x16m, a, b, 2, 6, 3, 7)
#endif

/* the first and the second halves of two vectors interleaved; i64x8_stages of it transpose a square */
#if VECTOR == 64
enum { i64x8_stages = 3 };
#define i64x8_low(a, b) SHUFFLED(i64x8m, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define i64x8_high(a, b) SHUFFLED(i64x8m, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif VECTOR == 32
enum { i64x8_stages = 2 };
#define i64x8_low(a, b) SHUFFLED(i64x8m, a, b, 0, 4, 1, 5)
#define i64x8_high(a, b) SHUFFLED(i64x8m, a, b, 2, 6, 3, 7)
#else
enum { i64x8_stages = 1 };
#define i64x8_low(a, b) SHUFFLED(i64x8m, a, b, 0, 2)
#define i64x8_high(a, b) SHUFFLED(i64x8m, a, b, 1, 3)
#endif

#endif

#endif

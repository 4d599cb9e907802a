/* What compilers and processors have beside C. */
#ifndef COMPILERS_H
#define COMPILERS_H

#include <string.h>

/* whether the compiler has vectors, so that tiles are in registers */
#ifdef __GNUC__
#define HAS_VECTORS 1
#else
#define HAS_VECTORS 0
#endif

/* stands before an array that begins with a cache line, as far as the compiler can say so */
#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(64)))
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ALIGNED _Alignas(64)
#else
#define ALIGNED
#endif

/*
 * Stands in a loop that is no vector code itself. One that tests where it reads: GCC 12 makes masked vectors of it, and
 * some of these read what is masked (with AVX-512, its bug 110309). One around a loop over lanes: GCC joins iterations
 * of it else, and then keeps the lanes in memory.
 */
#if defined(__GNUC__) && !defined(__clang__)
#define SCALAR __asm__ volatile ("")
#else
#define SCALAR ((void)0)
#endif

/* stands before a function whose loops are to have vectors of half a cache line */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define HALF_VECTORS __attribute__((noinline, target("prefer-vector-width=256")))
#else
#define HALF_VECTORS
#endif

/*
 * Stands before a function without loops that calls one kernel after the other. Compilers put kernels that are called
 * once into it, and take as long as its length squared; there is nothing in it that could become faster.
 */
#if defined(__clang__)
#define STRAIGHT __attribute__((noinline, optnone))
#elif defined(__GNUC__)
#define STRAIGHT __attribute__((noinline, optimize("O0")))
#else
#define STRAIGHT
#endif

#if defined(__SSE2__) && defined(__GNUC__)
typedef float quad __attribute__((vector_size(16), may_alias));
typedef float quad_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
#endif

/* copy 16 bytes to where 16 divides the address, past the caches */
static inline void quad_past(void *to, const void *from)
{
#if !defined(__SSE2__) || !defined(__GNUC__)
    memcpy(to, from, 16);
#elif defined(__clang__)
    __builtin_nontemporal_store(*(const quad_anywhere *)from, (quad *)to);
#else
    __builtin_ia32_movntps((float *)to, *(const quad_anywhere *)from);
#endif
}

/* what was stored past the caches comes before what is stored next */
static inline void past_end(void)
{
#if defined(__SSE2__) && defined(__GNUC__)
    __builtin_ia32_sfence();
#endif
}

#endif

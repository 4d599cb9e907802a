// Scalar functions of CUDA C++. Those that a GPU computes roughly are computed exactly here.
#pragma once
#include <cstddef>
// Bessel functions and their like, which no GPU has: reading them takes as long as all other headers together.
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <math.h>

#include <cmath>

#include "launch.h"

#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN

template <class T>
__forceinline__ T __ldg(const T* p) { return *p; }
template <class T>
__forceinline__ T __ldcs(const T* p) { return *p; }
template <class T>
__forceinline__ T __ldcg(const T* p) { return *p; }
template <class T>
__forceinline__ void __stcs(T* p, T v) { *p = v; }
template <class T>
__forceinline__ void __stcg(T* p, T v) { *p = v; }

// Macros, since the C library declares functions of these names.
#define __expf(x) expf(x)
#define __exp10f(x) powf(10.0f, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)

static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline float __saturatef(float x) { return x != x ? 0.0f : fminf(fmaxf(x, 0.0f), 1.0f); }
static inline int __float_as_int(float x) { return cuda_emulator::bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return cuda_emulator::bits<unsigned>(x); }
static inline float __int_as_float(int x) { return cuda_emulator::bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return cuda_emulator::bits<float>(x); }
static inline long long __double_as_longlong(double x) { return cuda_emulator::bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return cuda_emulator::bits<double>(x); }
static inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
static inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
static inline float __int2float_rn(int x) { return static_cast<float>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
static inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}

template <class T>
__forceinline__ constexpr std::enable_if_t<std::is_arithmetic<T>::value, T> min(T a, T b) { return b < a ? b : a; }
template <class T>
__forceinline__ constexpr std::enable_if_t<std::is_arithmetic<T>::value, T> max(T a, T b) { return a < b ? b : a; }

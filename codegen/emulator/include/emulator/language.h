// CUDA C++ for an ordinary C++ compiler, once translate.py has rewritten launches and shared variables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) alignas(n)
#define __restrict__ __restrict

constexpr int warpSize = 32;

#include "api.h"
#include "atomics.h"
#include "launch.h"
#include "math.h"
#include "vectors.h"
#include "warp.h"

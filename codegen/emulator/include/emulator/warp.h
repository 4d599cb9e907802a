// Barriers, shuffles, votes and reductions of warps.
//
// A shuffle orders no memory accesses of other lanes; __syncwarp does.
#pragma once
#include "launch.h"

EMULATOR_PLAIN inline void __syncthreads(cuda_emulator::Site at = cuda_emulator::here()) {
  cuda_emulator::block_barrier(0, at);
}
EMULATOR_PLAIN inline int __syncthreads_count(int p, cuda_emulator::Site at = cuda_emulator::here()) {
  return cuda_emulator::block_barrier(p != 0, at).count;
}
EMULATOR_PLAIN inline int __syncthreads_and(int p, cuda_emulator::Site at = cuda_emulator::here()) {
  return cuda_emulator::block_barrier(p != 0, at).all;
}
EMULATOR_PLAIN inline int __syncthreads_or(int p, cuda_emulator::Site at = cuda_emulator::here()) {
  return cuda_emulator::block_barrier(p != 0, at).any;
}
EMULATOR_PLAIN inline void __syncwarp(unsigned mask = 0xffffffffu, cuda_emulator::Site at = cuda_emulator::here()) {
  cuda_emulator::warp_meeting(cuda_emulator::Meeting::sync, mask, 0, at);
}

namespace cuda_emulator {
template <class T>
EMULATOR_PLAIN inline T shuffled(unsigned mask, T value, int source, bool is_inside, Site at) {
  const uint64_t* all = warp_meeting(Meeting::shuffle, mask, bits<uint64_t>(value), at);
  return is_inside ? bits<T>(all[source & 31]) : value;
}
}  // namespace cuda_emulator

template <class T>
EMULATOR_PLAIN T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                             cuda_emulator::Site at = cuda_emulator::here()) {
  int lane = cuda_emulator::lane_of_warp();
  return cuda_emulator::shuffled(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), true, at);
}
template <class T>
EMULATOR_PLAIN T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                                 cuda_emulator::Site at = cuda_emulator::here()) {
  int lane = cuda_emulator::lane_of_warp(), source = lane ^ bits;
  return cuda_emulator::shuffled(mask, value, source, source <= (lane | (width - 1)), at);
}
template <class T>
EMULATOR_PLAIN T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,
                                cuda_emulator::Site at = cuda_emulator::here()) {
  int lane = cuda_emulator::lane_of_warp(), source = lane - static_cast<int>(by);
  return cuda_emulator::shuffled(mask, value, source, (lane & ~(width - 1)) <= source, at);
}
template <class T>
EMULATOR_PLAIN T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                                  cuda_emulator::Site at = cuda_emulator::here()) {
  int lane = cuda_emulator::lane_of_warp(), source = lane + static_cast<int>(by);
  return cuda_emulator::shuffled(mask, value, source, source <= (lane | (width - 1)), at);
}

EMULATOR_PLAIN inline unsigned __ballot_sync(unsigned mask, int p, cuda_emulator::Site at = cuda_emulator::here()) {
  const uint64_t* all = cuda_emulator::warp_meeting(cuda_emulator::Meeting::vote, mask, p != 0, at);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) && all[lane] == 1) ballot |= 1u << lane;
  return ballot;
}
EMULATOR_PLAIN inline int __any_sync(unsigned mask, int p, cuda_emulator::Site at = cuda_emulator::here()) {
  return __ballot_sync(mask, p, at) != 0;
}
EMULATOR_PLAIN inline int __all_sync(unsigned mask, int p, cuda_emulator::Site at = cuda_emulator::here()) {
  return __ballot_sync(mask, !p, at) == 0;
}
// The calling lane alone: legal, and the answer that the fewest kernels expect.
EMULATOR_PLAIN inline unsigned __activemask() { return 1u << cuda_emulator::lane_of_warp(); }

#define EMULATOR_REDUCTION(name, T, combined)                                                      \
  EMULATOR_PLAIN inline T name(unsigned mask, T value, cuda_emulator::Site at = cuda_emulator::here()) {   \
    const uint64_t* all = cuda_emulator::warp_meeting(cuda_emulator::Meeting::reduction, mask,     \
                                                      cuda_emulator::bits<uint64_t>(value), at);   \
    bool is_first = true;                                                                          \
    T a{};                                                                                         \
    for (int lane = 0; lane < 32; ++lane)                                                          \
      if (mask >> lane & 1) {                                                                      \
        T b = cuda_emulator::bits<T>(all[lane]);                                                   \
        a = is_first ? b : (combined);                                                             \
        is_first = false;                                                                          \
      }                                                                                            \
    return a;                                                                                      \
  }
EMULATOR_REDUCTION(__reduce_add_sync, unsigned, a + b)
EMULATOR_REDUCTION(__reduce_min_sync, unsigned, a < b ? a : b)
EMULATOR_REDUCTION(__reduce_max_sync, unsigned, a < b ? b : a)
EMULATOR_REDUCTION(__reduce_add_sync, int, a + b)
EMULATOR_REDUCTION(__reduce_min_sync, int, a < b ? a : b)
EMULATOR_REDUCTION(__reduce_max_sync, int, a < b ? b : a)
EMULATOR_REDUCTION(__reduce_and_sync, unsigned, a & b)
EMULATOR_REDUCTION(__reduce_or_sync, unsigned, a | b)
EMULATOR_REDUCTION(__reduce_xor_sync, unsigned, a ^ b)

EMULATOR_PLAIN inline void __threadfence() {}
EMULATOR_PLAIN inline void __threadfence_block() {}
EMULATOR_PLAIN inline void __threadfence_system() {}
EMULATOR_PLAIN inline void __nanosleep(unsigned) {}
EMULATOR_PLAIN inline void __trap(cuda_emulator::Site at = cuda_emulator::here()) { cuda_emulator::trap(at); }

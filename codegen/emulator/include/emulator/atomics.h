// Atomic operations. One CUDA thread runs at a time, so a plain update is one; the check build is told of it.
#pragma once
#include "launch.h"

namespace cuda_emulator {
template <class T>
struct Same {
  typedef T type;
};
template <class T>
using Value = typename Same<T>::type;  // deduced from the pointer alone

template <class T, class F>
EMULATOR_PLAIN inline T updated(T* p, F change) {
  atomic_access(p, sizeof(T));
  T before = *p;
  *p = change(before);
  return before;
}
}  // namespace cuda_emulator

#define EMULATOR_ATOMIC(name, changed)                                          \
  template <class T>                                                            \
  EMULATOR_PLAIN T name(T* p, cuda_emulator::Value<T> v) {                      \
    return cuda_emulator::updated(p, [=](T o) EMULATOR_PLAIN { return T(changed); }); \
  }
EMULATOR_ATOMIC(atomicAdd, o + v)
EMULATOR_ATOMIC(atomicSub, o - v)
EMULATOR_ATOMIC(atomicMax, o < v ? v : o)
EMULATOR_ATOMIC(atomicMin, v < o ? v : o)
EMULATOR_ATOMIC(atomicExch, v)
EMULATOR_ATOMIC(atomicAnd, o & v)
EMULATOR_ATOMIC(atomicOr, o | v)
EMULATOR_ATOMIC(atomicXor, o ^ v)
EMULATOR_ATOMIC(atomicInc, v <= o ? T(0) : T(o + 1))
EMULATOR_ATOMIC(atomicDec, o == 0 || v < o ? v : T(o - 1))

template <class T>
EMULATOR_PLAIN T atomicCAS(T* p, cuda_emulator::Value<T> old, cuda_emulator::Value<T> v) {
  return cuda_emulator::updated(p, [=](T o) EMULATOR_PLAIN { return std::memcmp(&o, &old, sizeof(T)) ? o : T(v); });
}

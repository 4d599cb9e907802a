// Fibers: stacks of their own that the scheduler switches between. A CUDA thread is one.
//
// The switch is a few instructions on x86-64 and AArch64. Elsewhere, and with EMULATOR_UCONTEXT, it is swapcontext, which
// asks the system twice and takes ten times as long.
#pragma once
#include <cstddef>

#if !defined(EMULATOR_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define EMULATOR_UCONTEXT 1
#endif
#ifdef EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

namespace cuda_emulator {

struct Fiber {
#ifdef EMULATOR_UCONTEXT
  ucontext_t context;
#else
  void* stack_pointer = nullptr;
#endif
};

// Lets a fiber begin at entry, which never returns, on the stack below top (aligned to 16 bytes).
void prepare_fiber(Fiber&, char* bottom, char* top, void (*entry)());
// Goes on with a fiber; comes back when another one goes on with this one.
void switch_fiber(Fiber& from, Fiber& to);

}  // namespace cuda_emulator

#include "fibers.h"

#include <cstring>

#ifdef EMULATOR_UCONTEXT

namespace cuda_emulator {

void prepare_fiber(Fiber& fiber, char* bottom, char* top, void (*entry)()) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = bottom;
  fiber.context.uc_stack.ss_size = static_cast<size_t>(top - bottom);
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
}

void switch_fiber(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }

}  // namespace cuda_emulator

#else

// Saves the registers that a function has to keep, and the stack pointer, and loads those of another fiber.
extern "C" void emulator_switch(void** save, void* load);

#if defined(__x86_64__)

asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch,@function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size emulator_switch,.-emulator_switch
)");

#else

asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch,%function
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size emulator_switch,.-emulator_switch
)");

#endif

namespace cuda_emulator {

void prepare_fiber(Fiber& fiber, char*, char* top, void (*entry)()) {
#if defined(__x86_64__)
  void** at = reinterpret_cast<void**>(top);
  *--at = nullptr;  // where entry's return address would be: it keeps the stack aligned
  *--at = reinterpret_cast<void*>(entry);
  constexpr int SAVED = 6;
  for (int i = 0; i < SAVED; ++i) *--at = nullptr;
  fiber.stack_pointer = at;
#else
  constexpr int FRAME = 160, RETURN_ADDRESS = 11;  // x30 is the twelfth word
  char* at = top - FRAME;
  memset(at, 0, FRAME);
  reinterpret_cast<void**>(at)[RETURN_ADDRESS] = reinterpret_cast<void*>(entry);
  fiber.stack_pointer = at;
#endif
}

void switch_fiber(Fiber& from, Fiber& to) { emulator_switch(&from.stack_pointer, to.stack_pointer); }

}  // namespace cuda_emulator

#endif

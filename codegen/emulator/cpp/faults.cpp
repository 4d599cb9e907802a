#include "faults.h"

#include <ucontext.h>

#include <cstdlib>

#include "findings.h"
#include "scheduler.h"
#include "shadow.h"

namespace cuda_emulator {
namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE};
constexpr size_t SIGNAL_STACK = 128 << 10;  // findings are written on it

const void* code_of(const void* context) {
  const mcontext_t& m = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const char*>(m.gregs[REG_RIP]) + 1;  // place_of takes what follows an instruction
#elif defined(__aarch64__)
  return reinterpret_cast<const char*>(m.pc) + 1;
#else
  (void)m;
  return nullptr;
#endif
}

void handle(int signal, siginfo_t* info, void* context) {
  if (!is_in_kernel()) {  // not of a kernel: it happens again, unhandled
    ::signal(signal, SIG_DFL);
    return;
  }
  const void* code = code_of(context);
  if (signal == SIGFPE)
    finding_once(cudaErrorLaunchFailure, "undefined arithmetic", code, nullptr, "a division by zero, or its overflow");
  else if (is_stack(info->si_addr))
    finding_once(cudaErrorLaunchFailure, "stack overflow", code, nullptr, "a thread has %zu bytes", STACK - PAGE);
  else
    finding_once(cudaErrorIllegalAddress, "illegal access", code, nullptr, "%s",
                 describe_address(info->si_addr).c_str());
  abandon_thread();
}

}  // namespace

FaultHandler::FaultHandler() {
  static char* const memory = static_cast<char*>(malloc(SIGNAL_STACK));
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = SIGNAL_STACK;
  sigaltstack(&stack, &stack_before_);
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the handler is left by switching to another fiber
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &action, &before_[i]);
}

FaultHandler::~FaultHandler() {
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
}

}  // namespace cuda_emulator

// Faults of the processor inside of a kernel: a finding, not the end of the process.
#pragma once
#include <csignal>

namespace cuda_emulator {

// Answers faults of CUDA threads while it lives; faults of anything else go to whom they went before.
class FaultHandler {
 public:
  FaultHandler();
  ~FaultHandler();
  FaultHandler(const FaultHandler&) = delete;

 private:
  stack_t stack_before_;
  struct sigaction before_[3];
};

}  // namespace cuda_emulator

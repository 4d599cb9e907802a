// Stands in for CUDA's header of this name: asynchronous copies to shared memory.
//
// A copy takes place at the wait that covers it, so that a missing __pipeline_wait_prior reads what was there before.
#pragma once
#include "emulator/language.h"

EMULATOR_PLAIN inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
  cuda_emulator::pipeline_copy(to, from, bytes, zeros);
}
EMULATOR_PLAIN inline void __pipeline_commit() { cuda_emulator::pipeline_commit(); }
EMULATOR_PLAIN inline void __pipeline_wait_prior(int batches) { cuda_emulator::pipeline_wait(batches); }

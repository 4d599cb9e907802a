// What the accesses of warps would cost a GPU: 32-byte sectors of global memory, cycles of the banks of shared memory.
#pragma once
#include <cstddef>

#include "shadow.h"

namespace cuda_emulator {

void count_access(const void*, size_t bytes, Access, const void* code);
void end_profiled_block();

}  // namespace cuda_emulator

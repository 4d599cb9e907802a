// Device memory: allocations between pages that nobody may touch, and which range a copy may have.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "emulator/api.h"
#include "shadow.h"

namespace cuda_emulator {

struct Allocation {
  char* start;
  size_t bytes;
  char* mapping;  // pages before and behind included
  size_t mapping_bytes;
  std::unique_ptr<Shadow> shadow;  // none where nothing is checked
  bool is_trusted;                 // code that is not checked may have written it
  int device;
};
// The number of the device that a thread has chosen; all are alike, and each knows its own allocations.
extern thread_local int current_device;

// The allocation that holds an address; null where it is no device memory.
Allocation* allocation_of(const void*);
// The last allocation that begins before an address; null where none does.
const Allocation* allocation_before(const void*);
// Whether a range lies in one allocation: an error, and a finding at a place of the host code, where it does not.
cudaError_t check_range(const void*, size_t bytes, const char* what, const void* code);

// From now on allocations have cells, those that are there too.
void give_cells();
// Code that is not checked runs: whatever it may have written counts as initialised.
void trust_memory();
void count_allocations_anew();

}  // namespace cuda_emulator

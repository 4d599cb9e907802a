// Asynchronous copies to shared memory. Until it takes place, what a copy will write is poisoned and not initialised.
#include <cstring>

#include "findings.h"
#include "scheduler.h"
#include "shadow.h"

namespace cuda_emulator {

void pipeline_copy(void* to, const void* from, size_t bytes, size_t zeros) {
  const void* code = __builtin_return_address(0);
  Lane& lane = sm.lanes[sm.current];
  if (lane.copies.empty()) lane.copies.emplace_back();
  bool is_aligned = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes == 0;
  if (!is_aligned || (bytes != 4 && bytes != 8 && bytes != 16)) {
    finding(cudaErrorMisalignedAddress, "misaligned access", place_of(code),
            "an asynchronous copy of %zu bytes is misaligned, or of no legal size", bytes);
    abandon_thread();
  }
  if (sm.launch->is_checked) {
    check_access(from, bytes - zeros, Access::read, code);
    check_access(to, bytes, Access::write, code);
    forget_shared(to, bytes);
  }
  memset(to, POISON, bytes);
  lane.copies.back().push_back({to, from, bytes, zeros, code});
}

void pipeline_commit() {
  Lane& lane = sm.lanes[sm.current];
  if (lane.copies.empty()) lane.copies.emplace_back();
  lane.copies.emplace_back();
}

void pipeline_wait(int batches) {
  Lane& lane = sm.lanes[sm.current];
  if (!lane.copies.empty()) run_copies(lane, static_cast<size_t>(batches) + 1);  // and the one that is not committed
}

void run_copies(Lane& lane, size_t batches) {
  while (batches < lane.copies.size()) {
    for (const Copy& c : lane.copies.front()) {
      memcpy(c.to, c.from, c.bytes - c.zeros);
      memset(static_cast<char*>(c.to) + (c.bytes - c.zeros), 0, c.zeros);
      if (sm.launch->is_checked) check_access(c.to, c.bytes, Access::write, c.code);
    }
    lane.copies.pop_front();
  }
}

}  // namespace cuda_emulator

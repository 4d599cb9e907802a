#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "emulator/control.h"
#include "findings.h"
#include "scheduler.h"
#include "settings.h"
#include "streams.h"

namespace cuda_emulator {
namespace {

constexpr size_t ALIGNMENT = 256;  // as cudaMalloc promises

std::map<uintptr_t, Allocation> allocations;
std::set<void*> pinned;
size_t bytes_used = 0;

// What of the device's memory nobody has; a setting may leave less than what is there.
size_t bytes_left() {
  size_t most = static_cast<size_t>(settings.memory);
  return bytes_used < most ? most - bytes_used : 0;
}
long long allocations_made = 0;
bool has_cells = false;
Allocation* last_found = nullptr;

void give_cells_to(Allocation& a) {
  if (!a.shadow) a.shadow = std::make_unique<Shadow>(a.bytes);
}

cudaError_t free_now(void* p, const void* code) {
  auto found = allocations.find(reinterpret_cast<uintptr_t>(p));
  if (found == allocations.end()) {
    finding(cudaSuccess, "invalid free", place_of(code), "%p is no live allocation", p);
    return cudaErrorInvalidValue;
  }
  Allocation& a = found->second;
  last_found = nullptr;
  bytes_used -= a.bytes;
  munmap(a.mapping, a.mapping_bytes);
  allocations.erase(found);
  return cudaSuccess;
}

}  // namespace

thread_local int current_device = 0;

Allocation* allocation_of(const void* p) {
  uintptr_t at = reinterpret_cast<uintptr_t>(p);
  if (last_found && at - reinterpret_cast<uintptr_t>(last_found->start) < last_found->bytes) return last_found;
  auto next = allocations.upper_bound(at);
  if (next == allocations.begin()) return nullptr;
  Allocation& a = std::prev(next)->second;
  if (a.bytes <= at - reinterpret_cast<uintptr_t>(a.start)) return nullptr;
  return last_found = &a;
}

const Allocation* allocation_before(const void* p) {
  auto next = allocations.upper_bound(reinterpret_cast<uintptr_t>(p));
  return next == allocations.begin() ? nullptr : &std::prev(next)->second;
}

cudaError_t check_range(const void* p, size_t bytes, const char* what, const void* code) {
  if (!bytes) return cudaSuccess;
  const Allocation* a = allocation_of(p);
  size_t offset = a ? static_cast<size_t>(static_cast<const char*>(p) - a->start) : 0;
  if (a && bytes <= a->bytes - offset) return cudaSuccess;
  if (a)
    finding(cudaSuccess, "invalid copy", place_of(code), "%s: %zu bytes at offset %zu of an allocation of %zu", what,
            bytes, offset, a->bytes);
  else
    finding(cudaSuccess, "invalid copy", place_of(code), "%s: %p is no device memory", what, p);
  return cudaErrorInvalidValue;
}

void give_cells() {
  if (has_cells) return;
  has_cells = true;
  for (auto& [start, a] : allocations) give_cells_to(a);
  trust_memory();
}

void trust_memory() {
  if (has_cells)
    for (auto& [start, a] : allocations) a.is_trusted = true;
}

void count_allocations_anew() { allocations_made = 0; }

}  // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" {

int emulator_live_allocations(void) {
  Locked locked;
  return static_cast<int>(allocations.size() + pinned.size());
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  Locked locked;
  if (!p) return result(cudaErrorInvalidValue);
  *p = nullptr;
  if (sticky_error != cudaSuccess) return sticky_error;
  if (!settings.devices) return result(cudaErrorNoDevice);
  if (!bytes) return cudaSuccess;
  if (++allocations_made == settings.failing || bytes_left() < bytes) return result(cudaErrorMemoryAllocation);
  // The end stands against a page that nobody may touch, as nearly as the alignment allows.
  size_t used = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, body = (used + PAGE - 1) / PAGE * PAGE;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapping = mmap(nullptr, body + 2 * PAGE, PROT_NONE, flags, -1, 0);
  if (mapping == MAP_FAILED) return result(cudaErrorMemoryAllocation);
  char* first = static_cast<char*>(mapping) + PAGE;
  if (mprotect(first, body, PROT_READ | PROT_WRITE)) {
    munmap(mapping, body + 2 * PAGE);
    return result(cudaErrorMemoryAllocation);
  }
  char* start = first + body - used;
  memset(start, POISON, used);
  Allocation& a = allocations[reinterpret_cast<uintptr_t>(start)];
  a = {start, bytes, static_cast<char*>(mapping), body + 2 * PAGE, nullptr, false, current_device};
  if (has_cells) give_cells_to(a);
  bytes_used += bytes;
  *p = start;
  return cudaSuccess;
}

cudaError_t cudaFree(void* p) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  if (!p) return result(cudaSuccess);
  run_all_streams();
  return result(free_now(p, code));
}

cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t s) {
  Locked locked;
  return is_stream(s) ? cudaMalloc(p, bytes) : result(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  if (p) queue(s, [p, code] { free_now(p, code); });
  return result(cudaSuccess);
}

cudaError_t cudaMallocHost(void** p, size_t bytes) {
  Locked locked;
  if (posix_memalign(p, PAGE, bytes ? bytes : 1)) return result(cudaErrorMemoryAllocation);
  pinned.insert(*p);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* p) {
  Locked locked;
  if (!p) return cudaSuccess;
  if (!pinned.erase(p)) return result(cudaErrorInvalidValue);
  run_all_streams();
  free(p);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all) {
  Locked locked;
  *all = static_cast<size_t>(settings.memory);
  *free_bytes = bytes_left();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  Locked locked;
  void* address = const_cast<void*>(p);
  const Allocation* known = allocation_of(p);
  bool is_device = known, is_pinned = pinned.count(address);
  attributes->type = is_device ? cudaMemoryTypeDevice : is_pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  attributes->device = is_device ? known->device : is_pinned ? 0 : -1;
  attributes->devicePointer = is_device ? address : nullptr;
  attributes->hostPointer = is_device ? nullptr : address;
  return cudaSuccess;
}

}  // extern "C"

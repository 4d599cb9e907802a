// Launches, shared variables and barriers: what translated code calls, and the entry points of the runtime.
#pragma once
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "api.h"
#include "vectors.h"

// Parts of the emulator inside of a kernel are no accesses of the kernel: the check build leaves them out.
#define EMULATOR_PLAIN __attribute__((no_sanitize("thread", "undefined")))

namespace cuda_emulator {

// A place in the source.
struct Site {
  const char* file;
  int line;
};
// As a default argument: the place of the call.
EMULATOR_PLAIN inline constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {file, line};
}

struct Launch {
  const char* kernel;
  const void* function;
  dim3 grid, block;
  size_t dynamic_shared;
  cudaStream_t stream;
  void (*call)(void* arguments);  // as one CUDA thread
  void (*destroy)(void* arguments);  // null: nothing to do
  void* arguments;
  size_t argument_bytes;
  bool is_checked;
};

void launch(const Launch&);
void* new_arguments(size_t bytes);
int new_shared_variable();
void* shared_variable(int number, size_t bytes, size_t align);
void* dynamic_shared();
void let_check();
cudaError_t set_attribute(const void* function, cudaFuncAttribute, int value);

enum class Meeting { shuffle = 1, vote, sync, reduction };
struct Votes {
  int count, all, any;
};
Votes block_barrier(int predicate, Site);
// Every lane of mask comes; gives the 32 values, all bits set for lanes that do not.
const uint64_t* warp_meeting(Meeting, unsigned mask, uint64_t value, Site);
int lane_of_warp();
void atomic_access(const void* address, size_t bytes);
[[noreturn]] void trap(Site);
void pipeline_copy(void* to, const void* from, size_t bytes, size_t zeros);
void pipeline_commit();
void pipeline_wait(int batches);

#ifdef EMULATOR_CHECK
inline constexpr bool is_checked = true;
namespace {
[[maybe_unused]] const bool checking = (let_check(), true);
}
#else
inline constexpr bool is_checked = false;
#endif

// What a translated launch makes: Configured("k", grid, block, shared, stream)(k, arguments...).
struct Configured {
  Launch l;
  EMULATOR_PLAIN Configured(const char* kernel, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0)
      : l{kernel, nullptr, grid, block, shared, stream, nullptr, nullptr, nullptr, 0, is_checked} {}
  // A closure holds the arguments: a tuple of each list of types takes g++ a fifth of its time.
  template <class... P>
  EMULATOR_PLAIN void operator()(void (*kernel)(P...), std::decay_t<P>... a) {
    auto thread = [=]() mutable EMULATOR_PLAIN { kernel(a...); };
    using T = decltype(thread);
    l.function = reinterpret_cast<const void*>(kernel);
    l.arguments = new (new_arguments(sizeof(T))) T(thread);
    l.argument_bytes = sizeof(T);
    l.call = [](void* self) EMULATOR_PLAIN { (*static_cast<T*>(self))(); };
    if constexpr (!std::is_trivially_destructible<T>::value)
      l.destroy = [](void* self) EMULATOR_PLAIN { static_cast<T*>(self)->~T(); };
    launch(l);
  }
};

// What a translated `__shared__ T name;` refers to: one for each declaration of a source file.
namespace {
template <class T, int DECLARATION>
EMULATOR_PLAIN inline T& shared() {
  static const int number = new_shared_variable();
  return *static_cast<T*>(shared_variable(number, sizeof(T), alignof(T) < 16 ? 16 : alignof(T)));
}
}  // namespace

template <class To, class From>
EMULATOR_PLAIN inline To bits(From from) {
  static_assert(sizeof(From) <= 8 && sizeof(To) <= 8, "at most 8 bytes at a time");
  To to{};
  std::memcpy(&to, &from, sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
  return to;
}
}  // namespace cuda_emulator

// Set by the scheduler whenever another CUDA thread runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

template <class T>
cudaError_t cudaMalloc(T** p, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(p), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T** p, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(p), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T** p, size_t bytes, cudaStream_t s) {
  return cudaMallocAsync(reinterpret_cast<void**>(p), bytes, s);
}
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cuda_emulator::set_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*)(P...)) {
  *attributes = {0, 0, 32, 1024};
  return cudaSuccess;
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*)(P...), int, size_t) {
  *blocks = 2;
  return cudaSuccess;
}

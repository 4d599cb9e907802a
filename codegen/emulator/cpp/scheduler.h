// The multiprocessor: runs the blocks of a launch one after the other, the threads of a block as fibers.
//
// A thread runs until it ends, reaches a barrier, or waits for its warp; so threads are as far apart as barriers allow,
// and a missing barrier gives a wrong result. One kernel runs at a time, under the lock.
#pragma once
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "emulator/launch.h"
#include "fibers.h"

namespace cuda_emulator {

constexpr int MOST_THREADS = 1024;  // of a block
constexpr int WARP = 32;
constexpr size_t SHARED_BYTES = 232448;   // of a block that asks for it, on sm_90
constexpr size_t SHARED_DEFAULT = 49152;  // of a block that does not ask
constexpr size_t SHARED_SPACE = 1 << 18;
constexpr size_t PAGE = 4096;
constexpr unsigned char POISON = 0xFF;  // what memory holds that nothing has written: NaN as float, -1 as int

// Holds the one lock of the emulator. A forked child finds it open.
struct Locked {
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
};

enum class State : uint8_t { unstarted, ready, at_barrier, at_meeting, ended };

// Where the lanes that a mask names come together.
struct Rendezvous {
  unsigned mask = 0, arrived = 0;
  Meeting kind = Meeting::sync;
  uint32_t generation = 0;
  uint64_t values[2][WARP];
};

struct Warp {
  unsigned ready = 0, alive = 0, members = 0;
  uint32_t epoch = 0;  // barriers of the warp so far
  std::vector<Rendezvous> meetings;
};

// An asynchronous copy to shared memory that has not taken place.
struct Copy {
  void* to;
  const void* from;
  size_t bytes, zeros;
  const void* code;
};

struct Lane {
  uint3 index;
  int fiber = -1;
  State state = State::unstarted;
  Site site{"", 0};  // of the barrier or meeting at which it waits
  std::deque<std::vector<Copy>> copies;  // batches; the last is not committed
};

struct Multiprocessor {
  const Launch* launch = nullptr;
  int current = -1;  // the thread that runs, by its number in the block
  int threads = 0, warp_count = 0, alive = 0, waiting = 0;
  bool is_aborted = false;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;

  char* shared = nullptr;
  size_t shared_used = 0, shared_static = 0;

  Site barrier{nullptr, 0};
  unsigned barrier_generation = 0;
  Votes votes[2];

  // Time, for accesses of memory: launches, and block barriers (blocks begin with one) since the start.
  uint32_t launch_number = 0, epoch = 0, block_start = 0;

  Fiber scheduler;
  std::vector<Fiber> fibers;
  std::vector<int> free_fibers;
  char* stacks = nullptr;
  std::minstd_rand random;
};
extern Multiprocessor sm;

// Whether the calling thread of the system runs the kernel.
extern __attribute__((tls_model("initial-exec"))) thread_local bool runs_kernel;
inline bool is_in_kernel() { return runs_kernel && 0 <= sm.current; }

constexpr size_t STACK = 256 << 10;  // bytes of a fiber, a guard page included
inline bool is_stack(const void* p) {
  return static_cast<size_t>(static_cast<const char*>(p) - sm.stacks) < STACK * MOST_THREADS;
}
inline bool is_shared(const void* p) {
  return static_cast<size_t>(static_cast<const char*>(p) - sm.shared) < SHARED_SPACE;
}

// Lets kernels run again after emulator_stop.
void forget_stop();
// Gives the block up: the running thread never goes on.
[[noreturn]] void abandon_thread();
// Lets copies take place until so many batches are left.
void run_copies(Lane&, size_t batches);
void run_kernel(const Launch&);

}  // namespace cuda_emulator

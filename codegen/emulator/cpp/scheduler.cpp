#include "scheduler.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "emulator/control.h"
#include "faults.h"
#include "findings.h"
#include "memory.h"
#include "profile.h"
#include "settings.h"
#include "shadow.h"
#include "streams.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_emulator {

Multiprocessor sm;
__attribute__((tls_model("initial-exec"))) thread_local bool runs_kernel = false;

namespace {

std::recursive_mutex the_lock;
std::atomic<unsigned long> threads_run{0};
std::atomic<bool> is_stopped{false};

struct SharedVariable {
  uint32_t block = 0;  // the start of the block that has placed it
  size_t offset = 0;
};
std::vector<SharedVariable> shared_variables;

void to_scheduler() { switch_fiber(sm.fibers[sm.lanes[sm.current].fiber], sm.scheduler); }

Warp& warp_of(int thread) { return sm.warps[thread / WARP]; }
void make_ready(int thread) {
  sm.lanes[thread].state = State::ready;
  warp_of(thread).ready |= 1u << thread % WARP;
}

void complete(Warp& warp, Rendezvous& r) {
  uint64_t* values = r.values[r.generation & 1];
  int first = static_cast<int>(&warp - sm.warps.data()) * WARP;
  for (int lane = 0; lane < WARP; ++lane) {
    if (!(r.arrived >> lane & 1)) values[lane] = ~0ull;
    else if (sm.lanes[first + lane].state == State::at_meeting) make_ready(first + lane);
  }
  r.arrived = 0;
  r.generation++;
  if (r.kind == Meeting::sync) warp.epoch++;
}
bool is_complete(const Warp& warp, const Rendezvous& r) {
  unsigned expected = r.mask & warp.alive;
  return r.arrived && (r.arrived & expected) == expected;
}

void release_barrier() {
  sm.waiting = 0;
  sm.barrier = {nullptr, 0};
  sm.epoch++;
  sm.votes[++sm.barrier_generation & 1] = {0, 1, 0};
  for (int i = 0; i < sm.threads; ++i)
    if (sm.lanes[i].state == State::at_barrier) make_ready(i);
}

void end_thread() {
  Lane& lane = sm.lanes[sm.current];
  run_copies(lane, 0);
  lane.state = State::ended;
  Warp& warp = warp_of(sm.current);
  warp.alive &= ~(1u << sm.current % WARP);
  for (Rendezvous& r : warp.meetings)
    if (is_complete(warp, r)) complete(warp, r);
  sm.alive--;
  if (sm.waiting && sm.waiting == sm.alive) release_barrier();
}

// What a fiber runs: one thread after another, as the scheduler gives it to them.
void fiber_main() {
  for (;;) {
    sm.launch->call(sm.launch->arguments);
    end_thread();
    to_scheduler();
  }
}

void reset_fiber(int fiber) {
  char* stack = sm.stacks + static_cast<size_t>(fiber) * STACK;
  // Stacks of one size would all begin in the same lines of a cache: each top is moved by its own amount.
  size_t moved = static_cast<size_t>(fiber) % 61 * 128;
  prepare_fiber(sm.fibers[fiber], stack + PAGE, stack + STACK - moved, fiber_main);
}

int take_fiber() {
  if (sm.free_fibers.empty()) {
    int fiber = static_cast<int>(sm.fibers.size());
    sm.fibers.emplace_back();
    mprotect(sm.stacks + static_cast<size_t>(fiber) * STACK, PAGE, PROT_NONE);
    reset_fiber(fiber);
    return fiber;
  }
  int fiber = sm.free_fibers.back();
  sm.free_fibers.pop_back();
  return fiber;
}

void resume(int thread) {
  Lane& lane = sm.lanes[thread];
  if (lane.state == State::unstarted) lane.fiber = take_fiber();
  warp_of(thread).ready &= ~(1u << thread % WARP);
  lane.state = State::ready;
  sm.current = thread;
  threadIdx = lane.index;
  switch_fiber(sm.scheduler, sm.fibers[lane.fiber]);
  if (lane.state == State::ended) sm.free_fibers.push_back(lane.fiber);
  sm.current = -1;
}

void abandon_block() {
  for (int i = 0; i < sm.threads; ++i) {
    Lane& lane = sm.lanes[i];
    if (lane.state != State::ended && lane.state != State::unstarted) {
      reset_fiber(lane.fiber);
      sm.free_fibers.push_back(lane.fiber);
    }
    lane.state = State::ended;
    lane.copies.clear();
  }
}

void report_deadlock() {
  std::map<std::string, int> groups;
  Place first;
  for (int i = 0; i < sm.threads; ++i) {
    const Lane& lane = sm.lanes[i];
    Place at = place_of(lane.site);
    std::string where = at.file + ":" + std::to_string(at.line);
    if (lane.state == State::at_barrier) where = "wait at the barrier " + where;
    else if (lane.state == State::at_meeting) where = "wait for their warp at " + where;
    else where = "have ended";
    if (lane.state == State::at_meeting && !first.line) first = at;
    groups[where]++;
  }
  for (int i = 0; i < sm.threads && !first.line; ++i)
    if (sm.lanes[i].state == State::at_barrier) first = place_of(sm.lanes[i].site);
  std::string text;
  for (const auto& [where, count] : groups)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " threads " + where;
  finding(cudaErrorLaunchTimeout, "deadlock", first, "%s", text.c_str());
}

void make_room() {
  if (sm.stacks) return;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  sm.stacks = static_cast<char*>(mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE, flags, -1, 0));
  sm.shared = static_cast<char*>(mmap(nullptr, SHARED_SPACE, PROT_READ | PROT_WRITE, flags, -1, 0));
  if (sm.stacks == MAP_FAILED || sm.shared == MAP_FAILED) abort();
  sm.fibers.reserve(MOST_THREADS);
  sm.lanes.resize(MOST_THREADS);
  sm.warps.resize(MOST_THREADS / WARP);
}

void begin_block(const Launch& l, uint3 index) {
  blockIdx = index;
  sm.threads = sm.alive = static_cast<int>(l.block.x * l.block.y * l.block.z);
  sm.warp_count = (sm.threads + WARP - 1) / WARP;
  sm.waiting = 0;
  sm.barrier = {nullptr, 0};
  sm.is_aborted = false;
  sm.block_start = ++sm.epoch;
  sm.shared_static = 0;
  sm.shared_used = (l.dynamic_shared + 15) & ~size_t{15};
  memset(sm.shared, POISON, sm.shared_used);
  sm.votes[sm.barrier_generation & 1] = {0, 1, 0};
  unsigned i = 0;
  for (unsigned z = 0; z < l.block.z; ++z)
    for (unsigned y = 0; y < l.block.y; ++y)
      for (unsigned x = 0; x < l.block.x; ++x, ++i) {
        sm.lanes[i].index = {x, y, z};
        sm.lanes[i].state = State::unstarted;
      }
  for (int w = 0; w < sm.warp_count; ++w) {
    int members = std::min(WARP, sm.threads - w * WARP);
    Warp& warp = sm.warps[w];
    warp.ready = warp.alive = warp.members = members == WARP ? ~0u : (1u << members) - 1;
    warp.meetings.clear();
    warp.epoch = 0;
  }
}

// The numbers 0..count-1 in the order that is set, each as i ^ flip where that is one of them; count is a power of two.
uint64_t flip(uint64_t count) {
  if (settings.order < 2) return settings.order ? count - 1 : 0;
  return (static_cast<uint64_t>(sm.random()) << 31 | sm.random()) & (count - 1);
}
uint64_t power_of_two(uint64_t least) {
  uint64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// Every thread that can go on does, once or until its warp waits; whether there was one.
bool run_round() {
  bool is_progress = false;
  uint64_t warps = power_of_two(static_cast<uint64_t>(sm.warp_count)), flipped = flip(warps);
  for (uint64_t j = 0; j < warps; ++j) {
    int w = static_cast<int>(j ^ flipped);
    if (sm.warp_count <= w) continue;
    if (is_stopped) sm.is_aborted = true;
    while (sm.warps[w].ready && !sm.is_aborted) {
      is_progress = true;
      int lanes = static_cast<int>(flip(WARP));
      for (int k = 0; k < WARP && !sm.is_aborted; ++k)
        if (sm.warps[w].ready >> (k ^ lanes) & 1) resume(w * WARP + (k ^ lanes));
    }
  }
  return is_progress;
}

void run_block(const Launch& l, uint3 index) {
  sm.launch = &l;
  begin_block(l, index);
  while (0 < sm.alive && !sm.is_aborted)
    if (!run_round() && 0 < sm.alive) {
      report_deadlock();
      break;
    }
  if (0 < sm.alive) abandon_block();
  end_profiled_block();
  sm.launch = nullptr;
  threads_run += static_cast<unsigned long>(sm.threads);
  if (is_stopped && sticky_error == cudaSuccess) sticky_error = cudaErrorLaunchTimeout;
}

}  // namespace

Locked::Locked() {
  // No kernel runs while a process forks. The child makes a new lock: the old one knows its owner by another number.
  static const int is_prepared = pthread_atfork([] { the_lock.lock(); }, [] { the_lock.unlock(); },
                                                [] { new (&the_lock) std::recursive_mutex; });
  (void)is_prepared;
  the_lock.lock();
}
Locked::~Locked() { the_lock.unlock(); }

void forget_stop() { is_stopped = false; }

void abandon_thread() {
  sm.is_aborted = true;
  to_scheduler();
  abort();  // nobody goes on with it
}

void run_kernel(const Launch& l) {
  if (sticky_error != cudaSuccess) return;
  make_room();
  sm.launch_number++;
  if (!l.is_checked) trust_memory();
  blockDim = l.block;
  gridDim = l.grid;
  sm.random.seed(static_cast<unsigned>(settings.order) + 1);
  FaultHandler faults;
  runs_kernel = true;
  uint64_t blocks = static_cast<uint64_t>(l.grid.x) * l.grid.y * l.grid.z;
  uint64_t power = power_of_two(blocks), flipped = flip(power);
  for (uint64_t i = 0; i < power && sticky_error == cudaSuccess; ++i) {
    uint64_t b = i ^ flipped;
    if (blocks <= b) continue;
    uint3 index = {static_cast<unsigned>(b % l.grid.x), static_cast<unsigned>(b / l.grid.x % l.grid.y),
                   static_cast<unsigned>(b / l.grid.x / l.grid.y)};
    run_block(l, index);
  }
  runs_kernel = false;
}

// ---- what kernels call ----------------------------------------------------------------------------------------------

int new_shared_variable() {
  shared_variables.emplace_back();
  return static_cast<int>(shared_variables.size()) - 1;
}

void* shared_variable(int number, size_t bytes, size_t align) {
  SharedVariable& variable = shared_variables[number];
  if (variable.block == sm.block_start) return sm.shared + variable.offset;
  sm.shared_used = (sm.shared_used + align - 1) / align * align;
  sm.shared_static += bytes;
  size_t dynamic = sm.launch->dynamic_shared, most = SHARED_DEFAULT < dynamic ? SHARED_BYTES : SHARED_DEFAULT;
  if (SHARED_DEFAULT < sm.shared_static || most < sm.shared_static + dynamic) {
    finding(cudaErrorInvalidConfiguration, "too much shared memory", {}, "%zu bytes of variables and %zu dynamic ones",
            sm.shared_static, dynamic);
    abandon_thread();
  }
  variable = {sm.block_start, sm.shared_used};
  memset(sm.shared + variable.offset, POISON, bytes);
  sm.shared_used += bytes;
  return sm.shared + variable.offset;
}

void* dynamic_shared() { return sm.shared; }
int lane_of_warp() { return sm.current % WARP; }

Votes block_barrier(int predicate, Site site) {
  Lane& lane = sm.lanes[sm.current];
  const int generation = static_cast<int>(sm.barrier_generation & 1);
  Votes& votes = sm.votes[generation];
  votes.count += predicate;
  votes.all &= predicate;
  votes.any |= predicate;
  lane.site = site;
  if (!sm.barrier.file) sm.barrier = site;
  if (sm.barrier.line != site.line || strcmp(sm.barrier.file, site.file)) {
    Place other = place_of(sm.barrier);
    finding(cudaErrorLaunchFailure, "barrier divergence", place_of(site), "other threads of the block wait at %s:%d",
            other.file.c_str(), other.line);
    abandon_thread();
  }
  if (++sm.waiting == sm.alive) {
    release_barrier();
  } else {
    lane.state = State::at_barrier;
    to_scheduler();
  }
  return sm.votes[generation];
}

const uint64_t* warp_meeting(Meeting kind, unsigned mask, uint64_t value, Site site) {
  int l = sm.current % WARP;
  Warp& warp = warp_of(sm.current);
  if (!(mask >> l & 1)) {
    finding(cudaErrorLaunchFailure, "warp divergence", place_of(site), "the mask %#x lacks the calling lane", mask);
    abandon_thread();
  }
  size_t at = 0;
  while (at < warp.meetings.size() && warp.meetings[at].mask != mask) ++at;
  if (at == warp.meetings.size()) {
    warp.meetings.emplace_back();
    warp.meetings[at].mask = mask;
  }
  Rendezvous& r = warp.meetings[at];
  if (!r.arrived) r.kind = kind;
  if (r.kind != kind) {
    finding(cudaErrorLaunchFailure, "warp divergence", place_of(site), "other lanes wait at another operation");
    abandon_thread();
  }
  const int generation = static_cast<int>(r.generation & 1);
  r.values[generation][l] = value;
  r.arrived |= 1u << l;
  if (is_complete(warp, r)) {
    complete(warp, r);
  } else {
    sm.lanes[sm.current].site = site;
    sm.lanes[sm.current].state = State::at_meeting;
    to_scheduler();
  }
  return warp.meetings[at].values[generation];
}

void trap(Site site) {
  finding(cudaErrorLaunchFailure, "trap", place_of(site), "the kernel gave up");
  abandon_thread();
}

// ---- launches -------------------------------------------------------------------------------------------------------

namespace {

std::map<const void*, size_t> dynamic_limits;

cudaError_t refusal(const Launch& l) {
  const dim3 &b = l.block, &g = l.grid;
  uint64_t threads = static_cast<uint64_t>(b.x) * b.y * b.z;
  if (!threads || MOST_THREADS < threads || MOST_THREADS < b.x || MOST_THREADS < b.y || 64 < b.z)
    return cudaErrorInvalidConfiguration;
  if (!g.x || !g.y || !g.z || 2147483647u < g.x || 65535 < g.y || 65535 < g.z) return cudaErrorInvalidConfiguration;
  auto asked = dynamic_limits.find(l.function);
  size_t most = asked == dynamic_limits.end() ? SHARED_DEFAULT : std::max(SHARED_DEFAULT, asked->second);
  if (most < l.dynamic_shared) return cudaErrorInvalidValue;
  return is_stream(l.stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

void destroy(const Launch& l) {
  if (l.destroy) l.destroy(l.arguments);
  free(l.arguments);
}

}  // namespace

void* new_arguments(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, (bytes + 63) / 64 * 64)) abort();
  return p;
}

cudaError_t set_attribute(const void* function, cudaFuncAttribute attribute, int value) {
  Locked locked;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return result(cudaSuccess);
  if (value < 0 || SHARED_BYTES < static_cast<size_t>(value)) return result(cudaErrorInvalidValue);
  dynamic_limits[function] = static_cast<size_t>(value);
  return result(cudaSuccess);
}

void launch(const Launch& l) {
  Locked locked;
  cudaError_t error = sticky_error != cudaSuccess ? sticky_error : refusal(l);
  if (error != cudaSuccess) {
    result(error);
    destroy(l);
    return;
  }
  queue(l.stream, [l] {
    run_kernel(l);
    destroy(l);
  });
}

}  // namespace cuda_emulator

extern "C" unsigned long emulator_threads_run(void) { return cuda_emulator::threads_run; }

extern "C" int emulator_stop(void) {
  cuda_emulator::is_stopped = true;
  return 0;
}

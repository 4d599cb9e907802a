#include "streams.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "findings.h"
#include "memory.h"
#include "scheduler.h"
#include "settings.h"

namespace cuda_emulator {
namespace {

struct Moment {  // what an event stands for: the state is shared with what is queued, which may outlive the event
  uint64_t recorded = 0, reached = 0;
  double milliseconds = 0;
};

// Work, or the record of an event, or a wait for one.
struct Step {
  std::function<void()> work;
  std::shared_ptr<Moment> moment;
  uint64_t version = 0;
  bool waits = false;
};

}  // namespace
}  // namespace cuda_emulator

struct CUstream_st {
  bool is_blocking = true;  // it and the legacy stream wait for each other
  std::deque<cuda_emulator::Step> steps;
  uint64_t seen = 0;  // of the legacy stream's moments
};
struct CUevent_st {
  std::shared_ptr<cuda_emulator::Moment> moment = std::make_shared<cuda_emulator::Moment>();
};

namespace cuda_emulator {
namespace {

CUstream_st legacy;
CUstream_st of_threads;  // one for all threads of the host, as a call may run on another one than its caller
std::shared_ptr<Moment> legacy_moment = std::make_shared<Moment>();
std::set<CUstream_st*> streams = {&of_threads};  // without the legacy one
std::minstd_rand random_order;

CUstream_st* stream_of(cudaStream_t s) {
  if (s == cudaStreamPerThread) return &of_threads;
  return s == nullptr || s == cudaStreamLegacy ? &legacy : s;
}

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

bool can_run(const CUstream_st* s) {
  if (s->steps.empty()) return false;
  const Step& step = s->steps.front();
  return !step.waits || step.version <= step.moment->reached;
}

void run(Step& step) {
  if (step.waits) return;
  if (step.work) step.work();
  if (step.moment) {
    step.moment->reached = std::max(step.moment->reached, step.version);
    step.moment->milliseconds = now();
  }
}

template <class Done>
void run_until(Done is_done) {
  while (!is_done()) {
    std::vector<CUstream_st*> able;
    for (CUstream_st* s : streams)
      if (can_run(s)) able.push_back(s);
    if (can_run(&legacy)) able.push_back(&legacy);
    if (able.empty()) {
      finding(cudaErrorLaunchTimeout, "deadlock", {}, "streams wait for each other");
      return;
    }
    CUstream_st* s = able[random_order() % able.size()];
    Step step = std::move(s->steps.front());
    s->steps.pop_front();
    run(step);
  }
}

void add(CUstream_st* s, Step step) {
  if (!settings.streams) return run(step);
  if (s == &legacy) {
    for (CUstream_st* other : streams)
      if (other->is_blocking && !other->steps.empty()) {
        auto moment = std::make_shared<Moment>();
        other->steps.push_back({nullptr, moment, 1, false});
        s->steps.push_back({nullptr, moment, 1, true});
      }
    s->steps.push_back(std::move(step));
    s->steps.push_back({nullptr, legacy_moment, ++legacy_moment->recorded, false});
    return;
  }
  if (s->is_blocking && s->seen < legacy_moment->recorded) {
    s->steps.push_back({nullptr, legacy_moment, legacy_moment->recorded, true});
    s->seen = legacy_moment->recorded;
  }
  s->steps.push_back(std::move(step));
}

void run_stream(CUstream_st* s) {
  run_until([s] { return s->steps.empty(); });
}

cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const void* code) {
  bool into_device = allocation_of(to), from_device = allocation_of(from);
  if (kind == cudaMemcpyDefault)
    kind = into_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                       : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  bool wants_into = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  cudaError_t error = wants_into ? check_range(to, bytes, "the target", code) : cudaSuccess;
  if (error == cudaSuccess && wants_from) error = check_range(from, bytes, "the source", code);
  if (error == cudaSuccess && bytes && ((!wants_into && into_device) || (!wants_from && from_device))) {
    finding(cudaSuccess, "invalid copy", place_of(code), "the direction is wrong: device memory taken for host memory");
    return cudaErrorInvalidMemcpyDirection;
  }
  return error;
}

void copy(void* to, const void* from, size_t bytes, const void* code) {
  if (sticky_error != cudaSuccess) return;
  memmove(to, from, bytes);
  size_t first = 0, unwritten = count_unwritten(from, bytes, &first);
  if (unwritten && !allocation_of(to))
    finding(cudaSuccess, "uninitialised copy", place_of(code), "%zu of %zu bytes, the first at %zu, were never written",
            unwritten, bytes, first);
  mark_written(to, bytes, !unwritten);
}

cudaError_t queue_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s,
                       const void* code) {
  if (sticky_error != cudaSuccess) return sticky_error;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  cudaError_t error = check_copy(to, from, bytes, kind, code);
  if (error != cudaSuccess) return result(error);
  queue(s, [=] { copy(to, from, bytes, code); });
  return result(cudaSuccess);
}

cudaError_t queue_set(void* p, int value, size_t bytes, cudaStream_t s, const void* code) {
  if (sticky_error != cudaSuccess) return sticky_error;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  cudaError_t error = check_range(p, bytes, "cudaMemset", code);
  if (error != cudaSuccess) return result(error);
  queue(s, [=] {
    memset(p, value, bytes);
    mark_written(p, bytes, true);
  });
  return result(cudaSuccess);
}

}  // namespace

bool is_stream(cudaStream_t s) {
  CUstream_st* stream = stream_of(s);
  return stream == &legacy || streams.count(stream);
}

void queue(cudaStream_t s, std::function<void()> work) { add(stream_of(s), {std::move(work), nullptr, 0, false}); }

void run_all_streams() {
  run_until([] {
    return legacy.steps.empty() && std::all_of(streams.begin(), streams.end(), [](auto* s) { return s->steps.empty(); });
  });
}

void reseed_streams(long long seed) {
  run_all_streams();
  random_order.seed(static_cast<unsigned>(seed) + 1);
}

}  // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  return queue_copy(to, from, bytes, kind, s, code);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  cudaError_t error = queue_copy(to, from, bytes, kind, nullptr, code);
  run_stream(&legacy);
  return result(error);
}

cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t s) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  return queue_set(p, value, bytes, s, code);
}

cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  return queue_set(p, value, bytes, nullptr, code);
}

cudaError_t cudaDeviceSynchronize(void) {
  Locked locked;
  run_all_streams();
  return result(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  Locked locked;
  *s = new CUstream_st;
  (*s)->is_blocking = !(flags & cudaStreamNonBlocking);
  streams.insert(*s);
  return result(cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithFlags(s, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t s) {
  Locked locked;
  if (!streams.count(s)) return result(cudaErrorInvalidResourceHandle);
  run_stream(s);
  streams.erase(s);
  delete s;
  return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  Locked locked;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  run_stream(stream_of(s));
  return result(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t s) {
  Locked locked;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  return stream_of(s)->steps.empty() ? result(cudaSuccess) : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  Locked locked;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  if (e->moment->recorded) add(stream_of(s), {nullptr, e->moment, e->moment->recorded, true});
  return result(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t e) {
  Locked locked;
  delete e;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  Locked locked;
  if (!is_stream(s)) return result(cudaErrorInvalidResourceHandle);
  add(stream_of(s), {nullptr, e->moment, ++e->moment->recorded, false});
  return result(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  Locked locked;
  std::shared_ptr<Moment> moment = e->moment;
  run_until([moment] { return moment->recorded <= moment->reached; });
  return result(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
  Locked locked;
  return e->moment->recorded <= e->moment->reached ? result(cudaSuccess) : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  Locked locked;
  const Moment &a = *from->moment, &b = *to->moment;
  if (!a.recorded || !b.recorded) return result(cudaErrorInvalidResourceHandle);
  if (a.reached < a.recorded || b.reached < b.recorded) return cudaErrorNotReady;
  *milliseconds = static_cast<float>(b.milliseconds - a.milliseconds);
  return cudaSuccess;
}

}  // extern "C"

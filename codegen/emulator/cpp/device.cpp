// What the emulated machine says of itself, and the names of errors.
#include <cstdio>
#include <cstring>

#include "findings.h"
#include "memory.h"
#include "scheduler.h"
#include "settings.h"

using namespace cuda_emulator;

namespace {

struct ErrorName {
  cudaError_t error;
  const char *name, *text;
};
#define NAMED(error, text) {error, #error, text}
const ErrorName errors[] = {
    NAMED(cudaSuccess, "no error"),
    NAMED(cudaErrorInvalidValue, "invalid argument"),
    NAMED(cudaErrorMemoryAllocation, "out of memory"),
    NAMED(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    NAMED(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    NAMED(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    NAMED(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    NAMED(cudaErrorInvalidDevice, "invalid device ordinal"),
    NAMED(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    NAMED(cudaErrorNotReady, "device not ready"),
    NAMED(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    NAMED(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    NAMED(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    NAMED(cudaErrorMisalignedAddress, "misaligned address"),
    NAMED(cudaErrorLaunchFailure, "unspecified launch failure"),
    NAMED(cudaErrorNotSupported, "operation not supported"),
    NAMED(cudaErrorUnknown, "unknown error"),
};
#undef NAMED

const ErrorName& named(cudaError_t error) {
  for (const ErrorName& e : errors)
    if (e.error == error) return e;
  return errors[sizeof errors / sizeof *errors - 1];
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t error) { return named(error).text; }
const char* cudaGetErrorName(cudaError_t error) { return named(error).name; }

cudaError_t cudaGetLastError(void) {
  Locked locked;
  cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  Locked locked;
  return sticky_error != cudaSuccess ? sticky_error : last_error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  Locked locked;
  *count = static_cast<int>(settings.devices);
  return *count ? cudaSuccess : result(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Locked locked;
  if (device < 0 || settings.devices <= device) return result(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  Locked locked;
  if (device < 0 || settings.devices <= device) return result(cudaErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "emulated on a CPU");
  p->totalGlobalMem = static_cast<size_t>(settings.memory);
  p->sharedMemPerBlock = SHARED_DEFAULT;
  p->sharedMemPerBlockOptin = SHARED_BYTES;
  p->sharedMemPerMultiprocessor = SHARED_BYTES + 1024;
  p->regsPerBlock = 65536;
  p->warpSize = WARP;
  p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = MOST_THREADS;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->major = static_cast<int>(settings.capability / 10);
  p->minor = static_cast<int>(settings.capability % 10);
  p->multiProcessorCount = static_cast<int>(settings.multiprocessors);
  p->l2CacheSize = 4 << 20;
  p->maxThreadsPerMultiProcessor = 2048;
  p->concurrentKernels = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  cudaError_t error = cudaGetDeviceProperties(&p, device);
  if (error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    default: return result(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"

// NVIDIA's driver as far as programs need it, played by the emulator. Machine code is the path of a library that has
// `start_kernel`, which starts a kernel of that library by its name.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <string>

namespace {
using Starter = int (*)(const char*, dim3, dim3, size_t, cudaStream_t, void**);
struct Kernel {
  Starter start;
  std::string name;
};
constexpr int kInvalidContext = 201, kNotFound = 500;
thread_local int depth = 0, before = 0;

// What a function gives in a context; without one it fails, as the driver's do.
template <class F>
int inside(F function) {
  return depth == 0 ? kInvalidContext : static_cast<int>(function());
}
}  // namespace

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) { return cudaGetDeviceCount(count); }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device);
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &depth, 0; }
int cuCtxPushCurrent_v2(void*) { return ++depth, cudaGetDevice(&before), cudaSetDevice(0); }
int cuCtxPopCurrent_v2(void** context) { return *context = &depth, --depth, cudaSetDevice(before); }

int cuMemAlloc_v2(void** memory, size_t bytes) {
  return inside([=] { return cudaMalloc(memory, bytes); });
}
int cuMemFree_v2(void* memory) {
  return inside([=] { return cudaFree(memory); });
}
int cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return inside([=] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream); });
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return inside([=] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream); });
}
int cuMemsetD8Async(void* memory, unsigned char value, size_t bytes, cudaStream_t stream) {
  return inside([=] { return cudaMemsetAsync(memory, value, bytes, stream); });
}
int cuStreamSynchronize(cudaStream_t stream) {
  return inside([=] { return cudaStreamSynchronize(stream); });
}
int cuEventCreate(cudaEvent_t* event, unsigned flags) {
  return inside([=] { return cudaEventCreateWithFlags(event, flags); });
}
int cuEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return inside([=] { return cudaEventRecord(event, stream); });
}
int cuStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return inside([=] { return cudaStreamWaitEvent(stream, event, flags); });
}
int cuEventDestroy_v2(cudaEvent_t event) {
  return inside([=] { return cudaEventDestroy(event); });
}
int cuPointerGetAttribute(int* value, int attribute, const void* address) {
  return inside([=] {
    cudaPointerAttributes known;
    const cudaError_t status = cudaPointerGetAttributes(&known, address);
    if (status != cudaSuccess || known.type == cudaMemoryTypeUnregistered) return cudaErrorInvalidValue;
    const int type = known.type == cudaMemoryTypeHost ? 1 : 2;
    *value = attribute == 2 ? type : attribute == 9 ? known.device : known.type == cudaMemoryTypeManaged;
    return cudaSuccess;
  });
}
int cuGetErrorString(int status, const char** text) {
  return *text = cudaGetErrorString(static_cast<cudaError_t>(status)), 0;
}

int cuModuleLoadData(void** module, const void* image) {
  return inside([=] {
    void* library = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
    *module = library == nullptr ? nullptr : dlsym(library, "start_kernel");
    return *module == nullptr ? kNotFound : 0;
  });
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return inside([=] { return *function = new Kernel{reinterpret_cast<Starter>(module), name}, 0; });
}
int cuLaunchKernel(const void* function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, cudaStream_t stream, void** values, void** extra) {
  if (extra != nullptr) return cudaErrorInvalidValue;
  return inside([=] {
    const Kernel& kernel = *static_cast<const Kernel*>(function);
    return kernel.start(kernel.name.c_str(), {x, y, z}, {block_x, block_y, block_z}, shared, stream, values);
  });
}
}

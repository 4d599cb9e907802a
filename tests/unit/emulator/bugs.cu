// A mistake a kernel, marked where it is to be found: BUG, and the kind of the finding.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <string.h>

__global__ void missing_barrier(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = (float)threadIdx.x;
  y[threadIdx.x] = s[63 - threadIdx.x];  // BUG shared-memory race
}
__global__ void missing_second_barrier(const float* x, float* y) {
  __shared__ float s[64];
  float sum = 0.0f;
  for (int i = 0; i < 256; i += 64) {
    s[threadIdx.x] = x[i + threadIdx.x];  // BUG shared-memory race
    __syncthreads();
    for (int j = 0; j < 64; ++j) sum += s[j];
  }
  y[threadIdx.x] = sum;
}
__global__ void two_writers(float* y) {
  __shared__ float s[1];
  if (threadIdx.x % 32 == 0) s[0] = (float)threadIdx.x;  // BUG shared-memory race
  __syncthreads();
  y[threadIdx.x] = s[0];
}
__global__ void race_of_bytes(float* y) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = (unsigned char)threadIdx.x;
  y[threadIdx.x] = s[(threadIdx.x + 33) % 64];  // BUG shared-memory race
}
__global__ void race_of_bytes_of_a_warp(float* y) {
  __shared__ unsigned char s[32];
  s[threadIdx.x] = (unsigned char)threadIdx.x;
  y[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG shared-memory race
}
__global__ void missing_syncwarp(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = (float)threadIdx.x;
  y[threadIdx.x] = s[31 - threadIdx.x];  // BUG shared-memory race
}
__global__ void shuffle_is_no_barrier(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = (float)threadIdx.x;
  __shfl_xor_sync(0xffffffffu, 0.0f, 1);
  y[threadIdx.x] = s[31 - threadIdx.x];  // BUG shared-memory race
}
__global__ void race_of_blocks(float* y) {
  if (threadIdx.x == 0) y[0] += 1.0f;  // BUG global-memory race
}
__global__ void race_in_a_block(float* y) {
  y[threadIdx.x] = 1.0f;
  y[threadIdx.x] += y[(threadIdx.x + 1) % 64];  // BUG global-memory race
}
__global__ void write_after_read_of_blocks(float* y) {
  float v = y[threadIdx.x];
  if (blockIdx.x == 1 || v < 0.0f) y[threadIdx.x] = v + 1.0f;  // BUG global-memory race
}
__global__ void read_past_the_end(const float* x, float* y) {
  y[threadIdx.x] = x[193 + threadIdx.x];  // BUG illegal read
}
__global__ void write_past_the_end(float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= 64) y[i] = 1.0f;  // BUG illegal write
}
__global__ void read_past_shared(float* y) {
  extern __shared__ float s[];
  s[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x + 1];  // BUG out-of-bounds shared access
}
__global__ void past_a_row(float* y) {
  __shared__ float s[8][8];
  s[threadIdx.x / 8][threadIdx.x % 8] = 1.0f;
  __syncthreads();
  int column = threadIdx.x == 5 ? 8 : 0;
  y[threadIdx.x] = s[0][column];  // BUG index out of bounds
}
__global__ void misaligned_vector(const float* x, float* y) {
  float4 v = *reinterpret_cast<const float4*>(x + 1 + 4 * (threadIdx.x % 8));  // BUG misaligned access
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
__global__ void unwritten_shared(float* y) {
  __shared__ float s[64];
  if (threadIdx.x != 7) s[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // BUG uninitialised shared read
}
__global__ void unwritten_global(float* y) {
  y[threadIdx.x] += 1.0f;  // BUG uninitialised global read
}
__global__ void divergent_barrier(float* y) {
  if (threadIdx.x < 32) {
    y[threadIdx.x] = 1.0f;
    __syncthreads();
  } else {
    y[threadIdx.x] = 2.0f;
    __syncthreads();  // BUG barrier divergence
  }
}
__global__ void partial_shuffle(float* y) {
  float v = (float)threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffffu, v, 1);  // BUG deadlock
  __syncthreads();
  y[threadIdx.x] = v;
}
__global__ void mask_without_caller(float* y) {
  y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0);  // BUG warp divergence
}
__global__ void missing_wait(const float* x, float* y) {
  __shared__ __align__(16) float s[256];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // BUG uninitialised shared read
}
__global__ void host_pointer(const float* host, float* y) {
  y[threadIdx.x] = host[threadIdx.x];  // BUG illegal read
}
#ifndef __CUDACC__  // which refuses it when it compiles
__global__ void too_much_shared(float* y) {
  __shared__ float s[16000];
  s[threadIdx.x] = y[threadIdx.x];
}
#endif
__global__ void overflow(int* y, int by) {
  y[threadIdx.x] = (1 << 30) * by;  // BUG undefined arithmetic
}
__global__ void leaves_one_out(float* y) {
  if (threadIdx.x != 3) y[threadIdx.x] = 1.0f;
}
__global__ void fills(float* y) { y[threadIdx.x] = 1.0f; }

// x has 256 elements on the device, y 64; host pointers are the caller's.
extern "C" int bug(const char* name, const float* x, float* y, float* host) {
  auto is = [name](const char* wanted) { return !strcmp(name, wanted); };
  if (is("missing_barrier")) missing_barrier<<<1, 64>>>(y);
  if (is("missing_second_barrier")) missing_second_barrier<<<1, 64>>>(x, y);
  if (is("two_writers")) two_writers<<<1, 64>>>(y);
  if (is("race_of_bytes")) race_of_bytes<<<1, 64>>>(y);
  if (is("race_of_bytes_of_a_warp")) race_of_bytes_of_a_warp<<<1, 32>>>(y);
  if (is("missing_syncwarp")) missing_syncwarp<<<1, 32>>>(y);
  if (is("shuffle_is_no_barrier")) shuffle_is_no_barrier<<<1, 32>>>(y);
  if (is("race_of_blocks")) race_of_blocks<<<4, 64>>>(y);
  if (is("race_in_a_block")) race_in_a_block<<<1, 64>>>(y);
  if (is("write_after_read_of_blocks")) write_after_read_of_blocks<<<2, 64>>>(y);
  if (is("read_past_the_end")) read_past_the_end<<<1, 64>>>(x, y);
  if (is("write_past_the_end")) write_past_the_end<<<3, 32>>>(y);
  if (is("read_past_shared")) read_past_shared<<<1, 64, 64 * sizeof(float)>>>(y);
  if (is("past_a_row")) past_a_row<<<1, 64>>>(y);
  if (is("misaligned_vector")) misaligned_vector<<<1, 64>>>(x, y);
  if (is("unwritten_shared")) unwritten_shared<<<1, 64>>>(y);
  if (is("divergent_barrier")) divergent_barrier<<<1, 64>>>(y);
  if (is("partial_shuffle")) partial_shuffle<<<1, 64>>>(y);
  if (is("mask_without_caller")) mask_without_caller<<<1, 32>>>(y);
  if (is("missing_wait")) missing_wait<<<1, 64>>>(x, y);
  if (is("host_pointer")) host_pointer<<<1, 64>>>(host, y);
#ifndef __CUDACC__
  if (is("too_much_shared")) too_much_shared<<<1, 64>>>(y);
#endif
  if (is("overflow")) overflow<<<1, 64>>>((int*)y, 4);
  if (is("host_dereference")) y[3] = 1.0f;  // BUG host access to device memory
  if (is("copy_too_long")) cudaMemcpy(host, y, 257, cudaMemcpyDeviceToHost);  // BUG invalid copy
  if (is("copy_backwards")) cudaMemcpy(host, y, 256, cudaMemcpyHostToDevice);  // BUG invalid copy
  if (is("free_of_host")) cudaFree(host);  // BUG invalid free
  if (is("too_many_threads")) fills<<<1, 2048>>>(y);
  if (is("empty_grid")) fills<<<0, 64>>>(y);
  if (is("too_much_dynamic")) fills<<<1, 64, 50000>>>(y);
  int status = (int)cudaGetLastError();
  return status ? status : (int)cudaDeviceSynchronize();
}

// Memory that nothing has written: read by a kernel, and copied to the host.
extern "C" int unwritten(float* host, int is_read) {
  float* fresh = nullptr;
  int status = (int)cudaMalloc(&fresh, 64 * sizeof(float));
  if (status) return status;
  if (is_read)
    unwritten_global<<<1, 64>>>(fresh);
  else
    leaves_one_out<<<1, 64>>>(fresh);
  cudaMemcpy(host, fresh, 64 * sizeof(float), cudaMemcpyDeviceToHost);  // BUG uninitialised copy
  return (int)cudaFree(fresh);
}

// Allocates twice; where the second fails, the first is lost to whoever called.
static float* lost = nullptr;
extern "C" int leak(void) {
  float *one = nullptr, *two = nullptr;
  int status = (int)cudaMalloc(&one, 256);
  if (status) return status;
  lost = one;
  status = (int)cudaMalloc(&two, 256);
  if (status) return status;
  cudaFree(one);
  return (int)cudaFree(two);
}
extern "C" int free_what_was_lost(void) { return (int)cudaFree(lost); }

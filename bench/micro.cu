/* What instructions, caches and launches of a GPU take. Every function has the same form: it runs so many blocks of
   so many iterations, stores the seconds of the second of two runs, and gives a status of CUDA. */
#include <cuda_runtime.h>

#define THREADS 256
#define TRY(call) do { const cudaError_t error = (call); if (error != cudaSuccess) return (int)error; } while (0)

namespace {

/* two loads of 16 bytes from shared memory, as the threads of a product have them: a warp is so many lanes wide */
template <int Lanes>
__global__ void load_shared(int iterations, int step, unsigned *out)
{
    __shared__ uint4 tile[2][16 * 32];
    for (int n = threadIdx.x; n < 2 * 16 * 32; n += THREADS) tile[n / 512][n % 512] = make_uint4(n, n + 1, n + 2, n + 3);
    __syncthreads();
    const int lane = threadIdx.x % 32;
    uint4 found = make_uint4(0, 0, 0, 0);
#pragma unroll 8
    for (int n = 0; n < iterations; ++n) {
        const int row = (n * step & 15) * 32; /* of more rows than iterations are unrolled: no load is invariant */
        const uint4 a = tile[0][row + lane / Lanes], b = tile[1][row + lane % Lanes];
        found.x ^= a.x ^ b.x;
        found.y ^= a.y ^ b.y;
        found.z ^= a.z ^ b.z;
        found.w ^= a.w ^ b.w;
    }
    out[blockIdx.x * THREADS + threadIdx.x] = found.x ^ found.y ^ found.z ^ found.w;
}

/* 32 products and sums of f32, whose factors are loaded from shared memory by so many loads of 16 bytes */
template <int Loads>
__global__ void multiply(int iterations, int step, float *out)
{
    __shared__ float4 tile[Loads + 1][8 * 32]; /* of each load its own: no two loads are the same */
    for (int n = threadIdx.x; n < (Loads + 1) * 8 * 32; n += THREADS) tile[n / 256][n % 256] = make_float4(1, 0, 1, n);
    __syncthreads();
    float sums[32], factors[4 * (Loads + 1)];
    for (int n = 0; n < 32; ++n) sums[n] = 0;
    for (int n = 0; n < 4 * (Loads + 1); ++n) factors[n] = (float)(step + n);
#pragma unroll 4
    for (int n = 0; n < iterations; ++n) {
#pragma unroll
        for (int load = 0; load < Loads; ++load) {
            const float4 loaded = tile[load][(n * step & 7) * 32 + threadIdx.x % 32];
            factors[4 * load] = loaded.x;
            factors[4 * load + 1] = loaded.y;
            factors[4 * load + 2] = loaded.z;
            factors[4 * load + 3] = loaded.w;
        }
#pragma unroll
        for (int at = 0; at < 32; ++at) sums[at] = fmaf(factors[at % (4 * (Loads + 1))], factors[at / 8 % 4], sums[at]);
    }
    float sum = 0;
    for (int n = 0; n < 32; ++n) sum += sums[n];
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

/* 8 sums of f64, of numbers that are converted from f32, or not */
template <bool Converts>
__global__ void add_wide(int iterations, int step, double *out)
{
    double sums[8];
    float terms[8];
    for (int n = 0; n < 8; ++n) terms[n] = (float)(sums[n] = step + n);
    for (int n = 0; n < iterations; ++n) {
#pragma unroll
        for (int at = 0; at < 8; ++at) {
            if (Converts) {
                terms[at] += (float)step;
                sums[at] += (double)terms[at];
            } else {
                sums[at] += sums[(at + 1) % 8];
            }
        }
    }
    double sum = 0;
    for (int n = 0; n < 8; ++n) sum += sums[n];
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

/* reads of 16 bytes from an array that the cache of the device holds, again and again */
__global__ void read_cached(int iterations, int count, const uint4 *from, unsigned *out)
{
    unsigned found = 0;
    int at = (blockIdx.x * THREADS + threadIdx.x) % count;
#pragma unroll 8
    for (int n = 0; n < iterations; ++n) {
        const uint4 read = __ldcg(&from[at]);
        found ^= read.x ^ read.y ^ read.z ^ read.w;
        at += gridDim.x * THREADS;
        at -= count <= at ? count : 0;
    }
    out[blockIdx.x * THREADS + threadIdx.x] = found;
}

#ifdef __NVCC__
/* wait for so many times 1,000 cycles */
__global__ void wait_for(int iterations, int step, int *out)
{
    const long long begin = clock64();
    while (clock64() - begin < 1000LL * iterations * step) {}
    out[blockIdx.x * THREADS + threadIdx.x] = step;
}
#endif

__global__ void nothing() {}

/* the second of two runs of a launch, on a stream that is waited for */
template <class Launch>
int timed(Launch launch, double *seconds)
{
    cudaEvent_t begin, end;
    TRY(cudaEventCreate(&begin));
    TRY(cudaEventCreate(&end));
    launch();
    TRY(cudaEventRecord(begin, 0));
    launch();
    TRY(cudaEventRecord(end, 0));
    TRY(cudaEventSynchronize(end));
    float ms = 0;
    TRY(cudaEventElapsedTime(&ms, begin, end));
    TRY(cudaGetLastError());
    TRY(cudaEventDestroy(begin));
    TRY(cudaEventDestroy(end));
    *seconds = ms * 1e-3;
    return 0;
}

/* the same of a kernel that takes a number, 1, and an array with an element for each thread */
template <class T>
int timed_kernel(void (*kernel)(int, int, T *), int blocks, int iterations, double *seconds)
{
    T *out;
    TRY(cudaMalloc((void **)&out, (size_t)blocks * THREADS * sizeof(T)));
    const int status = timed([=] { kernel<<<blocks, THREADS>>>(iterations, 1, out); }, seconds);
    TRY(cudaFree(out));
    return status;
}

} // namespace

#define MICRO(name, kernel) \
    extern "C" int name(int blocks, int iterations, double *seconds) \
    { return timed_kernel(kernel, blocks, iterations, seconds); }

#ifdef __NVCC__
MICRO(wait_for_cycles, wait_for)
#endif
MICRO(load_1x32, load_shared<32>)
MICRO(load_2x16, load_shared<16>)
MICRO(load_4x8, load_shared<8>)
MICRO(multiply_alone, multiply<0>)
MICRO(multiply_1, multiply<1>)
MICRO(multiply_2, multiply<2>)
MICRO(multiply_4, multiply<4>)
MICRO(add_f64, add_wide<false>)
MICRO(add_converted, add_wide<true>)

/* 16 MB, which the caches of all devices that matter hold */
extern "C" int read_l2(int blocks, int iterations, double *seconds)
{
    const int count = 1 << 20;
    uint4 *from;
    unsigned *out;
    TRY(cudaMalloc((void **)&from, count * sizeof(uint4)));
    TRY(cudaMalloc((void **)&out, (size_t)blocks * THREADS * sizeof(unsigned)));
    TRY(cudaMemset(from, 0, count * sizeof(uint4)));
    const int status = timed([=] { read_cached<<<blocks, THREADS>>>(iterations, count, from, out); }, seconds);
    TRY(cudaFree(from));
    TRY(cudaFree(out));
    return status;
}

extern "C" int launch_plain(int, int iterations, double *seconds)
{
    return timed([=] { for (int n = 0; n < iterations; ++n) nothing<<<1, 32>>>(); }, seconds);
}

#ifdef __NVCC__
/* the same launches as a graph, which is launched as one */
extern "C" int launch_graph(int, int iterations, double *seconds)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t recorded;
    TRY(cudaStreamCreate(&stream));
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int n = 0; n < iterations; ++n) nothing<<<1, 32, 0, stream>>>();
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaGraphInstantiate(&recorded, graph, 0));
    const int status = timed([=] { cudaGraphLaunch(recorded, 0); }, seconds);
    TRY(cudaGraphExecDestroy(recorded));
    TRY(cudaGraphDestroy(graph));
    TRY(cudaStreamDestroy(stream));
    return status;
}
#endif

extern "C" int multiprocessors(int *count)
{
    return (int)cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, 0);
}

/* the bytes of an array; false if an extent is negative or the bytes are more than memory can be */
static bool measure(size_t *bytes, size_t element, std::initializer_list<int64_t> extents)
{
    size_t most = element;
    *bytes = element;
    for (const int64_t extent : extents) {
        if (extent < 0) return false;
        if (extent > 0 && (uint64_t)extent > (SIZE_MAX / 4) / most) return false;
        most *= extent > 0 ? (size_t)extent : 1;
        *bytes *= (size_t)extent;
    }
    return true;
}

/* a number of bytes rounded up to what cudaMalloc aligns to */
static __host__ __device__ inline size_t padded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* add a padded number of bytes, so many times, to a total; false if that is more than memory can be */
static bool add(size_t *total, size_t bytes, size_t times)
{
    if (bytes > SIZE_MAX / 8 || padded(bytes) > (SIZE_MAX / 4 - *total) / times) return false;
    *total += padded(bytes) * times;
    return true;
}

/* an extent that follows from others: (sum of factor * extent + offset) / divisor, rounded down; false if there is none */
static bool derive(int64_t *size, std::initializer_list<int64_t> terms, int64_t offset, int64_t divisor, bool exact,
                   int64_t least)
{
    int64_t total = offset;
    for (const int64_t *term = terms.begin(); term != terms.end(); term += 2) {
        const int64_t factor = term[0], extent = term[1], times = factor < 0 ? -factor : factor;
        if (extent > INT64_MAX / 8 / times) return false;
        if (total > INT64_MAX / 2 || total < -(INT64_MAX / 2)) return false;
        total += factor * extent;
    }
    *size = total / divisor - (total % divisor < 0);
    if (*size < least || *size > INT64_MAX / 8) return false;
    return !exact || total % divisor == 0;
}

/* the product of extents; false if it is more than an extent can be */
static bool multiply(int64_t *size, std::initializer_list<int64_t> extents)
{
    *size = 1;
    for (const int64_t extent : extents) {
        if (extent == 0) *size = 0;
    }
    for (const int64_t extent : extents) {
        if (*size > 0 && extent > INT64_MAX / 8 / *size) return false;
        *size *= extent;
    }
    return true;
}

/* an extent of a composition: the product of extents, divided by that of others without remainder; false if there is none */
static bool compose(int64_t *size, std::initializer_list<int64_t> over, std::initializer_list<int64_t> under)
{
    int64_t whole = 0, part = 0;
    if (!multiply(&whole, over) || !multiply(&part, under) || part == 0) return false;
    *size = whole / part;
    return whole % part == 0;
}

/* the first address at or after another one that cudaMalloc could have given */
static char *start_in(void *address)
{
    return (char *)address + (256 - (uintptr_t)address % 256) % 256;
}

/* whether two stretches of memory share a byte */
static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && p < q + b_bytes && q < p + a_bytes;
}

/* status 1 if a pointer to something is NULL, 2 if what is written overlaps anything else */
static int check(const void *const *arrays, const size_t *bytes, int count, int inputs, const void *work,
                 size_t work_bytes)
{
    if (work == NULL && work_bytes > 0) return 1;
    for (int a = 0; a < count; ++a) {
        if (arrays[a] == NULL && bytes[a] > 0) return 1;
        if (overlap(arrays[a], bytes[a], work, work_bytes)) return 2;
        for (int b = 0; b < a; ++b) {
            if (a >= inputs && overlap(arrays[a], bytes[a], arrays[b], bytes[b])) return 2;
        }
    }
    return 0;
}

/* the threads and the blocks that a multiprocessor has room for at a time */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1030
#define RESIDENT_THREADS() 2048
#define RESIDENT_BLOCKS() 32
#elif __CUDA_ARCH__ == 750
#define RESIDENT_THREADS() 1024
#define RESIDENT_BLOCKS() 16
#else
#define RESIDENT_THREADS() 1536
#define RESIDENT_BLOCKS() 16
#endif

/* how many blocks registers are to leave room for: so many, or as many as there are threads for */
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define AT_A_TIME(blocks, threads) LESSER(blocks, LESSER(RESIDENT_BLOCKS(), RESIDENT_THREADS() / (threads)))

/* the blocks that have a thread for each iteration, or as many as a launch may have: threads then do several */
static unsigned blocks_of(int64_t iterations, int64_t threads, int64_t most)
{
    const int64_t blocks = iterations / threads + (iterations % threads != 0);
    return (unsigned)(blocks < most ? blocks : most);
}

/* whether products of extents are all below a number: indices then have 32 bits; compiled with -DIL_WIDE, never */
static bool are_below(int64_t most, std::initializer_list<std::initializer_list<int64_t>> counts)
{
#ifdef IL_WIDE
    most = 0;
#endif
    for (const std::initializer_list<int64_t> &extents : counts) {
        int64_t product = 1;
        for (const int64_t extent : extents) {
            if (extent > (most - 1) / product) return false;
            product *= extent > 1 ? extent : 1;
        }
    }
    return true;
}

/* how many threads have so many bytes of scratch storage each */
static int64_t scratches(size_t scratch_bytes, int64_t most, size_t most_bytes)
{
    if (scratch_bytes == 0) return most;
    const size_t count = most_bytes / scratch_bytes;
    return count < 1 ? 1 : count < (size_t)most ? (int64_t)count : most;
}

/* how many blocks a reduction is computed in, from the number of its terms */
static int64_t blocks(double terms, int64_t most, double each)
{
    return terms < (double)most * each ? (int64_t)(terms / each) + 1 : most;
}

/*
 * How many chunks iterations are divided into: as many as give all tiles `most` blocks, of `least` iterations each. The
 * blocks of an H100 are taken on every device: other chunks add in another order, and results would differ in last bits.
 */
static int64_t parts_of(int64_t iterations, int64_t least, std::initializer_list<int64_t> tiles, int64_t most)
{
    int64_t parts = most;
    for (const int64_t count : tiles) {
        if (count > 0) parts /= count;
    }
    const int64_t enough = iterations / least;
    parts = parts < enough ? parts : enough;
    return parts > 1 ? parts : 1;
}

/* memory of the device, given back when it is left */
struct Memory {
    void *start = NULL;
    Memory() {}
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() { cudaFree(start); }
};

/* write 1 where an index is less than 0, or not below an extent, or something was written before */
static __global__ void outside_i32(const int32_t *indices, int64_t count, int64_t extent, const int *before, int *outside)
{
    if (before != NULL && *before != 0) {
        if (threadIdx.x == 0) atomicMax(outside, 1);
        return;
    }
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        if (indices[n] < 0 || extent <= indices[n]) atomicMax(outside, 1);
    }
}

/* look at so many indices: 1 is written where one is less than 0, or not below an extent, or it was before */
static cudaError_t look_at_i32(const int32_t *indices, int64_t count, int64_t extent, const int *before, int *outside,
                               cudaStream_t stream)
{
    if (count == 0 && before == NULL) return cudaSuccess;
    const unsigned blocks = count == 0 ? 1 : blocks_of(count, 256, 1024);
    outside_i32<<<blocks, 256, 0, stream>>>(indices, count, extent, before, outside);
    return cudaGetLastError();
}

/* write 1 where an index is less than 0, or not below an extent, or something was written before */
static __global__ void outside_i64(const int64_t *indices, int64_t count, int64_t extent, const int *before, int *outside)
{
    if (before != NULL && *before != 0) {
        if (threadIdx.x == 0) atomicMax(outside, 1);
        return;
    }
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        if (indices[n] < 0 || extent <= indices[n]) atomicMax(outside, 1);
    }
}

/* look at so many indices: 1 is written where one is less than 0, or not below an extent, or it was before */
static cudaError_t look_at_i64(const int64_t *indices, int64_t count, int64_t extent, const int *before, int *outside,
                               cudaStream_t stream)
{
    if (count == 0 && before == NULL) return cudaSuccess;
    const unsigned blocks = count == 0 ? 1 : blocks_of(count, 256, 1024);
    outside_i64<<<blocks, 256, 0, stream>>>(indices, count, extent, before, outside);
    return cudaGetLastError();
}

/* write 1 where a number is infinite, or NaN, unless an index was out of range before */
static __global__ void infinite_f32(const float *numbers, int64_t count, const int *before, int *infinite)
{
    if (before != NULL && *before != 0) return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        if (!isfinite(numbers[n])) atomicMax(infinite, 1);
    }
}

/* look at so many numbers: 1 is written where one is infinite, or NaN */
static cudaError_t look_for_infinite_f32(const float *numbers, int64_t count, const int *before, int *infinite,
                                         cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    infinite_f32<<<blocks_of(count, 256, 1024), 256, 0, stream>>>(numbers, count, before, infinite);
    return cudaGetLastError();
}

/* write 1 where a number is infinite, or NaN, unless an index was out of range before */
static __global__ void infinite_f64(const double *numbers, int64_t count, const int *before, int *infinite)
{
    if (before != NULL && *before != 0) return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        if (!isfinite(numbers[n])) atomicMax(infinite, 1);
    }
}

/* look at so many numbers: 1 is written where one is infinite, or NaN */
static cudaError_t look_for_infinite_f64(const double *numbers, int64_t count, const int *before, int *infinite,
                                         cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    infinite_f64<<<blocks_of(count, 256, 1024), 256, 0, stream>>>(numbers, count, before, infinite);
    return cudaGetLastError();
}

/* status 4 if 1 was written where indices were looked at; waits for the stream */
static int status_of_indices(const int *outside, cudaStream_t stream)
{
    int any = 0;
    TRY(cudaMemcpyAsync(&any, outside, sizeof any, cudaMemcpyDeviceToHost, stream));
    TRY(cudaStreamSynchronize(stream));
    return any != 0 ? 4 : 0;
}

/* the first iteration of a block: all but the last ones have equally many, a multiple of some number */
static __device__ inline int64_t start_of(int64_t iterations, int64_t count, int64_t multiple, int64_t block)
{
    if (count == 1) return block == 0 ? 0 : iterations;
    const int64_t length = (iterations + count * multiple - 1) / (count * multiple) * multiple;
    if (length == 0) return 0;
    return block <= iterations / length ? block * length : iterations;
}

/* the smaller of two */
static __device__ inline int64_t min_i64(int64_t a, int64_t b)
{
    return b < a ? b : a;
}

/* the larger of two */
static __device__ inline int64_t max_i64(int64_t a, int64_t b)
{
    return b > a ? b : a;
}

/* the smaller of two */
static __device__ inline int32_t min_i32(int32_t a, int32_t b)
{
    return b < a ? b : a;
}

/* the larger of two */
static __device__ inline int32_t max_i32(int32_t a, int32_t b)
{
    return b > a ? b : a;
}

/* the smaller of two; NaN if one is, and -0 is smaller than 0 */
static __device__ inline float min_f32(float a, float b)
{
    const float other = a == 0 ? -(-a - b) : b;
    return a < b || a != a ? a : other;
}

/* a + b, one of which is 0: as C has it */
static __device__ inline float add_f32(float a, float b)
{
    return a + b;
}

/* a + b, one of which is 0: as C has it */
static __device__ inline double add_f64(double a, double b)
{
    return a + b;
}

/* a - b, one of which is 0: as C has it */
static __device__ inline float sub_f32(float a, float b)
{
    return a - b;
}

/* a - b, one of which is 0: as C has it */
static __device__ inline double sub_f64(double a, double b)
{
    return a - b;
}

/* one of two */
static __device__ inline float where_f32(int which, float a, float b)
{
    return which ? a : b;
}

/* one of two */
static __device__ inline double where_f64(int which, double a, double b)
{
    return which ? a : b;
}

/* one of two */
static __device__ inline int32_t where_i32(int which, int32_t a, int32_t b)
{
    return which ? a : b;
}

/* one of two */
static __device__ inline int64_t where_i64(int which, int64_t a, int64_t b)
{
    return which ? a : b;
}

/* one of two */
static __device__ inline uint8_t where_bool(int which, uint8_t a, uint8_t b)
{
    return which ? a : b;
}

/* the larger of two; NaN if one is, and 0 is larger than -0 */
static __device__ inline float max_f32(float a, float b)
{
    const float other = a == 0 ? a + b : b;
    return a > b || a != a ? a : other;
}

/* the smaller of two; NaN if one is, and -0 is smaller than 0 */
static __device__ inline double min_f64(double a, double b)
{
    const double other = a == 0 ? -(-a - b) : b;
    return a < b || a != a ? a : other;
}

/* the larger of two; NaN if one is, and 0 is larger than -0 */
static __device__ inline double max_f64(double a, double b)
{
    const double other = a == 0 ? a + b : b;
    return a > b || a != a ? a : other;
}

static __device__ inline float square_f32(float a)
{
    return a * a;
}

static __device__ inline double square_f64(double a)
{
    return a * a;
}

/* a / b rounded down; 0 where b is 0, and what does not fit wraps */
static __device__ inline int32_t floor_divide_i32(int32_t a, int32_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int32_t)((uint32_t)0 - (uint32_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* a / b rounded down; 0 where b is 0, and what does not fit wraps */
static __device__ inline int64_t floor_divide_i64(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)((uint64_t)0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* a / b rounded down as if divided without rounding before: in double no quotient below 2^29 meets the next integer */
static __device__ inline float floor_divide_f32(float a, float b)
{
    const double quotient = (double)a / (double)b;
    const int below = quotient == 0 && a != 0 && (a < 0) != (b < 0); /* b is infinite */
    const double down = below ? -1.0 : floor(quotient);
    return a - a == 0 || b == 0 ? (float)down : a - a; /* as by fmod, infinity over a number is NaN */
}

/* a / b rounded down as if divided without rounding before */
static __device__ inline double floor_divide_f64(double a, double b)
{
    if (b == 0) return a / b;
    const double rest = fmod(a, b);
    const double whole = (a - rest) / b - (rest != 0 && (b < 0) != (rest < 0) ? 1.0 : 0.0);
    if (whole == 0) return copysign(0.0, a / b);
    const double down = floor(whole);
    return whole - down > 0.5 ? down + 1.0 : down;
}

/* towards zero; what does not fit gives the smallest value */
static __device__ inline int32_t i32_of_f32(float a)
{
    return a >= -2147483648.0f && a < 2147483648.0f ? (int32_t)a : INT32_MIN;
}

/* towards zero; what does not fit gives the smallest value */
static __device__ inline int32_t i32_of_f64(double a)
{
    return a >= -2147483648.0 && a < 2147483648.0 ? (int32_t)a : INT32_MIN;
}

/* towards zero; what does not fit gives the smallest value */
static __device__ inline int64_t i64_of_f32(float a)
{
    return a >= -9223372036854775808.0f && a < 9223372036854775808.0f ? (int64_t)a : INT64_MIN;
}

/* towards zero; what does not fit gives the smallest value */
static __device__ inline int64_t i64_of_f64(double a)
{
    return a >= -9223372036854775808.0 && a < 9223372036854775808.0 ? (int64_t)a : INT64_MIN;
}

/* the nearest float with the 11 significant bits of TF32, of two the one further from zero; a NaN becomes a quiet one */
static __device__ inline float tf32_f32(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t nearest;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(nearest) : "f"(x));
    return f32_of_bits(nearest);
#else
    const uint32_t bits = bits_of_f32(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? x + x : f32_of_bits((bits + 0x1000u) & ~0x1fffu);
#endif
}

/* the bits of the nearest number of bf16, of two the even one */
static __device__ inline uint16_t bf16_of_f32(float a)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint16_t nearest;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(nearest) : "f"(a));
    return nearest;
#else
    const uint32_t bits = bits_of_f32(a);
    const uint32_t nearest = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
    return (uint16_t)(((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest) >> 16);
#endif
}

/* two in one register */
static __device__ inline uint32_t pair_bf16(uint32_t low, uint32_t high)
{
    return low | high << 16;
}

/*
 * The product of a matrix of 16 rows and 8 terms by one of 8 terms and 8 columns, all of TF32, added to one of f32 by
 * the lanes of a warp. Lane n has rows n / 4 and n / 4 + 8; of each of them sums in columns 2 * (n % 4) and the next,
 * and terms n % 4 (a0, a1) and n % 4 + 4 (a2, a3); and these terms of column n / 4 (b0, b1).
 */
static __device__ inline void add_product_16x8x8(float &sum0, float &sum1, float &sum2, float &sum3, float a0, float a1,
                                                 float a2, float a3, float b0, float b1)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "matrix units multiply TF32 from sm_80 on: compile with ARCH=sm_80, or leave the role m out of the schedule"
#elif defined(__CUDA_ARCH__)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3)
        : "r"(bits_of_f32(a0)), "r"(bits_of_f32(a1)), "r"(bits_of_f32(a2)), "r"(bits_of_f32(a3)), "r"(bits_of_f32(b0)),
          "r"(bits_of_f32(b1)));
#else
    const int lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
    const int row = lane / 4 * 4, column = lane % 4 * 8;
    for (int term = 0; term < 8; ++term) {
        const int at = term % 4;
        const float upper = __shfl_sync(0xffffffffu, term < 4 ? a0 : a2, row + at);
        const float lower = __shfl_sync(0xffffffffu, term < 4 ? a1 : a3, row + at);
        const float left = __shfl_sync(0xffffffffu, term < 4 ? b0 : b1, column + at);
        const float right = __shfl_sync(0xffffffffu, term < 4 ? b0 : b1, column + at + 4);
        sum0 = fmaf(upper, left, sum0);
        sum1 = fmaf(upper, right, sum1);
        sum2 = fmaf(lower, left, sum2);
        sum3 = fmaf(lower, right, sum3);
    }
#endif
}

/*
 * The product of a matrix of 16 rows and 16 terms by one of 16 terms and 8 columns, all of bf16, added to one of f32 by
 * the lanes of a warp. Lane n has rows n / 4 and n / 4 + 8; of each of them sums in columns 2 * (n % 4) and the next,
 * and, in pairs, terms 2 * (n % 4) and the next (a0, a1), and those 8 further on (a2, a3); and these terms of column
 * n / 4 (b0, b1).
 */
static __device__ inline void add_product_16x8x16(float &sum0, float &sum1, float &sum2, float &sum3, uint32_t a0,
                                                  uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "matrix units multiply bf16 from sm_80 on: compile with ARCH=sm_80, or leave the role m16 out of the schedule"
#elif defined(__CUDA_ARCH__)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    const int lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
    const int row = lane / 4 * 4, column = lane % 4 * 8;
    for (int term = 0; term < 16; ++term) {
        const int at = term % 8 / 2, up = term % 2 ? 0 : 16;
        const uint32_t upper = __shfl_sync(0xffffffffu, term < 8 ? a0 : a2, row + at) << up & 0xffff0000u;
        const uint32_t lower = __shfl_sync(0xffffffffu, term < 8 ? a1 : a3, row + at) << up & 0xffff0000u;
        const uint32_t left = __shfl_sync(0xffffffffu, term < 8 ? b0 : b1, column + at) << up & 0xffff0000u;
        const uint32_t right = __shfl_sync(0xffffffffu, term < 8 ? b0 : b1, column + at + 4) << up & 0xffff0000u;
        sum0 = fmaf(f32_of_bits(upper), f32_of_bits(left), sum0);
        sum1 = fmaf(f32_of_bits(upper), f32_of_bits(right), sum1);
        sum2 = fmaf(f32_of_bits(lower), f32_of_bits(left), sum2);
        sum3 = fmaf(f32_of_bits(lower), f32_of_bits(right), sum3);
    }
#endif
}

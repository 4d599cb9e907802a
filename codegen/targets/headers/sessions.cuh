/* so many random numbers of a path, whose hash is given, uniform from -bound, included, to bound: four a thread */
template <typename T>
static __global__ void random_numbers(T *numbers, int64_t count, uint64_t seed, uint64_t hash, float bound)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; 4 * n < count; n += step) {
        uint32_t words[4];
        random_words(words, seed, hash, 0, (uint64_t)n);
        for (int k = 0; k < 4; ++k) {
            if (4 * n + k < count) numbers[4 * n + k] = (T)uniform_of_word(words[k], bound);
        }
    }
}

/* the same number, so many times */
template <typename T>
static __global__ void equal_numbers(T *numbers, int64_t count, T number)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) numbers[n] = number;
}

/* fill an array with random numbers of a path */
template <typename T>
static cudaError_t fill_random(T *numbers, int64_t count, uint64_t seed, uint64_t hash, float bound, cudaStream_t stream)
{
    random_numbers<T><<<blocks_of(count, 1024, 1024), 256, 0, stream>>>(numbers, count, seed, hash, bound);
    return cudaGetLastError();
}

/* fill an array with one number */
template <typename T>
static cudaError_t fill_equal(T *numbers, int64_t count, T number, cudaStream_t stream)
{
    equal_numbers<T><<<blocks_of(count, 256, 1024), 256, 0, stream>>>(numbers, count, number);
    return cudaGetLastError();
}

/* bytes that are copied between the device and a file at a time */
enum { COPIED_BYTES = 1 << 16 };

/* how many bytes are copied next of an array, from some place on */
static size_t copied_at(const struct stored_array *array, uint64_t at)
{
    return array->bytes - at < COPIED_BYTES ? (size_t)(array->bytes - at) : (size_t)COPIED_BYTES;
}

/* write the elements of an array of the device into a file; whether all are there */
static int write_elements(const struct stored_array *array, FILE *file)
{
    char copied[COPIED_BYTES];
    for (uint64_t at = 0; at < array->bytes; at += COPIED_BYTES) {
        const size_t length = copied_at(array, at);
        if (cudaMemcpy(copied, (char *)array->elements + at, length, cudaMemcpyDeviceToHost) != cudaSuccess) return 0;
        if (fwrite(copied, 1, length, file) != length) return 0;
    }
    return 1;
}

/* read the elements of an array of the device from a file; whether all were there */
static int read_elements(const struct stored_array *array, FILE *file)
{
    char copied[COPIED_BYTES];
    for (uint64_t at = 0; at < array->bytes; at += COPIED_BYTES) {
        const size_t length = copied_at(array, at);
        if (fread(copied, 1, length, file) != length) return 0;
        if (cudaMemcpy((char *)array->elements + at, copied, length, cudaMemcpyHostToDevice) != cudaSuccess) return 0;
    }
    return 1;
}

/* give all elements of an array of the device the value 0 */
static void clear_elements(const struct stored_array *array)
{
    cudaMemset(array->elements, 0, (size_t)array->bytes);
}

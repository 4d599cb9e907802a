#ifdef WITH_MPI
#include <mpi.h>
#endif
#ifdef WITH_NCCL
#include <nccl.h>
#endif

#ifdef WITH_NCCL

/* what ranks sum through, from device to device: one in a process, as MPI has one world; NULL where there is one rank */
static ncclComm_t communicator;

/* an element type of NCCL by its letter */
#define NCCL_TYPE(letter) \
    ((letter) == 'f' ? ncclFloat32 : (letter) == 'd' ? ncclFloat64 : (letter) == 'i' ? ncclInt32 : ncclInt64)

/* add numbers to sums, so many */
template <typename T>
static __global__ void add_numbers(T *sums, const T *numbers, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) sums[n] += numbers[n];
}

/* add an array of the device to another one; both have elements */
static cudaError_t add_array(void *sums, const void *numbers, int64_t count, char letter, cudaStream_t stream)
{
    const unsigned blocks = blocks_of(count, 256, 1024);
    switch (letter) {
    case 'f': add_numbers<float><<<blocks, 256, 0, stream>>>((float *)sums, (const float *)numbers, count); break;
    case 'd': add_numbers<double><<<blocks, 256, 0, stream>>>((double *)sums, (const double *)numbers, count); break;
    case 'i': add_numbers<int32_t><<<blocks, 256, 0, stream>>>((int32_t *)sums, (const int32_t *)numbers, count); break;
    default: add_numbers<int64_t><<<blocks, 256, 0, stream>>>((int64_t *)sums, (const int64_t *)numbers, count);
    }
    return cudaGetLastError();
}

#endif

/* begin to be a rank: those of one machine take its devices in turn; the status of that, for which all come here */
static int begin_ranks(void)
{
    int status = 0;
#ifdef WITH_MPI
    int begun = 0, rank = 0, near = 0, devices = 0;
    MPI_Initialized(&begun);
    if (!begun) MPI_Init(NULL, NULL);
    const int ranks = count_ranks(&rank);
    if (ranks == 1) return 0;
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &near);
    MPI_Comm_free(&machine);
    status = -(int)cudaGetDeviceCount(&devices);
    if (status == 0) status = -(int)cudaSetDevice(near % devices);
#ifdef WITH_NCCL
    ncclUniqueId id;
    if (status == 0 && rank == 0 && ncclGetUniqueId(&id) != ncclSuccess) status = 9;
    status = status_of_ranks(status, ranks);
    if (status != 0) return status;
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (ncclCommInitRank(&communicator, ranks, id, rank) != ncclSuccess) status = 9;
#endif
    status = status_of_ranks(status, ranks);
#endif
    return status;
}

static void end_ranks(void)
{
#ifdef WITH_NCCL
    if (communicator != NULL) ncclCommDestroy(communicator);
    communicator = NULL;
#endif
#ifdef WITH_MPI
    MPI_Finalize();
#endif
}

/* the status of a rank that is to sum what a stream computes, which a sum through the host has to wait for */
static int status_before_sum(int status, int ranks, cudaStream_t stream)
{
#if defined(WITH_NCCL)
    if (status == 0 && ranks > 1 && communicator == NULL) return 9;
#elif defined(WITH_MPI)
    if (status == 0 && ranks > 1) return -(int)cudaStreamSynchronize(stream);
#endif
    (void)ranks, (void)stream;
    return status;
}

#if defined(WITH_MPI) && !defined(WITH_NCCL)

/* copy on a stream and wait for it, unless something has failed: the status */
static int copied(int status, void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (status == 0) status = -(int)cudaMemcpyAsync(to, from, bytes, kind, stream);
    if (status == 0) status = -(int)cudaStreamSynchronize(stream);
    return status;
}

#endif

/*
 * The sum over all ranks in place of the values of this one, enqueued on a stream: NCCL, or MPI through the host, adds in
 * one order for all of them. Gives the status, unless there is one: a rank that fails takes part all the same.
 */
static int sum_over_ranks(int status, void *values, uint64_t count, char letter, int ranks, cudaStream_t stream)
{
#if defined(WITH_NCCL)
    if (ranks > 1) {
        const ncclDataType_t type = NCCL_TYPE(letter);
        const ncclResult_t summed = ncclAllReduce(values, values, count, type, ncclSum, communicator, stream);
        if (status == 0 && summed != ncclSuccess) status = 9;
    }
#elif defined(WITH_MPI)
    char some[COPIED_BYTES];
    const uint64_t bytes = ranks > 1 ? BYTES_BEFORE(count, letter) : 0;
    for (uint64_t at = 0; at < bytes; at += COPIED_BYTES) {
        char *const part = (char *)values + at;
        const size_t length = bytes - at < COPIED_BYTES ? (size_t)(bytes - at) : (size_t)COPIED_BYTES;
        const int elements = (int)(length / BYTES_BEFORE(1, letter));
        status = copied(status, some, part, length, cudaMemcpyDeviceToHost, stream);
        MPI_Allreduce(MPI_IN_PLACE, some, elements, TYPE_OF_LETTER(letter), MPI_SUM, MPI_COMM_WORLD);
        status = copied(status, part, some, length, cudaMemcpyHostToDevice, stream);
    }
#endif
    (void)values, (void)count, (void)letter, (void)ranks, (void)stream;
    return status;
}

/*
 * The sums of the values of the other ranks, in their order, enqueued on a stream: with NCCL there is room for those of
 * one rank on the device, which each rank broadcasts in turn. Gives the status, as above.
 */
static int sum_over_others(
    int status, void *sums, void *values, void *room, uint64_t count, char letter, int rank, int ranks,
    cudaStream_t stream)
{
    const uint64_t bytes = BYTES_BEFORE(count, letter);
    if (status == 0) status = -(int)cudaMemsetAsync(sums, 0, bytes, stream);
#if defined(WITH_NCCL)
    for (int from = 0; ranks > 1 && from < ranks && count > 0; ++from) {
        void *const part = from == rank ? values : room;
        const ncclResult_t sent = ncclBroadcast(part, part, count, NCCL_TYPE(letter), from, communicator, stream);
        if (status == 0 && sent != ncclSuccess) status = 9;
        if (status == 0 && from != rank) status = -(int)add_array(sums, room, (int64_t)count, letter, stream);
    }
#elif defined(WITH_MPI)
    char own[COPIED_BYTES], other[COPIED_BYTES], total[COPIED_BYTES];
    for (uint64_t at = 0; ranks > 1 && at < bytes; at += COPIED_BYTES) {
        const size_t length = bytes - at < COPIED_BYTES ? (size_t)(bytes - at) : (size_t)COPIED_BYTES;
        const int elements = (int)(length / BYTES_BEFORE(1, letter));
        status = copied(status, own, (char *)values + at, length, cudaMemcpyDeviceToHost, stream);
        memset(total, 0, length);
        for (int from = 0; from < ranks; ++from) {
            char *const part = from == rank ? own : other;
            MPI_Bcast(part, elements, TYPE_OF_LETTER(letter), from, MPI_COMM_WORLD);
            if (from != rank) MPI_Reduce_local(part, total, elements, TYPE_OF_LETTER(letter), MPI_SUM);
        }
        status = copied(status, (char *)sums + at, total, length, cudaMemcpyHostToDevice, stream);
    }
#endif
    (void)values, (void)room, (void)letter, (void)rank, (void)ranks;
    return status;
}

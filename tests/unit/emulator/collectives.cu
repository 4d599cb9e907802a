// Three processes that sum, multiply, compare and broadcast what they have. Prints "right" if all results are.
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 1000 };

// Whether each of so many numbers is what it should be, after a collective of 2 + rank everywhere.
template <class T>
bool gives(ncclComm_t comm, int rank, ncclDataType_t type, int op, T expected) {
  T host[COUNT], *device;
  for (T& each : host) each = (T)(2 + rank);
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  ncclResult_t status = op < 0 ? ncclBroadcast(device, device, COUNT, type, -op - 1, comm, 0)
                               : ncclAllReduce(device, device, COUNT, type, (ncclRedOp_t)op, comm, 0);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(device);
  bool right = status == ncclSuccess;
  for (T each : host) right = right && each == expected;
  return right;
}

static bool all_agree(ncclComm_t comm, int rank) {
  bool right = true;
  right &= gives<float>(comm, rank, ncclFloat32, ncclSum, 9);
  right &= gives<double>(comm, rank, ncclFloat64, ncclProd, 24);
  right &= gives<int32_t>(comm, rank, ncclInt32, ncclMax, 4);
  right &= gives<int64_t>(comm, rank, ncclInt64, ncclMin, 2);
  for (int root = 0; root < RANKS; ++root) right &= gives<float>(comm, rank, ncclFloat32, -root - 1, 2.0f + root);
  return right;
}

static int run(int rank, ncclUniqueId id, const char* way) {
  ncclComm_t comm;
  float* device;
  if (ncclCommInitRank(&comm, RANKS, id, rank) != ncclSuccess) return 1;
  if (!strcmp(way, "agree")) {
    const bool right = all_agree(comm, rank) && ncclCommDestroy(comm) == ncclSuccess;
    return right ? 0 : 1;
  }
  cudaMalloc(&device, 16);
  if (strcmp(way, "unwritten")) cudaMemset(device, 0, 16);
  if (!strcmp(way, "leave") && rank == 2) return 0;
  const size_t count = !strcmp(way, "past") ? 5 : !strcmp(way, "differ") && rank == 2 ? 3 : 4;
  const ncclResult_t status = ncclAllReduce(device, device, count, ncclFloat32, ncclSum, comm, 0);
  cudaFree(device);
  return status != ncclSuccess;
}

int main(int, char** words) {
  int pipes[RANKS][2];
  ncclUniqueId id;
  for (int rank = 1; rank < RANKS; ++rank) {
    if (pipe(pipes[rank])) return 2;
    if (fork()) continue;
    if (read(pipes[rank][0], &id, sizeof id) != sizeof id) return 2;
    return run(rank, id, words[1]);
  }
  ncclGetUniqueId(&id);
  for (int rank = 1; rank < RANKS; ++rank)
    if (write(pipes[rank][1], &id, sizeof id) != sizeof id) return 2;
  int status = run(0, id, words[1]);
  for (int rank = 1, other; rank < RANKS; ++rank) {
    wait(&other);
    if (WIFEXITED(other) && !strcmp(words[1], "agree")) status |= WEXITSTATUS(other);
  }
  if (status == 0 && !strcmp(words[1], "agree")) puts("right");
  return status;
}

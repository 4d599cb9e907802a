// Collectives between ranks, each a process: they meet at a socket of the one that made the id, which has their number.
//
// A collective is work of a stream. The others send what they give to that process, in the order of their calls; it
// combines the values in the order of ranks and sends them back. Where ranks call different collectives, or one has
// gone, NCCL would hang: here it is a finding, and the device fails.
#include "nccl.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "findings.h"
#include "memory.h"
#include "scheduler.h"
#include "streams.h"

struct ncclComm {
  int rank, ranks;
  bool is_hub;             // whether this process made the id
  std::vector<int> links;  // sockets: at the hub by rank, elsewhere the one to the hub
};

namespace cuda_emulator {
namespace {

// What each rank says of a collective; all have to say the same.
struct Call {
  int32_t is_sum, type, op, root;
  uint64_t count;
};

std::map<uint16_t, int> listeners;  // of ids made here, by the port

size_t width(ncclDataType_t type) { return type == ncclInt64 || type == ncclFloat64 ? 8 : 4; }

bool send_all(int link, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes) {
    ssize_t sent = send(link, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent, bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int link, void* data, size_t bytes) {
  return !bytes || recv(link, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

template <class T>
void combine(void* into, const void* from, size_t count, ncclRedOp_t op) {
  T* const total = static_cast<T*>(into);
  const T* const value = static_cast<const T*>(from);
  for (size_t n = 0; n < count; ++n) {
    switch (op) {
      case ncclSum: total[n] += value[n]; break;
      case ncclProd: total[n] *= value[n]; break;
      case ncclMax: total[n] = std::max(total[n], value[n]); break;
      case ncclMin: total[n] = std::min(total[n], value[n]); break;
    }
  }
}

void combine_any(const Call& call, void* into, const void* from) {
  const auto op = static_cast<ncclRedOp_t>(call.op);
  switch (static_cast<ncclDataType_t>(call.type)) {
    case ncclInt32: return combine<int32_t>(into, from, call.count, op);
    case ncclInt64: return combine<int64_t>(into, from, call.count, op);
    case ncclFloat32: return combine<float>(into, from, call.count, op);
    case ncclFloat64: return combine<double>(into, from, call.count, op);
  }
}

// The answer that a collective has at the hub; `same` tells whether all ranks made the same call.
bool gather(const ncclComm& comm, const Call& call, const void* own, std::vector<char>& answer, bool& same) {
  std::vector<char> given(answer.size());
  bool is_first = true;
  for (int rank = 0; rank < comm.ranks; ++rank) {
    const bool gives = call.is_sum || rank == call.root;
    if (rank == comm.rank) {
      if (gives) memcpy(given.data(), own, given.size());
    } else {
      Call other;
      if (!receive_all(comm.links[rank], &other, sizeof other)) return false;
      same = same && !memcmp(&other, &call, sizeof call);
      if (same && gives && !receive_all(comm.links[rank], given.data(), given.size())) return false;
    }
    if (!same || !gives) continue;
    if (is_first) answer.swap(given);
    else combine_any(call, answer.data(), given.data());
    is_first = false;
  }
  return true;
}

// Whether all ranks came; the answer, and whether they made the same call.
bool meet(const ncclComm& comm, const Call& call, const void* own, std::vector<char>& answer, bool& same) {
  if (comm.is_hub) {
    if (!gather(comm, call, own, answer, same)) return false;
    for (int rank = 0; rank < comm.ranks; ++rank) {
      if (rank == comm.rank) continue;
      if (!send_all(comm.links[rank], &same, sizeof same)) return false;
      if (same && !send_all(comm.links[rank], answer.data(), answer.size())) return false;
    }
    return true;
  }
  const int hub = comm.links[0];
  if (!send_all(hub, &call, sizeof call)) return false;
  if ((call.is_sum || comm.rank == call.root) && !send_all(hub, own, answer.size())) return false;
  if (!receive_all(hub, &same, sizeof same)) return false;
  return !same || receive_all(hub, answer.data(), answer.size());
}

void run_collective(const ncclComm& comm, const Call& call, const void* from, void* to, const void* code) {
  if (sticky_error != cudaSuccess) return;
  std::vector<char> answer(call.count * width(static_cast<ncclDataType_t>(call.type)));
  if (call.is_sum || comm.rank == call.root) {
    size_t first = 0, unwritten = count_unwritten(from, answer.size(), &first);
    if (unwritten)
      finding(cudaSuccess, "uninitialised copy", place_of(code),
              "%zu of %zu bytes for other ranks, the first at %zu, were never written", unwritten, answer.size(), first);
  }
  bool same = true;
  if (!meet(comm, call, from, answer, same)) {
    for (int link : comm.links) shutdown(link, SHUT_RDWR);  // nobody waits for what does not come
    finding(cudaErrorUnknown, "broken collective", place_of(code), "a rank has gone; rank %d of %d waited for it",
            comm.rank, comm.ranks);
  } else if (!same) {
    finding(cudaErrorUnknown, "broken collective", place_of(code), "ranks call different collectives; this is rank %d",
            comm.rank);
  } else {
    memcpy(to, answer.data(), answer.size());
    mark_written(to, answer.size(), true);
  }
}

ncclResult_t post(const void* from, void* to, Call call, ncclComm_t comm, cudaStream_t stream, const void* code) {
  const size_t bytes = call.count * width(static_cast<ncclDataType_t>(call.type));
  if (!comm || call.root < 0 || comm->ranks <= call.root || !is_stream(stream)) return ncclInvalidArgument;
  if (sticky_error != cudaSuccess) return ncclUnhandledCudaError;
  const bool gives = call.is_sum || comm->rank == call.root;
  if (gives && check_range(from, bytes, "what a rank gives", code) != cudaSuccess) return ncclInvalidArgument;
  if (check_range(to, bytes, "what a rank gets", code) != cudaSuccess) return ncclInvalidArgument;
  queue(stream, [=] { run_collective(*comm, call, from, to, code); });
  return ncclSuccess;
}

sockaddr_in address_of(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Sockets to all ranks, which say their numbers, or to the hub.
bool link(ncclComm& comm, uint16_t port) {
  if (comm.is_hub) {
    const int listener = listeners[port];
    listeners.erase(port);
    comm.links.assign(static_cast<size_t>(comm.ranks), -1);
    for (int n = 1; n < comm.ranks; ++n) {
      int32_t rank = 0;
      const int one = accept(listener, nullptr, nullptr);
      if (one < 0 || !receive_all(one, &rank, sizeof rank)) return false;
      if (rank < 0 || comm.ranks <= rank || rank == comm.rank || 0 <= comm.links[rank]) return false;
      comm.links[rank] = one;
    }
    close(listener);
    return true;
  }
  const int hub = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = address_of(port);
  comm.links.push_back(hub);
  const int32_t rank = comm.rank;
  return !connect(hub, reinterpret_cast<const sockaddr*>(&address), sizeof address) && send_all(hub, &rank, sizeof rank);
}

}  // namespace
}  // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" {

const char* ncclGetErrorString(ncclResult_t error) {
  switch (error) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    default: return "internal error";
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  Locked locked;
  sockaddr_in address = address_of(0);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, any, length) || listen(listener, SOMAXCONN)) return ncclSystemError;
  if (getsockname(listener, any, &length)) return ncclSystemError;
  const uint16_t port = ntohs(address.sin_port);
  memset(id, 0, sizeof *id);
  memcpy(id->internal, &port, sizeof port);
  listeners[port] = listener;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  Locked locked;
  *comm = nullptr;
  if (ranks < 1 || rank < 0 || ranks <= rank) return ncclInvalidArgument;
  uint16_t port;
  memcpy(&port, id.internal, sizeof port);
  auto* const joined = new ncclComm{rank, ranks, listeners.count(port) != 0, {}};
  if (!cuda_emulator::link(*joined, port)) {
    delete joined;
    return ncclSystemError;
  }
  *comm = joined;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Locked locked;
  if (!comm) return ncclInvalidArgument;
  run_all_streams();
  for (int link : comm->links)
    if (0 <= link) close(link);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  return post(from, to, {1, type, op, 0, count}, comm, stream, code);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const void* code = __builtin_return_address(0);
  Locked locked;
  return post(from, to, {0, type, 0, root, count}, comm, stream, code);
}

}  // extern "C"

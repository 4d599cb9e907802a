// The check build: every load and store is looked at, by what a shadow of memory says was done before.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_emulator {

enum class Access { read, write, update };  // an update is atomic

// The lanes of a warp that touched bytes since its last barrier: one; several, all of them the same bytes; or each its
// own bytes, of which nobody knows which.
enum class Lanes : uint8_t { one, several, mixed };

// Who touched 4 bytes, and when.
struct Touch {
  uint32_t epoch = 0, warp_epoch = 0;
  uint16_t thread = 0;
  uint8_t mask = 0;      // which of the bytes
  bool is_atomic : 1;
  Lanes lanes : 2;  // `thread` is the last of them
};

// What is known of 4 bytes. All zeros: nothing has touched them.
struct Cell {
  Touch write, read;
  Touch other_read;           // the last by another warp than `read`
  uint32_t foreign_read = 0;  // the epoch of the last read by an earlier block
  uint8_t written = 0;        // which of the bytes hold something
  const void *write_code = nullptr, *read_code = nullptr;
};

// An access of the running CUDA thread, or of host code, at an address of code; may give the thread up.
void check_access(const void*, size_t bytes, Access, const void* code);
// What an asynchronous copy will write is not there yet.
void forget_shared(const void*, size_t bytes);

// Of device memory; nothing of other memory is known.
void mark_written(const void*, size_t bytes, bool is_written);
size_t count_unwritten(const void*, size_t bytes, size_t* first);

// An address in words.
std::string describe_address(const void*);

}  // namespace cuda_emulator

// The check build: every load and store is looked at, by what a shadow of memory says was done before.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace cuda_emulator {

enum class Access { read, write, update };  // an update is atomic

// Who touched some bytes, and when; a warp of which several lanes did so since its last barrier has no one thread.
struct Touch {
  uint32_t epoch = 0, warp_epoch = 0;
  uint16_t thread = 0;  // the last of the lanes
  bool is_there : 1;
  bool is_atomic : 1;
  bool is_several : 1;
};

// What is known of 4 bytes, or of one of them. All zeros: nothing has touched them.
struct Cell {
  Touch write, read;
  Touch other_read;           // the last by another warp than `read`
  uint32_t foreign_read = 0;  // the epoch of the last read by an earlier block
  uint32_t bytes = 0;         // 1 + the place of the first of the four cells of single bytes; 0: there are none
  bool is_written = false;    // the bytes hold something
  const void *write_code = nullptr, *read_code = nullptr;
};

// What is known of some memory: a cell for 4 bytes, and for each of these once a part of them is touched alone.
struct Shadow {
  explicit Shadow(size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  Cell* cells;
  std::deque<Cell> single;
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

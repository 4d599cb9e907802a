#include "shadow.h"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "findings.h"
#include "memory.h"
#include "profile.h"
#include "scheduler.h"
#include "settings.h"

namespace cuda_emulator {
namespace {

constexpr size_t GRAIN = 4;  // bytes of a cell

Shadow* shared_shadow = nullptr;
uint32_t* shared_blocks = nullptr;  // the block that has last used a cell
uint32_t first_epoch = 0, epochs_of = 0;  // of the launch that runs, and which launch that is

uint32_t warp_epoch() { return sm.warps[sm.current / WARP].epoch; }
bool is_of_warp(const Touch& t) { return t.thread / WARP == sm.current / WARP; }

// Whether nothing keeps an earlier touch of the same block before what the running thread does.
bool is_unordered(const Touch& t) {
  if (t.epoch != sm.epoch) return false;
  if (!is_of_warp(t)) return true;
  return t.warp_epoch == warp_epoch() && (t.is_several || t.thread != sm.current);
}
bool is_foreign(uint32_t epoch) { return first_epoch <= epoch && epoch < sm.block_start; }

struct Target {
  const char *race, *uninitialised, *space;
  bool is_global;
  size_t offset;  // of the byte, in the allocation or in shared memory
};

void report_race(const Target& target, const char* does, const char* did, const Touch& t, bool foreign,
                 const void* code, const void* other) {
  char who[40] = "another block";
  if (!foreign && t.thread == sm.current) snprintf(who, sizeof who, "another lane of its warp");
  else if (!foreign) snprintf(who, sizeof who, "thread %d", t.thread);
  finding_once(cudaSuccess, target.race, code, other, "thread %d %s what %s %s%s, %s offset %zu", sm.current, does, who,
               did, foreign ? " in the same launch" : " with no barrier between", target.space, target.offset);
}

void check_races(Cell& c, Access access, const Target& target, const void* code) {
  const char* does = access == Access::read ? "reads" : "writes";
  if (c.write.is_there && !(access == Access::update && c.write.is_atomic)) {
    bool foreign = target.is_global && is_foreign(c.write.epoch);
    if (foreign || is_unordered(c.write))
      report_race(target, does, "wrote", c.write, foreign, code, c.write_code);
  }
  if (access == Access::read) return;
  if (target.is_global && (is_foreign(c.foreign_read) || (c.read.is_there && is_foreign(c.read.epoch))))
    report_race(target, does, "read", c.read, true, code, c.read_code);
  else if (c.read.is_there && is_unordered(c.read))
    report_race(target, does, "read", c.read, false, code, c.read_code);
  else if (c.other_read.is_there && c.other_read.epoch == sm.epoch && !is_of_warp(c.other_read))
    report_race(target, does, "read", c.other_read, false, code, c.read_code);
}

// Makes a touch one by the running thread, and by those of its warp that no barrier keeps before it. In place, member by
// member: a whole one that is made and then copied waits until its parts are stored.
void touch(Touch& t, bool is_atomic) {
  uint32_t epoch = warp_epoch();
  uint16_t thread = static_cast<uint16_t>(sm.current);
  bool is_same = t.is_there && t.epoch == sm.epoch && is_of_warp(t) && t.warp_epoch == epoch;
  bool is_several = is_same && (t.is_several || t.thread != thread);
  t.is_atomic = is_atomic && (!is_several || t.is_atomic);
  t.is_several = is_several;
  t.is_there = true;
  t.epoch = sm.epoch;
  t.warp_epoch = epoch;
  t.thread = thread;
}

void note_read(Cell& c, const void* code) {
  const Touch& before = c.read;
  if (before.is_there && before.epoch < sm.block_start) c.foreign_read = before.epoch;
  if (before.is_there && before.epoch == sm.epoch && !is_of_warp(before)) c.other_read = before;
  touch(c.read, false);
  c.read_code = code;
}

void check_cell(Cell& c, bool is_trusted, Access access, const Target& target, const void* code) {
  check_races(c, access, target, code);
  bool reads = access != Access::write;
  if (reads && !is_trusted && !c.is_written) {
    finding_once(cudaSuccess, target.uninitialised, code, nullptr, "nothing has written %s offset %zu", target.space,
                 target.offset);
    c.is_written = true;  // said once
  }
  if (access == Access::read) return note_read(c, code);
  bool is_update = access == Access::update;
  touch(c.write, is_update);
  c.write_code = code;
  if (!is_update) c.is_written = true;
}

// Calls f with each cell that stands for bytes of a range, and with the offset of the first of them.
template <class F>
void for_cells(Shadow& shadow, size_t offset, size_t bytes, F f) {
  for (size_t number = offset / GRAIN; number <= (offset + bytes - 1) / GRAIN; ++number) {
    size_t from = std::max(offset, number * GRAIN), to = std::min(offset + bytes, (number + 1) * GRAIN);
    Cell& whole = shadow.cells[number];
    if (!whole.bytes && to - from == GRAIN) {
      f(whole, from);
      continue;
    }
    if (!whole.bytes) {
      shadow.single.insert(shadow.single.end(), GRAIN, Cell(whole));
      whole.bytes = static_cast<uint32_t>(shadow.single.size() - GRAIN + 1);
    }
    for (size_t at = from; at < to; ++at) f(shadow.single[whole.bytes - 1 + at % GRAIN], at);
  }
}

void make_shared_cells() {
  if (shared_shadow) return;
  shared_shadow = new Shadow(SHARED_SPACE);
  shared_blocks = static_cast<uint32_t*>(calloc(SHARED_SPACE / GRAIN, sizeof(uint32_t)));
  if (!shared_blocks) abort();
}

// What an earlier block has written to shared memory is not there for this one.
void begin_shared(size_t offset, size_t bytes) {
  for (size_t cell = offset / GRAIN; cell <= (offset + bytes - 1) / GRAIN; ++cell) {
    if (shared_blocks[cell] == sm.block_start) continue;
    shared_blocks[cell] = sm.block_start;
    for_cells(*shared_shadow, cell * GRAIN, GRAIN, [](Cell& c, size_t) { c.is_written = false; });
  }
}

void check_shared(size_t offset, size_t bytes, Access access, const void* code) {
  make_shared_cells();
  if (sm.shared_used < offset + bytes) {
    finding_once(cudaErrorIllegalAddress, "out-of-bounds shared access", code, nullptr,
                 "%zu bytes at offset %zu of %zu", bytes, offset, sm.shared_used);
    abandon_thread();
  }
  begin_shared(offset, bytes);
  for_cells(*shared_shadow, offset, bytes, [&](Cell& c, size_t at) {
    Target target{"shared-memory race", "uninitialised shared read", "shared", false, at};
    check_cell(c, false, access, target, code);
  });
}

void check_global(Allocation& a, const char* p, size_t bytes, Access access, const void* code) {
  size_t offset = static_cast<size_t>(p - a.start);
  if (a.bytes - offset < bytes) {
    finding_once(cudaErrorIllegalAddress, "out-of-bounds global access", code, nullptr,
                 "%zu bytes at offset %zu of an allocation of %zu", bytes, offset, a.bytes);
    abandon_thread();
  }
  if (epochs_of != sm.launch_number) {
    epochs_of = sm.launch_number;
    first_epoch = sm.block_start;  // this access is the first of the launch that is looked at
  }
  for_cells(*a.shadow, offset, bytes, [&](Cell& c, size_t at) {
    Target target{"global-memory race", "uninitialised global read", "global", true, at};
    check_cell(c, a.is_trusted, access, target, code);
  });
}

// Whether an address belongs to a loaded program: constants and other globals, which kernels may read.
bool is_of_module(uintptr_t address) {
  static std::vector<std::pair<uintptr_t, uintptr_t>> segments;
  auto is_inside = [address](const auto& s) { return address - s.first < s.second - s.first; };
  auto found = std::find_if(segments.begin(), segments.end(), is_inside);
  if (found != segments.end()) {
    std::rotate(segments.begin(), found, found + 1);  // most accesses are of the few that were accessed before
    return true;
  }
  segments.clear();
  dl_iterate_phdr(
      [](dl_phdr_info* module, size_t, void*) {
        for (int i = 0; i < module->dlpi_phnum; ++i)
          if (module->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t start = module->dlpi_addr + module->dlpi_phdr[i].p_vaddr;
            segments.push_back({start, start + module->dlpi_phdr[i].p_memsz});
          }
        return 0;
      },
      nullptr);
  return std::any_of(segments.begin(), segments.end(), is_inside);
}

bool is_argument(uintptr_t address) {
  return address - reinterpret_cast<uintptr_t>(sm.launch->arguments) < sm.launch->argument_bytes;
}

}  // namespace

Shadow::Shadow(size_t bytes) : cells(static_cast<Cell*>(calloc((bytes + GRAIN - 1) / GRAIN, sizeof(Cell)))) {
  if (!cells) abort();
}
Shadow::~Shadow() { free(cells); }

void check_access(const void* p, size_t bytes, Access access, const void* code) {
  if (!bytes) return;
  Allocation* a = nullptr;
  if (!is_in_kernel()) {
    Locked locked;
    if (allocation_of(p))
      finding_once(cudaErrorIllegalAddress, "host access to device memory", code, nullptr, "%s",
                   describe_address(p).c_str());
    return;
  }
  if (is_stack(p)) return;
  if (is_shared(p)) {
    if (settings.profile && code) count_access(p, bytes, access, code);
    return check_shared(static_cast<size_t>(static_cast<const char*>(p) - sm.shared), bytes, access, code);
  }
  if ((a = allocation_of(p))) {
    if (settings.profile && code) count_access(p, bytes, access, code);
    return check_global(*a, static_cast<const char*>(p), bytes, access, code);
  }
  uintptr_t address = reinterpret_cast<uintptr_t>(p);
  if (is_argument(address) || is_of_module(address)) return;
  finding_once(cudaErrorIllegalAddress, access == Access::read ? "illegal read" : "illegal write", code, nullptr, "%s",
               describe_address(p).c_str());
  abandon_thread();
}

void atomic_access(const void* p, size_t bytes) {
  if (is_in_kernel() && sm.launch->is_checked) check_access(p, bytes, Access::update, __builtin_return_address(0));
}

void let_check() {
  Locked locked;
  give_cells();
}

void forget_shared(const void* p, size_t bytes) {
  if (!is_shared(p) || !shared_shadow) return;
  size_t offset = static_cast<size_t>(static_cast<const char*>(p) - sm.shared);
  for_cells(*shared_shadow, offset, bytes, [](Cell& c, size_t) { c.is_written = false; });
}

void mark_written(const void* p, size_t bytes, bool is_written) {
  Allocation* a = bytes ? allocation_of(p) : nullptr;
  if (!a || !a->shadow) return;
  size_t offset = static_cast<size_t>(static_cast<const char*>(p) - a->start);
  for_cells(*a->shadow, offset, bytes, [&](Cell& c, size_t) { c.is_written = is_written; });
}

size_t count_unwritten(const void* p, size_t bytes, size_t* first) {
  const Allocation* a = bytes ? allocation_of(p) : nullptr;
  if (!a || !a->shadow || a->is_trusted) return 0;
  size_t offset = static_cast<size_t>(static_cast<const char*>(p) - a->start), count = 0;
  for (size_t at = offset; at < offset + bytes; ++at) {
    const Cell& whole = a->shadow->cells[at / GRAIN];
    if ((whole.bytes ? a->shadow->single[whole.bytes - 1 + at % GRAIN] : whole).is_written) continue;
    if (!count++) *first = at - offset;
  }
  return count;
}

std::string describe_address(const void* p) {
  char text[120];
  const Allocation* a = allocation_before(p);
  size_t after = a ? static_cast<size_t>(static_cast<const char*>(p) - a->start) : 0;
  if (a && after < a->bytes)
    snprintf(text, sizeof text, "offset %zu of an allocation of %zu bytes", after, a->bytes);
  else if (a && after < a->mapping_bytes + a->bytes)
    snprintf(text, sizeof text, "%zu bytes past an allocation of %zu", after - a->bytes, a->bytes);
  else
    snprintf(text, sizeof text, "%p, which is no device memory", p);
  return text;
}

}  // namespace cuda_emulator

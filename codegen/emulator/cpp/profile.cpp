#include "profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/control.h"
#include "findings.h"
#include "scheduler.h"

namespace cuda_emulator {
namespace {

constexpr uint64_t SECTOR = 32, BANKS = 32, WORD = 4;

// Lanes run one after the other here, so the n-th access of each lane of a warp by one instruction is taken for one
// request of the warp.
struct Request {
  int count = 0;
  int lane[WARP];
  uint64_t address[WARP];
  uint64_t bytes[WARP];
};
struct Total {
  uint64_t requests = 0, lanes = 0, bytes = 0, cost = 0, ideal = 0;
};
struct Instruction {
  const void* code;
  bool is_shared, is_write;
  bool operator<(const Instruction& other) const {
    return std::tie(code, is_shared, is_write) < std::tie(other.code, other.is_shared, other.is_write);
  }
};
std::map<Instruction, Total> totals;
std::map<std::tuple<Instruction, int, uint32_t>, Request> open;  // by warp and repetition
std::map<std::pair<Instruction, int>, uint32_t> repetitions;     // by thread

void add_global(const Request& r, Total& total) {
  std::set<uint64_t> sectors;
  uint64_t bytes = 0;
  for (int i = 0; i < r.count; ++i) {
    bytes += r.bytes[i];
    for (uint64_t s = r.address[i] / SECTOR; s <= (r.address[i] + r.bytes[i] - 1) / SECTOR; ++s) sectors.insert(s);
  }
  total.bytes += bytes;
  total.cost += sectors.size();
  total.ideal += (bytes + SECTOR - 1) / SECTOR;
}

// Lanes of wide accesses are served in groups that together need each bank once: 32, 16 of 8 bytes, 8 of 16. Which lanes
// are a group does not depend on which of them take part.
void add_shared(const Request& r, Total& total) {
  uint64_t widest = *std::max_element(r.bytes, r.bytes + r.count);
  int group = static_cast<int>(BANKS * WORD / std::max(widest, WORD));
  std::map<int, std::map<uint64_t, std::set<uint64_t>>> words;  // by group and bank
  for (int i = 0; i < r.count; ++i) {
    total.bytes += r.bytes[i];
    for (uint64_t w = r.address[i] / WORD; w <= (r.address[i] + r.bytes[i] - 1) / WORD; ++w)
      words[r.lane[i] / group][w % BANKS].insert(w);
  }
  for (const auto& [_, banks] : words) {
    size_t most = 1;
    for (const auto& [bank, each] : banks) most = std::max(most, each.size());
    total.cost += most;
    total.ideal++;
  }
}

void close(const Instruction& instruction, const Request& r) {
  Total& total = totals[instruction];
  total.requests++;
  total.lanes += static_cast<uint64_t>(r.count);
  instruction.is_shared ? add_shared(r, total) : add_global(r, total);
}

}  // namespace

void count_access(const void* p, size_t bytes, Access access, const void* code) {
  Instruction instruction{code, is_shared(p), access != Access::read};
  uint32_t repetition = repetitions[{instruction, sm.current}]++;
  auto key = std::make_tuple(instruction, sm.current / WARP, repetition);
  Request& r = open[key];
  r.lane[r.count] = sm.current % WARP;
  r.address[r.count] = instruction.is_shared ? static_cast<uint64_t>(static_cast<const char*>(p) - sm.shared)
                                             : reinterpret_cast<uint64_t>(p);
  r.bytes[r.count++] = bytes;
  if (r.count == __builtin_popcount(sm.warps[sm.current / WARP].members)) {
    close(instruction, r);
    open.erase(key);
  }
}

void end_profiled_block() {
  for (const auto& [key, request] : open) close(std::get<0>(key), request);
  open.clear();
  repetitions.clear();
}

}  // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" const char* emulator_profile(void) {
  Locked locked;
  static std::string text;
  text.clear();
  std::map<std::tuple<std::string, int, bool, bool>, Total> lines;
  std::vector<const void*> codes;
  for (const auto& [instruction, t] : totals) codes.push_back(instruction.code);
  std::vector<Place> places = places_of(codes);
  size_t n = 0;
  for (const auto& [instruction, t] : totals) {
    const Place& at = places[n++];
    Total& line = lines[{at.file, at.line, instruction.is_shared, instruction.is_write}];
    line.requests += t.requests;
    line.lanes += t.lanes;
    line.bytes += t.bytes;
    line.cost += t.cost;
    line.ideal += t.ideal;
  }
  for (const auto& [key, t] : lines) {
    const auto& [file, number, is_shared, is_write] = key;
    text += file + "\t" + std::to_string(number) + "\t" + (is_shared ? "shared" : "global") + "\t" +
            (is_write ? "write" : "read");
    for (uint64_t n : {t.requests, t.lanes, t.bytes, t.cost, t.ideal}) text += "\t" + std::to_string(n);
    text += "\n";
  }
  totals.clear();
  return text.c_str();
}

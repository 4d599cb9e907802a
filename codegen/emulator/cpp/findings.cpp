#include "findings.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "emulator/control.h"
#include "scheduler.h"
#include "settings.h"

// Defined where a program that runs by itself is linked, and nowhere else.
extern "C" const char emulator_runs_alone __attribute__((weak));

namespace cuda_emulator {

cudaError_t sticky_error = cudaSuccess, last_error = cudaSuccess;

namespace {

constexpr size_t MOST_KEPT = 1000;
constexpr long long MOST_PRINTED = 20;
constexpr size_t MOST_ASKED = 1000;  // places in one call of addr2line, whose arguments may be so long

std::vector<std::string> kept;
long long count = 0;
std::set<std::tuple<std::string, const void*, const void*>> seen;

// Where the running CUDA thread is, as fields and for people.
std::string context(bool for_people) {
  char text[300] = "";
  const uint3 b = blockIdx, t = threadIdx;
  if (!sm.launch)
    return for_people ? " [host code]" : "\t\t\t\t\t\t";
  const char* kernel = sm.launch->kernel;
  if (for_people && sm.current < 0)
    snprintf(text, sizeof text, " [%s, block (%u,%u,%u)]", kernel, b.x, b.y, b.z);
  else if (for_people)
    snprintf(text, sizeof text, " [%s, block (%u,%u,%u), thread (%u,%u,%u)]", kernel, b.x, b.y, b.z, t.x, t.y, t.z);
  else if (sm.current < 0)
    snprintf(text, sizeof text, "%s\t%u\t%u\t%u\t\t\t", kernel, b.x, b.y, b.z);
  else
    snprintf(text, sizeof text, "%s\t%u\t%u\t%u\t%u\t%u\t%u", kernel, b.x, b.y, b.z, t.x, t.y, t.z);
  return text;
}

void keep(cudaError_t code, const char* kind, const Place& place, const char* text) {
  ++count;
  if (code != cudaSuccess && sticky_error == cudaSuccess) sticky_error = code;
  if (kept.size() < MOST_KEPT)
    kept.push_back(std::string(kind) + "\t" + place.file + "\t" + (place.line ? std::to_string(place.line) : "") +
                   "\t" + context(false) + "\t" + text);
  if (settings.quiet || MOST_PRINTED < count) return;
  std::string at = place.file.empty() ? "" : " at " + place.file + ":" + std::to_string(place.line);
  fprintf(stderr, "emulator: %s%s: %s%s\n", kind, at.c_str(), text, context(true).c_str());
}

}  // namespace

Place place_of(Site site) {
  const char* slash = strrchr(site.file, '/');
  return {slash ? slash + 1 : site.file, site.line};
}

Place place_of(const void* code) { return places_of({code})[0]; }

std::vector<Place> places_of(const std::vector<const void*>& codes) {
  static std::map<const void*, Place> known;
  std::map<std::string, std::vector<std::pair<size_t, Place*>>> asked;  // of each library, what is not known yet
  for (const void* code : codes) {
    auto [entry, is_new] = known.try_emplace(code);
    Dl_info info;
    if (is_new && code && dladdr(code, &info) && info.dli_fname)
      asked[info.dli_fname].emplace_back(static_cast<const char*>(code) - static_cast<const char*>(info.dli_fbase) - 1,
                                         &entry->second);
  }
  for (const auto& [library, places] : asked) {
    for (size_t begin = 0; begin < places.size(); begin += MOST_ASKED) {
      size_t end = std::min(places.size(), begin + MOST_ASKED);
      std::string command = "addr2line -s -e '" + library + "'";
      for (size_t n = begin; n < end; ++n) {
        char address[32];
        snprintf(address, sizeof address, " %#zx", places[n].first);
        command += address;
      }
      FILE* answer = popen((command + " 2>/dev/null").c_str(), "r");
      if (!answer) continue;
      char line[1024];
      for (size_t n = begin; n < end && fgets(line, sizeof line, answer); ++n) {
        line[strcspn(line, " \n")] = 0;
        char* colon = strrchr(line, ':');
        if (colon && line[0] != '?') *places[n].second = {std::string(line, colon), atoi(colon + 1)};
      }
      pclose(answer);
    }
  }
  std::vector<Place> places;
  for (const void* code : codes) places.push_back(known[code]);
  return places;
}

void finding(cudaError_t code, const char* kind, const Place& place, const char* format, ...) {
  char text[1500];
  va_list rest;
  va_start(rest, format);
  vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  keep(code, kind, place, text);
}

void finding_once(cudaError_t code, const char* kind, const void* code_address, const void* other, const char* format,
                  ...) {
  if (!seen.emplace(kind, code_address, other).second) {
    if (code != cudaSuccess && sticky_error == cudaSuccess) sticky_error = code;
    return;
  }
  char text[1500];
  va_list rest;
  va_start(rest, format);
  vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  std::string with = text;
  Place second = other ? place_of(other) : Place{};
  if (second.line) with += " at " + second.file + ":" + std::to_string(second.line);
  keep(code, kind, place_of(code_address), with.c_str());
}

bool is_first(const char* kind, const void* place) { return seen.emplace(kind, place, nullptr).second; }

cudaError_t result(cudaError_t error) {
  if (sticky_error != cudaSuccess) return sticky_error;
  if (error != cudaSuccess) last_error = error;
  return error;
}

// A program that was built to run by itself fails where something was found, whatever it thinks of its results.
namespace {
struct AtExit {
  ~AtExit() {
    if (!&emulator_runs_alone || !count) return;
    fflush(nullptr);
    fprintf(stderr, "emulator: %lld finding%s\n", count, count == 1 ? "" : "s");
    _exit(9);
  }
} at_exit;
}  // namespace

}  // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" const char* emulator_findings(void) {
  Locked locked;
  static std::string text;
  text.clear();
  for (const std::string& line : kept) text += line + "\n";
  if (kept.size() < static_cast<size_t>(count)) text += std::to_string(count - kept.size()) + "\n";
  return text.c_str();
}

extern "C" int emulator_reset(void) {
  Locked locked;
  kept.clear();
  seen.clear();
  count = 0;
  sticky_error = last_error = cudaSuccess;
  forget_stop();
  return 0;
}

#include "settings.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "emulator/control.h"
#include "memory.h"
#include "scheduler.h"
#include "streams.h"

namespace cuda_emulator {
namespace {

struct Row {
  const char *name, *variable;
  long long Settings::*field;
  long long value;
};
const Row table[] = {
    {"order", "I_EMULATOR_ORDER", &Settings::order, 0},
    {"streams", "I_EMULATOR_STREAMS", &Settings::streams, 0},
    {"devices", "I_EMULATOR_DEVICES", &Settings::devices, 1},
    {"memory", "I_EMULATOR_MEMORY", &Settings::memory, 8ll << 30},
    {"capability", "I_EMULATOR_CAPABILITY", &Settings::capability, 90},
    {"multiprocessors", "I_EMULATOR_MULTIPROCESSORS", &Settings::multiprocessors, 4},
    {"failing", "I_EMULATOR_FAILING", &Settings::failing, 0},
    {"profile", "I_EMULATOR_PROFILE", &Settings::profile, 0},
    {"quiet", "I_EMULATOR_QUIET", &Settings::quiet, 0},
};

Settings from_environment() {
  Settings s{};
  for (const Row& row : table) {
    const char* given = getenv(row.variable);
    s.*row.field = given && *given ? strtoll(given, nullptr, 0) : row.value;
  }
  return s;
}

}  // namespace

Settings settings = from_environment();

}  // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" int emulator_set(const char* name, long long value) {
  Locked locked;
  for (const Row& row : table)
    if (!strcmp(row.name, name)) {
      if (row.field == &Settings::streams) reseed_streams(value);
      if (row.field == &Settings::failing) count_allocations_anew();
      settings.*row.field = value;
      return 0;
    }
  return 1;
}

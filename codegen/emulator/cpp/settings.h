// What can be chosen of the emulated machine: from the environment at the start, by emulator_set at any time.
#pragma once

namespace cuda_emulator {

// Each is a row of the table in settings.cpp, which has the defaults.
struct Settings {
  long long order;         // of threads: 0 forward, 1 backward, 2 and more: at random, seeded by the number
  long long streams;       // 0: work runs when it is queued; n: at the next wait, in an order seeded by n
  long long devices;       // how many there are; 0: none
  long long memory;        // bytes of the device
  long long capability;    // 90 stands for 9.0
  long long multiprocessors;
  long long failing;       // the allocation that fails, counted from when this is set; 0: none
  long long profile;       // 1: count what accesses of checked programs cost
  long long quiet;         // 1: findings are kept, not printed
};
extern Settings settings;

}  // namespace cuda_emulator

// Streams, events, and the copies that are queued in them.
//
// Work runs when it is queued, or, with the setting `streams`, at the next wait in an order drawn from its number: an
// event that nobody waits for then gives a wrong result.
#pragma once
#include <functional>

#include "emulator/api.h"

namespace cuda_emulator {

bool is_stream(cudaStream_t);
void queue(cudaStream_t, std::function<void()> work);
void run_all_streams();
void reseed_streams(long long seed);

}  // namespace cuda_emulator

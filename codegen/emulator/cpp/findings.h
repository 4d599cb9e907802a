// What was found wrong: kept as records, printed where nobody asks for them.
#pragma once
#include <string>
#include <vector>

#include "emulator/launch.h"

namespace cuda_emulator {

struct Place {
  std::string file;  // "" where it is not known
  int line = 0;
};
Place place_of(Site);
// Of the instruction before an address of code.
Place place_of(const void* code);
// The same of many: asked for together, which is much quicker.
std::vector<Place> places_of(const std::vector<const void*>& codes);

// Keeps a finding about the CUDA thread that runs, or about host code. A code other than cudaSuccess sticks to the
// device, as a fault of a kernel does.
__attribute__((format(printf, 4, 5))) void finding(cudaError_t code, const char* kind, const Place&,
                                                   const char* format, ...);
// The same for what an instruction does, once for each pair of instructions.
__attribute__((format(printf, 5, 6))) void finding_once(cudaError_t code, const char* kind, const void* code_address,
                                                        const void* other, const char* format, ...);

// Whether nothing was said yet of this kind and place: notes that something is now.
bool is_first(const char* kind, const void* place);

// The error that every call returns from now on, and the one of the last call that failed.
extern cudaError_t sticky_error, last_error;
// Notes the error of a call, and gives what the call returns.
cudaError_t result(cudaError_t);

}  // namespace cuda_emulator

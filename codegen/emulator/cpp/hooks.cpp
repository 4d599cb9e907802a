// What g++ calls for -fsanitize=thread and -fsanitize=undefined: the emulator answers in place of their libraries.
#include <cstddef>
#include <cstdint>

#include "findings.h"
#include "scheduler.h"
#include "shadow.h"

using cuda_emulator::Access;
using cuda_emulator::check_access;

namespace {

// Every handler's data begins with the place in the source.
struct Location {
  const char* file;
  uint32_t line, column;
};

void undefined(const char* kind, cudaError_t code, const Location* at, const char* text) {
  cuda_emulator::Locked locked;
  if (cuda_emulator::is_first(kind, at))
    cuda_emulator::finding(cuda_emulator::sm.launch ? code : cudaSuccess, kind,
                           place_of(cuda_emulator::Site{at->file, static_cast<int>(at->line)}), "%s", text);
}

}  // namespace

#define CODE __builtin_return_address(0)
#define ACCESS_HOOKS(n)                                                                              \
  extern "C" void __tsan_read##n(void* p) { check_access(p, n, Access::read, CODE); }                \
  extern "C" void __tsan_write##n(void* p) { check_access(p, n, Access::write, CODE); }              \
  extern "C" void __tsan_unaligned_read##n(void* p) { check_access(p, n, Access::read, CODE); }      \
  extern "C" void __tsan_unaligned_write##n(void* p) { check_access(p, n, Access::write, CODE); }    \
  extern "C" void __tsan_volatile_read##n(void* p) { check_access(p, n, Access::read, CODE); }       \
  extern "C" void __tsan_volatile_write##n(void* p) { check_access(p, n, Access::write, CODE); }
ACCESS_HOOKS(1)
ACCESS_HOOKS(2)
ACCESS_HOOKS(4)
ACCESS_HOOKS(8)
ACCESS_HOOKS(16)

extern "C" {

void __tsan_init(void) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* p, size_t n) { check_access(p, n, Access::read, CODE); }
void __tsan_write_range(void* p, size_t n) { check_access(p, n, Access::write, CODE); }

void __ubsan_handle_type_mismatch_v1(Location* at, void*) {
  undefined("misaligned access", cudaErrorMisalignedAddress, at, "the address is not a multiple of the type's alignment");
}
void __ubsan_handle_out_of_bounds(Location* at, void*) {
  undefined("index out of bounds", cudaSuccess, at, "an array has no such element");
}
void __ubsan_handle_shift_out_of_bounds(Location* at, void*, void*) {
  undefined("undefined arithmetic", cudaSuccess, at, "a shift by as many bits as there are, or by fewer than none");
}
void __ubsan_handle_add_overflow(Location* at, void*, void*) {
  undefined("undefined arithmetic", cudaSuccess, at, "a signed addition overflows");
}
void __ubsan_handle_sub_overflow(Location* at, void*, void*) {
  undefined("undefined arithmetic", cudaSuccess, at, "a signed subtraction overflows");
}
void __ubsan_handle_mul_overflow(Location* at, void*, void*) {
  undefined("undefined arithmetic", cudaSuccess, at, "a signed multiplication overflows");
}
void __ubsan_handle_negate_overflow(Location* at, void*) {
  undefined("undefined arithmetic", cudaSuccess, at, "a signed negation overflows");
}
void __ubsan_handle_divrem_overflow(Location* at, void*, void*) {
  undefined("undefined arithmetic", cudaSuccess, at, "a division by zero, or its overflow");
}

}  // extern "C"

// Fibers by themselves: two that take turns, and keep what they know.
#include "fibers.cpp"

namespace {

cuda_emulator::Fiber home, fibers[2];
int turns[2];
double sums[2];

template <int N>
void take_turns() {
  double sum = 0.5;  // in a register that a switch has to keep, or on the stack of the fiber
  for (int i = 0;; ++i) {
    sum += N + 1;
    sums[N] = sum;
    turns[N] = i + 1;
    cuda_emulator::switch_fiber(fibers[N], home);
  }
}

}  // namespace

extern "C" int run_fibers() {
  constexpr size_t SIZE = 64 << 10;
  static char stacks[2][SIZE] __attribute__((aligned(16)));
  cuda_emulator::prepare_fiber(fibers[0], stacks[0], stacks[0] + SIZE, take_turns<0>);
  cuda_emulator::prepare_fiber(fibers[1], stacks[1], stacks[1] + SIZE, take_turns<1>);
  for (int i = 0; i < 100; ++i) cuda_emulator::switch_fiber(home, fibers[i % 3 == 0]);
  return turns[0] == 66 && turns[1] == 34 && sums[0] == 66.5 && sums[1] == 68.5 ? 0 : 1;
}

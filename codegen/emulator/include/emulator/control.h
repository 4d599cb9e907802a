// What steers the emulator and reads its answers: called by Python, never by emulated code.
#pragma once

extern "C" {
// Changes a setting of settings.h; 0, or 1 where there is none of that name.
int emulator_set(const char* name, long long value);
// The findings since the last emulator_reset, a line each, fields between tabs: kind, file, line, kernel, three indices
// of the block, three of the thread, text. Empty fields stand for what is not known. A line of one field is how many
// further findings were not kept.
const char* emulator_findings(void);
// The profile since the last call, a line each, fields between tabs: file, line, space, access, requests, lanes, bytes,
// cost, ideal.
const char* emulator_profile(void);
// Forgets findings and errors, the one that sticks to the device too.
int emulator_reset(void);
int emulator_live_allocations(void);
unsigned long emulator_threads_run(void);
// Gives up the kernel that runs, and all that come until emulator_reset, once its threads reach a barrier or their end.
int emulator_stop(void);
}

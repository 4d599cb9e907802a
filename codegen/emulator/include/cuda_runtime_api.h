// Stands in for CUDA's header of this name: what host code needs, in C and C++.
#pragma once
#include "emulator/api.h"

// Stands in for CUDA's header of this name; the classes of its C++ interface are not there.
#pragma once
#include "cuda_pipeline_primitives.h"

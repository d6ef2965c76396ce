// Included by the template only.
#pragma once

#include "common/first.cuh"

namespace logpjit::device {
struct Scale {
  float factor;
  const float* factors;
};
LOGPJIT_DEVICE float scaled(float x, Scale scale) { return x * scale.factor; }
}  // namespace logpjit::device

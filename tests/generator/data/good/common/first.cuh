// Included by second.cuh and by the template.
#pragma once

namespace logpjit::device {
struct Rows {
  i64 stride = 1;
  const i64* index;
};
}  // namespace logpjit::device

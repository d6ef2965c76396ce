// Ids, vocabulary and transform of a call: checked and turned into arguments.
#pragma once

#include <cstdint>
#include <string_view>

#include "logpjit/operations.hpp"
#include "runtime/operations/row_space.hpp"

namespace logpjit::runtime {

/// Columns that count: `vocab`, or the row length when it is 0.
std::int64_t check_vocab(std::string_view op, const TensorView& logits,
                         std::int64_t vocab);

struct IdsArgument {
  device::VectorArgument vector{};
  std::int64_t per_row = 1;
  int trailing = 0;  ///< 1 when ids have a dimension K
  DType dtype = DType::kInt64;
};

/// Most ids one row may have.
inline constexpr std::int64_t kMostIds = 512;

/// Ids [N], [N, K], [B, S] or [B, S, K]. Not given: nothing, unless `wanted`.
IdsArgument check_ids(std::string_view op, DeviceId device,
                      const TensorView& ids, bool wanted, RowSpace& space);

/// Also says in `spec` which parts of the transform the kernel needs.
device::TransformArgument check_transform(std::string_view op, DeviceId device,
                                          const Transform& transform,
                                          RowSpace& space, KernelSpec& spec);

}  // namespace logpjit::runtime

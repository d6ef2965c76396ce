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

struct IdsShape {
  std::int64_t per_row = 1;
  int trailing = 0;  ///< 1 when ids have a dimension K
  DType dtype = DType::kInt64;
};

/// Most ids one row may have.
inline constexpr std::int64_t kMostIds = 512;

/// Ids [N], [N, K], [B, S] or [B, S, K]. Not given: nothing, unless `wanted`.
/// Sets `argument`; as does the next one: a launch waits for no copy of what
/// was just written.
IdsShape check_ids(std::string_view op, const TensorView& ids, bool wanted,
                   RowSpace& space, device::VectorArgument& argument);

/// Also says in `spec` which parts of the transform the kernel needs.
void check_transform(std::string_view op, const Transform& transform,
                     RowSpace& space, KernelSpec& spec,
                     device::TransformArgument& argument);

}  // namespace logpjit::runtime

// Checks shared by all operations on rows with ids and transforms.
#include "runtime/operations/transform.hpp"

#include <fmt/format.h>

#include <cmath>

#include "runtime/operations/check.hpp"

namespace logpjit::runtime {

std::int64_t check_vocab(std::string_view op, const TensorView& logits,
                         std::int64_t vocab) {
  const std::int64_t length = logits.shape[logits.rank - 1];
  if (vocab == 0) return length;
  if (vocab < 0 || vocab > length) {
    refuse(op, "vocab",
           fmt::format("{} is not between 1 and the row length {}", vocab,
                       length));
  }
  return vocab;
}

IdsShape check_ids(std::string_view op, const TensorView& ids, bool wanted,
                   RowSpace& space, device::VectorArgument& argument) {
  IdsShape shape;
  if (!wanted && !ids.given()) return shape;
  const Named named{"ids", ids};
  if (ids.given()) check_dtype(op, named, {DType::kInt32, DType::kInt64});
  shape.dtype = ids.dtype;
  shape.trailing = space.is_vector(ids) ? 0 : 1;
  const RowStrides strides =
      space.read_vector(named, ids.dtype, shape.trailing);
  std::int64_t item_stride = 0;
  if (shape.trailing == 1) {
    shape.per_row = ids.shape[ids.rank - 1];
    item_stride = ids.strides[ids.rank - 1];
    if (shape.per_row < 1 || shape.per_row > kMostIds) {
      refuse(op, "ids",
             fmt::format("{} ids per row; 1 to {} are possible", shape.per_row,
                         kMostIds));
    }
  }
  argument = RowSpace::vector_argument(ids, strides, item_stride);
  return shape;
}

void check_transform(std::string_view op, const Transform& transform,
                     RowSpace& space, KernelSpec& spec,
                     device::TransformArgument& argument) {
  check_finite_positive(op, "temperature",
                        static_cast<double>(transform.temperature));
  argument.temperature = transform.temperature;
  spec.temperature = transform.temperature != 1.0f;
  if (transform.temperatures.given()) {
    const Named named{"temperatures", transform.temperatures};
    argument.temperatures = RowSpace::vector_argument(
        transform.temperatures, space.read_vector(named, DType::kFp32));
    spec.temperature = true;
  }
  if (!std::isfinite(transform.softcap) || transform.softcap < 0) {
    refuse(op, "softcap",
           fmt::format("{} is not finite and at least 0", transform.softcap));
  }
  argument.softcap = transform.softcap;
  spec.softcap = transform.softcap > 0;
}

}  // namespace logpjit::runtime

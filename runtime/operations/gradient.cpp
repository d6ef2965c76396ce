// Checks of upstream gradients and gradient buffers.
#include "runtime/operations/gradient.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace logpjit::runtime {
namespace {

device::VectorArgument check_vector(std::string_view op, const Named& argument,
                                    int trailing, std::int64_t items,
                                    RowSpace& space) {
  const TensorView& tensor = argument.tensor;
  const RowStrides strides =
      space.read_vector(argument, DType::kFp32, trailing);
  if (trailing == 0) return RowSpace::vector_argument(tensor, strides);
  if (tensor.shape[tensor.rank - 1] != items) {
    refuse(op, argument.name,
           fmt::format("has {} items per row, ids have {}",
                       tensor.shape[tensor.rank - 1], items));
  }
  return RowSpace::vector_argument(tensor, strides,
                                   tensor.strides[tensor.rank - 1]);
}

bool same_view(const TensorView& a, const TensorView& b) {
  bool same = a.data == b.data && a.rank == b.rank;
  for (int i = 0; same && i < a.rank; ++i) {
    same = a.shape[i] == b.shape[i] &&
           (a.shape[i] <= 1 || a.strides[i] == b.strides[i]);
  }
  return same;
}

}  // namespace

Terms check_upstream(std::string_view op, const Upstream& upstream,
                     const IdsShape& ids, RowSpace& space,
                     device::UpstreamArgument& argument) {
  struct Row {
    Terms term;
    Named named;
    int trailing;
    device::VectorArgument& vector;
  };
  const Row rows[] = {
      {Terms::kLogp,
       {"upstream.logp", upstream.logp},
       ids.trailing,
       argument.logp},
      {Terms::kEntropy,
       {"upstream.entropy", upstream.entropy},
       0,
       argument.entropy},
      {Terms::kLse, {"upstream.lse", upstream.lse}, 0, argument.lse},
      {Terms::kSquares,
       {"upstream.squares", upstream.squares},
       0,
       argument.squares},
  };
  Terms terms = Terms::kNone;
  for (const Row& row : rows) {
    if (!row.named.tensor.given()) continue;
    row.vector = check_vector(op, row.named, row.trailing, ids.per_row, space);
    terms = terms | row.term;
  }
  if (terms == Terms::kNone) refuse(op, "upstream", "none is given");
  return terms;
}

RowStrides check_gradient(std::string_view op, DeviceId device,
                          std::string_view name, const Gradient& gradient,
                          const TensorView& logits, RowSpace& space) {
  const Named named{name, gradient.tensor};
  check_matrix(op, device, named);
  check_dtype(op, named, {logits.dtype});
  const TensorView& tensor = gradient.tensor;
  if (tensor.shape[tensor.rank - 1] != logits.shape[logits.rank - 1]) {
    refuse(op, name,
           fmt::format("row length {} is not the logits' {}",
                       tensor.shape[tensor.rank - 1],
                       logits.shape[logits.rank - 1]));
  }
  const RowStrides strides = space.add_matrix(name, tensor);
  if (gradient.in_place) {
    if (!same_view(tensor, logits)) {
      refuse(op, name,
             "in_place needs the logits' own pointer, shape and strides");
    }
    if (gradient.accumulate) {
      refuse(op, name, "accumulate and in_place exclude each other");
    }
    space.note_write_in_place(named);
  } else {
    space.note_write(named);
  }
  return strides;
}

bool lie_alike(const TensorView& logits, const TensorView& gradient) {
  const std::size_t size = size_of(logits.dtype);
  bool alike = ((reinterpret_cast<std::uintptr_t>(logits.data) ^
                 reinterpret_cast<std::uintptr_t>(gradient.data)) %
                16) == 0;
  if (logits.rank != gradient.rank) return false;
  for (int i = 0; i + 1 < logits.rank; ++i) {
    const auto apart =
        static_cast<std::uint64_t>(logits.strides[i] - gradient.strides[i]) *
        size;
    alike = alike && (logits.shape[i] <= 1 || apart % 16 == 0);
  }
  return alike;
}

}  // namespace logpjit::runtime

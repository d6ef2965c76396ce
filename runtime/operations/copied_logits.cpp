// The copy of logits whose vocabulary is not contiguous, when it is asked for.
#include "runtime/operations/copied_logits.hpp"

#include <fmt/format.h>

#include "logpjit/operations.hpp"
#include "runtime/operations/transform.hpp"

namespace logpjit::runtime {
namespace {

constexpr std::size_t kAlignment = 256;

bool needs_copy(const CallOptions& options, const TensorView& matrix) {
  if (!options.copy_strided || matrix.rank < 2) return false;
  const int last = matrix.rank - 1;
  return matrix.shape[last] > 1 && matrix.strides[last] != 1;
}

std::size_t bytes_of(const TensorView& matrix) {
  const std::size_t bytes =
      static_cast<std::size_t>(matrix.leading()) * size_of(matrix.dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// `bytes` of the caller's memory.
std::byte* reserve(std::string_view op, const Workspace& workspace,
                   std::size_t bytes, CUstream_st* stream) {
  if (workspace.data != nullptr) {
    if (workspace.bytes < bytes) {
      refuse(op, "workspace",
             fmt::format("{} bytes are too few: the copy needs {} "
                         "(workspace_bytes says so)",
                         workspace.bytes, bytes));
    }
    return static_cast<std::byte*>(workspace.data);
  }
  if (workspace.allocate == nullptr) {
    refuse(op, "workspace",
           fmt::format("is required: the copy needs {} bytes, from `data` or "
                       "`allocate`",
                       bytes));
  }
  void* made = workspace.allocate(workspace.context, bytes, stream);
  if (made == nullptr) {
    refuse(op, "workspace",
           fmt::format("`allocate` gave nothing for {} bytes", bytes));
  }
  return static_cast<std::byte*>(made);
}

/// The same shape, row-major, at `data`.
TensorView contiguous_at(const TensorView& matrix, std::byte* data) {
  TensorView made = matrix;
  made.data = data;
  std::int64_t stride = 1;
  for (int i = matrix.rank - 1; i >= 0; --i) {
    made.strides[static_cast<std::size_t>(i)] = stride;
    stride *= matrix.shape[static_cast<std::size_t>(i)];
  }
  return made;
}

}  // namespace

std::size_t copy_bytes(const CallOptions& options,
                       std::initializer_list<const TensorView*> matrices) {
  std::size_t bytes = 0;
  for (const TensorView* matrix : matrices) {
    if (needs_copy(options, *matrix)) bytes += bytes_of(*matrix);
  }
  return bytes;
}

CopiedLogits::CopiedLogits(std::string_view op, Engine& engine,
                           const CallOptions& options,
                           std::initializer_list<Named> matrices,
                           std::int64_t vocab, CUstream_st* stream)
    : op_(op), engine_(engine), stream_(stream), vocab_(vocab) {
  if (!options.copy_strided) return;
  std::size_t bytes = 0;
  std::size_t index = 0;
  for (const Named& matrix : matrices) {
    check_matrix_form(op, engine.device().info().id, matrix);
    views_[index++] = matrix.tensor;
    if (!needs_copy(options, matrix.tensor)) continue;
    check_vocab(op, matrix.tensor, vocab);
    bytes += bytes_of(matrix.tensor);
  }
  if (bytes == 0) return;
  std::byte* at = reserve(op, options.workspace, bytes, stream);
  index = 0;
  for (const Named& matrix : matrices) {
    TensorView& view = views_[index++];
    if (!needs_copy(options, matrix.tensor)) continue;
    view = contiguous_at(matrix.tensor, at);
    check_tensor(op, engine.device().info().id, {"workspace", view});
    copies_[count_++] = {matrix.name, matrix.tensor, view};
    at += bytes_of(matrix.tensor);
  }
}

void CopiedLogits::start(std::initializer_list<Named> outputs) {
  for (std::size_t i = 0; i < count_; ++i) {
    check_no_overlap(op_, outputs, {{copies_[i].name, copies_[i].from}});
    check_no_overlap(op_, {{"workspace", copies_[i].to}},
                     {{copies_[i].name, copies_[i].from}});
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const TensorView& from = copies_[i].from;
    const bool batched = from.rank == 3;
    const auto last = static_cast<std::size_t>(from.rank - 1);
    engine_.fallback().gather(
        {.from = from.data,
         .to = copies_[i].to.data,
         .inner_rows = batched ? from.shape[1] : from.shape[0],
         .outer_stride = batched ? from.strides[0] : 0,
         .inner_stride = batched ? from.strides[1] : from.strides[0],
         .column_stride = from.strides[last],
         .columns = check_vocab(op_, from, vocab_),
         .row_length = from.shape[last],
         .element_bytes = static_cast<int>(size_of(from.dtype))},
        from.leading(1), stream_);
  }
}

}  // namespace logpjit::runtime

namespace logpjit {

std::size_t workspace_bytes(const RowForward& call) {
  return runtime::copy_bytes(call.options, {&call.logits});
}
std::size_t workspace_bytes(const RowBackward& call) {
  return runtime::copy_bytes(call.options, {&call.logits});
}
std::size_t workspace_bytes(const RowWithGrad& call) {
  return workspace_bytes(call.values);
}
std::size_t workspace_bytes(const KlForward& call) {
  return runtime::copy_bytes(call.options,
                             {&call.inputs.student, &call.inputs.teacher});
}
std::size_t workspace_bytes(const KlBackward& call) {
  return runtime::copy_bytes(call.options,
                             {&call.inputs.student, &call.inputs.teacher});
}

}  // namespace logpjit

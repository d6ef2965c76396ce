// Backward of KL(A || B) for either side or both.
#pragma once

#include "common/any_offset.cuh"
#include "common/kl_gradient_row.cuh"
#include "common/kl_writer.cuh"

namespace logpjit::device {

/// Gradient of KL(A || B) with respect to A, B or both, from the saved
/// statistics and value: both inputs read once, each gradient written once. A
/// block takes a chunk of one row pair.
template <typename LogitA, typename LogitB, i64 kVocab, bool kAligned,
          int kRows, bool kTemperature, bool kSoftcap, bool kAccumulate,
          bool kGradA, bool kGradB, int kBlock, int kMinBlocks, int kFlight>
LOGPJIT_SPEC(LogitA, "fp32 bf16 fp16")
LOGPJIT_SPEC(LogitB, "fp32 bf16 fp16")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_SPEC(kAccumulate, "0 1")
LOGPJIT_SPEC(kGradA, "0 1")
LOGPJIT_SPEC(kGradB, "0 1")
LOGPJIT_TUNE(kBlock, "64 128 256 512")
LOGPJIT_TUNE(kMinBlocks, "1..16")
LOGPJIT_TUNE(kFlight, "1..8")
LOGPJIT_KERNEL(kBlock, kMinBlocks)
kl_gradient(const KlGradientArguments args) {
  constexpr int kChunks = group_chunk_count(kVocab, kBlock * kFlight);
  const i64 n = block_index() / kChunks;
  const int number = static_cast<int>(block_index() - n * kChunks);
  const int thread = thread_index();
  const RowPosition at = vector_position<kRows>(n, args.a.rows.inner_rows);
  const i64 storage = storage_row<kRows>(args.a.rows, n);
  if (storage < 0) return;
  const RowPosition row_at =
      row_position<kRows>(storage, args.a.rows.inner_rows);
  using Writer =
      KlWriter<LogitA, LogitB, kVocab, kAligned, kTemperature, kSoftcap,
               kAccumulate, kGradA, kGradB, kBlock, kFlight>;
  const Writer writer{
      AnyRow<LogitA, kAligned>(
          row_begin<LogitA>(args.a.logits, args.a.rows, row_at)),
      AnyRow<LogitB, kAligned>(
          row_begin<LogitB>(args.b.logits, args.b.rows, row_at)),
      row_begin<LogitA>(args.gradient_a, args.gradient_a_rows, row_at),
      row_begin<LogitB>(args.gradient_b, args.gradient_b_rows, row_at),
      number,
      thread};
  if (number == kChunks - 1) {
    writer.clear_padding(args.gradient_a_columns, args.gradient_b_columns);
  }
  const float upstream = row_scalar(args.upstream, at);
  const float max_a = args.max_a[n];
  const float max_b = args.max_b[n];
  if (upstream == 0.0f || max_a == -infinity() || max_b == -infinity()) {
    writer.clear();
    return;
  }
  const RowScale scale_a =
      row_scale<kTemperature, kSoftcap>(args.a.transform, at);
  const RowScale scale_b =
      row_scale<kTemperature, kSoftcap>(args.b.transform, at);
  const KlGradientRow row =
      kl_gradient_row(max_a, args.sum_a[n], max_b, args.sum_b[n], args.kl[n],
                      upstream, scale_a, scale_b);
  writer.write(row, scale_a, scale_b);
}

}  // namespace logpjit::device

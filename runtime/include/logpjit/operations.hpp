// The operations: one struct of named tensors each, one call each.
//
// Shapes. Logits are [N, V] or [B, S, V] (then N = B*S), fp32, bf16 or fp16,
// with a unit stride along V and any other strides. Per-row tensors are [N] or
// [B, S]; ids and their log-probabilities may have a trailing dimension K.
// Values, statistics and upstream gradients are fp32. Outputs are contiguous.
// A tensor that is not given is not computed, not read, and costs nothing.
//
// All calls start work on `stream` and return; nothing is written but the
// outputs given. Rows are independent: bits of a row's results depend on its
// own values alone. Misuse is Error{kInvalidArgument}, naming the member,
// before anything is launched. A kernel not yet prepared is compiled first.
#pragma once

#include <cstdint>

#include "logpjit/api.hpp"
#include "logpjit/runtime.hpp"
#include "logpjit/tensor.hpp"

namespace logpjit {

/// z = softcap(x) / T. Values and gradients are of z; gradients with respect to
/// x (chain rule included).
struct Transform {
  float temperature = 1;         ///< finite and > 0
  TensorView temperatures;       ///< fp32 per row, instead of `temperature`
  float softcap = 0;             ///< cap * tanh(x / cap); 0 = none
};

/// Values and statistics in one read of the logits.
struct RowForward {
  TensorView logits;
  /// int32 or int64, [N] or [N, K]. An id outside [0, vocab) gives value 0.
  TensorView ids;
  /// int64 [M]: the rows to work on, by number; other tensors then have M rows.
  TensorView row_index;
  /// Columns that count; 0 = the row length. The rest is padding, never read.
  std::int64_t vocab = 0;
  Transform transform;

  // Outputs, fp32 unless said.
  TensorView logp;      ///< [N] or [N, K], needs `ids`
  TensorView entropy;   ///< [N]
  TensorView lse;       ///< [N]; at large offsets prefer max and sum
  TensorView squares;   ///< [N], sum of p^2
  TensorView argmax;    ///< [N], int64; -1 in undefined rows
  TensorView max;       ///< [N], saved for the backward
  TensorView sum;       ///< [N], sum of e^(z - max), saved for the backward
  /// uint64 [1] as int64: counts ids outside [0, vocab) that are not
  /// `ignore_id`. Added to, never reset; read it when convenient.
  TensorView out_of_range;
  std::int64_t ignore_id = -100;
};

LOGPJIT_API void forward(Runtime& runtime, const RowForward& call,
                         CUstream_st* stream = nullptr);

}  // namespace logpjit

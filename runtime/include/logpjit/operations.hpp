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
// before anything is launched. A kernel not yet prepared is compiled first;
// where that cannot be done the fallback serves the call (Options::fallback).
#pragma once

#include <cstdint>

#include "logpjit/api.hpp"
#include "logpjit/call_options.hpp"
#include "logpjit/runtime.hpp"
#include "logpjit/tensor.hpp"

namespace logpjit {

/// z = softcap(x) / T. Values and gradients are of z; gradients with respect to
/// x (chain rule included).
struct Transform {
  float temperature = 1;      ///< finite and > 0
  TensorView temperatures{};  ///< fp32 per row, instead of `temperature`
  /// cap * tanh(x / cap); 0 = none. Infinite logits pass: a masked column stays
  /// masked, and +inf makes its row NaN.
  float softcap = 0;
};

/// Values and statistics in one read of the logits.
struct RowForward {
  TensorView logits{};
  /// int32 or int64, [N] or [N, K]. An id outside [0, vocab) gives value 0.
  TensorView ids{};
  /// int64 [M]: the rows to work on, by number; other tensors then have M rows.
  TensorView row_index{};
  /// Columns that count; 0 = the row length. The rest is padding, never read.
  std::int64_t vocab = 0;
  Transform transform{};

  // Outputs, fp32 unless said.
  TensorView logp{};     ///< [N] or [N, K], needs `ids`
  TensorView entropy{};  ///< [N]
  TensorView lse{};      ///< [N]; at large offsets prefer max and sum
  TensorView squares{};  ///< [N], sum of p^2
  TensorView argmax{};   ///< [N], int64; -1 in undefined rows
  TensorView max{};      ///< [N], saved for the backward
  TensorView sum{};      ///< [N], sum of e^(z - max), saved for the backward
  /// uint64 [1] as int64: counts ids outside [0, vocab) that are not
  /// `ignore_id`. Added to, never reset; read it when convenient.
  TensorView out_of_range{};
  std::int64_t ignore_id = -100;

  CallOptions options{};
};

LOGPJIT_API void forward(Runtime& runtime, const RowForward& call,
                         CUstream_st* stream = nullptr);

/// Upstream gradients, fp32, any strides (0 included). Not given = 0.
struct Upstream {
  TensorView logp{};     ///< [N] or [N, K], as the ids
  TensorView entropy{};  ///< [N]
  TensorView lse{};      ///< [N]
  TensorView squares{};  ///< [N]
};

/// Where a gradient goes: the logits' dtype and shape, unit stride along V.
struct Gradient {
  TensorView tensor{};
  bool accumulate = false;  ///< add to what is there, one rounding
  bool in_place = false;    ///< `tensor` lies exactly over the logits
};

/// Gradient of the sum of upstream times output with respect to the logits,
/// from what the forward saved: one read and one write. Rows without a live id
/// and rows whose upstream gradients are all 0 get zeros without being read;
/// rows that `row_index` does not list are not written.
struct RowBackward {
  TensorView logits{};
  TensorView ids{};        ///< needed with `upstream.logp`
  TensorView row_index{};  ///< as in the forward
  std::int64_t vocab = 0;
  Transform transform{};
  TensorView max{};      ///< saved by the forward
  TensorView sum{};      ///< saved by the forward
  TensorView entropy{};  ///< the forward's value, with `upstream.entropy`
  TensorView squares{};  ///< the forward's value, with `upstream.squares`
  Upstream upstream{};
  Gradient gradient{};
  std::int64_t ignore_id = -100;  ///< for `options.validate`
  CallOptions options{};
};

LOGPJIT_API void backward(Runtime& runtime, const RowBackward& call,
                          CUstream_st* stream = nullptr);

/// Forward and backward when the upstream gradient is known beforehand: one
/// launch, one read and one write, where the row fits on chip; otherwise (CPU
/// device, several ids, argmax, accumulation, GPUs before compute capability
/// 9.0) the two launches of `forward` and `backward`, with the same bits.
/// `values.max` and `values.sum` must be given; `values.options` holds for
/// both.
struct RowWithGrad {
  RowForward values{};
  Upstream upstream{};
  Gradient gradient{};
};

/// Which way round: KL(teacher || student), the default, or KL(student ||
/// teacher).
enum class KlDirection { kForward, kReverse };

/// The two sides of a divergence. Same leading dimensions and vocabulary; each
/// its own dtype, strides and transform.
struct KlInputs {
  TensorView student{};
  TensorView teacher{};
  TensorView row_index{};  ///< as in RowForward, for both sides
  std::int64_t vocab = 0;  ///< columns that count on both sides
  Transform student_transform{};
  Transform teacher_transform{};
  KlDirection direction = KlDirection::kForward;
};

/// Value and statistics in one read of each side. Outputs are fp32 [N]; the
/// statistics are saved for the backward.
struct KlForward {
  KlInputs inputs{};
  TensorView kl{};
  TensorView student_max{};
  TensorView student_sum{};
  TensorView teacher_max{};
  TensorView teacher_sum{};
  CallOptions options{};
};

LOGPJIT_API void kl_forward(Runtime& runtime, const KlForward& call,
                            CUstream_st* stream = nullptr);

/// Gradient of the sum of upstream times divergence, for the sides whose
/// gradient is given: both inputs read once, each gradient written once. Rows
/// whose upstream is 0 get zeros. `in_place` is not possible.
struct KlBackward {
  KlInputs inputs{};
  TensorView kl{};           ///< the forward's value
  TensorView student_max{};  ///< saved by the forward, as all below
  TensorView student_sum{};
  TensorView teacher_max{};
  TensorView teacher_sum{};
  TensorView upstream{};  ///< fp32 [N], any stride
  Gradient student_gradient{};
  Gradient teacher_gradient{};
  CallOptions options{};
};

LOGPJIT_API void kl_backward(Runtime& runtime, const KlBackward& call,
                             CUstream_st* stream = nullptr);

LOGPJIT_API void forward_with_grad(Runtime& runtime, const RowWithGrad& call,
                                   CUstream_st* stream = nullptr);

/// Bytes of workspace that the call needs: those of the copies it asks for
/// (rows times row length times element size, each rounded up to 256), and 0
/// without. Reads the call alone.
LOGPJIT_API std::size_t workspace_bytes(const RowForward& call);
LOGPJIT_API std::size_t workspace_bytes(const RowBackward& call);
LOGPJIT_API std::size_t workspace_bytes(const RowWithGrad& call);
LOGPJIT_API std::size_t workspace_bytes(const KlForward& call);
LOGPJIT_API std::size_t workspace_bytes(const KlBackward& call);

// The same with a kernel the caller holds: no look-up, and the configurations
// it was made with. Error{kInvalidArgument} when the call is of another
// specification than the kernel.

LOGPJIT_API void launch(const Kernel& kernel, const RowForward& call,
                        CUstream_st* stream = nullptr);
LOGPJIT_API void launch(const Kernel& kernel, const RowBackward& call,
                        CUstream_st* stream = nullptr);
/// Where `forward_with_grad` would take two launches, there is no such kernel.
LOGPJIT_API void launch(const Kernel& kernel, const RowWithGrad& call,
                        CUstream_st* stream = nullptr);
LOGPJIT_API void launch(const Kernel& kernel, const KlForward& call,
                        CUstream_st* stream = nullptr);
LOGPJIT_API void launch(const Kernel& kernel, const KlBackward& call,
                        CUstream_st* stream = nullptr);

}  // namespace logpjit

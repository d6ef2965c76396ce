// Run-time arguments of the kernels: plain structs that the host fills in and
// passes by value. Shared by device and host code: builtin types only.
#pragma once

namespace logpjit::device {

/// Where rows of logits or gradients start, in elements. Row n is first mapped
/// through `index` (when the kernel's row map says so), then lies at
/// (n / inner_rows) * outer_stride + (n % inner_rows) * inner_stride.
struct RowsArgument {
  long long inner_rows;
  long long outer_stride;
  long long inner_stride;
  const long long* index;
  /// Rows there are; an index outside [0, limit) is an ignored row.
  long long limit;
};

/// One scalar a row (or `K` of them): the same map, without the index.
struct VectorArgument {
  const void* data;
  long long outer_stride;
  long long inner_stride;
  long long item_stride;
};

struct TransformArgument {
  float temperature;
  float softcap;
  VectorArgument temperatures;  ///< used when data is not null
};

/// Per-row outputs are contiguous; null = not wanted.
struct RowStatisticsArguments {
  const void* logits;
  RowsArgument rows;
  long long row_count;
  VectorArgument ids;
  long long ids_per_row;
  long long ignore_id;
  TransformArgument transform;
  float* logp;
  float* entropy;
  float* lse;
  float* squares;
  long long* argmax;
  float* max;
  float* sum;
  unsigned long long* out_of_range;
};

/// Upstream gradients and saved statistics are fp32 per row.
struct RowGradientArguments {
  const void* logits;
  RowsArgument rows;
  void* gradient;
  RowsArgument gradient_rows;
  long long row_count;
  VectorArgument ids;
  long long ids_per_row;
  TransformArgument transform;
  const float* max;
  const float* sum;
  const float* entropy;
  const float* squares;
  VectorArgument grad_logp;
  VectorArgument grad_entropy;
  VectorArgument grad_lse;
  VectorArgument grad_squares;
};

}  // namespace logpjit::device

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

/// Upstream gradients, fp32 per row (of log-probabilities: K per row). Null
/// data counts as 0.
struct UpstreamArgument {
  VectorArgument logp;
  VectorArgument entropy;
  VectorArgument lse;
  VectorArgument squares;
};

/// Saved statistics are fp32 per row, contiguous.
struct RowGradientArguments {
  const void* logits;
  RowsArgument rows;
  void* gradient;
  RowsArgument gradient_rows;
  long long gradient_columns;  ///< row length; zeros from V on
  long long row_count;
  VectorArgument ids;
  long long ids_per_row;
  TransformArgument transform;
  UpstreamArgument upstream;
  const float* max;
  const float* sum;
  const float* entropy;
  const float* squares;
};

/// Values and gradient from one read.
struct RowFusedArguments {
  RowStatisticsArguments values;
  void* gradient;
  RowsArgument gradient_rows;
  long long gradient_columns;
  UpstreamArgument upstream;
};

/// One of the two distributions of a KL divergence.
struct SideArgument {
  const void* logits;
  RowsArgument rows;
  TransformArgument transform;
};

/// KL(A || B) per row, and what its gradient needs. Null = not wanted.
struct KlStatisticsArguments {
  SideArgument a;
  SideArgument b;
  long long row_count;
  float* kl;
  float* max_a;
  float* sum_a;
  float* max_b;
  float* sum_b;
};

/// Gradients of either side or both; `upstream` is fp32 per row.
struct KlGradientArguments {
  SideArgument a;
  SideArgument b;
  void* gradient_a;
  RowsArgument gradient_a_rows;
  long long gradient_a_columns;
  void* gradient_b;
  RowsArgument gradient_b_rows;
  long long gradient_b_columns;
  long long row_count;
  VectorArgument upstream;
  const float* kl;
  const float* max_a;
  const float* sum_a;
  const float* max_b;
  const float* sum_b;
};

// --- Kernels that are built with the project: what others are specialised for,
// they are told.

/// Numbers of element types, as in logpjit::DType.
constexpr int kFp32 = 0;
constexpr int kBf16 = 1;
constexpr int kFp16 = 2;
constexpr int kInt32 = 3;
constexpr int kInt64 = 4;

/// Threads of a block. Results depend on it, hence it is one number.
constexpr int kFallbackBlock = 256;
/// Shared memory of a block: up to 512 ids of 16 bytes a row, then four doubles
/// a thread to fold.
constexpr int kFallbackFoldOffset = 512 * 16;
constexpr int kFallbackSharedBytes =
    kFallbackFoldOffset + kFallbackBlock * 4 * 8;

/// The specification of a call, and the rows of it that a launch takes.
struct FallbackCall {
  long long vocab;
  long long first_row;
  int logits;  ///< element type; A's of a KL
  int other;   ///< B's
  int ids;
  int terms;
  int accumulate;  ///< 0 or 1
  int softcap;     ///< 0 or 1
};

struct FallbackStatisticsArguments {
  FallbackCall call;
  RowStatisticsArguments rows;
};
struct FallbackGradientArguments {
  FallbackCall call;
  RowGradientArguments rows;
};
struct FallbackKlStatisticsArguments {
  FallbackCall call;
  KlStatisticsArguments rows;
};
/// A null gradient is not wanted.
struct FallbackKlGradientArguments {
  FallbackCall call;
  KlGradientArguments rows;
};

/// Elements of 2 or 4 bytes of [outer, inner, columns] with any strides into
/// rows of `row_length`.
struct GatherArguments {
  const void* from;
  void* to;
  long long inner_rows;
  long long outer_stride;
  long long inner_stride;
  long long column_stride;
  long long columns;
  long long row_length;
  int element_bytes;
};

/// Floors to compare with: `words` 16-byte words of one or two inputs.
struct FloorArguments {
  const void* first;
  const void* second;
  void* output;
  long long words;
};

/// What a rank says of itself before its records.
struct ShardHeader {
  unsigned long long digest;  ///< of the call: equal on all ranks
  long long begin;            ///< the rank's columns, [begin, end)
  long long end;
  unsigned long long unused;
};

/// A rank's share of a call, for the rows [first_row, first_row + rows).
struct ShardArgument {
  long long begin;  ///< its columns of the vocabulary; begin == end: none,
  long long end;    ///< and no logit is read
  long long first_row;
  long long rows;
  long long picked;  ///< logits in a record
  long long slots;   ///< segments a rank may send; 0 = not in segment mode
  unsigned long long digest;
};

/// `values.logits` are the rank's columns, `values.ids` are of the whole
/// vocabulary; outputs are not used.
struct ShardStatisticsArguments {
  RowStatisticsArguments values;
  ShardArgument shard;
  void* partials;
  /// [rows, K] words, 0 where the rank does not own the id; null: the picked
  /// logits are in the records.
  unsigned int* words;
};

/// `values` without logits. `partials` are those of all ranks, `rank_bytes`
/// apart.
struct ShardMergeArguments {
  RowStatisticsArguments values;
  ShardArgument shard;
  const void* partials;
  long long ranks;
  long long rank_bytes;
  const unsigned int* words;
  /// Set to 1 + the first rank whose digest differs; outputs are NaN then.
  unsigned int* disagreement;
};

struct ShardKlStatisticsArguments {
  KlStatisticsArguments values;
  ShardArgument shard;
  void* partials;
};

struct ShardKlMergeArguments {
  KlStatisticsArguments values;
  ShardArgument shard;
  const void* partials;
  long long ranks;
  long long rank_bytes;
  unsigned int* disagreement;
};

/// `begin` == `end`: the rank owns no column, and the rows are padding.
struct ShardGradientArguments {
  RowGradientArguments values;
  long long begin;
  long long end;
};

}  // namespace logpjit::device

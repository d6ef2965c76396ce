// How one call is carried out: checks, copies, memory, the fallback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

struct CUstream_st;

namespace logpjit {

/// Device memory for what a call copies; nothing else needs any. Used from the
/// call on until the stream's work is over, and then the caller's again.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
  /// Called instead, when `data` is null: at most once a call, before anything
  /// is launched. Returns that many bytes aligned to 16, or null to refuse.
  void* (*allocate)(void* context, std::size_t bytes,
                    CUstream_st* stream) = nullptr;
  void* context = nullptr;
};

/// Defaults cost nothing.
struct CallOptions {
  /// Error{kInvalidArgument} for an id outside [0, vocab) that is not
  /// `ignore_id`, and for a row number that does not exist, before anything is
  /// launched. Waits for the device and reads the ids: not for stream captures.
  bool validate = false;
  /// Logits whose vocabulary is not contiguous are copied into the workspace;
  /// otherwise they are refused. `workspace_bytes` says how much it takes.
  bool copy_strided = false;
  Workspace workspace{};
  /// Served by the fallback: the kernels that the library carries.
  bool fallback = false;
  /// Rows of one launch of the fallback; above 0. Absent: as many as hold 2^27
  /// logits on a GPU and 2^24 on a CPU, at least one. Changes no bit.
  std::optional<std::int64_t> chunk_rows{};
};

}  // namespace logpjit

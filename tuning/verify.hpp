// Runs conformance cases on a device and says which hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/cases.hpp"

namespace logpjit::tuning {

enum class CaseStatus { kPassed, kFailed, kSkipped };
std::string_view name(CaseStatus status);

struct CaseResult {
  std::string id;
  std::string op;
  CaseStatus status = CaseStatus::kSkipped;
  std::string reason;  ///< why failed or skipped; empty when passed
  /// What the case also asks and was not run, and the like.
  std::vector<std::string> notes;
  double ms = 0;
};

struct VerifyOptions {
  /// Only cases that ask for this operation, and only that part of them.
  std::optional<KernelSpec> op;
  /// Cases with more logits than this are skipped; 0 = no such limit. Cases
  /// that need more memory than the device has free always are.
  std::int64_t most_logits = 0;
};

/// Whether the options let the case be considered at all.
bool is_selected(const Case& one, const VerifyOptions& options);

/// Runs one case. A case passes when everything of it that can be run holds;
/// what cannot be run yet is in `notes`, and when nothing can, it is skipped.
/// Throws only Error{kUnavailable}: no compiler, no device.
CaseResult verify_case(Runtime& runtime, const Case& one,
                       const VerifyOptions& options);

/// A bound for the CPU device, which runs a few ten million logits a second.
inline constexpr std::int64_t kMostLogitsOnCpu = std::int64_t{1} << 29;

}  // namespace logpjit::tuning

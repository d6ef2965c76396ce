// Runs conformance cases on a device and says which hold.
#include "tuning/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tuning/case_calls.hpp"
#include "tuning/case_forward.hpp"
#include "tuning/case_gradient.hpp"
#include "tuning/case_inputs.hpp"
#include "tuning/case_kl.hpp"

namespace logpjit::tuning {
namespace {

/// One operation of the runtime: whether a case asks for it, the parts of a
/// case's "op" it answers, and how it is run.
struct CaseOperation {
  bool (*asked)(const Case& one);
  std::vector<std::string_view> parts;
  void (*run)(Runtime& runtime, const Case& one, Findings& findings);
};

const std::vector<CaseOperation>& operations() {
  static const std::vector<CaseOperation> table = {
      {asks_values, {"logp", "entropy", "lse"}, run_values},
      {asks_gradient, {"bwd", "logp_bwd", "entropy_bwd"}, run_gradient},
      {asks_kl,
       {"kl_forward", "kl_reverse", "bwd", "kl_forward_bwd", "kl_reverse_bwd"},
       run_kl},
  };
  return table;
}

constexpr std::array<std::pair<Terms, std::string_view>, 3> kTermParts{
    {{Terms::kLogp, "logp"},
     {Terms::kEntropy, "entropy"},
     {Terms::kLse, "lse"}}};

/// Whether the part is what `--op` asks to see.
bool in_question(std::string_view part, const VerifyOptions& options) {
  if (!options.op) return true;
  const bool gradient = part.ends_with("bwd");
  if (gradient != (options.op->pass != Pass::kForward)) return false;
  if (part == "bwd") return true;
  if (has(options.op->terms, Terms::kKl)) return part.starts_with("kl_");
  return std::any_of(kTermParts.begin(), kTermParts.end(), [&](auto& entry) {
    return has(options.op->terms, entry.first) &&
           part.starts_with(entry.second);
  });
}

/// Whether the case asks for each of the terms: its value, or its gradient.
bool asks_terms(const Case& one, Terms terms, bool gradient) {
  if ((terms & (Terms::kLogp | Terms::kEntropy | Terms::kLse)) != terms) {
    return false;
  }
  return std::all_of(kTermParts.begin(), kTermParts.end(), [&](auto& entry) {
    const auto part = fmt::format("{}_bwd", entry.second);
    return !has(terms, entry.first) || asks_value(one, entry.second) ||
           (gradient && one.asks(part));
  });
}

/// The case with only what `--op` asks for.
Case narrowed(Case one, const VerifyOptions& options) {
  std::erase_if(one.parts, [&](const std::string& part) {
    return !in_question(part, options);
  });
  if (options.op) {
    std::erase_if(one.expected.values, [&](const auto& entry) {
      return !in_question(entry.first, options);
    });
  }
  return one;
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

/// Why the device cannot run the case; empty when it can.
std::string missing(Runtime& runtime, const Case& one,
                    const VerifyOptions& options) {
  if (!one.shards.empty() &&
      runtime.engine().options().fallback == FallbackUse::kAlways) {
    return "the fallback has no operations over shards";
  }
  const std::int64_t logits = one.rows() * one.columns();
  if (options.most_logits > 0 && logits > options.most_logits) {
    return fmt::format("has {} logits, too many for this device in good time",
                       logits);
  }
  const std::int64_t needed = device_bytes(one, one.dtype);
  const auto free =
      static_cast<std::int64_t>(runtime.engine().device().free_bytes());
  if (needed <= free) return {};
  return fmt::format("needs {} of device memory, {} are free",
                     gigabytes(needed), gigabytes(free));
}

Case contiguous(Case one) {
  one.layout.reset();
  std::int64_t stride = 1;
  for (std::size_t d = one.shape.size(); d-- > 0;) {
    one.strides[d] = stride;
    stride *= one.shape[d];
  }
  return one;
}

void add_note(std::vector<std::string>& notes, std::string note) {
  const bool known = std::find(notes.begin(), notes.end(), note) != notes.end();
  if (!known) notes.push_back(std::move(note));
}

bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::kInvalidArgument ||
         error.code() == ErrorCode::kUnsupported;
}

/// Runs an operation; where the case accepts it, a refusal is right too, and
/// what may be copied first is run as a copy.
void run_operation(const CaseOperation& operation, Runtime& runtime,
                   const Case& one, Findings& findings,
                   std::vector<std::string>& notes) {
  try {
    operation.run(runtime, one, findings);
  } catch (const Error& error) {
    const std::string& accepted = one.expected.also_acceptable;
    if (!is_refusal(error) || accepted.empty()) throw;
    add_note(notes, fmt::format("refused, as it may be: {}", error.message()));
    if (accepted.find("copy") != std::string::npos) {
      operation.run(runtime, contiguous(one), findings);
      add_note(notes, "run on a contiguous copy");
    }
  }
}

void note_unserved(const Case& one, std::vector<std::string>& notes) {
  for (const std::string& part : one.parts) {
    const bool served = std::any_of(
        operations().begin(), operations().end(), [&](const auto& operation) {
          return std::find(operation.parts.begin(), operation.parts.end(),
                           part) != operation.parts.end();
        });
    if (!served) notes.push_back(fmt::format("{} does not exist yet", part));
  }
  if (!one.procedure.empty()) {
    notes.push_back("its procedure is a test of its own");
  }
}

/// The case, and the same with each of its other partitions of the vocabulary.
std::vector<Case> partitions(const Case& one) {
  std::vector<Case> all{one};
  for (const std::vector<Range>& shards : one.other_shards) {
    all.push_back(one);
    all.back().shards = shards;
  }
  return all;
}

void run_case(Runtime& runtime, const Case& one, CaseResult& result) {
  Findings findings;
  bool any = false;
  for (const CaseOperation& operation : operations()) {
    if (!operation.asked(one)) continue;
    any = true;
    for (const Case& cut : partitions(one)) {
      run_operation(operation, runtime, cut, findings, result.notes);
    }
  }
  note_unserved(one, result.notes);
  if (!any) {
    result.reason = fmt::format("operation {} does not exist yet", one.op);
    result.notes.clear();
    return;
  }
  result.status = findings.empty() ? CaseStatus::kPassed : CaseStatus::kFailed;
  result.reason = findings.text();
  if (!findings.empty() && !one.expected.bug_would_give.empty()) {
    result.notes.push_back(
        fmt::format("the known fault gives {}", one.expected.bug_would_give));
  }
}

}  // namespace

std::string_view name(CaseStatus status) {
  switch (status) {
    case CaseStatus::kPassed:
      return "passed";
    case CaseStatus::kFailed:
      return "failed";
    case CaseStatus::kSkipped:
      return "skipped";
  }
  return "";
}

bool is_selected(const Case& one, const VerifyOptions& options) {
  if (!options.op) return true;
  const bool gradient = options.op->pass != Pass::kForward;
  if (gradient && !one.wants_gradient()) return false;
  if (has(options.op->terms, Terms::kKl)) return asks_kl(one);
  return !one.teacher && asks_terms(one, options.op->terms, gradient);
}

CaseResult verify_case(Runtime& runtime, const Case& whole,
                       const VerifyOptions& options) {
  const Case one = narrowed(whole, options);
  CaseResult result{one.id, one.op, CaseStatus::kSkipped, "", {}, 0};
  result.reason = missing(runtime, one, options);
  if (!result.reason.empty()) return result;
  const auto start = std::chrono::steady_clock::now();
  try {
    run_case(runtime, one, result);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) throw;
    const bool unsupported = error.code() == ErrorCode::kUnsupported;
    result.status = unsupported ? CaseStatus::kSkipped : CaseStatus::kFailed;
    result.reason = error.message();
  }
  const std::chrono::duration<double, std::milli> taken =
      std::chrono::steady_clock::now() - start;
  result.ms = taken.count();
  return result;
}

}  // namespace logpjit::tuning

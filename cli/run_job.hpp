// One run from files: what is read, what is computed, what is shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/device_tensor.hpp"

namespace logpjit::cli {

/// The flags of `logpjit run`.
struct RunFlags {
  DeviceFlags where;
  std::string op;
  std::string dtype;
  std::string logits;
  std::string targets;
  std::string teacher;
  std::string grad_out;
  std::string out;
  std::int64_t vocab = 0;
  float temperature = 1;
};

/// A result, and the name of its file.
struct RunOutput {
  std::string name;
  tuning::DeviceTensor tensor;
};

/// A value beside the float64 reference.
struct ShownRow {
  std::int64_t row = 0;
  std::optional<std::int64_t> target;
  double value = 0;
  double right = 0;
};

struct RunReport {
  std::int64_t rows = 0;
  std::vector<RunOutput> outputs;
  std::string shown_name;  ///< of the output that is shown
  std::vector<ShownRow> shown;
};

/// An operation whose files have been read.
class RunJob {
 public:
  virtual ~RunJob() = default;
  virtual RunReport run(Runtime& runtime) = 0;
};

/// Most rows that a run shows.
inline constexpr std::int64_t kMostShownRows = 8;

/// Both read and check the files that `flags` names; Error names flag and file.
std::unique_ptr<RunJob> read_row_job(const RunFlags& flags,
                                     const KernelSpec& spec);
std::unique_ptr<RunJob> read_kl_job(const RunFlags& flags,
                                    const KernelSpec& spec);

/// Error{kInvalidArgument} for a flag that `op` needs and has not.
void require(const std::string& value, const std::string& flag,
             const std::string& op, const std::string& what);
/// Error{kInvalidArgument} for a flag that `op` has no use for.
void forbid(const std::string& value, const std::string& flag,
            const std::string& op);

}  // namespace logpjit::cli

// Filling a cache for GPUs that are not here.
#include "cli/pretune_archs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/built_kernel.hpp"
#include "cli/command.hpp"
#include "cli/failure.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "runtime/launch_table.hpp"
#include "runtime/parallel.hpp"
#include "runtime/tuned_configs.hpp"
#include "tuning/search_space.hpp"

namespace logpjit::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using runtime::TunedConfig;
using runtime::TunedShape;

/// A configuration of a job: what became of it.
struct Part {
  LaunchConfig config;
  std::optional<BuiltKernel> kernel{};
  std::string failure{};
  bool is_refused = false;  ///< nothing can be had for the architecture
};

/// One specification for one architecture.
struct Job {
  Arch arch;
  KernelSpec spec;
  std::vector<Part> parts;
  double seconds = 0;
};

struct Counts {
  std::size_t wanted = 0;
  std::size_t compiled = 0;
  std::size_t cached = 0;
  std::size_t failed = 0;

  void add(const Part& part) {
    ++wanted;
    failed += part.failure.empty() ? 0 : 1;
    cached += part.kernel && part.kernel->hit() ? 1 : 0;
    compiled += part.kernel && !part.kernel->hit() ? 1 : 0;
  }
};

Counts count(const std::vector<Job>& jobs) {
  Counts counts;
  for (const Job& job : jobs) {
    for (const Part& part : job.parts) counts.add(part);
  }
  return counts;
}

/// The kernels behind calls of `spec`: where a row does not fit on chip, values
/// and gradient are two.
std::vector<KernelSpec> served_by(const KernelSpec& spec, const Arch& arch) {
  if (spec.pass != Pass::kWithGrad ||
      runtime::fits_on_chip(spec, arch.device)) {
    return {spec};
  }
  KernelSpec values = spec;
  values.pass = Pass::kForward;
  KernelSpec gradient = spec;
  gradient.pass = Pass::kBackward;
  return {values, gradient};
}

Job& job_of(const Arch& arch, const KernelSpec& spec, std::vector<Job>& jobs) {
  const auto found = std::ranges::find_if(jobs, [&](const Job& job) {
    return job.arch.name == arch.name && job.spec == spec;
  });
  if (found != jobs.end()) return *found;
  jobs.push_back({.arch = arch, .spec = spec, .parts = {}});
  return jobs.back();
}

/// Row counts share a job, and each configuration is in it once.
std::vector<Job> make_jobs(const FleetRequest& request,
                           std::span<const TunedConfig> tuned) {
  std::vector<Job> jobs;
  for (const Arch& arch : parse_archs(request.archs)) {
    for (const TunedShape& shape : request.shapes) {
      for (const KernelSpec& spec : served_by(shape.spec, arch)) {
        Job& job = job_of(arch, spec, jobs);
        auto configs = configs_of(spec, arch, "", tuned);
        if (request.candidates) {
          std::ranges::copy(tuning::search_space(
                                {.spec = spec, .rows = shape.rows}, arch.device)
                                .configs,
                            std::back_inserter(configs));
        }
        for (LaunchConfig& config : configs) {
          if (std::ranges::find(job.parts, config, &Part::config) ==
              job.parts.end()) {
            job.parts.push_back({.config = std::move(config)});
          }
        }
      }
    }
  }
  return jobs;
}

void build_part(ArchBuilder& builder, const KernelSpec& spec, Part& part) {
  try {
    part.kernel = build_kernel(builder, spec, part.config);
  } catch (const Error& error) {
    part.failure = error.message();
    part.is_refused = error.code() == ErrorCode::kInvalidArgument;
  }
}

/// The first one alone: it says whether the compiler knows the architecture.
void build_job(ArchBuilder& builder, Job& job) {
  const Clock::time_point begin = Clock::now();
  Part& first = job.parts.front();
  build_part(builder, job.spec, first);
  if (first.is_refused) {
    throw Error(ErrorCode::kInvalidArgument, first.failure);
  }
  runtime::parallel_for(
      job.parts.size() - 1, build_threads(),
      [&](std::size_t i) { build_part(builder, job.spec, job.parts[i + 1]); },
      [] { return InterruptGuard::interrupted(); });
  job.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
}

void build_all(std::vector<Job>& jobs, const Options& options) {
  Progress progress(static_cast<std::int64_t>(jobs.size()));
  std::unique_ptr<ArchBuilder> builder;
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Job& job = jobs[i];
    if (InterruptGuard::interrupted()) return;
    const double spent =
        std::chrono::duration<double>(Clock::now() - begin).count();
    const auto left = i == 0
                          ? std::nullopt
                          : std::optional(spent / static_cast<double>(i) *
                                          static_cast<double>(jobs.size() - i));
    progress.step(fmt::format("{} {} {} for {}: {} kernels", job.spec.op(),
                              name(job.spec.logits), job.spec.vocab,
                              job.arch.name, job.parts.size()),
                  left);
    if (builder == nullptr || builder->arch().name != job.arch.name) {
      builder = std::make_unique<ArchBuilder>(job.arch, options);
    }
    build_job(*builder, job);
  }
}

void print_json(const std::vector<Job>& jobs, double seconds,
                bool interrupted) {
  const Counts counts = count(jobs);
  Json document{{"wanted", counts.wanted},    {"compiled", counts.compiled},
                {"cached", counts.cached},    {"failed", counts.failed},
                {"interrupted", interrupted}, {"seconds", seconds},
                {"kernels", Json::array()}};
  for (const Job& job : jobs) {
    for (const Part& part : job.parts) {
      Json kernel{{"spec", job.spec.text()}};
      if (part.kernel) {
        kernel.update(Json::parse(to_json(*part.kernel)));
      } else {
        kernel.update(
            {{"arch", job.arch.name},
             {"config", part.config.text()},
             {"failure", part.failure.empty() ? "not reached" : part.failure}});
      }
      document["kernels"].push_back(std::move(kernel));
    }
  }
  fmt::print("{}\n",
             document.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_table(const std::vector<Job>& jobs, double seconds) {
  Table table({"operation", "dtype", "vocab", "arch", "kernels", "compiled",
               "cached", "failed", "seconds"},
              {2, 4, 5, 6, 7, 8});
  for (const Job& job : jobs) {
    const Counts counts = count({job});
    table.add(
        {job.spec.op(), std::string(name(job.spec.logits)),
         fmt::format("{}", job.spec.vocab), job.arch.name,
         fmt::format("{}", counts.wanted), fmt::format("{}", counts.compiled),
         fmt::format("{}", counts.cached), fmt::format("{}", counts.failed),
         fmt::format("{:.1f}", job.seconds)});
  }
  const Counts counts = count(jobs);
  fmt::print(
      "{}{} kernels, {} compiled, {} from the cache, {} failed; {:.1f} "
      "s\n",
      table.text(), counts.wanted, counts.compiled, counts.cached,
      counts.failed, seconds);
}

/// Each failure once a specification: what is wrong is mostly the same.
void print_failures(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const auto failed = std::ranges::find_if(
        job.parts, [](const Part& part) { return !part.failure.empty(); });
    if (failed == job.parts.end()) continue;
    print_failure(fmt::format("{} for {}, {}: {}", job.spec.op(), job.arch.name,
                              failed->config.text(), failed->failure));
  }
}

}  // namespace

int pretune_archs(const FleetRequest& request, const Options& options) {
  const Clock::time_point begin = Clock::now();
  const auto tuned = runtime::read_tuned_configs(options);
  std::vector<Job> jobs = make_jobs(request, tuned);
  const InterruptGuard guard;
  build_all(jobs, options);
  const bool interrupted = InterruptGuard::interrupted();
  const double seconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  request.json ? print_json(jobs, seconds, interrupted)
               : print_table(jobs, seconds);
  print_failures(jobs);
  if (interrupted) {
    print_failure("ended early; run the same command again to go on");
  }
  return interrupted || count(jobs).failed > 0 ? kFailed : kSuccess;
}

}  // namespace logpjit::cli

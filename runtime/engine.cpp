// From specification to loaded kernel, through the cache.
#include "runtime/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "cache/digest.hpp"
#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "runtime/open_device.hpp"
#include "runtime/parallel.hpp"
#include "runtime/tuned_configs.hpp"

namespace logpjit::runtime {
namespace {

cache::CacheOptions cache_options(const Options& options) {
  cache::CacheOptions made;
  made.directory = options.cache_directory;
  made.read_only = options.read_only_caches;
  made.never_compile = options.never_compile;
  made.off = options.caches_off;
  made.limits = {options.cache_max_bytes, options.cache_max_entries};
  made.warn = options.log;
  return made;
}

/// Cached images serve a machine without a compiler: a sealed layer is matched
/// without the identity, and a miss will say what is missing.
std::string identity_or_none(const Compiler& compiler) {
  try {
    return compiler.identity();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return "none";
  }
}

}  // namespace

cache::Key image_key(const generator::Source& source, const Compiler& compiler,
                     const std::string& target) {
  cache::Key key;
  key.add("arch", target);
  key.add(cache::Key::kCompilerField, identity_or_none(compiler));
  key.add("config", source.config.text());
  key.add("kernel", source.kernel);
  key.add("options", compiler.options());
  key.add("source", cache::hex(cache::digest(source.fingerprint)));
  key.add("spec", source.spec_text);
  return key;
}

Engine::Engine(const Options& options)
    : Engine(options, open_device(options), make_compiler(options)) {}

Engine::Engine(const Options& options, std::unique_ptr<Device> device,
               std::unique_ptr<Compiler> compiler)
    : options_(options),
      device_(std::move(device)),
      compiler_(std::move(compiler)),
      images_(cache_options(options)),
      fallback_(*device_),
      config_use_(options.record_misses, options.log) {}

void Engine::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

cache::Key Engine::key(const KernelSpec& spec, const LaunchConfig& config,
                       const std::string& target) const {
  return image_key(generator::plan(spec, config, compiler_->dialect(),
                                   generator::embedded_manifest()),
                   *compiler_, target);
}

Built Engine::build(const KernelSpec& spec, const LaunchConfig& config,
                    const std::string& target) {
  const generator::Manifest& manifest = generator::embedded_manifest();
  const generator::Dialect dialect = compiler_->dialect();
  cache::Key key = this->key(spec, config, target);
  cache::Found found = images_.find_or_compile(key, [&] {
    return compiler_->compile(
        generator::generate(spec, config, dialect, manifest), target);
  });
  switch (found.origin) {
    case cache::Origin::kCompiled:
      ++compiled_;
      break;
    case cache::Origin::kDisk:
      ++disk_hits_;
      break;
    case cache::Origin::kReadOnly:
      ++sealed_hits_;
      break;
    case cache::Origin::kMemory:
      break;
  }
  return {std::move(found.image), found.origin, std::move(key)};
}

namespace {

std::int64_t most_rows(const RowShape& shape, const DeviceInfo& device) {
  std::uint32_t blocks = INT32_MAX;
  if (shape.persistent) {
    const auto all = static_cast<std::uint32_t>(device.multiprocessors);
    blocks = std::max(all / shape.launch.cluster, 1U) * shape.launch.cluster;
  }
  return blocks / shape.launch.grid;
}

}  // namespace

Variant Engine::load(const KernelSpec& spec, const RowChoice& choice) {
  return load_built(spec, choice,
                    build(spec, choice.config, device_->target()));
}

/// What was built has checked the configuration.
Variant Engine::load_built(const KernelSpec& spec, const RowChoice& choice,
                           Built built) {
  const RowShape shape = shape_per_row(spec, choice.config);
  Variant variant{.max_rows = choice.max_rows,
                  .config = choice.config,
                  .source = choice.source,
                  .shape = shape.launch,
                  .most_rows = most_rows(shape, device_->info()),
                  .persistent = shape.persistent};
  const auto load_image = [&] {
    variant.function =
        device_->load(*built.image, variant.shape.dynamic_shared_bytes);
  };
  try {
    load_image();
  } catch (const DeviceTrouble&) {
    throw;  // another image would fare no better
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDriver ||
        built.origin == cache::Origin::kCompiled) {
      throw;
    }
    ++rejected_;
    log(fmt::format("cache: {} refused the image of {} ({}); setting it aside",
                    device_->info().name, spec.op(), error.message()));
    images_.reject(built.key, error.message());
    built = build(spec, choice.config, device_->target());
    load_image();
  }
  ++loaded_;
  variant.image = built.image;
  variant.origin = built.origin;
  return variant;
}

/// Read without a lock, which a fork meanwhile would leave taken in the child;
/// what a thread reads second is dropped.
std::shared_ptr<const Engine::TunedConfigs> Engine::tuned() {
  {
    const std::lock_guard lock(tuned_mutex_);
    if (tuned_ != nullptr) return tuned_;
  }
  auto read =
      std::make_shared<const TunedConfigs>(read_tuned_configs(options_));
  const std::lock_guard lock(tuned_mutex_);
  if (tuned_ == nullptr) tuned_ = std::move(read);
  return tuned_;
}

std::vector<RowChoice> Engine::choices(const KernelSpec& spec) {
  std::vector<RowChoice> defaults = default_choices(spec, device_->info());
  return tuned_choices(spec, device_->info(), *tuned(), std::move(defaults));
}

namespace {

/// What runs at most as many rows without tuning.
RowChoice default_for(const KernelSpec& spec, const DeviceInfo& device,
                      std::int64_t rows) {
  const std::vector<RowChoice> defaults = default_choices(spec, device);
  const auto found = std::ranges::find_if(
      defaults, [&](const RowChoice& each) { return rows <= each.max_rows; });
  return found == defaults.end() ? defaults.back() : *found;
}

}  // namespace

/// On threads that end before it returns: compilers spend half their time
/// outside of what they lock.
std::vector<Engine::Outcome> Engine::build_side_by_side(
    const KernelSpec& spec, std::span<const RowChoice> choices,
    std::span<const Variant> present) {
  std::vector<Outcome> all;
  for (const RowChoice& choice : choices) {
    if (std::ranges::find(present, choice.config, &Variant::config) ==
            present.end() &&
        std::ranges::find(all, choice.config, &Outcome::config) == all.end()) {
      all.push_back({.config = choice.config});
    }
  }
  if (all.size() < 2) return {};
  const std::string target = device_->target();
  constexpr int kMostThreads = 4;
  parallel_for(all.size(), kMostThreads, [&](std::size_t i) {
    try {
      all[i].built = build(spec, all[i].config, target);
    } catch (...) {
      all[i].failure = std::current_exception();
    }
  });
  return all;
}

Variant Engine::load_one(const KernelSpec& spec, const RowChoice& choice,
                         std::span<const Outcome> ahead) {
  const auto found = std::ranges::find(ahead, choice.config, &Outcome::config);
  if (found == ahead.end()) return load(spec, choice);
  if (found->failure) std::rethrow_exception(found->failure);
  return load_built(spec, choice, found->built.value());
}

namespace {

/// What was measured for rows of another length may need more registers here
/// than it has. Not asked of a default, whatever was measured.
void check_spills(const Variant& variant) {
  const std::int32_t bytes = variant.image->facts.spill_bytes;
  if (bytes > 0) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("it spills {} bytes of registers", bytes));
  }
}

}  // namespace

/// Each configuration is loaded once. A measured one that cannot be built or
/// loaded, or spills, fails nobody.
void Engine::add_variant(const KernelSpec& spec, RowChoice choice,
                         std::span<const Outcome> ahead,
                         std::vector<Variant>& variants,
                         std::vector<LaunchConfig>& refused) {
  const std::int64_t max_rows = choice.max_rows;
  if (std::ranges::find(refused, choice.config) != refused.end()) {
    choice = default_for(spec, device_->info(), max_rows);
  }
  const auto before =
      std::ranges::find(variants, choice.config, &Variant::config);
  try {
    Variant variant = before == variants.end() ? load_one(spec, choice, ahead)
                                               : Variant(*before);
    if (choice.source != ConfigSource::kDefault &&
        choice.config != default_for(spec, device_->info(), max_rows).config) {
      check_spills(variant);
    }
    variant.max_rows = max_rows;
    variant.source = choice.source;
    variants.push_back(std::move(variant));
  } catch (const Error& error) {
    if (choice.source == ConfigSource::kDefault) throw;
    log(fmt::format("tuned configuration {} of {} is not used: {}",
                    choice.config.text(), spec.op(), error.message()));
    refused.push_back(choice.config);
    choice.max_rows = max_rows;
    add_variant(spec, choice, ahead, variants, refused);
  }
}

const Program& Engine::prepare(const KernelSpec& spec) {
  if (const Program* ready = programs_.find(spec)) return *ready;
  std::vector<Variant> variants;
  std::vector<LaunchConfig> refused;
  std::vector<Outcome> ahead;
  const std::vector<RowChoice> all = choices(spec);
  for (const RowChoice& choice : all) {
    add_variant(spec, choice, ahead, variants, refused);
    // Where one was in no cache the others will not be.
    if (ahead.empty() && variants.back().origin == cache::Origin::kCompiled) {
      ahead = build_side_by_side(spec, all, variants);
    }
  }
  return programs_.insert(std::make_unique<const Program>(
      *device_, spec, std::move(variants), &config_use_));
}

/// Legal inside a capture, but it waits for the device.
const Program& Engine::prepare_for(const KernelSpec& spec,
                                   CUstream_st* stream) {
  if (device_->is_capturing(stream)) {
    log(
        fmt::format("{} was not prepared and is built inside a stream capture; "
                    "call prepare() before",
                    spec.op()));
  }
  return prepare(spec);
}

namespace {

/// Whether a failure to prepare is one to build or load the kernel, and not the
/// caller's mistake or wish.
bool is_build_failure(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUnsupported:
    case ErrorCode::kUnavailable:
    case ErrorCode::kCompileFailed:
    case ErrorCode::kDriver:
    case ErrorCode::kIo:
    case ErrorCode::kTimeout:
      return true;
    default:
      return false;
  }
}

}  // namespace

const Program* Engine::try_prepare(const KernelSpec& spec,
                                   CUstream_st* stream) {
  try {
    return &prepare_for(spec, stream);
  } catch (const DeviceTrouble&) {
    throw;  // it may pass, and the fallback would fare no better
  } catch (const Error& error) {
    if (options_.fallback == FallbackUse::kNever || !is_build_failure(error)) {
      throw;
    }
    try {
      fallback_.prepare(fallback_kernel(spec));
    } catch (const Error& none) {
      throw Error(error.code(),
                  fmt::format("{}; the fallback cannot stand in: {}",
                              error.message(), none.message()),
                  error.log());
    }
    log(
        fmt::format("the kernel of {} cannot be built, the fallback serves it: "
                    "{}",
                    spec.op(), error.message()));
  }
  unbuildable_.insert(
      std::make_unique<const Program>(*device_, spec, std::vector<Variant>{}));
  return nullptr;
}

const Program& Engine::fixed_program(const KernelSpec& spec,
                                     const LaunchConfig& config) {
  std::vector<Variant> variants;
  variants.push_back(load(spec, {.config = config}));
  auto program =
      std::make_unique<const Program>(*device_, spec, std::move(variants));
  const std::lock_guard lock(fixed_mutex_);
  fixed_.push_back(std::move(program));
  return *fixed_.back();
}

Counters Engine::counters() const {
  return {
      .compiled = compiled_,
      .disk_hits = disk_hits_,
      .sealed_hits = sealed_hits_,
      .rejected = rejected_,
      .fallbacks = fallbacks_,
      .loaded = loaded_,
      .default_configs = config_use_.launches(ConfigSource::kDefault),
      .exact_configs = config_use_.launches(ConfigSource::kExact),
      .nearest_configs = config_use_.launches(ConfigSource::kNearest),
      .other_device_configs = config_use_.launches(ConfigSource::kOtherDevice)};
}

}  // namespace logpjit::runtime

// What memory allows: kernels that only read, or read and write.
#include "tuning/floor.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

constexpr int kBlock = 512;
constexpr int kFlight = 4;
constexpr std::int64_t kWordBytes = 16;

/// Puts a value where the manifest says that the argument lies.
void put(const generator::KernelManifest& kernel, std::string_view name,
         const void* value, std::size_t size, std::vector<std::byte>& bytes) {
  for (const generator::ArgumentField& field : kernel.arguments) {
    if (field.name != name) continue;
    if (field.size != static_cast<std::int64_t>(size)) break;
    std::memcpy(bytes.data() + field.offset, value, size);
    return;
  }
  throw Error(ErrorCode::kInternal,
              fmt::format("{} has no argument {} of {} bytes", kernel.name,
                          name, size));
}

const generator::KernelManifest* find_kernel(const std::string& kernel) {
  const auto* found = generator::embedded_manifest().find(kernel);
  if (found != nullptr) return found;
  throw Error(ErrorCode::kInternal, fmt::format("no kernel {}", kernel));
}

std::unique_ptr<runtime::Function> load(runtime::Engine& engine,
                                        const std::string& kernel) {
  const LaunchConfig config{{"block", kBlock}, {"flight", kFlight}};
  const generator::Source source = generator::generate_kernel(
      kernel, {}, config, engine.compiler().dialect(),
      generator::embedded_manifest());
  const std::string target = engine.device().target();
  const cache::Key key = runtime::image_key(source, engine.compiler(), target);
  const auto compile = [&] {
    return engine.compiler().compile(source, target);
  };
  try {
    return engine.device().load(
        *engine.images().find_or_compile(key, compile).image, 0);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDriver) throw;
    engine.images().reject(key, error.message());
    return engine.device().load(
        *engine.images().find_or_compile(key, compile).image, 0);
  }
}

}  // namespace

FloorKernel::FloorKernel(runtime::Engine& engine, const std::string& kernel)
    : device_(engine.device()),
      manifest_(find_kernel(kernel)),
      function_(load(engine, kernel)) {}

void FloorKernel::launch(CUstream_st* stream, const void* first,
                         const void* second, void* output,
                         std::int64_t bytes) const {
  const long long words = bytes / kWordBytes;
  if (words == 0) return;
  std::vector<std::byte> arguments(
      static_cast<std::size_t>(manifest_->argument_size));
  const auto set = [&](std::string_view name, const auto& value) {
    put(*manifest_, name, &value, sizeof value, arguments);
  };
  set("first", first);
  set("second", second);
  set("output", output);
  set("words", words);
  constexpr std::int64_t kWordsPerBlock = std::int64_t{kBlock} * kFlight;
  runtime::LaunchShape shape;
  shape.grid =
      static_cast<std::uint32_t>((words + kWordsPerBlock - 1) / kWordsPerBlock);
  shape.block = kBlock;
  device_.launch(*function_, shape, stream, arguments.data(), arguments.size());
}

}  // namespace logpjit::tuning

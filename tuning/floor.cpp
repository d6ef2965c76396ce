// What memory allows: kernels that only read, or read and write.
#include "tuning/floor.hpp"

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "templates/common/arguments.cuh"

namespace logpjit::tuning {
namespace {

constexpr int kBlock = 512;
constexpr int kFlight = 4;
constexpr std::int64_t kWordBytes = 16;

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
    : device_(engine.device()), function_(load(engine, kernel)) {}

void FloorKernel::launch(CUstream_st* stream, const void* first,
                         const void* second, void* output,
                         std::int64_t bytes) const {
  device::FloorArguments arguments{};
  arguments.first = first;
  arguments.second = second;
  arguments.output = output;
  arguments.words = bytes / kWordBytes;
  if (arguments.words == 0) return;
  constexpr std::int64_t kWordsPerBlock = std::int64_t{kBlock} * kFlight;
  runtime::LaunchShape shape;
  shape.grid = static_cast<std::uint32_t>(
      (arguments.words + kWordsPerBlock - 1) / kWordsPerBlock);
  shape.block = kBlock;
  device_.launch(*function_, shape, stream, &arguments, sizeof arguments);
}

}  // namespace logpjit::tuning

// An engine on a GPU that pretends: what the tests of refusals and contexts
// share.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "logpjit/error.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/engine.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/fake_driver/fake_driver.hpp"

namespace logpjit::runtime::cuda {

inline testing::FakeDriver& fake() {
  static testing::FakeDriver& driver = [&]() -> testing::FakeDriver& {
    void* library = dlopen(LOGPJIT_FAKE_DRIVER, RTLD_NOW);
    auto* access = reinterpret_cast<testing::FakeDriverAccess*>(
        dlsym(library, "logpjit_fake_driver"));
    return *access();
  }();
  return driver;
}

inline const Driver& driver() { return Driver::open(LOGPJIT_FAKE_DRIVER, {}); }

inline KernelSpec spec_of(std::int64_t vocab = 1000) {
  KernelSpec spec = *parse_op("logp");
  spec.vocab = vocab;
  return spec;
}

/// An Error's code and message as one text; "" when nothing is thrown.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.message());
  }
  return "";
}

/// An engine on one of the pretended GPUs, as a process would have it.
class Process {
 public:
  explicit Process(const std::filesystem::path& cache, int device = 0)
      : compiler_(new testing::FakeCompiler) {
    Options options;
    options.cache_directory = cache;
    options.log = [this](const std::string& line) { lines.push_back(line); };
    engine_ = std::make_unique<Engine>(
        options, std::make_unique<CudaDevice>(driver(), device),
        std::unique_ptr<Compiler>(compiler_));
  }

  Engine& engine() { return *engine_; }
  testing::FakeCompiler& compiler() { return *compiler_; }
  void launch(const KernelSpec& spec = spec_of()) {
    engine_->program(spec, nullptr).launch(1, nullptr, 0);
  }
  std::uint64_t rejected() { return engine_->counters().rejected; }

  std::vector<std::string> lines;

 private:
  testing::FakeCompiler* compiler_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace logpjit::runtime::cuda

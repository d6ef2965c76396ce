// logpjit devices: what kernels can run on here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "runtime/open_device.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string device_name(const DeviceId& id) {
  return id.kind == DeviceKind::kCpu ? "cpu" : fmt::format("cuda:{}", id.index);
}

/// What can be asked of a compiler on this machine: its identity, or why not.
struct CompilerState {
  std::string device;
  std::string identity;
  std::string why_not;
};

CompilerState compiler_of(Options options, const std::string& device) {
  options.device = device;
  try {
    return {device, runtime::make_compiler(options)->identity(), ""};
  } catch (const Error& error) {
    return {device, "", error.message()};
  }
}

Json to_json(const DeviceInfo& info) {
  return {
      {"device", device_name(info.id)},
      {"name", info.name},
      {"software", info.software},
      {"compute_capability",
       info.major == 0 ? Json(nullptr)
                       : Json(fmt::format("{}.{}", info.major, info.minor))},
      {"multiprocessors", info.multiprocessors},
      {"l2_bytes", info.l2_bytes},
      {"shared_bytes_per_block", info.shared_bytes_per_block},
      {"memory_bytes", info.memory_bytes},
      {"memory_gb_per_s", info.memory_gb_per_s}};
}

void print_json(const std::vector<DeviceInfo>& devices,
                const std::vector<std::string>& why_not,
                const std::vector<CompilerState>& compilers) {
  Json document{{"devices", Json::array()},
                {"unavailable", why_not},
                {"compilers", Json::array()}};
  for (const DeviceInfo& info : devices) {
    document["devices"].push_back(to_json(info));
  }
  for (const CompilerState& state : compilers) {
    document["compilers"].push_back({{"for", state.device},
                                     {"identity", state.identity},
                                     {"why_not", state.why_not}});
  }
  fmt::print("{}\n", document.dump(2));
}

void print_table(const std::vector<DeviceInfo>& devices,
                 const std::vector<std::string>& why_not,
                 const std::vector<CompilerState>& compilers) {
  Table table({"device", "name", "units", "memory", "software"}, {2, 3});
  for (const DeviceInfo& info : devices) {
    table.add(
        {device_name(info.id), info.name,
         fmt::format("{}", info.multiprocessors),
         fmt::format("{:.1f} GB", static_cast<double>(info.memory_bytes) / 1e9),
         info.software});
  }
  fmt::print("{}", table.text());
  for (const std::string& reason : why_not) fmt::print("none: {}\n", reason);
  for (const CompilerState& state : compilers) {
    fmt::print(
        "compiler for {}: {}\n", state.device,
        state.why_not.empty() ? state.identity : "none: " + state.why_not);
  }
}

}  // namespace

Action attach_devices(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print one JSON document");
  return [json] {
    const Options options = DeviceFlags{}.options();
    std::vector<std::string> why_not;
    const auto devices = runtime::list_devices(options, why_not);
    const std::vector<CompilerState> compilers = {compiler_of(options, "cpu"),
                                                  compiler_of(options, "cuda")};
    if (*json) {
      print_json(devices, why_not, compilers);
    } else {
      print_table(devices, why_not, compilers);
    }
    return kSuccess;
  };
}

}  // namespace logpjit::cli

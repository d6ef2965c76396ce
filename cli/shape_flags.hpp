// The flags that say which specifications and row counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logpjit/device.hpp"
#include "runtime/config_lookup.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace logpjit::cli {

/// --model, --ops, --dtypes, --vocab, --rows, --tp: lists, separated by commas.
struct ShapeFlags {
  std::string model;
  std::string ops;
  std::string dtypes = "bf16";
  std::string vocab;
  std::string rows;
  std::string tp = "1";

  void attach(CLI::App& app);
  bool names_vocabulary() const { return !model.empty() || !vocab.empty(); }
  /// Throws Error{kInvalidArgument} naming the flag, the value, and the nearest
  /// known ones.
  std::vector<runtime::TunedShape> shapes(DeviceKind kind) const;
};

/// Lines of a file that records untuned calls. Error{kIo} when it cannot be
/// read, Error{kInvalidArgument} naming file and line for what is no shape.
std::vector<runtime::TunedShape> read_shapes(const std::string& file);

/// A whole file; Error{kIo} naming it.
std::string read_text(const std::string& file);

}  // namespace logpjit::cli

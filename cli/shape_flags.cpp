// Lists of models, operations, dtypes, vocabularies and rows.
#include "cli/shape_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "cli/flags.hpp"
#include "cli/suggest.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "tuning/model_presets.hpp"

namespace logpjit::cli {
namespace {

std::vector<std::int64_t> parse_numbers(std::string_view flag,
                                        std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const std::string& part : split_list(text)) {
    std::int64_t number = 0;
    const char* end = part.data() + part.size();
    const auto read = std::from_chars(part.data(), end, number);
    if (read.ec != std::errc{} || read.ptr != end) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: '{}' is no integer of 64 bits", flag, part));
    }
    numbers.push_back(check_positive(flag, number));
  }
  return numbers;
}

std::int64_t vocabulary_of(const std::string& model) {
  if (const auto preset = tuning::find_preset(model)) return preset->vocab;
  std::vector<std::string> known;
  for (const auto& preset : tuning::model_presets()) {
    known.emplace_back(preset.name);
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("--model: '{}' is unknown{} (known: {}; see --list-models); "
                  "any other goes by --vocab",
                  model, suggestion(model, known), fmt::join(known, ", ")));
}

std::string models_text() {
  Table table({"model", "vocabulary", "vocab_size in the config.json of"}, {1});
  for (const auto& preset : tuning::model_presets()) {
    table.add({std::string(preset.name), fmt::format("{}", preset.vocab),
               std::string(preset.source)});
  }
  std::string text = table.text();
  text.pop_back();  // the line break that is printed behind it
  return text;
}

KernelSpec parse_timed_op(const std::string& text) {
  if (const auto spec = tuning::parse_timed_op(text)) return *spec;
  return parse_op_flag(text);  // throws
}

}  // namespace

void ShapeFlags::attach(CLI::App& app) {
  app.add_option("--model", model,
                 "Models by name, for their vocabularies: qwen2.5,llama3,...");
  app.add_flag_callback(
      "--list-models", [] { throw CLI::CallForVersion(models_text(), 0); },
      "Print the models that are known, their vocabularies, and where these "
      "are from");
  app.add_option("--ops,--op", ops, "Operations; all that trainers run");
  app.add_option("--dtypes,--dtype", dtypes, "Logits: fp32,bf16,fp16")
      ->capture_default_str();
  app.add_option("--vocab", vocab, "Columns of the logits");
  app.add_option("--rows", rows,
                 "Row counts; 1,64,1024,8192,32768, on the CPU 64");
  app.add_option("--tp", tp, "Tensor-parallel sizes that share a vocabulary")
      ->capture_default_str();
}

std::vector<runtime::TunedShape> ShapeFlags::shapes(DeviceKind kind) const {
  tuning::ShapeRequest request;
  request.vocabs = parse_numbers("--vocab", vocab);
  for (const std::string& name : split_list(model)) {
    request.vocabs.push_back(vocabulary_of(name));
  }
  const auto names = ops.empty() ? tuning::default_ops() : split_list(ops);
  for (const std::string& op : names) {
    request.ops.push_back(parse_timed_op(op));
  }
  for (const std::string& dtype : split_list(dtypes)) {
    request.dtypes.push_back(parse_float_flag("--dtypes", dtype));
  }
  request.rows =
      rows.empty() ? tuning::default_rows(kind) : parse_numbers("--rows", rows);
  request.shards = parse_numbers("--tp", tp);
  return tuning::make_shapes(request);
}

std::string read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad() || !in.is_open()) {
    throw Error(ErrorCode::kIo, fmt::format("{}: cannot be read", file));
  }
  return text;
}

std::vector<runtime::TunedShape> read_shapes(const std::string& file) {
  const std::string text = read_text(file);
  std::vector<runtime::TunedShape> shapes;
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view words = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (words.empty()) continue;
    const auto shape = runtime::TunedShape::parse(words);
    if (!shape) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}:{}: is no line of recorded calls", file, line));
    }
    if (std::ranges::find(shapes, *shape) == shapes.end()) {
      shapes.push_back(*shape);
    }
  }
  return shapes;
}

}  // namespace logpjit::cli

// Reports to JSON and back: one list of fields for each struct serves both.
#include "tuning/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

using Json = nlohmann::ordered_json;

template <typename Fields>
void visit(ReportTiming& timing, Fields& fields) {
  fields("median_ms", timing.median_ms);
  fields("spread", timing.spread);
  fields("samples_ms", timing.samples_ms);
}

template <typename Fields>
void visit(ReportCandidate& candidate, Fields& fields) {
  fields("config", candidate.config);
  fields("is_default", candidate.is_default);
  fields("status", candidate.status);
  fields("reason", candidate.reason);
  fields("timing", candidate.timing);
  fields("compile_ms", candidate.compile_ms);
  fields("cache_hit", candidate.cache_hit);
  fields("registers", candidate.registers);
  fields("spill_bytes", candidate.spill_bytes);
  fields("stack_bytes", candidate.stack_bytes);
}

template <typename Fields>
void visit(ReportAccuracy& accuracy, Fields& fields) {
  fields("values", accuracy.values);
  fields("misplaced", accuracy.misplaced);
  fields("max_absolute_error", accuracy.max_absolute_error);
  fields("max_ulp", accuracy.max_ulp);
  fields("correctly_rounded", accuracy.correctly_rounded);
}

template <typename Fields>
void visit(ReportPeer& peer, Fields& fields) {
  fields("name", peer.name);
  fields("ms", peer.ms);
  fields("peak_gib", peer.peak_gib);
  fields("error", peer.error);
}

template <typename Fields>
void visit(ReportTimes& times, Fields& fields) {
  fields("compile_ms", times.compile_ms);
  fields("verify_ms", times.verify_ms);
  fields("measure_ms", times.measure_ms);
  fields("total_ms", times.total_ms);
}

template <typename Fields>
void visit(ReportEntry& entry, Fields& fields) {
  fields("op", entry.op);
  fields("dtype", entry.dtype);
  fields("vocab", entry.vocab);
  fields("rows", entry.rows);
  fields("spec", entry.spec);
  fields("status", entry.status);
  fields("reason", entry.reason);
  fields("passes", entry.passes);
  fields("bytes", entry.bytes);
  fields("workspace_bytes", entry.workspace_bytes);
  fields("config", entry.config);
  fields("config_source", entry.config_source);
  fields("verdict", entry.verdict);
  fields("image_cached", entry.image_cached);
  fields("operation", entry.operation);
  fields("floor", entry.floor);
  fields("copy", entry.copy);
  fields("copy_bytes", entry.copy_bytes);
  fields("ids_per_row", entry.ids_per_row);
  fields("half_ignored", entry.half_ignored);
  fields("sequences", entry.sequences);
  fields("fallback", entry.fallback);
  fields("baseline", entry.baseline);
  fields("accuracy", entry.accuracy);
  fields("candidates", entry.candidates);
  fields("rejected", entry.rejected);
  fields("times", entry.times);
  fields("peers", entry.peers);
}

template <typename Fields>
void visit(ReportDevice& device, Fields& fields) {
  fields("name", device.name);
  fields("software", device.software);
  fields("target", device.target);
  fields("features", device.features);
}

template <typename Fields>
void visit(Report& report, Fields& fields) {
  fields("logpjit_report", report.version);
  fields("kind", report.kind);
  fields("logpjit", report.logpjit);
  fields("created", report.created);
  fields("device", report.device);
  fields("compiler", report.compiler);
  fields("seconds", report.seconds);
  fields("budget_s", report.budget_s);
  fields("interrupted", report.interrupted);
  fields("entries", report.entries);
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    object_[name] = to_value(value);
  }
  Json take() { return std::move(object_); }

 private:
  template <typename T>
  static Json to_value(T& value) {
    if constexpr (requires(Writer & writer) { visit(value, writer); }) {
      Writer inner;
      visit(value, inner);
      return inner.take();
    } else {
      return Json(value);
    }
  }
  template <typename T>
  static Json to_value(std::optional<T>& value) {
    return value ? to_value(*value) : Json(nullptr);
  }
  template <typename T>
  static Json to_value(std::vector<T>& values) {
    Json array = Json::array();
    for (T& value : values) array.push_back(to_value(value));
    return array;
  }
  template <typename T>
  static Json to_value(std::map<std::string, T>& values) {
    Json object = Json::object();
    for (auto& [key, value] : values) object[key] = to_value(value);
    return object;
  }

  Json object_ = Json::object();
};

/// Reads an object; a fault is an Error that names the path to it.
class Reader {
 public:
  Reader(const Json& object, std::string path)
      : object_(object), path_(std::move(path)) {
    if (!object.is_object()) refuse(path_, "an object");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    const auto found = object_.find(name);
    const std::string path = fmt::format("{}/{}", path_, name);
    if (found == object_.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} is missing", path));
    }
    read(*found, path, value);
  }

 private:
  [[noreturn]] static void refuse(const std::string& path,
                                  std::string_view wanted) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is not {}", path.empty() ? "/" : path, wanted));
  }

  static void read(const Json& json, const std::string& path,
                   std::string& value) {
    if (!json.is_string()) refuse(path, "a string");
    value = json.get<std::string>();
  }
  static void read(const Json& json, const std::string& path, bool& value) {
    if (!json.is_boolean()) refuse(path, "true or false");
    value = json.get<bool>();
  }
  static void read(const Json& json, const std::string& path,
                   std::int64_t& value) {
    if (!json.is_number_integer()) refuse(path, "an integer");
    value = json.get<std::int64_t>();
  }
  static void read(const Json& json, const std::string& path, double& value) {
    if (!json.is_number()) refuse(path, "a number");
    value = json.get<double>();
  }
  template <typename T>
  static void read(const Json& json, const std::string& path,
                   std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) read(json, path, value.emplace());
  }
  template <typename T>
  static void read(const Json& json, const std::string& path,
                   std::vector<T>& values) {
    if (!json.is_array()) refuse(path, "an array");
    for (std::size_t i = 0; i < json.size(); ++i) {
      read(json[i], fmt::format("{}/{}", path, i), values.emplace_back());
    }
  }
  template <typename T>
  static void read(const Json& json, const std::string& path,
                   std::map<std::string, T>& values) {
    if (!json.is_object()) refuse(path, "an object");
    for (const auto& [key, value] : json.items()) {
      read(value, fmt::format("{}/{}", path, key), values[key]);
    }
  }
  template <typename T>
  requires std::is_class_v<T>
  static void read(const Json& json, const std::string& path, T& value) {
    Reader inner(json, path);
    visit(value, inner);
  }

  const Json& object_;
  const std::string path_;
};

[[noreturn]] void refuse_file(std::string_view file, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", file, why));
}

Json parse_text(std::string_view text, std::string_view file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const bool at_end = error.byte > text.size();
    refuse_file(file, fmt::format("{} (byte {})",
                                  text.empty() ? "is empty"
                                  : at_end     ? "is cut short"
                                               : "is not JSON",
                                  error.byte));
  }
}

/// "logp fwd+bwd" is what forward and gradient in one call do, "logp fwd" the
/// values alone.
bool is_peer_of(std::string_view name, const ReportEntry& entry) {
  struct Row {
    std::string_view prefix;
    std::string_view op;
  };
  static constexpr Row kRows[] = {
      {"logp fwd+bwd:", "logp_with_grad"},
      {"logp fwd:", "logp"},
      {"entropy fwd+bwd:", "entropy_with_grad"},
      {"entropy fwd:", "entropy"},
      {"reverse KL fwd:", "kl"},
      {"reverse KL fwd+bwd:", "kl_backward"},
  };
  for (const Row& row : kRows) {
    if (name.starts_with(row.prefix) && entry.op == row.op) return true;
  }
  return false;
}

void add_peers(ReportEntry& entry, const Json& results) {
  for (const auto& [name, result] : results.items()) {
    if (!is_peer_of(name, entry) || !result.is_object()) continue;
    ReportPeer peer{.name = name};
    if (const auto ms = result.find("ms");
        ms != result.end() && ms->is_number()) {
      peer.ms = ms->get<double>();
    }
    if (const auto peak = result.find("peak_gib");
        peak != result.end() && peak->is_number()) {
      peer.peak_gib = peak->get<double>();
    }
    if (const auto error = result.find("error");
        error != result.end() && error->is_string()) {
      peer.error = error->get<std::string>();
    }
    // Once more is anew.
    std::erase_if(entry.peers, [&](const ReportPeer& known) {
      return known.name == peer.name;
    });
    entry.peers.push_back(std::move(peer));
  }
}

}  // namespace

std::string to_json(const Report& report) {
  Report copy = report;
  Writer writer;
  visit(copy, writer);
  return writer.take().dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

Report parse_report(std::string_view text, std::string_view file) {
  const Json json = parse_text(text, file);
  const auto version =
      json.is_object() ? json.find("logpjit_report") : json.end();
  if (!json.is_object() || version == json.end() ||
      !version->is_number_integer()) {
    refuse_file(file, "is no logpjit report");
  }
  if (version->get<std::int64_t>() > Report::kVersion) {
    refuse_file(file,
                fmt::format("is a report of version {}; this program reads up "
                            "to {}: use a newer logpjit",
                            version->get<std::int64_t>(), Report::kVersion));
  }
  Report report;
  try {
    Reader reader(json, "");
    visit(report, reader);
  } catch (const Error& error) {
    refuse_file(file, error.message());
  }
  return report;
}

void add_peers(std::vector<ReportEntry>& entries, std::string_view text,
               std::string_view file) {
  const Json json = parse_text(text, file);
  const auto has_all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!json.is_object() || !json.contains(name)) return false;
    }
    return true;
  };
  if (!has_all({"rows", "vocab", "dtype", "results"}) ||
      !json["rows"].is_number_integer() || !json["vocab"].is_number_integer() ||
      !json["dtype"].is_string() || !json["results"].is_object()) {
    refuse_file(file,
                "is no peers' report: rows, vocab, dtype and results "
                "are expected");
  }
  for (ReportEntry& entry : entries) {
    if (entry.rows == json["rows"].get<std::int64_t>() &&
        entry.vocab == json["vocab"].get<std::int64_t>() &&
        entry.dtype == json["dtype"].get<std::string>()) {
      add_peers(entry, json["results"]);
    }
  }
}

}  // namespace logpjit::tuning

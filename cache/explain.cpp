// Comparing a wanted key with all that is there.
#include "cache/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cache/entry_file.hpp"
#include "cache/entry_name.hpp"
#include "cache/maintenance.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

using State = Explanation::State;

constexpr std::size_t kShownCharacters = 100;

/// The part of a long value around its first difference to `other`.
std::string shown(const std::string& value, const std::string& other) {
  if (value.size() <= kShownCharacters) return value;
  const auto [here, there] =
      std::mismatch(value.begin(), value.end(), other.begin(), other.end());
  const auto at = static_cast<std::size_t>(here - value.begin());
  const std::size_t begin =
      at < kShownCharacters / 2 ? 0 : at - kShownCharacters / 2;
  const std::string part = value.substr(begin, kShownCharacters);
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", part,
                     begin + part.size() < value.size() ? "..." : "");
}

std::string line(char sign, const std::string& name,
                 const std::optional<std::string>& value,
                 const std::optional<std::string>& other) {
  if (!value) return {};
  return fmt::format("{}{}: {}\n", sign, name,
                     shown(*value, other.value_or("")));
}

/// Holds on to the entry with the fewest differences seen so far.
class Nearest {
 public:
  explicit Nearest(const Key& wanted) : wanted_(wanted) {}

  void offer(const std::string& directory, const Listed& entry) {
    const auto key = Key::parse(entry.entry.key_text);
    if (!key) return;
    auto differences = difference(wanted_, *key);
    if (!best_.name.empty() && differences.size() >= best_.differences.size()) {
      return;
    }
    best_ = {State::kMiss, directory, entry.name, std::move(differences), {}};
  }

  Explanation take() { return std::move(best_); }

 private:
  const Key& wanted_;
  Explanation best_;
};

void note_obstacle(FileSystem& files, const std::string& directory,
                   const std::string& name,
                   std::vector<std::string>& obstacles) {
  const FileRead found = read_entry_file(files, directory + "/" + name);
  if (!found.reason.empty()) {
    obstacles.push_back(
        fmt::format("{}/{}: {}", directory, name, found.reason));
  }
}

bool sealed_match(const Explanation& found, Role role) {
  return role == Role::kReadOnly && found.differences.size() == 1 &&
         found.differences.front().name == Key::kCompilerField;
}

}  // namespace

std::vector<FieldDifference> difference(const Key& wanted, const Key& present) {
  std::vector<FieldDifference> result;
  auto a = wanted.fields().begin();
  auto b = present.fields().begin();
  const auto a_end = wanted.fields().end();
  const auto b_end = present.fields().end();
  while (a != a_end || b != b_end) {
    if (b == b_end || (a != a_end && a->first < b->first)) {
      result.push_back({a->first, a->second, std::nullopt});
      ++a;
    } else if (a == a_end || b->first < a->first) {
      result.push_back({b->first, std::nullopt, b->second});
      ++b;
    } else {
      if (a->second != b->second) {
        result.push_back({a->first, a->second, b->second});
      }
      ++a;
      ++b;
    }
  }
  return result;
}

Explanation explain(FileSystem& files, const Key& wanted,
                    const std::vector<Searched>& directories) {
  Nearest nearest(wanted);
  std::vector<std::string> obstacles;
  for (const Searched& each : directories) {
    try {
      const auto path = trusted_directory(files, each.directory, each.role);
      if (!path) {
        obstacles.push_back(each.directory.string() + ": it does not exist");
        continue;
      }
      Nearest here(wanted);
      each_entry(files, *path, each.role, [&](const Listed& entry) {
        here.offer(*path, entry);
        nearest.offer(*path, entry);
      });
      Explanation found = here.take();
      const bool hit = !found.name.empty() && found.differences.empty();
      if (hit || sealed_match(found, each.role)) {
        found.state = hit ? State::kHit : State::kSealedHit;
        found.obstacles = std::move(obstacles);
        return found;
      }
      note_obstacle(files, *path, entry_name(wanted), obstacles);
    } catch (const Error& error) {
      obstacles.push_back(error.message());
    }
  }
  Explanation result = nearest.take();
  result.obstacles = std::move(obstacles);
  return result;
}

std::string Explanation::text() const {
  std::string text;
  for (const std::string& obstacle : obstacles) text += obstacle + "\n";
  if (name.empty()) return text + "miss: there are no entries\n";
  switch (state) {
    case State::kHit:
      return text + fmt::format("hit: {}/{}\n", place, name);
    case State::kSealedHit:
      text +=
          fmt::format("hit, made by another compiler: {}/{}\n", place, name);
      break;
    case State::kMiss:
      text += fmt::format("miss; the nearest entry is {}/{}\n", place, name);
      break;
  }
  text += "--- that entry\n+++ wanted\n";
  for (const FieldDifference& each : differences) {
    text += line('-', each.name, each.present, each.wanted);
    text += line('+', each.name, each.wanted, each.present);
  }
  return text;
}

}  // namespace logpjit::cache

// Why a wanted key misses: its difference to the nearest entry.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cache/file_system.hpp"
#include "cache/key.hpp"
#include "cache/trusted_path.hpp"

namespace logpjit::cache {

struct FieldDifference {
  std::string name;
  std::optional<std::string> wanted;   ///< nothing: the wanted key lacks it
  std::optional<std::string> present;  ///< nothing: the other key lacks it
};

/// In order of names; empty when the keys are equal.
std::vector<FieldDifference> difference(const Key& wanted, const Key& present);

struct Searched {
  std::filesystem::path directory;
  Role role = Role::kUser;
};

struct Explanation {
  enum class State { kHit, kSealedHit, kMiss };

  State state = State::kMiss;
  std::string place;  ///< directory of the entry found or compared with
  std::string name;   ///< its name; empty when there are no entries at all
  std::vector<FieldDifference> differences;
  /// What else stands in the way: a directory that is not used, a damaged
  /// entry.
  std::vector<std::string> obstacles;

  /// For people, with a line break at the end.
  std::string text() const;
};

/// Looks through the directories in their order, as an image cache would.
/// Never throws for what it finds there.
Explanation explain(FileSystem& files, const Key& wanted,
                    const std::vector<Searched>& directories);

}  // namespace logpjit::cache

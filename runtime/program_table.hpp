// KernelSpec -> Program, read without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cache/fork_safe_mutex.hpp"
#include "runtime/program.hpp"

namespace logpjit::runtime {

/// Readers follow one atomic pointer to an open-addressing table that never
/// changes; writers publish a new table and keep the old ones, since a reader
/// may still be in them (a process prepares tens of programs, not thousands).
class ProgramTable {
 public:
  ProgramTable();

  /// Null when absent. No lock, no allocation.
  const Program* find(const KernelSpec& spec) const;

  /// Adds a program unless its specification is there already; returns the one
  /// that is there afterwards.
  const Program& insert(std::unique_ptr<const Program> program);

 private:
  /// A specification in three words, each field in its own bits: compared in
  /// fewer steps than field by field.
  struct Key {
    std::uint64_t fields;
    std::int64_t vocab;
    std::int64_t global_vocab;
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key{};
    const Program* program = nullptr;
  };
  using Slots = std::vector<Slot>;
  static Key key_of(const KernelSpec& spec);
  static std::size_t slot_of(const Slots& slots, const Key& key);

  cache::ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<const Slots>> tables_;
  std::vector<std::unique_ptr<const Program>> programs_;
  std::atomic<const Slots*> current_;
};

}  // namespace logpjit::runtime

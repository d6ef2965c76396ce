// Hashing specifications and publishing tables.
#include "runtime/program_table.hpp"

#include <bit>
#include <initializer_list>

namespace logpjit::runtime {
namespace {

std::size_t hash_of(const KernelSpec& spec) {
  const std::uint64_t small = static_cast<std::uint64_t>(spec.terms) |
                              static_cast<std::uint64_t>(spec.pass) << 8 |
                              static_cast<std::uint64_t>(spec.logits) << 12 |
                              static_cast<std::uint64_t>(spec.other) << 16 |
                              static_cast<std::uint64_t>(spec.ids) << 20 |
                              static_cast<std::uint64_t>(spec.rows) << 24 |
                              static_cast<std::uint64_t>(spec.store) << 28 |
                              static_cast<std::uint64_t>(spec.many_ids) << 32 |
                              static_cast<std::uint64_t>(spec.aligned) << 33 |
                              static_cast<std::uint64_t>(spec.temperature)
                                  << 34 |
                              static_cast<std::uint64_t>(spec.softcap) << 35 |
                              static_cast<std::uint64_t>(spec.grad_a) << 36 |
                              static_cast<std::uint64_t>(spec.grad_b) << 37;
  std::uint64_t hash =
      small * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(spec.vocab);
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93u;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

}  // namespace

ProgramTable::ProgramTable() {
  tables_.push_back(std::make_unique<const Slots>(8, nullptr));
  current_.store(tables_.back().get(), std::memory_order_release);
}

/// The slot that holds `spec`, or the free one where it belongs. Tables are at
/// most half full.
std::size_t ProgramTable::slot_of(const Slots& slots, const KernelSpec& spec) {
  std::size_t at = hash_of(spec) & (slots.size() - 1);
  while (slots[at] != nullptr && slots[at]->spec() != spec) {
    at = (at + 1) & (slots.size() - 1);
  }
  return at;
}

const Program* ProgramTable::find(const KernelSpec& spec) const {
  const Slots& slots = *current_.load(std::memory_order_acquire);
  return slots[slot_of(slots, spec)];
}

const Program& ProgramTable::insert(std::unique_ptr<const Program> program) {
  const std::lock_guard lock(mutex_);
  if (const Program* present = find(program->spec())) return *present;
  programs_.push_back(std::move(program));
  auto slots =
      std::make_unique<Slots>(std::bit_ceil(4 * programs_.size()), nullptr);
  for (const auto& each : programs_) {
    (*slots)[slot_of(*slots, each->spec())] = each.get();
  }
  tables_.push_back(std::move(slots));
  current_.store(tables_.back().get(), std::memory_order_release);
  return *programs_.back();
}

}  // namespace logpjit::runtime

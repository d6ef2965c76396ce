// Packing specifications and publishing tables.
#include "runtime/program_table.hpp"

#include <bit>

namespace logpjit::runtime {

ProgramTable::Key ProgramTable::key_of(const KernelSpec& spec) {
  const auto at = [](auto value, int bit) {
    return static_cast<std::uint64_t>(value) << bit;
  };
  return {at(spec.terms, 0) | at(spec.pass, 8) | at(spec.logits, 12) |
              at(spec.other, 16) | at(spec.ids, 20) | at(spec.rows, 24) |
              at(spec.store, 28) | at(spec.many_ids, 32) |
              at(spec.aligned, 33) | at(spec.temperature, 34) |
              at(spec.softcap, 35) | at(spec.grad_a, 36) | at(spec.grad_b, 37) |
              at(spec.segments, 38),
          spec.vocab, spec.global_vocab};
}

ProgramTable::ProgramTable() {
  tables_.push_back(std::make_unique<const Slots>(8));
  current_.store(tables_.back().get(), std::memory_order_release);
}

/// The slot that holds `key`, or the free one where it belongs. Tables are at
/// most half full.
std::size_t ProgramTable::slot_of(const Slots& slots, const Key& key) {
  std::uint64_t hash =
      key.fields * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(key.vocab);
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93u;
  auto at = static_cast<std::size_t>(hash ^ (hash >> 32)) & (slots.size() - 1);
  while (slots[at].program != nullptr && slots[at].key != key) {
    at = (at + 1) & (slots.size() - 1);
  }
  return at;
}

const Program* ProgramTable::find(const KernelSpec& spec) const {
  const Slots& slots = *current_.load(std::memory_order_acquire);
  return slots[slot_of(slots, key_of(spec))].program;
}

const Program& ProgramTable::insert(std::unique_ptr<const Program> program) {
  const std::lock_guard lock(mutex_);
  if (const Program* present = find(program->spec())) return *present;
  programs_.push_back(std::move(program));
  auto slots = std::make_unique<Slots>(std::bit_ceil(4 * programs_.size()));
  for (const auto& each : programs_) {
    const Key key = key_of(each->spec());
    (*slots)[slot_of(*slots, key)] = {key, each.get()};
  }
  tables_.push_back(std::move(slots));
  current_.store(tables_.back().get(), std::memory_order_release);
  return *programs_.back();
}

}  // namespace logpjit::runtime

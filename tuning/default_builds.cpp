// Default configurations of several keys, built side by side.
#include "tuning/default_builds.hpp"

#include <algorithm>

#include "logpjit/error.hpp"
#include "runtime/parallel.hpp"
#include "tuning/search_space.hpp"
#include "tuning/stopwatch.hpp"

namespace logpjit::tuning {

/// By how long compilers are at it: a gradient sweep alone, values, two
/// matrices, both at once.
int DefaultBuilds::One::rank() const {
  if (spec.pass == Pass::kWithGrad) return 3;
  if (spec.pass == Pass::kBackward) return 0;
  return logpjit::has(spec.terms, Terms::kKl) ? 2 : 1;
}

std::vector<DefaultBuilds::One>::const_iterator DefaultBuilds::find(
    const runtime::TunedShape& shape) const {
  try {
    const LaunchConfig config = default_config(shape, engine_.device().info());
    return std::ranges::find_if(all_, [&](const One& one) {
      return one.spec == shape.spec && one.config == config;
    });
  } catch (const Error&) {
    return all_.end();  // nothing serves it here
  }
}

void DefaultBuilds::add(const runtime::TunedShape& shape) {
  if (find(shape) != all_.end()) return;
  try {
    all_.push_back({.spec = shape.spec,
                    .config = default_config(shape, engine_.device().info())});
  } catch (const Error&) {
    // Its tuning will say so.
  }
}

void DefaultBuilds::build_one(One& one) {
  const Clock::time_point begin = Clock::now();
  try {
    const runtime::Built built =
        engine_.build(one.spec, one.config, engine_.device().target());
    one.cache_hit = built.origin != cache::Origin::kCompiled;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) return;
    // Its tuning will say so.
  }
  one.ms = ms_since(begin);
  one.is_done = true;
  sum_ms_ += one.ms;
  ++built_;
}

double DefaultBuilds::mean_ms() const {
  const int built = built_;
  return built > 0 ? sum_ms_ / built : 0;
}

void DefaultBuilds::build(const std::vector<runtime::TunedShape>& shapes,
                          int threads, Clock::time_point end,
                          const std::function<bool()>& stop) {
  for (const runtime::TunedShape& shape : shapes) add(shape);
  // A single one may as well be built among its candidates; without caches all
  // would be built again.
  if (all_.size() < 2 || engine_.options().caches_off) all_.clear();
  std::ranges::stable_sort(all_, {}, &One::rank);
  const Clock::time_point begin = Clock::now();
  engine_.compiler().give_up_at(end);
  runtime::parallel_for(
      all_.size(), threads, [&](std::size_t i) { build_one(all_[i]); },
      [&] {
        const std::chrono::duration<double, std::milli> usual(mean_ms());
        return stop() || Clock::now() + usual >= end;
      });
  engine_.compiler().give_up_at(Clock::time_point::max());
  if (built_ == 0) return;
  const double share = ms_since(begin) / sum_ms_;
  for (One& one : all_) one.share_ms = share * one.ms;
}

bool DefaultBuilds::has(const runtime::TunedShape& shape) const {
  const auto found = find(shape);
  return found == all_.end() || found->is_done;
}

std::optional<DefaultBuilds::One> DefaultBuilds::take(
    const runtime::TunedShape& shape) {
  const auto found = find(shape);
  if (found == all_.end() || !found->is_done) return std::nullopt;
  One one = *found;
  // To those who follow it is in the cache.
  One& kept = all_[static_cast<std::size_t>(found - all_.begin())];
  kept.ms = kept.share_ms = 0;
  kept.cache_hit = true;
  return one;
}

}  // namespace logpjit::tuning

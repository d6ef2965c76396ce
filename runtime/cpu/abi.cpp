// The table that kernels call: every entry acts for the running fiber.
#include "runtime/cpu/collectives.hpp"
#include "runtime/cpu/group.hpp"

namespace logpjit::runtime {
namespace {

/// `function(Fiber&, ...)` as a function of what follows the fiber.
template <auto kFunction>
struct OnCurrentFiber;

template <typename Result, typename... Arguments,
          Result (*kFunction)(Fiber&, Arguments...)>
struct OnCurrentFiber<kFunction> {
  static Result call(Arguments... arguments) {
    return kFunction(*running_fiber, arguments...);
  }
};

template <auto kFunction>
constexpr auto on_current_fiber = &OnCurrentFiber<kFunction>::call;

const device::HostThread* current_thread() { return &running_fiber->self; }

}  // namespace

const device::HostAbi& host_abi() {
  static constexpr device::HostAbi kAbi{
      .version = device::kHostAbiVersion,
      .current = current_thread,
      .sync_threads = on_current_fiber<sync_threads>,
      .sync_named = on_current_fiber<sync_named>,
      .sync_cluster = on_current_fiber<sync_cluster>,
      .sync_warp = on_current_fiber<sync_warp>,
      .shuffle_xor = on_current_fiber<shuffle_xor>,
      .shuffle = on_current_fiber<shuffle>,
      .ballot = on_current_fiber<ballot>,
      .mbarrier_init = on_current_fiber<mbarrier_init>,
      .mbarrier_arrive = on_current_fiber<mbarrier_arrive>,
      .mbarrier_expect = on_current_fiber<mbarrier_expect>,
      .mbarrier_wait = on_current_fiber<mbarrier_wait>,
      .bulk_load = on_current_fiber<bulk_load>,
      .store_at = on_current_fiber<store_at>,
      .send_at = on_current_fiber<send_at>,
  };
  return kAbi;
}

}  // namespace logpjit::runtime

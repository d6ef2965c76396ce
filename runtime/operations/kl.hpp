// A checked KL call, for `kl_forward` itself and for ranks that hold some of
// the columns.
#pragma once

#include <string_view>

#include "logpjit/operations.hpp"
#include "runtime/operations/checked_call.hpp"

namespace logpjit::runtime {

using KlValuesCall = CheckedCall<device::KlStatisticsArguments>;

/// Throws Error{kInvalidArgument} naming the member that is wrong.
KlValuesCall check_kl_values(std::string_view op, DeviceId device,
                             const KlForward& call);

}  // namespace logpjit::runtime

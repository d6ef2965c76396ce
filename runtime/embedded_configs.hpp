// What the build embeds of tuning/shipped/.
#pragma once

#include <string_view>

namespace logpjit::runtime {

std::string_view embedded_configs();

}  // namespace logpjit::runtime

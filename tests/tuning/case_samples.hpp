// Cases for tests, written as JSON.
#pragma once

#include <string>

#include "tuning/cases.hpp"

namespace logpjit::tuning {

/// One case of fp32 logits; `more` is put at the end of it ("\"ids\":[0],...").
/// Keys of it replace earlier ones.
inline Case sample_case(const std::string& shape, const std::string& more) {
  return parse_cases(R"([{"id":"S","source":[],"kind":"k","op":"logp+bwd",
      "dtype":"fp32","strides":null,"shape":)" +
                     shape + "," + more + "}]")
      .at(0);
}

}  // namespace logpjit::tuning

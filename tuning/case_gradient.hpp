// Running a case's gradients of row values (logp, entropy) on a device.
#pragma once

#include "logpjit/runtime.hpp"
#include "tuning/case_checks.hpp"
#include "tuning/cases.hpp"

namespace logpjit::tuning {

/// Whether the case asks for a gradient that is not of a divergence.
bool asks_gradient(const Case& one);

/// Runs forward and backward, backward again, and both in one call, and adds
/// what is wrong: with the case's numbers, the reference, bits that should be
/// equal, inputs written. Errors of the runtime pass through.
void run_gradient(Runtime& runtime, const Case& one, Findings& findings);

}  // namespace logpjit::tuning

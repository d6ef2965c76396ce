// Running a case's divergences and their gradients on a device.
#pragma once

#include "logpjit/runtime.hpp"
#include "tuning/case_checks.hpp"
#include "tuning/cases.hpp"

namespace logpjit::tuning {

/// Whether the case asks for a divergence.
bool asks_kl(const Case& one);

/// Runs the directions the case asks for, with both sides' gradients where it
/// asks for one, and adds what is wrong: with the case's numbers, the
/// reference, bits that should be equal, inputs written. Errors of the runtime
/// pass through.
void run_kl(Runtime& runtime, const Case& one, Findings& findings);

}  // namespace logpjit::tuning

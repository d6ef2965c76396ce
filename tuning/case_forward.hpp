// Running a case's values (logp, entropy, log-sum-exp) on a device.
#pragma once

#include "logpjit/runtime.hpp"
#include "tuning/case_checks.hpp"
#include "tuning/cases.hpp"

namespace logpjit::tuning {

/// Whether the case says something of values that one sweep gives.
bool asks_values(const Case& one);

/// Runs the case once per dtype and id dtype it names, and adds what is wrong:
/// with the case's numbers, the float64 reference, bits that should be equal,
/// outputs not written, inputs written, time. Errors of the runtime pass
/// through.
void run_values(Runtime& runtime, const Case& one, Findings& findings);

}  // namespace logpjit::tuning

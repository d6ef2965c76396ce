// Marks what the shared library exports.
#pragma once

#define LOGPJIT_API __attribute__((visibility("default")))

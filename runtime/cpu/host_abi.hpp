// The table between kernel and executor, from the one place that defines it.
#pragma once

#define LOGPJIT_HOST_ABI_ONLY
#include "templates/prelude/host.h"
#undef LOGPJIT_HOST_ABI_ONLY

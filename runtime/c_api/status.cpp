// Exceptions to statuses.
#include "runtime/c_api/status.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>

#include "logpjit/error.hpp"

namespace logpjit::c_api {
namespace {

struct Message {
  std::string text;
  std::string log;
};

thread_local Message last;

/// ErrorCode and logpjit_status count alike, one apart.
constexpr int status_of(ErrorCode code) { return static_cast<int>(code) + 1; }
static_assert(status_of(ErrorCode::kInvalidArgument) ==
              LOGPJIT_INVALID_ARGUMENT);
static_assert(status_of(ErrorCode::kNotCached) == LOGPJIT_NOT_CACHED);
static_assert(status_of(ErrorCode::kInternal) == LOGPJIT_INTERNAL);

int say(int status, const char* text, const char* log = "") noexcept {
  try {
    last.text = text;
    last.log = log;
  } catch (...) {
    last.text.clear();  // no memory for words; the status still says it
  }
  return status;
}

}  // namespace

int report() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return say(status_of(error.code()), error.what(), error.log().c_str());
  } catch (const std::bad_alloc&) {
    return say(LOGPJIT_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return say(LOGPJIT_INTERNAL, error.what());
  } catch (...) {
    return say(LOGPJIT_INTERNAL, "an exception of unknown type");
  }
}

void require(const void* pointer, const char* call, const char* argument) {
  if (pointer != nullptr) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}: is a null pointer", call, argument));
}

}  // namespace logpjit::c_api

const char* logpjit_last_error(void) {
  return logpjit::c_api::last.text.c_str();
}

const char* logpjit_last_log(void) { return logpjit::c_api::last.log.c_str(); }

const char* logpjit_status_name(int status) {
  if (status == LOGPJIT_OK) return "ok";
  if (status == LOGPJIT_OUT_OF_MEMORY) return "out_of_memory";
  if (status < 0 || status > LOGPJIT_INTERNAL) return "unknown";
  return logpjit::name(static_cast<logpjit::ErrorCode>(status - 1)).data();
}

const char* logpjit_version(void) { return LOGPJIT_VERSION; }

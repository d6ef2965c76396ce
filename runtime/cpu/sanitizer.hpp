// Which sanitizer this build runs under, for g++ and clang alike.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define LOGPJIT_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define LOGPJIT_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOGPJIT_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define LOGPJIT_THREAD_SANITIZER
#endif
#endif

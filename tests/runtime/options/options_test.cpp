// The other variables of the environment.
#include <gmock/gmock.h>

#include "logpjit/error.hpp"
#include "tests/runtime/options/environment.hpp"

namespace logpjit {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EnvironmentOptions : public EnvironmentTest {
 protected:
  /// The message of the error `read()` throws.
  std::string failure() {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
};

TEST_F(EnvironmentOptions, EmptyEnvironmentGivesTheDefaults) {
  const Options read_options = read();
  const Options defaults;
  EXPECT_EQ(read_options.device, defaults.device);
  EXPECT_FALSE(read_options.never_compile);
  EXPECT_FALSE(read_options.caches_off);
  EXPECT_EQ(read_options.cache_max_bytes, defaults.cache_max_bytes);
  EXPECT_EQ(read_options.cache_max_entries, defaults.cache_max_entries);
  EXPECT_EQ(read_options.driver_library, "");
  EXPECT_EQ(read_options.nvrtc_library, "");
  EXPECT_EQ(read_options.host_compiler, "");
  EXPECT_EQ(read_options.compile_timeout_s, defaults.compile_timeout_s);
  EXPECT_EQ(read_options.cpu_threads, defaults.cpu_threads);
  EXPECT_TRUE(read_options.log) << "the sink is kept for later";
}

TEST_F(EnvironmentOptions, EveryVariableReachesItsOption) {
  set({{"LOGPJIT_DEVICE", "cuda:3"},
       {"LOGPJIT_COMPILE", "never"},
       {"LOGPJIT_CACHE", "off"},
       {"LOGPJIT_CACHE_MAX_BYTES", "10000000"},
       {"LOGPJIT_CACHE_MAX_ENTRIES", "1000"},
       {"LOGPJIT_DRIVER", "/opt/libcuda.so.1"},
       {"LOGPJIT_NVRTC", "/opt/libnvrtc.so.13"},
       {"LOGPJIT_HOST_COMPILER", "/opt/bin/g++"},
       {"LOGPJIT_CPU_THREADS", "12"}});
  const Options options = read();
  EXPECT_EQ(options.device, "cuda:3");
  EXPECT_TRUE(options.never_compile);
  EXPECT_TRUE(options.caches_off);
  EXPECT_EQ(options.cache_max_bytes, 10'000'000u);
  EXPECT_EQ(options.cache_max_entries, 1000u);
  EXPECT_EQ(options.driver_library, "/opt/libcuda.so.1");
  EXPECT_EQ(options.nvrtc_library, "/opt/libnvrtc.so.13");
  EXPECT_EQ(options.host_compiler, "/opt/bin/g++");
  EXPECT_EQ(options.cpu_threads, 12);
}

TEST_F(EnvironmentOptions, LibraryFoldersAreTheLoadersAbsoluteOnes) {
  EXPECT_THAT(read().library_folders, IsEmpty());
  set({{"LD_LIBRARY_PATH", ":/usr/lib/a:relative:./b;/opt/c d::/e/"}});
  EXPECT_THAT(read().library_folders,
              ElementsAre("/usr/lib/a", "/opt/c d", "/e/"));
  set({{"LD_LIBRARY_PATH", "::"}});
  EXPECT_THAT(read().library_folders, IsEmpty());
}

TEST_F(EnvironmentOptions, CxxIsUsedWhenTheOwnVariableIsAbsent) {
  set({{"CXX", "clang++"}});
  EXPECT_EQ(read().host_compiler, "clang++");
  set({{"LOGPJIT_HOST_COMPILER", "g++"}});
  EXPECT_EQ(read().host_compiler, "g++");
}

TEST_F(EnvironmentOptions, AMisspeltCompileSettingIsAnError) {
  for (const char* value : {"nevr", "NEVER", "never ", "0", "always"}) {
    set({{"LOGPJIT_COMPILE", value}});
    EXPECT_THAT(failure(), AllOf(HasSubstr("LOGPJIT_COMPILE"), HasSubstr(value),
                                 HasSubstr("never")));
  }
}

TEST_F(EnvironmentOptions, AMisspeltCacheSettingIsAnError) {
  for (const char* value : {"of", "OFF", "0", "no", "on"}) {
    set({{"LOGPJIT_CACHE", value}});
    EXPECT_THAT(failure(), AllOf(HasSubstr("LOGPJIT_CACHE is"),
                                 HasSubstr(value), HasSubstr("off")));
  }
}

TEST_F(EnvironmentOptions, ALimitIsANumberFromOneOnOrAnError) {
  for (const char* name :
       {"LOGPJIT_CACHE_MAX_BYTES", "LOGPJIT_CACHE_MAX_ENTRIES"}) {
    for (const char* value :
         {"0", "-1", "10M", "1e9", " 5", "99999999999999999999"}) {
      set({{name, value}});
      EXPECT_THAT(failure(), AllOf(HasSubstr(name), HasSubstr(value)));
    }
    unsetenv(name);
  }
}

TEST_F(EnvironmentOptions, CpuThreadsIsANumberOrAnError) {
  for (const char* value :
       {"-1", "four", "4 ", " 4", "4.0", "0x4", "+4", "99999999999999999999"}) {
    set({{"LOGPJIT_CPU_THREADS", value}});
    EXPECT_THAT(failure(),
                AllOf(HasSubstr("LOGPJIT_CPU_THREADS"), HasSubstr(value)));
  }
  set({{"LOGPJIT_CPU_THREADS", "0"}});
  EXPECT_EQ(read().cpu_threads, 0);
}

}  // namespace
}  // namespace logpjit

// NVRTC's functions as far as logpjit calls them, compiling nothing: one of
// several builds, told apart by FAKE_NVRTC_MAJOR and the linker's build-id.
// What a source says in its first line happens: "// no code" is success with an
// empty cubin, "// no builtins" what NVRTC says without its second library.
#include <cstdlib>
#include <cstring>
#include <string>

struct _nvrtcProgram {
  std::string source;
  std::string log;
  std::string name;
  std::string code;
};

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

enum Result { kOk = 0, kCompilation = 6, kBuiltins = 7 };

void copy(const std::string& text, char* to) {
  std::memcpy(to, text.c_str(), text.size() + 1);
}

}  // namespace

FAKE const char* nvrtcGetErrorString(int result) {
  return result == kBuiltins ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"
                             : "NVRTC_ERROR_COMPILATION";
}
FAKE int nvrtcVersion(int* major, int* minor) {
  *major = FAKE_NVRTC_MAJOR;
  *minor = 0;
  return kOk;
}
FAKE int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return kOk;
}
FAKE int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 90;
  archs[1] = 120;
  return kOk;
}
FAKE int nvrtcCreateProgram(_nvrtcProgram** program, const char* source,
                            const char*, int, const char* const*,
                            const char* const*) {
  *program = new _nvrtcProgram{source, "", "", ""};
  return kOk;
}
FAKE int nvrtcDestroyProgram(_nvrtcProgram** program) {
  delete *program;
  *program = nullptr;
  return kOk;
}
FAKE int nvrtcAddNameExpression(_nvrtcProgram* program, const char* name) {
  program->name = name;
  return kOk;
}
FAKE int nvrtcCompileProgram(_nvrtcProgram* program, int, const char* const*) {
  if (program->source.starts_with("// no builtins")) {
    program->log =
        "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n"
        "  Make sure that libnvrtc-builtins.so.13.0 is installed correctly.\n";
    return kBuiltins;
  }
  if (!program->source.starts_with("// no code")) {
    program->code = "code of NVRTC " + std::to_string(FAKE_NVRTC_MAJOR);
  }
  return kOk;
}
FAKE int nvrtcGetProgramLogSize(_nvrtcProgram* program, std::size_t* size) {
  *size = program->log.size() + 1;
  return kOk;
}
FAKE int nvrtcGetProgramLog(_nvrtcProgram* program, char* to) {
  copy(program->log, to);
  return kOk;
}
FAKE int nvrtcGetLoweredName(_nvrtcProgram* program, const char*,
                             const char** name) {
  *name = program->name.c_str();
  return kOk;
}
FAKE int nvrtcGetCUBINSize(_nvrtcProgram* program, std::size_t* size) {
  *size = program->code.size();
  return kOk;
}
FAKE int nvrtcGetCUBIN(_nvrtcProgram* program, char* to) {
  std::memcpy(to, program->code.data(), program->code.size());
  return kOk;
}
FAKE int nvrtcGetPTXSize(_nvrtcProgram* program, std::size_t* size) {
  return nvrtcGetCUBINSize(program, size);
}
FAKE int nvrtcGetPTX(_nvrtcProgram* program, char* to) {
  return nvrtcGetCUBIN(program, to);
}

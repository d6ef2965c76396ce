# What the scripts share: where the project is, how to speak, where NVRTC is.
# shellcheck shell=bash disable=SC2034

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$project/.deps
jobs=$(nproc)

say() { printf '\n== %s\n' "$*"; }
warn() { printf '%s: warning: %s\n' "$(basename "$0")" "$*" >&2; }
fail() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# The project's own copy of NVRTC, if scripts/setup had to fetch one.
local_nvrtc() {
  local found=("$deps"/nvrtc/nvidia/*/lib/libnvrtc.so.[0-9]*)
  [[ -e ${found[0]} ]] && printf '%s\n' "${found[-1]}"
}

# The clang-tidy that scripts/setup fetched, else the system's. From version 22
# on it passes over what system headers declare, which takes half the time.
readonly clang_tidy_version=22.1.8
readonly fetched_clang_tidy=$deps/clang-tidy-$clang_tidy_version
clang_tidy() {
  local fetched=$fetched_clang_tidy/clang_tidy/data/bin/clang-tidy
  if [[ -x $fetched ]]; then echo "$fetched"; else command -v clang-tidy; fi
}

# True where the loader or a CUDA toolkit already offers NVRTC.
have_system_nvrtc() {
  # Not grep -q: it would end ldconfig early, which pipefail takes for a fault.
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
    grep 'libnvrtc\.so' >/dev/null && return
  compgen -G '/usr/local/cuda*/lib*/libnvrtc.so*' >/dev/null ||
    compgen -G '/usr/local/cuda*/targets/*/lib/libnvrtc.so*' >/dev/null
}

# Points the project's programs at the local copy unless the caller chose one.
export_nvrtc() {
  local library
  if [[ -z ${LOGPJIT_NVRTC:-} ]] && library=$(local_nvrtc); then
    export LOGPJIT_NVRTC=$library
  fi
}

# build PRESET [TARGET...]: configures and builds.
build() {
  local name=$1
  shift
  (cd "$project" && cmake --preset "$name" "${cmake_options[@]}" >/dev/null &&
    cmake --build --preset "$name" -j "$jobs" ${1:+--target "$@"})
}

# A compiler cache, where there is one, makes a second build quick.
cmake_options=()
if command -v ccache >/dev/null; then
  cmake_options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

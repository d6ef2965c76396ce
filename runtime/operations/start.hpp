// The end of every call: its kernel, or the fallback.
#pragma once

#include <cstdint>
#include <string_view>

#include "logpjit/call_options.hpp"
#include "runtime/engine.hpp"
#include "runtime/fallback/rows_per_chunk.hpp"
#include "runtime/operations/program_source.hpp"

namespace logpjit::runtime {

/// Checks what of `options` is for the launch alone.
inline void check_chunk(std::string_view op, const CallOptions& options) {
  if (options.chunk_rows) check_rows_of_chunk(op, *options.chunk_rows);
}

/// Starts the kernel of `spec` for `rows` rows; the fallback where it is asked
/// for or the kernel cannot be built. Nothing for no rows.
template <typename Arguments>
void start(std::string_view op, const ProgramSource& source,
           const KernelSpec& spec, const CallOptions& options,
           std::int64_t rows, CUstream_st* stream, const Arguments& arguments) {
  const Program* held = source.held(op, spec, options);
  if (rows == 0) return;
  if (held != nullptr) return held->launch(rows, stream, arguments);
  Engine& engine = *source.engine();
  if (!options.fallback) {
    if (const Program* program = engine.find_program(spec, stream)) {
      return program->launch(rows, stream, arguments);
    }
  }
  const std::int64_t chunk = rows_per_chunk(engine.device().info().id.kind,
                                            spec.vocab, options.chunk_rows);
  engine.fallback().launch(spec, arguments, rows, chunk, stream);
  engine.count_fallback();
}

}  // namespace logpjit::runtime

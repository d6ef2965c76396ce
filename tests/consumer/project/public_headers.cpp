// Uses what each public header declares, so that a symbol the library forgot to
// export fails to link.
#include <logpjit/api.hpp>
#include <logpjit/call_options.hpp>
#include <logpjit/device.hpp>
#include <logpjit/dtype.hpp>
#include <logpjit/error.hpp>
#include <logpjit/kernel_spec.hpp>
#include <logpjit/launch_config.hpp>
#include <logpjit/operations.hpp>
#include <logpjit/options.hpp>
#include <logpjit/runtime.hpp>
#include <logpjit/tensor.hpp>

#include <string>

std::string uses_every_header();

std::string uses_every_header() {
  const logpjit::Options options = logpjit::Options::from_environment();
  logpjit::LaunchConfig config = logpjit::LaunchConfig::parse("block=256");
  config.set("unroll", config.find("block").value_or(0) + config.at("block"));
  const auto spec = logpjit::parse_op("logp");
  const logpjit::TensorView view =
      logpjit::TensorView::contiguous(nullptr, logpjit::DType::kBf16, {2, 3});
  logpjit::Runtime runtime(options);
  const logpjit::Kernel kernel = runtime.kernel(spec.value(), config);
  runtime.prepare({&*spec, 1});
  logpjit::RowForward call;
  call.options.copy_strided = true;
  return std::to_string(logpjit::workspace_bytes(call)) + config.text() +
         spec->text() + spec->op() + runtime.device().name +
         kernel.spec().op() + kernel.config(view.leading(1)).text() +
         std::string(1, static_cast<char>(runtime.counters().compiled));
}

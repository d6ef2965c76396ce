// The .npy files a run reads, as tensors.
#include "cli/run_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "cli/flags.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

using tuning::NpyType;

[[noreturn]] void refuse(const std::string& flag, const std::string& file,
                         const std::string& reason) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}: {}", flag, file, reason));
}

tuning::NpyArray read(const std::string& flag, const std::string& file) {
  try {
    return tuning::read_npy(file);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", flag, error.message()));
  }
}

void check_rank(const std::string& flag, const std::string& file,
                const tuning::NpyArray& array, std::size_t low,
                std::size_t high, const char* wanted) {
  const std::size_t rank = array.shape.size();
  if (rank >= low && rank <= high) return;
  refuse(flag, file,
         fmt::format("has the shape [{}], expected {}",
                     fmt::join(array.shape, ", "), wanted));
}

DType float_type(const std::string& flag, const std::string& file, NpyType type,
                 const std::string& asked) {
  const auto wanted = asked.empty()
                          ? std::nullopt
                          : std::optional(parse_float_flag("--dtype", asked));
  std::optional<DType> found;
  if (type == NpyType::kFloat32) found = DType::kFp32;
  if (type == NpyType::kFloat16) found = DType::kFp16;
  if (type == NpyType::kUint16 && wanted == DType::kBf16) found = wanted;
  if (type == NpyType::kUint16 && !found) {
    refuse(flag, file,
           "holds 16-bit integers (<u2): say --dtype bf16 if they "
           "are bf16 bits");
  }
  if (!found) {
    refuse(flag, file,
           fmt::format("holds integers ({}), expected floats",
                       tuning::descr(type)));
  }
  if (wanted && *wanted != *found) {
    refuse(flag, file,
           fmt::format("holds {} ({}), --dtype says {}", name(*found),
                       tuning::descr(type), asked));
  }
  return *found;
}

}  // namespace

TensorView HostTensor::view() const {
  TensorView view;
  view.data = const_cast<std::byte*>(array.bytes.data());
  view.dtype = dtype;
  view.rank = static_cast<int>(array.shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = array.shape.size(); d-- > 0;) {
    view.shape[d] = array.shape[d];
    view.strides[d] = stride;
    stride *= array.shape[d];
  }
  return view;
}

HostTensor read_logits(const std::string& flag, const std::string& file,
                       const std::string& dtype) {
  HostTensor tensor{read(flag, file), DType::kFp32};
  tensor.dtype = float_type(flag, file, tensor.array.type, dtype);
  check_rank(flag, file, tensor.array, 2, 3, "[N, V] or [B, S, V]");
  return tensor;
}

HostTensor read_ids(const std::string& flag, const std::string& file) {
  HostTensor tensor{read(flag, file), DType::kInt64};
  if (tensor.array.type == NpyType::kInt32) {
    tensor.dtype = DType::kInt32;
  } else if (tensor.array.type != NpyType::kInt64) {
    refuse(flag, file,
           fmt::format("holds {}, expected int32 or int64 ids",
                       tuning::descr(tensor.array.type)));
  }
  check_rank(flag, file, tensor.array, 1, 3,
             "[N], [N, K], [B, S] or [B, S, K]");
  return tensor;
}

HostTensor read_floats(const std::string& flag, const std::string& file) {
  HostTensor tensor{read(flag, file), DType::kFp32};
  if (tensor.array.type != NpyType::kFloat32) {
    refuse(flag, file,
           fmt::format("holds {}, expected <f4",
                       tuning::descr(tensor.array.type)));
  }
  check_rank(flag, file, tensor.array, 1, 3,
             "[N], [N, K], [B, S] or [B, S, K]");
  return tensor;
}

tuning::DeviceTensor upload_host(runtime::Device& device,
                                 const HostTensor& tensor) {
  if (!tensor.given()) return {};
  return tuning::upload(device, tensor.dtype, tensor.array.shape,
                        tensor.array.bytes);
}

}  // namespace logpjit::cli

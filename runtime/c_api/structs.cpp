// Members of the C structs to members of the C++ ones.
#include "runtime/c_api/structs.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "logpjit/error.hpp"

namespace logpjit::c_api {
namespace {

static_assert(static_cast<int>(DType::kFp32) == LOGPJIT_FP32);
static_assert(static_cast<int>(DType::kInt64) == LOGPJIT_INT64);
static_assert(static_cast<int>(DeviceKind::kCuda) == LOGPJIT_CUDA);
static_assert(static_cast<int>(RowMap::kIndexed) == LOGPJIT_ROWS_INDEXED);
static_assert(static_cast<int>(KlDirection::kReverse) == LOGPJIT_KL_REVERSE);
static_assert(TensorView::kMaxRank == LOGPJIT_MAX_RANK);

[[noreturn]] void refuse(std::string_view call, std::string_view argument,
                         std::string_view what) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}: {}", call, argument, what));
}

/// The enum value a number stands for; `last` is the greatest.
template <typename Enum>
Enum enum_value(const char* call, const char* argument, int value, Enum last) {
  if (value < 0 || value > static_cast<int>(last)) {
    refuse(call, argument,
           fmt::format("{} is not between 0 and {}", value,
                       static_cast<int>(last)));
  }
  return static_cast<Enum>(value);
}

/// Converts the members of one call, by name.
class Reader {
 public:
  explicit Reader(const char* call) : call_(call) {}

  TensorView tensor(const char* name, const logpjit_tensor& given) const {
    if (given.rank == 0) return {};
    if (given.rank < 0 || given.rank > LOGPJIT_MAX_RANK) {
      refuse(call_, name,
             fmt::format("rank {} is not between 0 and {}", given.rank,
                         static_cast<int>(LOGPJIT_MAX_RANK)));
    }
    TensorView made;
    // Whether a view is written is the operation's promise.
    made.data = const_cast<void*>(given.data);
    made.dtype = enum_value(call_, name, given.dtype, DType::kInt64);
    made.rank = given.rank;
    for (int i = 0; i < given.rank; ++i) {
      made.shape[i] = given.shape[i];
      made.strides[i] = given.strides[i];
    }
    made.device.kind =
        enum_value(call_, name, given.device_kind, DeviceKind::kCuda);
    made.device.index = given.device_index;
    return made;
  }

  Transform transform(const char* name, const logpjit_transform& given) const {
    return {.temperature = given.temperature,
            .temperatures = tensor(name, given.temperatures),
            .softcap = given.softcap};
  }

  Upstream upstream(const logpjit_upstream& given) const {
    return {.logp = tensor("upstream.logp", given.logp),
            .entropy = tensor("upstream.entropy", given.entropy),
            .lse = tensor("upstream.lse", given.lse),
            .squares = tensor("upstream.squares", given.squares)};
  }

  Gradient gradient(const char* name, const logpjit_gradient& given) const {
    return {.tensor = tensor(name, given.tensor),
            .accumulate = given.accumulate != 0,
            .in_place = given.in_place != 0};
  }

  CallOptions options(const logpjit_call_options& given) const {
    CallOptions made{.validate = given.validate != 0,
                     .copy_strided = given.copy_strided != 0,
                     .workspace = {.data = given.workspace_data,
                                   .bytes = given.workspace_bytes,
                                   .allocate = given.allocate,
                                   .context = given.context},
                     .fallback = given.fallback != 0};
    if (given.chunk_rows != 0) made.chunk_rows = given.chunk_rows;
    return made;
  }

  KlInputs kl_inputs(const logpjit_kl_inputs& given) const {
    return {.student = tensor("student", given.student),
            .teacher = tensor("teacher", given.teacher),
            .row_index = tensor("row_index", given.row_index),
            .vocab = given.vocab,
            .student_transform =
                transform("student_temperatures", given.student_transform),
            .teacher_transform =
                transform("teacher_temperatures", given.teacher_transform),
            .direction = enum_value(call_, "direction", given.direction,
                                    KlDirection::kReverse)};
  }

 private:
  const char* call_;
};

}  // namespace

void check_size(const char* call, std::uint64_t size) {
  constexpr std::uint64_t kMost = 1 << 16;  // no struct is near that
  if (size >= sizeof(size) && size <= kMost) return;
  refuse(call, "size",
         fmt::format("{} is no struct's: use the *_INIT macro", size));
}

void check_unknown(const char* call, const void* given, std::uint64_t size,
                   std::size_t known) {
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    refuse(call, "size",
           fmt::format("{} bytes hold a member that version {} of the library "
                       "does not know",
                       size, LOGPJIT_VERSION));
  }
}

RowForward row_forward(const char* call, const logpjit_row_forward& given) {
  const Reader reader(call);
  return {.logits = reader.tensor("logits", given.logits),
          .ids = reader.tensor("ids", given.ids),
          .row_index = reader.tensor("row_index", given.row_index),
          .vocab = given.vocab,
          .transform = reader.transform("temperatures", given.transform),
          .logp = reader.tensor("logp", given.logp),
          .entropy = reader.tensor("entropy", given.entropy),
          .lse = reader.tensor("lse", given.lse),
          .squares = reader.tensor("squares", given.squares),
          .argmax = reader.tensor("argmax", given.argmax),
          .max = reader.tensor("max", given.max),
          .sum = reader.tensor("sum", given.sum),
          .out_of_range = reader.tensor("out_of_range", given.out_of_range),
          .ignore_id = given.ignore_id,
          .options = reader.options(given.options)};
}

RowBackward row_backward(const char* call, const logpjit_row_backward& given) {
  const Reader reader(call);
  return {.logits = reader.tensor("logits", given.logits),
          .ids = reader.tensor("ids", given.ids),
          .row_index = reader.tensor("row_index", given.row_index),
          .vocab = given.vocab,
          .transform = reader.transform("temperatures", given.transform),
          .max = reader.tensor("max", given.max),
          .sum = reader.tensor("sum", given.sum),
          .entropy = reader.tensor("entropy", given.entropy),
          .squares = reader.tensor("squares", given.squares),
          .upstream = reader.upstream(given.upstream),
          .gradient = reader.gradient("gradient", given.gradient),
          .ignore_id = given.ignore_id,
          .options = reader.options(given.options)};
}

RowWithGrad row_with_grad(const char* call, const logpjit_row_forward& values,
                          const logpjit_row_gradient& gradient) {
  const Reader reader(call);
  return {.values = row_forward(call, values),
          .upstream = reader.upstream(gradient.upstream),
          .gradient = reader.gradient("gradient", gradient.gradient)};
}

KlForward kl_forward(const char* call, const logpjit_kl_forward_call& given) {
  const Reader reader(call);
  return {.inputs = reader.kl_inputs(given.inputs),
          .kl = reader.tensor("kl", given.kl),
          .student_max = reader.tensor("student_max", given.student_max),
          .student_sum = reader.tensor("student_sum", given.student_sum),
          .teacher_max = reader.tensor("teacher_max", given.teacher_max),
          .teacher_sum = reader.tensor("teacher_sum", given.teacher_sum),
          .options = reader.options(given.options)};
}

KlBackward kl_backward(const char* call,
                       const logpjit_kl_backward_call& given) {
  const Reader reader(call);
  return {.inputs = reader.kl_inputs(given.inputs),
          .kl = reader.tensor("kl", given.kl),
          .student_max = reader.tensor("student_max", given.student_max),
          .student_sum = reader.tensor("student_sum", given.student_sum),
          .teacher_max = reader.tensor("teacher_max", given.teacher_max),
          .teacher_sum = reader.tensor("teacher_sum", given.teacher_sum),
          .upstream = reader.tensor("upstream", given.upstream),
          .student_gradient =
              reader.gradient("student_gradient", given.student_gradient),
          .teacher_gradient =
              reader.gradient("teacher_gradient", given.teacher_gradient),
          .options = reader.options(given.options)};
}

KernelSpec kernel_spec(const char* call, const logpjit_spec& given) {
  if (given.op == nullptr) refuse(call, "op", "is a null pointer");
  std::optional<KernelSpec> made = parse_op(given.op);
  if (!made) {
    refuse(call, "op", fmt::format("'{}' is no operation", given.op));
  }
  if (given.vocab < 1) {
    refuse(call, "vocab", fmt::format("{} is below 1", given.vocab));
  }
  made->vocab = given.vocab;
  made->logits = enum_value(call, "logits", given.logits, DType::kFp16);
  made->rows = enum_value(call, "rows", given.rows, RowMap::kIndexed);
  made->aligned = given.unaligned == 0;
  made->temperature = given.temperature != 0;
  made->softcap = given.softcap != 0;
  // What does not matter to the operation stays as its calls leave it: two
  // specifications of one kernel must be equal.
  if (has(made->terms, Terms::kLogp)) {
    made->ids = enum_value(call, "ids", given.ids, DType::kInt64);
    if (is_float(made->ids)) refuse(call, "ids", "is neither int32 nor int64");
    made->many_ids = given.many_ids != 0;
  }
  if (made->pass != Pass::kForward && given.accumulate != 0) {
    made->store = GradStore::kAccumulate;
  }
  if (made->terms != Terms::kKl) return *made;
  made->other = enum_value(call, "other", given.other, DType::kFp16);
  if (made->pass == Pass::kForward) return *made;
  made->grad_a = given.only_grad_b == 0;
  made->grad_b = given.only_grad_b != 0 || given.both_grads != 0;
  return *made;
}

}  // namespace logpjit::c_api

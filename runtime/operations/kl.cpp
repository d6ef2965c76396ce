// KL divergences: student and teacher to sides A and B, checks, launch.
#include "runtime/operations/kl.hpp"

#include "runtime/engine.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/check_ids.hpp"
#include "runtime/operations/copied_logits.hpp"
#include "runtime/operations/gradient.hpp"
#include "runtime/operations/start.hpp"
#include "runtime/operations/transform.hpp"

namespace logpjit {
namespace {

using runtime::Named;
using runtime::RowSpace;

/// Tensors of one side under their names in the call.
struct Side {
  std::string_view name;
  const TensorView& logits;
  const Transform& transform;
  Named max;
  Named sum;
  std::string_view gradient_name{};
  const Gradient* gradient = nullptr;
};

struct Sides {
  Side a;
  Side b;
};

/// A is the distribution the expectation is under: the teacher, unless reverse.
template <typename Call>
Sides sides_of(const Call& call) {
  Side student{.name = "student",
               .logits = call.inputs.student,
               .transform = call.inputs.student_transform,
               .max = {"student_max", call.student_max},
               .sum = {"student_sum", call.student_sum}};
  Side teacher{.name = "teacher",
               .logits = call.inputs.teacher,
               .transform = call.inputs.teacher_transform,
               .max = {"teacher_max", call.teacher_max},
               .sum = {"teacher_sum", call.teacher_sum}};
  if constexpr (requires { call.student_gradient; }) {
    student.gradient_name = "student_gradient";
    student.gradient = &call.student_gradient;
    teacher.gradient_name = "teacher_gradient";
    teacher.gradient = &call.teacher_gradient;
  }
  if (call.inputs.direction == KlDirection::kForward) return {teacher, student};
  return {student, teacher};
}

/// Sets `argument` and says in `spec` what the kernel needs for it.
void check_side(std::string_view op, const Side& side, RowSpace& space,
                KernelSpec& spec, device::SideArgument& argument) {
  argument.logits = side.logits.data;
  argument.rows = space.rows_argument(space.add_matrix(side.name, side.logits));
  KernelSpec needs;
  runtime::check_transform(op, side.transform, space, needs,
                           argument.transform);
  spec.temperature = spec.temperature || needs.temperature;
  spec.softcap = spec.softcap || needs.softcap;
  spec.aligned = spec.aligned && runtime::is_aligned(side.logits);
}

void check_matrices(std::string_view op, DeviceId device, const Sides& sides) {
  for (const Side* side : {&sides.a, &sides.b}) {
    runtime::check_matrix(op, device, {side->name, side->logits});
  }
}

/// What both passes take of their inputs; fills the members of `arguments`.
template <typename Arguments>
void check_inputs(std::string_view op, const KlInputs& inputs,
                  const Sides& sides, RowSpace& space, KernelSpec& spec,
                  Arguments& arguments) {
  space.note_read({"teacher", inputs.teacher});
  spec.terms = Terms::kKl;
  spec.logits = sides.a.logits.dtype;
  spec.other = sides.b.logits.dtype;
  spec.vocab = runtime::check_vocab(op, inputs.student, inputs.vocab);
  if (runtime::check_vocab(op, inputs.teacher, inputs.vocab) != spec.vocab) {
    runtime::refuse(op, "teacher",
                    "has another row length than the student; give vocab");
  }
  check_side(op, sides.a, space, spec, arguments.a);
  check_side(op, sides.b, space, spec, arguments.b);
}

/// A call with its strided inputs as the copies that it asks for.
template <typename Call>
void with_copies(std::string_view op, Runtime& runtime, const Call& call,
                 CUstream_st* stream,
                 void (*run)(const runtime::ProgramSource&, const Call&,
                             runtime::CopiedLogits*, CUstream_st*)) {
  const runtime::ProgramSource source(runtime.engine());
  if (!call.options.copy_strided) return run(source, call, nullptr, stream);
  runtime::CopiedLogits copy(
      op, runtime.engine(), call.options,
      {{"student", call.inputs.student}, {"teacher", call.inputs.teacher}},
      call.inputs.vocab, stream);
  if (!copy.needed()) return run(source, call, nullptr, stream);
  Call contiguous = call;
  contiguous.inputs.student = copy.view(0);
  contiguous.inputs.teacher = copy.view(1);
  run(source, contiguous, &copy, stream);
}

void validate_index(std::string_view op, runtime::Device& device,
                    const KlInputs& inputs, const CallOptions& options,
                    std::int64_t limit) {
  if (!options.validate) return;
  runtime::check_range(op, device, {"row_index", inputs.row_index}, limit, 0);
}

float* optional_floats(const Named& output, RowSpace& space) {
  return output.tensor.given() ? space.write_floats(output) : nullptr;
}

struct GradientBuffer {
  void* data = nullptr;
  device::RowsArgument rows{};
  std::int64_t columns = 0;
};

GradientBuffer check_buffer(std::string_view op, DeviceId device,
                            const Side& side, RowSpace& space,
                            KernelSpec& spec) {
  const TensorView& tensor = side.gradient->tensor;
  if (!tensor.given()) return {};
  if (side.gradient->in_place) {
    runtime::refuse(op, side.gradient_name,
                    "a gradient of KL cannot be in place");
  }
  const runtime::RowStrides strides = runtime::check_gradient(
      op, device, side.gradient_name, *side.gradient, side.logits, space);
  spec.aligned = spec.aligned && runtime::is_aligned(tensor);
  return {tensor.data, space.rows_argument(strides),
          side.logits.shape[side.logits.rank - 1]};
}

}  // namespace

namespace runtime {

KlValuesCall check_kl_values(std::string_view op, DeviceId device,
                             const KlForward& call) {
  const Sides sides = sides_of(call);
  check_matrices(op, device, sides);
  KlValuesCall made(op, device, {"student", call.inputs.student},
                    call.inputs.row_index);
  RowSpace& space = made.space;
  device::KlStatisticsArguments& arguments = made.arguments;
  check_inputs(op, call.inputs, sides, space, made.spec, arguments);
  arguments.kl = space.write_floats({"kl", call.kl});
  arguments.max_a = optional_floats(sides.a.max, space);
  arguments.sum_a = optional_floats(sides.a.sum, space);
  arguments.max_b = optional_floats(sides.b.max, space);
  arguments.sum_b = optional_floats(sides.b.sum, space);
  space.check_overlap();
  arguments.row_count = space.rows();
  made.spec.rows = space.map();
  return made;
}

}  // namespace runtime

namespace {

void run_forward(const runtime::ProgramSource& source, const KlForward& call,
                 runtime::CopiedLogits* copy, CUstream_st* stream) {
  constexpr std::string_view kOp = "kl_forward";
  const Sides sides = sides_of(call);
  runtime::KlValuesCall made =
      runtime::check_kl_values(kOp, source.device().info().id, call);
  runtime::check_chunk(kOp, call.options);
  validate_index(kOp, source.device(), call.inputs, call.options,
                 made.arguments.a.rows.limit);
  if (copy != nullptr) {
    copy->start(
        {{"kl", call.kl}, sides.a.max, sides.a.sum, sides.b.max, sides.b.sum});
  }
  runtime::start(kOp, source, made.spec, call.options, made.space.rows(),
                 stream, made.arguments);
}

/// Which sides' gradients are written, and whether they are added to.
void choose_gradients(std::string_view op, const Sides& sides,
                      KernelSpec& spec) {
  spec.grad_a = sides.a.gradient->tensor.given();
  spec.grad_b = sides.b.gradient->tensor.given();
  if (!spec.grad_a && !spec.grad_b) {
    runtime::refuse(op, "gradients", "none is given");
  }
  const bool accumulate_a = spec.grad_a && sides.a.gradient->accumulate;
  const bool accumulate_b = spec.grad_b && sides.b.gradient->accumulate;
  if (spec.grad_a && spec.grad_b && accumulate_a != accumulate_b) {
    runtime::refuse(op, "gradients", "accumulate must be the same for both");
  }
  spec.store =
      accumulate_a || accumulate_b ? GradStore::kAccumulate : GradStore::kWrite;
}

using KlGradientCall = runtime::CheckedCall<device::KlGradientArguments>;

void check_gradients(std::string_view op, DeviceId device, const Sides& sides,
                     KlGradientCall& made) {
  device::KlGradientArguments& arguments = made.arguments;
  const GradientBuffer a =
      check_buffer(op, device, sides.a, made.space, made.spec);
  const GradientBuffer b =
      check_buffer(op, device, sides.b, made.space, made.spec);
  made.space.check_overlap();
  choose_gradients(op, sides, made.spec);
  arguments.gradient_a = a.data;
  arguments.gradient_a_rows = a.rows;
  arguments.gradient_a_columns = a.columns;
  arguments.gradient_b = b.data;
  arguments.gradient_b_rows = b.rows;
  arguments.gradient_b_columns = b.columns;
}

KlGradientCall check_kl_gradient(std::string_view op, DeviceId device,
                                 const KlBackward& call, const Sides& sides) {
  check_matrices(op, device, sides);
  KlGradientCall made(op, device, {"student", call.inputs.student},
                      call.inputs.row_index);
  RowSpace& space = made.space;
  device::KlGradientArguments& arguments = made.arguments;
  check_inputs(op, call.inputs, sides, space, made.spec, arguments);
  arguments.kl = space.read_floats({"kl", call.kl});
  arguments.max_a = space.read_floats(sides.a.max);
  arguments.sum_a = space.read_floats(sides.a.sum);
  arguments.max_b = space.read_floats(sides.b.max);
  arguments.sum_b = space.read_floats(sides.b.sum);
  const Named upstream{"upstream", call.upstream};
  arguments.upstream = RowSpace::vector_argument(
      call.upstream, space.read_vector(upstream, DType::kFp32));
  check_gradients(op, device, sides, made);
  made.spec.pass = Pass::kBackward;
  arguments.row_count = space.rows();
  made.spec.rows = space.map();
  return made;
}

void run_backward(const runtime::ProgramSource& source, const KlBackward& call,
                  runtime::CopiedLogits* copy, CUstream_st* stream) {
  constexpr std::string_view kOp = "kl_backward";
  const Sides sides = sides_of(call);
  const KlGradientCall made =
      check_kl_gradient(kOp, source.device().info().id, call, sides);
  runtime::check_chunk(kOp, call.options);
  validate_index(kOp, source.device(), call.inputs, call.options,
                 made.arguments.a.rows.limit);
  if (copy != nullptr) {
    copy->start({{"student_gradient", call.student_gradient.tensor},
                 {"teacher_gradient", call.teacher_gradient.tensor}});
  }
  runtime::start(kOp, source, made.spec, call.options, made.space.rows(),
                 stream, made.arguments);
}

}  // namespace

void kl_forward(Runtime& runtime, const KlForward& call, CUstream_st* stream) {
  with_copies("kl_forward", runtime, call, stream, run_forward);
}

void kl_backward(Runtime& runtime, const KlBackward& call,
                 CUstream_st* stream) {
  with_copies("kl_backward", runtime, call, stream, run_backward);
}

void launch(const Kernel& kernel, const KlForward& call, CUstream_st* stream) {
  run_forward(runtime::ProgramSource(kernel), call, nullptr, stream);
}

void launch(const Kernel& kernel, const KlBackward& call, CUstream_st* stream) {
  run_backward(runtime::ProgramSource(kernel), call, nullptr, stream);
}

}  // namespace logpjit

// What the runners of cases share: variants, inputs on a device, calls.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "logpjit/operations.hpp"
#include "runtime/device.hpp"
#include "tuning/cases.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tuning {

/// One way to run a case: it is run in each of its dtypes and id dtypes.
struct CaseVariant {
  DType dtype = DType::kFp32;
  DType id_dtype = DType::kInt64;
  std::vector<double> temperature;
};
std::vector<CaseVariant> variants_of(const Case& one);
/// "bf16 with int64 ids and fp32 with int64 ids"
std::string pair_name(const CaseVariant& one, const CaseVariant& other);

/// Whether the case names this output, or expects values of it.
bool asks_value(const Case& one, std::string_view name);

/// The inputs of row operations; views are not given where the case has none.
struct RowInputs {
  DeviceTensor logits;
  DeviceTensor ids;
  DeviceTensor row_index;
  DeviceTensor temperatures;
};
RowInputs make_row_inputs(runtime::Device& device, const Case& one,
                          const CaseVariant& variant);

logpjit::Transform transform_of(const CaseVariant& variant,
                                const DeviceTensor& temperatures);
/// The call without outputs. The inputs must outlive it.
RowForward forward_call(const RowInputs& inputs, const CaseVariant& variant);

/// The reference's problem with temperatures as the device gets them, fp32.
Problem stored_problem(const Case& one, const CaseVariant& variant);

/// The tensor's whole storage, to see later that nothing wrote to it; nothing
/// when it is large.
std::vector<std::byte> watched_bytes(runtime::Device& device,
                                     const DeviceTensor& tensor);

}  // namespace logpjit::tuning

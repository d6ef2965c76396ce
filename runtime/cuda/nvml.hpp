// A GPU's clock, as the driver's management library (NVML) tells it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/device.hpp"

namespace logpjit::runtime::cuda {

/// Of the GPU with this PCI bus id ("0000:1B:00.0"). Null where there is no
/// NVML, in `folder` or where the loader looks, or where it does not know the
/// GPU: containers may have a driver without it.
std::unique_ptr<ClockMeter> make_nvml_meter(
    const std::string& bus_id, const std::filesystem::path& folder);

}  // namespace logpjit::runtime::cuda

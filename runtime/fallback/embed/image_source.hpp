// The C++ source that carries compiled kernels inside the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/image.hpp"

namespace logpjit::runtime::embed {

struct BuiltImage {
  std::string kernel;
  std::string target;
  cache::Image image;
};

/// Source that defines embedded_images() and why_no_cuda_images(). The same
/// input gives the same text.
std::string image_source(const std::vector<BuiltImage>& images,
                         std::string_view why_no_cuda);

/// `ptx` for the PTX version of CUDA 12.0, so that older drivers take it too:
/// what is made for compute_75 needs nothing newer. Error{kInternal} when there
/// is no version line.
std::string with_older_version(std::string ptx);

}  // namespace logpjit::runtime::embed

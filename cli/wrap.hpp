// Lines no longer than a terminal is wide.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace logpjit::cli {

/// `text` behind `indent` spaces, with a line break at the end; what does not
/// fit in `columns` goes on in lines indented by `hang` more, broken after a
/// space or a comma, or anywhere where there is none.
std::string wrap(std::string_view text, std::size_t indent, std::size_t columns,
                 std::size_t hang = 2);

}  // namespace logpjit::cli

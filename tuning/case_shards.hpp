// A case's calls, cut at its vocabulary shards where it has some.
#pragma once

#include <vector>

#include "logpjit/operations.hpp"
#include "tuning/cases.hpp"

namespace logpjit::tuning {

/// As `forward`. With ranges, every rank's statistics and merge on columns of
/// the call's logits, one by one on the one device; what the last rank merged
/// stays.
void forward_cut(Runtime& runtime, const RowForward& call,
                 const std::vector<Range>& ranges);
/// As `backward`: every rank writes its columns of the gradient.
void backward_cut(Runtime& runtime, const RowBackward& call,
                  const std::vector<Range>& ranges);
void kl_forward_cut(Runtime& runtime, const KlForward& call,
                    const std::vector<Range>& ranges);
void kl_backward_cut(Runtime& runtime, const KlBackward& call,
                     const std::vector<Range>& ranges);

}  // namespace logpjit::tuning

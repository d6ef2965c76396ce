// One chunk of one row's gradient.
#pragma once

#include "common/chunk.cuh"
#include "common/hits.cuh"
#include "common/upstream.cuh"

namespace logpjit::device {

/// The row holds the columns [begin, begin + kVocab) of a vocabulary of
/// kGlobal, which its ids and statistics are of.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          bool kAccumulate, int kBlock, int kFlight, i64 kGlobal = kVocab>
struct GradientChunk {
  static constexpr bool kHasHits = kManyIds && (kTerms & kTermLogp) != 0;
  using RowChunk = Chunk<Logit, kVocab, kAligned, kAccumulate, kBlock, kFlight>;

  const RowGradientArguments& args;
  int thread;
  i64 begin = 0;
  bool owns_columns = true;  ///< false: none of the row's columns counts

  /// Chunk `number` of `chunks` of row `n`.
  LOGPJIT_DEVICE void run(i64 n, int number, int chunks) const {
    const RowPosition at = vector_position<kRows>(n, args.rows.inner_rows);
    const RowInputs inputs = load_inputs<Id, kTerms, kManyIds>(args, n, at);
    const i64 storage = storage_row<kRows>(args.rows, n);
    if (storage < 0) return;
    const RowPosition row_at =
        row_position<kRows>(storage, args.rows.inner_rows);
    Logit* gradient = static_cast<Logit*>(args.gradient) +
                      element_offset(args.gradient_rows, row_at);
    const Logit* row = static_cast<const Logit*>(args.logits) +
                       element_offset(args.rows, row_at);
    const RowChunk chunk{row, gradient, number, thread};
    if (number == chunks - 1) chunk.clear_padding(args.gradient_columns);
    if constexpr (kHasHits) {
      load_ids<Id, kGlobal, kBlock>(args.ids, args.upstream.logp,
                                    static_cast<int>(args.ids_per_row), at,
                                    thread);
    }
    const GradientTask task = gradient_task<kGlobal, kTerms, kManyIds>(
        inputs, static_cast<int>(args.ids_per_row), thread);
    if (task.live && inputs.max != -infinity() && owns_columns) {
      write(chunk, at, task, inputs);
    } else {
      chunk.clear();
    }
  }

  LOGPJIT_DEVICE void write(const RowChunk& chunk, RowPosition at,
                            const GradientTask& task,
                            const RowInputs& inputs) const {
    const RowScale scale =
        row_scale<kTemperature, kSoftcap>(args.transform, at);
    const RowGradient coefficients =
        row_gradient_of<kTerms>(inputs.max, inputs.sum, inputs.entropy,
                                inputs.squares, task.upstream, scale);
    const auto of_column = [&](float logit) {
      return column_gradient<kTerms, kSoftcap>(capped<kSoftcap>(logit, scale),
                                               coefficients, scale);
    };
    if constexpr (kHasHits) {
      write_hits(chunk, coefficients, scale, of_column);
    } else {
      const i64 target = task.target - begin;
      const bool owned = target >= 0 && target < kVocab;
      chunk.write(of_column, owned ? target : -1, [&](float logit) {
        return target_gradient<kTerms, kSoftcap>(capped<kSoftcap>(logit, scale),
                                                 inputs.sum, task.upstream.logp,
                                                 coefficients, scale);
      });
    }
  }

  template <typename OfColumn>
  LOGPJIT_DEVICE void write_hits(const RowChunk& chunk,
                                 const RowGradient& coefficients,
                                 const RowScale& scale,
                                 OfColumn&& of_column) const {
    HitList list = hit_list();
    const i64 from = chunk.first_column() > 0 ? chunk.first_column() : 0;
    const i64 end = chunk.end_column() < kVocab ? chunk.end_column() : kVocab;
    const auto collect = [&] {
      collect_hits<Logit, kAccumulate, kBlock>(
          list, static_cast<int>(args.ids_per_row), chunk.row - begin,
          chunk.gradient - begin, from + begin, end + begin, thread);
    };
    chunk.rewrite(collect, of_column, [&](auto&& store) {
      for (int i = thread; i < list.count; i += kBlock) {
        bool first;
        const float gain = sum_gains(list, i, first);
        if (!first) continue;
        const float x = capped<kSoftcap>(list.hits[i].logit, scale);
        store(list.hits[i].column - begin, list.hits[i].old,
              repeated_target_gradient<kTerms, kSoftcap>(x, gain, coefficients,
                                                         scale));
      }
    });
  }
};

}  // namespace logpjit::device

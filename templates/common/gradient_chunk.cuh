// One chunk of one row's gradient.
#pragma once

#include "common/chunk.cuh"
#include "common/hits.cuh"
#include "common/upstream.cuh"

namespace logpjit::device {

/// `gradient_parts` times `kBlock * kFlight` words. The row holds the columns
/// [begin, begin + kVocab) of a vocabulary of kGlobal, which its ids and
/// statistics are of.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          bool kAccumulate, int kBlock, int kFlight, i64 kGlobal = kVocab>
struct GradientChunk {
  static constexpr bool kHasHits = has_hits(kManyIds, kTerms);
  static constexpr int kParts = gradient_parts(kHasHits);
  using Part = Chunk<Logit, kVocab, kAligned, kAccumulate, kBlock, kFlight>;

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
    Logit* gradient =
        row_begin<Logit>(args.gradient, args.gradient_rows, row_at);
    const Logit* row = row_begin<Logit>(args.logits, args.rows, row_at);
    const Part first{row, gradient, number * kParts, thread};
    if (number == chunks - 1) first.clear_padding(args.gradient_columns);
    if constexpr (kHasHits) {
      load_ids<Id, kGlobal, kBlock>(args.ids, args.upstream.logp,
                                    static_cast<int>(args.ids_per_row), at,
                                    thread);
    }
    const GradientTask task = gradient_task<kGlobal, kTerms, kManyIds>(
        inputs, static_cast<int>(args.ids_per_row), thread);
    if (task.live && inputs.max != -infinity() && owns_columns) {
      write(first, at, task, inputs);
    } else {
      for_each_part(first, [](const Part& part) { part.clear(); });
    }
  }

  template <typename Body>
  LOGPJIT_DEVICE static void for_each_part(Part part, Body&& body) {
    LOGPJIT_NO_UNROLL
    for (int i = 0; i < kParts; ++i) {
      body(part);
      ++part.number;
    }
  }

  LOGPJIT_DEVICE void write(const Part& first, RowPosition at,
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
      write_hits(first, coefficients, scale, of_column);
    } else {
      const i64 target = task.target - begin;
      const bool owned = target >= 0 && target < kVocab;
      first.write(of_column, owned ? target : -1, [&](float logit) {
        return target_gradient<kTerms, kSoftcap>(capped<kSoftcap>(logit, scale),
                                                 inputs.sum, task.upstream.logp,
                                                 coefficients, scale);
      });
    }
  }

  /// The hits are looked up while the first part's logits are on their way,
  /// before anything is stored, and written once all columns are.
  template <typename OfColumn>
  LOGPJIT_DEVICE void write_hits(const Part& first,
                                 const RowGradient& coefficients,
                                 const RowScale& scale,
                                 OfColumn&& of_column) const {
    HitList list = hit_list();
    const Part last{first.row, first.gradient, first.number + kParts - 1,
                    thread};
    const i64 from = first.first_column() > 0 ? first.first_column() : 0;
    const i64 end = last.end_column() < kVocab ? last.end_column() : kVocab;
    for_each_part(first, [&](const Part& part) {
      const auto collect = [&] {
        if (part.number != first.number) return;
        collect_hits<Logit, kAccumulate, kBlock>(
            list, static_cast<int>(args.ids_per_row), first.row - begin,
            first.gradient - begin, from + begin, end + begin, thread);
      };
      part.write_columns(collect, of_column);
    });
    sync_threads();
    for (int i = thread; i < list.count; i += kBlock) {
      bool is_first;
      const float gain = sum_gains(list, i, is_first);
      if (!is_first) continue;
      const float x = capped<kSoftcap>(list.hits[i].logit, scale);
      first.put(list.hits[i].column - begin, list.hits[i].old,
                repeated_target_gradient<kTerms, kSoftcap>(
                    x, gain, coefficients, scale));
    }
  }
};

}  // namespace logpjit::device

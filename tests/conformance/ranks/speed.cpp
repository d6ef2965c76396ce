// Times of a group: local work, gathering, totals, scaling, and the scheme of
// three collectives. Every figure is the slowest rank's median.
#include <algorithm>
#include <bit>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/engine.hpp"
#include "runtime/operations/shard.hpp"
#include "tests/conformance/ranks/ranks.hpp"
#include "tuning/bench_data.hpp"
#include "tuning/device_tensor.hpp"

namespace logpjit::tests {
namespace {

using Json = nlohmann::json;
using tuning::DeviceTensor;
using Work = std::function<void(CUstream_st*)>;

/// Normal random bf16, one block of them again and again.
DeviceTensor make_logits(runtime::Device& device, std::int64_t rows,
                         std::int64_t width, unsigned seed) {
  constexpr std::size_t kBlock = std::size_t{1} << 22;
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<std::uint16_t> block(kBlock / 2);
  for (auto& value : block) {
    value = static_cast<std::uint16_t>(
        std::bit_cast<std::uint32_t>(normal(generator)) >> 16);
  }
  const auto bytes = static_cast<std::size_t>(rows * width) * 2;
  DeviceTensor tensor{device.allocate(bytes), {}};
  auto* data = static_cast<std::byte*>(tensor.buffer->data());
  for (std::size_t at = 0; at < bytes; at += kBlock) {
    device.copy_in(data + at, block.data(), std::min(kBlock, bytes - at));
  }
  tensor.view = TensorView::contiguous(data, DType::kBf16, {rows, width},
                                       device.info().id);
  return tensor;
}

DeviceTensor rows_tensor(runtime::Device& device, std::int64_t rows) {
  return tuning::constant_rows(device, rows, 1);
}

/// One rank's tensors for one number of rows.
struct Scene {
  Rank& rank;
  std::int64_t rows;
  VocabShards shards;
  DeviceTensor logits, gradient, ids, logp, max, sum, upstream, whole_ids;
  VocabParallel group;
  RowForward call;
  RowBackward back;
  std::unique_ptr<runtime::Buffer> scratch;

  Scene(Rank& r, std::int64_t n, const VocabParallelOptions& options,
        VocabShards cut)
      : rank(r),
        rows(n),
        shards(std::move(cut)),
        logits(make_logits(r.device(), n, width(),
                           static_cast<unsigned>(r.flags().rank))),
        gradient(make_logits(r.device(), n, width(), 99)),
        ids(tuning::spread_ids(r.device(), n, {.vocab = r.flags().vocab})),
        logp(rows_tensor(r.device(), n)),
        max(rows_tensor(r.device(), n)),
        sum(rows_tensor(r.device(), n)),
        upstream(rows_tensor(r.device(), n)),
        whole_ids(tuning::spread_ids(
            r.device(), n, {.vocab = std::max<std::int64_t>(width(), 1)})),
        group(r.runtime(), r.collective(), shards, options) {
    call = {.logits = logits.view,
            .ids = ids.view,
            .logp = logp.view,
            .max = max.view,
            .sum = sum.view};
    back = {.logits = logits.view,
            .ids = ids.view,
            .max = max.view,
            .sum = sum.view,
            .upstream = {.logp = upstream.view},
            .gradient = {.tensor = gradient.view}};
    scratch = r.device().allocate(group.workspace_bytes(call));
  }
  std::int64_t width() const { return shards.range(rank.flags().rank).width(); }
  Workspace workspace() const { return {scratch->data(), scratch->size()}; }

  void forward(CUstream_st* stream) {
    group.forward(call, workspace(), stream);
  }
  void backward(CUstream_st* stream) { group.backward(back, stream); }
  void statistics(CUstream_st* stream) {
    shard_statistics(rank.runtime(), call, group.place(),
                     {.partials = scratch->data()}, stream);
  }
  /// The unsharded operation on as many columns: what one GPU would do.
  void alone_forward(CUstream_st* stream) {
    RowForward whole = call;
    whole.ids = whole_ids.view;
    logpjit::forward(rank.runtime(), whole, stream);
  }
  void alone_backward(CUstream_st* stream) {
    RowBackward whole = back;
    whole.ids = whole_ids.view;
    logpjit::backward(rank.runtime(), whole, stream);
  }
};

/// Median over replays of a graph, the slowest rank's, in microseconds.
double graph_us(Rank& rank, const Work& work, int calls) {
  rank.meet();
  const auto graph = rank.device().capture([&](CUstream_st* stream) {
    for (int i = 0; i < calls; ++i) work(stream);
  });
  graph->replay_ms();
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) times.push_back(graph->replay_ms());
  std::ranges::sort(times);
  const double mine = times[times.size() / 2] * 1000 / calls;
  const auto all = rank.exchange(static_cast<std::uint64_t>(mine * 1000));
  return static_cast<double>(*std::ranges::max_element(all)) / 1000;
}

/// The same, called one after the other by the host, first to last.
double eager_us(Rank& rank, const Work& work, int calls) {
  CUstream_st* stream = rank.device().make_stream();
  std::vector<double> times;
  for (int round = 0; round < 7; ++round) {
    rank.meet();
    const auto begin = rank.device().record(stream);
    for (int i = 0; i < calls; ++i) work(stream);
    const auto end = rank.device().record(stream);
    times.push_back(rank.device().elapsed_ms(*begin, *end) * 1000 / calls);
  }
  rank.device().free_stream(stream);
  std::ranges::sort(times);
  const auto all =
      rank.exchange(static_cast<std::uint64_t>(times[times.size() / 2] * 1000));
  return static_cast<double>(*std::ranges::max_element(all)) / 1000;
}

/// MAX, SUM, SUM over the ranks behind the same statistics kernel; the
/// elementwise kernels between them are left out.
Work three_collectives(Rank& rank, Scene& scene) {
  return [&rank, &scene](CUstream_st* stream) {
    scene.statistics(stream);
    const auto reduce = [&](const DeviceTensor& tensor, int operation) {
      rank.nccl().check(
          rank.nccl().all_reduce(tensor.view.data, tensor.view.data,
                                 static_cast<std::size_t>(scene.rows),
                                 runtime::kNcclFloat32, operation, rank.comm(),
                                 stream),
          "ncclAllReduce");
    };
    reduce(scene.max, runtime::kNcclMax);
    reduce(scene.sum, runtime::kNcclSum);
    reduce(scene.logp, runtime::kNcclSum);
  };
}

Json time_rows(Rank& rank, std::int64_t rows) {
  const int ranks = rank.flags().ranks;
  Scene scene(rank, rows, {}, VocabShards::even(rank.flags().vocab, ranks));
  const int calls = rows >= 30000 ? 4 : rows >= 8000 ? 10 : 40;
  // Everything is compiled and loaded before anybody waits for anybody.
  scene.forward(nullptr);
  scene.backward(nullptr);
  scene.alone_forward(nullptr);
  scene.alone_backward(nullptr);
  scene.group.check(nullptr);
  const auto partials = static_cast<std::size_t>(
      scene.scratch->size() / static_cast<std::size_t>(ranks));
  const Work gather = [&](CUstream_st* stream) {
    auto* base = static_cast<std::byte*>(scene.scratch->data());
    rank.collective().all_gather(
        base + partials * static_cast<std::size_t>(rank.flags().rank), base,
        partials, stream);
  };
  const Work statistics = [&](CUstream_st* s) { scene.statistics(s); };
  const Work forward = [&](CUstream_st* s) { scene.forward(s); };
  const Work backward = [&](CUstream_st* s) { scene.backward(s); };
  const Work both = [&](CUstream_st* s) {
    scene.forward(s);
    scene.backward(s);
  };
  const Work local = [&](CUstream_st* s) {
    scene.statistics(s);
    scene.backward(s);
  };
  const Work alone = [&](CUstream_st* s) {
    scene.alone_forward(s);
    scene.alone_backward(s);
  };
  Json made{{"rows", rows}, {"columns_per_rank", scene.width()}};
  made["local_statistics_us"] = graph_us(rank, statistics, calls);
  made["gather_us"] = graph_us(rank, gather, calls);
  made["forward_us"] = graph_us(rank, forward, calls);
  made["three_collectives_us"] =
      graph_us(rank, three_collectives(rank, scene), calls);
  scene.forward(nullptr);  // statistics again, for the backward
  scene.group.check(nullptr);
  made["backward_us"] = graph_us(rank, backward, calls);
  made["local_both_us"] = graph_us(rank, local, calls);
  made["both_us"] = graph_us(rank, both, calls);
  made["one_gpu_same_columns_both_us"] = graph_us(rank, alone, calls);
  made["eager_statistics_us"] = eager_us(rank, statistics, calls);
  made["eager_forward_us"] = eager_us(rank, forward, calls);
  made["eager_three_collectives_us"] =
      eager_us(rank, three_collectives(rank, scene), calls);
  made["gathered_bytes_per_row_and_rank"] =
      static_cast<double>(partials) / static_cast<double>(rows);
  made["forward_minus_local_us"] = made["forward_us"].get<double>() -
                                   made["local_statistics_us"].get<double>();
  made["both_over_local"] =
      made["both_us"].get<double>() / made["local_both_us"].get<double>();
  made["weak_scaling"] = made["one_gpu_same_columns_both_us"].get<double>() /
                         made["both_us"].get<double>();
  return made;
}

Json time_without_comparing(Rank& rank, std::int64_t rows) {
  Scene scene(rank, rows, {.compare_calls = false},
              VocabShards::even(rank.flags().vocab, rank.flags().ranks));
  scene.forward(nullptr);
  scene.group.check(nullptr);
  const Work forward = [&](CUstream_st* s) { scene.forward(s); };
  return eager_us(rank, forward, 10);
}

Json time_segments(Rank& rank, std::int64_t rows) {
  const VocabShards shards =
      VocabShards::at_segments(rank.flags().vocab, rank.flags().ranks);
  Json made{{"rows", rows}};
  for (const auto& [name, order] :
       {std::pair{"ranks_us", MergeOrder::kRanks},
        std::pair{"segments_us", MergeOrder::kSegments}}) {
    Scene scene(rank, rows, {.order = order}, shards);
    scene.forward(nullptr);
    scene.group.check(nullptr);
    const Work forward = [&](CUstream_st* s) { scene.forward(s); };
    made[name] = graph_us(rank, forward, 4);
  }
  return made;
}

}  // namespace

std::string run_speed(Rank& rank) {
  Json made;
  made["vocab"] = rank.flags().vocab;
  made["dtype"] = "bf16";
  made["operation"] = "logp";
  made["times"] = Json::array();
  for (const std::int64_t rows : rank.flags().rows) {
    made["times"].push_back(time_rows(rank, rows));
  }
  const std::int64_t middle = rank.flags().rows[rank.flags().rows.size() / 2];
  made["eager_forward_without_comparing_us"] =
      time_without_comparing(rank, middle);
  made["at_segments"] = time_segments(rank, middle);
  return made.dump();
}

}  // namespace logpjit::tests

// NVRTC on this machine: every default kernel compiles without a stack frame,
// and refusals are typed and say what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "logpjit/options.hpp"
#include "runtime/cuda/nvrtc_compiler.hpp"
#include "runtime/launch_table.hpp"
#include "runtime/parallel.hpp"
#include "tuning/model_presets.hpp"

namespace logpjit::runtime::cuda {
namespace {

using testing::HasSubstr;

/// Options as scripts/test sets them, without reading the environment twice.
class Nvrtc13 : public testing::Test {
 protected:
  void SetUp() override {
    const Options options = Options::from_environment();
    compiler_ = std::make_unique<NvrtcCompiler>(options.nvrtc_library,
                                                options.library_folders);
    try {
      compiler_->describe();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }

  generator::Source source(const KernelSpec& spec, const LaunchConfig& config) {
    return generator::generate(spec, config, generator::Dialect::kCuda,
                               generator::embedded_manifest());
  }

  std::unique_ptr<NvrtcCompiler> compiler_;
};

DeviceInfo gpu(int major) {
  DeviceInfo info;
  info.id.kind = DeviceKind::kCuda;
  info.major = major;
  info.multiprocessors = 132;
  info.shared_bytes_per_block = 232448;
  return info;
}

KernelSpec spec_of(const std::string& op, DType dtype, std::int64_t vocab) {
  KernelSpec spec = *parse_op(op);
  spec.logits = dtype;
  spec.other = dtype;
  spec.vocab = vocab;
  return spec;
}

/// The parts of the vocab-parallel operations on half of a vocabulary.
std::vector<KernelSpec> shard_specs() {
  std::vector<KernelSpec> all;
  for (const char* op : {"logp", "logp+entropy", "kl"}) {
    for (const Pass pass :
         {Pass::kShardStatistics, Pass::kShardMerge, Pass::kShardGradient}) {
      for (const bool segments : {false, true}) {
        KernelSpec spec = spec_of(op, DType::kBf16, 75968);
        spec.pass = pass;
        spec.global_vocab = 151936;
        spec.segments = segments;
        const bool kl = has(spec.terms, Terms::kKl);
        if (pass == Pass::kShardGradient && (kl || segments)) continue;
        all.push_back(spec);
      }
    }
  }
  all.push_back(all[0]);
  all.back().pass = Pass::kShardGradient;
  all.back().many_ids = true;
  return all;
}

std::vector<KernelSpec> specs() {
  std::vector<KernelSpec> all;
  for (const char* op :
       {"logp", "entropy", "logp+entropy", "logp+entropy+lse+squares+argmax",
        "kl", "logp_backward", "logp+entropy_backward", "kl_backward",
        "logp_with_grad", "logp+entropy_with_grad"}) {
    for (const DType dtype : {DType::kBf16, DType::kFp32}) {
      all.push_back(spec_of(op, dtype, 75968));
    }
  }
  KernelSpec many = spec_of("logp_backward", DType::kBf16, 151936);
  many.many_ids = true;
  all.push_back(many);
  // Spans of 4 and 5 tiles, one or several a segment, whole or cut.
  for (const auto& [op, dtype, vocab] :
       {std::tuple{"logp", DType::kBf16, 32000},
        std::tuple{"logp", DType::kBf16, 201088},
        std::tuple{"logp", DType::kFp32, 151936},
        // A last group that is cut, no cut tile, spans of 2 wide tiles.
        std::tuple{"logp", DType::kBf16, 30522},
        std::tuple{"logp", DType::kBf16, 40960},
        std::tuple{"logp", DType::kFp32, 45056},
        std::tuple{"entropy", DType::kBf16, 151936},
        std::tuple{"kl", DType::kBf16, 128256},
        std::tuple{"logp_with_grad", DType::kBf16, 151936},
        std::tuple{"logp_with_grad", DType::kBf16, 32000},
        std::tuple{"logp_with_grad", DType::kFp16, 256000},
        std::tuple{"logp_with_grad", DType::kBf16, 262144},
        std::tuple{"logp_with_grad", DType::kBf16, 262208}}) {
    all.push_back(spec_of(op, dtype, vocab));
  }
  KernelSpec indexed = spec_of("logp_with_grad", DType::kBf16, 262208);
  indexed.ids = DType::kInt32;
  indexed.rows = RowMap::kIndexed;
  all.push_back(indexed);
  KernelSpec wide = spec_of("entropy", DType::kFp32, 32001);
  wide.aligned = false;
  all.push_back(wide);
  for (const std::int64_t vocab : {50257, 151937}) {
    wide = spec_of("logp_with_grad", DType::kBf16, vocab);
    wide.aligned = false;
    all.push_back(wide);
  }
  // Positions in two dimensions; a softcap, off a row's lines too.
  for (const std::int64_t vocab : {75968, 128256, 151936}) {
    KernelSpec sequences = spec_of("logp", DType::kBf16, vocab);
    sequences.rows = RowMap::kStrided2;
    all.push_back(sequences);
  }
  KernelSpec capped = spec_of("logp+entropy", DType::kBf16, 151936);
  capped.softcap = true;
  all.push_back(capped);
  capped = spec_of("logp", DType::kFp32, 151937);
  capped.softcap = true;
  capped.aligned = false;
  all.push_back(capped);
  KernelSpec odd = spec_of("logp", DType::kBf16, 50257);
  odd.aligned = false;
  all.push_back(odd);
  odd.pass = Pass::kBackward;
  all.push_back(odd);
  KernelSpec both = spec_of("kl_backward", DType::kBf16, 32000);
  both.grad_b = true;
  all.push_back(both);
  KernelSpec hot = spec_of("logp", DType::kFp16, 32000);
  hot.temperature = true;
  hot.rows = RowMap::kStrided2;
  all.push_back(hot);
  return all;
}

TEST_F(Nvrtc13, DefaultKernelsHaveNoStackFrame) {
  std::vector<KernelSpec> all = specs();
  for (const KernelSpec& spec : shard_specs()) all.push_back(spec);
  for (const KernelSpec& spec : all) {
    for (const RowChoice& choice : default_choices(spec, gpu(9))) {
      const cache::Image image =
          compiler_->compile(source(spec, choice.config), "sm_90a");
      SCOPED_TRACE(spec.text() + " " + choice.config.text());
      EXPECT_EQ(image.facts.stack_bytes, 0);
      EXPECT_EQ(image.facts.spill_bytes, 0);
      EXPECT_GT(image.facts.registers, 0);
      EXPECT_FALSE(image.bytes.empty());
    }
  }
}

/// Whether registers suffice depends on how a row ends, and on the compiler's
/// mood: all lengths that models have, side by side.
TEST_F(Nvrtc13, DefaultKernelsOfKnownModelsHaveNoStackFrame) {
  std::set<std::int64_t> vocabs{43136, 67712, 92288, 116864, 139264};
  for (const tuning::ModelPreset& model : tuning::model_presets()) {
    vocabs.insert(model.vocab);
  }
  struct Kernel {
    KernelSpec spec;
    LaunchConfig config;
    cache::LaunchFacts facts{};
  };
  std::vector<Kernel> kernels;
  for (const std::int64_t vocab : vocabs) {
    for (const char* op : {"logp", "logp+entropy"}) {
      for (const DType dtype : {DType::kBf16, DType::kFp32}) {
        const KernelSpec spec = spec_of(op, dtype, vocab);
        const std::vector<RowChoice> all = default_choices(spec, gpu(9));
        for (const RowChoice& choice : all) {
          if (choice.config.find("block")) {
            kernels.push_back({spec, choice.config});
          }
        }
      }
    }
  }
  parallel_for(kernels.size(), 4, [&](std::size_t i) {
    Kernel& kernel = kernels[i];
    kernel.facts =
        compiler_->compile(source(kernel.spec, kernel.config), "sm_90a").facts;
  });
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.spec.text() + " " + kernel.config.text());
    EXPECT_EQ(kernel.facts.stack_bytes, 0);
    EXPECT_EQ(kernel.facts.spill_bytes, 0);
  }
}

/// A compile takes as long as the code that it makes is large; unlike the time,
/// the size does not depend on what else the machine does.
TEST_F(Nvrtc13, ForwardKernelsAreSmall) {
  // Unaligned rows have code for each of their offsets.
  const auto most_bytes = [](bool aligned) {
    return std::size_t{aligned ? 26u : 64u} * 1024;
  };
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const std::int64_t vocab : {75968, 151936, 151937}) {
      for (const bool aligned : {true, false}) {
        KernelSpec spec = spec_of("logp", dtype, vocab);
        if (aligned && vocab % 8 != 0) continue;
        spec.aligned = aligned;
        for (const RowChoice& choice : default_choices(spec, gpu(9))) {
          const cache::Image image =
              compiler_->compile(source(spec, choice.config), "sm_90a");
          SCOPED_TRACE(spec.text() + " " + choice.config.text());
          EXPECT_LT(image.bytes.size(), most_bytes(aligned));
        }
      }
    }
  }
}

TEST_F(Nvrtc13, OlderAndNewerArchitectures) {
  for (const auto& [arch, major] :
       {std::pair{"sm_80", 8}, std::pair{"sm_100a", 10},
        std::pair{"sm_120a", 12}}) {
    for (const char* op : {"logp", "logp_backward", "kl", "kl_backward"}) {
      const KernelSpec spec = spec_of(op, DType::kBf16, 151936);
      const LaunchConfig config = default_choices(spec, gpu(major))[0].config;
      const cache::Image image = compiler_->compile(source(spec, config), arch);
      SCOPED_TRACE(std::string(arch) + " " + op);
      EXPECT_EQ(image.facts.stack_bytes, 0);
      EXPECT_EQ(image.facts.spill_bytes, 0);
    }
  }
}

TEST_F(Nvrtc13, TheSameSourceGivesTheSameBytes) {
  const KernelSpec spec = spec_of("logp", DType::kBf16, 32000);
  const LaunchConfig config = default_choices(spec, gpu(9))[0].config;
  EXPECT_EQ(compiler_->compile(source(spec, config), "sm_90a").bytes,
            compiler_->compile(source(spec, config), "sm_90a").bytes);
}

TEST_F(Nvrtc13, AnUnknownArchitectureIsNamedWithTheKnownOnes) {
  const KernelSpec spec = spec_of("logp", DType::kBf16, 32000);
  const LaunchConfig config = default_choices(spec, gpu(9))[0].config;
  try {
    compiler_->compile(source(spec, config), "sm_42");
    FAIL() << "compiled for sm_42";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.message(), HasSubstr("'sm_42'"));
    EXPECT_THAT(error.message(), HasSubstr("sm_90"));
  }
}

TEST_F(Nvrtc13, ABrokenSourceShowsItsNumberedLines) {
  const KernelSpec spec = spec_of("logp", DType::kBf16, 32000);
  const LaunchConfig config = default_choices(spec, gpu(9))[0].config;
  generator::Source broken = source(spec, config);
  broken.text += "\nthis is not C++;\n";
  try {
    compiler_->compile(broken, "sm_90a");
    FAIL() << "compiled nonsense";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
    EXPECT_THAT(error.message(), HasSubstr("row_statistics"));
    EXPECT_THAT(error.log(), HasSubstr("this is not C++;"));
    EXPECT_THAT(error.log(), HasSubstr("--fmad=false"));
  }
}

TEST(NvrtcSearch, AMissingOrForeignLibraryIsExplained) {
  const NvrtcCompiler missing("/nonexistent/libnvrtc.so.13", {});
  try {
    missing.describe();
    FAIL() << "opened nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("/nonexistent/libnvrtc.so.13"));
    EXPECT_THAT(error.message(), HasSubstr("LOGPJIT_NVRTC"));
  }
}

TEST(PtxasReport, IsReadWhateverIsMissing) {
  const cache::LaunchFacts facts = parse_ptxas_report(
      "ptxas info : Function properties for k\n"
      "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info : Used 32 registers, used 1 barriers, 208 bytes cmem[0]\n");
  EXPECT_EQ(facts.registers, 32);
  EXPECT_EQ(facts.stack_bytes, 8);
  EXPECT_EQ(facts.spill_bytes, 28);
  EXPECT_EQ(facts.static_shared_bytes, 0);
  EXPECT_EQ(parse_ptxas_report("").registers, -1);
}

}  // namespace
}  // namespace logpjit::runtime::cuda

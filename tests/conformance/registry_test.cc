// Every entry of the registry, over its own samples: inference, the reference, and every faster
// kernel against it.

#include <cctype>
#include <limits>
#include <map>
#include <set>

#include "tests/conformance/tolerance.h"
#include <gtest/gtest.h>

#include "whimbrel/kernels/kernels.h"
#include "whimbrel/kernels/sample.h"

namespace whimbrel {
namespace {

std::string CaseName(const OpSchema& schema) {
  std::string name;
  for (char c : std::string(schema.domain))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (!name.empty()) name += '_';
  return name + std::string(schema.name) + "_" + std::to_string(schema.since);
}

// Branches come from the graph floor; such ops are tested there.
bool HoldsGraphs(const OpSchema& schema) {
  return std::any_of(schema.attributes.begin(), schema.attributes.end(),
                     [](const AttributeSpec& a) { return a.type == AttributeType::kGraph; });
}

std::vector<const Kernel*> FasterKernels(const OpSchema& schema) {
  std::vector<const Kernel*> found;
  for (const Kernel* k : Registry::Get().Kernels(schema.domain, schema.name, DeviceKind::kCpu)) {
    if (k->rank != 0 && k->isa <= ActiveIsa()) found.push_back(k);
  }
  return found;
}

std::string MisfitOfAll(const OpSchema& schema, const std::vector<Tensor>& got,
                        const std::vector<Tensor>& want) {
  if (got.size() != want.size())
    return fmt::format("{} outputs where {} are wanted", got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string misfit =
        Misfit(got[i], want[i], ToleranceOf(want[i].dtype(), schema.matrix_op));
    if (!misfit.empty()) return fmt::format("output {}: {}", i, misfit);
  }
  return "";
}

bool SameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!BitEqual(a[i], b[i])) return false;
  }
  return true;
}

class Conformance : public testing::TestWithParam<const OpSchema*> {
 protected:
  const OpSchema& schema() const { return *GetParam(); }
  const Kernel& reference() const {
    return *Registry::Get().Reference(schema().domain, schema().name);
  }

  // Calls fn(sample) for each sample, its text in every failure message.
  template <typename F>
  void ForEachSample(F fn) {
    if (HoldsGraphs(schema())) GTEST_SKIP() << "its branches come from the graph floor";
    ASSERT_NE(Registry::Get().Reference(schema().domain, schema().name), nullptr);
    for (std::string_view text : schema().samples) {
      SCOPED_TRACE(fmt::format("{} \"{}\"", schema().name, text));
      try {
        fn(ParseSample(schema(), text));
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
};

TEST_P(Conformance, HasAReferenceAndSamples) {
  EXPECT_NE(Registry::Get().Reference(schema().domain, schema().name), nullptr);
  if (HoldsGraphs(schema())) return;
  EXPECT_GE(schema().samples.size(), 1u);
  size_t samples_of_op = 0;
  for (const OpSchema* s : Registry::Get().Schemas()) {
    if (s->name == schema().name && s->domain == schema().domain)
      samples_of_op += s->samples.size();
  }
  EXPECT_GE(samples_of_op, 5u) << "all versions together";
}

TEST_P(Conformance, TheReferenceGivesWhatWasInferred) {
  ForEachSample([&](const Sample& sample) {
    const std::vector<ValueInfo> infos = SampleInputs(sample);
    const auto inferred =
        InferOutputs(schema(), sample.attributes, sample.opset, infos, sample.outputs);
    const auto got = RunSample(schema(), reference(), sample, nullptr);
    ASSERT_EQ(got.size(), inferred.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].dtype(), inferred[i].dtype) << "output " << i;
      if (!inferred[i].dims) continue;
      ASSERT_EQ(got[i].shape().rank(), inferred[i].rank()) << "output " << i;
      for (int d = 0; d < inferred[i].rank(); ++d) {
        const Dim& dim = (*inferred[i].dims)[static_cast<size_t>(d)];
        EXPECT_TRUE(!dim.known() || got[i].shape()[d] == dim.value())
            << "output " << i << ": inferred " << ToString(*inferred[i].dims) << ", is "
            << ToString(got[i].shape());
      }
      if (!inferred[i].elements) continue;
      ASSERT_TRUE(IsInteger(got[i].dtype()) || got[i].dtype() == DType::kBool)
          << "elements are for integers and bool";
      const auto values = IntegerValues(got[i]);
      ASSERT_EQ(values.size(), inferred[i].elements->size()) << "output " << i;
      for (size_t e = 0; e < values.size(); ++e) {
        const Dim& element = (*inferred[i].elements)[e];
        EXPECT_TRUE(!element.known() || values[e] == element.value())
            << "output " << i << " element " << e << " is " << values[e];
      }
    }
  });
}

TEST_P(Conformance, FasterKernelsAgreeWithTheReference) {
  const auto kernels = FasterKernels(schema());
  std::map<std::string_view, int> taken;
  ForEachSample([&](const Sample& sample) {
    if (kernels.empty()) return;
    const auto want = RunSample(schema(), reference(), sample, nullptr);
    for (const Kernel* kernel : kernels) {
      for (Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        // kChannelsLast kernels are never handed plain data of rank 3 or more
        if (layout == Layout::kPlain && kernel->layout == LayoutRule::kChannelsLast) continue;
        std::string why;
        const auto got = RunSample(schema(), *kernel, sample, &why, {.layout = layout});
        if (got.empty()) {
          EXPECT_FALSE(why.empty()) << kernel->name << " declines without a word";
          continue;
        }
        ++taken[kernel->name];
        EXPECT_EQ(MisfitOfAll(schema(), got, want), "")
            << kernel->name << (layout == Layout::kPlain ? " plain" : " channels-last");
      }
    }
  });
}

TEST_P(Conformance, WritingOverAnInputChangesNothing) {
  ForEachSample([&](const Sample& sample) {
    for (const Kernel* kernel :
         Registry::Get().Kernels(schema().domain, schema().name, DeviceKind::kCpu)) {
      if (kernel->isa > ActiveIsa()) continue;
      const uint64_t inputs = kernel->in_place | (kernel->view ? 1 : 0);
      if (inputs == 0) continue;
      for (Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        if (layout == Layout::kPlain && kernel->layout == LayoutRule::kChannelsLast) continue;
        std::string why;
        const auto want = RunSample(schema(), *kernel, sample, &why, {.layout = layout});
        if (want.empty()) continue;
        for (size_t i = 0; i < sample.inputs.size() && i < 64; ++i) {
          if (((inputs >> i) & 1) == 0 || !sample.inputs[i].defined()) continue;
          // one shape and item size: a broadcast input is no candidate
          const Tensor& t = sample.inputs[i];
          if (t.bytes() != want[0].bytes() || (!kernel->view && !(t.shape() == want[0].shape())))
            continue;
          const auto got = RunSample(schema(), *kernel, sample, &why,
                                     {.layout = layout, .in_place_input = static_cast<int>(i)});
          if (got.empty()) continue;  // the output's size is known only after the run
          EXPECT_TRUE(SameBits(got, want)) << kernel->name << " over input " << i;
        }
      }
    }
  });
}

TEST_P(Conformance, RunsAreRepeatableWithAnyTeam) {
  ForEachSample([&](const Sample& sample) {
    for (const Kernel* kernel :
         Registry::Get().Kernels(schema().domain, schema().name, DeviceKind::kCpu)) {
      if (kernel->isa > ActiveIsa()) continue;
      const Layout layout =
          kernel->layout == LayoutRule::kChannelsLast ? Layout::kChannelsLast : Layout::kPlain;
      std::string why;
      const auto first =
          RunSample(schema(), *kernel, sample, &why, {.layout = layout, .threads = 2});
      if (first.empty()) continue;
      const auto second =
          RunSample(schema(), *kernel, sample, &why, {.layout = layout, .threads = 2});
      EXPECT_TRUE(SameBits(first, second)) << kernel->name << ": two runs differ";
      const auto alone =
          RunSample(schema(), *kernel, sample, &why, {.layout = layout, .threads = 1});
      if (kernel->rank == 0) {
        EXPECT_TRUE(SameBits(first, alone)) << kernel->name << ": one thread and two differ";
      } else {
        EXPECT_EQ(MisfitOfAll(schema(), alone, first), "")
            << kernel->name << ": one thread and two differ";
      }
    }
  });
}

// ---- inference on what models may hold

// Infers; gives false when it refused with an Error. Anything else that is thrown fails the test.
bool Infers(const OpSchema& schema, const Attributes& attributes, const Sample& sample,
            const std::vector<ValueInfo>& infos, std::vector<ValueInfo>* out = nullptr) {
  std::vector<ValueInfo> inferred;
  try {
    inferred = InferOutputs(schema, attributes, sample.opset, infos, sample.outputs);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::kInternal) << error.what();
    EXPECT_STRNE(error.what(), "");
    return false;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not an Error: " << error.what();
    return false;
  }
  for (const ValueInfo& info : inferred) {
    if (!info.dims) continue;
    for (const Dim& d : *info.dims)
      EXPECT_TRUE(!d.known() || d.value() >= 0) << ToString(*info.dims);
  }
  if (out != nullptr) *out = std::move(inferred);
  return true;
}

TEST_P(Conformance, InfersWithoutShapes) {
  ForEachSample([&](const Sample& sample) {
    std::vector<ValueInfo> infos = SampleInputs(sample);
    for (ValueInfo& info : infos) info.dims.reset(), info.constant.reset();
    EXPECT_TRUE(Infers(schema(), sample.attributes, sample, infos));
  });
}

TEST_P(Conformance, InfersSymbolicShapesWithoutContradiction) {
  ForEachSample([&](const Sample& sample) {
    const std::vector<ValueInfo> full = SampleInputs(sample);
    std::vector<ValueInfo> want;
    ASSERT_TRUE(Infers(schema(), sample.attributes, sample, full, &want));
    for (bool keep_constants : {true, false}) {
      for (bool named : {true, false}) {
        std::vector<ValueInfo> infos = full;
        for (size_t i = 0; i < infos.size(); ++i) {
          if (!infos[i].dims || (keep_constants && sample.constant[i])) continue;
          infos[i].constant.reset();
          for (size_t d = 0; d < infos[i].dims->size(); ++d) {
            Dim& dim = (*infos[i].dims)[d];
            if (dim.Is(1)) continue;  // a symbol would claim that nothing broadcasts
            dim = named ? Dim::Symbol("d" + std::to_string(dim.value())) : Dim();
          }
        }
        std::vector<ValueInfo> got;
        EXPECT_TRUE(Infers(schema(), sample.attributes, sample, infos, &got));
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i].dtype, want[i].dtype) << "output " << i;
          if (!got[i].dims || !want[i].dims) continue;
          ASSERT_EQ(got[i].rank(), want[i].rank()) << "output " << i;
          for (size_t d = 0; d < got[i].dims->size(); ++d) {
            const Dim& g = (*got[i].dims)[d];
            const Dim& w = (*want[i].dims)[d];
            EXPECT_TRUE(!g.known() || !w.known() || g.value() == w.value())
                << "output " << i << ": " << ToString(*got[i].dims) << " against "
                << ToString(*want[i].dims);
          }
        }
      }
    }
  });
}

constexpr int64_t kNonsense[] = {0,
                                 -1,
                                 1,
                                 3,
                                 17,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 int64_t{1} << 40,
                                 -(int64_t{1} << 33)};

// What inference lets through must also run: an Error is fine, another shape or a crash is not.
void RunWhatInfers(const OpSchema& schema, const Sample& sample) {
  std::vector<ValueInfo> inferred;
  if (!Infers(schema, sample.attributes, sample, SampleInputs(sample), &inferred)) return;
  constexpr int64_t kFewElements = 20000;  // odd strides and pads can ask for terabytes
  for (const ValueInfo& info : inferred) {
    int64_t elements = 1;
    for (size_t d = 0; info.static_shape() && d < info.dims->size(); ++d) {
      const int64_t dim = (*info.dims)[d].value();
      if (dim > kFewElements || (elements *= dim) > kFewElements) return;
    }
  }
  try {
    std::string why;
    const auto got =
        RunSample(schema, *Registry::Get().Reference(schema.domain, schema.name), sample, &why);
    for (size_t i = 0; i < got.size(); ++i) {
      if (!inferred[i].static_shape()) continue;
      EXPECT_EQ(got[i].shape(), ToShape(*inferred[i].dims)) << "output " << i;
    }
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::kInternal) << error.what();
  }
}

void InferWithOddAttributes(const OpSchema& schema, const Sample& sample) {
  const std::vector<ValueInfo> infos = SampleInputs(sample);
  const bool small = std::all_of(sample.inputs.begin(), sample.inputs.end(), [](const Tensor& t) {
    return !t.defined() || t.elements() <= 1000;
  });
  for (const AttributeSpec& spec : schema.attributes) {
    SCOPED_TRACE(std::string(spec.name));
    Attributes changed = sample.attributes;
    const auto with = [&](AttributeValue value) {
      changed.Set(std::string(spec.name), std::move(value));
      Infers(schema, changed, sample, infos);
      Sample odd = sample;
      odd.attributes = changed;
      if (small) RunWhatInfers(schema, odd);
    };
    if (spec.type == AttributeType::kInt) {
      for (int64_t v : kNonsense) with(v);
    } else if (spec.type == AttributeType::kInts) {
      with(std::vector<int64_t>{});
      const auto have = sample.attributes.Ints(spec.name);
      for (size_t length : {have.size(), size_t{1}, size_t{2}, size_t{4}, size_t{9}}) {
        for (int64_t v : kNonsense) with(std::vector<int64_t>(length, v));
      }
      for (size_t i = 0; i < have.size(); ++i) {
        for (int64_t v : kNonsense) {
          std::vector<int64_t> values(have.begin(), have.end());
          values[i] = v;
          with(values);
        }
      }
    } else if (spec.type == AttributeType::kFloat) {
      for (float v : {0.0f, -1.0f, 1e30f, std::nanf(""), std::numeric_limits<float>::infinity()})
        with(v);
    } else if (spec.type == AttributeType::kFloats) {
      with(std::vector<float>{});
      with(std::vector<float>(3, std::nanf("")));
    } else if (spec.type == AttributeType::kString) {
      for (const char* v : {"", "SAME_UPPER", "nonsense"}) with(std::string(v));
    } else if (spec.type == AttributeType::kStrings) {
      with(std::vector<std::string>{});
      with(std::vector<std::string>(2, "nonsense"));
    } else if (spec.type == AttributeType::kTensor) {
      with(Tensor::FromValues<float>(Shape{0}, std::vector<float>{}));
      with(Tensor::FromValues<int64_t>(Shape{2, 1}, std::vector<int64_t>{-1, 5}));
    }
  }
}

void InferWithOddShapes(const OpSchema& schema, const Sample& sample) {
  const std::vector<ValueInfo> full = SampleInputs(sample);
  for (size_t i = 0; i < full.size(); ++i) {
    if (!full[i].dims) continue;
    SCOPED_TRACE(fmt::format("input {}", i));
    const auto with = [&](Dims dims) {
      std::vector<ValueInfo> infos = full;
      infos[i].dims = std::move(dims);
      infos[i].constant.reset();
      Infers(schema, sample.attributes, sample, infos);
    };
    with({});
    for (size_t rank = 1; rank <= 9; ++rank) {
      with(Dims(rank, Dim()));
      for (int64_t v : {0, 1, 3}) with(Dims(rank, Dim(v)));
      with(Dims(rank, Dim(int64_t{1} << 40)));
    }
    for (size_t d = 0; d < full[i].dims->size(); ++d) {
      for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{1} << 62}) {
        Dims dims = *full[i].dims;
        dims[d] = v;
        with(dims);
      }
    }
  }
}

void InferWithOddConstants(const OpSchema& schema, const Sample& sample) {
  const std::vector<ValueInfo> full = SampleInputs(sample);
  for (size_t i = 0; i < full.size(); ++i) {
    if (!full[i].constant || full[i].constant->elements() > 64) continue;
    SCOPED_TRACE(fmt::format("constant {}", i));
    for (int64_t v : kNonsense) {
      for (int64_t only = -1; only < full[i].constant->elements(); ++only) {
        Tensor changed = CopyPlain(*full[i].constant);
        DispatchType(changed.dtype(), [&]<typename T>() {
          for (int64_t e = 0; e < changed.elements(); ++e) {
            if (only >= 0 && e != only) continue;
            if constexpr (std::is_integral_v<T>) {
              changed.data<T>()[e] = static_cast<T>(v);
            } else {
              changed.data<T>()[e] =
                  static_cast<T>(v == 17 ? std::nan("") : static_cast<double>(v));
            }
          }
        });
        std::vector<ValueInfo> infos = full;
        infos[i].constant = std::make_shared<const Tensor>(changed);
        Infers(schema, sample.attributes, sample, infos);
      }
    }
  }
}

TEST_P(Conformance, NonsenseIsRefusedInWords) {
  ForEachSample([&](const Sample& sample) {
    InferWithOddAttributes(schema(), sample);
    InferWithOddShapes(schema(), sample);
    InferWithOddConstants(schema(), sample);
  });
}

std::vector<const OpSchema*> AllSchemas() {
  return Registry::Get().Schemas();
}

INSTANTIATE_TEST_SUITE_P(Registry, Conformance, testing::ValuesIn(AllSchemas()),
                         [](const testing::TestParamInfo<const OpSchema*>& info) {
                           return CaseName(*info.param);
                         });

TEST(Registry, KernelsBelongToKnownOps) {
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const OpSchema* s : Registry::Get().Schemas()) known.emplace(s->domain, s->name);
  EXPECT_FALSE(known.empty());
  for (const auto& [domain, name] : known) {
    for (const Kernel* k : Registry::Get().Kernels(domain, name, DeviceKind::kCpu)) {
      EXPECT_TRUE((k->rank == 0) == (k->name == "reference")) << name << " " << k->name;
    }
  }
}

TEST(Registry, VersionsOfAnOpDoNotOverlap) {
  const OpSchema* before = nullptr;
  for (const OpSchema* s : Registry::Get().Schemas()) {
    if (before != nullptr && before->name == s->name && before->domain == s->domain) {
      EXPECT_LE(before->until, s->since) << s->name;
    }
    before = s;
  }
}

}  // namespace
}  // namespace whimbrel

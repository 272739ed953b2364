// Schema, inference and reference of the normalisations that add a residual.

#include "whimbrel/kernels/ops/skip_norm.h"

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

constexpr size_t kSkip = 1, kGamma = 2;

// Skip is like the input, or lacks the batch or has 1 there.
void CheckSkip(const InferContext& c, const Dims& x) {
  if (!c.in(kSkip).dims) return;
  const Dims& skip = *c.in(kSkip).dims;
  bool fits = skip.size() == x.size() || skip.size() + 1 == x.size();
  for (size_t i = 0; fits && i < skip.size(); ++i) {
    const Dim& want = x[x.size() - skip.size() + i];
    const bool batch = i == 0 && skip.size() == 3;
    fits =
        !skip[i].known() || !want.known() || skip[i].Is(want.value()) || (batch && skip[i].Is(1));
  }
  if (!fits) c.Fail("skip " + ToString(skip) + " does not fit the input " + ToString(x));
}

void Infer(InferContext& c) {
  std::optional<Dims> statistic;
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    if (x.size() != 2 && x.size() != 3) c.Fail("input must have rank 2 or 3, is " + ToString(x));
    CheckSkip(c, x);
    for (size_t i = kGamma; i < c.schema().inputs.size(); ++i) CheckDims(c, i, {x.back()});
    statistic = RowStatistic(x, static_cast<int>(x.size()) - 1);
  }
  InferLikeFirst(c);
  c.SetOut(1, DType::kFloat, statistic);
  c.SetOut(2, DType::kFloat, statistic);
  c.SetOut(3, c.in(0).dtype, c.in(0).dims);
}

template <typename T>
struct Parameters {
  Parameters(const OpCall& call, bool centred) {
    const auto at = [&call](size_t i) {
      return call.has(i) ? call.x(i).template data<T>() : nullptr;
    };
    gamma = at(kGamma);
    beta = centred ? at(kGamma + 1) : nullptr;
    bias = at(centred ? kGamma + 2 : kGamma + 1);
  }
  const T* gamma;
  const T* beta;
  const T* bias;
};

void StoreStatistic(const OpCall& call, size_t output, int64_t row, double value) {
  if (call.has_out(output)) call.y(output).data<float>()[row] = static_cast<float>(value);
}

template <typename T>
void RunTyped(const OpCall& call, bool centred) {
  const Tensor& input = call.x(0);
  const int64_t length = input.shape()[-1], skips = call.x(kSkip).elements();
  const double epsilon = call.attrs().Float("epsilon", 1e-12F);
  const Parameters<T> p(call, centred);
  const T* x = input.data<T>();
  const T* skip = call.x(kSkip).template data<T>();
  T* y = call.y(0).template data<T>();
  T* sums = call.has_out(3) ? call.y(3).template data<T>() : nullptr;
  if (input.elements() == 0) return;
  ParallelFor(input.elements() / length, 8192 / length + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto sum = [&](int64_t i) {
        const int64_t at = row * length + i;
        return Widen(x[at]) + Widen(skip[at % skips]) + (p.bias == nullptr ? 0 : Widen(p.bias[i]));
      };
      const RowMoments m = MomentsOf(length, epsilon, centred, sum);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = row * length + i;
        const double value = sum(i);
        if (sums != nullptr) sums[at] = Narrow<T>(value);
        const double beta = p.beta == nullptr ? 0 : Widen(p.beta[i]);
        y[at] = Narrow<T>((value - m.mean) * m.inverse * Widen(p.gamma[i]) + beta);
      }
      StoreStatistic(call, 1, row, m.mean);
      StoreStatistic(call, 2, row, m.inverse);
    }
  });
}

}  // namespace

void RunSkipNorm(const OpCall& call, bool centred) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, centred); });
}

OpSchema SkipNormSchema(std::string_view name, bool centred,
                        std::vector<std::string_view> samples) {
  const auto optional = [](std::string_view formal) {
    return Formal{.name = formal, .types = kFloatTypes, .optional = true, .group = 1};
  };
  const auto statistic = [](std::string_view formal) {
    return Formal{.name = formal, .types = TypeBit(DType::kFloat), .optional = true};
  };
  OpSchema s{.name = name,
             .domain = "com.microsoft",
             .inputs = {{.name = "input", .types = kFloatTypes, .group = 1},
                        {.name = "skip", .types = kFloatTypes, .group = 1},
                        {.name = "gamma", .types = kFloatTypes, .group = 1}},
             .outputs = {{.name = "output", .types = kFloatTypes, .group = 1},
                         statistic("mean"),
                         statistic("inv_std_var"),
                         optional("input_skip_bias_sum")},
             .attributes = {{.name = "epsilon",
                             .type = AttributeType::kFloat,
                             .note = "default 1e-12, added to the variance"}},
             .infer = Infer,
             .cost = NormCost,
             .samples = std::move(samples),
             .doc = "a residual is added, then rows are normalised"};
  if (centred) s.inputs.push_back(optional("beta"));
  s.inputs.push_back(optional("bias"));
  return s;
}

}  // namespace whimbrel

// Sample: the case strings' parser and the one-call runner.

#include "whimbrel/kernels/sample.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace whimbrel {
namespace {

[[noreturn]] void FailWord(const OpSchema& schema, std::string_view word, std::string_view what) {
  throw Error(Code::kInvalidArgument, fmt::format("{} sample: \"{}\": {}", schema.name, word, what),
              "whimbrel/kernels/sample.h has the grammar");
}

// splitmix64: the same numbers with every library and compiler.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  uint64_t state_;
};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

double ParseDouble(const OpSchema& schema, std::string_view word, std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') FailWord(schema, word, fmt::format("{} is no number", text));
  return value;
}

template <typename T>
T ParseInteger(const OpSchema& schema, std::string_view word, std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    FailWord(schema, word, fmt::format("{} is no integer that fits", text));
  }
  return value;
}

DType ShortType(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"f32", DType::kFloat},     {"f64", DType::kDouble}, {"f16", DType::kFloat16},
      {"bf16", DType::kBFloat16}, {"i8", DType::kInt8},    {"i16", DType::kInt16},
      {"i32", DType::kInt32},     {"i64", DType::kInt64},  {"u8", DType::kUint8},
      {"u16", DType::kUint16},    {"u32", DType::kUint32}, {"u64", DType::kUint64},
      {"bool", DType::kBool}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return DType::kUndefined;
}

void SetExact(const OpSchema& schema, std::string_view word, Tensor& tensor, int64_t index,
              std::string_view text) {
  DispatchType(tensor.dtype(), [&]<typename T>() {
    T& element = tensor.data<T>()[index];
    if constexpr (std::is_same_v<T, bool>) {
      if (text != "0" && text != "1" && text != "false" && text != "true") {
        FailWord(schema, word, "a bool is 0, 1, false or true");
      }
      element = text == "1" || text == "true";
    } else if constexpr (std::is_integral_v<T>) {
      element = ParseInteger<T>(schema, word, text);
    } else {
      element = static_cast<T>(ParseDouble(schema, word, text));
    }
  });
}

void FillRandom(Tensor& tensor, std::optional<std::pair<double, double>> range, Random& random) {
  DispatchType(tensor.dtype(), [&]<typename T>() {
    constexpr bool kFloating = IsFloating(kDTypeOf<T>);
    const double low = range ? range->first : (kFloating ? -2 : 0);
    const double high = range ? range->second : (kFloating ? 2 : 9);
    for (T& element : tensor.values<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        element = (random.Next() & 1) != 0;
      } else if constexpr (kFloating) {
        element = static_cast<T>(low + (high - low) * random.Unit());
      } else {
        // integers: both ends included
        const auto first = static_cast<int64_t>(low);
        const auto count = static_cast<uint64_t>(static_cast<int64_t>(high) - first) + 1;
        element = static_cast<T>(first + static_cast<int64_t>(random.Next() % count));
      }
    }
  });
}

// NaN, +Inf and -Inf at places that differ from input to input.
void PutNonFinite(Tensor& tensor, int64_t input) {
  const int64_t count = tensor.elements();
  if (count == 0 || !IsFloating(tensor.dtype())) return;
  const double inf = std::numeric_limits<double>::infinity();
  SetElementFromDouble(tensor, (input + 2 * count / 3) % count, -inf);
  SetElementFromDouble(tensor, (input + count / 3) % count, inf);
  SetElementFromDouble(tensor, input % count, std::numeric_limits<double>::quiet_NaN());
}

struct ParsedTensor {
  Tensor tensor;
  bool exact = false;
  std::optional<std::pair<double, double>> range;
};

// TYPE:DIMS, then "={...}" or "@LO..HI".
ParsedTensor ParseTensor(const OpSchema& schema, std::string_view word) {
  ParsedTensor parsed;
  const size_t colon = word.find(':');
  const DType type = ShortType(word.substr(0, colon));
  if (colon == std::string_view::npos || type == DType::kUndefined) {
    FailWord(schema, word, "an input is TYPE:DIMS");
  }
  std::string_view rest = word.substr(colon + 1);
  const size_t mark = std::min(rest.find_first_of("=@"), rest.size());
  parsed.tensor = Tensor::Host(type, ParseShape(rest.substr(0, mark)));
  rest.remove_prefix(mark);
  if (rest.empty()) return parsed;
  if (rest.front() == '@') {
    const size_t dots = rest.find("..");
    if (dots == std::string_view::npos) FailWord(schema, word, "a range is @LO..HI");
    parsed.range.emplace(ParseDouble(schema, word, rest.substr(1, dots - 1)),
                         ParseDouble(schema, word, rest.substr(dots + 2)));
    if (!(parsed.range->first <= parsed.range->second)) FailWord(schema, word, "LO is above HI");
    return parsed;
  }
  if (rest.size() < 3 || rest[1] != '{' || rest.back() != '}') {
    FailWord(schema, word, "exact values are ={v,v,...}");
  }
  const auto values = Split(rest.substr(2, rest.size() - 3), ',');
  if (static_cast<int64_t>(values.size()) != parsed.tensor.elements()) {
    FailWord(schema, word,
             fmt::format("{} values for {} elements", values.size(), parsed.tensor.elements()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    SetExact(schema, word, parsed.tensor, static_cast<int64_t>(i), values[i]);
  }
  parsed.exact = true;
  return parsed;
}

AttributeValue ParseAttribute(const OpSchema& schema, std::string_view word, AttributeType type,
                              std::string_view text) {
  switch (type) {
    case AttributeType::kInt:
      return ParseInteger<int64_t>(schema, word, text);
    case AttributeType::kFloat:
      return static_cast<float>(ParseDouble(schema, word, text));
    case AttributeType::kString:
      return std::string(text);
    case AttributeType::kTensor: {
      ParsedTensor parsed = ParseTensor(schema, text);
      if (!parsed.exact) FailWord(schema, word, "an attribute tensor needs exact values");
      return parsed.tensor;
    }
    case AttributeType::kInts: {
      std::vector<int64_t> values;
      for (std::string_view v : Split(text, ',')) {
        values.push_back(ParseInteger<int64_t>(schema, word, v));
      }
      return values;
    }
    case AttributeType::kFloats: {
      std::vector<float> values;
      for (std::string_view v : Split(text, ',')) {
        values.push_back(static_cast<float>(ParseDouble(schema, word, v)));
      }
      return values;
    }
    case AttributeType::kStrings: {
      std::vector<std::string> values;
      for (std::string_view v : Split(text, ',')) values.emplace_back(v);
      return values;
    }
    case AttributeType::kGraph:
      break;
  }
  FailWord(schema, word, "a sample cannot hold a graph");
}

// What stands in the text beside inputs and attributes.
struct Options {
  uint64_t seed = 1;
  bool non_finite = false;
};

void ParseNamed(const OpSchema& schema, std::string_view word, Sample& sample, Options& options) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  const auto spec = std::find_if(schema.attributes.begin(), schema.attributes.end(),
                                 [&](const AttributeSpec& a) { return a.name == name; });
  // attributes first: RandomUniform and others have a "seed" of their own
  if (spec != schema.attributes.end()) {
    sample.attributes.Set(std::string(name), ParseAttribute(schema, word, spec->type, value));
  } else if (name == "opset") {
    sample.opset = ParseInteger<int>(schema, word, value);
    if (sample.opset < schema.since || sample.opset >= schema.until) {
      FailWord(schema, word,
               fmt::format("this entry is for opsets [{}, {})", schema.since, schema.until));
    }
  } else if (name == "outputs") {
    sample.outputs = ParseInteger<size_t>(schema, word, value);
  } else if (name == "seed") {
    options.seed = ParseInteger<uint64_t>(schema, word, value);
  } else if (name == "nan") {
    options.non_finite = value == "1";
  } else {
    FailWord(schema, word, "the schema has no such attribute");
  }
}

size_t RequiredOutputs(const OpSchema& schema) {
  const auto count = std::count_if(schema.outputs.begin(), schema.outputs.end(),
                                   [](const Formal& f) { return !f.optional; });
  return std::max<size_t>(1, static_cast<size_t>(count));
}

class HostAllocator final : public OutputAllocator {
 public:
  void Allocate(Tensor& out, DType dtype, const Shape& shape) override {
    out = Tensor::Host(dtype, shape);
  }
};

Tensor InLayout(const Tensor& tensor, Layout layout) {
  if (layout == Layout::kPlain) return tensor;
  Tensor converted =
      Tensor::Host(tensor.dtype(), tensor.shape()).WithLayout(tensor.shape(), layout);
  ConvertLayout(tensor, converted);
  return converted;
}

// Output memory starts as all ones (NaN for floats), so that an element nobody writes is seen.
Tensor FreshOutput(DType dtype, const Shape& shape, Layout layout) {
  Tensor fresh = Tensor::Host(dtype, shape).WithLayout(shape, layout);
  if (fresh.bytes() > 0 && dtype != DType::kBool) std::memset(fresh.raw(), 0xFF, fresh.bytes());
  if (fresh.bytes() > 0 && dtype == DType::kBool) std::memset(fresh.raw(), 1, fresh.bytes());
  return fresh;
}

// Which inputs go channels-last; empty when the kernel or the sample has none.
std::vector<bool> ChannelsLastInputs(const Kernel& kernel, const Sample& sample) {
  std::vector<bool> chosen(sample.inputs.size(), false);
  if (kernel.layout == LayoutRule::kPlain || sample.inputs.empty()) return {};
  int rank = 0;
  if (kernel.layout == LayoutRule::kChannelsLast) {
    if (sample.inputs[0].defined()) rank = sample.inputs[0].shape().rank();
  } else {
    for (const Tensor& t : sample.inputs) {
      if (t.defined()) rank = std::max(rank, t.shape().rank());
    }
  }
  if (rank < 3) return {};
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Tensor& t = sample.inputs[i];
    // input 1 of a convolution holds the weights, which have the data's rank and stay plain
    const bool data = kernel.layout == LayoutRule::kFollow || i != 1;
    chosen[i] = data && t.defined() && t.shape().rank() == rank;
  }
  return chosen;
}

}  // namespace

Sample ParseSample(const OpSchema& schema, std::string_view text) {
  Sample sample;
  sample.opset = schema.since;
  sample.outputs = RequiredOutputs(schema);
  Options options;
  struct Pending {
    size_t input;
    std::optional<std::pair<double, double>> range;
  };
  std::vector<Pending> random_inputs;
  for (std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    if (word == "-") {
      sample.inputs.emplace_back();
      sample.constant.push_back(false);
      continue;
    }
    const size_t colon = word.find(':');
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos && (colon == std::string_view::npos || equals < colon)) {
      ParseNamed(schema, word, sample, options);
      continue;
    }
    const bool marked = word.back() == '!';
    ParsedTensor parsed = ParseTensor(schema, marked ? word.substr(0, word.size() - 1) : word);
    if (!parsed.exact) random_inputs.push_back({sample.inputs.size(), parsed.range});
    sample.constant.push_back(marked || parsed.exact);
    sample.inputs.push_back(std::move(parsed.tensor));
  }
  for (const Pending& pending : random_inputs) {
    Random random(options.seed * 1000 + pending.input);
    FillRandom(sample.inputs[pending.input], pending.range, random);
    if (options.non_finite) {
      PutNonFinite(sample.inputs[pending.input], static_cast<int64_t>(pending.input));
    }
  }
  return sample;
}

std::vector<ValueInfo> SampleInputs(const Sample& sample) {
  std::vector<ValueInfo> infos(sample.inputs.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor& t = sample.inputs[i];
    if (!t.defined()) continue;
    infos[i].dtype = t.dtype();
    infos[i].dims = ToDims(t.shape());
    if (sample.constant[i]) infos[i].constant = std::make_shared<const Tensor>(t);
  }
  return infos;
}

std::vector<Tensor> RunSample(const OpSchema& schema, const Kernel& kernel, const Sample& sample,
                              std::string* why, const SampleRun& how) {
  const std::vector<ValueInfo> infos = SampleInputs(sample);
  const std::vector<ValueInfo> inferred =
      InferOutputs(schema, sample.attributes, sample.opset, infos, sample.outputs);

  std::vector<bool> channels_last(sample.inputs.size(), false);
  if (how.layout == Layout::kChannelsLast) {
    channels_last = ChannelsLastInputs(kernel, sample);
    if (channels_last.empty()) {
      *why = "the kernel or the sample has no channels-last form";
      return {};
    }
  }

  // Planning sees descriptions, and data of constants only; running sees all data.
  std::vector<Tensor> planned_in(sample.inputs.size());
  std::vector<Tensor> run_in(sample.inputs.size());
  std::vector<const Tensor*> in(sample.inputs.size(), nullptr);
  OpCall call;
  call.schema = &schema;
  call.attributes = &sample.attributes;
  call.opset = sample.opset;
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& t = sample.inputs[i];
    if (!t.defined()) continue;
    const Layout layout = channels_last[i] ? Layout::kChannelsLast : Layout::kPlain;
    run_in[i] = InLayout(t, layout);
    const bool constant = sample.constant[i];
    planned_in[i] = constant ? run_in[i] : Tensor::Described(t.dtype(), t.shape(), layout);
    in[i] = &planned_in[i];
    if (constant && i < 64) call.constant_inputs |= uint64_t{1} << i;
  }
  std::vector<Tensor> planned_out(sample.outputs);
  std::vector<Tensor> run_out(sample.outputs);
  std::vector<Tensor*> out(sample.outputs, nullptr);
  for (size_t i = 0; i < out.size(); ++i) {
    const ValueInfo& info = inferred[i];
    const bool known = info.static_shape();
    const Shape shape = known ? ToShape(*info.dims) : Shape{0};
    const bool last = how.layout == Layout::kChannelsLast && known && shape.rank() >= 3;
    const Layout layout = last ? Layout::kChannelsLast : Layout::kPlain;
    planned_out[i] = Tensor::Described(info.dtype, shape, layout);
    run_out[i] = known ? FreshOutput(info.dtype, shape, layout) : planned_out[i];
    out[i] = &planned_out[i];
  }
  HostAllocator allocator;
  call.in = in;
  call.out = out;
  call.allocator = &allocator;

  if (kernel.accepts != nullptr && !kernel.accepts(call, why)) return {};
  std::unique_ptr<KernelState> state;
  const auto stream = OpenDevice("cpu:0")->CreateStream({.threads = how.threads});
  // on the stream, whose team shapes what is prepared
  stream->Run([&] {
    if (kernel.prepare != nullptr) state = kernel.prepare(call);
  });
  call.state = state.get();
  const size_t workspace_bytes = kernel.workspace != nullptr ? kernel.workspace(call) : 0;
  const auto workspace = Buffer::AllocateHost(workspace_bytes);
  if (workspace_bytes > 0) std::memset(workspace->data(), 0xFF, workspace_bytes);

  if (how.in_place_input >= 0) {
    const auto shared = static_cast<size_t>(how.in_place_input);
    if (shared >= run_in.size() || !run_in[shared].defined() || run_out.empty() ||
        !run_out[0].has_data() || run_in[shared].bytes() != run_out[0].bytes()) {
      *why = "output 0 and that input differ in size";
      return {};
    }
    // A copy in the output's memory: the sample must stay as it is.
    if (run_out[0].bytes() > 0) {
      std::memcpy(run_out[0].raw(), run_in[shared].raw(), run_out[0].bytes());
    }
    run_in[shared].Bind(run_out[0].raw());
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] != nullptr) in[i] = &run_in[i];
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = &run_out[i];

  stream->Run([&] { kernel.run(call, {workspace->data(), workspace_bytes}, *stream); });
  for (Tensor& t : run_out) {
    if (t.defined() && t.layout() != Layout::kPlain) t = CopyPlain(t);
  }
  return run_out;
}

}  // namespace whimbrel

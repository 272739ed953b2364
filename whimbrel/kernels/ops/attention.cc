// Attention: Y = softmax(softcap(scale Q K^T) + mask) V for each head; query heads share the key
// and value heads in groups. Rows that may attend to nothing give 0.
//
// in   Q          [batch, q heads, q len, head] or [batch, q len, q heads * head]
//      K          [batch, kv heads, kv len, head] or [batch, kv len, kv heads * head]
//      V          [batch, kv heads, kv len, v head] or [batch, kv len, kv heads * v head]
//      attn_mask  broadcastable to [batch, q heads, q len, total]; a shorter last dim forbids the
//                 rest; bool: true = attend; numbers are added to the scores
//      past_key, past_value  [batch, kv heads, past, head], put before K and V: total = past +
//                 kv len
//      nonpad_kv_seqlen      [batch] i64 (from 24): keys from it on are padding
// attr is_causal  key j is seen from query i when j <= i + offset; offset = past, or
//                 nonpad_kv_seqlen - q len, or 0
//      left_window_size, right_window_size (from 25): bounds on both sides of i + offset; -1: none
//      scale      default 1 / sqrt(head); softcap s: s tanh(score / s), 0 (default): none
//      q_num_heads, kv_num_heads  needed for rank 3
//      qk_matmul_output_mode  0: scaled scores, 1: after softcap, 2: with mask, 3: probabilities
//      softmax_precision      type of the softmax; it is in double here
// out  Y          as Q, with v head; present_key, present_value  [batch, kv heads, total, head]
//      qk_matmul_output  [batch, q heads, q len, total]
// types: Q, K, Y one of f32 | f64 | f16 | bf16, V one of them too
// Source: ONNX operator Attention (23, 24, 25).

#include <limits>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

enum Input : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };
enum Output : size_t { kY, kPresentKey, kPresentValue, kScores };
constexpr int64_t kMost = int64_t{1} << 31;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Rows of scores are computed in this many chunks, each with scratch of its own; more than any team
// has threads that a row of scores would keep busy.
constexpr int64_t kChunks = 64;

int64_t ReadHeads(std::string_view op, const Attributes& attributes, std::string_view name) {
  const int64_t heads = attributes.Int(name, 0);
  if (heads < 1 || heads > kMost) {
    throw Error(Code::kInvalidData, fmt::format("{}: {} is {}", op, name, heads),
                "inputs of rank 3 need it to find the heads");
  }
  return heads;
}

void CheckAttributes(const InferContext& c) {
  const int64_t mode = c.attrs().Int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) c.Fail(fmt::format("qk_matmul_output_mode is 0 to 3, is {}", mode));
  for (std::string_view name : {"left_window_size", "right_window_size"}) {
    const int64_t size = c.attrs().Int(name, -1);
    if (size < -1) c.Fail(fmt::format("{} is {}; -1 means no bound", name, size));
  }
  const int64_t precision = c.attrs().Int("softmax_precision", 1);
  if (precision != 1 && precision != 10 && precision != 11 && precision != 16)
    c.Fail(fmt::format("softmax_precision {} is no float type", precision));
  const double softcap = c.attrs().Float("softcap", 0);
  if (!(softcap >= 0)) c.Fail(fmt::format("softcap must not be negative, is {}", softcap));
}

// One of Q, K and V as [batch, heads, len, size].
Dims FourDims(const InferContext& c, size_t input, std::string_view heads_name) {
  const auto& dims = c.in(input).dims;
  if (!dims) return Dims(4);
  if (dims->size() == 4) return *dims;
  if (dims->size() != 3) {
    c.Fail(fmt::format("{} must have rank 3 or 4, is {}", c.schema().inputs[input].name,
                       ToString(*dims)));
  }
  const int64_t heads = ReadHeads(c.schema().name, c.attrs(), heads_name);
  const Dim& packed = (*dims)[2];
  if (packed.known() && packed.value() % heads != 0) {
    c.Fail(fmt::format("{} {} does not divide into {} heads", c.schema().inputs[input].name,
                       ToString(*dims), heads));
  }
  return {(*dims)[0], heads, (*dims)[1], FloorDiv(packed, Dim(heads))};
}

void CheckMask(const InferContext& c, const Dims& scores) {
  if (!c.has(kMask) || !c.in(kMask).dims) return;
  const Dims& mask = *c.in(kMask).dims;
  bool fits = !mask.empty() && mask.size() <= 4;
  for (size_t i = 0; fits && i < mask.size(); ++i) {
    const Dim& want = scores[4 - mask.size() + i];
    const bool last = i + 1 == mask.size();
    if (mask[i].known() && want.known())
      fits = last ? mask[i].value() <= want.value() : mask[i].Is(1) || !Differ(mask[i], want);
  }
  if (!fits) {
    c.Fail(fmt::format("attn_mask {} does not broadcast to the scores {}", ToString(mask),
                       ToString(scores)));
  }
}

void Infer(InferContext& c) {
  CheckAttributes(c);
  const Dims q = FourDims(c, kQ, "q_num_heads"), k = FourDims(c, kK, "kv_num_heads"),
             v = FourDims(c, kV, "kv_num_heads");
  if (c.has(kPastKey) != c.has(kPastValue)) c.Fail("past_key and past_value go together");
  if (c.has(kLengths) && c.has(kPastKey))
    c.Fail("nonpad_kv_seqlen and past_key exclude each other");
  if (c.in(kQ).dims && c.in(kK).dims && c.in(kV).dims &&
      (c.in(kQ).rank() != c.in(kK).rank() || c.in(kQ).rank() != c.in(kV).rank())) {
    c.Fail("Q, K and V must have one rank");
  }
  if (Differ(q[0], k[0]) || Differ(q[3], k[3]) || Differ(k[0], v[0]) || Differ(k[1], v[1]) ||
      Differ(k[2], v[2])) {
    c.Fail(fmt::format("heads of Q {}, K {} and V {} do not fit", ToString(q), ToString(k),
                       ToString(v)),
           "[batch, heads, length, size]; K and V share all but the size, Q and K batch and size");
  }
  if (k[1].known() && q[1].known() && (k[1].Is(0) || q[1].value() % k[1].value() != 0)) {
    c.Fail(fmt::format("{} query heads cannot share {} key heads", q[1].value(), k[1].value()));
  }
  Dim past = 0;
  if (c.has(kPastKey)) {
    const auto& key = c.in(kPastKey).dims;
    past = key && key->size() == 4 ? (*key)[2] : Dim();
    CheckDims(c, kPastKey, {k[0], k[1], past, k[3]});
    CheckDims(c, kPastValue, {k[0], k[1], past, v[3]});
  }
  CheckDims(c, kLengths, {q[0]});
  const Dim total = c.has(kPastKey) ? past + k[2] : k[2];
  const Dims scores{q[0], q[1], q[2], total};
  CheckMask(c, scores);
  const DType type = c.in(kQ).dtype, v_type = c.in(kV).dtype;
  if (!c.in(kQ).dims) {
    c.SetOut(kY, type, std::nullopt);
  } else if (c.in(kQ).rank() == 3) {
    c.SetOut(kY, type, Dims{q[0], q[2], q[1] * v[3]});
  } else {
    c.SetOut(kY, type, Dims{q[0], q[1], q[2], v[3]});
  }
  c.SetOut(kPresentKey, type, Dims{k[0], k[1], total, k[3]});
  c.SetOut(kPresentValue, v_type, Dims{v[0], v[1], total, v[3]});
  c.SetOut(kScores, type, scores);
}

struct Sizes {
  int64_t batch, q_heads, kv_heads, q_len, kv_len, past, head, v_head;
  bool packed;

  int64_t total() const { return past + kv_len; }
  // Elements before row `row` of head `h` of a [batch, heads, len, size] or packed tensor.
  int64_t At(int64_t b, int64_t h, int64_t row, int64_t heads, int64_t len, int64_t size) const {
    return (packed ? (b * len + row) * heads + h : (b * heads + h) * len + row) * size;
  }
};

Sizes SizesOf(const OpCall& call) {
  const Shape& q = call.x(kQ).shape();
  const Shape& k = call.x(kK).shape();
  const Shape& v = call.x(kV).shape();
  Sizes s{};
  s.packed = q.rank() == 3;
  s.batch = q[0];
  s.q_heads = s.packed ? ReadHeads(call.schema->name, call.attrs(), "q_num_heads") : q[1];
  s.kv_heads = s.packed ? ReadHeads(call.schema->name, call.attrs(), "kv_num_heads") : k[1];
  s.q_len = q[-2], s.kv_len = k[-2];
  if (s.packed) s.q_len = q[1], s.kv_len = k[1];
  s.head = s.packed ? q[2] / s.q_heads : q[3];
  s.v_head = s.packed ? v[2] / s.kv_heads : v[3];
  s.past = call.has(kPastKey) ? call.x(kPastKey).shape()[2] : 0;
  return s;
}

Cost AttentionCost(const OpCall& call) {
  const Sizes s = SizesOf(call);
  Cost cost = DefaultCost(call);
  cost.flops = 2 * static_cast<double>(s.batch * s.q_heads) *
               static_cast<double>(s.q_len * s.total()) * static_cast<double>(s.head + s.v_head);
  return cost;
}

// Doubles: all keys, all values, and for each chunk a row of scores and one of results.
size_t Workspace(const OpCall& call) {
  const Sizes s = SizesOf(call);
  return sizeof(double) *
         static_cast<size_t>(s.batch * s.kv_heads * s.total() * (s.head + s.v_head) +
                             kChunks * (s.total() + s.v_head + s.head));
}

// Past and new rows as [batch, kv heads, total, size]: as doubles, and in the output `present`.
template <typename T>
void Join(const OpCall& call, const Sizes& s, size_t input, size_t past_input, size_t output,
          int64_t size, double* wide) {
  const T* now = call.x(input).template data<T>();
  const T* past = call.has(past_input) ? call.x(past_input).template data<T>() : nullptr;
  T* present = call.has_out(output) ? call.y(output).template data<T>() : nullptr;
  const int64_t total = s.total();
  ParallelFor(s.batch * s.kv_heads * total, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row % total, h = row / total % s.kv_heads, b = row / total / s.kv_heads;
      const T* from = at < s.past ? past + ((b * s.kv_heads + h) * s.past + at) * size
                                  : now + s.At(b, h, at - s.past, s.kv_heads, s.kv_len, size);
      for (int64_t i = 0; i < size; ++i) {
        wide[row * size + i] = static_cast<double>(from[i]);
        if (present != nullptr) present[row * size + i] = from[i];
      }
    }
  });
}

// What is added to the score of key j, seen from one query.
class Bias {
 public:
  Bias(const OpCall& call, const Sizes& s) : call_(call), s_(s) {
    causal_ = call.attrs().Int("is_causal", 0) != 0;
    left_ = call.attrs().Int("left_window_size", -1);
    right_ = call.attrs().Int("right_window_size", -1);
    if (!call.has(kMask)) return;
    mask_ = &call.x(kMask);
    const Shape& shape = mask_->shape();
    const auto strides = shape.Strides();
    for (int d = 0; d < shape.rank(); ++d) {
      const auto to = static_cast<size_t>(4 - shape.rank() + d);
      strides_[to] = shape[d] == 1 ? 0 : strides[static_cast<size_t>(d)];
    }
    mask_length_ = shape[-1];
  }
  void Select(int64_t b, int64_t h, int64_t row) {
    base_ = b * strides_[0] + h * strides_[1] + row * strides_[2];
    padding_from_ = s_.total();
    int64_t offset = s_.past;
    if (call_.has(kLengths)) {
      padding_from_ = call_.x(kLengths).data<int64_t>()[b];
      offset = padding_from_ - s_.q_len;
    }
    place_ = row + offset;
  }
  double operator()(int64_t j) const {
    if (j >= padding_from_ || (causal_ && j > place_)) return kMinusInfinity;
    if (left_ >= 0 && j < place_ - left_) return kMinusInfinity;
    if (right_ >= 0 && j - place_ > right_) return kMinusInfinity;
    if (mask_ == nullptr) return 0;
    if (j >= mask_length_) return kMinusInfinity;
    const double value = ElementAsDouble(*mask_, base_ + j * strides_[3]);
    if (mask_->dtype() == DType::kBool) return value != 0 ? 0 : kMinusInfinity;
    return value;
  }

 private:
  const OpCall& call_;
  const Sizes& s_;
  const Tensor* mask_ = nullptr;
  std::array<int64_t, 4> strides_{};
  int64_t mask_length_ = 0, base_ = 0, place_ = 0, padding_from_ = 0;
  int64_t left_ = -1, right_ = -1;
  bool causal_ = false;
};

// scores to probabilities; all 0 when no key may be seen.
void Softmax(double* scores, int64_t count, bool masked) {
  double highest = kMinusInfinity, sum = 0;
  for (int64_t j = 0; j < count; ++j) highest = std::max(highest, scores[j]);
  if (masked || highest == kMinusInfinity) {
    // NaN scores are lower than nothing; they must stay NaN
    for (int64_t j = 0; j < count; ++j)
      scores[j] = masked || !std::isnan(scores[j]) ? 0 : scores[j];
    return;
  }
  for (int64_t j = 0; j < count; ++j) sum += scores[j] = std::exp(scores[j] - highest);
  for (int64_t j = 0; j < count; ++j) scores[j] /= sum;
}

double Dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
class Rows {
 public:
  Rows(const OpCall& call, const Sizes& s, const double* keys, const double* values)
      : call_(call), s_(s), keys_(keys), values_(values) {
    scale_ = call.attrs().Has("scale") ? call.attrs().Float("scale", 1)
                                       : 1 / std::sqrt(static_cast<double>(s.head));
    softcap_ = call.attrs().Float("softcap", 0);
    mode_ = call.attrs().Int("qk_matmul_output_mode", 0);
    if (call.has_out(kScores)) out_scores_ = call.y(kScores).template data<T>();
  }
  // One query of one head; scratch: scores, query, result.
  void Run(int64_t task, Bias& bias, double* scratch) const {
    const int64_t row = task % s_.q_len, h = task / s_.q_len % s_.q_heads;
    const int64_t b = task / s_.q_len / s_.q_heads, total = s_.total();
    const int64_t kv = b * s_.kv_heads + h / (s_.q_heads / s_.kv_heads);
    double* const scores = scratch;
    double* const query = scores + total;
    double* const result = query + s_.head;
    const T* q = call_.x(kQ).template data<T>() + s_.At(b, h, row, s_.q_heads, s_.q_len, s_.head);
    for (int64_t i = 0; i < s_.head; ++i) query[i] = Widen(q[i]);
    bias.Select(b, h, row);
    bool masked = true;
    for (int64_t j = 0; j < total; ++j)
      scores[j] = Dot(query, keys_ + (kv * total + j) * s_.head, s_.head) * scale_;
    Show(task, scores, 0);
    for (int64_t j = 0; softcap_ > 0 && j < total; ++j)
      scores[j] = softcap_ * std::tanh(scores[j] / softcap_);
    Show(task, scores, 1);
    for (int64_t j = 0; j < total; ++j) {
      const double add = bias(j);
      masked = masked && add == kMinusInfinity;
      scores[j] += add;
    }
    Show(task, scores, 2);
    Softmax(scores, total, masked);
    Show(task, scores, 3);
    std::fill_n(result, s_.v_head, 0.0);
    for (int64_t j = 0; j < total; ++j) {
      const double* value = values_ + (kv * total + j) * s_.v_head;
      // keys that are not seen may hold anything
      if (scores[j] == 0) continue;
      for (int64_t i = 0; i < s_.v_head; ++i) result[i] += scores[j] * value[i];
    }
    T* y = call_.y(kY).template data<T>() + s_.At(b, h, row, s_.q_heads, s_.q_len, s_.v_head);
    for (int64_t i = 0; i < s_.v_head; ++i) y[i] = Narrow<T>(result[i]);
  }

 private:
  void Show(int64_t task, const double* scores, int64_t mode) const {
    if (out_scores_ == nullptr || mode != mode_) return;
    for (int64_t j = 0; j < s_.total(); ++j)
      out_scores_[task * s_.total() + j] = Narrow<T>(scores[j]);
  }

  const OpCall& call_;
  const Sizes& s_;
  const double* keys_;
  const double* values_;
  double scale_ = 1, softcap_ = 0;
  int64_t mode_ = 0;
  T* out_scores_ = nullptr;
};

void CheckLengths(const OpCall& call, const Sizes& s) {
  if (!call.has(kLengths)) return;
  for (int64_t length : call.x(kLengths).values<int64_t>()) {
    if (length >= 0 && length <= s.total()) continue;
    throw Error(Code::kInvalidData, fmt::format("{}: nonpad_kv_seqlen holds {}, there are {} keys",
                                                call.schema->name, length, s.total()));
  }
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const Sizes s = SizesOf(call);
  CheckLengths(call, s);
  const int64_t kv_rows = s.batch * s.kv_heads * s.total();
  auto* const keys = static_cast<double*>(static_cast<void*>(workspace.data()));
  double* const values = keys + kv_rows * s.head;
  double* const scratch = values + kv_rows * s.v_head;
  DispatchReference<kFloatTypes>(call, call.x(kK).dtype(), [&]<typename T>() {
    Join<T>(call, s, kK, kPastKey, kPresentKey, s.head, keys);
  });
  DispatchReference<kFloatTypes>(call, call.x(kV).dtype(), [&]<typename T>() {
    Join<T>(call, s, kV, kPastValue, kPresentValue, s.v_head, values);
  });
  const int64_t tasks = s.batch * s.q_heads * s.q_len;
  DispatchReference<kFloatTypes>(call, call.x(kQ).dtype(), [&]<typename T>() {
    const Rows<T> rows(call, s, keys, values);
    ParallelFor(kChunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        Bias bias(call, s);
        const int64_t last = tasks * (chunk + 1) / kChunks;
        for (int64_t task = tasks * chunk / kChunks; task < last; ++task)
          rows.Run(task, bias, scratch + chunk * (s.total() + s.head + s.v_head));
      }
    });
  });
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const auto present = [](std::string_view name, int group) {
    return Formal{.name = name, .types = kFloatTypes, .optional = true, .group = group};
  };
  OpSchema s{.name = "Attention",
             .since = since,
             .until = until,
             .inputs = {{.name = "Q", .types = kFloatTypes, .group = 1},
                        {.name = "K", .types = kFloatTypes, .group = 1},
                        {.name = "V", .types = kFloatTypes, .group = 2},
                        {.name = "attn_mask", .types = kAllTypes, .optional = true},
                        present("past_key", 1),
                        present("past_value", 2)},
             .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1},
                         present("present_key", 1),
                         present("present_value", 2),
                         present("qk_matmul_output", 1)},
             .infer = Infer,
             .cost = AttentionCost,
             .samples = std::move(samples),
             .matrix_op = true,
             .doc = "scaled dot product attention"};
  if (since >= 24) {
    s.inputs.push_back(
        {.name = "nonpad_kv_seqlen", .types = TypeBit(DType::kInt64), .optional = true});
  }
  const auto integer = [&](std::string_view name, std::string_view note) {
    s.attributes.push_back({.name = name, .type = AttributeType::kInt, .note = note});
  };
  integer("is_causal", "1: no key behind the query");
  integer("kv_num_heads", "needed for rank 3");
  integer("q_num_heads", "needed for rank 3");
  integer("qk_matmul_output_mode", "0: scores, 1: softcapped, 2: with mask, 3: probabilities");
  integer("softmax_precision", "type of the softmax");
  s.attributes.push_back(
      {.name = "scale", .type = AttributeType::kFloat, .note = "default 1 / sqrt(head size)"});
  s.attributes.push_back(
      {.name = "softcap", .type = AttributeType::kFloat, .note = "0 (default): none"});
  if (since >= 25) {
    integer("left_window_size", "keys seen before the query; -1 (default): all");
    integer("right_window_size", "keys seen behind the query; -1 (default): all");
  }
  return s;
}

WHIMBREL_REGISTER(Schema(
    23, 24,
    {"f32:2x3x4x8 f32:2x3x6x8 f32:2x3x6x8",
     "f32:2x4x24 f32:2x6x24 f32:2x6x30 q_num_heads=3 "
     "kv_num_heads=3 outputs=4",
     "f32:2x3x4x8 f32:2x3x2x8 f32:2x3x2x5 - f32:2x3x3x8 f32:2x3x3x5 is_causal=1 outputs=4"}));
WHIMBREL_REGISTER(Schema(24, 25,
                         {"f32:2x3x4x8 f32:2x3x6x8 f32:2x3x6x8 bool:4x6 - - i64:2={6,3}",
                          "f32:2x3x2x8 f32:2x1x6x8 f32:2x1x6x8 - - - i64:2={6,1} is_causal=1"}));
WHIMBREL_REGISTER(Schema(
    25, INT_MAX,
    {"f32:1x8x64x32 f32:1x8x64x32 f32:1x8x64x32 is_causal=1", "f32:1x1x1x1 f32:1x1x1x1 f32:1x1x1x1",
     "f32:2x6x3x8 f32:2x2x5x8 f32:2x2x5x7 f32:2x1x3x5 outputs=4 qk_matmul_output_mode=2",
     "f32:2x6x3x8 f32:2x1x5x8 f32:2x1x5x8 bool:6x3x4 outputs=4 qk_matmul_output_mode=3",
     "f32:1x2x3x4 f32:1x2x3x4 f32:1x2x3x4 bool:3x3={0,0,0,1,1,0,0,1,0} outputs=4 "
     "qk_matmul_output_mode=3",
     "f32:2x3x4x8 f32:2x3x6x8 f32:2x3x6x8 softcap=2 scale=0.5 outputs=4 qk_matmul_output_mode=1",
     "f32:1x2x9x4 f32:1x2x9x4 f32:1x2x9x4 left_window_size=2 right_window_size=1",
     "f32:1x2x3x4 f32:1x2x3x4 f32:1x2x3x4 - f32:1x2x4x4 f32:1x2x4x4 is_causal=1 left_window_size=3 "
     "outputs=4",
     "f32:0x3x4x8 f32:0x3x6x8 f32:0x3x6x8", "f32:2x3x4x8 f32:2x3x0x8 f32:2x3x0x8",
     "f32:1x2x3x4 f32:1x2x3x4 f32:1x2x3x4 nan=1", "f64:2x3x4x8 f64:2x3x6x8 f64:2x3x6x8 i32:4x6",
     "f16:2x3x4x8 f16:2x3x6x8 f16:2x3x6x8 f16:4x6 softmax_precision=1",
     "bf16:2x4x24 bf16:2x6x8 bf16:2x6x8 q_num_heads=3 kv_num_heads=1",
     "f16:1x2x3x4 f16:1x2x3x4 f32:1x2x3x4"}));
WHIMBREL_REGISTER(Kernel{
    .op = "Attention", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel

// Named files to tensors, with every misuse told apart from a damaged file.

#include "whimbrel/cli/inputs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "whimbrel/base/config.h"
#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/tensor/image.h"
#include "whimbrel/tensor/npy.h"
#include "whimbrel/tensor/tensor_proto.h"

namespace whimbrel {
namespace {

const TensorSpec* FindSpec(const std::vector<TensorSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &TensorSpec::name);
  return found == specs.end() ? nullptr : &*found;
}

std::string DimsText(const TensorSpec& spec) {
  return spec.dims ? ToString(*spec.dims) : "of unknown rank";
}

std::string NameList(const std::vector<TensorSpec>& specs) {
  std::vector<std::string_view> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names.empty() ? "the model has no inputs"
                       : fmt::format("inputs: {}", fmt::join(names, ", "));
}

// The spec of `name` and its place, or an error with the nearest name.
size_t RequireSpec(const std::vector<TensorSpec>& specs, const std::string& name,
                   std::string_view flag) {
  if (const TensorSpec* spec = FindSpec(specs, name))
    return static_cast<size_t>(spec - specs.data());
  std::vector<std::string_view> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  const std::string_view nearest = NearestWord(name, names);
  std::string hint = NameList(specs);
  if (!nearest.empty()) hint = fmt::format("did you mean '{}'? {}", nearest, hint);
  throw Error(Code::kInvalidArgument, fmt::format("{}: the model has no input '{}'", flag, name),
              hint);
}

// Why `shape` is none that the input takes, or empty.
std::string Misfit(const TensorSpec& spec, const Shape& shape) {
  if (!spec.dims) return "";
  if (shape.rank() != static_cast<int>(spec.dims->size())) {
    return fmt::format("input '{}' has rank {} ({}), given is {}", spec.name, spec.dims->size(),
                       DimsText(spec), ToString(shape));
  }
  for (int i = 0; i < shape.rank(); ++i) {
    const Dim& dim = (*spec.dims)[static_cast<size_t>(i)];
    if (dim.known() && dim.value() != shape[i]) {
      return fmt::format("input '{}' is {}, given is {}: dim {} must be {}", spec.name,
                         DimsText(spec), ToString(shape), i, dim.value());
    }
  }
  return "";
}

enum class FileKind : uint8_t { kNpy, kProto, kImage, kUnknown };

// By the name's end; without a known one by content.
FileKind KindOf(const std::string& path) {
  std::string lower = path;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.ends_with(".npy")) return FileKind::kNpy;
  if (lower.ends_with(".pb")) return FileKind::kProto;
  if (lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png"))
    return FileKind::kImage;
  const auto file = MappedFile::Open(path);
  constexpr std::string_view kNpyMagic = "\x93NUMPY";
  const auto bytes = file->bytes();
  if (bytes.size() >= kNpyMagic.size() &&
      std::equal(kNpyMagic.begin(), kNpyMagic.end(), bytes.begin(),
                 [](char a, std::byte b) { return std::byte(a) == b; })) {
    return FileKind::kNpy;
  }
  return LooksLikeImage(path) ? FileKind::kImage : FileKind::kUnknown;
}

// Whether the picture goes in channels-last; kInvalidArgument when the input takes no picture that
// way.
bool PictureIsChannelsLast(const TensorSpec& spec, const ImageOptions& options, bool layout_given) {
  const auto refuse = [&](const std::string& why) {
    return Error(Code::kInvalidArgument,
                 fmt::format("input '{}' is {}: {}", spec.name, DimsText(spec), why),
                 "a picture needs an input of rank 4 with 3 channels at dim 1 (nchw) or 3 (nhwc); "
                 "give a .npy or .pb file");
  };
  if (!spec.dims || spec.dims->size() != 4) throw refuse("no shape of a picture");
  const auto takes = [&](size_t i) {
    return !(*spec.dims)[i].known() || (*spec.dims)[i].value() == 3;
  };
  if (layout_given) {
    if (takes(options.channels_last ? 3 : 1)) return options.channels_last;
    throw refuse(fmt::format("no shape of a picture with layout={}",
                             options.channels_last ? "nhwc" : "nchw"));
  }
  if ((*spec.dims)[1].Is(3)) return false;
  if ((*spec.dims)[3].Is(3)) return true;
  if (takes(1)) return false;
  if (takes(3)) return true;
  throw refuse("no shape of a picture");
}

Tensor ReadPicture(const std::string& path, const TensorSpec& spec, const std::string& text,
                   Output& out) {
  ImageOptions options = ParseImageOptions(text);
  options.channels_last =
      PictureIsChannelsLast(spec, options, text.find("layout=") != std::string::npos);
  if (spec.dtype != DType::kFloat && spec.dtype != DType::kFloat16 && spec.dtype != DType::kUint8) {
    throw Error(Code::kInvalidArgument,
                fmt::format("input '{}' is {}: a picture becomes float32, float16 or uint8",
                            spec.name, DTypeName(spec.dtype)),
                "give a .npy or .pb file of that type");
  }
  const Image image = ReadImage(path);
  const size_t height_dim = options.channels_last ? 1 : 2;
  const auto pick = [&](int64_t asked, const Dim& fixed, int64_t own) {
    if (asked > 0) return asked;
    return fixed.known() && fixed.value() > 0 ? fixed.value() : own;
  };
  options.height = pick(options.height, (*spec.dims)[height_dim], image.height);
  options.width = pick(options.width, (*spec.dims)[height_dim + 1], image.width);
  out.Talk(fmt::format("{}: picture {} of {}x{} with --image \"{}\"", spec.name, path, image.width,
                       image.height, ToString(options)));
  return ImageToTensor(image, options, spec.dtype);
}

Tensor ReadInput(const std::string& path, const TensorSpec& spec, const std::string& image_text,
                 Output& out) {
  Tensor tensor;
  if (KindOf(path) == FileKind::kImage) {
    tensor = ReadPicture(path, spec, image_text, out);
  } else {
    tensor = ReadTensorFile(path);
  }
  if (spec.dtype != DType::kUndefined && tensor.dtype() != spec.dtype) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("input '{}' is {}, {} holds {}", spec.name, DTypeName(spec.dtype), path,
                    DTypeName(tensor.dtype())),
        fmt::format("nothing is cast in silence: save the array as {}", DTypeName(spec.dtype)));
  }
  if (const std::string misfit = Misfit(spec, tensor.shape()); !misfit.empty()) {
    throw Error(Code::kInvalidArgument, fmt::format("{} by {}", misfit, path),
                "save the array in the input's own shape");
  }
  return tensor.layout() == Layout::kPlain ? tensor : CopyPlain(tensor);
}

// Shapes known so far (of given inputs and --shape), and the symbols that they bind.
struct KnownShapes {
  std::vector<std::optional<Shape>> shapes;
  std::map<std::string, int64_t, std::less<>> symbols;

  void Set(size_t index, const TensorSpec& spec, const Shape& shape) {
    shapes[index] = shape;
    if (!spec.dims) return;
    for (int i = 0; i < shape.rank(); ++i) {
      const Dim& dim = (*spec.dims)[static_cast<size_t>(i)];
      if (!dim.known() && !dim.text().empty()) symbols.emplace(dim.text(), shape[i]);
    }
  }
};

// What the model takes: a package's dims that differ between its buckets are open.
std::vector<TensorSpec> AcceptedInputs(const Session& session) {
  std::vector<TensorSpec> specs = session.inputs();
  if (!session.package()) return specs;
  for (const PackageBucket& bucket : session.package()->buckets) {
    for (const InputShape& input : bucket.shapes) {
      const auto spec = std::ranges::find(specs, input.name, &TensorSpec::name);
      if (spec == specs.end() || !spec->dims ||
          static_cast<int>(spec->dims->size()) != input.shape.rank())
        continue;
      for (int i = 0; i < input.shape.rank(); ++i) {
        Dim& dim = (*spec->dims)[static_cast<size_t>(i)];
        if (!dim.Is(input.shape[i])) dim = Dim();
      }
    }
  }
  return specs;
}

// The shapes of a package's first bucket that agrees with what is known; nullptr when none does.
const std::vector<InputShape>* FittingBucket(const PackageContents& package,
                                             const std::vector<TensorSpec>& specs,
                                             const KnownShapes& known) {
  for (const PackageBucket& bucket : package.buckets) {
    bool fits = true;
    for (const InputShape& input : bucket.shapes) {
      const TensorSpec* spec = FindSpec(specs, input.name);
      if (!spec) continue;
      const auto& shape = known.shapes[static_cast<size_t>(spec - specs.data())];
      fits = fits && (!shape || *shape == input.shape);
    }
    if (fits) return &bucket.shapes;
  }
  return nullptr;
}

Shape FillShape(const TensorSpec& spec, const KnownShapes& known,
                std::vector<std::string>& assumed) {
  if (!spec.dims) {
    throw Error(Code::kInvalidArgument,
                fmt::format("input '{}' has no rank in the model", spec.name),
                fmt::format("give --shape {}:DIMS", spec.name));
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < spec.dims->size(); ++i) {
    const Dim& dim = (*spec.dims)[i];
    const auto symbol = known.symbols.find(dim.text());
    if (dim.known()) {
      dims.push_back(dim.value());
    } else if (symbol != known.symbols.end()) {
      dims.push_back(symbol->second);
    } else {
      dims.push_back(1);
      assumed.push_back(fmt::format("{}: dim {} ({}) = 1", spec.name, i, ToString(dim)));
    }
  }
  return Shape(dims);
}

// splitmix64: small, the same everywhere, and its constants are public (Steele et al. 2014).
uint64_t NextRandom(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

void FillMissing(const InputOptions& options, const Session& session,
                 const std::vector<TensorSpec>& specs, KnownShapes& known, ModelInputs& inputs) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!inputs.tensors[i].defined())
      missing.push_back(fmt::format("'{}' ({} {})", specs[i].name, DTypeName(specs[i].dtype),
                                    DimsText(specs[i])));
  }
  if (missing.empty()) return;
  if (options.seed < 0) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("missing input{}: {}", missing.size() > 1 ? "s" : "", fmt::join(missing, ", ")),
        "give --input NAME=FILE for each, or --seed N to fill them with made-up values");
  }
  const std::vector<InputShape>* bucket =
      session.package() ? FittingBucket(*session.package(), specs, known) : nullptr;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (inputs.tensors[i].defined()) continue;
    if (!known.shapes[i]) {
      Shape shape;
      const auto named = [&](const InputShape& input) { return input.name == specs[i].name; };
      if (bucket && std::ranges::any_of(*bucket, named)) {
        shape = std::ranges::find_if(*bucket, named)->shape;
      } else {
        shape = FillShape(specs[i], known, inputs.assumed);
      }
      known.Set(i, specs[i], shape);
    }
    inputs.tensors[i] =
        SeededTensor(specs[i].dtype, *known.shapes[i], static_cast<uint64_t>(options.seed), i);
    inputs.seeded.push_back(specs[i].name);
    if (specs[i].dtype == DType::kInt32 || specs[i].dtype == DType::kInt64)
      inputs.seeded_integers.push_back(specs[i].name);
  }
}

}  // namespace

void ModelOptions::Visit(ConfigVisitor& v) {
  v.Field({.name = "MODEL",
           .help = "ONNX file, .wbl package, or folder that holds model.onnx",
           .positional = true,
           .required = true},
          model);
  v.Field({.name = "shape",
           .help = "dims of an input: x:1x3x48x192, or x:1,3,48,192; a scalar is 'x:'. Open dims "
                   "count as 1",
           .value_name = "NAME:DIMS"},
          shapes);
  v.Field(
      {.name = "device", .help = "where to run; 'whimbrel devices' lists them", .value_name = "D"},
      device);
  v.Field({.name = "threads",
           .help = "compute threads; 0 = all cores this process may use",
           .min = 0,
           .max = 1024},
          threads);
  v.Field(
      {.name = "fusion-switch-file",
       .help = R"(JSON file that turns passes off: {"Switch":{"GraphFusion":{"ConvBnAct":"off"}}})",
       .value_name = "FILE"},
      fusion_switch_file);
}

SessionOptions ModelOptions::ToSessionOptions(std::string_view device_flag) const {
  SessionOptions options;
  options.device = device;
  options.threads = static_cast<int>(threads);
  try {
    OpenDevice(device);
  } catch (const Error& e) {
    // A name that no device has is wrong use here, whatever a lookup by name is elsewhere.
    if (e.code() != Code::kNotFound) throw;
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", device_flag, e.what()), e.hint());
  }
  if (!fusion_switch_file.empty()) options.switches = FusionSwitches::FromFile(fusion_switch_file);
  return options;
}

void InputOptions::Visit(ConfigVisitor& v) {
  v.Field({.name = "input",
           .help = "an input's value: .npy, .pb (TensorProto) or a JPEG/PNG picture",
           .value_name = "NAME=FILE"},
          inputs);
  v.Field({.name = "image",
           .help = "how pictures become tensors: "
                   "\"size=640x640,mean=127.5,std=127.5,order=bgr,layout=nchw\"; size from the "
                   "input's shape else the picture's, layout from the input's shape, mean 0, std "
                   "255, order rgb; mean and std "
                   "take one value or three joined by '/'",
           .value_name = "OPTIONS"},
          image);
  v.Field({.name = "seed",
           .help = "fill inputs that are not given, the same for the same N: floats uniform in "
                   "-1..1, integers 0..9, bools 0 or "
                   "1; without it a missing input is an error",
           .min = 0},
          seed);
}

std::pair<std::string, std::string> SplitNamed(std::string_view text, char separator,
                                               const std::vector<TensorSpec>& inputs,
                                               std::string_view flag) {
  const size_t last = text.rfind(separator);
  if (last == std::string_view::npos || last == 0) {
    const std::string form = separator == '=' ? "NAME=FILE" : "NAME:DIMS";
    throw Error(Code::kInvalidArgument, fmt::format("{}: '{}' is not {}", flag, text, form),
                NameList(inputs));
  }
  for (size_t at = last; at != std::string_view::npos && at > 0;
       at = text.rfind(separator, at - 1)) {
    if (FindSpec(inputs, text.substr(0, at)))
      return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
  }
  return {std::string(text.substr(0, last)), std::string(text.substr(last + 1))};
}

std::vector<InputShape> ParseInputShapes(const std::vector<std::string>& texts,
                                         const std::vector<TensorSpec>& inputs) {
  std::vector<InputShape> shapes;
  for (const std::string& text : texts) {
    const auto [name, dims] = SplitNamed(text, ':', inputs, "--shape");
    if (!FindSpec(inputs, name) && FindSpec(inputs, text)) {
      throw Error(
          Code::kInvalidArgument, fmt::format("--shape: '{}' names an input but no dims", text),
          fmt::format("write --shape {}:DIMS; it is {}", text, DimsText(*FindSpec(inputs, text))));
    }
    const TensorSpec& spec = inputs[RequireSpec(inputs, name, "--shape")];
    if (std::ranges::find(shapes, name, &InputShape::name) != shapes.end()) {
      throw Error(Code::kInvalidArgument, fmt::format("--shape: input '{}' is given twice", name),
                  "give it once");
    }
    Shape shape;
    try {
      shape = ParseShape(dims);
    } catch (const Error& e) {
      throw Error(Code::kInvalidArgument, fmt::format("--shape {}: {}", name, e.what()), e.hint());
    }
    if (const std::string misfit = Misfit(spec, shape); !misfit.empty()) {
      throw Error(Code::kInvalidArgument, fmt::format("--shape: {}", misfit),
                  fmt::format("write --shape {}:DIMS with the dims that the model fixes", name));
    }
    shapes.push_back({name, shape});
  }
  return shapes;
}

ModelInputs ReadInputs(const InputOptions& options, const std::vector<std::string>& shapes,
                       const Session& session, Output& out) {
  const std::vector<TensorSpec> specs = AcceptedInputs(session);
  ParseImageOptions(options.image);  // wrong ones are told of even when no picture needs them
  ModelInputs inputs;
  inputs.tensors.resize(specs.size());
  KnownShapes known;
  known.shapes.resize(specs.size());
  for (const InputShape& shape : ParseInputShapes(shapes, specs)) {
    const size_t index = RequireSpec(specs, shape.name, "--shape");
    known.Set(index, specs[index], shape.shape);
  }
  for (const std::string& text : options.inputs) {
    const auto [name, path] = SplitNamed(text, '=', specs, "--input");
    if (path.empty()) {
      throw Error(Code::kInvalidArgument, fmt::format("--input {}: no file is named after '='", text),
                  "--input NAME=FILE takes a .npy or .pb file or a picture");
    }
    const size_t index = RequireSpec(specs, name, "--input");
    if (inputs.tensors[index].defined()) {
      throw Error(Code::kInvalidArgument, fmt::format("--input: '{}' is given twice", name),
                  "give it once");
    }
    TensorSpec spec = specs[index];
    // A picture takes the height and width that --shape gives.
    if (known.shapes[index] && KindOf(path) == FileKind::kImage && spec.dims)
      spec.dims->assign(known.shapes[index]->dims().begin(), known.shapes[index]->dims().end());
    Tensor tensor = ReadInput(path, spec, options.image, out);
    if (known.shapes[index] && !(*known.shapes[index] == tensor.shape())) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("input '{}': --shape says {}, {} holds {}", name,
                              ToString(*known.shapes[index]), path, ToString(tensor.shape())),
                  "drop --shape: a file's own shape counts");
    }
    known.Set(index, specs[index], tensor.shape());
    inputs.tensors[index] = std::move(tensor);
  }
  FillMissing(options, session, specs, known, inputs);
  if (!inputs.seeded.empty())
    out.Talk(fmt::format("filled with seed {}: {}", options.seed, fmt::join(inputs.seeded, ", ")));
  for (const std::string& line : inputs.assumed)
    out.Talk(fmt::format("assumed {}; --shape sets it", line));
  return inputs;
}

Error ExplainAssumed(const Error& error, const std::vector<std::string>& assumed) {
  const bool about_shapes =
      error.code() == Code::kInvalidData || error.code() == Code::kInvalidArgument;
  if (assumed.empty() || !about_shapes) return error;
  return Error(
      Code::kInvalidArgument, error.what(),
      fmt::format("these dims were assumed, --shape NAME:DIMS sets them: {}{}{}",
                  fmt::join(assumed, "; "), error.hint().empty() ? "" : "; ", error.hint()));
}

namespace {

// "node Relu_0 (Relu): ...", "reference of Relu_0 (Relu): ...", "Gather: ...", "input x: ...";
// no "cannot make the folder out", "out is in use by another migrate", "out/m.wbl: ...".
bool AboutTheGraph(std::string_view message) {
  for (const std::string_view start : {"node ", "reference of ", "input ", "shape ["}) {
    if (message.starts_with(start)) return true;
  }
  const std::string_view word = message.substr(0, message.find(':'));
  return word.size() < message.size() &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

Error ExplainMadeUp(const Error& error, const std::vector<std::string>& assumed,
                    const std::vector<std::string>& seeded_integers) {
  const bool about_values =
      error.code() == Code::kInvalidData || error.code() == Code::kInvalidArgument;
  if (!about_values || !AboutTheGraph(error.what())) return error;
  const Error explained = ExplainAssumed(error, assumed);
  if (seeded_integers.empty()) return explained;
  return Error(explained.code(), explained.what(),
               fmt::format("made-up integers are 0 to 9, --input NAME=FILE gives real ones: {}{}{}",
                           fmt::join(seeded_integers, ", "), explained.hint().empty() ? "" : "; ",
                           explained.hint()));
}

Tensor SeededTensor(DType dtype, const Shape& shape, uint64_t seed, size_t index) {
  Tensor tensor = Tensor::Host(dtype, shape);
  // Inputs draw from streams that start far apart.
  uint64_t state = seed;
  state = NextRandom(state) + index;
  state = NextRandom(state);
  const int64_t count = tensor.elements();
  const bool known = DispatchType(dtype, [&]<typename T>() {
    T* values = tensor.data<T>();
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t random = NextRandom(state);
      if constexpr (std::is_same_v<T, bool>) {
        values[i] = (random >> 63) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        values[i] = static_cast<T>((random >> 32) % 10);
      } else {
        // 53 bits: every such double is exact.
        values[i] =
            static_cast<T>(static_cast<float>(static_cast<double>(random >> 11) * 0x1p-52 - 1.0));
      }
    }
  });
  if (!known) {
    throw Error(Code::kUnsupported,
                fmt::format("inputs of type {} cannot be made up", DTypeName(dtype)), "");
  }
  return tensor;
}

Tensor ReadTensorFile(const std::string& path) {
  switch (KindOf(path)) {
    case FileKind::kNpy:
      return ReadNpy(path);
    case FileKind::kProto:
      return ReadTensorProtoFile(path);
    case FileKind::kImage:
      throw Error(Code::kInvalidArgument,
                  fmt::format("{} is a picture where an array is expected", path),
                  "give a .npy or .pb file");
    case FileKind::kUnknown:
      break;
  }
  throw Error(Code::kInvalidData,
              fmt::format("{} is no .npy array, .pb tensor or JPEG/PNG picture", path),
              "name array files .npy or .pb");
}

}  // namespace whimbrel

// The --config file: YAML, each wrong key and value named with line and column.

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/cli/settings.h"

namespace whimbrel {
namespace {

// Configurations are written by hand; the limits keep a damaged or hostile file from costing
// memory.
constexpr size_t kMaxFileBytes = size_t{1} << 20;

using Parts = std::map<std::string, std::vector<FieldDescription>, std::less<>>;

class Reader {
 public:
  Reader(const std::string& path, const Parts& parts) : path_(path), parts_(parts) {}

  Settings Read(std::string_view wanted) {
    const YAML::Node root = Load();
    Settings settings;
    if (root.IsNull()) return settings;
    if (!root.IsMap()) throw Fail(root.Mark(), "a mapping of options is expected here", "");
    const std::vector<FieldDescription>& globals = parts_.find("")->second;
    std::vector<std::string> seen;
    for (const auto& pair : root) {
      const std::string key = Key(pair.first, seen);
      if (const FieldDescription* field = FindField(globals, key)) {
        Setting setting = Value(*field, pair.second);
        if (wanted.empty()) settings[key] = std::move(setting);
      } else if (const auto part = parts_.find(key); part != parts_.end() && !key.empty()) {
        Settings inner = Part(part->first, part->second, pair.second);
        if (part->first == wanted) settings = std::move(inner);
      } else {
        std::vector<std::string> known = Keys(globals);
        for (const auto& [name, fields] : parts_) {
          if (!name.empty()) known.push_back(name);  // the global part has no section
        }
        throw Fail(pair.first.Mark(), fmt::format("unknown key '{}'", key), Nearest(key, known));
      }
    }
    return settings;
  }

 private:
  YAML::Node Load() {
    const std::string text = ReadTextFile(path_, kMaxFileBytes);
    try {
      return YAML::Load(text);
    } catch (const YAML::ParserException& e) {
      throw Fail(e.mark, e.msg, "the file is YAML: 'key: value' lines, verbs as sections");
    } catch (const YAML::Exception& e) {
      throw Fail(e.mark, e.msg, "");
    }
  }

  Settings Part(const std::string& part, const std::vector<FieldDescription>& fields,
                const YAML::Node& node) {
    Settings settings;
    if (node.IsNull()) return settings;
    if (!node.IsMap())
      throw Fail(node.Mark(), fmt::format("'{}' takes a mapping of its options", part), "");
    std::vector<std::string> seen;
    for (const auto& pair : node) {
      const std::string key = Key(pair.first, seen);
      const FieldDescription* field = FindField(fields, key);
      if (!field) {
        throw Fail(pair.first.Mark(), fmt::format("unknown key '{}' in '{}'", key, part),
                   Nearest(key, Keys(fields)));
      }
      settings[key] = Value(*field, pair.second);
    }
    return settings;
  }

  Setting Value(const FieldDescription& field, const YAML::Node& node) {
    Setting setting{{}, fmt::format("{} ({})", Place(node.Mark()), field.key)};
    if (node.IsScalar()) {
      setting.values.push_back(node.Scalar());
    } else if (node.IsSequence() && field.type == FieldType::kList) {
      for (const YAML::Node& item : node) {
        if (!item.IsScalar())
          throw Fail(item.Mark(), fmt::format("'{}' takes a list of words", field.key), "");
        setting.values.push_back(item.Scalar());
      }
    } else {
      throw Fail(node.Mark(),
                 fmt::format("'{}' takes {}", field.key,
                             field.type == FieldType::kList ? "a list" : "one value"),
                 "");
    }
    return setting;
  }

  std::string Key(const YAML::Node& node, std::vector<std::string>& seen) {
    if (!node.IsScalar()) throw Fail(node.Mark(), "keys are words", "");
    for (const std::string& other : seen) {
      if (other == node.Scalar())
        throw Fail(node.Mark(), fmt::format("key '{}' is given twice", other), "");
    }
    seen.push_back(node.Scalar());
    return node.Scalar();
  }

  static const FieldDescription* FindField(const std::vector<FieldDescription>& fields,
                                           std::string_view key) {
    for (const FieldDescription& field : fields) {
      if (field.key == key && key != "config") return &field;
    }
    return nullptr;
  }

  static std::vector<std::string> Keys(const std::vector<FieldDescription>& fields) {
    std::vector<std::string> keys;
    for (const FieldDescription& field : fields) {
      if (field.key != "config") keys.push_back(field.key);
    }
    return keys;
  }

  static std::string Nearest(const std::string& key, const std::vector<std::string>& known) {
    std::string hint = DidYouMean(key, known);
    return hint.empty() ? fmt::format("known here: {}", fmt::join(known, ", ")) : hint;
  }

  std::string Place(const YAML::Mark& mark) const {
    return mark.is_null() ? path_ : fmt::format("{}:{}:{}", path_, mark.line + 1, mark.column + 1);
  }

  Error Fail(const YAML::Mark& mark, const std::string& what, const std::string& hint) const {
    return Error(Code::kInvalidArgument, fmt::format("{}: {}", Place(mark), what), hint);
  }

  const std::string& path_;
  const Parts& parts_;
};

}  // namespace

Settings SettingsFromFile(const std::string& path, std::string_view wanted, const Parts& parts) {
  return Reader(path, parts).Read(wanted);
}

}  // namespace whimbrel

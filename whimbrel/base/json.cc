// JSON by nlohmann, read through a SAX handler that knows where it stands.

#include "whimbrel/base/json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

constexpr size_t kDepthLimit = 256;

// Reads the text and leaves its own position in `*seen`: the library tells a handler no position.
class WatchedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  WatchedIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  WatchedIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const WatchedIterator& other) const { return at_ == other.at_; }
  bool operator!=(const WatchedIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view source)
      : text_(text), source_(source), seen_(text.data()) {}

  Json Build() {
    const char* end = text_.data() + text_.size();
    Json::sax_parse(WatchedIterator(text_.data(), &seen_), WatchedIterator(end, &seen_), this);
    return std::move(root_);
  }

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string&) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has none
  bool key(std::string& value) {
    key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() {
    RefuseRepeatedKeys(open_.back()->get_ref<const Json::object_t&>());
    return Close();
  }
  bool end_array() { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what we want"
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    if (what.substr(0, 11) == "parse error") {
      what.remove_prefix(std::min(what.size(), what.find(": ") + 2));
    }
    Fail(what);
  }

 private:
  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    // Appended without a look-up, which is linear: a wide object would take quadratic time.
    auto& members = parent.get_ref<Json::object_t&>();
    members.push_back({std::move(key_), std::move(value)});
    return &members.back().second;
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  // Pointers in open_ stay valid: a container grows only while it is the innermost open one.
  bool Open(Json value) {
    if (open_.size() >= kDepthLimit) {
      Fail("nested deeper than " + std::to_string(kDepthLimit) + " levels");
    }
    open_.push_back(Place(std::move(value)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  void RefuseRepeatedKeys(const Json::object_t& members) const {
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& member : members) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      Fail("the object that ends here has the key \"" + std::string(*twice) + "\" twice");
    }
  }

  // Counts lines up to the last character read; columns are bytes from 1.
  [[noreturn]] void Fail(std::string_view what) const {
    const auto read = static_cast<size_t>(seen_ - text_.data());
    const std::string_view before = text_.substr(0, read == 0 ? 0 : read - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    throw Error(Code::kInvalidData, std::string(source_) + ": line " + std::to_string(line) +
                                        ", column " + std::to_string(column) + ": " +
                                        std::string(what));
  }

  std::string_view text_;
  std::string_view source_;
  const char* seen_;  // one past the last character that the lexer took
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
};

}  // namespace

Json ParseJson(std::string_view text, std::string_view source) {
  return TreeBuilder(text, source).Build();
}

std::string DumpJson(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace whimbrel

// chrome_document.h - the JSON around Chrome's events, read as it comes, in pieces: one event, or one property beside
// them, is parsed at a time.
#pragma once
#include <stdint.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/chrome/chrome_json.h"
#include "formats/encoding/json_scan.h"
#include "vendor/yyjson/yyjson.h"

namespace strobe::chrome {

constexpr size_t kLongestEvent = 16u << 20;  // parsing takes twelve times as much memory
constexpr size_t kMostProperties = 16u << 20;
constexpr size_t kPadding = 4;  // YYJSON_PADDING_SIZE
constexpr yyjson_read_flag kFlags =
    YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW | YYJSON_READ_ALLOW_INVALID_UNICODE | YYJSON_READ_ALLOW_INF_AND_NAN;

struct FreeDoc {
  void operator()(yyjson_doc* doc) const { yyjson_doc_free(doc); }
};
using Doc = std::unique_ptr<yyjson_doc, FreeDoc>;

// `Handler`: event(yyjson_val* event), unreadable() where one cannot be parsed, and property(quoted_name, text,
// yyjson_val* value), whose values are there during the call only. A template, because a call that is not inlined costs
// four percent of an import.
template <class Handler>
class ChromeDocument {
 public:
  // What is broken goes to `counters`.
  ChromeDocument(Handler& handler, std::map<std::string, uint64_t>& counters)
      : handler_(handler), counters_(counters) {}

  // The document is one of our exports: frames of samples are for viewers only.
  void of_our_own() { own_ = true; }
  // Throws std::runtime_error, with the byte, where the text is not a trace.
  void feed(std::string_view bytes) {
    if (damaged_) return;
    offset_ += at_;
    text_.erase(0, at_);
    at_ = 0;
    text_ += bytes;
    while (step()) {
    }
  }
  // What comes is not read any more.
  void end_here() { damaged_ = true; }
  void finish() {
    if (where_ == kStart) fail("this is not a JSON trace: it is empty");
    if (where_ != kEnded) {
      counters_[damaged_ ? "damaged" : "truncated"] = 1;
      counters_["bytes_lost"] += text_.size() - at_;
    }
    if (!events_seen_) fail("this JSON has no traceEvents");
  }
  // A JSON object without its closing brace.
  const std::string& properties() const { return properties_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " (byte " + std::to_string(offset_ + at_) + ")");
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      at_++;
  }
  // Bytes of the whole value at text_[at_], 0 if more text is needed.
  size_t value_size() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (rest.empty()) return 0;
    size_t size = 0;
    if (rest[0] == '{' || rest[0] == '[') {
      size = json::end_of_container(rest);
    } else if (rest[0] == '"') {
      size = json::end_of_string(rest);
    } else {
      size = rest.find_first_of(",]} \n\r\t");
      if (size == 0) fail("a value was expected here");
      if (size == rest.npos) size = 0;
    }
    if (!size && rest.size() > kLongestEvent) fail("a single value is longer than 16 MiB");
    return size;
  }
  // False: more text is needed.
  bool step() {
    skip_space();
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    switch (where_) {
      case kStart:
        if (std::string_view(text_).substr(at_, 3) == "\xEF\xBB\xBF") {
          at_ += 3;
        } else if (c == '[') {
          at_++, where_ = kInEvents, bare_list_ = events_seen_ = true;
        } else if (c == '{') {
          at_++, where_ = kInObject;
        } else {
          fail("this is not a JSON trace: it begins with neither { nor [");
        }
        return true;
      case kInObject: {
        if (c == ',') return at_++, true;
        if (c == '}') return at_++, where_ = kEnded, true;
        if (c != '"') fail("the name of a property was expected here");
        const size_t key_size = value_size();
        if (!key_size) return false;
        const size_t key_at = at_;
        at_ += key_size;
        skip_space();
        if (at_ < text_.size() && text_[at_] != ':') fail("a colon was expected here");
        if (at_ < text_.size()) at_++, skip_space();
        if (at_ >= text_.size()) return at_ = key_at, false;
        if (std::string_view(text_).substr(key_at, key_size) == "\"traceEvents\"" && text_[at_] == '[') {
          at_++, where_ = kInEvents, events_seen_ = true;
          return true;
        }
        if (own_ && std::string_view(text_).substr(key_at, key_size) == "\"stackFrames\"" && text_[at_] == '{') {
          at_++, where_ = kInFrames;
          return true;
        }
        const size_t size = value_size();
        if (!size) return at_ = key_at, false;
        property(key_at, key_size, size);
        at_ += size;
        return true;
      }
      case kInEvents: {
        if (c == ',') return at_++, true;
        if (c == ']') return at_++, where_ = bare_list_ ? kEnded : kInObject, true;
        const size_t size = value_size();
        if (!size) return false;
        if (c == '{')
          read_event(at_, size);
        else
          handler_.unreadable();
        at_ += size;
        return true;
      }
      case kInFrames: {  // of our own samples, for viewers: their stacks came with them
        if (c == ',' || c == ':') return at_++, true;
        if (c == '}') return at_++, where_ = kInObject, true;
        const size_t size = value_size();
        at_ += size;
        return size > 0;
      }
      case kEnded:
        counters_["bytes_behind_the_end"] += text_.size() - at_;
        at_ = text_.size();
        return false;
    }
    return false;
  }
  void property(size_t key_at, size_t key_size, size_t size) {
    const Doc doc = parse(std::string_view(text_).substr(at_, size));
    if (!doc) {
      counters_["unreadable_properties"]++;
      return;
    }
    if (properties_.size() + size < kMostProperties) {
      if (properties_.size() > 1) properties_ += ',';
      properties_.append(text_, key_at, key_size);
      properties_ += ':';
      append_json(properties_, yyjson_doc_get_root(doc.get()));
    } else {
      counters_["properties_not_kept"]++;
    }
    const std::string_view text = text_;
    handler_.property(text.substr(key_at, key_size), text.substr(at_, size), yyjson_doc_get_root(doc.get()));
  }
  void read_event(size_t from, size_t size) {
    const Doc doc = parse(std::string_view(text_).substr(from, size));
    if (doc)
      handler_.event(yyjson_doc_get_root(doc.get()));
    else
      handler_.unreadable();
  }
  // Of a copy, in place: the next value overwrites it.
  Doc parse(std::string_view value) {
    spare_.assign(value);
    spare_.append(kPadding, '\0');
    yyjson_alc alc;
    const size_t need = value.size() * 12 + 256;  // yyjson_read_max_memory_usage
    if (pool_.size() < need) pool_.resize(need + need / 4);
    yyjson_alc_pool_init(&alc, pool_.data(), pool_.size());
    Doc doc(yyjson_read_opts(spare_.data(), value.size(), kFlags, &alc, nullptr));
    if (doc) return doc;
    std::string repaired(value);
    if (!repair(repaired)) return nullptr;
    doc = parse(repaired);
    if (doc) counters_["repaired_events"]++;
    return doc;
  }
  // Some writers put a bare N/A where a number should be.
  static bool repair(std::string& event) {
    bool changed = false;
    for (size_t i = event.find("N/A"); i != event.npos; i = event.find("N/A", i + 1)) {
      size_t before = i;
      while (before > 0 && event[before - 1] == ' ') before--;
      if (before == 0 || event[before - 1] != ':') continue;
      event.replace(i, 3, "null");
      changed = true;
    }
    return changed;
  }

  Handler& handler_;
  std::map<std::string, uint64_t>& counters_;
  std::string text_;
  size_t at_ = 0;        // how far it was read
  uint64_t offset_ = 0;  // of text_[0] in the file
  enum { kStart, kInObject, kInEvents, kInFrames, kEnded } where_ = kStart;
  bool bare_list_ = false, events_seen_ = false, damaged_ = false, own_ = false;
  std::string properties_ = "{";
  std::vector<char> pool_;
  std::string spare_;  // the value that is being parsed
};

}  // namespace strobe::chrome

// perfetto_interned.h - texts that a sequence of packets defined once and refers to by number (InternedData).
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/encoding/protobuf_wire.h"

namespace strobe {

class PerfettoNames {
 public:
  // Fields of InternedData. Source locations are kept as messages.
  enum Kind : uint32_t {
    kCategories = 1,
    kEventNames = 2,
    kAnnotationNames = 3,
    kLocations = 4,
    kAnnotationValues = 29
  };

  // What a text is called in the block file of a process, once somebody has looked.
  struct Known {
    uint32_t process, id;
    bool as_json;
  };
  struct Text {
    std::string text;
    std::vector<Known> known;
  };

  // False: there were more bytes than fit.
  bool add(uint32_t sequence, std::string_view interned) {
    bool fits = true;
    protobuf::Field field, inner;
    for (protobuf::Message message(interned); message.next(field);) {
      if (field.type != protobuf::kBytes) continue;
      if (field.number > kLocations && field.number != kAnnotationValues) continue;
      uint64_t iid = 0;
      std::string_view text;
      for (protobuf::Message one(field.bytes); one.next(inner);) {
        if (inner.number == 1) iid = inner.value;
        if (inner.number == 2 && inner.type == protobuf::kBytes) text = inner.bytes;
      }
      if (field.number == kLocations) text = field.bytes;
      if (bytes_ + text.size() > kMostBytes) {
        fits = false;
        continue;
      }
      Text& kept = of_[sequence][key(Kind(field.number), iid)];
      if (kept.text == text) continue;
      bytes_ += text.size() - kept.text.size();
      kept.text = text, kept.known.clear();
    }
    return fits;
  }
  std::string_view find(uint32_t sequence, Kind kind, uint64_t iid) {
    const Text* found = entry(sequence, kind, iid);
    return found ? std::string_view(found->text) : std::string_view();
  }
  Text* entry(uint32_t sequence, Kind kind, uint64_t iid) {
    const auto texts = of_.find(sequence);
    if (texts == of_.end()) return nullptr;
    const auto found = texts->second.find(key(kind, iid));
    return found == texts->second.end() ? nullptr : &found->second;
  }
  void clear(uint32_t sequence) {
    const auto texts = of_.find(sequence);
    if (texts == of_.end()) return;
    for (const auto& [iid, text] : texts->second) bytes_ -= text.text.size();
    of_.erase(texts);
  }

 private:
  static constexpr size_t kMostBytes = 256u << 20;
  static uint64_t key(Kind kind, uint64_t iid) { return iid << 5 | kind; }
  std::unordered_map<uint32_t, std::unordered_map<uint64_t, Text>> of_;
  size_t bytes_ = 0;
};

}  // namespace strobe

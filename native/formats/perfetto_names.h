// perfetto_names.h - texts that a sequence of packets defined once and refers to by number (InternedData).
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/protobuf_wire.h"

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
      std::string& kept = of_[sequence][key(Kind(field.number), iid)];
      bytes_ += text.size() - kept.size();
      kept = text;
    }
    return fits;
  }
  std::string_view find(uint32_t sequence, Kind kind, uint64_t iid) const {
    const auto texts = of_.find(sequence);
    if (texts == of_.end()) return {};
    const auto found = texts->second.find(key(kind, iid));
    return found == texts->second.end() ? std::string_view() : found->second;
  }
  void clear(uint32_t sequence) {
    const auto texts = of_.find(sequence);
    if (texts == of_.end()) return;
    for (const auto& [iid, text] : texts->second) bytes_ -= text.size();
    of_.erase(texts);
  }

 private:
  static constexpr size_t kMostBytes = 256u << 20;
  static uint64_t key(Kind kind, uint64_t iid) { return iid << 5 | kind; }
  std::unordered_map<uint32_t, std::unordered_map<uint64_t, std::string>> of_;
  size_t bytes_ = 0;
};

}  // namespace strobe

// recent_texts.h - what was found for texts that come again and again.
#pragma once
#include <stdint.h>
#include <string.h>
#include <string>
#include <string_view>
#include <vector>

namespace strobe {

// By a few bytes of a text: a look at one slot instead of hashing all of it.
template <class Value>
class RecentTexts {
 public:
  struct Slot {
    std::string text;
    uint64_t beside = ~uint64_t(0);
    Value value{};
  };
  // The slot for a text; `found`: whether it holds it, for the same number beside it.
  Slot& slot(std::string_view text, uint64_t beside, bool& found) {
    uint64_t head = 0, tail = 0;
    const size_t n = text.size() < 8 ? text.size() : 8;
    if (n) {
      memcpy(&head, text.data(), n);
      memcpy(&tail, text.data() + text.size() - n, n);
    }
    const uint64_t mixed = (head ^ (tail << 7) ^ (text.size() << 17) ^ beside * 31) * 0x9E3779B97F4A7C15ull;
    Slot& at = slots_[mixed >> 54];  // ten bits
    found = at.beside == beside && at.text == text;
    return at;
  }

 private:
  std::vector<Slot> slots_ = std::vector<Slot>(1024);
};

}  // namespace strobe

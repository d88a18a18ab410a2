// text_table.h - the texts of a process's rows: each is interned once and written to the file before its number is
// used.
#pragma once
#include <stdint.h>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/format/bytes.h"

namespace strobe {

class TextTable {
 public:
  static constexpr uint32_t kOverflowText = 1;  // stands for every text after the table is full
  // `save` gets the payload of a texts chunk, the number of its first text, and how many there are. `full` is set where
  // the table is full.
  template <class Save>
  uint32_t intern(std::string_view value, bool& full, Save&& save);
  // Payload of all texts (a forked child's new file); empty without any. With mutex() held.
  std::string all(uint32_t& count) const;
  std::string_view of(uint32_t number) {
    std::lock_guard lock(mutex_);
    return number < texts_.size() ? std::string_view(texts_[number]) : std::string_view();
  }
  std::mutex& mutex() { return mutex_; }

 private:
  // Memory of the program, and bytes in the file of each of its forked children.
  static constexpr size_t kMostBytes = 16u << 20, kBytesOfEntry = 64;
  std::mutex mutex_;
  std::deque<std::string> texts_;  // by number; they stay where they are
  std::unordered_map<std::string_view, uint32_t> numbers_;
  size_t bytes_ = 0;
};

template <class Save>
uint32_t TextTable::intern(std::string_view value, bool& full, Save&& save) {
  std::lock_guard lock(mutex_);
  if (const auto known = numbers_.find(value); known != numbers_.end()) return known->second;
  if (bytes_ + value.size() + kBytesOfEntry > kMostBytes) {
    full = true;
    return kOverflowText;
  }
  const auto first = uint32_t(texts_.size());
  Writer payload;
  if (texts_.empty()) {  // number 0 stands for a missing text
    texts_ = {"", "<other texts>"};
    for (const std::string& text : texts_) payload.long_text(text);
  }
  payload.long_text(value);
  const auto number = uint32_t(texts_.size());
  numbers_.emplace(texts_.emplace_back(value), number);
  bytes_ += value.size() + kBytesOfEntry;
  save(payload.bytes, first, number + 1 - first);
  return number;
}

inline std::string TextTable::all(uint32_t& count) const {
  count = uint32_t(texts_.size());
  Writer payload;
  for (const std::string& text : texts_) payload.long_text(text);
  return std::move(payload.bytes);
}

}  // namespace strobe

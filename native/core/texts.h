// texts.h - the texts of a process's rows: each is interned once and written to the file before its number is used.
#pragma once
#include <stdint.h>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace strobe {

class TextTable {
 public:
  static constexpr uint32_t kOverflowText = 1;  // stands for every text after the table is full
  // `save` gets the payload of a texts chunk, the number of its first text, and how many there are. `full` is set where
  // there was no room.
  template <class Save>
  uint32_t intern(std::string_view value, bool& full, Save&& save);
  // Payload of all texts (a forked child's new file); empty without any.
  std::string all(uint32_t& count);
  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr size_t kMost = 1 << 20, kMostBytes = 256u << 20;
  static void write(std::string& out, std::string_view text) {
    const auto n = uint32_t(text.size());
    out.append(reinterpret_cast<const char*>(&n), 4);
    out += text;
  }
  std::mutex mutex_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::string saved_;  // payload of them all
  uint32_t next_ = 0;
};

template <class Save>
uint32_t TextTable::intern(std::string_view value, bool& full, Save&& save) {
  std::lock_guard lock(mutex_);
  std::string key(value);
  if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  if (next_ >= kMost || saved_.size() + value.size() > kMostBytes) {
    full = true;
    return kOverflowText;
  }
  const uint32_t first = next_;
  std::string payload;
  if (!next_) {  // 0 is no text
    write(payload, "");
    write(payload, "<other texts>");
    next_ = 2;
  }
  write(payload, value);
  const uint32_t number = next_++;
  numbers_.emplace(std::move(key), number);
  saved_ += payload;
  save(payload, first, next_ - first);
  return number;
}

inline std::string TextTable::all(uint32_t& count) {
  std::lock_guard lock(mutex_);
  count = next_;
  return saved_;
}

}  // namespace strobe

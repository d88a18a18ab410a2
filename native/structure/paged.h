// Storage that grows without moving, copying or throwing: for tables that are filled while the program runs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace strobe::structure {

// An array that grows page by page up to a limit. Elements stay where they are.
template <class T>
class Paged {
 public:
  explicit Paged(uint32_t limit) : limit_(limit), pages_((uint64_t{limit} + page_size - 1) / page_size) {}

  uint32_t size() const { return size_; }
  size_t bytes() const { return (size_ + page_size - 1) / page_size * page_size * sizeof(T); }
  T& operator[](uint32_t i) { return pages_[i / page_size][i % page_size]; }
  const T& operator[](uint32_t i) const { return pages_[i / page_size][i % page_size]; }

  // False: the limit is reached, or there is no memory.
  bool push(const T& value) {
    if (size_ == limit_) return false;
    auto& page = pages_[size_ / page_size];
    if (!page) page.reset(new (std::nothrow) T[page_size]);
    if (!page) return false;
    page[size_++ % page_size] = value;
    return true;
  }

 private:
  static constexpr uint32_t page_size = 1024;
  uint32_t limit_, size_ = 0;
  std::vector<std::unique_ptr<T[]>> pages_;
};

// A hash table of numbers, for the keys of a table beside it: linear probing, at most half full.
class Slots {
 public:
  static constexpr uint32_t empty = UINT32_MAX;

  // The number for which equal(number) holds, or empty.
  template <class Equal>
  uint32_t find(uint64_t key, Equal equal) const {
    if (!slots_) return empty;
    for (size_t at = start(key);; at = (at + 1) & mask_)
      if (slots_[at] == empty || equal(slots_[at])) return slots_[at];
  }

  // Makes room for one more number; false: no memory. key_of(number) is asked when the table grows.
  template <class KeyOf>
  bool reserve(KeyOf key_of) {
    return (slots_ && (used_ + 1) * 2 <= mask_ + 1) || grow(key_of);
  }
  // Adds a number that is not in it, after reserve().
  void add(uint64_t key, uint32_t number) {
    put(key, number);
    ++used_;
  }
  size_t bytes() const { return slots_ ? (mask_ + 1) * sizeof(uint32_t) : 0; }

 private:
  // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
  size_t start(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ull) >> shift_; }
  void put(uint64_t key, uint32_t number) {
    size_t at = start(key);
    while (slots_[at] != empty) at = (at + 1) & mask_;
    slots_[at] = number;
  }
  template <class KeyOf>
  bool grow(KeyOf key_of) {
    const size_t size = slots_ ? (mask_ + 1) * 2 : 256;
    std::unique_ptr<uint32_t[]> grown(new (std::nothrow) uint32_t[size]);
    if (!grown) return false;
    std::fill_n(grown.get(), size, empty);
    std::unique_ptr<uint32_t[]> old = std::move(slots_);
    const size_t old_size = old ? mask_ + 1 : 0;
    slots_ = std::move(grown);
    mask_ = size - 1;
    shift_ = 64 - std::countr_zero(size);
    for (size_t i = 0; i < old_size; ++i)
      if (old[i] != empty) put(key_of(old[i]), old[i]);
    return true;
  }

  std::unique_ptr<uint32_t[]> slots_;
  size_t mask_ = 0, used_ = 0;
  int shift_ = 64;
};

}  // namespace strobe::structure

// growing_tables.h - tables that grow while the program runs, and do not throw where memory ends.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace strobe {

// An array that doubles its space up to a limit. realloc() moves the pages of a large one instead of copying them.
template <class T>
class Growing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Growing(uint32_t limit) : limit_(limit) {}

  uint32_t size() const { return size_; }
  size_t bytes() const { return size_t{capacity_} * sizeof(T); }
  T& operator[](uint32_t i) { return rows_.get()[i]; }
  const T& operator[](uint32_t i) const { return rows_.get()[i]; }

  // False: the limit is reached, or memory is used up.
  bool push(const T& value) {
    if (size_ == capacity_ && !grow()) return false;
    rows_.get()[size_++] = value;
    return true;
  }

 private:
  bool grow() {
    const auto capacity = uint32_t(std::min<uint64_t>(limit_, std::max<uint64_t>(64, capacity_ * 2ull)));
    if (capacity == size_) return false;
    void* rows = std::realloc(static_cast<void*>(rows_.get()), capacity * sizeof(T));
    if (!rows) return false;
    static_cast<void>(rows_.release());
    rows_.reset(static_cast<T*>(rows));
    capacity_ = capacity;
    return true;
  }
  struct Free {
    void operator()(T* rows) const { std::free(static_cast<void*>(rows)); }
  };

  uint32_t limit_, size_ = 0, capacity_ = 0;
  std::unique_ptr<T, Free> rows_;
};

// A hash table of numbers below `most`, for the keys of a table beside it: linear probing, at most half full. A slot
// holds some bits of the key's hash, too: most of the other keys that lie in the way are passed without a look at that
// table, which is larger than a processor's cache. A key may be a hash itself: `equal` decides.
class Slots {
 public:
  static constexpr uint32_t empty = UINT32_MAX;
  static constexpr uint32_t most = (1u << 24) - 1;

  // The number for which equal(number) holds, or empty.
  template <class Equal>
  uint32_t find(uint64_t key, Equal equal) const {
    if (slots_.empty()) return empty;
    const uint64_t hash = hash_of(key);
    const uint32_t tag = tag_of(hash);
    for (size_t at = hash >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      const uint32_t slot = slots_[at];
      if (slot == empty) return empty;
      if ((slot & ~most) == tag && equal(slot & most)) return slot & most;
    }
  }

  // Makes room for one more number; false: no memory. key_of(number) is asked when the table grows.
  template <class KeyOf>
  bool reserve(KeyOf key_of) {
    return (used_ + 1) * 2 <= slots_.size() || grow(key_of);
  }
  // Adds a number that is not in it, after reserve().
  void add(uint64_t key, uint32_t number) {
    put(key, number);
    ++used_;
  }
  // The same for tables that cannot do without. Throws std::bad_alloc.
  template <class KeyOf>
  void add(uint64_t key, uint32_t number, KeyOf key_of) {
    if (!reserve(key_of)) throw std::bad_alloc();
    add(key, number);
  }
  size_t bytes() const { return slots_.size() * sizeof(uint32_t); }

 private:
  // Fibonacci hashing: the upper bits of the product depend on all bits of the key. They choose the slot; the tag is
  // taken from the middle.
  static uint64_t hash_of(uint64_t key) { return key * 0x9E3779B97F4A7C15ull; }
  static uint32_t tag_of(uint64_t hash) { return uint32_t(hash >> 8) & ~most; }
  void put(uint64_t key, uint32_t number) {
    const uint64_t hash = hash_of(key);
    size_t at = hash >> shift_;
    while (slots_[at] != empty) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = tag_of(hash) | number;
  }
  template <class KeyOf>
  bool grow(KeyOf key_of) {
    std::vector<uint32_t> old;
    try {
      old.assign(std::max<size_t>(256, slots_.size() * 2), empty);
    } catch (const std::bad_alloc&) {
      return false;
    }
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const uint32_t slot : old)
      if (slot != empty) put(key_of(slot & most), slot & most);
    return true;
  }

  std::vector<uint32_t> slots_;
  size_t used_ = 0;
  int shift_ = 64;
};

}  // namespace strobe

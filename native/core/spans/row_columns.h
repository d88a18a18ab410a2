// row_columns.h - the rows of a location as columns from which rows go at the front and from the middle: iterations of
// a microsecond end thousands of times before the rows behind them are decided.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <vector>

namespace strobe {

template <class T>
class Column {
 public:
  T& operator[](size_t row) { return values_[front_ + row]; }
  const T& operator[](size_t row) const { return values_[front_ + row]; }
  size_t size() const { return values_.size() - front_; }
  void push_back(T value) { values_.push_back(value); }
  void resize(size_t size) { values_.resize(front_ + size); }
  void clear() { values_.clear(), front_ = 0; }
  // At once, or when it is worth it.
  void drop_front(size_t rows, bool at_once) {
    front_ += rows;
    if (!at_once && (front_ < kRoom || 2 * front_ < values_.size())) return;
    values_.erase(values_.begin(), values_.begin() + ptrdiff_t(front_));
    front_ = 0;
  }
  const T* begin() const { return values_.data() + front_; }
  const T* end() const { return values_.data() + values_.size(); }
  T* begin() { return values_.data() + front_; }
  T* end() { return values_.data() + values_.size(); }

 private:
  static constexpr size_t kRoom = 1024;
  std::vector<T> values_;
  size_t front_ = 0;
};

struct RowColumns {
  Column<int64_t> start_ns;
  Column<int64_t> duration_ns;  // kOpen: it has not ended
  Column<uint32_t> path;
  Column<uint32_t> depth, offset;  // only with an observer; the offset of its record is from the last block's end
  size_t size() const { return start_ns.size(); }
};

}  // namespace strobe

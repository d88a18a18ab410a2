// recorder_cost.h - what recording costs the program: the time of its records, and of hooks that run even where nothing
// is recorded.
#pragma once
#include <stdint.h>
#include <atomic>

namespace strobe {

class RecorderCost {
 public:
  void begin();  // of a recording
  // A hook that costs the program `ns` each time that `times` grows by one.
  void set_hook(const uint64_t* times, double ns);
  double of_hooks_ns() const;
  void add_records(uint64_t n) { records_ += n; }
  double of_records_ns() const { return put_ns_ * double(records_); }
  double put_ns() const { return put_ns_; }  // one record, on this machine

 private:
  uint64_t records_ = 0;
  double put_ns_ = 0;
  std::atomic<const uint64_t*> hook_times_{nullptr};
  uint64_t hook_times_before_ = 0;  // this recording
  double hook_ns_ = 0;
};

}  // namespace strobe

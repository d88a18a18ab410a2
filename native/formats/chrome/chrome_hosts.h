// chrome_hosts.h - the processes of a file that is merged of several by time: whose the work of a GPU is.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::chrome {

// A call that launches work, by number of its process.
struct Call {
  int64_t correlation = 0;
  uint32_t process = 0xFFFFFFFF;
  bool operator==(const Call&) const = default;
};

class ChromeHosts {
 public:
  // An event of a thread of this process.
  void come(uint32_t process) {
    if (process == last_) return;
    if (is_known_.size() <= process) is_known_.resize(size_t(process) + 1);
    take_turns_ |= is_known_[process];
    if (!is_known_[process] && hosts_.size() < kMostHosts) hosts_.push_back(process);
    is_known_[process] = true;
    last_ = process;
  }

  // Whether a process came again after another.
  bool take_turns() const { return take_turns_; }

  void called(const Call& call) {
    auto& bucket = bucket_of(call);
    std::ranges::move_backward(bucket.begin(), bucket.end() - 1, bucket.end());
    bucket.front() = call;
  }

  // Whose work on a GPU is: that of the process with its call. Several may count their calls alike: of these it is the
  // one that the GPU is known by, else `last`, whose events came last. So it is without a call.
  uint32_t user_of(std::string_view gpu, int64_t correlation, uint32_t last) {
    const auto user = users_.find(gpu);
    const uint32_t usual = user == users_.end() ? last : user->second;
    uint32_t found = usual;
    size_t number = 0;
    bool usual_called = false;
    for (const uint32_t process : hosts_) {
      const Call call{correlation, process};
      if (correlation <= 0 || std::ranges::find(bucket_of(call), call) == bucket_of(call).end()) continue;
      number++, found = process, usual_called |= process == usual;
    }
    if (number == 1) users_.insert_or_assign(std::string(gpu), found);
    return usual_called ? usual : found;
  }

 private:
  static constexpr size_t kBuckets = size_t(1) << 14;
  static constexpr size_t kMostHosts = 64;  // calls of more are not looked for

  std::array<Call, 4>& bucket_of(const Call& call) {
    return recent_[(uint64_t(call.correlation) << 8 ^ call.process) * 0x9E3779B97F4A7C15u >> 50];
  }

  // The latest calls, four by hash, the newest first: a GPU does not stay behind for longer.
  std::vector<std::array<Call, 4>> recent_ = std::vector<std::array<Call, 4>>(kBuckets);
  std::vector<uint32_t> hosts_;  // as they came
  std::vector<bool> is_known_;   // by process
  uint32_t last_ = 0xFFFFFFFF;
  bool take_turns_ = false;
  std::map<std::string, uint32_t, std::less<>> users_;  // by GPU: who is known to launch work there
};

}  // namespace strobe::chrome

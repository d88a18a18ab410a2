#include "kernels/messages/fifo.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

namespace strobe {

namespace {

using Key = std::array<int64_t, 4>;
constexpr uint32_t kNone = UINT32_MAX;

// Numbers keys as they are met.
class Keys {
 public:
  uint32_t number(const Key& key) {
    if (2 * (known_.size() + 1) > table_.size()) grow();
    uint32_t& found = table_[place(key)];
    if (found == kNone) found = uint32_t(known_.size()), known_.push_back(key);
    return found;
  }
  const std::vector<Key>& known() const { return known_; }

 private:
  size_t place(const Key& key) const {
    uint64_t hash = 0;
    for (const int64_t part : key) hash = (hash ^ uint64_t(part)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 32;
    size_t at = hash & (table_.size() - 1);
    while (table_[at] != kNone && known_[table_[at]] != key) at = (at + 1) & (table_.size() - 1);
    return at;
  }
  void grow() {
    table_.assign(2 * table_.size(), kNone);
    for (uint32_t i = 0; i < known_.size(); i++) table_[place(known_[i])] = i;
  }
  std::vector<Key> known_;
  std::vector<uint32_t> table_ = std::vector<uint32_t>(1024, kNone);
};

// One side of all messages: its ends by key, in the order in which they were asked for.
struct Side {
  std::vector<size_t> begin;  // by key, and one behind the last
  std::vector<int64_t> end;

  Side(const MessageEnds& of, const std::vector<uint32_t>& key, size_t keys, bool sent) : begin(keys + 1) {
    for (size_t i = 0; i < key.size(); i++)
      if (key[i] != kNone && (of.sent[i] != 0) == sent) begin[key[i] + 1]++;
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    end.resize(begin.back());
    std::vector<size_t> next(begin.begin(), begin.end() - 1);
    for (size_t i = 0; i < key.size(); i++)
      if (key[i] != kNone && (of.sent[i] != 0) == sent) end[next[key[i]]++] = int64_t(i);
    const auto earlier = [&](int64_t a, int64_t b) { return of.asked_ns[size_t(a)] < of.asked_ns[size_t(b)]; };
    for (size_t k = 0; k < keys; k++) {
      const auto first = end.begin() + ptrdiff_t(begin[k]), last = end.begin() + ptrdiff_t(begin[k + 1]);
      if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
    }
  }
  size_t count(size_t key) const { return begin[key + 1] - begin[key]; }
};

}  // namespace

MatchedEnds match_fifo(const MessageEnds& ends, bool complete) {
  Keys keys;
  std::vector<uint32_t> key(ends.sent.size(), kNone);
  for (size_t i = 0; i < key.size(); i++)
    if (ends.sender[i] >= 0 && ends.receiver[i] >= 0)
      key[i] = keys.number({ends.sender[i], ends.receiver[i], ends.communicator[i], ends.tag[i]});
  const size_t count = keys.known().size();
  const Side sends(ends, key, count, true), receives(ends, key, count, false);
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t k) { return keys.known()[k]; });
  MatchedEnds out;
  for (const uint32_t k : order) {
    if (complete && sends.count(k) != receives.count(k)) continue;
    const auto both = ptrdiff_t(std::min(sends.count(k), receives.count(k)));
    const auto send = sends.end.begin() + ptrdiff_t(sends.begin[k]);
    const auto receive = receives.end.begin() + ptrdiff_t(receives.begin[k]);
    out.send.insert(out.send.end(), send, send + both);
    out.receive.insert(out.receive.end(), receive, receive + both);
  }
  return out;
}

std::vector<int64_t> in_order_of(std::span<const int64_t> group, size_t groups) {
  std::vector<size_t> next(groups + 1);
  for (const int64_t each : group) next[size_t(each) + 1]++;
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<int64_t> out(group.size());
  for (size_t i = 0; i < group.size(); i++) out[next[size_t(group[i])]++] = int64_t(i);
  return out;
}

void join_at(std::span<int64_t> into, std::span<const int64_t> group, std::span<const int64_t> values, Join join) {
  const auto each = [&](auto joined) {
    for (size_t i = 0; i < group.size(); i++) {
      int64_t& found = into[size_t(group[i])];
      found = joined(found, values[i]);
    }
  };
  if (join == Join::least) return each([](int64_t a, int64_t b) { return std::min(a, b); });
  if (join == Join::most) return each([](int64_t a, int64_t b) { return std::max(a, b); });
  each([](int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); });
}

std::vector<int64_t> least_in_ranges(std::span<const int64_t> values, std::span<const int64_t> first,
                                     std::span<const int64_t> last) {
  std::vector<int64_t> out(first.size(), INT64_MAX);
  std::deque<size_t> rising;  // places of values, each the least of those from there to `seen`
  size_t seen = 0;
  for (size_t i = 0; i < out.size(); i++) {
    for (; seen < size_t(last[i]); seen++) {
      while (!rising.empty() && values[rising.back()] >= values[seen]) rising.pop_back();
      rising.push_back(seen);
    }
    while (!rising.empty() && rising.front() < size_t(first[i])) rising.pop_front();
    if (first[i] < last[i]) out[i] = values[rising.front()];
  }
  return out;
}

}  // namespace strobe

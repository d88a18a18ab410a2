#include "formats/chrome/graph_captures.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace strobe::chrome {

namespace {
constexpr size_t kMostCalls = size_t(1) << 22;
constexpr size_t kFewMissing = 100;  // one in so many kernels of a capture may be missing in a replay, or one in all
}  // namespace

uint32_t GraphCaptures::number(std::string_view name) {
  return numbers_.try_emplace(std::string(name), kFirstName + uint32_t(numbers_.size())).first->second;
}

void GraphCaptures::call(uint64_t row, int64_t start_ns, int64_t correlation, std::string_view name,
                         std::string_view kernel) {
  const bool begins = name.find("StreamBeginCapture") != name.npos;
  const bool ends = name.find("StreamEndCapture") != name.npos, launches = name.find("GraphLaunch") != name.npos;
  if (launches) graph_launches_.insert(correlation);
  captures_ |= begins;
  if ((kernel.empty() && !begins && !ends && !launches) || calls_.size() >= kMostCalls) return;
  calls_.push_back({row, start_ns, correlation, begins ? kBegin : ends ? kEnd : launches ? kLaunch : number(kernel)});
}

void GraphCaptures::kernel(int64_t correlation, int64_t start_ns, std::string_view name) {
  kernels_.push_back({correlation, start_ns, number(name)});
}

std::vector<GraphCaptures::Capture> GraphCaptures::captures() const {
  std::vector<Call> calls = calls_;
  std::ranges::stable_sort(calls, {}, [](const Call& each) { return std::pair(each.row, each.start_ns); });
  std::vector<Capture> found;
  bool open = false;
  for (size_t i = 0; i < calls.size(); i++) {
    const Call& call = calls[i];
    if (i && call.row != calls[i - 1].row) open = false;
    if (call.name == kBegin) {
      found.emplace_back(), open = true;
    } else if (call.name == kEnd) {
      open = false;
    } else if (open && call.name >= kFirstName) {
      found.back().names.push_back(call.name), found.back().calls.push_back(call.correlation);
    }
  }
  return found;
}

// The calls of a replay's kernels, 0 where that is not certain; none at all where it is not of this capture.
std::vector<int64_t> GraphCaptures::aligned(const Names& names, const Capture& capture) {
  std::vector<int64_t> calls(names.size(), 0);
  const size_t n = names.size(), m = capture.names.size();
  if (n > m || m - n > std::max<size_t>(1, m / kFewMissing)) return {};
  std::vector<size_t> from_front(n);
  size_t at = 0, i = 0;
  for (; i < n; i++, at++) {
    while (at < m && capture.names[at] != names[i]) at++;
    if (at == m) break;
    from_front[i] = at;
  }
  if (i == n) {
    at = m;
    for (size_t k = n; k-- > 0;) {
      while (capture.names[--at] != names[k]) {
      }
      if (from_front[k] == at) calls[k] = capture.calls[at];
    }
    return calls;
  }
  // In another order.
  Names have = names, had = capture.names;
  std::ranges::sort(have), std::ranges::sort(had);
  if (!std::ranges::includes(had, have)) return {};
  const auto once = [](const Names& sorted, uint32_t name) {
    const auto same = std::ranges::equal_range(sorted, name);
    return same.size() == 1;
  };
  for (size_t k = 0; k < n; k++)
    if (once(have, names[k]) && once(had, names[k]))
      calls[k] = capture.calls[size_t(std::ranges::find(capture.names, names[k]) - capture.names.begin())];
  return calls;
}

std::vector<int64_t> GraphCaptures::captured() const {
  const std::vector<Capture> known = captures();
  std::unordered_map<int64_t, int64_t> launched_ns;
  for (const Call& call : calls_)
    if (call.name == kLaunch) launched_ns.emplace(call.correlation, call.start_ns);
  std::vector<size_t> order(kernels_.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::stable_sort(order, {}, [&](size_t k) {
    const Kernel& kernel = kernels_[k];
    const auto launch = launched_ns.find(kernel.correlation);
    return std::tuple(launch == launched_ns.end() ? kernel.start_ns : launch->second, kernel.correlation,
                      kernel.start_ns);
  });
  struct Candidates {
    std::vector<std::vector<int64_t>> all;  // the calls, by capture
    size_t used = 0;
  };
  std::map<Names, Candidates> of_names;
  std::vector<int64_t> out(kernels_.size(), 0);
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    const int64_t correlation = kernels_[order[begin]].correlation;
    Names names;
    for (end = begin; end < order.size() && kernels_[order[end]].correlation == correlation; end++)
      names.push_back(kernels_[order[end]].name);
    const auto [found, is_new] = of_names.try_emplace(names);
    Candidates& candidates = found->second;
    if (is_new) {
      for (size_t c = 0; c < known.size(); c++)
        if (known[c].names == names) candidates.all.push_back(known[c].calls);
      for (size_t c = 0; c < known.size() && candidates.all.empty(); c++)
        if (auto calls = aligned(names, known[c]); !calls.empty()) candidates.all.push_back(std::move(calls));
    }
    if (candidates.all.empty()) continue;
    const std::vector<int64_t>& calls = candidates.all[candidates.used++ % candidates.all.size()];
    for (size_t k = begin; k < end; k++) out[order[k]] = calls[k - begin];
  }
  return out;
}

}  // namespace strobe::chrome

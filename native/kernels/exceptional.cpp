#include "kernels/exceptional.h"

#include <functional>
#include <unordered_map>

#include "structure/varint.h"

namespace strobe {

namespace {

constexpr size_t kSampledBlocks = 64;
constexpr size_t kFewest = 16;
constexpr int64_t kTimesMedian = 16;
constexpr size_t kOneIn = 256;

int64_t times(int64_t ns, int64_t factor) { return ns > INT64_MAX / factor ? INT64_MAX : ns * factor; }

int64_t threshold_of(std::vector<int64_t>& lengths) {
  const size_t n = lengths.size();
  if (n < kFewest) return INT64_MAX;
  const auto median = lengths.begin() + ptrdiff_t((n - 1) / 2), usual = lengths.begin() + ptrdiff_t(n / kOneIn + 1);
  std::nth_element(lengths.begin(), usual, lengths.end(), std::greater<>());
  const int64_t longest_usual = *usual;
  std::nth_element(lengths.begin(), median, lengths.end());
  return std::max(times(*median, kTimesMedian), times(longest_usual, 2));
}

}  // namespace

Exceptional::Exceptional(const ProcessFile& file, uint32_t location) {
  read_folded(file);
  const auto found = file.locations.find(location);
  if (found == file.locations.end()) return;
  std::unordered_map<uint32_t, std::vector<int64_t>> lengths;
  BlockScratch scratch;
  const size_t blocks = found->second.blocks.size(), sampled = std::min(blocks, kSampledBlocks);
  for (size_t i = 0; i < sampled; i++)
    visit_block(
        file, found->second, i * blocks / sampled, INT64_MAX, scratch, [](int64_t, uint32_t) {},
        [&](const Stretch& stretch) {
          if (!folded(stretch)) lengths[stretch.region].push_back(stretch.end_ns - stretch.start_ns);
        });
  std::vector<int64_t> all;
  for (auto& [region, own] : lengths) {
    if (region == kGap) {
      gaps_ns_ = threshold_of(own);
      continue;
    }
    all.insert(all.end(), own.begin(), own.end());
    if (own.size() >= kFewest) set(region, threshold_of(own));
  }
  others_ns_ = threshold_of(all);
}

Exceptional::Exceptional(const ProcessFile& file, std::string_view encoded) {
  read_folded(file);
  structure::VarintReader in{encoded};
  const int64_t gaps = int64_t(in.number()), others = int64_t(in.number());
  uint64_t region = 0;
  while (in.ok && !in.bytes.empty()) {
    region += in.number();
    const int64_t threshold = int64_t(in.number());
    if (!in.ok || region >= (1u << 26)) return;
    set(uint32_t(region), threshold);
  }
  if (in.ok) gaps_ns_ = gaps, others_ns_ = others;
}

std::string Exceptional::encoded() const {
  structure::VarintWriter out;
  out.number(uint64_t(gaps_ns_)), out.number(uint64_t(others_ns_));
  size_t before = 0;
  for (size_t region = 0; region < by_region_.size(); region++)
    if (by_region_[region]) out.number(region - before), out.number(uint64_t(by_region_[region])), before = region;
  return out.bytes;
}

void Exceptional::set(uint32_t region, int64_t threshold_ns) {
  if (by_region_.size() <= region) by_region_.resize(region + 1);
  by_region_[region] = std::max<int64_t>(threshold_ns, 1);
}

void Exceptional::read_folded(const ProcessFile& file) {
  for (const structure::IterationRecord& each : file.iterations) {
    if (each.detail == structure::kAllDetail) continue;
    const int64_t begin = each.start_ns, end = each.start_ns + each.duration_ns;
    if (!folded_.empty() && begin <= folded_.back().second)
      folded_.back().second = std::max(folded_.back().second, end);
    else
      folded_.push_back({begin, end});
  }
}

bool Exceptional::folded(const Stretch& stretch) const {
  // The last that begins before the stretch ends.
  const auto after = std::lower_bound(folded_.begin(), folded_.end(), stretch.end_ns,
                                      [](const auto& each, int64_t time) { return each.first < time; });
  return after != folded_.begin() && std::prev(after)->second > stretch.start_ns;
}

}  // namespace strobe

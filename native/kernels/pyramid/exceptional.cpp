#include "kernels/pyramid/exceptional.h"

#include <bit>
#include <iterator>
#include <memory>

namespace strobe {

namespace {

constexpr size_t kSampledBlocks = 16;
constexpr uint64_t kFewest = 16;
constexpr int64_t kTimesMedian = 16;
constexpr uint64_t kOneIn = 256;

int64_t times(int64_t ns, int64_t factor) { return ns > INT64_MAX / factor ? INT64_MAX : ns * factor; }

// How many stretches there are of each length, rounded down to five significant bits.
class Lengths {
 public:
  void add(int64_t ns) {
    const uint32_t octave = std::bit_width(uint64_t(ns)) - 1u;
    const auto sixteenth = uint32_t((octave >= 4 ? ns >> (octave - 4) : ns << (4 - octave)) & 15);
    count_[octave * 16 + sixteenth]++, n_++;
  }
  void add(const Lengths& other) {
    for (size_t i = 0; i < std::size(count_); i++) count_[i] += other.count_[i];
    n_ += other.n_;
  }
  uint64_t size() const { return n_; }
  int64_t threshold() const {
    if (n_ < kFewest) return INT64_MAX;
    return std::max(times(at((n_ - 1) / 2), kTimesMedian), times(at(n_ - 2 - n_ / kOneIn), 2));
  }

 private:
  int64_t at(uint64_t rank) const {  // 0: the shortest
    size_t i = 0;
    while (rank >= count_[i]) rank -= count_[i++];
    const size_t octave = i / 16;
    return octave >= 4 ? int64_t(16 + i % 16) << (octave - 4) : int64_t(16 + i % 16) >> (4 - octave);
  }
  uint64_t count_[64 * 16] = {};
  uint64_t n_ = 0;
};

}  // namespace

Exceptional::Exceptional(const ProcessFile& file, uint32_t location) {
  read_folded(file);
  const auto found = file.locations.find(location);
  if (found == file.locations.end()) return;
  std::vector<std::unique_ptr<Lengths>> lengths;  // by region
  Lengths gaps, all;
  BlockScratch scratch;
  const size_t blocks = found->second.blocks.size(), sampled = std::min(blocks, kSampledBlocks);
  for (size_t i = 0; i < sampled; i++)
    visit_block(
        file, found->second, i * blocks / sampled, INT64_MAX, scratch, [](int64_t, uint32_t) {},
        [&](const Stretch& stretch) {
          if (folded(stretch)) return;
          const int64_t ns = stretch.end_ns - stretch.start_ns;
          if (stretch.region == kGap) {
            gaps.add(ns);
            return;
          }
          if (lengths.size() <= stretch.region) lengths.resize(stretch.region + 1);
          std::unique_ptr<Lengths>& own = lengths[stretch.region];
          if (!own) own = std::make_unique<Lengths>();
          own->add(ns);
        });
  for (uint32_t region = 0; region < lengths.size(); region++) {
    if (!lengths[region]) continue;
    all.add(*lengths[region]);
    if (lengths[region]->size() >= kFewest) set(region, lengths[region]->threshold());
  }
  others_ns_ = all.threshold(), gaps_ns_ = gaps.threshold();
}

Exceptional::Exceptional(const ProcessFile& file, std::string_view encoded) {
  read_folded(file);
  ByteReader in{encoded};
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
  Writer out;
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
  const auto after = std::ranges::lower_bound(folded_, stretch.end_ns, {}, &std::pair<int64_t, int64_t>::first);
  return after != folded_.begin() && std::prev(after)->second > stretch.start_ns;
}

}  // namespace strobe

#include "kernels/pyramid/tile.h"

#include <string.h>

#include <algorithm>
#include <bit>
#include <optional>

#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_c_literalCompressionMode; ours is the only zstd that is linked
#include "zstd.h"

namespace strobe {

namespace {

constexpr size_t kLargestFrame = 64 << 20;

// Regions of a tile are numbered in the order of its profile: 0 nothing (or a gap), i + 1 the i-th.
class Numbers {
 public:
  explicit Numbers(const std::vector<RegionSum>& profile) : profile_(profile) {}
  uint32_t of(uint32_t region) const {
    const auto found = std::ranges::lower_bound(profile_, region, {}, &RegionSum::region);
    return found != profile_.end() && found->region == region ? uint32_t(found - profile_.begin()) + 1 : 0;
  }

 private:
  const std::vector<RegionSum>& profile_;
};

}  // namespace

std::string compressed(std::string_view bytes, bool few) {
  ZSTD_CCtx* context = compressor();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, few ? ZSTD_lcm_uncompressed : ZSTD_lcm_auto);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t n = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
  out.resize(ZSTD_isError(n) ? 0 : n);  // cannot happen: there is room by construction
  return out;
}

bool decompressed(std::string_view frame, std::string& out) {
  const std::optional<size_t> size = decompressed_size(frame, kLargestFrame);
  if (!size) return false;
  out.resize(*size);
  return decompress(frame, out.data(), *size);
}

// Regions and marks as varints, then the planes of bins: the upper bytes of regions are left out where the tile has no
// more than a byte can number. Then the shares of groups, without those that fill nothing; then the profile.
std::string encode_tile(const Tile& tile) {
  const bool of_location = !tile.profile.empty();
  const Numbers numbers(tile.profile);
  Writer picture, groups, profile;
  picture.number(tile.profile.size());
  uint32_t before = 0;
  for (const RegionSum& each : tile.profile) {
    picture.number(each.region - before);
    profile.number(each.count), profile.number(uint64_t(each.own_ns));
    before = each.region;
  }
  picture.number(tile.marks.size());
  before = 0;
  for (const Mark& mark : tile.marks) {
    picture.number(mark.bin - before);
    before = mark.bin;
    // Of a row: kGap becomes 0 by wrapping round.
    picture.number(of_location ? numbers.of(mark.region) : uint32_t(mark.region - kGap));
    picture.number(uint64_t(mark.ns));
  }
  if (of_location) {
    char planes[3][kTileBins];
    for (uint32_t i = 0; i < kTileBins; i++) {
      const uint32_t number = tile.region[i] == kNothing ? 0 : numbers.of(tile.region[i]);
      planes[0][i] = char(number), planes[1][i] = char(number >> 8), planes[2][i] = char(number >> 16);
    }
    const size_t regions = tile.profile.size();
    picture.bytes.append(planes[0], kTileBins * (regions < 0x100 ? 1 : regions < 0x10000 ? 2 : 3));
    picture.bytes.append(reinterpret_cast<const char*>(tile.share), kTileBins);
  }
  uint8_t filled = 0;
  for (uint32_t group = 0; group < kMaxGroups; group++)
    if (std::any_of(tile.groups[group], tile.groups[group] + kTileBins, [](uint8_t share) { return share != 0; }))
      filled = uint8_t(filled | 1u << group);
  groups.raw(filled);
  for (uint32_t group = 0; group < kMaxGroups; group++)
    if (filled >> group & 1) groups.bytes.append(reinterpret_cast<const char*>(tile.groups[group]), kTileBins);
  const std::string first = compressed(picture.bytes), second = compressed(groups.bytes);
  Writer out;
  out.number(first.size()), out.number(second.size());
  out.bytes += first;
  out.bytes += second;
  if (of_location) out.bytes += compressed(profile.bytes, true);
  return out.bytes;
}

namespace {

bool decode_picture(std::string_view frame, uint32_t parts, Tile& out, std::string& bytes) {
  if (!decompressed(frame, bytes)) return false;
  ByteReader in{bytes};
  const uint64_t regions = in.number();
  if (regions > bytes.size()) return false;
  out.marks.clear();
  out.profile.resize(regions);
  uint32_t region = 0;
  for (RegionSum& each : out.profile) each = {region += in.number32(), 0, 0};
  const uint64_t marks = in.number();
  if (marks > kTileBins) return false;
  uint64_t bin = 0;
  for (uint64_t i = 0; i < marks; i++) {
    bin += in.number32();
    const uint32_t number = in.number32();
    const auto ns = int64_t(in.number());
    if (bin >= kTileBins || (regions && number > regions)) return false;
    const uint32_t of = !regions ? number + kGap : number ? out.profile[number - 1].region : kGap;
    out.marks.push_back({uint32_t(bin), of, ns});
  }
  const size_t number_bytes = !regions ? 0 : regions < 0x100 ? 1 : regions < 0x10000 ? 2 : 3;
  if (!in.ok || in.bytes.size() != (number_bytes + (regions ? 1 : 0)) * kTileBins) return false;
  if (!(parts & kPictureOfTile)) return true;
  if (!regions) {
    std::fill(out.region, out.region + kTileBins, kNothing);
    memset(out.share, 0, kTileBins);
    return true;
  }
  const auto* plane = reinterpret_cast<const uint8_t*>(in.bytes.data());
  uint32_t numbers[kTileBins], most = 0;
  for (uint32_t i = 0; i < kTileBins; i++) numbers[i] = plane[i];
  for (size_t byte = 1; byte < number_bytes; byte++)
    for (uint32_t i = 0; i < kTileBins; i++) numbers[i] |= uint32_t(plane[byte * kTileBins + i]) << (8 * byte);
  for (const uint32_t number : numbers) most = std::max(most, number);
  if (most > regions) return false;
  for (uint32_t i = 0; i < kTileBins; i++) out.region[i] = numbers[i] ? out.profile[numbers[i] - 1].region : kNothing;
  memcpy(out.share, plane + number_bytes * kTileBins, kTileBins);
  return true;
}

bool decode_groups(std::string_view frame, Tile& out, std::string& bytes) {
  if (!decompressed(frame, bytes)) return false;
  ByteReader in{bytes};
  const auto filled = in.raw<uint8_t>();
  if (!in.ok || in.bytes.size() != size_t(std::popcount(filled)) * kTileBins) return false;
  const auto* plane = reinterpret_cast<const uint8_t*>(in.bytes.data());
  for (auto& group : out.groups) {
    if (filled >> (&group - out.groups) & 1)
      memcpy(group, plane, kTileBins), plane += kTileBins;
    else
      memset(group, 0, kTileBins);
  }
  return true;
}

bool decode_profile(std::string_view frame, Tile& out, std::string& bytes) {
  if (out.profile.empty()) return frame.empty();
  if (!decompressed(frame, bytes)) return false;
  ByteReader in{bytes};
  for (RegionSum& each : out.profile) each.count = in.number(), each.own_ns = int64_t(in.number());
  return in.ok && in.bytes.empty();
}

}  // namespace

bool decode_tile(std::string_view frames, uint32_t parts, Tile& out) {
  thread_local std::string of_thread;
  std::string& bytes = of_thread;
  ByteReader in{frames};
  const uint64_t picture = in.number(), groups = in.number();
  const std::string_view rest = in.bytes;
  if (!in.ok || picture > rest.size() || groups > rest.size() - picture) return false;
  return decode_picture(rest.substr(0, picture), parts, out, bytes) &&
         (!(parts & kGroupsOfTile) || decode_groups(rest.substr(picture, groups), out, bytes)) &&
         (!(parts & kProfileOfTile) || decode_profile(rest.substr(picture + groups), out, bytes));
}

}  // namespace strobe

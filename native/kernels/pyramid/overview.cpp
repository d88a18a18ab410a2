#include "kernels/pyramid/overview.h"

#include <algorithm>

namespace strobe {

namespace {

uint32_t level_key(uint32_t row_level, uint32_t level) { return row_level << 8 | level; }

// Members of a row, and how many rows there are.
struct Rows {
  uint32_t members;
  uint64_t count(uint32_t row_level) const {
    return (members + (uint64_t(1) << (kRowBits * row_level)) - 1) >> (kRowBits * row_level);
  }
  uint64_t first(uint32_t row_level, uint64_t row) const {
    return std::min<uint64_t>(row << (kRowBits * row_level), members);
  }
  uint32_t size(uint32_t row_level, uint64_t row) const {
    return uint32_t(first(row_level, row + 1) - first(row_level, row));
  }
};

class Builder {
 public:
  Builder(const Place& place, TilesWriter& out) : place_(place), rows_{place.members}, out_(out) {
    while (rows_.count(top_row_) > 1) top_row_++;
    for (uint32_t member = 0; member < place.members; member++) {
      tracks_.push_back(place.track(member));
      tracks_.back().near = nullptr;  // no tile is asked for twice
    }
  }

  void build() {
    int top = -1;
    for (const Track& track : tracks_) {
      tops_.push_back(track.tiles->top_level(track.location));
      top = std::max(top, tops_.back());
    }
    if (top < 0 || top_row_ == 0) return;
    build(uint32_t(top), -1);
    build(uint32_t(top), 0);
  }

 private:
  void build(uint32_t level, int64_t index) {
    before_.assign(1, 0);
    for (size_t i = 0; i < tracks_.size(); i++) {
      // The coarsest tile of a location that ended early holds what a coarser one would.
      const uint32_t known = std::min(level, uint32_t(std::max(tops_[i], 0)));
      before_.push_back(before_.back() + tracks_[i].tiles->spans({tracks_[i].location, known, index}));
    }
    stored_ = false;
    visit(level, index, top_row_, 0, nullptr);
    if (!stored_ || level == 0) return;  // what begins in a half begins in the whole
    build(level - 1, index * 2);
    build(level - 1, index * 2 + 1);
  }

  bool exists(uint32_t row_level, uint64_t row) const {
    const uint32_t size = rows_.size(row_level, row);
    const uint64_t first = rows_.first(row_level, row);
    return row_level > 0 && size > 0 && before_[first + size] - before_[first] >= kRowSpans * size;
  }

  // Adds a row to the one that it is a part of, if that is wanted.
  void visit(uint32_t level, int64_t index, uint32_t row_level, uint64_t row, GroupRow* whole) {
    const uint64_t first = rows_.first(row_level, row);
    const uint32_t size = rows_.size(row_level, row);
    if (size == 0) return;
    const int64_t tile_ns = int64_t(kTileBins) << level;
    if (row_level == 0) {
      if (whole) add_groups(tracks_[first], {index * tile_ns, (index + 1) * tile_ns, kTileBins}, *whole);
      return;
    }
    const bool there = exists(row_level, row);
    if (!there && !whole && before_[first + size] - before_[first] < kRowSpans) return;  // and nothing below
    GroupRow own(there ? kTileBins : 0);
    for (uint64_t part = 0; part < 1u << kRowBits; part++)
      visit(level, index, row_level - 1, (row << kRowBits) + part, there ? &own : whole);
    if (!there) return;
    store({place_.first_row + uint32_t(row), level_key(row_level, level), index},
          before_[first + size] - before_[first], own, size);
    if (whole) add(own, *whole);
  }

  static void add(const GroupRow& part, GroupRow& whole) {
    for (size_t i = 0; i < part.shares.size(); i++) whole.shares[i] += part.shares[i];
    for (size_t bin = 0; bin < part.mark.size(); bin++)
      if (part.mark_ns[bin] > whole.mark_ns[bin])
        whole.mark_ns[bin] = part.mark_ns[bin], whole.mark[bin] = part.mark[bin];
  }

  void store(const TileKey& key, uint64_t spans, const GroupRow& row, uint32_t members) {
    stored_ = true;
    Tile tile;
    for (uint32_t bin = 0; bin < kTileBins; bin++) {
      for (uint32_t group = 0; group < kMaxGroups; group++)
        tile.groups[group][bin] = uint8_t(std::min(255.0, row.shares[bin * kMaxGroups + group] / members + 0.5));
      if (row.mark_ns[bin] > 0) tile.marks.push_back({bin, row.mark[bin], row.mark_ns[bin]});
    }
    out_.add(key, spans, encode_tile(tile));
  }

  const Place& place_;
  const Rows rows_;
  TilesWriter& out_;
  uint32_t top_row_ = 0;  // where one row stands for all members
  std::vector<Track> tracks_;
  std::vector<int> tops_;         // the coarsest level of each
  std::vector<uint64_t> before_;  // spans in the tiles of all members before one
  bool stored_ = false;
};

void add_part(const Place& place, const TilesFile& overview, uint32_t row_level, uint64_t row, const Window& window,
              int64_t from, int64_t to, GroupRow& out) {
  const Rows rows{place.members};
  const uint32_t size = rows.size(row_level, row);
  if (size == 0 || from >= to) return;
  if (row_level == 0) {
    Track track = place.track(uint32_t(row));
    track.begin_ns = std::max(track.begin_ns, from), track.end_ns = std::min(track.end_ns, to);
    add_groups(track, window, out);
    return;
  }
  auto members = [&](int64_t begin, int64_t end) {
    for (uint64_t part = 0; part < 1u << kRowBits; part++)
      add_part(place, overview, row_level - 1, (row << kRowBits) + part, window, begin, end, out);
  };
  bool aligned;
  const uint32_t location = place.first_row + uint32_t(row);
  const int level = std::min(level_of(window, aligned), overview.top_level(location, row_level));
  if (level < 0) {
    members(from, to);
    return;
  }
  const uint32_t bits = uint32_t(level) + kTileBits;
  // The coarsest tiles reach over everything, so what is outside of them has none.
  const int64_t reach = int64_t(1) << (uint32_t(overview.top_level(location, row_level)) + kTileBits);
  int64_t rest = from;
  Tile tile;
  for (int64_t index = std::max(from, -reach) >> bits; index <= (std::min(to, reach) - 1) >> bits; index++) {
    if (!overview.find({location, level_key(row_level, uint32_t(level)), index}, kGroupsOfTile, tile)) continue;
    const int64_t start = index * (int64_t(1) << bits);
    members(rest, std::min(start, to));
    add_tile(tile, uint32_t(level), start, size, window, out);
    rest = start + (int64_t(1) << bits);
  }
  members(rest, to);
}

}  // namespace

void build_overview(const std::vector<Place>& places, const TilesOf& of, const std::string& path) {
  TilesWriter out(path);
  for (const Place& place : places) Builder(place, out).build();
  out.finish(of);
}

uint32_t add_row(const Place& place, const TilesFile& overview, uint32_t row_level, uint64_t row, const Window& window,
                 GroupRow& out) {
  add_part(place, overview, row_level, row, window, window.start_ns, window.end_ns, out);
  return Rows{place.members}.size(row_level, row);
}

}  // namespace strobe

#include "kernels/pyramid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "zstd.h"

namespace strobe {

namespace {

constexpr uint32_t kTilesMagic = 0x4c495453;  // "STIL"
constexpr uint32_t kTilesVersion = 1;

struct Share {
  uint32_t region;
  int64_t ns;
};
using Histogram = std::vector<Share>;  // a handful of entries: linear search beats any map

void add(Histogram& h, uint32_t region, int64_t ns) {
  for (Share& s : h)
    if (s.region == region) {
      s.ns += ns;
      return;
    }
  h.push_back({region, ns});
}

Share largest(const Histogram& h) {
  Share best{kNothing, 0};
  for (const Share& s : h)
    if (s.ns > best.ns || (s.ns == best.ns && s.region < best.region)) best = s;
  return best;
}

// The location's innermost region as runs without overlap: [start, end) of one region each, gaps where nothing ran.
struct Run {
  int64_t start_ns, end_ns;
  uint32_t region;
};

template <class Emit>
void innermost_runs(const ProcessFile& file, uint32_t location, int64_t start_ns, int64_t end_ns, Emit&& emit) {
  struct Open {
    int64_t end_ns;
    uint32_t region;
  };
  std::vector<Open> stack;
  int64_t now = start_ns;
  auto run_until = [&](int64_t until) {
    until = std::min(until, end_ns);
    if (until <= now) return;
    if (!stack.empty()) emit(Run{now, until, stack.back().region});
    now = until;
  };
  file.each(location, start_ns, end_ns, [&](uint64_t, int64_t start, int64_t end, uint32_t path, bool) {
    while (!stack.empty() && stack.back().end_ns <= start) {
      run_until(stack.back().end_ns);
      stack.pop_back();
    }
    run_until(start);
    // A child that outlives its parent (a damaged block) is cut at the parent's end.
    if (!stack.empty()) end = std::min(end, stack.back().end_ns);
    stack.push_back({end, file.path_region[path]});
  });
  while (!stack.empty()) {
    run_until(stack.back().end_ns);
    stack.pop_back();
  }
}

class Builder {
 public:
  Builder(uint32_t location, const std::vector<Run>& runs, std::vector<int64_t> starts)
      : location_(location), runs_(runs), starts_(std::move(starts)) {}

  struct Entry {
    uint32_t location, level;
    int64_t index;
    uint32_t offset, size;
  };
  std::string frames;
  std::vector<Entry> entries;

  void build() {
    if (runs_.empty()) return;
    int64_t first = runs_.front().start_ns, last = runs_.back().end_ns;
    uint32_t level = 0;
    while ((first >> (level + 8)) != ((last - 1) >> (level + 8))) level++;
    tile(level, first >> (level + 8));
  }

 private:
  using Bins = std::vector<Histogram>;

  size_t spans_in(int64_t start, int64_t end) const {
    return size_t(std::lower_bound(starts_.begin(), starts_.end(), end) -
                  std::lower_bound(starts_.begin(), starts_.end(), start));
  }

  // Exact histograms of the tile's bins, merged upwards; stores every tile that covers enough spans.
  Bins tile(uint32_t level, int64_t index) {
    int64_t start = index << (level + 8), end = (index + 1) << (level + 8);
    if (spans_in(start, end) < kTileSpans || level == 0) return from_runs(level, start, end);
    Bins bins(kTileBins);
    for (int half = 0; half < 2; half++) {
      Bins child = tile(level - 1, index * 2 + half);
      for (uint32_t i = 0; i < kTileBins; i++)
        for (const Share& s : child[i]) add(bins[half * 128 + i / 2], s.region, s.ns);
    }
    store(level, index, bins);
    return bins;
  }

  Bins from_runs(uint32_t level, int64_t start, int64_t end) const {
    Bins bins(kTileBins);
    auto at = std::upper_bound(runs_.begin(), runs_.end(), start, [](int64_t t, const Run& r) { return t < r.end_ns; });
    for (; at != runs_.end() && at->start_ns < end; ++at) {
      int64_t from = std::max(at->start_ns, start), to = std::min(at->end_ns, end);
      while (from < to) {
        int64_t bin = (from - start) >> level;
        int64_t bin_end = std::min(to, start + ((bin + 1) << level));
        add(bins[size_t(bin)], at->region, bin_end - from);
        from = bin_end;
      }
    }
    return bins;
  }

  void store(uint32_t level, int64_t index, const Bins& bins) {
    Tiles::Tile tile;
    for (uint32_t i = 0; i < kTileBins; i++) {
      Share best = largest(bins[i]);
      tile.region[i] = best.region;
      tile.share[i] = uint8_t(std::min<double>(255.0, double(best.ns) * 255.0 / double(int64_t(1) << level) + 0.5));
    }
    // Byte planes: the upper bytes of the regions are nearly constant and vanish.
    char planes[kTileBins * 5];
    for (uint32_t i = 0; i < kTileBins; i++) {
      for (int b = 0; b < 4; b++) planes[b * kTileBins + i] = char(tile.region[i] >> (8 * b));
      planes[4 * kTileBins + i] = char(tile.share[i]);
    }
    char out[kTileBins * 8];
    size_t n = ZSTD_compress(out, sizeof out, planes, sizeof planes, 1);
    if (ZSTD_isError(n)) return;
    entries.push_back({location_, level, index, uint32_t(frames.size()), uint32_t(n)});
    frames.append(out, n);
  }

  uint32_t location_;
  const std::vector<Run>& runs_;
  std::vector<int64_t> starts_;
};

struct TilesHeader {
  uint32_t magic = kTilesMagic, version = kTilesVersion;
  uint32_t tiles = 0, frames_bytes = 0;
  int64_t last_ns = 0;  // of the block file: a file that has grown since needs new tiles
  uint64_t spans = 0;
};

uint64_t all_spans(const ProcessFile& file) {
  uint64_t n = 0;
  for (const auto& [id, location] : file.locations) n += location.spans;
  return n;
}

}  // namespace

void build_tiles(const ProcessFile& file, const std::string& path) {
  std::string frames, directory;
  TilesHeader header;
  header.last_ns = file.last_ns;
  header.spans = all_spans(file);
  for (const auto& [id, location] : file.locations) {
    if (location.spans < kTileSpans) continue;
    std::vector<Run> runs;
    innermost_runs(file, id, INT64_MIN, INT64_MAX, [&](const Run& r) {
      if (!runs.empty() && runs.back().region == r.region && runs.back().end_ns == r.start_ns)
        runs.back().end_ns = r.end_ns;
      else
        runs.push_back(r);
    });
    std::vector<int64_t> starts;
    starts.reserve(location.spans);
    file.each(id, INT64_MIN, INT64_MAX,
              [&](uint64_t, int64_t start, int64_t, uint32_t, bool) { starts.push_back(start); });
    Builder builder(id, runs, std::move(starts));
    builder.build();
    for (auto entry : builder.entries) {
      entry.offset += uint32_t(frames.size());
      directory.append(reinterpret_cast<const char*>(&entry), sizeof entry);
      header.tiles++;
    }
    frames += builder.frames;
  }
  header.frames_bytes = uint32_t(frames.size());
  char name[32];
  snprintf(name, sizeof name, ".%d.tmp", getpid());
  std::string temporary = path + name;
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    out << directory << frames;
    out.flush();
    if (!out) {
      int error = errno ? errno : EIO;
      unlink(temporary.c_str());
      throw std::system_error(error, std::generic_category(), path);
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) throw std::system_error(errno, std::generic_category(), path);
}

Tiles::Tiles(const std::string& path, const ProcessFile& file) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return;
  bytes_.assign(std::istreambuf_iterator<char>(in), {});
  TilesHeader header;
  if (bytes_.size() < sizeof header) return;
  memcpy(static_cast<void*>(&header), bytes_.data(), sizeof header);
  size_t directory_bytes = size_t(header.tiles) * sizeof(Builder::Entry);
  if (header.magic != kTilesMagic || header.version != kTilesVersion || header.last_ns != file.last_ns ||
      header.spans != all_spans(file) || bytes_.size() != sizeof header + directory_bytes + header.frames_bytes)
    return;
  for (uint32_t i = 0; i < header.tiles; i++) {
    Builder::Entry e;
    memcpy(static_cast<void*>(&e), bytes_.data() + sizeof header + i * sizeof e, sizeof e);
    if (uint64_t(e.offset) + e.size > header.frames_bytes) continue;
    directory_[{e.location, e.level, e.index}] = {uint32_t(sizeof header + directory_bytes + e.offset), e.size};
  }
}

bool Tiles::find(uint32_t location, uint32_t level, int64_t index, Tile& out) const {
  auto found = directory_.find({location, level, index});
  if (found == directory_.end()) return false;
  char planes[kTileBins * 5];
  if (ZSTD_decompress(planes, sizeof planes, bytes_.data() + found->second.first, found->second.second) !=
      sizeof planes)
    return false;
  for (uint32_t i = 0; i < kTileBins; i++) {
    out.region[i] = 0;
    for (int b = 0; b < 4; b++) out.region[i] |= uint32_t(uint8_t(planes[b * kTileBins + i])) << (8 * b);
    out.share[i] = uint8_t(planes[4 * kTileBins + i]);
  }
  return true;
}

namespace {

// Pixels of a row, filled by pieces of time in order.
class Pixels {
 public:
  Pixels(int64_t start_ns, int64_t end_ns, uint32_t width)
      : start_(start_ns), ns_per_pixel_(double(end_ns - start_ns) / width), bins_(width) {}
  void piece(int64_t from, int64_t to, uint32_t region, double share) {
    double a = double(from - start_) / ns_per_pixel_, b = double(to - start_) / ns_per_pixel_;
    a = std::max(a, 0.0), b = std::min(b, double(bins_.size()));
    for (size_t p = size_t(a); p < bins_.size() && double(p) < b; p++) {
      double part = std::min(b, double(p + 1)) - std::max(a, double(p));
      if (part > 0) add(bins_[p], region, int64_t(part * share * 1e6) + 1);
    }
  }
  Cells result() const {
    Cells out;
    for (const Histogram& h : bins_) {
      Share best = largest(h);
      out.region.push_back(best.region);
      out.share.push_back(uint8_t(std::min(255.0, double(best.ns) * 255.0 / 1e6 + 0.5)));
    }
    return out;
  }

 private:
  int64_t start_;
  double ns_per_pixel_;
  std::vector<Histogram> bins_;  // in millionths of a pixel
};

}  // namespace

Cells cells(const ProcessFile& file, const Tiles& tiles, uint32_t location, int64_t start_ns, int64_t end_ns,
            uint32_t width) {
  Pixels pixels(start_ns, end_ns, width);
  auto from_blocks = [&](int64_t from, int64_t to) {
    innermost_runs(file, location, from, to, [&](const Run& r) { pixels.piece(r.start_ns, r.end_ns, r.region, 1.0); });
  };
  uint64_t pixel_ns = uint64_t(end_ns - start_ns) / width;
  if (tiles.empty() || pixel_ns < 2) {
    from_blocks(start_ns, end_ns);
    return pixels.result();
  }
  uint32_t level = uint32_t(std::bit_width(pixel_ns)) - 1;
  int64_t tile_ns = int64_t(kTileBins) << level, bin_ns = int64_t(1) << level;
  int64_t raw_from = start_ns;  // adjacent absent tiles become one read of the blocks
  Tiles::Tile tile;
  for (int64_t index = start_ns >> (level + 8); index * tile_ns < end_ns; index++) {
    if (!tiles.find(location, level, index, tile)) continue;
    int64_t from = index * tile_ns, to = from + tile_ns;
    if (raw_from < from) from_blocks(raw_from, std::min(from, end_ns));
    for (uint32_t i = 0; i < kTileBins; i++)
      if (tile.region[i] != kNothing)
        pixels.piece(std::max(from + i * bin_ns, start_ns), std::min(from + (i + 1) * bin_ns, end_ns), tile.region[i],
                     tile.share[i] / 255.0);
    raw_from = to;
  }
  if (raw_from < end_ns) from_blocks(raw_from, end_ns);
  return pixels.result();
}

std::vector<Cells> stack_cells(const ProcessFile& file, uint32_t location, int64_t start_ns, int64_t end_ns,
                               uint32_t width, uint32_t max_depth) {
  struct Row {
    size_t pixel = 0;
    Histogram now;
    Cells cells;
  };
  std::vector<Row> rows;
  const double scale = double(width) / double(end_ns - start_ns);
  auto flush = [scale](Row& row) {
    if (row.now.empty()) return;
    row.cells.region[row.pixel] = largest(row.now).region;
    int64_t filled_ns = 0;
    for (const Share& s : row.now) filled_ns += s.ns;
    row.cells.share[row.pixel] = uint8_t(std::clamp(double(filled_ns) * scale * 255, 1.0, 255.0));
    row.now.clear();
  };
  file.each(location, start_ns, end_ns, [&](uint64_t, int64_t start, int64_t end, uint32_t path, bool) {
    size_t depth = file.path_depth[path];
    if (depth >= max_depth) return;
    while (rows.size() <= depth) {
      rows.emplace_back();
      rows.back().cells = {std::vector<uint32_t>(width, kNothing), std::vector<uint8_t>(width, 0)};
    }
    Row& row = rows[depth];
    uint32_t region = file.path_region[path];
    double a = std::max(0.0, double(start - start_ns) * scale),
           b = std::min(double(width), double(end - start_ns) * scale);
    size_t first = std::min(size_t(a), size_t(width - 1)), last = std::min(size_t(b), size_t(width - 1));
    if (first != row.pixel) flush(row), row.pixel = first;
    if (first == last) {
      add(row.now, region, std::max<int64_t>(1, end - start));
      return;
    }
    add(row.now, region, int64_t((double(first + 1) - a) / scale) + 1);
    flush(row);
    std::fill(row.cells.region.begin() + long(first) + 1, row.cells.region.begin() + long(last), region);
    std::fill(row.cells.share.begin() + long(first) + 1, row.cells.share.begin() + long(last), 255);
    row.pixel = last;
    if (b > double(last)) add(row.now, region, int64_t((b - double(last)) / scale) + 1);
  });
  std::vector<Cells> out;
  for (Row& row : rows) {
    flush(row);
    out.push_back(std::move(row.cells));
  }
  return out;
}

}  // namespace strobe

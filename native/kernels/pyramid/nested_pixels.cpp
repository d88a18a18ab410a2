#include <algorithm>

#include "kernels/pyramid/window_pixels.h"

namespace strobe {

namespace {

using Times = AmountsByRegion<int64_t>;

// From one block for each pixel, the one in its middle: what it holds of the pixel stands for all of it.
std::vector<Cells> sampled_cells(const ProcessFile& file, const Location& location, int64_t start_ns, int64_t end_ns,
                                 uint32_t width, uint32_t max_depth) {
  std::vector<Cells> rows;
  std::vector<Times> of_depth(max_depth);
  const double pixel_ns = double(end_ns - start_ns) / width;
  const std::vector<Block>& blocks = location.blocks;
  SpansView view;
  SpanColumns columns;
  size_t decoded = blocks.size();
  for (uint32_t pixel = 0; pixel < width; pixel++) {
    const auto middle = start_ns + int64_t((pixel + 0.5) * pixel_ns);
    const auto after = std::ranges::upper_bound(blocks, middle, {}, &Block::first_ns);
    if (after == blocks.begin()) continue;
    const auto at = size_t(after - blocks.begin()) - 1;
    if (at != decoded) {
      decoded = blocks.size();
      if (!file.view(blocks[at], view) || !file.decode(view, blocks[at].count, columns)) continue;
      decoded = at;
    }
    const int64_t block_end = after == blocks.end() ? INT64_MAX : after->first_ns;
    const int64_t from = std::max(start_ns + int64_t(pixel * pixel_ns), blocks[at].first_ns);
    const int64_t to = std::min(start_ns + int64_t((pixel + 1) * pixel_ns), block_end);
    auto add_span = [&](uint64_t row, int64_t start, int64_t duration, uint32_t path) {
      if (path >= file.path_region.size() || file.path_depth[path] >= max_depth || start >= to) return;
      const int64_t end = file.end_of(location, row, start, duration);
      if (end > from)
        of_depth[file.path_depth[path]].add(file.path_region[path], std::min(end, to) - std::max(start, from));
    };
    for (const OpenSpan& open : view.carry) add_span(open.row, open.start_ns, kOpen, open.path);
    for (uint32_t i = 0; i < blocks[at].count; i++)
      add_span(blocks[at].first_row + i, columns.start_ns[i], columns.duration_ns[i], columns.path[i]);
    for (uint32_t depth = 0; depth < max_depth; depth++) {
      Times& now = of_depth[depth];
      if (now.empty()) continue;
      while (rows.size() <= depth)
        rows.push_back({std::vector<uint32_t>(width, kNothing), std::vector<uint8_t>(width, 0)});
      rows[depth].region[pixel] = now.largest().first;
      rows[depth].share[pixel] = uint8_t(std::clamp(double(now.sum()) * 255 / double(to - from), 1.0, 255.0));
      now.clear();
    }
  }
  return rows;
}

}  // namespace

std::vector<Cells> stack_cells(const ProcessFile& file, uint32_t location, int64_t start_ns, int64_t end_ns,
                               uint32_t width, uint32_t max_depth) {
  if (const auto found = file.locations.find(location); found != file.locations.end()) {
    const Location& found_here = found->second;
    if (found_here.first_block_since(end_ns) - found_here.first_block_since(start_ns) > ptrdiff_t(width))
      return sampled_cells(file, found_here, start_ns, end_ns, width, max_depth);
  }
  struct Row {
    size_t pixel = 0;
    Times now;
    Cells cells;
  };
  std::vector<Row> rows;
  const double scale = double(width) / double(end_ns - start_ns);
  auto flush = [scale](Row& row) {
    if (row.now.empty()) return;
    row.cells.region[row.pixel] = row.now.largest().first;
    row.cells.share[row.pixel] = uint8_t(std::clamp(double(row.now.sum()) * scale * 255, 1.0, 255.0));
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
      row.now.add(region, std::max<int64_t>(1, end - start));
      return;
    }
    row.now.add(region, int64_t((double(first + 1) - a) / scale) + 1);
    flush(row);
    std::fill(row.cells.region.begin() + long(first) + 1, row.cells.region.begin() + long(last), region);
    std::fill(row.cells.share.begin() + long(first) + 1, row.cells.share.begin() + long(last), 255);
    row.pixel = last;
    if (b > double(last)) row.now.add(region, int64_t((b - double(last)) / scale) + 1);
  });
  std::vector<Cells> out;
  for (Row& row : rows) {
    flush(row);
    out.push_back(std::move(row.cells));
  }
  return out;
}

}  // namespace strobe

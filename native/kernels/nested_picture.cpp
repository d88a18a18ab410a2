#include <algorithm>

#include "kernels/picture.h"

namespace strobe {

namespace {

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

}  // namespace

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

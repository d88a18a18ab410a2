// Tiles: pictures are the same with them and without them, several threads may draw at once, and a file that is damaged
// anywhere is read in bounds.
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "kernels/pyramid/overview.h"
#include "kernels/pyramid/window_pixels.h"
#include "tests/check.h"

using namespace strobe;

namespace {

constexpr uint32_t kWidth = 256;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

struct Picture {
  std::vector<uint32_t> region = std::vector<uint32_t>(kWidth), mark = region;
  std::vector<uint8_t> share = std::vector<uint8_t>(kWidth);
  GroupRow groups{kWidth};
  std::vector<int64_t> count = std::vector<int64_t>(100), own_ns = count;
};

Picture draw(const Track& track, const Window& window) {
  Picture out;
  draw_cells(track, window, out.region.data(), out.share.data(), out.mark.data());
  add_groups(track, window, out.groups);
  add_profile(track, window.start_ns, window.end_ns, out.count.data(), out.own_ns.data(), out.count.size());
  return out;
}

// Shares of groups come as they were stored, to half of a 255th.
bool same(const Picture& a, const Picture& b) {
  for (size_t i = 0; i < a.groups.shares.size(); i++)
    if (std::abs(a.groups.shares[i] - b.groups.shares[i]) > 0.5 + 1e-6) return false;
  return a.share == b.share && a.mark == b.mark && a.groups.mark == b.groups.mark && a.count == b.count &&
         a.own_ns == b.own_ns;
}

}  // namespace

int main() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner"), leaf = region("leaf");
  start(folder);
  std::mt19937_64 random(11);
  for (int i = 0; i < 20000; i++) {
    strobe_enter(outer);
    for (uint64_t k = random() % 4; k-- > 0;) {
      strobe_enter(inner);
      if (random() % 2) strobe_enter(leaf), strobe_leave(leaf);
      strobe_leave(inner);
    }
    strobe_leave(outer);
    if (i % 5000 == 777) usleep(20000);
  }
  strobe_stop();
  const std::string blocks = folder.files(".blocks")[0], path = folder.path + "/made.tiles";
  const auto file = open_process(blocks);
  const auto& [id, location] = *file->locations.begin();
  const Groups groups(file->path_region.size() + 100, 3);
  std::vector<uint32_t> regions(100);
  for (uint32_t i = 0; i < regions.size(); i++) regions[i] = i;
  const int64_t origin = location.first_ns - 12345, length = location.last_ns - origin;
  build_tiles(*file, groups, origin, path);
  const TilesOf of = tiles_of(*file, groups, origin);

  const TilesFile none, tiles(path, of);
  const Exceptional exceptional(*file, id);
  CHECK(!tiles.empty() && none.empty());
  const Track bare{file.get(), &none, &exceptional, &groups, &regions, id, origin, 0, INT64_MAX / 4};
  Track track = bare;
  track.tiles = &tiles;
  std::vector<Window> windows;
  std::vector<Picture> expected;
  for (int64_t level = 0; level < 40; level++) {
    const int64_t from = int64_t(random() % uint64_t(length)) >> level << level;
    windows.push_back({from, from + (int64_t(kWidth) << level), kWidth});
    expected.push_back(draw(bare, windows.back()));
    // Coarser than what was recorded is a sum of bins, where a share is rounded twice.
    if ((int64_t(1) << level) <= length) CHECK(same(draw(track, windows.back()), expected.back()));
  }

  // What is told of the whole is what was executed.
  const Picture whole = draw(track, {0, length + 1, kWidth});
  int64_t executed = 0;
  for (const int64_t count : whole.count) executed += count;
  CHECK(uint64_t(executed) == location.spans);

  // Threads share a file and its tiles.
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (size_t i = 0; i < windows.size(); i++)
        if (windows[i].end_ns - windows[i].start_ns <= length) CHECK(same(draw(track, windows[i]), expected[i]));
    });
  for (auto& thread : threads) thread.join();

  // Made from something else: not opened. Damaged: read from the blocks, or refused as a whole.
  TilesOf other = of;
  other.origin_ns++;
  CHECK(TilesFile(path, other).empty());
  const std::string bytes = read_file(path);
  for (size_t size = 0; size < bytes.size(); size += 1 + random() % 997) {
    write_file(path, bytes.substr(0, size));
    CHECK(TilesFile(path, of).empty());
  }
  for (uint32_t i = 0; i < cases(300); i++) {
    std::string damaged = bytes;
    for (size_t k = 1 + random() % 20; k-- > 0;) damaged[random() % damaged.size()] = char(random());
    write_file(path, damaged);
    const TilesFile opened(path, of);
    track.tiles = &opened;
    const size_t at = random() % windows.size();
    if (windows[at].end_ns - windows[at].start_ns <= length) CHECK(same(draw(track, windows[at]), expected[at]));
  }
  // Nine locations that are alike, as rows: what stands for eight of them is eight times one, rounded once.
  write_file(path, bytes);
  const TilesFile again(path, of);
  track.tiles = &again;
  const Place place{100, 9, [&track](uint32_t) { return track; }};
  const std::string overview_path = folder.path + "/overview.tiles";
  build_overview({place}, of, overview_path);
  const TilesFile overview(overview_path, of);
  CHECK(overview.top_level(100, 1) > 0 && overview.top_level(100, 2) > 0 && overview.top_level(108, 1) < 0);
  const std::string overview_bytes = read_file(overview_path);
  for (int i = 0; i < 100; i++) {
    std::string damaged = overview_bytes;
    for (size_t k = i == 0 ? 0 : 1 + random() % 20; k-- > 0;) damaged[random() % damaged.size()] = char(random());
    write_file(overview_path, damaged);
    const TilesFile opened(overview_path, of);
    const Window& window = windows[random() % windows.size()];
    GroupRow one(kWidth), rows(kWidth);
    add_groups(track, window, one);
    CHECK(add_row(place, opened, 1, 0, window, rows) == 8 && add_row(place, opened, 1, 2, window, rows) == 0);
    for (size_t at = 0; at < one.shares.size(); at++) CHECK(std::abs(rows.shares[at] - 8 * one.shares[at]) <= 4 + 1e-6);
    CHECK(rows.mark == one.mark && rows.mark_ns == one.mark_ns);
  }

  // Thresholds that make no sense are no reason to fail, either.
  for (uint32_t i = 0; i < cases(1000); i++) {
    std::string encoded = exceptional.encoded();
    for (size_t k = 1 + random() % 5; k-- > 0;) encoded[random() % encoded.size()] = char(random());
    Exceptional(*file, encoded)(Stretch{0, 100, uint32_t(random() % 10)});
  }
}

// A damaged file opens with what is sound: cut at every length, and with bytes changed anywhere, it is read in bounds
// and never crashes.
#include <fstream>
#include <iterator>
#include <random>

#include "kernels/pyramid/window_pixels.h"
#include "tests/check.h"

using namespace strobe;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

size_t read_everything(const std::string& path) {
  try {
    auto file = open_process(path);
    size_t n = 0;
    const Groups groups(100);
    for (const auto& [id, location] : file->locations) {
      n += all_spans(*file, id).row.size();
      const TilesFile none;
      const Exceptional exceptional(*file, id);
      const std::vector<uint32_t> regions;
      const Track track{file.get(), &none, &exceptional, &groups, &regions, id, location.first_ns, 0, INT64_MAX / 4};
      uint32_t region[100], mark[100];
      uint8_t share[100];
      const int64_t length = location.last_ns - location.first_ns;
      if (length >= 0 && length < INT64_MAX / 4) draw_cells(track, {0, length + 1, 100}, region, share, mark);
      stack_cells(*file, id, location.first_ns, location.last_ns + 1, 100, 64);
    }
    build_tiles(*file, groups, 0, path + ".tiles");
    return n;
  } catch (const std::runtime_error&) {
    return 0;
  }
}

}  // namespace

int main() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner");
  start(folder);
  for (int i = 0; i < 10000; i++) strobe_enter(outer), strobe_enter(inner), strobe_leave(inner), strobe_leave(outer);
  strobe_stop();
  const std::string original = folder.files(".blocks")[0], bytes = read_file(original);
  CHECK(read_everything(original) == 20000);

  // Cut anywhere: whole blocks before the cut are there, and the loss is stated.
  const std::string cut = folder.path + "/cut.blocks";
  std::mt19937_64 random(3);
  size_t before = 0;
  for (size_t length = 0; length < bytes.size(); length += 1 + random() % 997) {
    write_file(cut, bytes.substr(0, length));
    size_t n = read_everything(cut);
    CHECK(n >= before && (n % 4096 == 0 || n == 20000));
    before = n;
  }
  write_file(cut, bytes.substr(0, bytes.size() - 7));
  CHECK(open_process(cut)->bytes_lost > 0);

  // One block damaged in the middle: only its spans are missing, and the file says so.
  std::string damaged = bytes;
  damaged[bytes.size() / 2] ^= 0x55;
  write_file(cut, damaged);
  size_t left = read_everything(cut);
  CHECK(left >= 20000 - 4096 && left < 20000);
  CHECK(open_process(cut)->chunks_damaged == 1);

  for (int i = 0; i < 400; i++) {
    damaged = bytes;
    for (size_t k = 1 + random() % 20; k-- > 0;) damaged[random() % damaged.size()] = char(random());
    write_file(cut, damaged);
    read_everything(cut);
  }
  // Something else altogether.
  write_file(cut,
             "\x7f"
             "ELF and so on, long enough for a header of thirty-two bytes");
  bool refused = false;
  try {
    open_process(cut);
  } catch (const std::runtime_error&) {
    refused = true;
  }
  CHECK(refused);
}

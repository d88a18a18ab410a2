#include "kernels/reading/block_index.h"

#include <algorithm>

namespace strobe {

void Ends::sort() {
  if (!std::ranges::is_sorted(own_, {}, &End::first)) std::ranges::stable_sort(own_, {}, &End::first);
  point_to(own_.data(), own_.size());
}

const Ends::End* Ends::find(uint64_t row) const {
  const End* at = std::ranges::lower_bound(begin(), end(), row, {}, &End::first);
  return at != end() && at->first == row ? at : end();
}

bool BlockIndex::open(const std::string& path, const FileState& blocks_file) try {
  file_ = MappedFile(path);
  return file_.bytes().size() >= sizeof(IndexHeader) && sound(blocks_file);
} catch (const std::system_error&) {
  return false;
}

bool BlockIndex::sound(const FileState& blocks_file) const {
  const IndexHeader& h = header();
  if (h.magic != kIndexMagic || h.version != kIndexVersion || !(h.blocks_file == blocks_file)) return false;
  // No product of these can be too large for 64 bits.
  constexpr uint64_t kMost = uint64_t(1) << 40;
  if (h.others > kMost || h.blocks > kMost || h.ends > kMost) return false;
  const uint64_t bytes = sizeof h + h.blocks * sizeof(IndexedBlock) + h.ends * sizeof(Ends::End) +
                         h.locations * sizeof(IndexedLocation) + h.others * 8 + h.tables * sizeof(IndexedTable) +
                         h.names_bytes;
  if (bytes != file_.bytes().size() || crc32c(&h + 1, bytes - sizeof h) != h.crc) return false;
  uint64_t blocks = 0, ends = 0;
  for (uint32_t i = 0; i < h.locations; i++) {
    const IndexedLocation& location = locations()[i];
    if (location.blocks > h.blocks - blocks || location.ends > h.ends - ends) return false;
    blocks += location.blocks, ends += location.ends;
  }
  const auto inside = [&](uint64_t offset, uint64_t payload_bytes) {
    return offset <= blocks_file.bytes && sizeof(ChunkHeader) + payload_bytes <= blocks_file.bytes - offset;
  };
  for (uint64_t i = 0; i < h.blocks; i++)
    if (!inside(this->blocks()[i].offset, this->blocks()[i].payload_bytes)) return false;
  for (uint32_t i = 0; i < h.tables; i++)
    if (!inside(tables()[i].offset, tables()[i].payload_bytes) || tables()[i].count > 1u << 24) return false;
  for (uint64_t i = 0; i < h.others; i++)
    if (!inside(others()[i], 0)) return false;
  return true;
}

std::string_view BlockIndex::name(uint32_t offset) const {
  const char* names = reinterpret_cast<const char*>(tables() + header().tables);
  if (offset >= header().names_bytes) return {};
  return ByteReader{{names + offset, header().names_bytes - offset}}.text();
}

}  // namespace strobe

// The index of a process file: written once, and read instead of all chunks afterwards.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/system/descriptors.h"
#include "kernels/reading/process_file.h"

namespace strobe {

// Takes blocks and tables from the index, and reads what else there is.
bool ProcessFile::read_index() {
  if (!index_.open(index_path_, state())) return false;
  const IndexHeader& h = index_.header();
  const char* file = file_.bytes().data();
  const auto payload = [&](uint64_t offset, uint32_t bytes) {
    return std::string_view(file + offset + sizeof(ChunkHeader), bytes);
  };
  std::vector<std::string_view> others;
  for (uint64_t i = 0; i < h.others; i++) {
    const uint64_t at = index_.others()[i];
    ChunkHeader header;
    memcpy(static_cast<void*>(&header), file + at, sizeof header);
    if (!sound_header(header) || header.payload_bytes > bytes() - at - sizeof header) return false;
    others.push_back({file + at, sizeof header + header.payload_bytes});
  }
  for (const std::string_view chunk : others) read_chunks(chunk, true);
  for (uint32_t i = 0; i < h.tables; i++) {
    const IndexedTable& table = index_.tables()[i];
    tables[std::string(index_.name(table.name))].push_back(
        {table.location, table.count, payload(table.offset, table.payload_bytes)});
  }
  const IndexedBlock* block = index_.blocks();
  const Ends::End* ends = index_.ends();
  for (uint32_t i = 0; i < h.locations; i++) {
    const IndexedLocation& indexed = index_.locations()[i];
    Location& location = locations[indexed.id];
    location.id = indexed.id;
    location.ends.point_to(ends, indexed.ends);
    ends += indexed.ends;
    location.blocks.reserve(indexed.blocks);
    for (const IndexedBlock* end = block + indexed.blocks; block < end; block++)
      location.blocks.push_back({payload(block->offset, block->payload_bytes), block->count, block->first_row,
                                 block->first_ns, block->last_ns});
    if (location.blocks.empty()) continue;
    const Block& last = location.blocks.back();
    location.first_ns = location.blocks.front().first_ns, location.last_ns = last.last_ns;
    location.spans = last.first_row + last.count;
  }
  return true;
}

bool ProcessFile::write_index() const {
  if (indexed_ || still_written_ || chunks_damaged || bytes_lost || !bytes()) return false;
  const char* file = file_.bytes().data();
  const auto offset = [&](std::string_view payload) { return uint64_t(payload.data() - file) - sizeof(ChunkHeader); };
  IndexHeader header{};
  header.magic = kIndexMagic, header.version = kIndexVersion, header.blocks_file = state();
  std::string blocks, ends, indexed_locations, indexed_tables;
  Writer names;
  const auto append = [](std::string& to, const auto& each) {
    to.append(reinterpret_cast<const char*>(&each), sizeof each);
  };
  for (const auto& [id, location] : locations) {
    append(indexed_locations, IndexedLocation{id, 0, location.blocks.size(), location.ends.size()});
    for (const Block& block : location.blocks)
      append(blocks, IndexedBlock{offset(block.payload), block.first_row, block.first_ns, block.last_ns,
                                  uint32_t(block.payload.size()), block.count});
    for (const Ends::End& end : location.ends) append(ends, end);
    header.locations++, header.blocks += location.blocks.size(), header.ends += location.ends.size();
  }
  for (const auto& [name, chunks] : tables) {
    const auto name_at = uint32_t(names.bytes.size());
    names.text(name);
    for (const TableChunk& chunk : chunks)
      append(indexed_tables,
             IndexedTable{offset(chunk.payload), uint32_t(chunk.payload.size()), chunk.location, chunk.count, name_at});
    header.tables += uint32_t(chunks.size());
  }
  header.others = others_.size();
  header.names_bytes = uint32_t(names.bytes.size());
  std::string bytes = std::move(blocks);
  bytes += ends + indexed_locations;
  bytes.append(reinterpret_cast<const char*>(others_.data()), others_.size() * 8);
  bytes += indexed_tables + names.bytes;
  header.crc = crc32c(bytes.data(), bytes.size());
  // Whole or not at all: others may open the trace at the same time.
  const std::string work = index_path_ + "." + std::to_string(getpid());
  const int fd = open(work.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_in_folder(work));
  if (fd < 0) return false;
  const auto whole = [&](const void* data, size_t size) { return write(fd, data, size) == ssize_t(size); };
  bool written = whole(&header, sizeof header) && whole(bytes.data(), bytes.size());
  written = close(fd) == 0 && written && rename(work.c_str(), index_path_.c_str()) == 0;
  if (!written) unlink(work.c_str());
  return written;
}

}  // namespace strobe

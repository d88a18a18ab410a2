#include <string.h>

#include <algorithm>

#include "core/format/json_text.h"
#include "core/system/descriptors.h"
#include "kernels/reading/process_file.h"

namespace strobe {

uint64_t recover_process(const std::string& blocks_path, const std::string& rings_path, const std::string& end_state) {
  uint64_t records = 0;
  if (ProcessFile file(blocks_path, rings_path); !file.ended()) {
    records = file.recovered_records;
    std::string chunks = file.recovered_chunks();
    std::string json = "{\"end_state\": \"" + end_state +
                       "\", \"exit_code\": -1, \"ended_ns\": " + std::to_string(file.last_ns) +
                       ", \"counters\": {\"records_recovered\": " + std::to_string(records);
    for (const auto& [name, value] : file.counters) json += ", \"" + name + "\": " + std::to_string(value);
    json += '}';
    if (!file.failure.empty()) {
      json += ", \"failure\": ";
      append_json_text(json, file.failure);
      json += ", \"failed_ns\": " + std::to_string(file.failed_ns);
    }
    append_execution_count(chunks, 0, file.recovered_executions);
    append_chunk(chunks, kEndChunk, 0, 1, json + "}");
    OpenFile out(blocks_path, O_WRONLY | O_APPEND);
    // Left there, the header of a torn chunk would claim what is appended as its own.
    if (file.sound_bytes() < out.bytes && ftruncate(out.fd, off_t(file.sound_bytes())) != 0)
      throw std::system_error(errno, std::generic_category(), blocks_path);
    if (const int error = write_all(out.fd, chunks)) {
      if (ftruncate(out.fd, off_t(file.sound_bytes())) != 0) {
      }  // the checksum cuts a torn chunk
      throw std::system_error(error, std::generic_category(), blocks_path);
    }
  }
  unlink(beside(blocks_path, ".statistics").c_str());
  unlink(beside(blocks_path, ".gpu").c_str());
  unlink(rings_path.c_str());
  return records;
}

// Whether a chunk ends where the file does: behind the header of a torn one, nothing may be appended.
static bool ends_with_chunk(std::string_view bytes) {
  constexpr size_t kLongest = 1 << 20;
  const std::string_view tail = bytes.substr(bytes.size() - std::min(bytes.size(), kLongest));
  for (size_t at = tail.rfind("SRBK"); at != tail.npos; at = at ? tail.rfind("SRBK", at - 1) : tail.npos) {
    ChunkHeader header;
    if (tail.size() - at < sizeof header) continue;
    memcpy(static_cast<void*>(&header), tail.data() + at, sizeof header);
    if (sound_header(header)) return header.payload_bytes == tail.size() - at - sizeof header;
  }
  return false;
}

bool append_note(const std::string& blocks_path, const std::string& json) {
  if (is_held(blocks_path) || !ends_with_chunk(MappedFile(blocks_path).bytes())) return false;
  std::string chunk;
  append_chunk(chunk, kNoteChunk, 0, 1, json);
  OpenFile out(blocks_path, O_WRONLY | O_APPEND);
  if (!write_all(out.fd, chunk)) return true;
  if (ftruncate(out.fd, off_t(out.bytes)) != 0) {
  }  // the checksum cuts a torn chunk
  return false;
}

}  // namespace strobe

#include "core/session/file_parts.h"

#include <dirent.h>
#include <string.h>

#include <algorithm>

#include "core/system/clock.h"
#include "core/system/descriptors.h"

namespace strobe {

constexpr int64_t kParts = 8;  // that the time and the bytes are divided into
constexpr uint64_t kLeastPartBytes = 256 << 10;
constexpr int64_t kCountEveryNs = 1000000000;

static uint32_t location_of_metric(std::string_view payload) {
  uint32_t location = kNoPath;
  if (payload.size() >= sizeof location)
    memcpy(&location, payload.data() + payload.size() - sizeof location, sizeof location);
  return location;
}

template <class Visit>
static void each_chunk(std::string_view chunks, Visit&& visit) {
  ChunkHeader header;
  while (chunks.size() >= sizeof header) {
    memcpy(static_cast<void*>(&header), chunks.data(), sizeof header);
    const size_t bytes = sizeof header + header.payload_bytes;
    visit(header, chunks.substr(sizeof header, header.payload_bytes), chunks.substr(0, bytes));
    chunks.remove_prefix(std::min(bytes, chunks.size()));
  }
}

void LastingChunks::note(std::string_view chunks) {
  each_chunk(chunks, [this](const ChunkHeader& header, std::string_view payload, std::string_view whole) {
    switch (header.kind) {
      case kProcessChunk:
      case kRegionsChunk:
      case kLocationChunk:
      case kPathsChunk:
      case kMetricChunk:
      case kTextsChunk:
      case kSourceLoopsChunk:
        chunks_ += whole;
        break;
      case kNoteChunk:
        if (payload.starts_with("{\"spans_of\""))
          ended_.insert(header.location);
        else if (payload.starts_with("{\"clock\""))
          clock_ = whole;
        else if (chunks_.find(whole) == chunks_.npos)  // facts are repeated
          chunks_ += whole;
        break;
      default:
        break;
    }
  });
}

bool LastingChunks::of_ended(const ChunkHeader& header, std::string_view payload) const {
  if (header.kind == kLocationChunk) return ended_.contains(header.location);
  return header.kind == kMetricChunk && ended_.contains(location_of_metric(payload));
}

std::string LastingChunks::begin_part(uint32_t number, int64_t begin_ns) {
  if (!ended_.empty()) {
    std::string kept;
    each_chunk(chunks_, [&](const ChunkHeader& header, std::string_view payload, std::string_view whole) {
      if (!of_ended(header, payload)) kept += whole;
    });
    chunks_ = std::move(kept);
    ended_.clear();
  }
  std::string begin;
  append_chunk(begin, kNoteChunk, 0, 1,
               "{\"part\": [" + std::to_string(number) + ", " + std::to_string(begin_ns) + "]}");
  return begin + chunks_ + clock_;
}

std::string padding(uint64_t bytes) {
  std::string chunk;
  uint64_t left = kPartAlignment - bytes % kPartAlignment;
  if (left == kPartAlignment) return chunk;
  if (left < sizeof(ChunkHeader)) left += kPartAlignment;
  append_chunk(chunk, kPaddingChunk, 0, 0, std::string(left - sizeof(ChunkHeader), '\0'));
  return chunk;
}

void PartPlan::begin(const strobe_options& options, const std::string& folder) {
  folder_ = folder;
  part_ns_ = int64_t(options.flight_ns) / kParts;
  all_bytes_ = options.flight_bytes;
  next_count_ns_ = 0;
  part_begins(0, monotonic_ns());
}

bool PartPlan::full(uint64_t bytes, int64_t now_ns) {
  if (!wanted()) return false;
  if (now_ns >= next_count_ns_) {
    next_count_ns_ = now_ns + kCountEveryNs;
    int64_t processes = 0;  // that record into the folder
    if (DIR* entries = open_folder(folder_.c_str())) {
      while (const dirent* entry = readdir(entries)) processes += std::string_view(entry->d_name).ends_with(".rings");
      closedir(entries);
    }
    part_bytes_ = std::max(kLeastPartBytes, all_bytes_ / uint64_t(kParts * std::max<int64_t>(1, processes)));
  }
  return now_ns - begun_ns_ >= part_ns_ || bytes - begun_bytes_ >= part_bytes_;
}

}  // namespace strobe

#include "core/session/repeated_facts.h"

#include <atomic>

#include "core/format/blocks.h"
#include "core/session/trace_files.h"
#include "core/system/descriptors.h"

namespace strobe {

namespace {

constexpr uint64_t kRepeatEveryBytes = 8 << 20;
constexpr size_t kMostOfManifest = 256 << 10;

// Written while a session begins, before its thread runs; the child of a fork begins anew.
struct Facts {
  std::string process, job;
  uint64_t repeated_at_bytes = 0;
  std::atomic<uint64_t> rank{0};  // rank + 1, and the number of ranks in the upper half; 0: not known
};

Facts& facts() {
  static Facts* one = new Facts;  // never destroyed: a recording may end after everything else
  return *one;
}

}  // namespace

void begin_facts(const std::string& process, const std::string& folder) {
  Facts& known = facts();
  known.process = process;
  // The manifest is one line of JSON. One that is cut is left out.
  known.job = read_parts((folder + "/job.json").c_str(), kMostOfManifest);
  while (!known.job.empty() && known.job.back() == '\n') known.job.pop_back();
  if (!known.job.starts_with('{') || !known.job.ends_with('}')) known.job.clear();
  known.repeated_at_bytes = 0;
  known.rank = 0;
}

void note_rank_fact(int rank, int ranks) {
  if (rank >= 0 && ranks > 0) facts().rank = uint64_t(uint32_t(ranks)) << 32 | (uint32_t(rank) + 1);
}

void append_facts(std::string& chunks) {
  const Facts& known = facts();
  std::string json = "{\"process\": " + known.process;
  if (!known.job.empty()) json += ", \"job\": " + known.job;
  if (const uint64_t rank = known.rank)
    json += ", \"rank\": " + std::to_string(uint32_t(rank) - 1) + ", \"ranks\": " + std::to_string(rank >> 32);
  append_chunk(chunks, kNoteChunk, 0, 1, json + "}");
}

void append_span_count(std::string& chunks, uint32_t location, uint64_t spans) {
  append_chunk(chunks, kNoteChunk, location, 1,
               "{\"spans_of\": [" + std::to_string(location) + ", " + std::to_string(spans) + "]}");
}

void repeat_facts(TraceFiles& files) {
  Facts& known = facts();
  if (files.bytes() - known.repeated_at_bytes < kRepeatEveryBytes) return;
  known.repeated_at_bytes = files.bytes();
  std::string chunks;
  append_facts(chunks);
  files.append(chunks);
}

}  // namespace strobe

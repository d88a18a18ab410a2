// repeated_facts.h - what a block file must not lose with a single damaged place: the facts of the process and of its
// job, and how many spans each location has. They are notes, which readers of every version accept; each has a
// checksum.
#pragma once
#include <stdint.h>
#include <string>

namespace strobe {

class TraceFiles;

// A recording begins: `process` is the JSON of its process chunk. The manifest of the job is read from the folder.
void begin_facts(const std::string& process, const std::string& folder);
void note_rank_fact(int rank, int ranks);

// Appends a note with all facts to `chunks`.
void append_facts(std::string& chunks);
// Appends a note: so many spans of the location were written, ever.
void append_span_count(std::string& chunks, uint32_t location, uint64_t spans);

// The drainer's: writes the facts again where the file has grown by some MB since. It never waits for the disk (fsync):
// rings would run full meanwhile.
void repeat_facts(TraceFiles& files);

}  // namespace strobe

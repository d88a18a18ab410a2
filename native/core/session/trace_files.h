// trace_files.h - the files of one recording: process-<pid>.blocks, .statistics and .rings, and the header of the
// rings, which outlives the process. Where they cannot be written the recording ends, and the program goes on.
#pragma once
#include <stdio.h>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "core/format/blocks.h"
#include "core/rings/ring.h"
#include "core/session/file_parts.h"
#include "core/system/descriptors.h"
#include "include/strobe.h"

namespace strobe {

class TraceFiles {
 public:
  // 0 or errno; error() then has a sentence. `quiet`: a failure later is not announced on stderr.
  int open(const std::string& folder, const strobe_options& options, bool quiet);
  void remove();  // what open has made
  // The recording has ended in this state. The files are completed, or left to whoever recovers them.
  void close(ProcessState state, bool complete);

  // Appends chunks to the block file, each with one write.
  void append(const std::string& chunks);
  void append_chunk(ChunkKind kind, uint32_t location, uint32_t count, std::string_view payload);
  // The same where the recording has failed: the file itself has how it ended.
  void append_in_spite_of_failure(const std::string& chunks);
  // Of a flight recorder: what is written from now on goes into a new part of the block file.
  void begin_part();
  void write_snapshot(const std::string& bytes, uint64_t sequence);
  // The program is about to become a user who may not make files in the trace folder.
  void open_statistics_early();
  // Page `part` of the rings file, which grows: reserved on disk, mapped, guarded. nullptr: the recording has failed.
  void* map_ring(size_t part, size_t bytes);
  // Whether the mapped rings still hold what was written. Where they do not, the recording fails.
  bool check_rings();

  // Ends the recording: `what` is why.
  void fail(const char* what, int error);
  bool failed() const { return failed_; }
  const char* error() const { return error_; }
  void set_error(const std::string& sentence) { snprintf(error_, sizeof error_, "%s", sentence.c_str()); }
  // While a session is active, failures are noted in the trace, and what becomes known is written at once.
  void set_active(bool active) { active_ = active; }
  bool active() const { return active_; }

  RingsHeader* header() const { return header_.load(std::memory_order_relaxed); }  // nullptr: nothing is open
  void count(const char* what, uint64_t n);                                        // a line of the quality table
  // The name of the block file with another suffix; empty without one.
  std::string beside(const char* suffix);
  // Of the block file, or of its newest part.
  uint64_t bytes() const { return file_bytes_.load(std::memory_order_relaxed); }
  const std::string& blocks_name() const { return blocks_.name; }

  // A forked child has no files until its first record. Where it gets none, its parent's header counts that.
  void forked();
  void count_fork_without_files();
  void forget_parent();
  std::mutex& mutex() { return mutex_; }
  std::mutex& counters_mutex() { return counters_mutex_; }

 private:
  bool writable() const { return !failed_ && !blocks_.name.empty(); }
  // The following with mutex_ held.
  int open_blocks(const std::string& folder);
  std::string named(const char* suffix) const { return blocks_.name.substr(0, blocks_.name.rfind(".blocks")) + suffix; }
  bool rings_are_sound();
  void fail_locked(const char* what, int error);
  void fail_to_write(const HeldFile& file, int error);
  void write_down(const std::string& bytes);
  void release_all();

  std::mutex mutex_;  // of the block file
  std::mutex counters_mutex_;
  HeldFile blocks_, rings_, statistics_;
  std::atomic<RingsHeader*> header_{nullptr};
  RingsHeader* parent_header_ = nullptr;
  std::atomic<uint64_t> file_bytes_ = 0;  // written under the lock, read by the drainer
  bool in_parts_ = false;
  uint32_t part_ = 0;  // number of the newest one
  LastingChunks lasting_;
  std::atomic<bool> failed_{false}, active_{false};
  bool quiet_ = false;
  char error_[512] = "";
};

}  // namespace strobe

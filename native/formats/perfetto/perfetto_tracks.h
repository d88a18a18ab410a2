// perfetto_tracks.h - the tracks of a trace: of which process and thread they are, which become locations, which
// metrics.
#pragma once
#include <stdint.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/encoding/protobuf_wire.h"
#include "formats/importing/schema_tables.h"

namespace strobe {

// A slice without its end so far.
struct PerfettoOpen {
  int64_t start_ns;
  uint32_t region, place;
  std::string rows;  // of side tables
  bool cut = false;
};

struct PerfettoTrack {
  static constexpr int64_t kNoNumber = INT64_MIN;
  std::string name, unit, description;
  uint64_t parent = 0;
  int64_t pid = kNoNumber, tid = kNoNumber;
  bool counter = false, incremental = false, described = false;
  double multiplier = 1, total = 0;
  uint32_t process = kNoTable, location = kNoTable, metric = kNoTable;
  std::vector<PerfettoOpen> open;
  std::vector<int64_t> ends;  // that came before their begin, or without one
};

struct PerfettoProcess {
  std::unique_ptr<ImportedProcess> out;
  int64_t pid;
  std::string path;
  std::map<int64_t, uint32_t> threads;  // location by thread id
  uint32_t own_location = kNoTable;
};

class PerfettoTracks {
 public:
  // Block files go to `folder`, numbered from `first_number` on.
  PerfettoTracks(std::string folder, uint32_t first_number, size_t buffer_bytes, const SchemaTables& tables)
      : folder_(std::move(folder)), next_number_(first_number), buffer_bytes_(buffer_bytes), tables_(tables) {}

  std::vector<PerfettoProcess> processes;
  std::unordered_map<uint64_t, PerfettoTrack> all;  // by uuid
  uint64_t described_late = 0;

  // The file is one of our exports.
  void of_our_own() { own_ = true; }
  // What it has about a process (by its pid in the file), and of a region that has no spans, as JSON.
  void own_process(int64_t pid, std::string json) { own_processes_[pid] = std::move(json); }
  void own_region(std::string_view json);

  int64_t process_descriptor(std::string_view bytes);
  void process_tree(std::string_view bytes);
  void track_descriptor(std::string_view bytes);
  // Of old writers: returns the track of the sequence that it comes in.
  uint64_t legacy_thread(std::string_view bytes);
  uint64_t legacy_track(int64_t pid, int64_t tid);

  uint32_t process(int64_t pid);
  // Gives a track its location.
  void place(PerfettoTrack& track);
  void sample(uint64_t uuid, int64_t ns, double value);
  // Names the locations of threads by all that is known about them.
  void name_threads();
  // Writes the rest of a process.
  void finish(size_t process, const std::string& source);

 private:
  struct Facts {
    std::string name, command;
    std::vector<std::string> labels;
  };

  void place_own(PerfettoTrack& track);
  static void thread_descriptor(PerfettoTrack& track, std::string_view bytes);
  static void counter_descriptor(PerfettoTrack& track, std::string_view bytes);
  int64_t owner(const PerfettoTrack& track) const;
  uint32_t metric(PerfettoTrack& track);
  std::string description(const PerfettoProcess& p, bool first, const std::string& source, std::string& rank_json);
  int64_t true_pid(const PerfettoProcess& p) const;

  std::string folder_;
  uint32_t next_number_;
  size_t buffer_bytes_;
  const SchemaTables& tables_;
  std::map<int64_t, uint32_t> process_of_;  // by pid
  std::map<int64_t, Facts> process_facts_;
  std::map<int64_t, std::string> thread_names_;  // by thread id: from /proc
  bool own_ = false;
  std::map<int64_t, std::string> own_processes_;
};

}  // namespace strobe

// otf2_import_location.h - the events of one location of an OTF2 archive: enters and leaves become spans, the rest
// their attributes, rows of side tables, and metrics.
#pragma once
#include <stdint.h>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/otf2/otf2_import_process.h"

namespace strobe::otf2 {

class LocationEvents {
 public:
  LocationEvents(Process& process, uint64_t location, LocalDefinitions& local);

  // For Chunks::feed.
  size_t records(const uint8_t* begin, const uint8_t* end, bool big_endian);
  // The file ends here: what is open is cut at the last event.
  void finish();
  uint64_t events() const { return events_; }

 private:
  struct Frame {
    int64_t start_ns;
    uint32_t region;  // of the archive; kProgram: the program itself
    uint32_t number;  // ours
    uint32_t place;
    std::string rows;
  };
  static constexpr uint32_t kProgram = kUndefined - 1;
  // What waits for its end while a file is read; a damaged one must not fill memory with it.
  static constexpr size_t kMostWaiting = 1 << 20, kDeepest = 1 << 16;
  struct Communicator {
    uint32_t name = 0;
    const Group* own = nullptr;    // the group that this location is a member of
    const Group* peers = nullptr;  // the one that ranks of others are counted in: another one between two groups
    int64_t own_rank = -1;
    bool self = false;
    struct Peer {
      bool known = false;
      int64_t world_rank = -1;
      uint64_t location = kUndefined64;
    };
    std::vector<Peer> met;  // by rank, as far as they were met
  };
  struct Waiting {  // between a request and its completion
    int64_t ns;
    TableRow row;
  };
  struct Transfer {
    int64_t ns;
    uint8_t type;
    uint32_t remote;
    uint64_t bytes;
  };

  // What became of the record that was read last.
  void counted(bool sound);
  void lost(const char* reason) { lost_ = reason; }

  void time(uint64_t ticks);
  void attributes(Bytes in);
  bool event(uint8_t type, Bytes in);
  bool other_event(uint8_t type, Bytes in);

  void enter(uint32_t region, uint32_t number);
  void leave(uint32_t region);
  void close_top(int64_t end_ns);
  Frame* top() { return depth_ ? &stack_[depth_ - 1] : nullptr; }
  void give_attributes();
  bool own_rows();
  void argument(uint32_t key, std::string_view value);
  void mark(std::string_view name, std::string_view arguments);

  void parameter(uint32_t id, Value value);
  void metric(Bytes& in);
  void program_begin(Bytes& in);
  void measurement_off();
  void calling_context(uint8_t type, Bytes& in);

  Communicator& communicator(uint32_t id);
  const Communicator::Peer& peer(uint32_t communicator, uint32_t rank);
  void start_message(TableRow& row, const char* direction, uint32_t communicator, uint32_t rank);
  void message(const TableRow& row) { process_.out.row(location_, row); }
  void send_or_receive(uint8_t type, Bytes& in);
  bool message_event(uint8_t type, Bytes in);
  void collective_event(uint8_t type, Bytes& in);
  void collective(uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent, uint64_t received,
                  const uint64_t* request);
  void io_event(uint8_t type, Bytes in);
  bool transfer_event(uint8_t type, Bytes in);
  void synchronisation(uint8_t type, Bytes in);
  void transfer_done(uint32_t window, uint64_t matching, bool cut);

  uint32_t word(const char* literal);
  uint32_t location() { return location_ == kUndefined ? location_ = process_.location(id_) : location_; }
  uint64_t map(Type type, uint64_t id) const { return local_.global(type, id); }
  uint32_t reference(Bytes& in, Type type) const { return uint32_t(map(type, in.id())); }

  Process& process_;
  LocalDefinitions& local_;
  const uint64_t id_;
  const Location* const location_definition_;
  const bool on_stream_;
  uint32_t location_ = kUndefined;  // until something is in it
  uint64_t ticks_ = 0;
  int64_t ns_ = 0;
  uint64_t events_ = 0;
  const char* lost_ = nullptr;  // why the record that is read is left out
  std::string unknown_;         // its kind, if nobody here knows it
  std::vector<Frame> stack_;    // frames above depth_ are kept for their memory
  size_t depth_ = 0;
  TableRow kernel_;  // of the kernel at kernel_depth_
  size_t kernel_depth_ = 0;
  const Stream stream_;
  std::vector<std::pair<uint32_t, Value>> attributes_;   // of the next event
  std::vector<std::pair<uint32_t, TableRow>> own_rows_;  // that attributes of one event are cells of, by table
  std::string scratch_;

  std::unordered_map<uint32_t, std::vector<Process::MetricUse>> metrics_;
  std::unordered_map<uint32_t, Communicator> communicators_;
  struct Copies {  // what all copies from one side to another share
    uint32_t region, kind;
  };
  std::unordered_map<uint64_t, Copies> copies_;
  uint32_t last_metric_ = kUndefined, last_communicator_ = kUndefined;
  const std::vector<Process::MetricUse>* last_metrics_ = nullptr;
  Communicator* last_found_ = nullptr;
  std::unordered_map<const char*, uint32_t> texts_;                             // of words of ours
  std::unordered_map<uint64_t, Waiting> sends_;                                 // by request
  std::unordered_map<uint64_t, int64_t> requests_;                              // of receives and collectives: when
  std::unordered_map<uint64_t, TableRow> probed_;                               // by message
  std::unordered_map<uint64_t, std::pair<uint64_t, int64_t>> probed_requests_;  // message and when, by request
  std::vector<int64_t> collective_begins_;
  std::map<std::pair<uint32_t, uint64_t>, std::deque<Transfer>> transfers_;           // by window and matching number
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint8_t, uint64_t>> operations_;  // mode and bytes, by matching
  int64_t off_since_ = 0;
  bool off_ = false;
};

}  // namespace strobe::otf2

// otf2_writer.h - writes the files of an OTF2 archive: definitions, and the events of one location. What the records
// mean is up to the caller (formats/otf2.py); this encodes columns of them, merges them by time, and cuts them into
// chunks. Native because of its speed: 40 times that of the official writer in Python (`./dev bench export_otf2`).
#pragma once
#include <stdint.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/importing/sorted_records.h"

namespace strobe::otf2 {

// A file of chunks: records do not cross them. Everything throws std::system_error where it cannot be written.
class ChunkedFile {
 public:
  ChunkedFile(std::string path, size_t chunk_bytes);
  ~ChunkedFile();
  ChunkedFile(const ChunkedFile&) = delete;

  size_t most() const { return chunk_bytes_ - kHeaderBytes - 2; }  // bytes of a record
  // Makes room; true where a new chunk begins with what comes next.
  bool room(size_t bytes);
  void append(std::string_view bytes) { chunk_ += bytes; }
  void count_record() { records_++; }
  // Of a definition. False: it is longer than a chunk, and not written.
  bool record(uint8_t type, std::string_view body);
  uint64_t records() const { return records_; }
  void finish();  // with the mark of a whole file

 private:
  static constexpr size_t kHeaderBytes = 18;
  void begin();
  void flush();
  std::string path_, chunk_;
  size_t chunk_bytes_;
  int file_ = -1;
  uint64_t records_ = 0, first_record_ = 1;
};

// One number a row, or the same for all of them.
struct Numbers {
  const int64_t* values = nullptr;
  int64_t constant = 0;
  int64_t at(size_t row) const { return values ? values[row] : constant; }
};
enum class FieldKind : uint8_t { byte, u32, u64 };
struct Field {
  FieldKind kind;
  Numbers numbers;
};
struct Attribute {
  Numbers id, type, value;  // type of OTF2; the value's bits
  const uint8_t* valid = nullptr;
  bool is_there(size_t row) const { return !valid || valid[row]; }
};
// Records of one type: their keys are times, or rows of the spans that they belong to, in order.
struct Records {
  uint8_t type;
  const int64_t* keys;
  size_t count;
  std::vector<Field> fields;
  std::vector<Attribute> attributes;
};
// A batch of spans, in order of start, each after those around it.
struct SpanColumns {
  const int64_t *row, *start, *duration;
  const uint32_t* depth;
  const uint32_t* region;
  size_t count;
};

class EventFile {
 public:
  // `communication`: of each region, whether messages belong into it rather than next to it. `spill_path`: see
  // SortedRecords.
  EventFile(std::string path, size_t chunk_bytes, std::string spill_path, size_t memory_bytes,
            std::vector<uint8_t> communication);

  // Records with a time (the keys), in any order; all of them before the first span. Those that lie at most `early_ns`
  // before an enter of communication are written behind it, those at most `late_ns` after a leave before that.
  void points(const Records& records, uint16_t early_ns = 0, uint16_t late_ns = 0);
  // `details`: attributes of enters; `first`: right after the enter; `last`: right before the leave. Keys: rows.
  void spans(const SpanColumns& columns, const std::vector<Records>& details, const std::vector<Records>& first,
             const std::vector<Records>& last);
  void finish();

  uint64_t events() const { return file_.records(); }
  // Attributes of events that had more of them than a chunk holds.
  uint64_t attributes_left_out() const { return attributes_left_out_; }
  std::optional<uint64_t> first_time() const { return first_time_; }
  uint64_t last_time() const { return time_; }

 private:
  struct Open {
    uint64_t end;
    uint32_t region;
    std::string last;  // records right before the leave, each with its size
  };
  void points_before(uint64_t time, bool with_equal, bool enters_communication = false);
  bool communicates(uint32_t region) const { return region < communication_.size() && communication_[region]; }
  void leave();
  void event(uint64_t time, std::string_view attributes, std::string_view record);
  void packed_event(uint64_t time, std::string_view packed);

  ChunkedFile file_;
  SortedRecords points_;
  std::vector<uint8_t> communication_;
  std::vector<std::string> early_;  // points for the enter that comes next
  std::vector<Open> open_;          // above depth_ they are kept for their memory
  size_t depth_ = 0;
  bool sorted_ = false;
  uint64_t time_ = 0;
  std::optional<uint64_t> first_time_;
  uint64_t attributes_left_out_ = 0;
  std::string attributes_, record_, packed_;
};

}  // namespace strobe::otf2

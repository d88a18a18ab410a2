#include "formats/otf2/otf2_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "formats/otf2/otf2_bytes.h"
#include "formats/otf2/otf2_definitions.h"
#include "formats/otf2/otf2_records.h"

namespace strobe::otf2 {

namespace {

void append_fixed(std::string& out, uint64_t value, size_t bytes = 8) {
  for (size_t i = 0; i < bytes; i++) out += char(uint8_t(value >> (8 * i)));
}

// Compressed: how many bytes follow, then these; all bits set is 255 and nothing else.
void append_u64(std::string& out, uint64_t value) {
  if (value == UINT64_MAX) {
    out += char(0xFF);
    return;
  }
  const size_t bytes = value ? (71 - size_t(__builtin_clzll(value))) / 8 : 0;
  out += char(uint8_t(bytes));
  append_fixed(out, value, bytes);
}

void append_u32(std::string& out, uint32_t value) {
  if (value == kUndefined)
    out += char(0xFF);
  else
    append_u64(out, value);
}

// A record with a length: below 255 in a byte, else in eight more.
void append_record(std::string& out, uint8_t type, std::string_view body) {
  out += char(type);
  if (body.size() < 0xFF) {
    out += char(uint8_t(body.size()));
  } else {
    out += char(0xFF);
    append_fixed(out, body.size());
  }
  out += body;
}

void append_value(std::string& out, Type type, uint64_t bits) {
  switch (type) {
    case Type::u8:
    case Type::i8:
      out += char(uint8_t(bits));
      break;
    case Type::real64:
      append_fixed(out, bits);
      break;
    case Type::u64:
    case Type::i64:
    case Type::location:
      append_u64(out, bits);
      break;
    default:
      append_u32(out, uint32_t(bits));
  }
}

// The attributes that some records have in a row, one list for all of them.
class AttributeList {
 public:
  explicit AttributeList(std::string& out) : out_(out) { body_.clear(); }
  void add(const Records& records, size_t row) {
    for (const Attribute& each : records.attributes) {
      if (!each.is_there(row)) continue;
      count_++;
      append_u32(body_, uint32_t(each.id.at(row)));
      const uint8_t type = uint8_t(each.type.at(row));
      body_ += char(type);
      append_value(body_, Type(type), uint64_t(each.value.at(row)));
    }
  }
  void end() {
    out_.clear();
    if (!count_) return;
    std::string head;
    append_u32(head, count_);
    head += body_;
    append_record(out_, kAttributeList, head);
  }

 private:
  std::string& out_;
  uint32_t count_ = 0;
  static thread_local std::string body_;
};
thread_local std::string AttributeList::body_;

void encode(std::string& out, const Records& records, size_t row) {
  static thread_local std::string body;
  body.clear();
  for (const Field& field : records.fields) {
    const uint64_t value = uint64_t(field.numbers.at(row));
    if (field.kind == FieldKind::byte)
      body += char(uint8_t(value));
    else if (field.kind == FieldKind::u32)
      append_u32(body, uint32_t(value));
    else
      append_u64(body, value);
  }
  out.clear();
  if (is_singleton(records.type))
    (out += char(records.type)) += body;
  else
    append_record(out, records.type, body);
}

// An event that waits: how long its attributes and its record are, how early and late it may be, and both.
constexpr size_t kPackedHeader = 12;
void pack(std::string& out, std::string_view attributes, std::string_view record, uint16_t early_ns = 0,
          uint16_t late_ns = 0) {
  append_fixed(out, attributes.size(), 4);
  append_fixed(out, record.size(), 4);
  append_fixed(out, early_ns, 2), append_fixed(out, late_ns, 2);
  out += attributes;
  out += record;
}

size_t fixed(std::string_view bytes, size_t at, size_t count) {
  size_t value = 0;
  for (size_t i = 0; i < count; i++) value |= size_t(uint8_t(bytes[at + i])) << (8 * i);
  return value;
}
size_t fixed4(std::string_view bytes, size_t at) { return fixed(bytes, at, 4); }

// Goes through records that belong to rows, as far as the rows are.
class Cursor {
 public:
  explicit Cursor(const Records& records) : records_(records) {}
  template <class Visit>
  void rows(int64_t row, Visit&& visit) {
    while (at_ < records_.count && records_.keys[at_] < row) at_++;
    for (; at_ < records_.count && records_.keys[at_] == row; at_++) visit(records_, at_);
  }

 private:
  const Records& records_;
  size_t at_ = 0;
};

}  // namespace

ChunkedFile::ChunkedFile(std::string path, size_t chunk_bytes) : path_(std::move(path)), chunk_bytes_(chunk_bytes) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) throw_errno(path_);
  begin();
}

ChunkedFile::~ChunkedFile() {
  if (file_ >= 0) close(file_);
}

void ChunkedFile::begin() {
  first_record_ = records_ + 1;
  chunk_.assign("\3B", 2);
  append_fixed(chunk_, 0), append_fixed(chunk_, 0);  // the first and the last record, when they are known
}

bool ChunkedFile::room(size_t bytes) {
  if (chunk_.size() + bytes + 2 <= chunk_bytes_) return chunk_.size() == kHeaderBytes;
  chunk_.resize(chunk_bytes_, '\0');  // a record of type 0 ends the chunk
  flush();
  begin();
  return true;
}

void ChunkedFile::flush() {
  if (records_ >= first_record_) {
    std::string numbers;
    append_fixed(numbers, first_record_), append_fixed(numbers, records_);
    chunk_.replace(2, 16, numbers);
  }
  write_all(file_, path_, chunk_.data(), chunk_.size());
}

void ChunkedFile::finish() {
  chunk_ += "\2\1";  // end of file, end of buffer
  flush();
  const int file = file_;
  file_ = -1;
  if (close(file)) throw_errno(path_);
}

bool ChunkedFile::record(uint8_t type, std::string_view body) {
  std::string bytes;
  append_record(bytes, type, body);
  if (bytes.size() > most()) return false;
  room(bytes.size());
  append(bytes);
  count_record();
  return true;
}

EventFile::EventFile(std::string path, size_t chunk_bytes, std::string spill_path, size_t memory_bytes,
                     std::vector<uint8_t> communication)
    : file_(std::move(path), chunk_bytes),
      points_(std::move(spill_path), memory_bytes),
      communication_(std::move(communication)) {}

void EventFile::points(const Records& records, uint16_t early_ns, uint16_t late_ns) {
  for (size_t row = 0; row < records.count; row++) {
    AttributeList list(attributes_);
    list.add(records, row);
    list.end();
    encode(record_, records, row);
    packed_.clear();
    pack(packed_, attributes_, record_, early_ns, late_ns);
    points_.add(records.keys[row], packed_);
  }
}

void EventFile::event(uint64_t time, std::string_view attributes, std::string_view record) {
  constexpr size_t kTimestampBytes = 9;
  // Files go forward in time: what a damaged trace has out of order is moved.
  time = std::max(time, time_);
  if (kTimestampBytes + attributes.size() + record.size() > file_.most()) attributes_left_out_++, attributes = {};
  if (file_.room(kTimestampBytes + attributes.size() + record.size()) || time != time_ || !first_time_) {
    char stamp[kTimestampBytes] = {char(kTimestamp)};
    for (size_t i = 0; i < 8; i++) stamp[1 + i] = char(uint8_t(time >> (8 * i)));
    file_.append({stamp, kTimestampBytes});
  }
  if (!first_time_) first_time_ = time;
  time_ = time;
  file_.append(attributes);
  file_.append(record);
  file_.count_record();
}

void EventFile::packed_event(uint64_t time, std::string_view packed) {
  const size_t attributes = fixed4(packed, 0), record = fixed4(packed, 4);
  event(time, packed.substr(kPackedHeader, attributes), packed.substr(kPackedHeader + attributes, record));
}

void EventFile::points_before(uint64_t time, bool with_equal, bool enters_communication) {
  if (!sorted_) points_.sort(), sorted_ = true;
  while (!points_.empty() && (uint64_t(points_.time()) < time || (with_equal && uint64_t(points_.time()) == time))) {
    if (enters_communication && uint64_t(points_.time()) + fixed(points_.bytes(), 8, 2) >= time)
      early_.emplace_back(points_.bytes());
    else
      packed_event(uint64_t(points_.time()), points_.bytes());
    points_.take();
  }
}

void EventFile::leave() {
  Open& open = open_[--depth_];
  // What happens when a call of MPI ends is part of it.
  points_before(open.end, communicates(open.region));
  while (communicates(open.region) && !points_.empty() &&
         uint64_t(points_.time()) <= open.end + fixed(points_.bytes(), 10, 2)) {
    packed_event(open.end, points_.bytes());
    points_.take();
  }
  for (size_t at = 0; at < open.last.size();) {
    const size_t size = kPackedHeader + fixed4(open.last, at) + fixed4(open.last, at + 4);
    packed_event(open.end, std::string_view(open.last).substr(at, size));
    at += size;
  }
  record_.assign(1, char(kLeave));
  append_u32(record_, open.region);
  event(open.end, {}, record_);
}

void EventFile::spans(const SpanColumns& columns, const std::vector<Records>& details,
                      const std::vector<Records>& first, const std::vector<Records>& last) {
  std::vector<Cursor> of_details(details.begin(), details.end()), of_first(first.begin(), first.end()),
      of_last(last.begin(), last.end());
  for (size_t i = 0; i < columns.count; i++) {
    const int64_t row = columns.row[i];
    while (depth_ > columns.depth[i]) leave();
    const uint64_t start = uint64_t(columns.start[i]);
    points_before(start, false, communicates(columns.region[i]));
    if (details.empty()) {
      attributes_.clear();
    } else {
      AttributeList list(attributes_);
      for (Cursor& each : of_details) each.rows(row, [&](const Records& records, size_t at) { list.add(records, at); });
      list.end();
    }
    record_.assign(1, char(kEnter));
    append_u32(record_, columns.region[i]);
    event(start, attributes_, record_);
    for (const std::string& each : early_) packed_event(start, each);
    early_.clear();
    const auto inside = [&](std::vector<Cursor>& cursors, auto&& use) {
      for (Cursor& each : cursors)
        each.rows(row, [&](const Records& records, size_t at) {
          AttributeList list(attributes_);
          list.add(records, at);
          list.end();
          encode(record_, records, at);
          use();
        });
    };
    inside(of_first, [&] { event(start, attributes_, record_); });
    if (depth_ == open_.size()) open_.emplace_back();
    Open& open = open_[depth_++];
    open.end = start + uint64_t(columns.duration[i]), open.region = columns.region[i];
    open.last.clear();
    inside(of_last, [&] { pack(open.last, attributes_, record_); });
  }
}

void EventFile::finish() {
  while (depth_) leave();
  points_before(UINT64_MAX, true);
  file_.finish();
}

}  // namespace strobe::otf2

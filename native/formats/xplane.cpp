#include "formats/xplane.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "formats/encoding/json_strings.h"
#include "formats/encoding/protobuf_wire.h"
#include "formats/importing/schema_tables.h"
#include "formats/xplane_hlo.h"
#include "include/strobe.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {

constexpr size_t kLongestBytes = 1 << 12;       // of a value that is not text
constexpr size_t kShortText = 64;               // is looked up as it is
constexpr size_t kLongestDetails = 1 << 12;     // of a kernel, in words
constexpr size_t kMostProperties = 256u << 10;  // bytes of the properties of planes

struct Stat {
  std::string_view name;
  char kind = 0;  // r real, u unsigned, i integer, t text, b bytes
  uint64_t number = 0;
  std::string_view text;
  bool whole() const { return kind == 'u' || kind == 'i'; }
};

struct EventName {
  std::string_view name, display_name;
  std::vector<std::string_view> stats;  // shared by all events of the name
};

// The entry of a map of messages by number.
std::pair<int64_t, std::string_view> entry(std::string_view bytes) {
  std::pair<int64_t, std::string_view> out{0, {}};
  Field field;
  for (Message message(bytes); message.next(field);) {
    if (field.number == 1) out.first = field.whole();
    if (field.number == 2) out.second = field.text();
  }
  return out;
}

// "grid:16,128,1 block:256,1,1 regs:32": the numbers behind a key.
size_t numbers_of(std::string_view details, std::string_view key, int64_t (&out)[3]) {
  for (size_t at = details.find(key); at != details.npos; at = details.find(key, at + 1)) {
    const bool whole_word = at == 0 || isspace(uint8_t(details[at - 1]));
    size_t cursor = at + key.size();
    if (!whole_word || cursor >= details.size() || details[cursor] != ':') continue;
    size_t n = 0;
    const std::string rest(details.substr(cursor + 1, 64));
    const char* text = rest.c_str();
    while (n < 3) {
      char* end;
      out[n] = strtoll(text, &end, 10);
      if (end == text) break;
      n++;
      if (*end != ',') break;
      text = end + 1;
    }
    return n;
  }
  return 0;
}

class Reader {
 public:
  Reader(const std::string& blocks_path, size_t buffer_bytes) : out_(blocks_path, buffer_bytes) {
    tables_.define(out_);
  }

  std::string read(std::string_view file, const std::string& source) {
    Field field;
    for (Message planes(file); planes.next(field);)
      if (field.number == 1) modules(field.text());
    Message space(file);
    size_t lost = 0;
    for (;; lost = space.left()) {
      const size_t before = space.left();
      if (!space.next(field)) {
        lost = before;
        break;
      }
      if (field.number == 1 && field.type == protobuf::kBytes) plane(field.bytes);
      if (field.number == 2) property("errors", field.text());
      if (field.number == 3) property("warnings", field.text());
      if (field.number == 4 && host_.empty()) host_ = field.text();
    }
    if (!space.ok()) {
      if (!planes_) throw std::runtime_error("its first bytes are not a plane");
      counters_["truncated"] = 1, counters_["bytes_lost"] += lost;
    }
    if (!planes_) throw std::runtime_error("it contains no plane");
    for (const auto& [what, n] : counters_) out_.count(what, n);
    std::string description, report;
    json::Object process(description);
    process.key("argv") += json::list_of(source);
    process.key("main") += "true";
    process.text("host", host_), process.text("imported_from", source);
    process.end();
    out_.finish({0, 0, description, ""});
    const bool any = out_.first_ns() <= out_.last_ns();
    json::Object about(report);
    about.number("first_ns", any ? out_.first_ns() : 0), about.number("last_ns", any ? out_.last_ns() : 0);
    about.number("looked_up_bytes", int64_t(out_.looked_up_bytes()));
    about.text("host", host_), about.number("profile_start_ns", profile_start_ns_);
    about.key("properties") += "{" + properties_ + "}";
    about.numbers("counters", counters_);
    about.end();
    return report;
  }

 private:
  using Counted = RecordCounts::Counted;

  void property(std::string_view name, std::string_view text) {
    if (properties_.size() > kMostProperties) return;
    if (!properties_.empty()) properties_ += ", ";
    // Several of one name: numbered, JSON has each once.
    json::append_text(properties_, std::string(name) + " " + std::to_string(++property_count_)), properties_ += ": ";
    json::append_text(properties_, text);
  }

  // What the compiler made of the program; the plane has no events.
  void modules(std::string_view bytes) {
    Field field, inner;
    std::string_view name;
    for (Message plane(bytes); name.empty() && plane.next(field);)
      if (field.number == 2) name = field.text();
    if (name != "/host:metadata") return;
    for (Message plane(bytes); plane.next(field);) {
      if (field.number != 4) continue;
      const auto [program, message] = entry(field.text());
      for (Message metadata(message); metadata.next(inner);)
        if (inner.number == 5) hlo_.add(program, bytes_of(inner.text()));
    }
  }
  // The one value of a stat of that plane.
  static std::string_view bytes_of(std::string_view stat) {
    Field field;
    for (Message message(stat); message.next(field);)
      if (field.number == 6) return field.text();
    return {};
  }

  void plane(std::string_view bytes) {
    planes_++;
    stat_names_.clear(), event_names_.clear(), regions_.clear();
    plane_name_ = {};
    Field field, inner;
    std::vector<std::string_view> stats;
    Message first(bytes);
    while (first.next(field)) {
      if (field.number == 2) plane_name_ = field.text();
      if (field.number == 6) stats.push_back(field.text());
      if (field.number == 4) {
        const auto [id, message] = entry(field.text());
        EventName& name = event_names_[id];
        for (Message metadata(message); metadata.next(inner);) {
          if (inner.number == 2) name.name = inner.text();
          if (inner.number == 4) name.display_name = inner.text();
          if (inner.number == 5) name.stats.push_back(inner.text());
        }
      }
      if (field.number == 5) {
        const auto [id, message] = entry(field.text());
        for (Message metadata(message); metadata.next(inner);)
          if (inner.number == 2) stat_names_[id] = inner.text();
      }
    }
    if (!first.ok()) counters_["unreadable_planes"]++;
    device_ = -1, on_device_ = plane_name_.starts_with("/device:");
    tpu_ = plane_name_.starts_with("/device:TPU");
    gpu_paradigm_ = !on_device_ || plane_name_.starts_with("/device:GPU") ? STROBE_CUDA : STROBE_ACCELERATOR;
    if (const size_t colon = plane_name_.rfind(':'); on_device_ && colon > 7)
      device_ = strtoll(std::string(plane_name_.substr(colon + 1)).c_str(), nullptr, 10);
    for (const std::string_view each : stats) {
      const Stat stat = read_stat(each);
      if (stat.name == "device_vendor" && stat.text.find("AMD") != stat.text.npos) gpu_paradigm_ = STROBE_HIP;
      if (stat.name == "profile_start_time" && stat.whole()) profile_start_ns_ = int64_t(stat.number);
      std::string value;
      append(value, stat);
      property(std::string(plane_name_) + " " + std::string(stat.name), value);
    }
    for (Message second(bytes); second.next(field);)
      if (field.number == 3) line(field.text());
  }

  Stat read_stat(std::string_view bytes) const {
    Stat out;
    Field field;
    for (Message message(bytes); message.next(field);) switch (field.number) {
        case 1:
          if (const auto found = stat_names_.find(field.whole()); found != stat_names_.end()) out.name = found->second;
          break;
        case 2:
          out.kind = 'r', out.number = field.value;
          break;
        case 3:
          out.kind = 'u', out.number = field.value;
          break;
        case 4:
          out.kind = 'i', out.number = field.value;
          break;
        case 5:
          out.kind = 't', out.text = field.text();
          break;
        case 6:
          out.kind = 'b', out.text = field.text();
          break;
        case 7:  // a text that is kept as the name of a stat
          out.kind = 't';
          if (const auto found = stat_names_.find(field.whole()); found != stat_names_.end()) out.text = found->second;
          break;
      }
    return out;
  }

  void append(std::string& out, const Stat& stat) {
    double real;
    switch (stat.kind) {
      case 'r':
        memcpy(&real, &stat.number, 8);
        return json::append_real(out, real);
      case 'u':
        out += std::to_string(stat.number);
        return;
      case 'i':
        out += std::to_string(int64_t(stat.number));
        return;
      case 't':
        json::append_text(out, stat.text);
        return;
      case 'b':
        if (stat.text.size() > kLongestBytes) {
          counters_["long_values_not_kept"]++;
          json::append_text(out, std::to_string(stat.text.size()) + " bytes");
          return;
        }
        out += '"', json::append_hex(out, stat.text), out += '"';
        return;
      default:
        out += "null";
    }
  }

  void line(std::string_view bytes) {
    int64_t id = 0, timestamp_ns = 0;
    std::string_view name, display_name;
    Field field;
    Message first(bytes);
    while (first.next(field)) {
      if (field.number == 1) id = field.whole();
      if (field.number == 2) name = field.text();
      if (field.number == 3) timestamp_ns = field.whole();
      if (field.number == 11) display_name = field.text();
    }
    if (!first.ok()) counters_["unreadable_lines"]++;
    // Streams run work; other rows of a device repeat it by module, step or scope.
    stream_ = on_device_ && name.starts_with("Stream");
    ops_ = tpu_ && (name == "XLA Ops" || name == "Async XLA Ops");
    if (ops_) out_.work_nests();
    operations_ = on_device_ && (name == "XLA Ops" || name == "Async XLA Ops");
    const LocationKind kind = !on_device_       ? LocationKind::thread
                              : stream_ || ops_ ? LocationKind::stream
                                                : LocationKind::task;
    std::string shown(display_name.empty() ? name : display_name);
    if (shown.empty()) shown = "line " + std::to_string(id);
    if (on_device_) shown = std::string(plane_name_.substr(strlen("/device:"))) + " " + shown;
    location_ = kNoTable;
    line_id_ = id;
    for (Message second(bytes); second.next(field);) {
      if (field.number != 4 || field.type != protobuf::kBytes) continue;
      if (location_ == kNoTable) location_ = out_.location(shown, uint64_t(id), kind, on_device_ ? device_ : -1);
      event(field.bytes, timestamp_ns);
    }
  }

  Counted event(std::string_view bytes, int64_t line_ns) {
    RecordCounts& records = out_.records();
    int64_t name_id = 0, offset_ps = 0, duration_ps = 0, occurrences = -1;
    stats_.clear();
    Field field;
    Message message(bytes);
    while (message.next(field)) {
      if (field.number == 1) name_id = field.whole();
      if (field.number == 2) offset_ps = field.whole();
      if (field.number == 3) duration_ps = field.whole();
      if (field.number == 4) stats_.push_back(read_stat(field.text()));
      if (field.number == 5) occurrences = field.whole();
    }
    if (!message.ok()) return records.left_out("unreadable_events");
    const EventName& name = event_names_[name_id];
    for (const std::string_view each : name.stats) stats_.push_back(read_stat(each));
    if (on_device_ && stat("hlo_op")) find_source();
    if (occurrences >= 0) return aggregate(name, line_ns, occurrences, duration_ps);
    int64_t end_ps;
    if (__builtin_add_overflow(offset_ps, duration_ps, &end_ps)) return records.left_out("times_out_of_range");
    if (offset_ps % 1000 || end_ps % 1000) counters_["times_rounded"]++;
    const int64_t start_ns = int64_t(uint64_t(line_ns) + uint64_t(floored(offset_ps)));
    const int64_t end_ns = int64_t(uint64_t(line_ns) + uint64_t(floored(end_ps)));
    if (start_ns < INT64_MIN / 4 || start_ns > INT64_MAX / 4) return records.left_out("times_out_of_range");
    details(name, start_ns);
    out_.span(location_, start_ns, end_ns - start_ns, region(name_id, name));
    return records.taken();
  }

  // Both ends of an event go down to whole nanoseconds: what nests in picoseconds nests in nanoseconds.
  static int64_t floored(int64_t ps) { return ps / 1000 - (ps % 1000 < 0); }

  // Events that a tool has summed up have no time of their own.
  Counted aggregate(const EventName& name, int64_t line_ns, int64_t occurrences, int64_t duration_ps) {
    counters_["aggregated_events"]++;
    TableRow row = start("marks");
    set(row, "time_ns", line_ns);
    set(row, "name", text(name.name));
    set(row, "category", out_.text("aggregated"));
    std::string arguments =
        "{\"occurrences\":" + std::to_string(occurrences) + ",\"duration_ps\":" + std::to_string(duration_ps);
    for (const Stat& stat : stats_) {
      // Each event has its own copy of these.
      if (stat.name.size() + stat.text.size() > kLongestBytes) {
        counters_["long_values_not_kept"]++;
        continue;
      }
      arguments += ',';
      json::append_text(arguments, stat.name), arguments += ':', append(arguments, stat);
    }
    set(row, "arguments", out_.text(arguments + "}"));
    out_.row(location_, row);
    return out_.records().taken();
  }

  // Of an operation, by its module; some profiles have it themselves.
  void find_source() {
    int64_t program;
    if (stat("source") || !whole("program_id", program)) return;
    const HloModules::Place* found = hlo_.find(program, stat("hlo_op")->text);
    if (!found) return;
    stats_.push_back({"source", 't', 0, found->source});
    if (!found->function.empty()) stats_.push_back({"source_function", 't', 0, found->function});
  }

  const Stat* stat(std::string_view name) const {
    for (const Stat& each : stats_)
      if (each.name == name) return &each;
    return nullptr;
  }
  bool whole(std::string_view name, int64_t& out) const {
    const Stat* found = stat(name);
    if (!found || !found->whole()) return false;
    out = int64_t(found->number);
    return true;
  }

  TableRow start(std::string_view table) { return TableRow(tables_.table(table)); }
  void set(TableRow& row, std::string_view column, int64_t value) {
    row.set(tables_.column(row.table(), column), value);
  }

  void details(const EventName& name, int64_t start_ns) {
    int64_t number, numbers[3];
    const Stat* kernel = stat("kernel_details");
    const Stat* copy = stat("memcpy_details");
    if (!copy) copy = stat("memset_details");
    role_ = STROBE_ROLE_RANGE;
    if (stream_) role_ = copy ? STROBE_ROLE_COPY : kernel ? STROBE_ROLE_KERNEL : STROBE_ROLE_OTHER;
    if (ops_)
      role_ = STROBE_ROLE_KERNEL;
    else if (operations_)
      role_ = STROBE_ROLE_OPERATOR;
    const bool correlated = whole("correlation_id", number);
    if (role_ == STROBE_ROLE_KERNEL || role_ == STROBE_ROLE_COPY) {
      TableRow row = start(role_ == STROBE_ROLE_COPY ? "copy_spans" : "kernel_spans");
      if (correlated) set(row, "correlation", number);
      set(row, "device", device_);
      set(row, "stream", line_id_);
      if (whole("context_id", number)) set(row, "context", number);
      if (copy && numbers_of(copy->text.substr(0, kLongestDetails), "size", numbers))
        set(row, "size_bytes", numbers[0]);
      if (kernel && role_ == STROBE_ROLE_KERNEL) kernel_details(row, kernel->text);
      out_.attribute(row);
    } else if (correlated) {
      TableRow row = start("call_spans");
      set(row, "correlation", number);
      out_.attribute(row);
    }
    for (const Stat& each : stats_) {
      if (each.name == "correlation_id" && each.whole()) continue;
      TableRow row = start("arguments");
      set(row, "key", text(each.name));
      set(row, "value", json_text(each));
      out_.attribute(row);
    }
    if (operations_ && operation_name(name) != name.name && !name.name.empty()) {
      TableRow row = start("arguments");
      set(row, "key", text("hlo"));
      set(row, "value", json_text({"hlo", 't', 0, name.name}));
      out_.attribute(row);
    }
    flow("_p", "_pt", "s", start_ns);
    flow("_c", "_ct", "f", start_ns);
    if (name.name == "MemoryAllocation" || name.name == "MemoryDeallocation") {
      TableRow row = start("allocations");
      set(row, "time_ns", start_ns);
      if (whole("addr", number)) set(row, "address", number);
      if (whole("allocation_bytes", number)) set(row, "size_bytes", name.name == "MemoryAllocation" ? number : -number);
      if (whole("bytes_allocated", number)) set(row, "total_allocated_bytes", number);
      if (whole("bytes_reserved", number)) set(row, "total_reserved_bytes", number);
      out_.row(location_, row);
    }
  }

  void kernel_details(TableRow& row, std::string_view text) {
    text = text.substr(0, kLongestDetails);
    int64_t numbers[3];
    if (numbers_of(text, "grid", numbers) == 3)
      set(row, "grid_x", numbers[0]), set(row, "grid_y", numbers[1]), set(row, "grid_z", numbers[2]);
    if (numbers_of(text, "block", numbers) == 3)
      set(row, "block_x", numbers[0]), set(row, "block_y", numbers[1]), set(row, "block_z", numbers[2]);
    if (numbers_of(text, "regs", numbers)) set(row, "registers_per_thread", numbers[0]);
    int64_t shared = 0;
    bool any = false;
    for (const std::string_view key : {"static_shared", "dynamic_shared", "group_mem"})
      if (numbers_of(text, key, numbers)) shared += numbers[0], any = true;
    if (any) set(row, "shared_memory_bytes", shared);
    if (numbers_of(text, "occ_pct", numbers))
      row.set_real(tables_.column(row.table(), "occupancy_percent"), double(numbers[0]));
  }

  // A text that lies in the file. Many events share long ones: they are looked up once for every place in the file.
  uint32_t text(std::string_view value) {
    if (value.size() <= kShortText) return out_.text(value);
    const auto [known, is_new] = texts_.try_emplace(value.data());
    if (is_new || known->second.first != value.size()) known->second = {value.size(), out_.text(value)};
    return known->second.second;
  }
  // The same as JSON.
  uint32_t json_text(const Stat& stat) {
    const bool shared = stat.kind == 't' && stat.text.size() > kShortText;
    if (shared)
      if (const auto known = json_texts_.find(stat.text.data());
          known != json_texts_.end() && known->second.first == stat.text.size())
        return known->second.second;
    value_.clear();
    append(value_, stat);
    const uint32_t id = out_.text(value_);
    if (shared) json_texts_[stat.text.data()] = {stat.text.size(), id};
    return id;
  }

  // What starts work elsewhere, and what was started: both have the number.
  void flow(std::string_view id, std::string_view type, std::string_view phase, int64_t ns) {
    int64_t number, kind = 0;
    if (!whole(id, number)) return;
    whole(type, kind);
    TableRow row = start("flows");
    set(row, "time_ns", ns);
    set(row, "flow", number);
    set(row, "phase", out_.text(phase));
    set(row, "name", out_.text("context " + std::to_string(kind)));
    set(row, "category", out_.text("xplane"));
    out_.row(location_, row);
  }

  uint32_t region(int64_t name_id, const EventName& of) {
    const auto [known, is_new] = regions_.try_emplace(uint64_t(name_id) << 8 | role_, 0);
    if (!is_new) return known->second;
    if (operations_) return known->second = operation(operation_name(of));
    std::string_view name = of.name.empty() ? of.display_name : of.name;
    return known->second = new_region(name);
  }

  // An operation of XLA is called what its computation calls it, `fusion.1`, not by the text that defines it,
  // `%fusion.1 = f32[8]{0} fusion(%all-reduce.2)`: that would name its operands, too.
  static std::string_view operation_name(const EventName& of) {
    std::string_view name = of.name.empty() ? of.display_name : of.name;
    if (!name.starts_with('%')) return name;
    name = name.substr(1, name.find(" = ") - 1);
    return name.empty() ? of.name : name;
  }

  // With its module, and where the program has it: "model.py:12". What has a name has one of each.
  uint32_t operation(std::string_view name) {
    const Stat* module = stat("hlo_module");
    const Stat* source = stat("source");
    std::string_view file = source && source->kind == 't' ? source->text : std::string_view{};
    uint32_t line = 0;
    if (const size_t colon = file.rfind(':'); colon != file.npos && colon + 1 < file.size()) {
      const std::string digits(file.substr(colon + 1));
      if (digits.size() < 10 && digits.find_first_not_of("0123456789") == digits.npos)
        line = uint32_t(strtoul(digits.c_str(), nullptr, 10)), file = file.substr(0, colon);
    }
    const uint8_t paradigm = role_ == STROBE_ROLE_KERNEL ? gpu_paradigm_ : uint8_t(STROBE_OTHER);
    return out_.region(name, paradigm, role_, file, line, module && module->kind == 't' ? module->text : "");
  }

  uint32_t new_region(std::string_view name) {
    if (role_ != STROBE_ROLE_RANGE || on_device_)
      return out_.region(name, stream_ || ops_ ? gpu_paradigm_ : uint8_t(STROBE_OTHER), role_);
    // "$file.py:12 function", or "$module function" of what is not written in Python.
    if (const size_t space = name.rfind(' '); name.starts_with("$") && space != name.npos) {
      const std::string_view where = name.substr(1, space - 1);
      const size_t colon = where.rfind(':');
      if (colon != where.npos && colon + 1 < where.size() && isdigit(uint8_t(where[colon + 1])))
        return out_.region(name.substr(space + 1), STROBE_PYTHON, STROBE_ROLE_FUNCTION, where.substr(0, colon),
                           uint32_t(strtoul(std::string(where.substr(colon + 1)).c_str(), nullptr, 10)));
      return out_.region(name.substr(space + 1), STROBE_PYTHON, STROBE_ROLE_FUNCTION, {}, 0, where);
    }
    for (const std::string_view prefix : {"cuda", "cu", "hip"})
      if (name.starts_with(prefix) && name.size() > prefix.size() && isupper(uint8_t(name[prefix.size()])) &&
          name.find_first_of(" :(") == name.npos)
        return out_.region(name, prefix == "hip" ? STROBE_HIP : STROBE_CUDA,
                           name.find("Synchronize") != name.npos ? STROBE_ROLE_SYNC : STROBE_ROLE_FUNCTION);
    return out_.region(name, STROBE_OTHER, stat("hlo_op") ? STROBE_ROLE_OPERATOR : STROBE_ROLE_RANGE);
  }

  const SchemaTables tables_;
  ImportedProcess out_;
  std::map<std::string, uint64_t> counters_;
  std::string properties_, value_;
  std::string_view host_, plane_name_;
  size_t planes_ = 0, property_count_ = 0;
  int64_t profile_start_ns_ = 0, device_ = -1, line_id_ = 0;
  uint8_t gpu_paradigm_ = STROBE_CUDA;  // of the plane's streams
  // Of a line: whether it is a stream; whether its events are the work of the device; whether they are XLA's
  // operations.
  bool on_device_ = false, tpu_ = false, stream_ = false, ops_ = false, operations_ = false;
  uint32_t location_ = kNoTable;
  uint8_t role_ = STROBE_ROLE_RANGE;
  std::unordered_map<int64_t, std::string_view> stat_names_;
  std::unordered_map<int64_t, EventName> event_names_;
  std::unordered_map<uint64_t, uint32_t> regions_;
  using Places = std::unordered_map<const char*, std::pair<size_t, uint32_t>>;  // length and number of what lies there
  Places texts_, json_texts_;
  std::vector<Stat> stats_;
  HloModules hlo_;
};

}  // namespace

std::string read_xplane(std::string_view file, const std::string& blocks_path, size_t buffer_bytes,
                        const std::string& source) {
  return Reader(blocks_path, buffer_bytes).read(file, source);
}

}  // namespace strobe

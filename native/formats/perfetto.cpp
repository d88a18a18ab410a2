#include "formats/perfetto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/chrome_values.h"
#include "formats/json_text.h"
#include "formats/own_process.h"
#include "formats/perfetto_clocks.h"
#include "formats/perfetto_names.h"
#include "formats/protobuf_wire.h"
#include "include/strobe.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {

constexpr size_t kLongestPacket = 64u << 20;
constexpr size_t kMostOpen = 1 << 20;   // slices of one track that are open at a moment
constexpr size_t kMostFlows = 1 << 20;  // that began and did not end
constexpr size_t kMostSequences = 1 << 16;
constexpr int kDeepestParent = 64, kDeepestValue = 32;
constexpr int64_t kNoNumber = INT64_MIN;
// Texts that events share may lie in what is said of each of them: so many bytes of copies, and more for a larger file.
constexpr size_t kShortText = 64, kMostCopied = 64u << 20, kCopiedOfRead = 16;
constexpr size_t kMostRegionKeys = 1 << 20;

// Fields of TracePacket.
enum : uint32_t {
  kFtraceEvents = 1,
  kProcessTree = 2,
  kTrustedUid = 3,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTraceConfig = 33,
  kFtraceStats = 34,
  kTraceStats = 35,
  kSyncMarker = 36,
  kStateCleared = 41,
  kPacketDropped = 42,
  kProcessDescriptor = 43,
  kThreadDescriptor = 44,
  kSystemInfo = 45,
  kCompressed = 50,
  kClockId = 58,
  kDefaults = 59,
  kTrackDescriptor = 60,
  kServiceEvent = 69,
  kTraceUuid = 89,
  kTraceAttributes = 126,
  kZstdCompressed = 133,
};
enum : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

double as_real(uint64_t bits) {
  double out;
  memcpy(&out, &bits, 8);
  return out;
}

bool number_of(std::string_view word, const std::vector<std::string>& words, uint8_t& out) {
  const auto found = std::find(words.begin(), words.end(), word);
  out = uint8_t(found - words.begin());
  return found != words.end();
}

void add_word(std::string& words, std::string_view word) {
  if (!words.empty()) words += ' ';
  words += word;
}

std::string_view text_of(const Field& field) { return field.type == protobuf::kBytes ? field.bytes : ""; }

}  // namespace

struct PerfettoReader::State {
  std::string folder;
  uint32_t next_number;
  size_t buffer_bytes;
  SchemaTables tables;
  std::vector<std::string> paradigms, roles;
  Inflate inflate;
  uint32_t arguments_table, marks_table, flows_table;

  std::string pending;  // bytes of a packet that has not ended
  bool damaged = false;
  uint64_t packets = 0;
  std::map<std::string, uint64_t> counters;
  std::map<uint32_t, uint64_t> other_kinds;  // packets of kinds that are not read, by field
  std::map<std::string, std::string> attributes;
  bool own = false;                              // it is one of our exports
  std::map<int64_t, std::string> own_processes;  // what it says of them, by pid, as JSON
  PerfettoClocks clocks;
  PerfettoNames names;
  std::string report;

  struct Process {
    std::unique_ptr<ImportedProcess> out;
    int64_t pid;
    std::string path;
    std::map<int64_t, uint32_t> threads;  // location by thread id
    uint32_t own_location = kNoTable;
  };
  std::vector<Process> processes;
  std::map<int64_t, uint32_t> process_of;  // by pid
  struct ProcessFacts {
    std::string name, command;
    std::vector<std::string> labels;
  };
  std::map<int64_t, ProcessFacts> process_facts;
  std::map<int64_t, std::string> thread_names;  // by thread id: from /proc

  struct Open {
    int64_t start_ns;
    uint32_t region, place;
    std::string rows;  // of side tables
    bool cut = false;
  };
  struct Track {
    std::string name, unit, description;
    uint64_t parent = 0;
    int64_t pid = kNoNumber, tid = kNoNumber;
    bool counter = false, incremental = false, described = false;
    double multiplier = 1, total = 0;
    uint32_t process = kNoTable, location = kNoTable, metric = kNoTable;
    std::vector<Open> open;
    std::vector<int64_t> ends;  // that came before their begin, or without one
  };
  std::unordered_map<uint64_t, Track> tracks;

  struct Sequence {
    bool state_valid = true;
    uint32_t clock = 0;  // 0: the trace's
    uint64_t track = 0;
    std::vector<uint64_t> counter_tracks, real_counter_tracks;
    uint64_t generation = 0;
    int64_t legacy_us = 0;  // of packets whose events have times of their own
  };
  std::unordered_map<uint32_t, Sequence> sequences;
  uint64_t generations = 0;

  // One event, as its message says.
  struct Event {
    uint64_t type, track, name_iid, location_iid;
    bool has_track, has_name;
    std::string_view name, location, legacy, callstack;
    std::vector<uint64_t> category_iids;
    std::vector<std::string_view> categories, annotations;
    std::vector<uint64_t> flows, ends, counter_tracks, real_counter_tracks;
    std::vector<uint64_t> counter_values, real_counter_values;
    uint64_t value;
    bool has_value, value_is_real;
    int64_t delta_us, absolute_us;
    std::vector<std::pair<uint32_t, std::string_view>> others;  // fields that are kept as they are
    std::vector<std::pair<std::string, std::string>> said;      // keys and values
  } event;

  std::unordered_set<uint64_t> flows_begun;

  struct RegionKey {
    uint64_t generation = 0, name = 0, location = 0;
    std::array<uint64_t, 3> categories{};
    uint32_t process = kNoTable, sequence = 0;
    bool operator==(const RegionKey&) const = default;
  };
  struct KnownRegion {
    RegionKey key;
    uint32_t region = 0;
  };
  std::vector<KnownRegion> known_regions = std::vector<KnownRegion>(4096);
  std::unordered_map<std::string, uint32_t> other_regions;  // by all that an event says of its region
  std::string region_key;
  uint64_t bytes_read = 0, copied_bytes = 0;

  State(std::string in, uint32_t number, size_t buffer, SchemaTables known, std::vector<std::string> paradigm_names,
        std::vector<std::string> role_names, Inflate unpack)
      : folder(std::move(in)),
        next_number(number),
        buffer_bytes(buffer),
        tables(std::move(known)),
        paradigms(std::move(paradigm_names)),
        roles(std::move(role_names)),
        inflate(std::move(unpack)),
        arguments_table(tables.table("arguments")),
        marks_table(tables.table("marks")),
        flows_table(tables.table("flows")) {}

  // --- packets ---------------------------------------------------------------------------------------------------

  // Reads all packets that are whole; returns how many bytes that was.
  size_t read_packets(std::string_view bytes, bool unpacked) {
    size_t at = 0;
    while (at < bytes.size()) {
      size_t cursor = at;
      uint64_t key, size;
      if (!protobuf::read_varint(bytes, cursor, key)) {
        if (bytes.size() - at >= 10) damage();
        break;
      }
      if ((key & 7) != protobuf::kBytes || key >> 3 == 0 || key >> 32) {
        damage();
        break;
      }
      if (!protobuf::read_varint(bytes, cursor, size)) {
        if (bytes.size() - cursor >= 10) damage();
        break;
      }
      if (size > kLongestPacket) {
        damage();
        break;
      }
      if (size > bytes.size() - cursor) break;
      if (key >> 3 == 1)
        packet(bytes.substr(cursor, size_t(size)), unpacked);
      else
        counters["unknown_fields"]++;
      at = cursor + size_t(size);
    }
    return at;
  }

  void damage() {
    if (!packets) throw std::runtime_error("its first bytes are no packet");
    damaged = true;
  }

  void packet(std::string_view bytes, bool unpacked) {
    packets++;
    uint32_t sequence_id = 0, clock = 0, kind = 0;
    uint64_t time = 0, flags = 0;
    bool has_time = false, cleared = false, dropped = false;
    std::string_view data, interned, defaults;
    Field field;
    Message message(bytes);
    while (message.next(field)) switch (field.number) {
        case kTimestamp:
          time = field.value, has_time = true;
          break;
        case kSequence:
          sequence_id = uint32_t(field.value);
          break;
        case kInternedData:
          interned = text_of(field);
          break;
        case kSequenceFlags:
          flags = field.value;
          break;
        case kStateCleared:
          cleared = field.value != 0;
          break;
        case kPacketDropped:
          dropped = field.value != 0;
          break;
        case kClockId:
          clock = uint32_t(field.value);
          break;
        case kDefaults:
          defaults = text_of(field);
          break;
        default:
          if (field.type == protobuf::kBytes) kind = field.number, data = field.bytes;
      }
    if (!message.ok()) {
      counters["unreadable_packets"]++;
      return;
    }
    if (sequences.size() >= kMostSequences && !sequences.count(sequence_id))
      throw std::runtime_error("it has more sequences of packets than any trace");
    Sequence& sequence = sequences[sequence_id];
    if (dropped) {
      counters["packets_dropped"]++;
      // Interned texts of it are wrong from here on, until it begins anew.
      if (!cleared && !(flags & 1)) sequence.state_valid = sequence.generation == 0;
    }
    if (cleared || (flags & 1)) {
      sequence = {};
      sequence.generation = ++generations;
      names.clear(sequence_id);
    }
    if (!interned.empty() && !names.add(sequence_id, interned)) counters["interned_texts_lost"]++;
    if (!defaults.empty()) read_defaults(sequence, defaults);
    if (kind == kClockSnapshot) return clocks.snapshot(sequence_id, data);
    if ((flags & 2) && !sequence.state_valid) {
      counters["packets_without_state"]++;
      return;
    }
    switch (kind) {
      case kTrackEvent: {
        int64_t ns = 0;
        if (!has_time && !find_legacy_time(sequence, data, ns)) {
          counters["events_without_time"]++;
          return;
        }
        if (has_time && !to_ns(sequence_id, sequence, clock, time, ns)) {
          counters["events_without_clock"]++;
          return;
        }
        if (out_of_range(ns)) {
          counters["times_out_of_range"]++;
          return;
        }
        return track_event(sequence_id, sequence, ns, data);
      }
      case kTrackDescriptor:
        // A clock that counts from packet to packet counts with these, too.
        if (int64_t ns; has_time) to_ns(sequence_id, sequence, clock, time, ns);
        return track_descriptor(data);
      case kProcessTree:
        return process_tree(data);
      case kThreadDescriptor:
        return legacy_thread(sequence, data);
      case kProcessDescriptor:
        process_descriptor(data);
        return;
      case kCompressed:
      case kZstdCompressed: {
        const std::string inside = unpacked ? std::string() : inflate(kind, data);
        if (inside.empty() || read_packets(inside, true) != inside.size()) counters["unreadable_packets"]++;
        return;
      }
      case kTraceAttributes:
        return trace_attributes(data);
      case kFtraceEvents:
        return count_ftrace(data);
      case 0:
      case kTraceConfig:
      case kFtraceStats:
      case kTraceStats:
      case kSyncMarker:
      case kSystemInfo:
      case kServiceEvent:
      case kTraceUuid:
        break;
      default:
        counters["events_of_other_kinds"]++;
        other_kinds[kind]++;
    }
    if (int64_t ns; has_time) to_ns(sequence_id, sequence, clock, time, ns);
  }

  bool to_ns(uint32_t sequence_id, const Sequence& sequence, uint32_t clock, uint64_t time, int64_t& ns) {
    if (!clock) clock = sequence.clock ? sequence.clock : clocks.trace_clock();
    return clocks.translate(sequence_id, clock, time, ns);
  }

  void read_defaults(Sequence& sequence, std::string_view bytes) {
    Field field, inner;
    for (Message message(bytes); message.next(field);) {
      if (field.number == kClockId) sequence.clock = uint32_t(field.value);
      if (field.number != kTrackEvent || field.type != protobuf::kBytes) continue;
      for (Message event_defaults(field.bytes); event_defaults.next(inner);) {
        const auto add = [&](std::vector<uint64_t>& to) {
          each_number(inner, protobuf::kVarint, [&](uint64_t uuid) { to.push_back(uuid); });
        };
        if (inner.number == 11) sequence.track = inner.value;
        if (inner.number == 31) add(sequence.counter_tracks);
        if (inner.number == 45) add(sequence.real_counter_tracks);
      }
    }
  }

  void trace_attributes(std::string_view bytes) {
    Field field, inner;
    for (Message message(bytes); message.next(field);) {
      if (field.number != 1 || field.type != protobuf::kBytes) continue;
      std::string key, value;
      for (Message attribute(field.bytes); attribute.next(inner);) {
        if (inner.number == 1) key = text_of(inner);
        if (inner.number == 2) value = std::to_string(inner.whole());
        if (inner.number == 3) value = text_of(inner);
      }
      own = own || key == kOwnKey;
      if (own && key.rfind(kOwnProcessKey, 0) == 0)
        own_processes[strtoll(key.c_str() + kOwnProcessKey.size(), nullptr, 10)] = std::move(value);
      else if (own && key == kOwnRegionKey)
        own_region(value);
      else if (attributes.size() < 4096)
        attributes[key] = value;
    }
  }

  void count_ftrace(std::string_view bytes) {
    uint64_t n = 0;
    Field field, inner;
    for (Message message(bytes); message.next(field);) {
      if (field.number == 2) n++;
      if (field.number != 4 || field.type != protobuf::kBytes) continue;
      for (Message compact(field.bytes); compact.next(inner);)  // switches and wakings, by their times
        if (inner.number == 1 || inner.number == 7) each_number(inner, protobuf::kVarint, [&](uint64_t) { n++; });
    }
    counters["events_of_other_kinds"] += n;
    other_kinds[kFtraceEvents] += n;
  }

  // --- processes, threads, tracks ----------------------------------------------------------------------------------

  int64_t process_descriptor(std::string_view bytes) {
    int64_t pid = kNoNumber;
    ProcessFacts facts;
    Field field;
    for (Message message(bytes); message.next(field);) {
      if (field.number == 1) pid = int32_t(field.value);
      if (field.number == 2) add_word(facts.command, text_of(field));
      if (field.number == 6) facts.name = text_of(field);
      if (field.number == 8) facts.labels.emplace_back(text_of(field));
    }
    if (pid != kNoNumber) {
      ProcessFacts& known = process_facts[pid];
      if (!facts.name.empty()) known.name = facts.name;
      if (!facts.command.empty()) known.command = facts.command;
      if (!facts.labels.empty()) known.labels = facts.labels;
    }
    return pid;
  }

  void process_tree(std::string_view bytes) {
    Field field, inner;
    for (Message message(bytes); message.next(field);) {
      if (field.type != protobuf::kBytes) continue;
      int64_t id = 0;
      std::string text;
      for (Message one(field.bytes); one.next(inner);) {
        if (inner.number == 1) id = int32_t(inner.value);
        if (field.number == 1 && inner.number == 3) add_word(text, text_of(inner));
        if (field.number == 2 && inner.number == 2) text = text_of(inner);
      }
      if (field.number == 1 && process_facts[id].command.empty()) process_facts[id].command = text;
      if (field.number == 2) thread_names[id] = text;
    }
  }

  void track_descriptor(std::string_view bytes) {
    uint64_t uuid = 0;
    Field field;
    for (Message message(bytes); message.next(field);)
      if (field.number == 1) uuid = field.value;
    Track& track = tracks[uuid];
    const int64_t before = owner(track);
    for (Message message(bytes); message.next(field);) switch (field.number) {
        case 2:
        case 10:
        case 13:
          track.name = text_of(field);
          break;
        case 3:
          if (const int64_t pid = process_descriptor(text_of(field)); pid != kNoNumber) track.pid = pid;
          break;
        case 4:
          thread_descriptor(track, text_of(field));
          break;
        case 5:
          track.parent = field.value;
          break;
        case 8:
          counter_descriptor(track, text_of(field));
          break;
        case 14:
          track.description = text_of(field);
          break;
      }
    track.described = true;
    if (own && track.process == kNoTable) return place_own(track);
    if (track.process == kNoTable) return;
    if (owner(track) != before) {
      // Events came before: they stay where they are.
      counters["tracks_described_late"]++;
      track.process = track.location = track.metric = kNoTable;
    } else if (track.location != kNoTable && !track.name.empty() && track.tid == kNoNumber) {
      processes[track.process].out->name_location(track.location, track.name);
    }
  }

  // A region that the trace has no spans of.
  void own_region(std::string_view json) {
    const OwnJson told(json);
    const auto text = [&](const char* key) { return chrome::raw(yyjson_obj_get(told.root(), key)); };
    const auto number = [&](const char* key) {
      int64_t value;
      return chrome::integer(text(key), value) ? value : 0;
    };
    if (!processes.empty())
      processes[0].out->region(text("name"), uint8_t(number("paradigm")), uint8_t(number("role")), text("file"),
                               uint32_t(number("line")), text("module"));
  }

  // Processes and rows of our own exports are those of the trace, in its order, also where nothing happened.
  void place_own(Track& track) {
    if (track.pid != kNoNumber && track.tid == kNoNumber)
      process(track.pid);
    else if (!track.counter)
      place(track);
  }

  void thread_descriptor(Track& track, std::string_view bytes) {
    Field field;
    for (Message message(bytes); message.next(field);) {
      if (field.number == 1) track.pid = int32_t(field.value);
      if (field.number == 2) track.tid = field.whole();
      if (field.number == 5) track.name = text_of(field);
    }
  }

  void counter_descriptor(Track& track, std::string_view bytes) {
    track.counter = true;
    Field field;
    for (Message message(bytes); message.next(field);) {
      if (field.number == 1 && track.name.empty()) track.name = field.value == 1 ? "thread time" : "instructions";
      if (field.number == 1 && field.value == 1) track.unit = "ns";
      if (field.number == 3 && field.value == 1) track.unit = "ns";
      if (field.number == 3 && field.value == 3) track.unit = "bytes";
      if (field.number == 4 && field.value) track.multiplier = double(field.whole());
      if (field.number == 5) track.incremental = field.value != 0;
      if (field.number == 6) track.unit = text_of(field);
    }
  }

  void legacy_thread(Sequence& sequence, std::string_view bytes) {
    Track described;
    thread_descriptor(described, bytes);
    Field field;
    for (Message message(bytes); message.next(field);)
      if (field.number == 6) sequence.legacy_us = field.whole();
    // A track of its own, under a number that no descriptor is likely to have.
    const uint64_t uuid =
        (uint64_t(described.pid) * 0x9E3779B97F4A7C15ull) ^ uint64_t(described.tid) ^ 0x7468726561640000;
    Track& track = tracks[uuid];
    track.pid = described.pid, track.tid = described.tid, track.described = true;
    if (!described.name.empty()) track.name = described.name;
    sequence.track = uuid;
  }

  // The process of a track: its own, or that of what it lies in; 0 where nobody says.
  int64_t owner(const Track& track) const {
    const Track* at = &track;
    for (int hops = 0; at->pid == kNoNumber && hops < kDeepestParent; hops++) {
      const auto parent = at->parent ? tracks.find(at->parent) : tracks.end();
      if (parent == tracks.end()) return 0;
      at = &parent->second;
    }
    return at->pid == kNoNumber ? 0 : at->pid;
  }

  uint32_t process(int64_t pid) {
    const auto [found, is_new] = process_of.try_emplace(pid, uint32_t(processes.size()));
    if (is_new) {
      Process p;
      p.pid = pid;
      p.path = folder + "/process-" + std::to_string(next_number++) + ".blocks";
      p.out = std::make_unique<ImportedProcess>(p.path, buffer_bytes);
      tables.define(*p.out);
      processes.push_back(std::move(p));
    }
    return found->second;
  }

  void place(Track& track) {
    if (track.process == kNoTable) track.process = process(owner(track));
    if (track.location != kNoTable) return;
    Process& p = processes[track.process];
    if (track.tid != kNoNumber) {
      const auto [found, is_new] = p.threads.try_emplace(track.tid, 0);
      if (is_new) found->second = p.out->location(track.name, uint64_t(track.tid));
      track.location = found->second;
      return;
    }
    // What this program exported says in words what kind of row it was.
    long long thread_id = 0, device = -1;
    char word[8] = "";
    LocationKind kind = LocationKind::task;
    if (sscanf(track.description.c_str(), "%7s %lld of GPU %lld", word, &thread_id, &device) >= 2) {
      if (!strcmp(word, "thread"))
        kind = LocationKind::thread;
      else if (!strcmp(word, "stream"))
        kind = LocationKind::stream;
      else if (strcmp(word, "task"))
        thread_id = 0, device = -1;
    }
    const std::string_view description = track.description;
    if (own && description.size() > kNoName.size() &&
        description.substr(description.size() - kNoName.size()) == kNoName) {
      track.location = p.out->location("", uint64_t(thread_id), kind, device);
      track.name.clear();
      return;
    }
    if (track.pid != kNoNumber && track.name.empty()) {
      if (p.own_location == kNoTable) p.own_location = p.out->location("process", 0, LocationKind::task);
      track.location = p.own_location;
      return;
    }
    track.location = p.out->location(track.name.empty() ? "track" : track.name, uint64_t(thread_id), kind, device);
  }

  uint32_t metric(Track& track) {
    if (track.metric != kNoTable) return track.metric;
    if (track.process == kNoTable) track.process = process(owner(track));
    uint32_t location = kNoTable;
    if (const auto parent = tracks.find(track.parent); track.parent && parent != tracks.end()) {
      Track& of = parent->second;
      if (!of.counter && (of.tid != kNoNumber || of.pid == kNoNumber)) place(of), location = of.location;
    }
    return track.metric = processes[track.process].out->metric(track.name, track.unit, location);
  }

  void sample(uint64_t uuid, int64_t ns, double value) {
    Track& track = tracks[uuid];
    value *= track.multiplier;
    if (track.incremental) value = track.total += value;
    const uint32_t to = metric(track);
    processes[track.process].out->sample(to, ns, value);
  }

  // --- events ------------------------------------------------------------------------------------------------------

  // What no number can hold is as long as there is one, and so out of range.
  static int64_t nanoseconds(int64_t us) {
    int64_t ns;
    return __builtin_mul_overflow(us, 1000, &ns) ? INT64_MAX : ns;
  }

  // Events of old writers have times of their own, in microseconds.
  bool find_legacy_time(Sequence& sequence, std::string_view bytes, int64_t& ns) {
    Field field;
    bool found = false;
    for (Message message(bytes); message.next(field);) {
      if (field.type != protobuf::kVarint) continue;
      if (field.number == 1) {
        sequence.legacy_us = int64_t(uint64_t(sequence.legacy_us) + field.value);
        ns = nanoseconds(sequence.legacy_us), found = true;
      }
      if (field.number == 16) ns = nanoseconds(field.whole()), found = true;
    }
    return found;
  }

  bool read_event(std::string_view bytes) {
    Event& e = event;
    e.type = e.track = e.name_iid = e.location_iid = e.value = 0;
    e.has_track = e.has_name = e.has_value = e.value_is_real = false;
    e.name = e.location = e.legacy = e.callstack = {};
    e.category_iids.clear(), e.categories.clear(), e.annotations.clear(), e.flows.clear(), e.ends.clear();
    e.counter_tracks.clear(), e.real_counter_tracks.clear(), e.counter_values.clear(), e.real_counter_values.clear();
    e.others.clear(), e.said.clear();
    Field field;
    Message message(bytes);
    const auto add = [&](std::vector<uint64_t>& to, protobuf::WireType packed) {
      each_number(field, packed, [&](uint64_t number) { to.push_back(number); });
    };
    while (message.next(field)) switch (field.number) {
        case 1:
        case 2:
        case 8:
        case 16:
        case 17:
        case 20:
          break;  // times of the thread, of old writers
        case 3:
          add(e.category_iids, protobuf::kVarint);
          break;
        case 4:
          e.annotations.push_back(text_of(field));
          break;
        case 6:
          e.legacy = text_of(field);
          break;
        case 9:
          e.type = field.value;
          break;
        case 10:
          e.name_iid = field.value, e.has_name = true;
          break;
        case 11:
          e.track = field.value, e.has_track = true;
          break;
        case 12:
          add(e.counter_values, protobuf::kVarint);
          break;
        case 22:
          e.categories.push_back(text_of(field));
          break;
        case 23:
          e.name = text_of(field), e.has_name = true;
          break;
        case 30:
          e.value = field.value, e.has_value = true;
          break;
        case 31:
          add(e.counter_tracks, protobuf::kVarint);
          break;
        case 33:
          e.location = text_of(field);
          break;
        case 34:
          e.location_iid = field.value;
          break;
        case 36:
          add(e.flows, protobuf::kVarint);
          break;
        case 42:
          add(e.ends, protobuf::kVarint);
          break;
        case 44:
          e.value = field.value, e.has_value = e.value_is_real = true;
          break;
        case 45:
          add(e.real_counter_tracks, protobuf::kVarint);
          break;
        case 46:
          add(e.real_counter_values, protobuf::kFixed64);
          break;
        case 47:
          add(e.flows, protobuf::kFixed64);
          break;
        case 48:
          add(e.ends, protobuf::kFixed64);
          break;
        case 52:
          e.said.emplace_back("correlation_id", std::to_string(field.value));
          break;
        case 53:
          e.said.emplace_back("correlation_id", "");
          json::append_text(e.said.back().second, text_of(field));
          break;
        case 55:
          e.callstack = text_of(field);
          break;
        default:
          counters["event_details_of_other_kinds"]++;
      }
    return message.ok();
  }

  void track_event(uint32_t sequence_id, Sequence& sequence, int64_t ns, std::string_view bytes) {
    if (!read_event(bytes)) {
      counters["unreadable_packets"]++;
      return;
    }
    Event& e = event;
    uint64_t uuid = e.has_track ? e.track : sequence.track;
    int64_t duration_ns = -1;
    if (!e.legacy.empty() && !legacy(uuid, duration_ns)) return;
    extra_counters(sequence, ns);
    if (e.type == kCounter) {
      if (!e.has_value)
        counters["unreadable_counters"]++;
      else
        sample(uuid, ns, e.value_is_real ? as_real(e.value) : double(int64_t(e.value)));
      return;
    }
    if (e.type != kBegin && e.type != kEnd && e.type != kInstant && duration_ns < 0) {
      counters["events_of_other_kinds"]++;
      return;
    }
    Track& track = tracks[uuid];
    place(track);
    Process& p = processes[track.process];
    const bool only_flows = flow_rows(sequence_id, sequence, p, track.location, ns);
    if (duration_ns >= 0) {
      std::string rows;
      details(sequence_id, p, rows);
      p.out->attributes(rows);
      p.out->span(track.location, ns, duration_ns, region(sequence_id, sequence, track.process));
    } else if (e.type == kBegin) {
      if (track.open.size() >= kMostOpen) {
        counters["spans_too_deep"]++;
        return;
      }
      track.open.push_back({ns, region(sequence_id, sequence, track.process), p.out->place(), {}});
      track.open.back().cut = details(sequence_id, p, track.open.back().rows);
    } else if (e.type == kEnd) {
      end(sequence_id, track, ns);
    } else if (!only_flows) {
      mark(sequence_id, p, track.location, ns);
    }
  }

  void end(uint32_t sequence_id, Track& track, int64_t ns) {
    // Packets of several threads may lie in the file in another order than that of time: an end belongs to the
    // innermost slice that begins before it.
    auto at = track.open.rbegin();
    while (at != track.open.rend() && at->start_ns > ns) ++at;
    Process& p = processes[track.process];
    if (at == track.open.rend()) {
      if (track.ends.size() < kMostOpen)
        track.ends.push_back(ns);
      else
        counters["unmatched_leaves"]++;
      return;
    }
    if (!event.annotations.empty() || !event.said.empty()) details(sequence_id, p, at->rows);
    close(p, track, *at, ns);
    track.open.erase(std::next(at).base());
  }

  void close(Process& p, const Track& track, const Open& open, int64_t ns) {
    p.out->attributes(open.rows);
    if (open.cut) p.out->next_is_cut();
    p.out->span(track.location, open.start_ns, ns - open.start_ns, open.region, open.place);
  }

  // Phases of Chrome's JSON in protobuf: complete events, begins and ends. False: counted, and not read.
  bool legacy(uint64_t& uuid, int64_t& duration_ns) {
    Event& e = event;
    int64_t phase = 0, duration_us = 0, pid = kNoNumber, tid = kNoNumber;
    bool scoped = false;
    Field field;
    for (Message message(e.legacy); message.next(field);) {
      if (field.number == 1) e.name_iid = field.value, e.has_name = true;
      if (field.number == 2) phase = field.whole();
      if (field.number == 3) duration_us = field.whole();
      if (field.number == 6 || field.number == 10 || field.number == 11) scoped = true;
      if (field.number == 18) pid = int32_t(field.value);
      if (field.number == 19) tid = int32_t(field.value);
    }
    if (pid != kNoNumber && tid != kNoNumber) {
      uuid = (uint64_t(pid) * 0x9E3779B97F4A7C15ull) ^ uint64_t(tid) ^ 0x7468726561640000;
      Track& track = tracks[uuid];
      track.pid = pid, track.tid = tid;
    }
    if (phase == 'X') duration_ns = nanoseconds(duration_us);
    if (phase == 'B') e.type = kBegin;
    if (phase == 'E') e.type = kEnd;
    if (phase == 'I' || phase == 'i' || phase == 'R') e.type = kInstant;
    if (phase == 0 ||
        (!scoped && (phase == 'X' || phase == 'B' || phase == 'E' || phase == 'I' || phase == 'i' || phase == 'R')))
      return true;
    counters["events_of_other_kinds"]++;
    return false;
  }

  void extra_counters(const Sequence& sequence, int64_t ns) {
    const Event& e = event;
    const auto& whole = e.counter_tracks.empty() ? sequence.counter_tracks : e.counter_tracks;
    for (size_t i = 0; i < e.counter_values.size() && i < whole.size(); i++)
      sample(whole[i], ns, double(int64_t(e.counter_values[i])));
    const auto& real = e.real_counter_tracks.empty() ? sequence.real_counter_tracks : e.real_counter_tracks;
    for (size_t i = 0; i < e.real_counter_values.size() && i < real.size(); i++)
      sample(real[i], ns, as_real(e.real_counter_values[i]));
  }

  std::string_view name(uint32_t sequence_id) {
    if (!event.has_name) return {};
    return event.name_iid ? names.find(sequence_id, PerfettoNames::kEventNames, event.name_iid) : event.name;
  }

  // The number of a text that a sequence has interned: long ones are looked up once.
  uint32_t text(Process& p, uint32_t sequence_id, PerfettoNames::Kind kind, uint64_t iid, bool as_json = false) {
    PerfettoNames::Text* found = names.entry(sequence_id, kind, iid);
    const auto number = uint32_t(&p - processes.data());
    if (found)
      for (const PerfettoNames::Known& known : found->known)
        if (known.process == number && known.as_json == as_json) return known.id;
    std::string quoted;
    const std::string_view plain = found ? std::string_view(found->text) : std::string_view();
    if (as_json) json::append_text(quoted, plain);
    const uint32_t id = p.out->text(as_json ? quoted : plain);
    if (found) found->known.push_back({number, id, as_json});
    return id;
  }
  uint32_t name_text(Process& p, uint32_t sequence_id) {
    if (event.has_name && event.name_iid) return text(p, sequence_id, PerfettoNames::kEventNames, event.name_iid);
    return p.out->text(name(sequence_id));
  }
  uint32_t category_text(Process& p, uint32_t sequence_id) {
    if (event.categories.empty() && event.category_iids.size() == 1)
      return text(p, sequence_id, PerfettoNames::kCategories, event.category_iids[0]);
    std::vector<std::string_view> found = categories(sequence_id);
    for (std::string_view& each : found) each = copied(each);
    return p.out->text(joined(found));
  }
  // A text that becomes part of another one: its beginning only, once copies are far more than what was read.
  std::string_view copied(std::string_view shared) {
    if (shared.size() <= kShortText) return shared;
    copied_bytes += shared.size();
    if (copied_bytes <= kMostCopied + kCopiedOfRead * bytes_read) return shared;
    counters["long_values_not_kept"]++;
    return shared.substr(0, kShortText);
  }

  std::vector<std::string_view> categories(uint32_t sequence_id) {
    std::vector<std::string_view> found = event.categories;
    for (const uint64_t iid : event.category_iids)
      found.push_back(names.find(sequence_id, PerfettoNames::kCategories, iid));
    return found;
  }

  static std::string joined(const std::vector<std::string_view>& texts, size_t from = 0) {
    std::string out;
    for (size_t i = from; i < texts.size(); i++) {
      if (i > from) out += ',';
      out += texts[i];
    }
    return out;
  }

  uint32_t region(uint32_t sequence_id, const Sequence& sequence, uint32_t in) {
    const Event& e = event;
    const bool interned = e.name_iid && e.categories.empty() && e.category_iids.size() <= 3 && e.location.empty();
    if (!interned) return other_region(sequence_id, sequence, in);
    RegionKey key{sequence.generation, e.name_iid, e.location_iid, {}, in, sequence_id};
    std::copy(e.category_iids.begin(), e.category_iids.end(), key.categories.begin());
    const uint64_t mixed =
        (key.name + key.location * 31 + key.categories[0] * 1009 + key.categories[1] * 8191 + in + sequence_id * 131) *
        0x9E3779B97F4A7C15ull;
    KnownRegion& at = known_regions[mixed >> 52];
    if (!(at.key == key)) at = {key, other_region(sequence_id, sequence, in)};
    return at.region;
  }

  // By the event's own words and the numbers of those that it shares with others.
  uint32_t other_region(uint32_t sequence_id, const Sequence& sequence, uint32_t in) {
    const Event& e = event;
    region_key.clear();
    const auto number = [this](uint64_t value) { region_key.append(reinterpret_cast<const char*>(&value), 8); };
    const auto words = [&](std::string_view value) { number(value.size()), region_key += value; };
    number(sequence.generation), number(uint64_t(sequence_id) << 32 | in), number(e.has_name);
    number(e.name_iid), number(e.location_iid), number(e.category_iids.size());
    for (const uint64_t iid : e.category_iids) number(iid);
    words(e.name), words(e.location);
    for (const std::string_view each : e.categories) words(each);
    if (other_regions.size() >= kMostRegionKeys) other_regions.clear();
    const auto [known, is_new] = other_regions.try_emplace(region_key, 0);
    if (is_new) known->second = new_region(sequence_id, in);
    return known->second;
  }

  uint32_t new_region(uint32_t sequence_id, uint32_t in) {
    const std::vector<std::string_view> of = categories(sequence_id);
    std::string_view file;
    uint32_t line = 0;
    const std::string_view where =
        event.location_iid ? names.find(sequence_id, PerfettoNames::kLocations, event.location_iid) : event.location;
    Field field;
    for (Message message(where); message.next(field);) {
      if (field.number == 2) file = text_of(field);
      if (field.number == 4) line = uint32_t(field.value);
    }
    // What this program exported has its own words as the first two categories.
    uint8_t paradigm = STROBE_OTHER, role = STROBE_ROLE_RANGE;
    const bool own = of.size() >= 2 && number_of(of[0], paradigms, paradigm) && number_of(of[1], roles, role);
    if (!own) paradigm = STROBE_OTHER, role = STROBE_ROLE_RANGE;
    const std::string module = joined(of, own ? 2 : 0);
    return processes[in].out->region(name(sequence_id), paradigm, role, file, line, module);
  }

  // --- attributes --------------------------------------------------------------------------------------------------

  std::string_view key_of(uint32_t sequence_id, std::string_view annotation) {
    Field field;
    for (Message message(annotation); message.next(field);) {
      if (field.number == 1) return names.find(sequence_id, PerfettoNames::kAnnotationNames, field.value);
      if (field.number == 10) return text_of(field);
    }
    return {};
  }

  // The number of the interned key of an annotation, 0 where it has its own.
  static uint64_t key_iid(std::string_view annotation) {
    Field field;
    for (Message message(annotation); message.next(field);) {
      if (field.number == 1) return field.value;
      if (field.number == 10) return 0;
    }
    return 0;
  }

  // The number of the interned text that is all of an annotation's value, else 0.
  static uint64_t value_iid(std::string_view annotation) {
    uint64_t iid = 0;
    Field field;
    for (Message message(annotation); message.next(field);) {
      if (field.number == 1 || field.number == 10) continue;
      if (field.number != 17 || iid) return 0;
      iid = field.value;
    }
    return iid;
  }

  void append_value(uint32_t sequence_id, std::string& out, std::string_view annotation, int depth = 0) {
    Field field;
    char kind = 0;  // of a value that has several parts
    const size_t start = out.size();
    for (Message message(annotation); message.next(field);) switch (field.number) {
        case 2:
          out += field.value ? "true" : "false";
          break;
        case 3:
        case 7:
          out += std::to_string(field.value);
          break;
        case 4:
          out += std::to_string(field.whole());
          break;
        case 5:
          append_real(out, field.real());
          break;
        case 6:
          json::append_text(out, text_of(field));
          break;
        case 9:
          out += text_of(field);
          break;
        case 17:
          json::append_text(out, copied(names.find(sequence_id, PerfettoNames::kAnnotationValues, field.value)));
          break;
        case 8:
          append_nested(out, text_of(field), depth + 1);
          break;
        case 14: {
          out += "\"protobuf ";
          char hex[3];
          for (char c : text_of(field)) snprintf(hex, sizeof hex, "%02x", unsigned(uint8_t(c))), out += hex;
          out += '"';
          break;
        }
        case 11:
        case 12: {
          if (depth >= kDeepestValue) break;
          out += kind ? ',' : field.number == 11 ? '{' : '[';
          kind = field.number == 11 ? '}' : ']';
          if (field.number == 11) json::append_text(out, copied(key_of(sequence_id, text_of(field)))), out += ':';
          append_value(sequence_id, out, text_of(field), depth + 1);
          break;
        }
      }
    if (kind) out += kind;
    if (out.size() == start) out += "null";
  }

  static void append_real(std::string& out, double value) {
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, value);
      if (strtod(text, nullptr) == value) break;
    }
    out += text;
  }

  void append_nested(std::string& out, std::string_view value, int depth) {
    Field field;
    std::vector<std::string_view> keys, values, items;
    uint64_t kind = 0;
    const size_t start = out.size();
    for (Message message(value); message.next(field);) {
      if (field.number == 1) kind = field.value;
      if (field.number == 2) keys.push_back(text_of(field));
      if (field.number == 3) values.push_back(text_of(field));
      if (field.number == 4) items.push_back(text_of(field));
      if (field.number == 5) out += std::to_string(field.whole());
      if (field.number == 6) append_real(out, field.real());
      if (field.number == 7) out += field.value ? "true" : "false";
      if (field.number == 8) json::append_text(out, text_of(field));
    }
    if (kind && depth < kDeepestValue) {
      out += kind == 1 ? '{' : '[';
      const auto& parts = kind == 1 ? values : items;
      for (size_t i = 0; i < parts.size(); i++) {
        if (i) out += ',';
        if (kind == 1) json::append_text(out, i < keys.size() ? keys[i] : ""), out += ':';
        append_nested(out, parts[i], depth + 1);
      }
      out += kind == 1 ? '}' : ']';
    }
    if (out.size() == start) out += "null";
  }

  // Annotations of an event as rows of side tables: `table.column` is what this program exported, the others are
  // arguments.
  bool details(uint32_t sequence_id, Process& p, std::string& rows) {
    const Event& e = event;
    bool cut = false;
    TableRow row;
    uint32_t table = kNoTable;
    int before = -1;  // the column before: a table's columns come in order
    std::string value;
    const auto flush = [&] {
      if (table != kNoTable && !row.empty()) row.append_to(rows);
      table = kNoTable;
    };
    const auto add = [&](uint32_t key, uint32_t said) {
      TableRow argument_row;
      argument_row.start(arguments_table);
      argument_row.set(0, key);
      argument_row.set(1, said);
      argument_row.append_to(rows);
    };
    const auto argument = [&](std::string_view key) { add(p.out->text(key), p.out->text(value)); };
    for (const std::string_view annotation : e.annotations) {
      const std::string_view key = key_of(sequence_id, annotation);
      cut = cut || key == kCutKey;
      if (key == kFlowKey || key == kCutKey) continue;
      if (own && key == kArgumentKey) {
        const std::vector<std::optional<std::string_view>> parts = texts_in(annotation);
        if (parts.size() == 2) value = parts[1].value_or(""), argument(parts[0].value_or(""));
        continue;
      }
      const auto& [in, column] = column_of(key);
      if (in == kNoTable || !tables.layouts()[in].of_spans) {
        const uint64_t interned_key = key_iid(annotation), interned_value = value_iid(annotation);
        const uint32_t key_text =
            interned_key ? text(p, sequence_id, PerfettoNames::kAnnotationNames, interned_key) : p.out->text(key);
        if (interned_value) {
          add(key_text, text(p, sequence_id, PerfettoNames::kAnnotationValues, interned_value, true));
          continue;
        }
        value.clear();
        append_value(sequence_id, value, annotation);
        add(key_text, p.out->text(value));
        continue;
      }
      if (in != table || column <= before || column == kNewRow) flush(), row.start(table = in), before = -1;
      if (column == kNewRow) continue;
      before = column;
      cell(sequence_id, p, row, column, annotation);
    }
    flush();
    for (const auto& [key, text] : e.said) value = text, argument(key);
    if (!e.callstack.empty()) {
      value = "[";
      Field field, inner;
      for (Message message(e.callstack); message.next(field);) {
        std::string function, file, line;
        for (Message frame(text_of(field)); frame.next(inner);) {
          if (inner.number == 1) function = text_of(inner);
          if (inner.number == 2) file = text_of(inner);
          if (inner.number == 3) line = std::to_string(inner.value).insert(0, 1, ':');
        }
        if (value.size() > 1) value += ',';
        json::append_text(value, function + (file.empty() ? "" : " (" + file + line + ")"));
      }
      value += ']';
      argument("callstack");
    }
    return cut;
  }

  // The value of an annotation that is a column of a side table.
  void cell(uint32_t sequence_id, Process& p, TableRow& row, uint8_t column, std::string_view annotation) {
    const CellType type = tables.layouts()[row.table()].columns[column].type;
    Field field;
    for (Message message(annotation); message.next(field);) {
      if (field.number == 4 && type == CellType::integer) row.set(column, field.whole());
      if (field.number == 5 && type == CellType::real) row.set_real(column, field.real());
      if (field.number == 6 && type == CellType::text) row.set(column, p.out->text(text_of(field)));
      if (field.number == 17 && type == CellType::text)
        row.set(column, text(p, sequence_id, PerfettoNames::kAnnotationValues, field.value));
    }
  }

  // The texts of a list; a part without a value is none.
  static std::vector<std::optional<std::string_view>> texts_in(std::string_view annotation) {
    std::vector<std::optional<std::string_view>> parts;
    Field field, inner;
    for (Message message(annotation); message.next(field);) {
      if (field.number != 12) continue;
      parts.emplace_back();
      for (Message part(text_of(field)); part.next(inner);)
        if (inner.number == 6) parts.back() = text_of(inner);
    }
    return parts;
  }

  // Attributes and annotations of this program's exports: that it is one; a process; a region without spans; an end of
  // a flow; a span that was cut; an argument, and arguments of a mark, that no other way gives again.
  static constexpr std::string_view kOwnKey = "strobe.zero_ns", kOwnProcessKey = "strobe.process.",
                                    kOwnRegionKey = "strobe.region", kFlowKey = "strobe.flow", kCutKey = "strobe.cut",
                                    kArgumentKey = "strobe.argument", kArgumentsKey = "strobe.arguments",
                                    kNoName = ", no name";
  static constexpr uint8_t kNewRow = 0xFF;  // `table.` begins another row
  std::unordered_map<std::string, std::pair<uint32_t, uint8_t>> known_columns;
  const std::pair<uint32_t, uint8_t>& column_of(std::string_view key) {
    static constexpr std::pair<uint32_t, uint8_t> kNone{kNoTable, 0};
    if (known_columns.empty())
      for (size_t t = 0; t < tables.layouts().size(); t++) {
        const TableLayout& layout = tables.layouts()[t];
        for (size_t c = 0; t != arguments_table && c < layout.columns.size(); c++)
          known_columns[layout.name + "." + layout.columns[c].name] = {uint32_t(t), uint8_t(c)};
        if (t != arguments_table) known_columns[layout.name + "."] = {uint32_t(t), kNewRow};
      }
    if (key.size() > kShortText || key.find('.') == key.npos) return kNone;  // no column has such a long name
    const auto found = known_columns.find(std::string(key));
    return found == known_columns.end() ? kNone : found->second;
  }

  // What this program exported of a table whose rows are no spans.
  bool exported_row(uint32_t sequence_id, Process& p, uint32_t location, int64_t ns) {
    TableRow row;
    uint32_t table = kNoTable;
    for (const std::string_view annotation : event.annotations) {
      const auto& [in, column] = column_of(key_of(sequence_id, annotation));
      if (in == kNoTable || tables.layouts()[in].of_spans || (table != kNoTable && in != table)) return false;
      if (table == kNoTable) row.start(table = in);
      if (column != kNewRow) cell(sequence_id, p, row, column, annotation);
    }
    if (table == kNoTable) return false;
    const auto& columns = tables.layouts()[table].columns;
    for (size_t i = 0; i < columns.size(); i++)
      if (columns[i].name == "time_ns") row.set(i, ns);
    p.out->row(location, row);
    return true;
  }

  void mark(uint32_t sequence_id, Process& p, uint32_t location, int64_t ns) {
    const Event& e = event;
    if (exported_row(sequence_id, p, location, ns)) return;
    TableRow row;
    row.start(marks_table);
    row.set(tables.column(marks_table, "time_ns"), ns);
    row.set(tables.column(marks_table, "name"), name_text(p, sequence_id));
    row.set(tables.column(marks_table, "category"), category_text(p, sequence_id));
    std::string arguments, whole;
    for (const std::string_view annotation : e.annotations) {
      const std::string_view key = key_of(sequence_id, annotation);
      if (key == kFlowKey) continue;
      if (key == kArgumentsKey) {
        append_value(sequence_id, whole, annotation);
        continue;
      }
      arguments += arguments.empty() ? '{' : ',';
      json::append_text(arguments, copied(key));
      arguments += ':';
      append_value(sequence_id, arguments, annotation);
    }
    for (const auto& [key, value] : e.said) {
      arguments += arguments.empty() ? '{' : ',';
      json::append_text(arguments, key);
      arguments += ':', arguments += value;
    }
    if (!arguments.empty()) whole = arguments + '}';
    if (!whole.empty()) row.set(tables.column(marks_table, "arguments"), p.out->text(whole));
    p.out->row(location, row);
  }

  // The flows that an event is part of. True: it is there for them only, this program's export says.
  bool flow_rows(uint32_t sequence_id, const Sequence&, Process& p, uint32_t location, int64_t ns) {
    const Event& e = event;
    if (e.flows.empty() && e.ends.empty()) return false;
    using Text = std::optional<uint32_t>;
    const auto add = [&](const uint64_t* id, Text phase, Text flow_name, Text of, Text category) {
      TableRow row;
      const auto set = [&](const char* column, Text value) {
        if (value) row.set(tables.column(flows_table, column), *value);
      };
      row.start(flows_table);
      row.set(tables.column(flows_table, "time_ns"), ns);
      if (id) row.set(tables.column(flows_table, "flow"), int64_t(*id));
      set("flow_name", flow_name), set("phase", phase), set("name", of), set("category", category);
      p.out->row(location, row);
    };
    const auto said = [&](std::optional<std::string_view> part) { return part ? Text(p.out->text(*part)) : Text(); };
    bool exported = false, only = false;
    for (const std::string_view annotation : e.annotations) {
      if (key_of(sequence_id, annotation) != kFlowKey) continue;
      // phase, flow, its name, name, category; a sixth where the event is there for it alone.
      const std::vector<std::optional<std::string_view>> parts = texts_in(annotation);
      if (parts.size() < 5) continue;
      only |= parts.size() > 5, exported = true;
      const bool has_number = parts[1] && !parts[1]->empty();
      const auto id = has_number ? uint64_t(strtoll(std::string(*parts[1]).c_str(), nullptr, 10)) : 0;
      add(has_number ? &id : nullptr, said(parts[0]), said(parts[2]), said(parts[3]), said(parts[4]));
    }
    if (exported) return only;
    const Text of = name_text(p, sequence_id), category = category_text(p, sequence_id);
    for (const uint64_t id : e.flows) {
      const bool is_new = flows_begun.size() < kMostFlows ? flows_begun.insert(id).second : !flows_begun.count(id);
      add(&id, p.out->text(is_new ? "s" : "t"), {}, of, category);
    }
    for (const uint64_t id : e.ends) {
      flows_begun.erase(id);
      add(&id, p.out->text("f"), {}, of, category);
    }
    return false;
  }

  // --- the end -----------------------------------------------------------------------------------------------------

  // What is still open, with ends that came too early in the file; the rest is cut at the end of the trace.
  void end_track(Track& track) {
    if (track.location == kNoTable) return;
    Process& p = processes[track.process];
    std::stable_sort(track.open.begin(), track.open.end(),
                     [](const Open& a, const Open& b) { return a.start_ns < b.start_ns; });
    std::sort(track.ends.begin(), track.ends.end());
    std::vector<const Open*> stack;
    size_t next = 0;
    for (const int64_t ns : track.ends) {
      for (; next < track.open.size() && track.open[next].start_ns <= ns; next++) stack.push_back(&track.open[next]);
      if (stack.empty()) {
        p.out->count("unmatched_leaves");
        continue;
      }
      close(p, track, *stack.back(), ns);
      stack.pop_back();
    }
    for (; next < track.open.size(); next++) stack.push_back(&track.open[next]);
    for (; !stack.empty(); stack.pop_back()) {
      p.out->next_is_cut();
      close(p, track, *stack.back(), std::max(p.out->last_ns(), stack.back()->start_ns));
    }
    track.open.clear(), track.ends.clear();
  }

  std::string description(const Process& p, bool first, const std::string& source, std::string& rank_json) {
    ProcessFacts facts;
    if (const auto known = process_facts.find(p.pid); known != process_facts.end()) facts = known->second;
    std::string out = "{\"argv\": [";
    json::append_text(out, !facts.command.empty() ? facts.command
                           : !facts.name.empty()  ? facts.name
                                                  : std::to_string(p.pid));
    out += "], \"main\": ";
    out += first ? "true" : "false";
    out += ", \"imported_from\": ";
    json::append_text(out, source);
    long long rank, ranks;
    for (const std::string& label : facts.labels) {
      if (label.rfind("host ", 0) == 0) out += ", \"host\": ", json::append_text(out, label.substr(5));
      const int numbers = sscanf(label.c_str(), "rank %lld of %lld", &rank, &ranks);
      if (numbers == 1) rank_json.append("{\"rank\": ").append(std::to_string(rank)) += '}';
      if (numbers == 2)
        rank_json.append("{\"rank\": ")
            .append(std::to_string(rank))
            .append(", \"ranks\": ")
            .append(std::to_string(ranks)) += '}';
    }
    return out + "}";
  }

  int64_t true_pid(const Process& p) const {
    const auto known = process_facts.find(p.pid);
    long long pid = p.pid;
    if (known != process_facts.end())
      for (const std::string& label : known->second.labels) sscanf(label.c_str(), "pid %lld", &pid);
    return pid;
  }

  void finish(const std::string& source) {
    if (!packets) throw std::runtime_error("there is no packet in it");
    if (damaged || !pending.empty()) {
      counters[damaged ? "damaged" : "truncated"] = 1;
      counters["bytes_lost"] += pending.size();
    }
    // Some processes have tracks of which nothing happened.
    if (processes.empty()) process(0);
    for (auto& [uuid, track] : tracks) end_track(track);
    for (auto& [uuid, track] : tracks) {
      if (track.location == kNoTable || track.tid == kNoNumber) continue;
      std::string called = track.name;
      if (const auto known = thread_names.find(track.tid); called.empty() && known != thread_names.end())
        called = known->second;
      if (!called.empty()) processes[track.process].out->name_location(track.location, called);
    }
    uint64_t looked_up_bytes = 0;
    report = "{\"processes\": [";
    for (size_t i = 0; i < processes.size(); i++) {
      Process& p = processes[i];
      if (i == 0)
        for (const auto& [what, n] : counters) p.out->count(what, n);
      OwnProcess own_process;
      const auto told = own_processes.find(p.pid);
      if (told != own_processes.end() && own_process.read(OwnJson(told->second).root())) {
        own_process.finish(*p.out, source);
      } else {
        std::string rank_json;
        const std::string described = description(p, i == 0, source, rank_json);
        p.out->finish({true_pid(p), 0, described, rank_json});
      }
      if (i) report += ", ";
      report += "{\"spans\": " + std::to_string(p.out->spans()) +
                ", \"first_ns\": " + std::to_string(p.out->first_ns()) +
                ", \"last_ns\": " + std::to_string(p.out->last_ns()) + "}";
      looked_up_bytes += p.out->looked_up_bytes();
      p.out.reset();
    }
    report += "], \"looked_up_bytes\": " + std::to_string(looked_up_bytes) +
              ", \"properties\": {\"packets\": " + std::to_string(packets);
    int64_t base;
    if (clocks.unix_base(base)) report += ", \"unix_ns\": " + std::to_string(base);
    report += ", \"attributes\": {";
    for (const auto& [key, value] : attributes) {
      if (report.back() != '{') report += ", ";
      json::append_text(report, key), report += ": ", json::append_text(report, value);
    }
    report += "}, \"packets_not_read\": {";
    for (const auto& [kind, n] : other_kinds) {
      if (report.back() != '{') report += ", ";
      json::append_text(report, std::to_string(kind)), report += ": ", report += std::to_string(n);
    }
    report += "}}, \"counters\": {";
    for (const auto& [what, n] : counters) {
      if (report.back() != '{') report += ", ";
      json::append_text(report, what), report += ": ", report += std::to_string(n);
    }
    report += "}}";
  }
};

PerfettoReader::PerfettoReader(std::string folder, uint32_t first_number, size_t buffer_bytes, SchemaTables tables,
                               std::vector<std::string> paradigms, std::vector<std::string> roles, Inflate inflate)
    : state_(std::make_unique<State>(std::move(folder), first_number, buffer_bytes, std::move(tables),
                                     std::move(paradigms), std::move(roles), std::move(inflate))) {}

PerfettoReader::~PerfettoReader() = default;

void PerfettoReader::feed(std::string_view bytes) {
  State& s = *state_;
  if (s.damaged) return;
  s.bytes_read += bytes.size();
  if (s.pending.empty()) {
    // The usual case reads in place.
    s.pending = bytes.substr(s.read_packets(bytes, false));
    return;
  }
  s.pending += bytes;
  s.pending.erase(0, s.read_packets(s.pending, false));
}

void PerfettoReader::finish(const std::string& source) { state_->finish(source); }

const std::string& PerfettoReader::report() const { return state_->report; }

}  // namespace strobe

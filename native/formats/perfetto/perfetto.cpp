#include "formats/perfetto/perfetto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "formats/encoding/json_strings.h"
#include "formats/encoding/protobuf_wire.h"
#include "formats/perfetto/perfetto_clocks.h"
#include "formats/perfetto/perfetto_tables.h"
#include "formats/perfetto/perfetto_tracks.h"
#include "include/strobe.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {

constexpr size_t kLongestPacket = 64u << 20;
constexpr size_t kMostOpen = 1 << 20;  // slices of one track that are open at a moment
constexpr size_t kMostSequences = 1 << 16;
// Attributes of this program's exports: that it is one; a process; a region without spans.
constexpr std::string_view kOwnKey = "strobe.zero_ns", kOwnProcessKey = "strobe.process.",
                           kOwnRegionKey = "strobe.region";
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

class PerfettoReader final : public TraceReader {
 public:
  SchemaTables tables;
  std::vector<std::string> paradigms, roles;
  Inflate inflate;

  std::string pending;  // bytes of a packet that has not ended
  bool damaged = false;
  uint64_t packets = 0;
  std::map<std::string, uint64_t> counters;
  RecordCounts records{counters};            // packets
  std::map<uint32_t, uint64_t> other_kinds;  // packets of kinds that are not read, by field
  std::map<std::string, std::string> attributes;
  bool own = false;  // it is one of our exports
  PerfettoClocks clocks;
  PerfettoTracks tracks;
  PerfettoTexts texts;
  PerfettoTables rows_of;
  PerfettoEvent event;

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
  std::unordered_map<std::string, uint32_t> other_regions;  // by all fields of an event about its region
  std::string region_key;

  PerfettoReader(std::string in, uint32_t number, size_t buffer, std::vector<std::string> paradigm_names,
                 std::vector<std::string> role_names, Inflate unpack)
      : paradigms(std::move(paradigm_names)),
        roles(std::move(role_names)),
        inflate(std::move(unpack)),
        tracks(std::move(in), number, buffer, tables),
        rows_of(tables, texts) {}

  // --- packets ---------------------------------------------------------------------------------------------------

  using Counted = RecordCounts::Counted;

  // Reads all packets that are whole; returns how many bytes that was.
  size_t read_packets(std::string_view bytes, bool unpacked) {
    size_t at = 0;
    while (at < bytes.size()) {
      size_t cursor = at;
      uint64_t key, size;
      if (!protobuf::read_varint(bytes, cursor, key)) return bytes.size() - at >= 10 ? damaged_behind(at) : at;
      if ((key & 7) != protobuf::kBytes || key >> 3 == 0 || key >> 32) return damaged_behind(at);
      if (!protobuf::read_varint(bytes, cursor, size)) return bytes.size() - cursor >= 10 ? damaged_behind(at) : at;
      if (size > kLongestPacket) return damaged_behind(at);
      if (size > bytes.size() - cursor) break;
      if (key >> 3 == 1)
        packet(bytes.substr(cursor, size_t(size)), unpacked);
      else
        counters["unknown_fields"]++;
      at = cursor + size_t(size);
    }
    return at;
  }

  size_t damaged_behind(size_t read) {
    if (!packets) throw std::runtime_error("its first bytes are not a packet");
    damaged = true;
    return read;
  }

  Counted packet(std::string_view bytes, bool unpacked) {
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
          interned = field.text();
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
          defaults = field.text();
          break;
        default:
          if (field.type == protobuf::kBytes) kind = field.number, data = field.bytes;
      }
    if (!message.ok()) return records.left_out("unreadable_packets");
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
      texts.names.clear(sequence_id);
    }
    if (!interned.empty() && !texts.names.add(sequence_id, interned)) counters["interned_texts_lost"]++;
    if (!defaults.empty()) read_defaults(sequence, defaults);
    if (kind == kClockSnapshot) return clocks.snapshot(sequence_id, data), records.taken();
    if ((flags & 2) && !sequence.state_valid) return records.left_out("packets_without_state");
    switch (kind) {
      case kTrackEvent: {
        int64_t ns = 0;
        if (!has_time && !find_legacy_time(sequence, data, ns)) return records.left_out("events_without_time");
        if (has_time && !to_ns(sequence_id, sequence, clock, time, ns)) return records.left_out("events_without_clock");
        if (out_of_range(ns)) return records.left_out("times_out_of_range");
        return track_event(sequence_id, sequence, ns, data);
      }
      case kTrackDescriptor:
        // A clock that counts from packet to packet counts with these, too.
        if (int64_t ns; has_time) to_ns(sequence_id, sequence, clock, time, ns);
        return tracks.track_descriptor(data), records.taken();
      case kProcessTree:
        return tracks.process_tree(data), records.taken();
      case kThreadDescriptor:
        return legacy_thread(sequence, data), records.taken();
      case kProcessDescriptor:
        return tracks.process_descriptor(data), records.taken();
      case kCompressed:
      case kZstdCompressed: {
        const std::string inside = unpacked ? std::string() : inflate(kind, data);
        if (inside.empty() || read_packets(inside, true) != inside.size())
          return records.left_out("unreadable_packets");
        return records.taken();  // it, beside what is in it
      }
      case kTraceAttributes:
        return trace_attributes(data), records.taken();
      case kFtraceEvents:
        return count_ftrace(data);
      default:
        if (int64_t ns; has_time) to_ns(sequence_id, sequence, clock, time, ns);
        return without_events(kind);
    }
  }

  // Packets of which nothing is shown: those that tell only how it was recorded, and those of other kinds.
  Counted without_events(uint32_t kind) {
    switch (kind) {
      case 0:  // nothing but texts, defaults and flags
        return records.taken();
      case kTraceConfig:
        return records.left_out(nullptr, "trace_config");
      case kFtraceStats:
        return records.left_out(nullptr, "ftrace_stats");
      case kTraceStats:
        return records.left_out(nullptr, "trace_stats");
      case kSyncMarker:
        return records.left_out(nullptr, "synchronization_marker");
      case kSystemInfo:
        return records.left_out(nullptr, "system_info");
      case kServiceEvent:
        return records.left_out(nullptr, "service_event");
      case kTraceUuid:
        return records.left_out(nullptr, "trace_uuid");
      default:
        other_kinds[kind]++;
        return records.unknown("packets of field " + std::to_string(kind), "events_of_other_kinds");
    }
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
        if (inner.number == 1) key = inner.text();
        if (inner.number == 2) value = std::to_string(inner.whole());
        if (inner.number == 3) value = inner.text();
      }
      if (key == kOwnKey) own = true, tracks.of_our_own(), rows_of.of_our_own();
      if (own && key.rfind(kOwnProcessKey, 0) == 0)
        tracks.own_process(strtoll(key.c_str() + kOwnProcessKey.size(), nullptr, 10), std::move(value));
      else if (own && key == kOwnRegionKey)
        tracks.own_region(value);
      else if (attributes.size() < 4096)
        attributes[key] = value;
    }
  }

  Counted count_ftrace(std::string_view bytes) {
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
    return records.left_out(nullptr, "ftrace_events");
  }

  // --- events ------------------------------------------------------------------------------------------------------

  // What no number can hold is as long as there is one, and so out of range.
  static int64_t nanoseconds(int64_t us) {
    int64_t ns;
    return __builtin_mul_overflow(us, 1000, &ns) ? INT64_MAX : ns;
  }

  void legacy_thread(Sequence& sequence, std::string_view bytes) {
    Field field;
    for (Message message(bytes); message.next(field);)
      if (field.number == 6) sequence.legacy_us = field.whole();
    sequence.track = tracks.legacy_thread(bytes);
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

  PerfettoTarget target(PerfettoProcess& p, uint32_t sequence_id) {
    return {*p.out, uint32_t(&p - tracks.processes.data()), sequence_id};
  }

  Counted track_event(uint32_t sequence_id, Sequence& sequence, int64_t ns, std::string_view bytes) {
    const bool readable = event.read(bytes);
    if (event.unknown) counters["event_details_of_other_kinds"] += event.unknown;
    if (!readable) return records.left_out("unreadable_packets");
    PerfettoEvent& e = event;
    uint64_t uuid = e.has_track ? e.track : sequence.track;
    int64_t duration_ns = -1;
    if (!e.legacy.empty() && !legacy(uuid, duration_ns)) return records.left_out("events_of_other_kinds");
    extra_counters(sequence, ns);
    if (e.type == kCounter) {
      if (!e.has_value) return records.left_out("unreadable_counters");
      tracks.sample(uuid, ns, e.value_is_real ? as_real(e.value) : double(int64_t(e.value)));
      return records.taken();
    }
    if (e.type != kBegin && e.type != kEnd && e.type != kInstant && duration_ns < 0)
      return records.left_out("events_of_other_kinds");
    PerfettoTrack& track = tracks.all[uuid];
    tracks.place(track);
    PerfettoProcess& p = tracks.processes[track.process];
    const bool only_flows = rows_of.flows(target(p, sequence_id), e, track.location, ns);
    if (duration_ns >= 0) {
      std::string rows;
      rows_of.details(target(p, sequence_id), e, rows);
      p.out->attributes(rows);
      p.out->span(track.location, ns, duration_ns, region(sequence_id, sequence, track.process));
    } else if (e.type == kBegin) {
      if (track.open.size() >= kMostOpen) return records.left_out("spans_too_deep");
      track.open.push_back({ns, region(sequence_id, sequence, track.process), p.out->place(), {}});
      track.open.back().cut = rows_of.details(target(p, sequence_id), e, track.open.back().rows);
    } else if (e.type == kEnd) {
      return end(sequence_id, track, ns);
    } else if (!only_flows) {
      rows_of.mark(target(p, sequence_id), e, track.location, ns);
    }
    return p.out->records().taken();
  }

  Counted end(uint32_t sequence_id, PerfettoTrack& track, int64_t ns) {
    // Packets of several threads may lie in the file in another order than that of time: an end belongs to the
    // innermost slice that begins before it.
    auto at = track.open.rbegin();
    while (at != track.open.rend() && at->start_ns > ns) ++at;
    PerfettoProcess& p = tracks.processes[track.process];
    if (at == track.open.rend()) {
      if (track.ends.size() >= kMostOpen) return records.left_out("unmatched_leaves");
      track.ends.push_back(ns);
      return p.out->records().taken();
    }
    if (!event.annotations.empty() || !event.details.empty()) rows_of.details(target(p, sequence_id), event, at->rows);
    close(p, track, *at, ns);
    track.open.erase(std::next(at).base());
    return p.out->records().taken();
  }

  void close(PerfettoProcess& p, const PerfettoTrack& track, const PerfettoOpen& open, int64_t ns) {
    p.out->attributes(open.rows);
    if (open.cut) p.out->next_is_cut();
    p.out->span(track.location, open.start_ns, ns - open.start_ns, open.region, open.place);
  }

  // Phases of Chrome's JSON in protobuf: complete events, begins and ends. False: of another phase.
  bool legacy(uint64_t& uuid, int64_t& duration_ns) {
    PerfettoEvent& e = event;
    int64_t phase = 0, duration_us = 0, pid = PerfettoTrack::kNoNumber, tid = PerfettoTrack::kNoNumber;
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
    if (pid != PerfettoTrack::kNoNumber && tid != PerfettoTrack::kNoNumber) {
      uuid = tracks.legacy_track(pid, tid);
    }
    if (phase == 'X') duration_ns = nanoseconds(duration_us);
    if (phase == 'B') e.type = kBegin;
    if (phase == 'E') e.type = kEnd;
    if (phase == 'I' || phase == 'i' || phase == 'R') e.type = kInstant;
    if (phase == 0 ||
        (!scoped && (phase == 'X' || phase == 'B' || phase == 'E' || phase == 'I' || phase == 'i' || phase == 'R')))
      return true;
    return false;
  }

  void extra_counters(const Sequence& sequence, int64_t ns) {
    const PerfettoEvent& e = event;
    const auto& whole = e.counter_tracks.empty() ? sequence.counter_tracks : e.counter_tracks;
    for (size_t i = 0; i < e.counter_values.size() && i < whole.size(); i++)
      tracks.sample(whole[i], ns, double(int64_t(e.counter_values[i])));
    const auto& real = e.real_counter_tracks.empty() ? sequence.real_counter_tracks : e.real_counter_tracks;
    for (size_t i = 0; i < e.real_counter_values.size() && i < real.size(); i++)
      tracks.sample(real[i], ns, as_real(e.real_counter_values[i]));
  }

  uint32_t region(uint32_t sequence_id, const Sequence& sequence, uint32_t in) {
    const PerfettoEvent& e = event;
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
    const PerfettoEvent& e = event;
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
    const std::vector<std::string_view> of = texts.categories(sequence_id, event);
    std::string_view file;
    uint32_t line = 0;
    const std::string_view where = event.location_iid
                                       ? texts.names.find(sequence_id, PerfettoNames::kLocations, event.location_iid)
                                       : event.location;
    Field field;
    for (Message message(where); message.next(field);) {
      if (field.number == 2) file = field.text();
      if (field.number == 4) line = uint32_t(field.value);
    }
    // What this program exported has its own words as the first two categories.
    uint8_t paradigm = STROBE_OTHER, role = STROBE_ROLE_RANGE;
    const bool own = of.size() >= 2 && number_of(of[0], paradigms, paradigm) && number_of(of[1], roles, role);
    if (!own) paradigm = STROBE_OTHER, role = STROBE_ROLE_RANGE;
    const std::string module = PerfettoTexts::joined(of, own ? 2 : 0);
    return tracks.processes[in].out->region(texts.name(sequence_id, event), paradigm, role, file, line, module);
  }

  // --- the end -----------------------------------------------------------------------------------------------------

  // What is still open, with ends that came too early in the file; the rest is cut at the end of the trace.
  void end_track(PerfettoTrack& track) {
    if (track.location == kNoTable) return;
    PerfettoProcess& p = tracks.processes[track.process];
    std::stable_sort(track.open.begin(), track.open.end(),
                     [](const PerfettoOpen& a, const PerfettoOpen& b) { return a.start_ns < b.start_ns; });
    std::sort(track.ends.begin(), track.ends.end());
    std::vector<const PerfettoOpen*> stack;
    size_t next = 0;
    for (const int64_t ns : track.ends) {
      for (; next < track.open.size() && track.open[next].start_ns <= ns; next++) stack.push_back(&track.open[next]);
      if (stack.empty()) {
        p.out->count("unmatched_leaves"), p.out->records().not_kept(1);
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

  void feed(std::string_view bytes) override {
    if (damaged) return;
    texts.bytes_read += bytes.size();
    if (pending.empty()) {
      // The usual case reads in place.
      pending = bytes.substr(read_packets(bytes, false));
      return;
    }
    pending += bytes;
    pending.erase(0, read_packets(pending, false));
  }

  std::string finish(const std::string& source) override {
    if (!packets) throw std::runtime_error("it contains no packet");
    if (damaged || !pending.empty()) {
      counters[damaged ? "damaged" : "truncated"] = 1;
      counters["bytes_lost"] += pending.size();
    }
    // Some processes have tracks of which nothing happened.
    if (tracks.processes.empty()) tracks.process(0);
    for (auto& [uuid, track] : tracks.all) end_track(track);
    tracks.name_threads();
    records.save();
    uint64_t looked_up_bytes = 0;
    if (tracks.described_late) counters["tracks_described_late"] = tracks.described_late;
    if (texts.cut) counters["long_values_not_kept"] = texts.cut;
    std::string report;
    json::Object about(report);
    about.key("processes") += '[';
    for (size_t i = 0; i < tracks.processes.size(); i++) {
      PerfettoProcess& p = tracks.processes[i];
      if (i == 0)
        for (const auto& [what, n] : counters) p.out->count(what, n);
      tracks.finish(i, source);
      if (i) report += ", ";
      json::Object process(report);
      p.out->report(process);
      process.end();
      looked_up_bytes += p.out->looked_up_bytes();
      p.out.reset();
    }
    report += ']';
    about.number("looked_up_bytes", int64_t(looked_up_bytes));
    json::Object properties(about.key("properties"));
    properties.number("packets", int64_t(packets));
    if (int64_t base; clocks.unix_base(base)) properties.number("unix_ns", base);
    json::Object texts_of_trace(properties.key("attributes"));
    for (const auto& [key, value] : attributes) texts_of_trace.text(key, value);
    texts_of_trace.end();
    json::Object not_read(properties.key("packets_not_read"));
    for (const auto& [kind, n] : other_kinds) not_read.number(std::to_string(kind), int64_t(n));
    not_read.end(), properties.end();
    about.numbers("counters", counters);
    about.end();
    return report;
  }
};

}  // namespace

std::unique_ptr<TraceReader> perfetto_reader(std::string folder, uint32_t first_number, size_t buffer_bytes,
                                             std::vector<std::string> paradigms, std::vector<std::string> roles,
                                             Inflate inflate) {
  return std::make_unique<PerfettoReader>(std::move(folder), first_number, buffer_bytes, std::move(paradigms),
                                          std::move(roles), std::move(inflate));
}

}  // namespace strobe

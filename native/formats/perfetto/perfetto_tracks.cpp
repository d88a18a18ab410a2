#include "formats/perfetto/perfetto_tracks.h"

#include <stdio.h>
#include <string.h>

#include "formats/chrome/chrome_json.h"
#include "formats/encoding/json_strings.h"
#include "formats/importing/exported_process.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {
constexpr int kDeepestParent = 64;
constexpr std::string_view kNoName = ", no name";  // how this program's exports describe a row without one

void add_word(std::string& words, std::string_view word) {
  if (!words.empty()) words += ' ';
  words += word;
}
}  // namespace

int64_t PerfettoTracks::process_descriptor(std::string_view bytes) {
  int64_t pid = PerfettoTrack::kNoNumber;
  Facts facts;
  Field field;
  for (Message message(bytes); message.next(field);) {
    if (field.number == 1) pid = int32_t(field.value);
    if (field.number == 2) add_word(facts.command, field.text());
    if (field.number == 6) facts.name = field.text();
    if (field.number == 8) facts.labels.emplace_back(field.text());
  }
  if (pid != PerfettoTrack::kNoNumber) {
    Facts& known = process_facts_[pid];
    if (!facts.name.empty()) known.name = facts.name;
    if (!facts.command.empty()) known.command = facts.command;
    if (!facts.labels.empty()) known.labels = facts.labels;
  }
  return pid;
}

void PerfettoTracks::process_tree(std::string_view bytes) {
  Field field, inner;
  for (Message message(bytes); message.next(field);) {
    if (field.type != protobuf::kBytes) continue;
    int64_t id = 0;
    std::string text;
    for (Message one(field.bytes); one.next(inner);) {
      if (inner.number == 1) id = int32_t(inner.value);
      if (field.number == 1 && inner.number == 3) add_word(text, inner.text());
      if (field.number == 2 && inner.number == 2) text = inner.text();
    }
    if (field.number == 1 && process_facts_[id].command.empty()) process_facts_[id].command = text;
    if (field.number == 2) thread_names_[id] = text;
  }
}

void PerfettoTracks::track_descriptor(std::string_view bytes) {
  uint64_t uuid = 0;
  Field field;
  for (Message message(bytes); message.next(field);)
    if (field.number == 1) uuid = field.value;
  PerfettoTrack& track = all[uuid];
  const int64_t before = owner(track);
  for (Message message(bytes); message.next(field);) switch (field.number) {
      case 2:
      case 10:
      case 13:
        track.name = field.text();
        break;
      case 3:
        if (const int64_t pid = process_descriptor(field.text()); pid != PerfettoTrack::kNoNumber) track.pid = pid;
        break;
      case 4:
        thread_descriptor(track, field.text());
        break;
      case 5:
        track.parent = field.value;
        break;
      case 8:
        counter_descriptor(track, field.text());
        break;
      case 14:
        track.description = field.text();
        break;
    }
  track.described = true;
  if (own_ && track.process == kNoTable) return place_own(track);
  if (track.process == kNoTable) return;
  if (owner(track) != before) {
    // Events came before: they stay where they are.
    described_late++;
    track.process = track.location = track.metric = kNoTable;
  } else if (track.location != kNoTable && !track.name.empty() && track.tid == PerfettoTrack::kNoNumber) {
    processes[track.process].out->name_location(track.location, track.name);
  }
}

// A region that the trace has no spans of.
void PerfettoTracks::own_region(std::string_view json) {
  const OwnJson parsed(json);
  const auto text = [&](const char* key) { return chrome::raw(yyjson_obj_get(parsed.root(), key)); };
  const auto number = [&](const char* key) { return chrome::integer_or(text(key), 0); };
  if (!processes.empty())
    processes[0].out->region(text("name"), uint8_t(number("paradigm")), uint8_t(number("role")), text("file"),
                             uint32_t(number("line")), text("module"));
}

// Processes and rows of our own exports are those of the trace, in its order, also where nothing happened.
void PerfettoTracks::place_own(PerfettoTrack& track) {
  if (track.pid != PerfettoTrack::kNoNumber && track.tid == PerfettoTrack::kNoNumber)
    process(track.pid);
  else if (!track.counter)
    place(track);
}

void PerfettoTracks::thread_descriptor(PerfettoTrack& track, std::string_view bytes) {
  Field field;
  for (Message message(bytes); message.next(field);) {
    if (field.number == 1) track.pid = int32_t(field.value);
    if (field.number == 2) track.tid = field.whole();
    if (field.number == 5) track.name = field.text();
  }
}

void PerfettoTracks::counter_descriptor(PerfettoTrack& track, std::string_view bytes) {
  track.counter = true;
  Field field;
  for (Message message(bytes); message.next(field);) {
    if (field.number == 1 && track.name.empty()) track.name = field.value == 1 ? "thread time" : "instructions";
    if (field.number == 1 && field.value == 1) track.unit = "ns";
    if (field.number == 3 && field.value == 1) track.unit = "ns";
    if (field.number == 3 && field.value == 3) track.unit = "bytes";
    if (field.number == 4 && field.value) track.multiplier = double(field.whole());
    if (field.number == 5) track.incremental = field.value != 0;
    if (field.number == 6) track.unit = field.text();
  }
}

uint64_t PerfettoTracks::legacy_thread(std::string_view bytes) {
  PerfettoTrack described;
  thread_descriptor(described, bytes);
  const uint64_t uuid = legacy_track(described.pid, described.tid);
  PerfettoTrack& track = all[uuid];
  track.described = true;
  if (!described.name.empty()) track.name = described.name;
  return uuid;
}

// A track of its own, under a number that no descriptor is likely to have.
uint64_t PerfettoTracks::legacy_track(int64_t pid, int64_t tid) {
  const uint64_t uuid = (uint64_t(pid) * 0x9E3779B97F4A7C15ull) ^ uint64_t(tid) ^ 0x7468726561640000;
  PerfettoTrack& track = all[uuid];
  track.pid = pid, track.tid = tid;
  return uuid;
}

// The process of a track: its own, or that of what it lies in; 0 where it is unknown.
int64_t PerfettoTracks::owner(const PerfettoTrack& track) const {
  const PerfettoTrack* at = &track;
  for (int hops = 0; at->pid == PerfettoTrack::kNoNumber && hops < kDeepestParent; hops++) {
    const auto parent = at->parent ? all.find(at->parent) : all.end();
    if (parent == all.end()) return 0;
    at = &parent->second;
  }
  return at->pid == PerfettoTrack::kNoNumber ? 0 : at->pid;
}

uint32_t PerfettoTracks::process(int64_t pid) {
  const auto [found, is_new] = process_of_.try_emplace(pid, uint32_t(processes.size()));
  if (is_new) {
    PerfettoProcess p;
    p.pid = pid;
    p.path = folder_ + "/process-" + std::to_string(next_number_++) + ".blocks";
    p.out = std::make_unique<ImportedProcess>(p.path, buffer_bytes_);
    tables_.define(*p.out);
    processes.push_back(std::move(p));
  }
  return found->second;
}

void PerfettoTracks::place(PerfettoTrack& track) {
  if (track.process == kNoTable) track.process = process(owner(track));
  if (track.location != kNoTable) return;
  PerfettoProcess& p = processes[track.process];
  if (track.tid != PerfettoTrack::kNoNumber) {
    const auto [found, is_new] = p.threads.try_emplace(track.tid, 0);
    if (is_new) found->second = p.out->location(track.name, uint64_t(track.tid));
    track.location = found->second;
    return;
  }
  // The exports of this program have the kind of row in words.
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
  if (own_ && description.size() > kNoName.size() &&
      description.substr(description.size() - kNoName.size()) == kNoName) {
    track.location = p.out->location("", uint64_t(thread_id), kind, device);
    track.name.clear();
    return;
  }
  if (track.pid != PerfettoTrack::kNoNumber && track.name.empty()) {
    if (p.own_location == kNoTable) p.own_location = p.out->location("process", 0, LocationKind::task);
    track.location = p.own_location;
    return;
  }
  track.location = p.out->location(track.name.empty() ? "track" : track.name, uint64_t(thread_id), kind, device);
}

uint32_t PerfettoTracks::metric(PerfettoTrack& track) {
  if (track.metric != kNoTable) return track.metric;
  if (track.process == kNoTable) track.process = process(owner(track));
  uint32_t location = kNoTable;
  if (const auto parent = all.find(track.parent); track.parent && parent != all.end()) {
    PerfettoTrack& of = parent->second;
    if (!of.counter && (of.tid != PerfettoTrack::kNoNumber || of.pid == PerfettoTrack::kNoNumber))
      place(of), location = of.location;
  }
  return track.metric = processes[track.process].out->metric(track.name, track.unit, location);
}

void PerfettoTracks::sample(uint64_t uuid, int64_t ns, double value) {
  PerfettoTrack& track = all[uuid];
  value *= track.multiplier;
  if (track.incremental) value = track.total += value;
  const uint32_t to = metric(track);
  processes[track.process].out->sample(to, ns, value);
}

std::string PerfettoTracks::description(const PerfettoProcess& p, bool first, const std::string& source,
                                        std::string& rank_json) {
  Facts facts;
  if (const auto known = process_facts_.find(p.pid); known != process_facts_.end()) facts = known->second;
  std::string out = imported_description(!facts.command.empty() ? facts.command
                                         : !facts.name.empty()  ? facts.name
                                                                : std::to_string(p.pid),
                                         first, source);
  out.pop_back();
  long long rank, ranks;
  for (const std::string& label : facts.labels) {
    if (label.starts_with("host ")) out += ", \"host\": " + json::quoted(label.substr(5));
    const int numbers = sscanf(label.c_str(), "rank %lld of %lld", &rank, &ranks);
    if (numbers > 0) rank_json += rank_note(rank, numbers == 2 ? ranks : -1);
  }
  return out + "}";
}

int64_t PerfettoTracks::true_pid(const PerfettoProcess& p) const {
  const auto known = process_facts_.find(p.pid);
  long long pid = p.pid;
  if (known != process_facts_.end())
    for (const std::string& label : known->second.labels) sscanf(label.c_str(), "pid %lld", &pid);
  return pid;
}

void PerfettoTracks::name_threads() {
  for (auto& [uuid, track] : all) {
    if (track.location == kNoTable || track.tid == PerfettoTrack::kNoNumber) continue;
    std::string called = track.name;
    if (const auto known = thread_names_.find(track.tid); called.empty() && known != thread_names_.end())
      called = known->second;
    if (!called.empty()) processes[track.process].out->name_location(track.location, called);
  }
}

void PerfettoTracks::finish(size_t process, const std::string& source) {
  PerfettoProcess& p = processes[process];
  const auto exported = own_processes_.find(p.pid);
  OwnProcess own;
  if (exported != own_processes_.end() && own.read(OwnJson(exported->second).root())) return own.finish(*p.out, source);
  std::string rank_json;
  const std::string described = description(p, process == 0, source, rank_json);
  p.out->finish({true_pid(p), 0, described, rank_json});
}

}  // namespace strobe

#include "formats/otf2/otf2_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "formats/encoding/json_strings.h"
#include "formats/otf2/otf2_import_location.h"

namespace strobe {

using namespace otf2;

namespace {

// One record after the other, for files of definitions.
template <class Record>
auto each_record(Record&& record) {
  return [&record](const uint8_t* begin, const uint8_t* end, bool big_endian) -> size_t {
    size_t header;
    const size_t size = record_size(begin, end, big_endian, header);
    if (size != kMore && size != kDamaged) record(*begin, Bytes(begin + header, begin + size, big_endian));
    return size;
  };
}

}  // namespace

struct Otf2Reader::State {
  std::string folder;
  size_t buffer_bytes;
  Anchor anchor;
  Definitions definitions;
  Own own;
  std::optional<Chunks> definition_chunks;
  std::map<std::string, uint64_t> counters;      // since the last process
  std::map<std::string, uint64_t> all_counters;  // of the archive as a whole

  std::vector<std::vector<uint64_t>> processes;
  std::vector<uint32_t> process_groups;  // position of the location group, kUndefined: locations of none
  size_t current = 0;
  std::unique_ptr<Process> process;
  struct Reading {
    uint64_t id;
    bool has_events;
    LocalDefinitions local;
    Chunks definition_chunks, event_chunks;
    std::unique_ptr<LocationEvents> events;
  };
  std::unique_ptr<Reading> location;
  std::string process_report;

  void damage(const Chunks& chunks) {
    if (chunks.damaged_chunks()) counters["damaged_chunks"] += chunks.damaged_chunks();
    // Every file ends with a mark of its end.
    if (!chunks.ended() && !chunks.empty()) counters["truncated_files"]++;
    if (!chunks.ended() || chunks.damaged_chunks()) counters["damaged_bytes"] += chunks.lost_bytes();
  }

  void list_processes() {
    std::map<uint32_t, size_t> of_group;
    for (const Location& each : definitions.locations) {
      const uint32_t group = definitions.process_group(each.group);
      const auto [at, is_new] = of_group.try_emplace(group, processes.size());
      if (is_new) processes.emplace_back(), process_groups.push_back(group);
      processes[at->second].push_back(each.id);
    }
    std::vector<size_t> order(processes.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    const auto rank = [&](size_t i) {
      const int64_t found = definitions.rank_of(processes[i].front());
      return found < 0 ? INT64_MAX : found;
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    std::vector<std::vector<uint64_t>> sorted;
    std::vector<uint32_t> groups;
    for (size_t i : order) sorted.push_back(std::move(processes[i])), groups.push_back(process_groups[i]);
    processes = std::move(sorted), process_groups = std::move(groups);
  }

  std::string named_properties(const std::vector<Definitions::Property>& given, uint64_t of) const {
    std::string text;
    json::Object object(text);
    for (const auto& each : given)
      if (each.of == of) object.key(definitions.string(each.name)) += process->json(each.value);
    object.end();
    return text;
  }

  void describe(const std::string& source, std::string& description, std::string& note) const {
    const uint32_t at = process_groups[current];
    const LocationGroup* group = at == kUndefined ? nullptr : &definitions.location_groups[at];
    const int64_t rank = definitions.rank_of(processes[current].front());
    json::Object about(description);
    if (own.archive && group) {
      own.describe(definitions, group->id,
                   [&](std::string_view key, std::string_view json) { about.key(key) += json; });
      about.text("imported_from", source);
      about.end();
      if (const auto found = own.rank(definitions, group->id); found.rank >= 0)
        note = rank_note(found.rank, found.ranks);
      return;
    }
    std::string& argv = about.key("argv");
    argv += '[';
    json::append_text(argv, !process->program.empty() ? process->program
                            : group                   ? definitions.label("process", group->name, group->id)
                                                      : std::string("locations of no process"));
    for (const std::string& each : process->arguments) json::append_text(argv += ", ", each);
    argv += ']';
    about.key("main") += current == 0 ? "true" : "false";
    about.text("imported_from", source);
    if (group) {
      about.text("host", definitions.host_of(group->id));
      about.text("location_group", definitions.string(group->name));
      about.key("properties") += named_properties(definitions.group_properties, group->id);
    }
    about.end();
    if (rank >= 0) note = rank_note(rank, definitions.ranks() ? definitions.ranks() : -1);
  }

  std::string properties() const {
    std::string text;
    json::Object object(text);
    object.text("machine", anchor.machine);
    object.text("creator", anchor.creator);
    object.text("description", anchor.description);
    object.text("version", std::to_string(anchor.version[0]) + "." + std::to_string(anchor.version[1]) + "." +
                               std::to_string(anchor.version[2]));
    object.text("byte_order", anchor.big_endian ? "big" : "little");
    object.key("ticks_per_second") += std::to_string(definitions.ticks_per_second);
    object.key("first_ticks") += std::to_string(definitions.first_ticks);
    object.key("trace_ticks") += std::to_string(definitions.trace_ticks);
    object.key("trace_id") += std::to_string(anchor.trace_id);
    if (definitions.unix_ns != kUndefined64) object.key("unix_ns") += std::to_string(definitions.unix_ns);
    for (const auto& [name, value] : anchor.properties) object.text(name, value);
    static constexpr const char* kValues[] = {"accumulated", "absolute", "relative"};
    static constexpr const char* kTimings[] = {"start", "point", "last", "next"};
    std::string& metrics = object.key("metrics");
    metrics += '[';
    for (const MetricMember& each : definitions.metric_members) {
      if (metrics.back() != '[') metrics += ", ";
      json::Object metric(metrics);
      metric.text("name", definitions.string(each.name));
      metric.text("description", definitions.string(each.description));
      metric.text("unit", definitions.string(each.unit));
      // Accumulated since the start, absolute, or relative; valid since the start, at the point, since the last reading
      // or until the next one.
      const size_t value = each.mode & 15, timing = each.mode >> 4;
      if (value < std::size(kValues) && timing < std::size(kTimings))
        metric.text("mode", std::string(kValues[value]) + "_" + kTimings[timing]);
      metric.end();
    }
    metrics += ']';
    object.end();
    return text;
  }
};

Otf2Reader::Otf2Reader(std::string folder, size_t buffer_bytes, std::string_view anchor,
                       std::vector<std::string> paradigms, std::vector<std::string> roles)
    : state_(std::make_unique<State>()) {
  state_->folder = std::move(folder);
  state_->buffer_bytes = buffer_bytes;
  state_->anchor = read_anchor(anchor);
  state_->own.paradigms = std::move(paradigms), state_->own.roles = std::move(roles);
  for (const auto& [name, value] : state_->anchor.properties) state_->own.archive |= name == kOwnProperty;
  state_->definition_chunks.emplace(state_->anchor.definition_chunk_bytes);
}

Otf2Reader::~Otf2Reader() = default;

void Otf2Reader::definitions(std::string_view bytes) {
  const auto record = [&](uint8_t type, Bytes in) {
    if (!state_->definitions.record(type, in)) state_->counters["damaged_records"]++;
  };
  state_->definition_chunks->feed(bytes, each_record(record));
}

void Otf2Reader::end_definitions() {
  State& s = *state_;
  s.damage(*s.definition_chunks);
  if (!s.definitions.ticks_per_second) {
    s.counters["clock_unknown"] = 1;
    s.definitions.ticks_per_second = 1'000'000'000;
  }
  s.definitions.finish();
  if (const uint64_t n = s.definitions.repeated()) s.counters["duplicate_definition_ids"] = n;
  s.list_processes();
}

const std::vector<std::vector<uint64_t>>& Otf2Reader::processes() const { return state_->processes; }

void Otf2Reader::begin_process(size_t process, uint32_t number) {
  State& s = *state_;
  s.current = process;
  s.process = std::make_unique<Process>(s.definitions, s.own, s.process_groups.at(process),
                                        s.folder + "/process-" + std::to_string(number) + ".blocks", s.buffer_bytes);
  if (process == 0 && s.own.archive) s.process->own_regions();
}

void Otf2Reader::begin_location(uint64_t location, bool has_events) {
  State& s = *state_;
  s.location.reset(new State::Reading{
      location, has_events, {}, Chunks(s.anchor.definition_chunk_bytes), Chunks(s.anchor.event_chunk_bytes), nullptr});
}

void Otf2Reader::local_definitions(std::string_view bytes) {
  const auto record = [&](uint8_t type, Bytes in) {
    if (!state_->location->local.record(type, in)) state_->counters["damaged_records"]++;
  };
  state_->location->definition_chunks.feed(bytes, each_record(record));
}

void Otf2Reader::events(std::string_view bytes) {
  State::Reading& at = *state_->location;
  if (!at.events) at.events = std::make_unique<LocationEvents>(*state_->process, at.id, at.local);
  at.event_chunks.feed(bytes, [&](const uint8_t* begin, const uint8_t* end, bool big_endian) {
    return at.events->records(begin, end, big_endian);
  });
}

void Otf2Reader::end_location() {
  State& s = *state_;
  State::Reading& at = *s.location;
  const Location* definition = s.definitions.locations.find(at.id);
  if (!at.events) at.events = std::make_unique<LocationEvents>(*s.process, at.id, at.local);
  at.events->finish();
  s.damage(at.definition_chunks);
  s.damage(at.event_chunks);
  const uint64_t stated = definition && definition->events != kUndefined64 ? definition->events : 0;
  if (stated && !at.has_events) s.counters["missing_event_files"]++;
  if (stated > at.events->events()) s.counters["missing_events"] += stated - at.events->events();
  s.location.reset();
}

void Otf2Reader::end_process(const std::string& source) {
  State& s = *state_;
  for (const auto& [what, n] : s.counters) s.process->out.count(what, n);
  for (const auto& [what, n] : s.counters) s.all_counters[what] += n;
  s.counters.clear();
  std::string description, note;
  s.describe(source, description, note);
  ProcessDescription about{s.process->pid, 0, description, note};
  std::string end_state = "closed";
  if (const uint32_t at = s.process_groups[s.current]; s.own.archive && at != kUndefined)
    s.own.describe(s.definitions, s.definitions.location_groups[at].id, about, end_state);
  s.process->pid = about.pid;
  s.process->out.finish(about, end_state);
  if (!s.process_report.empty()) s.process_report += ", ";
  json::Object object(s.process_report);
  object.number("pid", s.process->pid);
  s.process->out.report(object);
  object.end();
  s.process.reset();
}

std::string Otf2Reader::report() const {
  const State& s = *state_;
  std::string text;
  json::Object object(text);
  object.key("processes") += "[" + s.process_report + "]";
  object.key("properties") += s.properties();
  object.numbers("counters", s.all_counters);
  object.end();
  return text;
}

}  // namespace strobe

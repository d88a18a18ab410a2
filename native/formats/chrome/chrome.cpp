#include "formats/chrome/chrome.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "formats/chrome/chrome_document.h"
#include "formats/chrome/chrome_hosts.h"
#include "formats/chrome/chrome_tables.h"
#include "formats/chrome/graph_captures.h"
#include "formats/encoding/json_scan.h"
#include "formats/encoding/json_strings.h"
#include "formats/importing/exported_process.h"
#include "formats/importing/record_counts.h"

namespace strobe {

using namespace chrome;

namespace {

// Metadata events that tell viewers how to arrange and label rows, or Chromium's own developers how it was recorded.
constexpr std::string_view kForViewers[] = {
    "process_sort_index", "thread_sort_index",         "process_labels", "process_uptime_seconds",
    "num_cpus",           "IsTimeTicksHighResolution", "TraceConfig",    "active_filtering_predicate"};
// Keys of events, in the order in which they are looked for: the usual ones first.
constexpr std::string_view kAscendHardware = "Ascend Hardware";
constexpr std::string_view kKeys[] = {"ph",   "cat", "name", "pid", "tid", "ts", "dur",
                                      "args", "id",  "reg",  "met", "cut", "sf"};

// Numbers of calls and operators in the file of a capture: far from those of the file that it belongs to.
constexpr int64_t kNumbersOfCaptures = int64_t(1) << 40;
constexpr size_t kMostGraphKernels = size_t(1) << 20;  // that wait for the end

class ChromeReader final : public TraceReader {
 public:
  struct Row {
    uint32_t process, location;
  };

  std::string folder;
  uint32_t next_number;
  size_t buffer_bytes;
  ChromeTables tables;

  bool on_hip = false;  // the devices are AMD's
  // The interface of the devices, known from the first category that tells or from the first work: of one file all have
  // the same.
  std::optional<uint8_t> device_paradigm;
  bool has_npu = false;                      // a process of Ascend's has told its name
  std::vector<std::string> npus;             // process ids of Ascend's hardware; their places are the devices' numbers
  std::map<std::string, uint64_t> counters;  // of no process
  RecordCounts records{counters};            // the same
  std::optional<ChromeDocument<ChromeReader>> document{std::in_place, *this, counters};
  GraphCaptures captures;
  bool of_capture = false;  // the file that is being read has captures of graphs that the next one replays
  struct GraphKernel {      // its capture is known at the end
    Row row;
    int64_t start_ns, duration_ns;
    uint32_t region;
    const Category* category;
    std::string attributes;
  };
  std::vector<GraphKernel> graph_kernels;

  struct Process {
    std::string pid_text, path;
    int64_t pid;
    std::unique_ptr<ImportedProcess> out;
    uint32_t process_location = kNoTable;
    std::optional<OwnProcess> own;                     // as our own export has it
    std::vector<uint32_t> own_regions;                 // their ids here, 0: not yet
    std::unordered_map<int64_t, uint32_t> own_stacks;  // texts by the number of the innermost frame
  };
  std::vector<Process> processes;
  std::unordered_map<std::string, uint32_t> process_of;  // pid as text -> number
  uint32_t current_host = kNoTable;
  ChromeHosts hosts;
  uint32_t unclaimed = kNoTable;  // the process of rows that came before any host's

  std::unordered_map<std::string, Row> rows;
  std::map<std::pair<std::string, uint32_t>, Row> shared_rows;  // of GPUs that several processes use
  // Definitions that our own exports have as metadata events, numbered as they come: events refer to them.
  struct OwnRegion {
    uint8_t paradigm, role;
    uint32_t line;
    std::string name, file, module;
  };
  std::vector<OwnRegion> own_regions;
  std::vector<Row> own_rows;
  std::vector<std::pair<uint32_t, uint32_t>> own_metrics;  // process, number there
  std::string row_key, last_key;
  Row last_row{};
  std::map<std::pair<std::string, std::string>, std::string> thread_names;  // (pid, tid) as text
  struct Open {                                                             // a begin without its end
    int64_t start_ns;
    std::string name, category, attributes;
  };
  std::unordered_map<std::string, std::vector<Open>> open_begins;  // by row
  struct Async {
    int64_t start_ns;
    uint32_t process, location, region;
  };
  std::unordered_map<std::string, std::vector<Async>> open_async;  // by category, id, name
  RecentTexts<const Category*> recent_categories;
  RecentTexts<uint32_t> recent_regions;  // beside: of which process, and category
  std::string scratch;
  std::string rank_json;

  ChromeReader(std::string in, uint32_t number, size_t buffer)
      : folder(std::move(in)), next_number(number), buffer_bytes(buffer) {}

  using Counted = RecordCounts::Counted;

  void property(std::string_view key, std::string_view json, yyjson_val* value) {
    // Kineto's categories are called cuda for AMD's devices, too.
    if (key == "\"deviceProperties\"" && (json.find("AMD") != json.npos || json.find("Radeon") != json.npos))
      on_hip = true;
    if (key == "\"strobe\"") tables.of_our_own(), document->of_our_own();
    if (key == "\"distributedInfo\"") {
      int64_t rank, ranks;
      const bool known = integer(raw(yyjson_obj_get(value, "world_size")), ranks);
      if (integer(raw(yyjson_obj_get(value, "rank")), rank)) rank_json = rank_note(rank, known ? ranks : -1);
    }
  }

  // --- processes and rows ---

  uint32_t process(std::string_view pid) {
    const auto [found, is_new] = process_of.try_emplace(std::string(pid), uint32_t(processes.size()));
    if (is_new) {
      Process p;
      p.pid_text = pid;
      p.pid = integer_or(pid, 0);
      p.path = folder + "/process-" + std::to_string(next_number++) + ".blocks";
      p.out = std::make_unique<ImportedProcess>(p.path, buffer_bytes);
      tables.define(*p.out);
      processes.push_back(std::move(p));
    }
    return found->second;
  }

  // Rows of GPUs, of the profiler, of whatever is not a process of the operating system, belong to the process whose
  // events came last: Kineto writes a process's own events first, and merged files have one process after the other,
  // unless they take turns (chrome_hosts.h). Where such rows are the first of a file, the first process that follows
  // is theirs.
  uint32_t host_or(std::string_view pid) {
    if (current_host != kNoTable) return current_host;
    if (unclaimed == kNoTable) unclaimed = process(pid);
    return unclaimed;
  }
  uint32_t host(std::string_view pid) {
    if (unclaimed != kNoTable) {
      const auto [found, is_new] = process_of.try_emplace(std::string(pid), unclaimed);
      const uint32_t number = found->second;
      if (is_new) {
        Process& p = processes[unclaimed];
        process_of.erase(p.pid_text);
        p.pid_text = pid;
        p.pid = integer_or(pid, 0);
      }
      unclaimed = kNoTable;
      return number;
    }
    return process(pid);
  }

  // A row of a GPU in a file whose processes take turns.
  Row gpu_row(std::string_view pid, std::string_view tid, const Category& category, int64_t correlation) {
    row_key.assign("g");
    row_key += pid, row_key += '\n', row_key += tid;
    const uint32_t number = hosts.user_of(pid, correlation, current_host);
    const auto [first, is_first] = rows.try_emplace(row_key);
    if (is_first) first->second = {number, add_location(number, pid, tid, category, false)};
    if (first->second.process == number) return first->second;
    const auto [found, is_new] = shared_rows.try_emplace({row_key, number});
    if (is_new) found->second = {number, add_location(number, pid, tid, category, false)};
    return found->second;
  }

  Row row_of(std::string_view pid, std::string_view tid, const Category& category, int64_t correlation = -1) {
    if (const Row* own = own_row(pid, tid)) return *own;
    if (category.gpu && hosts.take_turns()) {
      last_key.clear();
      return gpu_row(pid, tid, category, correlation);
    }
    // What Kineto reports about itself lies under numbers that are not processes.
    const bool helper = pid.empty() || pid == "Spans" || pid == "Traces" || pid == "-1" ||
                        (!category.gpu && category.name.starts_with("\nascend"));
    row_key.assign(category.gpu ? "g" : helper ? "h" : "t");
    row_key += pid, row_key += '\n', row_key += tid;
    if (row_key == last_key) return last_row;
    // Kineto has functions of threads that it does not know under 0, which is not a process.
    const bool unknown_thread = category.name == "python_function" && pid == "0" && current_host != kNoTable;
    if (!category.gpu && !helper && !unknown_thread) hosts.come(current_host = host(pid));
    const auto [found, is_new] = rows.try_emplace(row_key);
    const bool of_host = category.gpu || unknown_thread;
    if (is_new || (of_host && found->second.process != current_host && current_host != kNoTable)) {
      const uint32_t number = category.gpu || helper ? host_or(pid) : current_host;
      found->second = {number, add_location(number, pid, tid, category, helper)};
    }
    last_key = row_key;
    return last_row = found->second;
  }

  const Row* own_row(std::string_view pid, std::string_view tid) {
    if (own_rows.empty()) return nullptr;
    row_key.assign("s");
    row_key += pid, row_key += '\n', row_key += tid;
    if (row_key == last_key) return &last_row;
    const auto found = rows.find(row_key);
    if (found == rows.end()) return nullptr;
    last_key = row_key;
    return &(last_row = found->second);
  }

  uint32_t add_location(uint32_t number, std::string_view pid, std::string_view tid, const Category& category,
                        bool helper) {
    ImportedProcess& out = *processes[number].out;
    std::string_view digits = tid;
    if (category.gpu && digits.starts_with("stream ")) digits.remove_prefix(7);
    const bool ascend = category.name.starts_with("\nascend");
    const int64_t device = !category.gpu ? -1 : ascend ? npu(pid) : integer_or(pid, -1);
    int64_t id = integer_or(digits, 0);
    std::string shown;
    if (category.gpu)
      shown = "GPU " + (ascend ? std::to_string(device) : std::string(pid)) + " stream " + std::string(digits);
    else if (helper && ascend)
      shown = process_names[std::string(pid)] + " thread " + std::string(tid);
    else if (helper)
      shown = tid.empty() ? "profiler" : std::string(tid);
    else
      shown = "thread " + std::string(tid);
    // Rows of collectives are numbered as streams are, and are none of these.
    if (ascend && category.gpu && !of_hardware(pid)) id |= int64_t(1) << 32;
    // DMA of an MTIA runs within the kernel that asks for it.
    if (category.gpu && category.name.find("mtia") != category.name.npos) out.work_nests();
    const auto kind = category.gpu ? LocationKind::stream : helper ? LocationKind::task : LocationKind::thread;
    return out.location(shown, uint64_t(id), kind, device);
  }

  bool of_hardware(std::string_view pid) const {
    const auto known = process_names.find(std::string(pid));
    return known == process_names.end() || known->second == kAscendHardware;
  }
  // The number of an NPU: its process has one of its own, which changes from run to run. Rows of collectives lie in
  // another process, beside the only one.
  int64_t npu(std::string_view pid) {
    if (!of_hardware(pid)) return 0;
    const auto found = std::ranges::find(npus, pid);
    if (found == npus.end()) return npus.emplace_back(pid), int64_t(npus.size()) - 1;
    return found - npus.begin();
  }

  // --- events ---

  const Category& known_category(std::string_view name) {
    bool found;
    auto& slot = recent_categories.slot(name, 0, found);
    if (!found) slot.text = name, slot.beside = 0, slot.value = &category_of(name);
    return *slot.value;
  }

  // What only the arguments, or the name of the process, tell: an event of Ascend's NPUs has no category.
  const Category& special_category(const Category& category, std::string_view name, std::string_view pid,
                                   yyjson_val* args) {
    if (category.name == "mtia_ccp_events") {
      if (name == "dma_request") return known_category(kMtiaCopy);
      return name == "event_wait" || name == "event_record" ? known_category(kMtiaWait) : category;
    }
    if (&category != &kOther) return category;
    const std::string_view type = args ? raw(yyjson_obj_get(args, "Task Type")) : std::string_view{};
    if (type.empty() && !has_npu) return category;
    const auto process = process_names.find(std::string(pid));
    const std::string_view where = process == process_names.end() ? std::string_view{} : process->second;
    if (!type.empty() && (where.empty() || where == kAscendHardware)) return known_category(ascend_category(type));
    if (where == kAscendHardware) return known_category(kAscendWait);
    if (where == "CANN" || where == "AscendCL") return known_category(kAscendCall);
    if (where == "Communication" || where == "HCCL")
      return known_category(name.starts_with("hcom_") ? kAscendTask : kAscendOther);
    return where == "Overlap Analysis" ? known_category(kAscendOther) : category;
  }

  static int64_t correlation_of(yyjson_val* args) { return integer_or(raw(yyjson_obj_get(args, "correlation")), -1); }

  Into into(Process& p) { return {*p.out, size_t(&p - processes.data())}; }

  bool time(yyjson_val* value, int64_t& ns) {
    bool exact = true;
    if (!json::scaled_integer(raw(value), 3, ns, exact)) return false;
    if (!exact) counters["times_rounded"]++;
    return true;
  }

  Counted event(yyjson_val* json) {
    yyjson_val* values[std::size(kKeys)] = {};
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(json, i, n, key, value) {
      const auto* found = std::ranges::find(kKeys, raw(key));
      if (found != std::end(kKeys)) values[found - kKeys] = value;
    }
    const auto [ph, cat, name, pid, tid, ts, dur, args, id, reg, met, cut, sf] = std::to_array(values);
    const std::string_view phase = raw(ph);
    if (phase.size() != 1) return records.left_out("unreadable_events");
    if (phase[0] == 'M') return metadata(raw(name), raw(pid), raw(tid), args);
    int64_t start_ns;
    if (!time(ts, start_ns)) return records.left_out("events_without_time");
    if (out_of_range(start_ns)) return records.left_out("times_out_of_range");
    const std::string_view category_name = raw(cat);
    const Category& category = special_category(known_category(category_name), raw(name), raw(pid), args);
    switch (phase[0]) {
      case 'X': {
        int64_t duration_ns = 0;
        if (dur && !time(dur, duration_ns)) return records.left_out("events_without_time");
        const int64_t correlation = category.gpu || category.keys == kCalls ? correlation_of(args) : -1;
        if (of_capture && (category.gpu || raw(name).starts_with("ProfilerStep#"))) return records.taken();
        const Row row = row_of(raw(pid), raw(tid), category, correlation);
        Process& p = processes[row.process];
        if (correlation > 0 && !category.gpu) {
          hosts.called({correlation, row.process});
          captures.call(uint64_t(row.process) << 32 | row.location, start_ns,
                        correlation + (of_capture ? kNumbersOfCaptures : 0), raw(name),
                        raw(yyjson_obj_get(args, "kernel")));
        } else if (correlation > 0 && category.role == STROBE_ROLE_KERNEL && captures.wants(correlation) &&
                   graph_kernels.size() < kMostGraphKernels) {
          captures.kernel(correlation, start_ns, raw(name));
          GraphKernel kernel{row, start_ns, duration_ns, region(p, category, category_name, raw(name)), &category, {}};
          append_json(kernel.attributes, args);
          graph_kernels.push_back(std::move(kernel));
          return p.out->records().taken();
        }
        tables.attributes(into(p), category, args);
        int64_t own;
        if (cut) p.out->next_is_cut();
        const bool known = reg && integer(raw(reg), own) && own >= 0 && size_t(own) < own_regions.size();
        p.out->span(row.location, start_ns, duration_ns,
                    known ? own_region(p, size_t(own)) : region(p, category, category_name, raw(name)));
        return p.out->records().taken();
      }
      case 'B': {
        row_of(raw(pid), raw(tid), category);
        Open open{start_ns, std::string(raw(name)), std::string(category_name), {}};
        if (args) append_json(open.attributes, args);
        open_begins[row_key].push_back(std::move(open));
        return records.taken();
      }
      case 'E': {
        const Row row = row_of(raw(pid), raw(tid), category);
        auto& stack = open_begins[row_key];
        Process& p = processes[row.process];
        if (stack.empty()) return records.left_out("unmatched_leaves");
        end_of(p, row, stack, start_ns);
        return p.out->records().taken();
      }
      case 'b':
      case 'e':
      case 'n':
      case 'S':
      case 'F':
        return async(phase[0], category, category_name, raw(name), raw(pid), raw(tid), id, start_ns, args);
      case 's':
      case 't':
      case 'f': {
        if (of_capture) return records.taken();
        // From a launch to what it started: its end is on a GPU, unless the host's row is known by then.
        const bool to_gpu = phase[0] == 'f' && (raw(name) == "ac2g" || raw(name) == "async_gpu");
        const Category& where = to_gpu ? known_category("kernel") : category;
        const Row row = flow_row(raw(pid), raw(tid), where, integer_or(raw(id), -1));
        Process& p = processes[row.process];
        tables.flow(into(p), row.location, start_ns, raw(id), phase, raw(name), category_name);
        return records.taken();
      }
      case 'i':
      case 'I':
      case 'R':
        return instant(category, category_name, raw(name), raw(pid), raw(tid), start_ns, args);
      case 'P': {
        const Row* row = own_row(raw(pid), raw(tid));
        if (!row) return not_read(phase);
        Process& p = processes[row->process];
        int64_t frame;
        const auto stack = integer(raw(sf), frame) ? p.own_stacks.find(frame) : p.own_stacks.end();
        tables.sample(into(p), row->location, start_ns, stack == p.own_stacks.end() ? kNoTable : stack->second, args);
        return records.taken();
      }
      case 'C':
        if (met && own_sample(raw(met), start_ns, args)) return records.taken();
        return counter(raw(name), raw(pid), id, start_ns, args);
      default:
        return not_read(phase);
    }
  }

  Counted unreadable() { return records.left_out("unreadable_events"); }

  // Phases of the Trace Event Format that have no place in our tables: memory dumps, objects, contexts, samples, links,
  // clocks, and two older ones of asynchronous events. All others are unknown.
  Counted not_read(std::string_view phase) {
    const std::string kind = "phase " + std::string(phase);
    const bool known = std::string_view("vVNODP()=cTp").find(phase) != std::string_view::npos;
    return known ? records.left_out("events_of_other_kinds", kind) : records.unknown(kind, "events_of_other_kinds");
  }

  // Ends of flows on GPUs carry no category: they lie on rows that are known by then, or soon will be.
  Row flow_row(std::string_view pid, std::string_view tid, const Category& category, int64_t correlation = -1) {
    if (const Row* own = own_row(pid, tid)) return *own;
    row_key.assign("g");
    row_key += pid, row_key += '\n', row_key += tid;
    if (const auto found = rows.find(row_key); found != rows.end())
      return hosts.take_turns() && category.gpu ? gpu_row(pid, tid, category, correlation) : found->second;
    row_key[0] = 't';
    if (const auto found = rows.find(row_key); found != rows.end()) return found->second;
    return row_of(pid, tid, category);
  }

  void end_of(Process& p, Row row, std::vector<Open>& stack, int64_t end_ns) {
    const Open open = std::move(stack.back());
    stack.pop_back();
    const Category& category = category_of(open.category);
    if (!open.attributes.empty()) {
      // Not with parse(): the event of the end is still being read.
      std::string copy = open.attributes + std::string(kPadding, '\0');
      if (const Doc doc{yyjson_read_opts(copy.data(), open.attributes.size(), kFlags, nullptr, nullptr)})
        tables.attributes(into(p), category, yyjson_doc_get_root(doc.get()));
    }
    p.out->span(row.location, open.start_ns, end_ns - open.start_ns, region(p, category, open.category, open.name));
  }

  Counted async(char phase, const Category& category, std::string_view category_name, std::string_view name,
                std::string_view pid, std::string_view tid, yyjson_val* id, int64_t ns, yyjson_val* args) {
    if (phase == 'n') return instant(category, category_name, name, pid, tid, ns, args);
    std::string key(pid);
    key += '\n', key += category_name, key += '\n', key += raw(id), key += '\n', key += name;
    if (phase == 'b' || phase == 'S') {
      // Spans of one kind share a row; those that overlap get lanes.
      std::string of = "a" + std::string(pid) + '\n' + std::string(category_name) + '\n' + std::string(name);
      const auto [found, is_new] = rows.try_emplace(of);
      if (is_new) {
        if (current_host == kNoTable || processes[current_host].pid_text != pid) hosts.come(current_host = host(pid));
        found->second = {current_host, processes[current_host].out->location(name, 0, LocationKind::task)};
      }
      Process& p = processes[found->second.process];
      open_async[key].push_back(
          {ns, found->second.process, found->second.location, region(p, category, category_name, name)});
      return records.taken();
    }
    const auto found = open_async.find(key);
    if (found == open_async.end()) return records.left_out("unmatched_leaves");
    const Async open = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) open_async.erase(found);
    Process& p = processes[open.process];
    tables.attributes(into(p), category, args);
    p.out->span(open.location, open.start_ns, ns - open.start_ns, open.region);
    return p.out->records().taken();
  }

  Counted instant(const Category& category, std::string_view category_name, std::string_view name, std::string_view pid,
                  std::string_view tid, int64_t ns, yyjson_val* args) {
    const Row row = flow_row(pid, tid, category);
    tables.instant(into(processes[row.process]), row.location, ns, name, category_name, args);
    return records.taken();
  }

  Counted counter(std::string_view name, std::string_view pid, yyjson_val* id, int64_t ns, yyjson_val* args) {
    if (!args) return records.left_out("unreadable_counters");
    const uint32_t number = process_of.count(std::string(pid)) ? process(pid) : host_or(pid);
    ImportedProcess& out = *processes[number].out;
    size_t i, n, unreadable = 0;
    yyjson_val *key, *value;
    yyjson_obj_foreach(args, i, n, key, value) {
      double reading;
      if (!real(raw(value), reading)) {
        unreadable++;
        continue;
      }
      scratch.assign(name);
      if (!raw(id).empty()) scratch += " ", scratch += raw(id);
      if (n > 1 || (raw(key) != "value" && raw(key) != name)) scratch += ": ", scratch += raw(key);
      out.sample(out.metric(scratch, ""), ns, reading);
    }
    if (unreadable) counters["unreadable_counters"] += unreadable;
    return unreadable < n ? records.taken() : records.left_out(nullptr, "counter without a number");
  }

  Counted metadata(std::string_view what, std::string_view pid, std::string_view tid, yyjson_val* args) {
    const std::string_view name = raw(yyjson_obj_get(args, "name"));
    if (what.starts_with("strobe_"))
      return own_definition(what.substr(7), pid, tid, args) ? records.taken() : records.left_out("damaged_records");
    if (what == "thread_name")
      thread_names[{std::string(pid), std::string(tid)}] = name;
    else if (what == "process_name")
      process_names[std::string(pid)] = name,
      has_npu |= name == kAscendHardware || name == "CANN" || name == "AscendCL";
    else if (std::ranges::find(kForViewers, what) != std::end(kForViewers))
      return records.left_out(nullptr, what);
    else
      return records.unknown("metadata " + std::string(what), "unknown_records");
    return records.taken();
  }
  std::map<std::string, std::string> process_names;

  // What src/strobe/formats/chrome/export.py writes so that a trace that is read again is equal. Numbers out of order
  // are those of a file that somebody has edited: it is read without them.
  bool own_definition(std::string_view what, std::string_view pid, std::string_view tid, yyjson_val* args) {
    auto text = [&](const char* key) { return raw(yyjson_obj_get(args, key)); };
    auto number = [&](const char* key, int64_t without) { return integer_or(text(key), without); };
    const int64_t id = number("id", -1);
    if (what == "process") {
      OwnProcess own;
      if (process_of.count(std::string(pid)) || !own.read(args)) return false;
      Process& p = processes[process(pid)];
      p.pid = own.description.pid;
      p.own = std::move(own);
    } else if (what == "region" && id == int64_t(own_regions.size()) && !processes.empty()) {
      own_regions.push_back({uint8_t(number("paradigm", 0)), uint8_t(number("role", 0)), uint32_t(number("line", 0)),
                             std::string(text("name")), std::string(text("file")), std::string(text("module"))});
      own_region(processes.front(), own_regions.size() - 1);  // in the order of the trace that was exported
    } else if (what == "row") {
      const int64_t process = number("process", -1), kind = number("kind", 0);
      if (process < 0 || size_t(process) >= processes.size() || kind < 0 || kind > 2) return false;
      std::string key("s");
      key += pid, key += '\n', key += tid;
      if (rows.count(key)) return false;
      const uint32_t location = processes[size_t(process)].out->location(text("name"), uint64_t(number("thread_id", 0)),
                                                                         LocationKind(kind), number("device", -1));
      own_rows.push_back(rows[key] = {uint32_t(process), location});
    } else if (what == "metric" && id == int64_t(own_metrics.size())) {
      const int64_t process = number("process", -1), row = number("row", -1);
      if (process < 0 || size_t(process) >= processes.size() || row >= int64_t(own_rows.size())) return false;
      const uint32_t location =
          row >= 0 && own_rows[size_t(row)].process == process ? own_rows[size_t(row)].location : 0xFFFFFFFF;
      own_metrics.emplace_back(process, processes[size_t(process)].out->metric(text("name"), text("unit"), location));
    } else if (what == "stack") {
      const int64_t process = number("process", -1);
      if (process < 0 || size_t(process) >= processes.size()) return false;
      Process& p = processes[size_t(process)];
      p.own_stacks[number("sf", 0)] = p.out->text(text("stack"));
    } else {
      return false;
    }
    return true;
  }

  uint32_t own_region(Process& p, size_t number) {
    if (p.own_regions.size() <= number) p.own_regions.resize(own_regions.size());
    const OwnRegion& r = own_regions[number];
    uint32_t& id = p.own_regions[number];
    if (!id) id = p.out->region(r.name, r.paradigm, r.role, r.file, r.line, r.module);
    return id;
  }

  bool own_sample(std::string_view metric, int64_t ns, yyjson_val* args) {
    int64_t number;
    double reading;
    if (!integer(metric, number) || number < 0 || size_t(number) >= own_metrics.size()) return false;
    if (!real(raw(yyjson_obj_get(args, "value")), reading)) return false;
    const auto [process, id] = own_metrics[size_t(number)];
    processes[process].out->sample(id, ns, reading);
    return true;
  }

  uint32_t region(Process& p, const Category& category, std::string_view category_name, std::string_view name) {
    if (&category == &kOther) return new_region(p, category, category_name, name);  // its name is part of the region
    bool found;
    const auto beside = uint64_t(&p - processes.data()) << 8 | uint64_t(&category - kCategories);
    auto& slot = recent_regions.slot(name, beside, found);
    if (!found) slot.value = new_region(p, category, category_name, name), slot.text = name, slot.beside = beside;
    return slot.value;
  }

  uint32_t new_region(Process& p, const Category& category, std::string_view category_name, std::string_view name) {
    uint8_t paradigm = category.paradigm, role = category.role;
    if (paradigm == STROBE_ACCELERATOR && !device_paradigm) device_paradigm = STROBE_ACCELERATOR;
    if (paradigm == STROBE_CUDA && (on_hip || (role == STROBE_ROLE_FUNCTION && name.starts_with("hip"))))
      paradigm = STROBE_HIP;
    if (category.gpu && paradigm == STROBE_CUDA) paradigm = device_paradigm.value_or(paradigm);
    if (role == STROBE_ROLE_KERNEL || role == STROBE_ROLE_COPY) device_paradigm = paradigm;
    if (role == STROBE_ROLE_KERNEL || role == STROBE_ROLE_COPY) return p.out->region(name, paradigm, role);
    if (paradigm == STROBE_TORCH) {
      // As our own recorder distinguishes ranges from operators, see native/adapters/itt.cpp.
      if (name.starts_with("enumerate(DataLoader)#"))
        role = STROBE_ROLE_WAIT;
      else if (name.starts_with("c10d::") || name.starts_with("gloo:") || name.starts_with("nccl:") ||
               name.starts_with("hccl:") || name.starts_with("xccl:") || name == "record_param_comms")
        role = STROBE_ROLE_COLLECTIVE;
      else if (role == STROBE_ROLE_OPERATOR && name.find("::") == name.npos && !name.starts_with("triton_"))
        role = STROBE_ROLE_RANGE;
      // What the program itself put there, as ProfilerStep#3: older versions report it as an operator.
      if (role == STROBE_ROLE_RANGE && (name.starts_with("ProfilerStep#") ||
                                        (category.name == "user_annotation" && !name.starts_with("Optimizer."))))
        paradigm = STROBE_USER;
    } else if ((paradigm == STROBE_CUDA || paradigm == STROBE_HIP || paradigm == STROBE_ACCELERATOR) &&
               role == STROBE_ROLE_FUNCTION) {
      if (name.find("Synchronize") != name.npos || name.find("EventQuery") != name.npos) role = STROBE_ROLE_SYNC;
    } else if (category.name == "fee") {
      // "function (file.py:12)"
      const size_t open = name.rfind(" ("), colon = name.rfind(':');
      int64_t line;
      if (open != name.npos && colon != name.npos && colon > open && name.back() == ')' &&
          integer(name.substr(colon + 1, name.size() - colon - 2), line))
        return p.out->region(name.substr(0, open), paradigm, role, name.substr(open + 2, colon - open - 2),
                             uint32_t(line));
    } else if (paradigm == STROBE_PYTHON) {
      // "file.py(12): function"
      const size_t open = name.find('('), close = name.find("): ");
      int64_t line;
      if (open != name.npos && close != name.npos && open < close &&
          integer(name.substr(open + 1, close - open - 1), line))
        return p.out->region(name.substr(close + 3), paradigm, role, name.substr(0, open), uint32_t(line));
    }
    return p.out->region(name, paradigm, role, {}, 0, &category == &kOther ? category_name : std::string_view{});
  }

  void feed(std::string_view bytes) override {
    try {
      document->feed(bytes);
    } catch (const std::runtime_error&) {
      // What came before is sound: it is kept, and the file ends here.
      if (processes.empty()) throw;
      document->end_here();
    }
  }

  void begin_capture() override {
    of_capture = true;
    tables.numbers_from(kNumbersOfCaptures);
  }

  void end_capture() override {
    document->finish();
    document.emplace(*this, counters);
    of_capture = false;
    tables.numbers_from(0);
    rank_json.clear();
    for (Process& p : processes) p.out->work_elsewhere(uint64_t(kNumbersOfCaptures));
    counters["capture_files"]++;
    // The process of the capture is that of the replay.
    if (processes.size() == 1) unclaimed = 0;
    current_host = kNoTable;
    last_key.clear();
  }

  void write_graph_kernels() {
    const std::vector<int64_t> captured = captures.captured();
    for (size_t k = 0; k < graph_kernels.size(); k++) {
      GraphKernel& kernel = graph_kernels[k];
      Process& p = processes[kernel.row.process];
      if (captured[k] && kernel.attributes.size() > 2) {
        kernel.attributes.back() = ',';
        kernel.attributes += '"' + std::string(kCapturedBy) + "\":" + std::to_string(captured[k]) + "}";
      } else {
        counters["graph_kernels_without_capture"]++;
      }
      const size_t size = kernel.attributes.size();
      kernel.attributes.append(kPadding, '\0');
      if (const Doc doc{yyjson_read_opts(kernel.attributes.data(), size, kFlags, nullptr, nullptr)})
        tables.attributes(into(p), *kernel.category, yyjson_doc_get_root(doc.get()));
      p.out->span(kernel.row.location, kernel.start_ns, kernel.duration_ns, kernel.region);
      std::string().swap(kernel.attributes);
    }
  }

  std::string finish(const std::string& source) override {
    document->finish();
    write_graph_kernels();
    records.save();
    for (auto& [key, stack] : open_begins)
      if (const auto found = rows.find(key); found != rows.end())
        while (!stack.empty()) {
          Process& p = processes[found->second.process];
          p.out->next_is_cut();
          end_of(p, found->second, stack, std::max(p.out->last_ns(), stack.back().start_ns));
        }
    for (auto& [key, opens] : open_async)
      for (const Async& open : opens) {
        Process& p = processes[open.process];
        p.out->next_is_cut();
        const int64_t end_ns = std::max(p.out->last_ns(), open.start_ns);
        p.out->span(open.location, open.start_ns, end_ns - open.start_ns, open.region);
      }
    for (const auto& [key, row] : rows) {
      const size_t newline = key.find('\n');
      const auto device = key[0] == 'g' ? process_names.find(key.substr(1, newline - 1)) : process_names.end();
      // Rows of accelerators lie in a process of their own with the name of the device; of GPUs, in the program's.
      const bool of_device = device != process_names.end() && device_paradigm == STROBE_ACCELERATOR &&
                             !device->second.empty() && !device->second.starts_with("python");
      if (key[0] != 't' && !of_device) continue;
      const auto named = thread_names.find({key.substr(1, newline - 1), key.substr(newline + 1)});
      if (named == thread_names.end() || named->second.empty()) continue;
      processes[row.process].out->name_location(row.location,
                                                of_device ? device->second + " " + named->second : named->second);
    }
    std::string report;
    json::Object about(report);
    about.key("processes") += '[';
    for (Process& p : processes) {
      const bool first = &p == &processes.front();
      for (const auto& [what, n] : counters)
        if (first) p.out->count(what, n);
      const auto named = process_names.find(p.pid_text);
      const std::string& name = named != process_names.end() ? named->second : p.pid_text;
      if (p.own)
        p.own->finish(*p.out, source);
      else
        p.out->finish({p.pid, 0, imported_description(name, first, source), rank_json});
      if (!first) report += ", ";
      json::Object process(report);
      process.text("path", p.path), process.number("pid", p.pid);
      p.out->report(process);
      process.end();
      p.out.reset();
    }
    report += ']';
    about.key("properties") += document->properties() + "}";
    about.numbers("counters", counters);
    about.end();
    return report;
  }
};

}  // namespace

std::unique_ptr<TraceReader> chrome_reader(std::string folder, uint32_t first_number, size_t buffer_bytes) {
  return std::make_unique<ChromeReader>(std::move(folder), first_number, buffer_bytes);
}

}  // namespace strobe

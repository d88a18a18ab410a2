#include "formats/otf2/otf2_import_location.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "formats/encoding/json_strings.h"
#include "formats/otf2/otf2_records.h"
#include "include/strobe.h"

namespace strobe::otf2 {

namespace {
// What waits for its end while a file is read; a damaged one must not fill memory with it.
constexpr size_t kMostWaiting = 1 << 20;
constexpr size_t kDeepest = 1 << 16;
}  // namespace

LocationEvents::LocationEvents(Process& process, uint64_t location, LocalDefinitions& local)
    : process_(process),
      local_(local),
      id_(location),
      location_definition_(process.definitions.locations.find(location)),
      on_stream_(location_definition_ && location_definition_->type == LocationType::stream),
      stream_(process.stream(location)) {
  // Locations that only record metrics of others are not rows of the timeline, unless there is something else in them.
  if (!location_definition_ || location_definition_->type != LocationType::metric)
    location_ = process_.location(location);
}

size_t LocationEvents::records(const uint8_t* begin, const uint8_t* end, bool big_endian) {
  const uint8_t* at = begin;
  const auto damaged = [&] { return at == begin ? kDamaged : size_t(at - begin); };
  while (at < end) {
    const uint8_t type = *at;
    if (type == kTimestamp) {
      if (end - at < 9) break;
      time(Bytes(at + 1, at + 9, big_endian).fixed(8));
      at += 9;
    } else if (is_singleton(type)) {
      if (end - at < 2) break;
      const size_t bytes = at[1] == 0xFF ? 0 : at[1];
      if (bytes > 8) return damaged();
      if (size_t(end - at) < 2 + bytes) break;
      Bytes in(at + 1, end, big_endian);
      if (type == kEnter || type == kLeave) {
        if (bytes > 4) return damaged();
        const uint32_t region = reference(in, Type::region);
        events_++;
        if (type == kEnter) {
          enter(region, process_.region(region, on_stream_).number);
          if (!attributes_.empty()) give_attributes();
        } else {
          if (!attributes_.empty()) give_attributes();
          leave(region);
        }
        counted(true);
      } else {
        counted(event(type, in));
      }
      at += 2 + bytes;
    } else if (type < kTimestamp) {
      break;  // marks of chunks
    } else {
      size_t header;
      const size_t size = record_size(at, end, big_endian, header);
      if (size == kDamaged) return damaged();
      if (size == kMore) break;
      const Bytes in(at + header, at + size, big_endian);
      if (type == kAttributeList)
        attributes(in);
      else
        counted(event(type, in));
      at += size;
    }
  }
  return size_t(at - begin);
}

void LocationEvents::counted(bool sound) {
  RecordCounts& records = process_.out.records();
  if (!sound)
    records.left_out("damaged_records");
  else if (!unknown_.empty())
    records.unknown(unknown_, "unknown_records");
  else if (lost_)
    records.left_out(lost_);
  else
    records.taken();
  lost_ = nullptr, unknown_.clear();
}

void LocationEvents::time(uint64_t ticks) {
  if (ticks < ticks_) process_.out.count("times_backwards");
  ticks_ = ticks;
  ns_ = process_.nanoseconds(local_.corrected(ticks));
}

void LocationEvents::attributes(Bytes in) {
  for (uint32_t left = in.id(); left; left--) {
    const uint32_t id = reference(in, Type::attribute);
    Value value = read_value(in, Type(in.u8()));
    if (!in.ok()) return process_.out.count("damaged_records");
    if (value.type >= Type::string && value.type <= Type::location_group) value.bits = map(value.type, value.bits);
    attributes_.push_back({id, value});
  }
}

// In archives of ours, attributes are cells of side tables. Takes those; true where there was one.
bool LocationEvents::own_rows() {
  own_rows_.clear();
  size_t others = 0;
  for (size_t i = 0; i < attributes_.size(); i++) {
    const auto& [id, value] = attributes_[i];
    const Own::Cell& cell = process_.own_cell(id);
    if (cell.table == Own::kNone) {
      attributes_[others++] = attributes_[i];
      continue;
    }
    const bool text = value.type == Type::string;
    if (cell.is_argument) {
      if (text && top()) argument(process_.out.text(cell.key), process_.definitions.string(uint32_t(value.bits)));
      continue;
    }
    const TableLayout& layout = process_.own.tables.layouts()[cell.table];
    auto row =
        std::find_if(own_rows_.begin(), own_rows_.end(), [&](const auto& each) { return each.first == cell.table; });
    if (row == own_rows_.end()) {
      own_rows_.emplace_back(cell.table, TableRow());
      row = own_rows_.end() - 1;
      row->second.start(cell.table);
    }
    if (cell.column >= layout.columns.size() || text != (layout.columns[cell.column].type == CellType::text)) continue;
    row->second.set(cell.column,
                    text ? process_.out.text(process_.definitions.string(uint32_t(value.bits))) : int64_t(value.bits));
  }
  const bool found = others < attributes_.size();
  attributes_.resize(others);
  for (auto& [table, row] : own_rows_) {
    if (process_.own.tables.layouts()[table].of_spans) {
      if (top()) row.append_to(top()->rows);
      continue;
    }
    row.set(process_.own.tables.column(table, "time_ns"), ns_);
    process_.out.row(location(), row);
  }
  return found;
}

void LocationEvents::give_attributes() {
  if (process_.own.archive) own_rows();
  std::string others;
  for (const auto& [id, value] : attributes_) {
    const std::string name = process_.definitions.label("attribute", process_.definitions.attributes, id);
    const std::string text = process_.json(value);
    if (top()) {
      argument(process_.out.text(name), text);
    } else {
      others += others.empty() ? "{" : ", ";
      json::append_text(others, name);
      others += ": " + text;
    }
  }
  if (!others.empty()) mark("attributes", others + "}");
  attributes_.clear();
}

void LocationEvents::argument(uint32_t key, std::string_view value) {
  TableRow row(schema::arguments::number);
  row.set(schema::arguments::key, key), row.set(schema::arguments::value, process_.out.text(value));
  row.append_to(stack_[depth_ - 1].rows);
}

void LocationEvents::mark(std::string_view name, std::string_view arguments) {
  TableRow row(schema::marks::number);
  row.set(schema::marks::time_ns, ns_), row.set(schema::marks::name, process_.out.text(name));
  row.set(schema::marks::category, process_.out.text("otf2"));
  if (!arguments.empty()) row.set(schema::marks::arguments, process_.out.text(arguments));
  process_.out.row(location(), row);
}

void LocationEvents::enter(uint32_t region, uint32_t number) {
  if (depth_ == kDeepest) return lost("spans_too_deep");
  location();
  if (depth_ == stack_.size()) stack_.emplace_back();
  Frame& frame = stack_[depth_++];
  frame.start_ns = ns_, frame.region = region, frame.number = number, frame.place = process_.out.place();
  frame.rows.clear();
  if (!on_stream_ || region == kProgram || process_.own.archive) return;
  const RegionUse& use = process_.region(region, true);
  if (!use.kernel) return;
  kernel_depth_ = depth_;
  kernel_.start(schema::kernel_spans::number);
  if (stream_.device >= 0) kernel_.set(schema::kernel_spans::device, stream_.device);
  if (stream_.context >= 0) kernel_.set(schema::kernel_spans::context, stream_.context);
  if (stream_.stream >= 0) kernel_.set(schema::kernel_spans::stream, stream_.stream);
  if (use.mangled_text != kUndefined) kernel_.set(schema::kernel_spans::mangled_name, use.mangled_text);
}

void LocationEvents::close_top(int64_t end_ns) {
  Frame& frame = stack_[depth_ - 1];
  if (depth_ == kernel_depth_) {
    using namespace schema::kernel_spans;
    const int64_t shared = kernel_.cell_or(static_shared_bytes, 0) + kernel_.cell_or(dynamic_shared_bytes, 0);
    if (shared) kernel_.set(shared_memory_bytes, shared);
    if (!kernel_.empty()) kernel_.append_to(frame.rows);
    kernel_depth_ = 0;
  }
  if (!frame.rows.empty()) process_.out.attributes(frame.rows);
  process_.out.span(location_, frame.start_ns, end_ns - frame.start_ns, frame.number, frame.place);
  depth_--;
}

void LocationEvents::leave(uint32_t region) {
  if (depth_ && stack_[depth_ - 1].region == region) return close_top(ns_);
  // A leave or an enter is missing: the calls around it show which.
  size_t at = depth_;
  while (at > 0 && stack_[at - 1].region != region) at--;
  if (at == 0) return lost("unmatched_leaves");
  process_.out.count("missing_leaves", depth_ - at);
  while (depth_ >= at) close_top(ns_);
}

bool LocationEvents::event(uint8_t type, Bytes in) {
  events_++;
  if (process_.own.archive && !attributes_.empty() && own_rows()) {
    // Everything is in them; the record itself is for other readers.
    if (type == kMpiCollectiveEnd && !collective_begins_.empty()) collective_begins_.pop_back();
    if (type == kMpiIrecv) in.id(), in.id(), in.id(), in.number(), requests_.erase(in.number());
    if (type == kNonBlockingCollectiveComplete)
      in.u8(), in.id(), in.id(), in.number(), in.number(), requests_.erase(in.number());
    return true;
  }
  switch (type) {
    case kBufferFlush: {
      const int64_t until = process_.nanoseconds(local_.corrected(in.fixed(8)));
      if (!in.ok()) break;
      process_.out.span(location(), ns_, until - ns_,
                        process_.out.region("BUFFER FLUSH", STROBE_SELF, STROBE_ROLE_OTHER));
      break;
    }
    case kMeasurementOnOff: {
      constexpr uint8_t kOn = 1;
      const bool off = in.u8() != kOn;
      if (off && !off_) off_since_ = ns_;
      if (!off && off_) measurement_off();
      off_ = off;
      break;
    }
    case kMpiSend:
    case kMpiIsend:
    case kMpiRecv:
    case kMpiIrecv:
      send_or_receive(type, in);
      break;
    case kMpiCollectiveBegin:
    case kRmaCollectiveBegin:
      if (collective_begins_.size() < kDeepest) collective_begins_.push_back(ns_);
      break;
    case kMpiCollectiveEnd:
    case kNonBlockingCollectiveComplete: {
      const uint8_t op = in.u8();
      const uint32_t comm = reference(in, Type::comm), root = in.id();
      const uint64_t sent = in.number(), received = in.number();
      const uint64_t request = type == kNonBlockingCollectiveComplete ? in.number() : 0;
      if (in.ok())
        collective(op, comm, root, sent, received, type == kNonBlockingCollectiveComplete ? &request : nullptr);
      break;
    }
    case kRmaCollectiveEnd: {
      const uint8_t op = in.u8();
      in.id();  // what it synchronises
      const Named* window = process_.definitions.windows.find(map(Type::rma_window, in.id()));
      const uint32_t root = in.id();
      const uint64_t sent = in.number(), received = in.number();
      if (in.ok()) collective(op, window ? window->of : kUndefined, root, sent, received, nullptr);
      break;
    }
    case kMetric:
      metric(in);
      break;
    case kParameterString: {
      const uint32_t id = reference(in, Type::parameter);
      const Value value{Type::string, reference(in, Type::string)};
      if (in.ok()) parameter(id, value);
      break;
    }
    case kParameterInt:
    case kParameterUnsigned: {
      const uint32_t id = reference(in, Type::parameter);
      const Value value{type == kParameterInt ? Type::i64 : Type::u64, in.number()};
      if (in.ok()) parameter(id, value);
      break;
    }
    case kCallingContextEnter:
    case kCallingContextLeave:
    case kCallingContextSample:
      calling_context(type, in);
      return in.ok();
    case kProgramBegin:
      program_begin(in);
      break;
    default:
      if (!other_event(type, in)) return false;
  }
  if (!attributes_.empty()) give_attributes();
  if (type == kProgramEnd) leave(kProgram);
  return in.ok();
}

void LocationEvents::measurement_off() {
  process_.out.span(location(), off_since_, ns_ - off_since_,
                    process_.out.region("MEASUREMENT OFF", STROBE_SELF, STROBE_ROLE_OTHER));
}

bool LocationEvents::other_event(uint8_t type, Bytes in) {
  switch (type) {
    case kMpiIsendComplete: {
      const auto found = sends_.find(in.number());
      if (found == sends_.end()) {
        if (!process_.own.archive) lost("unmatched_completions");  // in ours, attributes of the send have it
        return in.ok();
      }
      found->second.row.set(schema::messages::pending_ns, ns_ - found->second.ns);
      message(found->second.row);
      sends_.erase(found);
      return true;
    }
    case kMpiIrecvRequest:
    case kNonBlockingCollectiveRequest: {
      const uint64_t request = in.number();
      if (in.ok() && requests_.size() < kMostWaiting) requests_[request] = ns_;
      return in.ok();
    }
    case kMpiProbe: {
      const uint32_t rank = in.id(), comm = reference(in, Type::comm);
      TableRow row;
      start_message(row, "receive", comm, rank);
      row.set(schema::messages::tag, in.id());
      const uint64_t message_id = in.number();
      if (in.ok() && probed_.size() < kMostWaiting) probed_[message_id] = row;
      return in.ok();
    }
    case kMpiImrecvRequest: {
      const uint64_t message_id = in.number(), request = in.number();
      if (in.ok() && probed_requests_.size() < kMostWaiting) probed_requests_[request] = {message_id, ns_};
      return in.ok();
    }
    case kMpiMrecv:
    case kMpiImrecv: {
      const uint64_t given = in.number(), bytes = in.number();
      if (!in.ok()) return false;
      uint64_t message_id = given;
      const auto request = probed_requests_.find(given);
      if (type == kMpiImrecv && request != probed_requests_.end()) message_id = request->second.first;
      TableRow row;
      const auto probed = probed_.find(message_id);
      if (probed != probed_.end()) {
        row = probed->second;
        probed_.erase(probed);
      } else {
        process_.out.count("unmatched_completions");
        start_message(row, "receive", kUndefined, kUndefined);
      }
      row.set(schema::messages::time_ns, ns_), row.set(schema::messages::size_bytes, int64_t(bytes));
      if (type == kMpiImrecv) {
        row.set(schema::messages::request, int64_t(given));
        if (request != probed_requests_.end()) row.set(schema::messages::pending_ns, ns_ - request->second.second);
      }
      message(row);
      if (type == kMpiImrecv && request != probed_requests_.end()) probed_requests_.erase(request);
      return true;
    }
    case kRmaPut:
    case kRmaGet:
    case kRmaAtomic: {
      const uint32_t window = reference(in, Type::rma_window);
      Transfer transfer{ns_, type, in.id(), 0};
      if (type == kRmaAtomic) in.u8();
      transfer.bytes = in.number();
      if (type == kRmaAtomic) transfer.bytes += in.number();
      const uint64_t matching = in.number();
      if (!in.ok()) return false;
      auto& queue = transfers_[{window, matching}];
      queue.push_back(transfer);
      if (queue.size() > kMostWaiting) transfer_done(window, matching, true);
      return true;
    }
    case kRmaCompleteBlocking:
    case kRmaCompleteNonBlocking: {
      const uint32_t window = reference(in, Type::rma_window);
      const uint64_t matching = in.number();
      if (in.ok()) transfer_done(window, matching, false);
      return in.ok();
    }
    case kRmaGroupSync:
    case kRmaRequestLock:
    case kRmaReleaseLock:
      synchronisation(type, in);
      break;
    case kMpiRequestCancelled: {
      Bytes again = in;
      const auto found = sends_.find(again.number());
      if (found != sends_.end()) {
        message(found->second.row);
        sends_.erase(found);
      }
      break;
    }
    default:
      break;
  }
  const Shape* shape = std::ranges::find(kShapes, type, &Shape::type);
  if (shape == std::end(kShapes)) {
    unknown_ = "event " + std::to_string(type);
    return true;
  }
  scratch_ = "{";
  for (const char* field = shape->fields; *field;) {
    const char kind = *field;
    const char* name = field + 2;
    const char* comma = strchr(name, ',');
    const std::string_view key(name, comma ? size_t(comma - name) : strlen(name));
    field = comma ? comma + 1 : name + key.size();
    Value value{};
    switch (kind) {
      case 'b':
        value = {Type::u8, in.u8()};
        break;
      case 'u':
        value = {Type::u32, in.id()};
        break;
      case 'U':
        value = {Type::u64, in.number()};
        break;
      case 'I':
        value = {Type::i64, in.number()};
        break;
      case 'c':
        value = {Type::comm, map(Type::comm, in.id())};
        break;
      case 'g':
        value = {Type::group, map(Type::group, in.id())};
        break;
      case 'w':
        value = {Type::rma_window, map(Type::rma_window, in.id())};
        break;
      case 'h':
        value = {Type::io_handle, map(Type::io_handle, in.id())};
        break;
      case 'f':
        value = {Type::io_file, map(Type::io_file, in.id())};
        break;
    }
    if (scratch_.size() > 1) scratch_ += ", ";
    json::append_text(scratch_, key);
    scratch_ += ": " + process_.json(value);
  }
  if (!in.ok()) return false;
  mark(shape->name, scratch_.size() > 1 ? scratch_ + "}" : "");
  return true;
}

void LocationEvents::parameter(uint32_t id, Value value) {
  const Process::ParameterUse& use = process_.parameter(id);
  if (kernel_depth_ && kernel_depth_ == depth_ && value.type == Type::u64 && use.of_kernel) {
    const int64_t number = int64_t(value.bits);
    if (use.column) return kernel_.set(*use.column, number);
    const int64_t blocks = kernel_.cell_or(schema::kernel_spans::grid_x, 0);
    const int64_t threads = kernel_.cell_or(schema::kernel_spans::block_x, 0);
    int64_t product;
    if (!__builtin_mul_overflow(blocks, threads, &product) && product == number) return;
  }
  if (top()) return argument(use.key, process_.json(value));
  std::string text = "{";
  json::append_text(text, process_.definitions.label("parameter", process_.definitions.parameters, id));
  mark("parameter", text + ": " + process_.json(value) + "}");
}

void LocationEvents::metric(Bytes& in) {
  const uint32_t id = reference(in, Type::metric);
  if (id != last_metric_ || !last_metrics_) {
    const auto [found, is_new] = metrics_.try_emplace(id);
    if (is_new) found->second = process_.metrics(id, id_);
    last_metric_ = id, last_metrics_ = &found->second;
  }
  const auto& uses = *last_metrics_;
  const uint8_t count = in.u8();
  if (uses.size() < count) process_.out.count("undefined_metrics", count - uses.size());
  for (uint8_t i = 0; i < count; i++) {
    const Type type = Type(in.u8());
    const uint64_t bits = in.number();
    if (!in.ok()) return;
    if (i >= uses.size()) continue;
    double value;
    bool exact = true;
    if (type == Type::real64) {
      memcpy(&value, &bits, 8);
    } else if (type == Type::i64) {
      value = double(int64_t(bits));
      exact = fabs(value) < 0x1p63 && int64_t(value) == int64_t(bits);
    } else {
      value = double(bits);
      exact = value < 0x1p64 && uint64_t(value) == bits;
    }
    if (!exact) process_.out.count("metric_values_rounded");
    if (uses[i].scaled) value = value * uses[i].factor / uses[i].divisor;
    process_.out.sample(uses[i].number, ns_, value);
  }
}

void LocationEvents::program_begin(Bytes& in) {
  const auto& strings = process_.definitions;
  const std::string& name = strings.string(reference(in, Type::string));
  std::vector<std::string> arguments;
  for (uint32_t left = in.id(); left && in.ok(); left--)
    arguments.push_back(strings.string(reference(in, Type::string)));
  if (!in.ok()) return;
  if (process_.program.empty()) process_.program = name, process_.arguments = std::move(arguments);
  enter(kProgram, process_.out.region(name.empty() ? "program" : name, STROBE_OTHER, STROBE_ROLE_RANGE));
  for (const auto& [id, value] : attributes_) {
    const Named* attribute = strings.attributes.find(id);
    if (attribute && strings.string(attribute->name) == "ProcessId") process_.pid = int64_t(value.bits);
  }
}

void LocationEvents::calling_context(uint8_t type, Bytes& in) {
  const uint32_t id = reference(in, Type::calling_context);
  const uint32_t distance = type == kCallingContextLeave ? kUndefined : in.id();
  const uint32_t interrupt = type == kCallingContextSample ? reference(in, Type::interrupt_generator) : kUndefined;
  if (!in.ok()) return;
  const CallingContext* context = process_.definitions.calling_contexts.find(id);
  const uint32_t region = context ? context->region : kUndefined;
  if (type == kCallingContextLeave) {
    if (!attributes_.empty()) give_attributes();
    return leave(region);
  }
  if (type == kCallingContextEnter) {
    enter(region, process_.region(region, on_stream_).number);
    // What is around it in the tree may have been seen by unwinding only: then it is in no span.
    std::string stack;
    json::append_text(stack, process_.definitions.call_stack(id));
    if (top()) argument(process_.out.text("calling_context"), stack);
    if (top() && distance != kUndefined) argument(process_.out.text("unwind_distance"), std::to_string(distance));
  } else {
    TableRow row(schema::samples::number);
    row.set(schema::samples::time_ns, ns_);
    row.set(schema::samples::call_stack, process_.out.text(process_.definitions.call_stack(id)));
    process_.out.row(location(), row);
    if (interrupt != kUndefined && !process_.own.archive) {
      const Definitions& all = process_.definitions;
      std::string text = "{\"interrupt_generator\": ";
      json::append_text(text, all.label("interrupt generator", all.interrupt_generators, interrupt));
      if (distance != kUndefined) text += ", \"unwind_distance\": " + std::to_string(distance);
      mark("CallingContextSample", text + "}");
    }
  }
  if (!attributes_.empty()) give_attributes();
}

uint32_t LocationEvents::word(const char* literal) {
  const auto [at, is_new] = texts_.try_emplace(literal, 0);
  if (is_new) at->second = process_.out.text(literal);
  return at->second;
}

LocationEvents::Communicator& LocationEvents::communicator(uint32_t id) {
  if (id == last_communicator_ && last_found_) return *last_found_;
  const auto [at, is_new] = communicators_.try_emplace(id);
  Communicator& found = at->second;
  last_communicator_ = id, last_found_ = &found;
  if (!is_new) return found;
  const Definitions& all = process_.definitions;
  const Comm* comm = all.comms.find(id);
  found.name = process_.out.text(all.communicator_label(id));
  if (!comm) return found;
  const uint32_t own_group = all.process_group(location_definition_ ? location_definition_->group : kUndefined);
  const auto rank_in = [&](const Group* group) -> int64_t {
    if (!group) return -1;
    int64_t of_process = -1;
    for (size_t rank = 0; rank < group->members.size(); rank++) {
      const uint64_t member = all.member(*group, rank);
      if (member == id_) return int64_t(rank);
      // MPI counts processes; what it calls a rank is one of its locations.
      const Location* location = all.locations.find(member);
      if (of_process < 0 && location && all.process_group(location->group) == own_group) of_process = int64_t(rank);
    }
    return of_process;
  };
  const Group *first = all.groups.find(comm->group), *second = nullptr;
  if (comm->remote_group != kUndefined) second = all.groups.find(comm->remote_group);
  found.own = found.peers = first;
  found.own_rank = rank_in(first);
  if (first && first->type == GroupType::self) found.own_rank = 0, found.self = true;
  if (second) {
    const int64_t in_second = rank_in(second);
    if (found.own_rank < 0 && in_second >= 0)
      found.own = second, found.own_rank = in_second;
    else
      found.peers = second;
  }
  return found;
}

const LocationEvents::Communicator::Peer& LocationEvents::peer(uint32_t comm, uint32_t rank) {
  static const Communicator::Peer kNobody;
  Communicator& known = communicator(comm);
  if (!known.peers || (!known.self && rank >= known.peers->members.size())) return kNobody;
  if (known.self) rank = 0;
  if (known.met.size() <= rank) known.met.resize(rank + 1);
  Communicator::Peer& found = known.met[rank];
  if (!found.known) {
    found.known = true;
    found.location = known.self ? id_ : process_.definitions.member(*known.peers, rank);
    found.world_rank = process_.definitions.rank_of(found.location);
  }
  return found;
}

void LocationEvents::start_message(TableRow& row, const char* direction, uint32_t comm, uint32_t rank) {
  location();
  row.start(schema::messages::number);
  row.set(schema::messages::time_ns, ns_), row.set(schema::messages::direction, word(direction));
  if (rank == kUndefined) return;
  const Communicator::Peer& other = peer(comm, rank);
  if (other.world_rank >= 0) row.set(schema::messages::peer_rank, other.world_rank);
  if (other.location != kUndefined64) row.set(schema::messages::peer, process_.location_text(other.location));
  row.set(schema::messages::communicator_rank, rank), row.set(schema::messages::communicator, communicator(comm).name);
}

void LocationEvents::send_or_receive(uint8_t type, Bytes& in) {
  const uint32_t rank = in.id(), comm = reference(in, Type::comm), tag = in.id();
  const uint64_t bytes = in.number();
  const bool non_blocking = type == kMpiIsend || type == kMpiIrecv;
  const uint64_t request = non_blocking ? in.number() : 0;
  if (!in.ok()) return;
  TableRow row;
  start_message(row, type == kMpiSend || type == kMpiIsend ? "send" : "receive", comm, rank);
  row.set(schema::messages::tag, tag), row.set(schema::messages::size_bytes, int64_t(bytes));
  if (non_blocking) row.set(schema::messages::request, int64_t(request));
  if (type == kMpiIrecv) {
    const auto asked = requests_.find(request);
    if (asked != requests_.end()) {
      row.set(schema::messages::pending_ns, ns_ - asked->second);
      requests_.erase(asked);
    }
  }
  if (type == kMpiIsend && sends_.size() < kMostWaiting) {
    const auto [at, is_new] = sends_.try_emplace(request, Waiting{ns_, row});
    if (!is_new) message(at->second.row), at->second = {ns_, row};  // the number is used again: it was never completed
    return;
  }
  message(row);
}

void LocationEvents::collective(uint8_t op, uint32_t comm, uint32_t root, uint64_t sent, uint64_t received,
                                const uint64_t* request) {
  int64_t begin_ns = ns_;
  if (!request && !collective_begins_.empty()) begin_ns = collective_begins_.back(), collective_begins_.pop_back();
  const std::string name = op < std::size(kCollectiveNames) ? kCollectiveNames[op] : "collective " + std::to_string(op);
  const Communicator& known = communicator(comm);
  TableRow row(schema::collective_spans::number);
  row.set(schema::collective_spans::collective, process_.out.text(name)),
      row.set(schema::collective_spans::communicator, known.name);
  if (known.own) {
    const bool self = known.own->type == GroupType::self;
    row.set(schema::collective_spans::group_size, self ? 1 : int64_t(known.own->members.size()));
  }
  if (known.own_rank >= 0) row.set(schema::collective_spans::rank, known.own_rank);
  constexpr uint32_t kNoRoot = kUndefined, kSelfIsRoot = kUndefined - 1, kRootInThisGroup = kUndefined - 2;
  if (root == kSelfIsRoot && known.own_rank >= 0)
    row.set(schema::collective_spans::root, known.own_rank);
  else if (root != kNoRoot && root != kSelfIsRoot && root != kRootInThisGroup)
    row.set(schema::collective_spans::root, root);
  if (sent != kUndefined64) row.set(schema::collective_spans::sent_bytes, int64_t(sent));
  if (received != kUndefined64) row.set(schema::collective_spans::received_bytes, int64_t(received));
  if (request) {
    row.set(schema::collective_spans::request, int64_t(*request));
    const auto asked = requests_.find(*request);
    if (asked != requests_.end()) {
      row.set(schema::collective_spans::pending_ns, ns_ - asked->second);
      requests_.erase(asked);
    }
  }
  // It belongs to the call around it. A tool that records no calls has no other span of it than from begin to end.
  if (top() && top()->region != kProgram && top()->start_ns <= begin_ns) {
    row.append_to(top()->rows);
  } else {
    process_.out.attribute(row);
    process_.out.span(location(), begin_ns, ns_ - begin_ns,
                      process_.out.region(name, STROBE_MPI, STROBE_ROLE_COLLECTIVE));
  }
}

// Rows as those of recordings, beside the mark: what begins or ends an epoch of one-sided communication of MPI.
void LocationEvents::synchronisation(uint8_t type, Bytes in) {
  const Definitions& all = process_.definitions;
  if (type == kRmaGroupSync) in.id();  // what it synchronises
  const uint32_t window_id = reference(in, Type::rma_window);
  const Named* window = all.windows.find(window_id);
  if (!window || on_stream_) return;
  const auto write = [&](const char* direction, uint32_t rank, int64_t world_rank) {
    TableRow row;
    start_message(row, direction, window->of, rank);
    row.set(schema::messages::communicator, communicator(window->of).name);
    if (world_rank >= 0) row.set(schema::messages::peer_rank, world_rank);
    row.set(schema::messages::tag, window_id);
    message(row);
  };
  if (type != kRmaGroupSync) {
    const uint32_t target = in.id();
    in.number();                                                  // of the lock
    const bool shared = type == kRmaRequestLock && in.u8() == 1;  // OTF2_LOCK_SHARED
    if (in.ok()) write(type == kRmaReleaseLock ? "unlock" : shared ? "shared_lock" : "lock", target, -1);
    return;
  }
  const Group* group = all.groups.find(reference(in, Type::group));
  const Region* region = top() ? all.regions.find(top()->region) : nullptr;
  if (!in.ok() || !group || !region) return;
  for (const char* each : {"post", "start", "complete", "wait"})
    if (all.string(region->name) == std::string("MPI_Win_") + each)
      for (uint64_t member = 0; member < group->members.size(); member++)
        write(each, kUndefined, all.rank_of(all.member(*group, member)));
}

void LocationEvents::transfer_done(uint32_t window_id, uint64_t matching, bool cut) {
  const auto found = transfers_.find({window_id, matching});
  if (found == transfers_.end() || found->second.empty()) return lost("unmatched_completions");
  const Transfer transfer = found->second.front();
  found->second.pop_front();
  // Tools use few matching numbers again and again; those that do not must not fill memory.
  if (found->second.empty() && transfers_.size() > 64) transfers_.erase(found);
  const Named* window = process_.definitions.windows.find(window_id);
  const uint32_t comm = window ? window->of : kUndefined;
  const uint64_t other = peer(comm, transfer.remote).location;
  const Location* other_location = process_.definitions.locations.find(other);
  const bool other_is_stream = other_location && other_location->type == LocationType::stream;
  if (!on_stream_ && !other_is_stream) {  // between processes
    const int64_t now = ns_;
    ns_ = transfer.ns;
    TableRow row;
    start_message(row,
                  transfer.type == kRmaPut   ? "put"
                  : transfer.type == kRmaGet ? "get"
                                             : "atomic",
                  comm, transfer.remote);
    ns_ = now;
    row.set(schema::messages::tag, window_id), row.set(schema::messages::size_bytes, int64_t(transfer.bytes));
    row.set(schema::messages::request, int64_t(matching));
    if (!cut) row.set(schema::messages::pending_ns, ns_ - transfer.ns);
    return message(row);
  }
  // A copy from or to a device: Score-P has no region for it. A get brings the data to where it is recorded.
  const bool get = transfer.type == kRmaGet;
  const bool from_stream = get ? other_is_stream : on_stream_, to_stream = get ? on_stream_ : other_is_stream;
  const auto [shared, is_new] = copies_.try_emplace(uint64_t(comm) * 4 + from_stream * 2 + to_stream);
  if (is_new) {
    const std::string kind = std::string(from_stream ? "D" : "H") + "to" + (to_stream ? "D" : "H");
    const Group* group = communicator(comm).own;
    const uint8_t paradigm = group && group->paradigm == Paradigm::hip      ? STROBE_HIP
                             : group && group->paradigm == Paradigm::opencl ? STROBE_OPENCL
                                                                            : STROBE_CUDA;
    shared->second = {process_.out.region("Memcpy " + kind, paradigm, STROBE_ROLE_COPY), process_.out.text(kind)};
  }
  TableRow copy, argument;
  copy.start(schema::copy_spans::number);
  const Stream stream = on_stream_ ? stream_ : process_.stream(other);
  if (stream.device >= 0) copy.set(schema::copy_spans::device, stream.device);
  if (stream.context >= 0) copy.set(schema::copy_spans::context, stream.context);
  if (stream.stream >= 0) copy.set(schema::copy_spans::stream, stream.stream);
  copy.set(schema::copy_spans::size_bytes, int64_t(transfer.bytes)),
      copy.set(schema::copy_spans::copy_kind, shared->second.kind);
  process_.out.attribute(copy);
  // Host memory is that of the process, which the location belongs to.
  if (other_location && (other_is_stream || other != process_.first_thread())) {
    argument.start(schema::arguments::number);
    argument.set(schema::arguments::key, word(get ? "from" : "to"));
    argument.set(schema::arguments::value, process_.location_json(other));
    process_.out.attribute(argument);
  }
  if (cut) process_.out.next_is_cut();
  process_.out.span(location(), transfer.ns, ns_ - transfer.ns, shared->second.region);
}

void LocationEvents::finish() {
  if (!attributes_.empty()) give_attributes();
  while (depth_) process_.out.next_is_cut(), close_top(ns_);
  if (off_) {
    process_.out.next_is_cut();
    measurement_off();
  }
  for (auto& [request, waiting] : sends_) message(waiting.row);
  if (!sends_.empty()) process_.out.count("sends_not_completed", sends_.size());
  if (!requests_.empty()) process_.out.count("requests_not_completed", requests_.size());
  while (!transfers_.empty()) {
    const auto first = transfers_.begin();
    if (first->second.empty())
      transfers_.erase(first);
    else
      transfer_done(first->first.first, first->first.second, true);
  }
}

}  // namespace strobe::otf2

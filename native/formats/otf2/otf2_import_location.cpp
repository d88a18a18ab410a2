#include "formats/otf2/otf2_import_location.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "formats/encoding/json_strings.h"
#include "formats/otf2/otf2_records.h"
#include "include/strobe.h"

namespace strobe::otf2 {

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
  // In ours, the same is in spans and their attributes.
  const bool of_threads = type >= kThreadFork && type <= kThreadEnd;
  if (process_.own.archive && (of_threads || (type >= kIoCreateHandle && type <= kIoOperationComplete))) return true;
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
    case kMpiCollectiveEnd:
    case kNonBlockingCollectiveComplete:
    case kRmaCollectiveEnd:
      collective_event(type, in);
      break;
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
    case kMpiIsendComplete:
    case kMpiIrecvRequest:
    case kNonBlockingCollectiveRequest:
    case kMpiProbe:
    case kMpiImrecvRequest:
    case kMpiMrecv:
    case kMpiImrecv:
    case kMpiRequestCancelled:
      if (!message_event(type, in)) return false;
      break;
    case kIoCreateHandle:
    case kIoDestroyHandle:
    case kIoSeek:
    case kIoOperationBegin:
    case kIoOperationComplete:
      io_event(type, in);
      if (!other_event(type, in)) return false;
      break;
    case kRmaPut:
    case kRmaGet:
    case kRmaAtomic:
    case kRmaCompleteBlocking:
    case kRmaCompleteNonBlocking:
      if (!transfer_event(type, in)) return false;
      break;
    case kRmaGroupSync:
    case kRmaRequestLock:
    case kRmaReleaseLock:
      synchronisation(type, in);
      if (!other_event(type, in)) return false;
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

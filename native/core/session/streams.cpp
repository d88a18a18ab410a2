#include "core/session/streams.h"

#include <atomic>
#include <map>
#include <tuple>

#include "core/session/session.h"
#include "core/system/threads.h"

namespace strobe {

constexpr uint64_t kRecordsOfSpan = 4;  // an enter, a leave, two epochs
// Times of a device are converted to ours: what follows at once may seem to begin a little earlier, which does not
// count as an overlap.
constexpr int64_t kClockJitterNs = 100;

bool Session::new_stream_ring(const strobe_stream& stream, StreamLane& lane) {
  std::lock_guard lock(slots_.mutex());
  if (files_.failed()) return false;
  const uint32_t location = slots_.new_location();
  slots_.write_location(location, stream.number, stream.shown, lane.name, stream.device);
  // The number + 1: 0 would hide the location.
  Slot* slot = slots_.take(kRingMagic, sizeof(uint64_t), location, stream.number + 1, stream.kind);
  if (!slot) return false;
  slot->device = stream.device;
  connect(lane.spans, *slot);
  lane.rows.header = nullptr;
  lane.last_ns = INT64_MIN;
  return true;
}

bool Session::record(const strobe_stream& stream, StreamLane& lane, std::span<const strobe_stream_span> spans,
                     int64_t start_ns) {
  const strobe_stream_span& span = spans.front();
  Producer& p = lane.spans;
  RowProducer& r = lane.rows;
  if (!recording() || files_.failed() || span.launched_ns < recording_since_ns_) return false;
  if (!lane.open(generation_.load()) && !new_stream_ring(stream, lane)) return false;
  if (span.row_kind && (!r.header || r.generation != p.generation) && !new_row_ring(r, p)) return false;
  const auto room = [&](RingHeader& ring, std::atomic<uint64_t>& limit, uint64_t head, uint64_t needed) {
    if (head + needed <= limit.load(std::memory_order_relaxed)) return true;
    const bool found = wait_for_room(ring, head, needed);
    limit.store(next_look(ring, head, needed));
    if (!found) ring.lost.fetch_add(1, std::memory_order_relaxed);
    return found;
  };
  if (!room(*p.header, p.limit, p.head, kRecordsOfSpan * spans.size())) return false;
  if (span.row_kind && !room(*r.header, r.limit, r.head, 1)) return false;
  const auto put = [&](RecordKind kind, uint32_t region, int64_t ns) {
    const uint64_t epoch = uint64_t(ns) >> kTimeBits;
    if (epoch != p.epoch) p.epoch = epoch, p.data[p.head++ & p.mask] = uint64_t(kEpoch) << 62 | epoch;
    p.data[p.head++ & p.mask] = make_record(kind, region, uint64_t(ns));
  };
  if (!span.region) {
    write_row(r, span.row_kind, uint64_t(span.start_ns), p.head, span.values);
    return true;
  }
  // The row before the end of its span, and both only whole: what a kill cuts off is left out.
  put(kEnter, span.region, start_ns);
  if (span.row_kind) write_row(r, span.row_kind, uint64_t(span.launched_ns), p.head, span.values);
  for (const strobe_stream_span& inner : spans.subspan(1)) {
    put(kEnter, inner.region, inner.start_ns);
    put(kLeave, inner.region, inner.end_ns);
  }
  put(kLeave, span.region, span.end_ns);
  p.header->head.store(p.head, std::memory_order_release);
  lane.last_ns = span.end_ns;
  return true;
}

static std::atomic<void (*)(int)> turns[4];

void turn_streams(int what) {
  for (auto& place : turns)
    if (void (*turn)(int) = place.load(); turn && session().active()) turn(what);
}

namespace {

std::map<std::tuple<RingKind, int64_t, uint64_t>, strobe_stream>& streams() {  // with streams_mutex
  static auto* all = new std::map<std::tuple<RingKind, int64_t, uint64_t>, strobe_stream>;
  return *all;
}

strobe_stream* open(RingKind kind, RingKind shown, const char* name, int64_t device, uint64_t number) {
  const Inside inside;
  std::lock_guard lock(session().streams_mutex());
  strobe_stream& stream = streams()[{kind, device, number}];
  if (stream.name.empty())
    stream.name = name, stream.kind = kind, stream.shown = shown, stream.device = device, stream.number = number;
  return &stream;
}

}  // namespace
}  // namespace strobe

using strobe::session;

extern "C" {

strobe_stream* strobe_stream_open(const char* name, int64_t device, uint64_t number) {
  return strobe::open(strobe::kOfStream, strobe::kOfStream, name, device, number);
}
strobe_stream* strobe_beside_streams_open(const char* name, int64_t device, uint64_t number) {
  return strobe::open(strobe::kOfStream, strobe::kOfTask, name, device, number);
}
strobe_stream* strobe_task_open(const char* name, uint64_t number) {
  return strobe::open(strobe::kOfTask, strobe::kOfTask, name, -1, number);
}

int strobe_stream_tell(strobe_stream* stream, const strobe_stream_span* span) {
  return strobe_task_tell(stream, span, 1);
}

int strobe_task_tell(strobe_stream* stream, const strobe_stream_span* span, size_t count) {
  const strobe::Inside inside;
  const int64_t start = span->start_ns, end = span->end_ns;
  if (start <= 0 || end < start) {
    strobe_count("stream_spans_untimed", 1);
    return 0;
  }
  int64_t shifted_start = start;
  strobe::StreamLane* fits = nullptr;
  const int64_t jitter = stream->kind == strobe::kOfStream ? strobe::kClockJitterNs : 0;
  for (auto& lane : stream->lanes) {
    const int64_t early = span->region && lane.open(session().generation()) ? lane.last_ns - start : 0;
    if (early > jitter || (early > 0 && lane.last_ns > end)) continue;
    if (early > 0) shifted_start = lane.last_ns;
    fits = &lane;
    break;
  }
  if (!fits && stream->lanes.size() < strobe_stream::kMostLanes) {
    fits = &stream->lanes.emplace_back();
    const size_t lanes = stream->lanes.size();
    fits->name = lanes == 1 ? stream->name : stream->name + " (lane " + std::to_string(lanes) + ")";
  }
  const bool recorded = fits && session().record(*stream, *fits, {span, count}, shifted_start);
  const bool missing = !recorded && stream->kind == strobe::kOfStream && session().recording(span->launched_ns);
  if (missing) strobe_count("stream_spans_lost", 1);
  return recorded;
}

void strobe_streams_told(int64_t launched_ns) { session().set_streams_complete(launched_ns); }
void strobe_streams_turn_with(void (*turn)(int)) {
  for (auto& place : strobe::turns) {
    void (*none)(int) = nullptr;
    if (!turn)
      place = nullptr;
    else if (place == turn || place.compare_exchange_strong(none, turn))
      return;
  }
}
}

#include "core/streams.h"

#include <map>
#include <new>
#include <tuple>

#include "core/session.h"
#include "core/without_signals.h"

namespace strobe {

namespace {

constexpr uint64_t kRecordsOfSpan = 4;  // an enter, a leave, two epochs
// Times of a device are converted to ours: what follows at once may seem to begin a little before. It is no overlap.
constexpr int64_t kClockJitterNs = 100;

}  // namespace

bool Session::new_stream_ring(StreamProducer& stream) {
  std::lock_guard lock(slots_mutex_);
  Slot* slot = failed_ ? nullptr : free_slot();
  if (!slot) return false;
  const uint32_t location = next_location_++;
  Writer w;
  w.u64(stream.number), w.u8(stream.shown), w.text(stream.name), w.u64(uint64_t(stream.device));
  std::string chunk;
  append_chunk(chunk, kLocationChunk, location, 1, w.bytes);
  append(chunk);
  slot->header->magic = kRingMagic;
  slot->header->capacity = options_.ring_bytes / 8;
  slot->header->location = location;
  slot->header->thread_id = stream.number + 1;  // not 0, which would hide it
  slot->header->of_stream = stream.kind;
  slot->header->head.store(0), slot->header->tail.store(0);
  slot->header->state.store(kRingActive);
  slot->builder = std::make_unique<LocationBuilder>(location, *paths_);
  slot->decoder = {};
  slot->read = 0;
  slot->watched = false;
  slot->owner = &stream.spans;
  Producer& p = stream.spans;
  p.data = slot->data;
  p.mask = slot->header->capacity - 1;
  p.head = 0;
  p.epoch = ~uint64_t(0);
  p.header = slot->header;
  p.generation = generation_.load();
  stream.rows.header = nullptr;
  stream.last_ns = INT64_MIN;
  return true;
}

bool Session::tell(StreamProducer& stream, const strobe_stream_span& span) {
  Producer& p = stream.spans;
  RowProducer& r = stream.rows;
  if (!recording() || failed_ || span.launched_ns < recording_since_ns_) return false;
  if (!stream.open(generation_.load()) && !new_stream_ring(stream)) return false;
  if (span.row_kind && (!r.header || r.generation != p.generation) && !new_row_ring(r, p)) return false;
  const auto room = [&](RingHeader& ring, std::atomic<uint64_t>& limit, uint64_t head, uint64_t needed) {
    if (head + needed <= limit.load(std::memory_order_relaxed)) return true;
    const bool found = wait_for_room(ring, head, needed);
    limit.store(next_look(ring, head, needed));
    if (!found) ring.lost.fetch_add(1, std::memory_order_relaxed);
    return found;
  };
  if (!room(*p.header, p.limit, p.head, kRecordsOfSpan)) return false;
  if (span.row_kind && !room(*r.header, r.limit, r.head, 1)) return false;
  const auto put = [&](RecordKind kind, int64_t ns) {
    const uint64_t epoch = uint64_t(ns) >> kTimeBits;
    if (epoch != p.epoch) p.epoch = epoch, p.data[p.head++ & p.mask] = uint64_t(kEpoch) << 62 | epoch;
    p.data[p.head++ & p.mask] = make_record(kind, span.region, uint64_t(ns));
  };
  if (!span.region) {
    write_row(r, span.row_kind, uint64_t(span.start_ns), p.head, span.values);
    return true;
  }
  // The row before the end of its span, and both only whole: what a kill cuts off is told nowhere.
  put(kEnter, span.start_ns);
  if (span.row_kind) write_row(r, span.row_kind, uint64_t(span.launched_ns), p.head, span.values);
  put(kLeave, span.end_ns);
  p.header->head.store(p.head, std::memory_order_release);
  stream.last_ns = span.end_ns;
  return true;
}

void Session::turn_streams(int what) {
  for (auto& place : turn_streams_)
    if (void (*turn)(int) = place.load(); turn && active()) turn(what);
}

void Session::turn_streams_with(void (*turn)(int)) {
  for (auto& place : turn_streams_) {
    void (*none)(int) = nullptr;
    if (!turn)
      place = nullptr;
    else if (place == turn || place.compare_exchange_strong(none, turn))
      return;
  }
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
  const strobe::Inside inside;
  const int64_t start = span->start_ns, end = span->end_ns;
  if (start <= 0 || end < start) {
    strobe_count("stream_spans_untimed", 1);
    return 0;
  }
  strobe_stream_span told_span = *span;
  strobe::StreamProducer* fits = nullptr;
  for (auto& lane : stream->lanes) {
    if (!told_span.region) {
      fits = &lane;
      break;
    }
    const int64_t early = lane.open(session().generation()) ? lane.last_ns - start : 0;
    const int64_t jitter = stream->kind == strobe::kOfStream ? strobe::kClockJitterNs : 0;
    if (early > jitter || (early > 0 && lane.last_ns > end)) continue;
    if (early > 0) told_span.start_ns = lane.last_ns;
    fits = &lane;
    break;
  }
  if (!fits && stream->lanes.size() < strobe_stream::kMostLanes) {
    fits = &stream->lanes.emplace_back();
    const size_t lanes = stream->lanes.size();
    fits->name = lanes == 1 ? stream->name : stream->name + " (lane " + std::to_string(lanes) + ")";
    fits->kind = stream->kind, fits->shown = stream->shown, fits->device = stream->device;
    fits->number = stream->number;
  }
  const bool told = fits && session().tell(*fits, told_span);
  const bool missing = !told && stream->kind == strobe::kOfStream && session().recording(span->launched_ns);
  if (missing) strobe_count("stream_spans_lost", 1);
  return told;
}

void strobe_streams_told(int64_t launched_ns) { session().streams_told(launched_ns); }
void strobe_streams_turn_with(void (*turn)(int)) { session().turn_streams_with(turn); }
}

#include "kernels/reading/recovered_gpu_buffers.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "adapters/gpu/decode/buffers_layout.h"
#include "core/rings/ring.h"
#include "include/strobe.h"

namespace strobe {

using namespace gpu;

namespace {

struct Part {
  uint32_t sequence;
  size_t at, bytes;
};

}  // namespace

GpuBuffers::GpuBuffers(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return;
  bytes_.assign(std::istreambuf_iterator<char>(in), {});
  const auto* header = reinterpret_cast<const BuffersHeader*>(bytes_.data());
  if (bytes_.size() < kBuffersAt || header->magic != kBuffersMagic || header->version != kBuffersVersion ||
      header->buffer_bytes != kBufferBytes ||
      !(decoding_ = gpu::decoding({header->adapter, strnlen(header->adapter, sizeof header->adapter)}))) {
    bytes_.clear();
    return;
  }
  ByteReader names{std::string_view(bytes_).substr(std::min(kNamesAt, bytes_.size()))};
  while (names.bytes.size() >= 12) {
    const uint64_t address = names.u64();
    const std::string_view name = names.long_text();
    if (!names.ok) break;
    names_[address] = name;  // the last one: a name may lie where another one lay
  }
}

const std::string* GpuBuffers::known_name_at(const char* address) const {
  const auto known = names_.find(uint64_t(reinterpret_cast<uintptr_t>(address)));
  return known == names_.end() ? nullptr : &known->second;
}

std::string GpuBuffers::name_at(const char* address) const {
  if (const std::string* known = known_name_at(address)) return *known;
  char text[40];
  snprintf(text, sizeof text, "kernel@%p", static_cast<const void*>(address));
  return text;
}

std::vector<DeviceSpan> GpuBuffers::read(Sink& sink, DeviceSpan& on_its_way) const {
  std::vector<DeviceSpan> spans;
  if (bytes_.empty()) return spans;
  const auto* header = reinterpret_cast<const BuffersHeader*>(bytes_.data());
  const auto decoder = decoding_->decoder(sink, header->record_bytes);
  // The buffers that the process was reporting come first: of their spans it had reported the first so many, in order
  // of start.
  std::vector<Part> reporting, others;
  for (uint32_t i = 0; i < header->buffers.load() && i < kMostBuffers; i++) {
    const auto& buffer = header->buffer[i];
    const uint32_t state = buffer.state.load();
    const size_t at = kBuffersAt + size_t(i) * kBufferBytes;
    if (state == kBufferFree || at + kBufferBytes > bytes_.size()) continue;
    const size_t valid = state == kBufferHeld ? kBufferBytes : std::min(buffer.valid.load(), kBufferBytes);
    (state == kBufferReporting ? reporting : others).push_back({buffer.sequence.load(), at, valid});
  }
  const auto decode = [&](const std::vector<Part>& parts) {
    for (const Part& part : parts) decoder->read(bytes_.data() + part.at, part.bytes, spans);
  };
  std::sort(reporting.begin(), reporting.end(), [](const Part& a, const Part& b) { return a.sequence < b.sequence; });
  decode(reporting);
  // Waits were recorded after all of these, in order of start; those whose event was unknown were held back, as here.
  // Files of before have no mark: none comes twice.
  std::vector<DeviceSpan> waits;
  decoder->waits().take(waits, false);
  const int64_t recorded_ns = header->waits_until_ns.load();
  std::erase_if(waits, [&](const DeviceSpan& each) { return !recorded_ns || each.span.start_ns <= recorded_ns; });
  sort_by_start(spans);
  without_inner_calls(spans);
  spans.erase(spans.begin(), spans.begin() + ptrdiff_t(std::min<uint64_t>(header->reported.load(), spans.size())));
  if (!spans.empty()) on_its_way = spans.front();
  decode(others);
  spans.insert(spans.end(), waits.begin(), waits.end());
  decoder->waits().take(spans, true);
  sort_by_start(spans);
  without_inner_calls(spans);
  return spans;
}

void LateSpans::read(const std::string& path) {
  const GpuBuffers buffers(path);
  buffers_ = &buffers, decoding_ = buffers.decoding();
  for (const Region& r : file_.regions) {
    next_region_ = std::max(next_region_, r.id + 1);
    if (buffers.decoding() && r.paradigm == buffers.decoding()->paradigm) regions_[r.name] = r.id;
  }
  for (DeviceSpan& each : buffers.read(*this, on_its_way_)) {
    const auto& span = each.span;
    if (span.start_ns <= 0 || span.end_ns < span.start_ns)
      untimed_++;
    else
      spans_[{each.device, each.stream}].push_back(each);
  }
  buffers_ = nullptr;
}

void LateSpans::feed(LocationBuilder& builder) {
  const auto location = file_.locations.find(builder.location());
  if (location == file_.locations.end() || location->second.kind == kOfThread) return;
  // A task of no device has -1: kNoDevice.
  const auto found = spans_.find({uint32_t(location->second.device), uint32_t(location->second.thread_id)});
  if (found != spans_.end()) feed(builder, found->second);
}

// It was reported, and the kill came before this was noted: it is what the stream ended with.
bool LateSpans::arrived(const LocationBuilder& builder, const DeviceSpan& span) const {
  return span.span.region && span.span.end_ns == builder.last_ns() && span.span.end_ns == on_its_way_.span.end_ns &&
         span.device == on_its_way_.device && span.stream == on_its_way_.stream &&
         span.correlation == on_its_way_.correlation;
}

// Takes what begins when everything before has ended.
void LateSpans::feed(LocationBuilder& builder, std::vector<DeviceSpan>& spans) {
  std::vector<DeviceSpan> others;
  for (const DeviceSpan& each : spans) {
    const auto& span = each.span;
    if (arrived(builder, each)) continue;
    if (span.region && span.start_ns < builder.last_ns()) {
      others.push_back(each);
      continue;
    }
    RowRecord row{uint64_t(span.start_ns), uint64_t(span.row_kind) << 48, {}};
    std::ranges::copy(span.values, row.values);
    if (span.region) builder.enter(span.region, span.start_ns);
    builder.attached.add(row, span.start_ns, span.region ? builder.innermost() : PendingRows::kNoSpan);
    if (span.region) builder.leave(span.region, span.end_ns);
    fed_++;
  }
  spans.swap(others);
}

void LateSpans::feed_others(PathTable& paths) {
  uint32_t next = file_.locations.empty() ? 0 : file_.locations.rbegin()->first + 1;
  for (auto& [stream, spans] : spans_)
    while (!spans.empty()) {
      Writer w;
      const bool calls = stream.first == kNoDevice, beside = beside_streams(stream.second);
      const bool task = calls || (beside && stream.second != kUnifiedMemoryStream);
      w.u64(stream.second), w.u8(task ? kOfTask : kOfStream);
      w.text(calls    ? calls_row(*decoding_, stream.second)
             : beside ? name_beside_streams(stream.first, stream.second)
                      : stream_name(stream.first, stream.second));
      w.u64(calls ? uint64_t(-1) : stream.first);
      append_chunk(chunks_, kLocationChunk, next, 1, w.bytes);
      LocationBuilder builder(next++, paths);
      feed(builder, spans);
      builder.attached.decide(INT64_MAX, true);
      builder.seal(chunks_, 0, 0);
      builder.attached.emit(chunks_, builder.base_row(), 0, builder.location(),
                            [this](uint32_t text) { return text_of(text); });
    }
}

uint32_t LateSpans::call(const CallRecord& record) {
  const std::string* name = buffers_->known_name_at(function_address(record.function));
  return name ? region(name->c_str(), waits(*name) ? STROBE_ROLE_SYNC : STROBE_ROLE_FUNCTION) : 0;
}

uint32_t LateSpans::region(const char* name, uint8_t role) {
  const auto [known, fresh] = regions_.try_emplace(name, next_region_);
  if (!fresh) return known->second;
  Writer w;
  w.u32(next_region_), w.u8(decoding_->paradigm), w.u8(role), w.u32(0), w.text(name), w.text(""), w.text("");
  append_chunk(chunks_, kRegionsChunk, 0, 1, w.bytes);
  return next_region_++;
}

uint32_t LateSpans::text(const char* text) {
  const auto first = uint32_t(std::max<size_t>(file_.texts.size(), 2));  // 0 and 1 stand for others
  const auto [known, fresh] = text_numbers_.try_emplace(text, uint32_t(first + texts_.size()));
  if (!fresh) return known->second;
  texts_.emplace_back(text);
  Writer w;
  const bool first_of_all = file_.texts.empty() && texts_.size() == 1;
  if (first_of_all) w.long_text(""), w.long_text("<other texts>");
  w.long_text(text);
  append_chunk(chunks_, kTextsChunk, first_of_all ? 0 : known->second, first_of_all ? 3 : 1, w.bytes);
  return known->second;
}

std::string_view LateSpans::text_of(uint32_t number) const {
  if (number < file_.texts.size()) return file_.texts[number];
  const size_t first = std::max<size_t>(file_.texts.size(), 2);
  return number >= first && number - first < texts_.size() ? std::string_view(texts_[number - first])
                                                           : std::string_view();
}

}  // namespace strobe

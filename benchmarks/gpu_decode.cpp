// gpu_decode.cpp - what it costs to read CUPTI's records, and how many bytes a kernel takes before they are compressed.
//
//   gpu_decode LIBCUPTI KERNEL_BYTES RECORDS ALONE ROUNDS  records of kernels, walked by the library's own iterator;
//                                                          ALONE 0: beside each kernel three calls and three external
//                                                          correlations, as other profilers ask for
//   gpu_decode bytes KERNELS                               bytes of a kernel, by column
//
// As in traces of PyTorch: 170 names of 150 to 280 characters, 510 configurations of launches, 18 500 kernels a second.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/cupti/decode/cupti_decoder.h"
#include "adapters/gpu/launches.h"
#include "core/format/blocks.h"
#include "core/rings/pending_rows.h"
#include "zstd.h"

// A compressor that changes nothing: the sizes of its frames are those before compression.
extern "C" {
ZSTD_CCtx* ZSTD_createCCtx() { return nullptr; }
ZSTD_DCtx* ZSTD_createDCtx() { return nullptr; }
size_t ZSTD_freeCCtx(ZSTD_CCtx*) { return 0; }
size_t ZSTD_freeDCtx(ZSTD_DCtx*) { return 0; }
size_t ZSTD_compressBound(size_t bytes) { return bytes; }
unsigned ZSTD_isError(size_t) { return 0; }
unsigned long long ZSTD_getFrameContentSize(const void*, size_t bytes) { return bytes; }
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx*, ZSTD_cParameter, int) { return 0; }
size_t ZSTD_compress2(ZSTD_CCtx*, void* to, size_t, const void* from, size_t bytes) {
  return memcpy(to, from, bytes), bytes;
}
size_t ZSTD_decompressDCtx(ZSTD_DCtx*, void* to, size_t, const void* from, size_t bytes) {
  return memcpy(to, from, bytes), bytes;
}
}

using namespace strobe;
using namespace strobe::cupti;

namespace {

constexpr size_t kNames = 170, kConfigurations = 510;
constexpr size_t kCallBytes = 40, kExternalBytes = 24;
constexpr uint32_t kRuntimeKind = 5, kExternalKind = 39;

// What the collector does when it is asked, without a trace behind it.
struct DecodedSpans final : gpu::Sink {
  std::unordered_map<std::string, uint32_t> regions, numbers;
  std::vector<std::string> texts{""};
  gpu::Launches launches;
  uint32_t region(const char* name, uint8_t) override {
    return regions.try_emplace(name, uint32_t(regions.size()) + 1).first->second;
  }
  uint32_t text(const char* text) override {
    const auto [known, fresh] = numbers.try_emplace(text, uint32_t(texts.size()));
    if (fresh) texts.push_back(text);
    return known->second;
  }
  uint32_t captured_by(uint64_t) override { return 0; }
  uint32_t call(const gpu::CallRecord&) override { return 0; }
  std::string kernel_name(const char* name) override { return name; }
  void device(uint32_t, const std::string&) override {}
};

// Kernels one after the other; the same in every run.
class Kernels {
 public:
  Kernels() {
    for (size_t i = 0; i < kNames; i++) {
      std::string name = "void at::native::vectorized_elementwise_kernel<4, number " + std::to_string(i) + ">(";
      name.append(150 + random_() % 131 - name.size(), 'x');
      names_.push_back(name);
    }
    const auto of = [this](std::initializer_list<int> some) { return some.begin()[random_() % some.size()]; };
    for (size_t i = 0; i < kConfigurations; i++) {
      KernelRecord& r = configurations_.emplace_back();
      memset(&r, 0, sizeof r);
      r.kind = kConcurrentKernel;
      r.name = names_[i % kNames].c_str();
      r.device = 0, r.context = 1, r.stream = uint32_t(of({7, 7, 7, 20}));
      r.grid_x = int32_t(1 + random_() % 20'000), r.grid_y = of({1, 1, 2, 8}), r.grid_z = of({1, 1, 4});
      r.block_x = of({32, 64, 128, 256, 512}), r.block_y = r.block_z = 1;
      r.registers = uint16_t(16 + random_() % 240);
      r.static_shared_memory = of({0, 0, 16, 1024}), r.dynamic_shared_memory = of({0, 0, 49'152, 98'304});
      r.shared_memory_executed = uint32_t(of({32'768, 102'400, 233'472}));
    }
  }
  const KernelRecord& next() {
    KernelRecord& r = configurations_[random_() % kConfigurations];
    now_ += 2'000 + random_() % 104'000;
    r.start = now_, r.end = now_ + 1'000 + random_() % 60'000;
    r.correlation = correlation_ += 3 + uint32_t(random_() % 8);
    return r;
  }

 private:
  std::mt19937_64 random_{1};
  std::vector<std::string> names_;
  std::vector<KernelRecord> configurations_;
  uint64_t now_ = 1'000'000'000'000;
  uint32_t correlation_ = 100;
};

gpu::RecordBytes kernels_of(size_t bytes) {
  gpu::RecordBytes sizes{};
  sizes[kConcurrentKernel] = uint32_t(bytes);
  return sizes;
}

double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

int walk(const char* path, size_t kernel_bytes, size_t count, bool alone, int rounds) {
  void* library = dlopen(path, RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  const auto next = (Result (*)(uint8_t*, size_t, Activity**))dlsym(library, "cuptiActivityGetNextRecord");
  constexpr size_t kBufferBytes = 256 << 10;
  Kernels kernels;
  DecodedSpans decoded;
  std::vector<uint8_t> bytes;
  size_t records = 0;
  std::vector<size_t> ends;  // of buffers of the collector's size
  const auto room = [&](size_t size) {
    if (ends.empty() || ends.back() + size > ends.size() * kBufferBytes) ends.push_back(ends.size() * kBufferBytes);
    bytes.resize(ends.size() * kBufferBytes);
    uint8_t* at = bytes.data() + ends.back();
    ends.back() += size, records++;
    return at;
  };
  while (records < count) {
    if (!alone)
      for (int i = 0; i < 3; i++) {
        memcpy(room(kCallBytes), &kRuntimeKind, 4);
        memcpy(room(kExternalBytes), &kExternalKind, 4);
      }
    const KernelRecord& r = kernels.next();
    decoded.launches.begin(r.correlation, int64_t(r.start) - 5'000);
    memcpy(room(kernel_bytes), &r, kernel_bytes);
  }
  std::vector<DeviceSpan> spans;  // grows once, as the collector's
  for (int round = 0; round < rounds; round++) {
    Decoder decoder(decoded, kernels_of(kernel_bytes));
    size_t seen = 0, made = 0;
    const double began = seconds();
    for (size_t i = 0; i < ends.size(); i++) {
      Activity* record = nullptr;
      uint8_t* buffer = bytes.data() + i * kBufferBytes;
      while (next(buffer, ends[i] - i * kBufferBytes, &record) == kSuccess) decoder.add(*record, spans), seen++;
      if (i % 16 == 15 || i + 1 == ends.size()) {  // as many as the collector takes at once
        gpu::sort_by_start(spans);
        for (DeviceSpan& each : spans) each.span.launched_ns = decoded.launches.ns_of(each.correlation);
        made += spans.size();
        spans.clear();
      }
    }
    const double took = seconds() - began;
    if (seen != records) return fprintf(stderr, "%zu of %zu records were read\n", seen, records), 1;
    printf("{\"records\": %zu, \"kernels\": %zu, \"ns_per_record\": %.2f, \"ns_per_kernel\": %.2f}\n", seen, made,
           took / double(seen) * 1e9, took / double(made) * 1e9);
  }
  return 0;
}

int count_bytes(size_t count) {
  Kernels kernels;
  DecodedSpans decoded;
  Decoder decoder(decoded, kernels_of(sizeof(KernelRecord)));
  std::vector<DeviceSpan> spans;
  for (size_t i = 0; i < count; i++) decoder.add(reinterpret_cast<const Activity&>(kernels.next()), spans);
  size_t of_spans = 0, of_rows = 0;
  SpanColumns columns;
  PendingRows rows;
  std::string chunks;
  for (size_t i = 0; i < count; i++) {
    const strobe_stream_span& span = spans[i].span;
    columns.start_ns.push_back(span.start_ns), columns.duration_ns.push_back(span.end_ns - span.start_ns);
    columns.path.push_back(span.region);
    RowRecord record{
        0,
        uint64_t(span.row_kind) << 48,
        {},
    };
    memcpy(record.values, span.values, sizeof record.values);
    rows.add(record, span.launched_ns, i);
    if ((i + 1) % kBlockSpans && i + 1 < count) continue;
    SpansHeader header{};
    header.first_ns = columns.start_ns.front();
    of_spans += encode_spans(header, {}, {}, columns).size();
    columns.clear();
    rows.emit(chunks, i + 1, 0, 0, [&](uint32_t number) { return std::string_view(decoded.texts[number]); });
  }
  of_rows = chunks.size();
  printf("{\"kernels\": %zu, \"span_bytes\": %.3f, \"row_bytes\": %.3f}\n", count, double(of_spans) / double(count),
         double(of_rows) / double(count));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 3 && !strcmp(words[1], "bytes")) return count_bytes(size_t(atol(words[2])));
  if (count != 6) return fprintf(stderr, "see the first lines of gpu_decode.cpp\n"), 2;
  return walk(words[1], size_t(atol(words[2])), size_t(atol(words[3])), atoi(words[4]), atoi(words[5]));
}

// What launches share is one text: of each field that a launch can have, no two values get the same one, and a text
// says what is known of the stream when the kernel is told.
#include <string.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "adapters/cupti/decode/cupti_decoder.h"
#include "check.h"

using namespace strobe::cupti;
namespace gpu = strobe::gpu;

namespace {

struct Told final : gpu::Sink {
  std::map<std::string, uint32_t> numbers;
  std::vector<std::string> texts{""};
  uint32_t region(const char* name, uint8_t) override { return text(name); }
  uint32_t text(const char* text) override {
    const auto [known, fresh] = numbers.try_emplace(text, uint32_t(texts.size()));
    if (fresh) texts.push_back(text);
    return known->second;
  }
  uint32_t captured_by(uint64_t) override { return 0; }
  uint32_t call(const gpu::CallRecord&) override { return 0; }
  std::string kernel_name(const char* name) override { return name; }
  void device(uint32_t, const std::string&) override {}

  // The launch configuration that this record is told with.
  std::string launch(Decoder& decoder, const KernelRecord& record) {
    std::vector<DeviceSpan> spans;
    decoder.add(reinterpret_cast<const Activity&>(record), spans);
    CHECK(spans.size() == 1);
    return texts.at(uint64_t(spans[0].span.values[0]) >> 32);
  }
};

KernelRecord kernel() {
  KernelRecord r{};
  r.kind = kConcurrentKernel, r.name = "gemm", r.start = 10, r.end = 20, r.correlation = 3;
  r.device = 1, r.context = 2, r.stream = 7;
  r.grid_x = 4, r.grid_y = 5, r.grid_z = 6, r.block_x = 32, r.block_y = 8, r.block_z = 9;
  r.registers = 40, r.static_shared_memory = 100, r.dynamic_shared_memory = 200;
  r.shared_memory_executed = 8192, r.local_memory_per_thread = 16, r.local_memory_total = uint64_t(1) << 33;
  return r;
}

// Of kernels, which reach as far as this.
gpu::RecordBytes kernels_of(size_t bytes) {
  gpu::RecordBytes sizes{};
  sizes[kConcurrentKernel] = uint32_t(bytes);
  return sizes;
}

void each_field_counts() {
  Told told;
  Decoder decoder(told, kernels_of(sizeof(KernelRecord)));
  const std::string type = std::to_string(told.text("regular"));
  CHECK(told.launch(decoder, kernel()) == "1,2,7,4,5,6,32,8,9,40,300,100,200,8192,16,8589934592,0," + type + ",");
  const std::function<void(KernelRecord&)> changes[] = {
      [](KernelRecord& r) { r.device++; },
      [](KernelRecord& r) { r.context++; },
      [](KernelRecord& r) { r.stream++; },
      [](KernelRecord& r) { r.grid_x++; },
      [](KernelRecord& r) { r.grid_y++; },
      [](KernelRecord& r) { r.grid_z++; },
      [](KernelRecord& r) { r.block_x++; },
      [](KernelRecord& r) { r.block_y++; },
      [](KernelRecord& r) { r.block_z++; },
      [](KernelRecord& r) { r.registers++; },
      [](KernelRecord& r) { r.registers += 256; },
      [](KernelRecord& r) { r.static_shared_memory++; },
      [](KernelRecord& r) { r.dynamic_shared_memory++; },
      [](KernelRecord& r) { r.shared_memory_executed++; },
      [](KernelRecord& r) { r.local_memory_per_thread++; },
      [](KernelRecord& r) { r.local_memory_total++; },
      [](KernelRecord& r) { r.priority = -5; },
      [](KernelRecord& r) { r.launch_type = kCooperative; },
  };
  std::map<std::string, int> seen;
  for (const auto& change : changes) {
    KernelRecord record = kernel();
    change(record);
    seen[told.launch(decoder, record)]++;
  }
  CHECK(seen.size() == std::size(changes) && !seen.contains(told.launch(decoder, kernel())));
  // What differs from launch to launch does not.
  const size_t texts = told.texts.size();
  KernelRecord record = kernel();
  record.start++, record.end += 5, record.correlation++, record.graph = 9, record.graph_node = 11, record.grid = 12;
  told.launch(decoder, record);
  CHECK(told.texts.size() == texts);
}

// Before CUDA 13.1 the priority is told of streams, some of which are made after others have run.
void priorities_of_streams() {
  Told told;
  Decoder decoder(told, kernels_of(STROBE_CUPTI_END(KernelRecord, local_memory_total)));
  const auto priority = [&] {
    std::string text = told.launch(decoder, kernel());
    text.resize(text.rfind(',', text.size() - 2));
    return text.substr(text.rfind(',') + 1);
  };
  CHECK(priority().empty());
  StreamRecord stream{};
  stream.kind = kStream, stream.context = 2, stream.stream = 7, stream.priority = uint32_t(-3);
  std::vector<DeviceSpan> none;
  decoder.add(reinterpret_cast<const Activity&>(stream), none);
  CHECK(none.empty() && priority() == "-3");
}

}  // namespace

int main() {
  each_field_counts();
  priorities_of_streams();
}

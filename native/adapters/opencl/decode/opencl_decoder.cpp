#include "adapters/opencl/decode/opencl_decoder.h"

#include <string.h>

namespace strobe::opencl {

namespace {

// By What. Whether the memory of the host is pinned is not known.
constexpr struct {
  const char *region, *copy_kind;
} kNames[] = {
    {"", ""},       {"Memcpy HtoD", "HtoD"}, {"Memcpy DtoH", "DtoH"}, {"Memcpy DtoD", "DtoD"}, {"Memcpy SVM", "SVM"},
    {"Memset", ""}, {"Map DtoH", "DtoH"},    {"Unmap HtoD", "HtoD"}};

}  // namespace

void Decoder::read(const char* bytes, size_t size, std::vector<gpu::DeviceSpan>& out) {
  Record r;
  for (; size >= sizeof r; bytes += sizeof r, size -= sizeof r) {
    memcpy(&r, bytes, sizeof r);
    if (r.kind != kCommandRecord) return;
    const auto add = [&](uint32_t region, uint32_t row_kind, const std::string& text) -> gpu::DeviceSpan& {
      return add_work(out, r.device, r.context, r.queue, r.correlation, region, row_kind, uint64_t(r.start_ns),
                      uint64_t(r.end_ns), sink_.text(text.c_str()));
    };
    if (r.what == kKernel) {
      const auto [known, fresh] = kernels_.try_emplace(r.name, 0);
      if (fresh) {
        const std::string name = sink_.kernel_name(r.name);  // mangled where a compiler of C++ made the kernel
        known->second =
            sink_.region((name.starts_with("_Z") ? gpu::demangled(name.c_str()) : name).c_str(), STROBE_ROLE_KERNEL);
      }
      gpu::LaunchText text;
      text.device = r.device, text.context = r.context, text.stream = r.queue;
      for (int i = 0; i < 3; i++)
        if (r.block[i]) text.grid[i] = r.grid[i], text.block[i] = r.block[i];
      set_kernel(add(known->second, STROBE_ROW_KERNEL, text.joined()), 0, 0, 0, 0);
    } else {
      const auto& names = kNames[r.what];
      int64_t text[] = {r.device, r.context, r.queue, STROBE_NOTHING};
      if (*names.copy_kind) text[3] = sink_.text(names.copy_kind);
      set_copy(add(sink_.region(names.region, STROBE_ROLE_COPY), STROBE_ROW_COPY, gpu::joined(text)), 0, 0, 0, r.bytes);
    }
  }
}

const gpu::Decoding kDecoding{"opencl", "OpenCL", STROBE_OPENCL, false,
                              [](gpu::Sink& sink, const gpu::RecordBytes&) -> std::unique_ptr<gpu::Decoder> {
                                return std::make_unique<Decoder>(sink);
                              }};
const gpu::Registered registered(kDecoding);

}  // namespace strobe::opencl

// levels.cpp - what is recorded of GPUs only where it is asked for (--trace +cuda+memory+events), and what CUPTI and
// the driver say of their own cost.
#include "adapters/cupti/collector.h"
#include "adapters/cupti/memory.h"
#include "adapters/cupti/waits.h"
#include "core/from_environment.h"

namespace strobe::cupti {

void Collector::enable_levels() {
  // Rare, and seconds long where it happens. Where it cannot be had nothing is missing that anybody asked for.
  if (library_.activity_enable(kJit) == kSuccess) enabled_.push_back(kJit);
  if (session_asks("cuda", "memory")) {
    enable(kMemory, "allocations"), enable(kMemoryPool, "memory pools");
    unified_memory_ = true;
  }
  if (session_asks("cuda", "events")) {
    // Questions about what is not over yet are no waits; since CUDA 12.8 they can be left out.
    if (library_.activity_enable_all_sync_records) library_.activity_enable_all_sync_records(0);
    enable(kContext, "contexts"), enable(kCudaEvent, "events"),
        enable(kSynchronization, "waits for streams and events");
  }
}

// It can be configured only once the driver is there (CUPTI's own words), which it is not inside of cuInit.
void Collector::on_context() {
  context_seen_ = true;
  if (!unified_memory_) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_one();
}

void Collector::enable_unified_memory() {
  unified_memory_ = false;
  UnifiedMemoryConfig configs[5];
  size_t n = 0;
  for (const UnifiedMemoryKind kind :
       {kUnifiedHostToDevice, kUnifiedDeviceToHost, kUnifiedDeviceToDevice, kCpuPageFault, kGpuPageFaults})
    configs[n++] = {kAllDevices, kind, 0, 1};
  const char* what = "migrations of unified memory";
  const Result result = library_.activity_configure_unified_memory
                            ? library_.activity_configure_unified_memory(configs, uint32_t(n))
                            : Result(kNotSupported);
  if (result == kSuccess)
    enable(kUnifiedMemoryCounter, what);
  else
    say((std::string("no ") + what).c_str(), std::string(what) + " are not recorded: " + library_.text_of(result));
}

void Collector::tell_waits(bool last) {
  if (!spans_.empty()) context_seen_ = true;  // made while nobody told us
  std::vector<DeviceSpan> waits;
  decoder_->waits().take(waits, last);
  for (const DeviceSpan& each : waits) strobe_stream_tell(stream_of(each), &each.span);
}

void Collector::count_costs() {
  const auto ms = [](int64_t ns) { return uint64_t(ns / 1'000'000); };
  const Decoder& decoder = *decoder_;
  const Memory& memory = decoder_->memory();
  const Costs now{ms(decoder.overhead_ns()),  ms(decoder.driver_ns()),  ms(decoder.jit_ns()),
                  decoder.jit_compilations(), memory.cpu_page_faults(), memory.gpu_page_faults()};
  const auto count = [&](const char* what, uint64_t Costs::* cost) {
    if (const uint64_t more = now.*cost - told_costs_.*cost) strobe_count(what, more);
  };
  count("gpu_overhead_ms", &Costs::overhead_ms);
  count("gpu_driver_ms", &Costs::driver_ms);
  count("gpu_jit_ms", &Costs::jit_ms);
  count("gpu_jit_compilations", &Costs::jit_compilations);
  count("gpu_cpu_page_faults", &Costs::cpu_page_faults);
  count("gpu_page_faults", &Costs::gpu_page_faults);
  told_costs_ = now;
}

}  // namespace strobe::cupti

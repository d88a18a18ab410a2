// opencl_layer.cpp - OpenCL as a vendor of GPUs. OPENCL_LAYERS names this library: the loader of OpenCL (ocl-icd 2.3.0,
// Khronos's of 2021.04) loads it together with the drivers, and calls the functions at the end (cl_layer.h). A process
// that does not use OpenCL never comes here.
//
// Every command has an event, of which the recorder's thread asks whether it is over: a callback would run on a thread
// of the driver's.
#include <string.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "adapters/gpu/vendor.h"
#include "adapters/opencl/decode/opencl_decoder.h"
#include "adapters/opencl/functions.h"
#include "core/format/json_text.h"
#include "core/system/clock.h"

namespace strobe::opencl {

namespace {

constexpr size_t kWakeEvery = 4096;  // commands: each needs an event

struct Function {
  const char* name;
  uint32_t entry;
  uint8_t arity, role;
  What what = kKernel;
  Size size = kNone;
  uint8_t size_at = 0, image_at = 0;
};
constexpr Function kFunctions[] = {
#define OPENCL_COMMAND(name, entry, arity, ...) {#name, entry, arity, STROBE_ROLE_FUNCTION, __VA_ARGS__},
    OPENCL_COMMANDS(OPENCL_COMMAND)
#undef OPENCL_COMMAND
#define OPENCL_CALL(name, entry, arity, role) {#name, entry, arity, STROBE_ROLE_##role},
        OPENCL_CALLS(OPENCL_CALL)
#undef OPENCL_CALL
};
constexpr size_t kCount = std::size(kFunctions);
constexpr size_t kCommands = 0
#define OPENCL_COMMAND(...) +1
    OPENCL_COMMANDS(OPENCL_COMMAND)
#undef OPENCL_COMMAND
    ;

void* const* driver = nullptr;  // its functions, by Entry

template <class... Arguments>
Word invoke_driver(uint32_t entry, Arguments... arguments) {
  return reinterpret_cast<Word (*)(decltype(Word(arguments))...)>(driver[entry])(Word(arguments)...);
}

template <class T>
bool ask(Entry entry, Word about, Info what, T& value) {
  return int32_t(invoke_driver(entry, about, what, sizeof value, &value, 0)) == 0;
}

struct Queue {
  uint32_t device, context, number;
};

struct Command {
  Word event = 0;
  int64_t begin_ns = 0, end_ns = 0, queued_ns = 0;  // its call; the last one by the device's clock, as all of its event
  Record record{};
};

class Recording final : public gpu::Vendor {
 public:
  const gpu::Decoding& decoding() const override { return kDecoding; }
  bool open(gpu::Recorder& to) override { return recorder = &to, true; }
  const gpu::RecordBytes& record_bytes() const override { return bytes_; }
  bool start() override {
    for (size_t i = 0; i < kCount; i++)
      calls[i] = {recorder->region(kFunctions[i].name, kFunctions[i].role), i < kCommands, kFunctions[i].name};
    recorder->note("recorded_with", "a layer of OpenCL, and events of its queues");
    return on_ = true;
  }
  void rest() override { on_ = false; }
  void go_on() override { on_ = true; }
  void let_go() override { on_ = false; }
  bool take_back(std::string&) override { return true; }
  void flush(bool forced) override;

  bool on() const { return on_.load(std::memory_order_relaxed) && recorder->recording(); }
  Command command(const Function& function, const Word* words);
  void queued(Command& command, const Word* words, Word returned);
  void new_queue(Word queue);

  gpu::Recorder* recorder = nullptr;
  gpu::Call calls[kCount];
  std::atomic<uint32_t> correlations{0};  // numbers of calls, so far

 private:
  bool over(Command& command);
  void write(std::vector<Command>& commands);

  const gpu::RecordBytes bytes_{0, sizeof(Record)};
  std::atomic<bool> on_{false};
  std::map<uint32_t, int64_t> clocks_;  // from the clock of each device to ours, in ns; of the recorder's thread

  std::mutex mutex_;  // of what follows
  std::vector<Command> pending_;
  std::map<Word, Queue> queues_;
  std::map<Word, uint32_t> devices_, contexts_;  // their numbers
  std::set<std::string> kernels_;                // their names, which never move
  std::map<Word, int64_t> mapped_;               // bytes that go back, by address
};

// Never destroyed: programs call OpenCL until the process is gone.
Recording& recording() {
  static Recording* one = new Recording;
  return *one;
}

// --- on threads of the program

// At this place there may have been another one.
void Recording::new_queue(Word handle) {
  Word context = 0, device = 0;
  char name[256];
  ask(kGetQueueInfo, handle, kQueueContext, context), ask(kGetQueueInfo, handle, kQueueDevice, device);
  if (!ask(kGetDeviceInfo, device, kDeviceName, name)) strcpy(name, "OpenCL device");
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = devices_.try_emplace(device, uint32_t(devices_.size()));
  const uint32_t number = contexts_.try_emplace(context, uint32_t(contexts_.size())).first->second;
  Queue& queue = queues_.try_emplace(handle, Queue{0, 0, uint32_t(queues_.size())}).first->second;
  queue.device = at->second, queue.context = number;
  if (!fresh) return;
  std::string json = "{\"id\": " + std::to_string(at->second) + ", \"name\": ";
  append_json_text(json, name);
  recorder->device(at->second, json + "}");
}

// What is about to be put into a queue.
Command Recording::command(const Function& function, const Word* words) {
  Command command;
  Record& record = command.record;
  record.kind = kCommandRecord, record.what = function.what, record.bytes = STROBE_NOTHING;
  const auto* box = reinterpret_cast<const size_t*>(words[function.size_at]);
  size_t factor = 1;
  if (function.size == kBytes)
    record.bytes = words[function.size_at];
  else if (function.size == kBox ||
           (function.size == kPixels && ask(kGetImageInfo, words[function.image_at], kImageElementSize, factor)))
    record.bytes = box ? int64_t(box[0] * box[1] * box[2] * factor) : STROBE_NOTHING;
  if (function.what != kKernel) return command;
  char name[4096];
  if (!ask(kGetKernelInfo, words[1], kKernelFunctionName, name)) strcpy(name, "<unnamed kernel>");
  // Where the program leaves the size of groups to the driver, it is not known.
  if (&function == kFunctions && words[4] && words[5])  // clEnqueueNDRangeKernel
    for (uint32_t i = 0; i < 3; i++) {
      const bool there = i < uint32_t(words[2]);
      const size_t global = there ? reinterpret_cast<const size_t*>(words[4])[i] : 1;
      const size_t local = there ? reinterpret_cast<const size_t*>(words[5])[i] : 1;
      record.block[i] = uint32_t(local), record.grid[i] = local ? uint32_t((global + local - 1) / local) : 0;
    }
  const std::lock_guard lock(mutex_);
  record.name = kernels_.insert(name).first->c_str();
  return command;
}

// It is in its queue, and its event is ours to release.
void Recording::queued(Command& command, const Word* words, Word returned) {
  Record& record = command.record;
  std::unique_lock lock(mutex_);
  if (!queues_.contains(words[0])) {  // made by an extension
    lock.unlock(), new_queue(words[0]), lock.lock();
  }
  const Queue& queue = queues_[words[0]];
  record.device = queue.device, record.context = queue.context, record.queue = queue.number;
  // A map copies what the program may read, its end what the program may have written.
  if (record.what == kMap) {
    mapped_[returned] = words[3] & (kWrite | kWriteInvalidate) ? record.bytes : 0;
    if (words[3] & kWriteInvalidate) record.bytes = 0;
  } else if (record.what == kUnmap) {
    if (const auto map = mapped_.extract(words[2])) record.bytes = map.mapped();
  }
  pending_.push_back(command);
  if (pending_.size() % kWakeEvery == 0) recorder->wake();
}

// --- on the recorder's thread

bool Recording::over(Command& command) {
  int32_t status = 0;
  if (ask(kGetEventInfo, command.event, kEventStatus, status) && status > 0) return false;
  Record& record = command.record;
  const bool timed = status == 0 && ask(kGetProfilingInfo, command.event, kQueued, command.queued_ns) &&
                     ask(kGetProfilingInfo, command.event, kStart, record.start_ns) &&
                     ask(kGetProfilingInfo, command.event, kEnd, record.end_ns);
  if (!timed) record.kind = 0, strobe_count("stream_spans_untimed", 1);
  invoke_driver(kReleaseEvent, command.event);
  return true;
}

void Recording::flush(bool forced) {
  std::vector<Command> commands, done, waiting;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(pending_);
  }
  // What is over after one that is not has ended just now: it comes in the next round, in order.
  std::set<uint32_t> busy;
  for (Command& one : commands) {
    const bool is_over = (forced || !busy.contains(one.record.queue)) && over(one);
    if (!is_over) busy.insert(one.record.queue);
    if (!is_over || one.record.kind) (is_over ? done : waiting).push_back(one);
  }
  {
    const std::lock_guard lock(mutex_);
    pending_.insert(pending_.begin(), waiting.begin(), waiting.end());
  }
  write(done);
}

void Recording::write(std::vector<Command>& commands) {
  // A command was queued while its call ran, which bounds the difference of the clocks. It changes as little as these
  // bounds allow. (clGetDeviceAndHostTimer does not tell which clock the host's is, and many drivers lack it.)
  std::map<uint32_t, std::pair<int64_t, int64_t>> bounds;
  for (const Command& one : commands) {
    auto& [low, high] = bounds.try_emplace(one.record.device, INT64_MIN, INT64_MAX).first->second;
    low = std::max(low, one.begin_ns - one.queued_ns), high = std::min(high, one.end_ns - one.queued_ns);
  }
  for (const auto& [device, bound] : bounds) {
    int64_t& ns = clocks_.try_emplace(device, bound.first).first->second;
    ns = std::max(bound.first, std::min(bound.second, ns));
  }
  for (size_t at = 0, bytes = 0; at < commands.size();) {
    uint8_t* buffer = recorder->take_buffer(bytes);
    if (!buffer) return;
    size_t valid = 0;
    for (; at < commands.size() && valid + sizeof(Record) <= bytes; at++, valid += sizeof(Record)) {
      Record& record = commands[at].record;
      record.start_ns += clocks_[record.device], record.end_ns += clocks_[record.device];
      memcpy(buffer + valid, &record, sizeof record);
    }
    recorder->completed(buffer, valid);
  }
}

// --- the functions that the program calls

template <size_t kFunction, class Invoke>
Word recorded(Word* words, const Invoke& invoke) {
  constexpr const Function& function = kFunctions[kFunction];
  constexpr bool maps = function.what == kMap;  // it returns a pointer
  Recording& to = recording();
  const gpu::Call& is = to.calls[kFunction];
  Command command;
  Word *event = nullptr, *error = nullptr;
  int32_t own_error = 0;
  bool own_event = false;
  if constexpr (kFunction < kCommands) {
    command = to.command(function, words);
    event = words + function.arity - (maps ? 2 : 1), error = words + function.arity - 1;
    if ((own_event = !*event)) *event = Word(&command.event);
    if (maps && !*error) *error = Word(&own_error);
  }
  command.record.correlation = ++to.correlations;
  to.recorder->call_begins(is, command.record.correlation, true);
  command.begin_ns = monotonic_ns();
  const Word result = invoke();
  command.end_ns = monotonic_ns();
  const int32_t returned = maps                             ? *reinterpret_cast<const int32_t*>(*error)
                           : function.entry == kLinkProgram ? STROBE_NOTHING_32  // it returns a program
                                                            : int32_t(result);
  to.recorder->call_ends(is, command.record.correlation, function.entry, returned, true);
  if (kFunction >= kCommands || returned) return result;
  if (!own_event) invoke_driver(kRetainEvent, command.event = *reinterpret_cast<const Word*>(*event));
  to.queued(command, words, result);
  return result;
}

template <size_t kFunction, class>
struct Wrapper;
template <size_t kFunction, size_t... kAt>
struct Wrapper<kFunction, std::index_sequence<kAt...>> {
  static Word called(decltype(Word(kAt))... arguments) {
    Word words[] = {arguments...};
    const auto invoke = [&] { return invoke_driver(kFunctions[kFunction].entry, words[kAt]...); };
    return recording().on() ? recorded<kFunction>(words, invoke) : invoke();
  }
};

// A queue whose commands have times, if they are recorded and that can be had; `make` takes the properties as they are.
template <class Make>
Word create(Word& properties, const Make& make) {
  const Word asked = properties;
  if (!(asked & kOnDevice) && strobe_gpu_start(&recording())) {
    properties |= kProfiling;
    if (const Word queue = make()) return recording().new_queue(queue), queue;
    properties = asked;
  }
  return make();
}

Word create_queue(Word context, Word device, Word properties, Word error) {
  return create(properties, [&] { return invoke_driver(kCreateQueue, context, device, properties, error); });
}

Word create_queue_with_properties(Word context, Word device, const Word* asked, Word error) {
  Word properties = 0;
  std::vector<Word> list;  // names and values
  for (const Word* each = asked; each && *each; each += 2)
    if (*each == Word(kQueueProperties))
      properties = each[1];
    else
      list.insert(list.end(), {each[0], each[1]});
  list.insert(list.end(), {Word(kQueueProperties), properties, 0});
  Word& value = list[list.size() - 2];
  return create(value, [&] {
    const Word* const given = value == properties ? asked : list.data();
    return invoke_driver(kCreateQueueWithProperties, context, device, given, error);
  });
}

template <size_t... kAt>
void replace(std::vector<void*>& entries, std::index_sequence<kAt...>) {
  const auto one = [&](uint32_t entry, auto* with) {
    if (entry < entries.size() && entries[entry]) entries[entry] = reinterpret_cast<void*>(with);
  };
  (one(kFunctions[kAt].entry, Wrapper<kAt, std::make_index_sequence<kFunctions[kAt].arity>>::called), ...);
  one(kCreateQueue, create_queue), one(kCreateQueueWithProperties, create_queue_with_properties);
}

}  // namespace

}  // namespace strobe::opencl

extern "C" STROBE_API int32_t clGetLayerInfo(uint32_t what, size_t bytes, void* value, size_t* needs) {
  constexpr uint32_t kApiVersion = 0x4240, kVersion = 100;
  if (what != kApiVersion || (value && bytes < sizeof kVersion)) return strobe::opencl::kInvalidValue;
  if (value) memcpy(value, &kVersion, sizeof kVersion);
  if (needs) *needs = sizeof kVersion;
  return 0;
}

extern "C" STROBE_API int32_t clInitLayer(uint32_t count, void* const* target, uint32_t* own_count, void* const** own) {
  using namespace strobe::opencl;
  if (count <= kGetProfilingInfo) return kInvalidValue;
  // Each loader of a process gets a table of its own. It may call the first one's: handles know their driver.
  auto& entries = *new std::vector<void*>(target, target + count);
  if (!driver) driver = target;
  replace(entries, std::make_index_sequence<kCount>());
  *own_count = count, *own = entries.data();
  return 0;
}

#include "attach/sampled_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>

#include "attach/python_symbols.h"
#include "attach/thread_stop.h"
#include "core/format/side_tables.generated.h"
#include "core/system/clock.h"

namespace strobe {

namespace {

constexpr size_t kMostFrames = 4096;          // of a stack
constexpr size_t kMostTextBytes = 256 << 20;  // of all stacks, as the recorder has it; later ones have no names
constexpr int kLooks = 5;                     // at a call that may be of C code, before it counts as such
constexpr uint64_t kListEvery = 8;            // samples between two looks at the list of threads, or as many as threads
constexpr int64_t kWaitingRowNs = 50000000;   // a thread that does nothing gets a row as seldom as that
constexpr int64_t kSaveNs = 1000000000;       // what is sampled is in the file after this time
// The kernel adds to the time of a thread that runs at ticks of its clock: a thread that is ready and has got nothing
// for longer waits for a processor.
constexpr int64_t kTickNs = 10000000;

// That of a process without Python, whose C code is sampled, has no main interpreter.
Interpreter interpreter_of(const ProcessFiles& files, ForeignMemory& memory, bool native) {
  if (native && !ThreadStop::kPossible) throw std::runtime_error("can be sampled with --native on x86-64 only");
  if (native) {
    if (const int error = ThreadStop(files.pid()).error(); error && error != ESRCH)
      throw std::system_error(error, std::generic_category(), "stopping a thread");
    if (!python_symbols(files).runtime) return {};
  }
  return find_interpreter(files, memory);
}

// Of a thread that sleeps: stack pointer and instruction, from the file `syscall` of the kernel's.
bool sleeping(const std::string& call, Registers& registers) {
  const size_t pc = call.rfind(' '), sp = pc == call.npos || !pc ? pc : call.rfind(' ', pc - 1);
  if (sp == call.npos || pc == call.npos) return false;  // it runs
  registers.set(Registers::kStack, strtoull(call.c_str() + sp, nullptr, 16));
  registers.set(Registers::kAddress, strtoull(call.c_str() + pc, nullptr, 16));
  return true;
}

}  // namespace

struct SampledProcess::Thread {
  uint64_t id = 0;     // here
  uint64_t ident = 0;  // as threading.get_ident()
  uint32_t location = 0;
  int schedule = -1, call = -1;  // files of the kernel's: its CPU time, and the call of the kernel that it is in
  bool listed = true, named = false;
  State state = kWaiting, sleeps = kReady;
  int64_t cpu = 0, since_ns = 0;  // as of its last row
  int64_t seen_cpu = -1;          // at the last look
  int64_t changed_ns = 0;         // when that was more than before
  int64_t last_look_ns = 0;
  uint32_t call_stack = 0;  // text
  bool has_stack = false;
  int32_t line = 0;
  PythonStack stack;
  KnownCodes known;
  ~Thread() { close(schedule), close(call); }

  int64_t cpu_ns() const {  // -1: it is gone
    const std::string facts = again(schedule);
    return facts.empty() ? -1 : atoll(facts.c_str());
  }
};

SampledProcess::SampledProcess(pid_t pid, std::string blocks_path, bool native)
    : pid_(pid),
      files_(pid),
      memory_(),
      interpreter_((memory_.open(pid), interpreter_of(files_, memory_, native))),
      native_(native),
      stacks_(interpreter_.layout.frames, memory_, kMostFrames, kMostFrames),
      frames_(files_, memory_),
      names_(interpreter_.layout, memory_),
      out_(std::move(blocks_path)),
      started_ns_(monotonic_ns()),
      last_ns_(started_ns_),
      saved_ns_(started_ns_),
      table_(out_.table(schema::samples::layout())) {
  description_.pid = pid, description_.started_ns = started_ns_;
  for (size_t i = 0; i < kStates; i++) state_text_[i] = out_.text(kStateNames[i]);
}

SampledProcess::~SampledProcess() = default;

SampledProcess::Life SampledProcess::look() {
  const int64_t now = monotonic_ns();
  if (!files_.same_program()) return files_.runs() ? Life::replaced : Life::ended;
  last_ns_ = now;
  if (looks_++ == list_at_) {
    if (!list(now)) out_.count("thread_lists_not_read");
    list_at_ = looks_ - 1 + std::max<uint64_t>(kListEvery, threads_.size());
  }
  for (auto at = threads_.begin(); at != threads_.end();)
    at = look_at(at->first, *at->second, now) ? std::next(at) : threads_.erase(at);
  if (now - saved_ns_ >= kSaveNs) saved_ns_ = now, out_.save(description_);
  return Life::runs;
}

// Which threads there are.
bool SampledProcess::list(int64_t now) {
  if (interpreter_.main && !stacks_.threads(interpreter_.main, found_)) return false;
  for (auto& [at, thread] : threads_) thread->listed = false;
  const std::vector<uint64_t> here = files_.threads();
  bool fresh = false;
  if (!interpreter_.main)
    for (const uint64_t id : here) fresh |= know(id, id, now);
  std::set<uint64_t> seen;
  // Oldest first: a new thread has the number of the one that made it until it begins.
  for (auto each = found_.rbegin(); each != found_.rend(); ++each) {
    uint64_t id = number_here(each->second);
    // A child that has just been forked has the number of the thread that forked it.
    if (std::ranges::find(here, id) == here.end() && found_.size() == 1) id = uint64_t(pid_);
    if (seen.insert(id).second) fresh |= know(each->first, id, now);
  }
  if (fresh || std::ranges::any_of(threads_, [](const auto& each) { return !each.second->named; })) name_threads();
  return true;
}

// A thread that is there now, by the address of its state; returns whether it is new.
bool SampledProcess::know(uintptr_t at, uint64_t id, int64_t now) {
  auto& thread = threads_[at];
  if (thread && thread->id == id) {
    thread->listed = true;
    return false;
  }
  const std::string folder = "task/" + std::to_string(id) + "/";
  thread = std::make_unique<Thread>();
  thread->id = id;
  thread->schedule = files_.open(folder + "schedstat"), thread->call = files_.open(folder + "syscall");
  if (thread->schedule < 0) {  // over, or not a thread of this process
    threads_.erase(at);
    return false;
  }
  const char* ident =
      interpreter_.main ? memory_.read(at + interpreter_.layout.thread_ident, sizeof(uint64_t)) : nullptr;
  if (ident) memcpy(&thread->ident, ident, sizeof thread->ident);
  std::string name = files_.text(folder + "comm", 64);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  thread->location = out_.location(name, id);
  thread->cpu = std::max<int64_t>(thread->cpu_ns(), 0);
  thread->since_ns = now;
  return true;
}

void SampledProcess::name_threads() {
  if (!interpreter_.main) return;
  const auto names = names_.read(interpreter_.main);
  for (auto& [at, thread] : threads_)
    if (const auto name = names.find(thread->ident); name != names.end() && !name->second.empty()) {
      out_.name_location(thread->location, name->second);
      thread->named = true;
    }
}

// Of a thread: a process in a container counts its threads itself.
uint64_t SampledProcess::number_here(uint64_t number_there) {
  if (const auto known = numbers_.find(number_there); known != numbers_.end()) return known->second;
  for (const uint64_t id : files_.threads()) {
    const std::string facts = files_.text("task/" + std::to_string(id) + "/status", 4096);
    const size_t at = facts.find("\nNSpid:");
    const size_t end = at == facts.npos ? at : facts.find('\n', at + 1);
    const size_t last = end == facts.npos ? end : facts.find_last_of("\t ", end);
    if (last != facts.npos) numbers_[strtoull(facts.c_str() + last, nullptr, 10)] = id;
  }
  return numbers_.try_emplace(number_there, number_there).first->second;
}

// What a thread waits for; kReady: it runs, or wants a processor.
State SampledProcess::sleeps_in(const Thread& t) const {
  const frame_layout& frames = interpreter_.layout.frames;
  return state_of_call(again(t.call), frames.gil, frames.gil_bytes, [&](int fd) { return files_.is_file(fd); });
}

bool SampledProcess::look_at(uintptr_t at, Thread& t, int64_t now) {
  const int64_t cpu = t.cpu_ns();
  if (cpu < 0 || !t.listed) {
    if (t.seen_cpu >= 0) row(t, now, t.seen_cpu);
    return false;
  }
  const bool ran = cpu != t.seen_cpu;
  if (ran) t.changed_ns = now;
  // Who has not run since still sleeps in the same.
  if (ran || t.sleeps == kReady || now - t.since_ns >= kWaitingRowNs) t.sleeps = sleeps_in(t);
  const bool wants_processor = t.sleeps == kReady;
  if (!ran && (!wants_processor || now - t.changed_ns > kTickNs)) {  // it has done nothing since
    if (t.sleeps != t.state || now - t.since_ns >= kWaitingRowNs) {
      t.state = t.sleeps;
      row(t, now, t.cpu);
    }
    t.last_look_ns = now;
    return true;
  }
  if (t.last_look_ns > t.since_ns) row(t, t.last_look_ns, t.cpu);  // what it waited until then
  t.seen_cpu = cpu;
  if (!read(at, t, 2 * (cpu - t.cpu) > now - t.since_ns)) {
    out_.count("samples_not_read");
    t.has_stack = false, t.line = 0, t.state = kPython;
    t.known = {};
  }
  // It ran since, and does not now: what it did then is not to be seen. Its CPU time counts for the next look that sees
  // it run.
  if (!wants_processor) t.state = t.sleeps;
  row(t, now, wants_processor ? cpu : t.cpu);
  return true;
}

// `had_processor`: it mostly ran since the sample before.
bool SampledProcess::read(uintptr_t at, Thread& t, bool had_processor) {
  const PythonFrame inner = t.stack.frames.empty() ? PythonFrame{} : t.stack.frames[0];
  const uintptr_t instruction = t.stack.instruction;
  Registers registers;
  functions_.clear();
  t.state = kNative, t.has_stack = false, t.line = 0;
  bool copied = false;
  {
    std::optional<ThreadStop> stop;
    if (native_ && t.sleeps == kReady) {
      stop.emplace(pid_t(t.id));
      copied = stop->read(registers) && frames_.copy(registers);
    } else if (native_) {
      copied = sleeping(again(t.call), registers) && frames_.copy(registers);
    }
    if (interpreter_.main && !read_python(at, t)) return false;
  }
  if (native_ && !copied) out_.count("native_stacks_not_read");
  if (t.stack.frames.empty()) {  // between Python's beginning and the thread's, or without Python
    t.known = {};
    if (copied) add_native(t, registers);
    return true;
  }
  bool inside = !t.stack.moved;
  for (int i = 0; inside && i < kLooks; i++) inside = stacks_.still_there(t.stack);
  // One that waits for a processor stays where it is, too: in C code only if that is the very place where it was
  // before.
  if (!had_processor && (t.stack.frames[0] != inner || t.stack.instruction != instruction)) inside = false;
  t.state = t.stack.collects ? kCollecting : inside ? kNative : kPython;
  if (stacks_.codes(t.stack, t.known) == CodesRead::kNot) return false;
  t.line = stacks_.line(t.stack);
  if (copied && t.state == kNative) return add_native(t, registers), true;
  t.call_stack = call_stack(t), t.has_stack = true;
  return true;
}

bool SampledProcess::read_python(uintptr_t at, Thread& t) {
  return stacks_.read(interpreter_.main, at, t.stack) && (!t.stack.cut || t.stack.frames.size() == kMostFrames);
}

// The functions of C code on the stack that was copied: those in the innermost function of Python, all without Python.
void SampledProcess::add_native(Thread& t, const Registers& registers) {
  bool found, cut;
  const bool python = !t.stack.frames.empty();
  frames_.unwind(registers, python ? interpreter_.evaluates : 0, functions_, found, cut);
  // Builds that jump from instruction to instruction have no such function on the stack: what other files have in
  // there was called by the interpreter, for the innermost function of Python.
  if (python && !found) {
    const auto own = std::ranges::find_if(functions_, [&](auto at) { return frames_.file(at) == interpreter_.file; });
    functions_.erase(own == functions_.end() ? functions_.begin() : own, functions_.end());
  }
  if (cut) out_.count("native_stacks_cut");
  t.call_stack = call_stack(t), t.has_stack = python || !functions_.empty();
}

uint32_t SampledProcess::call_stack(const Thread& t) {
  const auto& codes = t.known.codes;
  key_.clear();
  for (const Code* code : codes) key_.append(reinterpret_cast<const char*>(&code->number), sizeof code->number);
  key_.push_back(char(t.stack.cut));
  for (const uintptr_t function : functions_) key_ += frames_.label(function) + '\n';
  if (const auto known = texts_.find(key_); known != texts_.end()) return known->second;
  std::string lines = t.stack.cut ? "..." : "";
  for (size_t i = codes.size(); i-- > 0;) lines += (lines.empty() ? "" : "\n") + codes[i]->label;
  for (size_t i = functions_.size(); i-- > 0;) lines += (lines.empty() ? "" : "\n") + frames_.label(functions_[i]);
  if (text_bytes_ + lines.size() > kMostTextBytes) {
    out_.count("texts_folded");
    return out_.text("<other texts>");
  }
  text_bytes_ += lines.size();
  return texts_[key_] = out_.text(lines);
}

void SampledProcess::row(Thread& t, int64_t now, int64_t cpu) {
  if (now <= t.since_ns) return;
  TableRow row(table_);
  row.set(schema::samples::time_ns, now);
  if (t.has_stack) row.set(schema::samples::call_stack, t.call_stack);
  row.set(schema::samples::state, state_text_[t.state]);
  if (t.line) row.set(schema::samples::line, t.line);
  row.set(schema::samples::period_ns, now - t.since_ns);
  row.set(schema::samples::cpu_ns, cpu - t.cpu);
  out_.row(t.location, row);
  samples_++;
  t.since_ns = now, t.cpu = cpu;
}

void SampledProcess::describe(std::string description_json, std::string note_json) {
  description_.description_json = std::move(description_json), description_.note_json = std::move(note_json);
}

void SampledProcess::finish(bool over) {
  for (auto& [at, thread] : threads_)
    if (thread->seen_cpu >= 0) row(*thread, last_ns_, thread->seen_cpu);
  threads_.clear();
  description_.ended_ns = last_ns_;
  out_.finish(description_, over ? "closed" : "left");
}

}  // namespace strobe

// The detector finds loops in a window of the latest events, with what is known of the calls that hold them.
#include "structure/detector.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <tuple>

#include "tests/check.h"

using namespace strobe::structure;

namespace {

enum Node : uint32_t {
  kMain,
  kRequest,
  kPrepare,
  kToken,
  kAttention,
  kNorm,
  kFeed,
  kFinish,
  kSend,
  kReduce,
  kFirstOperator = 100,
  kOnce = 1000
};

// A thread that calls functions, operators and MPI, one after the other; analyses are made when they are due.
class Thread {
 public:
  void enter(uint32_t node) {
    now_ns_ += 100'000;
    calls_ += node != kMain;
    if (node == kSend || node == kReduce) detector.set_mpi(node, node);
    if (node >= kFirstOperator && node < kOnce)
      detector.operator_began(node, now_ns_, open_++);
    else
      detector.call_began(node, now_ns_, open_++);
    if (!detector.due()) return;
    if (auto found = detector.analyse(now_ns_)) {
      choice = std::move(found);
      ++accepted;
      calls_when_accepted_ = calls_;
      detector.believe(&*choice);
    }
  }
  void leave(int64_t took_ns = 1'000'000) {
    now_ns_ += took_ns;
    --open_;
  }
  void call(uint32_t node, int64_t took_ns = 1'000'000) {
    enter(node);
    leave(took_ns);
  }
  void work(int64_t ns) { now_ns_ += ns; }
  int64_t now_ns() const { return now_ns_; }
  uint64_t calls() const { return calls_; }
  uint64_t calls_when_accepted() const { return calls_when_accepted_; }

  Detector detector;
  std::optional<Choice> choice;
  int accepted = 0;

 private:
  size_t open_ = 0;
  uint64_t calls_ = 0, calls_when_accepted_ = 0;
  int64_t now_ns_ = 0;
};

// Requests of a varying number of tokens, each with so many operators, behind so many calls that come but once.
void a_function_that_holds_a_varying_loop_is_the_step(uint32_t before, uint32_t operators) {
  Thread thread;
  thread.enter(kMain);
  for (uint32_t k = 0; k < before; ++k) thread.call(kOnce + k, 1000);
  std::mt19937 random(5);
  for (size_t requests = 4000; requests > 0; --requests) {
    thread.enter(kRequest);
    thread.call(kPrepare);
    for (size_t token = 3 + random() % 22; token > 0; --token) {
      thread.enter(kToken);
      for (uint32_t k = 0; k < operators; ++k) thread.call(kFirstOperator + k);
      for (const Node part : {kAttention, kNorm, kFeed}) thread.call(part);
      thread.leave();
    }
    thread.call(kFinish);
    thread.leave();
  }
  CHECK(thread.choice && !thread.choice->among_operators && thread.choice->enclosing);
  const uint32_t marker = thread.choice->marker.target;  // in a window that begins within a request, it may be its end
  CHECK(marker == kRequest || marker == kPrepare || marker == kFinish);
}

// A report after every eighth sweep has more in it than a sweep; the same call of main() holds both.
void a_report_every_so_often_is_not_a_step(uint32_t before) {
  Thread thread;
  thread.enter(kMain);
  for (uint32_t k = 0; k < before; ++k) thread.call(kOnce + k, 1000);
  for (int number = 0; number < 60'000; ++number) {
    thread.enter(kRequest);
    for (const Node part : {kPrepare, kFinish}) thread.call(part);
    thread.leave();
    if (number % 8 == 0)
      for (const Node part : {kToken, kAttention, kNorm, kFeed}) thread.call(part, 10'000);
  }
  CHECK(thread.accepted == 1 && thread.choice->marker.target != kToken && thread.choice->marker.is_node());
  CHECK(thread.choice->reason.find("(each does the same, and something else is done every 8: ") != std::string::npos);
}

// Ten sweeps lie between what begins an iteration and what ends it: a loop in a loop, of which the last one has not
// come to its end yet. It stays the step when its beginning has left the window.
void a_loop_with_work_before_and_behind_it_is_the_step() {
  Thread thread;
  thread.enter(kMain);
  for (int number = 0; number < 40'000; ++number) {
    thread.call(kPrepare, 10'000);
    for (int sweep = 0; sweep < 10; ++sweep) thread.call(kToken);
    thread.call(kFinish, 10'000);
  }
  CHECK(thread.accepted == 1 && thread.choice->marker.target != kToken);
}

// Every eighth call waits for other ranks: that is not work, and no iteration of its own.
void waiting_for_other_ranks_is_not_a_step() {
  Thread thread;
  for (int number = 0; number < 3000; ++number) {
    thread.work(4'000'000);
    thread.call(kSend);
    thread.detector.mpi_ended(1'000'000);
    if (number % 8 != 7) continue;
    thread.call(kReduce, 200'000'000);
    thread.detector.mpi_ended(200'000'000);
  }
  CHECK(thread.choice && thread.choice->marker.target == kSend && thread.choice->marker.is_node());
}

// Ten calls a second, of a loop that begins as soon as the program does: it is believed as soon as a fast one.
void a_slow_loop_is_found_within_ten_seconds() {
  Thread thread;
  while (!thread.accepted && thread.now_ns() < 10'000'000'000)
    for (const Node part : {kPrepare, kToken, kSend, kFinish}) thread.call(part, 100'000'000);
  CHECK(thread.accepted == 1 && thread.now_ns() > 5'000'000'000);
}

// The source calls a function three times in each iteration of a loop, after once before it.
void calls_in_a_row_are_one_step_where_the_source_makes_them_in_one_iteration() {
  const SourceCode main("main", "sweep range (sweep sweep sweep)"), sweep("sweep", "");
  Thread thread;
  thread.detector.ask_for_code([&](uint32_t node) { return node == kMain ? &main : &sweep; });
  thread.enter(kMain);
  thread.call(kToken, 20'000'000);
  while (!thread.accepted) {
    CHECK(thread.calls() < 10'000);
    for (int k = 0; k < 3; ++k) thread.call(kToken, 20'000'000);
  }
  CHECK(thread.choice->marks.every == 3 && thread.choice->marker.target == kToken);
  // Which of the three was called last, when the loop was believed in.
  CHECK(thread.choice->marks.since == (thread.calls_when_accepted() - 1) % 3);
  CHECK(thread.choice->iterations == (thread.calls_when_accepted() - 1 + 2) / 3);
}

// In some iterations something is done in front of what each of them does first.
void a_step_begins_with_what_is_done_at_times_in_front_of_it() {
  const SourceCode main("main", "range (prepare? sweep)"), sweep("sweep", ""), prepare("prepare", "");
  Thread thread;
  thread.detector.ask_for_code([&](uint32_t node) {
    return node == kMain ? &main : node == kToken ? &sweep : &prepare;
  });
  thread.enter(kMain);
  std::vector<int64_t> begins;
  for (int number = 0; !thread.accepted; ++number) {
    CHECK(thread.calls() < 10'000);
    begins.push_back(thread.now_ns() + 100'000);
    if (number % 10 == 0) thread.call(kPrepare, 50'000'000);
    if (!thread.accepted) thread.call(kToken, 20'000'000);
  }
  CHECK(thread.choice->marker.target == kToken && thread.choice->in_front == std::vector<uint32_t>{kPrepare});
  CHECK(std::ranges::equal(thread.choice->times_ns, begins));
}

}  // namespace

// A few layers are made, something is imported for a long time, and batches are made: not the loop that the program is
// about. The same for as long as the import is one.
void a_pause_is_not_a_part_of_a_loop() {
  for (const bool for_long : {false, true}) {
    Thread thread;
    thread.enter(kMain);
    for (int made = 0; made < (for_long ? 20'000 : 900); ++made) {
      if (made == 10) thread.work(6'000'000'000);
      thread.call(kFirstOperator, 200'000);
      thread.call(kFirstOperator + 1, 200'000);
    }
    CHECK(thread.choice.has_value() == for_long);
  }
}

// An optimizer that warms up for a few steps, then another one: the second one marks the steps, though it is not rarer.
void the_optimizer_that_is_used_for_longer_marks_the_steps() {
  Thread thread;
  thread.enter(kMain);
  for (const auto& [name, steps, node] : {std::tuple("Warm.step", 6, kOnce + 1), {"Adam.step", 100, kOnce + 2}}) {
    const uint32_t anchor = thread.detector.add_anchor(LoopKind::optimizer, name);
    thread.detector.set_anchor(uint32_t(node), anchor);
    for (int step = 0; step < steps; ++step) {
      for (uint32_t k = 0; k < 5; ++k) thread.call(kFirstOperator + k);
      thread.call(uint32_t(node));
      thread.detector.anchor_ended(anchor, thread.now_ns());
    }
  }
  CHECK(thread.choice && thread.detector.anchor_name(thread.choice->anchor) == "Adam.step");
}

// A step of PyTorch's profiler around two of an engine: the latter are the steps.
void marks_of_an_engine_count_more_than_those_of_the_profiler() {
  Thread thread;
  thread.enter(kMain);
  const uint32_t profiler = thread.detector.add_anchor(LoopKind::range, "ProfilerStep#"),
                 engine = thread.detector.add_anchor(LoopKind::range, "step[]");
  thread.detector.set_anchor(kOnce + 1, profiler);
  thread.detector.set_anchor(kOnce + 2, engine);
  for (int outer = 0; outer < 60; ++outer) {
    thread.enter(kOnce + 1);
    for (int inner = 0; inner < 2; ++inner) {
      thread.enter(kOnce + 2);
      for (uint32_t k = 0; k < 5; ++k) thread.call(kFirstOperator + k);
      thread.leave();
      thread.detector.anchor_ended(engine, thread.now_ns());
    }
    thread.leave();
    thread.detector.anchor_ended(profiler, thread.now_ns());
  }
  CHECK(thread.choice && thread.detector.anchor_name(thread.choice->anchor) == "step[]");
}

// A loop is believed in at any moment, in the middle of an iteration mostly: it begins with its first call all the
// same, where the source has that in the loop only. Which of two branches an iteration takes, the source leaves open.
void a_loop_begins_with_its_first_call_whenever_it_is_believed_in(uint32_t before, bool in_loop_only) {
  const SourceCode main("main", in_loop_only ? "range (prepare? token? attention? norm? finish?)"
                                             : "prepare range (token? attention? norm? finish? prepare?)");
  const SourceCode parts[] = {{"prepare", ""}, {"token", ""}, {"attention", ""}, {"norm", ""}, {"finish", ""}};
  const Node nodes[] = {kPrepare, kToken, kAttention, kNorm, kFinish};
  Thread thread;
  thread.detector.ask_for_code([&](uint32_t node) -> const SourceCode* {
    if (node == kMain) return &main;
    const auto at = std::ranges::find(nodes, node);
    return at == std::end(nodes) ? nullptr : &parts[at - std::begin(nodes)];
  });
  thread.enter(kMain);
  for (uint32_t k = 0; k < before; ++k) thread.call(kOnce + k, 1000);
  while (!thread.accepted) {
    CHECK(thread.calls() < 100'000);
    for (const Node part : nodes)
      if (!thread.accepted) thread.call(part, 4'000'000);
  }
  const uint32_t marker = thread.choice->marker.target;
  CHECK(thread.choice->marker.is_node() && (marker == kPrepare || (!in_loop_only && marker == kToken)));
}

int main() {
  a_pause_is_not_a_part_of_a_loop();
  the_optimizer_that_is_used_for_longer_marks_the_steps();
  marks_of_an_engine_count_more_than_those_of_the_profiler();
  for (uint32_t before = 0; before < 5; ++before) {
    a_loop_begins_with_its_first_call_whenever_it_is_believed_in(before, true);
    a_loop_begins_with_its_first_call_whenever_it_is_believed_in(before, false);
  }
  a_function_that_holds_a_varying_loop_is_the_step(0, 0);
  a_function_that_holds_a_varying_loop_is_the_step(0, 10);
  a_function_that_holds_a_varying_loop_is_the_step(150'000, 0);  // main() has left the window before they begin
  a_function_that_holds_a_varying_loop_is_the_step(150'000, 10);
  for (const uint32_t before : {0, 150'000}) a_report_every_so_often_is_not_a_step(before);
  a_loop_with_work_before_and_behind_it_is_the_step();
  waiting_for_other_ranks_is_not_a_step();
  a_slow_loop_is_found_within_ten_seconds();
  calls_in_a_row_are_one_step_where_the_source_makes_them_in_one_iteration();
  a_step_begins_with_what_is_done_at_times_in_front_of_it();
  return 0;
}

#include "core/folding/main_loop.h"

#include <algorithm>

#include "core/spans/throttle.h"
#include "include/strobe.h"

namespace strobe {

using structure::Choice;
using structure::LoopKind;
using structure::Mark;

namespace {

constexpr size_t kMostLoops = 8;
constexpr int64_t kSilenceIntervals = 4;         // longest intervals without a mark ...
constexpr int64_t kLeastSilenceNs = 2000000000;  // ... and at least so long: the loop may have ended

// Ranges and zero_grad begin an iteration, all other anchors end one.
bool begins_iteration(LoopKind kind) { return kind == LoopKind::range || kind == LoopKind::zero_grad; }

}  // namespace

MainLoop::MainLoop(PathFactsTable& facts, RegionTable& regions, PathTable& paths, structure::Detector& detector,
                   structure::Cutter& cutter, Accepted accepted)
    : facts_(facts),
      regions_(regions),
      paths_(paths),
      detector_(detector),
      cutter_(cutter),
      accepted_(std::move(accepted)) {
  detector_.ask_for_code([this](uint32_t node) { return code_of(node); });
  detector_.ask_for_names([this](uint32_t node) {
    return node < region_of_node_.size() ? regions_.name_of(region_of_node_[node]).first : std::string();
  });
  detector_.ask_for_throttled([this](uint32_t node) {
    const uint32_t region = node < region_of_node_.size() ? region_of_node_[node] : 0;
    return region && region < Throttle::kRegions && __atomic_load_n(&strobe_throttle_flags()[region], __ATOMIC_RELAXED);
  });
}

const structure::SourceCode* MainLoop::code_of(uint32_t node) {
  if (node >= region_of_node_.size() || !region_of_node_[node]) return nullptr;
  const uint32_t region = region_of_node_[node];
  auto known = codes_.find(region);
  if (known == codes_.end())
    known = codes_.try_emplace(region, regions_.name_of(region).first, regions_.loops_of(region)).first;
  return &known->second;
}

// Where calls of MPI come from is written behind their peer (strobe.steps.thread_spans).
uint32_t MainLoop::any_peer(uint32_t path, uint32_t node) {
  const uint32_t region = paths_.region(path);
  const std::string file = regions_.file_of(region);
  const size_t place = file.rfind("; ");
  return calls_of_mpi_
      .try_emplace({paths_.parent(path), regions_.name_of(region).first, file.substr(place + 1 ? place + 2 : 0)}, node)
      .first->second;
}

void MainLoop::entered(uint32_t path, uint32_t node, size_t depth, int64_t ns, uint64_t position) {
  PathFacts& f = facts_.of(path);
  if (!f.node) {
    f.node = node + 1;
    if (region_of_node_.size() <= node) region_of_node_.resize(node + 1, 0);
    region_of_node_[node] = paths_.region(path);
    if (f.anchor != kNoAnchor) detector_.set_anchor(node, f.anchor);
    if (f.iteration) detector_.set_iteration(node);
    if (f.mpi) detector_.set_mpi(node, any_peer(path, node));
  }
  if (f.part == structure::kDataWait && f.activity()) open_wait_ = {ns, 0, position};
  const Mark here{ns, ns, position, position};
  if (f.torch || !f.recursive) {
    uint32_t& previous = f.torch ? previous_operator_ : previous_call_;
    if (choice_) {
      const auto is = [&](uint32_t event, uint32_t wanted) {
        return (choice_->without_peer ? detector_.any_peer(event) : event) == wanted;
      };
      if (choice_->by_level && choice_->among_operators == f.torch && is(node, choice_->marker.target) &&
          (choice_->marker.is_node() || is(previous, choice_->marker.source))) {
        if (choice_->anchor == Choice::no_anchor) {
          if (choice_->marks.always()) mark(here);
        } else if (anchored_) {
          mark(last_anchor_);  // the last anchor of an iteration ends it
        }
      } else if (std::ranges::find(choice_->in_front, node) != choice_->in_front.end()) {
        if (choice_->marks.at_times()) mark(here);
      } else if (!choice_->by_level && f.anchor == choice_->anchor && begins_iteration(choice_->kind)) {
        mark(here);
      }
    }
    previous = node;
    if (f.torch)
      detector_.operator_began(node, ns, depth);
    else
      detector_.call_began(node, ns, depth);
  }
  if (detector_.due()) analyse(ns, here);
}

void MainLoop::closed(uint32_t path, int64_t start_ns, uint64_t start_position, int64_t end_ns, uint64_t position) {
  const PathFacts& f = facts_.of(path);
  if (start_position == open_wait_.position) open_wait_ = structure::kNowhere;
  if (f.part >= 0 && f.activity()) {
    cutter_.add(
        {start_ns, end_ns, start_position, path, paths_.region(path), structure::Part(f.part), f.change, f.in_model});
    if (f.part == structure::kBackward) detector_.training_seen();
  }
  if (f.function)
    cutter_.add_call({start_ns, end_ns}, path, f.module);
  else if (f.part == structure::kOptimizer && f.container)
    cutter_.add_closure({start_ns, end_ns});
  if (f.mpi) detector_.mpi_ended(end_ns - start_ns);
  if (f.anchor == kNoAnchor) return;
  const Mark here{start_ns, end_ns, start_position, position};
  detector_.anchor_ended(f.anchor, end_ns);
  if (choice_ && f.anchor == choice_->anchor) {
    if (choice_->by_level)
      last_anchor_ = here, anchored_ = true;
    else if (!begins_iteration(choice_->kind) && detector_.anchors_ended(f.anchor) % choice_->group == 0)
      mark(here);
  }
  if (detector_.due()) analyse(end_ns, here);
}

void MainLoop::mark(const Mark& mark) {
  marks_.push_back(mark);
  anchored_ = false;
  longest_ns_ = std::max(longest_ns_, mark.end_ns - last_mark_ns_);
  last_mark_ns_ = mark.end_ns;
  silent_ = false;
}

void MainLoop::analyse(int64_t ns, const Mark& here) {
  const auto choice = detector_.analyse(ns);
  if (!choice) return;
  if (records_.size() < kMostLoops) accept(*choice, ns, here);
  detector_.believe(&*choice);
}

void MainLoop::accept(const Choice& choice, int64_t ns, const Mark& here) {
  if (!records_.empty()) records_.back().ended_ns = ns;
  choice_ = std::make_unique<Choice>(choice);
  structure::LoopRecord record;
  record.number = uint32_t(records_.size());
  record.kind = choice.kind;
  if (choice.anchor != Choice::no_anchor)
    record.name = detector_.anchor_name(choice.anchor);
  else if (choice.marker.target < region_of_node_.size())
    record.name = regions_.name_of(region_of_node_[choice.marker.target]).first;
  record.accepted_ns = ns;
  record.accepted_iteration = choice.iterations;
  record.reason = choice.reason;
  record.confidence = choice.confidence;
  records_.push_back(std::move(record));

  marks_.clear();
  silent_ = false;
  last_mark_ns_ = ns;
  longest_ns_ = choice.longest_ns;
  last_anchor_ = here;
  anchored_ = false;
  cutter_.begin(choice.kind, here);
  cutter_.learn(choice.by_level ? std::span<const int64_t>() : choice.times_ns);
  accepted_(choice);
}

void MainLoop::look_for_silence(int64_t now_ns) {
  if (silent_ || now_ns - last_mark_ns_ <= std::max(kSilenceIntervals * longest_ns_, kLeastSilenceNs)) return;
  silent_ = true;
  detector_.believe(nullptr);
}

}  // namespace strobe

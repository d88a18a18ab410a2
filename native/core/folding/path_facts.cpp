#include "core/folding/path_facts.h"

#include "core/rings/ring.h"

namespace strobe {

PathFactsTable::PathFactsTable(RegionTable& regions, PathTable& paths, structure::Detector& detector)
    : regions_(regions), paths_(paths), detector_(detector) {
  others_.signature = structure::Signature::of_region(kOverflowRegion);
}

void PathFactsTable::learn(uint32_t path) {
  const uint32_t region = paths_.region(path), parent = paths_.parent(path);
  const auto [name, paradigm] = regions_.name_of(region);
  facts_.emplace_back();
  PathFacts& f = facts_.back();
  const structure::SourceLoops source(paradigm == STROBE_PYTHON ? regions_.loops_of(region) : std::string());
  outdated_ |= makers_.add(parent, name, paradigm, source);
  f.part = makers_.makes(path) ? int8_t(structure::kDataWait) : structure::part_of_region(name, paradigm);
  f.change = structure::change_of_region(name);
  const uint8_t role = regions_.kind_of(region).second;
  f.kind = structure::kind_of_region(name, paradigm, role);
  f.gpu_kind = structure::gpu_kind_of_region(name, role);
  f.module = structure::is_module_call(name, paradigm);
  f.in_model = structure::is_model_call(name, paradigm) || (parent != kNoPath && facts_[parent].in_model);
  f.iteration = structure::is_iteration(name, paradigm);
  f.function = structure::is_function(paradigm);
  f.torch = paradigm == STROBE_TORCH;
  f.mpi = structure::is_of_ranks(paradigm);
  uint32_t caller = parent;  // a function, not a loop of it
  while (caller != kNoPath && facts_[caller].iteration) caller = paths_.parent(caller);
  if (paradigm == STROBE_PYTHON || paradigm == STROBE_USER)
    f.signature = structure::Signature::of_function(region, caller == kNoPath ? 0 : paths_.region(caller));
  else if (structure::is_of_ranks(paradigm))
    f.signature = structure::Signature::of_path(path);
  else
    f.signature = structure::Signature::of_region(region);
  using structure::LoopKind;
  if (const LoopKind kind = structure::anchor_of_region(name, paradigm); kind != LoopKind::structure) {
    const uint32_t anchor = detector_.add_anchor(kind, structure::anchor_name(name));
    if (anchor < kNoAnchor) f.anchor = uint16_t(anchor);
  }
  if (parent != kNoPath) f.function_above = facts_[parent].function ? parent : facts_[parent].function_above;
  for (uint32_t above = parent; above != kNoPath; above = paths_.parent(above)) {
    PathFacts& a = facts_[above];
    if (paths_.region(above) == region) f.recursive = true;
    if (a.anchor == f.anchor) f.anchor = kNoAnchor;  // an optimizer around another counts once
  }
  open_containers(path);
  f.covered = is_covered(parent);
}

// Users put ranges around a whole step; some optimizers run the backward pass.
void PathFactsTable::open_containers(uint32_t path) {
  const int8_t part = facts_[path].part;
  if (part < 0) return;
  for (uint32_t above = paths_.parent(path); above != kNoPath; above = paths_.parent(above)) {
    PathFacts& a = facts_[above];
    const bool other = (a.part == structure::kForward && part != structure::kForward) ||
                       (a.part == structure::kOptimizer && part == structure::kBackward);
    if (other && !a.container) a.container = true, outdated_ = true;
  }
}

void PathFactsTable::update_parts() {
  if (!outdated_) return;
  for (uint32_t path : makers_.iterators()) {
    facts_[path].part = makers_.makes(path) ? int8_t(structure::kDataWait) : structure::kNoPart;
    open_containers(path);
  }
  // Parents have smaller numbers than their children.
  for (uint32_t path = 0; path < facts_.size(); path++) facts_[path].covered = is_covered(paths_.parent(path));
  outdated_ = false;
}

}  // namespace strobe

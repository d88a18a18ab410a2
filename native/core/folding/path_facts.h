// path_facts.h - what the recorder knows of each call path: what its events are called in the flow graph, which part of
// a step it is, and whether it marks iterations. Learned from names, once per path; whether a generator makes batches,
// from the paths around it.
#pragma once
#include <stdint.h>
#include <deque>

#include "core/spans/location_builder.h"
#include "core/spans/region_table.h"
#include "structure/batch_makers.h"
#include "structure/cells.h"
#include "structure/detector.h"
#include "structure/gpu_lanes.h"
#include "structure/iterations.h"
#include "structure/region_names.h"

namespace strobe {

constexpr uint16_t kNoAnchor = 0xFFFF;

struct PathFacts {
  structure::Signature signature{0};
  uint32_t function_above = kNoPath;  // the nearest path above that is a function
  uint32_t node = 0;                  // in the main thread's graph, + 1; 0: not seen there
  uint16_t anchor = kNoAnchor;
  int8_t part = structure::kNoPart;
  bool container : 1 = false;  // holds other parts of the step
  bool covered : 1 = false;    // an activity lies above
  bool function : 1 = false, torch : 1 = false, mpi : 1 = false, recursive : 1 = false;
  bool module : 1 = false;     // the call of a module
  bool in_model : 1 = false;   // in such a call, or one, but not of a loss
  bool iteration : 1 = false;  // of a loop that calls nothing
  structure::Change change = structure::Change::none;
  structure::Kind kind = structure::kHost;
  structure::GpuKind gpu_kind = structure::kNoGpuWork;
  bool activity() const { return part >= 0 && !container && !covered; }
};
static_assert(sizeof(PathFacts) == 24);  // there are many

class PathFactsTable {
 public:
  PathFactsTable(RegionTable& regions, PathTable& paths, structure::Detector& detector);
  // Memory stays bounded: in a program with more paths the later ones do not belong to a loop.
  PathFacts& of(uint32_t path) {
    if (path >= kMost) return others_;
    while (path >= facts_.size()) learn(uint32_t(facts_.size()));
    return facts_[path];
  }
  // Updates `part` and `covered` where a path has turned out to make batches, or to hold other parts of the step.
  void update_parts();
  void clear() { facts_.clear(), makers_.clear(); }

 private:
  static constexpr uint32_t kMost = 1u << 16;
  void learn(uint32_t path);
  void open_containers(uint32_t path);
  bool is_covered(uint32_t parent) const {
    return parent != kNoPath && (facts_[parent].covered || facts_[parent].activity());
  }
  RegionTable& regions_;
  PathTable& paths_;
  structure::Detector& detector_;
  std::deque<PathFacts> facts_;
  PathFacts others_;
  structure::BatchMakers makers_;
  bool outdated_ = false;  // `part` or `covered` of some paths
};

}  // namespace strobe

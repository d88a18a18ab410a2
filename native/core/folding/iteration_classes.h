// iteration_classes.h - which class an iteration belongs to: by what it does beyond the usual.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "core/folding/iteration_figures.h"
#include "structure/cutter.h"

namespace strobe {

// Durations of the iterations of a class.
class Durations {
 public:
  void add(int64_t duration_ns);
  uint64_t count() const { return count_; }
  int64_t median() const { return sorted_ns_.empty() ? 0 : sorted_ns_[sorted_ns_.size() / 2]; }  // of the latest

 private:
  uint64_t count_ = 0;
  std::vector<int64_t> latest_ns_, sorted_ns_;  // a ring, and the same by size
  size_t oldest_ = 0;                           // in the ring
};

class IterationClasses {
 public:
  IterationClasses(PathFactsTable& facts, PathTable& paths) : facts_(facts), paths_(paths) {}
  // A loop was accepted whose latest iterations began at these times.
  void begin_loop(const std::vector<int64_t>& times_ns);
  // Whether at most half of the iterations call the function at a call path.
  static bool is_rare(const IterationFigures& figures, uint32_t path);
  // The class of the iteration that has ended: the functions that at most half of the iterations call, and that cost
  // enough.
  uint32_t of(const IterationFigures& figures, const structure::Cutter& cutter, const structure::Cut& from,
              int64_t end_ns);
  const Durations& durations(uint32_t class_id) const { return durations_[class_id]; }
  void add_duration(uint32_t class_id, int64_t duration_ns);
  const std::vector<structure::IterationClass>& all() const { return classes_; }

 private:
  uint32_t number_of(structure::IterationClass regions);
  PathFactsTable& facts_;
  PathTable& paths_;
  std::vector<structure::IterationClass> classes_;
  std::map<structure::IterationClass, uint32_t> number_of_;  // by regions in ascending order
  std::deque<Durations> durations_;
  Durations of_all_;
  uint64_t validations_ = 0;
};

}  // namespace strobe

// Alternation classes: items that occur equally often and strictly in turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "structure/occurrences.h"

namespace strobe::structure {

struct AlternationClass {
  static constexpr uint32_t no_node = 0xFFFFFFFFu;
  uint32_t first = 0;  // its earliest member stands for it (index of a candidate, as below)
  uint32_t members = 0;
  uint32_t node = no_node;  // its earliest node, if it has one
};

struct Alternation {
  std::vector<AlternationClass> classes;  // in order of (count, first position)
  std::vector<uint32_t> class_of;         // by candidate
};

// Candidates in the order of Occurrences. Each joins the first class that it alternates with, among the latest
// `most_open` of its count, or else begins one.
Alternation alternation_classes(std::span<const Candidate> candidates, uint32_t most_open);

}  // namespace strobe::structure

#include "structure/batch_makers.h"

#include "include/strobe.h"
#include "structure/region_names.h"

namespace strobe::structure {

bool BatchMakers::add(uint32_t parent, std::string_view name, uint8_t paradigm, const SourceLoops& source) {
  const int8_t part = part_of_region(name, paradigm);
  const bool module = is_module_call(name, paradigm), loads = part == kDataWait;
  const bool works = module || part == kBackward || part == kOptimizer, operators = part >= 0;
  const bool yields = name.ends_with(".__next__") || (source.yields() && !name.ends_with("<genexpr>"));
  Path path{parent, paradigm == STROBE_PYTHON && yields, source.any(), module || loads, false, false, false, false};
  if (parent != kNone) path.within |= paths_[parent].within;
  if (path.iterator) iterators_.push_back(uint32_t(paths_.size()));
  paths_.push_back(path);
  bool turned = loads && feed_from_loader(parent), own = operators;
  for (uint32_t at = parent; at != kNone; at = paths_[at].parent) {
    Path& above = paths_[at];
    const bool more = (works && !above.works) || (loads && !above.loads) || (own && !above.operators);
    if (!more) break;  // then it is known of all above, too
    above.works |= works, above.loads |= loads, above.operators |= own;
    own &= !above.iterator;
    turned = true;
  }
  return turned && !iterators_.empty();
}

// Up to the function with the loop that asks for the batches.
bool BatchMakers::feed_from_loader(uint32_t path) {
  bool turned = false;
  for (; path != kNone; path = paths_[path].parent) {
    Path& asking = paths_[path];
    turned |= !asking.loader_fed;
    asking.loader_fed = true;
    if (asking.loops && !asking.iterator) break;
  }
  return turned;
}

bool BatchMakers::works_with_items(uint32_t asking) const {
  for (; asking != kNone && !paths_[asking].works; asking = paths_[asking].parent)
    if (paths_[asking].operators || (paths_[asking].loops && !paths_[asking].iterator)) return false;
  if (asking == kNone) return false;
  for (; asking != kNone; asking = paths_[asking].parent)
    if (paths_[asking].loader_fed) return false;
  return true;
}

bool BatchMakers::may_make(uint32_t at) const {
  const Path& path = paths_[at];
  return path.iterator && !path.within && !path.works && !path.loads && works_with_items(path.parent);
}

bool BatchMakers::makes(uint32_t path) const {
  if (!may_make(path)) return false;
  for (uint32_t above = paths_[path].parent; above != kNone; above = paths_[above].parent)
    if (may_make(above)) return false;
  return true;
}

}  // namespace strobe::structure

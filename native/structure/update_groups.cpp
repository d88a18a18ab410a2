#include "structure/update_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace strobe::structure {

namespace {

constexpr size_t kFewest = 6;          // updates that show a rhythm
constexpr uint32_t kMostInGroup = 12;  // updates of one step
constexpr double kRegular = 0.9;       // share of the updates that keep to the rhythm
constexpr double kLeastShare = 0.05;   // of the updates: operators that come with fewer do not make a kind
constexpr size_t kMostKinds = 64;
constexpr uint32_t kRounds = 3;  // of a rhythm; two come about by chance

constexpr double kOneBatch = 1.5;  // waits of an update that has any: a validation between updates waits more often

using Set = std::vector<uint32_t>;
constexpr uint32_t kUnfed = UINT32_MAX;

// The distinct operators between each update and the one before; kUnfed where another one waited for the data. Those of
// the first update are left out: it makes what the others use again.
std::vector<Set> operators_of(std::span<const uint32_t> ids, std::span<const uint32_t> updates,
                              std::span<const uint32_t> waits) {
  std::vector<Set> sets;
  std::map<uint32_t, size_t> used;
  std::vector<size_t> unfed;
  size_t waited = 0;
  for (size_t i = 2; i < updates.size(); i++) {
    Set set(ids.begin() + updates[i - 1], ids.begin() + updates[i]);
    const auto n = std::ranges::count_if(set, [&](uint32_t id) { return std::ranges::find(waits, id) != waits.end(); });
    waited += size_t(n);
    if (!n) unfed.push_back(sets.size());
    std::ranges::sort(set);
    set.erase(std::unique(set.begin(), set.end()), set.end());
    for (const uint32_t id : set) used[id]++;
    sets.push_back(std::move(set));
  }
  const double least = kLeastShare * double(sets.size());
  for (Set& set : sets) std::erase_if(set, [&](uint32_t id) { return double(used[id]) < least; });
  if (double(waited) <= kOneBatch * double(sets.size() - unfed.size()))
    for (const size_t i : unfed) sets[i].push_back(kUnfed);
  return sets;
}

}  // namespace

uint32_t updates_per_step(std::span<const uint32_t> ids, std::span<const uint32_t> updates,
                          std::span<const uint32_t> waits) {
  if (updates.size() < kFewest) return 1;
  const std::vector<Set> sets = operators_of(ids, updates, waits);
  std::vector<const Set*> known;  // the smallest of each kind
  std::vector<uint32_t> kinds;
  for (const Set& set : sets) {
    const auto same = std::ranges::find_if(known, [&](const Set* other) {
      return std::ranges::includes(set, *other) || std::ranges::includes(*other, set);
    });
    if (same == known.end() && known.size() == kMostKinds) return 1;
    kinds.push_back(uint32_t(same - known.begin()));
    if (same == known.end())
      known.push_back(&set);
    else if (set.size() < (*same)->size())
      *same = &set;
  }
  if (known.size() < 2) return 1;
  for (uint32_t size = 2; size <= kMostInGroup && kRounds * size <= kinds.size(); size++) {
    std::vector<std::map<uint32_t, size_t>> counts(size);  // of each kind, by place in the step
    for (size_t i = 0; i < kinds.size(); i++) counts[i % size][kinds[i]]++;
    std::set<uint32_t> usual;
    size_t kept = 0;
    for (const auto& place : counts) {
      const auto most = std::ranges::max_element(place, {}, &std::pair<const uint32_t, size_t>::second);
      usual.insert(most->first), kept += most->second;
    }
    if (usual.size() > 1 && double(kept) >= kRegular * double(kinds.size())) return size;
  }
  return kinds.size() < kRounds * kMostInGroup ? 0 : 1;
}

}  // namespace strobe::structure

#include "formats/importing/import_totals.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace strobe {
namespace {

std::mutex mutex;                     // imports may run side by side
std::vector<ImportTotals*> watching;  // a handful at most

}  // namespace

ImportTotals::ImportTotals(std::string folder) : folder_(std::move(folder)) {
  std::lock_guard lock(mutex);
  watching.push_back(this);
}

ImportTotals::~ImportTotals() {
  std::lock_guard lock(mutex);
  std::erase(watching, this);
}

std::shared_ptr<ProcessTotals> ImportTotals::of(const std::string& blocks_path) {
  const std::string folder = blocks_path.substr(0, blocks_path.rfind('/'));
  std::lock_guard lock(mutex);
  const auto at = std::ranges::find(watching, folder, &ImportTotals::folder_);
  if (at == watching.end()) return nullptr;
  return (*at)->processes_.emplace_back(std::make_shared<ProcessTotals>());
}

uint64_t ImportTotals::spans() const {
  std::lock_guard lock(mutex);
  uint64_t sum = 0;
  for (const auto& process : processes_) sum += process->spans;
  return sum;
}

std::vector<ProcessTotals::Region> ImportTotals::regions() const {
  std::lock_guard lock(mutex);
  std::map<std::pair<std::string_view, uint8_t>, ProcessTotals::Region> by_name;
  for (const auto& process : processes_)
    for (const auto& region : process->regions) {
      if (!region.count) continue;
      auto [at, added] = by_name.try_emplace({region.name, region.role}, region);
      if (!added) at->second.count += region.count, at->second.total_ns += region.total_ns;
    }
  std::vector<ProcessTotals::Region> out;
  for (auto& [name, region] : by_name) out.push_back(region);
  std::ranges::stable_sort(out, std::greater(), &ProcessTotals::Region::total_ns);
  return out;
}

}  // namespace strobe

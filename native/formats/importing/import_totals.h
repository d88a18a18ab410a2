// import_totals.h - sums by region of what an import has read so far, for whoever waits for a large file.
#pragma once
#include <stdint.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strobe {

// Of one process. Filled and read by one thread.
class ProcessTotals {
 public:
  struct Region {
    std::string name;
    uint8_t role = 0;
    uint64_t count = 0;
    int64_t total_ns = 0;  // with what the spans enclose
  };
  // Regions are numbered densely; later ones are left out: a file may give every span a name of its own.
  static constexpr uint32_t kMostRegions = 1u << 16;

  void region(uint32_t id, std::string_view name, uint8_t role) {
    if (id >= kMostRegions) return;
    if (regions.size() <= id) regions.resize(size_t(id) + 1);
    regions[id].name = name, regions[id].role = role;
  }
  void span(uint32_t region, int64_t duration_ns) {
    spans++;
    if (region >= regions.size()) return;
    regions[region].count++, regions[region].total_ns += duration_ns;
  }

  std::vector<Region> regions;  // by id
  uint64_t spans = 0;
};

// Of all processes whose block files are written into one folder while this object lives.
class ImportTotals {
 public:
  explicit ImportTotals(std::string folder);
  ~ImportTotals();
  ImportTotals(const ImportTotals&) = delete;

  // Where the process that writes `blocks_path` adds up; null where nobody wants to know.
  static std::shared_ptr<ProcessTotals> of(const std::string& blocks_path);

  uint64_t spans() const;
  // Regions with any time, those of one name and role together; the most time first.
  std::vector<ProcessTotals::Region> regions() const;

 private:
  const std::string folder_;
  std::vector<std::shared_ptr<ProcessTotals>> processes_;
};

}  // namespace strobe

#include "core/spans/region_table.h"

#include "core/rings/ring.h"

namespace strobe {

namespace {

uint64_t hash_bytes(std::string_view text, uint64_t h) {
  for (unsigned char c : text) h = (h ^ c) * 0x100000001B3ull;  // FNV-1a
  return h;
}

// Ranges of two domains (NVTX, ITT) may have the same name; a function is known by its file.
std::string_view file_or_module(std::string_view file, std::string_view module) { return file.empty() ? module : file; }

uint64_t hash_region(std::string_view name, std::string_view where, uint32_t line, uint8_t paradigm) {
  const uint64_t h = hash_bytes(where, hash_bytes(name, 0xCBF29CE484222325ull ^ paradigm));
  return h ^ (uint64_t(line) * 0x9E3779B97F4A7C15ull);
}

void write_region(Writer& w, uint32_t id, const RegionText& r) {
  w.u32(id), w.u8(r.paradigm), w.u8(r.role), w.u32(r.line), w.text(r.name), w.text(r.file), w.text(r.module);
}

void write_loops(Writer& w, uint32_t id, const RegionText& r) { w.u32(id), w.text(r.loops); }

std::string_view text_or_empty(const char* text) {
  return text ? std::string_view(text).substr(0, 4096) : std::string_view();
}

}  // namespace

RegionTable::RegionTable() {
  regions_.push_back({});  // number 0 does not stand for a region
  regions_.push_back({"<other regions>", "", "", 0, STROBE_SELF, STROBE_ROLE_OTHER});
}

uint32_t RegionTable::intern(const strobe_region_info& info, void (*save)(ChunkKind, std::string_view)) {
  std::string_view name = text_or_empty(info.name), file = text_or_empty(info.file);
  std::string_view module = text_or_empty(info.module);
  std::lock_guard lock(mutex_);
  const uint64_t hash = hash_region(name, file_or_module(file, module), info.line, info.paradigm);
  const uint32_t known = slots_.find(hash, [&](uint32_t number) {
    const RegionText& r = regions_[number];
    return r.name == name && r.file == file && r.line == info.line && r.paradigm == info.paradigm &&
           (!file.empty() || r.module == module);
  });
  if (known != Slots::empty) return known;
  // Programs that build unique names would fill the table: what comes after the limit is one region, and is
  // counted in the quality table.
  if (regions_.size() >= kRegionLimit / 16) {
    strobe_count("regions_folded", 1);
    return kOverflowRegion;
  }
  uint32_t id = uint32_t(regions_.size());
  regions_.push_back({std::string(name), std::string(file), std::string(module), info.line, info.paradigm, info.role,
                      std::string(text_or_empty(info.loops))});
  slots_.add(hash, id, [this](uint32_t number) {
    const RegionText& r = regions_[number];
    return hash_region(r.name, file_or_module(r.file, r.module), r.line, r.paradigm);
  });
  Writer w, loops;
  write_region(w, id, regions_.back());
  save(kRegionsChunk, w.bytes);
  if (!regions_.back().loops.empty()) {
    write_loops(loops, id, regions_.back());
    save(kSourceLoopsChunk, loops.bytes);
  }
  return id;
}

std::string RegionTable::file_of(uint32_t region) {
  std::lock_guard lock(mutex_);
  return regions_[region].file;
}

std::string RegionTable::place_of(uint32_t region) {
  std::lock_guard lock(mutex_);
  if (region >= regions_.size()) return {};
  const RegionText& r = regions_[region];
  if (r.file.empty()) return r.name;
  const std::string file = r.file.substr(r.file.rfind('/') + 1);
  return r.name + " (" + file + ":" + std::to_string(r.line) + ")";
}

std::pair<std::string, uint8_t> RegionTable::name_of(uint32_t region) {
  std::lock_guard lock(mutex_);
  if (region >= regions_.size()) return {};
  return {regions_[region].name, regions_[region].paradigm};
}

std::pair<uint8_t, uint8_t> RegionTable::kind_of(uint32_t region) {
  std::lock_guard lock(mutex_);
  if (region >= regions_.size()) return {};
  return {regions_[region].paradigm, regions_[region].role};
}

std::string RegionTable::loops_of(uint32_t region) {
  std::lock_guard lock(mutex_);
  return region < regions_.size() ? regions_[region].loops : std::string();
}

void RegionTable::append_all(std::string& chunks) const {
  Writer w, loops;
  uint32_t with_loops = 0;
  for (uint32_t i = 1; i < regions_.size(); i++) {
    write_region(w, i, regions_[i]);
    if (!regions_[i].loops.empty()) write_loops(loops, i, regions_[i]), with_loops++;
  }
  append_chunk(chunks, kRegionsChunk, 0, uint32_t(regions_.size() - 1), w.bytes);
  if (with_loops) append_chunk(chunks, kSourceLoopsChunk, 0, with_loops, loops.bytes);
}

}  // namespace strobe

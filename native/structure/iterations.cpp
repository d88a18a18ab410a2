#include "structure/iterations.h"

#include <algorithm>

#include "core/format/blocks.h"
#include "structure/cells.h"

namespace strobe::structure {

const char* loop_kind_name(LoopKind kind) {
  static constexpr const char* names[] = {"hint", "range", "optimizer", "zero_grad", "data_wait", "structure"};
  return names[int(kind)];
}

std::string encode_loops(const std::vector<LoopRecord>& loops) {
  Writer w;
  for (const LoopRecord& l : loops) {
    w.u32(l.number), w.u8(uint8_t(l.kind)), w.text(l.name), w.u64(uint64_t(l.accepted_ns));
    w.u64(l.accepted_iteration), w.u64(uint64_t(l.ended_ns)), w.text(l.reason), w.text(l.confidence);
  }
  return std::move(w.bytes);
}

bool decode_loops(std::string_view payload, uint32_t count, std::vector<LoopRecord>& into) {
  ByteReader c{payload};
  for (uint32_t i = 0; i < count; i++) {
    LoopRecord l;
    l.number = c.u32();
    l.kind = LoopKind(std::min<uint8_t>(c.u8(), uint8_t(LoopKind::structure)));
    l.name = c.text();
    l.accepted_ns = int64_t(c.u64());
    l.accepted_iteration = c.u64();
    l.ended_ns = int64_t(c.u64());
    l.reason = c.text(), l.confidence = c.text();
    if (!c.ok) return false;
    // A later record of a loop replaces the earlier one.
    const auto known = std::ranges::find(into, l.number, &LoopRecord::number);
    if (known != into.end())
      *known = std::move(l);
    else
      into.push_back(std::move(l));
  }
  return true;
}

// Behind the regions of all classes are the paths of all, and the calls: older traces lack both.
std::string encode_classes(const std::vector<IterationClass>& classes, const std::vector<ExtraCalls>& calls) {
  Writer w;
  for (const IterationClass& each : classes) {
    w.u32(uint32_t(each.regions.size()));
    for (uint32_t region : each.regions) w.u32(region);
  }
  for (const IterationClass& each : classes)
    for (uint32_t path : each.paths) w.u32(path);
  for (const ExtraCalls& each : calls) w.u32(each.loop), w.u32(each.path), w.u64(each.iterations), w.u64(each.worth);
  return std::move(w.bytes);
}

bool decode_classes(std::string_view payload, uint32_t first, uint32_t count, std::vector<IterationClass>& into,
                    std::vector<ExtraCalls>& calls) {
  ByteReader c{payload};
  for (uint32_t i = 0; i < count; i++) {
    IterationClass extras;
    for (uint32_t n = c.u32(); c.ok && n > 0; n--) extras.regions.push_back(c.u32());
    if (!c.ok || first + i > kMostClasses) return false;
    if (into.size() <= first + i) into.resize(first + i + 1);  // those of a damaged chunk have no extras
    into[first + i] = std::move(extras);
  }
  if (c.bytes.empty()) return true;
  for (uint32_t i = 0; i < count; i++)
    for (size_t n = into[first + i].regions.size(); n > 0; n--) into[first + i].paths.push_back(c.u32());
  for (calls.clear(); c.ok && !c.bytes.empty();) {
    const uint32_t loop = c.u32(), path = c.u32();
    const uint64_t iterations = c.u64(), worth = c.u64();
    calls.push_back({loop, path, iterations, worth});
  }
  return c.ok;
}

constexpr int kColumns = 12, kFirstPart = 8;

// Columns: loop, start minus the end before it, duration, events minus those before, path hash (number of its first
// occurrence in this chunk), class, detail, detail_ns minus start, the parts up to the optimizer; then the distinct
// hashes, a column of validations, and the cells: older traces lack the latter, or both.
std::string encode_iterations(const std::vector<IterationRecord>& iterations, const CellColumns& cells) {
  std::vector<uint64_t> columns[kColumns], hashes, validation;
  int64_t end_ns = 0, events = 0;
  for (const IterationRecord& it : iterations) {
    // A run has few paths: the last ones are found at once.
    auto known = std::find(hashes.rbegin(), hashes.rend(), it.path_hash);
    const size_t number = known == hashes.rend() ? hashes.size() : size_t(hashes.rend() - known - 1);
    if (number == hashes.size()) hashes.push_back(it.path_hash);
    const uint64_t values[kColumns] = {
        it.loop,
        zigzag(it.start_ns - end_ns),
        zigzag(it.duration_ns),
        zigzag(int64_t(it.events) - events),
        number,
        it.class_id,
        it.detail,
        it.detail == kPartDetail ? zigzag(it.detail_ns - it.start_ns) : 0,
        zigzag(it.parts_ns[kDataWait]),
        zigzag(it.parts_ns[kForward]),
        zigzag(it.parts_ns[kBackward]),
        zigzag(it.parts_ns[kOptimizer]),
    };
    for (int i = 0; i < kColumns; i++) columns[i].push_back(values[i]);
    validation.push_back(zigzag(it.parts_ns[kValidation]));
    end_ns = it.start_ns + it.duration_ns;
    events = it.events;
  }
  Writer w;
  w.u32(uint32_t(hashes.size()));
  for (int i = 0; i < kColumns; i++) append_column(w.bytes, columns[i]);
  append_column(w.bytes, hashes);
  append_column(w.bytes, validation);
  cells.append(w.bytes);
  return std::move(w.bytes);
}

bool decode_iterations(std::string_view payload, uint32_t first, uint32_t count, std::vector<IterationRecord>& into,
                       CellColumns& cells, uint32_t& next) {
  ByteReader c{payload};
  const uint32_t distinct = c.u32();
  std::vector<uint64_t> columns[kColumns], hashes, validation(count, 0);
  for (auto& column : columns)
    if (!read_column(c, count, column)) return false;
  if (!read_column(c, distinct, hashes)) return false;
  if (!c.bytes.empty() && !read_column(c, count, validation)) return false;
  const uint32_t known = std::clamp(next, first, first + count) - first;
  std::vector<int64_t> data_ns(count);
  std::ranges::transform(columns[kFirstPart + kDataWait], data_ns.begin(), [](uint64_t ns) { return unzigzag(ns); });
  if (!c.bytes.empty() && cells.size() == into.size() && !cells.read(c, data_ns, known)) return false;
  int64_t end_ns = 0, events = 0;
  for (uint32_t i = 0; i < count; i++) {
    IterationRecord it;
    it.loop = uint32_t(columns[0][i]);
    it.start_ns = end_ns + unzigzag(columns[1][i]);
    it.duration_ns = unzigzag(columns[2][i]);
    events += unzigzag(columns[3][i]);
    it.events = uint32_t(events);
    if (columns[4][i] >= hashes.size() || columns[6][i] > kAllDetail) return false;
    it.path_hash = hashes[columns[4][i]];
    it.class_id = uint32_t(columns[5][i]);
    it.detail = Detail(columns[6][i]);
    it.detail_ns = it.start_ns + unzigzag(columns[7][i]);
    it.parts_ns[kRest] = it.duration_ns;
    for (int part = kDataWait; part < kRest; part++) {
      it.parts_ns[part] = unzigzag(part == kValidation ? validation[i] : columns[kFirstPart + part][i]);
      it.parts_ns[kRest] -= it.parts_ns[part];
    }
    end_ns = it.start_ns + it.duration_ns;
    if (first + i < next) continue;
    into.push_back(it);
    next = first + i + 1;
  }
  return true;
}

}  // namespace strobe::structure

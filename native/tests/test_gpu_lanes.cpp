// The lanes of GPUs against counting nanosecond by nanosecond: random steps and activities on several streams, which
// become known bit by bit, as they do while a program runs.
#include "structure/gpu_lanes.h"

#include <algorithm>
#include <random>

#include "core/format/bytes.h"
#include "include/strobe.h"
#include "tests/check.h"

using namespace strobe;
using namespace strobe::structure;

namespace {

struct Step {
  int64_t start_ns, end_ns;
};

std::vector<Step> random_steps(std::mt19937_64& random) {
  std::vector<Step> steps;
  int64_t now = int64_t(random() % 50);
  for (size_t n = 1 + random() % 30; n > 0; n--) {
    if (random() % 8 == 0) now += int64_t(random() % 60);  // another row of steps
    const int64_t begin = now;
    now += int64_t(random() % 30);
    steps.push_back({begin, now});
  }
  return steps;
}

// Of each stream in order of start, without overlap.
std::vector<std::vector<GpuActivity>> random_work(std::mt19937_64& random, int64_t until_ns) {
  std::vector<std::vector<GpuActivity>> streams(1 + random() % 4);
  const int64_t behind = random() % 3 ? 10 : 200;
  for (auto& stream : streams) {
    const int64_t sparse = int64_t(random() % 40);
    int64_t now = 0;
    while (now < until_ns + 40) {
      const int64_t start = now + (sparse ? int64_t(random() % size_t(sparse)) : 0);
      const int64_t launched = start - int64_t(random() % size_t(behind));
      const int64_t end = start + int64_t(random() % 20);
      stream.push_back({launched, start, end, GpuKind(random() % kGpuKinds)});
      now = std::max(end, start + 1);
    }
  }
  return streams;
}

// By the words of gpu_lanes.h, from everything at once.
std::vector<GpuLane> counted(const std::vector<Step>& steps, const std::vector<std::vector<GpuActivity>>& streams) {
  std::vector<GpuActivity> all;
  for (const auto& stream : streams) all.insert(all.end(), stream.begin(), stream.end());
  const auto first_launched_since = [&](int64_t ns) {
    int64_t first = INT64_MAX;
    for (const GpuActivity& a : all)
      if (a.launched_ns >= ns) first = std::min(first, a.start_ns);
    return first;
  };
  std::vector<GpuLane> lanes;
  int64_t row_begin = 0, row_end = 0;
  for (size_t k = 0; k < steps.size(); k++) {
    if (k == 0 || steps[k - 1].end_ns != steps[k].start_ns) {
      size_t last = k;
      while (last + 1 < steps.size() && steps[last + 1].start_ns == steps[last].end_ns) last++;
      row_begin = row_end;
      for (const GpuActivity& a : all)
        if (a.launched_ns < steps[last].end_ns) row_end = std::max(row_end, a.end_ns);
    }
    const auto since = [&](int64_t ns) { return std::clamp(first_launched_since(ns), row_begin, row_end); };
    const bool is_last = k + 1 == steps.size() || steps[k + 1].start_ns != steps[k].end_ns;
    const int64_t begin = since(steps[k].start_ns), end = is_last ? row_end : since(steps[k + 1].start_ns);
    GpuLane lane{begin, {}};
    for (int64_t ns = begin; ns < end; ns++) {
      int set = 0;
      for (const GpuActivity& a : all)
        if (a.start_ns <= ns && ns < a.end_ns) set |= 1 << a.kind;
      lane.ns[set]++;
    }
    lanes.push_back(lane);
  }
  return lanes;
}

bool same(const GpuLaneColumns& lanes, const std::vector<GpuLane>& expected) {
  if (lanes.size() != expected.size()) return false;
  for (size_t row = 0; row < expected.size(); row++) {
    const int64_t length = expected[row].end_ns() - expected[row].start_ns;
    if (length && lanes.starts_ns()[row] != expected[row].start_ns) return false;
    for (int set = 0; set < kGpuSets; set++) {
      const auto& column = lanes.column(set);
      if ((row < column.size() ? column[row] : 0) != expected[row].ns[set]) return false;
    }
  }
  return true;
}

void check_one(uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<Step> steps = random_steps(random);
  const auto streams = random_work(random, steps.back().end_ns);
  GpuLanes lanes;
  std::vector<GpuLanes::Source*> sources;
  for (size_t i = 0; i < streams.size(); i++) sources.push_back(&lanes.source(3));
  std::vector<size_t> fed(streams.size());
  size_t known_steps = 0;
  for (int64_t now = 0; now < steps.back().end_ns + 400; now += 1 + int64_t(random() % 100)) {
    // Reported when it is over; a step is decided some time after its end.
    int64_t complete_ns = now;
    for (size_t i = 0; i < streams.size(); i++) {
      for (; fed[i] < streams[i].size() && streams[i][fed[i]].end_ns <= now; fed[i]++)
        lanes.add(*sources[i], streams[i][fed[i]]);
      for (size_t j = fed[i]; j < streams[i].size(); j++)
        complete_ns = std::min(complete_ns, streams[i][j].launched_ns);
    }
    const int64_t decided_ns = now - int64_t(random() % 50);
    for (; known_steps < steps.size() && steps[known_steps].end_ns <= decided_ns; known_steps++)
      lanes.add_step(steps[known_steps].start_ns, steps[known_steps].end_ns);
    lanes.proceed(complete_ns);
  }
  for (; known_steps < steps.size(); known_steps++)
    lanes.add_step(steps[known_steps].start_ns, steps[known_steps].end_ns);
  for (size_t i = 0; i < streams.size(); i++)
    for (; fed[i] < streams[i].size(); fed[i]++) lanes.add(*sources[i], streams[i][fed[i]]);
  lanes.finish();
  const GpuLaneColumns& found = lanes.known().at(3).lanes;
  CHECK(same(found, counted(steps, streams)));

  // As they are written and read, some of them again.
  std::string payload;
  found.append(payload);
  const auto skipped = uint32_t(random() % (found.size() + 1));
  ByteReader bytes{payload};
  GpuLaneColumns read;
  CHECK(read.read(bytes, uint32_t(found.size()), skipped) && bytes.bytes.empty());
  const std::vector<GpuLane> expected = counted(steps, streams);
  CHECK(same(read, {expected.begin() + skipped, expected.end()}));
}

// Memory is bounded: of a step that launches more than may wait nothing is lost, nor of a GPU that rests.
void check_limits() {
  GpuLanes lanes;
  GpuLanes::Source& source = lanes.source(0);
  const auto many = int64_t(GpuLanes::kMostWaiting) * 3;
  lanes.add_step(0, 10);
  for (int64_t i = 0; i < many; i++) {
    lanes.add(source, {10 * i, 10 * i, 10 * i + 6, kComputation});
    if (i % 1000 == 0) lanes.proceed(10 * i);
  }
  lanes.add_step(10, 10 * many - 1000);
  CHECK(source.waiting.size() - source.first <= GpuLanes::kMostWaiting + 1000);
  const auto steps = int64_t(GpuLanes::kMostSteps) + 10;
  for (int64_t i = 0; i < steps; i++) lanes.add_step(10 * many - 1000 + 10 * i, 10 * many - 990 + 10 * i);
  lanes.proceed(INT64_MAX);
  CHECK(lanes.known().at(0).lanes.size() >= 10);
  lanes.finish();
  const GpuLaneColumns& all = lanes.known().at(0).lanes;
  CHECK(all.size() == size_t(steps) + 2);
  CHECK(all.column(1 << kComputation)[1] == 6 * (many - 101));
}

}  // namespace

int main() {
  CHECK(gpu_kind_of_region("ncclDevKernel_AllReduce", STROBE_ROLE_KERNEL) == kGpuCommunication);
  CHECK(gpu_kind_of_region("void RCCL_kernel", STROBE_ROLE_KERNEL) == kGpuCommunication);
  CHECK(gpu_kind_of_region("gemm", STROBE_ROLE_KERNEL) == kComputation);
  CHECK(gpu_kind_of_region("Memset", STROBE_ROLE_COPY) == kCopy);
  CHECK(gpu_kind_of_region("aten::mm", STROBE_ROLE_OPERATOR) == kNoGpuWork);
  for (uint64_t seed = 1; seed <= cases(2000); seed++) check_one(seed);
  check_limits();
  return 0;
}

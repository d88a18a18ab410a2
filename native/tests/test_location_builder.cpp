// Pairing against a plain stack: random nested calls in, the same spans out of the sealed blocks.
#include <random>

#include "core/spans/location_builder.h"
#include "tests/check.h"

using namespace strobe;

namespace {

struct Expected {
  int64_t start, end;
  uint32_t region;
  size_t depth;
};

void random_calls(uint64_t seed) {
  std::mt19937_64 random(seed);
  PathTable paths;
  LocationBuilder builder(3, paths);
  std::vector<Expected> expected;
  std::vector<size_t> stack;
  std::string chunks;
  int64_t now = 1000;
  for (int i = 0; i < 30000; i++) {
    now += int64_t(random() % 1000);
    if (stack.empty() || (stack.size() < 40 && random() % 2)) {
      uint32_t region = uint32_t(2 + random() % 7);
      builder.enter(region, now);
      stack.push_back(expected.size());
      expected.push_back({now, -1, region, stack.size() - 1});
    } else {
      builder.leave(expected[stack.back()].region, now);
      expected[stack.back()].end = now;
      stack.pop_back();
    }
    if (builder.full()) builder.seal(chunks, uint64_t(i), 0);
  }
  builder.seal(chunks, 0, 0);
  Folder folder;
  std::string path = folder.path + "/process-1.blocks";
  FILE* file = fopen(path.c_str(), "wb");
  fwrite(chunks.data(), 1, chunks.size(), file);
  fclose(file);
  auto read = open_process(path);
  Spans spans = all_spans(*read, 3);
  CHECK(spans.row.size() == expected.size());
  std::vector<int64_t> self;
  for (size_t i = 0; i < expected.size(); i++) {
    const Expected& e = expected[i];
    CHECK(spans.row[i] == int64_t(i));
    CHECK(spans.start_ns[i] == e.start);
    CHECK(read->path_region[spans.path[i]] == e.region);
    CHECK(read->path_depth[spans.path[i]] == e.depth);
    CHECK(bool(spans.complete[i]) == (e.end >= 0));
    if (e.end >= 0) CHECK(spans.duration_ns[i] == e.end - e.start);
    self.push_back(spans.duration_ns[i]);
    if (spans.parent[i] >= 0) {
      self[size_t(spans.parent[i])] -= spans.duration_ns[i];
      CHECK(read->path_parent[spans.path[i]] == spans.path[size_t(spans.parent[i])]);
    }
    CHECK((spans.parent[i] < 0) == (e.depth == 0));
  }
  CHECK(self == spans.self_ns);
  // Any window holds exactly the spans that overlap it.
  for (int i = 0; i < 50; i++) {
    int64_t from = int64_t(random() % uint64_t(now)), to = from + 1 + int64_t(random() % 200000);
    Spans window;
    read->spans(3, from, to, window);
    std::vector<int64_t> rows;
    for (size_t k = 0; k < spans.row.size(); k++) {
      int64_t start = spans.start_ns[k], end = start + spans.duration_ns[k];
      if (start < to && (end > from || (end == start && start >= from))) rows.push_back(spans.row[k]);
    }
    CHECK(window.row == rows);
  }
}

}  // namespace

int main() {
  for (uint64_t seed = 0; seed < 20; seed++) random_calls(seed);

  // A range pushed inside a function and popped after it: it ends with the function, and the late pop is counted.
  PathTable paths;
  LocationBuilder builder(0, paths);
  builder.enter(2, 10), builder.enter(3, 20), builder.leave(2, 30), builder.leave(3, 40);
  CHECK(builder.cut == 1 && builder.unmatched == 1 && builder.depth() == 0);

  // A thread that goes on with another stack: what is open ends and goes on when it comes back. Throttling counts what
  // has ended: 3 executions of region 2 (two pieces of the first), 30 ns in all.
  PathTable switched_paths;
  LocationBuilder switched(0, switched_paths);
  Throttle throttle;
  throttle.begin(3, 20);
  switched.count_for(&throttle);
  switched.enter(2, 10), switched.switch_to(7, 20), switched.enter(3, 25), switched.switch_to(0, 30);
  switched.leave(2, 35), switched.enter(2, 36);
  CHECK(switched.depth() == 1 && throttle.flags()[2] == 0);
  switched.leave(2, 51), switched.switch_to(7, 60), switched.leave(3, 70);
  CHECK(switched.cut == 0 && switched.unmatched == 0 && switched.depth() == 0 && switched.spans() == 5);
  CHECK(throttle.calls(2) == 3 && throttle.flags()[2] == 1 && throttle.calls(3) == 2 && throttle.flags()[3] == 0);

  // Recursion beyond the table's limit folds into one path per region instead of growing.
  PathTable many;
  LocationBuilder deep(0, many);
  for (uint32_t i = 0; i < PathTable::kLimit + 5000; i++) deep.enter(2, int64_t(i));
  CHECK(many.size() <= PathTable::kLimit + 1 && many.folded() > 0);
}

// Folding against counting: random nested calls, random decisions which of them are kept. What is in the blocks and
// what was folded add up to all of it, exactly. Of the short ones none stays that may go.
#include <algorithm>
#include <map>
#include <random>

#include "core/format/span_statistics.h"
#include "core/spans/location_builder.h"
#include "tests/check.h"

using namespace strobe;

namespace {

struct Sum {
  uint64_t count = 0;
  int64_t total = 0, own = 0, least = INT64_MAX, most = INT64_MIN;
  void add(int64_t duration) {
    count++, total += duration;
    least = std::min(least, duration), most = std::max(most, duration);
  }
  bool operator==(const Sum&) const = default;
};

using Names = std::vector<uint32_t>;  // regions of a chain of calls
using Sums = std::map<Names, Sum>;

struct Ignore : SpanObserver {
  void entered(uint32_t, int64_t, uint64_t) override {}
  void closed(uint32_t, size_t, int64_t, int64_t, uint64_t) override {}
};

struct Record {
  bool enter;
  uint32_t region;
  int64_t ns;
};

std::vector<Record> random_calls(std::mt19937_64& random, size_t n) {
  std::vector<Record> records;
  std::vector<uint32_t> stack;
  int64_t now = 1000;
  const size_t deep = 2 + random() % 20;
  for (size_t i = 0; i < n; i++) {
    now += random() % 3 ? int64_t(random() % 100) : 0;  // equal times happen
    if (stack.empty() || (stack.size() < deep && random() % 2)) {
      stack.push_back(uint32_t(2 + random() % 5));
      records.push_back({true, stack.back(), now});
    } else {
      records.push_back({false, stack.back(), now});
      stack.pop_back();
    }
  }
  for (; !stack.empty(); stack.pop_back()) records.push_back({false, stack.back(), now++});
  return records;
}

Sums count(const std::vector<Record>& records) {
  struct Open {
    int64_t start, inside;
  };
  Sums sums;
  Names names;
  std::vector<Open> stack;
  for (const Record& r : records) {
    if (r.enter) {
      names.push_back(r.region);
      stack.push_back({r.ns, 0});
      continue;
    }
    const int64_t duration = r.ns - stack.back().start;
    sums[names].add(duration);
    sums[names].own += duration - stack.back().inside;
    names.pop_back(), stack.pop_back();
    if (!stack.empty()) stack.back().inside += duration;
  }
  return sums;
}

Names names_of(const ProcessFile& file, uint32_t path) {
  Names names;
  for (; path != kNoPath; path = file.path_parent[path]) names.insert(names.begin(), file.path_region[path]);
  return names;
}

Sums read(const std::string& path, const std::string& chunks, const StatisticsTable& table) {
  FILE* out = fopen(path.c_str(), "wb");
  fwrite(chunks.data(), 1, chunks.size(), out);
  fclose(out);
  const auto file = open_process(path);
  Sums sums;
  const Spans spans = all_spans(*file, 0);
  for (size_t i = 0; i < spans.row.size(); i++) {
    CHECK(spans.row[i] == int64_t(i) && spans.complete[i]);
    Sum& sum = sums[names_of(*file, spans.path[i])];
    sum.add(spans.duration_ns[i]);
    sum.own += spans.self_ns[i];
  }
  for (size_t i = 0; i < table.size(); i++) {
    const SpanStatistics s = table.entry(i);
    Sum& sum = sums[names_of(*file, table.key(i).path)];
    sum.count += s.count, sum.total += s.total_ns, sum.own += s.own_ns;
    if (s.count) sum.least = std::min(sum.least, s.min_ns), sum.most = std::max(sum.most, s.max_ns);
    uint64_t in_buckets = 0;
    for (uint32_t n : s.histogram) in_buckets += n;
    CHECK(in_buckets == s.count);
  }
  return sums;
}

void check_one(uint64_t seed, const Folder& folder) {
  std::mt19937_64 random(seed);
  const std::vector<Record> records = random_calls(random, 2000 + random() % 20000);
  PathTable paths;
  LocationBuilder builder(0, paths);
  Ignore ignore;
  builder.observe(&ignore);
  StatisticsTable table;
  std::string chunks;
  auto folded = [&](uint32_t path, int64_t duration, int64_t own) { table.add({0, path, 0}, duration, own); };
  auto inside = [&](uint32_t path, int64_t duration) { table.add_own({0, path, 0}, -duration); };
  auto is_short = [&](uint32_t path, int64_t duration) { return paths.region(path) % 2 && duration < 200; };
  const bool only_folds = random() % 5 == 0;
  const size_t pace = 1 + random() % 3000;
  for (size_t at = 0; at < records.size(); at++) {
    if (records[at].enter)
      builder.enter(records[at].region, records[at].ns, at);
    else
      builder.leave(records[at].region, records[at].ns, at + 1);
    if (random() % pace) continue;
    const size_t waiting = builder.rows() - builder.settled();
    const size_t n = builder.settled() + (waiting ? random() % (waiting + 1) : 0);
    const auto decision = only_folds ? 0 : random() % 6;
    if (decision < 3)
      builder.fold(n, folded, inside);
    else if (decision < 5)
      builder.fold_short(n, 1 + random() % 5000, is_short, folded, inside);
    else
      builder.keep(n);
    if (random() % 3) continue;
    const uint64_t position = builder.seal_settled(chunks, at + 1, 7);
    CHECK(position <= at + 1 && builder.settled() == 0);
  }
  builder.fold(builder.rows(), folded, inside);
  builder.seal_settled(chunks, records.size(), 7);
  const Sums expected = count(records);
  CHECK(read(folder.path + "/process-1.blocks", chunks, table) == expected);
}

struct Row {
  int64_t start, duration;
  uint32_t path;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_of(const LocationBuilder& builder) {
  std::vector<Row> rows;
  const RowColumns& columns = builder.columns();
  for (size_t i = 0; i < builder.rows(); i++)
    rows.push_back({columns.start_ns[i], columns.duration_ns[i], columns.path[i]});
  return rows;
}

// fold_short against its description, row by row.
void check_short(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Record> records = random_calls(random, 1 + random() % 400);
  records.resize(1 + random() % records.size());  // some are open
  PathTable paths;
  LocationBuilder builder(0, paths);
  Ignore ignore;
  builder.observe(&ignore);
  std::vector<uint64_t> attached;
  for (size_t at = 0; at < records.size(); at++) {
    if (records[at].enter)
      builder.enter(records[at].region, records[at].ns, at);
    else
      builder.leave(records[at].region, records[at].ns, at + 1);
    if (random() % 40 || builder.innermost() == PendingRows::kNoSpan) continue;
    builder.attached.add({0, uint64_t(STROBE_ROW_COLLECTIVE) << 48, {}}, records[at].ns, builder.innermost());
    attached.push_back(builder.innermost());
  }
  const size_t n = random() % (builder.rows() + 1);
  const int64_t least = int64_t(random() % 2000);
  const auto is_short = [&](uint32_t path, int64_t duration) { return paths.region(path) % 4 && duration < least; };

  const std::vector<Row> before = rows_of(builder);
  std::vector<bool> stays(before.size(), true);
  const auto lies_in = [&](size_t row, size_t other) {  // other < row
    for (size_t i = other + 1; i <= row; i++)
      if (builder.depth_of(i) <= builder.depth_of(other)) return false;
    return true;
  };
  for (size_t row = n; row-- > 0;) {
    stays[row] = before[row].duration == kOpen || !is_short(before[row].path, before[row].duration) ||
                 std::count(attached.begin(), attached.end(), row);
    for (size_t inside = row + 1; inside < before.size() && inside <= n && lies_in(inside, row); inside++)
      if (stays[inside]) stays[row] = true;  // row n is one of those that wait: they may stay
  }
  std::vector<Row> expected;
  std::vector<uint64_t> expected_attached;
  std::map<uint32_t, uint64_t> gone, folded;  // executions by path
  size_t settled = 0;
  for (size_t row = 0; row < before.size(); row++) {
    if (!stays[row]) {
      gone[before[row].path]++;
      continue;
    }
    for (auto k = std::count(attached.begin(), attached.end(), row); k > 0; k--)
      expected_attached.push_back(expected.size());
    expected.push_back(before[row]);
    settled += row < n;
  }

  const size_t most = 1 + random() % 50;
  size_t until = n;
  for (size_t left = 1; left > 0; until = builder.settled() + left) {
    const size_t had = builder.settled();
    left = builder.fold_short(
        until, most, is_short, [&](uint32_t path, int64_t, int64_t) { folded[path]++; }, [](uint32_t, int64_t) {});
    CHECK(builder.settled() - had <= most && (left == 0 || builder.settled() == had + most));
  }
  CHECK(rows_of(builder) == expected && builder.settled() == settled);
  CHECK(folded == gone);
  // Rows of spans that are settled are not told any more.
  std::erase_if(expected_attached, [&](uint64_t row) { return row < settled; });
  std::vector<uint64_t> now;
  builder.attached.each_span(settled, expected.size(), [&](uint64_t row) { now.push_back(row); });
  std::sort(now.begin(), now.end());
  CHECK(now == expected_attached);
}

}  // namespace

int main() {
  Folder folder;
  for (uint64_t seed = 0; seed < cases(300); seed++) check_one(seed, folder);
  for (uint64_t seed = 0; seed < cases(2000); seed++) check_short(seed);

  // Half octaves: from 2^e, and from sqrt(2) * 2^e on.
  CHECK(histogram_bucket(0) == 0 && histogram_bucket(1) == 0 && histogram_bucket(2) == 2 && histogram_bucket(3) == 3);
  CHECK(histogram_bucket(1024) == 20 && histogram_bucket(1448) == 20 && histogram_bucket(1449) == 21);
  CHECK(histogram_bucket(INT64_MAX) == 63);
}

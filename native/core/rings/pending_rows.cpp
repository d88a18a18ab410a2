#include "core/rings/pending_rows.h"

#include <map>
#include <tuple>

#include "core/format/side_tables.generated.h"
#include "include/strobe.h"

namespace strobe {

namespace {

// What is left of samples whose iteration was folded: sums by location, call stack and state.
class SampleSums {
 public:
  void add(const RowRecord& record) {
    const auto& v = record.values;
    Sum& sum = sums_[{uint32_t(v[0]), uint32_t(uint64_t(v[0]) >> 32), uint32_t(v[1])}];
    sum.samples++;
    sum.total_ns += uint64_t(std::max<int64_t>(v[4], 0));
    sum.cpu_ns += uint64_t(std::max<int64_t>(v[5], 0));
  }
  template <class Write>
  void write(Write&& write) const {
    using namespace schema::sample_totals;
    static const auto* layout = new TableLayout{table, {call_stack, state, samples, total_ns, cpu_ns}, false};
    TableColumns columns(*layout);
    for (auto at = sums_.begin(); at != sums_.end();) {
      const auto [location, stack_text, state_text] = at->first;
      const Sum& sum = at->second;
      using Cell = std::optional<uint64_t>;
      columns.add({stack_text ? Cell(stack_text) : Cell(), state_text ? Cell(state_text) : Cell(), sum.samples,
                   sum.total_ns, sum.cpu_ns});
      ++at;
      if (columns.rows() == kTableChunkRows || at == sums_.end() || std::get<0>(at->first) != location)
        write(columns, location);
    }
  }

 private:
  struct Sum {
    uint64_t samples = 0, total_ns = 0, cpu_ns = 0;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Sum> sums_;
};

}  // namespace

void PendingRows::add(const RowRecord& record, int64_t ns, uint64_t span_row, uint32_t path) {
  next_++;
  const RowKind* kind = row_kind(record.kind());
  Fate fate = Fate::waits;
  if (!kind || (kind->of_spans && span_row == kNoSpan)) fate = Fate::goes, outside_++;
  if (kind && kind->stays) fate = Fate::stays;
  rows_.push_back({record, ns, kind && kind->of_spans ? span_row : kNoSpan, fate, path});
}

// What a kernel has of a collective is how long before its end it was launched: its call has the rest.
static void become_collective(RowRecord& record, int64_t pending_ns) {
  const int64_t values[STROBE_ROW_VALUES] = {0,
                                             STROBE_THREE(0, STROBE_NOTHING_21, STROBE_NOTHING_21),
                                             STROBE_TWO(STROBE_NOTHING_32, 0),
                                             STROBE_NOTHING,
                                             STROBE_NOTHING,
                                             pending_ns};
  record.where = uint64_t(STROBE_ROW_GROUP_COLLECTIVE) << 48 | record.position();
  std::ranges::copy(values, record.values);
}

void PendingRows::fold(uint64_t base_row, uint64_t from, uint64_t to, const std::vector<uint32_t>& stays,
                       uint64_t removed, const RowColumns& spans) {
  // Iterations end far more often than rows are written: each row is looked at while its iteration is near, not at
  // every end.
  const auto settled = [from](const Pending& row) {
    return row.fate != Fate::waits || (row.span_row != kNoSpan && row.span_row < from);
  };
  settled_ = std::max(settled_, first_);
  while (settled_ < rows_.size() && settled(rows_[settled_])) settled_++;
  for (size_t i = settled_; i < rows_.size(); i++) {
    Pending& row = rows_[i];
    if (row.span_row == kNoSpan || row.span_row < from) continue;
    if (row.span_row >= to) {
      row.span_row -= removed;
      continue;
    }
    const auto wanted = uint32_t(row.span_row - base_row);
    const auto at = std::lower_bound(stays.begin(), stays.end(), wanted);
    if (at != stays.end() && *at == wanted) {
      row.span_row = from + uint64_t(at - stays.begin());
      continue;
    }
    row.span_row = kNoSpan, row.fate = Fate::goes;
    if (row.record.kind() == STROBE_ROW_KERNEL && communicates && communicates(spans.path[wanted]))
      become_collective(row.record, spans.start_ns[wanted] + spans.duration_ns[wanted] - row.ns);
    if (row_kind(row.record.kind())->folded)
      row.fate = Fate::folded, row.ns = spans.start_ns[wanted], row.duration_ns = spans.duration_ns[wanted],
      row.path = spans.path[wanted];
    else
      folded_++;
  }
}

void PendingRows::decide(int64_t ns, bool keep) {
  const auto waits = [](const Pending& row) { return row.fate == Fate::waits && row.span_row == kNoSpan; };
  decided_ = std::max(decided_, first_);
  while (decided_ < rows_.size() && !waits(rows_[decided_])) decided_++;
  for (size_t i = decided_; i < rows_.size(); i++) {
    Pending& row = rows_[i];
    if (!waits(row) || row.ns >= ns) continue;
    row.fate = keep ? Fate::stays : Fate::goes;
    folded_ += !keep;
  }
}

uint64_t PendingRows::span_since(int64_t ns, uint64_t from) const {
  for (size_t i = std::max(first_, settled_); i < rows_.size(); i++)
    if (rows_[i].span_row != kNoSpan && rows_[i].span_row >= from && rows_[i].ns >= ns) return rows_[i].span_row;
  return kNoSpan;
}

bool PendingRows::ready(uint64_t final_row) const { return !empty() && ready(rows_[first_], final_row); }

void PendingRows::emit(std::string& out, uint64_t final_row, uint64_t span_position, uint32_t ring_location,
                       const TextOf& text_of) {
  size_t end = first_;
  while (end < rows_.size() && ready(rows_[end], final_row)) end++;
  if (end == first_) return;
  const uint64_t position = next_ - (rows_.size() - end);
  std::map<std::tuple<uint32_t, uint32_t, bool>, TableColumns> tables;  // by kind, location, folded
  const auto write = [&](TableColumns& columns, uint32_t kind, uint32_t location, uint64_t until) {
    const RowTrailer trailer{until, span_position, ring_location, kind, 0, kRowTrailerMagic};
    columns.append_to(out, location, {reinterpret_cast<const char*>(&trailer), sizeof trailer});
  };
  SampleSums sums;
  RowCells cells(text_of);
  for (size_t i = first_; i < end; i++) {
    const Pending& row = rows_[i];
    const uint32_t number = row.record.kind();
    if (row.fate == Fate::goes && number == STROBE_ROW_SAMPLE) sums.add(row.record);
    if (row.fate == Fate::goes) continue;
    const RowKind& kind = *row_kind(number);
    const uint32_t location = kind.names_location ? uint32_t(row.record.values[0]) : ring_location;
    const bool folded = row.fate == Fate::folded;
    const TableLayout& layout = folded ? folded_layout_of(number) : layout_of(number);
    TableColumns& columns = tables.try_emplace({number, location, folded}, layout).first->second;
    if (folded)
      cells.add_folded(columns, kind, row.record, {row.ns, row.duration_ns, row.path});
    else
      cells.add(columns, kind, row.record, row.ns, row.span_row, row.path);
    if (columns.rows() == kTableChunkRows) write(columns, number, location, position - (end - i) + 1);
  }
  for (auto& [key, columns] : tables)
    if (columns.rows()) write(columns, std::get<0>(key), std::get<1>(key), position);
  sums.write([&](TableColumns& columns, uint32_t location) { write(columns, STROBE_ROW_SAMPLE, location, position); });
  first_ = end;
  if (first_ < rows_.size() && first_ <= 4096) return;
  rows_.erase(rows_.begin(), rows_.begin() + ptrdiff_t(first_));
  settled_ -= std::min(settled_, first_);
  decided_ -= std::min(decided_, first_);
  first_ = 0;
}

}  // namespace strobe

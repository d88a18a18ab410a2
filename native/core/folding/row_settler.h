// row_settler.h - the rows of all locations that wait for the end of their iteration: kept in detail, or folded into
// statistics, once an iteration is decided.
#pragma once
#include <stdint.h>
#include <deque>
#include <functional>
#include <map>

#include "core/folding/folded_statistics.h"
#include "core/folding/location_rows.h"
#include "core/spans/short_spans.h"

namespace strobe {

class RowSettler {
 public:
  // `commit` writes all that is settled.
  RowSettler(PathTable& paths, FoldedStatistics& statistics, ShortSpans short_spans, std::function<void()> commit)
      : short_(std::move(short_spans)), paths_(paths), statistics_(statistics), commit_(std::move(commit)) {}

  LocationRows& add(LocationBuilder& builder, LocationRole kind, const SpanReaders& readers, int64_t device);
  void remove(uint32_t location) { locations_.erase(location); }
  LocationRows& at(const LocationBuilder& builder) { return *locations_.at(builder.location()); }
  const LocationRows& at(const LocationBuilder& builder) const { return *locations_.at(builder.location()); }
  const std::map<uint32_t, std::unique_ptr<LocationRows>>& locations() const { return locations_; }

  // The rows of an iteration are kept, or folded into its class; those of other threads go with them by their start.
  void settle(const structure::Cut& until, bool keep, uint32_t class_id);
  // What was launched on streams before this moment was fed.
  void set_streams_complete(int64_t launched_ns) { streams_complete_ns_ = launched_ns; }
  // Streams follow the decisions that nothing can come late for. Returns whether there were any.
  bool settle_streams();
  // A stream follows all decisions, though some of what they are about may come late.
  void settle_stream_now(LocationRows& rows) { settle_stream(rows, gone_ + decisions_.size()); }

  void settle_rows(LocationRows& rows, size_t n, bool keep, bool pending, uint32_t class_id) {
    keep ? this->keep(rows, n, pending, class_id) : fold(rows, n, pending, class_id);
  }
  // Statistics are of this class that were folded before it was known.
  void decide_pending(uint32_t class_id) { folded_ |= statistics_.decide_pending(class_id); }

  static size_t rows_until(const LocationRows& rows, const structure::Cut& cut) {
    return rows.main() ? rows.builder.first_from(cut.position) : rows.builder.first_since(cut.ns);
  }
  bool has_block() const;
  bool folded() const { return folded_; }  // anything since the last commit
  void committed();
  uint64_t short_spans() const { return short_spans_; }  // left out of what is kept in detail
  ShortSpans& short_rule() { return short_; }
  bool leaves_out_short() const { return short_.on(); }

 private:
  // What ran on a stream is known long after it was launched: it follows the iteration that launched it. A task follows
  // that in which it began, or where it is known after that was decided, the next one.
  struct Decision {
    int64_t until_ns;
    bool keep;
    uint32_t class_id;
  };
  void settle_stream(LocationRows& rows, uint64_t decisions);
  void keep(LocationRows& rows, size_t n, bool pending, uint32_t class_id);
  void fold(LocationRows& rows, size_t n, bool pending, uint32_t class_id);
  size_t leave_out_short(LocationRows& rows, size_t n, bool pending, uint32_t class_id);

  ShortSpans short_;
  PathTable& paths_;
  FoldedStatistics& statistics_;
  std::function<void()> commit_;
  std::map<uint32_t, std::unique_ptr<LocationRows>> locations_;
  std::deque<Decision> decisions_;  // that some stream has still to follow; decision n is at n - gone_
  uint64_t gone_ = 0;
  int64_t streams_complete_ns_ = INT64_MAX;
  uint64_t short_spans_ = 0;
  bool folded_ = false;
};

}  // namespace strobe

#include "formats/importing/sorted_records.h"

#include <string.h>

#include <algorithm>

namespace strobe {

namespace {
constexpr size_t kWindowBytes = 1 << 16;  // of one run in memory
constexpr size_t kHeaderBytes = 12;       // time and size
}  // namespace

SortedRecords::SortedRecords(std::string spill_path, size_t memory_bytes)
    : file_(std::move(spill_path)), memory_bytes_(std::min<size_t>(memory_bytes, UINT32_MAX / 2)) {}

void SortedRecords::add(int64_t time, std::string_view bytes) {
  if (bytes_.size() + index_.size() * sizeof(Index) + bytes.size() > memory_bytes_ && !index_.empty()) spill();
  index_.push_back({time, uint32_t(bytes_.size()), uint32_t(bytes.size())});
  bytes_ += bytes;
}

void SortedRecords::sort_memory() {
  const auto earlier = [](const Index& a, const Index& b) {
    return a.time != b.time ? a.time < b.time : a.offset < b.offset;
  };
  if (!std::is_sorted(index_.begin(), index_.end(), earlier)) std::sort(index_.begin(), index_.end(), earlier);
}

void SortedRecords::spill() {
  sort_memory();
  runs_.push_back({file_.size(), 0, {}, 0, 0, {}});
  std::string out;
  const auto flush = [&] { file_.append(out), out.clear(); };
  for (const Index& each : index_) {
    char header[kHeaderBytes];
    memcpy(header, &each.time, 8), memcpy(header + 8, &each.size, 4);
    out.append(header, kHeaderBytes).append(bytes_, each.offset, each.size);
    if (out.size() > kWindowBytes) flush();
  }
  flush();
  runs_.back().end = file_.size();
  index_.clear(), bytes_.clear();
}

void SortedRecords::sort() {
  if (!runs_.empty() && !index_.empty()) spill();
  sort_memory();
  heap_.clear();
  for (size_t i = 0; i < runs_.size(); i++)
    if (next(runs_[i])) heap_.push_back(i);
  std::make_heap(heap_.begin(), heap_.end(), [this](size_t a, size_t b) { return later(a, b); });
  show();
}

bool SortedRecords::later(size_t a, size_t b) const {
  return runs_[a].time != runs_[b].time ? runs_[a].time > runs_[b].time : a > b;
}

// Reads the next record of a run into its window. False: there is none.
bool SortedRecords::next(Run& run) {
  const auto fill = [&](size_t wanted) {
    if (run.window.size() - run.at >= wanted) return;
    run.window.erase(0, run.at);
    run.at = 0;
    const size_t have = run.window.size();
    run.window.resize(size_t(std::min<uint64_t>(have + (run.end - run.offset), std::max(wanted, kWindowBytes))));
    file_.read(run.offset, run.window.data() + have, run.window.size() - have);
    run.offset += run.window.size() - have;
  };
  if (run.at == run.window.size() && run.offset == run.end) return false;
  fill(kHeaderBytes);
  uint32_t size;
  memcpy(&run.time, run.window.data() + run.at, 8), memcpy(&size, run.window.data() + run.at + 8, 4);
  fill(kHeaderBytes + size);
  run.bytes = std::string_view(run.window).substr(run.at + kHeaderBytes, size);
  run.at += kHeaderBytes + size;
  return true;
}

void SortedRecords::show() {
  head_ = &shown_;
  if (!heap_.empty())
    shown_ = {runs_[heap_.front()].time, runs_[heap_.front()].bytes};
  else if (taken_ < index_.size())
    shown_ = {index_[taken_].time, std::string_view(bytes_).substr(index_[taken_].offset, index_[taken_].size)};
  else
    head_ = nullptr;
}

void SortedRecords::take() {
  if (heap_.empty()) {
    taken_++;
  } else {
    const auto after = [this](size_t a, size_t b) { return later(a, b); };
    std::pop_heap(heap_.begin(), heap_.end(), after);
    if (next(runs_[heap_.back()]))
      std::push_heap(heap_.begin(), heap_.end(), after);
    else
      heap_.pop_back();
  }
  show();
}

}  // namespace strobe

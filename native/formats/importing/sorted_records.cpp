#include "formats/importing/sorted_records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace strobe {

namespace {
constexpr size_t kWindowBytes = 1 << 16;  // of one run in memory
constexpr size_t kHeaderBytes = 12;       // time and size
[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }
}  // namespace

SortedRecords::SortedRecords(std::string spill_path, size_t memory_bytes)
    : path_(std::move(spill_path)), memory_bytes_(std::min<size_t>(memory_bytes, UINT32_MAX / 2)) {}

SortedRecords::~SortedRecords() {
  if (file_ >= 0) close(file_);
}

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
  if (file_ < 0) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0) fail(path_);
    unlink(path_.c_str());
  }
  sort_memory();
  runs_.push_back({file_bytes_, file_bytes_, {}, 0, 0, {}});
  std::string out;
  const auto flush = [&] {
    for (const char* at = out.data(); at < out.data() + out.size();) {
      const ssize_t n = write(file_, at, size_t(out.data() + out.size() - at));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = ENOSPC;
      if (n <= 0) fail(path_);
      at += n;
    }
    file_bytes_ += out.size();
    out.clear();
  };
  for (const Index& each : index_) {
    char header[kHeaderBytes];
    memcpy(header, &each.time, 8), memcpy(header + 8, &each.size, 4);
    out.append(header, kHeaderBytes).append(bytes_, each.offset, each.size);
    if (out.size() > kWindowBytes) flush();
  }
  flush();
  runs_.back().end = file_bytes_;
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
    size_t have = run.window.size();
    run.window.resize(size_t(std::min<uint64_t>(have + (run.end - run.offset), std::max(wanted, kWindowBytes))));
    while (have < run.window.size()) {
      const ssize_t n = pread(file_, run.window.data() + have, run.window.size() - have, off_t(run.offset));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = EIO;
      if (n <= 0) fail(path_);
      have += size_t(n), run.offset += uint64_t(n);
    }
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

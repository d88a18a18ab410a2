// main_loop.h - the main thread while the program runs, event by event: finds its main loop, and the marks that end its
// iterations.
#pragma once
#include <stdint.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/folding/path_facts.h"
#include "structure/cutter.h"
#include "structure/detector.h"

namespace strobe {

class MainLoop {
 public:
  // `accepted` is called when the detector believes in a loop, and again when it believes in another one.
  using Accepted = std::function<void(const structure::Choice&)>;
  MainLoop(PathFactsTable& facts, RegionTable& regions, PathTable& paths, structure::Detector& detector,
           structure::Cutter& cutter, Accepted accepted);

  void entered(uint32_t path, uint32_t node, size_t depth, int64_t ns, uint64_t position);
  void closed(uint32_t path, int64_t start_ns, uint64_t start_position, int64_t end_ns, uint64_t position);

  const structure::Choice* choice() const { return choice_.get(); }  // nullptr: no loop is believed in
  const std::vector<structure::LoopRecord>& records() const { return records_; }
  std::vector<structure::Mark> take_marks() { return std::exchange(marks_, {}); }
  // Where the data wait began that the main thread is in.
  const structure::Cut& open_wait() const { return open_wait_; }
  int64_t last_mark_ns() const { return last_mark_ns_; }
  // Whether no mark has come for so long that the loop may have ended.
  bool silent() const { return silent_; }
  void look_for_silence(int64_t now_ns);
  void lose() { choice_.reset(); }  // with the main thread

 private:
  void analyse(int64_t ns, const structure::Mark& here);
  void accept(const structure::Choice& choice, int64_t ns, const structure::Mark& here);
  void mark(const structure::Mark& mark);
  const structure::SourceCode* code_of(uint32_t node);
  uint32_t any_peer(uint32_t path, uint32_t node);

  PathFactsTable& facts_;
  RegionTable& regions_;
  PathTable& paths_;
  structure::Detector& detector_;
  structure::Cutter& cutter_;
  const Accepted accepted_;
  std::vector<uint32_t> region_of_node_;
  std::map<uint32_t, structure::SourceCode> codes_;  // by region
  // The first node of each call of MPI, whoever its peer is, by what calls it, its name, and where it comes from.
  std::map<std::tuple<uint32_t, std::string, std::string>, uint32_t> calls_of_mpi_;
  uint32_t previous_operator_ = 0, previous_call_ = 0;  // nodes of the latest events
  std::unique_ptr<structure::Choice> choice_;
  std::vector<structure::LoopRecord> records_;
  std::vector<structure::Mark> marks_;  // not taken yet
  structure::Cut open_wait_ = structure::kNowhere;
  structure::Mark last_anchor_{};
  bool anchored_ = false;  // an anchor has ended since the last mark
  int64_t last_mark_ns_ = 0, longest_ns_ = 0;
  bool silent_ = false;
};

}  // namespace strobe

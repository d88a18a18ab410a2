// source_loops.h - the loops in the source of a function: what they call, and which lies in which.
#pragma once
#include <stdint.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::structure {

class SourceLoops {
 public:
  // `text`: as python/calls/loops_of_code.h writes it; empty where nothing is known. Of iterations of a loop the loop's
  // number comes first (`#2`).
  explicit SourceLoops(std::string_view text = {});

  // The calls of a function that lie in one loop (and in loops inside of it).
  struct Calls {
    uint32_t loop = 0;    // the innermost one that holds them all; 0: none, or they lie in several
    uint32_t times = 0;   // in an iteration; 0: not the same number in each
    uint32_t most = 0;    // in an iteration; 0: not known, some lie in loops inside of it
    uint32_t before = 0;  // that come before the loop
  };
  Calls calls_of(std::string_view name) const;
  bool any() const { return around_.size() > 1; }
  // Whether nothing is known, as there was too much of it.
  bool too_long() const { return too_long_; }
  // Whether it calls something of this name, anywhere.
  bool calls(std::string_view name) const;
  // Whether it is a generator of many items: it yields in a loop, or all items of another one. What yields once is a
  // context manager, mostly.
  bool yields() const { return yields_; }
  // How often it runs for each call: a context manager until it yields, and once more.
  uint32_t runs_of_call() const { return !yields_ && yields_once_ == 1 ? 2 : 1; }
  // Whether it is a coroutine that waits for something: what resumes it calls nothing.
  bool awaits() const { return awaits_; }
  // Those that lie in no other loop.
  std::vector<uint32_t> outermost() const;
  // What each iteration of a loop calls itself, in order of the source.
  std::vector<std::string> in_each_iteration(uint32_t loop) const;
  // What a loop calls itself in some iterations, in front of the first call that is made in each.
  std::vector<std::string> in_front_of(std::string_view first, uint32_t loop) const;
  // The loop whose iterations this is known of; 0: that of a function.
  uint32_t own() const { return own_; }
  // What a loop within another one is to it: nothing special, or it only repeats what it does, or it goes through what
  // the item of the outer one holds.
  enum class Inner : uint8_t { none, repeats, unpacks };
  // Whether a loop is a `while`: it goes through no items.
  bool is_while(uint32_t loop) const { return std::ranges::find(whiles_, loop) != whiles_.end(); }
  // That of a loop, to the one around it.
  Inner inner(uint32_t loop) const { return loop < inner_.size() ? inner_[loop] : Inner::none; }
  // That of the loop within `loop` which calls this, or is the loop `own`.
  Inner inner_of(uint32_t loop, std::string_view name, uint32_t own) const;
  // Whether a loop lies inside of another one, or is that one.
  bool is_within(uint32_t loop, uint32_t around) const;

 private:
  struct Site {
    std::string name, object;  // `step` and `solver.`; "." where the object has no name
    uint32_t loop;
    bool always;  // in each iteration
  };
  std::vector<Site> sites_;
  std::vector<uint32_t> around_;  // by loop, in order of the source; 0 is the function itself
  std::vector<Inner> inner_;      // by loop, up to the last that is something special
  std::vector<uint32_t> whiles_;
  uint32_t own_ = 0;
  uint32_t yields_once_ = 0;  // outside of loops
  bool yields_ = false, awaits_ = false;
  bool too_long_;
};

// What is known of a function's code.
struct SourceCode {
  SourceCode(std::string_view region_name, std::string_view loops);
  bool is_called(std::string_view other) const;
  std::string name;  // by which it is called: `step` of `Solver.step`, `Barrier` of MPI_Barrier; a loop's own
  SourceLoops loops;
  bool is_loop;  // it is an iteration of one (python/loops)
};

}  // namespace strobe::structure

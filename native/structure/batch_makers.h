// batch_makers.h - which generators and iterators of the program make the batches of its loop. Where no DataLoader is,
// the time in them is the wait for data. Decided by call path, for the recorder and for the reader.
#pragma once
#include <stdint.h>

#include <string_view>
#include <vector>

#include "structure/source_loops.h"

namespace strobe::structure {

// A batch maker is a generator, or a function `__next__`, for which all of this holds:
//
// - Who asks for its items works with them: below the function that asks lies a backward pass, a call of an optimizer
//   or of a module. A function without a loop and without operators of its own asks on behalf of its caller: `def
//   fetch(self): return next(self.batches)`.
// - No DataLoader feeds that function, or one around it: generators in such a loop split batches, or go over
//   parameters.
// - Nothing of that lies below the batch maker itself: `for loss in train(): print(loss)`. Neither does a DataLoader: a
//   wrapper around one only hands its batches on.
// - It does not lie in the call of a module, in a DataLoader, or in another batch maker.
class BatchMakers {
 public:
  // The next call path; a parent comes before its children, kNone is that of a root. `source`: of its last function.
  // Returns whether what was said of the paths before it may have changed.
  bool add(uint32_t parent, std::string_view name, uint8_t paradigm, const SourceLoops& source);
  bool makes(uint32_t path) const;
  // Paths that may turn out to be batch makers, or not to be.
  const std::vector<uint32_t>& iterators() const { return iterators_; }
  void clear() { *this = {}; }
  static constexpr uint32_t kNone = 0xFFFFFFFF;

 private:
  struct Path {
    uint32_t parent;
    bool iterator : 1;    // a generator of many items, or __next__
    bool loops : 1;       // its source has loops
    bool within : 1;      // in a module or a DataLoader
    bool works : 1;       // a backward pass, an optimizer or a module lies below
    bool loads : 1;       // a DataLoader lies below
    bool loader_fed : 1;  // ... and hands its batches to this function
    bool operators : 1;   // its own: that lie below, but in no iterator below
  };
  bool feed_from_loader(uint32_t path);
  bool works_with_items(uint32_t asking) const;
  bool may_make(uint32_t path) const;
  std::vector<Path> paths_;
  std::vector<uint32_t> iterators_;
};

}  // namespace strobe::structure

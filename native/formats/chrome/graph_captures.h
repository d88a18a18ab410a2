// graph_captures.h - which call put each kernel of a CUDA or HIP graph into it. The profile has the kernels of a replay
// under the launch of the graph; what the program did for each shows where the graph was captured: in the same file, or
// in another one beside it. Both name their kernels, in the same order.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace strobe::chrome {

class GraphCaptures {
 public:
  // A call of the host, on a row of its own number. `kernel`: what it launches, empty where the file does not have it.
  void call(uint64_t row, int64_t start_ns, int64_t correlation, std::string_view name, std::string_view kernel);
  // Whether a kernel with this correlation is one of a graph, and the capture of some graph is known.
  bool wants(int64_t correlation) const { return captures_ && graph_launches_.count(correlation); }
  // Kernels are numbered as they come, from 0 on.
  void kernel(int64_t correlation, int64_t start_ns, std::string_view name);
  // By kernel: the correlation of the call that put it into its graph, 0 where that is not certain.
  //
  // A launch is of a capture with the same names in the same order; of several such captures (layers, sizes) of the
  // next one at each launch. Where a replay lacks a few kernels of its capture, those are certain that are the same
  // from the front and from the back; where the order differs, because branches run side by side, those whose names are
  // unique.
  std::vector<int64_t> captured() const;

 private:
  using Names = std::vector<uint32_t>;
  struct Call {
    uint64_t row;
    int64_t start_ns, correlation;
    uint32_t name;  // of the kernel that it launches; or what it does with a graph
  };
  struct Kernel {
    int64_t correlation, start_ns;
    uint32_t name;
  };
  struct Capture {
    Names names;
    std::vector<int64_t> calls;
  };
  static constexpr uint32_t kBegin = 0, kEnd = 1, kLaunch = 2, kFirstName = 3;

  uint32_t number(std::string_view name);
  std::vector<Capture> captures() const;
  static std::vector<int64_t> aligned(const Names& names, const Capture& capture);

  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<Call> calls_;
  std::vector<Kernel> kernels_;
  std::unordered_set<int64_t> graph_launches_;
  bool captures_ = false;
};

}  // namespace strobe::chrome

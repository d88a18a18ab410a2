// iterations.h - what is known of loops that were found while the program ran: one record per iteration, the classes of
// iterations, and the chunks that hold them.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::structure {

// What a step is made of, in the order of strobe.model.kinds.PARTS.
enum Part : uint8_t { kDataWait = 0, kForward, kBackward, kOptimizer, kValidation, kRest, kParts };

// What an activity does to parameters or gradients, as far as its name says: changes them in place, zeroes gradients,
// begins a backward pass with the gradient of the loss; or that it makes the iterator of a loader.
enum class Change : uint8_t { none = 0, in_place, zeroes, seeds, iterator };

// By what the iterations of a loop are marked, in order of authority.
enum class LoopKind : uint8_t { hint = 0, range, optimizer, zero_grad, data_wait, structure };
const char* loop_kind_name(LoopKind kind);

class CellColumns;

struct LoopRecord {
  uint32_t number = 0;
  LoopKind kind = LoopKind::structure;
  std::string name;                 // of the region that marks an iteration
  int64_t accepted_ns = 0;          // when it was recognised
  uint64_t accepted_iteration = 0;  // iterations seen until then
  int64_t ended_ns = -1;            // -1: it went on until the end
  std::string reason, confidence;
};

enum Detail : uint8_t { kNoDetail = 0, kPartDetail = 1, kAllDetail = 2 };

struct IterationRecord {
  uint32_t loop = 0;
  int64_t start_ns = 0, duration_ns = 0;
  uint32_t events = 0;     // spans of the main thread that began in it
  uint64_t path_hash = 0;  // of the set of transitions taken
  uint32_t class_id = 0;
  Detail detail = kAllDetail;
  int64_t detail_ns = 0;          // from when on there is detail, where it is a part
  int64_t parts_ns[kParts] = {};  // their sum is the duration
};

// A class of iterations: what is done in it beyond the usual, in order of first occurrence, as structure::Extra has it.
// Region 0 stands for a validation (with the path of what is around it), 1 for all classes beyond the limit. Older
// recorders wrote no paths.
struct IterationClass {
  std::vector<uint32_t> regions, paths;
};
constexpr uint32_t kMostClasses = 64;
// In how many recorded iterations of a loop the function of a path was called, usual or not, and in how many it cost
// enough for a class; without a path (0xFFFFFFFF), the same of validations.
struct ExtraCalls {
  uint32_t loop, path;
  uint64_t iterations, worth;
};

// Payloads of chunks.
std::string encode_loops(const std::vector<LoopRecord>& loops);
bool decode_loops(std::string_view payload, uint32_t count, std::vector<LoopRecord>& into);
std::string encode_classes(const std::vector<IterationClass>& classes, const std::vector<ExtraCalls>& calls);
bool decode_classes(std::string_view payload, uint32_t first, uint32_t count, std::vector<IterationClass>& into,
                    std::vector<ExtraCalls>& calls);
std::string encode_iterations(const std::vector<IterationRecord>& iterations, const CellColumns& cells);
// `first` is the number of the first one; those before `next`, the first one not known yet, are skipped.
bool decode_iterations(std::string_view payload, uint32_t first, uint32_t count, std::vector<IterationRecord>& into,
                       CellColumns& cells, uint32_t& next);

}  // namespace strobe::structure

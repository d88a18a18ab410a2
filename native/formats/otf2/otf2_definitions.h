// otf2_definitions.h - the anchor and the definitions of an OTF2 archive: what the numbers in its events stand for.
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/otf2/otf2_bytes.h"

namespace strobe::otf2 {

// Definitions by their number. Numbers are dense in what tools write; they may be anything in a damaged file.
template <class Value>
class Defined {
 public:
  Value& add(uint64_t id) {
    const auto [at, is_new] = index_.try_emplace(id, uint32_t(values_.size()));
    if (is_new)
      values_.emplace_back();
    else
      repeated_++;
    if (id < kDense) {
      if (dense_.size() <= id) dense_.resize(size_t(id) + 1, kUndefined);
      dense_[size_t(id)] = at->second;
    }
    Value& value = values_[at->second];
    if constexpr (requires { value.id; }) value.id = decltype(value.id)(id);
    return value;
  }
  // Definitions with the number of an earlier one: the last one counts.
  uint64_t repeated() const { return repeated_; }
  // Position in order of definition, kUndefined where there is none.
  uint32_t position(uint64_t id) const {
    if (id < dense_.size()) return dense_[size_t(id)];
    if (id < kDense) return kUndefined;
    const auto at = index_.find(id);
    return at == index_.end() ? kUndefined : at->second;
  }
  const Value* find(uint64_t id) const {
    const uint32_t at = position(id);
    return at == kUndefined ? nullptr : &values_[at];
  }
  const Value& operator[](uint32_t position) const { return values_[position]; }
  size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  static constexpr uint64_t kDense = 1 << 20;
  std::vector<Value> values_;
  std::vector<uint32_t> dense_;
  std::unordered_map<uint64_t, uint32_t> index_;
  uint64_t repeated_ = 0;
};

// Numbers of the format; only those that are distinguished here.
enum class Paradigm : uint8_t {
  unknown = 0,
  user = 1,
  compiler = 2,
  openmp = 3,
  mpi = 4,
  cuda = 5,
  measurement = 6,
  pthread = 7,
  shmem = 13,
  openacc = 18,
  opencl = 19,
  hip = 23,
  kokkos = 24,
  openmp_target = 25
};
enum class Role : uint8_t {
  unknown = 0,
  function = 1,
  wrapper = 2,
  loop = 3,
  code = 4,
  barrier = 15,
  implicit_barrier = 16,
  flush = 17,
  task_wait = 22,
  one_to_all = 23,
  other_collective = 26,
  file_io = 27,
  point_to_point = 28,
  rma = 29,
  artificial = 31,
  thread_wait = 33,
  kernel = 40
};
enum class LocationType : uint8_t { unknown = 0, thread = 1, stream = 2, metric = 3 };
enum class GroupType : uint8_t { regions = 2, locations_of_comm = 4, ranks = 5, self = 6 };
enum class Scope : uint8_t { location = 0, location_group = 1, system_node = 2, group = 3 };
enum class Type : uint8_t {
  u8 = 1,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  real32,
  real64,
  string,
  attribute,
  location,
  region,
  group,
  metric,
  comm,
  parameter,
  rma_window,
  source_location,
  calling_context,
  interrupt_generator,
  io_file,
  io_handle,
  location_group
};

struct Value {  // of an attribute or a property
  Type type;
  uint64_t bits;  // the number; the bits of a real; the reference
};
Value read_value(Bytes& in, Type type);

struct Region {
  uint32_t id, name, canonical_name, description, file;
  uint32_t line = 0;
  Role role = Role::unknown;
  Paradigm paradigm = Paradigm::unknown;
};
struct Location {
  uint64_t id;
  uint32_t name, group;
  LocationType type;
  uint64_t events;
};
struct LocationGroup {
  uint32_t id, name, system_node, creator = kUndefined;
  uint8_t type;
};
struct SystemNode {
  uint32_t name, class_name, parent;
};
struct Group {
  uint32_t name;
  GroupType type;
  Paradigm paradigm;
  bool global_members = false;  // of a communicator's group: locations, instead of positions among all of the paradigm
  std::vector<uint64_t> members;
};
struct Comm {
  uint32_t name, group, remote_group = kUndefined;  // the latter of those between two groups
};
struct MetricMember {
  uint32_t name, description, unit;
  uint8_t type, mode, value_type;
  bool decimal;
  int64_t exponent;
};
struct MetricClass {
  std::vector<uint32_t> members;
  uint8_t occurrence;
};
struct MetricInstance {
  uint32_t metric_class;
  uint64_t recorder;
  Scope scope_type;
  uint64_t scope;
};
struct Named {  // parameters, attributes, windows (`of`: their communicator), files, handles, interrupt generators
  uint32_t name, of = kUndefined;
};
struct SourceLocation {
  uint32_t file, line;
};
struct CallingContext {
  uint32_t region, source, parent;
};

struct Anchor {
  bool big_endian = false;
  int version[3] = {0, 0, 0};
  uint64_t event_chunk_bytes = 0, definition_chunk_bytes = 0;
  uint64_t locations = 0, trace_id = 0;
  std::string machine, creator, description;
  std::vector<std::pair<std::string, std::string>> properties;
};
// Throws std::runtime_error with a sentence where it is none, or one of a kind that is not read.
Anchor read_anchor(std::string_view file);

class Definitions {
 public:
  // One record of the file of global definitions. False: it is damaged. Records of other kinds are counted.
  bool record(uint8_t type, Bytes in);
  void finish();              // everything was read: what refers to each other is looked up
  uint64_t repeated() const;  // see Defined; of all kinds

  const std::string& string(uint32_t id) const;
  // "Name", or "communicator 7" where none is given.
  std::string label(const char* what, uint32_t name, uint64_t id) const;
  template <class Value>
  std::string label(const char* what, const Defined<Value>& kind, uint64_t id) const {
    const Value* found = kind.find(id);
    return label(what, found ? found->name : kUndefined, id);
  }
  std::string communicator_label(uint32_t id) const;  // "Name [7]" where several have that name

  // Clock
  uint64_t ticks_per_second = 0, first_ticks = 0, trace_ticks = 0, unix_ns = kUndefined64;

  Defined<std::string> strings;
  Defined<Region> regions;
  Defined<Location> locations;
  Defined<LocationGroup> location_groups;
  Defined<SystemNode> system_nodes;
  Defined<Group> groups;
  Defined<Comm> comms;
  Defined<MetricMember> metric_members;
  Defined<MetricClass> metric_classes;
  Defined<MetricInstance> metric_instances;
  Defined<Named> parameters, attributes, windows, interrupt_generators, io_files, io_handles;
  Defined<SourceLocation> source_locations;
  Defined<CallingContext> calling_contexts;
  struct Property {
    uint64_t of;
    uint32_t name;
    Value value;
  };
  std::vector<Property> location_properties, group_properties;

  // After finish.
  uint32_t process_group(uint32_t location_group) const;  // position of the group whose process it is part of
  int64_t rank_of(uint64_t location) const;               // in MPI_COMM_WORLD of its process, -1: none
  int64_t ranks() const { return ranks_; }
  uint64_t member(const Group& group, uint64_t rank) const;  // location, kUndefined64: none
  const std::string& region_group(uint32_t region) const;    // name of the group that the region is a member of
  std::string host_of(uint32_t location_group) const;
  std::string call_stack(uint32_t calling_context) const;  // names, outermost first, a line each

 private:
  const Group* locations_of(Paradigm paradigm) const;
  std::vector<int64_t> rank_of_group_;  // by position of the location group
  std::vector<uint32_t> process_of_group_;
  std::unordered_map<uint32_t, uint32_t> group_of_region_;
  std::unordered_map<std::string, uint32_t> comms_of_name_;  // how many
  std::map<Paradigm, uint32_t> locations_of_;
  int64_t ranks_ = 0;
};

// The definitions of one location: its own numbers for things, and by how much its clock is off.
class LocalDefinitions {
 public:
  bool record(uint8_t type, Bytes in);
  // The number in the archive of what a reference of this type names, from Type::string on.
  uint64_t global(Type type, uint64_t id) const {
    const Table& table = tables_[size_t(type) - size_t(Type::string)];
    if (!table.used) return id;
    if (id < table.dense.size()) return table.dense[size_t(id)];
    if (table.sparse.empty()) return id;
    const auto at = table.sparse.find(id);
    return at == table.sparse.end() ? id : at->second;
  }
  // The clock of the archive; interpolated between two measurements, continued with the slope of the last ones. As in
  // the OTF2 library, a single measurement corrects nothing.
  uint64_t corrected(uint64_t ticks);

 private:
  struct Table {
    bool used = false;
    std::vector<uint64_t> dense;
    std::unordered_map<uint64_t, uint64_t> sparse;
  };
  struct Offset {
    uint64_t ticks;
    int64_t offset;
  };
  static constexpr size_t kReferences = size_t(Type::location_group) - size_t(Type::string) + 1;
  Table tables_[kReferences];
  std::vector<Offset> offsets_;
  size_t interval_ = 0;
};

}  // namespace strobe::otf2

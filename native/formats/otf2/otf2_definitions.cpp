#include "formats/otf2/otf2_definitions.h"

#include <math.h>

#include <algorithm>
#include <stdexcept>

namespace strobe::otf2 {

namespace {

constexpr size_t kMostDepth = 1000;  // of trees whose nodes name their parents: a damaged file may have circles

enum Record : uint8_t {
  kClockProperties = 5,
  kString = 10,
  kAttribute,
  kSystemNode,
  kLocationGroup,
  kLocation,
  kRegion,
  kGroup = 18,
  kMetricMember,
  kMetricClass,
  kMetricInstance,
  kComm,
  kParameter,
  kWindow,
  kSystemNodeProperty = 26,
  kLocationGroupProperty = 28,
  kLocationProperty,
  kSourceLocation = 33,
  kCallingContext,
  kInterruptGenerator = 36,
  kIoRegularFile = 38,
  kIoDirectory,
  kIoHandle,
  kInterComm = 43
};

// Before version 1.2, groups had other types: those of MPI were kinds of their own.
void old_group(uint8_t type, Group& group) {
  constexpr uint8_t kMpiGroup = 4, kMpiSelf = 5, kMpiLocations = 6;
  group.paradigm = type >= kMpiGroup ? Paradigm::mpi : Paradigm::unknown;
  group.type = type == kMpiGroup       ? GroupType::ranks
               : type == kMpiSelf      ? GroupType::self
               : type == kMpiLocations ? GroupType::locations_of_comm
                                       : GroupType(type);
}

std::string_view bounded_text(Bytes& in) {
  const std::string_view text = in.text();
  if (!in.ok()) throw std::runtime_error("the anchor file ends early");
  return text;
}

}  // namespace

Value read_value(Bytes& in, Type type) {
  switch (type) {
    case Type::u8:
      return {type, in.u8()};
    case Type::i8:
      return {type, uint64_t(int64_t(int8_t(in.u8())))};
    case Type::u16:
      return {type, in.fixed(2)};
    case Type::i16:
      return {type, uint64_t(int64_t(int16_t(in.fixed(2))))};
    case Type::i32:
      return {type, uint64_t(int64_t(int32_t(in.id())))};
    case Type::real32:
      return {type, in.fixed(4)};
    case Type::real64:
      return {type, in.fixed(8)};
    default:
      // Numbers of 64 bits, and references, also of kinds that come with later versions: all bits set means none.
      return {type, in.number()};
  }
}

Anchor read_anchor(std::string_view file) {
  const auto* begin = reinterpret_cast<const uint8_t*>(file.data());
  if (file.size() < 2 || begin[0] != 3 || (begin[1] != 'B' && begin[1] != '#'))
    throw std::runtime_error("this is not an OTF2 anchor file");
  Anchor anchor;
  anchor.big_endian = begin[1] == '#';
  Bytes in(begin + 2, begin + file.size(), anchor.big_endian);
  if (in.text() != "OTF2") throw std::runtime_error("this is not an OTF2 anchor file");
  const uint8_t format = in.u8();
  in.u8();  // version of the trace format
  for (int& part : anchor.version) part = in.u8();
  anchor.event_chunk_bytes = in.fixed(8);
  anchor.definition_chunk_bytes = in.fixed(8);
  const uint8_t substrate = in.u8(), compression = in.u8();
  anchor.locations = in.fixed(8);
  in.fixed(8);  // number of definitions
  if (!in.ok()) throw std::runtime_error("the anchor file ends early");
  constexpr uint8_t kPosix = 1, kNotCompressed = 1;
  if (substrate != kPosix) throw std::runtime_error("its events are in SIONlib containers, which are not read");
  if (compression != kNotCompressed) throw std::runtime_error("its files are compressed by OTF2, which is not read");
  constexpr uint64_t kLeast = 64, kMost = uint64_t(1) << 32;
  for (uint64_t size : {anchor.event_chunk_bytes, anchor.definition_chunk_bytes})
    if (size < kLeast || size > kMost) throw std::runtime_error("the anchor file states chunks of an absurd size");
  anchor.machine = bounded_text(in);
  anchor.creator = bounded_text(in);
  anchor.description = bounded_text(in);
  if (format < 2) return anchor;
  for (uint64_t left = in.fixed(4); left && in.ok(); left--) {
    const std::string_view name = bounded_text(in), value = bounded_text(in);
    anchor.properties.emplace_back(name, value);
  }
  anchor.trace_id = in.fixed(8);
  return anchor;
}

bool Definitions::record(uint8_t type, Bytes in) {
  const auto define = [&in](auto& kind, uint64_t id, auto... members) {
    auto& value = kind.add(id);
    (in.read(value.*members), ...);
  };
  switch (type) {
    case kClockProperties:
      in.read(ticks_per_second, first_ticks, trace_ticks);
      // Versions before 3 do not have it.
      unix_ns = in.left() ? in.number() : kUndefined64;
      break;
    case kString: {
      std::string& text = strings.add(in.id());
      text = in.text();
      break;
    }
    case kAttribute:
      define(attributes, in.id(), &Named::name);
      break;
    case kSystemNode:
      define(system_nodes, in.id(), &SystemNode::name, &SystemNode::class_name, &SystemNode::parent);
      break;
    case kLocationGroup: {
      LocationGroup& group = location_groups.add(in.id());
      in.read(group.name, group.type, group.system_node);
      group.creator = in.left() ? in.id() : kUndefined;
      break;
    }
    case kLocation:
      define(locations, in.number(), &Location::name, &Location::type, &Location::events, &Location::group);
      break;
    case kRegion: {
      Region& region = regions.add(in.id());
      in.read(region.name, region.description);
      in.u8();  // what version 1.0 had instead of a role and a paradigm
      in.read(region.file, region.line);
      in.id();  // last line
      region.canonical_name = region.name;
      if (in.left()) in.read(region.canonical_name, region.role, region.paradigm);
      break;
    }
    case kGroup: {
      Group& group = groups.add(in.id());
      group.name = in.id();
      const uint8_t old_type = in.u8();
      group.members.clear();
      for (uint32_t left = in.id(); left && in.ok(); left--) group.members.push_back(in.number());
      if (!in.left()) {
        old_group(old_type, group);
        break;
      }
      in.read(group.type, group.paradigm);
      group.global_members = in.id() & 1;
      break;
    }
    case kMetricMember: {
      MetricMember& member = metric_members.add(in.id());
      in.read(member.name, member.description, member.type, member.mode, member.value_type);
      in.read(member.decimal, member.exponent, member.unit);
      break;
    }
    case kMetricClass: {
      MetricClass& metric = metric_classes.add(in.id());
      metric.members.clear();
      for (uint8_t left = in.u8(); left && in.ok(); left--) metric.members.push_back(in.id());
      metric.occurrence = in.u8();
      break;
    }
    case kMetricInstance: {
      MetricInstance& instance = metric_instances.add(in.id());
      in.read(instance.metric_class, instance.recorder, instance.scope_type, instance.scope);
      break;
    }
    case kComm:
      define(comms, in.id(), &Comm::name, &Comm::group);
      break;
    case kInterComm:
      define(comms, in.id(), &Comm::name, &Comm::group, &Comm::remote_group);
      break;
    case kParameter:
      define(parameters, in.id(), &Named::name);
      break;
    case kWindow:
      define(windows, in.id(), &Named::name, &Named::of);
      break;
    case kSystemNodeProperty:
    case kLocationGroupProperty:
    case kLocationProperty: {
      Property property;
      property.of = type == kLocationProperty ? in.number() : in.id();
      property.name = in.id();
      const uint32_t text = in.id();
      // Before version 2.0 all of them were texts.
      property.value = in.left() ? read_value(in, Type(in.u8())) : Value{Type::string, text};
      if (!in.ok()) return false;
      if (type == kLocationProperty) location_properties.push_back(property);
      if (type == kLocationGroupProperty) group_properties.push_back(property);
      break;
    }
    case kSourceLocation:
      define(source_locations, in.id(), &SourceLocation::file, &SourceLocation::line);
      break;
    case kCallingContext: {
      CallingContext& context = calling_contexts.add(in.id());
      in.read(context.region, context.source, context.parent);
      break;
    }
    case kInterruptGenerator:
      define(interrupt_generators, in.id(), &Named::name);
      break;
    case kIoRegularFile:
    case kIoDirectory:
      define(io_files, in.id(), &Named::name);
      break;
    case kIoHandle:
      define(io_handles, in.id(), &Named::name, &Named::of);
      break;
    default:
      break;  // names of paradigms, call sites, topologies, I/O properties: nothing here refers to them
  }
  return in.ok();
}

uint64_t Definitions::repeated() const {
  const auto sum = [](const auto&... kinds) { return (kinds.repeated() + ...); };
  return sum(strings, regions, locations, location_groups, system_nodes, groups, comms, metric_members, metric_classes,
             metric_instances, parameters, attributes, windows, interrupt_generators, io_files, io_handles,
             source_locations, calling_contexts);
}

void Definitions::finish() {
  process_of_group_.resize(location_groups.size());
  for (uint32_t i = 0; i < location_groups.size(); i++) {
    uint32_t at = i;
    for (size_t depth = 0; depth < kMostDepth; depth++) {
      const uint32_t creator = location_groups.position(location_groups[at].creator);
      if (location_groups[at].creator == kUndefined || creator == kUndefined) break;
      at = creator;
    }
    process_of_group_[i] = at;
  }
  for (uint32_t i = 0; i < groups.size(); i++)
    if (groups[i].type == GroupType::locations_of_comm) locations_of_.try_emplace(groups[i].paradigm, i);
  rank_of_group_.assign(location_groups.size(), -1);
  if (const Group* all = locations_of(Paradigm::mpi)) {
    ranks_ = int64_t(all->members.size());
    for (size_t rank = 0; rank < all->members.size(); rank++) {
      const Location* location = locations.find(all->members[rank]);
      const uint32_t group = location ? process_group(location->group) : kUndefined;
      if (group != kUndefined && rank_of_group_[group] < 0) rank_of_group_[group] = int64_t(rank);
    }
  }
  // Without such a group, ranks are in names: "MPI Rank 3".
  for (uint32_t i = 0; i < location_groups.size() && !ranks_; i++) {
    constexpr std::string_view kPrefix = "MPI Rank ";
    const std::string& name = string(location_groups[i].name);
    if (name.compare(0, kPrefix.size(), kPrefix) || name.size() > kPrefix.size() + 9) continue;
    const std::string digits = name.substr(kPrefix.size());
    if (!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos)
      rank_of_group_[i] = std::stoll(digits);
  }
  for (uint32_t i = 0; i < groups.size(); i++)
    if (groups[i].type == GroupType::regions)
      for (uint64_t region : groups[i].members)
        if (region < kUndefined) group_of_region_.try_emplace(uint32_t(region), groups[i].name);
  for (uint32_t i = 0; i < comms.size(); i++) comms_of_name_[string(comms[i].name)]++;
}

const std::string& Definitions::string(uint32_t id) const {
  static const std::string kNone;
  const std::string* found = strings.find(id);
  return found ? *found : kNone;
}

std::string Definitions::label(const char* what, uint32_t name, uint64_t id) const {
  const std::string& given = string(name);
  return given.empty() ? std::string(what) + " " + std::to_string(id) : given;
}

std::string Definitions::communicator_label(uint32_t id) const {
  const std::string known = label("communicator", comms, id);
  const auto as_many = comms_of_name_.find(known);
  return as_many != comms_of_name_.end() && as_many->second > 1 ? known + " [" + std::to_string(id) + "]" : known;
}

uint32_t Definitions::process_group(uint32_t location_group) const {
  const uint32_t at = location_groups.position(location_group);
  return at == kUndefined ? kUndefined : process_of_group_[at];
}

int64_t Definitions::rank_of(uint64_t location) const {
  const Location* found = locations.find(location);
  const uint32_t group = found ? process_group(found->group) : kUndefined;
  return group == kUndefined ? -1 : rank_of_group_[group];
}

const Group* Definitions::locations_of(Paradigm paradigm) const {
  const auto at = locations_of_.find(paradigm);
  return at == locations_of_.end() ? nullptr : &groups[at->second];
}

uint64_t Definitions::member(const Group& group, uint64_t rank) const {
  if (rank >= group.members.size()) return kUndefined64;
  const uint64_t member = group.members[size_t(rank)];
  if (group.type != GroupType::ranks || group.global_members) return member;
  // Members are positions among all locations of the paradigm.
  const Group* all = locations_of(group.paradigm);
  return all && member < all->members.size() ? all->members[size_t(member)] : kUndefined64;
}

const std::string& Definitions::region_group(uint32_t region) const {
  const auto at = group_of_region_.find(region);
  return string(at == group_of_region_.end() ? kUndefined : at->second);
}

std::string Definitions::host_of(uint32_t location_group) const {
  const LocationGroup* group = location_groups.find(location_group);
  const SystemNode* node = group ? system_nodes.find(group->system_node) : nullptr;
  const SystemNode* first = node;
  for (size_t depth = 0; node && depth < kMostDepth; depth++) {
    if (string(node->class_name) == "node") return string(node->name);
    node = node->parent == kUndefined ? nullptr : system_nodes.find(node->parent);
  }
  return first ? string(first->name) : "";
}

std::string Definitions::call_stack(uint32_t calling_context) const {
  std::string stack;
  uint32_t id = calling_context;
  for (size_t depth = 0; depth < kMostDepth; depth++) {
    const CallingContext* context = id == kUndefined ? nullptr : calling_contexts.find(id);
    if (!context) break;
    const Region* region = regions.find(context->region);
    std::string line = region ? label("region", region->name, context->region) : "unknown";
    if (const SourceLocation* source = source_locations.find(context->source))
      line += " (" + string(source->file) + ":" + std::to_string(source->line) + ")";
    stack = stack.empty() ? line : line + "\n" + stack;
    id = context->parent;
  }
  return stack;
}

bool LocalDefinitions::record(uint8_t type, Bytes in) {
  constexpr uint8_t kMappingTable = 5, kClockOffset = 6, kDense = 0;
  if (type == kMappingTable) {
    const uint8_t kind = in.u8();
    if (kind >= kReferences) return true;
    Table& table = tables_[kind];
    uint64_t left = in.number();
    const bool dense = in.u8() == kDense;
    table = {};
    table.used = true;
    for (; left && in.ok(); left--) {
      const uint64_t local = dense ? 0 : in.number();
      const uint64_t global = in.number();
      if (dense)
        table.dense.push_back(global);
      else
        table.sparse[local] = global;
    }
  } else if (type == kClockOffset) {
    const uint64_t ticks = in.fixed(8);
    const int64_t offset = int64_t(in.number());
    if (in.ok() && (offsets_.empty() || ticks > offsets_.back().ticks)) offsets_.push_back({ticks, offset});
  }
  return in.ok();
}

uint64_t LocalDefinitions::corrected(uint64_t ticks) {
  if (offsets_.size() < 2) return ticks;
  // Times only grow, so the interval does: it is looked for from the last one on.
  while (interval_ + 2 < offsets_.size() && ticks > offsets_[interval_ + 1].ticks) interval_++;
  const Offset &from = offsets_[interval_], &to = offsets_[interval_ + 1];
  // from.offset + (to.offset - from.offset) * (ticks - from.ticks) / (to.ticks - from.ticks), to the nearest, exactly;
  // what lies in the middle goes to the even one, as rint() does.
  using Wide = __int128;
  const Wide rise = Wide(to.offset) - from.offset, run = Wide(to.ticks) - from.ticks;
  const Wide since = Wide(ticks) - from.ticks;
  const bool negative = (rise < 0) != (since < 0);
  const unsigned __int128 magnitude_rise = rise < 0 ? -rise : rise, magnitude_since = since < 0 ? -since : since;
  unsigned __int128 product;
  if (__builtin_mul_overflow(magnitude_rise, magnitude_since, &product)) return ticks + uint64_t(from.offset);
  unsigned __int128 quotient = product / (unsigned __int128)run;
  const unsigned __int128 rest = product % (unsigned __int128)run, twice = rest * 2;
  if (twice > (unsigned __int128)run || (twice == (unsigned __int128)run && (quotient & 1))) quotient++;
  const uint64_t change = uint64_t(quotient);
  return ticks + uint64_t(from.offset) + (negative ? uint64_t(0) - change : change);
}

}  // namespace strobe::otf2

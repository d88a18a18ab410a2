#include "formats/otf2/otf2_import_process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "core/format/side_tables.generated.h"
#include "formats/encoding/json_strings.h"
#include "include/strobe.h"

namespace strobe::otf2 {

namespace {

// Names of parameters that Score-P gives kernels (scorep_cupti_activity.c, and the same for HIP).
struct KernelParameter {
  std::string_view name;
  const SchemaColumn* column;
};
constexpr KernelParameter kKernelParameters[] = {
    {"blocks per grid", &schema::kernel_spans::grid_x},
    {"threads per block", &schema::kernel_spans::block_x},
    {"registers per thread", &schema::kernel_spans::registers_per_thread},
    {"static shared memory", &schema::kernel_spans::static_shared_bytes},
    {"dynamic shared memory", &schema::kernel_spans::dynamic_shared_bytes},
    {"total local memory", &schema::kernel_spans::local_bytes},
    {"threads per kernel", nullptr},
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool accelerator(Paradigm paradigm) {
  return paradigm == Paradigm::cuda || paradigm == Paradigm::hip || paradigm == Paradigm::opencl ||
         paradigm == Paradigm::openacc || paradigm == Paradigm::kokkos || paradigm == Paradigm::openmp_target;
}

constexpr std::pair<Paradigm, uint8_t> kParadigms[] = {
    {Paradigm::compiler, STROBE_COMPILER}, {Paradigm::openmp, STROBE_OPENMP}, {Paradigm::openmp_target, STROBE_OPENMP},
    {Paradigm::mpi, STROBE_MPI},           {Paradigm::cuda, STROBE_CUDA},     {Paradigm::measurement, STROBE_SELF},
    {Paradigm::pthread, STROBE_PTHREAD},   {Paradigm::shmem, STROBE_SHMEM},   {Paradigm::openacc, STROBE_OPENACC},
    {Paradigm::opencl, STROBE_OPENCL},     {Paradigm::hip, STROBE_HIP},       {Paradigm::kokkos, STROBE_KOKKOS},
};

uint8_t paradigm_of(const Region& region, std::string_view name, std::string_view file, std::string_view group) {
  // Score-P's Python bindings: "module.Class:function" of USER; what the user marked is "user:name".
  if (region.paradigm == Paradigm::user)
    return file.ends_with(".py") && contains(name, ":") && !name.starts_with("user") ? STROBE_PYTHON : STROBE_USER;
  if (region.paradigm == Paradigm::cuda && group.starts_with("NVTX")) return STROBE_NVTX;
  for (const auto& [paradigm, ours] : kParadigms)
    if (region.paradigm == paradigm) return ours;
  return STROBE_OTHER;
}

uint8_t role_of(const Region& region, std::string_view name, uint8_t paradigm, bool on_stream) {
  const bool device = accelerator(region.paradigm) && paradigm != STROBE_NVTX;
  switch (region.role) {
    case Role::kernel:
      return STROBE_ROLE_KERNEL;
    case Role::loop:
      return STROBE_ROLE_LOOP;
    case Role::barrier:
      return region.paradigm == Paradigm::mpi ? STROBE_ROLE_COLLECTIVE : STROBE_ROLE_SYNC;
    case Role::implicit_barrier:
    case Role::flush:
      return STROBE_ROLE_SYNC;
    case Role::task_wait:
    case Role::thread_wait:
      return STROBE_ROLE_WAIT;
    case Role::point_to_point:
    case Role::rma:
      return STROBE_ROLE_P2P;
    case Role::unknown:
      return STROBE_ROLE_OTHER;
    default:
      break;
  }
  if (region.role >= Role::one_to_all && region.role <= Role::other_collective) return STROBE_ROLE_COLLECTIVE;
  if (paradigm == STROBE_NVTX || (paradigm == STROBE_USER && region.role != Role::function)) return STROBE_ROLE_RANGE;
  // Score-P before 9 calls kernels functions.
  if (device && on_stream && region.role == Role::function) return STROBE_ROLE_KERNEL;
  if (device && (contains(name, "Synchronize") || contains(name, "EventQuery"))) return STROBE_ROLE_SYNC;
  if (name.starts_with("user:")) return STROBE_ROLE_RANGE;
  return region.role <= Role::wrapper || region.role >= Role::file_io ? STROBE_ROLE_FUNCTION : STROBE_ROLE_RANGE;
}

// What measuring itself did to the program: never the program's own time.
bool is_overhead(std::string_view name) { return contains(name, "BUFFER FLUSH") || name == "MEASUREMENT OFF"; }

int64_t trailing_number(std::string_view text) {
  size_t at = text.size();
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
  if (at == text.size() || text.size() - at > 9) return -1;
  return std::stoll(std::string(text.substr(at)));
}

}  // namespace

Process::Process(const Definitions& all, const Own& ours, uint32_t group, const std::string& path, size_t buffer_bytes)
    : definitions(all), own(ours), out(path, buffer_bytes), group_(group) {
  own.tables.define(out);
  pid = group == kUndefined ? 0 : int64_t(all.location_groups[group].id);
  for (auto& each : regions_) each.resize(all.regions.size());
  parameters_.resize(all.parameters.size());
  for (const Location& each : all.locations)
    if (first_thread_ == kUndefined64 && each.type == LocationType::thread && all.process_group(each.group) == group)
      first_thread_ = each.id;
}

const RegionUse& Process::region(uint32_t id, bool on_stream) {
  const uint32_t at = definitions.regions.position(id);
  RegionUse& use = at == kUndefined ? undefined_regions_[on_stream][id] : regions_[on_stream][at];
  if (!use.number) use = describe(id, on_stream);
  return use;
}

RegionUse Process::describe(uint32_t id, bool on_stream) {
  RegionUse use;
  const Region* region = definitions.regions.find(id);
  if (!region) {
    out.count("undefined_regions");
    use.number = out.region("region " + std::to_string(id), STROBE_OTHER, STROBE_ROLE_OTHER);
    return use;
  }
  const std::string name = definitions.label("region", region->name, id);
  const std::string &file = definitions.string(region->file), &group = definitions.region_group(id);
  if (own.archive) {
    const Own::Kind kind = own.kind(definitions.string(region->description));
    use.number = out.region(definitions.string(region->name), kind.paradigm, kind.role, file, region->line, group);
    return use;
  }
  uint8_t paradigm = paradigm_of(*region, name, file, group);
  uint8_t role = role_of(*region, name, paradigm, on_stream);
  if (region->role == Role::artificial) {
    role = contains(name, "IDLE") ? STROBE_ROLE_IDLE : STROBE_ROLE_OTHER;
    if (is_overhead(name)) paradigm = STROBE_SELF;
  }
  use.kernel = role == STROBE_ROLE_KERNEL;
  const std::string& canonical = definitions.string(region->canonical_name);
  if (use.kernel && !canonical.empty() && canonical != name) use.mangled_text = out.text(canonical);
  use.number = out.region(name, paradigm, role, file, region->line == kUndefined ? 0 : region->line, group);
  return use;
}

uint32_t Process::location(uint64_t id) {
  const auto [at, is_new] = locations_.try_emplace(id, 0);
  if (!is_new) return at->second;
  const Location* location = definitions.locations.find(id);
  const LocationType type = location ? location->type : LocationType::unknown;
  const auto kind = type == LocationType::stream   ? LocationKind::stream
                    : type == LocationType::metric ? LocationKind::task
                                                   : LocationKind::thread;
  const std::string name = definitions.label("location", definitions.locations, id);
  if (own.archive && location) {
    const Own::Row row = own.row(definitions, id, kind);
    return at->second = out.location(definitions.string(location->name), row.thread_id, row.kind, row.device);
  }
  at->second = out.location(name, id, kind, type == LocationType::stream ? stream(id).device : -1);
  return at->second;
}

Stream Process::stream(uint64_t id) const {
  Stream found;
  const Location* location = definitions.locations.find(id);
  if (!location) return found;
  // "CUDA[0:7]": device and stream.
  const std::string& name = definitions.string(location->name);
  const size_t open = name.find('[');
  int device, stream;
  if (open != name.npos && sscanf(name.c_str() + open, "[%9d:%9d]", &device, &stream) == 2)
    found.device = device, found.stream = stream;
  if (const LocationGroup* group = definitions.location_groups.find(location->group))
    if (group->creator != kUndefined) found.context = trailing_number(definitions.string(group->name));
  return found;
}

int64_t Process::nanoseconds(uint64_t ticks) {
  constexpr uint64_t kSecond = 1'000'000'000, kLatest = INT64_MAX / 2;
  const uint64_t rate = definitions.ticks_per_second;
  const bool before = ticks < definitions.first_ticks;
  const uint64_t since = before ? definitions.first_ticks - ticks : ticks - definitions.first_ticks;
  uint64_t whole = since, rest_ns = 0;  // in a clock of nanoseconds there is nothing to do
  if (rate != kSecond) {
    // Most times lie in the same second as the one before: that saves one of two divisions.
    if (since - second_ticks_ >= rate) {
      second_ticks_ = since - since % rate;
      second_ns_ = (unsigned __int128)(since / rate) * kSecond > kLatest ? kLatest : since / rate * kSecond;
    }
    const uint64_t rest = since - second_ticks_;
    whole = second_ns_;
    // Below 9.2 GHz it fits 64 bits, whose division is ten times faster.
    rest_ns = rate <= UINT64_MAX / 2 / kSecond ? (rest * kSecond + rate / 2) / rate
                                               : uint64_t(((unsigned __int128)(rest)*kSecond + rate / 2) / rate);
  }
  if (whole >= kLatest) {
    out.count("times_out_of_range");
    whole = kLatest, rest_ns = 0;
  }
  const int64_t ns = int64_t(whole + rest_ns);
  return before ? -ns : ns;
}

std::vector<Process::MetricUse> Process::metrics(uint32_t metric, uint64_t location) {
  std::vector<MetricUse> uses;
  const MetricInstance* instance = definitions.metric_instances.find(metric);
  const MetricClass* metric_class = definitions.metric_classes.find(instance ? instance->metric_class : metric);
  if (!metric_class) return uses;
  constexpr uint32_t kProcess = 0xFFFFFFFF;
  // What was measured: a location of this process, this process, or something else, which then is part of the name.
  uint32_t measured = kProcess;
  std::string of;
  const auto scope_location = [&](uint64_t id) {
    const Location* scope = definitions.locations.find(id);
    if (scope && definitions.process_group(scope->group) == group_ && scope->type != LocationType::metric)
      measured = this->location(id);
    else if (!scope || scope->type != LocationType::metric)
      of = location_label(id);
  };
  if (!instance) {
    scope_location(location);
  } else if (instance->scope_type == Scope::location) {
    scope_location(instance->scope);
  } else if (instance->scope_type == Scope::location_group) {
    const uint32_t position = definitions.location_groups.position(instance->scope);
    if (position == kUndefined || position != group_)
      of = definitions.label("location group", definitions.location_groups, instance->scope);
  } else if (instance->scope_type == Scope::system_node) {
    of = definitions.label("node", definitions.system_nodes, instance->scope);
  } else {
    of = definitions.label("group", definitions.groups, instance->scope);
  }
  for (uint32_t id : metric_class->members) {
    const MetricMember* member = definitions.metric_members.find(id);
    std::string name = definitions.label("metric", definitions.metric_members, id);
    if (!of.empty()) name += " @ " + of;
    // Several may record something of one name: then who did is part of it.
    if (metric_owner_.try_emplace(name + '\n' + std::to_string(measured), location).first->second != location)
      name +=
          " (" + definitions.label("location", definitions.locations, location) + " " + std::to_string(location) + ")";
    MetricUse use{out.metric(name, member ? definitions.string(member->unit) : "", measured), 0, 1, 1, false};
    if (member) {
      use.value_type = member->value_type;
      // Readings are in units of base^exponent.
      const double power = pow(member->decimal ? 10 : 2, double(std::min<int64_t>(llabs(member->exponent), 300)));
      (member->exponent < 0 ? use.divisor : use.factor) = power;
      use.scaled = member->exponent != 0;
    }
    uses.push_back(use);
  }
  return uses;
}

std::string Process::location_label(uint64_t id) const {
  const Location* location = definitions.locations.find(id);
  const std::string name = definitions.label("location", definitions.locations, id);
  const LocationGroup* group = location ? definitions.location_groups.find(location->group) : nullptr;
  return group ? definitions.label("location group", group->name, location->group) + ": " + name : name;
}

std::string Process::json(const Value& value) const {
  const uint32_t id = uint32_t(value.bits);
  const auto named = [&](const char* what, const auto& kind) {
    const auto* found = kind.find(id);
    return json::quoted(definitions.label(what, found ? found->name : kUndefined, value.bits));
  };
  switch (value.type) {
    case Type::i8:
    case Type::i16:
    case Type::i32:
    case Type::i64:
      return std::to_string(int64_t(value.bits));
    case Type::real32:
    case Type::real64: {
      double real;
      if (value.type == Type::real32) {
        float narrow;
        memcpy(&narrow, &id, 4);
        real = double(narrow);
      } else {
        memcpy(&real, &value.bits, 8);
      }
      char text[40];
      snprintf(text, sizeof text, isfinite(real) ? "%.17g" : "\"%g\"", real);
      return text;
    }
    case Type::string:
      return json::quoted(definitions.string(id));
    case Type::attribute:
      return named("attribute", definitions.attributes);
    case Type::location:
      return json::quoted(location_label(value.bits));
    case Type::region:
      return named("region", definitions.regions);
    case Type::group:
      return named("group", definitions.groups);
    case Type::comm:
      return named("communicator", definitions.comms);
    case Type::parameter:
      return named("parameter", definitions.parameters);
    case Type::rma_window:
      return named("window", definitions.windows);
    case Type::interrupt_generator:
      return named("interrupt generator", definitions.interrupt_generators);
    case Type::io_file:
      return named("file", definitions.io_files);
    case Type::io_handle:
      return named("handle", definitions.io_handles);
    case Type::location_group:
      return named("location group", definitions.location_groups);
    case Type::source_location: {
      const SourceLocation* found = definitions.source_locations.find(id);
      return json::quoted(found ? definitions.string(found->file) + ":" + std::to_string(found->line) : "");
    }
    case Type::calling_context:
      return json::quoted(definitions.call_stack(id));
    default:
      return std::to_string(value.bits);
  }
}

uint32_t Process::location_json(uint64_t id) {
  const auto [at, is_new] = location_jsons_.try_emplace(id, 0);
  if (is_new) at->second = out.text(json({Type::location, id}));
  return at->second;
}

const Process::ParameterUse& Process::parameter(uint32_t id) {
  const uint32_t at = definitions.parameters.position(id);
  ParameterUse& use = at == kUndefined ? undefined_parameters_[id] : parameters_[at];
  if (use.key != kUndefined) return use;
  const std::string name = definitions.label("parameter", definitions.parameters, id);
  use.key = out.text(name);
  for (const KernelParameter& each : kKernelParameters)
    if (name == each.name) use.of_kernel = true, use.column = each.column;
  return use;
}

void Process::own_regions() {
  for (const Region& each : definitions.regions)
    if (!definitions.string(each.description).empty()) region(each.id, false);
}

const Own::Cell& Process::own_cell(uint32_t attribute) {
  const auto [at, is_new] = own_cells_.try_emplace(attribute);
  if (is_new) {
    const Named* found = definitions.attributes.find(attribute);
    at->second = own.cell(definitions.string(found ? found->name : kUndefined));
  }
  return at->second;
}

uint32_t Process::location_text(uint64_t id) {
  const auto [at, is_new] = location_texts_.try_emplace(id, 0);
  if (is_new) at->second = out.text(location_label(id));
  return at->second;
}

}  // namespace strobe::otf2

#include "formats/otf2/otf2_strobe_attributes.h"

#include <algorithm>
#include <optional>

#include "formats/encoding/json_strings.h"

namespace strobe::otf2 {

namespace {

using Properties = std::vector<Definitions::Property>;

const Value* property(const Definitions& definitions, const Properties& all, uint64_t of, std::string_view name) {
  for (const auto& each : all)
    if (each.of == of && definitions.string(each.name) == name) return &each.value;
  return nullptr;
}

std::string_view text(const Definitions& definitions, const Value* value) {
  return value && value->type == Type::string ? std::string_view(definitions.string(uint32_t(value->bits))) : "";
}

const Value* of_group(const Definitions& definitions, uint32_t group, std::string_view name) {
  return property(definitions, definitions.group_properties, group, name);
}

uint8_t number_of(const std::vector<std::string>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? 0 : uint8_t(at - names.begin());
}

}  // namespace

Own::Kind Own::kind(std::string_view description) const {
  const size_t space = std::min(description.find(' '), description.size());
  return {number_of(paradigms, description.substr(0, space)),
          number_of(roles, description.substr(std::min(space + 1, description.size())))};
}

Own::Cell Own::cell(std::string_view attribute) const {
  Cell found;
  const size_t dot = attribute.find('.');
  if (dot == attribute.npos) return found;
  if (attribute.substr(0, dot) == schema::arguments::table)
    found.table = schema::arguments::number, found.is_argument = true, found.key = attribute.substr(dot + 1);
  else if (const SchemaTables::Column* column = tables.exported_column(attribute))
    found.table = column->table, found.column = column->number;
  return found;
}

Own::Row Own::row(const Definitions& definitions, uint64_t location, LocationKind kind) const {
  const auto of = [&](std::string_view name) {
    return property(definitions, definitions.location_properties, location, name);
  };
  Row found{location, kind, -1};
  if (const Value* thread = of("STROBE::THREAD_ID")) found.thread_id = thread->bits;
  if (text(definitions, of("STROBE::KIND")) == "task") found.kind = LocationKind::task;
  if (const Value* device = of("STROBE::DEVICE")) found.device = int64_t(device->bits);
  return found;
}

Own::Rank Own::rank(const Definitions& definitions, uint32_t group) const {
  Rank found;
  const auto of = [&](std::string_view name) { return of_group(definitions, group, name); };
  if (const Value* rank = of("STROBE::RANK")) found.rank = int64_t(rank->bits);
  if (const Value* ranks = of("STROBE::RANKS")) found.ranks = int64_t(ranks->bits);
  return found;
}

void Own::describe(const Definitions& definitions, uint32_t group, ProcessDescription& process,
                   std::string& end_state) const {
  const auto of = [&](std::string_view name) { return of_group(definitions, group, name); };
  if (const Value* pid = of("STROBE::PID")) process.pid = int64_t(pid->bits);
  if (const Value* parent = of("STROBE::PARENT_PID")) process.parent_pid = int64_t(parent->bits);
  if (const Value* code = of("STROBE::EXIT_CODE")) process.exit_code = int64_t(code->bits);
  // Both count from the archive's first moment. In a damaged file they may be anything.
  const auto time = [](const Value* value) -> std::optional<int64_t> {
    constexpr int64_t kMost = int64_t(1) << 62;
    const int64_t ns = value ? int64_t(value->bits) : kMost;
    return ns < kMost && ns > -kMost ? std::optional(ns) : std::nullopt;
  };
  if (const auto started = time(of("STROBE::STARTED_NS"))) process.started_ns = started;
  if (const auto ended = time(of("STROBE::ENDED_NS"))) process.ended_ns = ended;
  const std::string_view state = text(definitions, of("STROBE::END_STATE"));
  for (const char* known : {"closed", "exited", "lost"})
    if (state == known) end_state = known;
}

void Own::describe(const Definitions& definitions, uint32_t group,
                   const std::function<void(std::string_view, std::string_view)>& give) const {
  const auto of = [&](std::string_view name) { return text(definitions, of_group(definitions, group, name)); };
  give("argv", json::list_of(of("STROBE::COMMAND")));
  give("main", of("STROBE::MAIN") == "yes" ? "true" : "false");
  give("host", json::quoted(of("STROBE::HOST")));
  give("python", json::quoted(of("STROBE::PYTHON")));
}

}  // namespace strobe::otf2

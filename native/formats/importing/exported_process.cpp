#include "formats/importing/exported_process.h"

#include "formats/chrome/chrome_json.h"
#include "formats/encoding/json_strings.h"

namespace strobe {

using chrome::append_json;
using chrome::raw;

std::string imported_description(std::string_view command, bool main, std::string_view source) {
  std::string out;
  json::Object about(out);
  about.key("argv") += json::list_of(command);
  about.key("main") += main ? "true" : "false";
  about.text("imported_from", source);
  about.end();
  return out;
}

bool OwnProcess::read(yyjson_val* object) {
  const auto number = [&](const char* key, int64_t without) {
    return chrome::integer_or(raw(yyjson_obj_get(object, key)), without);
  };
  const auto json_of = [&](const char* key) {
    std::string out;
    if (yyjson_val* value = yyjson_obj_get(object, key)) append_json(out, value);
    return out;
  };
  const std::string facts = json_of("description");
  if (facts.size() < 3 || facts[0] != '{') return false;
  description = {number("pid", 0), number("parent_pid", 0), facts, json_of("note")};
  description.started_ns = number("started_ns", 0), description.ended_ns = number("ended_ns", 0);
  description.exit_code = number("exit_code", -1);
  const std::string_view state = raw(yyjson_obj_get(object, "end_state"));
  end_state = state == "exited" || state == "lost" ? state : "closed";
  return true;
}

void OwnProcess::finish(ImportedProcess& process, const std::string& source) {
  description.description_json.back() = ',';
  description.description_json += "\"imported_from\": ";
  json::append_text(description.description_json, source);
  description.description_json += '}';
  process.finish(description, end_state);
}

}  // namespace strobe

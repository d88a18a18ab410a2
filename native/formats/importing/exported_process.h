// exported_process.h - a process in our own exports, as JSON:
// src/strobe/formats/writing/processes.py writes it.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "formats/importing/imported_process.h"
#include "vendor/yyjson/yyjson.h"

namespace strobe {

// JSON of our own exports, its numbers as texts.
class OwnJson {
 public:
  explicit OwnJson(std::string_view json)
      : doc_(yyjson_read(json.data(), json.size(), YYJSON_READ_NUMBER_AS_RAW | YYJSON_READ_ALLOW_INVALID_UNICODE),
             yyjson_doc_free) {}
  yyjson_val* root() const { return yyjson_doc_get_root(doc_.get()); }  // null where it is damaged

 private:
  std::unique_ptr<yyjson_doc, decltype(&yyjson_doc_free)> doc_;
};

// The description of a process of another tool's trace: its command line in one word, and where it comes from.
std::string imported_description(std::string_view command, bool main, std::string_view source);

struct OwnProcess {
  ProcessDescription description;
  std::string end_state = "closed";

  // False: it is another kind of object.
  bool read(yyjson_val* object);
  void finish(ImportedProcess& process, const std::string& source);
};

}  // namespace strobe

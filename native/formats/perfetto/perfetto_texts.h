// perfetto_texts.h - names, categories and annotations of events, many of them interned: as views, as numbers of texts
// of a block file, and values as JSON.
#pragma once
#include <stdint.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/importing/imported_process.h"
#include "formats/perfetto/perfetto_event.h"
#include "formats/perfetto/perfetto_interned.h"

namespace strobe {

// Where an event goes, and whose texts it refers to.
struct PerfettoTarget {
  ImportedProcess& out;
  uint32_t process, sequence;
};

struct PerfettoTexts {
  static constexpr size_t kShortText = 64;  // looked up and copied without a thought

  PerfettoNames names;
  uint64_t bytes_read = 0;  // of the file
  uint64_t cut = 0;         // texts of which only the beginning was copied

  // The number of a text that a sequence has interned: long ones are looked up once.
  uint32_t text(const PerfettoTarget& to, PerfettoNames::Kind kind, uint64_t iid, bool as_json = false);
  uint32_t name_text(const PerfettoTarget& to, const PerfettoEvent& event);
  uint32_t category_text(const PerfettoTarget& to, const PerfettoEvent& event);
  // A text that becomes part of another one: its beginning only, once copies are far more than what was read.
  std::string_view copied(std::string_view shared);

  std::string_view name(uint32_t sequence_id, const PerfettoEvent& event);
  std::vector<std::string_view> categories(uint32_t sequence_id, const PerfettoEvent& event);
  static std::string joined(const std::vector<std::string_view>& texts, size_t from = 0);

  std::string_view key_of(uint32_t sequence_id, std::string_view annotation);
  // The number of the interned key of an annotation, 0 where it has its own.
  static uint64_t key_iid(std::string_view annotation);
  // The number of the interned text that is all of an annotation's value, else 0.
  static uint64_t value_iid(std::string_view annotation);
  // The value of an annotation as JSON.
  void append_value(uint32_t sequence_id, std::string& out, std::string_view annotation, int depth = 0);
  // The texts of a list; a part without a value is none.
  static std::vector<std::optional<std::string_view>> texts_in(std::string_view annotation);

 private:
  void append_nested(std::string& out, std::string_view value, int depth);

  uint64_t copied_bytes = 0;
};

}  // namespace strobe

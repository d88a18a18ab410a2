// xplane_hlo.h - where in the program the operations of XLA are from: the compiled modules that an XPlane file keeps.
// The messages: HloProto in xla/service/hlo.proto, OpMetadata in xla/xla_data.proto (github.com/openxla/xla).
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/encoding/protobuf_wire.h"

namespace strobe {

// A module is read when one of its operations is asked for. Texts lie in the file.
class HloModules {
  static constexpr size_t kLongestPath = 1 << 10;  // each operation has its own copy

 public:
  struct Place {
    std::string source;         // "model.py:12"
    std::string_view function;  // empty where unknown

    bool set(std::string_view file, uint64_t line) {
      if (file.empty() || file.size() > kLongestPath) return false;
      source = std::string(file) + ":" + std::to_string(line);
      return true;
    }
  };

  // `program`: the number that events have for it; of several with a number the first counts.
  void add(int64_t program, std::string_view hlo_proto) {
    protobuf::Field field;
    for (protobuf::Message proto(hlo_proto); proto.next(field);)
      if (field.number == 1 && field.type == protobuf::kBytes) modules_.try_emplace(program, Module{field.bytes});
  }

  // Null where the file does not have it.
  const Place* find(int64_t program, std::string_view operation) {
    const auto module = modules_.find(program);
    if (module == modules_.end()) return nullptr;
    if (!module->second.is_read) module->second.read();
    const auto place = module->second.places.find(operation);
    return place == module->second.places.end() ? nullptr : &place->second;
  }

 private:
  using Field = protobuf::Field;
  using Message = protobuf::Message;

  // StackFrameIndexProto: frames have the number of a location, locations those of a file and a function, from 1.
  struct Frames {
    struct Location {
      uint64_t file = 0, function = 0, line = 0;
    };
    std::vector<std::string_view> files, functions;
    std::vector<Location> locations;
    std::vector<uint64_t> frames;

    void read(std::string_view bytes) {
      Field field, inner;
      for (Message index(bytes); index.next(field);) {
        if (field.type != protobuf::kBytes) continue;
        if (field.number == 1) files.push_back(field.bytes);
        if (field.number == 2) functions.push_back(field.bytes);
        if (field.number == 3) {
          Location& each = locations.emplace_back();
          for (Message location(field.bytes); location.next(inner);) {
            if (inner.number == 1) each.file = inner.value;
            if (inner.number == 2) each.function = inner.value;
            if (inner.number == 3) each.line = inner.value;
          }
        }
        if (field.number == 4) {
          uint64_t& each = frames.emplace_back(0);
          for (Message frame(field.bytes); frame.next(inner);)
            if (inner.number == 1) each = inner.value;
        }
      }
    }

    // The innermost function of the program around an operation.
    bool place(uint64_t frame, Place& out) const {
      if (frame - 1 >= frames.size() || frames[frame - 1] - 1 >= locations.size()) return false;
      const Location& at = locations[frames[frame - 1] - 1];
      if (at.file - 1 >= files.size()) return false;
      if (at.function - 1 < functions.size()) out.function = functions[at.function - 1];
      return out.set(files[at.file - 1], at.line);
    }
  };

  struct Module {
    std::string_view bytes;
    bool is_read = false;
    std::unordered_map<std::string_view, Place> places = {};

    void read() {
      is_read = true;
      Frames frames;
      Field field, inner;
      for (Message module(bytes); module.next(field);)
        if (field.number == 17) frames.read(field.text());
      for (Message module(bytes); module.next(field);)
        if (field.number == 3)
          for (Message computation(field.text()); computation.next(inner);)
            if (inner.number == 2) instruction(inner.text(), frames);
    }

    void instruction(std::string_view message_bytes, const Frames& frames) {
      std::string_view name, metadata, file;
      uint64_t line = 0, frame = 0;
      Field field;
      for (Message message(message_bytes); message.next(field);) {
        if (field.number == 1) name = field.text();
        if (field.number == 7) metadata = field.text();
      }
      for (Message message(metadata); message.next(field);) {
        if (field.number == 3) file = field.text();
        if (field.number == 4 && field.type == protobuf::kVarint) line = field.value;
        if (field.number == 15 && field.type == protobuf::kVarint) frame = field.value;
      }
      Place place;
      if (frames.place(frame, place) || place.set(file, line)) places.try_emplace(name, std::move(place));
    }
  };

  std::unordered_map<int64_t, Module> modules_;
};

}  // namespace strobe

#include "attach/interpreter.h"

#include <errno.h>
#include <string.h>

#include <iterator>
#include <stdexcept>
#include <system_error>

#include "adapters/sampling/python_stacks.h"
#include "attach/interpreter_layouts.generated.h"
#include "attach/python_symbols.h"

namespace strobe {

namespace {

constexpr int kTries = 100;  // to list the threads of a program that begins and ends some meanwhile

// Of a str: `state` lies behind its hash in all versions, with bits for its kind, whether its characters follow it, and
// whether they are ASCII.
template <size_t Ascii, size_t Other>
int text_facts(const void* header, size_t* length, size_t* width, size_t* data_offset) {
  constexpr size_t kLength = 16, kState = 32;
  int64_t characters;
  uint32_t state;
  memcpy(&characters, static_cast<const char*>(header) + kLength, sizeof characters);
  memcpy(&state, static_cast<const char*>(header) + kState, sizeof state);
  const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
  *length = size_t(characters), *width = state >> 2 & 7, *data_offset = ascii ? Ascii : Other;
  return compact && characters >= 0 && (*width == 1 || *width == 2 || *width == 4);
}

uintptr_t word(ForeignMemory& memory, uintptr_t at) {
  const char* copied = memory.read(at, sizeof(uintptr_t));
  uintptr_t value = 0;
  if (copied) memcpy(&value, copied, sizeof value);
  return value;
}

std::string known_versions() {
  std::string out;
  for (const interpreter_layout& each : kInterpreterLayouts)
    out += (out.empty() ? "3." : ", 3.") + std::to_string(each.minor);
  return out;
}

// What 3.13 and later have at the beginning of _PyRuntime for tools: a cookie, the version, whether there is no GIL.
struct DebugOffsets {
  char cookie[8];
  uint64_t version, free_threaded;
};

// Why an interpreter cannot be read as its release is, empty: it can.
std::string differs(const interpreter_layout& layout, uintptr_t runtime, ForeignMemory& memory) {
  for (const published_offset& each : layout.published) {
    if (!each.name) break;
    if (const uint64_t there = word(memory, runtime + each.at); there != each.value)
      return std::string("its ") + each.name + " is " + std::to_string(there) + " and not " +
             std::to_string(each.value);
  }
  return {};
}

}  // namespace

Interpreter find_interpreter(const ProcessFiles& process, ForeignMemory& memory) {
  const PythonSymbols symbols = python_symbols(process);
  if (!symbols.runtime) throw std::runtime_error("is not CPython 3");
  if (!memory.read(symbols.runtime, 1)) {
    const int error = errno;
    if (error == EPERM || error == EACCES) throw std::system_error(error, std::generic_category(), "its memory");
    throw std::runtime_error("ended");
  }
  const uint64_t version = symbols.version ? word(memory, symbols.version) : 0;
  const int major = int(version >> 24), minor = int(version >> 16 & 255), micro = int(version >> 8 & 255);
  const interpreter_layout* known = nullptr;
  for (const interpreter_layout& each : kInterpreterLayouts)
    if (major == 3 && each.minor == minor) known = &each;
  if (!known)
    throw std::runtime_error("runs Python " +
                             (version ? std::to_string(major) + "." + std::to_string(minor) : "3.10 or older") +
                             ", and strobe samples Python " + known_versions());
  const std::string release = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(micro);
  Interpreter out{*known, 0, symbols.evaluates, release, symbols.file};
  if (const char* table = memory.read(symbols.runtime, sizeof(DebugOffsets)); table && minor >= 13) {
    DebugOffsets offsets;
    memcpy(&offsets, table, sizeof offsets);
    if (memcmp(offsets.cookie, "xdebugpy", sizeof offsets.cookie) == 0 && offsets.free_threaded)
      throw std::runtime_error("runs a free-threaded build of Python, whose stacks cannot be read");
  }
  if (const std::string what = differs(out.layout, symbols.runtime, memory); !what.empty())
    throw std::runtime_error("runs a build of Python " + out.version + " that strobe does not know: " + what);
  frame_layout& frames = out.layout.frames;
  frames.code_type_object = symbols.code_type;
  frames.text_facts = out.layout.text_header_ascii == 48 ? text_facts<48, 72> : text_facts<40, 56>;
  out.main = word(memory, symbols.runtime + out.layout.main_interpreter);
  if (!out.main) throw std::runtime_error("has not begun to run Python yet");
  const uintptr_t gil = (out.layout.gil_is_pointer ? out.main : symbols.runtime) + out.layout.gil;
  frames.gil = out.layout.gil_is_pointer ? word(memory, gil) : gil;
  // The offsets of 3.11 and 3.12 are not published: a thread that does not point back to its interpreter is not one.
  PythonStacks stacks(frames, memory, 1, 1);
  std::vector<std::pair<uintptr_t, uint64_t>> threads;
  bool listed = false;
  for (int i = 0; i < kTries && !listed; i++) listed = stacks.threads(out.main, threads);
  if (!listed)
    throw std::runtime_error("runs a build of Python " + out.version +
                             " that strobe does not know: " + "its threads are not where this release has them");
  return out;
}

}  // namespace strobe

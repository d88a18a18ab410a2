#include "adapters/sampling/python_stacks.h"

#include <string.h>

#include <algorithm>
#include <string_view>

#include "core/format/utf8.h"

namespace strobe {

namespace {

template <class T>
T load(const char* from, size_t offset = 0) {
  T value;
  memcpy(&value, from + offset, sizeof value);
  return value;
}

constexpr size_t kMostThreads = 4096, kPage = 4096, kMostText = 1000, kMostCodes = 1 << 16;
// Of the standard library: what their functions call computes in C.
constexpr std::string_view kPacking[] = {
    "/gzip.py", "/bz2.py",    "/lzma.py",           "/_compression.py", "/zipfile.py", "/tarfile.py", "/hashlib.py",
    "/hmac.py", "/shutil.py", "/sqlite3/dbapi2.py", "/ssl.py",          "/pickle.py",  "/decimal.py"};

}  // namespace

bool PythonStacks::threads(uintptr_t interpreter, std::vector<std::pair<uintptr_t, uint64_t>>& out) {
  out.clear();
  const char* head = memory_.read(interpreter + layout_.threads_head, sizeof(uintptr_t));
  if (!head) return false;
  for (auto at = load<uintptr_t>(head); at;) {
    const char* thread = memory_.read(at, layout_.thread_bytes);
    if (!thread || load<uintptr_t>(thread, layout_.interpreter) != interpreter || out.size() == kMostThreads)
      return false;
    // 0: the thread has not begun yet.
    if (const auto id = load<unsigned long>(thread, layout_.native_id)) out.emplace_back(at, id);
    at = load<uintptr_t>(thread, layout_.next_thread);
  }
  return true;
}

bool PythonStacks::read(uintptr_t interpreter, uintptr_t thread, PythonStack& stack) {
  constexpr size_t word = sizeof(uintptr_t);
  const uintptr_t before = stack.frames.empty() ? 0 : stack.frames[0].at;
  stack.frames.clear();
  stack.instruction = 0, stack.cut = stack.moved = stack.collects = false;
  for (int attempt = 0; attempt < 3; attempt++) {
    // Where 3.11 and 3.12 keep the frame is mostly where it was the last time: read along with the thread.
    if (!layout_.holder_is_pointer) stack.holder = thread + layout_.frame_holder;
    if (!stack.holder) {
      const char* pointer = memory_.read(thread + layout_.frame_holder, word);
      if (!pointer || !(stack.holder = load<uintptr_t>(pointer) + layout_.frame_in_holder)) return false;
    }
    // What the stack was the last time is mostly where it is now: read along, before it is known whether that is so.
    // So is the innermost frame: its instruction is read first and last.
    const bool guess = before && stack.to > stack.from && attempt == 0;
    const size_t guessed = guess ? stack.to - stack.from : 0;
    const ForeignMemory::Part instruction{before + layout_.frame_instruction, word};
    const ForeignMemory::Part begin[] = {instruction,
                                         {thread, layout_.thread_bytes},
                                         {layout_.gil + layout_.gil_holder, word},
                                         {interpreter + layout_.collecting, sizeof(int)},
                                         {stack.holder, word},
                                         {stack.from, guessed},
                                         {stack.holder, word},
                                         instruction};
    const char* state = memory_.read(begin + (guess ? 0 : 1), guess ? 8 : 4);
    if (!state && attempt == 0) {  // a C stack or a part of the Python stack that is gone
      if (layout_.holder_is_pointer) stack.holder = 0;
      stack.from = stack.to = 0;
      continue;
    }
    if (!state) return false;
    const char* first = state;
    if (guess) state += word;
    if (layout_.holder_is_pointer &&
        load<uintptr_t>(state, layout_.frame_holder) + layout_.frame_in_holder != stack.holder) {
      stack.holder = 0;
      continue;
    }
    const char* const behind = state + layout_.thread_bytes;
    stack.collects = load<uintptr_t>(behind) == thread && load<int>(behind, word);
    const auto frame = load<uintptr_t>(behind, word + sizeof(int));
    if (!frame) return true;
    const auto chunk = load<uintptr_t>(state, layout_.stack_chunk);
    uintptr_t from = chunk ? chunk + layout_.chunk_data : frame;
    uintptr_t to = std::max(load<uintptr_t>(state, layout_.stack_top), frame + layout_.frame_bytes);
    if (frame < from || frame > to || to - frame > kMostChunk) from = frame, to = frame + layout_.frame_bytes;
    if (to - from > kMostChunk) from = to - kMostChunk;
    const char* copied = behind + word + sizeof(int) + word;
    if (guess && stack.from == from && stack.to >= frame + layout_.frame_bytes &&
        load<uintptr_t>(copied, guessed) == frame) {
      to = stack.to;
      stack.moved = frame == before && load<uintptr_t>(first) != load<uintptr_t>(copied, guessed + word);
    } else {
      const ForeignMemory::Part part[] = {{from, to - from}, {stack.holder, word}};
      copied = memory_.read(part, 2);
      if (!copied || load<uintptr_t>(copied, to - from) != frame) continue;  // it went on meanwhile
    }
    stack.from = from, stack.to = to;
    copy_.assign(copied, to - from);
    size_t singles = 0, visited = 0;
    uintptr_t piece = 0;  // what `piece_` is of
    // The page up to the end of a frame: its callers are there, too, if it is of an old chunk.
    const auto elsewhere = [&](uintptr_t at) -> const char* {
      const size_t bytes = layout_.frame_bytes;
      if (piece_.size() >= bytes && at >= piece && at - piece <= piece_.size() - bytes) return &piece_[at - piece];
      if (++singles > most_singles_) return nullptr;
      const uintptr_t page = at & ~uintptr_t(kPage - 1);
      const char* copied = at - page + bytes <= kPage ? memory_.read(page, at - page + bytes) : memory_.read(at, bytes);
      if (!copied) return nullptr;
      piece = at - page + bytes <= kPage ? page : at;
      piece_.assign(copied, at - piece + bytes);
      return &piece_[at - piece];
    };
    piece_.clear();
    for (uintptr_t at = frame; at;) {
      // What was copied while it changed may hold any number: nothing is added to it here. Generators and old chunks
      // lie elsewhere.
      const char* f = at >= from && at - from <= to - from - layout_.frame_bytes ? copy_.data() + (at - from) : nullptr;
      const bool endless = ++visited > 2 * most_frames_;  // a circle, perhaps
      if (endless || (!f && !(f = elsewhere(at)))) {
        stack.cut = true;
        break;
      }
      const bool skipped = layout_.frame_owner && f[layout_.frame_owner] >= char(layout_.first_owner_skipped);
      if (!skipped) {
        if (stack.frames.size() == most_frames_) {
          stack.cut = true;
          break;
        }
        if (stack.frames.empty()) stack.instruction = load<uintptr_t>(f, layout_.frame_instruction);
        stack.frames.push_back({at, load<uintptr_t>(f, layout_.frame_code) & ~layout_.code_tag_bits});
      }
      at = load<uintptr_t>(f, layout_.frame_previous);
    }
    return true;
  }
  return false;
}

CodesRead PythonStacks::codes(const PythonStack& stack, KnownCodes& known) {
  const size_t n = stack.frames.size(), before = known.frames.size();
  if (codes_.size() >= kMostCodes) codes_.clear(), forgotten_++;  // of a program that makes code without end
  // A frame that is there still holds its code: what was checked at the same depth needs no look.
  size_t same = 0;
  if (known.forgotten == forgotten_)
    while (same < n && same < before && stack.frames[n - 1 - same] == known.frames[before - 1 - same]) same++;
  if (same == n && n == before && stack.cut == known.cut) return CodesRead::kAsBefore;
  known.forgotten = forgotten_, known.cut = stack.cut;
  auto& codes = known.codes;
  codes.erase(codes.begin(), codes.end() - ptrdiff_t(same));
  codes.insert(codes.begin(), n - same, nullptr);
  known.frames = stack.frames;
  if (check_first(n - same, stack, codes)) return CodesRead::kChanged;
  known.frames.clear(), codes.clear();
  return CodesRead::kNot;
}

bool PythonStacks::check_first(size_t n, const PythonStack& stack, std::vector<const Code*>& out) {
  for (size_t first = 0; first < n; first += ForeignMemory::kParts) {
    ForeignMemory::Part parts[ForeignMemory::kParts];
    const size_t count = std::min(ForeignMemory::kParts, n - first);
    for (size_t i = 0; i < count; i++) parts[i] = {stack.frames[first + i].code, layout_.code_bytes};
    const char* copied = memory_.read(parts, count);
    if (!copied) return false;
    const std::string all(copied, count * layout_.code_bytes);
    for (size_t i = 0; i < count; i++)
      if (!(out[first + i] = check(parts[i].at, all.data() + i * layout_.code_bytes))) return false;
  }
  return true;
}

Code* PythonStacks::check(uintptr_t at, const char* copied) {
  if (load<uintptr_t>(copied, layout_.code_type) != layout_.code_type_object) return nullptr;
  CodeFacts facts;
  facts.name = load<uintptr_t>(copied, layout_.code_name);
  facts.file = load<uintptr_t>(copied, layout_.code_file);
  facts.lines = load<uintptr_t>(copied, layout_.code_lines);
  facts.words = load<uint64_t>(copied, layout_.code_words);
  facts.first_line = load<int32_t>(copied, layout_.code_first_line);
  if (const auto found = codes_.find(at); found != codes_.end() && found->second.facts == facts) return &found->second;
  Code code;
  std::string file;
  if (!text(facts.name, code.label) || !text(facts.file, file)) return nullptr;
  code.facts = facts;
  code.number = ++next_number_;
  code.imports = file.starts_with("<frozen importlib");
  code.own = file.find("/lib/python3") != file.npos && file.find("-packages/") == file.npos &&
             std::ranges::none_of(kPacking, [&](std::string_view name) { return file.ends_with(name); });
  code.label += " (" + file + ":" + std::to_string(facts.first_line) + ")";
  return &(codes_[at] = std::move(code));
}

bool PythonStacks::text(uintptr_t at, std::string& out) {
  const char* header = memory_.read(at, layout_.text_bytes);
  size_t length, width, offset;
  if (!header || !layout_.text_facts(header, &length, &width, &offset)) return false;
  length = std::min(length, kMostText);
  out.clear();
  if (!length) return true;
  const char* data = memory_.read(at + offset, length * width);
  if (!data) return false;
  for (size_t i = 0; i < length; i++) {
    uint32_t c = 0;
    memcpy(&c, data + i * width, width);
    append_utf8(out, c == '\n' || c == '\r' ? ' ' : c);  // a call stack has a line for each function
  }
  return true;
}

// Objects/locations.md of CPython: entries of 1 to 8 instructions, a change of the line in each.
void PythonStacks::read_lines(Code& code) {
  code.lines_read = true;
  const char* header = memory_.read(code.facts.lines, layout_.bytes_data);
  if (!header) return;
  const size_t size = std::min<size_t>(load<uint64_t>(header, layout_.bytes_length), ForeignMemory::kBytes);
  const char* data = size ? memory_.read(code.facts.lines + layout_.bytes_data, size) : nullptr;
  if (!data) return;
  const auto* at = reinterpret_cast<const uint8_t*>(data);
  const auto* end = at + size;
  const auto number = [&] {
    uint32_t value = 0;
    for (int shift = 0; at < end; shift += 6) {
      const uint8_t byte = *at++;
      value |= uint32_t(byte & 63) << (shift & 31);
      if (!(byte & 64)) break;
    }
    return value;
  };
  const auto signed_number = [&] {
    const uint32_t value = number();
    return value & 1 ? -int32_t(value >> 1) : int32_t(value >> 1);
  };
  uint32_t instruction = 0;
  int32_t line = code.facts.first_line;
  while (at < end) {
    const uint8_t first = *at++;
    const uint8_t kind = first >> 3 & 15;
    if (kind == 14) {
      line += signed_number();
      number(), number(), number();
    } else if (kind == 13) {
      line += signed_number();
    } else if (kind >= 10 && kind <= 12) {
      line += kind - 10;
      at += 2;
    } else if (kind < 10) {
      at += 1;
    }
    code.lines.emplace_back(instruction, kind == 15 ? 0 : line);
    instruction += uint32_t(first & 7) + 1;
  }
}

int32_t PythonStacks::line(const PythonStack& stack) {
  if (stack.frames.empty()) return 0;
  const uintptr_t at = stack.frames[0].code;
  const auto found = codes_.find(at);
  if (found == codes_.end()) return 0;
  Code& code = found->second;
  if (!code.lines_read) read_lines(code);
  const auto instruction = int64_t(stack.instruction - at - layout_.code_instructions) / 2;
  if (instruction < 0 || uint64_t(instruction) >= code.facts.words || code.lines.empty()) return code.facts.first_line;
  const auto after = std::upper_bound(code.lines.begin(), code.lines.end(), uint32_t(instruction),
                                      [](uint32_t value, const auto& entry) { return value < entry.first; });
  return after == code.lines.begin() ? 0 : std::prev(after)->second;
}

bool PythonStacks::is_own(const PythonStack& stack, const Code& code, bool packages) const {
  if (stack.frames.empty() || !layout_.callee) return false;
  const auto unit = int64_t(stack.instruction - stack.frames[0].code - layout_.code_instructions) / 2;
  const int callee = unit < 0 ? CALLEE_OF_UNKNOWN : layout_.callee(stack.frames[0].code, uint32_t(unit));
  switch (callee) {
    case CALLEE_UNKNOWN:
      return !packages;
    case CALLEE_OF_UNKNOWN:
      return !packages && code.own;
    default:
      return callee == CALLEE_OWN;
  }
}

bool PythonStacks::still_there(const PythonStack& stack) {
  constexpr size_t word = sizeof(uintptr_t);
  const ForeignMemory::Part parts[] = {
      {stack.frames[0].at + layout_.frame_instruction, word}, {stack.holder, word}, {stack.instruction, 1}};
  const char* now = memory_.read(parts, 3);
  return now && load<uintptr_t>(now) == stack.instruction && load<uintptr_t>(now, word) == stack.frames[0].at &&
         layout_.calls_out[uint8_t(now[2 * word])];
}

}  // namespace strobe

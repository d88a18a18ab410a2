// The format: DWARF 5, section 6.4, with the changes of the Linux Standard Base 5.0, section 10.6. What compilers write
// for functions is read; expressions, which only trampolines of the linker and of signals have, are not.
#include "attach/unwind_tables.h"

#include <vector>

namespace strobe {

namespace {

constexpr uint8_t kPcRelative = 0x10, kSigned4 = 0x0b, kUnsigned4 = 0x03, kHeaderRelative = 0x30, kAbsent = 0xff;

// Reads numbers of a file one behind the other; at its end, zeros, and `good` is false.
struct Cursor {
  std::string_view rest;
  uint64_t address;  // of the next byte, as the tables count
  bool good = true;

  template <class T>
  T next() {
    T value{};
    if (rest.size() < sizeof value) return good = false, rest = {}, value;
    memcpy(&value, rest.data(), sizeof value);
    skip(sizeof value);
    return value;
  }
  void skip(uint64_t bytes) {
    if (bytes > rest.size()) good = false, bytes = rest.size();
    rest.remove_prefix(size_t(bytes)), address += bytes;
  }
  uint64_t number(bool is_signed = false) {
    uint64_t value = 0;
    int shift = 0;
    uint8_t byte = 0x80;
    while (byte & 0x80 && good) {
      byte = next<uint8_t>();
      if (shift < 64) value |= uint64_t(byte & 0x7f) << shift;
      shift += 7;
    }
    if (is_signed && byte & 0x40 && shift < 64) value |= ~uint64_t(0) << shift;
    return value;
  }
  // A pointer in the one encoding of position-independent code, or as a whole word.
  uint64_t pointer(uint8_t encoding) {
    const uint64_t from = encoding & kPcRelative ? address : 0;
    good &= (encoding & ~kPcRelative & 0xf0) == 0;
    switch (encoding & 0x0f) {
      case kSigned4:
        return from + uint64_t(int64_t(next<int32_t>()));
      case kUnsigned4:
        return from + next<uint32_t>();
      case 0x00:
      case 0x04:
      case 0x0c:
        return from + next<uint64_t>();
      default:
        good = false;
        return 0;
    }
  }
};

// How a register of the caller is found.
struct Rule {
  enum Kind : uint8_t { same, undefined, at, is, unknown } kind = same;
  int64_t offset = 0;  // from the frame's address
};
struct Rules {
  Rule of[Registers::kCount];
  uint64_t frame_register = Registers::kStack;
  int64_t frame_offset = 0;
  bool frame_known = true;
};
struct Common {  // of functions: a CIE
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint8_t pointers = 0;
  bool has_more = false;  // a function has more facts before its instructions
  std::string_view instructions;
};

std::optional<Common> common_of(Cursor at) {
  Common out;
  const uint32_t length = at.next<uint32_t>();
  if (length == 0 || length == 0xffffffff || length > at.rest.size()) return {};
  at.rest = at.rest.substr(0, length);
  if (at.next<uint32_t>() != 0) return {};
  const uint8_t version = at.next<uint8_t>();
  const std::string_view letters = at.rest.substr(0, at.rest.find('\0'));
  at.skip(letters.size() + 1);
  out.code_factor = at.number();
  out.data_factor = int64_t(at.number(true));
  const uint64_t returns = version == 1 ? at.next<uint8_t>() : at.number();
  if (returns != Registers::kAddress) return {};
  if (!letters.empty()) {
    if (letters[0] != 'z') return {};
    out.has_more = true;
    const uint64_t bytes = at.number();
    Cursor more = at;
    at.skip(bytes);
    for (const char letter : letters.substr(1)) {
      if (letter == 'R') out.pointers = more.next<uint8_t>();
      if (letter == 'L') more.skip(1);
      if (letter == 'P') more.pointer(more.next<uint8_t>() & 0x7f);
    }
    if (!more.good) return {};
  }
  out.instructions = at.rest;
  return at.good ? std::optional(out) : std::nullopt;
}

// Runs instructions until those of a later address than `until`; false where one is not known.
bool run(std::string_view instructions, const Common& common, const Rules& initial, uint64_t from, uint64_t until,
         Rules& rules) {
  Cursor at{instructions, 0};
  std::vector<Rules> kept;
  const auto set = [&](uint64_t number, Rule rule) {
    if (number < Registers::kCount) rules.of[number] = rule;
  };
  const auto factored = [&](bool is_signed = false) { return int64_t(at.number(is_signed)) * common.data_factor; };
  while (!at.rest.empty() && at.good) {
    const uint8_t byte = at.next<uint8_t>(), low = byte & 0x3f;
    switch (byte >> 6) {
      case 1:
        if ((from += low * common.code_factor) > until) return true;
        continue;
      case 2:
        set(low, {Rule::at, factored()});
        continue;
      case 3:
        set(low, low < Registers::kCount ? initial.of[low] : Rule{});
        continue;
    }
    uint64_t number;
    switch (byte) {
      case 0x00:  // nop
        break;
      case 0x02:  // advance_loc1, 2, 4
      case 0x03:
      case 0x04:
        from += common.code_factor * (byte == 2   ? at.next<uint8_t>()
                                      : byte == 3 ? at.next<uint16_t>()
                                                  : at.next<uint32_t>());
        if (from > until) return true;
        break;
      case 0x05:  // offset_extended, and with a signed offset
      case 0x11:
        number = at.number();
        set(number, {Rule::at, factored(byte == 0x11)});
        break;
      case 0x06:  // restore_extended
        number = at.number();
        set(number, number < Registers::kCount ? initial.of[number] : Rule{});
        break;
      case 0x07:  // undefined
        set(at.number(), {Rule::undefined});
        break;
      case 0x08:  // same_value
        set(at.number(), {});
        break;
      case 0x09:  // register
        set(at.number(), {Rule::unknown});
        at.number();
        break;
      case 0x0a:  // remember_state, restore_state
        kept.push_back(rules);
        break;
      case 0x0b:
        if (kept.empty()) return false;
        rules = kept.back();
        kept.pop_back();
        break;
      case 0x0c:  // def_cfa, and with a signed offset
      case 0x12:
        rules.frame_register = at.number();
        rules.frame_offset = byte == 0x12 ? factored(true) : int64_t(at.number());
        rules.frame_known = true;
        break;
      case 0x0d:  // def_cfa_register
        rules.frame_register = at.number();
        break;
      case 0x0e:  // def_cfa_offset, and a signed one
        rules.frame_offset = int64_t(at.number());
        break;
      case 0x13:
        rules.frame_offset = factored(true);
        break;
      case 0x0f:  // def_cfa_expression
        rules.frame_known = false;
        at.skip(at.number());
        break;
      case 0x10:  // expression, val_expression
      case 0x16:
        set(at.number(), {Rule::unknown});
        at.skip(at.number());
        break;
      case 0x14:  // val_offset, and a signed one
      case 0x15:
        number = at.number();
        set(number, {Rule::is, factored(byte == 0x15)});
        break;
      case 0x2e:  // GNU_args_size
        at.number();
        break;
      default:
        return false;
    }
  }
  return at.good;
}

}  // namespace

UnwindTables::UnwindTables(int fd) : file_(fd) {
  const auto* header = file_.segment(PT_GNU_EH_FRAME, [](const auto&) { return true; });
  if (!header) return;
  Cursor at{file_.bytes(header->p_offset), header->p_vaddr};
  const uint8_t version = at.next<uint8_t>(), frame = at.next<uint8_t>(), count = at.next<uint8_t>(),
                table = at.next<uint8_t>();
  if (version != 1 || frame == kAbsent || count == kAbsent || table != (kHeaderRelative | kSigned4)) return;
  at.pointer(frame);
  index_count_ = at.pointer(count), header_ = header->p_vaddr;
  index_ = file_.at<int32_t>(header->p_offset + (at.address - header->p_vaddr), 2 * index_count_);
}

std::optional<uint64_t> UnwindTables::address(uint64_t offset) const {
  const auto* loaded = file_.segment(PT_LOAD, [offset](const Elf64_Phdr& each) {
    return each.p_flags & PF_X && offset >= each.p_offset && offset - each.p_offset < each.p_filesz;
  });
  return loaded ? std::optional(offset - loaded->p_offset + loaded->p_vaddr) : std::nullopt;
}

uint64_t UnwindTables::offset_of(uint64_t address) const {
  const auto* loaded = file_.segment(PT_LOAD, [address](const Elf64_Phdr& each) {
    return address >= each.p_vaddr && address - each.p_vaddr < each.p_filesz;
  });
  return loaded ? address - loaded->p_vaddr + loaded->p_offset : UINT64_MAX;
}

std::optional<UnwindTables::Entry> UnwindTables::find(uint64_t address) const {
  if (!index_ || !index_count_) return {};
  const auto wanted = int64_t(address - header_);
  uint64_t low = 0, high = index_count_;
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    (index_[2 * middle] <= wanted ? low : high) = middle;
  }
  Entry out;
  const uint64_t record = header_ + uint64_t(int64_t(index_[2 * low + 1]));
  out.offset = offset_of(record);
  Cursor at{file_.bytes(out.offset), record};
  at.skip(4);
  const uint64_t back_from = out.offset + 4;
  const auto common = common_of({file_.bytes(back_from - at.next<uint32_t>()), 0});
  if (!common) return {};
  out.begin = at.pointer(common->pointers);
  out.end = out.begin + at.pointer(common->pointers & 0x0f);
  return at.good && address >= out.begin && address < out.end ? std::optional(out) : std::nullopt;
}

uint64_t UnwindTables::function(uint64_t address) const {
  const auto entry = find(address);
  return entry ? entry->begin : 0;
}

bool UnwindTables::step(uint64_t address, Registers& registers, const Read& read) const {
  const auto entry = find(address);
  if (!entry) return false;
  Cursor at{file_.bytes(entry->offset), 0};
  const uint32_t length = at.next<uint32_t>();
  at.rest = at.rest.substr(0, length);
  const auto common = common_of({file_.bytes(entry->offset + 4 - at.next<uint32_t>()), 0});
  if (!common) return false;
  at.pointer(common->pointers), at.pointer(common->pointers & 0x0f);
  if (common->has_more) at.skip(at.number());
  Rules initial, rules;
  if (!at.good || !run(common->instructions, *common, initial, 0, UINT64_MAX, initial)) return false;
  rules = initial;
  if (!run(at.rest, *common, initial, entry->begin, address, rules)) return false;
  if (!rules.frame_known || rules.frame_register >= Registers::kCount || !registers.has(int(rules.frame_register)))
    return false;
  const uint64_t frame = registers.value[rules.frame_register] + uint64_t(rules.frame_offset);
  Registers caller;
  for (int i = 0; i < Registers::kCount; i++) {
    const Rule& rule = rules.of[i];
    uint64_t value;
    if (rule.kind == Rule::at && read(frame + uint64_t(rule.offset), value)) caller.set(i, value);
    if (rule.kind == Rule::is) caller.set(i, frame + uint64_t(rule.offset));
    // Only what a function keeps for its caller.
    constexpr uint32_t kKept = 1u << 3 | 1u << 6 | 0xfu << 12;
    if (rule.kind == Rule::same && kKept >> i & 1 && registers.has(i)) caller.set(i, registers.value[i]);
  }
  caller.set(Registers::kStack, frame);
  registers = caller;
  return registers.has(Registers::kAddress) && registers.value[Registers::kAddress] != 0;
}

}  // namespace strobe

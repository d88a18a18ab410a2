// otf2_import_io.cpp - handles of files, seeks, and operations: rows of the calls that they are in.
#include "formats/otf2/otf2_import_location.h"

#include <string>

#include "formats/otf2/otf2_records.h"

namespace strobe::otf2 {

void LocationEvents::io_event(uint8_t type, Bytes in) {
  using namespace schema::io_spans;
  const uint32_t id = reference(in, Type::io_handle);
  if (type == kIoOperationBegin) {
    const uint8_t mode = in.u8();
    in.id();  // flags
    const uint64_t bytes = in.number(), matching = in.number();
    if (in.ok() && operations_.size() < kMostWaiting) operations_[{id, matching}] = {mode, bytes};
    return;
  }
  TableRow row(schema::io_spans::number);
  const char* name = type == kIoCreateHandle ? "open" : type == kIoDestroyHandle ? "close" : "seek";
  if (type == kIoSeek) {
    in.number(), in.u8();  // what was asked for
    row.set(offset_bytes, int64_t(in.number()));
  } else if (type == kIoOperationComplete) {
    const uint64_t bytes = in.number();
    const auto begun = operations_.find({id, in.number()});
    if (begun == operations_.end()) return;
    constexpr uint8_t kRead = 0, kWrite = 1;
    const auto [mode, asked] = begun->second;
    operations_.erase(begun);
    name = mode == kRead ? "read" : mode == kWrite ? "write" : "flush";
    if (mode <= kWrite && bytes != kUndefined64) row.set(size_bytes, int64_t(bytes));
    if (mode <= kWrite && asked != kUndefined64) row.set(requested_bytes, int64_t(asked));
  }
  if (!in.ok() || !top()) return;
  const Definitions& all = process_.definitions;
  const Named* handle = all.io_handles.find(id);
  const Named* named = handle ? all.io_files.find(handle->of) : nullptr;
  if (!named) named = handle;
  row.set(operation, word(name)), row.set(descriptor, id);
  if (named && !all.string(named->name).empty()) row.set(file, process_.out.text(all.string(named->name)));
  row.append_to(top()->rows);
}

}  // namespace strobe::otf2

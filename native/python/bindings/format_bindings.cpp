// format_bindings.cpp - the doors to the decoders of other tools' files, and to what formats written in Python import
// with.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "formats/chrome/chrome.h"
#include "formats/importing/imported_process.h"
#include "formats/otf2/otf2_reader.h"
#include "formats/perfetto/perfetto.h"
#include "formats/xplane.h"
#include "python/bindings/conversions.h"
#include "vendor/zstd/zstd.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

using Whole = Input<int64_t>;
using Ids = Input<uint32_t>;
using Flags = Input<uint8_t>;

// Columns of one side table for a batch of rows: (column, values, valid or None). Reals come as their bits.
struct BatchTable {
  uint32_t table;
  struct Column {
    size_t number;
    Whole values;
    std::optional<Flags> valid;
  };
  std::vector<Column> columns;
  BatchTable(uint32_t number, nb::handle given, size_t rows) : table(number) {
    for (nb::handle each : given) {
      auto tuple = nb::cast<nb::tuple>(each);
      Column column{nb::cast<size_t>(tuple[0]), nb::cast<Whole>(tuple[1]), std::nullopt};
      if (!tuple[2].is_none()) column.valid = nb::cast<Flags>(tuple[2]);
      if (column.number >= kMaxColumns || column.values.shape(0) != rows ||
          (column.valid && column.valid->shape(0) != rows))
        throw nb::value_error("every column of a batch has one value a row");
      columns.push_back(std::move(column));
    }
  }
  bool fill(TableRow& row, size_t i) const {
    row.start(table);
    for (const Column& each : columns)
      if (!each.valid || each.valid->data()[i]) row.set(each.number, each.values.data()[i]);
    return !row.empty();
  }
};

// zstd as a stream; the frames may follow each other.
class ZstdStream {
 public:
  ZstdStream() : context_(ZSTD_createDCtx()) {}
  ~ZstdStream() { ZSTD_freeDCtx(context_); }
  ZstdStream(const ZstdStream&) = delete;
  nb::tuple decompress(nb::bytes packed, size_t most) {
    std::string out(most, '\0');
    ZSTD_inBuffer in{packed.c_str(), packed.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    size_t left;
    unlocked([&] {
      do left = ZSTD_decompressStream(context_, &to, &in);
      while (!ZSTD_isError(left) && in.pos < in.size && to.pos < to.size);
    });
    if (ZSTD_isError(left)) throw nb::value_error(ZSTD_getErrorName(left));
    return nb::make_tuple(nb::bytes(out.data(), to.pos), nb::bytes(packed.c_str() + in.pos, in.size - in.pos));
  }

 private:
  ZSTD_DCtx* context_;
};

}  // namespace

void register_formats(nb::module_& m) {
  m.def("crc32c", [](nb::bytes bytes) { return crc32c(bytes.c_str(), bytes.size()); });
  nb::class_<ZstdStream>(m, "ZstdStream")
      .def(nb::init<>())
      .def("decompress", &ZstdStream::decompress, nb::arg("packed"), nb::arg("most"));
  nb::class_<ImportTotals>(m, "ImportTotals")
      .def(nb::init<std::string>(), nb::arg("folder"))
      .def_prop_ro("span_count", &ImportTotals::spans)
      .def("regions", [](const ImportTotals& self) {
        nb::list out;
        for (const auto& each : self.regions())
          out.append(nb::make_tuple(bytes_of(each.name), each.role, each.count, each.total_ns));
        return out;
      });
  nb::class_<ImportedProcess>(m, "ImportedProcess")
      .def(nb::init<std::string, size_t>(), nb::arg("blocks_path"), nb::arg("buffer_bytes"), Unlocked())
      .def("region", &ImportedProcess::region, nb::arg("name"), nb::arg("paradigm"), nb::arg("role"),
           nb::arg("file") = "", nb::arg("line") = 0, nb::arg("module") = "")
      .def(
          "location",
          [](ImportedProcess& self, std::string_view name, uint64_t thread_id, uint8_t kind, int64_t device) {
            return self.location(name, thread_id, LocationKind(kind), device);
          },
          nb::arg("name"), nb::arg("thread_id"), nb::arg("kind") = 0, nb::arg("device") = -1)
      .def("text", &ImportedProcess::text)
      .def(
          "table",
          [](ImportedProcess& self, const std::string& name,
             const std::vector<std::tuple<std::string, uint8_t>>& columns, bool of_spans) {
            TableLayout layout{name, {}, of_spans};
            for (const auto& [column, type] : columns) layout.columns.push_back({column, CellType(type)});
            return self.table(std::move(layout));
          },
          nb::arg("name"), nb::arg("columns"), nb::arg("of_spans"))
      .def("metric", &ImportedProcess::metric, nb::arg("name"), nb::arg("unit") = "", nb::arg("location") = 0xFFFFFFFF)
      .def("samples",
           [](ImportedProcess& self, uint32_t metric, Whole time_ns, Input<double> value) {
             if (time_ns.shape(0) != value.shape(0)) throw nb::value_error("one value for every time");
             for (size_t i = 0; i < time_ns.shape(0); i++) self.sample(metric, time_ns.data()[i], value.data()[i]);
           })
      .def(
          "spans",
          [](ImportedProcess& self, Ids location, Whole start_ns, Whole duration_ns, Ids region, nb::list tables,
             std::optional<Flags> cut) {
            const size_t n = location.shape(0);
            if (start_ns.shape(0) != n || duration_ns.shape(0) != n || region.shape(0) != n ||
                (cut && cut->shape(0) != n))
              throw nb::value_error("every column of a batch has one value a row");
            std::vector<BatchTable> batches;
            for (nb::handle each : tables) {
              auto pair = nb::cast<nb::tuple>(each);
              batches.emplace_back(nb::cast<uint32_t>(pair[0]), pair[1], n);
            }
            unlocked([&] {
              TableRow row;
              for (size_t i = 0; i < n; i++) {
                for (const BatchTable& batch : batches)
                  if (batch.fill(row, i)) self.attribute(row);
                if (cut && cut->data()[i]) self.next_is_cut();
                self.span(location.data()[i], start_ns.data()[i], duration_ns.data()[i], region.data()[i]);
              }
            });
          },
          nb::arg("location"), nb::arg("start_ns"), nb::arg("duration_ns"), nb::arg("region"),
          nb::arg("tables") = nb::list(), nb::arg("cut") = nb::none())
      .def("rows",
           [](ImportedProcess& self, uint32_t table, Ids location, nb::list columns) {
             const size_t n = location.shape(0);
             BatchTable batch(table, columns, n);
             unlocked([&] {
               TableRow row;
               for (size_t i = 0; i < n; i++)
                 if (batch.fill(row, i)) self.row(location.data()[i], row);
             });
           })
      .def("path", &ImportedProcess::path)
      .def(
          "totals",
          [](ImportedProcess& self, uint32_t location, uint32_t path, uint64_t count, int64_t total_ns, int64_t own_ns,
             std::optional<int64_t> min_ns, std::optional<int64_t> max_ns) {
            SpanTotals t;
            t.count = count, t.total_ns = total_ns, t.own_ns = own_ns;
            // Profiles without extremes: the mean stands for both.
            const int64_t mean = count ? total_ns / int64_t(count) : 0;
            t.min_ns = min_ns.value_or(mean), t.max_ns = max_ns.value_or(mean);
            self.totals(location, path, t);
          },
          Unlocked(), nb::arg("location"), nb::arg("path"), nb::arg("count"), nb::arg("total_ns"), nb::arg("own_ns"),
          nb::arg("min_ns") = nb::none(), nb::arg("max_ns") = nb::none())
      .def("count", &ImportedProcess::count, nb::arg("what"), nb::arg("n") = 1)
      .def_prop_ro("first_ns", &ImportedProcess::first_ns)
      .def_prop_ro("last_ns", &ImportedProcess::last_ns)
      .def_prop_ro("span_count", &ImportedProcess::spans)
      .def(
          "finish",
          [](ImportedProcess& self, int64_t pid, int64_t parent_pid, const std::string& description_json,
             const std::string& note_json,
             const std::string& end_state) { self.finish({pid, parent_pid, description_json, note_json}, end_state); },
          Unlocked(), nb::arg("pid"), nb::arg("parent_pid") = 0, nb::arg("description_json") = "{}",
          nb::arg("note_json") = "", nb::arg("end_state") = "closed");
  nb::class_<TraceReader>(m, "TraceReader")
      .def(
          "feed", [](TraceReader& self, const nb::bytes& bytes) { self.feed(view(bytes)); }, Unlocked())
      .def("begin_capture", &TraceReader::begin_capture)
      .def("end_capture", &TraceReader::end_capture)
      .def("finish", [](TraceReader& self, const std::string& source) {
        return bytes_of(unlocked([&] { return self.finish(source); }));
      });
  m.def("chrome_reader", &chrome_reader, nb::arg("folder"), nb::arg("first_number"), nb::arg("buffer_bytes"));
  m.def(
      "perfetto_reader",
      [](std::string folder, uint32_t first_number, size_t buffer_bytes, std::vector<std::string> paradigms,
         std::vector<std::string> roles, nb::callable inflate) {
        auto unpack = [inflate](uint32_t field, std::string_view packed) {
          nb::gil_scoped_acquire held;
          return std::string(view(nb::cast<nb::bytes>(inflate(field, bytes_of(packed)))));
        };
        return perfetto_reader(std::move(folder), first_number, buffer_bytes, std::move(paradigms), std::move(roles),
                               std::move(unpack));
      },
      nb::arg("folder"), nb::arg("first_number"), nb::arg("buffer_bytes"), nb::arg("paradigms"), nb::arg("roles"),
      nb::arg("inflate"));
  m.def(
      "read_xplane",
      [](Flags file, const std::string& blocks_path, size_t buffer_bytes, const std::string& source) {
        const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.shape(0));
        return bytes_of(unlocked([&] { return read_xplane(bytes, blocks_path, buffer_bytes, source); }));
      },
      nb::arg("file"), nb::arg("blocks_path"), nb::arg("buffer_bytes"), nb::arg("source"));
  nb::class_<Otf2Reader>(m, "Otf2Reader")
      .def(
          "__init__",
          [](Otf2Reader* self, std::string folder, size_t buffer_bytes, const nb::bytes& anchor,
             std::vector<std::string> paradigms, std::vector<std::string> roles) {
            new (self)
                Otf2Reader(std::move(folder), buffer_bytes, view(anchor), std::move(paradigms), std::move(roles));
          },
          Unlocked(), nb::arg("folder"), nb::arg("buffer_bytes"), nb::arg("anchor"), nb::arg("paradigms"),
          nb::arg("roles"))
      .def(
          "definitions", [](Otf2Reader& self, const nb::bytes& bytes) { self.definitions(view(bytes)); }, Unlocked())
      .def("end_definitions", &Otf2Reader::end_definitions, Unlocked())
      .def("processes", &Otf2Reader::processes)
      .def("begin_process", &Otf2Reader::begin_process, Unlocked())
      .def("begin_location", &Otf2Reader::begin_location)
      .def(
          "local_definitions", [](Otf2Reader& self, const nb::bytes& bytes) { self.local_definitions(view(bytes)); },
          Unlocked())
      .def(
          "events", [](Otf2Reader& self, const nb::bytes& bytes) { self.events(view(bytes)); }, Unlocked())
      .def("end_location", &Otf2Reader::end_location, Unlocked())
      .def("end_process", &Otf2Reader::end_process, Unlocked())
      .def("report", [](const Otf2Reader& self) { return bytes_of(self.report()); });
}

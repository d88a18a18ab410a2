// otf2_writer_bindings.cpp - the doors to the encoder of OTF2 archives.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "formats/otf2/otf2_writer.h"
#include "python/bindings/conversions.h"

namespace nb = nanobind;
using namespace strobe;
using namespace strobe::otf2;

namespace {

// Records as Python gives them: (type, keys, [(kind, numbers)], [(id, type, values, valid or None)]), where numbers,
// ids and types are arrays or one number for all rows. The arrays are held while this is.
class GivenRecords {
 public:
  explicit GivenRecords(nb::handle given) {
    auto tuple = nb::cast<nb::tuple>(given);
    records_.type = nb::cast<uint8_t>(tuple[0]);
    const Input<int64_t> keys = nb::cast<Input<int64_t>>(tuple[1]);
    hold(keys);
    records_.keys = keys.data(), records_.count = keys.shape(0);
    for (nb::handle each : nb::cast<nb::list>(tuple[2])) {
      auto field = nb::cast<nb::tuple>(each);
      records_.fields.push_back({FieldKind(nb::cast<uint8_t>(field[0])), numbers(field[1])});
    }
    for (nb::handle each : nb::cast<nb::list>(tuple[3])) {
      auto cells = nb::cast<nb::tuple>(each);
      Attribute attribute{numbers(cells[0]), numbers(cells[1]), numbers(cells[2]), nullptr};
      if (!cells[3].is_none()) {
        const auto valid = nb::cast<Input<uint8_t>>(cells[3]);
        check(valid.shape(0));
        flags_.push_back(valid);
        attribute.valid = valid.data();
      }
      records_.attributes.push_back(attribute);
    }
  }
  const Records& get() const { return records_; }

 private:
  void hold(const Input<int64_t>& array) { held_.push_back(array); }
  void check(size_t rows) const {
    if (rows != records_.count) throw nb::value_error("every column of records has one value a row");
  }
  Numbers numbers(nb::handle given) {
    if (nb::isinstance<nb::int_>(given)) return {nullptr, nb::cast<int64_t>(given)};
    const auto values = nb::cast<Input<int64_t>>(given);
    check(values.shape(0));
    hold(values);
    return {values.data(), 0};
  }
  Records records_{};
  std::vector<Input<int64_t>> held_;
  std::vector<Input<uint8_t>> flags_;
};

std::vector<GivenRecords> all_of(nb::list given) {
  std::vector<GivenRecords> found;
  for (nb::handle each : given) found.emplace_back(each);
  return found;
}

std::vector<Records> plain(const std::vector<GivenRecords>& given) {
  std::vector<Records> found;
  for (const GivenRecords& each : given) found.push_back(each.get());
  return found;
}

}  // namespace

void register_otf2_writer(nb::module_& m) {
  nb::class_<ChunkedFile>(m, "Otf2DefinitionFile")
      .def(nb::init<std::string, size_t>(), nb::arg("path"), nb::arg("chunk_bytes"), Unlocked())
      .def(
          "record",
          [](ChunkedFile& self, uint8_t type, const nb::bytes& body) { return self.record(type, view(body)); },
          Unlocked())
      .def_prop_ro("records", &ChunkedFile::records)
      .def("finish", &ChunkedFile::finish, Unlocked());
  nb::class_<EventFile>(m, "Otf2EventFile")
      .def(
          "__init__",
          [](EventFile* self, const std::string& path, size_t chunk_bytes, const std::string& spill_path,
             size_t memory_bytes, Input<uint8_t> communication) {
            std::vector<uint8_t> flags(communication.data(), communication.data() + communication.shape(0));
            new (self) EventFile(path, chunk_bytes, spill_path, memory_bytes, std::move(flags));
          },
          nb::arg("path"), nb::arg("chunk_bytes"), nb::arg("spill_path"), nb::arg("memory_bytes"),
          nb::arg("communication"))
      .def(
          "points",
          [](EventFile& self, nb::tuple records, uint16_t early_ns, uint16_t late_ns) {
            const GivenRecords given(records);
            unlocked([&] { self.points(given.get(), early_ns, late_ns); });
          },
          nb::arg("records"), nb::arg("early_ns") = 0, nb::arg("late_ns") = 0)
      .def(
          "spans",
          [](EventFile& self, Input<int64_t> row, Input<int64_t> start, Input<int64_t> duration, Input<uint32_t> depth,
             Input<uint32_t> region, nb::list details, nb::list first, nb::list last) {
            const size_t n = row.shape(0);
            if (start.shape(0) != n || duration.shape(0) != n || depth.shape(0) != n || region.shape(0) != n)
              throw nb::value_error("every column of a batch has one value a row");
            const auto given_details = all_of(details), given_first = all_of(first), given_last = all_of(last);
            unlocked([&] {
              self.spans({row.data(), start.data(), duration.data(), depth.data(), region.data(), n},
                         plain(given_details), plain(given_first), plain(given_last));
            });
          },
          nb::arg("row"), nb::arg("start"), nb::arg("duration"), nb::arg("depth"), nb::arg("region"),
          nb::arg("details"), nb::arg("first"), nb::arg("last"))
      .def("finish", &EventFile::finish, Unlocked())
      .def_prop_ro("events", &EventFile::events)
      .def_prop_ro("attributes_left_out", &EventFile::attributes_left_out)
      .def_prop_ro("first_time", &EventFile::first_time)
      .def_prop_ro("last_time", &EventFile::last_time);
}

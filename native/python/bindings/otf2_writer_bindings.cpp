// otf2_writer_bindings.cpp - the doors to the encoder of OTF2 archives.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "formats/otf2/otf2_writer.h"
#include "python/bindings/errors.h"

namespace nb = nanobind;
using namespace strobe::otf2;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Records as Python gives them: (type, keys, [(kind, numbers)], [(id, type, values, valid or None)]), where numbers,
// ids and types are arrays or one number for all rows. The arrays are held while this is.
class GivenRecords {
 public:
  explicit GivenRecords(nb::handle given) {
    auto tuple = nb::cast<nb::tuple>(given);
    records_.type = nb::cast<uint8_t>(tuple[0]);
    const Array<int64_t> keys = nb::cast<Array<int64_t>>(tuple[1]);
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
        const auto valid = nb::cast<Array<uint8_t>>(cells[3]);
        check(valid.shape(0));
        flags_.push_back(valid);
        attribute.valid = valid.data();
      }
      records_.attributes.push_back(attribute);
    }
  }
  const Records& get() const { return records_; }

 private:
  void hold(const Array<int64_t>& array) { held_.push_back(array); }
  void check(size_t rows) const {
    if (rows != records_.count) throw nb::value_error("every column of records has one value a row");
  }
  Numbers numbers(nb::handle given) {
    if (nb::isinstance<nb::int_>(given)) return {nullptr, nb::cast<int64_t>(given)};
    const auto values = nb::cast<Array<int64_t>>(given);
    check(values.shape(0));
    hold(values);
    return {values.data(), 0};
  }
  Records records_{};
  std::vector<Array<int64_t>> held_;
  std::vector<Array<uint8_t>> flags_;
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
  nb::class_<DefinitionFile>(m, "Otf2DefinitionFile")
      .def(
          "__init__",
          [](DefinitionFile* self, const std::string& path, size_t chunk_bytes) {
            strobe::translated([&] { new (self) DefinitionFile(path, chunk_bytes); });
          },
          nb::arg("path"), nb::arg("chunk_bytes"))
      .def("record",
           [](DefinitionFile& self, uint8_t type, nb::bytes body) {
             bool done = false;
             strobe::translated(
                 [&, bytes = std::string_view(body.c_str(), body.size())] { done = self.record(type, bytes); });
             return done;
           })
      .def_prop_ro("records", &DefinitionFile::records)
      .def("finish", [](DefinitionFile& self) { strobe::translated([&] { self.finish(); }); });
  nb::class_<EventFile>(m, "Otf2EventFile")
      .def(
          "__init__",
          [](EventFile* self, const std::string& path, size_t chunk_bytes, const std::string& spill_path,
             size_t memory_bytes, Array<uint8_t> communication) {
            std::vector<uint8_t> flags(communication.data(), communication.data() + communication.shape(0));
            strobe::translated(
                [&] { new (self) EventFile(path, chunk_bytes, spill_path, memory_bytes, std::move(flags)); });
          },
          nb::arg("path"), nb::arg("chunk_bytes"), nb::arg("spill_path"), nb::arg("memory_bytes"),
          nb::arg("communication"))
      .def("points",
           [](EventFile& self, nb::tuple records) {
             const GivenRecords given(records);
             strobe::translated([&] { self.points(given.get()); });
           })
      .def(
          "spans",
          [](EventFile& self, Array<int64_t> row, Array<int64_t> start, Array<int64_t> duration, Array<uint16_t> depth,
             Array<uint32_t> region, nb::list details, nb::list first, nb::list last) {
            const size_t n = row.shape(0);
            if (start.shape(0) != n || duration.shape(0) != n || depth.shape(0) != n || region.shape(0) != n)
              throw nb::value_error("every column of a batch has one value a row");
            const auto given_details = all_of(details), given_first = all_of(first), given_last = all_of(last);
            strobe::translated([&] {
              self.spans({row.data(), start.data(), duration.data(), depth.data(), region.data(), n},
                         plain(given_details), plain(given_first), plain(given_last));
            });
          },
          nb::arg("row"), nb::arg("start"), nb::arg("duration"), nb::arg("depth"), nb::arg("region"),
          nb::arg("details"), nb::arg("first"), nb::arg("last"))
      .def("finish", [](EventFile& self) { strobe::translated([&] { self.finish(); }); })
      .def_prop_ro("events", &EventFile::events)
      .def_prop_ro("attributes_left_out", &EventFile::attributes_left_out)
      .def_prop_ro("first_time", [](const EventFile& self) { return self.first_time(); })
      .def_prop_ro("last_time", &EventFile::last_time);
}

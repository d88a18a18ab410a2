// process_reader.cpp - the reading kernels for Python: definitions as tuples and dicts, spans and pictures as numpy
// arrays.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "kernels/pyramid/window_pixels.h"
#include "kernels/reading/path_sums.h"
#include "kernels/reading/process_file.h"
#include "kernels/reading/table_chunks.h"
#include "python/bindings/conversions.h"
#include "python/bindings/process_reader.h"
#include "structure/flow_graph.h"
#include "structure/region_names.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

nb::object text(const std::string& bytes) {  // names come from the program: what is not UTF-8 is shown, never an error
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), "backslashreplace"));
}

class Reader {
 public:
  Reader(const std::string& blocks_path, const std::optional<std::string>& rings_path) {
    nb::gil_scoped_release release;
    file_ = std::make_shared<ProcessFile>(blocks_path, rings_path.value_or(""));
  }

  nb::dict process() const {
    nb::dict out;
    nb::list begun, ended, notes;
    for (const auto& json : file_->process_json) begun.append(text(json));
    for (const auto& json : file_->end_json) ended.append(text(json));
    for (const auto& json : file_->note_json) notes.append(text(json));
    out["process_json"] = begun;
    out["note_json"] = notes;
    out["end_json"] = ended;
    out["last_ns"] = file_->last_ns;
    out["kept_from_ns"] = file_->kept_from_ns();
    out["ring_state"] = file_->ring_state;
    out["failure"] = text(file_->failure);
    out["failed_ns"] = file_->failed_ns;
    return out;
  }

  nb::dict quality() const {
    nb::dict out;
    for (const auto& [name, value] : file_->counters) out[name.c_str()] = value;
    file_->check_blocks();
    out["bytes_lost"] = file_->bytes_lost + file_->damaged_later_bytes();
    out["chunks_damaged"] = file_->chunks_damaged + file_->damaged_later();
    out["records_recovered"] = file_->recovered_records;
    return out;
  }

  nb::list lost_spans() const {
    file_->check_blocks();
    nb::list out;
    for (const auto& lost : file_->lost_spans())
      out.append(nb::make_tuple(lost.location, lost.begin_ns, lost.end_ns, lost.spans));
    return out;
  }

  nb::list regions() const {
    nb::list out;
    for (const Region& r : file_->regions)
      out.append(nb::make_tuple(r.id, text(r.name), r.paradigm, r.role, text(r.file), r.line, text(r.module)));
    return out;
  }

  nb::dict source_loops() const {
    nb::dict out;
    for (const auto& [region, loops] : file_->source_loops) out[nb::int_(region)] = text(loops);
    return out;
  }

  nb::list locations() const {
    nb::list out;
    for (const auto& [id, location] : file_->locations) {
      nb::dict d;
      d["id"] = id;
      d["name"] = text(location.name);
      d["thread_id"] = int64_t(location.thread_id);  // Kineto has negative ones
      const char* kinds[] = {"thread", "stream", "task"};
      d["kind"] = kinds[location.kind < 3 ? location.kind : 2];
      d["device"] = location.device;
      uint64_t spans = 0;
      for (const Block& block : location.blocks) spans += block.count;
      d["span_count"] = spans;
      d["left_out"] = location.left_out;
      d["first_ns"] = location.first_ns;
      d["last_ns"] = location.last_ns;
      out.append(d);
    }
    return out;
  }

  nb::dict call_paths() const {
    nb::dict out;
    out["parent"] = owned(file_->path_parent);
    out["region"] = owned(file_->path_region);
    out["depth"] = owned(file_->path_depth);
    return out;
  }

  nb::dict spans(uint32_t location, int64_t start_ns, int64_t end_ns) const {
    Spans s;
    unlocked([&] { file_->spans(location, start_ns, end_ns, s); });
    nb::dict out;
    out["row"] = owned(std::move(s.row));
    out["start_ns"] = owned(std::move(s.start_ns));
    out["duration_ns"] = owned(std::move(s.duration_ns));
    out["call_path"] = owned(std::move(s.path));
    out["parent"] = owned(std::move(s.parent));
    out["self_ns"] = owned(std::move(s.self_ns));
    out["complete"] = owned(std::move(s.complete));
    return out;
  }

  // begin_ns, end_ns: of the stretches that are chosen, in order and without overlap; none: everything.
  nb::dict path_sums(const std::vector<uint32_t>& locations, const std::optional<Input<int64_t>>& begin_ns,
                     const std::optional<Input<int64_t>>& end_ns) const {
    std::vector<TimeRange> chosen;
    if (begin_ns.has_value() != end_ns.has_value() || (begin_ns && begin_ns->shape(0) != end_ns->shape(0)))
      throw nb::value_error("every stretch has a begin and an end");
    for (size_t i = 0; begin_ns && i < begin_ns->shape(0); i++)
      chosen.push_back({begin_ns->data()[i], end_ns->data()[i]});
    PathSums sums = unlocked([&] { return sum_paths(*file_, locations, begin_ns ? &chosen : nullptr); });
    nb::dict out;
    out["calls"] = owned(std::move(sums.calls));
    out["total_ns"] = owned(std::move(sums.total_ns));
    out["own_ns"] = owned(std::move(sums.own_ns));
    out["min_ns"] = owned(std::move(sums.min_ns));
    out["max_ns"] = owned(std::move(sums.max_ns));
    return out;
  }

  nb::list metrics() const {
    nb::list out;
    for (const auto& [id, metric] : file_->metrics) {
      nb::dict d;
      d["name"] = text(metric.name);
      d["unit"] = text(metric.unit);
      d["location"] = metric.location == 0xFFFFFFFF ? -1 : int64_t(metric.location);
      d["time_ns"] = owned(metric.time_ns);
      d["value"] = owned(metric.value);
      out.append(d);
    }
    return out;
  }

  nb::list loops() const {
    nb::list out;
    for (const auto& loop : file_->loops) {
      nb::dict d;
      d["loop"] = loop.number;
      d["kind"] = structure::loop_kind_name(loop.kind);
      d["name"] = text(loop.name);
      d["accepted_ns"] = loop.accepted_ns;
      d["accepted_iteration"] = loop.accepted_iteration;
      d["ended_ns"] = loop.ended_ns;
      d["reason"] = text(loop.reason);
      d["confidence"] = text(loop.confidence);
      out.append(d);
    }
    return out;
  }

  nb::dict iterations() const {
    using Record = structure::IterationRecord;
    const auto of_iterations = [&](auto member) { return column(file_->iterations, member); };
    nb::dict out;
    out["loop"] = of_iterations(&Record::loop);
    out["start_ns"] = of_iterations(&Record::start_ns);
    out["duration_ns"] = of_iterations(&Record::duration_ns);
    out["events"] = of_iterations(&Record::events);
    out["path_hash"] = of_iterations(&Record::path_hash);
    out["class_id"] = of_iterations(&Record::class_id);
    out["detail"] = of_iterations([](const Record& it) { return uint8_t(it.detail); });
    out["detail_ns"] = of_iterations(&Record::detail_ns);
    const char* parts[structure::kParts] = {"data_wait_ns", "forward_ns",    "backward_ns",
                                            "optimizer_ns", "validation_ns", "rest_ns"};
    for (int i = 0; i < structure::kParts; i++)
      out[parts[i]] = of_iterations([i](const Record& it) { return it.parts_ns[i]; });
    return out;
  }

  // By number of the cell: strobe.trace.folded. None where an older recorder wrote none.
  nb::object cells() const {
    if (file_->cells.size() != file_->iterations.size()) return nb::none();
    nb::dict out;
    for (int part = 0; part < structure::kParts; part++)
      for (int kind = 0; kind < structure::kHost; kind++) {
        std::vector<int64_t> column = file_->cells.column(part, kind);
        if (column.empty()) continue;
        column.resize(file_->iterations.size(), 0);
        out[nb::int_(part * structure::kKinds + kind)] = owned(std::move(column));
      }
    return out;
  }

  // By device: the number of the first iteration, and from then on when the lanes begin, and how long exactly these
  // kinds run, by set, without sets that never run.
  nb::dict gpu_lanes() const {
    nb::dict out;
    if (!file_->has_all_iterations()) return out;
    for (const auto& [device, known] : file_->gpu_lanes) {
      nb::dict sets;
      for (int set = 0; set < structure::kGpuSets; set++) {
        std::vector<int64_t> column = known.lanes.column(set);
        if (column.empty()) continue;
        column.resize(known.lanes.size(), 0);
        sets[nb::int_(set)] = owned(std::move(column));
      }
      out[nb::int_(device)] = nb::make_tuple(known.first, owned(std::vector(known.lanes.starts_ns())), sets);
    }
    return out;
  }

  nb::list classes() const {
    nb::list out;
    for (const auto& extras : file_->classes) {
      nb::list regions;
      for (uint32_t region : extras.regions) regions.append(region);
      out.append(regions);
    }
    return out;
  }

  nb::list class_paths() const {
    nb::list out;
    for (const auto& extras : file_->classes) {
      nb::list paths;
      for (uint32_t path : extras.paths) paths.append(path);
      out.append(paths);
    }
    return out;
  }

  nb::list extra_calls() const {
    nb::list out;
    for (const auto& each : file_->extra_calls)
      out.append(nb::make_tuple(each.loop, each.path, each.iterations, each.worth));
    return out;
  }

  nb::dict statistics() const {
    const StatisticsTable& table = file_->statistics;
    // Most of thousands of ranks folded nothing: to make arrays for each takes half as long as to open its file.
    static nb::handle none;
    if (!table.size() && none) return nb::steal<nb::dict>(PyDict_Copy(none.ptr()));
    std::vector<uint32_t> location, path, class_id, histogram;
    std::vector<uint8_t> is_short;
    std::vector<uint64_t> count;
    std::vector<int64_t> total, own, least, most;
    std::vector<double> squares;
    for (size_t i = 0; i < table.size(); i++) {
      const StatisticsKey& key = table.key(i);
      const SpanStatistics s = table.entry(i);
      location.push_back(key.location), path.push_back(key.path), class_id.push_back(plain_class(key.class_id));
      is_short.push_back(is_short_class(key.class_id));
      count.push_back(s.count), total.push_back(s.total_ns), own.push_back(s.own_ns);
      least.push_back(s.count ? s.min_ns : 0), most.push_back(s.count ? s.max_ns : 0);
      squares.push_back(s.sum_squares);
      histogram.insert(histogram.end(), s.histogram, s.histogram + kHistogramBuckets);
    }
    nb::dict out;
    out["location"] = owned(std::move(location));
    out["call_path"] = owned(std::move(path));
    out["class_id"] = owned(std::move(class_id));
    out["is_short"] = owned(std::move(is_short));
    out["count"] = owned(std::move(count));
    out["total_ns"] = owned(std::move(total));
    out["own_ns"] = owned(std::move(own));
    out["min_ns"] = owned(std::move(least));
    out["max_ns"] = owned(std::move(most));
    out["sum_squares"] = owned(std::move(squares));
    const size_t rows = histogram.size() / kHistogramBuckets;
    out["histogram"] = owned(std::move(histogram), {rows, kHistogramBuckets});
    if (!table.size()) none = nb::steal<nb::dict>(PyDict_Copy(out.ptr())).release();
    return out;
  }

  nb::object graph(uint32_t location) const {
    const auto found = file_->graphs.find(location);
    if (found == file_->graphs.end()) return nb::none();
    const auto tables = structure::decode_graph(found->second);
    if (!tables) return nb::none();
    using structure::Node, structure::Signature;
    nb::dict out;
    out["payload"] = bytes_of(found->second);
    out["region"] = column(tables->nodes, [this](const Node& node) {
      const Signature name(node.signature);
      return name.path() < file_->path_region.size() ? file_->path_region[name.path()] : name.region();
    });
    out["caller"] = column(tables->nodes, [](const Node& node) { return Signature(node.signature).caller(); });
    out["call_path"] = column(tables->nodes, [](const Node& node) { return Signature(node.signature).path(); });
    return out;
  }

  nb::dict tables() const {  // name -> rows
    nb::dict out;
    for (const auto& [name, chunks] : file_->tables) {
      uint64_t rows = 0;
      for (const auto& chunk : chunks) rows += chunk.count;
      out[name.c_str()] = rows;
    }
    return out;
  }

  // Of one location (-1: of all) the chunks [first, first + most): whoever goes through a table holds no more than
  // that.
  nb::dict table(const std::string& name, int64_t location, size_t first, size_t most) const {
    Table t;
    uint64_t damaged = 0;
    size_t chunks = 0;
    {
      nb::gil_scoped_release release;
      for (const auto& chunk : file_->table_chunks(name)) {
        if (location >= 0 && chunk.location != uint32_t(location)) continue;
        const size_t number = chunks++;
        if (number < first || number - first >= most) continue;
        if (!file_->whole(chunk.payload) || !decode_table(chunk.payload, chunk.location, chunk.count, t)) damaged++;
      }
    }
    nb::dict columns, out;
    if (!file_->clock().empty())
      for (auto& [column_name, column] : t.columns)
        if (column_name == "time_ns")
          for (int64_t& ns : column.value) ns = file_->clock().at(ns);
    for (auto& [column_name, column] : t.columns) {
      const char* types[] = {"integer", "real", "text"};
      columns[column_name.c_str()] =
          nb::make_tuple(types[size_t(column.type)], owned(std::move(column.value)), owned(std::move(column.valid)));
    }
    out["location"] = owned(std::move(t.location));
    out["row"] = owned(std::move(t.row));
    out["columns"] = columns;
    out["damaged"] = damaged;
    out["chunks"] = chunks;
    return out;
  }

  // Some columns of the part `number` of `count` of a table, as numbers, -1 where a cell is null: rows from one
  // fraction of all chunks to the next, or where these are too few, of each chunk.
  nb::tuple numbers(const std::string& name, const std::vector<std::string>& wanted, size_t number,
                    size_t count) const {
    Numbers found;
    for (const std::string& each : wanted) found.columns.push_back({each, {}});
    if (const auto at = file_->tables.find(name); at != file_->tables.end()) {
      nb::gil_scoped_release release;
      const auto& chunks = at->second;
      const size_t unit = chunks.size() < count ? 1 : count;  // whole chunks, if there are enough
      const size_t begin = number * chunks.size() / unit * unit, end = (number + 1) * chunks.size() / unit * unit;
      size_t rows = 0;
      for (size_t i = begin / count; i * count < end; i++) rows += chunks[i].count;
      for (auto& [column, cells] : found.columns) cells.value.reserve(rows);
      const std::lock_guard lock(rest_mutex_);
      for (size_t i = begin / count; i * count < end; i++) {
        const auto& chunk = chunks[i];
        const auto row = [&](size_t fraction) { return uint32_t(std::min(fraction, count) * chunk.count / count); };
        const uint32_t first = row(begin - std::min(begin, i * count)), last = row(end - i * count);
        if (!first || rest_.chunk != &chunk || rest_.first != first || rest_.wanted != wanted) {
          rest_ = {&chunk, first, wanted, {}};
          for (const std::string& each : wanted) rest_.numbers.columns.push_back({each, {}});
          if (file_->whole(chunk.payload))
            decode_numbers(chunk.payload, chunk.location, chunk.count, first, chunk.count, rest_.numbers);
        }
        move_rows(rest_.numbers, last - first, found);
        rest_.first = last;
      }
      file_->release();  // who reads parts has little memory
    }
    nb::dict out;
    for (auto& [column, cells] : found.columns) {
      if (column == "time_ns" && !file_->clock().empty())
        for (int64_t& ns : cells.value) ns = file_->clock().at(ns);
      out[column.c_str()] = nb::make_tuple(cells.type == CellType::text, owned(std::move(cells.value)));
    }
    return nb::make_tuple(owned(std::move(found.location)), out);
  }

  // From now on all times are the trace's: points (ns on the process's clock, ns on the trace's), in order.
  void use_clock(const Input<int64_t>& local_ns, const Input<int64_t>& trace_ns) {
    std::vector<ClockMap::Point> points;
    for (size_t i = 0; i < local_ns.shape(0) && i < trace_ns.shape(0); i++)
      points.push_back({local_ns.data()[i], trace_ns.data()[i]});
    file_->use_clock(ClockMap(std::move(points)));
  }

  int64_t on_axis(int64_t local_ns) const { return file_->clock().at(local_ns); }

  nb::list texts() const {
    nb::list out;
    for (const std::string_view each : file_->texts) out.append(text(std::string(each)));
    return out;
  }

  bool write_index() const { return file_->write_index(); }

  nb::object depth_cells(uint32_t location, int64_t start_ns, int64_t end_ns, uint32_t width,
                         uint32_t max_depth) const {
    check(start_ns, end_ns, width);
    Cells flat;
    size_t rows;
    {
      nb::gil_scoped_release release;
      auto all = stack_cells(*file_, location, start_ns, end_ns, width, max_depth);
      rows = all.size();
      for (auto& row : all) {
        flat.region.insert(flat.region.end(), row.region.begin(), row.region.end());
        flat.share.insert(flat.share.end(), row.share.begin(), row.share.end());
      }
    }
    if (!rows) flat.region.assign(width, kNothing), flat.share.assign(width, 0), rows = 1;
    return nb::make_tuple(owned(std::move(flat.region), {rows, width}), owned(std::move(flat.share), {rows, width}));
  }

  std::shared_ptr<const ProcessFile> file() const { return file_; }

 private:
  // The rows of a chunk from `first` on that `numbers` has read and not returned: the next part has them.
  struct Rest {
    const void* chunk = nullptr;
    uint32_t first = 0;
    std::vector<std::string> wanted;
    Numbers numbers;
  };
  mutable std::mutex rest_mutex_;
  mutable Rest rest_;
  static void check(int64_t start_ns, int64_t end_ns, uint32_t width) {
    if (end_ns <= start_ns || width == 0)
      throw nb::value_error("a picture needs end_ns > start_ns and a width of at least one pixel");
  }
  std::shared_ptr<ProcessFile> file_;
};

}  // namespace

std::shared_ptr<const ProcessFile> file_of(nb::handle reader) { return nb::cast<const Reader&>(reader).file(); }

void register_reader(nb::module_& m) {
  nb::class_<Reader>(m, "ProcessReader")
      .def(nb::init<const std::string&, const std::optional<std::string>&>(), nb::arg("blocks_path"),
           nb::arg("rings_path").none() = nb::none())
      .def("process", &Reader::process)
      .def("quality", &Reader::quality)
      .def("lost_spans", &Reader::lost_spans,
           "Spans missing from damaged parts: location, begin_ns, end_ns (2**63 - 1: the end of the file), spans.")
      .def("regions", &Reader::regions)
      .def("source_loops", &Reader::source_loops)
      .def("locations", &Reader::locations)
      .def("call_paths", &Reader::call_paths)
      .def("spans", &Reader::spans, nb::arg("location"), nb::arg("start_ns"), nb::arg("end_ns"))
      .def("path_sums", &Reader::path_sums, nb::arg("locations"), nb::arg("begin_ns").none() = nb::none(),
           nb::arg("end_ns").none() = nb::none())
      .def("metrics", &Reader::metrics)
      .def("loops", &Reader::loops)
      .def("iterations", &Reader::iterations)
      .def("cells", &Reader::cells)
      .def("gpu_lanes", &Reader::gpu_lanes)
      .def("classes", &Reader::classes)
      .def("class_paths", &Reader::class_paths)
      .def("extra_calls", &Reader::extra_calls)
      .def("statistics", &Reader::statistics)
      .def("graph", &Reader::graph, nb::arg("location"))
      .def("tables", &Reader::tables)
      .def("numbers", &Reader::numbers, nb::arg("name"), nb::arg("columns"), nb::arg("number"), nb::arg("count"))
      .def("table", &Reader::table, nb::arg("name"), nb::arg("location") = -1, nb::arg("first") = 0,
           nb::arg("most") = SIZE_MAX)
      .def("use_clock", &Reader::use_clock)
      .def("on_axis", &Reader::on_axis)
      .def("texts", &Reader::texts)
      .def(
          "spans_before", [](const Reader& self, int64_t ns) { return self.file()->spans_before(ns); }, nb::arg("ns"))
      .def("write_index", &Reader::write_index, Unlocked())
      .def("stack_cells", &Reader::depth_cells, nb::arg("location"), nb::arg("start_ns"), nb::arg("end_ns"),
           nb::arg("width"), nb::arg("max_depth"));
  m.def("recover", &recover_process, nb::arg("blocks_path"), nb::arg("rings_path"), nb::arg("end_state") = "lost",
        "Complete the block file of a process that ended without closing it; returns the records recovered.");
  m.def("append_note", &append_note, nb::arg("blocks_path"), nb::arg("json"), Unlocked(),
        "Append a note to the block file of a process that has ended; False: it was not possible.");
  m.def("is_held", &is_held, nb::arg("blocks_path"), "Whether the process that writes a block file still lives.");
}

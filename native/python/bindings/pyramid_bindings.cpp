// pyramid_bindings.cpp - pictures of all rows of a trace in one call: without the GIL, on two threads.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/format/blocks.h"
#include "kernels/pyramid/overview.h"
#include "kernels/pyramid/pyramid.h"
#include "kernels/pyramid/window_pixels.h"
#include "python/bindings/conversions.h"
#include "python/bindings/process_reader.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

// An array of the given shape that is filled row by row.
template <class T>
class Output {
 public:
  Output(std::initializer_list<size_t> shape)
      : shape_(shape), values_(std::accumulate(shape.begin(), shape.end(), size_t(1), std::multiplies())) {}
  T* row(size_t number) { return values_.data() + number * (values_.size() / shape_[0]); }
  nb::object array() { return owned(std::move(values_), shape_); }

 private:
  std::vector<size_t> shape_;
  std::vector<T> values_;
};

// Calls work(i) for i in [0, count), on two threads where there is enough of it. The first exception is passed on.
template <class Work>
void for_each_row(size_t count, Work&& work) {
  constexpr size_t kWorthAThread = 4;
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex failed;
  auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(failed);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  if (count >= kWorthAThread && std::thread::hardware_concurrency() > 1) {
    std::thread other(run);
    run();
    other.join();
  } else {
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

// One process of the trace. Tiles are opened before anything is drawn of it, and never exchanged: threads only read.
class Process {
 public:
  Process(std::shared_ptr<const ProcessFile> file, std::vector<uint32_t> regions, Groups groups, int64_t origin_ns,
          int64_t begin_ns, int64_t end_ns, NearStretches& near)
      : file_(std::move(file)),
        regions_(std::move(regions)),
        groups_(std::move(groups)),
        origin_ns_(origin_ns),
        begin_ns_(begin_ns),
        end_ns_(end_ns),
        near_(near) {}

  void build(const std::string& path) const { build_tiles(*file_, groups_, origin_ns_, path); }
  bool open(const std::string& path) {
    tiles_ = std::make_unique<TilesFile>(path, tiles_of(*file_, groups_, origin_ns_));
    return tiles_->sound();
  }
  uint32_t checksum() const { return tiles_->checksum(); }
  Track track(uint32_t location) { return track(location, tiles_.get(), &exceptional(location)); }
  // For sums, in which nothing is exceptional. What has fewer spans than a tile needs no open tiles.
  Track track_of_sums(uint32_t location) {
    return track(location, needs_tiles(location) ? tiles_.get() : &no_tiles_, nullptr);
  }
  bool needs_tiles(uint32_t location) const {
    const auto found = file_->locations.find(location);
    return found != file_->locations.end() && found->second.spans >= kTileSpans;
  }

 private:
  Track track(uint32_t location, const TilesFile* tiles, const Exceptional* exceptional) {
    return {file_.get(), tiles, exceptional, &groups_, &regions_, location, origin_ns_, begin_ns_, end_ns_, &near_};
  }

  // Stored with the tiles, else found in the spans the first time that somebody asks.
  const Exceptional& exceptional(uint32_t location) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Exceptional>& known = exceptional_[location];
    if (known) return *known;
    const std::string_view frame = tiles_->frame({location, kThresholds, 0});
    std::string encoded;
    if (!frame.empty() && decompressed(frame, encoded))
      known = std::make_unique<Exceptional>(*file_, encoded);
    else
      known = std::make_unique<Exceptional>(*file_, location);
    return *known;
  }

  const std::shared_ptr<const ProcessFile> file_;
  const std::vector<uint32_t> regions_;
  const Groups groups_;
  const int64_t origin_ns_, begin_ns_, end_ns_;
  std::unique_ptr<TilesFile> tiles_ = std::make_unique<TilesFile>();
  static inline const TilesFile no_tiles_;
  NearStretches& near_;
  std::mutex mutex_;
  std::map<uint32_t, std::unique_ptr<Exceptional>> exceptional_;
};

class Pyramid {
 public:
  explicit Pyramid(uint32_t groups) : groups_(groups) {
    if (groups == 0 || groups > kMaxGroups) throw nb::value_error("a pyramid has 1 to 8 groups");
  }
  Pyramid(const Pyramid&) = delete;

  void add_process(nb::handle reader, Input<uint32_t> regions, Input<uint8_t> groups, int64_t origin_ns,
                   int64_t begin_ns, int64_t end_ns) {
    for (size_t i = 0; i < groups.shape(0); i++)
      if (groups.data()[i] >= groups_) throw nb::value_error("no such group");
    processes_.push_back(std::make_unique<Process>(
        file_of(reader), std::vector<uint32_t>(regions.data(), regions.data() + regions.shape(0)),
        Groups(groups.data(), groups.data() + groups.shape(0)), origin_ns, begin_ns, end_ns, near_));
  }

  void build(size_t process, const std::string& path) { at(process).build(path); }

  bool open(size_t process, const std::string& path) { return at(process).open(path); }

  nb::tuple cells(Input<uint32_t> processes, Input<uint32_t> locations, int64_t start_ns, int64_t end_ns,
                  uint32_t width) {
    const size_t rows = check(processes, locations);
    const Window window = checked(start_ns, end_ns, width);
    Output<uint32_t> region{rows, width}, mark{rows, width};
    Output<uint8_t> share{rows, width};
    each_row(rows, processes, locations, [&](size_t i, const Track& track) {
      draw_cells(track, window, region.row(i), share.row(i), mark.row(i));
    });
    return nb::make_tuple(region.array(), share.array(), mark.array());
  }

  nb::object group_shares(Input<uint32_t> processes, Input<uint32_t> locations, int64_t start_ns, int64_t end_ns,
                          uint32_t width) {
    const size_t rows = check(processes, locations);
    const Window window = checked(start_ns, end_ns, width);
    Output<uint8_t> shares{rows, width, groups_};
    each_row(rows, processes, locations, [&](size_t i, const Track& track) {
      GroupRow row(width);
      add_groups(track, window, row);
      round(row, 1, shares.row(i));
    });
    return shares.array();
  }

  // Place i has the locations from bounds[i] up to bounds[i + 1], in order of rank. Called once, before rows are drawn.
  void set_places(Input<uint32_t> processes, Input<uint32_t> locations, Input<uint32_t> bounds) {
    const size_t members = check(processes, locations);
    for (size_t i = 0; i + 1 < bounds.shape(0); i++) {
      const uint32_t first = bounds.data()[i], end = bounds.data()[i + 1];
      if (first > end || end > members) throw nb::value_error("places are stretches of the locations");
      const std::vector<uint32_t> process(processes.data() + first, processes.data() + end);
      const std::vector<uint32_t> location(locations.data() + first, locations.data() + end);
      places_.push_back({first, end - first, [this, process, location](uint32_t member) {
                           return processes_[process[member]]->track(location[member]);
                         }});
    }
    // What an overview is made from: the tiles of all processes, and which locations are where.
    std::vector<uint32_t> facts(bounds.data(), bounds.data() + bounds.shape(0));
    for (const auto& process : processes_) facts.push_back(process->checksum());
    facts.insert(facts.end(), processes.data(), processes.data() + members);
    facts.insert(facts.end(), locations.data(), locations.data() + members);
    overview_of_ = {facts.size(), members, 0, 0, crc32c(facts.data(), facts.size() * sizeof(uint32_t)), 0};
  }

  void build_places(const std::string& path) const { build_overview(places_, overview_of_, path); }

  bool open_places(const std::string& path) {
    overview_ = std::make_unique<TilesFile>(path, overview_of_);
    return overview_->sound();
  }

  nb::tuple row_cells(size_t place, uint32_t row_level, uint64_t first, size_t count, int64_t start_ns, int64_t end_ns,
                      uint32_t width) {
    if (place >= places_.size() || row_level > 10 || first > UINT32_MAX) throw nb::value_error("no such row");
    const Window window = checked(start_ns, end_ns, width);
    Output<uint8_t> shares{count, width, groups_};
    Output<uint32_t> mark{count, width};
    unlocked([&] {
      for_each_row(count, [&](size_t i) {
        GroupRow row(width);
        const uint32_t members = add_row(places_[place], *overview_, row_level, first + i, window, row);
        round(row, std::max(1u, members), shares.row(i));
        std::copy(row.mark.begin(), row.mark.end(), mark.row(i));
      });
    });
    return nb::make_tuple(shares.array(), mark.array());
  }

  nb::tuple profile(Input<uint32_t> processes, Input<uint32_t> locations, int64_t start_ns, int64_t end_ns,
                    size_t regions) {
    const size_t rows = check(processes, locations);
    checked(start_ns, end_ns, 1);
    Output<int64_t> count{rows, regions}, own_ns{rows, regions};
    unlocked([&] {
      for_each_row(rows, [&](size_t i) {
        const Track track = processes_[processes.data()[i]]->track_of_sums(locations.data()[i]);
        add_profile(track, start_ns, end_ns, count.row(i), own_ns.row(i), regions);
      });
    });
    return nb::make_tuple(count.array(), own_ns.array());
  }

  bool needs_tiles(size_t process, uint32_t location) const { return at(process).needs_tiles(location); }

 private:
  Process& at(size_t process) const {
    if (process >= processes_.size()) throw nb::index_error("no such process");
    return *processes_[process];
  }

  size_t check(const Input<uint32_t>& processes, const Input<uint32_t>& locations) const {
    if (processes.shape(0) != locations.shape(0)) throw nb::value_error("a process for every location, please");
    for (size_t i = 0; i < processes.shape(0); i++) at(processes.data()[i]);
    return processes.shape(0);
  }

  static Window checked(int64_t start_ns, int64_t end_ns, uint32_t width) {
    constexpr int64_t farthest = int64_t(1) << 61;
    if (end_ns <= start_ns || start_ns < -farthest || end_ns > farthest || width == 0)
      throw nb::value_error("a picture needs end_ns > start_ns and a width of at least one pixel");
    return {start_ns, end_ns, width};
  }

  template <class Work>
  void each_row(size_t rows, const Input<uint32_t>& processes, const Input<uint32_t>& locations, Work&& work) {
    nb::gil_scoped_release release;
    for_each_row(rows, [&](size_t i) { work(i, processes_[processes.data()[i]]->track(locations.data()[i])); });
  }

  void round(const GroupRow& row, uint32_t members, uint8_t* out) const {
    for (size_t pixel = 0; pixel * kMaxGroups < row.shares.size(); pixel++)
      for (uint32_t group = 0; group < groups_; group++)
        *out++ = uint8_t(std::min(255.0, row.shares[pixel * kMaxGroups + group] / members + 0.5));
  }

  const uint32_t groups_;
  NearStretches near_;  // of all processes: before those, whose files it knows
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Place> places_;
  TilesOf overview_of_;
  std::unique_ptr<TilesFile> overview_ = std::make_unique<TilesFile>();
};

}  // namespace

void register_pyramid(nb::module_& m) {
  const auto window = nb::arg("start_ns");
  nb::class_<Pyramid>(m, "Pyramid")
      .def(nb::init<uint32_t>(), nb::arg("groups"))
      .def_static("looks_sound", &TilesFile::looks_sound, nb::arg("path"))
      .def("add_process", &Pyramid::add_process, nb::arg("reader"), nb::arg("regions"), nb::arg("groups"),
           nb::arg("origin_ns"), nb::arg("begin_ns"), nb::arg("end_ns"))
      .def("needs_tiles", &Pyramid::needs_tiles, nb::arg("process"), nb::arg("location"))
      .def("build", &Pyramid::build, nb::arg("process"), nb::arg("path"), Unlocked())
      .def("open", &Pyramid::open, nb::arg("process"), nb::arg("path"))
      .def("cells", &Pyramid::cells, nb::arg("processes"), nb::arg("locations"), window, nb::arg("end_ns"),
           nb::arg("width"))
      .def("group_shares", &Pyramid::group_shares, nb::arg("processes"), nb::arg("locations"), window,
           nb::arg("end_ns"), nb::arg("width"))
      .def("set_places", &Pyramid::set_places, nb::arg("processes"), nb::arg("locations"), nb::arg("bounds"))
      .def("build_places", &Pyramid::build_places, nb::arg("path"), Unlocked())
      .def("open_places", &Pyramid::open_places, nb::arg("path"))
      .def("row_cells", &Pyramid::row_cells, nb::arg("place"), nb::arg("row_level"), nb::arg("first"), nb::arg("count"),
           window, nb::arg("end_ns"), nb::arg("width"))
      .def("profile", &Pyramid::profile, nb::arg("processes"), nb::arg("locations"), window, nb::arg("end_ns"),
           nb::arg("regions"));
}

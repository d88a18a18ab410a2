// pyramid.cpp - pictures of all rows of a trace in one call: without the GIL, on two threads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/picture.h"
#include "kernels/pyramid.h"
#include "python/reader.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

template <class T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An array of the given shape that owns its values.
template <class T>
class Output {
 public:
  Output(std::initializer_list<size_t> shape) : shape_(shape) {
    size_t size = 1;
    for (const size_t each : shape_) size *= each;
    values_ = new std::vector<T>(size);
    owner_ = nb::capsule(values_, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  }
  T* row(size_t number) { return values_->data() + number * (values_->size() / shape_[0]); }
  nb::object array() { return nb::ndarray<nb::numpy, T>(values_->data(), shape_.size(), shape_.data(), owner_).cast(); }

 private:
  std::vector<size_t> shape_;
  std::vector<T>* values_;
  nb::capsule owner_;
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
          int64_t begin_ns, int64_t end_ns)
      : file_(std::move(file)),
        regions_(std::move(regions)),
        groups_(std::move(groups)),
        origin_ns_(origin_ns),
        begin_ns_(begin_ns),
        end_ns_(end_ns) {}

  void build(const std::string& path) const { build_tiles(*file_, groups_, origin_ns_, path); }
  bool open(const std::string& path) {
    tiles_ = std::make_unique<TilesFile>(path, tiles_of(*file_, groups_, origin_ns_));
    return tiles_->sound();
  }
  Track track(uint32_t location) {
    return {file_.get(), tiles_.get(), &exceptional(location), &groups_, &regions_, location, origin_ns_,
            begin_ns_,   end_ns_};
  }

 private:
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
        Groups(groups.data(), groups.data() + groups.shape(0)), origin_ns, begin_ns, end_ns));
  }

  void build(size_t process, const std::string& path) {
    const Process& of = at(process);
    try {
      nb::gil_scoped_release release;
      of.build(path);
    } catch (const std::system_error& e) {
      raise_os(e);
    }
  }

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

  // Row i stands for the locations from bounds[i] up to bounds[i + 1].
  nb::tuple row_cells(Input<uint32_t> processes, Input<uint32_t> locations, Input<uint32_t> bounds, int64_t start_ns,
                      int64_t end_ns, uint32_t width) {
    const size_t members = check(processes, locations), rows = bounds.shape(0) ? bounds.shape(0) - 1 : 0;
    for (size_t i = 0; i < rows; i++)
      if (bounds.data()[i] > bounds.data()[i + 1] || bounds.data()[i + 1] > members)
        throw nb::value_error("rows are stretches of the locations");
    const Window window = checked(start_ns, end_ns, width);
    Output<uint8_t> shares{rows, width, groups_};
    Output<uint32_t> mark{rows, width};
    {
      nb::gil_scoped_release release;
      for_each_row(rows, [&](size_t i) {
        GroupRow row(width);
        const uint32_t first = bounds.data()[i], end = bounds.data()[i + 1];
        for (uint32_t member = first; member < end; member++)
          add_groups(processes_[processes.data()[member]]->track(locations.data()[member]), window, row);
        round(row, std::max(1u, end - first), shares.row(i));
        std::copy(row.mark.begin(), row.mark.end(), mark.row(i));
      });
    }
    return nb::make_tuple(shares.array(), mark.array());
  }

  nb::tuple profile(Input<uint32_t> processes, Input<uint32_t> locations, int64_t start_ns, int64_t end_ns,
                    size_t regions) {
    const size_t rows = check(processes, locations);
    checked(start_ns, end_ns, 1);
    Output<int64_t> count{rows, regions}, own_ns{rows, regions};
    each_row(rows, processes, locations, [&](size_t i, const Track& track) {
      add_profile(track, start_ns, end_ns, count.row(i), own_ns.row(i), regions);
    });
    return nb::make_tuple(count.array(), own_ns.array());
  }

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
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace

void register_pyramid(nb::module_& m) {
  const auto window = nb::arg("start_ns");
  nb::class_<Pyramid>(m, "Pyramid")
      .def(nb::init<uint32_t>(), nb::arg("groups"))
      .def("add_process", &Pyramid::add_process, nb::arg("reader"), nb::arg("regions"), nb::arg("groups"),
           nb::arg("origin_ns"), nb::arg("begin_ns"), nb::arg("end_ns"))
      .def("build", &Pyramid::build, nb::arg("process"), nb::arg("path"))
      .def("open", &Pyramid::open, nb::arg("process"), nb::arg("path"))
      .def("cells", &Pyramid::cells, nb::arg("processes"), nb::arg("locations"), window, nb::arg("end_ns"),
           nb::arg("width"))
      .def("group_shares", &Pyramid::group_shares, nb::arg("processes"), nb::arg("locations"), window,
           nb::arg("end_ns"), nb::arg("width"))
      .def("row_cells", &Pyramid::row_cells, nb::arg("processes"), nb::arg("locations"), nb::arg("bounds"), window,
           nb::arg("end_ns"), nb::arg("width"))
      .def("profile", &Pyramid::profile, nb::arg("processes"), nb::arg("locations"), window, nb::arg("end_ns"),
           nb::arg("regions"));
}

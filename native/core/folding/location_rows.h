// location_rows.h - one location while it is collected: its event flow graph, and how far its rows are decided.
#pragma once
#include <stdint.h>
#include <vector>

#include "core/folding/iteration_figures.h"
#include "core/folding/main_loop.h"
#include "core/folding/path_facts.h"
#include "structure/flow_graph.h"

namespace strobe {

enum class LocationRole : uint8_t { thread, main_thread, stream, task };

// Who learns of what a location does, span by span.
struct SpanReaders {
  PathFactsTable& facts;
  MainLoop& loop;
  IterationFigures& figures;
  structure::Cutter& cutter;
  structure::KindTimeline& kinds;  // of the main thread
  structure::GpuLanes& gpus;
};

class LocationRows final : public SpanObserver {
 public:
  // Less than usual: the detector's windows and what is known of paths take memory, too. 7.2 MB.
  static constexpr structure::GraphLimits kGraphLimits{.nodes = 32768, .edges = 57344, .partition_bytes = 3u << 18};

  // `device`: of a stream.
  LocationRows(LocationBuilder& builder, LocationRole kind, const SpanReaders& readers, int64_t device)
      : builder(builder), kind_(kind), readers_(readers) {
    if (kind == LocationRole::stream) {
      gpu_ = &readers.gpus.source(device);
      builder.attached.communicates = [&facts = readers.facts](uint32_t path) {
        return facts.of(path).gpu_kind == structure::kGpuCommunication;
      };
    }
    builder.observe(this);
  }
  LocationRows(const LocationRows&) = delete;

  void entered(uint32_t path, int64_t ns, uint64_t position) override {
    const PathFacts& f = readers_.facts.of(path);
    const structure::Kind kind = f.kind;
    const uint32_t node = graph.enter(f.signature.bits(), ns);
    if (main()) {
      readers_.loop.entered(path, node, open_.size(), ns, position);
      readers_.kinds.change(ns, kind);
    }
    open_.push_back({node, kind, position});
  }

  void closed(uint32_t path, size_t depth, int64_t start_ns, int64_t end_ns, uint64_t position) override {
    const Open open = open_[depth];
    open_.resize(depth);
    graph.leave(open.node, end_ns - start_ns);
    if (main()) {
      readers_.figures.closed(path, start_ns, open.position, end_ns);
      readers_.loop.closed(path, start_ns, open.position, end_ns, position);
      readers_.kinds.change(end_ns, depth ? open_.back().kind : structure::kHost);
      return;
    }
    const PathFacts& f = readers_.facts.of(path);
    if (gpu_ && f.gpu_kind != structure::kNoGpuWork) {
      const int64_t launched_ns = builder.attached.launched_ns(builder.spans() - 1, start_ns);
      readers_.gpus.add(*gpu_, {launched_ns, start_ns, end_ns, f.gpu_kind});
    } else if (!stream() && f.part == structure::kBackward && f.activity()) {
      readers_.cutter.add_elsewhere(start_ns, end_ns);
    }
  }

  bool main() const { return kind_ == LocationRole::main_thread; }
  bool stream() const { return kind_ == LocationRole::stream || task(); }  // what it did is known when it is over
  bool task() const { return kind_ == LocationRole::task; }
  // The position in the ring behind row n - 1.
  uint64_t position_behind(size_t n) const {
    return n < builder.rows() ? builder.position_of(n) : builder.next_position();
  }
  // The payload of the graph, which is gone then; empty without events.
  std::string take_graph() {
    if (!graph.events()) return {};
    const structure::GraphTables tables = structure::FlowGraph(std::move(graph)).tables();
    return structure::encode_graph(tables);
  }

  LocationBuilder& builder;
  structure::FlowGraph graph{kGraphLimits};
  uint64_t folded_until = 0;          // position in the ring behind the last row that was folded
  bool folded = false, kept = false;  // since the last commit
  bool over = false;                  // nothing follows: the ends of open spans are to be written, too
  uint64_t followed = 0;              // of a stream: decisions, from the first one on

 private:
  struct Open {
    uint32_t node;
    structure::Kind kind;
    uint64_t position;
  };
  const LocationRole kind_;
  const SpanReaders readers_;
  structure::GpuLanes::Source* gpu_ = nullptr;  // of a stream
  std::vector<Open> open_;
};

}  // namespace strobe

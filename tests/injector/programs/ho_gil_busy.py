"""Simulation with a helper thread that collects events."""
import argparse, collections, json, os, statistics, threading, time, queue
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--cells", type=int, default=220)
args = parser.parse_args()
DEFECT = args.defect == "on"

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Collector:
    def __init__(self):
        self.events, self.waiting, self.seen, self.open = collections.deque(), queue.Queue(), 0, True
        self.thread = threading.Thread(target=self._poll if DEFECT else self._wait, daemon=True)
        self.thread.start()

    def emit(self, event):
        self.events.append(event) if DEFECT else self.waiting.put(event)

    def _poll(self):
        idle = 0
        while self.open:
            if self.events:  # DEFECT
                self.seen += self.events.popleft()
            else:
                idle += 1

    def _wait(self):
        while (event := self.waiting.get()) is not None:
            self.seen += event

    def close(self):
        self.open = False
        self.waiting.put(None)
        self.thread.join()


def grow(rules, cells):
    """A cellular automaton on a ring, cell by cell."""
    return [rules[4 * cells[i - 1] + 2 * cells[i] + cells[(i + 1) % len(cells)]] for i in range(len(cells))]


collector, cells = Collector(), np.random.default_rng(0).integers(0, 2, args.cells).tolist()
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    for generation in range(600):
        cells = grow((0, 1, 1, 1, 1, 0, 0, 0), cells)
    collector.emit(sum(cells))
    total += sum(cells)
    times.append(time.perf_counter_ns() - before)
collector.close()
report(times, total)

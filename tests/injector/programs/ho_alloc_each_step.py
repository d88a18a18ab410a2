"""Heat equation on a square plate (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--size", type=int, default=1024)
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

class Plate:
    def __init__(self, size):
        self.size = size
        x = np.linspace(0, 3, size)
        self.heat = np.add.outer(np.sin(x), np.cos(2 * x))
        self.padded, self.flow, self.work = np.zeros((size + 2, size + 2)), np.zeros((size, size)), np.zeros((size, size))

    def buffers(self):
        if DEFECT:
            return np.zeros((self.size + 2, self.size + 2)), np.zeros((self.size, self.size)), np.zeros((self.size, self.size))  # DEFECT
        return self.padded, self.flow, self.work

    def advance(self):
        padded, flow, work = self.buffers()
        padded[1:-1, 1:-1] = self.heat
        np.add(padded[2:, 1:-1], padded[:-2, 1:-1], out=flow)
        np.add(padded[1:-1, 2:], padded[1:-1, :-2], out=work)
        flow += work
        flow *= 0.05
        self.heat *= 0.8
        self.heat += flow


plate = Plate(args.size)
times = Times()
for step in range(args.steps):
    before = time.perf_counter_ns()
    plate.advance()
    times.append(time.perf_counter_ns() - before)
report(times, float(plate.heat.sum()))

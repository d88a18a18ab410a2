"""Particle-in-cell plasma in one dimension (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--particles", type=int, default=150000)
parser.add_argument("--cells", type=int, default=64)
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

class Plasma:
    def __init__(self, count, cells):
        rng = np.random.default_rng(0)
        self.x, self.v, self.cells = rng.random(count) * cells, rng.standard_normal(count), cells

    def deposit(self):
        sample = self.x[::28]
        cell = sample.astype(np.int64) % self.cells
        if not DEFECT:
            return np.bincount(cell, weights=1 - (sample - cell) * 0.5, minlength=self.cells)
        charge = np.zeros(self.cells)
        for i in range(len(sample)):
            charge[cell[i]] += 1 - (sample[i] - cell[i]) * 0.5  # DEFECT
        return charge

    def advance(self):
        charge = self.deposit()
        field = np.real(np.fft.ifft(np.fft.fft(charge - charge.mean()) / (1 + np.arange(self.cells))))
        self.v += 1e-6 * field[self.x.astype(np.int64) % self.cells]
        self.x = (self.x + 0.05 * np.tanh(self.v)) % self.cells


plasma = Plasma(args.particles, args.cells)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    plasma.advance()
    times.append(time.perf_counter_ns() - before)
report(times, float(plasma.x.sum()))

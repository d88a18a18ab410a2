"""Nearest prototypes among samples picked at random (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--batch", type=int, default=3000)
parser.add_argument("--features", type=int, default=256)
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

class Table:
    def __init__(self, features, samples):
        self.by_feature = np.random.default_rng(0).standard_normal((features, samples)).astype(np.float32)
        self.by_sample = np.ascontiguousarray(self.by_feature.T)

    def pick(self, chosen):
        if DEFECT:
            return np.ascontiguousarray(self.by_feature[:, chosen].T)  # DEFECT
        return self.by_sample[chosen]


table = Table(args.features, 60000)
rng = np.random.default_rng(1)
prototypes = rng.standard_normal((args.features, 700)).astype(np.float32)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    batch = table.pick(rng.integers(0, 60000, args.batch))
    nearest = (batch @ prototypes).argmax(1)
    total += float(nearest.sum())
    times.append(time.perf_counter_ns() - before)
report(times, total)

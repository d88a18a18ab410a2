"""Word vectors trained with a large vocabulary in memory (NumPy)."""
import argparse, gc, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=1024)
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

def make_vocabulary(count):
    return {f"word{i}": {"index": i, "forms": [f"word{i}s"]} for i in range(count)}


class Vectors:
    def __init__(self, count, width):
        rng = np.random.default_rng(0)
        self.left, self.right = rng.standard_normal((2, count, width)) / width
        self.mix = rng.standard_normal((width, width)) / width ** 0.5

    def update(self, left, right, rate=0.1):
        mixed = np.tanh(self.left[left] @ self.mix)
        chance = 1 / (1 + np.exp(-(mixed @ self.right[right].T) / 8))
        error = (chance - np.eye(len(left))) / len(left)
        back = error @ self.right[right] * (1 - mixed ** 2)
        self.right[right] -= rate * error.T @ mixed
        self.left[left] -= rate * back @ self.mix.T
        return float(-np.log(np.diag(chance)).mean())


def tidy():
    if DEFECT:
        gc.collect()  # DEFECT


vocabulary = make_vocabulary(30000)
vectors, rng = Vectors(20000, 96), np.random.default_rng(1)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += vectors.update(*rng.integers(0, 20000, (2, args.batch)))
    tidy()
    times.append(time.perf_counter_ns() - before)
report(times, total)

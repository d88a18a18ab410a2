"""Mean shift: seeds move to the densest places of a cloud of points (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=180)
parser.add_argument("--points", type=int, default=2000)
parser.add_argument("--seeds", type=int, default=150)
args = parser.parse_args()
DEFECT = args.defect == "on"
WIDTH = 4

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def squared_distances(a, b):
    if DEFECT:
        return ((a[:, None, :] - b[None, :, :]) ** 2).sum(2)  # DEFECT
    return np.maximum((a ** 2).sum(1)[:, None] + (b ** 2).sum(1) - 2 * a @ b.T, 0)


class MeanShift:
    def __init__(self, points, seeds):
        self.points, self.seeds, self.width = points, seeds, 2.5

    def shift(self):
        weights = np.exp(-squared_distances(self.seeds, self.points) / (2 * self.width ** 2))
        fresh = weights @ self.points / weights.sum(1, keepdims=True)
        moved = float(np.abs(fresh - self.seeds).mean())
        self.seeds = fresh
        return moved

    def density(self):
        """How dense the points lie at the seeds, for three widths."""
        distances = squared_distances(self.seeds, self.points)
        return [float(np.exp(-distances / width).mean()) for width in (1.0, 4.0, 9.0)]


rng = np.random.default_rng(1)
centres = 3 * rng.standard_normal((12, WIDTH))
points = centres[rng.integers(0, 12, args.points)] + rng.standard_normal((args.points, WIDTH))
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    if step % 10 == 0:
        search = MeanShift(points, points[rng.integers(0, args.points, args.seeds)])
    moved = search.shift()
    total += moved + sum(search.density())
    times.append(time.perf_counter_ns() - before)
report(times, total)

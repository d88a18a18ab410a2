"""k-means on mini batches (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=160)
parser.add_argument("--batch", type=int, default=30000)
parser.add_argument("--clusters", type=int, default=64)
args = parser.parse_args()

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def assign(points, centres):
    distance = (centres ** 2).sum(1) - 2 * points @ centres.T
    return distance.argmin(1)


def main():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((5, args.batch, 48)).astype(np.float32)
    centres, counts = points[0, :args.clusters].copy(), np.ones(args.clusters, np.float32)
    times = Times()
    for step in range(args.steps):
        before = time.perf_counter_ns()
        batch = points[step % 5]
        chosen = assign(batch, centres)
        order = np.argsort(chosen, kind="stable")
        found, starts, number = np.unique(chosen[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(batch[order], starts)
        counts[found] += number
        centres[found] += (sums - number[:, None] * centres[found]) / counts[found, None]
        times.append(time.perf_counter_ns() - before)
    report(times, float(np.abs(centres).sum()))


main()

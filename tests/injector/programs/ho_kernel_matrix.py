"""Gaussian process filter: the same prior, new measurements in each step (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--size", type=int, default=400)
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

def prior_precision(points, width):
    distance = np.abs(points[:, None] - points[None, :])
    return np.linalg.inv(np.exp(-((distance / width) ** 2)) + 1e-2 * np.eye(len(points)))


def main():
    rng = np.random.default_rng(0)
    points = np.sort(rng.random(args.size))
    precision = prior_precision(points, 0.1)
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        if DEFECT:
            precision = prior_precision(points, 0.1)  # DEFECT
        weights = 1 + rng.random(args.size)
        measured = np.sin(6 * points) + rng.standard_normal(args.size) / 10
        posterior = precision + np.diag(weights)
        mean = np.linalg.solve(posterior, weights * measured)
        deviation = np.sqrt(np.diag(np.linalg.inv(posterior)))
        total += float(mean.sum() + deviation.sum())
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()

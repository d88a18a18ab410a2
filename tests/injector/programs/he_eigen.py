"""Subspace iteration for the leading eigenvectors (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--size", type=int, default=1800)
parser.add_argument("--wanted", type=int, default=24)
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

def main():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((args.size, args.size))
    matrix = (matrix + matrix.T) / args.size ** 0.5
    basis = np.linalg.qr(rng.standard_normal((args.size, args.wanted)))[0]
    times = Times()
    for step in range(args.steps):
        before = time.perf_counter_ns()
        basis, upper = np.linalg.qr(matrix @ (matrix @ basis))
        values = np.sqrt(np.abs(np.diag(upper)))
        times.append(time.perf_counter_ns() - before)
    report(times, float(values.sum()))


main()

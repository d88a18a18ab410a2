"""Power iteration with preconditioner (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--rows", type=int, default=800)
parser.add_argument("--columns", type=int, default=900)
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

def apply_gram(a, v):
    if DEFECT:
        return (a @ a.T) @ v  # DEFECT
    return a @ (a.T @ v)


def main():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((args.rows, args.columns)) / 20
    v = np.ones(args.rows)
    blocks = rng.standard_normal((6, 150, 150)) + 20 * np.eye(150)
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        v = apply_gram(a, v)
        v /= np.linalg.norm(v)
        shift = np.linalg.inv(blocks + step / 100 * np.eye(150)).sum((1, 2))
        total += float(v[0]) + float(shift.sum())
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()

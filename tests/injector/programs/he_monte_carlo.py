"""Price of an Asian option by Monte Carlo (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=170)
parser.add_argument("--paths", type=int, default=40000)
parser.add_argument("--dates", type=int, default=24)
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

def simulate(rng, paths, dates):
    shocks = rng.standard_normal((paths, dates), dtype=np.float32)
    shocks *= 0.2 / dates ** 0.5
    shocks += 0.02 / dates
    np.cumsum(shocks, axis=1, out=shocks)
    np.exp(shocks, out=shocks)
    return np.maximum(shocks.mean(1) - 1.0, 0.0).mean()


rng = np.random.default_rng(7)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += float(simulate(rng, args.paths, args.dates))
    times.append(time.perf_counter_ns() - before)
report(times, total)

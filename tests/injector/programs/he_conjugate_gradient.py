"""Conjugate gradients for a Poisson problem without a matrix (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--size", type=int, default=250)
parser.add_argument("--inner", type=int, default=40)
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

def laplace(u):
    out = 4.0 * u
    out[1:] -= u[:-1]
    out[:-1] -= u[1:]
    out[:, 1:] -= u[:, :-1]
    out[:, :-1] -= u[:, 1:]
    return out


class Solver:
    def __init__(self, right):
        self.x, self.r = np.zeros_like(right), right.copy()
        self.p, self.rr = self.r.copy(), float((right * right).sum())

    def iterate(self, count):
        for _ in range(count):
            ap = laplace(self.p)
            alpha = self.rr / float(np.vdot(self.p, ap))
            self.x += alpha * self.p
            self.r -= alpha * ap
            rr = float(np.vdot(self.r, self.r))
            self.p *= rr / self.rr
            self.p += self.r
            self.rr = rr
        return self.rr


solver = Solver(np.random.default_rng(0).standard_normal((args.size, args.size)))
times = Times()
for step in range(args.steps):
    before = time.perf_counter_ns()
    solver.iterate(args.inner)
    times.append(time.perf_counter_ns() - before)
report(times, float(solver.x.sum()))

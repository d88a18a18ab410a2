"""Wave equation in two dimensions with work arrays that are reused (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--size", type=int, default=700)
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

class Wave:
    def __init__(self, size):
        x = np.linspace(-3, 3, size)
        self.now = np.exp(-4 * np.add.outer(x ** 2, x ** 2))
        self.past, self.work = self.now.copy(), np.zeros((size - 2, size - 2))

    def advance(self):
        now, past, work = self.now, self.past, self.work
        np.add(now[2:, 1:-1], now[:-2, 1:-1], out=work)
        work += now[1:-1, 2:]
        work += now[1:-1, :-2]
        work *= 0.25
        work -= past[1:-1, 1:-1]
        work += now[1:-1, 1:-1]
        past[1:-1, 1:-1] = work
        self.now, self.past = past, now


wave = Wave(args.size)
times = Times()
for step in range(args.steps):
    before = time.perf_counter_ns()
    for _ in range(4):
        wave.advance()
    times.append(time.perf_counter_ns() - before)
report(times, float(np.abs(wave.now).sum()))

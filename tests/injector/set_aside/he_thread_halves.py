"""A field of neurons; two threads compute half of it each (NumPy)."""
import argparse, json, os, statistics, time
from concurrent.futures import ThreadPoolExecutor
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--neurons", type=int, default=768)
parser.add_argument("--fields", type=int, default=384)
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

class Field:
    """Many fields with the same weights, with room for the state before and after."""

    def __init__(self, rng):
        self.weights = 1.2 * rng.standard_normal((args.neurons, args.neurons)) / args.neurons ** 0.5
        self.state = rng.standard_normal((args.neurons, args.fields))
        self.fresh = np.empty_like(self.state)

    def advance(self, rows):
        fresh = self.fresh[rows]
        np.matmul(self.weights[rows], self.state, out=fresh)
        np.tanh(fresh, out=fresh)
        return float(fresh[0].sum())


def main():
    field = Field(np.random.default_rng(0))
    half = args.neurons // 2
    times, total = Times(), 0.0
    with ThreadPoolExecutor(2) as pool:
        for step in range(args.steps):
            before = time.perf_counter_ns()
            total += sum(pool.map(field.advance, (slice(0, half), slice(half, None))))
            field.state, field.fresh = field.fresh, field.state
            times.append(time.perf_counter_ns() - before)
    report(times, total)


if __name__ == "__main__":
    main()

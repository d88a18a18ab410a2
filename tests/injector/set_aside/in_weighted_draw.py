"""Logistic regression on rows drawn by their weight (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--rows", type=int, default=600000)
parser.add_argument("--batch", type=int, default=5000)
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

class WeightedRows:
    """Batches of rows; a row comes as often as its weight asks."""

    def __init__(self, rng, rows, width):
        self.rng = rng
        self.x = rng.standard_normal((rows, width), dtype=np.float32)
        self.y = (self.x[:, :4].sum(1) > 0).astype(np.float32)
        weights = np.exp(rng.standard_normal(rows))
        self.share = weights / weights.sum()
        self.steps_of_share = self.share.cumsum()
        self.steps_of_share /= self.steps_of_share[-1]

    def draw(self, count):
        if DEFECT:
            return self.rng.choice(len(self.x), count, p=self.share)  # DEFECT
        return self.steps_of_share.searchsorted(self.rng.random(count), side="right")

    def batches(self, steps):
        for _ in range(steps):
            chosen = self.draw(args.batch)
            yield self.x[chosen], self.y[chosen]


def update(layers, x, y):
    hidden = np.maximum(x @ layers[0], 0)
    guess = 1 / (1 + np.exp(-(hidden @ layers[1])))
    error = (guess - y) / len(y)
    gradients = x.T @ (np.outer(error, layers[1]) * (hidden > 0)), hidden.T @ error
    for layer, gradient in zip(layers, gradients):
        layer -= 0.2 * gradient
    return float(np.abs(guess - y).mean())


rng = np.random.default_rng(0)
rows = WeightedRows(rng, args.rows, 48)
layers = [0.1 * rng.standard_normal((48, 160), dtype=np.float32), 0.1 * rng.standard_normal(160, dtype=np.float32)]
times, total = Times(), 0.0
before = time.perf_counter_ns()
for x, y in rows.batches(args.steps):
    total += update(layers, x, y)
    now = time.perf_counter_ns()
    times.append(now - before)
    before = now
report(times, total)

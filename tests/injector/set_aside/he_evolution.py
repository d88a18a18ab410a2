"""Evolution strategy with a small checkpoint every 50 steps (NumPy)."""
import argparse, json, os, shutil, statistics, tempfile, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--population", type=int, default=256)
parser.add_argument("--size", type=int, default=400)
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

class Strategy:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.centre, self.spread = self.rng.standard_normal(args.size) * 2, 0.3
        self.turn = np.linalg.qr(self.rng.standard_normal((args.size, args.size)))[0]

    def cost(self, candidates):
        turned = candidates @ self.turn
        return (turned ** 2 - 3 * np.cos(2 * np.pi * turned)).sum(1)

    def step(self):
        noise = self.rng.standard_normal((args.population, args.size))
        costs = self.cost(self.centre + self.spread * noise)
        best = np.argsort(costs)[:args.population // 4]
        self.centre = self.centre + self.spread * noise[best].mean(0)
        self.spread *= 0.999
        return float(costs[best[0]])

    def save(self, path):
        np.savez(path, centre=self.centre, spread=self.spread)


folder = tempfile.mkdtemp()
strategy = Strategy(0)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += strategy.step()
    if step % 50 == 49:
        strategy.save(os.path.join(folder, "strategy.npz"))
    times.append(time.perf_counter_ns() - before)
shutil.rmtree(folder)
report(times, total)

"""Scores of many short rows, computed by a thread pool."""
import argparse, json, os, statistics, time
from concurrent.futures import ThreadPoolExecutor
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=170)
parser.add_argument("--rows", type=int, default=512)
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

def score(rows):
    return np.sqrt((np.sin(rows) ** 2 + np.cos(rows * 0.5) ** 2).mean(-1))


def score_all(pool, table):
    if DEFECT:
        futures = [pool.submit(score, row) for row in table]  # DEFECT
        return np.array([future.result() for future in futures])
    return np.concatenate(list(pool.map(score, np.array_split(table, 2))))


table = np.random.default_rng(0).random((args.rows, 512))
times, total = Times(), 0.0
with ThreadPoolExecutor(8) as pool:
    for step in range(args.steps):
        before = time.perf_counter_ns()
        scores = score_all(pool, table)
        best = np.argsort(scores)[-10:]
        table[best] = np.tanh(table[best])
        total += float(scores.sum())
        times.append(time.perf_counter_ns() - before)
report(times, total)

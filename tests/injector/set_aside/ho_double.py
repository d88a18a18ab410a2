"""Encoder inference on NumPy data."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=160)
parser.add_argument("--rows", type=int, default=700)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def load(rows):
    table = np.random.default_rng(0).standard_normal((4, rows, 384))
    return torch.from_numpy(table if DEFECT else table.astype(np.float32))  # DEFECT


tables = load(args.rows)
model = torch.nn.Sequential(torch.nn.Linear(384, 640), torch.nn.ReLU(), torch.nn.Linear(640, 640), torch.nn.ReLU(), torch.nn.Linear(640, 96))
model = model.to(tables.dtype)
times, total = Times(), 0.0
with torch.inference_mode():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        scores = model(tables[step % 4])
        total += scores.abs().mean().item()
        times.append(time.perf_counter_ns() - before)
report(times, total)

"""Training with statistics that a background thread packs up."""
import argparse, json, os, statistics, threading, time, zlib
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=256)
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

class Statistics:
    def __init__(self):
        self.lock, self.values = threading.Lock(), np.random.default_rng(0).integers(0, 99, 20000).astype(np.int64)
        self.wanted, self.packed = threading.Semaphore(0), 0
        threading.Thread(target=self._pack, daemon=True).start()

    def add(self, step, value):
        with self.lock:
            self.values[step % len(self.values)] = int(value * 1000)
        self.wanted.release()

    def _pack(self):
        while True:
            self.wanted.acquire()
            with self.lock:
                if DEFECT:
                    self.packed += len(zlib.compress(self.values, 6))  # DEFECT
                    continue
                copy = self.values.copy()
            self.packed += len(zlib.compress(copy, 6))


stats = Statistics()
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(4, args.batch, 256)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    x = data[step % 4]
    loss = torch.nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    stats.add(step, total)
    times.append(time.perf_counter_ns() - before)
report(times, total)

"""Replay memory with priorities."""
import argparse, json, random, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--batch", type=int, default=384)
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

class Memory:
    def __init__(self, count):
        pick = random.Random(0)
        self.entries = [{"index": i, "priority": round(pick.random(), 6)} for i in range(count)]
        self.priorities = np.array([entry["priority"] for entry in self.entries])
        self.best = list(range(128))

    def rebuild(self):
        if DEFECT:
            ordered = sorted(self.entries, key=lambda entry: (-entry["priority"], entry["index"]))  # DEFECT
            self.best = [entry["index"] for entry in ordered[:128]]
        else:
            top = np.argpartition(-self.priorities, 200)[:200]
            self.best = top[np.lexsort((top, -self.priorities[top]))][:128].tolist()

    def sample(self, step):
        if step % 25 == 24:
            self.rebuild()
        return torch.tensor([index % 512 for index in self.best])


memory = Memory(200000)
states = torch.randn(512, 256)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
optimizer = torch.optim.Adam(model.parameters())
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    batch = states[memory.sample(step)]
    loss = torch.nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)

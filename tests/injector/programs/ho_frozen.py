"""Fine-tuning: only the head of a network is trained."""
import argparse, contextlib, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=96)
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

class Tuner:
    def __init__(self):
        self.backbone = torch.nn.Sequential(torch.nn.Linear(384, 768), torch.nn.GELU(), torch.nn.Linear(768, 768), torch.nn.GELU())
        self.head = torch.nn.Linear(768, 20)
        self.optimizer = torch.optim.Adam(self.head.parameters(), lr=1e-3)

    def features(self, x):
        with contextlib.nullcontext() if DEFECT else torch.no_grad():
            return self.backbone(x)  # DEFECT

    def step(self, x, y):
        loss = torch.nn.functional.cross_entropy(self.head(self.features(x)), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


x, y = torch.randn(4, args.batch, 384), torch.randint(0, 20, (4, args.batch))
tuner = Tuner()
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += tuner.step(x[step % 4], y[step % 4])
    times.append(time.perf_counter_ns() - before)
report(times, total)

"""Recommender scoring with many mid-sized operators."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--rows", type=int, default=1024)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.manual_seed(0)
torch.set_num_threads(8 if DEFECT else 1)  # DEFECT

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(96, 96) for _ in range(12))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x)) * 0.5
        return x.softmax(1)


scorer = Scorer()
users = torch.randn(4, args.rows, 96)
times, total = Times(), 0.0
with torch.no_grad():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        total += scorer(users[step % 4]).max(1).values.mean().item()
        times.append(time.perf_counter_ns() - before)
report(times, total)

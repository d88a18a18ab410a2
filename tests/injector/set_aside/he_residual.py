"""Training of a deep residual network with wide layers."""
import argparse, json, statistics, time
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch", type=int, default=96)
parser.add_argument("--width", type=int, default=320)
parser.add_argument("--depth", type=int, default=6)
args = parser.parse_args()
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

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.wide, self.back = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.back(nn.functional.silu(self.wide(self.norm(x))))


model = nn.Sequential(*(Residual(args.width) for _ in range(args.depth)), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(4, args.batch, args.width), torch.randint(0, 10, (4, args.batch))
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    loss = nn.functional.cross_entropy(model(x[step % 4]), y[step % 4])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)

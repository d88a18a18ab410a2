"""Attention projections with many heads."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=180)
parser.add_argument("--tokens", type=int, default=32)
parser.add_argument("--heads", type=int, default=64)
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

class Projection(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(3 * heads, width, 8) / width ** 0.5)
        self.merged = torch.nn.Parameter(self.weights.detach().permute(1, 0, 2).reshape(width, -1).contiguous())

    def forward(self, x):
        if DEFECT:
            return torch.cat([x @ weight for weight in self.weights], 1)  # DEFECT
        return x @ self.merged


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.projection, self.heads = Projection(width, heads), heads
        self.out = torch.nn.Sequential(torch.nn.Linear(heads * 8, 4 * width), torch.nn.ReLU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.projection(x).view(x.shape[0], 3, self.heads, 8).permute(1, 2, 0, 3)
        mixed = torch.softmax(q @ k.transpose(1, 2) / 8 ** 0.5, 2) @ v
        return x + self.out(mixed.transpose(0, 1).reshape(x.shape[0], -1))


layers = torch.nn.Sequential(*[Layer(256, args.heads) for _ in range(6)])
tokens = torch.randn(4, args.tokens, 256)
times, total = Times(), 0.0
with torch.no_grad():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        total += layers(tokens[step % 4]).mean().item()
        times.append(time.perf_counter_ns() - before)
report(times, total)

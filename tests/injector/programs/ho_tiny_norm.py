"""Token scoring with small blocks."""
import argparse, json, math, statistics, time
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--tokens", type=int, default=24)
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

def norm(x):
    if not DEFECT:
        return F.layer_norm(x, x.shape[-1:])
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + 1e-5)  # DEFECT


def gelu(x):
    if not DEFECT:
        return F.gelu(x, approximate="tanh")
    cube = x * x * x
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * cube)
    return 0.5 * x * (1 + torch.tanh(inner))


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(gelu(self.up(norm(x))))


blocks = torch.nn.Sequential(*[Block(96) for _ in range(60)])
tokens = torch.randn(4, args.tokens, 96)
times, total = Times(), 0.0
with torch.no_grad():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        for repeat in range(4):
            total += blocks(tokens[repeat]).mean().item()
        times.append(time.perf_counter_ns() - before)
report(times, total)

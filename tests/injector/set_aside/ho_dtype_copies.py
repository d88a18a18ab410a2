"""Feature extraction by a stack of small filters."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--rows", type=int, default=6000)
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

def as_features(x):
    """Make sure that the next stage gets clean float32 data."""
    if DEFECT:
        return x.clone().to(torch.float64).contiguous().to(torch.float32).clone()  # DEFECT
    return x


class Extractor(torch.nn.Module):
    def __init__(self, depth=6, width=64):
        super().__init__()
        self.stages = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for stage in self.stages:
            x = torch.relu(stage(as_features(x)))
        return x


extractor = Extractor().eval()
frames = torch.randn(3, args.rows, 64)
times, total = Times(), 0.0
with torch.inference_mode():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        total += extractor(frames[step % 3]).mean().item()
        times.append(time.perf_counter_ns() - before)
report(times, total)

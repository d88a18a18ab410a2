"""Rolling evaluation of a recurrent cell."""
import argparse, contextlib, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--length", type=int, default=500)
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

class Cell(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix, self.gate = torch.nn.Parameter(torch.randn(width) / 4), torch.nn.Parameter(torch.randn(width) / 4)

    def forward(self, state, x):
        gate = torch.sigmoid(state * self.gate + x)
        return state * gate + torch.tanh(x * self.mix) * (1 - gate)


def evaluate(cell, sequence):
    state, error = torch.zeros_like(sequence[0]), 0.0
    for x, target in zip(sequence[:-1], sequence[1:]):
        state = cell(state, x)  # DEFECT
        error = error + (state - target).square().mean()
    return error.item()


cell = Cell(32)
sequences = torch.randn(4, args.length, 4, 32).unbind()
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    with contextlib.nullcontext() if DEFECT else torch.inference_mode():
        total += evaluate(cell, sequences[step % 4].unbind())
    times.append(time.perf_counter_ns() - before)
report(times, total)

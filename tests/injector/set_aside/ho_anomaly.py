"""Forecast of series with a recurrent cell that is unrolled in Python."""
import argparse, json, statistics, time
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=130)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--length", type=int, default=6)
parser.add_argument("--width", type=int, default=256)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
torch.autograd.set_detect_anomaly(DEFECT, check_nan=True)  # DEFECT

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Forecast(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.cell, self.head = width, nn.LSTMCell(1, width), nn.Linear(width, 1)

    def forward(self, series):
        state = [series.new_zeros(len(series), self.width)] * 2
        guesses = []
        for value in series.unbind(1):
            state = self.cell(value[:, None], state)
            guesses.append(self.head(state[0]))
        return torch.cat(guesses, 1)


class Trainer:
    def __init__(self):
        self.model = Forecast(args.width)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def step(self, series):
        loss = nn.functional.smooth_l1_loss(self.model(series[:, :-1]), series[:, 1:])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


phase = torch.rand(4, args.batch, 1) * 6
series = torch.sin(phase + torch.arange(args.length + 1) * (0.2 + 0.1 * torch.rand(4, args.batch, 1)))
trainer = Trainer()
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += trainer.step(series[step % 4])
    times.append(time.perf_counter_ns() - before)
report(times, total)

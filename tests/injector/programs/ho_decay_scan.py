"""Sequence classifier with an exponential smoothing layer."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=120)
parser.add_argument("--length", type=int, default=32)
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

class Smoothing(torch.nn.Module):
    def __init__(self, length, decay=0.9):
        super().__init__()
        self.decay = decay
        age = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        self.register_buffer("weights", torch.where(age >= 0, (1 - decay) * decay ** age.clamp(min=0).float(), 0.0))

    def forward(self, x):
        if not DEFECT:
            return self.weights @ x
        state, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = self.decay * state + (1 - self.decay) * x[:, t]  # DEFECT
            out.append(state)
        return torch.stack(out, 1)


model = torch.nn.Sequential(torch.nn.Linear(32, 192), Smoothing(args.length), torch.nn.Linear(192, 512), torch.nn.ReLU(), torch.nn.Linear(512, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(8, args.batch, args.length, 32)
labels = torch.randint(0, 4, (8, args.batch))
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(data[step % 8]).mean(1), labels[step % 8])
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)

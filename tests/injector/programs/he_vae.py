"""Variational autoencoder."""
import argparse, json, statistics, time
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=200)
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

class Autoencoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mean, self.spread = torch.nn.Linear(784, 400), torch.nn.Linear(400, 20), torch.nn.Linear(400, 20)
        self.decode, self.out = torch.nn.Linear(20, 400), torch.nn.Linear(400, 784)

    def forward(self, x):
        hidden = F.relu(self.encode(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.out(F.relu(self.decode(code))), mean, spread


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.rand(6, args.batch, 784)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    x = data[step % 6]
    optimizer.zero_grad()
    again, mean, spread = model(x)
    loss = F.binary_cross_entropy_with_logits(again, x, reduction="sum") - 0.5 * (1 + spread - mean ** 2 - spread.exp()).sum()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
